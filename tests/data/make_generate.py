#!/usr/bin/env python3
"""Prints tests/data/generate.txt: what generators must give, from the formulas in core/run/generate.h,
in Python's integers of any size and its doubles.  Usage: make_generate.py > generate.txt

A line: generator | seed | tensor | dtype | dimensions | first elements as hex bits ...
"""
import math
import struct
from fractions import Fraction

M = 2**64
GOLDEN = 0x9E3779B97F4A7C15
BITS = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64, "uint64": 64}
# Precision, least exponent, least and largest value, whole numbers held, of the reals.
REALS = {
    "float": (24, -126, 2.0**-149, (2 - 2.0**-23) * 2.0**127, 2**24),
    "double": (53, -1022, 2.0**-1074, (2 - 2.0**-52) * 2.0**1023, 2**53),
    "half": (11, -14, 2.0**-24, 65504.0, 2**11),
    "bfloat16": (8, -126, 2.0**-133, (2 - 2.0**-7) * 2.0**127, 2**8),
}
SIGNED = ("int8", "int16", "int32", "int64")


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % M
    x = (x ^ x >> 27) * 0x94D049BB133111EB % M
    return x ^ x >> 31


def fnv(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 % M
    return h


def scale(w, s):
    return w * s >> 64


def narrow(x, dtype):
    """The dtype's value nearest to a double, the even one of two that are as near."""
    precision, least_exponent, _, largest, _ = REALS[dtype]
    if x == 0 or math.isinf(x):
        return x
    exponent = max(math.frexp(x)[1] - 1, least_exponent)
    quantum = Fraction(2) ** (exponent - precision + 1)
    y = round(Fraction(x) / quantum) * quantum
    return math.copysign(math.inf, x) if abs(y) > Fraction(largest) else float(y)


def below(x, dtype):
    """The dtype's next value below x, which is above 0."""
    fraction, exponent = math.frexp(x)
    exponent = max(exponent - (2 if fraction == 0.5 else 1), REALS[dtype][1])
    return x - 2.0 ** (exponent - REALS[dtype][0] + 1)


class Stream:
    def __init__(self, seed, tensor, dtype, dims):
        self.dims, elems = dims, math.prod(dims)
        self.key = mix(mix(seed) ^ fnv(tensor))
        self.dtype, self.elems = dtype, elems
        self.real = dtype in REALS
        if not self.real:
            self.bits = BITS[dtype]
            self.low = -(2 ** (self.bits - 1)) if dtype in SIGNED else 0
            self.high = self.low + 2**self.bits - 1

    def word(self, n):
        return mix((self.key + (n + 1) * GOLDEN) % M)

    def unit(self, low, high, bits):
        u = (bits >> 11) * 2.0**-53
        low, high = narrow(low, self.dtype), narrow(high, self.dtype)
        x = narrow(low * (1 - u) + high * u, self.dtype)
        assert low <= x <= high
        return x if x < high else below(high, self.dtype)

    def uniform(self, i, min=None, max=None):
        if self.real:
            return self.unit(0.0 if min is None else min, 1.0 if max is None else max, self.word(i))
        low = self.low if min is None else min
        s = (self.high if max is None else max) - low + 1
        if s == M:
            return low + self.word(i)  # cut to 64 bits when printed
        if s <= 2**32:
            return low + scale(self.word(i), s)
        return low + (self.word(2 * i) * s + scale(self.word(2 * i + 1), s) >> 64)

    def normal(self, i, mean=None, sd=None):
        words = [self.word(6 * i + j) for j in range(6)]
        total = sum((w >> 32) + (w & 0xFFFFFFFF) for w in words)
        z = (total - 6 * (2**32 - 1)) / 2.0**32
        if self.real:
            return (0.0 if mean is None else mean) + (1.0 if sd is None else sd) * z
        mean = float((self.low + self.high + 1) // 2) if mean is None else float(mean)
        sd = 2.0**self.bits / 12 if sd is None else float(sd)
        return min(max(round(mean + sd * z), self.low), self.high)

    def ascending(self, i, start=0, step=1):
        return start + i * step if not self.real else float(start) + float(i) * float(step)

    def descending(self, i, start=None, step=1):
        start = self.elems if start is None else start
        return self.ascending(i, start, -step)

    def constant(self, i, value=0):
        return value

    def few_distinct(self, i, count=16):
        n = scale(self.word(i), count)
        if self.real:
            return n / count
        return self.low + n * ((2**self.bits - 1) // (count - 1) if count > 1 else 0)

    def zipf(self, i, count=None):
        if count is None:
            count = min(1000, REALS[self.dtype][4] if self.real else self.high)
        total = sum(2**56 // v for v in range(1, count + 1))
        at, weight = scale(self.word(i), total), 0
        for v in range(1, count + 1):
            weight += 2**56 // v
            if weight > at:
                return v

    def special(self, i):
        w = self.word(2 * i)
        if self.real:
            tiny, huge = REALS[self.dtype][2:4]
            values = ["nan", "-nan", math.inf, -math.inf, 0.0, -0.0, tiny, -tiny, huge, -huge, 1.0, -1.0]
        elif self.low < 0:
            values = [self.low, self.low + 1, -1, 0, 1, self.high - 1, self.high]
        else:
            values = [0, 1, self.high // 2, self.high // 2 + 1, self.high - 1, self.high]
        if w >> 63:
            return values[scale(w * 2 % M, len(values))]
        other = self.word(2 * i + 1)
        return self.unit(0.0, 1.0, other) if self.real else self.low + scale(other, 2**self.bits)

    def quadratic(self, i, square="row"):
        rows, columns = ([1] + self.dims)[-2:]
        row, column = i // columns % rows, i % columns
        value = row + column * column if square == "column" else row * row + column
        return float(value) if self.real else value

    def hexbits(self, value):
        if self.real and self.dtype != "double" and not isinstance(value, str):
            value = narrow(float(value), self.dtype)
        if self.dtype == "half":
            nans = {"nan": 0x7E00, "-nan": 0xFE00}
            return "%x" % (nans[value] if value in nans else struct.unpack("<H", struct.pack("<e", value))[0])
        if self.dtype in ("float", "bfloat16"):
            nans = {"nan": 0x7FC00000, "-nan": 0xFFC00000}
            bits = nans[value] if value in nans else struct.unpack("<I", struct.pack("<f", value))[0]
            return "%x" % (bits if self.dtype == "float" else bits >> 16)
        if self.dtype == "double":
            nans = {"nan": 0x7FF8 << 48, "-nan": 0xFFF8 << 48}
            return "%x" % (nans[value] if value in nans else struct.unpack("<Q", struct.pack("<d", value))[0])
        return "%x" % (value % 2**self.bits)


def line(name, dtype, seed=1, tensor="in", elems=12, dims=None, text="", **parameters):
    dims = dims or [elems]
    elems = math.prod(dims)
    stream = Stream(seed, tensor, dtype, dims)
    draw = getattr(stream, name.replace("-", "_"))
    shown = " ".join([name] + ["%s=%s" % p for p in parameters.items()]) if not text else text
    values = [stream.hexbits(draw(i, **parameters)) for i in range(min(elems, 24))]
    print(shown, seed, tensor, dtype, "x".join(map(str, dims)), " ".join(values), sep="|")


def main():
    every = list(BITS) + list(REALS)
    for name in ("uniform", "normal", "ascending", "descending", "constant", "few-distinct", "zipf"):
        for dtype in every:
            line(name, dtype)
    for dtype in every:
        line("special", dtype, elems=24)
    line("uniform", "int32", seed=0)
    line("uniform", "int32", seed=M - 1, tensor="")
    line("uniform", "int32", tensor="B")
    line("uniform", "int32", min=-5, max=5)
    line("uniform", "int8", min=-128, max=-128)
    line("uniform", "uint32", max=4294967294)
    line("uniform", "int64", min=0, max=2**32)
    line("uniform", "int64", min=-(2**62), max=2**63 - 1)
    line("uniform", "uint64", min=2**40)
    line("uniform", "float", min=-1, max=1)
    line("uniform", "float", min=0.1, max=0.30000000000000004)
    line("uniform", "double", min=-1e308, max=1e308)
    line("normal", "int32", mean=1000, sd=2.5)
    line("normal", "uint8", mean=0, sd=100)
    line("normal", "int64", mean=0, sd=1e19)
    line("normal", "float", mean=-3, sd=0.1)
    line("normal", "double", mean=1e10, sd=0.001)
    line("ascending", "int8", start=120, step=3)
    line("ascending", "uint64", start=0, step=2**62)
    line("ascending", "float", start=0.1, step=0.1)
    line("descending", "int32", start=-2147483647)
    line("descending", "double", step=0.1)
    line("descending", "uint8", elems=1000)
    line("constant", "int64", value=-(2**63))
    line("constant", "float", value=0.1)
    line("constant", "double", value=-math.inf)
    line("few-distinct", "int32", count=1)
    line("few-distinct", "uint8", count=256)
    line("few-distinct", "uint64", count=3)
    line("few-distinct", "float", count=3)
    line("few-distinct", "double", count=10)
    line("zipf", "uint8", count=255)
    line("zipf", "int32", count=1)
    line("zipf", "int32", count=2)
    line("zipf", "int32", count=1000000)
    line("zipf", "double", count=70000)
    line("uniform", "half", min=-1, max=1)
    line("uniform", "bfloat16", min=100, max=101)
    line("normal", "half", mean=60000, sd=100)
    line("normal", "bfloat16", sd=1e30)
    line("ascending", "half", start=65000, step=100)
    line("ascending", "bfloat16", start=250)
    line("constant", "half", value=0.1)
    line("few-distinct", "half", count=2048)
    line("few-distinct", "bfloat16", count=256)
    line("zipf", "half", count=2048)
    for square in ("row", "column"):
        for dtype in every:
            line("quadratic", dtype, dims=[4, 5], square=square)
        line("quadratic", "uint8", dims=[2, 3, 4], square=square)
        line("quadratic", "int32", dims=[3, 1, 2, 4], square=square)
        line("quadratic", "int64", dims=[7, 1], square=square)
    line("quadratic", "float", dims=[3, 7])
    line("quadratic", "int8", dims=[24, 1])


main()
