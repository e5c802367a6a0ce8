#!/usr/bin/env python3
"""Is the CPU baseline a straw man? NumPy and gpurun's run_cpu on the same machine, in turns, with one thread
(NumPy's reductions use one) and with all.

    bench/cpu_baseline.py GPURUN [ROUNDS]

Prints, per job, NumPy's median and gpurun's, and fails when gpurun is slower with one thread.
"""
import json
import os
import statistics
import subprocess
import sys
import time

import numpy

N = 100_000_000
RNG = numpy.random.default_rng(1)
JOBS = [
    # name, job text, what NumPy does, the dtype it does it on
    ("topk int32, k = 20, distinct against max", "plugin=topk\nk=20\ndistinct=yes", numpy.max, "int32"),
    ("topk int32, k = 20 against max", "plugin=topk\nk=20", numpy.max, "int32"),
    ("topk float, k = 20 against max", "plugin=topk\nk=20", numpy.max, "float32"),
    ("topk int64, k = 20 against max", "plugin=topk\nk=20", numpy.max, "int64"),
]


def make(dtype):
    if dtype.startswith("float"):
        return RNG.random(N, dtype=dtype)
    info = numpy.iinfo(dtype)
    return RNG.integers(info.min, info.max, N, dtype=dtype, endpoint=True)


def numpy_ms(function, array):
    start = time.perf_counter()
    function(array)
    return (time.perf_counter() - start) * 1e3


def gpurun_ms(gpurun, text, dtype, threads):
    names = {"int32": "int32", "float32": "float", "int64": "int64"}
    job = f"[bench]\n{text}\nn={N}\ndtype={names[dtype]}\ndevice=cpu\nrepeat=5\nwarmup=1\nthreads={threads}\n"
    done = subprocess.run([gpurun, "--json", "-"], input=job, text=True, capture_output=True, check=True)
    return json.loads(done.stdout)["records"][0]["time_ms"]["median"]


def main():
    gpurun, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    every, slower = len(os.sched_getaffinity(0)), 0
    print(f"numpy {numpy.__version__}, {every} threads, n = {N}, medians of {rounds} turns, ms")
    print(f"{'job':45} {'numpy':>8} {'1 thread':>9} {'ratio':>6} {f'{every} threads':>10}")
    for name, text, function, dtype in JOBS:
        array = make(dtype)
        numpy_ms(function, array)
        turns = [(statistics.median(numpy_ms(function, array) for _ in range(5)), gpurun_ms(gpurun, text, dtype, 1),
                  gpurun_ms(gpurun, text, dtype, every)) for _ in range(rounds)]
        theirs, one, many = (statistics.median(column) for column in zip(*turns))
        ratio = statistics.median(turn[0] / turn[1] for turn in turns)
        slower += ratio < 1
        print(f"{name:45} {theirs:8.2f} {one:9.2f} {ratio:6.2f} {many:10.2f}")
    sys.exit(slower > 0)


if __name__ == "__main__":
    main()
