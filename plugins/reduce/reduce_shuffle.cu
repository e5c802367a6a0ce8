/*
 * reduce, variant "shuffle": eight elements per thread, then warp shuffles.
 *
 * Mapping  8 * block elements a block; passes until one result is left.
 * Memory   eight 4- or 8-byte loads in flight per thread; shared memory holds one item per warp.
 * Bound    memory latency at this depth; one barrier per block.
 * Limits   a result of 16 bytes takes four shuffles a step.
 */
#include "reduce_passes.cuh"
#include "reduce_tree.cuh"

enum { SHUFFLE_ITEMS = 8 };

template <typename OP, bool FIRST>
static __global__ void __launch_bounds__(1024)
    reduce_shuffle_kernel(struct reduce_job job, struct reduce_pass<typename OP::ACC> pass)
{
    __shared__ typename OP::ACC shared[REDUCE_WARPS_MAX];
    const typename OP::ACC total =
        reduce_block_tree<OP>(reduce_pass_gather<OP, FIRST, SHUFFLE_ITEMS>(job, pass), shared);

    if (threadIdx.x == 0)
        reduce_pass_store<OP>(job, pass, total);
}

template <typename OP> static enum gpurun_status shuffle_run(struct gpurun_ctx *ctx)
{
    return reduce_passes<OP>(ctx, static_cast<int>(reduce_options_of(ctx)->block), SHUFFLE_ITEMS, 0,
                             reduce_shuffle_kernel<OP, true>, reduce_shuffle_kernel<OP, false>);
}

enum gpurun_status reduce_shuffle_supported(struct gpurun_ctx *ctx)
{
    return reduce_check_grid(ctx, SHUFFLE_ITEMS * reduce_options_of(ctx)->block);
}

size_t reduce_shuffle_scratch(struct gpurun_ctx *ctx)
{
    return reduce_passes_scratch(ctx, SHUFFLE_ITEMS * reduce_options_of(ctx)->block);
}

enum gpurun_status reduce_launch_shuffle(struct gpurun_ctx *ctx)
{
    return REDUCE_DISPATCH(reduce_state_of(ctx)->kind, shuffle_run, ctx);
}
