#!/bin/bash
# The second Ctrl-C, a signal before anything runs, a reader that goes away, a terminal.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

for what in twice resume checking head terminal; do
    begin $what
    run timeout 120 python3 "$here/signals.py" "$GPURUN" $what
    expect_exit 0
    expect_empty "$STDERR"
done

finish 10
