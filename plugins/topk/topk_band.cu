/*
 * topk, variant "band": two limits guessed from a sample, between which the k-th key lies; one read.
 *
 * Idea     What is above the upper limit belongs to the answer, what lies between the limits goes into a
 *          small band, and an exact selection from the band completes the answer. A value that is too
 *          frequent for the band becomes the lower limit: its elements are only counted, tile by tile, and
 *          the tiles with the lowest indices are read again. The counts prove the guess; where it was
 *          wrong, the same kernel finds the k-th key digit by digit in the whole row and reads it again.
 * Mapping  one cooperative launch of 2 blocks of 512 threads per SM for everything; tiles go to blocks in
 *          turn. A warp holds back what it finds in shared memory and writes more than 128 at once.
 * Memory   the input once, one element per thread before; k answers; a band of 12 sigma of the sample's rank.
 * Bound    memory; three barriers of the grid, and the search of a few thousand keys by each block. A
 *          wrong guess costs 4 (4-byte) or 7 (8-byte elements) more reads.
 * Limits   k <= n / 8, n < 2^32, not distinct; one row.
 *
 * All blocks are resident, as the barriers need: the launch is cooperative, and its grid what fits at once.
 */
#include "topk_band_finish.cuh"
#include "topk_band_stream.cuh"
#include "topk_sort.h"
#include <math.h>

/* Clears what a pass counts in. */
template <typename BITS> static __device__ void band_clear(const struct band_job<BITS> &job)
{
    struct band_state *s = job.state;
    const uint32_t thread = blockIdx.x * BAND_BLOCK + threadIdx.x, step = gridDim.x * BAND_BLOCK;
    const uint32_t cuts = sizeof(s->cut_bins) / sizeof(unsigned);

    for (uint32_t i = thread; i < cuts; i += step)
        (&s->cut_bins[0][0])[i] = 0;
    for (uint32_t i = thread; i < job.plan.tiles + 2; i += step)
        job.tile_ties[i] = 0;
    if (thread == 0) {
        s->taken = 0;
        s->ties = 0;
        s->cut_taken = 0;
        s->finals = 0;
    }
}

/* Clears what the search of the whole row counts in. */
template <typename BITS> static __device__ void band_clear_search(const struct band_job<BITS> &job)
{
    const uint32_t bins = sizeof(job.state->bins) / sizeof(unsigned);

    for (uint32_t i = blockIdx.x * BAND_BLOCK + threadIdx.x; i < bins; i += gridDim.x * BAND_BLOCK)
        (&job.state->bins[0][0][0])[i] = 0;
}

/* What the stream found. */
struct band_found {
    unsigned above, in_band, ties;
};

/* Ends with a barrier of the grid. */
template <typename BITS, bool REAL>
static __device__ struct band_found band_pass(const struct band_job<BITS> &job,
                                              const struct band_limits<BITS> &limits, void *room,
                                              struct band_shared *shared)
{
    band_stream<BITS, REAL>(job, limits, static_cast<struct band_stash<BITS> *>(room), shared);
    cooperative_groups::this_grid().sync();

    const unsigned long long taken = job.state->taken;

    return {static_cast<unsigned>(taken >> 32), static_cast<unsigned>(taken), job.state->ties};
}

/* Whether the k-th element lies where it was looked for, and the band held all of it. */
static __device__ bool band_is_right(const struct band_plan &plan, const struct band_found &f)
{
    return f.above <= plan.k && f.in_band <= plan.band_most &&
           static_cast<uint64_t>(f.above) + f.in_band + f.ties >= plan.k;
}

template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(BAND_BLOCK, BAND_BLOCKS_PER_SM)
    topk_band_kernel(struct band_job<BITS> job)
{
    extern __shared__ uint64_t room[];
    __shared__ struct band_shared shared;

    band_clear(job);

    struct band_limits<BITS> limits = band_guess_limits<BITS, REAL>(job, &shared);
    struct band_found found;

    for (bool is_exact = false;; is_exact = true) {
        found = band_pass<BITS, REAL>(job, limits, room, &shared);
        if (is_exact || band_is_right(job.plan, found))
            break;
        cooperative_groups::this_grid().sync(); /* all have read what was counted */
        band_clear(job);
        band_clear_search(job);
        cooperative_groups::this_grid().sync();
        limits = band_find_limits<BITS, REAL>(job, &shared);
    }

    const unsigned need = job.plan.k - found.above;

    if (need <= found.in_band)
        band_select<BITS, REAL>(job, limits, found.in_band, need, room, &shared);
    else
        band_take_all<BITS, REAL>(job, limits.low, found.in_band, found.above, room, &shared);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *job.rows.count = job.plan.k;
}

