#!/bin/bash
# gpurun tune on a plugin whose best setting is known; what it prints is a job file.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

cat >job.ini <<'EOF'
[global]
repeat = 30
warmup = 0
plugin = tunable
[a]
variant = spin, flat, never
n = 1, 2
EOF

begin "the best of all settings"
run "$FAKE" tune job.ini --gap 50% --records run.jsonl
expect_exit 0
grep -v '^gpurun: [0-9]* of 64: job\.ini:a/n=' "$STDERR" >other.txt # a line per case as it ends
expect_empty other.txt
cp "$STDOUT" best.ini
# 8, 16, 24 (the default), 32 and 64 of block; slow and fast; two values of n.
expect_line best.ini '# 4 of 20 settings are refused by the plugin'
for n in 1 2; do
    expect_line best.ini "# job.ini:a, n=$n spin: 6 of 8 settings proved"
    expect_line best.ini "# job.ini:a, n=$n never: 0 of 8 settings proved"
done
expect_line best.ini '#   failed: 1 of 0 wrong; first: 8 is too few'
expect_line best.ini '#   unsupported: not here'
expect_line best.ini '#   0.1* ms  block 64  style fast  share 0.5'
expect_line best.ini '#   * ms  block 24  style slow  share 0.5  (the default)'
expect_line best.ini '#   none is faster than the default beyond doubt'
sed -n '/^\[a, n=2 spin\]/,/^$/p' best.ini >spin.ini
expect_text spin.ini '[a, n=2 spin]
plugin = tunable
variant = spin
repeat = 30
warmup = 0
n = 2
block = 64
style = fast
share = 0.5

'
sed -n '/^\[a, n=1 flat\]/,/^$/p' best.ini >flat.ini
expect_line flat.ini 'block = 24'
expect_line flat.ini 'style = slow'
# 16 jobs of a cpu case and three variants.
expect "records" test "$(wc -l <run.jsonl)" -eq 64

begin "what it prints runs"
run "$FAKE" best.ini
expect_exit 0
expect_line "$STDOUT" 'PASSED: 8 of 8 cases passed'

begin "what the file sets is not touched, a list in it is what is tried"
run "$FAKE" tune job.ini --only '*:a' -s n=1 -s block=16,64 -s variant=spin --gap 50%
expect_exit 0
expect_line "$STDOUT" '# job.ini:a spin: 4 of 4 settings proved'
expect_line "$STDOUT" 'block = 64'
run "$FAKE" tune job.ini -s n=1 -s block=16 -s style=slow -s variant=spin
expect_exit 0
expect_line "$STDOUT" '# job.ini:a spin: 1 of 1 settings proved'
expect_line "$STDOUT" 'block = 16'

begin "no setting passes"
run "$FAKE" tune job.ini -s n=1 -s block=8 -s variant=spin
expect_exit 1
expect_line "$STDOUT" '# job.ini:a spin: 0 of 2 settings proved'

begin "nothing to tune"
printf '[a]\nplugin = mirror\nvariant = copy\n' >plain.ini
run "$FAKE" tune plain.ini
expect_exit 1
expect_empty "$STDOUT"
expect_text "$STDERR" 'gpurun: plain.ini:a: its plugin has no option to be tuned
'
run "$FAKE" tune job.ini -s device=cpu -s n=1
expect_exit 1
expect_line "$STDERR" 'gpurun: job.ini:a/*: no case ran on a GPU, so there is nothing to tune'

begin "usage and faults"
run "$FAKE" tune
expect_exit 2
expect_line "$STDERR" 'gpurun: tune: name a job file; *'
run "$FAKE" tune -
expect_exit 2
expect_line "$STDERR" 'gpurun: tune reads its files many times: name a file, not -; *'
run "$FAKE" tune nothing.ini
expect_exit 2
expect_line "$STDERR" 'nothing.ini: *No such file or directory*'
run "$FAKE" tune job.ini -s blok=1
expect_exit 2
expect_empty "$STDOUT"
expect_line "$STDERR" '*blok: *did you mean block?*'
run "$FAKE" tune job.ini -s n=1 -s output=x.npy
expect_exit 2
expect_line "$STDERR" '*output: *'

finish 40
