/*
 * conv, variant "vector": rows of sums in registers, for floats, and for bytes where the tensor cores cannot serve.
 *
 * Mapping  a warp takes 128 elements of 32 rows and walks down. A lane holds 4 elements, 32 apart, and for each of them
 *          SIZE sums: a row of the image adds to the SIZE rows of the answer that it is under the mask of. The loop
 *          is unrolled by SIZE, so that which sum is the oldest is known when it is compiled.
 * Memory   rows are read once, (32 + SIZE - 1) / 32 times in all; the taps beside the centre come from the L1 cache.
 *          The centre of the next row is on its way while this one is added up.
 * Bound    memory up to 7 x 7 floats.
 * Limits   square masks of 3, 5 and 7; no alignment is asked for.
 */
#include "conv_device.cuh"
#include "conv_vector.h"

enum { ROWS_BLOCK = 128, ROWS_ITEMS = 4, ROWS_WARP_ELEMS = 32 * ROWS_ITEMS, ROWS_BAND = 32 };
enum { ROWS_TILE_ELEMS = ROWS_WARP_ELEMS * (ROWS_BLOCK / 32) };

/* What the sums leave room for; the few warps near an edge may spill. */
template <int SIZE> static constexpr int rows_blocks_per_sm()
{
    return SIZE == 3 ? 10 : SIZE == 5 ? 6 : 4;
}

/* Where a lane's elements are in a row: from `first` on, or, near the edges, each where `at` says; -1 is the
 * constant. */
template <int SIZE> struct rows_columns {
    int32_t first, channels;
    int32_t at[SIZE][ROWS_ITEMS];
};

template <int SIZE>
static __device__ __forceinline__ void rows_find(const struct conv_job &job, int32_t e,
                                                 struct rows_columns<SIZE> *columns)
{
#pragma unroll
    for (int j = 0; j < SIZE; j++)
#pragma unroll
        for (int k = 0; k < ROWS_ITEMS; k++)
            columns->at[j][k] = conv_border_elem(job, e + 32 * k + job.first_e + j * job.channels);
}

/* Row y of the image, which may lie outside; NULL: the constant. */
template <typename ELEM>
static __device__ __forceinline__ const ELEM *rows_line(const struct conv_job &job, int32_t y)
{
    const int32_t row = conv_border_at(y, job.height, job.border);

    return row < 0 ? NULL : static_cast<const ELEM *>(job.in) + row * job.in_pitch;
}

/* What tap j of the lane's element k sees in a row. */
template <typename ELEM, int SIZE, bool EDGE>
static __device__ __forceinline__ ELEM rows_at(const struct conv_job &job, const ELEM *line,
                                               const struct rows_columns<SIZE> &columns, int j,
                                               int k)
{
    const int32_t at =
        EDGE ? columns.at[j][k] : columns.first + 32 * k + (j - SIZE / 2) * columns.channels;

    return line == NULL || (EDGE && at < 0) ? static_cast<ELEM>(job.fill) : line[at];
}

/* Adds a row to the sums; `newest` is the sum that its topmost mask row adds to. */
template <typename ELEM, int SIZE, bool EDGE>
static __device__ __forceinline__ void
rows_add(const struct conv_job &job, const struct conv_weights &weights, const ELEM *line,
         const struct rows_columns<SIZE> &columns, const ELEM (&centre)[ROWS_ITEMS],
         typename conv_kind<ELEM>::SUM (&sums)[SIZE][ROWS_ITEMS], int newest)
{
#pragma unroll
    for (int j = 0; j < SIZE; j++) {
        ELEM elems[ROWS_ITEMS];

#pragma unroll
        for (int k = 0; k < ROWS_ITEMS; k++)
            elems[k] =
                j == SIZE / 2 ? centre[k] : rows_at<ELEM, SIZE, EDGE>(job, line, columns, j, k);
#pragma unroll
        for (int i = 0; i < SIZE; i++)
#pragma unroll
            for (int k = 0; k < ROWS_ITEMS; k++)
                sums[(newest + SIZE - i) % SIZE][k] =
                    conv_kind<ELEM>::add(sums[(newest + SIZE - i) % SIZE][k],
                                         conv_kind<ELEM>::weight(weights, i * SIZE + j), elems[k]);
    }
}

/* The lane's elements e, e + 32, ... of rows y to y + rows - 1. EDGE: some neighbour in x may lie outside, or
 * some of them past the end. */
