#!/bin/bash
# The table of `variant = auto`: beside a plugin, with faults, made from records, and used by the next run.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"
CHECKER=$here/auto_table.py

mkdir -p plugins/tunable plugins/mirror
cp "$GPURUN_BUILD/fakes/tunable/tunable.so" plugins/tunable/
cp "$GPURUN_BUILD/fakes/mirror/mirror.so" plugins/mirror/
export GPURUN_PLUGIN_PATH=$PWD/plugins
TABLE=plugins/tunable/tunable.auto

cat >job.ini <<'END'
[global]
plugin = tunable
repeat = 8
warmup = 0
cpu = off
[a]
n = 1, 2K, 5M
END

# expect_auto TEXT: of a run with --json, per record "variant: what chose it".
expect_auto() {
    python3 - "$STDOUT" >"$WORK/.auto" 2>&1 <<'END'
import json, sys
for r in json.load(open(sys.argv[1]))["records"]:
    print(r["variant"] + ": " + r.get("auto", "-"))
END
    expect_text "$WORK/.auto" "$1"
}

begin "without a table"
run "$FAKE" job.ini --json -s cpu=on -s n=1
expect_exit 0
expect_auto 'cpu: -
flat: the last of the ladder that can run
'
run "$FAKE" describe tunable
expect_line "$STDOUT" 'auto          is the last of these that is no peer and can run'
run "$FAKE" job.ini --json -s variant=flat -s n=1
expect_auto 'flat: -
'

begin "a table beside the plugin"
cat >$TABLE <<'END'
# the first rule names what cannot run
[small]
device = 9.0
n = ..1K
variant = never

[small again]
n = ..1K
block = 16..32
variant = flat

[big]
device = Fake*, 8.0
n = 1M..
style = slow
variant = spin
END
run "$FAKE" job.ini --json
expect_exit 0
expect_auto 'flat: tunable.auto:7 (line 2 says never: not here)
flat: the last of the ladder that can run; no rule of tunable.auto fits
spin: tunable.auto:12
'
run "$FAKE" job.ini --records run.jsonl -s n=5M
expect_line "$STDOUT" 'spin: auto: tunable.auto:12'
run "$FAKE" report run.jsonl
expect_line "$STDOUT" 'spin: auto: tunable.auto:12'
run "$FAKE" report run.jsonl --csv
expect_line "$STDOUT" '*,auto,*'
expect_line "$STDOUT" '*,tunable.auto:12,*'

begin "show and describe tell"
run "$FAKE" show job.ini
expect_exit 0
expect_line "$STDOUT" 'cases      auto'
expect_line "$STDOUT" 'auto       flat: tunable.auto:7 (line 2 says never: not here)'
expect_line "$STDOUT" 'auto       spin: tunable.auto:12'
GPURUN_FAKE_DEVICE=none run "$FAKE" show job.ini -s n=1
expect_line "$STDOUT" 'auto       known where there is a GPU'
printf '[a]\nplugin = mirror\n' >other.ini
run "$FAKE" show other.ini
expect_line "$STDOUT" 'auto       *: the last of the ladder that can run'
run "$FAKE" show other.ini -s misbehave=fail -s hook=setup # nothing is asked of a variant then
expect_exit 0
expect_no_line "$STDOUT" 'the last of the ladder'
run "$FAKE" show job.ini -s variant=flat
expect_no_line "$STDOUT" 'auto       flat'
run "$FAKE" describe tunable
expect_line "$STDOUT" 'auto          is by the first of 3 rules that fits and can run, else the last of these:'
expect_line "$STDOUT" "$PWD/$TABLE"

begin "the same case, whoever chose it"
run "$FAKE" job.ini --records run.jsonl --resume -s n=5M -s variant=spin
expect_exit 0
expect_line "$STDOUT" 'PASSED: 1 of 1 cases passed; 1 resumed'

begin "a table with faults"
cat >$TABLE <<'END'
[a]
nn = 1
n = 5..3
variant = spinn
[b]
n = 1
END
run "$FAKE" job.ini
expect_exit 2
expect_empty "$STDOUT"
sed "s|$PWD/||" "$STDERR" >faults.txt
expect_text faults.txt "$TABLE:2: nn: is no condition, did you mean n?: there are device, bytes and the options of tunable
$TABLE:3: n: '5..3' begins above its end
$TABLE:4: variant: 'spinn' is no variant of tunable; gpurun describe tunable lists them
$TABLE:5: a rule without its variant: write variant = NAME under it
gpurun: 4 faults, nothing was run
"
run "$FAKE" check job.ini
expect_exit 2
run "$FAKE" describe tunable
expect_exit 0
expect_line "$STDOUT" "*/$TABLE:2: nn: is no condition*"
expect_line "$STDOUT" 'with such faults, jobs of variant = auto are refused'
run "$FAKE" job.ini -s variant=flat -s n=1 # who does not ask it does not care
expect_exit 0
run "$FAKE" other.ini
expect_exit 0

