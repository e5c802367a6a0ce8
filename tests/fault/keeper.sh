#!/bin/bash
# The processes of a batch: the parent, a keeper, its worker. Whichever is killed, nothing is left of a plugin's either.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes
export MISBEHAVE_CHILD=$PWD/children

cat >job.ini <<'EOF'
[global]
plugin = mirror
device = cpu
repeat = 1
warmup = 0
[leaves]
misbehave = daemon
hook = verify
min_time = 30s
timeout = 40s
[after]
EOF

child_of() {
    local first
    read -r first _ <"/proc/$1/task/$1/children"
    echo "$first"
}

# start: the batch in the background, until its first job has left a daemon; PARENT, KEEPER, WORKER.
start() {
    rm -f children
    "$GPURUN" job.ini >"$STDOUT" 2>"$STDERR" &
    PARENT=$!
    wait_until test -s children || {
        fail "no daemon"
        finish 1
    }
    KEEPER=$(child_of $PARENT)
    WORKER=$(child_of "$KEEPER")
    expect "not one daemon" test "$(xargs -I@ find /proc/@ -maxdepth 0 <children 2>/dev/null | wc -l)" -eq 1
}

end() {
    CODE=0
    wait $PARENT 2>/dev/null || CODE=$?
}

all_gone() {
    local pid
    for pid in "$KEEPER" "$WORKER" $(cat children); do
        expect "process $pid is left" wait_until is_gone "$pid"
    done
}

begin "the worker is killed"
start
kill -KILL "$WORKER"
end
expect_exit 1
expect_line "$STDOUT" 'cpu: *: killed by signal 9 (Killed): by the system for memory, or by hand'
expect_line "$STDOUT" 'FAILED: 1 of 2 cases passed, 1 not'
all_gone

begin "the parent is killed"
start
kill -KILL $PARENT
end
expect_exit 137
all_gone

begin "the keeper is killed: what a plugin left is nobody's then, and holds the channel; told long before the timeout"
start
stray=$(tail -n 1 children)
SECONDS=0
kill -KILL "$KEEPER"
end
expect "$SECONDS s" test $SECONDS -lt 20
expect_exit 1
expect_line "$STDOUT" 'cpu: *: killed by signal 9 (Killed): by the system for memory, or by hand'
expect_line "$STDOUT" 'FAILED: 1 of 2 cases passed, 1 not'
expect "the worker is left" wait_until is_gone "$WORKER"
expect "the daemon does not hold the channel" test -e "/proc/$stray/exe"
kill -KILL "$stray"

begin "everybody gets SIGTERM, as from Slurm: the parent decides"
start
kill -TERM "$KEEPER" "$WORKER"
sleep 0.5
expect "the worker has ended" test -e "/proc/$WORKER/exe"
kill -TERM $PARENT
end
expect_exit 130
expect_line "$STDOUT" 'INTERRUPTED: 0 of 2 cases passed, 2 not'
all_gone

begin "all are stopped for longer than the timeout, and go on"
printf '[pauses]\nplugin = mirror\ndevice = cpu\nrepeat = 2\nmin_time = 2s\ntimeout = 4s\n' >pause.ini
"$GPURUN" pause.ini --records pause.jsonl >"$STDOUT" 2>"$STDERR" &
PARENT=$!
wait_until test -e pause.jsonl
wait_until eval 'KEEPER=$(child_of $PARENT) && WORKER=$(child_of "$KEEPER") && [ -n "$WORKER" ]' 2>/dev/null
kill -STOP $PARENT "$KEEPER" "$WORKER"
sleep 5
kill -CONT $PARENT "$KEEPER"
sleep 0.3
kill -CONT "$WORKER"
end
expect_exit 0
expect_line "$STDOUT" 'PASSED: 1 of 1 cases passed'

begin "a limit below that of the job before counts at once, though the keeper sleeps until the old one could be met"
cat >limits.ini <<'EOF'
[global]
plugin = mirror
device = cpu
repeat = 1
warmup = 0
[before]
memory_limit = 60G
[above]
memory_limit = 300M
misbehave = leak
hook = run_cpu
EOF
if is_sanitized; then
    echo "not tested: memory limits, as the sanitizer takes memory of its own"
else
    run timeout 60 "$GPURUN" limits.ini
    expect_exit 1
    expect_line "$STDOUT" 'cpu: *: took * GB of memory, more than its 0.3 GB: stopped (memory_limit)'
    expect_line "$STDOUT" 'FAILED: 1 of 2 cases passed, 1 not'
fi

begin "a /proc of other process numbers: nobody else's process is looked at or ended"
if unshare --pid --fork true 2>"$WORK/.unshare"; then
    run timeout 60 unshare --pid --fork "$GPURUN" job.ini --only '*:after'
    expect_exit 0
    expect_line "$STDOUT" 'PASSED: 1 of 1 cases passed'
    expect_empty "$STDERR"
else
    echo "not tested: $(head -n 1 "$WORK/.unshare")"
fi

finish 28
