/*
 * For topk_maxima_distinct.cu: keys that are known from the row's first tile, and lists of the best different
 * keys with their lowest index, by a warp and by a block.
 */
#ifndef TOPK_MAXIMA_DISTINCT_CUH
#define TOPK_MAXIMA_DISTINCT_CUH

#include "topk_maxima.cuh"
#include "topk_maxima_distinct.h"

static_assert(1 << DISTINCT_PART_BITS == int{MAXIMA_PARTS}, "");
static_assert(DISTINCT_BLOCKS_MAX * DISTINCT_K_MAX % DISTINCT_BLOCK == 0, "");
static_assert(DISTINCT_RANKED % MAXIMA_PARTS == 0, "");
static_assert(int{DISTINCT_RANKED} <= DISTINCT_WARPS * DISTINCT_K_MAX, "");
static_assert(int{DISTINCT_K_MAX} == int{MAXIMA_ONE_K_MAX}, "");

/* Keys that occur in the row's first tile, so that nowhere else one of them is at its lowest index. One is in a[], at
 * the first bits of its hash, or in b[], at the next ones. Slots with no key of their own repeat one. */
template <typename BITS> struct distinct_known {
    BITS a[32], b[32];
    BITS limit; /* k different keys of the row are not below */
    uint32_t factor;
};

/* An element that may be in the answer. */
template <typename BITS> struct distinct_entry {
    BITS key;
    int64_t index;
};

static __device__ __forceinline__ uint32_t distinct_hash(uint32_t key, uint32_t factor)
{
    return distinct_hash32(key, factor);
}

static __device__ __forceinline__ uint32_t distinct_hash(uint64_t key, uint32_t factor)
{
    return distinct_hash64(key, factor);
}

/* Slots for a hash; as a shuffle takes it, only the last bits count. */
static __device__ __forceinline__ uint32_t distinct_slot_a(uint32_t hash)
{
    return hash >> (32 - DISTINCT_SLOT_BITS);
}

static __device__ __forceinline__ uint32_t distinct_slot_b(uint32_t hash)
{
    return hash >> (32 - 2 * DISTINCT_SLOT_BITS);
}

static __device__ __forceinline__ void distinct_raise(uint32_t *to, uint32_t key)
{
    atomicMax(to, key);
}

static __device__ __forceinline__ void distinct_raise(uint64_t *to, uint64_t key)
{
    atomicMax(reinterpret_cast<unsigned long long *>(to), static_cast<unsigned long long>(key));
}

static __device__ __forceinline__ void distinct_lower(uint32_t *to, uint32_t key)
{
    atomicMin(to, key);
}

static __device__ __forceinline__ void distinct_lower(uint64_t *to, uint64_t key)
{
    atomicMin(reinterpret_cast<unsigned long long *>(to), static_cast<unsigned long long>(key));
}

/* --- the best different keys, one after the other -------------------------------------------------------
 *
 * Each round finds the largest key that is not above `below`: the one with the least below - key, where what is
 * above wraps round to more than `below`. So no key stands for "none".
 */

/* The least below - key of a thread's keys; of none of them, the largest number. */
template <typename BITS, int ITEMS>
static __device__ __forceinline__ BITS distinct_gap(const BITS (&keys)[ITEMS], unsigned there,
                                                    BITS below)
{
    BITS gap = ~static_cast<BITS>(0);

#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        const BITS own = static_cast<BITS>(below - keys[j]);

        gap = (there >> j & 1) && own < gap ? own : gap;
    }
    return gap;
}

/* Keys in falling order, all different, with the lowest index of each where that is asked. */
template <typename BITS> struct distinct_best {
    BITS gaps[DISTINCT_K_MAX], keys[DISTINCT_K_MAX];
    unsigned long long indices[DISTINCT_K_MAX];
};

template <typename BITS>
static __device__ __forceinline__ void distinct_best_clear(struct distinct_best<BITS> *best)
{
    __syncthreads();
    if (threadIdx.x < DISTINCT_K_MAX) {
        best->gaps[threadIdx.x] = ~static_cast<BITS>(0);
        best->indices[threadIdx.x] = ~0ull;
    }
    __syncthreads();
}

/* The k best different keys of a block's threads, or all where they are fewer; how many. At least one thread has
 * a key. All threads call it; it begins and ends with a barrier. */
