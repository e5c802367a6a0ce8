/*
 * argmin and argmax in the variant "vector". No element costs more than its key and one maximum: a thread keeps
 * its best key and which of the block's packs that was first in, so that a warp finds its best in a few
 * instructions. Until the last result is written an index stands for the pack that begins there; which of its
 * elements it is, the last read tells.
 */
#ifndef REDUCE_VECTOR_PLACE_CUH
#define REDUCE_VECTOR_PLACE_CUH

#include "gpurun/warp.cuh"
#include "reduce_vector.cuh"

enum : unsigned { VECTOR_NO_PACK = 0xffffffffu };

/* The best key of packs, and the first of the block's packs that it is in. */
template <typename BITS> struct vector_found {
    BITS key;
    unsigned pack;
};

template <typename OP> struct vector_place : OP {
    static __device__ __forceinline__ void write(const struct reduce_job &job,
                                                 struct reduce_place_of place)
    {
        const typename OP::IN *in = static_cast<const typename OP::IN *>(job.in);
        typename OP::IN found[vector_width<OP>()], best = 0;
        int c = 0;

#pragma unroll
        for (int i = 0; i < vector_width<OP>(); i++)
            found[i] = in[min(place.index + i, job.n - 1)];
#pragma unroll
        for (int i = vector_width<OP>() - 1; i >= 0; i--) {
            const bool is_it = OP::key(found[i], job.flip) == place.key;

            c = is_it ? i : c;
            best = is_it ? found[i] : best;
        }
        *job.index = place.index + c;
        *static_cast<typename OP::IN *>(job.value) = best;
    }
};

/* Looks through the thread's packs of a tile; `number` is the first one's in the block. */
template <typename OP, bool FULL>
static __device__ __forceinline__ void vector_find(struct vector_found<typename OP::IN> *best,
                                                   const struct reduce_job &job, int64_t first,
                                                   unsigned number, struct vector_span span)
{
    struct vector_pack<OP> pack[VECTOR_LOADS];

    vector_load<OP, FULL>(pack, job, first, span);
#pragma unroll
    for (int l = 0; l < VECTOR_LOADS; l++) {
        if (FULL || first + l * VECTOR_BLOCK < span.packs) {
            typename OP::IN key = OP::key(pack[l].item[0], job.flip);

#pragma unroll
            for (int c = 1; c < vector_width<OP>(); c++)
                key = max(key, OP::key(pack[l].item[c], job.flip));
            best->pack = key > best->key ? number + l * VECTOR_BLOCK : best->pack;
            best->key = max(key, best->key);
        }
    }
}

template <typename BITS>
static __device__ __forceinline__ struct vector_found<BITS>
vector_found_by_warp(struct vector_found<BITS> mine) {
    const BITS key = gpurun_warp_max(mine.key);
    const struct vector_found<BITS> best = {
        key, ~gpurun_warp_max(mine.key == key ? ~mine.pack : 0u)
    };

    return best;
}

/* In the first warp. */
template <typename BITS>
static __device__ __forceinline__ struct vector_found<BITS>
vector_found_by_block(struct vector_found<BITS> mine) {
    const struct vector_found<BITS> nothing = {
        0, VECTOR_NO_PACK
    };
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    __shared__ struct vector_found<BITS> shared[VECTOR_BLOCK / 32];

    mine = vector_found_by_warp(mine);
    if (lane == 0)
        shared[warp] = mine;
    __syncthreads();
    return warp > 0 ? nothing
                    : vector_found_by_warp(lane < VECTOR_BLOCK / 32 ? shared[lane] : nothing);
}

template <typename OP>
static __global__ void __launch_bounds__(VECTOR_BLOCK, VECTOR_BLOCKS_PER_SM)
    reduce_vector_place_kernel(struct reduce_job job, struct vector_span span, void *state)
{
    typedef typename OP::IN BITS;
    const unsigned claim = reduce_claim(state);
    const int64_t begin = static_cast<int64_t>(blockIdx.x) * span.tiles * VECTOR_TILE;
    struct vector_found<BITS> found = {
        0, begin + threadIdx.x < span.packs ? threadIdx.x : VECTOR_NO_PACK
    };
    __shared__ typename OP::ACC shared[REDUCE_WARPS_MAX];
    __shared__ unsigned last_claim;
    typename OP::ACC total;

#pragma unroll 1
    for (unsigned number = threadIdx.x; number < span.tiles * VECTOR_TILE; number += VECTOR_TILE) {
        if (begin + number - threadIdx.x + VECTOR_TILE <= span.packs)
            vector_find<OP, true>(&found, job, begin + number, number, span);
        else
            vector_find<OP, false>(&found, job, begin + number, number, span);
    }
    if (threadIdx.x == 0)
        last_claim = reduce_last(claim);
    found = vector_found_by_block(found);
    total = found.pack == VECTOR_NO_PACK
                ? OP::none()
                : OP::at(found.key, span.head + (begin + found.pack) * vector_width<OP>());
    if (blockIdx.x == 0 && threadIdx.x < 32)
        total = OP::join(total, reduce_warp<OP>(vector_single<OP>(job, span)));
    reduce_hand_in<OP>(job, total, claim, last_claim, state, shared);
}

#endif
