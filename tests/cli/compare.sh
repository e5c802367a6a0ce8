#!/bin/bash
# gpurun compare, and a run's comparison with its baseline. The measures of 0.3 % noise and 20 to 100
# samples are taken on records that make_comparison.py draws.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes
python3 "$GPURUN_SOURCE/tests/data/make_comparison.py" . || exit 1

# shellcheck disable=SC2034 # for holds
CHECKER=$here/compare.py

begin "identical code: no false alarm in 200 cases"
run "$FAKE" compare same_old.jsonl same_new.jsonl --fail-on slower,faster
expect_exit 0
expect_empty "$STDERR"
expect_line "$STDOUT" '200 SAME; a change counts from 1 %'

begin "3 % slower: found 20 times in 20"
run "$FAKE" compare planted_old.jsonl planted_new.jsonl --fail-on slower
expect_exit 1
expect_line "$STDOUT" '20 SLOWER; a change counts from 1 %'
run "$FAKE" compare planted_old.jsonl planted_new.jsonl --fail-on failed,faster
expect_exit 0
run "$FAKE" compare planted_old.jsonl planted_new.jsonl --gap 4% --fail-on slower
expect_exit 0
expect_line "$STDOUT" '20 SAME; a change counts from 4 %'
run "$FAKE" compare faster_old.jsonl faster_new.jsonl --fail-on slower
expect_exit 0
expect_line "$STDOUT" '20 FASTER; a change counts from 1 %'

begin "its numbers are the records'"
for format in csv json; do
    run "$FAKE" compare planted_old.jsonl planted_new.jsonl --$format
    expect_exit 0
    expect "$format" holds $format "$STDOUT" planted_old.jsonl planted_new.jsonl
done
run "$FAKE" compare planted_old.jsonl planted_new.jsonl --md
expect_line "$STDOUT" '| SLOWER | bench.ini:j5 v | 2.116 | 2.182 | +3.08 | +2.86 to +3.28 | - |  |'

begin "every verdict"
run "$FAKE" compare kinds_old.jsonl kinds_new.jsonl
expect_exit 0
expect_text "$STDOUT" 'Not the same on both sides:
  driver 13000 -> 13010 (1 case)
  p: plugin_build aa -> bb (1 case)
  cache (none) -> hot (1 case)
  repeat 20 -> 50 (1 case)

  verdict    case                      old ms    new ms  change %            range %  cycles %  note
  FAILED     b.ini:breaks v             1.000         -         -                  -         -  passed -> failed: 3 wrong
  SLOWER     b.ini:clocked_slower v     1.000     1.150    +15.00   +14.77 to +15.23     +4.55
  SLOWER     b.ini:clocked_cpu v        1.000     1.100    +10.00    +9.78 to +10.22         -
  SLOWER     b.ini:grafted v         0.004128  0.004224     +2.33     +2.12 to +2.53         -
  MISSING    b.ini:cut v                1.000         -         -                  -         -  passed -> interrupted
  MISSING    b.ini:gone v               1.000         -         -                  -         -
  CHANGED    b.ini:hot v                1.000     1.000         -                  -         -  cache hot -> cold
  CHANGED    b.ini:data v               1.000     1.000         -                  -         -  data 1 -> 2
  CHANGED    b.ini:id v                 1.000     2.000         -                  -         -  n 5 -> 6
  CHANGED    b.ini:n v                  1.000     1.000         -                  -         -  n 9007199254740993 -> 9007199254740994
  UNCERTAIN  b.ini:tick v            0.004128  0.004224     +2.33     +2.12 to +2.53         -  within what launches vary, 1.5 us
  UNCERTAIN  b.ini:clocked v            1.000     1.100    +10.00    +9.78 to +10.22     +0.00  not so in clock cycles: 1980 -> 1800 MHz
  UNCERTAIN  b.ini:clocked_faster v     1.000    0.7500    -25.00   -25.15 to -24.85     +0.00  not so in clock cycles: 1500 -> 2000 MHz
  UNCERTAIN  b.ini:timed v              1.000         -         -                  -         -  a record without times
  UNCERTAIN  b.ini:few v                1.000     2.000   +100.00  +99.80 to +100.20         -  fewer than 6 runs
  FAILING    b.ini:broken v                 -         -         -                  -         -  failed -> crashed: signal 11
  MENDED     b.ini:mends v                  -     1.000         -                  -         -  crashed -> passed: boom
  ADDED      b.ini:fresh v                  -     1.000         -                  -         -
  SAME       b.ini:same v               1.000     1.000     +0.00     -0.20 to +0.20         -
  SAME       b.ini:driver v             1.000     1.000     +0.00     -0.20 to +0.20         -
  SAME       b.ini:newer v              1.000     1.000     +0.00     -0.20 to +0.20         -
  SAME       b.ini:longer v             1.000     1.000     +0.00     -0.20 to +0.20         -

