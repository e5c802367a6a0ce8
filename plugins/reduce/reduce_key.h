/*
 * Elements as unsigned keys of which the largest is the answer, for C and CUDA alike: the order of
 * gpurun/key.h, turned round for min, with NaN above everything either way. `flip` is gpurun_key_flip of the
 * dtype, reversed for min.
 */
#ifndef REDUCE_KEY_H
#define REDUCE_KEY_H

#include "gpurun/key.h"

GPURUN_KEY_INLINE uint32_t reduce_key32(uint32_t bits, bool is_real, uint32_t flip)
{
    if (is_real && (bits & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000))
        return UINT32_MAX;
    return gpurun_key32(bits, is_real, flip);
}

GPURUN_KEY_INLINE uint64_t reduce_key64(uint64_t bits, bool is_real, uint64_t flip)
{
    if (is_real && (bits & UINT64_C(0x7fffffffffffffff)) > UINT64_C(0x7ff0000000000000))
        return UINT64_MAX;
    return gpurun_key64(bits, is_real, flip);
}

/* The element again: a NaN for any NaN, 0.0 for either zero. */
GPURUN_KEY_INLINE uint32_t reduce_unkey32(uint32_t key, bool is_real, uint32_t flip)
{
    const uint32_t sign = UINT32_C(1) << 31;

    if (!is_real)
        return key ^ flip;
    if (key == UINT32_MAX)
        return UINT32_C(0x7fc00000);
    key ^= flip;
    return key & sign ? key ^ sign : ~key;
}

GPURUN_KEY_INLINE uint64_t reduce_unkey64(uint64_t key, bool is_real, uint64_t flip)
{
    const uint64_t sign = UINT64_C(1) << 63;

    if (!is_real)
        return key ^ flip;
    if (key == UINT64_MAX)
        return UINT64_C(0x7ff8000000000000);
    key ^= flip;
    return key & sign ? key ^ sign : ~key;
}

#endif
