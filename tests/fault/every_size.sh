#!/bin/bash
# tests/every_size held to account on a pretend device: it passes what is right, finds a variant that is wrong at
# one size or writes where it must not, and says of every other thing that goes wrong what it was.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
program=$GPURUN_BUILD/tests/every_size_fake
faulty=$GPURUN_BUILD/fakes/faulty/faulty.so choosy=$GPURUN_BUILD/fakes/choosy/choosy.so
mirror=$GPURUN_BUILD/fakes/mirror/mirror.so

# every ARGUMENT...: of faulty, whose rows are the size, with whole numbers.
every() {
    run "$program" -s dtype=int32 -s cols=3 --threads 3 "$@" "$faulty"
}

begin "what is right passes, and every size was tried"
every --to 5000 --variants steady,narrow
expect_exit 0
expect_empty "$STDERR"
expect_line "$STDOUT" 'faulty on Fake GPU: rows = 0 to 5000, 3 variants against peer, 3 threads'
expect_line "$STDOUT" 'steady * 5001 * 6 * 0 *'
expect_line "$STDOUT" 'peer * 5001 * 6 * 0 *'
expect_line "$STDOUT" 'passed: every size from rows = 0 to 5000 in * s, 0 wrong'

begin "one size of many is wrong"
every --to 3000 --variants steady,tile_edge
expect_exit 1
expect_line "$STDOUT" 'faulty tile_edge: rows = 257: out\[770\] is 0xa5a5a5a5, that of peer 0x*; verify finds 1 wrong in tile_edge: element 770 is *, not *; verify finds peer right'
expect_line "$STDOUT" 'tile_edge * 3001 * 4 * 1 *'
expect_line "$STDOUT" 'steady * 3001 * 4 * 0 *'
expect_line "$STDOUT" 'FAILED: every size from rows = 0 to 3000 in * s, 1 wrong'

begin "a wrong size that is verified"
every --from 257 --to 300 --variants tile_edge
expect_exit 1
expect_line "$STDOUT" 'faulty tile_edge: rows = 257: verify finds 1 wrong: element 770 is *, not *'
expect_line "$STDOUT" 'tile_edge * 44 * 2 * 1 *'

begin "who writes behind its answer"
every --from 1 --to 300 --variants behind
expect_exit 1
expect_line "$STDOUT" 'faulty behind: rows = 5: out\[15\], behind its end, is 0x0, that of peer 0xa5a5a5a5; verify finds behind right; *'
expect_line "$STDOUT" 'behind * 300 * 2 * 300 *'
checks=$((checks + 1))
[ "$(grep -c 'behind its end' "$STDOUT")" -le 30 ] || fail "more than 10 lines of each thread"

begin "who writes to an input"
run "$program" -s dtype=int32 -s cols=1 --threads 1 --to 900 --variants write_input "$faulty"
expect_exit 1
expect_text "$STDERR" 'every_size: input in was written to
'
expect_line "$STDOUT" 'faulty *: rows = 777: it did not answer as *, but does when run again; verify finds 1 wrong in *'

begin "a variant for another device"
every --to 10 --variants newer
expect_exit 0
expect_line "$STDOUT" 'newer * 0 * 0 * 0 *'
expect_line "$STDOUT" '11 unsupported: needs compute capability 20.0, this device has 9.0'

begin "no peer: the variants are held against each other"
run "$program" --threads 2 --from 1 --to 12 "$choosy"
expect_exit 0
expect_line "$STDOUT" 'choosy on Fake GPU: n = 1 to 12, 1 variants against each other, 2 threads'
begin "a size that setup refuses"
run "$program" --to 20 "$choosy"
expect_exit 0
expect_line "$STDOUT" '1 sizes refused: default: n: 13 is an unlucky number'
expect_line "$STDOUT" 'nothing * 20 *'
begin "the only size is refused"
run "$program" --from 13 --to 13 "$choosy"
expect_exit 2
expect_text "$STDERR" 'every_size: default: n: 13 is an unlucky number
'
begin "the device fails"
run "$program" --threads 2 --to 35 "$choosy"
expect_exit 1
expect_text "$STDERR" 'every_size: choosy nothing: n = 30: an illegal memory access
'
expect_line "$STDOUT" 'FAILED: not all that was begun was done'
begin "a tensor that is no prefix"
run "$program" --threads 1 --from 31 --to 50 "$choosy"
expect_exit 1
expect_text "$STDERR" 'every_size: choosy nothing: n = 40: tensor in is no part of what setup asks for at the largest size
'

begin "time is up"
every --to 1G --seconds 0 --variants steady --threads 300
expect_exit 2
run "$program" -s dtype=int32 -s cols=1 --to 10M --seconds 0.2 --variants steady "$faulty"
expect_exit 0
expect_line "$STDOUT" 'passed: every size from rows = 0 to * in * s, 0 wrong'
expect_line "$STDOUT" 'time was up: --from [1-9]* goes on'

begin "no device, no memory, a lost device"
GPURUN_FAKE_DEVICE=none every
expect_exit 77
expect_text "$STDOUT" 'skipped: no device (the fake driver has no device)
'
GPURUN_FAKE_DEVICE=small every
expect_exit 1
expect_text "$STDERR" 'every_size: 12582925 bytes of device memory: out of memory
'
GPURUN_FAKE_DEVICE=lost every --to 10
expect_exit 1
expect_text "$STDERR" 'every_size: the fake device fell off the bus
'

# refused TEXT ARGUMENT...: a command line that makes no sense, exit code 2.
refused() {
    local text=$1
    shift
    begin "refused: $*"
    run "$program" "$@"
    expect_exit 2
    expect_line "$STDERR" "every_size: $text"
}
refused 'one plugin is named'
refused 'one plugin is named' "$faulty" "$mirror"
refused 'an option that there is not, *' --frm 1 "$faulty"
refused 'an option that there is not, *' -s dtype "$faulty"
refused '--from is at least 0, *' --from -1 "$faulty"
refused '--from is at least 0, *' --from 5 --to 4 "$faulty"
refused '--from is at least 0, *' --threads 0 "$faulty"
refused '*x*' --to x "$faulty"
refused 'rows: 10000000000 is above 1000000000' -s dtype=int32 --to 10G "$faulty"
refused '-s: dtyp: is no option of faulty, did you mean dtype?; *' -s dtyp=int32 "$faulty"
refused '--variants: faulty has no variant stedy' --variants steady,stedy "$faulty"
refused 'tensor out (float): bits are compared, *try -s dtype=int32' "$faulty"
refused 'faulty has no option by which its inputs grow; -s: flip: sideways cannot be flipped' -s order=sideways -s flip=yes "$faulty"
begin "a plugin that there is not"
run "$program" nothing.so
expect_exit 1
expect_line "$STDERR" 'every_size: ./nothing/nothing.so, *'

finish 70
