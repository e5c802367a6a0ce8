/*
 * Where the band is cut: a range of keys, then of indices, that holds the last selected element and gets
 * narrower digit by digit. Lower indices are better, so they are counted down from the end of the row.
 */
#ifndef TOPK_BAND_CUT_CUH
#define TOPK_BAND_CUT_CUH

#include "topk_band.cuh"

/* Keys from `low` on whose difference to it has `key_bits` bits; when these are 0, tails likewise. */
template <typename BITS> struct band_cut {
    BITS low;
    uint32_t tail_low;
    int key_bits, tail_bits;
};

enum band_side { BAND_BELOW, BAND_WITHIN, BAND_ABOVE };

/* Bits of a number. */
template <typename NUMBER> static __host__ __device__ __forceinline__ int band_bits_of(NUMBER x)
{
    int bits = 0;

    while (bits < static_cast<int>(8 * sizeof(x)) && x >> bits > 0)
        bits++;
    return bits;
}

/* The range of all that the stream puts into the band. */
template <typename BITS>
static __host__ __device__ __forceinline__ struct band_cut<BITS>
band_cut_of(const struct band_limits<BITS> &limits, uint32_t n) {
    const bool is_empty = limits.ties && limits.low == limits.high;
    const BITS low = limits.ties && !is_empty ? limits.low + 1 : limits.low;
    const band_cut<BITS> cut = {low, 0, band_bits_of(static_cast<BITS>(limits.high - low)),
                                band_bits_of(n - 1)};

    return cut;
}

static __host__ __device__ __forceinline__ int
band_digit_shift(int bits)
{
    return bits > BAND_BITS ? bits - BAND_BITS : 0;
}

/* The next digit of an element that lies within. */
template <typename BITS>
static __host__ __device__ __forceinline__ unsigned band_cut_digit(const struct band_cut<BITS> &cut,
                                                                   BITS key, uint32_t tail)
{
    if (cut.key_bits > 0)
        return static_cast<unsigned>((key - cut.low) >> band_digit_shift(cut.key_bits));
    return (tail - cut.tail_low) >> band_digit_shift(cut.tail_bits);
}

/* Takes a digit that was found into the range. */
template <typename BITS>
static __host__ __device__ __forceinline__ void band_cut_narrow(struct band_cut<BITS> *cut,
                                                                unsigned digit)
{
    int *bits = cut->key_bits > 0 ? &cut->key_bits : &cut->tail_bits;
    const int shift = band_digit_shift(*bits);

    if (cut->key_bits > 0)
        cut->low += static_cast<BITS>(digit) << shift;
    else
        cut->tail_low += digit << shift;
    *bits = shift;
}

/* Whether `x` is below a range of 2^bits numbers from `low` on, within or above it. */
template <typename NUMBER>
static __host__ __device__ __forceinline__ enum band_side band_side_of(NUMBER x, NUMBER low,
                                                                       int bits)
{
    if (x < low)
        return BAND_BELOW;
    return bits == static_cast<int>(8 * sizeof(x)) || (x - low) >> bits == 0 ? BAND_WITHIN
                                                                             : BAND_ABOVE;
}

template <typename BITS>
static __host__ __device__ __forceinline__ enum band_side
band_cut_side(const struct band_cut<BITS> &cut, BITS key, uint32_t tail)
{
    const enum band_side side = band_side_of(key, cut.low, cut.key_bits);

    if (side != BAND_WITHIN || cut.key_bits > 0)
        return side;
    return band_side_of(tail, cut.tail_low, cut.tail_bits);
}

#endif
