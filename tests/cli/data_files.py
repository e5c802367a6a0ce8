"""Array files for data_files.sh, written and read with the standard library alone, and the answers that
topk must give, by Python's own sort.

    data_files.py write NAME KIND SHAPE [ORDER VERSION] VALUE...   a .npy, or a raw file by any other name
    data_files.py answer KIND K FLAGS ROW...     holds top.npy, where.npy, top.bin and where.bin against sorted()
"""
import ast
import math
import struct
import sys

FORMATS = {"i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f4": "f", "f8": "d"}


def number(text, kind):
    return float(text) if kind[0] == "f" else int(text)


def pack(values, kind, byte_order):
    return struct.pack(f"{byte_order}{len(values)}{FORMATS[kind]}", *values)


def strides(shape, fortran):
    steps, step = [0] * len(shape), 1
    for axis in range(len(shape)) if fortran else reversed(range(len(shape))):
        steps[axis] = step
        step *= shape[axis]
    return steps


def reorder(values, shape):
    """From C order to Fortran order."""
    out, to = [None] * len(values), strides(shape, True)
    for flat, value in enumerate(values):
        index = [flat // step % length for step, length in zip(strides(shape, False), shape)]
        out[sum(i * step for i, step in zip(index, to))] = value
    return out


def write(name, kind, shape, order, version, values):
    shape = tuple(int(length) for length in shape.split("x"))
    values = [number(value, kind) for value in values]
    fortran, byte_order = "F" in order, ">" if ">" in order else "<"
    data = pack(reorder(values, shape) if fortran else values, kind, byte_order)
    with open(name, "wb") as file:
        if name.endswith(".npy"):
            text = f"{{'descr': '{byte_order}{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
            prefix = 10 if version == 1 else 12
            text += " " * (63 - (prefix + len(text)) % 64) + "\n"
            file.write(b"\x93NUMPY" + bytes([version, 0]))
            file.write(struct.pack("<H" if version == 1 else "<I", len(text)) + text.encode())
        file.write(data)


def read(name, kind=None):
    """(kind, shape, values in C order)"""
    data = open(name, "rb").read()
    if not name.endswith(".npy"):
        count = len(data) // struct.calcsize(FORMATS[kind])
        return kind, (count,), list(struct.unpack(f"<{count}{FORMATS[kind]}", data))
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    end = 10 + struct.unpack("<H", data[8:10])[0]
    assert end % 64 == 0 and data[end - 1:end] == b"\n"
    header = ast.literal_eval(data[10:end].decode())
    assert sorted(header) == ["descr", "fortran_order", "shape"] and not header["fortran_order"]
    kind, shape = header["descr"][1:], header["shape"]
    return kind, shape, list(struct.unpack(f"<{math.prod(shape)}{FORMATS[kind]}", data[end:]))


def best(row, k, flags):
    """(value, index) of the k best: NaN is the largest, ties go to the lowest index."""
    def rank(value):
        return (1, 0) if value != value else (0, value)

    sign = 1 if "smallest" in flags else -1
    order = sorted(range(len(row)), key=lambda i: (sign * rank(row[i])[0], sign * rank(row[i])[1], i))
    if "distinct" in flags:
        seen, kept = set(), []
        for i in order:
            if rank(row[i]) not in seen:
                seen.add(rank(row[i]))
                kept.append(i)
        order = kept
    return [(row[i], i) for i in order[:k]]


def same(a, b):
    return a == b or (a != a and b != b)


def check(suffix, kind, wanted, has_rows):
    got_kind, shape, values = read("top." + suffix, kind)
    index_kind, index_shape, indices = read("where." + suffix, "i8")
    assert got_kind == kind and index_kind == "i8", (got_kind, index_kind)
    assert shape == index_shape, (shape, index_shape)
    if len(set(map(len, wanted))) == 1 and suffix == "npy":
        assert shape == ((len(wanted),) if has_rows else ()) + (len(wanted[0]),), shape
    flat = [pair for row in wanted for pair in row]
    assert len(values) == len(flat), f"{suffix}: {len(values)} elements, not {len(flat)}"
    for at, (value, index) in enumerate(flat):
        assert same(values[at], value) and indices[at] == index, \
            f"{suffix}: element {at}: {values[at]} at {indices[at]}, not {value} at {index}"


def answer(kind, k, flags, rows):
    rows = [[number(value, kind) for value in row.split()] for row in rows]
    if kind == "f4":
        rows = [list(struct.unpack(f"{len(row)}f", struct.pack(f"{len(row)}f", *row))) for row in rows]
    wanted = [best(row, int(k), flags) for row in rows]
    check("npy", kind, wanted, "rows" in flags)
    check("bin", kind, wanted, "rows" in flags)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        name, kind, shape, order, version = sys.argv[2:7]
        write(name, kind, shape, order, int(version), sys.argv[7:])
    else:
        answer(*sys.argv[2:5], sys.argv[5:])
