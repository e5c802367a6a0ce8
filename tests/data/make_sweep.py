#!/usr/bin/env python3
"""Prints tests/data/sweep.txt: what lists and ranges of a job file must give, from the text of
docs/job-file.md, in Python's fractions.  Usage: make_sweep.py > sweep.txt

A line: the text as a job file has it | value | value ...
"""
import random
from fractions import Fraction

SI = {"K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
BINARY = {"Ki": 1024, "Mi": 1024**2, "Gi": 1024**3, "Ti": 1024**4}


def number(text):
    text = text.replace("_", "")
    if text.lower().startswith("0x"):
        return Fraction(int(text, 16))
    for units in (BINARY, SI):
        for name, factor in units.items():
            if text.endswith(name):
                return Fraction(text[: -len(name)]) * factor
    return Fraction(text)


def family(first, last):
    for text in (first, last):
        for units in (BINARY, SI):
            if any(text.endswith(name) for name in units):
                return units
    return {}


def whole_text(value, units):
    for name, factor in sorted(units.items(), key=lambda unit: -unit[1]):
        if value != 0 and value % factor == 0:
            return f"{value // factor}{name}"
    return str(value)


def decimal_text(value):
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    scaled = str(abs((value * 10**digits).numerator)).rjust(digits + 1, "0")
    text = scaled if digits == 0 else f"{scaled[:-digits]}.{scaled[-digits:]}"
    return ("-" if value < 0 else "") + text


def expand(first, last, sign, by):
    value, end, step = number(first), number(last), number(by)
    bounds = (value, end, step) if sign == "+" else (value, end)
    is_whole = all(bound.denominator == 1 for bound in bounds)
    units = family(first, last)
    while value <= end:
        yield whole_text(value, units) if is_whole else decimal_text(value)
        value = value + step if sign == "+" else value * step


def random_bound(draw, most):
    text = str(draw.randint(1, most))
    kind = draw.randint(0, 5)
    if kind == 0:
        text += draw.choice(list(SI))
    elif kind == 1:
        text += draw.choice(list(BINARY))
    elif kind == 2:
        text += "." + str(draw.randint(0, 999))
    elif kind == 3:
        text += f"e{draw.randint(-3, 6)}"
    elif kind == 4 and len(text) > 1:
        text = text[0] + "_" + text[1:]
    return text


def random_ranges(draw, count):
    while count > 0:
        first, last = random_bound(draw, 99), random_bound(draw, 999)
        sign = draw.choice("*+")
        by = str(draw.randint(2, 12)) if sign == "*" else random_bound(draw, 99)
        if draw.randint(0, 9) == 0 and sign == "+":
            first = "-" + first
        span = number(last) - number(first)
        if span < 0 or (sign == "+" and span / number(by) > 40):
            continue
        yield first, last, sign, by
        count -= 1


FIXED = [
    ("1M", "1G", "*", "10"),
    ("64", "512", "+", "64"),
    ("1", "1", "*", "2"),
    ("5", "5", "+", "7"),
    ("1", "10", "*", "2"),
    ("1", "10", "+", "4"),
    ("-4", "4", "+", "2"),
    ("-3K", "0", "+", "1K"),
    ("0", "3Ki", "+", "512"),
    ("1K", "1Mi", "*", "4"),
    ("1", "1Mi", "*", "16"),
    ("0x10", "0x40", "*", "2"),
    ("0.1", "0.5", "+", "0.1"),
    ("0.5", "8", "*", "2"),
    ("1e-3", "1", "*", "10"),
    ("-0.5", "0.5", "+", "0.25"),
    ("1.5K", "6K", "*", "2"),
    ("1", "1e+3", "*", "10"),
    ("1", "1e+1", "+", "3"),
    ("1", "9223372036854775807", "*", "9223372036854775807"),
    ("0", "9223372036854775807", "+", "9223372036854775807"),
    ("-9223372036854775808", "9223372036854775807", "+", "9223372036854775807"),
]


def main():
    draw = random.Random(20)
    for part in FIXED + list(random_ranges(draw, 300)):
        first, last, sign, by = part
        print(f"{first}..{last}{sign}{by}", *expand(*part), sep="|")
    for _ in range(40):  # lists of ranges and single values, all different
        values, texts = [], []
        for part in random_ranges(draw, draw.randint(1, 3)):
            first, last, sign, by = part
            texts += [f"{first} .. {last} {sign} {by}", f"v{len(texts)}"]
            values += [*expand(*part), texts[-1]]
        if len(values) == len(set(values)):
            print(" , ".join(texts), *values, sep="|")


if __name__ == "__main__":
    main()
