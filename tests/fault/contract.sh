#!/bin/bash
# The contract test held to account: on a pretend device it passes what is right, and finds a variant that is
# wrong at one size, where two choices meet, or that gives other bits each time (fakes/faulty.c, mirror.c).
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
contract=$GPURUN_BUILD/tests/contract_fake
if [ ! -x "$contract" ]; then
    echo "skipped: $contract was not built"
    exit 77
fi
faulty=$GPURUN_BUILD/fakes/faulty/faulty.so mirror=$GPURUN_BUILD/fakes/mirror/mirror.so

begin "what is right passes"
run "$contract" --gpu --seconds 1 "$faulty" steady declared narrow peer
expect_exit 0
expect_line "$STDOUT" 'faulty gpu, pairs: *[1-9]* pairs in *[1-9]* rows, * pairs refused with a reason; * s'
expect_line "$STDOUT" 'faulty gpu, sizes: * runs, 0 refused with a reason, 0 too large, 2 dimensions;*'
expect_line "$STDOUT" 'faulty variant steady: * runs, * sizes, * with the same bytes again, 0 unsupported'
expect_line "$STDOUT" 'faulty variant declared: * runs, * sizes, 0 with the same bytes again, 0 unsupported'
expect_line "$STDOUT" 'faulty variant narrow: * unsupported: *dtype: int32 alone is done here'
expect_line "$STDOUT" 'faulty variant peer: * with the same bytes again but for reals, 0 unsupported'
expect_no_line "$STDOUT" 'variant wavering'

# wrong VARIANT TESTS TEXT: the tests named, and a line of what they say. They end where the fault is found.
wrong() {
    begin "$1"
    CK_RUN_CASE=$2 run "$contract" --gpu --seconds 120 "$faulty" "$1"
    expect_exit 1
    expect_line "$STDOUT" "$3"
}
wrong tile_edge sizes "*test_gpu_sizes*s = 257*: 1 of * wrong; first: element *"
wrong large sizes "*test_gpu_sizes*cols = 1048577*: 1 of * wrong; first: element *"
wrong pair pairs "*test_gpu_pairs*order = down, flip = yes*: 1 of * wrong; first: element *"
wrong wavering pairs "*test_gpu_pairs*wavering: two runs of one case write different bytes to out"
wrong scratch pairs "*test_gpu_pairs*scratch, verify = *: 1 of * wrong; first: element *"

begin "the sizes of another plugin"
CK_RUN_CASE=sizes run "$contract" --gpu --seconds 1 "$mirror" copy state peer
expect_exit 0
expect_line "$STDOUT" 'mirror gpu, sizes: * runs, 0 refused with a reason, 0 too large, 1 dimensions; * first sizes, * edges, * at random'
CK_RUN_CASE=sizes run "$contract" --gpu --seconds 60 "$mirror" untouched
expect_exit 1
expect_line "$STDOUT" "*test_gpu_sizes*: mirror: *untouched, verify = *"

begin "a command line that makes no sense"
for words in "" --gpu "--seconds" "--seconds x $mirror" "--seconds -1 $mirror" "--other $mirror" "$mirror copy" nothing; do
    # shellcheck disable=SC2086
    run "$contract" $words
    expect_exit 1
    expect_line "$STDERR" 'use: * PLUGIN.so *'
done
begin "a variant that there is not"
run "$contract" --gpu "$mirror" copy coyp
expect_exit 1
expect_text "$STDERR" 'mirror has no variant coyp
'

finish 38