1 FAILED, 3 SLOWER, 2 MISSING, 4 CHANGED, 5 UNCERTAIN, 1 FAILING, 1 MENDED, 1 ADDED, 4 SAME; a change counts from 1 %
'
for word in failed slower missing changed uncertain failing mended added same; do
    run "$FAKE" compare kinds_old.jsonl kinds_new.jsonl --fail-on $word
    expect_exit 1
done
run "$FAKE" compare kinds_old.jsonl kinds_new.jsonl --fail-on faster
expect_exit 0

begin "the last record of a case counts"
cat kinds_old.jsonl planted_new.jsonl planted_old.jsonl >many.jsonl
run "$FAKE" compare many.jsonl planted_old.jsonl
expect_line "$STDOUT" '21 MISSING, 20 SAME; a change counts from 1 %'

begin "nothing in common is no pass"
run "$FAKE" compare kinds_old.jsonl planted_new.jsonl
expect_exit 0
run "$FAKE" compare kinds_old.jsonl planted_new.jsonl --fail-on slower
expect_exit 1

begin "names from records stay text"
sed 's/bench.ini:j5"/a|b,\\"c\\"\\n<script>"/' planted_old.jsonl >odd.jsonl
run "$FAKE" compare odd.jsonl odd.jsonl --md
expect_line "$STDOUT" '| SAME | a\\|b,"c" \\<script\\> v | *'
run "$FAKE" compare odd.jsonl odd.jsonl --csv
expect_line "$STDOUT" 'SAME,"a|b,""c""'

begin "what cannot be compared"
: >empty.jsonl
run "$FAKE" compare empty.jsonl planted_old.jsonl
expect_exit 2
expect_empty "$STDOUT"
expect_text "$STDERR" 'gpurun: empty.jsonl: it holds no record, so there is nothing to compare
'
run "$FAKE" compare planted_old.jsonl nothing.jsonl
expect_exit 2
expect_text "$STDERR" 'gpurun: nothing.jsonl: No such file or directory
'
for files in "" one.jsonl "one.jsonl two.jsonl three.jsonl"; do
    # shellcheck disable=SC2086
    run "$FAKE" compare $files
    expect_exit 2
    expect_line "$STDERR" 'gpurun: compare wants two files of records: OLD NEW; see gpurun --help'
done
run "$FAKE" compare same_old.jsonl same_new.jsonl --fail-on slow
expect_exit 2
expect_line "$STDERR" "gpurun: --fail-on: 'slow' is no verdict, did you mean slower?; there are *"
run "$FAKE" compare same_old.jsonl same_new.jsonl --gap 1
expect_exit 2
expect_line "$STDERR" "gpurun: --gap: '1' is no percentage from 0% to 100%: write 1%; *"

