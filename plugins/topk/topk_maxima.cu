/*
 * topk, variant "maxima": one read leaves the maximum of every 2 KiB, then the few that matter are read again.
 *
 * Mapping  a block per tile of 64 KiB, a warp per group of 2 KiB; one block narrows tiles to groups to elements.
 * Memory   reads the input once, 8 vectors of 16 bytes per thread, and k groups again; writes one key per group
 *          (0.2 % of the input).
 * Bound    memory; at small n the launch and the latency of three levels.
 * Limits   k up to 32; above, topk_maxima_wide.cu takes over from the maxima.
 *
 * A long row has a kernel of its own for the levels, which is already there when the last tile is done
 * (programmatic dependent launch). Else the block that ends the row's last tile goes on: one launch, and in
 * a batch the levels of a row hide behind the reading of others.
 */
#include "topk_maxima.cuh"

enum { MAXIMA_BLOCK = 512, MAXIMA_FINISH_BLOCK = 512 };

/* Maxima of a run of rows. */
struct maxima_scratch {
    void *tiles, *groups;            /* keys, one pitch per row */
    int64_t tile_pitch, group_pitch; /* elements */
    unsigned *wide;                  /* for a large k, else NULL */
};

struct maxima_plan {
    int64_t rows_at_once, tiles, groups; /* at most, of a row */
    size_t tile_bytes, group_bytes, wide_bytes;
};

template <typename BITS>
static __device__ __forceinline__ BITS *maxima_row_of(void *maxima, int64_t pitch, int64_t row)
{
    return static_cast<BITS *>(maxima) + row * pitch;
}

/* The reading of a long row; the kernel that finishes it may start as soon as it finds room. */
template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(MAXIMA_BLOCK, GPURUN_SM_THREADS / MAXIMA_BLOCK)
    topk_maxima_read_kernel(struct topk_rows rows, struct maxima_scratch scratch)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
    const struct maxima_span<BITS> span = maxima_span_of<BITS>(rows, 0);

    if (scratch.wide && blockIdx.x == 0)
        for (int i = threadIdx.x; i < MAXIMA_WIDE_ZEROS; i += MAXIMA_BLOCK)
            scratch.wide[i] = 0;
    if (blockIdx.x * maxima_tile<BITS>() < span.end)
        maxima_of_tile<BITS, REAL, MAXIMA_BLOCK>(span, blockIdx.x,
                                                 static_cast<BITS *>(scratch.tiles),
                                                 static_cast<BITS *>(scratch.groups));
}

template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(MAXIMA_FINISH_BLOCK)
    topk_maxima_finish_kernel(struct topk_rows rows, struct maxima_scratch scratch)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
    maxima_finish<BITS, REAL, MAXIMA_FINISH_BLOCK>(rows, 0, maxima_span_of<BITS>(rows, 0),
                                                   static_cast<const BITS *>(scratch.tiles),
                                                   static_cast<const BITS *>(scratch.groups));
}

/* Whether the calling block is the last of its row's to get here; if so it sees what warp 0 of the others
 * wrote. */
static __device__ __forceinline__ bool maxima_is_last(unsigned *ticket, unsigned blocks)
{
    __shared__ bool is_last;

    if (threadIdx.x < 32) {
        __threadfence();
        __syncwarp();
    }
    if (threadIdx.x == 0) {
        is_last = atomicInc(ticket, blocks - 1) == blocks - 1;
        __threadfence();
    }
    __syncthreads();
    return is_last;
}

/* Both, for rows of few tiles. A ticket goes back to 0 by itself. */
template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(MAXIMA_BLOCK, GPURUN_SM_THREADS / 2 / MAXIMA_BLOCK)
    topk_maxima_rows_kernel(struct topk_rows rows, struct maxima_scratch scratch, unsigned *tickets)
{
    const int64_t row = blockIdx.y;
    const struct maxima_span<BITS> span = maxima_span_of<BITS>(rows, row);
    const unsigned tiles =
        static_cast<unsigned>((span.end + maxima_tile<BITS>() - 1) / maxima_tile<BITS>());
    BITS *tile_maxima = maxima_row_of<BITS>(scratch.tiles, scratch.tile_pitch, row);
    BITS *group_maxima = maxima_row_of<BITS>(scratch.groups, scratch.group_pitch, row);

    if (blockIdx.x >= tiles)
        return;
    if (tiles > 1) {
        maxima_of_tile<BITS, REAL, MAXIMA_BLOCK>(span, blockIdx.x, tile_maxima, group_maxima);
        if (!maxima_is_last(&tickets[row], tiles))
            return;
    }
    maxima_finish<BITS, REAL, MAXIMA_BLOCK>(rows, row, span, tile_maxima, group_maxima);
}

