#!/bin/bash
# Many cases: how long 10,000 empty ones take, that each has its record, and that the parent grows by none of them.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

cases=10000
if is_sanitized; then # which keeps what was freed
    cases=2000
    export ASAN_OPTIONS=$ASAN_OPTIONS:quarantine_size_mb=1
fi
printf '[global]\nplugin = mirror\ndevice = cpu\nrepeat = 1\nwarmup = 0\n[s]\nn = 1..%s+1\n' $cases >many.ini

begin "$cases cases"
run python3 - "$GPURUN" $cases <<'EOP'
import json, resource, subprocess, sys, time
gpurun, cases = sys.argv[1], int(sys.argv[2])
batch = subprocess.Popen([gpurun, "many.ini", "--records", "many.jsonl"], stdout=subprocess.DEVNULL)
kib, lines, records = {}, 0, None
while batch.poll() is None:
    time.sleep(0.02)
    try:
        records = records or open("many.jsonl", "rb")
    except FileNotFoundError:
        continue
    lines += records.read().count(b"\n")
    status = open(f"/proc/{batch.pid}/status").read()
    if "RssAnon" in status:
        kib[lines] = int(status.split("RssAnon:")[1].split()[0])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
assert batch.returncode == 0, batch.returncode
jobs = [json.loads(line)["job"] for line in open("many.jsonl")]
assert len(jobs) == len(set(jobs)) == cases, (len(jobs), len(set(jobs)))
early = max(kib[n] for n in kib if 0 < n < cases // 5)
late = max(kib[n] for n in kib if n > cases * 4 // 5)
print(f"{cases} cases in {used.ru_utime + used.ru_stime:.1f} s of processor time; the parent held {early} KiB after the first, {late} KiB at the end")
assert late - early < 1024, "it grew"
EOP
expect_exit 0
cat "$STDOUT" "$STDERR"
# 10 s; a busy machine needs longer, but not much more of its processors.
took=$(sed -n 's/.* in \([0-9]*\)\..*/\1/p' "$STDOUT")
is_sanitized || expect "$took s" test "${took:-999}" -lt 60

finish 1
