/*
 * The one pass of the band variant over the input: what is above the upper limit goes into the answer, what
 * lies between the limits into the band, and elements that equal the lower limit may be counted instead.
 */
#ifndef TOPK_BAND_STREAM_CUH
#define TOPK_BAND_STREAM_CUH

#include "topk_band_cut.cuh"

/* Entries that a warp holds back: it looks at them after each vector of all its lanes. */
template <typename BITS> struct band_stash {
    enum { ROOM = BAND_STASH_FULL + 32 * BAND_VECTOR_BYTES / sizeof(BITS) };
    BITS bits[ROOM];
    uint32_t index[ROOM];
};

/* What a block's warps need to empty a stash; in shared memory. */
template <typename BITS> struct band_sieve {
    struct band_job<BITS> job;
    BITS high;
    struct band_cut<BITS> cut;
    unsigned *cut_bins; /* shared: the first digit of what goes into the band */
};

/* What a warp carries through the stream. */
template <typename BITS> struct band_warp {
    BITS low;
    uint64_t flip;
    struct band_stash<BITS> *stash;
    const struct band_sieve<BITS> *sieve;
    int held; /* entries of the stash */
    unsigned ties;
};

/* Writes a stash to the answer and to the band. All lanes call it. Not inline: the stream calls it at many
 * places, and seldom. */
template <typename BITS, bool REAL>
static __device__ __noinline__ void band_flush(const struct band_sieve<BITS> *sieve,
                                               const struct band_stash<BITS> *stash, int held)
{
    const struct band_job<BITS> &job = sieve->job;
    const int lane = threadIdx.x % 32;
    const unsigned lower = (1u << lane) - 1;
    unsigned above = 0;
    unsigned long long at = 0;

    __syncwarp();
    for (int i = lane; i - lane < held; i += 32)
        above += __popc(__ballot_sync(
            0xffffffffu, i < held && topk_key<REAL>(stash->bits[i], job.rows.flip) > sieve->high));
    if (lane == 0)
        at = atomicAdd(&job.state->taken,
                       static_cast<unsigned long long>(above) << 32 | (held - above));
    at = __shfl_sync(0xffffffffu, at, 0);

    unsigned at_above = static_cast<unsigned>(at >> 32), at_band = static_cast<unsigned>(at);

    for (int i = lane; i - lane < held; i += 32) {
        const bool is_held = i < held;
        const BITS bits = is_held ? stash->bits[i] : BITS{0};
        const uint32_t index = is_held ? stash->index[i] : 0;
        const BITS key = topk_key<REAL>(bits, job.rows.flip);
        const bool is_above = is_held && key > sieve->high;
        const bool is_band = is_held && !is_above;
        const unsigned aboves = __ballot_sync(0xffffffffu, is_above);
        const unsigned bands = __ballot_sync(0xffffffffu, is_band);
        const unsigned above_slot = at_above + __popc(aboves & lower);
        const unsigned band_slot = at_band + __popc(bands & lower);

        if (is_above && above_slot < job.plan.k)
            band_emit<BITS, REAL>(job, above_slot, bits, index);
        if (is_band && band_slot < job.plan.band_most) {
            job.band_bits[band_slot] = bits;
            job.band_index[band_slot] = index;
            atomicAdd(&sieve->cut_bins[band_cut_digit(sieve->cut, key, job.plan.n - 1 - index)],
                      1u);
        }
        at_above += __popc(aboves);
        at_band += __popc(bands);
    }
    __syncwarp();
}

/* Holds back what is wanted of PACK elements per lane, the first of which is at `index`. All lanes call it;
 * `is_there` may differ. Few lanes want any, and hardly one more than one: so a step takes one from each. */
template <typename BITS, bool REAL, bool TIES, int PACK>
static __device__ __forceinline__ void
band_offer(struct band_warp<BITS> *w, const BITS (&bits)[PACK], uint32_t index, bool is_there)
{
    const unsigned lower = (1u << threadIdx.x % 32) - 1;
    unsigned wanted = 0;

#pragma unroll
    for (int e = 0; e < PACK; e++) {
        const BITS key = topk_key<REAL>(bits[e], w->flip);
        const bool is_wanted = is_there && (TIES ? key > w->low : key >= w->low);

        wanted |= static_cast<unsigned>(is_wanted) << e;
        if (TIES)
            w->ties += is_there && key == w->low;
    }
    for (unsigned lanes = __ballot_sync(0xffffffffu, wanted != 0); lanes != 0;
         lanes = __ballot_sync(0xffffffffu, wanted != 0)) {
        if (wanted != 0) {
            const int slot = w->held + __popc(lanes & lower), first = __ffs(wanted) - 1;
            BITS chosen = bits[0];

#pragma unroll
            for (int e = 1; e < PACK; e++)
                chosen = first == e ? bits[e] : chosen;
            w->stash->bits[slot] = chosen;
            w->stash->index[slot] = index + first;
            wanted &= wanted - 1;
        }
        w->held += __popc(lanes);
    }
}

