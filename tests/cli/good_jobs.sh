#!/bin/bash
# What a good job file and a good command line give: where values come from, which jobs run, exit codes,
# and what each of the outputs carries.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"

# best_ms COUNT COMMAND...: the least time of so many runs, in whole milliseconds, into MS. On a machine
# with more to do than it has processors, the processor time.
best_ms() {
    local count=$1 start ms load at_work TIMEFORMAT='%3U+%3S'
    shift
    MS=1000000
    while ((count-- > 0)); do
        start=${EPOCHREALTIME/./}
        { time run "$@"; } 2>"$WORK/.time"
        ms=$(((${EPOCHREALTIME/./} - start) / 1000))
        read -r load _ _ at_work _ </proc/loadavg
        if ((${load%.*} >= $(nproc) || ${at_work%/*} > $(nproc))); then
            ms=$(sed 's/\.//g; s/^0*\([0-9]\)/\1/; s/+0*\([0-9]\)/+\1/' "$WORK/.time")
            ms=$((ms))
        fi
        ((ms < MS)) && MS=$ms
    done
}

# expect_json FILE EXPRESSION: holds of the document `d`, which is all that the file holds.
expect_json() {
    checks=$((checks + 1))
    python3 - "$1" "$2" <<'EOF' && return
import json, sys
def no_constant(name):
    raise ValueError(name + " is no JSON")
d = json.loads(open(sys.argv[1], encoding="utf-8").read(), parse_constant=no_constant)
sys.exit(not eval(sys.argv[2]))
EOF
    fail "JSON: not so: $2"
    show_output
}

# --- where values come from ---
cat >job.ini <<'EOF'
# A comment, and another kind of comment.
; Blank lines and indentation mean nothing.

[global]
plugin = topk
n = 1_000
k=5
repeat   =   2

[first]
k = 7
  dtype = float
	input = normal mean=3 sd=1
output = first.npy

[second]
distinct = Yes
max_time = 1.5m

[global]
seed = 0x10
EOF

begin show
run "$GPURUN" show job.ini -s warmup=1
expect_exit 0
expect_empty "$STDERR"
expect_line "$STDOUT" 'job.ini:first'
expect_line "$STDOUT" 'job.ini:second'
expect_line "$STDOUT" 'plugin *topk *job.ini:5'
expect_line "$STDOUT" 'n *1K *job.ini:6'
expect_line "$STDOUT" 'k *7 *job.ini:11'
expect_line "$STDOUT" 'k *5 *job.ini:7'
expect_line "$STDOUT" 'repeat *2 *job.ini:8'
expect_line "$STDOUT" 'dtype *float *job.ini:12'
expect_line "$STDOUT" 'dtype *int32 *default'
expect_line "$STDOUT" 'seed *16 *job.ini:21'
expect_line "$STDOUT" 'warmup *1 *-s'
expect_line "$STDOUT" 'distinct *yes *job.ini:17'
expect_line "$STDOUT" 'max_time *90.0 *job.ini:18'
expect_line "$STDOUT" 'order *largest *default'
expect_line "$STDOUT" 'input *normal mean=3 sd=1 *job.ini:13'
expect_line "$STDOUT" 'output *first.npy *job.ini:14'
expect_line "$STDOUT" 'cases *cpu*'
expect "show wrote an output" test ! -e first.npy

begin "show one job"
run "$GPURUN" show job.ini --only '*:sec*'
expect_exit 0
expect_line "$STDOUT" 'job.ini:second'
expect_no_line "$STDOUT" first

begin "check"
run "$GPURUN" check job.ini
expect_exit 0
expect_text "$STDOUT" '2 jobs, no fault
'
expect_empty "$STDERR"

begin "-s goes before all else"
run "$GPURUN" show job.ini -s k=9 -s n=2Ki
expect_line "$STDOUT" 'k *9 *-s'
expect_line "$STDOUT" 'n *2048 *-s'
expect_no_line "$STDOUT" job.ini:6
expect_no_line "$STDOUT" job.ini:11

begin "options after and before the file"
run "$GPURUN" -s k=9 check --only 'job.ini:first' job.ini
expect_exit 0
expect_text "$STDOUT" '1 job, no fault
'

begin "what a file says of a job's shape"
printf '[file]\nplugin = topk\nk = 3\ninput = file:%s/tests/data/npy/good_f8_2d.npy\n' \
    "$GPURUN_SOURCE" >file.ini
run "$GPURUN" show file.ini
expect_exit 0
expect_line "$STDOUT" 'rows *3 *default'
expect_line "$STDOUT" 'n *5 *default'
expect_line "$STDOUT" 'dtype *double *default'

# --- which jobs run ---
begin "several files"
printf '[other]\nplugin = topk\nn = 50\nrepeat = 1\n' >other.ini
run "$GPURUN" job.ini other.ini
expect_exit 0
expect_line "$STDOUT" 'job.ini:first'
expect_line "$STDOUT" 'job.ini:second'
expect_line "$STDOUT" 'other.ini:other'
expect_line "$STDOUT" 'PASSED: 3 of 3 cases passed*'
expect "first.npy was not written" test -s first.npy

begin "a [global] counts for its own file alone"
run "$GPURUN" show job.ini other.ini --only 'other.ini:*'
expect_line "$STDOUT" 'k *20 *default'

begin "--only"
run "$GPURUN" job.ini other.ini --only '*o*:*s*' -s device=cpu
expect_exit 0
expect_line "$STDOUT" 'PASSED: 2 of 2 cases passed'
expect_no_line "$STDOUT" other.ini

begin "standard input"
run "$GPURUN" - -s device=cpu <other.ini
expect_exit 0
expect_line "$STDOUT" '<stdin>:other'
run "$GPURUN" check other.ini - <job.ini
expect_text "$STDOUT" '3 jobs, no fault
'

begin "CR LF and a mark of byte order"
printf '\xEF\xBB\xBF[dos]\r\nplugin = topk\r\nn = 40\r\nk = 40\r\n\r\n; comment\r\n' >dos.ini
run "$GPURUN" show dos.ini
expect_exit 0
expect_line "$STDOUT" 'dos.ini:dos'
expect_line "$STDOUT" 'k *40 *dos.ini:4'

begin "no newline at the end"
printf '[end]\nplugin = topk\nk = 4' >end.ini
run "$GPURUN" show end.ini
expect_exit 0
expect_line "$STDOUT" 'k *4 *end.ini:3'

begin "a name of 200 bytes, a value of 300"
name=$(printf '%0200d' 7)
printf '[%s]\nplugin = topk\nk = %0300d\n' "$name" 4 >long.ini
run "$GPURUN" show long.ini
expect_exit 0
expect_line "$STDOUT" "long.ini:$name"
expect_line "$STDOUT" 'k *4 *long.ini:3'

begin "marks within words are no comments"
printf '[a;b#c]\nplugin = topk\nk = 4\nn = 10\nrepeat = 1\noutput = a;b#c.npy\n' >marks.ini
run "$GPURUN" marks.ini
expect_exit 0
expect "a;b#c.npy was not written" test -s 'a;b#c.npy'

begin "a default that only one of two plugins knows"
printf '[global]\nk = 3\nmisbehave = no\n[a]\nplugin = topk\nn = 10\n[b]\nplugin = mirror\n' >two.ini
GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes run "$GPURUN" check two.ini
expect_exit 0
expect_empty "$STDERR"
begin "a default for the job that --only left out"
GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes run "$GPURUN" check two.ini --only '*:a'
expect_exit 0
begin "a default that neither knows"
sed 's/misbehave/misbehaev/' two.ini >neither.ini
GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes run "$GPURUN" check neither.ini
expect_exit 2
expect_line "$STDERR" 'neither.ini:3: misbehaev: is no option of *'

begin "10,000 jobs"
{
    printf '[global]\nplugin = topk\nn = 1000\n'
    for ((i = 0; i < 10000; i++)); do printf '[job %s]\nk = %s\n' "$i" $((i % 1000)); done
} >many.ini
for turns in 1 3 3 3; do # others may have the processors for a while
    best_ms "$turns" "$GPURUN" check many.ini
    is_sanitized || ((MS < 1000)) && break
done
expect_exit 0
expect_text "$STDOUT" '10000 jobs, no fault
'
is_sanitized || expect "check took $MS ms" test "$MS" -lt 1000

begin "the first line"
for words in --version 'describe core' --help; do
    # shellcheck disable=SC2086
    best_ms 10 "$GPURUN" $words
    expect_exit 0
    is_sanitized || expect "$words took $MS ms" test "$MS" -lt 20
done

# --- commands ---
begin --version
run "$GPURUN" --version
expect_line "$STDOUT" 'gpurun [0-9]*'
expect "one line" test "$(wc -l <"$STDOUT")" -eq 1

begin --help
run "$GPURUN" --help
expect_exit 0
expect_empty "$STDERR"
for word in check show list describe devices selftest --only --records --json -s; do
    expect_line "$STDOUT" "*$word*"
done

begin list
run "$GPURUN" list
expect_exit 0
expect_line "$STDOUT" 'topk *the k largest*variants:*cpu'
begin "list finds fakes by GPURUN_PLUGIN_PATH, names each once, says which do not load"
GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes:$GPURUN_BUILD/fakes:/nowhere run "$GPURUN" list
expect_exit 3
expect_line "$STDOUT" 'mirror *'
expect_line "$STDOUT" 'topk *'
expect "mirror once" test "$(grep -c '^mirror ' "$STDOUT")" -eq 1
expect_line "$STDERR" 'gpurun: no_hook: * has no verify hook'
begin "no plugins"
cp "$GPURUN" lonely
run ./lonely list
expect_line "$STDERR" 'gpurun: no plugins found; GPURUN_PLUGIN_PATH *'
run ./lonely selftest
expect_exit 1

begin "describe topk"
run "$GPURUN" describe topk
expect_exit 0
expect_empty "$STDERR"
for option in n rows k dtype order distinct sorted block grid; do
    expect_line "$STDOUT" "$option * default *"
done
expect_line "$STDOUT" 'block *default 256 *1 to 1024 threads (tunable)'
expect_no_line "$STDOUT" 'n  *elements (tunable)'
expect_line "$STDOUT" 'dtype *int32, uint32, int64, uint64, float or double*'
expect_line "$STDOUT" 'explicit pinned zerocopy managed'
expect_line "$STDOUT" 'default explicit: *'

begin "describe a plugin with variants"
GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes run "$FAKE" describe mirror
expect_exit 0
expect_line "$STDOUT" 'Variants on Fake GPU'
expect_line "$STDOUT" 'copy *right'
expect_line "$STDOUT" 'runs here'
expect_line "$STDOUT" 'peer *right (peer)'
expect_line "$STDOUT" 'cannot run here: needs compute capability 20.0'
expect_line "$STDOUT" 'cannot run here: needs a thing that is not here'
GPURUN_FAKE_DEVICE=none GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes run "$FAKE" describe mirror
expect_line "$STDOUT" 'cannot run here: the fake driver has no device'

begin "describe core"
run "$GPURUN" describe core
expect_exit 0
for key in plugin variant device memory prefetch seed offset cpu threads verify repeat warmup min_time \
    max_time timeout cache launch samples show input output; do
    expect_line "$STDOUT" "$key *"
done
for generator in uniform normal ascending descending constant few-distinct zipf special; do
    expect_line "$STDOUT" "$generator *"
done

begin devices
run "$FAKE" devices
expect_exit 0
expect_line "$STDOUT" '0  Fake GPU  compute 9.0  1 multiprocessors *'
GPURUN_FAKE_DEVICE=none run "$FAKE" devices
expect_exit 0
expect_line "$STDOUT" 'no device: the fake driver has no device'
run "$GPURUN" devices
expect_exit 0
expect "no line" test -s "$STDOUT"

begin selftest
run "$GPURUN" selftest
expect_exit 0
expect_line "$STDOUT" 'topk: [1-9]* spoiled answers, 0 missed'
expect_line "$STDOUT" '*: a wait of 1 ms reads * ms (1 % allowed)'
expect_line "$STDOUT" '*: a wait of 10 ms reads * ms (1 % allowed)'
expect_line "$STDOUT" '*: a plugin that does nothing reads * us, an empty reading * us * allowed)'
expect_line "$STDOUT" '*: two identical variants: neither faster nor slower 100 times of 100'
expect_line "$STDOUT" PASSED
begin "selftest finds a clock that is 2 % fast, and a device that is lost"
GPURUN_FAKE_DEVICE=skewed GPURUN_PLUGIN_PATH=. run "$FAKE" selftest
expect_exit 1
expect_line "$STDOUT" 'Fake GPU: WRONG: a wait of 1 ms reads 1.0[2-9]* ms (1 % allowed)'
expect_line "$STDOUT" 'Fake GPU: WRONG: a wait of 10 ms reads * ms (1 % allowed)'
GPURUN_FAKE_DEVICE=lost GPURUN_PLUGIN_PATH=. run "$FAKE" selftest
expect_exit 1
expect_line "$STDOUT" 'Fake GPU: WRONG: could not be read: the fake device fell off the bus'

# --- outputs ---
begin --json
run "$GPURUN" job.ini other.ini --json -s device=cpu
expect_exit 0
expect_empty "$STDERR"
python3 -m json.tool <"$STDOUT" >/dev/null 2>&1 || fail "json.tool refuses it"
expect_json "$STDOUT" 'd["exit"] == 0 and len(d["records"]) == 3'
expect_json "$STDOUT" 'all(r["status"] == "passed" and r["variant"] == "cpu" for r in d["records"])'
expect_json "$STDOUT" '[r["job"] for r in d["records"]] == ["job.ini:first", "job.ini:second", "other.ini:other"]'
expect_json "$STDOUT" 'd["records"][0]["options"]["k"] == 7 and d["records"][0]["input"][0]["shape"] == [1000]'
expect_json "$STDOUT" 'all(r["proof"]["wrong"] == 0 and r["proof"]["checked"] > 0 for r in d["records"])'
expect_json "$STDOUT" 'all(r["time_ms"]["median"] > 0 and r["time_ms"]["n"] == r["rounds"] for r in d["records"])'
expect_json "$STDOUT" 'len({r["case_id"] for r in d["records"]}) == 3'

begin "--json of a job with bytes that are no text"
printf '[\xff\xfe "q" \\ \x01]\nplugin = topk\nn = 30\nrepeat = 1\noutput = \xff.npy\n' >bytes.ini
run "$GPURUN" bytes.ini --json --records bytes.jsonl
expect_exit 0
expect_json "$STDOUT" 'd["records"][0]["status"] == "passed"'
expect_json bytes.jsonl 'd["status"] == "passed"'

begin "--json of answers that JSON has no numbers for"
printf '[special]\nplugin = topk\nn = 100\ndtype = double\ninput = special\nrepeat = 1\nshow = 20\n' >special.ini
run "$GPURUN" special.ini --json
expect_exit 0
expect_json "$STDOUT" '"nan" in d["records"][0]["shown"]["values"]'

begin "--json after a fault carries nothing"
run "$GPURUN" job.ini --json -s k=x
expect_exit 2
expect_empty "$STDOUT"

begin "--records appends"
for runs in 1 2; do
    run "$GPURUN" job.ini --records all.jsonl
    expect_exit 0
    expect "$((2 * runs)) lines" test "$(wc -l <all.jsonl)" -eq $((2 * runs))
done
while IFS= read -r line; do
    printf '%s\n' "$line" >line.json
    expect_json line.json 'd["schema"] == 1 and d["status"] == "passed" and d["reason"] == ""'
done <all.jsonl
expect "same case_id in both runs" test "$(grep -o '"case_id":"[0-9a-f]*"' all.jsonl | sort | uniq -c |
    awk '$1 == 2' | wc -l)" -eq 2
begin "a check appends no record"
run "$GPURUN" check job.ini --records all.jsonl
expect "4 lines still" test "$(wc -l <all.jsonl)" -eq 4

begin "records into a full device"
run "$GPURUN" job.ini --records /dev/full
expect_exit 1
expect_line "$STDERR" 'gpurun: --records /dev/full: No space left on device: records from here on are lost'
expect_line "$STDOUT" 'FAILED: 2 of 2 cases passed'

begin "standard output into a full device"
for words in 'describe core' job.ini 'job.ini --json'; do
    # shellcheck disable=SC2086
    "$GPURUN" $words >/dev/full 2>"$STDERR"
    CODE=$?
    : >"$STDOUT"
    expect_exit 1
    expect_line "$STDERR" 'gpurun: standard output: write failed'
done

begin "no colour in a pipe"
run "$GPURUN" job.ini
expect_line "$STDOUT" 'PASSED*'
expect_no_line "$STDOUT" $'\033'
expect_no_line "$STDERR" $'\033'

# on_terminal COMMAND...: what it prints on a terminal, into STDOUT.
on_terminal() {
    python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$@" >"$STDOUT" 2>"$STDERR" </dev/null
    CODE=$?
}
begin "colour on a terminal"
on_terminal "$GPURUN" other.ini
expect_exit 0
expect_line "$STDOUT" $'*\033?32mPASSED*'
begin "NO_COLOR on a terminal"
NO_COLOR=1 on_terminal "$GPURUN" other.ini
expect_exit 0
expect_line "$STDOUT" '*PASSED*'
expect_no_line "$STDOUT" $'\033?3'

begin "what a plugin prints"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes
printf '[print]\nplugin = mirror\nmisbehave = print\nrepeat = 2\n' >print.ini
for hook in setup run_cpu verify teardown; do
    run "$FAKE" print.ini -s hook=$hook -s variant=copy --json
    expect_exit 0
    expect_json "$STDOUT" 'len(d["records"]) == 2'
    expect_line "$STDERR" 'printed by a plugin'
done

# --- exit codes ---
begin "1: a case that did not pass"
run "$GPURUN" print.ini -s misbehave=wrong --json
expect_exit 1
expect_json "$STDOUT" 'd["exit"] == 1 and d["records"][0]["status"] == "failed" and "time_ms" not in d["records"][0]'

begin "3: a plugin that does not load, the others run"
printf '[bad]\nplugin = no_hook\n[good]\nplugin = mirror\nrepeat = 1\n' >load.ini
run "$GPURUN" load.ini --json
expect_exit 3
expect_json "$STDOUT" '[r["status"] for r in d["records"]] == ["error", "passed"]'

begin "4: no device where one is demanded, the others run"
printf '[gpu]\nplugin = mirror\ndevice = gpu\n[auto]\nplugin = mirror\nrepeat = 1\n' >device.ini
GPURUN_FAKE_DEVICE=none run "$FAKE" device.ini --json
expect_exit 4
expect_json "$STDOUT" '[r["status"] for r in d["records"]] == ["error", "passed"]'
expect_json "$STDOUT" 'd["records"][0]["reason"] == "no device: the fake driver has no device"'

begin "4 goes before 3"
GPURUN_FAKE_DEVICE=none run "$FAKE" load.ini device.ini
expect_exit 4

begin "unsupported cases pass, but not with --strict"
printf '[u]\nplugin = mirror\nvariant = copy, unsupported\nrepeat = 1\n' >unsupported.ini
run "$FAKE" unsupported.ini
expect_exit 0
expect_line "$STDOUT" 'PASSED: 2 of 3 cases passed, 1 unsupported'
run "$FAKE" unsupported.ini --strict
expect_exit 1
expect_line "$STDOUT" 'FAILED: 2 of 3 cases passed, 1 unsupported'

finish 222
