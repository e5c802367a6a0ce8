#!/bin/bash
# Many workers: order, sharing, what is lost with one of them, and what is asked of --devices and --workers.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

for what in order shared killed_worker interrupted fail_fast retries lost cores killed sharded; do
    begin $what
    run timeout 200 python3 "$here/pool.py" "$FAKE" $what
    expect_exit 0
    expect_empty "$STDERR"
done

printf '[job]\nplugin = mirror\nvariant = copy\nrepeat = 1\n' >job.ini
# refused CODE TEXT ARGUMENT...: the run ends with CODE and this on standard error; nothing has run.
refused() {
    local code=$1 text=$2
    shift 2
    rm -f refused.jsonl
    run "$FAKE" job.ini --records refused.jsonl "$@"
    expect_exit "$code"
    expect_empty "$STDOUT"
    expect_text "$STDERR" "gpurun: $text
"
    expect "something ran" test ! -s refused.jsonl
}

begin "how many cases there are, with and without a device"
{
    printf '[global]\nplugin = mirror\nvariant = copy\nrepeat = 1\n'
    printf '[job%d]\n' {1..25}
} >many.ini
run "$FAKE" many.ini
expect_line "$STDERR" 'gpurun: 50 of 50: many.ini:job25 copy: passed, * ms'
GPURUN_FAKE_DEVICE=none run "$FAKE" many.ini
expect_line "$STDERR" 'gpurun: 1 of 25: many.ini:job1 cpu: passed, * ms'
expect_line "$STDERR" 'gpurun: 25 of 25: many.ini:job25 cpu: passed, * ms'

begin "--devices"
export GPURUN_FAKE_DEVICES=2
how='is no device: write all, or numbers from gpurun devices, 0,1; see gpurun --help'
refused 2 "--devices: '' $how" --devices ''
refused 2 "--devices: 'x' $how" --devices x
refused 2 "--devices: '-1' $how" --devices -1
refused 2 "--devices: '' $how" --devices 0,
refused 2 "--devices: ' 1' $how" --devices '0, 1'
refused 2 "--devices: '99999999999999999999' $how" --devices 99999999999999999999
refused 2 "--devices: 1 is named twice; see gpurun --help" --devices 1,0,1
refused 4 "--devices 0,2: there is no device 2; gpurun devices lists them" --devices 0,2
GPURUN_FAKE_DEVICE=none refused 4 "--devices all: no device: the fake driver has no device" --devices all
run "$FAKE" job.ini -s device=1 --devices 0
expect_exit 2
expect_empty "$STDOUT"
expect_text "$STDERR" '-s: device: 1 is not among --devices 0
'

begin "--devices share the threads of what is not timed"
all=$(nproc)
share() { # THREADS SETTINGS...: so many threads does every record name
    local threads=$1
    shift
    rm -f share.jsonl
    run "$FAKE" job.ini --devices 0,1 --records share.jsonl "$@"
    expect_exit 0
    expect "not $threads threads: $(grep -o '"threads":[0-9]*' share.jsonl)" \
        test "$(grep -c "\"environment\":.*\"threads\":${threads}[,}]" share.jsonl)" = "$(wc -l <share.jsonl)"
}
share $(((all + 1) / 2)) -s cpu=off
share "$all" -s cpu=on
share 3 -s cpu=off -s threads=3

begin "--workers"
for n in 0 -1 x 1001 1.5 ''; do
    refused 2 "--workers wants a number from 1 to 1000, not $n; see gpurun --help" --workers "$n"
done
refused 2 "--workers is for batches on the CPU, --devices has one worker per GPU: leave one out; see gpurun --help" \
    --workers 2 --devices 0
refused 2 "--workers is for jobs with device = cpu, and job.ini:1: job.ini:job may use a GPU: add -s device=cpu, or have one worker per GPU, --devices all" \
    --workers 2
GPURUN_FAKE_DEVICE=none run "$FAKE" job.ini --workers 2
expect_exit 0

begin "a dry run"
run "$FAKE" job.ini --devices 0,1 --dry-run
expect_exit 0
expect_text "$STDOUT" 'job.ini:job cpu: would run
job.ini:job copy: would run
2 cases would run, 0 resumed
'

finish 60
