/*
 * scan, variant "hillis_steele": each step adds the element 1, 2, 4, ... places to the left.
 *
 * Mapping  one thread per element; a block scans as many elements as it has threads, scan_tree.cuh the rest.
 * Memory   reads and writes everything twice; two buffers in shared memory, so one barrier per step.
 * Bound    shared memory and barriers: n log2(block) additions, 3 accesses each.
 * Limits   none; a float result is a chain of at most 10 additions in its block and 12 per level above.
 */
#include "scan_tree.cuh"

template <typename IN, typename ACC, int OP>
static __global__ void __launch_bounds__(SCAN_BLOCK_MAX)
    scan_hillis_steele_kernel(struct scan_args<IN, ACC> args, ACC *sums)
{
    extern __shared__ __align__(16) unsigned char hillis_steele_shared[];
    ACC *from = reinterpret_cast<ACC *>(hillis_steele_shared), *to = from + blockDim.x;
    const int thread = threadIdx.x, last = blockDim.x - 1;
    const int64_t tile = tree_block(), i = tile * blockDim.x + thread;

    from[thread] = i < args.n ? static_cast<ACC>(args.in[i]) : args.identity;
    __syncthreads();
    for (int distance = 1; distance <= last; distance *= 2) {
        ACC *const swap = from;

        to[thread] = thread >= distance ? scan_join<OP>(from[thread - distance], from[thread])
                                        : from[thread];
        __syncthreads(); /* the other buffer is whole, and this one has been read */
        from = to;
        to = swap;
    }
    if (i < args.n && args.exclusive)
        args.out[i] = thread > 0 ? from[thread - 1] : args.identity;
    else if (i < args.n)
        args.out[i] = from[thread];
    if (thread == last && tile * blockDim.x < args.n)
        sums[tile] = from[last];
}

template <typename IN, typename ACC, int OP>
static enum gpurun_status hillis_steele_run(struct gpurun_ctx *ctx)
{
    const struct scan_options *o = scan_options_of(ctx);
    const unsigned block = static_cast<unsigned>(o->block);
    const struct tree_plan plan = tree_plan_for(o->n, o->block, sizeof(ACC));

    scan_hillis_steele_kernel<IN, ACC, OP>
        <<<tree_grid(plan.counts[0]), block, 2 * block * sizeof(ACC), gpurun_cuda_stream(ctx)>>>(
            scan_args_of<IN, ACC>(ctx), tree_level<ACC>(ctx, plan, 0));
    tree_finish<ACC, OP>(ctx, plan, o->block);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

size_t scan_hillis_steele_scratch(struct gpurun_ctx *ctx)
{
    return tree_scratch(ctx, scan_options_of(ctx)->block);
}

enum gpurun_status scan_launch_hillis_steele(struct gpurun_ctx *ctx)
{
    return SCAN_DISPATCH(ctx, hillis_steele_run, ctx);
}
