#!/bin/bash
# How times are read, and what the record says of it: launch, cache, samples, repeat, warmup, what NVML says;
# on a pretend device (fakes/device/device_fake.c) with a pretend NVML (fakes/nvml/nvml_fake.c).
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

printf '[a]\nplugin = mirror\nvariant = copy, peer\nrepeat = 7\nwarmup = 1\n' >mirror.ini
printf '[a]\nplugin = null\nvariant = nothing\nrepeat = 7\nwarmup = 1\n' >null.ini

# expect_of VARIANT PYTHON: true of the record r of the last run with --json.
expect_of() {
    expect "$1: not $2" python3 - "$STDOUT" "$1" "$2" <<'END'
import json, sys
records = [r for r in json.load(open(sys.argv[1]))["records"] if r["variant"] == sys.argv[2]]
assert records, "no such case"
for r in records:
    assert eval(sys.argv[3]), r
END
}

begin "as it is by default"
run "$FAKE" --json mirror.ini
expect_exit 0
expect_of copy 'r["launch"] == "stream" and r["launch_gaps"] == "hidden" and "launch_note" not in r'
expect_of copy 'r["cache"] == "hot" and r["runs_per_sample"] == 1 and "launch-gaps" not in r["flags"]'
expect_of copy 'r["empty_ms"]["n"] == 7 and 0 <= r["empty_ms"]["median"] < r["time_ms"]["median"]'
expect_of copy 'r["rounds"] == r["time_ms"]["n"] == 7 and r["stop"] == "repeat" and "samples_ms" not in r'
expect_of copy 'r["limit"]["read_ms"]["n"] == r["limit"]["copy_ms"]["n"] == 7 and "settled" not in r'
expect_of copy 'r["device_memory"]["allocated_bytes"] == 4 * 4000 and "device_state" not in r'
expect_of cpu '"launch" not in r and "empty_ms" not in r and r["cache"] == "hot"'
expect_of cpu 'r["environment"]["cpu_affinity"][0].isdigit() and "cpu_governor" in r["environment"]'
expect_of copy 'r["versus"]["cpu"]["threads"] == r["environment"]["threads"] and "threads" not in r["versus"]["peer"]'
expect_of copy 'all(k in r["time_ms"] for k in ("p5", "q1", "q3", "p95", "sd", "mad", "outliers"))'

begin "the ceiling that fits the work"
expect_of copy 'r["limit"]["kind"] == "copy" and r["limit"]["bytes"] == 8000 and "write_ms" not in r["limit"]'
run "$FAKE" --json mirror.ini -s reads=no
expect_exit 0
expect_of copy 'r["limit"]["kind"] == "write" and r["limit"]["bytes"] == 4000 and r["limit"]["write_ms"]["n"] == 7'

begin "the CPU's own ceiling, beside a device and without"
expect_of cpu 'r["limit"]["kind"] == "write" and r["limit"]["bytes"] == 4000 and r["limit"]["write_ms"]["n"] == 7'
for device in auto cpu; do
    run "$FAKE" --json mirror.ini -s device=$device -s samples=yes
    expect_exit 0
    expect_of cpu 'r["limit"]["kind"] == "copy" and r["limit"]["bytes"] == 8000 and r["limit"]["copy_ms"]["n"] == 7'
    expect_of cpu '"read_ms" not in r["limit"] and r["limit"]["past_caches"] in (True, False)'
    expect_of cpu '0 < r["limit"]["percent_low"] <= r["limit"]["percent"] <= r["limit"]["percent_high"]'
    expect_of cpu '"limit_note" not in r and "suspect" not in r["flags"]'
    # The ratio of two medians is within the range of the paired ratios.
    expect_of cpu 'r["limit"]["copy_ms"]["min"] / r["time_ms"]["max"] <= 0.01 * r["limit"]["percent"] <= r["limit"]["copy_ms"]["max"] / r["time_ms"]["min"]'
done
begin "one round is enough, and threads that share"
run "$FAKE" --json mirror.ini -s device=cpu -s n=100K -s repeat=1 -s warmup=0 -s threads=3
expect_exit 0
expect_of cpu 'r["limit"]["bytes"] == 800000 and r["limit"]["copy_ms"]["n"] == 1'
begin "a CPU case that is slow, as it starts a process, sits rounds out, and its yardstick with it"
run "$FAKE" --json mirror.ini -s misbehave=zombie -s repeat=100000 -s max_time=400ms -s variant=copy
expect_exit 0
expect_of cpu 'r["limit"]["copy_ms"]["n"] == r["time_ms"]["n"] < r["rounds"]'
begin "work that is nothing has no limit, and says why"
run "$FAKE" --json null.ini
expect_exit 0
for case in cpu nothing; do
    expect_of $case 'r["limit"] is None and r["limit_note"] == "no limit: the job moves fewer than 32 bytes"'
