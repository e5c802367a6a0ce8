#!/usr/bin/env python3
"""Is the CPU baseline a straw man? NumPy and gpurun's run_cpu on the same machine, in turns, with one thread
(NumPy's reductions use one) and with all.

    bench/cpu_baseline.py GPURUN [ROUNDS]

Prints, per job, NumPy's median and gpurun's, and fails when gpurun is slower with one thread. Sorts are of 10
million elements, all else of 100 million.
"""
import json
import os
import statistics
import subprocess
import sys
import time

import numpy

N, N_SORT = 100_000_000, 10_000_000
RNG = numpy.random.default_rng(1)
NAMES = {"float32": "float", "float64": "double"}  # what gpurun calls them


def sort_copy(array, out):
    numpy.copyto(out, array)
    out.sort()


def topk(dtype, distinct):
    name = f"topk {NAMES.get(dtype, dtype)}, k = 20{', distinct' * (distinct == 'yes')}, against max"
    return name, f"plugin=topk\nk=20\ndistinct={distinct}", lambda array, out: numpy.max(array), dtype, "uniform", N


def sort(dtype, input):
    return f"sort {input} {NAMES.get(dtype, dtype)}", "plugin=sort", sort_copy, dtype, input, N_SORT


def scan(dtype):
    def cumsum(array, out):
        numpy.cumsum(array, dtype=dtype, out=out)
    return f"scan {NAMES.get(dtype, dtype)}, against cumsum", "plugin=scan", cumsum, dtype, "uniform", N


def total(dtype, accumulate, sum_dtype):
    def numpy_sum(array, out):
        numpy.sum(array, dtype=sum_dtype)
    name = f"reduce {NAMES.get(dtype, dtype)} into {NAMES.get(sum_dtype, sum_dtype)}, against sum"
    return name, f"plugin=reduce\nop=sum\naccumulate={accumulate}", numpy_sum, dtype, "uniform", N


JOBS = [  # name, job text, what NumPy does, the dtype and the input it does it on, how many
    topk("int32", "yes"), topk("int32", "no"), topk("float32", "no"), topk("int64", "no"),
    *(sort(dtype, "uniform") for dtype in ("int32", "uint32", "int64", "uint64", "float32", "float64")),
    sort("float32", "normal"), sort("float64", "normal"),
    *(scan(dtype) for dtype in ("uint8", "int32", "int64", "float32", "float64")),
    total("int32", "wide", "int64"), total("int32", "same", "int32"), total("int64", "same", "int64"),
    total("float32", "same", "float32"), total("float32", "wide", "float64"), total("float64", "same", "float64"),
]


def make(dtype, input, n):
    if input == "normal":
        return RNG.standard_normal(n, dtype=dtype)
    if dtype.startswith("float"):
        return RNG.random(n, dtype=dtype)
    info = numpy.iinfo(dtype)
    return RNG.integers(info.min, info.max, n, dtype=dtype, endpoint=True)


def numpy_ms(function, array, out):
    start = time.perf_counter()
    function(array, out)
    return (time.perf_counter() - start) * 1e3


def gpurun_ms(gpurun, text, dtype, input, n, threads):
    job = (f"[bench]\n{text}\nn={n}\ndtype={NAMES.get(dtype, dtype)}\ninput={input}\ndevice=cpu\nrepeat=5\nwarmup=1\n"
           f"threads={threads}\n")
    done = subprocess.run([gpurun, "--json", "-"], input=job, text=True, capture_output=True, check=True)
    return json.loads(done.stdout)["records"][0]["time_ms"]["median"]


def main():
    gpurun, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    every, slower = len(os.sched_getaffinity(0)), 0
    print(f"numpy {numpy.__version__}, {every} threads, medians of {rounds} turns, ms")
    print(f"{'job':45} {'numpy':>8} {'1 thread':>9} {'ratio':>6} {f'{every} threads':>10}")
    for name, text, function, dtype, input, n in JOBS:
        array = make(dtype, input, n)
        out = array.copy()
        numpy_ms(function, array, out)
        turns = [(statistics.median(numpy_ms(function, array, out) for _ in range(5)),
                  gpurun_ms(gpurun, text, dtype, input, n, 1), gpurun_ms(gpurun, text, dtype, input, n, every))
                 for _ in range(rounds)]
        theirs, one, many = (statistics.median(column) for column in zip(*turns))
        ratio = statistics.median(turn[0] / turn[1] for turn in turns)
        slower += ratio < 1
        print(f"{name:45} {theirs:8.2f} {one:9.2f} {ratio:6.2f} {many:10.2f}", flush=True)
    sys.exit(slower > 0)


if __name__ == "__main__":
    main()
