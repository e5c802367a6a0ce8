/*
 * Bitonic sort of (key, index) pairs, best first; their number is a power of two. What fills it up has key
 * 0 and an index above all others, so it comes last without any key being reserved.
 */
#ifndef TOPK_BITONIC_CUH
#define TOPK_BITONIC_CUH

#include "gpurun/cuda.h"
#include "topk_list.cuh"

enum {
    BITONIC_BLOCK = 512,
    BITONIC_CHUNK = 2048, /* pairs that one block sorts in shared memory */
};

#define BITONIC_FILL_INDEX INT64_MAX

/* The least power of two that is not below count; at least 2. */
static inline __host__ __device__ int64_t bitonic_width(int64_t count)
{
    int64_t width = 2;

    while (width < count)
        width *= 2;
    return width;
}

/* The lower place of the pair-th comparison of a step, whose partner is `stride` above it. */
static inline __host__ __device__ int64_t bitonic_low(int64_t pair, int64_t stride)
{
    return 2 * pair - (pair & (stride - 1));
}

/* Whether places low and low + stride must be exchanged in the stage that makes runs of `size`. */
template <typename BITS>
static __host__ __device__ __forceinline__ bool bitonic_exchange(int64_t low, int64_t size,
                                                                 BITS low_key, int64_t low_index,
                                                                 BITS high_key, int64_t high_index)
{
    const bool best_first = (low & size) == 0;

    return topk_before(high_key, high_index, low_key, low_index) == best_first;
}

/* Runs the stages from first_size to last_size of `width` pairs in shared memory, but no step longer than
 * width / 2. `base` is the place of the first pair in the whole. Begins and ends with a barrier. */
template <typename BITS>
static __device__ void bitonic_stages(BITS *keys, int64_t *indices, int width, int64_t base,
                                      int64_t first_size, int64_t last_size)
{
    __syncthreads();
    for (int64_t size = first_size; size <= last_size; size *= 2) {
        for (int stride = size / 2 < width / 2 ? static_cast<int>(size / 2) : width / 2; stride > 0;
             stride /= 2) {
            for (int pair = threadIdx.x; pair < width / 2; pair += blockDim.x) {
                const int low = static_cast<int>(bitonic_low(pair, stride)), high = low + stride;
                const BITS low_key = keys[low], high_key = keys[high];
                const int64_t low_index = indices[low], high_index = indices[high];

                if (bitonic_exchange(base + low, size, low_key, low_index, high_key, high_index)) {
                    keys[low] = high_key;
                    keys[high] = low_key;
                    indices[low] = high_index;
                    indices[high] = low_index;
                }
            }
            __syncthreads();
        }
    }
}

/* The same stages for a chunk per block of pairs in global memory; gridDim.y rows of `width` pairs. */
template <typename BITS>
static __global__ void __launch_bounds__(BITONIC_BLOCK)
    topk_bitonic_chunk_kernel(BITS *keys, int64_t *indices, int64_t width, int64_t first_size,
                              int64_t last_size)
{
    __shared__ BITS chunk_keys[BITONIC_CHUNK];
    __shared__ int64_t chunk_indices[BITONIC_CHUNK];
    const int64_t base = static_cast<int64_t>(blockIdx.x) * BITONIC_CHUNK;
    const int64_t at = blockIdx.y * width + base;

    for (int i = threadIdx.x; i < BITONIC_CHUNK; i += BITONIC_BLOCK) {
        chunk_keys[i] = keys[at + i];
        chunk_indices[i] = indices[at + i];
    }
    bitonic_stages(chunk_keys, chunk_indices, BITONIC_CHUNK, base, first_size, last_size);
    for (int i = threadIdx.x; i < BITONIC_CHUNK; i += BITONIC_BLOCK) {
        keys[at + i] = chunk_keys[i];
        indices[at + i] = chunk_indices[i];
    }
}

/* One step that is too long for a chunk. */
template <typename BITS>
static __global__ void __launch_bounds__(BITONIC_BLOCK)
    topk_bitonic_step_kernel(BITS *keys, int64_t *indices, int64_t width, int64_t size,
                             int64_t stride)
{
    const int64_t pair = static_cast<int64_t>(blockIdx.x) * BITONIC_BLOCK + threadIdx.x;
    const int64_t low = bitonic_low(pair, stride);
    BITS *low_key = keys + blockIdx.y * width + low, *high_key = low_key + stride;
    int64_t *low_index = indices + blockIdx.y * width + low, *high_index = low_index + stride;
    const BITS key = *low_key;
    const int64_t index = *low_index;

    if (!bitonic_exchange(low, size, key, index, *high_key, *high_index))
        return;
    *low_key = *high_key;
    *high_key = key;
    *low_index = *high_index;
    *high_index = index;
}

/* Sorts `rows` rows of `width` pairs each, width being at least BITONIC_CHUNK. */
template <typename BITS>
static void bitonic_sort(BITS *keys, int64_t *indices, int64_t width, unsigned rows,
                         cudaStream_t stream)
{
    const dim3 chunks(static_cast<unsigned>(width / BITONIC_CHUNK), rows);
    const dim3 steps(static_cast<unsigned>(width / 2 / BITONIC_BLOCK), rows);

    topk_bitonic_chunk_kernel<<<chunks, BITONIC_BLOCK, 0, stream>>>(keys, indices, width, 2,
                                                                    BITONIC_CHUNK);
    for (int64_t size = 2 * BITONIC_CHUNK; size <= width; size *= 2) {
        for (int64_t stride = size / 2; stride >= BITONIC_CHUNK; stride /= 2)
            topk_bitonic_step_kernel<<<steps, BITONIC_BLOCK, 0, stream>>>(keys, indices, width,
                                                                          size, stride);
        topk_bitonic_chunk_kernel<<<chunks, BITONIC_BLOCK, 0, stream>>>(keys, indices, width, size,
                                                                        size);
    }
}

#endif