done
run "$FAKE" null.ini
expect_line "$STDOUT" 'cpu: no limit: the job moves fewer than 32 bytes'
expect_no_line "$STDOUT" '% of limit'
if ! is_sanitized; then
    begin "too little memory for a second time as many bytes"
    run "$FAKE" --json mirror.ini -s device=cpu -s n=20M -s memory_limit=520M
    expect_exit 0
    expect_of cpu 'r["limit"] is None and r["limit_note"] == "no limit: 160000000 bytes are not free a second time"'
    # 0.4 GB of the job's, 1.07 left behind by each proof: with the yardstick's 0.16 the last would be too much.
    begin "the yardstick's memory is free for the last proof"
    run "$FAKE" --json mirror.ini -s device=cpu -s n=20M -s repeat=2 -s memory_limit=2640M -s hook=verify -s misbehave=leak
    expect_exit 0
    expect_of cpu 'r["limit"]["bytes"] == 160000000 and r["limit"]["copy_ms"]["n"] == 2'
fi

begin "an answer that is as right in other bits"
run "$FAKE" --json mirror.ini -s device=cpu -s misbehave=waver -s 'input=constant value=0' -s repeat=2 -s warmup=0
expect_exit 0
expect_of cpu 'r["answer_repeats"] is True and "answer-varies" not in r["flags"]'
run "$FAKE" --json mirror.ini -s device=cpu -s misbehave=waver -s 'input=constant value=0' -s repeat=1 -s warmup=1
expect_exit 0
expect_of cpu 'r["answer_repeats"] is False and "answer-varies" in r["flags"]'

begin "the processors that it may use"
run taskset -c 0 "$FAKE" --json mirror.ini
expect_of cpu 'r["environment"]["cpu_affinity"] == "0" and r["environment"]["threads"] == 1'

begin "device memory of a variant with scratch and state"
run "$FAKE" --json mirror.ini -s variant=state,copy -s offset=2
expect_exit 0
expect_of state 'r["device_memory"]["allocated_bytes"] == 3 * 4008 + 4000 + 2 * 4096'
expect_of copy 'r["device_memory"]["allocated_bytes"] == 3 * 4008 + 4000'
run "$FAKE" --json mirror.ini -s memory=zerocopy
expect_of copy 'r["device_memory"]["allocated_bytes"] == 4000'

begin "samples = yes"
run "$FAKE" --json mirror.ini -s samples=yes
expect_exit 0
expect_of copy 'len(r["samples_ms"]) == 7 and sorted(r["samples_ms"])[3] == r["time_ms"]["median"]'
expect_of cpu 'len(r["samples_ms"]) == 7 and max(r["samples_ms"]) == r["time_ms"]["max"]'

# --- launch ---
begin "launch = graph, many runs a sample"
run "$FAKE" --json null.ini -s launch=graph
expect_exit 0
expect_of nothing 'r["launch"] == "graph" and r["runs_per_sample"] == 1000 and "launch_note" not in r'
begin "launch = graph where a second run would be other work, or the cache not cold"
run "$FAKE" --json mirror.ini -s launch=graph
expect_exit 0
expect_of copy 'r["launch"] == "graph" and r["runs_per_sample"] == 1'
run "$FAKE" --json null.ini -s launch=graph -s cache=cold
expect_of nothing 'r["launch"] == "graph" and r["runs_per_sample"] == 1 and r["cache"] == "cold"'
begin "launch = graph on a device without"
GPURUN_FAKE_DEVICE=graphless run "$FAKE" --json mirror.ini -s launch=graph
expect_exit 0
expect_of copy 'r["launch"] == "stream" and r["launch_gaps"] == "hidden"'
expect_of copy 'r["launch_note"] == "read on the stream, for it cannot be in a graph: the fake device has no graphs"'
GPURUN_FAKE_DEVICE=graphless run "$FAKE" mirror.ini -s launch=graph
expect_line "$STDOUT" 'copy: read on the stream, for it cannot be in a graph: the fake device has no graphs'
expect_line "$STDOUT" 'read * hot cache, launch stream; 7 rounds (repeat); an empty reading is * us'
begin "a device that cannot be held"
GPURUN_FAKE_DEVICE=serial run "$FAKE" --json mirror.ini
expect_exit 0
expect_of copy 'r["launch_gaps"] == "included" and "launch-gaps" in r["flags"]'
expect_of copy 'r["launch_note"] == "launch gaps are in the readings: the fake device launches one by one"'
for warmup in 0 1 auto; do
    begin "holds that run out, warmup = $warmup"
    GPURUN_FAKE_DEVICE=late run "$FAKE" --json mirror.ini -s warmup=$warmup
    expect_exit 0
    expect_of copy 'r["launch_gaps"] == "included" and "launch-gaps" in r["flags"] and r["time_ms"]["n"] == 7'
    expect_of copy '"it waits for the device" in r["launch_note"]'
