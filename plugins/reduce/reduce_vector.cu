/*
 * reduce, variant "vector": deep 16-byte loads, one launch.
 *
 * Mapping  a block of 512 threads per tile of 32 KiB, or of up to four tiles (argmin and argmax: eight) one after
 *          the other where each multiprocessor then still has work, but for the last blocks, so that all end
 *          together; the last block to begin joins the blocks' results in order.
 * Memory   reads each element once: four 16-byte loads per thread and tile, coalesced; three blocks per
 *          multiprocessor, as more leave too few registers for all loads to be in flight.
 * Bound    memory; at small n the launch, and one read of the blocks' results.
 * Limits   float into double converts each element: slow where a device has few double units.
 */
#include "reduce_vector_place.cuh"

/* Joins what a thread has loaded: for each place in a pack one chain of VECTOR_LOADS. */
template <typename OP, bool FULL>
static __device__ __forceinline__ typename OP::ACC
vector_join(const struct vector_pack<OP> (&pack)[VECTOR_LOADS], int64_t first,
            struct vector_span span, uint64_t flip)
{
    constexpr int width = vector_width<OP>();
    typename OP::ACC part[width];

#pragma unroll
    for (int c = 0; c < width; c++)
        part[c] = OP::none();
#pragma unroll
    for (int l = 0; l < VECTOR_LOADS; l++)
        if (FULL || l * VECTOR_BLOCK < vector_left_of(span, first))
#pragma unroll
            for (int c = 0; c < width; c++)
                part[c] = OP::join(part[c], OP::take(pack[l].item[c], 0, flip));
#pragma unroll
    for (int half = width / 2; half > 0; half /= 2)
#pragma unroll
        for (int c = 0; c < half; c++)
            part[c] = OP::join(part[c], part[c + half]);
    return part[0];
}

/* What the thread has of a tile. */
template <typename OP, bool FULL>
static __device__ __forceinline__ typename OP::ACC
vector_tile(const struct reduce_job &job, int64_t first, struct vector_span span)
{
    struct vector_pack<OP> pack[VECTOR_LOADS];

    vector_load<OP, FULL>(pack, job, first, span);
    return vector_join<OP, FULL>(pack, first, span, job.flip);
}

template <typename OP>
static __global__ void __launch_bounds__(VECTOR_BLOCK, VECTOR_BLOCKS_PER_SM)
    reduce_vector_kernel(struct reduce_job job, struct vector_span span, void *state)
{
    const unsigned claim = reduce_claim(state);
    typename OP::ACC mine = OP::none();

#pragma unroll 1
    for (unsigned t = 0; t < vector_tiles_of(span, blockIdx.x); t++) {
        const int64_t begin = (vector_first_tile(span, blockIdx.x) + t) * VECTOR_TILE;
        const int64_t first = begin + threadIdx.x;

        mine = OP::join(mine, begin + VECTOR_TILE <= span.packs
                                  ? vector_tile<OP, true>(job, first, span)
                                  : vector_tile<OP, false>(job, first, span));
    }
    if (blockIdx.x == 0)
        mine = OP::join(mine, vector_single<OP>(job, span));
    reduce_finish<OP>(job, mine, claim, state);
}

static int64_t vector_tiles(int64_t packs)
{
    return packs > VECTOR_TILE ? (packs + VECTOR_TILE - 1) / VECTOR_TILE : 1;
}

/* Gives blocks as many tiles as leave every multiprocessor all the blocks that it can hold. */
template <typename OP>
static void vector_divide(const struct gpurun_ctx *ctx, struct vector_span *span)
{
    const int64_t blocks = static_cast<int64_t>(ctx->device.sm_count) * VECTOR_BLOCKS_PER_SM;
    const int64_t all = vector_tiles(span->packs), tiles = span->packs / VECTOR_TILE / blocks;
    const int64_t most = vector_tiles_max<OP>(), early = all - vector_short<OP>() * blocks;

    span->tiles = static_cast<unsigned>(tiles < 1 ? 1 : tiles < most ? tiles : most);
    static_assert(!OP::PLACE ||
                      vector_tiles_max<OP>() * VECTOR_TILE * vector_width<OP>() <= UINT16_MAX + 1,
                  "a place in a block has 16 bits");
    span->whole = early > 0 ? static_cast<unsigned>(early / span->tiles) : 0;
}

template <typename OP>
static struct vector_span vector_span_of(const struct gpurun_ctx *ctx, const struct reduce_job *job)
{
    constexpr int64_t width = vector_width<OP>();
    const int64_t past =
        reinterpret_cast<uintptr_t>(job->in) % VECTOR_BYTES / sizeof(typename OP::IN);
    const int64_t head = past > 0 ? width - past : 0;
    struct vector_span span;

    span.head = head < job->n ? head : job->n;
    span.packs = (job->n - span.head) / width;
    vector_divide<OP>(ctx, &span);
    return span;
}

template <typename OP> static enum gpurun_status vector_run(struct gpurun_ctx *ctx)
{
    const struct reduce_job job = reduce_job_of(ctx);
    const struct vector_span span = vector_span_of<OP>(ctx, &job);
    const int64_t more = static_cast<int64_t>(span.whole) * (span.tiles - 1);
    const unsigned blocks = static_cast<unsigned>(vector_tiles(span.packs) - more);

    if constexpr (OP::PLACE)
        reduce_vector_place_kernel<OP>
            <<<blocks, VECTOR_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(job, span, ctx->variant_state);
    else
        reduce_vector_kernel<OP>
            <<<blocks, VECTOR_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(job, span, ctx->variant_state);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

/* At most: where the input begins decides how many packs there are, and that is not known yet. */
size_t reduce_vector_state(struct gpurun_ctx *ctx)
{
    const int64_t packs = static_cast<int64_t>(reduce_state_of(ctx)->in->bytes / VECTOR_BYTES);

    return reduce_finish_state(ctx, static_cast<unsigned>(vector_tiles(packs)));
}

enum gpurun_status reduce_launch_vector(struct gpurun_ctx *ctx)
{
    return REDUCE_DISPATCH(reduce_state_of(ctx)->kind, vector_run, ctx);
}

enum gpurun_status reduce_launch_nothing(struct gpurun_ctx *ctx)
{
    const struct gpurun_tensor *value = reduce_state_of(ctx)->value;

    GPURUN_CUDA_TRY(ctx, cudaMemsetAsync(value->dev, 0, value->bytes, gpurun_cuda_stream(ctx)));
    return GPURUN_OK;
}
