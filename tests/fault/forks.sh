#!/bin/bash
# A system that has no process to give: for a moment, which nobody notices, or for good.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

if is_sanitized; then # whose runtime wants to be first among what is preloaded
    echo "skipped: nothing can be preloaded"
    exit 77
fi

# short FORKS COMMAND...: runs it where these forks fail. A worker takes two, its keeper's and its own; the first one
# validates, the second one runs.
short() {
    run timeout 60 env FORKS_FAIL="$1" LD_PRELOAD="$GPURUN_BUILD/tests/libfork_fake.so" "${@:2}"
}

# expect_records FILE PASSED CRASHED: so many records of the two kinds, of a job each.
expect_records() {
    expect "not $2 passed and $3 crashed" python3 - "$@" <<'EOF'
import json, sys
records = [json.loads(line) for line in open(sys.argv[1])]
assert len({r["job"] for r in records}) == len(records) == 20
assert [sum(r["status"] == s for r in records) for s in ("passed", "crashed")] == [int(n) for n in sys.argv[2:]]
EOF
}

reason='cannot start a process: Resource temporarily unavailable: a limit of processes (ulimit -u, pids.max) is reached'
printf '[global]\nplugin = mirror\ndevice = cpu\nrepeat = 1\nwarmup = 0\n' >job.ini
for ((i = 0; i < 20; i++)); do printf '[job%s]\n' "$i"; done >>job.ini

begin "for a moment: before the batch is validated, before it runs, and for a keeper's child"
for forks in 1-3 2-4 3-5 4-6; do
    short $forks "$GPURUN" job.ini
    expect_exit 0
    expect_empty "$STDERR"
    expect_line "$STDOUT" 'PASSED: 20 of 20 cases passed'
done

begin "for good: every case has a record that says so, and nobody waits for each"
for forks in 1- 2- 3- 4-; do
    rm -f none.jsonl
    before=$(now_ms)
    short $forks "$GPURUN" job.ini --records none.jsonl
    expect_exit 1
    expect_line "$STDOUT" 'FAILED: 0 of 20 cases passed, 20 not'
    expect_line "$STDOUT" "cpu: start: $reason"
    expect_records none.jsonl 0 20
    expect "$(($(now_ms) - before)) ms" test $(($(now_ms) - before)) -lt 10000
done
run "$GPURUN" job.ini --records none.jsonl --retry-failed
expect_exit 0
expect_line "$STDOUT" 'PASSED: 20 of 20 cases passed*'

begin "when a worker is to be replaced"
sed 's/^\[job3\]/&\nmisbehave = crash/' job.ini >crash.ini
short 5-9 "$GPURUN" crash.ini --records moment.jsonl
expect_exit 1
expect_records moment.jsonl 19 1
short 5- "$GPURUN" crash.ini --records good.jsonl
expect_exit 1
expect_records good.jsonl 3 17

begin "with several workers"
short 5- "$GPURUN" crash.ini --workers 2 --records two.jsonl
expect_exit 1
expect_line "$STDOUT" "FAILED: * of 20 cases passed, * not"
expect "not 20 records" test "$(wc -l <two.jsonl)" -eq 20

begin "commands that ask a worker"
short 1- "$GPURUN" check job.ini --only '*:job0'
expect_exit 1
expect_text "$STDERR" "job.ini:2: plugin: while it was checked: $reason
"
expect_text "$STDOUT" '1 job, 1 could not be checked
'
for forks in 1- 2-; do
    short $forks "$GPURUN" describe mirror
    expect_exit 3
    expect_line "$STDERR" "gpurun: mirror: *$reason"
    short $forks "$GPURUN" devices
    expect_exit 1
    expect_line "$STDERR" "gpurun: devices: *$reason"
done

finish 50
