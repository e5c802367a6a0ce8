"""Makes records for the page of gpurun report --html: make_page.py FOLDER."""

import json
import os
import sys


def record(job, variant, ms, **more):
    made = {
        "schema": 1,
        "job": job,
        "plugin": "scan",
        "variant": variant,
        "peer": False,
        "memory": "explicit",
        "device": "cpu" if variant == "cpu" else "gpu:0",
        "status": "passed",
        "reason": "",
        "options": {"n": 1000, "prefetch": False},
        "proof": {"mode": "full"},
        "time_ms": {"n": 9, "median": ms, "median_ci95": [0.9 * ms, 1.2 * ms]},
        "throughput": {"bytes_per_s": 8e6 / ms, "operations_per_s": 0.0},
        "environment": {"host": "h", "cpu": "C", "threads": 2, "build": "0.1.0"},
        "case_id": f"{job} {variant}",
    }
    made.update(more)
    return made


def sweep():
    """Four sizes, two strategies: explicit is ahead end to end up to 400 KB, pinned from 4 MB."""
    for n, explicit, pinned in ((1000, 1, 2), (100_000, 3, 4), (1_000_000, 9, 8), (10_000_000, 99, 50)):
        for memory, total in (("explicit", explicit), ("pinned", pinned)):
            for variant, ms in (("cpu", total / 2), ("naive", total / 4), ("vector", total / 8)):
                yield record(
                    f"m.ini:all/n={n},memory={memory}",
                    variant,
                    ms,
                    memory=memory,
                    options={"n": n, "prefetch": False},
                    input=[{"tensor": "in", "source": "uniform", "bytes": 4 * n}],
                    phases_ms={"upload": {"median": total / 2}, "download": {"median": total / 16}},
                    end_to_end_ms={"median": total, "median_ci95": [0.95 * total, 1.1 * total]},
                    # the device's at total / 16 ms, the CPU's at total / 4
                    limit={"kind": "copy", "percent": (25 if variant == "cpu" else 6.25) * total / ms},
                    versus={"cpu": {"median": 2.5}},
                )


def host():
    """The CPU alone at two sizes: then the limit is its own."""
    for n, ms in ((1000, 1), (10_000, 8)):
        yield record(f"h.ini:a/n={n}", "cpu", ms, options={"n": n}, limit={"kind": "read", "percent": 25})


def crossings():
    """Sections a to d, each with a crossing from explicit to pinned between 4 KB and 8 KB: sure, in doubt below, in doubt
    at both ends, and with explicit not measured above, but managed; pinned is overtaken again in a."""
    milliseconds = {
        "a": ({"explicit": 1, "pinned": 2}, {"explicit": 4, "pinned": 2}, {"explicit": 2, "pinned": 4}),
        "b": ({"explicit": 10, "pinned": 10.5}, {"explicit": 20, "pinned": 15}),
        "c": ({"explicit": 10, "pinned": 10.5}, {"explicit": 15.5, "pinned": 15}),
        "d": ({"explicit": 1, "pinned": 2}, {"managed": 4, "pinned": 2}),
    }
    for section, sizes in milliseconds.items():
        for i, strategies in enumerate(sizes):
            for memory, ms in strategies.items():
                yield record(
                    f"c.ini:{section}/n={1000 << i},memory={memory}",
                    "v",
                    ms / 2,
                    memory=memory,
                    options={"n": 1000 << i, "prefetch": False},
                    input=[{"tensor": "in", "source": "uniform", "bytes": 4000 << i}],
                    end_to_end_ms={"median": ms, "median_ci95": [ms - 0.3, ms + 0.3]},
                )


HOSTILE = [
    "<script>console.error('x')</script>",
    "</script><img src=x onerror=alert(1)>",
    "'; system('touch PWNED'); '",
    "`touch PWNED`",
    "\"`touch PWNED`\"",
    "\nset output 'PWNED'\nplot x\n",
    "EOD\nsystem('touch PWNED')",
    "@0@xx@1@",
    "\\047; !touch PWNED",
    "a\x01b\u2028\U0001f600 & co;" + "w" * 100,
    "%s%n{/Symbol a}",
]


def hostile():
    for i, name in enumerate(HOSTILE):
        job = f"{name}.ini:{name}/n=1,x={name}"
        for k, variant in enumerate((name, name + "2")):
            for memory in ("explicit", name):
                yield record(
                    job,
                    variant,
                    1.0 + k,
                    plugin=name,
                    memory=memory,
                    device=name,
                    reason=name,
                    options={"n": 5 + len(memory)},
                    proof={"mode": name},
                    environment={"host": name, "cpu": name, "device_name": name, "build": name},
                    input=[{"tensor": name, "bytes": 5}],
                    phases_ms={"upload": {"median": 1}, "download": {"median": 1}},
                    end_to_end_ms={"median": 2.0 + k},
                    samples_ms=[1.0 + k, 1.5 + k],
                    case_id=f"{i}.{k}.{memory}",
                )


def odd():
    """What a record may lack or hold that no plot can show."""
    yield record("o.ini:a", "x", 1.0, status="failed", reason="1 wrong", time_ms=None, throughput=None)
    yield record("o.ini:a", "y", 1e-5)
    yield record("o.ini:a", "z", 1.0, time_ms={"n": 1, "median": -1.0, "median_ci95": [-1, -1]})
    yield record("o.ini:a/n=1", "huge", 1e-300, throughput={"bytes_per_s": 1e300})
    yield record("o.ini:a/n=2", "sharp", 1.0, time_ms={"n": 9, "median": 1.0, "median_ci95": [1.0, 1.0]})
    yield record("o.ini:b", "p", 2.0, samples_ms=[1.0, 2.0, 3.0])
    yield record("o.ini:b", "q", 2.0, samples_ms=[0, "x", None])
    yield record("o.ini:b", "r", 2.0, samples_ms={"a": 1})
    yield record("o.ini:c", "v", 0.5, plugin="matmul", limit={"kind": "read", "percent": 1.0},
                 throughput={"bytes_per_s": 1e9, "operations_per_s": 5e12})
    yield record("o.ini:c", "w", 0.25, plugin="matmul", limit={"kind": "peak", "percent": 50.0},
                 throughput={"bytes_per_s": 2e9, "operations_per_s": 1e13})


def main():
    for name, records in (("sweep", sweep()), ("host", host()), ("crossings", crossings()), ("hostile", hostile()), ("odd", odd())):
        with open(os.path.join(sys.argv[1], name + ".jsonl"), "w", encoding="utf-8") as f:
            for r in records:
                f.write(json.dumps(r) + "\n")


main()
