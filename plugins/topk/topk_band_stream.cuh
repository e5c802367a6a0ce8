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
    struct band_limits<BITS> limits;
    struct band_cut<BITS> cut;
    unsigned *cut_bins; /* shared: the first digit of what goes into the band */
};

/* The comparison of the stream. It may let pass what a flush then drops, but nothing that ties. */
template <typename BITS, bool REAL> struct band_filter {
    BITS low, flip;

    __device__ __forceinline__ band_filter(BITS low_key, uint64_t key_flip)
        : low(low_key), flip(static_cast<BITS>(key_flip))
    {
    }
    __device__ __forceinline__ bool passes(BITS bits) const
    {
        return (bits ^ flip) >= low;
    }
    __device__ __forceinline__ bool exceeds(BITS bits) const
    {
        return (bits ^ flip) > low;
    }
    __device__ __forceinline__ bool ties(BITS bits) const
    {
        return (bits ^ flip) == low;
    }
};

template <typename BITS> struct band_real;
template <> struct band_real<uint32_t> {
    typedef float type;
};
template <> struct band_real<uint64_t> {
    typedef double type;
};

/* Reals are compared as what they are, turned round where the smallest are wanted: a key would take some six
 * instructions. NaN passes always; where the limit is NaN itself, everything does. */
template <typename BITS> struct band_filter<BITS, true> {
    typedef typename band_real<BITS>::type real;
    real low, sign;
    bool is_nan;

    __device__ __forceinline__ band_filter(BITS low_key, uint64_t key_flip)
        : sign(key_flip ? real(-1) : real(1))
    {
        const real limit = of(topk_bits_of_key(low_key, true, key_flip));

        is_nan = limit != limit;
        low = limit * sign;
    }
    static __device__ __forceinline__ real of(BITS bits)
    {
        real value;

        memcpy(&value, &bits, sizeof(value));
        return value;
    }
    __device__ __forceinline__ bool passes(BITS bits) const
    {
        return !(of(bits) * sign < low);
    }
    __device__ __forceinline__ bool exceeds(BITS bits) const
    {
        return !(of(bits) * sign <= low);
    }
    __device__ __forceinline__ bool ties(BITS bits) const
    {
        const real value = of(bits);

        return value * sign == low || (is_nan && value != value);
    }
};

/* What a warp carries through the stream. */
template <typename BITS, bool REAL> struct band_warp {
    struct band_filter<BITS, REAL> filter;
    struct band_stash<BITS> *stash;
    const struct band_sieve<BITS> *sieve;
    int held;      /* entries of the stash */
    unsigned ties; /* of a lane in this tile */
    unsigned all_ties;
};

/* Where the i-th of `held` entries of a stash belongs. */
template <typename BITS, bool REAL>
static __device__ __forceinline__ enum band_side
band_sieve_side(const struct band_sieve<BITS> *sieve, const struct band_stash<BITS> *stash, int i,
                int held)
{
    const struct band_limits<BITS> &limits = sieve->limits;

    if (i >= held)
        return BAND_BELOW;

    const BITS key = topk_key<REAL>(stash->bits[i], sieve->job.rows.flip);

    if (key > limits.high)
        return BAND_ABOVE;
    return key > limits.low || (key == limits.low && !limits.ties) ? BAND_WITHIN : BAND_BELOW;
}

/* Writes a stash to the answer and to the band. All lanes call it. Not inline: the stream calls it at many
 * places, and seldom. */
template <typename BITS, bool REAL>
static __device__ __noinline__ void band_flush(const struct band_sieve<BITS> *sieve,
                                               const struct band_stash<BITS> *stash, int held)
{
    const struct band_job<BITS> &job = sieve->job;
    const int lane = threadIdx.x % 32;
    const unsigned lower = (1u << lane) - 1;
    unsigned aboves_all = 0, bands_all = 0;
    unsigned long long at = 0;

    __syncwarp();
    for (int i = lane; i - lane < held; i += 32) {
        const enum band_side side = band_sieve_side<BITS, REAL>(sieve, stash, i, held);

        aboves_all += __popc(__ballot_sync(0xffffffffu, side == BAND_ABOVE));
        bands_all += __popc(__ballot_sync(0xffffffffu, side == BAND_WITHIN));
    }
    if (lane == 0)
        at = atomicAdd(&job.state->taken,
                       static_cast<unsigned long long>(aboves_all) << 32 | bands_all);
    at = __shfl_sync(0xffffffffu, at, 0);

    unsigned at_above = static_cast<unsigned>(at >> 32), at_band = static_cast<unsigned>(at);

    for (int i = lane; i - lane < held; i += 32) {
        const enum band_side side = band_sieve_side<BITS, REAL>(sieve, stash, i, held);
        const bool is_above = side == BAND_ABOVE, is_band = side == BAND_WITHIN;
        const unsigned aboves = __ballot_sync(0xffffffffu, is_above);
        const unsigned bands = __ballot_sync(0xffffffffu, is_band);
        const unsigned above_slot = at_above + __popc(aboves & lower);
        const unsigned band_slot = at_band + __popc(bands & lower);

        if (is_above && above_slot < job.plan.k)
            band_emit<BITS, REAL>(job, above_slot, stash->bits[i], stash->index[i]);
        if (is_band && band_slot < job.plan.band_most) {
            const BITS key = topk_key<REAL>(stash->bits[i], job.rows.flip);
            const uint32_t index = stash->index[i];

            job.band_bits[band_slot] = stash->bits[i];
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
band_offer(struct band_warp<BITS, REAL> *w, const BITS (&bits)[PACK], uint32_t index, bool is_there)
{
    const unsigned lower = (1u << threadIdx.x % 32) - 1;
    unsigned wanted = 0;

#pragma unroll
    for (int e = 0; e < PACK; e++) {
        const bool is_wanted =
            is_there && (TIES ? w->filter.exceeds(bits[e]) : w->filter.passes(bits[e]));

        wanted |= static_cast<unsigned>(is_wanted) << e;
        if (TIES)
            w->ties += is_there && w->filter.ties(bits[e]);
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
template <typename BITS, bool REAL>
static __device__ __forceinline__ void band_add_ties(const struct band_job<BITS> &job,
                                                     struct band_warp<BITS, REAL> *w, uint32_t tile)
{
    unsigned ties = w->ties;

    for (int distance = 16; distance > 0; distance /= 2)
        ties += __shfl_xor_sync(0xffffffffu, ties, distance);
    if (threadIdx.x % 32 == 0 && ties > 0)
        atomicAdd(&job.tile_ties[tile], ties);
    w->all_ties += ties;
    w->ties = 0;
}

/* The elements before the first whole vector and behind the last, a few at most. One warp calls it. */
template <typename BITS, bool REAL, bool TIES>
static __device__ void band_offer_edges(const struct band_job<BITS> &job,
                                        struct band_warp<BITS, REAL> *w)
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
                                                 struct band_warp<BITS, REAL> *w)
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
    if (TIES && threadIdx.x % 32 == 0)
        atomicAdd(&job.state->ties, w->all_ties);
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
    band_warp<BITS, REAL> w = {
        {limits.low, job.rows.flip}, &stashes[threadIdx.x / 32], &sieve, 0, 0, 0};

    if (threadIdx.x == 0)
        sieve = {job, limits, band_cut_of(limits, job.plan.n), shared->bins[0]};
    band_clear_bins(shared);
    if (limits.ties)
        band_read<BITS, REAL, true>(job, &w);
    else
        band_read<BITS, REAL, false>(job, &w);
    __syncthreads();
    band_add_bins(shared->bins[0], job.state->cut_bins[0]);
}

#endif
