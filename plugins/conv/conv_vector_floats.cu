/*
 * conv, variant "vector": floats, rows of sums in registers.
 *
 * Mapping  a block takes 512 elements of a band of rows and walks down: one warp fills a ring of lines in shared memory
 *          (conv_lines.cuh), 4 warps add each line to the SIZE rows of the answer that it is under the mask of, 4
 *          neighbours a lane; 7 x 7 masks that are no product add two lines at a time. Bands are lower where they are too
 *          few to fill the device, and the last of them.
 * Memory   each row is read (band + SIZE - 1) / band times in all; a lane loads its 4 elements and what is beside them
 *          16 bytes at a time, and each serves all its taps. Results leave as 16 bytes a lane.
 * Bound    memory; 7 x 7 arithmetic: 49 multiplications an element, 14 where the mask is the product of a column and a row.
 * Limits   square masks of 3, 5 and 7; rows of both images start at multiples of 16 bytes; no crop; compute capability
 *          8.0.
 */
#include "conv_lines.cuh"
#include "conv_vector.h"

enum {
    FLOATS_WARPS = 4, /* that read lines; one more fills the ring */
    FLOATS_ITEMS = 4,
    FLOATS_WARP_ELEMS = 32 * FLOATS_ITEMS,
    FLOATS_ELEMS = FLOATS_WARPS * FLOATS_WARP_ELEMS,
    FLOATS_BLOCK = 32 * (FLOATS_WARPS + 1),
    FLOATS_ROWS_LEAST = 4, /* of a band, where blocks are few */
};

/* Elements to either side of a result that its taps reach, and the same as whole 16 bytes. */
static __host__ __device__ constexpr int floats_reach(int size, int channels)
{
    return size / 2 * channels;
}

static __host__ __device__ constexpr int floats_lead(int size, int channels)
{
    return (floats_reach(size, channels) + 3) / 4 * 4;
}

/* Whether lines are added by twos, so that a weight is loaded once for both. */
static __host__ __device__ constexpr bool floats_is_paired(int size, bool is_product)
{
    return size == 7 && !is_product;
}

static __host__ __device__ constexpr int floats_stage_lines(int size, bool is_product)
{
    return floats_is_paired(size, is_product) ? 4 : size;
}

static __host__ __device__ constexpr int floats_stages(int size, bool is_product)
{
    return floats_is_paired(size, is_product) ? 5 : size == 7 ? 3 : 4;
}

static __host__ __device__ constexpr int floats_span(int size, int channels)
{
    return FLOATS_ELEMS + 2 * floats_lead(size, channels);
}

template <int SIZE, int CHANNELS, bool IS_PRODUCT>
struct floats_ring
    : conv_ring<float, floats_span(SIZE, CHANNELS), floats_stage_lines(SIZE, IS_PRODUCT),
                floats_stages(SIZE, IS_PRODUCT)> {
};

/* Stages that a block works through: at most, and where blocks are few. */
static constexpr int floats_turns_most(int size, bool is_product)
{
    return size == 3 ? 6 : floats_is_paired(size, is_product) ? 42 : 8;
}

static constexpr int floats_turns_least(int size, bool is_product)
{
    return floats_is_paired(size, is_product) ? 4 : 2;
}

