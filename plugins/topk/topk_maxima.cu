/*
 * topk, variant "maxima": one read leaves the maximum of every 2 KiB, then the few that matter are read again.
 *
 * Mapping  a block per tile of 64 KiB, a warp per group of 2 KiB; one block narrows tiles to groups to elements.
 * Memory   reads the input once, 8 vectors of 16 bytes per thread, and k groups again; writes one key per group
 *          (0.2 % of the input).
 * Bound    memory; at small n the launch and the latency of two levels.
 * Limits   k up to 32; above, topk_maxima_wide.cu takes over from the maxima.
 *
 * The levels have a kernel of their own, which is already there when the last tile is done (programmatic dependent
 * launch). A row of one tile needs no maxima: it alone runs.
 */
#include "topk_maxima.cuh"

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

/* The reading of rows; the kernel that finishes them may start as soon as it finds room. */
template <typename BITS, bool REAL, typename SHAPE>
static __global__ void __launch_bounds__(SHAPE::READ_BLOCK, GPURUN_SM_THREADS / SHAPE::READ_BLOCK)
    topk_maxima_read_kernel(struct topk_rows rows, struct maxima_scratch scratch)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
    const int64_t row = blockIdx.y;
    const struct maxima_span<BITS> span = maxima_span_of<BITS>(rows, row);

    if (scratch.wide && blockIdx.x == 0)
        for (int i = threadIdx.x; i < MAXIMA_WIDE_ZEROS; i += SHAPE::READ_BLOCK)
            scratch.wide[i] = 0;
    if (blockIdx.x * maxima_tile<BITS, SHAPE>() < span.end)
        maxima_of_tile<BITS, REAL, SHAPE>(
            span, blockIdx.x, maxima_row_of<BITS>(scratch.tiles, scratch.tile_pitch, row),
            maxima_row_of<BITS>(scratch.groups, scratch.group_pitch, row));
}

template <typename BITS, typename SHAPE>
static __global__ void __launch_bounds__(SHAPE::BLOCK, SHAPE::BLOCKS)
    topk_maxima_finish_kernel(struct topk_rows rows, struct maxima_scratch scratch)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
    const int64_t row = gridDim.x - 1 - blockIdx.x; /* what was read last may still be in the L2 */

    maxima_finish<BITS, SHAPE>(rows, row, maxima_span_of<BITS>(rows, row),
                               maxima_row_of<BITS>(scratch.tiles, scratch.tile_pitch, row),
                               maxima_row_of<BITS>(scratch.groups, scratch.group_pitch, row));
}

/* --- launching ------------------------------------------------------------------------------------- */

/* A lone row of one long tile takes one launch. */
static bool maxima_is_short(const struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const int64_t tiles = maxima_tiles_at_most(ctx, MAXIMA_LOADS);

    return o->k <= MAXIMA_ONE_K_MAX && tiles <= MAXIMA_SHORT_TILES && (tiles > 1 || o->rows > 1);
}

static struct maxima_plan maxima_plan_for(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const size_t elem_bytes = topk_state_of(ctx)->elem_bytes;
    struct maxima_plan plan;

    plan.tiles =
        maxima_tiles_at_most(ctx, maxima_is_short(ctx) ? MAXIMA_SHORT_LOADS : MAXIMA_LOADS);
    plan.groups = plan.tiles * MAXIMA_GROUPS;
    plan.rows_at_once = topk_rows_at_once(o, (plan.groups + plan.tiles) * elem_bytes);
    plan.group_bytes = plan.rows_at_once * plan.groups * elem_bytes;
    plan.tile_bytes = maxima_is_short(ctx) ? 0 : plan.rows_at_once * plan.tiles * elem_bytes;
    plan.wide_bytes = o->k > MAXIMA_ONE_K_MAX ? topk_maxima_wide_scratch(ctx) : 0;
    return plan;
}

/* `count` rows: the second launch is prepared while the first runs, where the device can. */
template <typename BITS, typename SHAPE>
static enum gpurun_status maxima_finish_rows(struct gpurun_ctx *ctx, struct topk_rows rows,
                                             struct maxima_scratch scratch, unsigned count)
{
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};

    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = count;
    config.blockDim = SHAPE::BLOCK;
    config.stream = gpurun_cuda_stream(ctx);
    config.attrs = &attribute;
    config.numAttrs = ctx->device.compute >= 90 ? 1 : 0;
    GPURUN_CUDA_TRY(
        ctx, cudaLaunchKernelEx(&config, topk_maxima_finish_kernel<BITS, SHAPE>, rows, scratch));
    return GPURUN_OK;
}

template <typename BITS, bool REAL, typename SHAPE>
static enum gpurun_status maxima_cut(struct gpurun_ctx *ctx)
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
        const struct maxima_keys maxima = {scratch.tiles, scratch.groups};

        if (tiles > 1 || scratch.wide)
            topk_maxima_read_kernel<BITS, REAL, typename SHAPE::READ>
                <<<dim3(tiles, count), SHAPE::READ_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(rows,
                                                                                        scratch);
        if (scratch.wide)
            GPURUN_TRY(topk_maxima_wide_launch(ctx, maxima, tiles, scratch.wide));
        else
            GPURUN_TRY((maxima_finish_rows<BITS, SHAPE>(ctx, rows, scratch, count)));
    }
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

template <typename BITS, bool REAL> static enum gpurun_status maxima_run(struct gpurun_ctx *ctx)
{
    if (!maxima_is_short(ctx))
        return maxima_cut<BITS, REAL, struct maxima_long>(ctx);
    return topk_options_of(ctx)->rows < ctx->device.sm_count ||
                   maxima_tiles_at_most(ctx, MAXIMA_LOADS) > MAXIMA_BATCH_TILES
               ? maxima_cut<BITS, REAL, struct maxima_short>(ctx)
               : maxima_cut<BITS, REAL, struct maxima_batch>(ctx);
}

enum gpurun_status topk_maxima_supported(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);

    if (o->distinct)
        return topk_maxima_distinct_supported(ctx);
    if (o->k > MAXIMA_K_MAX)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "k",
                           "ranks what is left one by one: k = %lld is above %d",
                           static_cast<long long>(o->k), MAXIMA_K_MAX);
    return o->k > MAXIMA_ONE_K_MAX ? topk_maxima_wide_supported(ctx) : GPURUN_OK;
}

size_t topk_maxima_scratch(struct gpurun_ctx *ctx)
{
    const struct maxima_plan plan = maxima_plan_for(ctx);

    if (topk_options_of(ctx)->distinct)
        return topk_maxima_distinct_scratch(ctx);
    return topk_align(plan.tile_bytes) + topk_align(plan.group_bytes) + plan.wide_bytes;
}

/* Only distinct values need one. */
size_t topk_maxima_state(struct gpurun_ctx *ctx)
{
    return topk_options_of(ctx)->distinct ? topk_maxima_distinct_state(ctx) : 0;
}

enum gpurun_status topk_launch_maxima(struct gpurun_ctx *ctx)
{
    if (topk_options_of(ctx)->distinct)
        return topk_maxima_distinct_launch(ctx);
    return TOPK_DISPATCH(topk_state_of(ctx), maxima_run, ctx);
}
