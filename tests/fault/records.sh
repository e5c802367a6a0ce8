#!/bin/bash
# The file of --records, whatever happens to it: nothing is lost without a word, no half line is left.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes
export MISBEHAVE_GO=$PWD/go

cat >job.ini <<'EOF'
[global]
plugin = mirror
device = cpu
repeat = 1
warmup = 0
[first]
[second]
EOF
cat >slow.ini <<'EOF'
[global]
plugin = mirror
device = cpu
repeat = 1
warmup = 0
[first]
[second]
misbehave = wait
[third]
EOF

# all_whole FILE COUNT: it holds so many lines, each a record.
# shellcheck disable=SC2317
all_whole() {
    python3 -c 'import json, sys
lines = open(sys.argv[1]).read().split("\n")
assert lines.pop() == "", "no newline at the end"
assert len(lines) == int(sys.argv[2]), len(lines)
assert all(json.loads(line)["status"] for line in lines)' "$@"
}

# start FILE [BATCH]: slow.ini in the background, its process in PID, once one more record is there. It goes on at end.
start() {
    local before=0
    [ ! -e "$1" ] || before=$(wc -l <"$1")
    rm -f go
    "$GPURUN" "${2:-slow.ini}" --records "$1" >"$STDOUT" 2>"$STDERR" &
    PID=$!
    wait_until has_more "$1" "$before" || fail "no first record"
}
# What wait_until calls, shellcheck takes for unreachable.
# shellcheck disable=SC2317
has_more() {
    [ -e "$1" ] && [ "$(wc -l <"$1")" -gt "$2" ]
}
end() {
    : >go
    CODE=0
    wait "$PID" || CODE=$?
}

begin "a last line that was cut off goes"
for tail in '{"schema":1,"job":"x"' '{' 'x' '{}{' "$(head -c 20000 /dev/zero | tr '\0' y)"; do
    rm -f r.jsonl
    run "$GPURUN" job.ini --only '*:first' --records r.jsonl
    printf '%s' "$tail" >>r.jsonl
    run "$GPURUN" job.ini --only '*:second' --records r.jsonl
    expect_exit 0
    expect_text "$STDERR" "gpurun: --records r.jsonl: its last line was cut off: its ${#tail} bytes were taken back
"
    expect "not 2 records" all_whole r.jsonl 2
done
printf 'cut' >r.jsonl
run "$GPURUN" job.ini --records r.jsonl
expect "not 2 records" all_whole r.jsonl 2

begin "a last line that lacks its newline alone stays"
truncate -s -1 r.jsonl
run "$GPURUN" job.ini --records r.jsonl
expect_exit 0
expect_empty "$STDERR"
expect "not 4 records" all_whole r.jsonl 4

begin "two at once"
start r1.jsonl
run "$GPURUN" job.ini --records r1.jsonl
expect_exit 2
expect_empty "$STDOUT"
expect_text "$STDERR" 'gpurun: --records r1.jsonl: another gpurun is writing to it: give each its own file, gpurun report reads many
'
end
expect_exit 0
expect "not 3 records" all_whole r1.jsonl 3

begin "deleted"
echo '{"schema":1,"job":"old","variant":"cpu","status":"passed"}' >r2.jsonl
start r2.jsonl
rm r2.jsonl
end
expect_exit 0
expect_text "$STDERR" 'gpurun: --records r2.jsonl: it was deleted while it was written to: made anew with the records of this run
'
expect "not this run's 3 records" all_whole r2.jsonl 3

begin "deleted with its folder"
mkdir gone
start gone/r.jsonl
rm -r gone
end
expect_exit 1
expect_line "$STDERR" 'gpurun: --records gone/r.jsonl: No such file or directory'
expect_line "$STDERR" 'gpurun: --records gone/r.jsonl: that failed: records are lost, from here on too'
expect_line "$STDOUT" 'FAILED: 3 of 3 cases passed'

begin "cut to nothing"
start r3.jsonl
: >r3.jsonl
end
expect_exit 1
expect_text "$STDERR" 'gpurun: --records r3.jsonl: it was cut short while it was written to: records are lost, the next ones follow
'
expect "not 2 records" all_whole r3.jsonl 2

begin "cut within a line"
start r4.jsonl
truncate -s 100 r4.jsonl
end
expect_exit 1
expect_line "$STDERR" 'gpurun: --records r4.jsonl: its last line was cut off: its 100 bytes were taken back'
expect "not 2 records" all_whole r4.jsonl 2

begin "cut after the last record"
printf '[only]\nplugin = mirror\ndevice = cpu\nmisbehave = hang\nhook = teardown\ntimeout = 2s\n' >last.ini
start r5.jsonl last.ini
: >r5.jsonl
end
expect_exit 1
expect_line "$STDERR" '*it was cut short while it was written to*'

begin "a folder that takes no file"
for path in /proc/none.jsonl nowhere/r.jsonl . ; do
    run "$GPURUN" job.ini --records "$path"
    expect_exit 2
    expect_empty "$STDOUT"
    expect_line "$STDERR" "*$path*"
done
if [ "$(id -u)" -ne 0 ]; then
    mkdir closed && chmod 555 closed
    run "$GPURUN" job.ini --records closed/r.jsonl
    expect_exit 2
    expect_text "$STDERR" 'gpurun: --records closed/r.jsonl: Permission denied
'
fi

begin "a pipe"
mkfifo pipe
cat pipe >piped.jsonl &
run "$GPURUN" job.ini --records pipe
expect_exit 0
wait $!
expect "not 2 records" all_whole piped.jsonl 2
run timeout 10 "$GPURUN" job.ini --records /dev/null --resume
expect_exit 2
expect_text "$STDERR" 'gpurun: --resume: /dev/null is no regular file
'

begin "a full disk takes back its part of a line"
if mkdir -p "$WORK/full" && mount -t tmpfs -o size=64k none "$WORK/full" 2>/dev/null; then
    run "$GPURUN" job.ini --records "$WORK/full/r.jsonl"
    expect_exit 0
    cat /dev/zero >"$WORK/full/fill" 2>/dev/null
    for ((i = 0; i < 4; i++)); do
        run "$GPURUN" job.ini --records "$WORK/full/r.jsonl"
        [ "$CODE" -ne 0 ] && break
    done
    expect_exit 1
    expect_line "$STDERR" '*No space left on device: records from here on are lost'
    expect_line "$STDOUT" 'FAILED: 2 of 2 cases passed'
    lines=$(wc -l <"$WORK/full/r.jsonl")
    expect "half a line is left" all_whole "$WORK/full/r.jsonl" "$lines"
    rm "$WORK/full/fill"
    run "$GPURUN" job.ini --records "$WORK/full/r.jsonl" --resume
    expect_exit 0
    python3 - "$WORK/full/r.jsonl" >"$WORK/.cases" 2>&1 <<'EOF'
import json, sys
print(sorted({json.loads(line)["job"] for line in open(sys.argv[1])}))
EOF
    expect_text "$WORK/.cases" "['job.ini:first', 'job.ini:second']
"
fi

begin "a worker does not hold the file open"
start r6.jsonl
read -r child _ < <(cat /proc/"$PID"/task/*/children)
expect "no worker" test -e "/proc/$child/fd"
held=$(find "/proc/$child/fd" -lname '*r6.jsonl' | wc -l)
expect "$held descriptors" test "$held" -eq 0
end

finish 45