static constexpr int floats_blocks_per_sm(int size)
{
    return size == 3 ? 6 : size == 5 ? 4 : 4;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/* A line through every weight of the mask into the sums of the rows that it counts in, sums[i] of the one that has had i lines
 * before; each then stands one further on, where the next line finds it, and the last is complete. */
template <int SIZE, int CHANNELS, int COUNT>
static __device__ __forceinline__ void floats_add_square(const struct conv_weights &weights,
                                                         const float (&elems)[COUNT], int spare,
                                                         float (&sums)[SIZE][FLOATS_ITEMS])
{
#pragma unroll
    for (int i = SIZE - 1; i >= 0; i--)
#pragma unroll
        for (int j = 0; j < SIZE; j++)
#pragma unroll
            for (int k = 0; k < FLOATS_ITEMS; k++) {
                const float before = j > 0 ? sums[i][k] : i > 0 ? sums[i - 1][k] : 0.0f;

                sums[i][k] =
                    fmaf(weights.value.real[i * SIZE + j], elems[spare + j * CHANNELS + k], before);
            }
}

/* The same of a mask that is a product: along its row once, and that by every weight of its column. `weights`: the row,
 * then the column. */
template <int SIZE, int CHANNELS, int COUNT>
static __device__ __forceinline__ void floats_add_product(const struct conv_weights &weights,
                                                          const float (&elems)[COUNT], int spare,
                                                          float (&sums)[SIZE][FLOATS_ITEMS])
{
    float along[FLOATS_ITEMS];

#pragma unroll
    for (int j = 0; j < SIZE; j++)
#pragma unroll
        for (int k = 0; k < FLOATS_ITEMS; k++)
            along[k] = fmaf(weights.value.real[j], elems[spare + j * CHANNELS + k],
                            j == 0 ? 0.0f : along[k]);
#pragma unroll
    for (int i = SIZE - 1; i >= 0; i--)
#pragma unroll
        for (int k = 0; k < FLOATS_ITEMS; k++)
            sums[i][k] =
                fmaf(weights.value.real[SIZE + i], along[k], i > 0 ? sums[i - 1][k] : 0.0f);
}

/* Two lines through every weight of the mask: `sums` as before, `first` the sums that the first of them completes. */
template <int SIZE, int CHANNELS, int COUNT>
static __device__ __forceinline__ void
floats_add_pair(const struct conv_weights &weights, const float (&elems)[2][COUNT], int spare,
                float (&first)[FLOATS_ITEMS], float (&sums)[SIZE][FLOATS_ITEMS])
{
#pragma unroll
    for (int i = SIZE - 1; i >= 0; i--) {
        float(&one)[FLOATS_ITEMS] = i == SIZE - 1 ? first : sums[i + 1];

#pragma unroll
        for (int k = 0; k < FLOATS_ITEMS; k++) {
            if (i == SIZE - 1)
                one[k] = sums[i - 1][k];
            sums[i][k] = i > 1 ? sums[i - 2][k] : 0.0f;
        }
#pragma unroll
        for (int j = 0; j < SIZE; j++)
#pragma unroll
            for (int k = 0; k < FLOATS_ITEMS; k++) {
                const float weight = weights.value.real[i * SIZE + j];

                one[k] = fmaf(weight, elems[0][spare + j * CHANNELS + k], one[k]);
                sums[i][k] = fmaf(weight, elems[1][spare + j * CHANNELS + k], sums[i][k]);
            }
    }
}

/* Loads what the lane's results see of a line, and what is beside it in whole 16 bytes. */
template <int COUNT>
static __device__ __forceinline__ void floats_load(const float4 *line, float (&elems)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT / 4; i++) {
        const float4 some = line[i];

        elems[4 * i] = some.x;
        elems[4 * i + 1] = some.y;
        elems[4 * i + 2] = some.z;
        elems[4 * i + 3] = some.w;
    }
}

/* The block's tile. */
template <int SIZE, int CHANNELS>
static __device__ __forceinline__ struct conv_tile floats_find_tile(const struct conv_job &job,
                                                                    const struct conv_bands &bands)
{
    const uint32_t band = conv_divide(&bands.columns, blockIdx.x);
    struct conv_tile tile;

    tile.e = static_cast<int32_t>(blockIdx.x - band * bands.columns.by) * FLOATS_ELEMS;
    tile.y = conv_band_at(&bands, static_cast<int32_t>(band), &tile.rows);
    tile.top = tile.y + job.first_y;
    tile.rows = min(tile.rows, job.out_height - tile.y);
    tile.lines = tile.rows + SIZE - 1;
    tile.begin = tile.e - floats_lead(SIZE, CHANNELS);
    tile.reach = floats_reach(SIZE, CHANNELS);
    return tile;
}

/* How many of the block's warps read lines. */
static __device__ __forceinline__ int floats_readers(const struct conv_job &job,
                                                     const struct conv_tile &tile)
{
    return min(FLOATS_WARPS, (job.out_elems - tile.e + FLOATS_WARP_ELEMS - 1) / FLOATS_WARP_ELEMS);
}

/* Where a lane's next results go. */
struct floats_place {
    float *to;
    int32_t e;
    bool has_all; /* all four are in the answer, and none is of a frame */
};

