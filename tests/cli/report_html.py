"""Checks a page of gpurun report --html with readers that are not its own.

report_html.py page PAGE RECORDS     the table of cases holds what the records do, nothing else is in the page
report_html.py charts PAGE FILE      the charts' headings, sentences and numbers are the lines of FILE
report_html.py svgs PAGE COUNT       so many plots, each well-formed, no id twice in the page
report_html.py listen PAGE COPY      makes a copy that clicks on its table and writes down what happened
report_html.py heard DOM RECORDS     what that copy wrote down, once a browser has run it
"""

import json
import re
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

VOID = {"meta", "link"}


class Page(HTMLParser):
    """Tables by id as rows of cells (text, exact value), and all that may not be in a page."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.tags, self.lines = [], [], [], []
        self.tables, self.rows, self.cell, self.heading = {}, None, None, None
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.append(tag)
        self.ids += [values["id"]] if "id" in values else []
        for name, value in attributes:
            assert not name.startswith("on"), name
            if name in ("src", "href", "xlink:href"):
                assert value.startswith("#") or value == "data:,", value
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.rows = self.tables.setdefault(values.get("id", f"-{len(self.tables)}"), [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.cell = ["", values.get("data-value")]
        elif tag in ("h3", "p"):
            self.heading = ""

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()
        if tag in ("td", "th"):
            self.rows[-1].append(tuple(self.cell))
            self.cell = None
        elif tag in ("h3", "p"):
            self.lines.append(self.heading)
            self.heading = None
        elif tag == "tr" and "figure" in self.open:
            self.lines.append(" | ".join(value or text for text, value in self.rows[-1]))

    def handle_data(self, data):
        if self.cell is not None:
            self.cell[0] += data
        if self.heading is not None:
            self.heading += data


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def read_records(path):
    return [json.loads(line) for line in read(path).splitlines() if line.startswith("{")]


def at(record, *path):
    for key in path:
        record = (record or {}).get(key)
    return record


def expected(record):
    """The row of a case: texts as they are, numbers to the last bit, None where there is none."""
    median, ci = at(record, "time_ms", "median") or -1, at(record, "time_ms", "median_ci95")
    median = median if median > 0 else None
    spread = 100 * max(ci[1] - median, median - ci[0]) / median if median else None
    rates = [at(record, "throughput", unit) for unit in ("bytes_per_s", "operations_per_s")]
    return [
        record.get("job", ""),
        record.get("variant", ""),
        record.get("device", ""),
        record.get("memory", ""),
        record.get("status", ""),
        at(record, "proof", "mode") or "",
        median,
        spread,
        *[1e-9 * r if r else None for r in rates],
        at(record, "limit", "percent"),
        at(record, "end_to_end_ms", "median"),
        at(record, "versus", "cpu", "median"),
        record.get("reason", ""),
    ]


def printable(text):
    """What XML has not is shown as U+FFFD, as docs/records.md says of JUnit."""
    text = "".join(c if ord(c) >= 32 or c in "\t\r\n" else "\ufffd" for c in text)
    return text.replace("\uffff", "\ufffd").replace("\ufffe", "\ufffd")


def check_row(cells, record):
    for (text, value), wanted in zip(cells, expected(record), strict=True):
        if isinstance(wanted, str):
            assert text == printable(wanted), (text, wanted)
        elif wanted is None:
            assert text == "-" and value is None, (text, value)
        else:
            assert float(value) == wanted, (value, wanted)
            if wanted == 0:
                continue
            assert abs(float(text.rstrip("x")) / wanted - 1) < 1e-3 or wanted < 1e-3, (text, wanted)


def check_page(path, records):
    page = Page(read(path))
    assert page.tags.count("script") == 1 and "iframe" not in page.tags and "img" not in page.tags
    assert page.tags.count("style") == 1
    rows = page.tables["cases"][1:]
    assert len(rows) == len(records), (len(rows), len(records))
    for cells, record in zip(rows, records):
        check_row(cells, record)


def check_charts(path, wanted):
    page = Page(read(path))
    lines = [line for line in page.lines if not line.startswith(("gpurun report", "0 of"))]
    assert lines[1:] == wanted.splitlines(), "\n".join(lines[1:])


def check_svgs(path, count):
    text = read(path)
    page = Page(text)
    assert len(page.ids) == len(set(page.ids)), "an id twice"
    drawn = re.findall(r"<svg.*?</svg>", text, re.S)
    assert len(drawn) == count, (len(drawn), count)
    for svg in drawn:
        root = ET.fromstring(svg)
        used = re.findall(r"href='#([^']*)'", svg)
        ids = {e.get("id") for e in root.iter()}
        assert set(used) <= ids, set(used) - ids
        text = "".join(root.itertext()).replace("@0@xx@1@", "")  # one of make_page.py's names
        assert "@" not in text, "a place-holder is left"


LISTEN = """<script>window.heard = {errors: []};
window.addEventListener('error', function (e) { heard.errors.push(e.message); });
document.addEventListener('securitypolicyviolation', function (e) { heard.errors.push(e.blockedURI); });
['error', 'warn', 'log'].forEach(function (n) { console[n] = function (m) { heard.errors.push(m); }; });
</script>"""
CLICK = """<script>
var table = document.getElementById('cases'), heads = table.tHead.rows[0].cells;
function column(i) {
  return Array.from(table.tBodies[0].rows).map(function (r) {
    var c = r.cells[i];
    return c.dataset.value === undefined ? c.textContent : Number(c.dataset.value);
  });
}
heard.sorted = {};
[0, 6].forEach(function (i) {
  var both = heard.sorted[i] = [];
  for (var k = 0; k < 2; k++) {
    heads[i].querySelector('button').click();
    both.push([heads[i].getAttribute('aria-sort'), column(i)]);
  }
});
heard.svgs = Array.from(document.querySelectorAll('figure svg')).map(function (s) {
  return s.getBoundingClientRect().height;
});
heard.wide = document.documentElement.scrollWidth > window.innerWidth;
var pre = document.createElement('pre');
pre.id = 'heard';
pre.textContent = JSON.stringify(heard);
document.body.appendChild(pre);
</script>"""


def listen(path, copy):
    text = read(path).replace('<meta charset="utf-8">', '<meta charset="utf-8">' + LISTEN, 1)
    with open(copy, "w", encoding="utf-8") as f:
        f.write(text.replace("</body>", CLICK + "</body>"))


class Heard(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.inside, self.text = False, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.inside = ("id", "heard") in attributes

    def handle_data(self, data):
        self.text += data if self.inside else ""


def check_heard(path, records):
    heard = json.loads(Heard(read(path)).text.strip().partition("\n")[0])
    assert heard["errors"] == [], heard["errors"]
    assert heard["wide"] is False, "the page is wider than the window"
    assert heard["svgs"] and all(h > 60 for h in heard["svgs"]), heard["svgs"]
    jobs = sorted((printable(r["job"]) for r in records), key=lambda s: s.encode("utf-16-be"))
    times = sorted(t for t in (at(r, "time_ms", "median") for r in records) if t and t > 0)
    none = ["-"] * (len(records) - len(times))
    assert heard["sorted"]["0"] == [["ascending", jobs], ["descending", jobs[::-1]]]
    assert heard["sorted"]["6"] == [["ascending", times + none], ["descending", times[::-1] + none]]


def main():
    what, path, other = sys.argv[1:4]
    if what == "listen":
        listen(path, other)
    elif what == "svgs":
        check_svgs(path, int(other))
    elif what == "charts":
        check_charts(path, read(other))
    else:
        {"page": check_page, "heard": check_heard}[what](path, read_records(other))


main()
