#!/usr/bin/env python3
"""Makes the small .npy files of test_conv.c with OpenCV, whose filters are another's work.

Usage: make_data.py FOLDER; needs numpy and opencv-python-headless.
"""
import sys

import cv2
import numpy as np

BORDERS = {"replicate": cv2.BORDER_REPLICATE, "reflect": cv2.BORDER_REFLECT,
           "reflect101": cv2.BORDER_REFLECT_101, "wrap": cv2.BORDER_WRAP}


def padded_filter(image, mask, border):
    """Correlation of bytes, exact: filter2D itself knows no wrap, so the border is made first."""
    rows, columns = mask.shape[0] // 2, mask.shape[1] // 2
    wide = cv2.copyMakeBorder(image, rows, rows, columns, columns, BORDERS[border])
    sums = cv2.filter2D(wide.astype(np.float64), cv2.CV_64F, mask.astype(np.float64))
    sums = sums[rows:rows + image.shape[0], columns:columns + image.shape[1]]
    return np.clip(np.floor(sums + 0.5), 0, 255).astype(np.uint8)


def main():
    folder = sys.argv[1]
    random = np.random.default_rng(20)
    image = random.integers(0, 256, (13, 17, 3), dtype=np.uint8)
    np.save(f"{folder}/image.npy", image)
    sharpen5 = np.array([[0, -1, 1, -1, 0], [-1, 1, -1, 1, -1], [0, -1, 8, -1, 0],
                         [-1, 1, -1, 1, -1], [0, -1, 1, -1, 0]])
    for border in BORDERS:
        np.save(f"{folder}/sharpen5_{border}.npy", padded_filter(image, sharpen5, border))
    for size in (3, 5):  # with sigma 0 OpenCV too takes the binomial weights, and rounds halves up
        smooth = cv2.getGaussianKernel(size, 0)
        np.save(f"{folder}/gaussian{size}.npy", padded_filter(image, smooth @ smooth.T, "reflect101"))
    for name, order in (("sobel_x", (1, 0)), ("sobel_y", (0, 1))):
        for size in (3, 5, 7):
            sums = cv2.Sobel(image, cv2.CV_64F, *order, ksize=size, borderType=cv2.BORDER_REPLICATE)
            np.save(f"{folder}/{name}{size}.npy", np.clip(sums, 0, 255).astype(np.uint8))
    for size in (3, 5):
        sums = cv2.Laplacian(image, cv2.CV_64F, ksize=size, borderType=cv2.BORDER_REPLICATE)
        np.save(f"{folder}/laplacian{size}.npy", np.clip(sums, 0, 255).astype(np.uint8))
    reals = random.standard_normal((9, 11)).astype(np.float32)
    np.save(f"{folder}/reals.npy", reals)
    np.save(f"{folder}/box7_reals.npy", cv2.blur(reals, (7, 7), borderType=cv2.BORDER_REFLECT))
    np.save(f"{folder}/gaussian9_reals.npy",
            cv2.GaussianBlur(reals, (9, 9), 1.7, borderType=cv2.BORDER_REPLICATE))


if __name__ == "__main__":
    main()
