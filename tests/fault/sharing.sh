#!/bin/bash
# Who else computes on the device: the flag shared-device, with a pretend NVML (fakes/nvml/nvml_fake.c).
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

printf '[job]\nplugin = mirror\nvariant = copy\nrepeat = 1\n' >job.ini

# expect_flags TEXT: of the last run with --json, one line per record.
expect_flags() {
    python3 - "$STDOUT" >"$WORK/.flags" 2>&1 <<'END'
import json, sys
for r in json.load(open(sys.argv[1]))["records"]:
    e = r["environment"]
    print(r["variant"], r["status"], *r["flags"], e.get("other_processes", ""), e.get("other_pids", ""))
END
    sed -i 's/ *$//' "$WORK/.flags"
    expect_text "$WORK/.flags" "$1"
}

begin "no NVML"
run "$FAKE" --json job.ini
expect_exit 0
expect_flags 'cpu passed
copy passed
'

export LD_LIBRARY_PATH=$GPURUN_BUILD/tests/nvml
for words in '' dead 'none 11'; do
    begin "NVML: '$words'"
    export GPURUN_FAKE_NVML=$words
    run "$FAKE" --json job.ini
    expect_exit 0
    expect_empty "$STDERR"
    expect_flags 'cpu passed
copy passed
'
done

begin "two others"
GPURUN_FAKE_NVML='4242 77' run "$FAKE" --json job.ini
expect_exit 0
expect_flags 'cpu passed
copy passed shared-device 2 [4242, 77]
'

begin "more than there was room for at first"
GPURUN_FAKE_NVML=$(seq 1001 1040 | tr '\n' ' ') run "$FAKE" --json job.ini
expect_exit 0
expect_flags "cpu passed
copy passed shared-device 40 [$(seq -s ', ' 1001 1016)]
"

begin "in a container with numbers of its own"
GPURUN_FAKE_NVML='alien 4242' run "$FAKE" --json job.ini
expect_exit 0
expect_flags 'cpu passed
copy passed shared-device 1 []
'

finish 15
