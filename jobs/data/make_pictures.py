#!/usr/bin/env python3
"""Draws the pictures of jobs/conv.ini: shapes, edges, ramps and grain, all of our own making.

Usage: make_pictures.py FOLDER; needs numpy and pillow.
"""
import sys

import numpy as np
from PIL import Image


def scene(height, width):
    """A sky, a hill, a sun, a fence: something with soft and with hard edges."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    y, x = y / height, x / width
    picture = np.stack([90 + 90 * y, 140 + 70 * y, 230 - 40 * y], axis=-1)
    hill = y > 0.62 + 0.10 * np.sin(5 * x) + 0.03 * np.sin(17 * x + 1)
    picture[hill] = np.stack([60 + 50 * x, 130 - 40 * y, 50 + 20 * x], axis=-1)[hill]
    sun = (x - 0.76) ** 2 * (width / height) ** 2 + (y - 0.24) ** 2
    picture[sun < 0.010] = (255, 236, 150)
    glow = 60 * np.exp(-sun / 0.02)[..., None]
    picture += np.where(hill[..., None], 0, glow)
    fence = (y > 0.72) & (y < 0.90) & ((x * 24) % 1 < 0.35)
    picture[fence] = (205, 190, 165)
    rails = (np.abs(y - 0.77) < 0.012) | (np.abs(y - 0.85) < 0.012)
    picture[rails] = (170, 150, 120)
    grain = np.random.default_rng(4).normal(0, 3, (height, width, 1))
    return np.clip(np.rint(picture + grain), 0, 255).astype(np.uint8)


def main():
    folder = sys.argv[1]
    picture = scene(160, 240)
    Image.fromarray(picture).save(f"{folder}/meadow.png", optimize=True)
    gray = np.rint(picture @ (0.299, 0.587, 0.114)).astype(np.uint8)
    Image.fromarray(gray).save(f"{folder}/meadow_gray.png", optimize=True)
    Image.fromarray(gray[::4, ::4]).save(f"{folder}/meadow_small.pgm")


if __name__ == "__main__":
    main()
