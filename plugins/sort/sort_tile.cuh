/*
 * One tile by one digit of eight bits, for radix and onesweep: a block loads it, places it, and writes it out in
 * the order of its digits. Each warp owns a stretch of consecutive elements, so places keep the input's order.
 */
#ifndef SORT_TILE_CUH
#define SORT_TILE_CUH

#include "sort_device.cuh"

enum {
    SORT_DIGITS = 256,
    SORT_TILE_BLOCK = 384,
    SORT_TILE_WARPS = SORT_TILE_BLOCK / 32,
};

/* Shared memory of a block, which has ITEMS elements per thread. It may be more than a block has without asking,
 * see SORT_TILE_ALLOW. */
template <typename BITS, int VALUE_BYTES, int ITEMS> struct sort_tile {
    enum { TILE = ITEMS * SORT_TILE_BLOCK };
    BITS keys[TILE];
    typename sort_raw<VALUE_BYTES>::type values[VALUE_BYTES > 0 ? TILE : 1];
    /* Where the elements of a digit go in the output, less where they begin in the tile. */
    int64_t to[SORT_DIGITS];
    unsigned counts[SORT_TILE_WARPS * SORT_DIGITS]; /* a row of digits per warp */
    unsigned sums[SORT_TILE_WARPS];
};

/* What a thread holds of a tile. */
template <typename BITS, int VALUE_BYTES, int ITEMS> struct sort_held {
    BITS keys[ITEMS];
    typename sort_raw<VALUE_BYTES>::type values[VALUE_BYTES > 0 ? ITEMS : 1];
};

/* The shared memory of a kernel that has one tile. */
template <typename TILE> static __device__ __forceinline__ TILE *sort_tile_shared()
{
    extern __shared__ __align__(16) unsigned char sort_tile_memory[];

    return reinterpret_cast<TILE *>(sort_tile_memory);
}

/* Lets a kernel have the shared memory of its tile. */
#define SORT_TILE_ALLOW(ctx, kernel, tile)                                                         \
    GPURUN_CUDA_TRY(ctx, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, \
                                              static_cast<int>(sizeof(tile))))

/* The lanes of a warp that hold the same digit: one vote per bit, or one for all where all do. All lanes call. */
static __device__ __forceinline__ unsigned sort_same_digit(unsigned digit)
{
    unsigned same = 0xffffffffu;

    if (__all_sync(0xffffffffu, digit == __shfl_sync(0xffffffffu, digit, 0)))
        return same;
#pragma unroll
    for (int bit = 0; bit < 8; bit++) {
        const bool is_set = (digit >> bit & 1) != 0;
        const unsigned set = __ballot_sync(0xffffffffu, is_set);

        same &= is_set ? set : ~set;
    }
    return same;
}

/* Where the i-th element of a thread stands in its tile. */
template <int ITEMS> static __device__ __forceinline__ int sort_tile_place(int i)
{
    return threadIdx.x / 32 * 32 * ITEMS + i * 32 + threadIdx.x % 32;
}

/* Bits whose key is the largest that there is, so that they stay behind all that they are put behind. */
template <typename BITS> static __device__ __forceinline__ BITS sort_pad(struct sort_map map)
{
    return map.is_real ? ~static_cast<BITS>(0) : ~static_cast<BITS>(map.flip);
}

/* Reads the `valid` elements of a tile that begins at element `begin`; what lies past the end stays behind. */
template <typename BITS, int VALUE_BYTES, int ITEMS>
static __device__ __forceinline__ void sort_tile_load(struct sort_items from, int64_t begin,
                                                      int valid, struct sort_map map,
                                                      struct sort_held<BITS, VALUE_BYTES, ITEMS> *h)
{
    typedef typename sort_raw<VALUE_BYTES>::type VALUE;
    const BITS *__restrict__ keys = static_cast<const BITS *>(from.keys) + begin;
    const VALUE *__restrict__ values = static_cast<const VALUE *>(from.values) + begin;

#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int place = sort_tile_place<ITEMS>(i);
        h->keys[i] = place < valid ? keys[place] : sort_pad<BITS>(map);
    }
    if (VALUE_BYTES > 0)
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const int place = sort_tile_place<ITEMS>(i);
            h->values[i] = place < valid ? values[place] : 0;
        }
}

