/*
 * What the parts of the band kernel share: its memory, the answer's slots, and the search for limits.
 */
#ifndef TOPK_BAND_CUH
#define TOPK_BAND_CUH

#include "topk_band.h"
#include "topk_device.cuh"
#include <cooperative_groups.h>

/* A pair (key, index) as one number: best first is ascending, and no two are equal. */
template <typename BITS> struct band_item;
template <> struct band_item<uint32_t> {
    typedef uint64_t type;
};
template <> struct band_item<uint64_t> {
    typedef unsigned __int128 type;
};

/* All that the kernel is given. */
template <typename BITS> struct band_job {
    struct band_plan plan;
    struct topk_rows rows;                 /* one */
    typename band_item<BITS>::type *items; /* k: the answer is to be sorted; else NULL */
    struct band_state *state;
    BITS *band_bits; /* band_most */
    uint32_t *band_index;
    BITS *final_bits; /* BAND_FINAL */
    uint32_t *final_index;
    unsigned *
        tile_ties; /* tiles + 2: what lies before the first whole vector, tiles, and behind the last */
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

/* The bits that a key was made of; of NaNs and zeros, one that has that key. */
template <typename BITS, bool REAL>
static __device__ __forceinline__ BITS band_bits_of_key(BITS key, uint64_t flip)
{
    const BITS sign = BITS{1} << (8 * sizeof(BITS) - 1);
    const BITS ordered = key ^ static_cast<BITS>(flip);

    if (!REAL)
        return ordered;
    return ordered & sign ? ordered ^ sign : static_cast<BITS>(~ordered);
}

/* Writes an element into its slot of the answer. */
template <typename BITS, bool REAL>
static __device__ __forceinline__ void band_emit(const struct band_job<BITS> &job, unsigned slot,
                                                 BITS bits, uint32_t index)
{
    typedef typename band_item<BITS>::type ITEM;

    if (job.items) {
        const BITS key = topk_key<REAL>(bits, job.rows.flip);

        job.items[slot] = static_cast<ITEM>(static_cast<BITS>(~key)) << 32 | index;
    } else {
        static_cast<BITS *>(job.rows.values)[slot] = bits;
        job.rows.indices[slot] = index;
    }
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

/* Counts a digit in the whole row. */
template <typename BITS, bool REAL>
static __device__ void band_count_all(const struct band_job<BITS> &job,
                                      const struct band_target<BITS> (&t)[2], int shift, int bits,
                                      struct band_shared *shared)
{
    enum { ITEMS = BAND_VECTOR_BYTES / sizeof(BITS) };
    const int64_t n = job.plan.n, tile = BAND_BLOCK * ITEMS;
    BITS loaded[ITEMS];

    for (int64_t base = blockIdx.x * tile; base < n; base += gridDim.x * tile) {
        topk_load(band_row(job), base, n, loaded);
#pragma unroll
        for (int j = 0; j < ITEMS; j++)
            if (base + threadIdx.x + j * BAND_BLOCK < n)
                band_count(topk_key<REAL>(loaded[j], job.rows.flip), t, shift, bits, shared);
    }
}

/* Takes a digit that was picked into a target. */
template <typename BITS>
static __device__ __forceinline__ void band_narrow(struct band_target<BITS> *t,
                                                   struct band_pick pick, int shift)
{
    t->prefix |= static_cast<BITS>(pick.digit) << shift;
    t->need -= pick.above;
    t->match = pick.match;
}

/* Finds the keys of two ranks, digit by digit: in the sample, or EXACTly in the row. */
template <typename BITS, bool REAL, bool EXACT>
static __device__ void band_search(const struct band_job<BITS> &job,
                                   struct band_target<BITS> (&t)[2], struct band_shared *shared)
{
    const uint32_t thread = blockIdx.x * BAND_BLOCK + threadIdx.x;
    const bool has_sample = thread < job.plan.samples;
    BITS sample = 0;
    int round = 0;

    if (!EXACT && has_sample)
        sample = topk_key<REAL>(band_row(job)[band_sample_at(&job.plan, thread)], job.rows.flip);
    for (int above = 8 * sizeof(BITS); above > 0; above -= BAND_BITS) {
        const int shift = above > BAND_BITS ? above - BAND_BITS : 0;
        unsigned(*bins)[BAND_BINS] =
            round == 0 ? job.state->first_bins : job.state->bins[round - 1];
        const bool is_one = t[0].prefix == t[1].prefix;

        band_clear_bins(shared);
        if (EXACT)
            band_count_all<BITS, REAL>(job, t, shift, above - shift, shared);
        else if (has_sample)
            band_count(sample, t, shift, above - shift, shared);
        __syncthreads();
        band_add_bins(shared->bins[0], bins[0]);
        if (!is_one)
            band_add_bins(shared->bins[1], bins[1]);
        cooperative_groups::this_grid().sync();
        band_pick_digits({bins[0], bins[is_one ? 0 : 1]}, {t[0].need, t[1].need}, shared);
        for (int i = 0; i < 2; i++)
            band_narrow(&t[i], shared->picks[i], shift);
        round++;
    }
}

/* The limits from the keys at two ranks, which were `ranks`. Where `most` elements are too few for all from
 * one to the other, a value that is too frequent becomes the lower limit, and its elements are counted. */
template <typename BITS>
static __device__ band_limits<BITS> band_limits_of(const struct band_target<BITS> (&t)[2],
                                                   const unsigned (&ranks)[2], bool has_high,
                                                   unsigned most)
{
    const BITS high = has_high ? t[0].prefix : BITS(~BITS{0});
    band_limits<BITS> limits = {t[1].prefix, high, false};
    const unsigned above_high = has_high ? ranks[0] - t[0].need : 0;
    const unsigned down_to_low = ranks[1] - t[1].need + t[1].match;

    limits.ties = down_to_low - above_high > most;
    if (limits.ties && has_high && t[0].match > most / 4)
        limits.low = limits.high;
    return limits;
}

template <typename BITS, bool REAL, bool EXACT>
static __device__ band_limits<BITS> band_find_limits(const struct band_job<BITS> &job,
                                                     struct band_shared *shared)
{
    const struct band_plan &plan = job.plan;
    const bool has_high = EXACT || plan.rank_high > 0;
    const unsigned rank_high = has_high ? plan.rank_high : 1;
    const unsigned ranks[2] = {EXACT ? plan.k : rank_high, EXACT ? plan.k : plan.rank_low};
    band_target<BITS> t[2] = {};

    for (int i = 0; i < 2; i++)
        t[i].need = ranks[i];
    band_search<BITS, REAL, EXACT>(job, t, shared);
    return band_limits_of(t, ranks, has_high, EXACT ? plan.band_most : plan.sample_most);
}

#endif