# --- a run with a baseline ----------------------------------------------------------------------
mkdir suite
cat >suite/job.ini <<'EOF'
[global]
plugin = mirror
repeat = 8
warmup = 0
[first]
variant = copy, peer
baseline = base.jsonl
[second]
variant = wrong
EOF
begin "the first run, which has no baseline yet"
run "$FAKE" suite/job.ini
expect_exit 2
expect_empty "$STDOUT"
expect_text "$STDERR" 'suite/job.ini:7: baseline: suite/base.jsonl: No such file or directory: name a file of records
gpurun: 1 fault, nothing was run
'
run "$FAKE" --baseline none suite/job.ini --records suite/base.jsonl
expect_exit 1
expect_no_line "$STDOUT" 'Compared'

begin "a job's baseline is found beside its file, and compared at the end"
run "$FAKE" suite/job.ini --records suite/base.jsonl
expect_exit 1
expect_line "$STDOUT" 'Compared with suite/base.jsonl:'
expect_line "$STDOUT" '* suite/job.ini:first peer *'
expect_no_line "$STDOUT" 'second wrong '
expect_no_line "$STDOUT" 'MISSING'

begin "--baseline is for all jobs, relative to where gpurun runs"
run "$FAKE" --baseline suite/base.jsonl suite/job.ini --gap 100%
expect_line "$STDOUT" 'FAILING *suite/job.ini:second wrong *failed -> failed: *'
expect_line "$STDOUT" '*a change counts from 100 %'
expect_no_line "$STDOUT" 'MISSING'

begin "the exit code follows the verdicts"
sed 's/"median":[0-9.e-]*/"median":1e-9/g; s/"median_ci95":\[[^]]*\]/"median_ci95":[1e-9,1e-9]/g' \
    suite/base.jsonl >quick.jsonl
run "$FAKE" --baseline quick.jsonl --only '*:first' suite/job.ini
expect_exit 0
run "$FAKE" --baseline quick.jsonl --only '*:first' suite/job.ini --fail-on slower
expect_exit 1
expect_line "$STDOUT" 'PASSED: 3 of 3 cases passed'
expect_line "$STDOUT" 'SLOWER *suite/job.ini:first cpu *'
for format in json csv md; do
    run "$FAKE" --baseline quick.jsonl --only '*:first' suite/job.ini --fail-on slower --$format
    expect_exit 1
    expect_no_line "$STDOUT" 'SLOWER'
    expect_line "$STDERR" 'gpurun: compared with quick.jsonl: *SLOWER*'
done

begin "a baseline that says nothing: nothing runs"
run "$FAKE" --baseline empty.jsonl suite/job.ini
expect_exit 2
expect_empty "$STDOUT"
expect_line "$STDERR" 'gpurun: baseline empty.jsonl: it holds no record, so there is nothing to compare'
run "$FAKE" --baseline . suite/job.ini
expect_exit 2
expect_line "$STDERR" '*baseline: . is a folder: name a file of records'
run "$FAKE" --baseline none suite/job.ini --fail-on slower
expect_exit 2
expect_line "$STDERR" '*no job has a baseline to compare with: --baseline FILE names one'
run "$FAKE" --baseline empty.jsonl --dry-run suite/job.ini
expect_exit 0

begin "a baseline is not written over, but may get the records"
cp quick.jsonl kept.jsonl
for written in "--junit quick.jsonl" "-s output.sum=quick.jsonl"; do
    # shellcheck disable=SC2086
    run "$FAKE" --baseline quick.jsonl suite/job.ini --only '*:first' $written
    expect_exit 2
    expect_line "$STDERR" '*quick.jsonl is also the baseline of *: give it a name of its own'
done
expect "the baseline" cmp quick.jsonl kept.jsonl
run "$FAKE" compare quick.jsonl quick.jsonl --junit x.xml
expect_exit 2
expect_line "$STDERR" 'gpurun: --junit is for runs and reports, compare writes none: x.xml; *'

begin "a baseline is no part of the question"
run "$FAKE" --baseline none --only '*:first' suite/job.ini --records again.jsonl
run "$FAKE" --baseline quick.jsonl --only '*:first' suite/job.ini --records again.jsonl --resume
expect_line "$STDOUT" 'PASSED: 3 of 3 cases passed; 3 resumed'

finish 70
