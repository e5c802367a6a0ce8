/*
 * What follows the stream of the band variant: the best of the band complete the answer, or all of it and
 * the first elements that equal the lower limit.
 */
#ifndef TOPK_BAND_FINISH_CUH
#define TOPK_BAND_FINISH_CUH

#include "topk_band_cut.cuh"

/* How many of the answer's elements come from the band, and how many the range of its last one holds. */
struct band_need {
    unsigned need, match;
};

template <typename BITS, bool REAL>
static __device__ __forceinline__ enum band_side
band_side_at(const struct band_job<BITS> &job, const struct band_cut<BITS> &cut, uint32_t i)
{
    return band_cut_side(cut, topk_key<REAL>(job.band_bits[i], job.rows.flip),
                         job.plan.n - 1 - job.band_index[i]);
}

/* Counts the next digit of the band's elements that lie within the range. Ends with a barrier of the grid. */
template <typename BITS, bool REAL>
static __device__ void band_cut_count(const struct band_job<BITS> &job,
                                      const struct band_cut<BITS> &cut, uint32_t in_band,
                                      unsigned *bins, struct band_shared *shared)
{
    band_clear_bins(shared);
    for (uint32_t i = blockIdx.x * BAND_BLOCK + threadIdx.x; i < in_band;
         i += gridDim.x * BAND_BLOCK)
        if (band_side_at<BITS, REAL>(job, cut, i) == BAND_WITHIN)
            atomicAdd(
                &shared
                     ->bins[0][band_cut_digit(cut, topk_key<REAL>(job.band_bits[i], job.rows.flip),
                                              job.plan.n - 1 - job.band_index[i])],
                1u);
    __syncthreads();
    band_add_bins(shared->bins[0], bins);
    cooperative_groups::this_grid().sync();
}

/* Narrows the range until all that it holds is needed, or few enough to be ranked. */
template <typename BITS, bool REAL>
static __device__ struct band_need band_cut_find(const struct band_job<BITS> &job,
                                                 struct band_cut<BITS> *cut, uint32_t in_band,
                                                 unsigned need, struct band_shared *shared)
{
    struct band_need left = {need, in_band};

    for (int round = 0; left.need < left.match && (round == 0 || left.match > BAND_FINAL);
         round++) {
        if (round > 0)
            band_cut_count<BITS, REAL>(job, *cut, in_band, job.state->cut_bins[round], shared);
        band_pick_digits({job.state->cut_bins[round], job.state->cut_bins[round]},
                         {left.need, left.need}, shared);
        band_cut_narrow(cut, shared->picks[0].digit);
        left.need -= shared->picks[0].above;
        left.match = shared->picks[0].match;
        __syncthreads(); /* the pick has been read */
    }
    return left;
}

/* Writes the i-th of the band, or sets it aside. */
template <typename BITS, bool REAL>
static __device__ __forceinline__ void band_cut_put(const struct band_job<BITS> &job,
                                                    enum band_side side, uint32_t i, unsigned *slot)
{
    if (side == BAND_ABOVE) {
        band_emit<BITS, REAL>(job, (*slot)++, job.band_bits[i], job.band_index[i]);
    } else if (side == BAND_WITHIN) {
        const unsigned at = atomicAdd(&job.state->finals, 1u);

        job.final_bits[at] = job.band_bits[i];
        job.final_index[at] = job.band_index[i];
    }
}

/* Writes what is above the range, or within it where all that is needed. What is to be ranked is set aside. */
template <typename BITS, bool REAL>
static __device__ void band_cut_gather(const struct band_job<BITS> &job,
                                       const struct band_cut<BITS> &cut, uint32_t in_band,
                                       unsigned above, bool takes_all, struct band_shared *shared)
{
    enum { EACH = 4, TILE = EACH * BAND_BLOCK };

    for (uint32_t tile = blockIdx.x * TILE; tile < in_band; tile += gridDim.x * TILE) {
        enum band_side sides[EACH];
        unsigned long long taken = 0, total;

#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const uint32_t i = tile + j * BAND_BLOCK + threadIdx.x;

            sides[j] = i < in_band ? band_side_at<BITS, REAL>(job, cut, i) : BAND_BELOW;
            if (sides[j] == BAND_WITHIN && takes_all)
                sides[j] = BAND_ABOVE;
            taken += sides[j] == BAND_ABOVE;
        }

        unsigned slot = above + static_cast<unsigned>(topk_prefix(taken, shared->sums, &total));

        if (threadIdx.x == 0)
            shared->base = atomicAdd(&job.state->cut_taken, static_cast<unsigned>(total));
        __syncthreads();
        slot += shared->base;
#pragma unroll
        for (int j = 0; j < EACH; j++)
            band_cut_put<BITS, REAL>(job, sides[j], tile + j * BAND_BLOCK + threadIdx.x, &slot);
    }
}

/* One block ranks what was set aside, by counting, and writes the best into the last slots. */
template <typename BITS, bool REAL>
static __device__ void band_cut_rank(const struct band_job<BITS> &job, struct band_need left,
                                     void *room)
{
    BITS *keys = static_cast<BITS *>(room);
    uint32_t *indices = reinterpret_cast<uint32_t *>(keys + BAND_FINAL);

    for (unsigned i = threadIdx.x; i < left.match; i += BAND_BLOCK) {
        keys[i] = topk_key<REAL>(job.final_bits[i], job.rows.flip);
        indices[i] = job.final_index[i];
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < left.match; i += BAND_BLOCK) {
        const BITS key = keys[i];
        const uint32_t index = indices[i];
        unsigned better = 0;

        for (unsigned j = 0; j < left.match; j++)
            better += keys[j] > key || (keys[j] == key && indices[j] < index);
        if (better < left.need)
            band_emit<BITS, REAL>(job, job.plan.k - left.need + better, job.final_bits[i], index);
    }
}

