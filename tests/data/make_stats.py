#!/usr/bin/env python3
"""Prints tests/data/stats.txt: samples of known kinds with what NumPy and SciPy say of them, and how often the
signs of core/measure/shape.h are seen where nothing is wrong.  Usage: make_stats.py > stats.txt

A line: kind | n min p5 q1 median q3 p95 max mean sd mad outliers first_slow bimodal | the samples
Lines with # in front are comments; the last ones are the rates of false signs.
"""
import numpy as np
from scipy import stats

rng = np.random.default_rng(6)


def outliers(x):
    q1, q3 = np.percentile(x, [25, 75])
    return int(np.sum((x < q1 - 3 * (q3 - q1)) | (x > q3 + 3 * (q3 - q1))))


def first_is_slow(x):
    if len(x) < 10:
        return False
    rest = x[1:]
    q1, median, q3 = np.percentile(rest, [25, 50, 75])
    return bool(x[0] > q3 + 3 * (q3 - q1) and x[0] > 1.05 * median)


def is_bimodal(x):
    n = len(x)
    if n < 20:
        return False
    x = np.sort(x)
    least = max(3, -(-n // 10))
    splits = [(x[:k], x[k:]) for k in range(least, n - least + 1)]
    low, high = min(splits, key=lambda s: s[0].var() * len(s[0]) + s[1].var() * len(s[1]))
    apart = high.mean() - low.mean()
    return bool(apart > 6 * np.sqrt((low.var() + high.var()) / 2) and apart > 0.02 * np.median(x))


def line(kind, x):
    numbers = [x.min(), *np.percentile(x, [5, 25, 50, 75, 95]), x.max(), x.mean(),
               x.std(ddof=1) if len(x) > 1 else 0.0, stats.median_abs_deviation(x)]
    signs = [outliers(x), int(first_is_slow(x)), int(is_bimodal(x))]
    print(kind, "|", len(x), *(repr(float(v)) for v in numbers), *signs, "|",
          *(repr(float(v)) for v in x))


def slow_first(x):
    x = np.round(x, 6)
    x[0] = 1.5 * np.median(x)
    return x


def two_heaps(n, share, apart):
    return rng.normal(1, 0.005, n) + apart * (rng.random(n) < share)


KINDS = {
    "one": lambda: np.array([0.25]),
    "two": lambda: np.array([3.0, 1.0]),
    "equal": lambda: np.full(30, 0.125),
    "normal": lambda: rng.normal(1, 0.01, 40),
    "noisy-first": lambda: rng.normal(1, 0.2, 12),
    "skewed": lambda: 1 + rng.lognormal(-4, 0.5, 60),
    "uniform": lambda: rng.uniform(0.9, 1.1, 50),
    "slow-first": lambda: slow_first(rng.normal(1, 0.01, 20)),
    "slow-first-of-9": lambda: slow_first(rng.normal(1, 0.01, 9)),
    "slow-but-little": lambda: np.concatenate([[1.04], rng.normal(1, 0.001, 20)]),
    "fast-first": lambda: np.concatenate([[0.5], rng.normal(1, 0.001, 20)]),
    "heaps": lambda: two_heaps(30, 0.5, 0.1),
    "heaps-one-third": lambda: two_heaps(100, 0.33, 0.06),
    "heaps-of-19": lambda: np.concatenate([rng.normal(1, 0.001, 9), rng.normal(2, 0.001, 10)]),
    "heaps-too-near": lambda: np.concatenate([rng.normal(1, 1e-4, 15), rng.normal(1.01, 1e-4, 15)]),
    "heap-too-small": lambda: np.concatenate([rng.normal(1, 0.001, 38), [1.5, 1.5]]),
    "clock-ticks": lambda: np.round(rng.normal(5, 0.03, 60) * 31.25) / 31.25,
    "large": lambda: rng.normal(1e6, 100, 25),
}

NULLS = {
    "normal": lambda n: rng.normal(100, 1, n),
    "normal, sd 20 %": lambda n: rng.normal(100, 20, n),
    "uniform": lambda n: rng.uniform(90, 110, n),
    "exponential": lambda n: 10 + rng.exponential(10, n),
    "lognormal": lambda n: 10 + 10 * rng.lognormal(0, 1, n),
}


def rates():
    for name, draw in NULLS.items():
        for n in (10, 20, 50, 200):
            sets = [draw(n) for _ in range(2000)]
            print(f"# {name}, n = {n}: first slow {np.mean([first_is_slow(x) for x in sets]):.4f}, "
                  f"bimodal {np.mean([is_bimodal(x) for x in sets]):.4f}")


if __name__ == "__main__":
    for kind, make in KINDS.items():
        line(kind, make())
    rates()
