/*
 * What the parts of the band kernel share: its memory, the answer's slots, and the search for limits.
 */
#ifndef TOPK_BAND_CUH
#define TOPK_BAND_CUH

#include "topk_band.h"
#include "topk_pairs.cuh"
#include <cooperative_groups.h>

/* All that the kernel is given. */
template <typename BITS> struct band_job {
    struct band_plan plan;
    struct topk_rows rows;   /* one */
    struct topk_pairs pairs; /* where the selected elements go */
    struct band_state *state;
    BITS *band_bits; /* band_most */
    uint32_t *band_index;
    BITS *final_bits; /* BAND_FINAL */
    uint32_t *final_index;
    BITS *kept;        /* the best `keep` samples of each block */
    unsigned *surplus; /* per block: samples that equal the last of these, but were not kept */
    /* tiles + 2: of what lies before the first whole vector, of each tile, of what lies behind */
    unsigned *tile_ties;
};

/* What the stream compares with: keys above `high` belong to the answer, those from `low` on to the band.
 * With `ties`, those equal to `low` are counted instead, tile by tile. */
template <typename BITS> struct band_limits {
    BITS low, high;
    bool ties;
};

/* Where a digit of the k-th element was found. */
struct band_pick {
    unsigned digit, above, match;
};

/* Shared memory; what warps hold back lies behind it. */
struct band_shared {
    unsigned bins[2][BAND_BINS];
    unsigned long long sums[BAND_WARPS];
    struct band_pick picks[2];
    unsigned base;
};

template <typename BITS>
static __device__ __forceinline__ const BITS *band_row(const struct band_job<BITS> &job)
{
    return static_cast<const BITS *>(job.rows.in);
}

/* Writes an element into its slot of the answer. */
template <typename BITS, bool REAL>
static __device__ __forceinline__ void band_emit(const struct band_job<BITS> &job, unsigned slot,
                                                 BITS bits, uint32_t index)
{
    topk_emit<BITS, REAL>(job.rows, job.pairs, slot, bits, index);
}

/* --- picking a digit ------------------------------------------------------------------------------ */

/* Finds the digits of the need-th elements from the top in two rows of bins. All threads call it; ends with
 * a barrier, and the picks stay until the next call. */
static __device__ void band_pick_digits(const unsigned *const (&bins)[2], const unsigned (&need)[2],
                                        struct band_shared *shared)
{
    enum { EACH = BAND_BINS / BAND_BLOCK };
    const int last = BAND_BINS - 1 - EACH * static_cast<int>(threadIdx.x);
    unsigned counts[2][EACH];
    unsigned long long sum = 0, total;

#pragma unroll
    for (int j = 0; j < EACH; j++) {
        counts[0][j] = bins[0][last - j];
        counts[1][j] = bins[1][last - j];
        sum += static_cast<unsigned long long>(counts[1][j]) << 32 | counts[0][j];
    }

    const unsigned long long before = topk_prefix(sum, shared->sums, &total);
    unsigned above[2] = {static_cast<unsigned>(before), static_cast<unsigned>(before >> 32)};

#pragma unroll
    for (int j = 0; j < EACH; j++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (above[i] < need[i] && need[i] - above[i] <= counts[i][j])
                shared->picks[i] = {static_cast<unsigned>(last - j), above[i], counts[i][j]};
            above[i] += counts[i][j];
        }
    }
    __syncthreads();
}

/* Clears the shared bins. Begins and ends with a barrier. */
static __device__ void band_clear_bins(struct band_shared *shared)
{
    unsigned *bins = &shared->bins[0][0];

    __syncthreads();
    for (int i = threadIdx.x; i < 2 * BAND_BINS; i += BAND_BLOCK)
        bins[i] = 0;
    __syncthreads();
}

/* Adds one row of shared bins to global ones. */
static __device__ void band_add_bins(const unsigned *from, unsigned *bins)
{
    for (int i = threadIdx.x; i < BAND_BINS; i += BAND_BLOCK)
        if (from[i] > 0)
            atomicAdd(&bins[i], from[i]);
}

