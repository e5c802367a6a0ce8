#!/bin/bash
# Around a device: variants that go wrong in every way beside some that are right, no device, one with
# little memory, one that is lost; on a pretend device (fakes/device/device_fake.c).
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

cat >job.ini <<'EOF'
[all]
plugin = mirror
variant = all
repeat = 5
warmup = 1
timeout = 1m
EOF

# Of each record: variant, status, the start of its reason up to what differs by input.
expect_outcomes() {
    python3 - "$STDOUT" >"$WORK/.cases" 2>&1 <<'EOF'
import json, re, sys
for r in sorted(json.load(open(sys.argv[1]))["records"], key=lambda r: r["variant"]):
    assert ("time_ms" in r) == (r["status"] == "passed"), r["variant"]
    print(r["variant"], r["status"] + (": " if r["reason"] else "") + re.sub(r"\d+\.\d+", "X", r["reason"]))
EOF
    expect_text "$WORK/.cases" "$1"
}

all_outcomes='copy passed
cpu passed
crash crashed: proof: killed by signal 11 (Segmentation fault)
device_error error: an illegal memory access
hang timeout: proof: not done after Xs (timeout)
huge out-of-memory: 1152921504606846976 bytes of device memory: out of memory
late failed: 1 of 1000 wrong; first: element 500: X, not X
nan failed: 1 of 1000 wrong; first: element 500: nan, not X
newer unsupported: needs compute capability X, this device has X
peer passed
state passed
unsupported unsupported: needs a thing that is not here
untouched failed: 1001 of 1000 wrong; first: element 0: -Xe-16, not X
write_input error: input in was written to: it is not to be changed
wrong failed: 1 of 1000 wrong; first: element 500: X, not X
'
for memory in explicit pinned zerocopy managed; do
    begin "all variants, $memory"
    run "$FAKE" job.ini --json -s memory=$memory -s timeout=1.5s
    expect_exit 1
    expect_empty "$STDERR"
    expect_outcomes "$all_outcomes"
    # Those that pass were timed in the same rounds: their ratios are paired, over every round.
    expect "ratios are missing or not paired" python3 - "$STDOUT" <<'EOF'
import json, sys
records = {r["variant"]: r for r in json.load(open(sys.argv[1]))["records"]}
passed = {name for name, r in records.items() if r["status"] == "passed"}
for name in passed:
    versus, rounds = records[name]["versus"], records[name]["rounds"]
    assert set(versus) == {"cpu", "peer"} - {name}, (name, versus)
    assert rounds >= 5 and all(v["rounds"] == rounds for v in versus.values()), (name, rounds, versus)
    assert records[name]["round_id"] == records["cpu"]["round_id"]
    assert records[name]["answer"] == records["cpu"]["answer"] and records[name]["answer_repeats"]
assert records["wrong"]["answer"]["sum"] == records["cpu"]["answer"]["sum"]
assert records["wrong"]["answer"]["out"] != records["cpu"]["answer"]["out"]
assert records["cpu"]["path"] == "one loop over 1000 elements" and "path" not in records["copy"]
assert records["copy"]["versus"]["cpu"]["path"] == records["cpu"]["path"]
EOF
done
# The hash of nothing is the one that xxHash publishes for XXH3 of 128 bits.
begin "hash of an empty answer"
run "$FAKE" job.ini --json -s n=0 -s variant=copy
expect "another hash" python3 -c 'import json, sys
sys.exit(any(r["answer"] != dict.fromkeys(("out", "sum"), "99aa06d3014798d86001c324468d497f")
             for r in json.load(open(sys.argv[1]))["records"]))' "$STDOUT"

# A bad variant before a good one and after it; the good one must not notice.
for bad in wrong nan untouched write_input crash device_error late huge state peer; do
    for list in "$bad, copy" "copy, $bad"; do
        begin "variant = $list"
        run "$FAKE" job.ini --json -s "variant=$list"
        expect "copy did not pass" python3 -c 'import json, sys
sys.exit(not any(r["variant"] == "copy" and r["status"] == "passed" for r in json.load(open(sys.argv[1]))["records"]))' \
            "$STDOUT"
    done
