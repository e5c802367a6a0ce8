/*
 * The two 16-bit reals as raw bits, on the host: to float exactly, from double with one rounding, to
 * nearest, ties to even. NaN stays NaN and keeps its sign; what is too large becomes infinity; what is
 * too small for a normal number becomes a subnormal or 0. Device code has cuda_fp16.h and cuda_bf16.h.
 */
#ifndef GPURUN_HALF_H
#define GPURUN_HALF_H

#include <stdint.h>
#include <string.h>

static inline float gpurun_bits_to_float(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline float gpurun_half_to_float(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    const uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;

    if (exponent == 0x1f)
        return gpurun_bits_to_float(sign | UINT32_C(0x7f800000) | fraction << 13);
    if (exponent != 0)
        return gpurun_bits_to_float(sign | (exponent + 127 - 15) << 23 | fraction << 13);
    return (float)fraction * (sign ? -1.0f : 1.0f) / 16777216.0f; /* 2^24, exact */
}

static inline float gpurun_bfloat16_to_float(uint16_t bits)
{
    return gpurun_bits_to_float((uint32_t)bits << 16);
}

/* To a format of 16 bits with `fraction_bits` and the rest but for the sign as exponent. A carry out of
 * the fraction is a step of the exponent, up to infinity. */
static inline uint16_t gpurun_narrow_real(double value, int fraction_bits)
{
    const int bias = (1 << (14 - fraction_bits)) - 1;
    const uint64_t hidden = UINT64_C(1) << 52, infinity = UINT64_C(0x7ff) << 52;
    uint64_t bits, magnitude, fraction, rounded, rest, half;
    uint32_t sign, top = 0x7fff & ~((1u << fraction_bits) - 1);
    int exponent, shift = 52 - fraction_bits;

    memcpy(&bits, &value, sizeof(bits));
    sign = (uint32_t)(bits >> 63) << 15;
    magnitude = bits & (infinity | (hidden - 1));
    exponent = (int)(magnitude >> 52) - 1023;
    fraction = (magnitude & (hidden - 1)) | hidden;
    if (magnitude > infinity) /* quiet, with the upper bits of what it carries */
        return (uint16_t)(sign | top | 1u << (fraction_bits - 1) | ((fraction ^ hidden) >> shift));
    if (exponent > bias)
        return (uint16_t)(sign | top);
    if (exponent < 1 - bias) { /* below the least normal number */
        shift += 1 - bias - exponent;
        exponent = -bias;
    }
    if (shift > 53) /* less than half of the least subnormal */
        return (uint16_t)sign;
    rounded = fraction >> shift;
    rest = fraction & ((UINT64_C(1) << shift) - 1);
    half = UINT64_C(1) << (shift - 1);
    if (rest > half || (rest == half && (rounded & 1)))
        rounded++;
    /* A normal number's hidden bit is in `rounded` and counts one into its exponent. */
    if (exponent > -bias)
        rounded += (uint64_t)(exponent + bias - 1) << fraction_bits;
    return (uint16_t)(sign | rounded);
}

static inline uint16_t gpurun_half_from_double(double value)
{
    return gpurun_narrow_real(value, 10);
}

static inline uint16_t gpurun_bfloat16_from_double(double value)
{
    return gpurun_narrow_real(value, 7);
}

#endif
