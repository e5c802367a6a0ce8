#!/usr/bin/env python3
"""Writes jobs/data/eight_digits.npy, the teaching text's example of a radix sort by one bit: 0 0 1 0 1 1 0 1.

Usage: make_eight_digits.py [FILE]
"""
import struct
import sys
from pathlib import Path

DIGITS = [0, 0, 1, 0, 1, 1, 0, 1]
FILE = Path(__file__).resolve().parents[3] / "jobs" / "data" / "eight_digits.npy"

header = f"{{'descr': '<u4', 'fortran_order': False, 'shape': ({len(DIGITS)},), }}"
header += " " * (-(10 + len(header) + 1) % 64) + "\n"
data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<8I", *DIGITS)
(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE).write_bytes(data)
