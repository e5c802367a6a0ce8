/*
 * scan, variant "three_kernel": scans blocks, scans their sums, adds.
 *
 * Mapping  8 elements per thread in registers; a warp scans 8 rows of 32 by shuffles, warps join once.
 * Memory   reads and writes everything twice, coalesced; shared memory holds one word per warp.
 * Bound    memory: 4 accesses per element where a single pass has 2.
 * Limits   `block` is a multiple of 32; a float result is a chain of at most 20 additions in its block.
 */
#include "scan_tree.cuh"

enum { THREE_KERNEL_ROWS = 8 };

/* Reads a warp's rows and scans each: row[j] is the lane's inclusive result, above[j] all of the rows before.
 * Returns all of the warp's elements. */
template <typename IN, typename ACC, int OP>
static __device__ __forceinline__ ACC three_kernel_rows(const struct scan_args<IN, ACC> &args,
                                                        int64_t first, ACC *row, ACC *above)
{
    ACC all = args.identity;

#pragma unroll
    for (int j = 0; j < THREE_KERNEL_ROWS; j++) {
        const int64_t i = first + j * 32;

        row[j] = i < args.n ? static_cast<ACC>(args.in[i]) : args.identity;
    }
#pragma unroll
    for (int j = 0; j < THREE_KERNEL_ROWS; j++) {
        row[j] = scan_warp<OP>(row[j]);
        above[j] = all;
        all = scan_join<OP>(all, scan_warp_at(row[j], 31));
    }
    return all;
}

template <typename IN, typename ACC, int OP>
static __global__ void __launch_bounds__(SCAN_BLOCK_MAX)
    scan_three_kernel_kernel(struct scan_args<IN, ACC> args, ACC *sums)
{
    __shared__ ACC warps[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, count = blockDim.x / 32;
    const int64_t tile = tree_block(), begin = tile * blockDim.x * THREE_KERNEL_ROWS;
    const int64_t first = begin + warp * 32 * THREE_KERNEL_ROWS + lane;
    ACC row[THREE_KERNEL_ROWS], above[THREE_KERNEL_ROWS];
    const ACC all = three_kernel_rows<IN, ACC, OP>(args, first, row, above);

    if (lane == 0)
        warps[warp] = all;
    __syncthreads();

    /* Each warp scans the sums of all. */
    const ACC inclusive = scan_warp<OP>(lane < count ? warps[lane] : args.identity);
    const ACC before = scan_warp_before(inclusive, args.identity);
    const ACC mine = scan_warp_at(before, warp);

    if (warp == 0 && lane == 31 && begin < args.n)
        sums[tile] = inclusive;
#pragma unroll
    for (int j = 0; j < THREE_KERNEL_ROWS; j++) {
        const ACC left = scan_warp_before(row[j], args.identity);
        const ACC result = scan_join<OP>(above[j], args.exclusive ? left : row[j]);

        if (first + j * 32 < args.n)
            args.out[first + j * 32] = scan_join<OP>(mine, result);
    }
}

template <typename IN, typename ACC, int OP>
static enum gpurun_status three_kernel_run(struct gpurun_ctx *ctx)
{
    const struct scan_options *o = scan_options_of(ctx);
    const int64_t tile = o->block * THREE_KERNEL_ROWS;
    const struct tree_plan plan = tree_plan_for(o->n, tile, sizeof(ACC));

    scan_three_kernel_kernel<IN, ACC, OP>
        <<<tree_grid(plan.counts[0]), static_cast<unsigned>(o->block), 0,
           gpurun_cuda_stream(ctx)>>>(scan_args_of<IN, ACC>(ctx), tree_level<ACC>(ctx, plan, 0));
    tree_finish<ACC, OP>(ctx, plan, tile);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status scan_three_kernel_supported(struct gpurun_ctx *ctx)
{
    const int64_t block = scan_options_of(ctx)->block;

    if (block % 32 == 0)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "block",
                       "warps are whole: %lld threads are not a multiple of 32",
                       static_cast<long long>(block));
}

size_t scan_three_kernel_scratch(struct gpurun_ctx *ctx)
{
    return tree_scratch(ctx, scan_options_of(ctx)->block * THREE_KERNEL_ROWS);
}

enum gpurun_status scan_launch_three_kernel(struct gpurun_ctx *ctx)
{
    return SCAN_DISPATCH(ctx, three_kernel_run, ctx);
}