/* --- launching ------------------------------------------------------------------------------------- */

static struct maxima_plan maxima_plan_for(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const size_t elem_bytes = topk_state_of(ctx)->elem_bytes;
    const int64_t width = MAXIMA_VECTOR_BYTES / static_cast<int64_t>(elem_bytes);
    const int64_t vectors = (o->n + 2 * width - 2) / width; /* wherever the row begins */
    struct maxima_plan plan;

    plan.groups = (vectors + MAXIMA_GROUP_VECTORS - 1) / MAXIMA_GROUP_VECTORS;
    plan.tiles = (plan.groups + MAXIMA_GROUPS - 1) / MAXIMA_GROUPS;
    plan.rows_at_once = topk_rows_at_once(o, (plan.groups + plan.tiles) * elem_bytes);
    plan.group_bytes = plan.rows_at_once * plan.groups * elem_bytes;
    plan.tile_bytes = plan.rows_at_once * plan.tiles * elem_bytes;
    plan.wide_bytes = o->k > MAXIMA_ONE_K_MAX ? topk_maxima_wide_scratch(ctx) : 0;
    return plan;
}

/* A long row in two launches, of which the second is prepared while the first runs, where the device can. */
template <typename BITS, bool REAL>
static enum gpurun_status maxima_long(struct gpurun_ctx *ctx, struct topk_rows rows,
                                      struct maxima_scratch scratch, unsigned tiles)
{
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};

    topk_maxima_read_kernel<BITS, REAL>
        <<<tiles, MAXIMA_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(rows, scratch);
    if (scratch.wide) {
        const struct maxima_keys maxima = {scratch.tiles, scratch.groups};

        return topk_maxima_wide_launch(ctx, maxima, tiles, scratch.wide);
    }
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = 1;
    config.blockDim = MAXIMA_FINISH_BLOCK;
    config.stream = gpurun_cuda_stream(ctx);
    config.attrs = &attribute;
    config.numAttrs = ctx->device.compute >= 90 ? 1 : 0;
    GPURUN_CUDA_TRY(
        ctx, cudaLaunchKernelEx(&config, topk_maxima_finish_kernel<BITS, REAL>, rows, scratch));
    return GPURUN_OK;
}

template <typename BITS, bool REAL> static enum gpurun_status maxima_run(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const struct maxima_plan plan = maxima_plan_for(ctx);
    const unsigned tiles = static_cast<unsigned>(plan.tiles);
    char *free_scratch = static_cast<char *>(ctx->scratch);
    struct maxima_scratch scratch;

    scratch.tiles = topk_carve(&free_scratch, plan.tile_bytes);
    scratch.groups = topk_carve(&free_scratch, plan.group_bytes);
    scratch.tile_pitch = plan.tiles;
    scratch.group_pitch = plan.groups;
    scratch.wide = plan.wide_bytes > 0 ? reinterpret_cast<unsigned *>(free_scratch) : NULL;
    for (int64_t first = 0; first < o->rows; first += plan.rows_at_once) {
        const int64_t left = o->rows - first;
        const unsigned count =
            static_cast<unsigned>(left < plan.rows_at_once ? left : plan.rows_at_once);
        const struct topk_rows rows = topk_rows_from(ctx, first);

        if (scratch.wide || (count == 1 && tiles > MAXIMA_ONE_LAUNCH_TILES))
            GPURUN_TRY((maxima_long<BITS, REAL>(ctx, rows, scratch, tiles)));
        else
            topk_maxima_rows_kernel<BITS, REAL>
                <<<dim3(tiles, count), MAXIMA_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(
                    rows, scratch, static_cast<unsigned *>(ctx->variant_state));
    }
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status topk_maxima_supported(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);

    if (o->distinct)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "distinct",
                           "takes every element; use radix for distinct values");
    if (o->k > MAXIMA_K_MAX)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "k",
                           "ranks what is left one by one: k = %lld is above %d",
                           static_cast<long long>(o->k), MAXIMA_K_MAX);
    return o->k > MAXIMA_ONE_K_MAX ? topk_maxima_wide_supported(ctx) : GPURUN_OK;
}

size_t topk_maxima_scratch(struct gpurun_ctx *ctx)
{
    const struct maxima_plan plan = maxima_plan_for(ctx);

    return topk_align(plan.tile_bytes) + topk_align(plan.group_bytes) + plan.wide_bytes;
}

/* Tickets, one per row. */
size_t topk_maxima_state(struct gpurun_ctx *ctx)
{
    return maxima_plan_for(ctx).rows_at_once * sizeof(unsigned);
}

enum gpurun_status topk_launch_maxima(struct gpurun_ctx *ctx)
{
    return TOPK_DISPATCH(topk_state_of(ctx), maxima_run, ctx);
}
