#!/bin/bash
# Every job file and command line of bad_jobs.txt is refused with exactly the message written there, with
# exit code 2, and nothing runs: see the head of bad_jobs.txt for its form.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes
unset GPURUN_UNSET

# Appended to the job files: had anything run, witness.npy would be there.
witness='
[witness]
plugin = topk
n = 64
k = 4
output = witness.npy
'

# The files that the cases name, in the current folder.
make_files() {
    local zeros='\0\0\0\0\0\0\0\0\0\0'

    mkdir folder
    ln -s folder linked
    # shellcheck disable=SC2059
    printf "$zeros$zeros$zeros$zeros" >ten.bin
    cp "$GPURUN_SOURCE/tests/data/npy/good_i4.npy" seven.npy
    cp "$GPURUN_SOURCE/tests/data/npy/good_f8_2d.npy" grid.npy
    cp "$GPURUN_SOURCE/tests/data/npy/good_u1.npy" bytes.npy
    cp "$GPURUN_SOURCE/tests/data/npy/good_3d_fortran.npy" cube.npy
    ln -s seven.npy link.npy
    mkfifo pipe
    printf '[other]\nplugin = topk\nn = 10\nk = 2\noutput = other.npy\n' >other.ini
    ln -s other.ini same.ini
    printf 'include = job.ini\n' >round.ini
    printf '[f]\nplugin = topk\nk = z\n' >faulty.ini
    printf '[global]\nplugin = topk\nk = 3\n' >defaults.ini
    printf '[global]\nk = 4\n' >rival.ini
    : >empty.ini
}

# What is in the folder, with contents.
list_files() {
    find . ! -name job.ini -printf '%p %y %l %T@\n' | sort
    cksum other.ini ./*.bin ./*.npy
}

with_summary() {
    local lines
    case $1 in
    *$'\ngpurun: '* | 'gpurun: '*) ;;
    *)
        lines=$(printf '%s' "$1" | wc -l)
        printf '%sgpurun: %s fault%s, nothing was run\n' "$1" "$lines" \
            "$([ "$lines" -eq 1 ] || printf s)"
        return
        ;;
    esac
    printf '%s' "$1"
}

# run_case NAME ARGUMENTS BODY WANTED: once to check, once to run.
run_case() {
    local wanted command job words=()
    begin "$1"
    printf '%b' "$3" >job.ini
    job=$(cksum job.ini)
    wanted=$(with_summary "$4")$'\n'
    read -ra words <<<"${2#!}"
    for command in check ''; do
        [[ $2 == '!'* && -n $command ]] && continue
        begin "$1 ${command:-run}"
        # shellcheck disable=SC2086
        run "$GPURUN" $command "${words[@]}"
        expect_exit 2
        expect_text "$STDERR" "$wanted"
        expect_empty "$STDOUT"
    done
    [ "$(list_files)" = "$before" ] && [ "$(cksum job.ini)" = "$job" ] && return
    fail "files were made or changed"
    find . -newer .made
    make_folder
}

# A fresh folder with the files, and what is in it.
make_folder() {
    rm -rf "$WORK/case"
    mkdir "$WORK/case"
    cd "$WORK/case" || exit 1
    make_files
    touch .made job.ini
    before=$(list_files)
}

# The witness itself: what the cases hold is only worth something when a good file does run.
begin witness
make_folder
printf '[a]\nplugin = topk\nn = 10\n' >job.ini
printf '%s' "$witness" >>job.ini
run "$GPURUN" job.ini -s repeat=1 --only '*:witness'
expect_exit 0
expect "no witness.npy" test -s witness.npy
expect "a new file goes unseen" test "$(list_files)" != "$before"

make_folder
cases=0 name='' body='' wanted='' arguments=job.ini part='' tail=$witness
end_case() {
    [ -z "$name" ] && return
    cases=$((cases + 1))
    run_case "$name" "$arguments" "$body$tail" "$wanted"
    body='' wanted='' arguments=job.ini part=body tail=$witness
}
while IFS= read -r line; do
    case $line in
    '=== '*)
        end_case
        name=${line#=== } part=body
        ;;
    '--- alone') tail='' ;;
    '--- gpurun '*) arguments=${line#--- gpurun } ;;
    '---') part=wanted ;;
    *)
        [ "$part" = body ] && body+=$line$'\n'
        [ "$part" = wanted ] && [ -n "$line" ] && wanted+=$line$'\n'
        ;;
    esac
done <"$here/bad_jobs.txt"
end_case
run_case "line of 65 KiB" job.ini "$(printf '[x]\nplugin = topk\nk = %66000d' 0)\n$witness" \
    'job.ini:3: a line of 66004 bytes: at most 65536
'

begin "the number of cases"
[ "$cases" -ge 200 ] || fail "only $cases"
printf '%s cases, ' "$cases"
finish 1000
