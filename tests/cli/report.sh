#!/bin/bash
# Records as tables, CSV, JUnit, Markdown and JSON: during a run and later, from many files. Python's own
# readers say whether they are valid and hold what the records do.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

cat >job.ini <<'EOF'
[global]
plugin = mirror
repeat = 2
warmup = 0
[first]
variant = copy, peer
[second]
variant = wrong, unsupported, huge, crash
[third]
variant = hang
timeout = 300ms
EOF

# holds WHAT FILE RECORDS: what report.py says of it.
# shellcheck disable=SC2034 # for holds
CHECKER=$here/report.py

begin "a run's own CSV and JUnit"
run "$FAKE" job.ini --csv --junit run.xml --records run.jsonl
expect_exit 1
cp "$STDOUT" run.csv
expect "CSV" holds csv run.csv run.jsonl
expect "JUnit" holds junit run.xml run.jsonl
expect "not 10 records" test "$(wc -l <run.jsonl)" -eq 10

begin "the same from its records"
run "$FAKE" report run.jsonl --csv --junit again.xml
expect_exit 1
expect "CSV" cmp "$STDOUT" run.csv
expect "JUnit" cmp again.xml run.xml
run "$FAKE" report run.jsonl --json
expect_exit 1
expect "JSON" holds json "$STDOUT" run.jsonl
run "$FAKE" report run.jsonl --md
expect_exit 1
expect_line "$STDOUT" '### job.ini:first'
expect_line "$STDOUT" '| peer | passed | full | *x |  |'
expect_line "$STDOUT" '| wrong | failed | full | - | - | - | - | - | - | 1 of 1000 wrong; first: element 500: * |'

begin "the table again"
run "$FAKE" job.ini --records table.jsonl
grep -v '^$' "$STDOUT" | sort >table.txt
run "$FAKE" report table.jsonl
expect_exit 1
grep -v '^$' "$STDOUT" | sort >again.txt
expect "another table" cmp table.txt again.txt

begin "every case passed"
run "$FAKE" job.ini --only '*:first' --records good.jsonl --junit good.xml
expect_exit 0
run "$FAKE" report good.jsonl
expect_exit 0
expect_line "$STDOUT" 'PASSED: 3 of 3 cases passed'
expect "JUnit" holds junit good.xml good.jsonl

begin "unsupported counts under --strict"
grep '"unsupported",' run.jsonl | grep '"status":"unsupported"' >unsupported.jsonl
expect "one line" test "$(wc -l <unsupported.jsonl)" -eq 1
run "$FAKE" report unsupported.jsonl
expect_exit 0
run "$FAKE" report unsupported.jsonl --strict
expect_exit 1

python3 - <<'EOF'
import json

def record(job, variant, status, case_id, **more):
    return dict(schema=1, job=job, plugin="p", variant=variant, status=status, reason="", **more,
                case_id=case_id, key=case_id)

awkward = [
    record('a,b "c"\r\nd', "x", "error", "1", options={"n": 9007199254740993, "s": 'q"q', "r": 0.1}),
    record("=1+1;<&>'\t", "y|z", "failed", "2", options={"t": True, "o,": "a\nb"},
           proof={"mode": "full", "checked": 3, "wrong": 1, "first_wrong": ["1 < 2 && \"x\"", "\x01]]>"]},
           input=[{"tensor": "in", "source": "uniform low=1, high=2"}]),
    record("j\u00e4\u20ac\U0001f600", "v", "passed", "3", environment={"host": "h&h", "device_name": "D"},
           time_ms={"n": 1, "median": 1 / 3, "median_ci95": [5e-324, 1.7976931348623157e308]},
           throughput={"bytes_per_s": 1e300, "operations_per_s": None}, limit={"percent": 12.5},
           versus={"cpu": {"median": 2.0}}, started="2026-11-30T00:00:00Z"),
    record("same", "v", "timeout", "4"), record("same", "w", "out-of-memory", "5"),
    record("same", "u", "interrupted", "6"), record("same", "t", "crashed", "7"),
]
awkward[0]["reason"] = "nul-like \x01\x1f and \uffff\ufffe, a \"quote\", a\nline\r\n\tand <tags> & more"
awkward[4]["reason"] = ""
with open("awkward.jsonl", "w", encoding="utf-8") as f:
    for r in awkward:
        f.write(json.dumps(r) + "\n")
EOF
begin "awkward texts and numbers"
for locale in C de_DE.UTF-8; do
    run env LC_ALL=$locale "$FAKE" report awkward.jsonl --csv --junit awkward.xml
    expect_exit 1
    expect_empty "$STDERR"
    expect "CSV" holds csv "$STDOUT" awkward.jsonl
    expect "JUnit" holds junit awkward.xml awkward.jsonl
done
run "$FAKE" report awkward.jsonl --md
expect_line "$STDOUT" '| y\\|z | failed | full | - | - | - | - | - | - |  |'
run "$FAKE" report awkward.jsonl
expect_exit 1

