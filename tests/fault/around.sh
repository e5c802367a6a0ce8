#!/bin/bash
# What can be wrong around a batch that is not its plugins' doing: no descriptors, no HOME, a clock that goes back. And
# how long a worker takes to replace.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

# write_batch JOBS: small ones.
write_batch() {
    printf '[global]\nplugin = mirror\ndevice = cpu\nrepeat = 1\nwarmup = 0\n'
    for ((i = 0; i < $1; i++)); do printf '[job%s]\n' "$i"; done
}
write_batch 20 >job.ini

begin "no descriptors left: every case has a record that says so, or passes"
for ((count = 4; count < 14; count++)); do
    # Whoever started this script may have left some open: then even the libraries cannot be loaded.
    (ulimit -n $count && "$GPURUN" --version) >/dev/null 2>&1 || continue
    rm -f few.jsonl
    # shellcheck disable=SC2016
    run timeout 60 bash -c 'ulimit -n $1; shift; exec "$@"' - $count "$GPURUN" job.ini --records few.jsonl
    case $CODE in
    0) expect_line "$STDOUT" 'PASSED: 20 of 20 cases passed' ;;
    1)
        expect_line "$STDOUT" 'FAILED: 0 of 20 cases passed, 20 not'
        expect_line "$STDOUT" 'cpu: start: cannot start a process: Too many open files'
        ;;
    *) fail "exit code $CODE with $count descriptors" ;;
    esac
    expect "not 20 records" test "$(wc -l <few.jsonl)" -eq 20
    [ $CODE -eq 1 ] && was_short=yes
done
expect "never too few" test "${was_short:-}" = yes
run "$GPURUN" job.ini --records few.jsonl --retry-failed
expect_exit 0

begin "no environment but the plugins' folder"
run env -i GPURUN_PLUGIN_PATH="$GPURUN_PLUGIN_PATH" "$GPURUN" job.ini --records home.jsonl
expect_exit 0
expect_empty "$STDERR"
expect "not 20 records" test "$(wc -l <home.jsonl)" -eq 20

if ! is_sanitized; then # whose runtime wants to be first among what is preloaded
    begin "the clock is set back"
    printf '[global]\nplugin = mirror\ndevice = cpu\n[first]\n[slow]\nmin_time = 300ms\n[hang]\nmisbehave = hang\ntimeout = 300ms\n' >clock.ini
    LD_PRELOAD=$GPURUN_BUILD/tests/libclock_fake.so run timeout 30 "$GPURUN" clock.ini --json --records clock.jsonl
    expect_exit 1
    expect_cases 'first cpu passed
slow cpu passed
hang cpu timeout: proof: not done after 0.3s (timeout)
'
    expect "the clock was not set back" python3 -c 'import json
started = [json.loads(line)["started"] for line in open("clock.jsonl")]
assert started[0] > started[1], started'
    run "$GPURUN" clock.ini --only '*:slow' --records clock.jsonl --resume
    expect_line "$STDOUT" 'PASSED: 1 of 1 cases passed; 1 resumed'
fi

# took FILE: milliseconds of a run of the file.
took() {
    local before=${EPOCHREALTIME/./}
    "$GPURUN" "$1" -s device=cpu >"$STDOUT" 2>"$STDERR"
    MS=$(((${EPOCHREALTIME/./} - before) / 1000))
}

# Under 50 ms on a quiet machine; the bound leaves room for a busy one.
begin "a worker that crashed is replaced quickly"
write_batch 50 >good.ini
sed 's/^plugin/misbehave = crash\nplugin/' good.ini >crash.ini
took good.ini
good=$MS
took crash.ini
expect_line "$STDOUT" 'FAILED: 0 of 50 cases passed, 50 not'
echo "50 good jobs $good ms, 50 that crash $MS ms: $(((MS - good) / 50)) ms for each new worker"
is_sanitized || expect "$(((MS - good) / 50)) ms" test $(((MS - good) / 50)) -lt 200

finish 22
