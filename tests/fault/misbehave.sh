#!/bin/bash
# Plugins that end, block, eat up or change the process they run in, from each hook and from an ELF constructor: the
# cases they must cost and no others, nothing of it in the next hook or job, no process left.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes
export MISBEHAVE_CHILD=$PWD/children
umask 022

german=yes
if ! localedef -i de_DE -f UTF-8 "$PWD/de_DE.UTF-8" 2>"$WORK/.locale"; then
    german=no
    echo "no German locale can be made here, C.UTF-8 stands in: $(head -n 1 "$WORK/.locale")"
fi
export LOCPATH=$PWD

hooks='setup run_cpu run_gpu verify teardown'

# start_file: the part of job.ini that is for all jobs. Each looks in every hook for traces of the jobs before it.
start_file() {
    rm -f children
    cat >job.ini <<'END'
[global]
plugin = mirror
variant = copy
repeat = 2
warmup = 2
witness = yes
memory_limit = 300M
timeout = 20s
END
}

# add_jobs SECTION WHAT... [-- LINE...]: jobs that misbehave, one for each hook and WHAT.
add_jobs() {
    local section=$1 whats=
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        whats=$whats${whats:+, }$1
        shift
    done
    printf '[%s]\nhook = %s\nmisbehave = %s\n' "$section" "${hooks// /, }" "$whats" >>job.ini
    [ $# -lt 2 ] || printf '%s\n' "${@:2}" >>job.ini
}

# No process that a plugin forked lives on.
no_stray() {
    local pid
    [ -e children ] || return 0
    while read -r pid; do
        checks=$((checks + 1))
        if [ -e "/proc/$pid" ]; then
            fail "process $pid is left"
            kill -KILL "$pid"
        fi
    done <children
}

# expect_records TEXT: as expect_cases, with sizes as X.
expect_records() {
    sed -i -E 's/[0-9.]+(e[+-][0-9]+)? GB/X GB/g' "$STDOUT"
    expect_cases "$1"
}

segv='killed by signal 11 (Segmentation fault)'
abrt='killed by signal 6 (Aborted)'
fpe='killed by signal 8 (Floating point exception)'
ended='the process ended by itself with exit code 0'
late='not done after 1.5s (timeout)'
gone='the process ended by itself with exit code 1'
muddle='it closed its channel or wrote to it, and went on: stopped'
much='took X GB of memory, more than its X GB: stopped (memory_limit)'

# --- what ends the worker, or has it ended ---

# expect_lost SECTION WHAT STATUS HOW: what that costs in each hook, into `wanted`; in teardown, a line on standard error.
# A job's name has the keys of which there are several.
wanted=''
torn=()
expect_lost() {
    local what=$2 status=$3 how=$4 hook name
    for hook in $hooks; do
        name=$1/hook=$hook,misbehave=$what
        [ "$1" = ends ] || name=$1/hook=$hook
        case $hook in
        setup) wanted+="$name cpu $status: setup: $how"$'\n' ;;
        run_cpu) wanted+="$name cpu $status: proof: $how"$'\n'"$name copy passed"$'\n' ;;
        run_gpu) wanted+="$name copy $status: proof: $how"$'\n'"$name cpu passed"$'\n' ;;
        verify) wanted+="$name cpu $status: proof: $how"$'\n'"$name copy $status: proof: $how"$'\n' ;;
        teardown)
            wanted+="$name cpu passed"$'\n'"$name copy passed"$'\n'
            torn+=("gpurun: job.ini:$name: teardown: ${how//X GB/* GB}")
            ;;
        esac
    done
}

# The order of a sweep: every WHAT of the first hook, then of the next.
sort_wanted() {
    local section hook what
    for section in ends waits takes; do
        for hook in $hooks; do
            for what in crash abort exit quit divide overflow close-channel write-channel; do
                grep "^$section/hook=$hook,misbehave=$what " <<<"$wanted"
            done
            grep "^$section/hook=$hook " <<<"$wanted"
        done
    done
}

begin "what ends a worker, in every hook"
start_file
add_jobs ends crash abort exit quit divide overflow close-channel write-channel
expect_lost ends crash crashed "$segv"
expect_lost ends abort crashed "$abrt"
expect_lost ends exit crashed "$ended"
expect_lost ends quit crashed "$ended"
expect_lost ends divide crashed "$fpe"
expect_lost ends overflow crashed "$segv"
expect_lost ends close-channel crashed "$gone"
expect_lost ends write-channel crashed "$muddle"
add_jobs waits hang -- 'timeout = 1500ms'
expect_lost waits hang timeout "$late"
if ! is_sanitized; then
    add_jobs takes devour
    expect_lost takes devour out-of-memory "$much"
