/*
 * The order of elements as the order of unsigned keys, for C and CUDA alike. Elements are handled as raw
 * bits; a whole number needs one XOR, a float its usual sign flip after all NaNs have become one value
 * above +infinity and both zeros one value: the order that every gpurun plugin keeps. `flip` is chosen
 * once per job: 0-based order is ascending; gpurun_key_flip(dtype, true) turns it round.
 */
#ifndef GPURUN_KEY_H
#define GPURUN_KEY_H

#include "gpurun/plugin.h"
#include <stdbool.h>

#ifdef __CUDACC__
#define GPURUN_KEY_INLINE static __host__ __device__ __forceinline__
#else
#define GPURUN_KEY_INLINE static inline
#endif

static inline bool gpurun_dtype_is_real(enum gpurun_dtype dtype)
{
    return dtype == GPURUN_FLOAT || dtype == GPURUN_DOUBLE || dtype == GPURUN_HALF ||
           dtype == GPURUN_BFLOAT16;
}

/* What keys are XORed with last: the sign bit of signed numbers, and all bits to turn the order round. */
static inline uint64_t gpurun_key_flip(enum gpurun_dtype dtype, bool reverse)
{
    const uint64_t all = gpurun_dtype_bytes(dtype) == 4 ? UINT32_MAX : UINT64_MAX;
    const bool is_signed = dtype == GPURUN_INT32 || dtype == GPURUN_INT64;
    const uint64_t sign = is_signed ? all ^ (all >> 1) : 0;

    return reverse ? all ^ sign : sign;
}

GPURUN_KEY_INLINE uint32_t gpurun_key32(uint32_t bits, bool is_real, uint32_t flip)
{
    const uint32_t sign = UINT32_C(1) << 31;
    const uint32_t magnitude = bits & ~sign;

    if (is_real) {
        if (magnitude > UINT32_C(0x7f800000))
            bits = UINT32_MAX;
        else if (magnitude == 0)
            bits = sign;
        else
            bits = bits & sign ? ~bits : bits | sign;
    }
    return bits ^ flip;
}

GPURUN_KEY_INLINE uint64_t gpurun_key64(uint64_t bits, bool is_real, uint64_t flip)
{
    const uint64_t sign = UINT64_C(1) << 63;
    const uint64_t magnitude = bits & ~sign;

    if (is_real) {
        if (magnitude > UINT64_C(0x7ff0000000000000))
            bits = UINT64_MAX;
        else if (magnitude == 0)
            bits = sign;
        else
            bits = bits & sign ? ~bits : bits | sign;
    }
    return bits ^ flip;
}

#endif