begin "made from records, used by the next run"
rm $TABLE
cat >tune.ini <<'END'
[global]
plugin = tunable
repeat = 30
warmup = 0
cpu = off
variant = spin, flat
[a]
n = 1, 1M
block = 16, 64
style = slow, fast
END
run "$FAKE" tune.ini --records tune.jsonl
expect_exit 0
run "$FAKE" report tune.jsonl --auto-table tunable --gap 20%
expect_exit 0
expect_empty "$STDERR"
cp "$STDOUT" $TABLE
# spin is faster than flat, the last rung, at block 64 in style fast alone; the place between 16 and 64 is 32.
grep -v '^#' $TABLE >rules.txt
expect_text rules.txt '
[1]
device = 9.0
block = 32..
style = fast
variant = spin
'
expect_line $TABLE '# Of 8 places that were measured, 6 need no rule.'
expect_line $TABLE '# 2 jobs: * times as fast as the last rung that can run'
run "$FAKE" tune.ini --json -s variant=auto -s n=500 -s repeat=2 -s block=16,48
expect_exit 0
python3 - "$STDOUT" >chosen.txt <<'END'
import json, sys
for r in json.load(open(sys.argv[1]))["records"]:
    print(r["options"]["block"], r["options"]["style"], r["variant"], r["auto"])
END
expect_text chosen.txt '16 slow flat the last of the ladder that can run; no rule of tunable.auto fits
16 fast flat the last of the ladder that can run; no rule of tunable.auto fits
48 slow flat the last of the ladder that can run; no rule of tunable.auto fits
48 fast spin tunable.auto:6
'

begin "every measured place gets what was fastest there"
for seed in 1 2 3; do
    python3 "$CHECKER" make $seed made.jsonl
    run "$FAKE" report made.jsonl --auto-table made
    expect_exit 0
    expect_empty "$STDERR"
    cp "$STDOUT" made.auto
    expect "seed $seed" holds check made.auto made.jsonl
done
expect_line made.auto '# By gpurun report --auto-table made --gap 1%, from made.ini on A GPU, 2026-01-02.'

# decide WANTED SCRIPT: the variants that a table made from the records names, one a line. SCRIPT calls
# put(job, variant, median, ...): auto_table.py's record, of a ladder a, b unless cases says otherwise.
decide() {
    PYTHONPATH=$here python3 - >few.jsonl <<END
import json
from auto_table import record
def put(job, variant, median, spread=0.001, n=1, cases=("a", "b"), **more):
    print(json.dumps(record(job, {"n": n, "k": 1}, variant, cases, median, spread, **more)))
$2
END
    run "$FAKE" report few.jsonl --auto-table made
    sed -n 's/^variant = //p' "$STDOUT" >few.txt
    expect_text few.txt "$1"
}

begin "intervals that meet, or are within the gap: the later rung, which needs no rule"
decide '' 'put("x", "a", 1.0, 0.03); put("x", "b", 1.05, 0.03)'
expect_exit 0
decide '' 'put("x", "a", 1.0); put("x", "b", 1.009)'
decide 'a
' 'put("x", "a", 1.0); put("x", "b", 1.02)'
expect_line "$STDOUT" '# 1 job: 1.020 times as fast as the last rung that can run'

begin "two jobs at one place: the one that is least slow where it is slowest"
decide '' 'put("x", "a", 1); put("x", "b", 2); put("y", "a", 9); put("y", "b", 3)'
decide 'a
' 'put("x", "a", 1); put("x", "b", 2); put("y", "b", 2); put("y", "a", 3)'
expect_line "$STDOUT" '# 2 jobs: 0.6667 to 2.000 times as fast as the last rung that can run'

begin "what is wrong, not proved, or cannot run"
wrong='the last rung that can run was not proved right'
decide 'a
' 'put("x", "a", 5); put("x", "b", 1); put("y", "a", 9); put("y", "b", 1, status="failed")'
expect_line "$STDOUT" "# 2 jobs: $wrong"
decide 'a
' 'put("x", "a", 5); put("x", "b", 1, proof={"mode": "off"})'
expect_line "$STDOUT" "# 1 job: $wrong"
decide 'a
' 'put("x", "a", 5); put("x", "b", 1, status="failed")'
decide '' 'put("x", "a", 5); put("x", "b", 1, status="unsupported")'
expect_exit 0
decide 'a
' 'abp = ("a", "b", "peer"); put("x", "a", 5, cases=abp); put("x", "b", 7, cases=abp); put("x", "peer", 1, cases=abp)'

begin "who was not there"
decide 'b
' 'abc = ("a", "b", "c"); put("x", "a", 1); put("x", "b", 2)
put("y", "b", 3, cases=abc, n=9); put("y", "c", 4, cases=abc, n=9)'
expect_line "$STDERR" 'gpurun: 1 of 2 jobs of made say nothing: *'
decide '' 'put("x", "b", 1)'
expect_exit 1
expect_line "$STDERR" 'gpurun: 1 of 1 jobs of made say nothing: *'
decide '' 'put("x", "a", 1, time_ms={"n": 5, "median": 1, "median_ci95": [1, 1]}); put("x", "b", 1, status="failed")'
expect_exit 1