template <typename BITS, int ITEMS>
static __device__ __forceinline__ int distinct_rounds(const BITS (&keys)[ITEMS], unsigned there,
                                                      int k, struct distinct_best<BITS> *best)
{
    BITS below = ~static_cast<BITS>(0);
    int count = 0;

    distinct_best_clear(best);
    while (count < k) {
        const BITS own = ~gpurun_warp_max(static_cast<BITS>(~distinct_gap(keys, there, below)));

        if (threadIdx.x % 32 == 0)
            distinct_lower(&best->gaps[count], own);
        __syncthreads();

        const BITS gap = best->gaps[count];

        if (gap > below)
            break;
        below -= gap;
        if (threadIdx.x == 0)
            best->keys[count] = below;
        count++;
        if (below-- == 0)
            break;
    }
    __syncthreads();
    return count;
}

/* --- what is known ---------------------------------------------------------------------------------------- */

/* Keeps a load above what comes next. */
static __device__ __forceinline__ void distinct_issue(uint32_t *loaded)
{
    asm volatile("" : "+r"(*loaded));
}

static __device__ __forceinline__ void distinct_issue(uint64_t *loaded)
{
    asm volatile("" : "+l"(*loaded));
}

/* What a warp has of it, a slot per lane. */
template <typename BITS> struct distinct_table {
    BITS a, b, limit;
    uint32_t factor; /* 0 if none is known */
};

/* Whether an element of this key is not wanted outside of the first tile. All lanes of the warp call it. */
template <typename BITS>
static __device__ __forceinline__ bool distinct_is_known(const struct distinct_table<BITS> &table,
                                                         BITS key)
{
    const uint32_t hash = distinct_hash(key, table.factor);

    return (key < table.limit) | (__shfl_sync(0xffffffffu, table.a, distinct_slot_a(hash)) == key) |
           (__shfl_sync(0xffffffffu, table.b, distinct_slot_b(hash)) == key);
}

/* Whether no element of a warp's is wanted. */
template <typename BITS, int ITEMS>
static __device__ __forceinline__ bool distinct_all_known(const struct distinct_table<BITS> &table,
                                                          const BITS (&keys)[ITEMS], unsigned there)
{
    bool is_known = true;

#pragma unroll
    for (int j = 0; j < ITEMS; j++)
        is_known &= distinct_is_known(table, keys[j]) | !(there >> j & 1);
    return __all_sync(0xffffffffu, is_known);
}

/* Reads a flag that another block may set, and nothing more: what comes next does not wait for it. */
static __device__ __forceinline__ unsigned distinct_peek(const unsigned *flag)
{
    return *static_cast<const volatile unsigned *>(flag);
}

/* The same; what was written before it was set is there from now on. */
static __device__ __forceinline__ unsigned distinct_acquire(const unsigned *flag)
{
    unsigned value;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
#else
    value = distinct_peek(flag);
    __threadfence();
#endif
    return value;
}

/* A warp's copy of what is known, where `peeked` says that something is. */
template <typename BITS>
static __device__ __forceinline__ struct distinct_table<BITS>
distinct_look(const struct distinct_known<BITS> *known, const unsigned *flag, unsigned peeked) {
    const int lane = threadIdx.x % 32;
    struct distinct_table<BITS> table = {
    };

    if (__shfl_sync(0xffffffffu, peeked, 0) != 0) {
        distinct_acquire(flag);
        table.a = __ldcg(&known->a[lane]);
        table.b = __ldcg(&known->b[lane]);
        table.limit = __ldcg(&known->limit);
        table.factor = __ldcg(&known->factor);
    }
    return table;
}

/* Whether a lower lane has the same number. */
template <typename NUMBER>
static __device__ __forceinline__ bool distinct_is_repeat(NUMBER number)
{
    const unsigned lower_lanes = (1u << threadIdx.x % 32) - 1;

    return (__match_any_sync(0xffffffffu, number) & lower_lanes) != 0;
}

/* Where a warp's lanes put their keys by the which-th factor: the first of a slot in a[], the others in b[]. Whether all
 * found room. */
template <typename BITS>
static __device__ __forceinline__ bool distinct_fits(BITS key, bool is_there, uint32_t which,
                                                     bool *is_in_b)
{
    const uint32_t hash = distinct_hash(key, distinct_factor(which)), alone = 32 + threadIdx.x % 32;

    *is_in_b = distinct_is_repeat(is_there ? distinct_slot_a(hash) : alone);
    return !__any_sync(0xffffffffu,
                       distinct_is_repeat(*is_in_b ? distinct_slot_b(hash) % 32 : alone));
}

#endif