done
begin "a lost device, launch = graph"
GPURUN_FAKE_DEVICE=lost run timeout 20 "$FAKE" --json mirror.ini -s launch=graph
expect_exit 1

# --- cache ---
begin "cache = cold"
run "$FAKE" --json mirror.ini -s cache=cold
expect_exit 0
expect_of copy 'r["cache"] == "cold"'
# The system may not know the size of the CPU's caches: then its case says hot.
expect_of cpu 'r["cache"] in ("cold", "hot") and r["limit"]["copy_ms"]["n"] == 7'
begin "cache = cold, too little memory"
GPURUN_FAKE_DEVICE=small run "$FAKE" --json mirror.ini -s cache=cold
expect_exit 1
expect_of copy 'r["status"] == "out-of-memory" and "cache = cold: 2097152 bytes" in r["reason"]'
for setting in cache=warm launch=batch samples=3; do
    begin "-s $setting"
    run "$FAKE" mirror.ini -s $setting
    expect_exit 2
    expect_line "$STDERR" "-s: ${setting%=*}: *"
done

# --- when to stop ---
begin "repeat = auto: 10 rounds and half a second at the least, three seconds at the most"
run "$FAKE" --json mirror.ini -s repeat=auto
expect_exit 0
expect_of copy 'r["rounds"] == r["time_ms"]["n"] >= 10'
expect_of copy 'r["stop"] in ("precise", "cap")'
expect_of copy 'r["stop"] == "cap" or (r["time_ms"]["median_ci95"][1] / r["time_ms"]["median"] < 1.01)'
begin "repeat = auto, max_time"
run "$FAKE" --json mirror.ini -s repeat=auto -s max_time=0s
expect_of copy 'r["rounds"] == 1 and r["stop"] == "max_time"'
begin "repeat beats precision; min_time goes on"
run "$FAKE" --json mirror.ini -s repeat=1
expect_of copy 'r["rounds"] == 1 and r["stop"] == "repeat"'
run "$FAKE" --json mirror.ini -s repeat=2 -s min_time=200ms
expect_of copy 'r["rounds"] > 20 and r["stop"] == "repeat"'
run "$FAKE" --json mirror.ini -s repeat=1000000 -s max_time=300ms
expect_of copy '1 < r["rounds"] < 1000000 and r["stop"] == "max_time"'
begin "warmup = auto"
run "$FAKE" --json mirror.ini -s warmup=auto
expect_of copy 'r["settled"] in (True, False)'

# --- NVML ---
export LD_LIBRARY_PATH=$GPURUN_BUILD/tests/nvml
begin "what NVML says"
started=${EPOCHREALTIME/./}
run "$FAKE" --json mirror.ini -s min_time=400ms
elapsed_us=$((${EPOCHREALTIME/./} - started))
expect_exit 0
expect_of copy '0.05 < r["device_state"].pop("energy_s") < 1e-6 * '$elapsed_us' and "throttled" not in r["flags"]'
expect_of copy '{k: v for k, v in r["device_state"].items() if k != "energy_s"} == {"sm_clock_mhz": 1980,
    "memory_clock_mhz": 3201, "temperature_c": 41, "power_w": 350.5, "energy_j": 2.5, "throttle": []}'
started=${EPOCHREALTIME/./}
run "$FAKE" --json mirror.ini -s repeat=2
elapsed_us=$((${EPOCHREALTIME/./} - started))
expect_of copy '("energy_j" not in r["device_state"] or '$elapsed_us' >= 100000) and r["device_state"]["power_w"] == 350.5'
expect_of cpu '"device_state" not in r'
begin "a device held back by heat keeps its figures"
GPURUN_FAKE_NVML=hot run "$FAKE" --json mirror.ini
expect_exit 0
expect_of copy 'r["device_state"]["throttle"] == ["sw-thermal"] and "throttled" in r["flags"] and r["time_ms"]["n"] == 7'
expect_of cpu '"throttled" not in r["flags"]'
begin "an NVML that gives no readings"
GPURUN_FAKE_NVML=mute run "$FAKE" --json mirror.ini
expect_exit 0
expect_of copy 'r["device_state"] == {"throttle": []}'

begin "the table has the columns that some case has a figure for"
run "$FAKE" mirror.ini
expect_exit 0
expect_line "$STDOUT" 'case * median * GB/s  % of limit  end to end * vs cpu *'
run "$FAKE" -s device=cpu mirror.ini
expect_exit 0
expect_line "$STDOUT" 'case * median * GB/s  % of limit  end to end *'
expect_no_line "$STDOUT" ' vs '

finish 105
