"""Tables of `auto` held against the records that they were made from, by rules written down here once more.

make SEED FILE: records of a plugin `made` whose variants' times follow from a hash of the place in the grid.
check TABLE FILE: for every job the first rule that fits, else the ladder's last, is the variant that must be picked.
"""

import configparser
import itertools
import json
import random
import sys

LADDER = ["a", "b", "c", "d"]


def record(job, place, variant, cases, median, spread=0.001, **more):
    return {
        "schema": 1, "job": job, "job_id": job, "case_id": job + variant, "plugin": "made", "variant": variant,
        "peer": variant == "peer", "status": "passed", "options": {"plugin": "made", "seed": 1, **place},
        "environment": {"compute": 90, "device_name": "A GPU"}, "cases": cases, "started": "2026-01-02T03:04:05Z",
        "proof": {"mode": "full"}, "throughput": {"bytes_per_s": 8.0 * place["n"] / (median * 1e-3)},
        "time_ms": {"n": 10, "median": median, "median_ci95": [median * (1 - spread), median * (1 + spread)]},
    } | more


def make(seed, path):
    rng = random.Random(seed)
    lines = []
    for n, k, dtype, distinct in itertools.product(
        [1, 2, 3, 1000, 10**6, 10**9], [1, 20, 700], ["int8", "float", "half"], [True, False]
    ):
        job = f"made.ini:x/n={n},k={k},dtype={dtype},distinct={distinct}"
        place = {"n": n, "k": k, "dtype": dtype, "distinct": distinct, "scale": rng.choice([0.5, 1.5, "auto"]), "mask": rng.choice(["1 $ 2", "3"])}
        for variant in LADDER + ["peer"]:
            lines.append(record(job, place, variant, ["cpu", *LADDER, "peer"], rng.choice([1, 1.005, 2, 3])))
    with open(path, "w") as f:
        for line in lines:
            print(json.dumps(line), file=f)


def number(text):
    units = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
    return float(text[:-1]) * units[text[-1]] if text[-1] in units else float(text)


def fits(value, condition):
    for element in condition.split(", "):
        if isinstance(value, bool):
            if element == ("yes" if value else "no"):
                return True
        elif isinstance(value, str):
            if element.replace("$$", "$") == value:
                return True
        elif ".." in element:
            low, high = element.split("..")
            if (not low or value >= number(low)) and (not high or value <= number(high)):
                return True
        elif element != "auto" and number(element) == value:
            return True
    return False


def expected(records):
    """Of the variants that no other beats by intervals that are apart by 1 %, the last."""
    own = [r for r in records if not r["peer"]]
    best = min(own, key=lambda r: r["time_ms"]["median"])
    ties = [
        r["variant"] for r in own
        if not r["time_ms"]["median_ci95"][0] >= best["time_ms"]["median_ci95"][1] * 1.01
    ]
    return max(ties, key=LADDER.index)


def check(table, path):
    rules = configparser.ConfigParser(delimiters="=", comment_prefixes="#", interpolation=None, strict=True)
    rules.read_file(open(table))
    jobs = {}
    for line in open(path):
        r = json.loads(line)
        jobs.setdefault(r["job"], []).append(r)
    for job, records in jobs.items():
        place = dict(records[0]["options"], device="9.0", bytes=8 * records[0]["options"]["n"])
        found = LADDER[-1]
        for name in rules.sections():
            conditions = {key: rules[name][key] for key in rules[name] if key != "variant"}
            assert conditions["device"] == "9.0"
            if all(fits(place[key], text) for key, text in conditions.items()):
                found = rules[name]["variant"]
                break
        assert found == expected(records), (job, found)
    print(len(jobs), "jobs,", len(rules.sections()), "rules")


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](*sys.argv[2:])
