/*
 * scan, variant "blelloch": a tree of sums built upwards, then prefixes handed down it.
 *
 * Mapping  two elements per thread, in a block of a power of two; scan_tree.cuh does the rest.
 * Memory   reads and writes everything twice; the tree is in place in shared memory.
 * Bound    barriers, and banks: at distance 2^k a warp's accesses meet in 32 / 2^k banks, in one from 32 on.
 * Limits   `block` is a power of two; a float result is a chain of at most 22 additions in its block.
 */
#include "scan_blelloch.cuh"

template <typename IN, typename ACC, int OP>
static __global__ void __launch_bounds__(SCAN_BLOCK_MAX)
    scan_blelloch_kernel(struct scan_args<IN, ACC> args, ACC *sums)
{
    extern __shared__ __align__(16) unsigned char blelloch_shared[];

    blelloch_block<IN, ACC, OP, false>(args, sums, reinterpret_cast<ACC *>(blelloch_shared));
}

template <typename IN, typename ACC, int OP>
static enum gpurun_status blelloch_run(struct gpurun_ctx *ctx)
{
    const struct scan_options *o = scan_options_of(ctx);
    const unsigned block = static_cast<unsigned>(o->block);
    const size_t shared_bytes = blelloch_at<false>(2 * block) * sizeof(ACC);
    const struct tree_plan plan = tree_plan_for(o->n, 2 * o->block, sizeof(ACC));

    scan_blelloch_kernel<IN, ACC, OP>
        <<<tree_grid(plan.counts[0]), block, shared_bytes, gpurun_cuda_stream(ctx)>>>(
            scan_args_of<IN, ACC>(ctx), tree_level<ACC>(ctx, plan, 0));
    tree_finish<ACC, OP>(ctx, plan, 2 * o->block);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status scan_blelloch_supported(struct gpurun_ctx *ctx)
{
    return blelloch_supported(ctx);
}

size_t scan_blelloch_scratch(struct gpurun_ctx *ctx)
{
    return tree_scratch(ctx, 2 * scan_options_of(ctx)->block);
}

enum gpurun_status scan_launch_blelloch(struct gpurun_ctx *ctx)
{
    return SCAN_DISPATCH(ctx, blelloch_run, ctx);
}
