#!/bin/bash
# The teaching text's example of `split`: eight digits of one bit, and the order that they are brought into.
# tests/gpu-suite holds every variant to the same answer.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"

begin "the eight digits"
cd "$GPURUN_SOURCE" || exit 1 # the job names its file from there
run "$GPURUN" jobs/sort_digits.ini --json
cd "$WORK/run" || exit 1
expect_exit 0
expect_empty "$STDERR"
expect "another order" python3 - "$STDOUT" <<'END'
import json, sys
records = json.load(open(sys.argv[1]))["records"]
assert any(r["variant"] == "cpu" for r in records)
for r in records:
    assert r["status"] == "passed", (r["variant"], r["reason"])
    assert r["shown"]["sorted"] == [0, 0, 0, 0, 1, 1, 1, 1], r["shown"]
    assert r["shown"]["sorted_values"] == [0, 1, 3, 6, 2, 4, 5, 7], r["shown"]
END

begin "the digits come from their script"
expect "no such script" python3 "$GPURUN_SOURCE/plugins/sort/tests/make_eight_digits.py" digits.npy
expect "other digits" cmp digits.npy "$GPURUN_SOURCE/jobs/data/eight_digits.npy"

finish 5
