#!/usr/bin/env python3
"""Writes the pictures of tests/unit/test_picture.c: PNG by hand (struct and zlib), PGM, PPM and PBM by hand,
JPEG with Pillow.  Usage: make_pictures.py [FOLDER]

The value of row y, column x, channel c is one of these; the test knows the same formulas.

    8 bits   (37 y + 11 x + 101 c + 7) modulo 256
    16 bits  (3571 y + 1237 x + 20011 c + 77) modulo 65536
    b bits   the 8-bit value modulo 2^b
    smooth   20 + 4 y + 3 x + 40 c, for JPEG
    palette  colour i = (y * width + x) modulo count is (7 i, 255 - 5 i, i i) modulo 256, its alpha 255 - 3 i
"""
import io
import struct
import sys
import zlib
from pathlib import Path

from PIL import Image, ImageOps

HERE = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures"
WIDTH, HEIGHT = 7, 5
SMOOTH_WIDTH, SMOOTH_HEIGHT = 24, 17
GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def raw(name, data):
    (HERE / name).write_bytes(data)


def value(bits, y, x, c):
    if bits == 16:
        return (3571 * y + 1237 * x + 20011 * c + 77) % 65536
    return (37 * y + 11 * x + 101 * c + 7) % 2**bits


# --- PNG ---------------------------------------------------------------------------------------------


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pack(values, bits):
    if bits == 16:
        return b"".join(struct.pack(">H", v) for v in values)
    packed, held, count = bytearray(), 0, 0
    for v in values:
        held, count = held << bits | v, count + bits
        if count == 8:
            packed.append(held)
            held, count = 0, 0
    if count:
        packed.append(held << (8 - count))
    return bytes(packed)


