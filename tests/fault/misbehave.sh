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

# write_job HOOK WHAT: the job that misbehaves, and one after it that looks for traces.
write_job() {
    rm -f children
    cat >job.ini <<END
[global]
plugin = mirror
repeat = 2
warmup = 2
witness = yes
memory_limit = 300M
timeout = 20s
[bad]
variant = copy
misbehave = $2
hook = $1
${3:-}
[good]
variant = copy
END
}

# No process that a plugin forked lives on.
no_stray() {
    local pid
    [ -e children ] || return 0
    while read -r pid; do
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

# costs HOOK WHAT STATUS HOW: one misbehaviour that ends the worker.
costs() {
    local hook=$1 what=$2 status=$3 how=$4 lost code=1
    begin "$hook $what"
    write_job "$hook" "$what" "${5:-}"
    run timeout 60 "$FAKE" job.ini --json --records records.jsonl
    case $hook in
    setup) lost="bad cpu $status: setup: $how" ;;
    run_cpu) lost="bad cpu $status: proof: $how
bad copy passed" ;;
    run_gpu) lost="bad copy $status: proof: $how
bad cpu passed" ;;
    verify) lost="bad cpu $status: proof: $how
bad copy $status: proof: $how" ;;
    teardown)
        lost='bad cpu passed
bad copy passed'
        expect_line "$STDERR" "gpurun: job.ini:bad: teardown: ${how//X GB/* GB}"
        ;;
    esac
    expect_exit $code
    expect_records "$lost
good cpu passed
good copy passed
"
    no_stray
}

segv='killed by signal 11 (Segmentation fault)'
abrt='killed by signal 6 (Aborted)'
fpe='killed by signal 8 (Floating point exception)'
ended='the process ended by itself with exit code 0'
late='not done after 0.3s (timeout)'
gone='the process ended by itself with exit code 1'
muddle='it closed its channel or wrote to it, and went on: stopped'
much='took X GB of memory, more than its X GB: stopped (memory_limit)'

for hook in setup run_cpu run_gpu verify teardown; do
    costs $hook crash crashed "$segv"
    costs $hook abort crashed "$abrt"
    costs $hook exit crashed "$ended"
    costs $hook quit crashed "$ended"
    costs $hook divide crashed "$fpe"
    costs $hook overflow crashed "$segv"
    costs $hook hang timeout "$late" 'timeout = 300ms'
    costs $hook spin timeout "$late" 'timeout = 300ms'
    costs $hook close-channel crashed "$gone"
    costs $hook write-channel crashed "$muddle"
    is_sanitized || costs $hook devour out-of-memory "$much"
done

# bears HOOK WHAT: it changes the process, and nothing comes of it: all pass, in the same job and in the next.
bears() {
    begin "$1 $2"
    write_job "$1" "$2"
    run timeout 60 "${3:-$FAKE}" job.ini --json
    expect_exit 0
    if [ "${3:-$FAKE}" = "$FAKE" ]; then
        expect_records 'bad cpu passed
bad copy passed
good cpu passed
good copy passed
'
    fi
    no_stray
}

for what in close-streams write-streams print chdir umask locale signals float-mode child daemon zombie; do
    for hook in setup run_cpu run_gpu verify teardown; do
        bears $hook $what
    done
done
expect_empty "$STDERR"

begin "threads that outlive their hook end with the worker"
for hook in setup run_cpu verify teardown; do
    bears $hook thread "$GPURUN"
done

if ! is_sanitized; then
    begin "a leak of 1 GB per run"
    write_job run_cpu leak
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
write_job run_cpu flood
run timeout 120 "$GPURUN" job.ini --only '*:bad' -s repeat=1 -s warmup=0 --json
expect_exit 0
expect "not JSON" python3 -m json.tool "$STDOUT" /dev/null
expect "$(stat -c %s "$STDERR") bytes" test "$(stat -c %s "$STDERR")" -ge 200000000
: >"$STDERR"

# --- while the plugin is loaded ---

# loads WHAT CODE LINE: the constructor of the first job's plugin misbehaves; that job's record, the other passes.
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
loads hang 1 "timeout: start: $late" 300ms
loads spin 1 "timeout: start: $late" 300ms
loads close-channel 1 "crashed: start: $gone"
loads write-channel 1 "crashed: start: $muddle"
is_sanitized || loads devour 1 "out-of-memory: start: $much"
for what in close-streams write-streams print chdir umask locale signals float-mode thread child daemon zombie; do
    loads $what 0 passed
done

[ $german = yes ] || echo "not tested: a locale with commas"
finish 270