/* --- the search for limits ------------------------------------------------------------------------ */

/* One of two elements that are searched for at once. */
template <typename BITS> struct band_target {
    BITS prefix; /* of its key; what is not known yet is 0 */
    unsigned need, match;
};

/* Counts a key's digit where its upper bits are those of a target. */
template <typename BITS>
static __device__ __forceinline__ void band_count(BITS key, const struct band_target<BITS> (&t)[2],
                                                  int shift, int bits, struct band_shared *shared)
{
    const BITS known = shift + bits < static_cast<int>(8 * sizeof(BITS))
                           ? static_cast<BITS>(~BITS{0} << (shift + bits))
                           : BITS{0};
    const unsigned digit = static_cast<unsigned>(key >> shift) & ((1u << bits) - 1);

    if ((key & known) == t[0].prefix)
        atomicAdd(&shared->bins[0][digit], 1u);
    if (t[1].prefix != t[0].prefix && (key & known) == t[1].prefix)
        atomicAdd(&shared->bins[1][digit], 1u);
}

/* All keys of the row, in turns of the whole grid. */
template <typename BITS, bool REAL> struct band_all_keys {
    const struct band_job<BITS> &job;

    template <typename VISIT> __device__ __forceinline__ void each(const VISIT &visit) const
    {
        enum { ITEMS = BAND_VECTOR_BYTES / sizeof(BITS) };
        const int64_t n = job.plan.n, tile = BAND_BLOCK * ITEMS;
        BITS loaded[ITEMS];

        for (int64_t base = blockIdx.x * tile; base < n; base += gridDim.x * tile) {
            topk_load(band_row(job), base, n, loaded);
#pragma unroll
            for (int j = 0; j < ITEMS; j++)
                if (base + threadIdx.x + j * BAND_BLOCK < n)
                    visit(topk_key<REAL>(loaded[j], job.rows.flip));
        }
    }
};

/* One key of a thread, where it has one. */
template <typename BITS> struct band_own_key {
    BITS key;
    bool is_there;

    template <typename VISIT> __device__ __forceinline__ void each(const VISIT &visit) const
    {
        if (is_there)
            visit(key);
    }
};

/* Keys in global memory, all of them by each block. */
template <typename BITS> struct band_listed_keys {
    const BITS *keys;
    uint32_t count;

    template <typename VISIT> __device__ __forceinline__ void each(const VISIT &visit) const
    {
#pragma unroll 4
        for (uint32_t i = threadIdx.x; i < count; i += BAND_BLOCK)
            visit(keys[i]);
    }
};

/* Takes a digit that was picked into a target. */
template <typename BITS>
static __device__ __forceinline__ void band_narrow(struct band_target<BITS> *t,
                                                   struct band_pick pick, int shift)
{
    t->prefix |= static_cast<BITS>(pick.digit) << shift;
    t->need -= pick.above;
    t->match = pick.match;
}

/* Finds the keys of two ranks, digit by digit, among the keys of the block, or with `state` of the grid. */
template <typename BITS, typename KEYS>
static __device__ void band_search(const KEYS &keys, band_target<BITS> (&t)[2],
                                   struct band_state *state, struct band_shared *shared)
{
    int round = 0;

    for (int above = 8 * sizeof(BITS); above > 0; above -= BAND_BITS) {
        const int shift = above > BAND_BITS ? above - BAND_BITS : 0;
        const int other = t[0].prefix == t[1].prefix ? 0 : 1;
        unsigned(*bins)[BAND_BINS] = shared->bins;

        band_clear_bins(shared);
        keys.each([&](BITS key) { band_count(key, t, shift, above - shift, shared); });
        __syncthreads();
        if (state) {
            bins = state->bins[round++];
            for (int i = 0; i <= other; i++)
                band_add_bins(shared->bins[i], bins[i]);
            cooperative_groups::this_grid().sync();
        }
        band_pick_digits({bins[0], bins[other]}, {t[0].need, t[1].need}, shared);
        for (int i = 0; i < 2; i++)
            band_narrow(&t[i], shared->picks[i], shift);
    }
}