def paeth(a, b, c):
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def filtered(row, above, step, kind):
    out = bytearray([kind])
    for i, v in enumerate(row):
        a = row[i - step] if i >= step else 0
        b = above[i] if above else 0
        c = above[i - step] if above and i >= step else 0
        out.append((v - [0, a, b, (a + b) // 2, paeth(a, b, c)][kind]) % 256)
    return bytes(out)


def scan(rows, step, kinds):
    above, out = b"", b""
    for i, row in enumerate(rows):
        out += filtered(row, above, step, kinds[i % len(kinds)])
        above = row
    return out


def png(bits, colour, width=WIDTH, height=HEIGHT, interlaced=False, before=b"", after=b"", index=None, short=False):
    channels = CHANNELS[colour]

    def pixel(y, x):
        return [index(y, x)] if index else [value(bits, y, x, c) for c in range(channels)]

    def lines(x0, y0, dx, dy):
        return [
            pack(sum((pixel(y, x) for x in range(x0, width, dx)), []), bits)
            for y in range(y0, height, dy)
            if x0 < width
        ]

    step = max(1, channels * bits // 8)
    kinds = [0] if index or bits < 8 else [0, 1, 2, 3, 4]
    data = b"".join(scan(lines(*p), step, kinds) for p in (PASSES if interlaced else [(0, 0, 1, 1)]))
    packed = zlib.compress(data[:-1] if short else data)
    middle = len(packed) // 2
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced))
        + before
        + chunk(b"IDAT", packed[:middle])
        + chunk(b"IDAT", packed[middle:])
        + after
        + chunk(b"IEND", b"")
    )


def palette(count, alphas=0):
    colours = bytes(v % 256 for i in range(count) for v in (7 * i, 255 - 5 * i, i * i))
    alpha = chunk(b"tRNS", bytes((255 - 3 * i) % 256 for i in range(alphas))) if alphas else b""
    return chunk(b"PLTE", colours) + alpha


def cycle(count):
    return lambda y, x: (y * WIDTH + x) % count


def exif(orientation, order="II", kind=3):
    mark = "<" if order == "II" else ">"
    entries = [struct.pack(mark + "HHIHH", 0x112, kind, 1, orientation, 0)]
    return order.encode() + struct.pack(mark + "HIH", 42, 8, len(entries)) + b"".join(entries) + b"\0\0\0\0"


def pngs():
    for way, interlaced in (("", False), ("_interlaced", True)):
        for name, colour in (("gray", GRAY), ("gray_alpha", GRAY_ALPHA), ("rgb", RGB), ("rgba", RGBA)):
            raw(f"{name}8{way}.png", png(8, colour, interlaced=interlaced))
            raw(f"{name}16{way}.png", png(16, colour, interlaced=interlaced))
        for bits in (1, 2, 4):
            raw(f"gray{bits}{way}.png", png(bits, GRAY, interlaced=interlaced))
        for bits, count in ((1, 2), (2, 4), (4, 16), (8, 35)):
            raw(f"palette{bits}{way}.png",
                png(bits, PALETTE, interlaced=interlaced, before=palette(count), index=cycle(count)))
            raw(f"palette{bits}_alpha{way}.png",
                png(bits, PALETTE, interlaced=interlaced, before=palette(count, count - 1), index=cycle(count)))
        raw(f"one{way}.png", png(8, RGB, 1, 1, interlaced))
    # The colour of row 2, column 3 is the one that is transparent.
    for bits in (4, 8, 16):
        key = value(bits, 2, 3, 0)
        raw(f"gray{bits}_key.png", png(bits, GRAY, before=chunk(b"tRNS", struct.pack(">H", key))))
        keys = struct.pack(">HHH", *(value(bits, 2, 3, c) for c in range(3)))
        if bits >= 8:
            raw(f"rgb{bits}_key.png", png(bits, RGB, before=chunk(b"tRNS", keys)))
    # What cameras and editors leave behind changes nothing.
    extras = (
        chunk(b"gAMA", struct.pack(">I", 45455))
        + chunk(b"iCCP", b"x\0\0" + zlib.compress(b"no profile at all"))
        + chunk(b"pHYs", struct.pack(">IIB", 2835, 2835, 1))
        + chunk(b"tEXt", b"Comment\0words")
        + chunk(b"quUx", b"unknown")
    )
    raw("extras.png", png(8, RGB, before=extras, after=chunk(b"tIME", bytes([7, 234, 1, 1, 0, 0, 0]))))
    raw("exif6.png", png(8, RGB, before=chunk(b"eXIf", exif(6))))
    raw("bad_exif_after.png", png(8, RGB, after=chunk(b"eXIf", exif(6))))
    raw("bad_exif_9.png", png(8, RGB, before=chunk(b"eXIf", exif(9))))
    raw("bad_index.png", png(8, PALETTE, before=palette(34), index=cycle(35)))
    raw("bad_no_palette.png", png(8, PALETTE, index=cycle(35)))
    raw("bad_short_data.png", png(8, RGB, short=True))
    raw("bad_critical.png", png(8, RGB, before=chunk(b"QuUX", b"unknown")))
    raw("bad_bits.png", png(8, RGB).replace(b"\0\0\0\5\x08", b"\0\0\0\5\x03"))
    whole = png(8, GRAY)
    huge = struct.pack(">IIBBBBB", 60000, 50000, 8, RGB, 0, 0, 0)
    raw("huge.png", whole[:8] + chunk(b"IHDR", huge) + whole[33:])
    widest = struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 16, RGBA, 0, 0, 0)
    raw("bad_widest.png", whole[:8] + chunk(b"IHDR", widest) + whole[33:])
    raw("bad_none.png", whole[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", 0, 5, 8, GRAY, 0, 0, 0)) + whole[33:])


# --- JPEG --------------------------------------------------------------------------------------------


def smooth(channels):
    image = Image.new("L" if channels == 1 else "RGB", (SMOOTH_WIDTH, SMOOTH_HEIGHT))
    for y in range(SMOOTH_HEIGHT):
        for x in range(SMOOTH_WIDTH):
            v = tuple(20 + 4 * y + 3 * x + 40 * c for c in range(channels))
            image.putpixel((x, y), v if channels > 1 else v[0])
    return image


def jpeg(image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", quality=100, subsampling=0, **options)
    return file.getvalue()


def with_exif(data, block):
    """The block in an APP1 marker right after the start of the picture."""
    body = b"Exif\0\0" + block
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + data[2:]


def in_scans(names, count):
    """The same 8 by 8 gradient in every component, and `count` scans, each of one component in turn."""
    gray = jpeg(smooth(1).crop((0, 0, 8, 8)))
    frame = gray.index(b"\xff\xc0")
    scan = gray.index(b"\xff\xda")
    after = frame + 2 + struct.unpack(">H", gray[frame + 2 : frame + 4])[0]
    parts = b"".join(bytes([ord(n), 0x11, 0]) for n in names)
    head = struct.pack(">HBHHB", 8 + len(parts), 8, 8, 8, len(names)) + parts
    coded = gray[scan + 10 : gray.rindex(b"\xff\xd9")]
    scans = [b"\xff\xda\0\x08\1" + bytes([ord(names[i % len(names)]), 0, 0, 63, 0]) + coded for i in range(count)]
    start = gray[:2] + gray[20:frame] if gray[2:4] == b"\xff\xe0" else gray[:frame]  # JFIF means YCbCr
    return start + b"\xff\xc0" + head + gray[after:scan] + b"".join(scans) + b"\xff\xd9"


def jpegs():
    turns = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    gray, colour = smooth(1), smooth(3)
    raw("gray.jpg", jpeg(gray))
    raw("gray_progressive.jpg", jpeg(gray, progressive=True))
    raw("colour.jpg", jpeg(colour))
    raw("colour_progressive.jpg", jpeg(colour, progressive=True))
    raw("colour_rgb.jpg", jpeg(colour, keep_rgb=True))
    raw("colour_restarts.jpeg", jpeg(colour, restart_marker_blocks=2))
    for orientation in range(1, 9):
        stored = colour.transpose(turns[orientation]) if orientation > 1 else colour
        data = with_exif(jpeg(stored), exif(orientation, "MM" if orientation % 2 else "II"))
        shown = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        assert shown.size == colour.size
        raw(f"turned{orientation}.jpg", data)
    plain = jpeg(colour)
    raw("exif_elsewhere.jpg", with_exif(plain, exif(1)).replace(b"Exif\0\0", b"http:/"))
    raw("bad_cmyk.jpg", jpeg(colour.convert("CMYK")))
    raw("bad_exif_0.jpg", with_exif(plain, exif(0)))
    raw("bad_exif_9.jpg", with_exif(plain, exif(9)))
    raw("bad_exif_long.jpg", with_exif(plain, exif(6, kind=4)))
    raw("bad_exif_order.jpg", with_exif(plain, b"XX" + exif(6)[2:]))
    raw("bad_exif_magic.jpg", with_exif(plain, exif(6).replace(b"\x2a", b"\x2b", 1)))
    raw("bad_exif_table.jpg", with_exif(plain, exif(6)[:4] + struct.pack("<I", 1000) + exif(6)[8:]))
    raw("bad_exif_cut.jpg", with_exif(plain, exif(6)[:-8]))
    raw("bad_precision.jpg", plain.replace(b"\xff\xc0\0\x11\x08", b"\xff\xc0\0\x11\x0c"))
    raw("scans.jpg", in_scans("RGB", 30))
    raw("bad_scans.jpg", in_scans("RGB", 600))
    raw("bad_two.jpg", in_scans("AB", 2))
    end = plain.rindex(b"\xff\xd9")
    raw("bad_extra_bytes.jpg", plain[:end] + bytes(range(1, 100)) + plain[end:])


# --- PGM, PPM, PBM -----------------------------------------------------------------------------------


def values(channels, most):
    """Values that no bits formula has: modulo the largest and one."""
    return [
        value(16, y, x, c) % (most + 1) for y in range(HEIGHT) for x in range(WIDTH) for c in range(channels)
    ]


def pnms():
    for most in (1, 100, 255, 256, 1000, 65535):
        for channels, plain, kind in ((1, "P2", "P5"), (3, "P3", "P6")):
            name = "pgm" if channels == 1 else "ppm"
            text = " ".join(map(str, values(channels, most))).replace(" ", "\n", 5)
            raw(f"plain{most}.{name}", f"{plain}\n# made by hand\n{WIDTH} {HEIGHT}\n{most}\n{text}\n".encode())
            data = b"".join(struct.pack(">H" if most > 255 else "B", v) for v in values(channels, most))
            raw(f"raw{most}.{name}", f"{kind}\n{WIDTH} {HEIGHT}\n{most}\n".encode() + data)
    bits = values(1, 1)
    rows = [bits[y * WIDTH : (y + 1) * WIDTH] for y in range(HEIGHT)]
    raw("plain.pbm", b"P1 # bits\n7 #columns\n 5\n" + "\n".join("".join(map(str, r)) for r in rows).encode() + b"\n")
    raw("raw.pbm", b"P4\n7 5\n" + b"".join(pack(r, 1) for r in rows))
    raw("comments.pgm", b"P5#one\n#two\n 7\t#three\r\n#\n5 255#four\n" + bytes(values(1, 255)))
    raw("bad_value.pgm", b"P2\n2 1\n100\n5 101\n")
    raw("bad_raw_value.pgm", b"P5\n2 1\n100\n" + bytes([5, 101]))
    raw("bad_most.pgm", b"P5\n2 1\n65536\n" + bytes(4))
    raw("bad_most_0.pgm", b"P5\n2 1\n0\n" + bytes(2))
    raw("bad_no_pixels.pgm", b"P5\n0 5\n255\n")
    raw("bad_minus.pgm", b"P5\n-7 5\n255\n")
    raw("bad_wide.pgm", b"P5\n99999999999999999999 5\n255\n")
    raw("bad_kind.pgm", b"P7\n7 5\n255\n")
    raw("bad_bit.pbm", b"P1\n2 1\n12\n")
    raw("bad_letters.ppm", b"P3\n1 1\n255\n1 2 x\n")


def main():
    HERE.mkdir(parents=True, exist_ok=True)
    for old in HERE.iterdir():
        old.unlink()
    pngs()
    jpegs()
    pnms()


main()
