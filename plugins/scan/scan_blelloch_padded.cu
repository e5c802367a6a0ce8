/*
 * scan, variant "blelloch_padded": the same tree with a gap after every 32 words of shared memory.
 *
 * Mapping  two elements per thread, in a block of a power of two; scan_tree.cuh does the rest.
 * Memory   reads and writes everything twice; the tree takes a 32nd more shared memory.
 * Bound    barriers: 2 log2(2 block) of them, most with few threads at work between.
 * Limits   `block` is a power of two; a float result is a chain of at most 22 additions in its block.
 */
#include "scan_blelloch.cuh"

template <typename IN, typename ACC, int OP>
static __global__ void __launch_bounds__(SCAN_BLOCK_MAX)
    scan_blelloch_padded_kernel(struct scan_args<IN, ACC> args, ACC *sums)
{
    extern __shared__ __align__(16) unsigned char blelloch_padded_shared[];

    blelloch_block<IN, ACC, OP, true>(args, sums, reinterpret_cast<ACC *>(blelloch_padded_shared));
}

template <typename IN, typename ACC, int OP>
static enum gpurun_status blelloch_padded_run(struct gpurun_ctx *ctx)
{
    const struct scan_options *o = scan_options_of(ctx);
    const unsigned block = static_cast<unsigned>(o->block);
    const size_t shared_bytes = blelloch_at<true>(2 * block) * sizeof(ACC);
    const struct tree_plan plan = tree_plan_for(o->n, 2 * o->block, sizeof(ACC));

    scan_blelloch_padded_kernel<IN, ACC, OP>
        <<<tree_grid(plan.counts[0]), block, shared_bytes, gpurun_cuda_stream(ctx)>>>(
            scan_args_of<IN, ACC>(ctx), tree_level<ACC>(ctx, plan, 0));
    tree_finish<ACC, OP>(ctx, plan, 2 * o->block);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status scan_blelloch_padded_supported(struct gpurun_ctx *ctx)
{
    return blelloch_supported(ctx);
}

size_t scan_blelloch_padded_scratch(struct gpurun_ctx *ctx)
{
    return tree_scratch(ctx, 2 * scan_options_of(ctx)->block);
}

enum gpurun_status scan_launch_blelloch_padded(struct gpurun_ctx *ctx)
{
    return SCAN_DISPATCH(ctx, blelloch_padded_run, ctx);
}
