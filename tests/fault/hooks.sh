#!/bin/bash
# A hook that fails, and answers that are wrong, cost the cases they must, with the reason, and no others. What ends
# the worker or changes it is misbehave.sh's.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

cat >job.ini <<'EOF'
[global]
plugin = mirror
repeat = 2
warmup = 1
timeout = 1m
[bad]
misbehave = no
variant = copy, peer
[good]
variant = copy
EOF

segv='killed by signal 11 (Segmentation fault)'

# costs HOOK WHAT CODE LINES: the records of the bad job; those of the good one are always there.
costs() {
    begin "$1 $2"
    sed "s/^misbehave.*/misbehave = $2\nhook = $1/" job.ini >one.ini
    rm -f records.jsonl
    run "$FAKE" one.ini --json --records records.jsonl
    expect_exit "$3"
    expect_cases "$4
good cpu passed
good copy passed
"
    expect "a record is not on disk" test "$(wc -l <records.jsonl)" -eq "$(wc -l <"$WORK/.cases")"
}
all_pass='bad cpu passed
bad copy passed
bad peer passed'
the_others='bad copy passed
bad peer passed'

costs setup fail 1 'bad cpu error: one.ini:7: misbehave: failed as asked'

costs run_cpu fail 1 "bad cpu error: one.ini:7: misbehave: failed as asked
$the_others"
costs run_cpu crash 1 "bad cpu crashed: proof: $segv
$the_others"
costs run_cpu write-input 1 "bad cpu error: input in was written to: it is not to be changed
$the_others"
for what in wrong nan untouched; do
    begin "run_cpu $what"
    sed "s/^misbehave.*/misbehave = $what/" job.ini >one.ini
    run "$FAKE" one.ini
    expect_exit 1
    case $what in
    wrong) expect_line "$STDOUT" 'cpu: 1 of 1000 wrong; first: element 500: 1.* not 0.*' ;;
    nan) expect_line "$STDOUT" 'cpu: 1 of 1000 wrong; first: element 500: nan, not 0.*' ;;
    *) expect_line "$STDOUT" 'cpu: 1000 of 1000 wrong; first: element 0: -2.87352e-16, not 0.*' ;;
    esac
    expect_line "$STDOUT" 'cpu *FAILED *full, 1000 * -'
    expect_line "$STDOUT" 'copy *PASSED *full, 1000 *'
    expect_line "$STDOUT" 'FAILED: 4 of 5 cases passed, 1 not'
done

costs verify fail 1 'bad cpu error: one.ini:7: misbehave: failed as asked
bad copy error: one.ini:7: misbehave: failed as asked
bad peer error: one.ini:7: misbehave: failed as asked'

# In teardown every case already has its record, which stands; the batch fails all the same and says why.
costs teardown fail 0 "$all_pass"
expect_empty "$STDERR"
costs teardown crash 1 "$all_pass"
expect_text "$STDERR" "gpurun: one.ini:bad: teardown: $segv
"
run "$FAKE" one.ini
expect_line "$STDOUT" 'FAILED: 5 of 5 cases passed'

begin "a failing setup is torn down, and the worker lives on"
printf '[global]\nplugin = mirror\nrepeat = 1\n' >many.ini
for ((i = 0; i < 20; i++)); do
    printf '[bad%s]\nmisbehave = fail\nhook = setup\n[good%s]\n' "$i" "$i" >>many.ini
done
run "$GPURUN" many.ini
expect_exit 1
expect_line "$STDOUT" 'FAILED: 20 of 40 cases passed, 20 not'

begin "check says what it could not check"
sed 's/^misbehave.*/misbehave = hang\nhook = setup\ntimeout = 500ms/' job.ini >one.ini
run "$GPURUN" check one.ini
expect_exit 1
expect_text "$STDERR" 'one.ini:2: plugin: while it was checked: it took longer than its timeout
'
expect_text "$STDOUT" '2 jobs, 1 could not be checked
'

begin "check goes on behind each job that costs its worker, with the memory limit of each"
cat >one.ini <<'EOF'
[global]
plugin = mirror
timeout = 10s
hook = setup
[good]
[crash]
misbehave = crash
[limit]
memory_limit = 1G
[devour]
memory_limit = 300M
misbehave = devour
[hang]
misbehave = hang
timeout = 500ms
[end]
EOF
run "$GPURUN" check one.ini
expect_exit 1
expect_line "$STDERR" 'one.ini:2: plugin: while it was checked: killed by signal 11 (Segmentation fault)'
expect_line "$STDERR" 'one.ini:2: plugin: while it was checked: took * GB of memory, more than its 0.3 GB: *'
expect_line "$STDERR" 'one.ini:2: plugin: while it was checked: it took longer than its timeout'
expect "three lines" test "$(wc -l <"$STDERR")" -eq 3
expect_text "$STDOUT" '6 jobs, 3 could not be checked
'

finish 47
