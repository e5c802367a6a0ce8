#!/bin/bash
# The page of gpurun report --html, read by Python: whole, harmless, and its numbers are the records'.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes
python3 "$GPURUN_SOURCE/tests/data/make_page.py" . || exit 1

# holds WHAT PAGE OTHER: what report_html.py says of it.
# shellcheck disable=SC2034 # for holds
CHECKER=$here/report_html.py

begin "without gnuplot tables stand in, and the page says so"
mkdir tools
run env PATH="$WORK/run/tools" "$FAKE" report sweep.jsonl --html sweep.html
expect_exit 0
expect_empty "$STDERR"
expect_line "$STDOUT" 'PASSED: 24 of 24 cases passed'
expect "the page" holds page sweep.html sweep.jsonl
expect "no plot" holds svgs sweep.html 0
expect_line sweep.html '<p id="no-plots">gnuplot was not found *'
expect "tables are open" test "$(grep -c '<details open>' sweep.html)" -eq 4

cat >charts.txt <<'EOF'
gnuplot was not found where this page was made, so tables stand in for its plots.
The ladder: m.ini:all/n=10000000,memory=explicit
case | GB/s
cpu | 0.00016161616161616162
naive | 0.00032323232323232324
vector | 0.0006464646464646465
Time against n: m.ini:all
case | n | median ms
cpu | 1000 | 0.5
cpu | 100000 | 1.5
cpu | 1000000 | 4.5
cpu | 10000000 | 49.5
naive, explicit | 1000 | 0.25
naive, explicit | 100000 | 0.75
naive, explicit | 1000000 | 2.25
naive, explicit | 10000000 | 24.75
vector, explicit | 1000 | 0.125
vector, explicit | 100000 | 0.375
vector, explicit | 1000000 | 1.125
vector, explicit | 10000000 | 12.375
naive, pinned | 1000 | 0.5
naive, pinned | 100000 | 1
naive, pinned | 1000000 | 2
naive, pinned | 10000000 | 12.5
vector, pinned | 1000 | 0.25
vector, pinned | 100000 | 0.5
vector, pinned | 1000000 | 1
vector, pinned | 10000000 | 6.25
limit | 1000 | 0.0625
limit | 100000 | 0.1875
limit | 1000000 | 0.5625
limit | 10000000 | 6.1875
Phases of the memory strategies: m.ini:all, naive, 40 MB
Fastest end to end: explicit up to 400 KB; pinned from 4 MB. Between 400 KB and 4 MB pinned overtakes explicit; their intervals overlap at 4 MB.
strategy | upload ms | kernel ms | download ms | sum ms
explicit | 49.5 | 24.75 | 6.1875 | 80.4375
pinned | 25 | 12.5 | 3.125 | 40.625
Phases of the memory strategies: m.ini:all, vector, 40 MB
Fastest end to end: explicit up to 400 KB; pinned from 4 MB. Between 400 KB and 4 MB pinned overtakes explicit; their intervals overlap at 4 MB.
strategy | upload ms | kernel ms | download ms | sum ms
explicit | 49.5 | 12.375 | 6.1875 | 68.0625
pinned | 25 | 6.25 | 3.125 | 34.375
EOF
begin "the charts' numbers, worked out by hand from make_page.py"
expect "charts" holds charts sweep.html charts.txt

begin "without a device the limit is the CPU's"
run env PATH="$WORK/run/tools" "$FAKE" report host.jsonl --html host.html
expect_exit 0
cat >charts.txt <<'EOF'
gnuplot was not found where this page was made, so tables stand in for its plots.
Time against n: h.ini:a
case | n | median ms
cpu | 1000 | 1
cpu | 10000 | 8
limit | 1000 | 0.25
limit | 10000 | 2
EOF
expect "charts" holds charts host.html charts.txt

begin "the same sentences below the tables of --md"
run "$FAKE" report sweep.jsonl --md
expect_line "$STDOUT" 'm.ini:all, naive, 40 MB: Fastest end to end: explicit up to 400 KB; pinned from 4 MB. Between 400 KB and 4 MB pinned overtakes explicit; their intervals overlap at 4 MB.'
expect_line "$STDOUT" 'm.ini:all, vector, 40 MB: Fastest end to end: explicit up to 400 KB; pinned from 4 MB. Between 400 KB and 4 MB pinned overtakes explicit; their intervals overlap at 4 MB.'
expect "two sentences, no more" [ "$(grep -c Fastest "$STDOUT")" -eq 2 ]

