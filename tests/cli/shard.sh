#!/bin/bash
# --shard: every job in exactly one part, always the same; Slurm's variables as Slurm sets them.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes
for name in $(compgen -e | grep '^SLURM_'); do
    unset "$name"
done

{
    printf '[global]\nplugin = mirror\ndevice = cpu\nrepeat = 1\nwarmup = 0\n'
    for ((i = 0; i < 40; i++)); do printf '[job%s]\n' "$i"; done
} >job.ini

# taken ARGUMENT...: the jobs that a dry run lists, into the file TAKEN; what it says of its part into PART.
taken() {
    run "$GPURUN" job.ini --dry-run "$@"
    grep ': would run' "$STDOUT" >taken
    PART=$(sed -n 's/^gpurun: part \([0-9]* of [0-9]*\): .*/\1/p' "$STDERR")
}

for n in 1 2 3 7 40; do
    begin "$n parts"
    : >all
    for ((i = 1; i <= n; i++)); do
        taken --shard $i/$n
        expect "part '$PART'" test "$PART" = "$i of $n"
        expect_line "$STDERR" "gpurun: part $i of $n: $(wc -l <taken) of 40 jobs"
        cat taken >>all
    done
    run "$GPURUN" job.ini --dry-run
    expect "not every job once" cmp <(grep ': would run' "$STDOUT" | sort) <(sort all)
done

begin "a job stays in its part, whatever else there is"
taken --shard 2/3
mv taken before
{
    printf '[global]\nplugin = mirror\ndevice = cpu\nrepeat = 9\nwarmup = 0\n'
    for ((i = 39; i >= 0; i -= 2)); do printf '[job%s]\nn = 7\n' "$i"; done
} >odd.ini
mkdir odd && mv odd.ini odd/job.ini
(cd odd && "$GPURUN" job.ini --dry-run --shard 2/3 2>/dev/null | grep ': would run') | sort >odd.txt
expect "other jobs" cmp odd.txt <(grep -E 'job[0-9]*[13579] ' before | sort)
expect "none" test -s odd.txt

begin "a run takes its part"
for i in 1 2 3; do
    run "$GPURUN" job.ini --shard $i/3 --records part$i.jsonl
    expect_exit 0
done
run "$GPURUN" report part1.jsonl part2.jsonl part3.jsonl
expect_line "$STDOUT" 'PASSED: 40 of 40 cases passed'
expect "40 lines" test "$(cat part?.jsonl | wc -l)" -eq 40
taken --resume-from part2.jsonl
expect "resumed what another part took" test "$(wc -l <taken)" -eq $((40 - $(wc -l <part2.jsonl)))

for text in 0/4 5/4 0/0 1/0; do
    begin "--shard $text"
    run "$GPURUN" job.ini --shard $text
    expect_exit 2
    expect_empty "$STDOUT"
    expect_text "$STDERR" "gpurun: --shard: there is no part ${text%/*} of ${text#*/}: they count from 1; see gpurun --help
"
done
for text in x 1 1/ /4 1/x -1/4 1/4x ' 1/4' 1//4 slurm/ slurm/0 slurm/x slurm4 9999999/99999999 99999999999999999999/2; do
    begin "--shard '$text'"
    run "$GPURUN" job.ini --shard "$text"
    expect_exit 2
    expect_text "$STDERR" "gpurun: --shard: '$text' is no part: write 2/5, slurm or slurm/5; see gpurun --help
"
done

# array ID MIN MAX STEP COUNT SHARD: a task of an array, and what --shard is; then PART as taken sets it.
array() {
    export SLURM_ARRAY_TASK_ID=$1 SLURM_ARRAY_TASK_MIN=$2 SLURM_ARRAY_TASK_MAX=$3 SLURM_ARRAY_TASK_STEP=$4
    export SLURM_ARRAY_TASK_COUNT=$5
    taken --shard "$6"
}
# refuses TEXT: the last call did, with a message that holds TEXT.
refuses() {
    expect_exit 2
    expect_empty "$STDOUT"
    expect_line "$STDERR" "gpurun: --shard: *$1*"
}
no_array() {
    unset SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_STEP SLURM_ARRAY_TASK_COUNT
}

# whole MIN MAX STEP: the tasks of this array take all parts, each one.
whole() {
    local id count=$((($2 - $1) / $3 + 1))
    begin "array $1-$2:$3"
    for ((id = $1; id <= $2; id += $3)); do
        array "$id" "$1" "$2" "$3" $count slurm
        expect "no part" test -n "$PART"
        echo "$PART"
    done | sort -u >parts
    expect "$(wc -l <parts) parts, not $count" test "$(wc -l <parts)" -eq $count
    expect "other counts" test "$(grep -c " of $count\$" parts)" -eq $count
}
whole 0 3 1
whole 1 4 1
whole 5 8 1
whole 0 6 2
whole 1 10 3
whole 7 22 5
whole 2 3 1