/* --- the sample ------------------------------------------------------------------------------------- */

/* Keeps the best `keep` of the block's samples: its part of the list. Of the last of them, how many more
 * there were. */
template <typename BITS, bool REAL>
static __device__ void band_keep_samples(const struct band_job<BITS> &job,
                                         struct band_shared *shared)
{
    const uint32_t i = threadIdx.x * gridDim.x + blockIdx.x, keep = job.plan.keep;
    BITS *kept = job.kept + blockIdx.x * keep;
    band_own_key<BITS> own = {0, i < job.plan.samples};
    band_target<BITS> t[2] = {{0, keep, 0}, {0, keep, 0}};

    if (own.is_there)
        own.key = topk_key<REAL>(band_row(job)[band_sample_at(&job.plan, i)], job.rows.flip);
    if (threadIdx.x == 0)
        shared->base = 0;
    band_search(own, t, NULL, shared);
    if (own.is_there && own.key > t[0].prefix)
        kept[atomicAdd(&shared->base, 1u)] = own.key;
    for (uint32_t j = threadIdx.x; j < t[0].need; j += BAND_BLOCK)
        kept[keep - 1 - j] = t[0].prefix;
    if (threadIdx.x == 0)
        job.surplus[blockIdx.x] = t[0].match - t[0].need;
}

/* How many samples that were not kept equal `high`, in the upper half, and how many lie from `low` to it. */
template <typename BITS>
static __device__ unsigned long long band_count_surplus(const struct band_job<BITS> &job, BITS low,
                                                        BITS high, struct band_shared *shared)
{
    unsigned long long surplus = 0, total;

    for (uint32_t block = threadIdx.x; block < gridDim.x; block += BAND_BLOCK) {
        const BITS last = job.kept[block * job.plan.keep + job.plan.keep - 1];
        const unsigned long long more = job.surplus[block];

        surplus += (last == high ? more << 32 : 0) + (low <= last && last <= high ? more : 0);
    }
    topk_prefix(surplus, shared->sums, &total);
    return total;
}

/* --- the limits ------------------------------------------------------------------------------------- */

/* The limits that the sample suggests. Where the band has no room for all that lies from one to the other, a
 * value that is too frequent becomes the lower limit, and its elements are counted. */
template <typename BITS, bool REAL>
static __device__ band_limits<BITS> band_guess_limits(const struct band_job<BITS> &job,
                                                      struct band_shared *shared)
{
    const struct band_plan &plan = job.plan;
    const bool has_high = plan.rank_high > 0;
    const unsigned rank_high = has_high ? plan.rank_high : 1;
    band_target<BITS> t[2] = {{0, rank_high, 0}, {0, plan.rank_low, 0}};

    band_keep_samples<BITS, REAL>(job, shared);
    cooperative_groups::this_grid().sync();
    band_search(band_listed_keys<BITS>{job.kept, gridDim.x * plan.keep}, t, NULL, shared);

    const BITS high = has_high ? t[0].prefix : BITS(~BITS{0});
    const unsigned long long surplus = band_count_surplus(job, t[1].prefix, high, shared);
    const unsigned above_high = has_high ? rank_high - t[0].need : 0;
    const unsigned down_to_low = plan.rank_low - t[1].need + t[1].match;
    band_limits<BITS> limits = {t[1].prefix, high, false};

    limits.ties = down_to_low - above_high + static_cast<unsigned>(surplus) > plan.sample_most;
    if (limits.ties && has_high && t[0].match + (surplus >> 32) > plan.sample_most / 4)
        limits.low = limits.high;
    return limits;
}

/* The limits that the whole row gives: both are the k-th key. */
template <typename BITS, bool REAL>
static __device__ band_limits<BITS> band_find_limits(const struct band_job<BITS> &job,
                                                     struct band_shared *shared)
{
    band_target<BITS> t[2] = {{0, job.plan.k, 0}, {0, job.plan.k, 0}};

    band_search(band_all_keys<BITS, REAL>{job}, t, job.state, shared);
    return {t[0].prefix, t[0].prefix, t[0].match > job.plan.band_most};
}

#endif
