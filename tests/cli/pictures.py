#!/usr/bin/env python3
"""Holds what pictures.sh wrote against tests/data/make_pictures.py's formulas, with a PNG reader of its own.

    pictures.py png FILE HEIGHT WIDTH CHANNELS BITS EXPRESSION   each value is EXPRESSION of y, x, c and v(y, x, c)
    pictures.py npy FILE HEIGHT WIDTH CHANNELS EXPRESSION        the same of a .npy file of float
"""
import struct
import sys
import zlib

bits = 8


def v(y, x, c):
    if bits == 16:
        return (3571 * y + 1237 * x + 20011 * c + 77) % 65536
    return (37 * y + 11 * x + 101 * c + 7) % 256


def unfilter(kind, row, above, step):
    for i in range(len(row)):
        a = row[i - step] if i >= step else 0
        b = above[i]
        c = above[i - step] if i >= step else 0
        p = a + b - c
        nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        row[i] = (row[i] + [0, a, b, (a + b) // 2, nearest][kind]) % 256
    return row


def read_png(path):
    data = open(path, "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    assert kind == b"IEND" and interlaced == 0
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[colour]
    stride, step = width * channels * depth // 8, channels * depth // 8
    raw, above, values = zlib.decompress(packed), bytes(stride), []
    assert len(raw) == height * (stride + 1)
    for y in range(height):
        line = raw[y * (stride + 1) : (y + 1) * (stride + 1)]
        above = unfilter(line[0], bytearray(line[1:]), above, step)
        values += struct.unpack(">%d%s" % (width * channels, "BH"[depth // 16]), above)
    return (height, width, channels, depth), values


def read_npy(path):
    data = open(path, "rb").read()
    size = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10 : 10 + size])
    assert header["descr"] == "<f4", header
    shape = header["shape"]
    shape = tuple(shape) + (1,) * (3 - len(shape))
    return shape, struct.unpack("<%df" % (shape[0] * shape[1] * shape[2]), data[10 + size :])


def main():
    global bits
    kind, path, *numbers, expression = sys.argv[1:]
    wanted = tuple(map(int, numbers))
    shape, values = read_png(path) if kind == "png" else read_npy(path)
    assert shape == wanted, "is %s, not %s" % (shape, wanted)
    bits = wanted[3] if kind == "png" else 8
    height, width, channels = wanted[:3]
    code = compile(expression, "expression", "eval")
    for i, value in enumerate(values):
        y, x, c = i // channels // width, i // channels % width, i % channels
        right = eval(code, {"y": y, "x": x, "c": c, "v": v})
        assert value == right, "(%d, %d, %d) is %s, not %s" % (y, x, c, value, right)


main()
