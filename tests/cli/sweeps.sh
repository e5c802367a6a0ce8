#!/bin/bash
# Lists, ranges, grids and zip; include; variables: which jobs a file makes, under which names, with which
# values, and what the records of a sweep carry.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes
unset SIZE NONE

# expect_names NAME...: the last `show` printed these jobs, in this order.
expect_names() {
    grep '^[^ ].*:' "$STDOUT" >"$WORK/.names"
    expect_text "$WORK/.names" "$(printf '%s\n' "$@")"$'\n'
}

# --- sweeps ---
cat >sweep.ini <<'EOF'
[global]
plugin = topk
repeat = 1
warmup = 0
device = cpu

[grid]
n = 100, 1K..10K*10
k = 2, 3

[zip]
n = 64..192+64
k = 4, 5, 6
zip = n, k

[input]
n = 50
k = 1
input = uniform, ascending, constant value=7

[memory]
memory = explicit, managed
n = 40
k = 1
EOF

begin "a grid, a zip, inputs, memory"
run "$GPURUN" show sweep.ini
expect_exit 0
expect_empty "$STDERR"
expect_names sweep.ini:grid/n=100,k=2 sweep.ini:grid/n=100,k=3 sweep.ini:grid/n=1K,k=2 \
    sweep.ini:grid/n=1K,k=3 sweep.ini:grid/n=10K,k=2 sweep.ini:grid/n=10K,k=3 \
    sweep.ini:zip/n=64,k=4 sweep.ini:zip/n=128,k=5 sweep.ini:zip/n=192,k=6 \
    sweep.ini:input/input=uniform sweep.ini:input/input=ascending \
    'sweep.ini:input/input=constant value=7' \
    sweep.ini:memory/memory=explicit sweep.ini:memory/memory=managed
expect_line "$STDOUT" '14 jobs, 14 cases'

begin "the values of one job"
run "$GPURUN" show sweep.ini --only 'sweep.ini:zip/n=128,k=5'
expect_exit 0
expect_names sweep.ini:zip/n=128,k=5
expect_line "$STDOUT" 'n *128 *sweep.ini:12'
expect_line "$STDOUT" 'k *5 *sweep.ini:13'
expect_line "$STDOUT" '1 job, 1 case'

begin "check counts what was made"
run "$GPURUN" check sweep.ini
expect_exit 0
expect_text "$STDOUT" '14 jobs, no fault
'

begin "--only by a value, by a section"
run "$GPURUN" check sweep.ini --only '*/n=1K,*'
expect_text "$STDOUT" '2 jobs, no fault
'
run "$GPURUN" check sweep.ini --only 'sweep.ini:grid'
expect_text "$STDOUT" '6 jobs, no fault
'
run "$GPURUN" check sweep.ini --only '*/n=2K*'
expect_exit 2
expect_line "$STDERR" "--only: '\*/n=2K\*' matches none of 14 jobs; names are file:section"

begin "-s makes a sweep, and unmakes one"
run "$GPURUN" show sweep.ini --only 'sweep.ini:memory' -s n=40..80*2 -s memory=pinned
expect_exit 0
expect_names sweep.ini:memory/n=40 sweep.ini:memory/n=80
expect_line "$STDOUT" 'memory *pinned *-s'
run "$GPURUN" show sweep.ini --only 'sweep.ini:memory' -s zip=memory,k -s k=1,2
expect_exit 0
expect_names sweep.ini:memory/memory=explicit,k=1 sweep.ini:memory/memory=managed,k=2

# What the records say: names and identities all differ; a job's is the same wherever its values stand.
begin "records"
run "$GPURUN" sweep.ini --records all.jsonl
expect_exit 0
expect_line "$STDOUT" 'PASSED: 14 of 14 cases passed'
run "$GPURUN" sweep.ini --records one.jsonl --only '*:grid/n=10K,k=3'
expect_exit 0
sed -i '/^n = 100/s/.*/n = 10K, 7/; /^k = 2/s/.*/k = 3, 1/' sweep.ini
run "$GPURUN" sweep.ini --records moved.jsonl --only '*:grid'
expect_exit 0
cat >records.py <<'EOF'
import json

