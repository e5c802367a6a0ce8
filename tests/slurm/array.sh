#!/bin/bash
# A batch over a Slurm array as docs/slurm.md tells it, on a real munged, slurmctld and slurmd with two pretend GPUs: four
# tasks, one is killed and submitted again alone, and the merged report has every case once. The daemons live in name
# spaces of their own (processes, network, host name) that end with this script, however it ends; that takes root.
here=$(dirname "$(realpath "$0")")

skip() {
    echo "skipped: $1"
    exit 77
}

if [ -z "${GPURUN_IN_SLURM:-}" ]; then
    for program in munged slurmctld slurmd sbatch unshare ip; do
        PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null ||
            skip "no $program (apt-get install munge slurmctld slurmd slurm-client util-linux iproute2)"
    done
    [ "$(id -u)" -eq 0 ] || skip "Slurm's daemons and their name spaces want root"
    spaces=(--pid --fork --kill-child --mount-proc --net --uts --mount)
    why=$(unshare "${spaces[@]}" true 2>&1) || skip "no name spaces here: $why"
    GPURUN_IN_SLURM=1 PATH=$PATH:/usr/sbin:/sbin exec unshare "${spaces[@]}" bash "$0"
fi

# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
for name in $(compgen -e | grep -E '^(SLURM|SBATCH|SQUEUE|SCANCEL)_'); do
    unset "$name"
done
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes
export SLURM_CONF=$WORK/slurm.conf
NODE=gpurun-node

write_configuration() {
    mkdir -m 711 "$WORK/munge" "$WORK/state" "$WORK/spool"
    (umask 077 && head -c 128 /dev/urandom >"$WORK/munge/key")
    cat >"$SLURM_CONF" <<END
ClusterName=gpurun
SlurmctldHost=$NODE(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$WORK/munge/socket
CredType=cred/munge
StateSaveLocation=$WORK/state
SlurmdSpoolDir=$WORK/spool
SlurmctldPidFile=$WORK/slurmctld.pid
SlurmdPidFile=$WORK/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SchedulerParameters=sched_interval=1,batch_sched_delay=0
KillWait=2
NodeName=$NODE NodeAddr=127.0.0.1 CPUs=2 Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END
    printf "NodeName=$NODE Name=gpu File=/dev/%s\n" null zero >"$WORK/gres.conf"
}

start_daemons() {
    hostname $NODE
    echo "127.0.0.1 localhost $NODE" >"$WORK/hosts"
    mount --bind "$WORK/hosts" /etc/hosts # in this script's name space alone
    ip link set lo up
    ip address add 192.0.2.1/32 dev lo # an address of 127.0.0.0/8 alone is none to getaddrinfo
    munged --force --foreground --key-file="$WORK/munge/key" --socket="$WORK/munge/socket" \
        --pid-file="$WORK/munge/pid" --log-file="$WORK/munge/log" --seed-file="$WORK/munge/seed" \
        >"$WORK/munged.log" 2>&1 &
    wait_until test -S "$WORK/munge/socket" || return
    slurmctld -D -i >"$WORK/slurmctld.log" 2>&1 &
    slurmd -D >"$WORK/slurmd.log" 2>&1 &
    wait_until node_is idle
}

# What wait_until calls, shellcheck takes for unreachable.
# shellcheck disable=SC2317
node_is() {
    [ "$(timeout 5 sinfo --noheader --format %T 2>/dev/null)" = "$1" ]
}

# shellcheck disable=SC2317
is_over() {
    [ -z "$(squeue --noheader --jobs "$1" 2>/dev/null)" ]
}

# shellcheck disable=SC2317
has_lines() {
    [ -f "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}

# submit ARGUMENT...: the script of docs/slurm.md, as job JOB.
submit() {
    JOB=$(sbatch --parsable "$@" "$GPURUN_SOURCE/jobs/slurm/array.sbatch" 2>"$STDERR") || {
        fail "sbatch: $(cat "$STDERR")"
        finish 1
    }
}

# kill_task N: kill -9 of all that the task runs; scancel would ask gpurun first, which then records an end.
kill_task() {
    local process
    for process in /proc/[0-9]*; do
        if grep -qzx "SLURM_ARRAY_TASK_ID=$1" "$process/environ" 2>/dev/null &&
            [ "$process/exe" -ef "$GPURUN" ]; then
            kill -KILL "${process#/proc/}"
        fi
    done
}

write_jobs() {
    printf '[global]\nplugin = mirror\ndevice = cpu\nrepeat = 1\nwarmup = 0\nmin_time = 400ms\n'
    for ((i = 0; i < 24; i++)); do printf '[job%s]\n' $i; done
}

begin "the daemons"
write_configuration
if ! start_daemons; then
    fail "they did not come up"
    tail -n 20 "$WORK"/*.log
    finish 1
fi
mkdir bin
ln -s "$GPURUN" bin/gpurun
export PATH=$PWD/bin:$PATH JOBS=job.ini
write_jobs >job.ini

begin "an array of four, one task killed"
submit
whole=$(gpurun job.ini --dry-run --shard 3/4 2>/dev/null | grep -c ': would run')
expect "a part of $whole" test "$whole" -ge 3
expect "no record of task 2" wait_until has_lines records-2.jsonl 1
run scontrol show job --details "${JOB}_2"
expect_line "$STDOUT" '*GRES=gpu:1(IDX:*)*'
kill_task 2
expect "the array does not end" wait_until is_over "$JOB"
expect "nothing was left undone: killed too late" test "$(wc -l <records-2.jsonl)" -lt "$whole"
for task in 0 1 3; do
    expect_line "gpurun-${JOB}_$task.out" "gpurun: part $((task + 1)) of 4: *"
    expect_line "gpurun-${JOB}_$task.out" 'PASSED: *'
done
run gpurun report records-0.jsonl records-1.jsonl records-2.jsonl records-3.jsonl
expect_no_line "$STDOUT" ': 24 of 24 cases passed'

begin "that task again, alone"
submit --array=2
expect "it does not end" wait_until is_over "$JOB"
expect_line "gpurun-${JOB}_2.out" 'gpurun: part 3 of 4: *'
expect_line "gpurun-${JOB}_2.out" "PASSED: $whole of $whole cases passed; * resumed"

begin "every case once"
run gpurun report records-0.jsonl records-1.jsonl records-2.jsonl records-3.jsonl
expect_exit 0
expect_empty "$STDERR"
expect_line "$STDOUT" 'PASSED: 24 of 24 cases passed'
python3 - records-?.jsonl >"$WORK/.cases" 2>&1 <<'END'
import json, sys
jobs = [json.loads(line)["job"] for path in sys.argv[1:] for line in open(path)]
assert sorted(jobs) == sorted(f"job.ini:job{i}" for i in range(24)), sorted(jobs)
END
expect_empty "$WORK/.cases"

begin "scancel is told: what did not run is interrupted"
rm -f records-2.jsonl
submit --array=2
expect "no record" wait_until has_lines records-2.jsonl 1
scancel "${JOB}_2"
expect "it does not end" wait_until is_over "$JOB"
expect_line records-2.jsonl '*"interrupted"*'
expect "$(wc -l <records-2.jsonl) of $whole" test "$(wc -l <records-2.jsonl)" -eq "$whole"

# shellcheck disable=SC2046 # one word a process
{ kill -KILL $(jobs -p) && wait; } 2>/dev/null # else the shell tells of each
finish 20