begin "a task finds its part again when it is submitted alone"
for first in 0 1; do
    for ((id = first; id < first + 4; id++)); do
        array $id $first $((first + 3)) 1 4 slurm
        before=$PART
        array $id $id $id 1 1 slurm/4
        expect "task $id: $PART, before $before" test "$PART" = "$before"
        array $id $first $((first + 3)) 1 4 slurm/4
        expect "task $id: $PART, before $before" test "$PART" = "$before"
    done
done

begin "what may be a part of an array"
array 3 3 3 1 1 slurm
refuses 'this array of 1 task may be part of an earlier one submitted again: say how many parts there are, --shard slurm/N'
array 3 1 3 1 2 slurm
refuses 'this array of 2 tasks may be part of an earlier one*slurm/N'
array 2 0 4 2 2 slurm
refuses '*slurm/N'
array 1 0 4 2 3 slurm
refuses '*slurm/N'
array 0 0 3 0 4 slurm
refuses '*slurm/N'
begin "outside"
array 9 0 3 1 4 slurm
refuses 'task 9 is outside of the array 0-3'
array 9 0 9 1 10 slurm/4
refuses 'task 9 is outside of 4 parts: number the array 0-3 or 1-4'
array 4 0 6 2 4 slurm/4
refuses 'with a step of 2 in the array, slurm/N cannot*--shard i/4'
begin "what Slurm would not set"
array x 0 3 1 4 slurm
refuses "SLURM_ARRAY_TASK_ID is 'x', not a number that Slurm would set"
array 0 0 3 1 4x slurm
refuses "SLURM_ARRAY_TASK_COUNT is '4x', not a number*"
array 0 -1 3 1 4 slurm
refuses "SLURM_ARRAY_TASK_MIN is '-1'*"
array 0 0 '' 1 4 slurm
refuses "SLURM_ARRAY_TASK_MAX is ''*"
array 0 0 3 a 4 slurm
refuses "SLURM_ARRAY_TASK_STEP is 'a'*"

begin "an array wins over srun's rank"
export SLURM_PROCID=0 SLURM_NTASKS=1
array 2 0 3 1 4 slurm
expect "part $PART" test "$PART" = "3 of 4"
no_array

begin srun
for rank in 0 1 2; do
    SLURM_PROCID=$rank SLURM_NTASKS=3
    taken --shard slurm
    expect "part $PART" test "$PART" = "$((rank + 1)) of 3"
    taken --shard slurm/3
    expect "part $PART" test "$PART" = "$((rank + 1)) of 3"
done
SLURM_PROCID=3
taken --shard slurm
refuses 'rank 3 is outside of 3 tasks'
taken --shard slurm/4
refuses 'slurm/4, but srun started 3 tasks'
SLURM_PROCID=y
taken --shard slurm
refuses "SLURM_PROCID is 'y'*"
SLURM_PROCID=1 SLURM_NTASKS=z
taken --shard slurm
refuses "SLURM_NTASKS is 'z'*"
unset SLURM_NTASKS
taken --shard slurm
refuses 'SLURM_PROCID is set, SLURM_NTASKS is not'
taken --shard slurm/2
expect "part $PART" test "$PART" = "2 of 2"
unset SLURM_PROCID

begin "not under Slurm"
taken --shard slurm
refuses 'neither SLURM_ARRAY_TASK_ID nor SLURM_PROCID is set: this is no task of a Slurm array or of srun'

begin "never by itself"
export SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=3 SLURM_ARRAY_TASK_STEP=1
export SLURM_ARRAY_TASK_COUNT=4
taken
expect "a part" test "$(wc -l <taken)" -eq 40

begin "jobs/slurm/array.sbatch"
sbatch=$GPURUN_SOURCE/jobs/slurm/array.sbatch
# As Slurm would: each task in the folder of the submission, one of them killed and submitted again.
mkdir slurm
export JOBS=../job.ini SLURM_SUBMIT_DIR=$PWD/slurm
PATH=$(dirname "$GPURUN"):$PATH
for id in 0 1 2 3; do
    SLURM_ARRAY_TASK_ID=$id run bash "$sbatch"
    expect_exit 0
done
expect "4 files" test "$(find slurm -name '*.jsonl' | wc -l)" -eq 4
run "$GPURUN" report slurm/*.jsonl
expect_line "$STDOUT" 'PASSED: 40 of 40 cases passed'
head -n 2 slurm/records-2.jsonl >half
printf '{"torn' >>half
mv half slurm/records-2.jsonl
SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MIN=2 SLURM_ARRAY_TASK_MAX=2 SLURM_ARRAY_TASK_COUNT=1 run bash "$sbatch"
expect_line "$STDOUT" 'PASSED: * cases passed; 2 resumed'
run "$GPURUN" report slurm/*.jsonl
expect_line "$STDOUT" 'PASSED: 40 of 40 cases passed'
expect "each once" test "$(cat slurm/*.jsonl | wc -l)" -eq 40

finish 150