template <typename ELEM, int SIZE, bool EDGE>
static __device__ __forceinline__ void rows_walk(const struct conv_job &job,
                                                 const struct conv_weights &weights, int32_t e,
                                                 int32_t y, int rows)
{
    const int32_t top = y + job.first_y;
    typename conv_kind<ELEM>::SUM sums[SIZE][ROWS_ITEMS] = {};
    const ELEM *next = rows_line<ELEM>(job, top);
    struct rows_columns<SIZE> columns;
    ELEM ahead[ROWS_ITEMS];

    columns.first = e + job.first_e + SIZE / 2 * job.channels;
    columns.channels = job.channels;
    if (EDGE)
        rows_find(job, e, &columns);
#pragma unroll
    for (int k = 0; k < ROWS_ITEMS; k++)
        ahead[k] = rows_at<ELEM, SIZE, EDGE>(job, next, columns, SIZE / 2, k);
#pragma unroll 1
    for (int begin = 0; begin < rows + SIZE - 1; begin += SIZE)
#pragma unroll
        for (int r = 0; r < SIZE; r++) {
            const int done = begin + r - (SIZE - 1); /* the row of the answer that this completes */
            const ELEM *line = next;
            ELEM centre[ROWS_ITEMS];

            next = rows_line<ELEM>(job, top + begin + r + 1);
#pragma unroll
            for (int k = 0; k < ROWS_ITEMS; k++) {
                centre[k] = ahead[k];
                ahead[k] = rows_at<ELEM, SIZE, EDGE>(job, next, columns, SIZE / 2, k);
            }
            rows_add<ELEM, SIZE, EDGE>(job, weights, line, columns, centre, sums, r);
#pragma unroll
            for (int k = 0; k < ROWS_ITEMS; k++) {
                if (done >= 0 && done < rows && (!EDGE || e + 32 * k < job.out_elems))
                    conv_store<ELEM>(job, e + 32 * k, y + done, sums[(r + 1) % SIZE][k]);
                sums[(r + 1) % SIZE][k] = 0;
            }
        }
}

template <typename ELEM, int SIZE>
static __global__ void __launch_bounds__(ROWS_BLOCK, rows_blocks_per_sm<SIZE>())
    conv_vector_rows_kernel(const struct conv_job job, const struct conv_weights weights)
{
    const int32_t begin = static_cast<int32_t>(blockIdx.x % job.tiles_x) * ROWS_TILE_ELEMS +
                          threadIdx.x / 32 * ROWS_WARP_ELEMS;
    const int32_t y = static_cast<int32_t>(blockIdx.x / job.tiles_x) * ROWS_BAND;
    const int rows = min(static_cast<int>(ROWS_BAND), job.out_height - y);

    if (begin >= job.out_elems)
        return;
    if (begin + job.first_e >= 0 && begin + ROWS_WARP_ELEMS <= job.out_elems &&
        begin + ROWS_WARP_ELEMS + job.first_e + (SIZE - 1) * job.channels <= job.elems)
        rows_walk<ELEM, SIZE, false>(job, weights, begin + threadIdx.x % 32, y, rows);
    else
        rows_walk<ELEM, SIZE, true>(job, weights, begin + threadIdx.x % 32, y, rows);
}

template <typename ELEM> static enum gpurun_status rows_run(struct gpurun_ctx *ctx)
{
    struct conv_job job = conv_job_of(ctx);
    const unsigned tiles = static_cast<unsigned>(conv_tiles(&job, ROWS_TILE_ELEMS, ROWS_BAND));
    const struct conv_weights weights = conv_weights_of(ctx);
    const cudaStream_t stream = gpurun_cuda_stream(ctx);

    if (job.mask_width == 3)
        conv_vector_rows_kernel<ELEM, 3><<<tiles, ROWS_BLOCK, 0, stream>>>(job, weights);
    else if (job.mask_width == 5)
        conv_vector_rows_kernel<ELEM, 5><<<tiles, ROWS_BLOCK, 0, stream>>>(job, weights);
    else
        conv_vector_rows_kernel<ELEM, 7><<<tiles, ROWS_BLOCK, 0, stream>>>(job, weights);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

bool conv_vector_rows_takes(const struct gpurun_ctx *ctx)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;

    return mask->width == mask->height && mask->width >= 3 && mask->width <= 7;
}

enum gpurun_status conv_vector_rows_check(struct gpurun_ctx *ctx)
{
    return conv_check_grid(ctx, ROWS_TILE_ELEMS, ROWS_BAND);
}

enum gpurun_status conv_vector_rows_launch(struct gpurun_ctx *ctx)
{
    return CONV_DISPATCH(ctx, rows_run, ctx);
}
