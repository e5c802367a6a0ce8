#!/usr/bin/env python3
"""Writes matmul_numpy.h: products as NumPy works them out.

    python3 make_matmul.py | clang-format > matmul_numpy.h
"""
import numpy as np

M, K, N = 5, 9, 6


def table(ctype, name, values, form):
    print(f"static const {ctype} {name}[] = {{")
    flat = [form(v) for v in values.ravel()]
    for i in range(0, len(flat), 3):
        print("    " + ", ".join(flat[i:i + 3]) + ",")
    print("};\n")


def main():
    random = np.random.default_rng(4)
    print("/* Made by make_matmul.py: a is 5 x 9, b is 9 x 6. */")
    print("#ifndef MATMUL_NUMPY_H\n#define MATMUL_NUMPY_H\n\n#include <stdint.h>\n")
    print(f"enum {{ NUMPY_M = {M}, NUMPY_K = {K}, NUMPY_N = {N} }};\n")

    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    a = random.integers(least, most, (M, K), dtype=np.int64, endpoint=True)
    b = random.integers(least, most, (K, N), dtype=np.int64, endpoint=True)
    for name, values in (("numpy_whole_a", a), ("numpy_whole_b", b), ("numpy_whole_product", a @ b)):
        table("int64_t", name, values, lambda v: f"INT64_C({v})")

    a = random.uniform(-1, 1, (M, K)).astype(np.float16)
    b = random.uniform(-1, 1, (K, N)).astype(np.float16)
    product = a.astype(np.float64) @ b.astype(np.float64)
    for name, values in (("numpy_real_a", a), ("numpy_real_b", b), ("numpy_real_product", product)):
        table("double", name, values, lambda v: float(v).hex())
    table("uint16_t", "numpy_half_product", product.astype(np.float16).view(np.uint16), hex)
    print("#endif")


main()
