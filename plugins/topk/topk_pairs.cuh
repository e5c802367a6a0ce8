/*
 * A pair of key and index as one number: best first is ascending, and no two of a row are equal. 4-byte
 * elements of rows of up to 2^32 make pairs of 8 bytes, others of 16.
 */
#ifndef TOPK_PAIRS_CUH
#define TOPK_PAIRS_CUH

#include "topk_device.cuh"

typedef uint64_t topk_narrow;
typedef unsigned __int128 topk_wide;

/* Where a variant puts what it selects: pairs that are then sorted, or with NULL the answer. */
struct topk_pairs {
    void *items; /* rows x k */
    bool is_wide;
};

/* How far a pair's key is shifted; the index lies below. */
template <typename ITEM> static __host__ __device__ __forceinline__ int topk_pair_shift()
{
    return 4 * static_cast<int>(sizeof(ITEM));
}

template <typename ITEM>
static __host__ __device__ __forceinline__ ITEM topk_pair(uint64_t key, int64_t index)
{
    const ITEM reversed = static_cast<ITEM>(~key);

    return reversed << topk_pair_shift<ITEM>() | static_cast<ITEM>(index);
}

template <typename ITEM>
static __host__ __device__ __forceinline__ uint64_t topk_pair_key(ITEM item)
{
    return ~static_cast<uint64_t>(item >> topk_pair_shift<ITEM>());
}

template <typename ITEM>
static __host__ __device__ __forceinline__ int64_t topk_pair_index(ITEM item)
{
    const ITEM low = (ITEM{1} << topk_pair_shift<ITEM>()) - 1;

    return static_cast<int64_t>(item & low);
}

/* count, and one more where a is better than b. */
static __device__ __forceinline__ unsigned topk_count_better(topk_narrow a, topk_narrow b,
                                                             unsigned count)
{
    return count + (a < b);
}

/* By the borrow of a - b: half the instructions of a comparison. */
static __device__ __forceinline__ unsigned topk_count_better(topk_wide a, topk_wide b,
                                                             unsigned count)
{
    unsigned borrow;

    asm("{.reg .u64 t; sub.cc.u64 t, %1, %3; subc.cc.u64 t, %2, %4; subc.u32 %0, 0, 0;}"
        : "=r"(borrow)
        : "l"(static_cast<uint64_t>(a)), "l"(static_cast<uint64_t>(a >> 64)),
          "l"(static_cast<uint64_t>(b)), "l"(static_cast<uint64_t>(b >> 64)));
    return count - borrow;
}

/* The bits that a key was made of; of NaNs and zeros, one that has that key. */
template <typename BITS>
static __host__ __device__ __forceinline__ BITS topk_bits_of_key(BITS key, bool is_real,
                                                                 uint64_t flip)
{
    const BITS sign = BITS{1} << (8 * sizeof(BITS) - 1);
    const BITS ordered = key ^ static_cast<BITS>(flip);

    if (!is_real)
        return ordered;
    return ordered & sign ? ordered ^ sign : static_cast<BITS>(~ordered);
}

/* Puts a selected element at place `at` of rows x k. */
template <typename BITS, bool REAL>
static __device__ __forceinline__ void topk_emit(const struct topk_rows &rows,
                                                 const struct topk_pairs &pairs, int64_t at,
                                                 BITS bits, int64_t index)
{
    const BITS key = topk_key<REAL>(bits, rows.flip);

    if (!pairs.items) {
        static_cast<BITS *>(rows.values)[at] = bits;
        rows.indices[at] = index;
    } else if (sizeof(BITS) == sizeof(uint64_t) || pairs.is_wide) {
        static_cast<topk_wide *>(pairs.items)[at] = topk_pair<topk_wide>(key, index);
    } else {
        static_cast<topk_narrow *>(pairs.items)[at] = topk_pair<topk_narrow>(key, index);
    }
}

#endif
