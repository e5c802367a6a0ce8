/*
 * reduce, variant "vector": deep 16-byte loads, one launch.
 *
 * Mapping  a block of 512 threads per tile of 32 KiB, or of up to four tiles one after the other where each
 *          multiprocessor then still has work; the last block to begin joins the blocks' results in order.
 * Memory   reads each element once: four 16-byte loads per thread and tile, coalesced; three blocks per
 *          multiprocessor, as more leave too few registers for all loads to be in flight.
 * Bound    memory; at small n the launch, and one read of the blocks' results.
 * Limits   float into double converts each element: slow where a device has few double units.
 */
#include "reduce_finish.cuh"

enum {
    VECTOR_BLOCK = 512,
    VECTOR_LOADS = 4,
    VECTOR_BYTES = 16,
    VECTOR_TILE = VECTOR_BLOCK * VECTOR_LOADS, /* packs of VECTOR_BYTES */
    VECTOR_TILES_MAX = 4,                      /* of one block */
    VECTOR_BLOCKS_PER_SM = 3,
};

template <typename IN> struct __align__(16) vector_pack
{
    IN item[VECTOR_BYTES / sizeof(IN)];
};

/* Where 16-byte packs begin, and how many there are; what is left over at either end is read apart. */
struct vector_span {
    int64_t head; /* elements before the first pack */
    int64_t packs;
    unsigned tiles; /* of a block */
};

/* argmin and argmax: until the last result is written an index stands for the pack that begins there, so that no
 * element costs more than its key and one maximum. Which of the pack's elements it is, the last read tells. */
template <typename BITS, bool REAL> struct vector_place : reduce_place<BITS, REAL> {
    static __device__ __forceinline__ void write(const struct reduce_job &job,
                                                 struct reduce_place_of place)
    {
        const BITS *in = static_cast<const BITS *>(job.in);
        BITS found[VECTOR_BYTES / sizeof(BITS)], best = 0;
        int c = 0;

#pragma unroll
        for (int i = 0; i < VECTOR_BYTES / static_cast<int>(sizeof(BITS)); i++)
            found[i] = in[min(place.index + i, job.n - 1)];
#pragma unroll
        for (int i = VECTOR_BYTES / static_cast<int>(sizeof(BITS)) - 1; i >= 0; i--) {
            const bool is_it = reduce_key<REAL>(found[i], job.flip) == place.key;

            c = is_it ? i : c;
            best = is_it ? found[i] : best;
        }
        *job.index = place.index + c;
        *static_cast<BITS *>(job.value) = best;
    }
};

/* The operation that this variant runs for one of reduce. */
template <typename OP> struct vector_op {
    typedef OP TYPE;
};

template <typename BITS, bool REAL> struct vector_op<reduce_place<BITS, REAL>> {
    typedef vector_place<BITS, REAL> TYPE;
};

/* Joins what a thread has loaded: for each place in a pack one chain of VECTOR_LOADS. */
template <typename OP, int WIDTH, bool FULL>
static __device__ __forceinline__ typename OP::ACC
vector_join(const struct vector_pack<typename OP::IN> (&pack)[VECTOR_LOADS], int64_t first,
            struct vector_span span, uint64_t flip)
{
    typename OP::ACC part[WIDTH];

#pragma unroll
    for (int c = 0; c < WIDTH; c++)
        part[c] = OP::none();
#pragma unroll
    for (int l = 0; l < VECTOR_LOADS; l++)
        if (FULL || first + l * VECTOR_BLOCK < span.packs)
#pragma unroll
            for (int c = 0; c < WIDTH; c++)
                part[c] = OP::join(part[c], OP::take(pack[l].item[c], 0, flip));
#pragma unroll
    for (int half = WIDTH / 2; half > 0; half /= 2)
#pragma unroll
        for (int c = 0; c < half; c++)
            part[c] = OP::join(part[c], part[c + half]);
    return part[0];
}

/* The same for argmin and argmax: only which pack the best key is in. */
template <typename OP, int WIDTH, bool FULL>
static __device__ __forceinline__ typename OP::ACC
vector_join_places(const struct vector_pack<typename OP::IN> (&pack)[VECTOR_LOADS], int64_t first,
                   struct vector_span span, uint64_t flip)
{
    typename OP::IN best_key = 0;
    int best_load = 0;

    if (!FULL && first >= span.packs)
        return OP::none();
#pragma unroll
    for (int l = 0; l < VECTOR_LOADS; l++) {
        if (FULL || first + l * VECTOR_BLOCK < span.packs) {
            typename OP::IN key = OP::key(pack[l].item[0], flip);

#pragma unroll
            for (int c = 1; c < WIDTH; c++)
                key = max(key, OP::key(pack[l].item[c], flip));
            best_load = key > best_key ? l : best_load;
            best_key = max(key, best_key);
        }
    }
    return OP::at(best_key, span.head + (first + best_load * VECTOR_BLOCK) * WIDTH);
}

