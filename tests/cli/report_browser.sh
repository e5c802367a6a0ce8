#!/bin/bash
# The page of gpurun report --html in a browser: it renders, sorts by clicking, and nothing goes wrong.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"
if is_sanitized; then # report_html has made these pages
    echo "skipped: what a browser does is not sanitized"
    exit 77
fi
python3 "$GPURUN_SOURCE/tests/data/make_page.py" . || exit 1

for tool in chromium gnuplot; do
    if ! command -v $tool >/dev/null; then
        echo "skipped: no $tool; apt-get install chromium gnuplot-nox"
        exit 77
    fi
done

# browse WIDTH PAGE: what the page has become, into the file dom.
browse() {
    timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$WORK/chromium" \
        --window-size="$1,800" --dump-dom "file://$PWD/$2" >dom 2>"$STDERR"
}

# shellcheck disable=SC2034 # for holds
CHECKER=$here/report_html.py

for records in sweep hostile odd; do
    run "$FAKE" report $records.jsonl --html $records.html
    expect "a page" holds listen $records.html listening.html
    for width in 400 1400; do # a phone's, a desk's
        begin "$records, $width pixels wide"
        expect "chromium" browse $width listening.html
        expect "what it heard" holds heard dom $records.jsonl
    done
done

finish 15
