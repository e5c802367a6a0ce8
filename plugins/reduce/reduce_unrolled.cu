/*
 * reduce, variant "unrolled": eight elements per thread, then a tree whose size the compiler knows.
 *
 * Mapping  256 threads, 2048 elements a block; passes until one result is left.
 * Memory   eight 4- or 8-byte loads in flight per thread, coalesced.
 * Bound    memory latency at this depth; of the tree's eight steps five are one warp's, without a barrier.
 * Limits   block is fixed.
 */
#include "reduce_passes.cuh"

enum { UNROLLED_BLOCK = 256, UNROLLED_ITEMS = 8 };

template <typename OP, bool FIRST>
static __global__ void __launch_bounds__(UNROLLED_BLOCK)
    reduce_unrolled_kernel(struct reduce_job job, struct reduce_pass<typename OP::ACC> pass)
{
    __shared__ typename OP::ACC shared[UNROLLED_BLOCK];
    const unsigned thread = threadIdx.x;

    shared[thread] = reduce_pass_gather<OP, FIRST, UNROLLED_ITEMS>(job, pass);
    __syncthreads();
#pragma unroll
    for (unsigned half = UNROLLED_BLOCK / 2; half >= 32; half /= 2) {
        if (thread < half)
            shared[thread] = OP::join(shared[thread], shared[thread + half]);
        __syncthreads();
    }
    if (thread >= 32)
        return;
#pragma unroll
    for (unsigned half = 16; half > 0; half /= 2) {
        if (thread < half)
            shared[thread] = OP::join(shared[thread], shared[thread + half]);
        __syncwarp();
    }
    if (thread == 0)
        reduce_pass_store<OP>(job, pass, shared[0]);
}

template <typename OP> static enum gpurun_status unrolled_run(struct gpurun_ctx *ctx)
{
    return reduce_passes<OP>(ctx, UNROLLED_BLOCK, UNROLLED_ITEMS, 0,
                             reduce_unrolled_kernel<OP, true>, reduce_unrolled_kernel<OP, false>);
}

enum gpurun_status reduce_unrolled_supported(struct gpurun_ctx *ctx)
{
    return reduce_check_grid(ctx, UNROLLED_BLOCK * UNROLLED_ITEMS);
}

size_t reduce_unrolled_scratch(struct gpurun_ctx *ctx)
{
    return reduce_passes_scratch(ctx, UNROLLED_BLOCK * UNROLLED_ITEMS);
}

enum gpurun_status reduce_launch_unrolled(struct gpurun_ctx *ctx)
{
    return REDUCE_DISPATCH(reduce_state_of(ctx)->kind, unrolled_run, ctx);
}