def read(name):
    with open(name, encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    by_name = {r["job"]: r for r in records}
    assert len(by_name) == len(records) == len({r["case_id"] for r in records}), name
    return by_name

every, one, moved = read("all.jsonl"), read("one.jsonl"), read("moved.jsonl")
name = "sweep.ini:grid/n=10K,k=3"
assert len(every) == 14 and len(moved) == 4 and list(one) == [name]
assert every[name]["options"]["n"] == 10000 and every[name]["options"]["k"] == 3
assert one[name]["case_id"] == every[name]["case_id"] == moved[name]["case_id"]
assert one[name]["key"] == every[name]["key"] == moved[name]["key"]
assert every["sweep.ini:input/input=constant value=7"]["input"][0]["source"] == "constant value=7"
EOF
expect "the records' names or identities are wrong" python3 records.py

begin "a sweep of text"
printf '[t]\nplugin = conv\nwidth = 16\nheight = 16\nmask = 1 2 1 / 2 4 2 / 1 2 1, box3\n' >text.ini
printf 'border = constant:0, wrap\nzip = mask, border\n' >>text.ini
run "$GPURUN" show text.ini
expect_exit 0
expect_names 'text.ini:t/mask=1 2 1 / 2 4 2 / 1 2 1,border=constant:0' \
    'text.ini:t/mask=box3,border=wrap'

begin "a sweep of fractions"
printf '[f]\nplugin = conv\nwidth = 16\nheight = 16\nmask = gaussian5\nsigma = 0.5..2*2\n' >real.ini
run "$GPURUN" show real.ini
expect_exit 0
expect_names real.ini:f/sigma=0.5 real.ini:f/sigma=1 real.ini:f/sigma=2

# --- variables ---
cat >vars.ini <<'EOF'
[v]
plugin = topk
n = ${SIZE:-100, 200}
k = ${K}
input = file:${NONE:-here}/x.npy
output = $$x${NONE:-}.npy
EOF

begin variables
mkdir here
cp "$GPURUN_SOURCE/tests/data/npy/good_i4.npy" here/x.npy
export K=3
SIZE=7 run "$GPURUN" show vars.ini
expect_exit 0
expect_names vars.ini:v
expect_line "$STDOUT" 'n *7 *vars.ini:3'
expect_line "$STDOUT" 'k *3 *vars.ini:4'
expect_line "$STDOUT" 'input *file:here/x.npy *vars.ini:5'
expect_line "$STDOUT" 'output *[$]x.npy *vars.ini:6'

begin "a variable's default makes a sweep; -s is the shell's matter"
# shellcheck disable=SC2016
SIZE='' run "$GPURUN" show vars.ini -s 'output=${K}.npy' -s input=uniform --only '*=200'
expect_exit 0
expect_names vars.ini:v/n=200
expect_line "$STDOUT" 'output *[$]{K}.npy *-s'

begin "what a variable holds is not looked into again"
# shellcheck disable=SC2016
K='${SIZE}' SIZE=7 run "$GPURUN" check vars.ini
expect_exit 2
expect_line "$STDERR" "vars.ini:4: k: '\${SIZE}' is not a whole number *"

# --- include ---
begin include
mkdir -p suite/parts
printf '[global]\nplugin = topk\nk = 2\nn = 30\n[own]\n' >suite/parts/common.ini
printf 'include = parts/common.ini\n[global]\nk = 3\nseed = 5\n[a]\n[b]\nn = 40\n' >suite/suite.ini
run "$GPURUN" show suite/suite.ini
expect_exit 0
expect_names suite/parts/common.ini:own suite/suite.ini:a suite/suite.ini:b
expect_line "$STDOUT" 'k *2 *suite/parts/common.ini:3'
expect_line "$STDOUT" 'k *3 *suite/suite.ini:3'
expect_line "$STDOUT" 'n *30 *suite/parts/common.ini:4'
expect_line "$STDOUT" 'seed *5 *suite/suite.ini:4'

begin "include and name the same file"
run "$GPURUN" check suite/suite.ini suite/parts/common.ini
expect_exit 0
expect_text "$STDOUT" '3 jobs, no fault
'

begin "include by a variable, by a whole path, from standard input"
PARTS=$PWD/suite/parts run "$GPURUN" show - <<'EOF'
[global]
include = ${PARTS}/common.ini
[x]
EOF
expect_exit 0
expect_names "$PWD/suite/parts/common.ini:own" '<stdin>:x'

begin "an output may not be an included file"
printf 'include = suite/suite.ini\n[x]\noutput = suite/parts/common.ini\nplugin = topk\n' >over.ini
run "$GPURUN" over.ini
expect_exit 2
expect_line "$STDERR" 'over.ini:3: output: * is the job file suite/parts/common.ini: *'

# --- many ---
begin "10,000 jobs of one sweep"
printf '[many]\nplugin = topk\nn = 1000\nk = 1..1000+1\nblock = 32..320+32\n' >many.ini
SECONDS=0
run "$GPURUN" check many.ini
expect_exit 0
expect_text "$STDOUT" '10000 jobs, no fault
'
is_sanitized || expect "check took $SECONDS s" test "$SECONDS" -lt 30

begin "describe core"
run "$GPURUN" describe core
expect_line "$STDOUT" 'zip *list of keys *'
expect_line "$STDOUT" 'include *list of paths *'

finish 55
