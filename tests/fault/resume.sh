#!/bin/bash
# --resume, --resume-from, --retry-failed: what has a record is known by what it is, never by its place.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

cat >job.ini <<'EOF'
[global]
plugin = mirror
repeat = 1
warmup = 0
[first]
variant = copy, peer
[second]
variant = copy, crash
[third]
misbehave = abort
hook = setup
[fourth]
variant = unsupported
EOF

# lines FILE COUNT
lines() {
    expect "$(wc -l <"$1") lines in $1, not $2" test "$(wc -l <"$1")" -eq "$2"
}

# would_run TEXT ARGUMENT...: what a dry run says would run, each case once on a line.
would_run() {
    local text=$1
    shift
    run "$FAKE" "$@" --dry-run
    expect_exit 0
    sed -n 's/: would run$//p' "$STDOUT" >"$WORK/.dry"
    expect_text "$WORK/.dry" "$text"
}

begin "a whole batch"
run "$FAKE" job.ini --records r.jsonl
expect_exit 1
expect_line "$STDOUT" 'FAILED: 6 of 9 cases passed, 1 unsupported, 2 not'
lines r.jsonl 9

begin "nothing runs twice"
cp r.jsonl before.jsonl
run "$FAKE" job.ini --records r.jsonl --resume
expect_exit 1
expect_line "$STDOUT" 'FAILED: 6 of 9 cases passed, 1 unsupported, 2 not; 9 resumed'
expect_line "$STDOUT" 'copy *PASSED, resumed *full, 1000*'
expect_line "$STDOUT" 'crash *CRASHED, resumed *'
expect_line "$STDOUT" 'cpu *CRASHED, resumed *'
expect_line "$STDOUT" 'unsupported *unsupported, resumed *'
expect_line "$STDOUT" 'GPU *Fake GPU*'
expect "records were written" cmp r.jsonl before.jsonl
run "$FAKE" job.ini --records new.jsonl --resume-from r.jsonl
expect_line "$STDOUT" '*; 9 resumed'
lines new.jsonl 0
run "$FAKE" job.ini --resume-from r.jsonl --json
expect_exit 1
expect_cases 'first cpu passed
first copy passed
first peer passed
second cpu passed
second copy passed
second crash crashed: proof: killed by signal 11 (Segmentation fault)
third cpu crashed: setup: killed by signal 6 (Aborted)
fourth cpu passed
fourth unsupported unsupported: needs a thing that is not here
'
expect "not all marked" python3 -c 'import json, sys
sys.exit(not all(r["resumed"] is True for r in json.load(open(sys.argv[1]))["records"]))' "$STDOUT"

begin "two files: the last record of a case counts, and the file's order does not"
head -n 4 r.jsonl | tac >part1.jsonl
tail -n 5 r.jsonl | tac >part2.jsonl
would_run '' job.ini --resume-from part2.jsonl --resume-from part1.jsonl
expect_line "$STDOUT" 'job.ini:second crash: crashed, resumed'
expect_line "$STDOUT" '0 cases would run, 9 resumed'
head -n 6 r.jsonl >six.jsonl
would_run 'job.ini:third cpu
job.ini:fourth cpu
job.ini:fourth unsupported
' job.ini --resume-from six.jsonl

begin "a moved section, a comment and a new neighbour change nothing"
{
    sed -n '1,4p' job.ini
    printf '# nothing\n[fresh]\nvariant = copy\n[second]\nvariant = crash, peer, copy\ntimeout = 1h\nretries = 2\nsamples = yes\n'
    printf '[first]\ncpu = off\nvariant = peer\n'
} >other.ini
mkdir moved && cp other.ini moved/job.ini
cp r.jsonl moved/
(cd moved && "$FAKE" job.ini --resume-from r.jsonl --dry-run) >"$STDOUT" 2>"$STDERR"
sed -n 's/: would run$//p' "$STDOUT" >"$WORK/.dry"
expect_text "$WORK/.dry" 'job.ini:fresh cpu
job.ini:fresh copy
job.ini:second peer
'

begin "another question runs"
all='job.ini:first cpu
job.ini:first copy
job.ini:first peer
'
for change in repeat=2 n=999 seed=2 memory=pinned offset=1 input=normal input.in=normal verify=full; do
    would_run "$all" job.ini --only '*:first' -s $change --resume-from r.jsonl
done
would_run '' job.ini --only '*:first' -s timeout=5s --resume-from r.jsonl
would_run '' job.ini --only '*:first' --timeout 5s --resume-from r.jsonl

