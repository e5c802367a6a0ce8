/*
 * Bitonic steps, for the variants bitonic and quicksort. A block of BITONIC_BLOCK threads takes one comparator each.
 */
#ifndef SORT_BITONIC_CUH
#define SORT_BITONIC_CUH

#include "sort_words.cuh"

enum { BITONIC_BLOCK = 1024, BITONIC_TILE = 2 * BITONIC_BLOCK };

/* The i-th comparator of the step that begins a merge of `width` words: each half against the other backwards. */
static __device__ __forceinline__ void bitonic_mirror(int64_t i, int64_t width, int64_t *low,
                                                      int64_t *high)
{
    const int64_t half = width / 2, begin = i / half * width, place = i % half;

    *low = begin + place;
    *high = begin + width - 1 - place;
}

/* The i-th comparator of a step between neighbours `distance` apart. */
static __device__ __forceinline__ void bitonic_neighbours(int64_t i, int64_t distance, int64_t *low,
                                                          int64_t *high)
{
    *low = i / distance * 2 * distance + i % distance;
    *high = *low + distance;
}

/* Steps between neighbours, from `distance` down, in shared memory. Each ends with a barrier. */
template <typename WORD>
static __device__ __forceinline__ void bitonic_narrow(WORD *tile, int valid, int distance)
{
    int64_t low, high;

    for (; distance > 0; distance /= 2) {
        bitonic_neighbours(threadIdx.x, distance, &low, &high);
        sort_compare_exchange(tile, low, high, valid);
        __syncthreads();
    }
}

/* Sorts the first `valid` words of a tile in shared memory. A barrier goes before; it ends with one. */
template <typename WORD>
static __device__ __forceinline__ void bitonic_sort_tile(WORD *tile, int valid)
{
    int64_t low, high;

    for (int width = 2; width / 2 < valid; width *= 2) {
        bitonic_mirror(threadIdx.x, width, &low, &high);
        sort_compare_exchange(tile, low, high, valid);
        __syncthreads();
        bitonic_narrow(tile, valid, width / 4);
    }
}

#endif
