/*
 * Masks: from the text of an option to weights, and to the row and column whose product they are.
 */
#ifndef CONV_MASK_H
#define CONV_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CONV_SIZE_MAX = 31, /* rows and columns of a mask */
    CONV_TAPS_MAX = CONV_SIZE_MAX * CONV_SIZE_MAX,
    CONV_AXIS_BITS = 11, /* whole weights of box and gaussian add up to 2^11 along each axis */
};

/* 255 times all weights must fit an int32. */
#define CONV_MAGNITUDE_MAX 8421504

struct conv_mask {
    int width, height; /* odd */
    bool is_separable; /* weight(i, j) = column[i] * row[j] */
    bool is_real;      /* which of the two members of each pair below is filled */
    int shift;         /* whole weights add up to 2^shift by design; -1: not by design */
    double magnitude;  /* sum of |weights| */
    double sigma;      /* what a gaussian was made with; 0: no gaussian, or binomial */
    int32_t weight[CONV_TAPS_MAX];
    float weight_real[CONV_TAPS_MAX];
    int32_t row[CONV_SIZE_MAX], column[CONV_SIZE_MAX];
    float row_real[CONV_SIZE_MAX], column_real[CONV_SIZE_MAX];
};

/* Reads `text`: a name with a size (gaussian5) or rows of numbers (1 2 1 / 2 4 2 / 1 2 1). `is_real`: weights
 * are floats, else whole numbers. `sigma` of a gaussian; 0: the size decides. On false `why` says what is
 * wrong, and where. */
bool conv_mask_parse(struct conv_mask *mask, const char *text, bool is_real, double sigma,
                     char *why, size_t why_bytes);

/* Turns a mask for correlation into one for convolution. */
void conv_mask_flip(struct conv_mask *mask);

#ifdef __cplusplus
}
#endif

#endif