begin "another plugin file runs"
mkdir -p plugins/mirror
cp "$GPURUN_BUILD/fakes/mirror/mirror.so" plugins/mirror/
GPURUN_PLUGIN_PATH=$PWD/plugins would_run '' job.ini --resume-from r.jsonl
printf 'x' >>plugins/mirror/mirror.so
GPURUN_PLUGIN_PATH=$PWD/plugins would_run "$all" job.ini --only '*:first' --resume-from r.jsonl
begin "a crash in setup is not remembered once the plugin is another"
GPURUN_PLUGIN_PATH=$PWD/plugins would_run 'job.ini:third cpu
' job.ini --only '*:third' --resume-from r.jsonl

begin "another input file runs"
python3 -c 'import struct
open("in.raw", "wb").write(struct.pack("<1000f", *range(1000)))
open("sum.raw", "wb").write(struct.pack("<1000f", *range(1000)))'
file_job=(job.ini --only '*:first' -s input.in=file:in.raw)
run "$FAKE" "${file_job[@]}" --records f.jsonl
expect_exit 0
would_run '' "${file_job[@]}" --resume-from f.jsonl
touch in.raw
would_run '' "${file_job[@]}" --resume-from f.jsonl
printf 'x' | dd of=in.raw bs=1 seek=1 conv=notrunc status=none
would_run "$all" "${file_job[@]}" --resume-from f.jsonl

begin "a large file is known by its size and time"
truncate -s 80000000 large.raw
large_job=(job.ini --only '*:first' -s n=20000000 -s input.in=file:large.raw -s cpu=off -s variant=unsupported)
run "$FAKE" "${large_job[@]}" --records l.jsonl
expect_exit 0
would_run '' "${large_job[@]}" --resume-from l.jsonl
touch -d '2001-02-03 04:05:06.7' large.raw
would_run 'job.ini:first unsupported
' "${large_job[@]}" --resume-from l.jsonl

begin "--retry-failed"
would_run 'job.ini:second crash
job.ini:third cpu
job.ini:fourth unsupported
' job.ini --records r.jsonl --retry-failed
run "$FAKE" job.ini --records r.jsonl --retry-failed
expect_exit 1
expect_line "$STDOUT" 'FAILED: 6 of 9 cases passed, 1 unsupported, 2 not; 6 resumed'
lines r.jsonl 12

begin "an interrupted record is none"
sed 's/"passed"/"interrupted"/' r.jsonl >i.jsonl
would_run "$all" job.ini --only '*:first' --resume-from i.jsonl
begin "the last record of a key counts"
would_run '' job.ini --only '*:first' --resume-from i.jsonl --resume-from r.jsonl
would_run "$all" job.ini --only '*:first' --resume-from r.jsonl --resume-from i.jsonl

begin "lines that are no records"
{
    printf '\n[1]\nnull\n{}\n{"schema":1,"job":3,"variant":"cpu","status":"passed"}\n\xff\xfe\n'
    printf '{"schema":99,"job":"j","variant":"cpu","status":"passed"}\n'
    head -n 3 r.jsonl
    head -n 4 r.jsonl | tail -n 1 | head -c 300
} >bad.jsonl
would_run '' job.ini --only '*:first' --resume-from bad.jsonl
for n in 1 2 3 4 5 6; do
    expect_line "$STDERR" "gpurun: bad.jsonl:$n: left out: it is no record"
done
expect_line "$STDERR" 'gpurun: bad.jsonl:7: left out: a newer gpurun wrote it'
expect_line "$STDERR" 'gpurun: bad.jsonl:11: left out: the line was cut off'

begin "nothing to resume from"
run "$FAKE" job.ini --resume
expect_exit 2
expect_line "$STDERR" 'gpurun: --resume and --retry-failed want the earlier records: --records FILE, or --resume-from FILE; see gpurun --help'
run "$FAKE" job.ini --resume-from nothing.jsonl
expect_exit 2
expect_empty "$STDOUT"
expect_text "$STDERR" 'gpurun: nothing.jsonl: No such file or directory
'
run "$FAKE" job.ini --resume-from .
expect_exit 2
expect_text "$STDERR" 'gpurun: .: Is a directory
'
run "$FAKE" job.ini --only '*:first' --records first.jsonl --resume
expect_exit 0
lines first.jsonl 3

begin "200 kills of the parent"
kills=200
is_sanitized && kills=40
run python3 "$here/kills.py" "$GPURUN" $kills 20261129
expect_exit 0
cat "$STDOUT" "$STDERR"

finish 80