fi
printf '[good]\n' >>job.ini
run timeout 250 "$FAKE" job.ini --json
expect_exit 1
expect_records "$(sort_wanted)
good cpu passed
good copy passed
"
for line in "${torn[@]}"; do
    expect_line "$STDERR" "$line"
done

# --- what changes the process, and nothing comes of it: all pass, in the same job and in the next ---

begin "what a worker outlives, in every hook"
start_file
whats='close-streams write-streams print chdir umask locale signals float-mode child daemon zombie'
# shellcheck disable=SC2086
add_jobs bears $whats
wanted=
for hook in $hooks; do
    for what in $whats; do
        wanted+="bears/hook=$hook,misbehave=$what cpu passed"$'\n'"bears/hook=$hook,misbehave=$what copy passed"$'\n'
    done
done
run timeout 250 "$FAKE" job.ini --json
expect_exit 0
expect_records "$wanted"
expect_no_line "$STDERR" 'gpurun: job.ini'
expect "no child was left to be ended" test "$(wc -l <children)" -ge 10
no_stray

begin "threads that outlive their hook end with the worker"
start_file
hooks='setup run_cpu verify teardown' add_jobs bears thread
run timeout 60 "$GPURUN" job.ini -s device=cpu --json
expect_exit 0
expect_records "$(printf 'bears/hook=%s cpu passed\n' setup run_cpu verify teardown)
"

if ! is_sanitized; then
    begin "a leak of 1 GB per run"
    start_file
    printf '[bad]\nhook = run_cpu\nmisbehave = leak\n[good]\n' >>job.ini
    run "$GPURUN" job.ini -s device=cpu -s memory_limit=1200M --json
    expect_exit 1
    expect_records 'bad cpu out-of-memory: warm-up: took X GB of memory, more than its X GB: stopped (memory_limit)
good cpu passed
'
    begin "what one job leaked is not held against the next"
    run "$GPURUN" job.ini -s device=cpu -s memory_limit=1500M -s hook=teardown -s misbehave=leak
    expect_exit 0
    expect_empty "$STDERR"
fi

begin "a hundred megabytes go to standard error"
start_file
printf '[bad]\nhook = run_cpu\nmisbehave = flood\n' >>job.ini
run timeout 120 "$GPURUN" job.ini -s device=cpu -s repeat=1 -s warmup=0 --json
expect_exit 0
expect "not JSON" python3 -m json.tool "$STDOUT" /dev/null
expect "$(stat -c %s "$STDERR") bytes" test "$(stat -c %s "$STDERR")" -ge 200000000
: >"$STDERR"

# --- while the plugin is loaded ---

# loads WHATS CODE LINE [TIMEOUT]: the constructor of the first job's plugin does WHATS; that job's record, the other passes.
loads() {
    begin "constructor $1"
    rm -f children
    printf '[bad]\nplugin = constructor\ntimeout = %s\nmemory_limit = 300M\n[good]\nplugin = mirror\nrepeat = 1\nwitness = yes\n' "${4:-20s}" >job.ini
    MISBEHAVE=$1 run timeout 60 "$GPURUN" job.ini --json
    expect_exit "$2"
    expect_records "bad cpu $3
good cpu passed
"
    no_stray
}

loads crash 1 "crashed: start: $segv"
loads abort 1 "crashed: start: $abrt"
loads exit 1 "crashed: start: $ended"
loads quit 1 "crashed: start: $ended"
loads divide 1 "crashed: start: $fpe"
loads overflow 1 "crashed: start: $segv"
loads hang 1 "timeout: start: $late" 1500ms
loads spin 1 "timeout: start: $late" 1500ms
loads close-channel 1 "crashed: start: $gone"
loads write-channel 1 "crashed: start: $muddle"
is_sanitized || loads devour 1 "out-of-memory: start: $much"
loads close-streams,write-streams,print,chdir,umask,locale,signals,float-mode,thread,child,daemon,zombie 0 passed

[ $german = yes ] || echo "not tested: a locale with commas"
finish 70