/* The best `need` of the band. */
template <typename BITS, bool REAL>
static __device__ void band_select(const struct band_job<BITS> &job,
                                   const struct band_limits<BITS> &limits, uint32_t in_band,
                                   unsigned need, void *room, struct band_shared *shared)
{
    struct band_cut<BITS> cut = band_cut_of(limits, job.plan.n);

    if (need == 0)
        return;

    const struct band_need left = band_cut_find<BITS, REAL>(job, &cut, in_band, need, shared);
    const bool takes_all = left.need == left.match;

    band_cut_gather<BITS, REAL>(job, cut, in_band, job.plan.k - need, takes_all, shared);
    if (takes_all)
        return;
    cooperative_groups::this_grid().sync();
    if (blockIdx.x == 0)
        band_cut_rank<BITS, REAL>(job, left, room);
}

/* --- ties at the lower limit ------------------------------------------------------------------------ */

/* The elements of a tile of ties, see band_job. */
template <typename BITS>
static __device__ void band_tile_range(const struct band_job<BITS> &job, uint32_t tile,
                                       uint32_t *begin, uint32_t *end)
{
    const struct band_plan &plan = job.plan;
    const uint32_t body_end = plan.head + plan.vectors * plan.pack;

    *begin = tile == 0 ? 0 : tile <= plan.tiles ? plan.head + (tile - 1) * plan.tile : body_end;
    *end = tile == 0 ? plan.head : tile <= plan.tiles ? *begin + plan.tile : plan.n;
    if (tile > 0 && tile <= plan.tiles && *end > body_end)
        *end = body_end;
}

/* Writes a tile's elements that equal the limit, lowest index first, as long as there are slots. Every warp
 * takes a part of the tile, and remembers in lane s what it saw in step s. */
template <typename BITS, bool REAL>
static __device__ void band_take_tile(const struct band_job<BITS> &job, BITS limit, uint32_t tile,
                                      unsigned slot, struct band_shared *shared)
{
    enum { STEPS = BAND_VECTORS * BAND_VECTOR_BYTES / sizeof(BITS) };
    const uint32_t lane = threadIdx.x % 32;
    const BITS *row = band_row(job);
    uint32_t begin, end;
    unsigned seen = 0;
    BITS bits[STEPS];

    band_tile_range(job, tile, &begin, &end);
    begin += threadIdx.x / 32 * STEPS * 32 + lane;
#pragma unroll
    for (uint32_t step = 0; step < STEPS; step++)
        bits[step] = begin + step * 32 < end ? row[begin + step * 32] : BITS{0};
#pragma unroll
    for (uint32_t step = 0; step < STEPS; step++) {
        const bool is_tie =
            begin + step * 32 < end && topk_key<REAL>(bits[step], job.rows.flip) == limit;
        const unsigned ties = __ballot_sync(0xffffffffu, is_tie);

        if (lane == step)
            seen = ties;
    }

    unsigned long long total;
    unsigned at = slot + static_cast<unsigned>(topk_prefix(
                             static_cast<unsigned long long>(__popc(seen)), shared->sums, &total));

#pragma unroll 8
    for (uint32_t step = 0; step < STEPS; step++) {
        const unsigned ties = __shfl_sync(0xffffffffu, seen, step);
        const unsigned first = __shfl_sync(0xffffffffu, at, step);
        const unsigned my_slot = first + __popc(ties & ((1u << lane) - 1));
        const uint32_t i = begin + step * 32;

        if (ties >> lane & 1 && my_slot < job.plan.k)
            band_emit<BITS, REAL>(job, my_slot,
                                  REAL ? row[i] : topk_bits_of_key(limit, REAL, job.rows.flip), i);
    }
}

/* Fills the answer from `slot` on with the first elements that equal the limit. The tiles' counts say which
 * tiles those are in; blocks take them in turn. */
template <typename BITS, bool REAL>
static __device__ void band_take_ties(const struct band_job<BITS> &job, BITS limit, unsigned slot,
                                      unsigned *firsts, struct band_shared *shared)
{
    const uint32_t tiles = job.plan.tiles + 2;
    unsigned long long filled = slot, total;

    for (uint32_t base = 0; base < tiles && filled < job.plan.k; base += BAND_BLOCK) {
        const uint32_t mine = base + threadIdx.x;
        const unsigned long long ties = mine < tiles ? job.tile_ties[mine] : 0;
        const unsigned long long first = filled + topk_prefix(ties, shared->sums, &total);

        firsts[threadIdx.x] =
            ties > 0 && first < job.plan.k ? static_cast<unsigned>(first) : job.plan.k;
        __syncthreads();
        for (uint32_t t = (blockIdx.x + gridDim.x - base % gridDim.x) % gridDim.x; t < BAND_BLOCK;
             t += gridDim.x)
            if (firsts[t] < job.plan.k)
                band_take_tile<BITS, REAL>(job, limit, base + t, firsts[t], shared);
        __syncthreads();
        filled += total;
    }
}

/* All of the band, and ties. */
template <typename BITS, bool REAL>
static __device__ void band_take_all(const struct band_job<BITS> &job, BITS limit, uint32_t in_band,
                                     unsigned above, void *room, struct band_shared *shared)
{
    for (uint32_t i = blockIdx.x * BAND_BLOCK + threadIdx.x; i < in_band;
         i += gridDim.x * BAND_BLOCK)
        band_emit<BITS, REAL>(job, above + i, job.band_bits[i], job.band_index[i]);
    band_take_ties<BITS, REAL>(job, limit, above + in_band, static_cast<unsigned *>(room), shared);
}

#endif
