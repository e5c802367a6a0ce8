/*
 * Sorts in one block: by merging in shared memory what fits there, in global memory what does not. Items are
 * unsigned numbers, ascending.
 */
#ifndef TOPK_SORT_TILE_CUH
#define TOPK_SORT_TILE_CUH

#include "gpurun/cuda.h"
#include "topk_sort.h"

/* How many of the first `count` items of a and b merged come from a; serial. */
template <typename ITEM>
static __device__ __forceinline__ int sort_split(const ITEM *a, int in_a, const ITEM *b, int in_b,
                                                 int count)
{
    int low = count > in_b ? count - in_b : 0, high = count < in_a ? count : in_a;

    while (low < high) {
        const int middle = (low + high) / 2;

        if (a[middle] < b[count - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The same by a whole warp, which looks at 32 places at once. */
template <typename ITEM>
static __device__ __forceinline__ int64_t sort_split_warp(const ITEM *a, int64_t in_a,
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

/* Merges two runs that lie one behind the other in shared memory, `total` items from `items`; the thread
 * keeps those from `first` on. What it keeps behind the last is anything; items[total] is read. */
template <typename ITEM, int ITEMS>
static __device__ __forceinline__ void sort_merge(const ITEM *items, int in_a, int total, int first,
                                                  ITEM (&mine)[ITEMS])
{
    int a = sort_split(items, in_a, items + in_a, total - in_a, first), b = in_a + first - a;
    ITEM item_a = items[a], item_b = items[b];

#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        const bool takes_a = a < in_a && (b >= total || item_a < item_b);
        const ITEM next = items[takes_a ? ++a : b < total ? ++b : total];

        mine[j] = takes_a ? item_a : item_b;
        item_a = takes_a ? next : item_a;
        item_b = takes_a ? item_b : next;
    }
}

/* Sorts what one thread holds, by exchanging neighbours. */
template <typename ITEM, int ITEMS>
static __device__ __forceinline__ void sort_thread(ITEM (&mine)[ITEMS])
{
#pragma unroll
    for (int round = 0; round < ITEMS; round++) {
#pragma unroll
        for (int j = round % 2; j + 1 < ITEMS; j += 2) {
            const ITEM low = mine[j] < mine[j + 1] ? mine[j] : mine[j + 1];

            mine[j + 1] = mine[j] < mine[j + 1] ? mine[j + 1] : mine[j];
            mine[j] = low;
        }
    }
}

/* Puts each thread's items at their places. Begins and ends with a barrier. */
template <typename ITEM, int ITEMS>
static __device__ __forceinline__ void sort_put(ITEM *items, const ITEM (&mine)[ITEMS], int count)
{
    const int first = static_cast<int>(threadIdx.x) * ITEMS;

    __syncthreads();
    if (first < count) {
#pragma unroll
        for (int j = 0; j < ITEMS; j++)
            items[first + j] = mine[j];
    }
    __syncthreads();
}

/* Sorts `count` items into shared memory, at most ITEMS per thread. Threads that have none of them only wait.
 * Ends with a barrier. */
template <typename ITEM, int ITEMS>
static __device__ __forceinline__ void sort_tile(const ITEM *from, int count, ITEM *items)
{
    const int first = static_cast<int>(threadIdx.x) * ITEMS;
    ITEM mine[ITEMS];

#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        const int i = j * SORT_BLOCK + static_cast<int>(threadIdx.x);

        mine[j] = i < count ? from[i] : ITEM{0};
    }
    __syncthreads(); /* the items of an earlier tile have been read */
#pragma unroll
    for (int j = 0; j < ITEMS; j++)
        items[j * SORT_BLOCK + threadIdx.x] = mine[j];
    __syncthreads();
    if (first < count) {
#pragma unroll
        for (int j = 0; j < ITEMS; j++)
            mine[j] = first + j < count ? items[first + j] : ~ITEM{0};
        sort_thread(mine);
    }
    sort_put(items, mine, count);
    for (int run = ITEMS; run < count; run *= 2) {
        const int begin = first - first % (2 * run), left = count - begin;
        const int in_a = left < run ? left : run, total = left < 2 * run ? left : 2 * run;

        if (first < count && in_a < total)
            sort_merge(items + begin, in_a, total, first - begin, mine);
        sort_put(items, mine, count);
    }
}

/* Merges one tile, `here` items from `at` on, of the pairs of runs that `count` items consist of, into shared
 * memory. Ends with a barrier. */
template <typename ITEM, int ITEMS>
static __device__ __forceinline__ void sort_merge_tile(const ITEM *from, int64_t count, int64_t run,
                                                       int64_t at, int here, ITEM *items)
{
    __shared__ int64_t splits[2];
    const int64_t pair = at - at % (2 * run), left = count - pair;
    const int64_t in_a = left < run ? left : run;
    const int64_t in_b = left - in_a < run ? left - in_a : run;
    const ITEM *a = from + pair, *b = a + in_a;
    const int warp = threadIdx.x / 32, first = static_cast<int>(threadIdx.x) * ITEMS;
    ITEM mine[ITEMS];

    if (warp < 2) {
        const int64_t split = sort_split_warp(a, in_a, b, in_b, at - pair + (warp == 0 ? 0 : here));

        if (threadIdx.x % 32 == 0)
            splits[warp] = split;
    }
    __syncthreads();

    const int64_t begin_a = splits[0], begin_b = at - pair - begin_a;
    const int from_a = static_cast<int>(splits[1] - begin_a);

#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        const int i = j * SORT_BLOCK + static_cast<int>(threadIdx.x);

        if (i < here)
            items[i] = i < from_a ? a[begin_a + i] : b[begin_b + i - from_a];
    }
    __syncthreads();
    if (first < here)
        sort_merge(items, from_a, here, first, mine);
    sort_put(items, mine, here);
}

/* Hands a sorted tile on, whose first item has place `at`. Ends with a barrier. */
template <typename ITEM, typename SINK>
static __device__ __forceinline__ void sort_hand_on(const ITEM *items, int64_t at, int count,
                                                    const SINK &sink)
{
    for (int i = threadIdx.x; i < count; i += SORT_BLOCK)
        sink.put(at + i, items[i]);
    __syncthreads();
}

/* A sink that stores. */
template <typename ITEM> struct sort_store {
    ITEM *items;

    __device__ __forceinline__ void put(int64_t at, ITEM item) const
    {
        items[at] = item;
    }
};

/* Sorts what does not fit into shared memory: tiles, then pairs of runs, from `from` to `other` and back; the
 * last pass goes to the sink. */
template <typename ITEM, int ITEMS, typename SINK>
static __device__ __noinline__ void sort_long(ITEM *from, ITEM *other, int64_t count, ITEM *items,
                                              const SINK &sink)
{
    const int64_t tile = SORT_BLOCK * ITEMS;

    for (int64_t at = 0; at < count; at += tile) {
        const int here = static_cast<int>(count - at < tile ? count - at : tile);

        sort_tile<ITEM, ITEMS>(from + at, here, items);
        sort_hand_on(items, at, here, sort_store<ITEM>{other});
    }
    for (int64_t run = tile; run < count; run *= 2) {
        ITEM *merged = from;

        for (int64_t at = 0; at < count; at += tile) {
            const int here = static_cast<int>(count - at < tile ? count - at : tile);

            sort_merge_tile<ITEM, ITEMS>(other, count, run, at, here, items);
            if (2 * run < count)
                sort_hand_on(items, at, here, sort_store<ITEM>{merged});
            else
                sort_hand_on(items, at, here, sink);
        }
        from = other;
        other = merged;
    }
}

#endif
