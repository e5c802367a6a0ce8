#!/bin/bash
# Ctrl-C, a parent that is killed, time-outs: what is on disk afterwards, how long it takes, and that no
# process is left.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes
export MISBEHAVE_HANGS=$PWD/hangs

cat >job.ini <<'EOF'
[global]
plugin = mirror
repeat = 2
[before]
[hang]
variant = copy, hang, peer
[after]
variant = copy
EOF

children_of() {
    cat /proc/"$1"/task/*/children 2>/dev/null
}

# start ARGUMENT...: the program in the background, its process into PID, once it hangs its worker in
# WORKER, and how long that took into START_MS. SIGINT is at its default there, as in a terminal; the
# shell would have it ignored.
start() {
    local before
    before=$(now_ms)
    rm -f records.jsonl hangs
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$@" --records records.jsonl >"$STDOUT" 2>"$STDERR" &
    PID=$!
    wait_until test -s hangs || fail "nothing hangs"
    START_MS=$(($(now_ms) - before))
    WORKER=$(children_of "$PID")
    WORKER=${WORKER%% }
    expect "no worker" test -n "$WORKER"
}

# is_soon MS [LEAST]: not over LEAST, 2000, or on a busy machine ten times what the start took.
is_soon() {
    local most=${2:-2000}
    [ "$1" -lt $((10 * START_MS > most ? 10 * START_MS : most)) ]
}

# end SIGNAL PROCESS: sends it, waits for PID; its exit code into CODE, the time into MS.
end() {
    local before
    before=$(now_ms)
    kill -"$1" "$2"
    CODE=0
    wait "$PID" 2>/dev/null || CODE=$?
    MS=$(($(now_ms) - before))
}

for signal in INT TERM; do
    begin "SIG$signal while a variant hangs"
    start "$FAKE" job.ini
    end $signal "$PID"
    expect_exit 130
    expect "it took $MS ms" is_soon "$MS"
    expect_line "$STDOUT" 'INTERRUPTED: 2 of 8 cases passed, 6 not'
    expect "a worker is left" wait_until is_gone "$WORKER"
    python3 - records.jsonl >"$WORK/.cases" 2>&1 <<'EOF'
import json, sys
for line in open(sys.argv[1]):
    r = json.loads(line)
    print(r["job"], r["variant"], r["status"], r["reason"])
EOF
    expect_line "$WORK/.cases" 'job.ini:before * passed'
    expect_line "$WORK/.cases" 'job.ini:hang hang interrupted interrupted'
    expect_line "$WORK/.cases" 'job.ini:hang peer interrupted interrupted'
    expect_line "$WORK/.cases" 'job.ini:after * interrupted interrupted'
done

begin "SIGINT with --json"
start "$FAKE" job.ini --json
end INT "$PID"
expect_exit 130
expect "not JSON, or not 130" python3 -c 'import json, sys
sys.exit(json.load(open(sys.argv[1]))["exit"] != 130)' "$STDOUT"

begin "SIGINT to the worker is the parent's to decide"
start "$FAKE" job.ini
kill -INT "$WORKER"
sleep 0.3
expect "the worker died of it" test -e "/proc/$WORKER"
end INT "$PID"
expect_exit 130

begin "the parent is killed"
start "$FAKE" job.ini
end KILL "$PID"
expect_exit 137
expect "the worker is left" wait_until is_gone "$WORKER"
expect "a record is cut" python3 -c 'import json, sys
[json.loads(line) for line in open(sys.argv[1])]' records.jsonl

begin "the worker is killed"
start "$FAKE" job.ini
end KILL "$WORKER"
expect_exit 1
expect "it was noticed late: $MS ms" is_soon "$MS" 3000
expect_line records.jsonl '*"crashed"*killed by signal 9 (Killed): by the system for memory, or by hand*'
expect_line "$STDOUT" 'FAILED: 7 of 8 cases passed, 1 not'

begin "timeout is honoured"
before=$(now_ms)
run "$FAKE" job.ini --only '*:hang' -s variant=hang -s cpu=off -s timeout=2s --json
MS=$(($(now_ms) - before))
expect_exit 1
expect_cases 'hang hang timeout: proof: not done after 2s (timeout)
'
expect "it took $MS ms" test "$MS" -ge 2000
expect "it took $MS ms" is_soon $((MS - 2000))

begin "a batch of hangs"
{
    printf '[global]\nplugin = mirror\nvariant = hang, copy\ntimeout = 1s\nrepeat = 1\n'
    for ((i = 0; i < 3; i++)); do printf '[job%s]\n' "$i"; done
} >hangs.ini
run "$FAKE" hangs.ini
expect_exit 1
expect_line "$STDOUT" 'FAILED: 6 of 9 cases passed, 3 not'

finish 37