# merged FILE...: job, variant, status and place of what a report takes from them.
merged() {
    run "$FAKE" report "$@" --json
    python3 -c 'import json, sys
for r in json.load(open(sys.argv[1]))["records"]:
    print(r["job"], r["variant"], r["status"], r["started"])' "$STDOUT" >"$WORK/.cases" 2>&1
}
# line JOB VARIANT STATUS STARTED CASES
line() {
    printf '{"schema":1,"job":"%s","job_id":"id-%s","variant":"%s","status":"%s","reason":"","started":"%s","case_id":"%s.%s","cases":[%s]}\n' \
        "$1" "$1" "$2" "$3" "$4" "$1" "$2" "$5"
}
begin "many files: the last record of a case counts"
{
    line a cpu passed 1 '"cpu","v"'
    line a v failed 1 '"cpu","v"'
    line b cpu passed 1 '"cpu"'
} >one.jsonl
{
    line c cpu passed 2 '"cpu"'
    line a v passed 2 '"cpu","v"'
} >two.jsonl
merged one.jsonl two.jsonl
expect_text "$WORK/.cases" 'a cpu passed 1
a v passed 2
b cpu passed 1
c cpu passed 2
'
merged two.jsonl one.jsonl
expect_text "$WORK/.cases" 'c cpu passed 2
a v failed 1
a cpu passed 1
b cpu passed 1
'
begin "interrupted hides nothing, and goes with what its job turned out to be"
{
    line a cpu interrupted 3 '"cpu","v"'
    line d cpu interrupted 3 '"cpu","auto"'
    line d auto interrupted 3 '"cpu","auto"'
    line e auto interrupted 3 '"auto"'
} >three.jsonl
{
    line d cpu passed 4 '"cpu","w"'
    line d w passed 4 '"cpu","w"'
} >four.jsonl
merged one.jsonl three.jsonl four.jsonl
expect_text "$WORK/.cases" 'a cpu passed 1
a v failed 1
b cpu passed 1
d cpu passed 4
e auto interrupted 3
d w passed 4
'

begin "lines that are no records are left out, and said"
{
    cat one.jsonl
    echo '{"schema":1,"job":"x","variant":"v","status":"passed","cases":[1]}'
    echo '{"schema":1,"job":"x","variant":"v","status":"passed","proof":{"first_wrong":[null]}}'
    printf '{"schema":1,"job":'
} >torn.jsonl
merged torn.jsonl
expect "3 records" test "$(wc -l <"$WORK/.cases")" -eq 3
expect_text "$STDERR" 'gpurun: torn.jsonl:4: left out: it is no record
gpurun: torn.jsonl:5: left out: it is no record
gpurun: torn.jsonl:6: left out: the line was cut off
'

begin "records of an earlier gpurun"
for file in "$GPURUN_SOURCE"/bench/*.jsonl; do
    run "$FAKE" report "$file"
    expect_empty "$STDERR"
    expect_line "$STDOUT" '*: * of * cases passed*'
done

begin "what cannot be read or written"
run "$FAKE" report
expect_exit 2
expect_line "$STDERR" 'gpurun: report: name a file of records; see gpurun --help'
run "$FAKE" report nothing.jsonl
expect_exit 2
expect_empty "$STDOUT"
expect_text "$STDERR" 'gpurun: nothing.jsonl: No such file or directory
'
: >empty.jsonl
run "$FAKE" report empty.jsonl
expect_exit 0
expect_line "$STDOUT" 'PASSED: 0 of 0 cases passed'
run "$FAKE" report empty.jsonl --csv
expect "a header alone" test "$(wc -l <"$STDOUT")" -eq 1
for path in nowhere/j.xml .; do
    run "$FAKE" job.ini --only '*:first' --junit "$path"
    expect_exit 2
    expect_empty "$STDOUT"
    expect_line "$STDERR" "gpurun: --junit $path: *"
    run "$FAKE" report good.jsonl --junit "$path"
    expect_exit 1
    expect_line "$STDERR" "gpurun: --junit $path: *"
done
run "$FAKE" job.ini --only '*:first' --junit /dev/full
expect_exit 1
expect_line "$STDERR" 'gpurun: --junit /dev/full: No space left on device'
begin "--junit over a file that the batch reads or writes"
cp job.ini kept.ini
for path in job.ini ./job.ini sum.npy; do
    run "$FAKE" job.ini --only '*:first' -s output.sum=sum.npy --junit "$path"
    expect_exit 2
    expect_line "$STDERR" '*--junit: *'
done
expect "job.ini was written to" cmp job.ini kept.ini
run "$FAKE" job.ini --junit same --records same
expect_exit 2
expect_line "$STDERR" 'gpurun: --junit and --records name the same file: same; see gpurun --help'

finish 60