/* The end of the lane's sums of row y, and on to the next row. */
static __device__ __forceinline__ void floats_store(const struct conv_job &job, int32_t y,
                                                    const float (&sums)[FLOATS_ITEMS],
                                                    struct floats_place *place)
{
    if (place->has_all)
        *reinterpret_cast<float4 *>(place->to) =
            make_float4(fmaf(job.scale, sums[0], job.bias), fmaf(job.scale, sums[1], job.bias),
                        fmaf(job.scale, sums[2], job.bias), fmaf(job.scale, sums[3], job.bias));
    else
#pragma unroll
        for (int k = 0; k < FLOATS_ITEMS; k++)
            if (place->e + k < job.out_elems)
                conv_store<float>(job, place->e + k, y, sums[k]);
    place->to += job.out_pitch;
}

/* Adds a line or, if they go by twos, two, and stores the rows that they complete; done: the first. */
template <int SIZE, int CHANNELS, bool IS_PRODUCT>
static __device__ __forceinline__ void
floats_add(const struct conv_job &job, const struct conv_weights &weights,
           const struct conv_tile &tile, int done, const float4 *line,
           float (&sums)[SIZE][FLOATS_ITEMS], struct floats_place *place)
{
    constexpr int lead = floats_lead(SIZE, CHANNELS);
    constexpr int spare = lead - floats_reach(SIZE, CHANNELS);
    constexpr int pace = floats_is_paired(SIZE, IS_PRODUCT) ? 2 : 1;
    constexpr int stride = sizeof(floats_ring<SIZE, CHANNELS, IS_PRODUCT>::lines[0][0]) / 16;
    float elems[pace][2 * lead + FLOATS_ITEMS], first[FLOATS_ITEMS];

#pragma unroll
    for (int i = 0; i < pace; i++)
        floats_load(line + i * stride, elems[i]);
    if constexpr (pace == 2) {
        floats_add_pair<SIZE, CHANNELS>(weights, elems, spare, first, sums);
        if (static_cast<unsigned>(done) < tile.rows)
            floats_store(job, tile.y + done, first, place);
        done++;
    } else if (IS_PRODUCT) {
        floats_add_product<SIZE, CHANNELS>(weights, elems[0], spare, sums);
    } else {
        floats_add_square<SIZE, CHANNELS>(weights, elems[0], spare, sums);
    }
    if (static_cast<unsigned>(done) < tile.rows)
        floats_store(job, tile.y + done, sums[SIZE - 1], place);
}

/* A warp's part of the tile. */
template <int SIZE, int CHANNELS, bool IS_PRODUCT>
static __device__ __forceinline__ void
floats_walk(const struct conv_job &job, const struct conv_weights &weights,
            const struct conv_tile &tile, struct floats_ring<SIZE, CHANNELS, IS_PRODUCT> *ring)
{
    constexpr int stages = floats_stages(SIZE, IS_PRODUCT);
    constexpr int stage_lines = floats_stage_lines(SIZE, IS_PRODUCT);
    constexpr bool is_paired = floats_is_paired(SIZE, IS_PRODUCT);
    constexpr int unroll = is_paired ? 1 : SIZE; /* 49 weights are much code */
    const int32_t e = tile.e + FLOATS_ITEMS * static_cast<int32_t>(threadIdx.x);
    struct floats_place place = {static_cast<float *>(job.out) + tile.y * job.out_pitch + e, e,
                                 job.border != CONV_FRAME && e + FLOATS_ITEMS <= job.out_elems};
    float sums[SIZE][FLOATS_ITEMS] = {};

#pragma unroll 1
    for (int s = 0; s * stage_lines < tile.lines; s++) {
        conv_await_stage(s, ring);
#pragma unroll(unroll)
        for (int r = 0; r < stage_lines; r += is_paired ? 2 : 1)
            floats_add<SIZE, CHANNELS, IS_PRODUCT>(
                job, weights, tile, s * stage_lines + r - (SIZE - 1),
                reinterpret_cast<const float4 *>(ring->lines[s % stages][r]) + threadIdx.x, sums,
                &place);
        conv_leave_stage(s, ring);
    }
}
#endif

