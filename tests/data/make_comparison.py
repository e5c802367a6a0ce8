"""Makes records of two times with known differences: make_comparison.py FOLDER.

The samples come from the standard library's generator with a fixed seed; medians and their intervals are
computed here, by the binomial definition with exact integers, not by gpurun.
"""

import json
import math
import os
import random
import statistics
import sys

NOISE = 0.003


def interval(samples):
    """Order statistics that hold the median with at least 95 % confidence; the range where none do."""
    n, ordered, tail, rank = len(samples), sorted(samples), 0, 0
    while rank < n:
        tail += math.comb(n, rank)
        if tail * 40 > 2**n:
            break
        rank += 1
    return [ordered[rank - 1], ordered[n - rank]] if rank else [ordered[0], ordered[-1]]


def record(number, samples, **more):
    case = f"{number:016x}"
    return dict(
        {
            "schema": 1,
            "job": f"bench.ini:j{number}",
            "plugin": "p",
            "variant": "v",
            "device": "gpu:0",
            "status": "passed",
            "reason": "",
            "options": {"n": 1000},
            "cache": "hot",
            "launch": "stream",
            "case_id": case,
            "key": case,
            "cases": ["v"],
            "environment": {"device_name": "D", "driver": 13000, "program_build": "aa"},
            "time_ms": {
                "n": len(samples),
                "median": statistics.median(samples),
                "median_ci95": interval(samples),
            },
        },
        **more,
    )


def measure(random_source, centre):
    count = random_source.randint(20, 100)
    return [centre * (1 + random_source.gauss(0, NOISE)) for _ in range(count)]


def write(path, records):
    with open(path, "w", encoding="utf-8") as f:
        for r in records:
            f.write(json.dumps(r) + "\n")


# --- one case of each kind, 1 ms where nothing else is said ---------------------------------------

CLOCK = lambda mhz: {"device_state": {"sm_clock_mhz": mhz}}
BAD = lambda status, reason: {"status": status, "reason": reason, "time_ms": None}
OPTIONS = lambda **o: {"options": dict({"n": 1000, "timeout": 1}, **o)}
DATA = lambda hash: {"input": [{"tensor": "in", "source": "file:x", "hash": hash}]}
DRIVER = lambda driver, build: {
    "environment": {"driver": driver, "plugin_build": build, "threads": 2, "cpu": "C"}
}
CPU = {"device": "cpu"}
GRAPH = {"launch": "graph"}

OLD = [
    ("same", 1, {}),
    ("gone", 1, {}),
    ("breaks", 1, {}),
    ("mends", 1, BAD("crashed", "boom")),
    ("broken", 1, BAD("failed", "1 wrong")),
    ("cut", 1, {}),
    ("tick", 0.004128, {}),
    ("grafted", 0.004128, GRAPH),
    ("hot", 1, {}),
    ("driver", 1, {}),
    ("data", 1, DATA("1")),
    ("id", 1, OPTIONS(n=5)),
    ("newer", 1, {}),
    ("clocked", 1, CLOCK(1980)),
    ("clocked_slower", 1, CLOCK(1980)),
    ("clocked_cpu", 1, {**CLOCK(1980), **CPU}),
    ("clocked_faster", 1, CLOCK(1500)),
    ("timed", 1, {}),
    ("few", 1, {}),
    ("n", 1, OPTIONS(n=9007199254740993)),
    ("longer", 1, OPTIONS(repeat=20)),
]
NEW = [
    ("fresh", 1, {}),
    ("same", 1, OPTIONS(timeout=9)),
    ("breaks", 1, BAD("failed", "3 wrong")),
    ("mends", 1, {}),
    ("broken", 1, BAD("crashed", "signal 11")),
    ("cut", 1, BAD("interrupted", "")),
    ("tick", 0.004224, {}),
    ("grafted", 0.004224, GRAPH),
    ("hot", 1, {"cache": "cold"}),
    ("driver", 1, DRIVER(13010, "bb")),
    ("data", 1, DATA("2")),
    ("id", 2, {**OPTIONS(n=6), "case_id": "other"}),
    ("newer", 1, {**OPTIONS(cache="hot"), "case_id": "newer2"}),
    ("clocked", 1.10, CLOCK(1800)),
    ("clocked_slower", 1.15, CLOCK(1800)),
    ("clocked_cpu", 1.10, {**CLOCK(1800), **CPU}),
    ("clocked_faster", 0.75, CLOCK(2000)),
    ("timed", 1, {"time_ms": {"n": "x"}}),
    ("few", 2, {"time_ms": {"n": 5, "median": 2, "median_ci95": [2, 2]}}),
    ("n", 1, {**OPTIONS(n=9007199254740994), "case_id": "n2"}),
    ("longer", 1, {**OPTIONS(repeat=50), "case_id": "longer2", "cache": None}),
]


def kinds(cases):
    for name, ms, more in cases:
        times = {"n": 20, "median": ms, "median_ci95": [0.999 * ms, 1.001 * ms]}
        made = record(0, [ms], job="b.ini:" + name, case_id=name, time_ms=times)
        yield {**made, **OPTIONS(), **DRIVER(13000, "aa"), **more}


def main():
    source = random.Random(20261130)
    same = {"old": [], "new": []}
    planted = {"old": [], "new": []}
    faster = {"old": [], "new": []}
    for number in range(200):
        centre = 10 ** source.uniform(-1, 2)
        for side in ("old", "new"):
            same[side].append(record(number, measure(source, centre)))
    for number in range(20):
        centre = 10 ** source.uniform(-1, 2)
        before, now = measure(source, centre), measure(source, 1.03 * centre)
        planted["old"].append(record(number, before))
        planted["new"].append(record(number, now))
        faster["old"].append(record(number, now))
        faster["new"].append(record(number, before))
    for name, sides in (("same", same), ("planted", planted), ("faster", faster)):
        for side, records in sides.items():
            write(os.path.join(sys.argv[1], f"{name}_{side}.jsonl"), records)
    write(os.path.join(sys.argv[1], "kinds_old.jsonl"), kinds(OLD))
    write(os.path.join(sys.argv[1], "kinds_new.jsonl"), kinds(NEW))


main()
