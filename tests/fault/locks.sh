#!/bin/bash
# Two gpuruns on one machine: neither measures the other, and no lock outlives its owner.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

for what in waiting interrupted crashed_owner other_device replaced_worker traps folder cpu turn; do
    begin $what
    rm -rf "${GPURUN_LOCK_DIR:?}"/*
    run timeout 120 python3 "$here/locks.py" "$FAKE" $what
    expect_exit 0
    expect_empty "$STDERR"
done

finish 18