/* --- launching -------------------------------------------------------------------------------------- */

struct band_sizes {
    size_t state, kept, surplus, bits, index, final_bits, final_index, ties;
};

static struct band_sizes band_sizes_for(const struct gpurun_ctx *ctx, const struct band_plan *plan)
{
    const size_t elem_bytes = topk_state_of(ctx)->elem_bytes;
    struct band_sizes sizes;

    sizes.state = sizeof(struct band_state);
    sizes.kept = size_t{plan->blocks} * plan->keep * elem_bytes;
    sizes.surplus = plan->blocks * sizeof(unsigned);
    sizes.bits = plan->band_most * elem_bytes;
    sizes.index = plan->band_most * sizeof(uint32_t);
    sizes.final_bits = BAND_FINAL * elem_bytes;
    sizes.final_index = BAND_FINAL * sizeof(uint32_t);
    sizes.ties = (plan->tiles + size_t{3}) * sizeof(unsigned); /* a row may start anywhere */
    return sizes;
}

/* The limits lie six standard deviations of the sample off the rank that is looked for. */
static void band_plan_for(const struct gpurun_ctx *ctx, uint32_t blocks, struct band_plan *plan)
{
    const struct topk_options *o = topk_options_of(ctx);
    const uint32_t threads = blocks * BAND_BLOCK, n = static_cast<uint32_t>(o->n);
    const double share = static_cast<double>(o->k) / static_cast<double>(o->n);

    plan->blocks = blocks;
    plan->n = n;
    plan->k = static_cast<uint32_t>(o->k);
    plan->samples = n < threads ? n : threads;
    plan->stride = (static_cast<uint64_t>(n) << 32) / plan->samples;
    plan->band_most = n / BAND_SHARE;
    if (plan->band_most < BAND_LEAST)
        plan->band_most = n < BAND_LEAST ? n : static_cast<uint32_t>(BAND_LEAST);
    plan->sample_most = static_cast<uint32_t>(0.75 * plan->samples / n * plan->band_most);
    plan->pack = static_cast<uint32_t>(BAND_VECTOR_BYTES / topk_state_of(ctx)->elem_bytes);
    plan->tile = BAND_BLOCK * BAND_VECTORS * plan->pack;
    plan->head = 0;
    plan->vectors = n / plan->pack;
    plan->tiles = (n + plan->tile - 1) / plan->tile;

    const double rank = share * plan->samples, mean = share * BAND_BLOCK;
    const double off = plan->samples < n ? 6 * sqrt(rank * (1 - share)) + 1 : 0;
    const uint32_t each = plan->samples / blocks;

    plan->keep = static_cast<uint32_t>(mean + 6 * sqrt(mean)) + 8;
    plan->keep = plan->keep < each ? plan->keep : each;
    plan->rank_high = rank > off ? static_cast<uint32_t>(rank - off) : 0;
    plan->rank_low = static_cast<uint32_t>(rank + off) + 1;
    if (plan->samples == n)
        plan->rank_high = plan->rank_low = plan->k;
    if (plan->rank_low > blocks * plan->keep)
        plan->rank_low = blocks * plan->keep;
}

/* Where the vectors of a row begin. */
static void band_plan_align(struct band_plan *plan, const void *row, size_t elem_bytes)
{
    const uint32_t past =
        static_cast<uint32_t>(reinterpret_cast<uintptr_t>(row) % BAND_VECTOR_BYTES);
    const uint32_t head = (BAND_VECTOR_BYTES - past) % BAND_VECTOR_BYTES / elem_bytes;

    plan->head = head < plan->n ? head : plan->n;
    plan->vectors = (plan->n - plan->head) / plan->pack;
    plan->tiles = (plan->vectors * plan->pack + plan->tile - 1) / plan->tile;
}

/* How many blocks run at once. */
template <typename BITS, bool REAL>
static enum gpurun_status band_fit(struct gpurun_ctx *ctx, int *blocks)
{
    const auto kernel = topk_band_kernel<BITS, REAL>;
    const size_t stashes = BAND_WARPS * sizeof(struct band_stash<BITS>);

    if (stashes + sizeof(struct band_shared) + sizeof(struct band_sieve<BITS>) >
        ctx->device.shared_bytes)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL,
                           "a block needs %zu bytes of shared memory, the device has %zu",
                           stashes + sizeof(struct band_shared) + sizeof(struct band_sieve<BITS>),
                           ctx->device.shared_bytes);
    GPURUN_CUDA_TRY(ctx, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(stashes)));
    GPURUN_CUDA_TRY(
        ctx, cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, BAND_BLOCK, stashes));
    *blocks *= ctx->device.sm_count;
    return GPURUN_OK;
}

