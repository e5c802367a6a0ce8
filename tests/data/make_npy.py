#!/usr/bin/env python3
"""Writes the .npy fixtures of tests/unit/test_datafile.c with NumPy.  Usage: make_npy.py [FOLDER]

Element i, counted in C order, of every array is value(i) in its dtype: 37 i + 11 modulo 2^bits for
integers, (37 i + 11 - 300) / 8 for floats; both are exact. The test knows the same formula.
"""
import struct
import sys
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

HERE = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "npy"
INTS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
FLOATS = ["f4", "f8", "f2"]


def values(kind, shape=(7,)):
    i = np.arange(int(np.prod(shape)), dtype=np.uint64)
    if kind in FLOATS:
        flat = (37 * i.astype(np.float64) + 11 - 300) / 8
    else:
        flat = (37 * i + 11).astype("u" + kind[1:]).view(kind)
    return flat.astype(kind).reshape(shape)


def write(name, array, version=None):
    with open(HERE / f"{name}.npy", "wb") as file:
        npy.write_array(file, array, version=version)


def raw(name, data):
    (HERE / f"{name}.npy").write_bytes(data)


def header(text, data=b"", version=(1, 0), length=None):
    """A file with any header text, the way a careless or hostile writer might make it."""
    text = text.encode("latin1")
    width = "<H" if version[0] == 1 else "<I"
    size = len(text) if length is None else length
    return b"\x93NUMPY" + bytes(version) + struct.pack(width, size) + text + data


def good():
    for kind in INTS + FLOATS:
        write(f"good_{kind}", values(kind))
        write(f"good_{kind}_2d", values(kind, (3, 5)))
        write(f"good_{kind}_fortran", np.asfortranarray(values(kind, (3, 5))))
        if kind[1] != "1":
            write(f"good_{kind}_big", values(kind).astype(">" + kind))
            write(f"good_{kind}_big_fortran", np.asfortranarray(values(kind, (3, 5)).astype(">" + kind)))
    write("good_3d_fortran", np.asfortranarray(values("i4", (2, 3, 4))))
    write("good_4d", values("i4", (2, 3, 4, 5)))
    write("good_4d_fortran", np.asfortranarray(values("i4", (2, 3, 4, 5))))
    write("good_scalar", values("i4", ()))
    write("good_empty", values("f4", (0,)))
    write("good_empty_2d", values("f4", (3, 0)))
    write("good_empty_fortran", np.asfortranarray(values("f4", (0, 3))))
    # As ml_dtypes has its bfloat16 written: the upper halves of floats, as raw records.
    upper = (values("f4", (3, 5)).view(np.uint32) >> 16).astype("<u2")
    write("bfloat16", upper.view("V2"))
    raw("bfloat16_fortran", header("{'descr': '<V2', 'fortran_order': True, 'shape': (3, 5), }", upper.T.tobytes()))
    write("good_version2", values("i4"), version=(2, 0))
    write("good_version3", values("i4"), version=(3, 0))
    write("good_ones", values("i2", (1, 1, 7, 1)))


def odd_but_good():
    """Headers that NumPy reads although it does not write them."""
    data = values("i4").tobytes()
    dicts = {
        "order": "{'shape': (7,), 'fortran_order': False, 'descr': '<i4'}",
        "quotes": '{"descr": "<i4", "fortran_order": False, "shape": (7,)}\n',
        "spaces": " {\t'descr' :'<i4' ,'fortran_order':False ,\n'shape' : ( 7 , ) , } \n",
        "tight": "{'descr':'<i4','fortran_order':False,'shape':(7,)}",
        "native": "{'descr': '=i4', 'fortran_order': False, 'shape': (7,)}",
        "no_mark": "{'descr': 'i4', 'fortran_order': False, 'shape': (7,)}",
        "python2": "{'descr': '<i4', 'fortran_order': False, 'shape': (7L,), }",
    }
    for name, text in dicts.items():
        raw(f"good_odd_{name}", header(text, data))
        np.load(HERE / f"good_odd_{name}.npy")


def refused_kinds():
    write("bad_object", np.array([1, "two"], dtype=object))
    write("bad_structured", np.zeros(3, dtype=[("a", "<i4"), ("b", "<f4")]))
    write("bad_bool", np.array([True, False]))
    write("bad_complex", np.array([1 + 2j]))
    write("bad_text", np.array(["one", "two"]))
    write("bad_bytes", np.array([b"one", b"two"]))
    write("bad_void", np.zeros(2, dtype="V5"))
    write("bad_date", np.array(["2020-01-01"], dtype="datetime64[D]"))
    if np.dtype(np.longdouble).itemsize > 8:
        write("bad_longdouble", np.zeros(2, dtype=np.longdouble))