begin "an option that the records of an older build lack"
decide 'a
' 'put("x", "a", 1); put("x", "b", 2); put("y", "a", 1, n=9, options={"plugin": "made", "n": 9})
put("y", "b", 2, n=9, options={"plugin": "made", "n": 9})'
decide 'a
' 'put("x", "a", 2, options={"n": 1}); put("x", "b", 1, options={"n": 1})
put("y", "a", 1, options={"n": 1, "k": 7}); put("y", "b", 2, options={"n": 1, "k": 7})'
expect_line "$STDOUT" 'k = 7'

begin "values that leave no round number between them"
decide 'a
' 'put("x", "a", 1, n=2); put("x", "b", 2, n=2); put("y", "a", 2, n=3); put("y", "b", 1, n=3)'
expect_line "$STDOUT" 'n = ..2'
decide 'a
' 'put("x", "a", 2, n=2); put("x", "b", 1, n=2); put("y", "a", 1, n=3); put("y", "b", 2, n=3)'
expect_line "$STDOUT" 'n = 3..'

begin "numbers that differ by less than a tenth are one place"
decide 'a
' 'put("x", "a", 1, n=255); put("x", "b", 2, n=255); put("y", "a", 1.25, n=256); put("y", "b", 1, n=256)'
expect_line "$STDOUT" '# Of 1 places that were measured, 0 need no rule.'
expect_line "$STDOUT" '# 2 jobs: 0.8000 to 2.000 times as fast as the last rung that can run'
expect_no_line "$STDOUT" 'n = '
decide 'a
' 'put("x", "a", 1, n=100); put("x", "b", 2, n=100); put("y", "a", 1.25, n=111); put("y", "b", 1, n=111)'
expect_line "$STDOUT" 'n = ..110'

begin "bytes that differ by what k does decide nothing"
decide 'a
' 'for n, k, bytes, a in (1000, 1, 4000, 2), (1000, 100, 4100, 0.5), (1300, 1, 5200, 2), (1300, 100, 5300, 2):
    for variant, median in ("a", a), ("b", 1):
        put(f"x{n}{k}", variant, median, n=n, options={"bytes": bytes, "n": n, "k": k})'
grep -v '^#' "$STDOUT" >rules.txt
expect_text rules.txt '
[1]
device = 9.0
bytes = ..4.6K
k = 10..
variant = a
'

begin "what setup makes of a swept key is no condition"
decide 'a
' 'put("m.ini:s/n=1", "a", 1, options={"n": 1, "sigma": 0.5}); put("m.ini:s/n=1", "b", 2, options={"n": 1, "sigma": 0.5})
put("m.ini:s/n=9", "a", 2, n=9, options={"sigma": 4.5, "n": 9}); put("m.ini:s/n=9", "b", 1, n=9, options={"sigma": 4.5, "n": 9})'
expect_line "$STDOUT" 'n = ..3'
expect_no_line "$STDOUT" 'sigma = '
decide 'a
' 'put("m.ini:s/n=1", "a", 1, options={"sigma": 0.5, "n": 1}); put("m.ini:s/n=1", "b", 2, options={"sigma": 0.5, "n": 1})
put("m.ini:t/n=1", "a", 2, options={"sigma": 4.5, "n": 1}); put("m.ini:t/n=1", "b", 1, options={"sigma": 4.5, "n": 1})'
expect_line "$STDOUT" 'sigma = ..1.5'

begin "two kinds of device in one table"
decide 'a
' 'put("x", "a", 1); put("x", "b", 2)
old = {"compute": 80, "device_name": "An older GPU"}
put("x", "a", 2, environment=old); put("x", "b", 1, environment=old)'
expect_line "$STDOUT" 'device = 9.0'
expect_no_line "$STDOUT" '8.0'

begin "the tables and the tuning jobs that come with gpurun"
unset GPURUN_PLUGIN_PATH
for job in "$GPURUN_SOURCE"/jobs/tune/*.ini; do
    run "$GPURUN" check "$job"
    expect_exit 0
    run "$GPURUN" check "$job" -s variant=auto # the plugin's table has no fault
    expect_exit 0
done
export GPURUN_PLUGIN_PATH=$PWD/plugins

begin "usage"
run "$FAKE" report few.jsonl --auto-table nothing
expect_exit 1
expect_empty "$STDOUT"
expect_text "$STDERR" 'gpurun: no record is of a variant of nothing
'
run "$FAKE" report missing.jsonl --auto-table made
expect_exit 2
expect_line "$STDERR" 'gpurun: missing.jsonl: No such file or directory'
run "$FAKE" report few.jsonl --auto-table made --csv
expect_exit 2
expect_line "$STDERR" 'gpurun: --auto-table prints a table of its own: *'
run "$FAKE" job.ini --auto-table made
expect_exit 2
expect_line "$STDERR" 'gpurun: --auto-table is for report: *'

finish 95
