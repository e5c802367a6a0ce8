/*
 * scan, variant "hillis_steele_inplace": the same steps in one buffer.
 *
 * Mapping  one thread per element; a block scans as many elements as it has threads, scan_tree.cuh the rest.
 * Memory   reads and writes everything twice; one buffer in shared memory, each step through a temporary.
 * Bound    barriers: two per step, as all must have read before any may write.
 * Limits   none; a float result is a chain of at most 10 additions in its block and 12 per level above.
 */
#include "scan_tree.cuh"

template <typename IN, typename ACC, int OP>
static __global__ void __launch_bounds__(SCAN_BLOCK_MAX)
    scan_hillis_steele_inplace_kernel(struct scan_args<IN, ACC> args, ACC *sums)
{
    extern __shared__ __align__(16) unsigned char hillis_steele_inplace_shared[];
    ACC *values = reinterpret_cast<ACC *>(hillis_steele_inplace_shared);
    const int thread = threadIdx.x, last = blockDim.x - 1;
    const int64_t tile = tree_block(), i = tile * blockDim.x + thread;

    values[thread] = i < args.n ? static_cast<ACC>(args.in[i]) : args.identity;
    __syncthreads();
    for (int distance = 1; distance <= last; distance *= 2) {
        const ACC sum = thread >= distance
                            ? scan_join<OP>(values[thread - distance], values[thread])
                            : values[thread];

        __syncthreads(); /* all have read */
        values[thread] = sum;
        __syncthreads(); /* all have written */
    }
    if (i < args.n && args.exclusive)
        args.out[i] = thread > 0 ? values[thread - 1] : args.identity;
    else if (i < args.n)
        args.out[i] = values[thread];
    if (thread == last && tile * blockDim.x < args.n)
        sums[tile] = values[last];
}

template <typename IN, typename ACC, int OP>
static enum gpurun_status hillis_steele_inplace_run(struct gpurun_ctx *ctx)
{
    const struct scan_options *o = scan_options_of(ctx);
    const unsigned block = static_cast<unsigned>(o->block);
    const struct tree_plan plan = tree_plan_for(o->n, o->block, sizeof(ACC));

    scan_hillis_steele_inplace_kernel<IN, ACC, OP>
        <<<tree_grid(plan.counts[0]), block, block * sizeof(ACC), gpurun_cuda_stream(ctx)>>>(
            scan_args_of<IN, ACC>(ctx), tree_level<ACC>(ctx, plan, 0));
    tree_finish<ACC, OP>(ctx, plan, o->block);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

size_t scan_hillis_steele_inplace_scratch(struct gpurun_ctx *ctx)
{
    return tree_scratch(ctx, scan_options_of(ctx)->block);
}

enum gpurun_status scan_launch_hillis_steele_inplace(struct gpurun_ctx *ctx)
{
    return SCAN_DISPATCH(ctx, hillis_steele_inplace_run, ctx);
}