def broken():
    whole = (HERE / "good_i4.npy").read_bytes()
    raw("bad_nothing", b"")
    raw("bad_magic", b"\x93NUMPX" + whole[6:])
    raw("bad_text_file", b"1 2 3 4 5 6 7 8 9\n")
    raw("bad_version0", whole[:6] + b"\0" + whole[7:])
    raw("bad_version4", whole[:6] + b"\4" + whole[7:])
    raw("bad_version1_1", whole[:7] + b"\1" + whole[8:])
    raw("bad_cut_magic", whole[:5])
    raw("bad_cut_length", whole[:9])
    raw("bad_cut_header", whole[:100])
    raw("bad_cut_data", whole[:-1])
    raw("bad_no_data", whole[:128])
    raw("bad_trailing", whole + b"\0")
    raw("bad_trailing_element", whole + b"\0\0\0\0")
    raw("bad_length_lies_long", whole[:8] + struct.pack("<H", 60000) + whole[10:])
    raw("bad_length_lies_short", whole[:8] + struct.pack("<H", 20) + whole[10:])
    raw("bad_length_huge", header("{}", version=(2, 0), length=0xFFFFFFFF))
    raw("bad_length_zero", header("", length=0))
    write("bad_rank5", np.zeros((1, 1, 1, 1, 1), dtype="i4"))


def broken_dicts():
    data = values("i4").tobytes()
    start = "'descr': '<i4', 'fortran_order': False, "
    dicts = {
        "negative": "{" + start + "'shape': (-7,)}",
        "wraps": "{" + start + "'shape': (4294967296, 4294967296)}",
        "wraps_to_28": "{" + start + "'shape': (4611686018427387911,)}",
        "wraps_beside_zero": "{" + start + "'shape': (0, 4294967296, 4294967296)}",
        "dim_over_64_bits": "{" + start + "'shape': (18446744073709551623,)}",
        "lies_about_shape": "{" + start + "'shape': (8,)}",
        "no_tuple": "{" + start + "'shape': (7)}",
        "list_shape": "{" + start + "'shape': [7]}",
        "real_shape": "{" + start + "'shape': (7.0,)}",
        "name_shape": "{" + start + "'shape': (n,)}",
        "comma_shape": "{" + start + "'shape': (,)}",
        "open_shape": "{" + start + "'shape': (7,",
        "two_blanks": "{" + start + "'shape': (7 7)}",
        "no_brace": start + "'shape': (7,)}",
        "no_end": "{" + start + "'shape': (7,)",
        "no_comma": "{'descr': '<i4' 'fortran_order': False, 'shape': (7,)}",
        "no_colon": "{'descr' '<i4', 'fortran_order': False, 'shape': (7,)}",
        "after_end": "{" + start + "'shape': (7,)} x",
        "nul_after_end": "{" + start + "'shape': (7,)}\0",
        "extra_key": "{" + start + "'shape': (7,), 'more': 1}",
        "repeated_key": "{" + start + "'shape': (7,), 'descr': '<f4'}",
        "no_descr": "{'fortran_order': False, 'shape': (7,)}",
        "no_order": "{'descr': '<i4', 'shape': (7,)}",
        "no_shape": "{" + start + "}",
        "order_number": "{'descr': '<i4', 'fortran_order': 0, 'shape': (7,)}",
        "open_string": "{'descr': '<i4, 'fortran_order': False, 'shape': (7,)}",
        "escape": "{'descr': '\\x3ci4', 'fortran_order': False, 'shape': (7,)}",
        "long_string": "{'" + "descr" * 20 + "': '<i4', 'fortran_order': False, 'shape': (7,)}",
        "control": "{'descr': '\x1b[2J', 'fortran_order': False, 'shape': (7,)}",
        "number_descr": "{'descr': 4, 'fortran_order': False, 'shape': (7,)}",
        "empty_descr": "{'descr': '', 'fortran_order': False, 'shape': (7,)}",
        "mark_only": "{'descr': '<', 'fortran_order': False, 'shape': (7,)}",
        "int3": "{'descr': '<i3', 'fortran_order': False, 'shape': (7,)}",
        "int44": "{'descr': '<i44', 'fortran_order': False, 'shape': (7,)}",
        "two_marks": "{'descr': '<<i4', 'fortran_order': False, 'shape': (7,)}",
        "empty_dict": "{}",
        "key_number": "{1: 2}",
    }
    for name, text in dicts.items():
        raw(f"bad_{name}", header(text, data))


def saved():
    """What numpy.save writes, for datafile_write to be held against, byte for byte."""
    np.save(HERE / "save_i4.npy", values("i4"))
    np.save(HERE / "save_u1_2d.npy", values("u1", (3, 5)))
    np.save(HERE / "save_f8_4d.npy", values("f8", (1, 2, 1, 3)))
    np.save(HERE / "save_empty.npy", values("i8", (0,)))
    np.save(HERE / "save_long.npy", values("i1", (1234, 1)))


def main():
    HERE.mkdir(parents=True, exist_ok=True)
    for old in HERE.glob("*.npy"):
        old.unlink()
    good()
    odd_but_good()
    refused_kinds()
    broken()
    broken_dicts()
    saved()


main()
