# Helpers of tests/cli and tests/fault; sourced. A check that fails is reported and counted, the script
# goes on, and `finish` turns the count into the exit code.
# shellcheck shell=bash
set -u -o pipefail

: "${GPURUN:?the program; ctest sets it}" "${GPURUN_BUILD:?}" "${GPURUN_SOURCE:?}"
export LC_ALL=C
unset GPURUN_PLUGIN_PATH GPURUN_FAKE_DEVICE NO_COLOR

# The program whose GPU is host memory.
# shellcheck disable=SC2034
FAKE=$GPURUN_BUILD/tests/gpurun_fake

WORK=$(mktemp -d "${TMPDIR:-/tmp}/gpurun-test.XXXXXX")
STDOUT=$WORK/.stdout STDERR=$WORK/.stderr CODE=0
checks=0 failures=0 case_name=start

clean_up() {
    # What a test left running is its own to end: only the jobs of this shell.
    jobs -p | xargs -r kill -KILL 2>/dev/null
    mountpoint -q "$WORK/full" && umount "$WORK/full"
    rm -rf "$WORK"
}
trap clean_up EXIT
trap 'exit 1' INT TERM
mkdir "$WORK/run" "$WORK/locks"
export GPURUN_LOCK_DIR=$WORK/locks # the pretend devices of tests that run at once are not the same
cd "$WORK/run" || exit 1

# begin WHAT...: names the case that the checks after it belong to.
begin() {
    case_name=$*
}

# fail TEXT: one failed check.
fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s: %s\n' "$case_name" "$1"
}

# run PROGRAM ARGUMENT...: its exit code into CODE, its output into the files STDOUT and STDERR.
run() {
    CODE=0
    "$@" >"$STDOUT" 2>"$STDERR" || CODE=$?
}

show_output() {
    sed 's/^/    stdout: /' "$STDOUT" | head -n 40
    sed 's/^/    stderr: /' "$STDERR" | head -n 40
}

# expect_exit CODE: of the last run.
expect_exit() {
    checks=$((checks + 1))
    [ "$CODE" -eq "$1" ] && return
    fail "exit code $CODE, not $1"
    show_output
}

# expect_line FILE TEXT: one line of the file is TEXT, a glob, but for blanks around it.
expect_line() {
    local line
    checks=$((checks + 1))
    while IFS= read -r line || [ -n "$line" ]; do
        line=${line#"${line%%[! ]*}"}
        line=${line%"${line##*[! ]}"}
        # shellcheck disable=SC2053
        [[ $line == $2 ]] && return
    done <"$1"
    fail "no line '$2'"
    show_output
}

# expect_no_line FILE TEXT: no line holds the glob TEXT.
expect_no_line() {
    local line
    checks=$((checks + 1))
    while IFS= read -r line || [ -n "$line" ]; do
        # shellcheck disable=SC2053
        if [[ $line == *$2* ]]; then
            fail "a line with '$2': $line"
            return
        fi
    done <"$1"
}

# expect_text FILE TEXT: the file is exactly TEXT, after the build's and the source's folders became
# BUILD and SOURCE; prints what differs.
expect_text() {
    checks=$((checks + 1))
    sed -e "s|$GPURUN_BUILD|BUILD|g" -e "s|$GPURUN_SOURCE|SOURCE|g" "$1" >"$WORK/.got"
    printf '%s' "$2" >"$WORK/.wanted"
    diff -u --label wanted --label got "$WORK/.wanted" "$WORK/.got" >"$WORK/.diff" && return
    fail "other text in $(basename "$1")"
    sed 's/^/    /' "$WORK/.diff"
}

expect_empty() {
    expect_text "$1" ''
}

# expect_cases TEXT: of a run with --json, one line per record: SECTION VARIANT STATUS, then ": REASON".
expect_cases() {
    python3 - "$STDOUT" >"$WORK/.cases" 2>&1 <<'EOF'
import json, sys
for r in json.load(open(sys.argv[1]))["records"]:
    timed = "time_ms" in r
    assert timed == (r["status"] == "passed"), "only what passed has a time: " + r["variant"]
    print(r["job"].rsplit(":", 1)[1], r["variant"], r["status"] + (": " + r["reason"] if r["reason"] else ""))
EOF
    expect_text "$WORK/.cases" "$1"
}

# expect TEXT COMMAND...: the command succeeds.
expect() {
    local text=$1
    shift
    checks=$((checks + 1))
    "$@" && return
    fail "$text"
}

# holds ARGUMENT...: the script $CHECKER finds nothing wrong; else its last lines are shown.
holds() {
    python3 "$CHECKER" "$@" >"$WORK/.py" 2>&1 && return
    tail -n 30 "$WORK/.py" >&2
    return 1
}

now_ms() {
    echo $((${EPOCHREALTIME/./} / 1000))
}

# wait_until COMMAND...: true once the command is. The bound is for what never comes: a busy machine may take many
# times what is usual.
wait_until() {
    local end=$(($(now_ms) + 100000))
    until "$@"; do
        [ "$(now_ms)" -gt "$end" ] && return 1
        sleep 0.05
    done
}

# is_gone PROCESS: it has ended.
is_gone() {
    [ ! -e "/proc/$1" ] || [ "$(awk '{print $3}' "/proc/$1/stat" 2>/dev/null)" = Z ]
}

# Under a sanitizer nothing is fast.
is_sanitized() {
    grep -q '^GPURUN_SANITIZE:[A-Z]*=ON' "$GPURUN_BUILD/CMakeCache.txt"
}

# finish LEAST: ends the script; fewer checks than LEAST mean that it did not do its work.
finish() {
    printf '%s checks, %s failed\n' "$checks" "$failures"
    if [ "$checks" -lt "$1" ]; then
        printf 'FAILED: fewer than %s checks were made\n' "$1"
        exit 1
    fi
    [ "$failures" -eq 0 ]
    exit
}
