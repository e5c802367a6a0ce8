/*
 * One tile by one digit of eight bits, for radix and onesweep: a block loads it, ranks it, and writes it out in
 * the order of its digits. Each warp owns a stretch of consecutive elements, so ranks keep the input's order.
 */
#ifndef SORT_TILE_CUH
#define SORT_TILE_CUH

#include "sort_device.cuh"

enum {
    SORT_DIGITS = 256,
    SORT_TILE_BLOCK = 384,
    SORT_TILE_WARPS = SORT_TILE_BLOCK / 32,
    SORT_TILE_BYTES = 38 << 10, /* of keys or values in shared memory, at most */
};

/* Elements per thread, and per tile: what the wider of key and value leaves room for. */
template <int ELEM_BYTES, int VALUE_BYTES> struct sort_tile_size {
    enum { ITEMS = ELEM_BYTES == 4 && VALUE_BYTES < 8 ? 20 : 12, TILE = ITEMS * SORT_TILE_BLOCK };
};

/* Shared memory of a block. Counters are read for the last time before keys are staged in their place. */
template <typename BITS, int VALUE_BYTES> struct sort_tile {
    enum {
        ITEMS = sort_tile_size<sizeof(BITS), VALUE_BYTES>::ITEMS,
        TILE = sort_tile_size<sizeof(BITS), VALUE_BYTES>::TILE
    };
    union {
        unsigned counts[SORT_TILE_WARPS * SORT_DIGITS]; /* a row of digits per warp */
        BITS keys[TILE];
        typename sort_raw<VALUE_BYTES>::type values[TILE];
    };
    int64_t
        to[SORT_DIGITS]; /* place in the output of the tile's place 0, for elements of a digit */
    unsigned sums[SORT_TILE_WARPS];
};

/* The lanes of a warp that hold the same digit: one vote per bit. All lanes call it. */
static __device__ __forceinline__ unsigned sort_same_digit(unsigned digit)
{
    unsigned same = 0xffffffffu;

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

/* Reads the `valid` elements of a tile; `pad` stands for what lies past the end. */
template <typename WORD, int ITEMS>
static __device__ __forceinline__ void sort_tile_load(const WORD *__restrict__ from, int valid,
                                                      WORD pad, WORD (&items)[ITEMS])
{
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int place = sort_tile_place<ITEMS>(i);
        items[i] = place < valid ? from[place] : pad;
    }
}

/* Bits whose key is the largest that there is, so that they stay behind all that they are put behind. */
template <typename BITS> static __device__ __forceinline__ BITS sort_pad(struct sort_map map)
{
    return map.is_real ? ~static_cast<BITS>(0) : ~static_cast<BITS>(map.flip);
}

/* Counts digits per warp, and leaves in t->counts where each warp's first element of a digit goes in the tile.
 * Returns, in threads below SORT_DIGITS, how many elements have the digit of the thread's number, and in *start
 * where they begin. Begins and ends with a barrier. */
template <typename BITS, int VALUE_BYTES, int ITEMS>
static __device__ __forceinline__ unsigned
sort_tile_count(struct sort_tile<BITS, VALUE_BYTES> *t, const BITS (&items)[ITEMS],
                struct sort_map map, int shift, unsigned *start)
{
    const int thread = threadIdx.x, warp = thread / 32;
    unsigned count = 0, total;

    __syncthreads(); /* what lay in their place has been read */
    for (int i = thread; i < SORT_TILE_WARPS * SORT_DIGITS; i += SORT_TILE_BLOCK)
        t->counts[i] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        atomicAdd(&t->counts[warp * SORT_DIGITS + sort_digit(items[i], map, shift)], 1u);
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

/* The place of each element in the tile once it is in order. t->counts is from sort_tile_count. */
template <typename BITS, int VALUE_BYTES, int ITEMS>
static __device__ __forceinline__ void
sort_tile_rank(struct sort_tile<BITS, VALUE_BYTES> *t, const BITS (&items)[ITEMS],
               struct sort_map map, int shift, int (&ranks)[ITEMS])
{
    unsigned *counts = t->counts + threadIdx.x / 32 * SORT_DIGITS;
    const unsigned lower_lanes = (1u << threadIdx.x % 32) - 1;

#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const unsigned digit = sort_digit(items[i], map, shift);
        const unsigned same = sort_same_digit(digit);
        const unsigned first = counts[digit];

        ranks[i] = static_cast<int>(first + __popc(same & lower_lanes));
        __syncwarp(); /* all lanes have read */
        if ((same & lower_lanes) == 0)
            counts[digit] = first + __popc(same);
        __syncwarp();
    }
}

/* Puts keys in order in shared memory. Ends with a barrier. */
template <typename BITS, int VALUE_BYTES, int ITEMS>
static __device__ __forceinline__ void sort_tile_stage(struct sort_tile<BITS, VALUE_BYTES> *t,
                                                       const BITS (&items)[ITEMS],
                                                       const int (&ranks)[ITEMS])
{
    __syncthreads(); /* the counters have been read */
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        t->keys[ranks[i]] = items[i];
    __syncthreads();
}

/* Writes staged keys to where t->to says, and remembers their digits. */
template <typename BITS, int VALUE_BYTES, int ITEMS>
static __device__ __forceinline__ void
sort_tile_write_keys(const struct sort_tile<BITS, VALUE_BYTES> *t, BITS *to, int valid,
                     struct sort_map map, int shift, unsigned char (&digits)[ITEMS])
{
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int place = threadIdx.x + i * SORT_TILE_BLOCK;
        const BITS bits = t->keys[place];
        const unsigned digit = sort_digit(bits, map, shift);

        digits[i] = static_cast<unsigned char>(digit);
        if (place < valid)
            to[t->to[digit] + place] = bits;
    }
}

/* The values of the tile, the way their keys went. */
template <typename BITS, int VALUE_BYTES, int ITEMS, typename VALUE>
static __device__ __forceinline__ void
sort_tile_move_values(struct sort_tile<BITS, VALUE_BYTES> *t, const VALUE *from, VALUE *to,
                      int valid, const int (&ranks)[ITEMS], const unsigned char (&digits)[ITEMS])
{
    VALUE values[ITEMS];

    sort_tile_load(from, valid, static_cast<VALUE>(0), values);
    __syncthreads(); /* the keys have been read */
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        t->values[ranks[i]] = values[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int place = threadIdx.x + i * SORT_TILE_BLOCK;

        if (place < valid)
            to[t->to[digits[i]] + place] = t->values[place];
    }
}

/* From ranks to memory: t->to is set and a barrier has been passed since. Begins at element `begin` of `from`. */
template <typename BITS, int VALUE_BYTES, int ITEMS>
static __device__ __forceinline__ void
sort_tile_move(struct sort_tile<BITS, VALUE_BYTES> *t, struct sort_items from, struct sort_items to,
               int64_t begin, int valid, struct sort_map map, int shift, const int (&ranks)[ITEMS])
{
    typedef typename sort_raw<VALUE_BYTES>::type VALUE;
    unsigned char digits[ITEMS];

    sort_tile_write_keys(t, static_cast<BITS *>(to.keys), valid, map, shift, digits);
    if (VALUE_BYTES > 0)
        sort_tile_move_values<BITS, VALUE_BYTES, ITEMS, VALUE>(
            t, static_cast<const VALUE *>(from.values) + begin, static_cast<VALUE *>(to.values),
            valid, ranks, digits);
}

#endif