/* The elements of a 16-byte vector. */
static __device__ __forceinline__ void band_unpack(uint4 v, uint32_t (&bits)[4])
{
    bits[0] = v.x;
    bits[1] = v.y;
    bits[2] = v.z;
    bits[3] = v.w;
}

static __device__ __forceinline__ void band_unpack(uint4 v, uint64_t (&bits)[2])
{
    bits[0] = static_cast<uint64_t>(v.y) << 32 | v.x;
    bits[1] = static_cast<uint64_t>(v.w) << 32 | v.z;
}

/* Adds the lanes' ties to a tile's. */
template <typename BITS>
static __device__ __forceinline__ void band_add_ties(const struct band_job<BITS> &job,
                                                     struct band_warp<BITS> *w, uint32_t tile)
{
    unsigned ties = w->ties;

    for (int distance = 16; distance > 0; distance /= 2)
        ties += __shfl_xor_sync(0xffffffffu, ties, distance);
    if (threadIdx.x % 32 == 0 && ties > 0) {
        atomicAdd(&job.tile_ties[tile], ties);
        atomicAdd(&job.state->ties, ties);
    }
    w->ties = 0;
}

/* The elements before the first whole vector and behind the last, a few at most. One warp calls it. */
template <typename BITS, bool REAL, bool TIES>
static __device__ void band_offer_edges(const struct band_job<BITS> &job, struct band_warp<BITS> *w)
{
    const uint32_t lane = threadIdx.x % 32, tail = job.plan.head + job.plan.vectors * job.plan.pack;
    const BITS *row = band_row(job);

    for (int side = 0; side < 2; side++) {
        const uint32_t i = side == 0 ? lane : tail + lane;
        const bool is_there = i < (side == 0 ? job.plan.head : job.plan.n);
        const BITS bits[1] = {is_there ? row[i] : BITS{0}};

        band_offer<BITS, REAL, TIES>(w, bits, i, is_there);
        if (TIES)
            band_add_ties(job, w, side == 0 ? 0 : job.plan.tiles + 1);
    }
}

/* All that a warp reads of the input. */
template <typename BITS, bool REAL, bool TIES>
static __device__ __forceinline__ void band_read(const struct band_job<BITS> &job,
                                                 struct band_warp<BITS> *w)
{
    enum { PACK = BAND_VECTOR_BYTES / sizeof(BITS) };
    const uint4 *vectors = reinterpret_cast<const uint4 *>(band_row(job) + job.plan.head);
    const uint32_t count = job.plan.vectors;
    uint4 loaded[BAND_VECTORS];
    BITS bits[PACK];

    for (uint32_t tile = blockIdx.x; tile < job.plan.tiles; tile += gridDim.x) {
        const uint32_t first =
            (tile * BAND_WARPS + threadIdx.x / 32) * (32 * BAND_VECTORS) + threadIdx.x % 32;

#pragma unroll
        for (int v = 0; v < BAND_VECTORS; v++)
            loaded[v] = first + v * 32 < count ? __ldcs(&vectors[first + v * 32]) : uint4{};
#pragma unroll
        for (int v = 0; v < BAND_VECTORS; v++) {
            const uint32_t at = first + v * 32;

            band_unpack(loaded[v], bits);
            band_offer<BITS, REAL, TIES>(w, bits, job.plan.head + at * PACK, at < count);
            if (w->held > BAND_STASH_FULL) {
                band_flush<BITS, REAL>(w->sieve, w->stash, w->held);
                w->held = 0;
            }
        }
        if (TIES)
            band_add_ties(job, w, 1 + tile);
    }
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x < 32)
        band_offer_edges<BITS, REAL, TIES>(job, w);
    if (w->held > 0)
        band_flush<BITS, REAL>(w->sieve, w->stash, w->held);
}

/* The pass of a whole block. */
template <typename BITS, bool REAL>
static __device__ __forceinline__ void
band_stream(const struct band_job<BITS> &job, const struct band_limits<BITS> &limits,
            struct band_stash<BITS> *stashes, struct band_shared *shared)
{
    __shared__ struct band_sieve<BITS> sieve;
    struct band_warp<BITS> w = {
        limits.low, job.rows.flip, &stashes[threadIdx.x / 32], &sieve, 0, 0
    };

    if (threadIdx.x == 0)
        sieve = {job, limits.high, band_cut_of(limits, job.plan.n), shared->bins[0]};
    band_clear_bins(shared);
    if (limits.ties)
        band_read<BITS, REAL, true>(job, &w);
    else
        band_read<BITS, REAL, false>(job, &w);
    __syncthreads();
    band_add_bins(shared->bins[0], job.state->cut_bins[0]);
}

#endif
