/*
 * For a plugin's kernels: what a warp finds out together. All 32 lanes must call these, and all get the result.
 */
#ifndef GPURUN_WARP_CUH
#define GPURUN_WARP_CUH

#include <stdint.h>

/* The largest of the lanes' keys. */
static __device__ __forceinline__ uint32_t gpurun_warp_max(uint32_t key)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    for (int distance = 16; distance > 0; distance /= 2) {
        const uint32_t other = __shfl_xor_sync(0xffffffffu, key, distance);

        key = other > key ? other : key;
    }
    return key;
#else
    return __reduce_max_sync(0xffffffffu, key);
#endif
}

static __device__ __forceinline__ uint64_t gpurun_warp_max(uint64_t key)
{
    const uint32_t high = gpurun_warp_max(static_cast<uint32_t>(key >> 32));
    const uint32_t low = high == static_cast<uint32_t>(key >> 32) ? static_cast<uint32_t>(key) : 0;

    return static_cast<uint64_t>(high) << 32 | gpurun_warp_max(low);
}

#endif
