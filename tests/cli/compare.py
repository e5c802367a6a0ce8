"""Checks what gpurun compare printed: compare.py WHAT OUTPUT OLD NEW."""

import csv
import json
import sys


def read(path):
    with open(path, encoding="utf-8") as f:
        return {r["case_id"]: r for r in map(json.loads, f)}


def check(job, row, old, new):
    """The times are the records', and the change is theirs."""
    assert float(row["old_ms"]) == old["time_ms"]["median"], job
    assert float(row["new_ms"]) == new["time_ms"]["median"], job
    assert [float(row["old_low_ms"]), float(row["old_high_ms"])] == old["time_ms"]["median_ci95"], job
    change = 100 * (new["time_ms"]["median"] / old["time_ms"]["median"] - 1)
    assert abs(float(row["change_percent"]) - change) < 1e-9, job


def main():
    what, path, old, new = sys.argv[1], sys.argv[2], read(sys.argv[3]), read(sys.argv[4])
    by_job = {r["job"]: i for i, r in new.items()}
    if what == "csv":
        with open(path, newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f, strict=True))
    else:
        with open(path, encoding="utf-8") as f:
            cases = json.load(f)["cases"]
        rows = [
            dict(job=c["job"], change_percent=c["change_percent"], old_ms=c["old"]["median_ms"],
                 old_low_ms=c["old"]["low_ms"], old_high_ms=c["old"]["high_ms"],
                 new_ms=c["new"]["median_ms"])
            for c in cases
        ]
    assert len(rows) == len(new), (len(rows), len(new))
    for row in rows:
        check(row["job"], row, old[by_job[row["job"]]], new[by_job[row["job"]]])
    changes = [float(row["change_percent"]) for row in rows]
    assert changes == sorted(changes, reverse=True), "not sorted"


main()