done

begin "auto is the best that can run and is no peer"
run "$FAKE" job.ini --json -s variant=auto
expect_exit 0
expect_cases 'all cpu passed
all copy passed
'
begin "cpu = off"
run "$FAKE" job.ini --json -s variant=copy -s cpu=off
expect_exit 0
expect_cases 'all copy passed
'
begin "a variant named twice runs once"
run "$FAKE" job.ini --json -s 'variant=copy, copy,copy'
expect_exit 0
expect_cases 'all cpu passed
all copy passed
'
begin "device = cpu"
run "$FAKE" job.ini -s device=cpu
expect_exit 0
expect_line "$STDOUT" 'GPU *none used: device = cpu'
expect_line "$STDOUT" 'PASSED: 1 of 1 cases passed'

for memory in explicit pinned zerocopy managed; do
    for prefetch in no yes; do
        begin "$memory, prefetch = $prefetch"
        run "$FAKE" job.ini --json -s memory=$memory -s prefetch=$prefetch -s variant=copy -s offset=3
        expect_exit 0
        expect_cases 'all cpu passed
all copy passed
'
    done
done
for n in 0 1; do
    begin "n = $n"
    run "$FAKE" job.ini --json -s variant=copy -s n=$n
    expect_exit 0
done

# --- no device ---
export GPURUN_FAKE_DEVICE=none
begin "no device, device = auto"
run "$FAKE" job.ini
expect_exit 0
expect_empty "$STDERR"
expect_line "$STDOUT" 'GPU *none used: the fake driver has no device'
expect "one line says so" test "$(grep -c 'no device' "$STDOUT")" -eq 1
expect_line "$STDOUT" 'PASSED: 1 of 1 cases passed'
run "$FAKE" job.ini --json
expect "its record says cpu" python3 -c 'import json, sys
sys.exit([r["device"] for r in json.load(open(sys.argv[1]))["records"]] != ["cpu"])' "$STDOUT"
for device in gpu 0 3; do
    begin "no device, device = $device"
    run "$FAKE" job.ini --json -s device=$device
    expect_exit 4
    expect_cases 'all cpu error: no device: the fake driver has no device
'
done
export GPURUN_FAKE_DEVICE=
begin "a device number that there is not"
run "$FAKE" job.ini --json -s device=1
expect_exit 4
expect_cases 'all cpu error: no device: device = 1: there are 1, numbered from 0
'

# --- little memory ---
export GPURUN_FAKE_DEVICE=small
begin "out of device memory"
for memory in explicit pinned zerocopy; do
    run "$FAKE" job.ini --json -s memory=$memory -s n=200K -s variant=copy,peer
    expect_exit 1
    expect "not out-of-memory" python3 -c 'import json, sys
records = json.load(open(sys.argv[1]))["records"]
sys.exit(not records or any(r["status"] != "out-of-memory" or "out of memory" not in r["reason"] for r in records))' \
        "$STDOUT"
done
begin "managed memory is never oversubscribed"
run "$FAKE" job.ini --json -s memory=managed -s n=200K -s variant=copy
expect_exit 1
managed='memory = managed: the job needs 2400000 bytes, the device has 1048576 free; use memory = zerocopy, or a smaller job'
expect_cases "all cpu out-of-memory: $managed
all copy out-of-memory: $managed
"
begin "a small job fits"
run "$FAKE" job.ini --json -s memory=managed -s variant=copy
expect_exit 0

# --- a device that is lost ---
export GPURUN_FAKE_DEVICE=lost
for memory in explicit managed; do
    begin "a lost device, $memory"
    printf '[next]\nplugin = mirror\ndevice = cpu\nrepeat = 1\n' >next.ini
    run timeout 20 "$FAKE" job.ini next.ini --json -s memory=$memory -s variant=copy,peer
    expect_exit 1
    expect_cases 'all cpu error: the fake device fell off the bus
all copy error: the fake device fell off the bus
all peer error: the fake device fell off the bus
next cpu passed
'
done

finish 85
