#!/usr/bin/env python3
"""Writes transpose_expected.h, which test_transpose.c includes, with NumPy.  Usage: make_transpose.py [FILE]

Element i, counted in C order, of every input holds the bits i * 0x9e3779b97f4a7c15 + 1 modulo 2^64, of which
the lowest are taken; the test knows the same formula. The file holds the FNV-1a hash of each answer's bytes.
"""
import sys
from pathlib import Path

import numpy as np

FILE = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "transpose_expected.h"
SHAPES = [(1, 1, 1), (1, 1, 70), (1, 70, 1), (1, 2, 3), (1, 15, 17), (1, 63, 65), (1, 64, 64), (1, 65, 63),
          (1, 127, 129), (1, 256, 256), (1, 300, 131), (1, 131, 300), (1, 3, 1009), (1, 1009, 3), (3, 5, 7),
          (2, 128, 64), (4, 33, 33)]


def values(shape, size):
    with np.errstate(over="ignore"):
        bits = np.arange(int(np.prod(shape)), dtype="u8") * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
    return bits.astype(f"u{size}").reshape(shape)


def fnv(data):
    hash_ = 0xCBF29CE484222325
    for byte in data:
        hash_ = (hash_ ^ byte) * 0x100000001B3 % 2**64
    return hash_


def main():
    lines = ["/* Made by make_transpose.py with NumPy: batch, rows, cols, bytes of an element, hash of the answer. */",
             "static const struct expected {", "    int64_t batch, rows, cols;", "    size_t size;",
             "    uint64_t hash;", "} expected[] = {"]
    for batch, rows, cols in SHAPES:
        for size in (1, 2, 4, 8):
            answer = np.ascontiguousarray(values((batch, rows, cols), size).transpose(0, 2, 1))
            lines.append(f"    {{{batch}, {rows}, {cols}, {size}, UINT64_C(0x{fnv(answer.tobytes()):016x})}},")
    FILE.write_text("\n".join(lines + ["};", ""]))


main()
