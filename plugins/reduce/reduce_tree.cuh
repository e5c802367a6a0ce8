/*
 * Trees over a warp and a block by shuffles: no barrier within a warp, one for the block.
 */
#ifndef REDUCE_TREE_CUH
#define REDUCE_TREE_CUH

#include "reduce_device.cuh"

enum { REDUCE_WARPS_MAX = 32 };

template <typename ACC> static __device__ __forceinline__ ACC reduce_shuffle(ACC mine, int distance)
{
    return __shfl_down_sync(0xffffffffu, mine, distance);
}

static __device__ __forceinline__ struct reduce_place_of reduce_shuffle(struct reduce_place_of mine,
                                                                        int distance)
{
    const struct reduce_place_of theirs = {__shfl_down_sync(0xffffffffu, mine.key, distance),
                                           __shfl_down_sync(0xffffffffu, mine.index, distance)};

    return theirs;
}

/* The warp's result, in lane 0. All lanes must call it. */
template <typename OP>
static __device__ __forceinline__ typename OP::ACC reduce_warp(typename OP::ACC mine)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        mine = OP::join(mine, reduce_shuffle(mine, distance));
    return mine;
}

/* The block's result, in thread 0. All threads must call it; blockDim.x is a multiple of 32. `shared` has
 * REDUCE_WARPS_MAX items; a barrier must separate two calls. */
template <typename OP>
static __device__ __forceinline__ typename OP::ACC reduce_block_tree(typename OP::ACC mine,
                                                                     typename OP::ACC *shared)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

    mine = reduce_warp<OP>(mine);
    if (lane == 0)
        shared[warp] = mine;
    __syncthreads();
    if (warp == 0)
        mine = reduce_warp<OP>(lane < warps ? shared[lane] : OP::none());
    return mine;
}

#endif