template <int SIZE, int CHANNELS, bool IS_PRODUCT>
static __global__ void __launch_bounds__(FLOATS_BLOCK, floats_blocks_per_sm(SIZE))
    conv_vector_floats_kernel(const struct conv_job job, const struct conv_weights weights,
                              const struct conv_bands bands)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    __shared__ struct floats_ring<SIZE, CHANNELS, IS_PRODUCT> ring;
    const int warp = threadIdx.x / 32;
    struct conv_tile tile;
    struct conv_window window;

    /* others find out later, so that the warp which fills the ring begins the sooner */
    if (warp == FLOATS_WARPS) {
        tile = floats_find_tile<SIZE, CHANNELS>(job, bands);
        window = conv_find_window<true, float>(job, tile, FLOATS_ELEMS, -1);
        conv_begin_ring<true>(job, tile, window, floats_readers(job, tile), &ring);
    }
    __syncthreads();
    if (warp == FLOATS_WARPS) {
        conv_fill_ring<true>(job, tile, window, &ring);
        return;
    }
    tile = floats_find_tile<SIZE, CHANNELS>(job, bands);
    if (warp < floats_readers(job, tile))
        floats_walk<SIZE, CHANNELS, IS_PRODUCT>(job, weights, tile, &ring);
#endif
}

/* --- host ------------------------------------------------------------------------------------------------- */

/* Whether a line goes along the mask's row first, which spares 35 of 49 multiplications; smaller masks wait for memory. */
static bool floats_is_product(const struct gpurun_ctx *ctx)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;

    return mask->is_separable && mask->width == 7;
}

static struct conv_weights floats_weights(const struct gpurun_ctx *ctx)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;
    struct conv_weights weights = conv_weights_of(ctx);

    if (floats_is_product(ctx))
        for (int i = 0; i < mask->width; i++) {
            weights.value.real[i] = mask->row_real[i];
            weights.value.real[mask->width + i] = mask->column_real[i];
        }
    return weights;
}

template <int SIZE, int CHANNELS, bool IS_PRODUCT>
static enum gpurun_status floats_run(struct gpurun_ctx *ctx)
{
    const struct conv_job job = conv_job_of(ctx);
    const struct conv_stages stages = {SIZE, floats_stage_lines(SIZE, IS_PRODUCT),
                                       floats_turns_most(SIZE, IS_PRODUCT),
                                       floats_turns_least(SIZE, IS_PRODUCT)};
    const int64_t columns = (static_cast<int64_t>(job.out_elems) + FLOATS_ELEMS - 1) / FLOATS_ELEMS;
    const int64_t slots = static_cast<int64_t>(ctx->device.sm_count) * floats_blocks_per_sm(SIZE);
    const int64_t side = (slots + columns - 1) / columns;
    const int turns = conv_choose_turns(&stages, job.out_height, side);
    struct conv_bands bands;
    const int64_t tiles = conv_cut_bands(&stages, job.out_height, static_cast<uint32_t>(columns),
                                         turns, side, &bands);

    conv_vector_floats_kernel<SIZE, CHANNELS, IS_PRODUCT>
        <<<static_cast<unsigned>(tiles), FLOATS_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(
            job, floats_weights(ctx), bands);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

template <int SIZE, bool IS_PRODUCT>
static enum gpurun_status floats_run_channels(struct gpurun_ctx *ctx)
{
    const int64_t channels = conv_options_of(ctx)->channels;

    return channels == 1   ? floats_run<SIZE, 1, IS_PRODUCT>(ctx)
           : channels == 3 ? floats_run<SIZE, 3, IS_PRODUCT>(ctx)
                           : floats_run<SIZE, 4, IS_PRODUCT>(ctx);
}

bool conv_vector_floats_takes(const struct gpurun_ctx *ctx)
{
    const struct conv_state *s = conv_state_of(ctx);

    return s->mask.is_real && ctx->device.compute >= 80 && s->border != CONV_CROP &&
           s->mask.width == s->mask.height && s->mask.width >= 3 && s->mask.width <= 7 &&
           reinterpret_cast<uintptr_t>(s->image->dev) % 16 == 0 && s->in_pitch % 4 == 0 &&
           reinterpret_cast<uintptr_t>(s->filtered->dev) % 16 == 0 && s->out_pitch % 4 == 0;
}

enum gpurun_status conv_vector_floats_check(struct gpurun_ctx *ctx)
{
    return conv_check_grid(ctx, FLOATS_ELEMS, FLOATS_ROWS_LEAST);
}

enum gpurun_status conv_vector_floats_launch(struct gpurun_ctx *ctx)
{
    const int size = conv_state_of(ctx)->mask.width;

    return size == 3                ? floats_run_channels<3, false>(ctx)
           : size == 5              ? floats_run_channels<5, false>(ctx)
           : floats_is_product(ctx) ? floats_run_channels<7, true>(ctx)
                                    : floats_run_channels<7, false>(ctx);
}
