#!/bin/bash
# retries, --fail-fast, --timeout, --dry-run: what a batch does about what fails.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

cat >flaky.ini <<'EOF'
[global]
plugin = flaky
device = cpu
repeat = 1
warmup = 0
timeout = 1500ms
[job]
EOF

# flaky HOW TIMES RETRIES: what fails so many times, tried again so often.
flaky() {
    begin "$1, $2 times, $3 retries"
    rm -f tries records.jsonl
    FLAKY_FILE=tries FLAKY_TIMES=$2 run "$GPURUN" flaky.ini -s how="$1" -s retries="$3" --json \
        --records records.jsonl
    expect "not one record" test "$(wc -l <records.jsonl)" -eq 1
    python3 -c 'import json, sys
for r in json.load(open(sys.argv[1]))["records"]:
    print(r["status"], r["attempts"])' "$STDOUT" >"$WORK/.cases" 2>&1
}
again() {
    grep -c 'tried again' "$STDERR"
}

flaky error 0 3
expect_exit 0
expect_text "$WORK/.cases" 'passed 1
'
expect_empty "$STDERR"
for how in error crash hang; do
    flaky $how 2 2
    expect_exit 0
    expect_text "$WORK/.cases" 'passed 3
'
    expect "tried again $(again) times" test "$(again)" -eq 2
done
expect_line "$STDERR" 'gpurun: flaky.ini:job cpu: timeout: proof: not done after 1.5s (timeout): tried again, 1 of 2'
expect_line "$STDERR" 'gpurun: flaky.ini:job cpu: timeout: proof: not done after 1.5s (timeout): tried again, 2 of 2'
flaky error 2 1
expect_exit 1
expect_text "$WORK/.cases" 'error 2
'
flaky crash 2 1
expect_exit 1
expect_text "$WORK/.cases" 'crashed 2
'
flaky crash 1 0
expect_exit 1
expect_text "$WORK/.cases" 'crashed 1
'
begin "a wrong answer is not tried again"
flaky wrong 1 3
expect_exit 1
expect_text "$WORK/.cases" 'failed 1
'
expect_empty "$STDERR"

cat >job.ini <<'EOF'
[global]
plugin = mirror
repeat = 1
warmup = 0
[before]
variant = copy
[bad]
variant = copy, crash, peer
[after]
variant = unsupported
EOF

begin "retries of one case leave the others their one record"
run "$FAKE" job.ini -s retries=2 --json
expect_exit 1
expect_cases 'before cpu passed
before copy passed
bad crash crashed: proof: killed by signal 11 (Segmentation fault)
bad cpu passed
bad copy passed
bad peer passed
after unsupported unsupported: needs a thing that is not here
after cpu passed
'
expect "tried again $(again) times" test "$(again)" -eq 2

begin "retries of a job whose setup crashes"
run "$FAKE" job.ini --only '*:before' -s misbehave=crash -s hook=setup -s retries=2 --json
expect_exit 1
expect_cases 'before cpu crashed: setup: killed by signal 11 (Segmentation fault)
'
expect "tried again $(again) times" test "$(again)" -eq 2
expect_line "$STDERR" 'gpurun: job.ini:before: crashed: setup: killed by signal 11 (Segmentation fault): tried again, 2 of 2'
expect "attempts" python3 -c 'import json, sys
sys.exit(json.load(open(sys.argv[1]))["records"][0]["attempts"] != 3)' "$STDOUT"

begin "no retry where every case has its record"
run "$FAKE" job.ini --only '*:before' -s misbehave=crash -s hook=teardown -s retries=2 --json
expect_exit 1
expect_cases 'before cpu passed
before copy passed
'
expect "tried again" test "$(again)" -eq 0

for value in -1 101 x 1.5; do
    begin "retries=$value"
    run "$FAKE" job.ini -s retries=$value
    expect_exit 2
    expect_line "$STDERR" '*-s: retries: *'
done

begin --fail-fast
run "$FAKE" job.ini --fail-fast --records fast.jsonl
expect_exit 1
expect_line "$STDERR" 'gpurun: stopped at the first failure (--fail-fast): 1 job not run'
expect_line "$STDOUT" 'FAILED: 2 of 3 cases passed, 1 not'
expect "not 3 records" test "$(wc -l <fast.jsonl)" -eq 3
run "$FAKE" job.ini --retry-failed --records fast.jsonl
expect_exit 1
expect_line "$STDOUT" 'FAILED: 6 of 8 cases passed, 1 unsupported, 1 not; 2 resumed'
begin "--fail-fast with no failure"
run "$FAKE" job.ini --only '*:before' --fail-fast
expect_exit 0
expect_empty "$STDERR"
begin "--fail-fast takes unsupported for a failure under --strict"
run "$FAKE" job.ini --only '*:after' --fail-fast
expect_exit 0
run "$FAKE" job.ini --only '*:after' --fail-fast --strict
expect_exit 1
expect_line "$STDERR" 'gpurun: stopped at the first failure (--fail-fast): 0 jobs not run'
begin "--fail-fast and a job that ends in its setup"
run "$FAKE" job.ini --fail-fast -s misbehave=crash -s hook=setup
expect_exit 1
expect_line "$STDERR" 'gpurun: stopped at the first failure (--fail-fast): 2 jobs not run'

begin "--timeout is for all, over what the file says"
printf '[global]\nplugin = mirror\ntimeout = 1h\nvariant = hang\nrepeat = 1\n[a]\n[b]\ntimeout = 2h\n' >hang.ini
run "$FAKE" hang.ini --timeout 1s --json
expect_exit 1
expect_cases 'a hang timeout: proof: not done after 1s (timeout)
a cpu passed
b hang timeout: proof: not done after 1s (timeout)
b cpu passed
'
for value in x 5x -1s '' 1e99y; do
    begin "--timeout '$value'"
    run "$FAKE" hang.ini --timeout "$value"
    expect_exit 2
    expect_empty "$STDOUT"
    expect_line "$STDERR" 'gpurun: --timeout: *; see gpurun --help'
done
begin "--timeout too short"
run "$FAKE" hang.ini --timeout 1ms
expect_exit 2
expect_line "$STDERR" '*timeout: *'

begin --dry-run
run "$FAKE" job.ini --dry-run --records dry.jsonl --resume
expect_exit 0
expect_text "$STDOUT" 'job.ini:before cpu: would run
job.ini:before copy: would run
job.ini:bad cpu: would run
job.ini:bad copy: would run
job.ini:bad crash: would run
job.ini:bad peer: would run
job.ini:after cpu: would run
job.ini:after unsupported: would run
8 cases would run, 0 resumed
'
expect "a file was made" test ! -e dry.jsonl
run "$FAKE" job.ini --dry-run --only '*:before' -s cpu=off -s variant=all
expect_line "$STDOUT" '14 cases would run, 0 resumed'
run "$FAKE" job.ini --dry-run -s n=x
expect_exit 2
expect_empty "$STDOUT"
run "$FAKE" job.ini --dry-run -s misbehave=crash -s hook=setup
expect_exit 0
expect_line "$STDOUT" '3 cases would run, 0 resumed'
run "$FAKE" job.ini --dry-run --json
expect_exit 2
expect_line "$STDERR" 'gpurun: --dry-run prints a list of its own: leave --json, --csv and --md out*'

finish 70
