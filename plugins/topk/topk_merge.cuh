/*
 * Merge sort of distinct unsigned items, ascending, for what is too long for one block. Blocks sort chunks,
 * then each pass merges pairs of runs; a block makes one tile of the output, and finds by bisection where
 * in the two runs it begins and ends. The last pass hands its items to a sink instead of storing them.
 */
#ifndef TOPK_MERGE_CUH
#define TOPK_MERGE_CUH

#include "gpurun/cuda.h"
#include <stdint.h>

enum {
    MERGE_BLOCK = 256,
    MERGE_ITEMS = 9, /* per thread; odd, so that threads side by side meet no bank conflicts */
    MERGE_TILE = MERGE_BLOCK * MERGE_ITEMS,
};

/* How many of the first `count` items of a and b merged come from a; serial. */
template <typename ITEM>
static __host__ __device__ __forceinline__ int64_t merge_split(const ITEM *a, int64_t in_a,
                                                               const ITEM *b, int64_t in_b,
                                                               int64_t count)
{
    int64_t low = count > in_b ? count - in_b : 0, high = count < in_a ? count : in_a;

    while (low < high) {
        const int64_t middle = (low + high) / 2;

        if (a[middle] < b[count - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The same by a whole warp, which looks at 32 places at once. */
template <typename ITEM>
static __device__ __forceinline__ int64_t merge_split_warp(const ITEM *a, int64_t in_a,
                                                           const ITEM *b, int64_t in_b,
                                                           int64_t count)
{
    int64_t low = count > in_b ? count - in_b : 0, high = count < in_a ? count : in_a;

    while (low < high) {
        const int64_t step = (high - low + 31) / 32;
        const int64_t probe = low + (threadIdx.x % 32 + 1) * step - 1;
        const bool is_below = probe < high && a[probe] < b[count - 1 - probe];
        const int below = __popc(__ballot_sync(0xffffffffu, is_below));
        const int64_t end = low + (below + 1) * step - 1;

        low += below * step;
        high = end < high ? end : high;
    }
    return low;
}

/* Merges two runs that lie one behind the other in shared memory, `total` items from `items`; each thread
 * keeps its MERGE_ITEMS, from `first` on. What it keeps behind the last is anything; items[total] is read. */
template <typename ITEM>
static __device__ __forceinline__ void merge_thread(const ITEM *items, int in_a, int total,
                                                    int first, ITEM (&mine)[MERGE_ITEMS])
{
    const int count = first < total ? first : total;
    int a = static_cast<int>(merge_split(items, in_a, items + in_a, total - in_a, count));
    int b = in_a + count - a;
    ITEM item_a = items[a], item_b = items[b];

#pragma unroll
    for (int j = 0; j < MERGE_ITEMS; j++) {
        const bool takes_a = a < in_a && (b >= total || item_a < item_b);
        const ITEM next = items[takes_a ? ++a : b < total ? ++b : total];

        mine[j] = takes_a ? item_a : item_b;
        item_a = takes_a ? next : item_a;
        item_b = takes_a ? item_b : next;
    }
}

/* Puts each thread's items at their places of a tile, and the tile where it belongs. */
template <typename ITEM, typename SINK>
static __device__ __forceinline__ void merge_store(ITEM *items, const ITEM (&mine)[MERGE_ITEMS],
                                                   int64_t at, int count, const SINK &sink)
{
    __syncthreads();
#pragma unroll
    for (int j = 0; j < MERGE_ITEMS; j++)
        items[threadIdx.x * MERGE_ITEMS + j] = mine[j];
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += MERGE_BLOCK)
        sink.put(at + i, items[i]);
}

/* A sink that stores. */
template <typename ITEM> struct merge_to {
    ITEM *items;

    __device__ __forceinline__ void put(int64_t at, ITEM item) const
    {
        items[at] = item;
    }
};

/* Sorts what one thread holds, by exchanging neighbours. */
template <typename ITEM>
static __device__ __forceinline__ void merge_sort_thread(ITEM (&mine)[MERGE_ITEMS])
{
#pragma unroll
    for (int round = 0; round < MERGE_ITEMS; round++) {
#pragma unroll
        for (int j = round % 2; j + 1 < MERGE_ITEMS; j += 2) {
            const ITEM low = mine[j] < mine[j + 1] ? mine[j] : mine[j + 1];

            mine[j + 1] = mine[j] < mine[j + 1] ? mine[j + 1] : mine[j];
            mine[j] = low;
        }
    }
}

/* Lets the next pass come, and waits for the one before. */
static __device__ __forceinline__ void merge_wait()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
}

template <typename ITEM, typename SINK>
static __global__ void __launch_bounds__(MERGE_BLOCK)
    topk_merge_chunk_kernel(const ITEM *from, SINK sink, int64_t count)
{
    __shared__ ITEM items[MERGE_TILE + 1];
    const int64_t at = static_cast<int64_t>(blockIdx.x) * MERGE_TILE;
    const int here = static_cast<int>(count - at < MERGE_TILE ? count - at : int64_t{MERGE_TILE});
    ITEM mine[MERGE_ITEMS];

    merge_wait();
#pragma unroll
    for (int j = 0; j < MERGE_ITEMS; j++) {
        const int i = j * MERGE_BLOCK + threadIdx.x;

        mine[j] = i < here ? from[at + i] : ~ITEM{0};
    }
    merge_sort_thread(mine);
    for (int threads = 2; threads <= MERGE_BLOCK; threads *= 2) {
        const int first = threadIdx.x % threads * MERGE_ITEMS;
        const ITEM *pair = items + (threadIdx.x - threadIdx.x % threads) * MERGE_ITEMS;

        __syncthreads();
#pragma unroll
        for (int j = 0; j < MERGE_ITEMS; j++)
            items[threadIdx.x * MERGE_ITEMS + j] = mine[j];
        __syncthreads();
        merge_thread(pair, threads / 2 * MERGE_ITEMS, threads * MERGE_ITEMS, first, mine);
    }
    merge_store(items, mine, at, here, sink);
}

/* Merges runs of `run` items, a multiple of MERGE_TILE, in pairs; the last may be short or alone. */
template <typename ITEM, typename SINK>
static __global__ void __launch_bounds__(MERGE_BLOCK)
    topk_merge_pass_kernel(const ITEM *from, SINK sink, int64_t count, int64_t run)
{
    __shared__ ITEM items[MERGE_TILE + 1];
    __shared__ int64_t splits[2];
    const int64_t at = static_cast<int64_t>(blockIdx.x) * MERGE_TILE;
    const int here = static_cast<int>(count - at < MERGE_TILE ? count - at : int64_t{MERGE_TILE});
    const int64_t pair = at - at % (2 * run), left = count - pair;
    const int64_t in_a = left < run ? left : run;
    const int64_t in_b = left - in_a < run ? left - in_a : run;
    const ITEM *a = from + pair, *b = a + in_a;
    const int warp = threadIdx.x / 32;
    ITEM mine[MERGE_ITEMS];

    merge_wait();
    if (warp < 2) {
        const int64_t split =
            merge_split_warp(a, in_a, b, in_b, at - pair + (warp == 0 ? 0 : here));

        if (threadIdx.x % 32 == 0)
            splits[warp] = split;
    }
    __syncthreads();

    const int64_t begin_a = splits[0], begin_b = at - pair - begin_a;
    const int from_a = static_cast<int>(splits[1] - begin_a);

#pragma unroll
    for (int j = 0; j < MERGE_ITEMS; j++) {
        const int i = j * MERGE_BLOCK + threadIdx.x;

        if (i < here)
            items[i] = i < from_a ? a[begin_a + i] : b[begin_b + i - from_a];
    }
    __syncthreads();
    merge_thread(items, from_a, here, static_cast<int>(threadIdx.x) * MERGE_ITEMS, mine);
    merge_store(items, mine, at, here, sink);
}

/* Launches a pass, which is prepared while the one before it runs where the device can do that. */
template <typename ITEM, typename SINK>
static cudaError_t merge_pass(const ITEM *from, const SINK &sink, int64_t count, int64_t run,
                              cudaLaunchConfig_t *config)
{
    return cudaLaunchKernelEx(config, topk_merge_pass_kernel<ITEM, SINK>, from, sink, count, run);
}

/* Sorts `count` items, at least one, from `items` into `sink`; both arrays are overwritten. */
template <typename ITEM, typename SINK>
static cudaError_t merge_sort(ITEM *items, ITEM *other, int64_t count, const SINK &sink,
                              bool overlaps, cudaStream_t stream)
{
    const unsigned blocks = static_cast<unsigned>((count + MERGE_TILE - 1) / MERGE_TILE);
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    cudaError_t error = cudaSuccess;
    int64_t run = MERGE_TILE;

    if (count <= run) {
        topk_merge_chunk_kernel<<<blocks, MERGE_BLOCK, 0, stream>>>(items, sink, count);
        return cudaGetLastError();
    }
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = blocks;
    config.blockDim = MERGE_BLOCK;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = overlaps ? 1 : 0;
    topk_merge_chunk_kernel<<<blocks, MERGE_BLOCK, 0, stream>>>(items, merge_to<ITEM>{other},
                                                                count);
    for (; 2 * run < count && error == cudaSuccess; run *= 2) {
        ITEM *merged = items;

        error = merge_pass(other, merge_to<ITEM>{merged}, count, run, &config);
        items = other;
        other = merged;
    }
    return error == cudaSuccess ? merge_pass(other, sink, count, run, &config) : error;
}

#endif
