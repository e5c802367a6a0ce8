/*
 * From blocks that were scanned on their own to the answer: their sums are scanned, in blocks again and so on
 * until one block holds all that is left, and what is before each block is added to its elements.
 */
#ifndef SCAN_TREE_CUH
#define SCAN_TREE_CUH

#include "scan_device.cuh"

enum {
    TREE_BLOCK = 1024, /* sums that one block scans */
    TREE_ADD_BLOCK = 256,
    TREE_LEVELS = 7,       /* 2^59 elements in blocks of 32 */
    TREE_GRID_X = 1 << 20, /* more blocks go along y */
};

/* Level 0 holds one sum per block of elements, each other one sum per TREE_BLOCK of those below. */
struct tree_plan {
    int levels;
    int64_t counts[TREE_LEVELS];
    size_t offsets[TREE_LEVELS], bytes; /* in scratch memory */
};

static inline struct tree_plan tree_plan_for(int64_t n, int64_t tile, size_t acc_bytes)
{
    struct tree_plan plan;
    int64_t count = (n + tile - 1) / tile;

    plan.levels = 0;
    plan.bytes = 0;
    for (;;) {
        plan.counts[plan.levels] = count;
        plan.offsets[plan.levels++] = plan.bytes;
        plan.bytes += (count * acc_bytes + 255) & ~static_cast<size_t>(255);
        if (count <= TREE_BLOCK)
            return plan;
        count = (count + TREE_BLOCK - 1) / TREE_BLOCK;
    }
}

static inline size_t tree_scratch(const struct gpurun_ctx *ctx, int64_t tile)
{
    return tree_plan_for(scan_options_of(ctx)->n, tile, gpurun_dtype_bytes(scan_state_of(ctx)->acc))
        .bytes;
}

template <typename ACC>
static inline ACC *tree_level(const struct gpurun_ctx *ctx, const struct tree_plan &plan, int level)
{
    return reinterpret_cast<ACC *>(static_cast<char *>(ctx->scratch) + plan.offsets[level]);
}

/* A grid of at least `blocks` blocks, which tree_block() numbers. */
static inline dim3 tree_grid(int64_t blocks)
{
    const int64_t columns = blocks < TREE_GRID_X ? blocks : int64_t{TREE_GRID_X};

    return dim3(static_cast<unsigned>(columns),
                static_cast<unsigned>((blocks + columns - 1) / columns));
}

static __device__ __forceinline__ int64_t tree_block()
{
    return static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x;
}

/* Replaces each sum by what is before it in its block of TREE_BLOCK; the block's own goes to `above`, if
 * there is a level above. */
template <typename ACC, int OP>
static __global__ void __launch_bounds__(TREE_BLOCK)
    scan_tree_sums_kernel(ACC *sums, ACC *above, int64_t count, ACC first, ACC identity)
{
    __shared__ ACC warps[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t i = tree_block() * TREE_BLOCK + threadIdx.x;
    const ACC inclusive = scan_warp<OP>(i < count ? sums[i] : identity);
    const ACC before = scan_warp_before(inclusive, identity);

    if (lane == 31)
        warps[warp] = inclusive;
    __syncthreads();
    if (warp == 0) {
        const ACC all = scan_warp<OP>(warps[lane]);

        if (above && lane == 31 && tree_block() * TREE_BLOCK < count)
            above[tree_block()] = all;
        warps[lane] = scan_join<OP>(first, scan_warp_before(all, identity));
    }
    __syncthreads();
    if (i < count)
        sums[i] = scan_join<OP>(warps[warp], before);
}

/* Adds what is before a block of `tile` elements to each of them. */
template <typename ACC, int OP>
static __global__ void __launch_bounds__(TREE_ADD_BLOCK)
    scan_tree_add_kernel(ACC *values, const ACC *before, int64_t count, int tile)
{
    const int64_t begin = tree_block() * tile;

    for (int j = threadIdx.x; j < tile && begin + j < count; j += TREE_ADD_BLOCK)
        values[begin + j] = scan_join<OP>(before[tree_block()], values[begin + j]);
}

/* `out` holds blocks of `tile` elements that begin from the identity, level 0 their sums. */
template <typename ACC, int OP>
static void tree_finish(const struct gpurun_ctx *ctx, const struct tree_plan &plan, int64_t tile)
{
    const struct scan_state *s = scan_state_of(ctx);
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    const ACC identity = scan_number_as<ACC>(s->identity), init = scan_number_as<ACC>(s->init);

    for (int level = 0; level < plan.levels; level++) {
        const bool is_last = level == plan.levels - 1;
        ACC *above = is_last ? NULL : tree_level<ACC>(ctx, plan, level + 1);

        scan_tree_sums_kernel<ACC, OP>
            <<<tree_grid((plan.counts[level] + TREE_BLOCK - 1) / TREE_BLOCK), TREE_BLOCK, 0,
               stream>>>(tree_level<ACC>(ctx, plan, level), above, plan.counts[level],
                         is_last ? init : identity, identity);
    }
    for (int level = plan.levels - 2; level >= 0; level--)
        scan_tree_add_kernel<ACC, OP>
            <<<tree_grid(plan.counts[level + 1]), TREE_ADD_BLOCK, 0, stream>>>(
                tree_level<ACC>(ctx, plan, level), tree_level<ACC>(ctx, plan, level + 1),
                plan.counts[level], TREE_BLOCK);
    scan_tree_add_kernel<ACC, OP><<<tree_grid(plan.counts[0]), TREE_ADD_BLOCK, 0, stream>>>(
        static_cast<ACC *>(s->out->dev), tree_level<ACC>(ctx, plan, 0), scan_options_of(ctx)->n,
        static_cast<int>(tile));
}

#endif