enum gpurun_status topk_band_plan(struct gpurun_ctx *ctx, struct band_plan *plan)
{
    const int64_t wanted =
        (topk_options_of(ctx)->n + BAND_LEAST_PER_BLOCK - 1) / BAND_LEAST_PER_BLOCK;
    int fit;

    *plan = {};
    if (wanted == 0)
        return GPURUN_OK;
    GPURUN_TRY(TOPK_DISPATCH(topk_state_of(ctx), band_fit, ctx, &fit));
    band_plan_for(ctx, static_cast<uint32_t>(wanted < fit ? wanted : fit), plan);
    return GPURUN_OK;
}

template <typename BITS, bool REAL>
static enum gpurun_status band_run(struct gpurun_ctx *ctx, struct band_plan plan)
{
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    const struct band_sizes sizes = band_sizes_for(ctx, &plan);
    char *free_scratch = static_cast<char *>(ctx->scratch);
    struct band_job<BITS> job;
    void *arguments[] = {&job};

    job.plan = plan;
    job.rows = topk_rows_from(ctx, 0);
    band_plan_align(&job.plan, job.rows.in, sizeof(BITS));
    job.state = static_cast<struct band_state *>(topk_carve(&free_scratch, sizes.state));
    job.kept = static_cast<BITS *>(topk_carve(&free_scratch, sizes.kept));
    job.surplus = static_cast<unsigned *>(topk_carve(&free_scratch, sizes.surplus));
    job.band_bits = static_cast<BITS *>(topk_carve(&free_scratch, sizes.bits));
    job.band_index = static_cast<uint32_t *>(topk_carve(&free_scratch, sizes.index));
    job.final_bits = static_cast<BITS *>(topk_carve(&free_scratch, sizes.final_bits));
    job.final_index = static_cast<uint32_t *>(topk_carve(&free_scratch, sizes.final_index));
    job.tile_ties = static_cast<unsigned *>(topk_carve(&free_scratch, sizes.ties));

    job.pairs.items = topk_options_of(ctx)->sorted ? free_scratch : NULL;
    job.pairs.is_wide = topk_sort_is_wide(ctx);
    GPURUN_CUDA_TRY(ctx, cudaLaunchCooperativeKernel(
                             topk_band_kernel<BITS, REAL>, dim3(plan.blocks), dim3(BAND_BLOCK),
                             arguments, BAND_WARPS * sizeof(struct band_stash<BITS>), stream));
    GPURUN_LAUNCH_TRY(ctx);
    return job.pairs.items ? topk_launch_sort(ctx, free_scratch, 0, 1) : GPURUN_OK;
}

enum gpurun_status topk_band_supported(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const long long k = static_cast<long long>(o->k), n = static_cast<long long>(o->n);
    struct band_plan plan;

    if (o->distinct)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "distinct", "selects plainly; radix can");
    if (o->rows > 1)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "rows",
                           "takes one row; radix takes %lld side by side",
                           static_cast<long long>(o->rows));
    if (n > BAND_N_MAX)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "n",
                           "keeps indices in 32 bits: n = %lld is above %lld; radix can", n,
                           static_cast<long long>(BAND_N_MAX));
    if (k > n / BAND_K_SHARE)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "k",
                           "leaves k = %lld, above n / %d, to radix, which is faster there", k,
                           BAND_K_SHARE);
    GPURUN_TRY(topk_sort_supported(ctx));
    return topk_band_plan(ctx, &plan);
}

size_t topk_band_scratch(struct gpurun_ctx *ctx)
{
    struct band_plan plan;

    if (topk_band_plan(ctx, &plan) != GPURUN_OK)
        return 0;

    const struct band_sizes sizes = band_sizes_for(ctx, &plan);

    return topk_align(sizes.state) + topk_align(sizes.kept) + topk_align(sizes.surplus) +
           topk_align(sizes.bits) + topk_align(sizes.index) + topk_align(sizes.final_bits) +
           topk_align(sizes.final_index) + topk_align(sizes.ties) + topk_sort_scratch(ctx, 1);
}

enum gpurun_status topk_launch_band(struct gpurun_ctx *ctx)
{
    struct band_plan plan;

    GPURUN_TRY(topk_band_plan(ctx, &plan));
    return TOPK_DISPATCH(topk_state_of(ctx), band_run, ctx, plan);
}