/* The thread's packs of its block's tile; FULL: all of them are there. */
template <typename OP, bool FULL>
static __device__ __forceinline__ typename OP::ACC
vector_tile(const typename OP::IN *in, int64_t first, struct vector_span span, uint64_t flip)
{
    constexpr int width = VECTOR_BYTES / sizeof(typename OP::IN);
    const struct vector_pack<typename OP::IN> *__restrict__ body =
        reinterpret_cast<const struct vector_pack<typename OP::IN> *>(in + span.head);
    struct vector_pack<typename OP::IN> pack[VECTOR_LOADS];

#pragma unroll
    for (int l = 0; l < VECTOR_LOADS; l++)
        if (FULL || first + l * VECTOR_BLOCK < span.packs)
            pack[l] = body[first + l * VECTOR_BLOCK];
    if constexpr (OP::PLACE)
        return vector_join_places<OP, width, FULL>(pack, first, span, flip);
    else
        return vector_join<OP, width, FULL>(pack, first, span, flip);
}

template <typename OP>
static __global__ void __launch_bounds__(VECTOR_BLOCK, VECTOR_BLOCKS_PER_SM)
    reduce_vector_kernel(struct reduce_job job, struct vector_span span, void *state)
{
    const unsigned claim = reduce_claim(state);
    const int64_t body = span.packs * (VECTOR_BYTES / static_cast<int>(sizeof(typename OP::IN)));
    const typename OP::IN *in = static_cast<const typename OP::IN *>(job.in);
    typename OP::ACC mine = OP::none();

#pragma unroll 1
    for (unsigned t = 0; t < span.tiles; t++) {
        const int64_t begin = (static_cast<int64_t>(blockIdx.x) * span.tiles + t) * VECTOR_TILE;
        const int64_t first = begin + threadIdx.x;

        mine = OP::join(mine, begin + VECTOR_TILE <= span.packs
                                  ? vector_tile<OP, true>(in, first, span, job.flip)
                                  : vector_tile<OP, false>(in, first, span, job.flip));
    }
    if (blockIdx.x == 0 && threadIdx.x < job.n - body) {
        const int64_t i = threadIdx.x < span.head ? threadIdx.x : threadIdx.x + body;

        mine = OP::join(mine, OP::take(in[i], i, job.flip));
    }
    reduce_finish<OP>(job, mine, claim, state);
}

/* Tiles of a block: as many as leave every multiprocessor all the blocks that it can hold. */
static unsigned vector_tiles(const struct gpurun_ctx *ctx, int64_t packs)
{
    const int64_t blocks = static_cast<int64_t>(ctx->device.sm_count) * VECTOR_BLOCKS_PER_SM;
    const int64_t tiles = packs / VECTOR_TILE / blocks, most = VECTOR_TILES_MAX;

    return static_cast<unsigned>(tiles < 1 ? 1 : tiles < most ? tiles : most);
}

static unsigned vector_blocks(int64_t packs, unsigned tiles)
{
    const int64_t each = static_cast<int64_t>(tiles) * VECTOR_TILE;

    return static_cast<unsigned>(packs > each ? (packs + each - 1) / each : 1);
}

static struct vector_span vector_span_of(const struct gpurun_ctx *ctx, const struct reduce_job *job,
                                         size_t elem_bytes)
{
    const int64_t width = VECTOR_BYTES / static_cast<int64_t>(elem_bytes);
    const int64_t past = reinterpret_cast<uintptr_t>(job->in) % VECTOR_BYTES / elem_bytes;
    const int64_t head = past > 0 ? width - past : 0;
    struct vector_span span;

    span.head = head < job->n ? head : job->n;
    span.packs = (job->n - span.head) / width;
    span.tiles = vector_tiles(ctx, span.packs);
    return span;
}

template <typename OP> static enum gpurun_status vector_run(struct gpurun_ctx *ctx)
{
    const struct reduce_job job = reduce_job_of(ctx);
    const struct vector_span span = vector_span_of(ctx, &job, sizeof(typename OP::IN));

    reduce_vector_kernel<typename vector_op<OP>::TYPE>
        <<<vector_blocks(span.packs, span.tiles), VECTOR_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(
            job, span, ctx->variant_state);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

/* At most: where the input begins decides how many packs there are, and that is not known yet. */
size_t reduce_vector_state(struct gpurun_ctx *ctx)
{
    const int64_t packs = static_cast<int64_t>(reduce_state_of(ctx)->in->bytes / VECTOR_BYTES);

    return reduce_finish_state(ctx, vector_blocks(packs, 1));
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
