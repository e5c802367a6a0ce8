/*
 * What stands beyond the edges of an image, and how a sum becomes a byte: for the baseline and for kernels.
 */
#ifndef CONV_BORDER_H
#define CONV_BORDER_H

#include <stdint.h>

#ifdef __CUDACC__
#define CONV_INLINE static __host__ __device__ __forceinline__
#else
#define CONV_INLINE static inline
#endif

enum conv_border {
    CONV_CONSTANT,   /* v v | a b c d | v v */
    CONV_REPLICATE,  /* a a | a b c d | d d */
    CONV_REFLECT,    /* b a | a b c d | d c */
    CONV_REFLECT101, /* c b | a b c d | c b */
    CONV_WRAP,       /* c d | a b c d | a b */
    CONV_CROP,       /* only pixels whose whole neighbourhood is in the image */
    CONV_FRAME,      /* the same, and the others are v */
};

/* Which of n >= 1 pixels stands at place i, or -1 for the constant. At any distance: an image may be smaller
 * than the mask. Under crop and frame only what is dropped looks outside, and gets some pixel. */
CONV_INLINE int32_t conv_border_at(int32_t i, int32_t n, int border)
{
    int32_t period, place;

    if (i >= 0 && i < n)
        return i;
    if (border == CONV_CONSTANT)
        return -1;
    if (border == CONV_REPLICATE || border >= CONV_CROP || n == 1)
        return i < 0 ? 0 : n - 1;
    period = border == CONV_WRAP ? n : border == CONV_REFLECT ? 2 * n : 2 * n - 2;
    place = i % period;
    place += place < 0 ? period : 0;
    return place < n ? place : period - place - (border == CONV_REFLECT ? 1 : 0);
}

/* Result = (sum * multiplier + add) >> shift, saturated once; add holds the bias and the rounding. */
struct conv_tail {
    int64_t add;
    int32_t multiplier, shift;
    int32_t is_even; /* ties go to the even neighbour */
    int32_t is_wide; /* needs more than 32 bits on the way */
};

CONV_INLINE int32_t conv_tail_narrow(int32_t sum, const struct conv_tail *tail)
{
    const int32_t scaled = sum * tail->multiplier + (int32_t)tail->add;
    const int32_t rest = scaled & (((int32_t)1 << tail->shift) - 1);
    const int32_t result = scaled >> tail->shift;

    return tail->is_even && rest == 0 ? result & ~(int32_t)1 : result;
}

/* Ends within an int32, far enough out to saturate where it had to be cut. */
CONV_INLINE int32_t conv_tail_wide(int32_t sum, const struct conv_tail *tail)
{
    const int64_t scaled = (int64_t)sum * tail->multiplier + tail->add;
    const int64_t rest = scaled & (((int64_t)1 << tail->shift) - 1);
    int64_t result = scaled >> tail->shift;

    if (tail->is_even && rest == 0)
        result &= ~(int64_t)1;
    return result < -1 ? -1 : result > 256 ? 256 : (int32_t)result;
}

CONV_INLINE int32_t conv_tail_apply(int32_t sum, const struct conv_tail *tail)
{
    return tail->is_wide ? conv_tail_wide(sum, tail) : conv_tail_narrow(sum, tail);
}

/* Whether a sum, begun with what is added, need only be shifted. */
CONV_INLINE int conv_tail_only_shifts(const struct conv_tail *tail)
{
    return tail->multiplier == 1 && !tail->is_even && !tail->is_wide;
}

CONV_INLINE uint8_t conv_saturate(int32_t value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

#endif
