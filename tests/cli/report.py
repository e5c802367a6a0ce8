"""Checks what gpurun wrote with readers that are not its own: report.py WHAT FILE [RECORDS]."""

import csv
import json
import math
import sys
import xml.etree.ElementTree as ET

ERRORS = ("error", "crashed", "timeout", "out-of-memory")
SKIPPED = ("unsupported", "interrupted")


def read_records(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def as_text(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(word for word in value if isinstance(word, str))
    return str(value)


def at(record, *path):
    for key in path:
        if isinstance(record, list):
            record = record[key] if key < len(record) else None
        else:
            record = (record or {}).get(key)
    return record


def same(text, value):
    """The field says the value: numbers to the last bit, all else as text."""
    if isinstance(value, float):
        return float(text) == value and not math.isnan(value)
    return text == as_text(value)


COLUMNS = {
    "job": ("job",),
    "variant": ("variant",),
    "status": ("status",),
    "reason": ("reason",),
    "device_name": ("environment", "device_name"),
    "wrong": ("proof", "wrong"),
    "median_ms": ("time_ms", "median"),
    "median_low_ms": ("time_ms", "median_ci95", 0),
    "median_high_ms": ("time_ms", "median_ci95", 1),
    "bytes_per_s": ("throughput", "bytes_per_s"),
    "percent_of_limit": ("limit", "percent"),
    "versus_cpu": ("versus", "cpu", "median"),
    "flags": ("flags",),
    "path": ("path",),
    "cache": ("cache",),
    "launch": ("launch",),
    "launch_gaps": ("launch_gaps",),
    "runs_per_sample": ("runs_per_sample",),
    "stop": ("stop",),
    "case_id": ("case_id",),
    "key": ("key",),
}


def check_csv(path, records):
    with open(path, "rb") as f:
        data = f.read()
    assert data.endswith(b"\r\n"), "no line end"
    text = data.decode("utf-8")
    assert "\n" not in text.replace("\r\n", "") or '"' in text, "a bare line end"
    rows = list(csv.DictReader(text.splitlines(keepends=True), strict=True))
    assert len(rows) == len(records), (len(rows), len(records))
    for row, record in zip(rows, records):
        assert None not in row and None not in row.values(), "fields too many or too few"
        for column, path_in in COLUMNS.items():
            assert same(row[column], at(record, *path_in)), (column, row[column])
        for name, value in record.get("options", {}).items():
            assert same(row["options." + name], value), (name, row["options." + name])
        for tensor in record.get("input", []):
            assert row["input." + tensor["tensor"]] == tensor["source"]


def check_junit(path, records):
    root = ET.parse(path).getroot()
    assert root.tag == "testsuites"
    cases = [(suite, case) for suite in root for case in suite]
    assert int(root.get("tests")) == len(records) == len(cases)
    for (suite, case), record in zip(cases, records):
        assert suite.tag == "testsuite" and suite.get("name") == record["job"]
        assert case.tag == "testcase" and case.get("name") == record["variant"]
        assert case.get("classname") == record["job"]
        assert abs(float(case.get("time")) * 1e3 - (at(record, "time_ms", "median") or 0)) < 1e-5
        tags = [child.tag for child in case]
        status = record["status"]
        wanted = (
            []
            if status == "passed"
            else ["failure"] if status == "failed" else ["skipped"] if status in SKIPPED else ["error"]
        )
        assert tags == wanted, (status, tags)
        for child in case:
            reason = record["reason"]
            clean = "".join(c if ord(c) >= 32 or c in "\t\r\n" else "\ufffd" for c in reason)
            clean = clean.replace("\uffff", "\ufffd").replace("\ufffe", "\ufffd")
            assert child.get("message") == clean, (child.get("message"), clean)
    for name, statuses in (("failures", ("failed",)), ("errors", ERRORS), ("skipped", SKIPPED)):
        count = sum(r["status"] in statuses for r in records)
        assert int(root.get(name)) == count
        assert sum(int(suite.get(name)) for suite in root) == count
        for suite in root:
            assert int(suite.get("tests")) == len(suite)


def check_json(path, records):
    with open(path, encoding="utf-8") as f:
        assert json.load(f)["records"] == records


def main():
    what, path, records = sys.argv[1], sys.argv[2], read_records(sys.argv[3])
    {"csv": check_csv, "junit": check_junit, "json": check_json}[what](path, records)


main()