/* Counts digits per warp, and leaves in t->counts where each warp's first element of a digit goes in the tile.
 * Returns, in threads below SORT_DIGITS, how many elements have the digit of the thread's number, and in *start
 * where they begin. Ends with a barrier. */
template <typename BITS, int VALUE_BYTES, int ITEMS>
static __device__ __forceinline__ unsigned
sort_tile_count(struct sort_tile<BITS, VALUE_BYTES, ITEMS> *t, const BITS (&keys)[ITEMS],
                struct sort_map map, int shift, unsigned *start)
{
    const int thread = threadIdx.x, warp = thread / 32;
    unsigned count = 0, total;

    for (int i = thread; i < SORT_TILE_WARPS * SORT_DIGITS; i += SORT_TILE_BLOCK)
        t->counts[i] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        atomicAdd(&t->counts[warp * SORT_DIGITS + sort_digit(keys[i], map, shift)], 1u);
    __syncthreads();
    if (thread < SORT_DIGITS)
        for (int w = 0; w < SORT_TILE_WARPS; w++) {
            const unsigned here = t->counts[w * SORT_DIGITS + thread];
            t->counts[w * SORT_DIGITS + thread] = count;
            count += here;
        }
    *start = sort_prefix(count, t->sums, &total);
    if (thread < SORT_DIGITS)
        for (int w = 0; w < SORT_TILE_WARPS; w++)
            t->counts[w * SORT_DIGITS + thread] += *start;
    __syncthreads();
    return count;
}

/* The place of an element whose digit's counter is *next: by votes, which keep the order of lanes. */
static __device__ __forceinline__ unsigned sort_place_by_votes(unsigned *next, unsigned digit)
{
    const unsigned same = sort_same_digit(digit);
    const unsigned lower = same & ((1u << threadIdx.x % 32) - 1);
    const unsigned first = *next;

    __syncwarp(); /* all lanes have read */
    if (lower == 0)
        *next = first + __popc(same);
    __syncwarp();
    return first + __popc(lower);
}

/* Puts an element where it goes in the tile. */
template <typename BITS, int VALUE_BYTES, int ITEMS>
static __device__ __forceinline__ void
sort_tile_put(struct sort_tile<BITS, VALUE_BYTES, ITEMS> *t, unsigned place,
              const struct sort_held<BITS, VALUE_BYTES, ITEMS> &h, int i)
{
    t->keys[place] = h.keys[i];
    if (VALUE_BYTES > 0)
        t->values[place] = h.values[VALUE_BYTES > 0 ? i : 0];
}

/* Puts the tile in order in shared memory. t->counts is from sort_tile_count. By one atomic a key where the
 * device serves the lanes of one in their order, else by votes. Ends with a barrier. */
template <typename BITS, int VALUE_BYTES, int ITEMS>
static __device__ __forceinline__ void
sort_tile_stage(struct sort_tile<BITS, VALUE_BYTES, ITEMS> *t,
                const struct sort_held<BITS, VALUE_BYTES, ITEMS> &h, struct sort_map map, int shift,
                bool by_atomics)
{
    unsigned *next = t->counts + threadIdx.x / 32 * SORT_DIGITS;

    if (by_atomics)
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const unsigned place = atomicAdd(&next[sort_digit(h.keys[i], map, shift)], 1u);

            __syncwarp(); /* the next element of any lane comes after this one of all */
            sort_tile_put(t, place, h, i);
        }
    else
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const unsigned digit = sort_digit(h.keys[i], map, shift);

            sort_tile_put(t, sort_place_by_votes(&next[digit], digit), h, i);
        }
    __syncthreads();
}

/* Writes a staged tile to where t->to says. */
template <typename BITS, int VALUE_BYTES, int ITEMS>
static __device__ __forceinline__ void
sort_tile_write(const struct sort_tile<BITS, VALUE_BYTES, ITEMS> *t, struct sort_items to,
                int valid, struct sort_map map, int shift)
{
    typedef typename sort_raw<VALUE_BYTES>::type VALUE;

#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int place = threadIdx.x + i * SORT_TILE_BLOCK;
        const BITS key = t->keys[place];
        const int64_t at = t->to[sort_digit(key, map, shift)] + place;

        if (place < valid) {
            static_cast<BITS *>(to.keys)[at] = key;
            if (VALUE_BYTES > 0)
                static_cast<VALUE *>(to.values)[at] = t->values[VALUE_BYTES > 0 ? place : 0];
        }
    }
}

#endif