begin "where one strategy overtakes another, and how sure that is"
run "$FAKE" report crossings.jsonl --md
expect_line "$STDOUT" 'c.ini:a, v, 16 KB: Fastest end to end: explicit up to 4 KB; pinned at 8 KB; explicit from 16 KB. Between 4 KB and 8 KB pinned overtakes explicit. Between 8 KB and 16 KB explicit overtakes pinned.'
expect_line "$STDOUT" 'c.ini:b, v, 8 KB: Fastest end to end: explicit up to 4 KB; pinned from 8 KB. Between 4 KB and 8 KB pinned overtakes explicit; their intervals overlap at 4 KB.'
expect_line "$STDOUT" 'c.ini:c, v, 8 KB: *Between 4 KB and 8 KB pinned overtakes explicit; their intervals overlap at 4 KB and at 8 KB.'
expect_line "$STDOUT" 'c.ini:d, v, 8 KB: *Between 4 KB and 8 KB pinned overtakes explicit; at 8 KB explicit was not measured.'

begin "a gnuplot that fails, hangs on its input or writes rubbish"
for body in 'exit 1' 'kill -SEGV $$' 'echo rubbish' ':'; do
    printf '#!/bin/sh\n%s\n' "$body" >tools/gnuplot
    chmod +x tools/gnuplot
    run env PATH="$WORK/run/tools:$PATH" "$FAKE" report sweep.jsonl --html bad.html
    expect_exit 0
    expect "the page" holds page bad.html sweep.jsonl
    expect "no plot" holds svgs bad.html 0
    expect_line bad.html '<p>gnuplot could not draw this: the numbers stand in.</p>'
done
begin "the ladder's limit is the device's"
# shellcheck disable=SC2016
printf '#!/bin/sh\ncat >>"$0.in"\n' >tools/gnuplot
run env PATH="$WORK/run/tools:$PATH" "$FAKE" report sweep.jsonl --html bad.html
expect_exit 0
expect_line tools/gnuplot.in "set label 'limit' at 0.00129292929292929*,graph 1.06 center"
rm tools/gnuplot*

begin "names from records stay text, for browsers and for gnuplot"
run "$FAKE" report hostile.jsonl --html hostile.html
expect_exit 0
expect "the page" holds page hostile.html hostile.jsonl
expect "a command from a name was run" test ! -e PWNED

begin "what a record may lack or hold that no plot can show"
run "$FAKE" report odd.jsonl --html odd.html
expect_exit 1
expect_empty "$STDERR"
expect "the page" holds page odd.html odd.jsonl
: >empty.jsonl
run "$FAKE" report empty.jsonl --html empty.html
expect_exit 0
expect "an empty page" holds page empty.html empty.jsonl

begin "records measured on a device, and those of a run"
for file in "$GPURUN_SOURCE"/bench/*.jsonl; do
    run env PATH="$WORK/run/tools" "$FAKE" report "$file" --html bench.html
    expect_empty "$STDERR"
    expect "the page" test -s bench.html
done
printf '[a]\nplugin = mirror\nvariant = copy, wrong, unsupported\nrepeat = 3\n' >job.ini
run "$FAKE" job.ini --records run.jsonl
run "$FAKE" report run.jsonl --html run.html
expect "the page" holds page run.html run.jsonl

begin "where it cannot be written"
cp sweep.jsonl kept.jsonl
for path in sweep.jsonl ./sweep.jsonl; do
    for option in --html --junit; do
        run "$FAKE" report sweep.jsonl $option $path
        expect_exit 2
        expect_empty "$STDOUT"
        expect_line "$STDERR" "gpurun: $option: $path is a file of records to be read: name another"
    done
done
expect "the records" cmp sweep.jsonl kept.jsonl
run "$FAKE" report sweep.jsonl --html nowhere/page.html
expect_exit 1
expect_line "$STDERR" 'gpurun: --html nowhere/page.html: No such file or directory'
run "$FAKE" report sweep.jsonl --html tools
expect_exit 1
expect_line "$STDERR" 'gpurun: --html tools: Is a directory'
expect "a part is left" test ! -e tools.part
run "$FAKE" report sweep.jsonl --html /dev/full
expect_exit 1
expect_line "$STDERR" 'gpurun: --html /dev/full: No space left on device'
run "$FAKE" report sweep.jsonl --html /dev/null
expect_exit 0
expect "/dev/null was replaced" test -c /dev/null -a -c /dev/full
run "$FAKE" job.ini --html page.html
expect_exit 2
expect_line "$STDERR" 'gpurun: --html is for report: *'

if ! command -v gnuplot >/dev/null; then
    echo "not checked: the plots (gnuplot is not here)"
    finish 66
    exit
fi
begin "plots"
run "$FAKE" report sweep.jsonl --html sweep.html
expect_exit 0
expect "plots" holds svgs sweep.html 4
expect_no_line sweep.html 'no-plots'
expect "plots of hostile names" holds svgs hostile.html 44
expect "plots of odd records" holds svgs odd.html 3
for label in 'naive, pinned' limit upload GB/s; do
    expect_line sweep.html "*<text>$label</text>"
done
run env PATH="$PATH" LC_ALL=de_DE.UTF-8 "$FAKE" report sweep.jsonl --html german.html
expect "another page in another locale" cmp sweep.html german.html

finish 73
