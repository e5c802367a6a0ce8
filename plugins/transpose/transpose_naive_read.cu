/*
 * transpose, variant "naive_read": each thread moves one element, in the order of the input.
 *
 * Mapping  a block of 256 threads per 8 rows of 32 columns; a warp is 32 neighbours of a row.
 * Memory   reads whole lines; a warp's 32 writes go to 32 rows of the answer, a sector each.
 * Bound    partial writes: a sector of 32 bytes is written for each element, until the cache joins some.
 * Limits   none.
 */
#include "transpose_device.cuh"

enum { NAIVE_READ_BLOCK = 256, NAIVE_READ_ROWS = 8, NAIVE_READ_COLS = 32 };

template <typename BITS>
static __global__ void __launch_bounds__(NAIVE_READ_BLOCK)
    transpose_naive_read_kernel(struct transpose_job<BITS> job)
{
    const int64_t block = transpose_block();
    const struct transpose_place tile =
        transpose_along_rows(job, block, NAIVE_READ_ROWS, NAIVE_READ_COLS);
    const int64_t r = tile.row + threadIdx.x / NAIVE_READ_COLS;
    const int64_t c = tile.col + threadIdx.x % NAIVE_READ_COLS;

    if (block < job.tiles && r < job.rows && c < job.cols)
        job.out[transpose_out_at(job, tile.matrix, r, c)] =
            job.in[transpose_in_at(job, tile.matrix, r, c)];
}

template <typename BITS> static enum gpurun_status naive_read_run(struct gpurun_ctx *ctx)
{
    const struct transpose_job<BITS> job =
        transpose_job_of<BITS>(ctx, NAIVE_READ_ROWS, NAIVE_READ_COLS);

    transpose_naive_read_kernel<BITS>
        <<<transpose_grid(job.tiles), NAIVE_READ_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(job);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

/* For all variants that move from one tensor to another. */
enum gpurun_status transpose_apart_supported(struct gpurun_ctx *ctx)
{
    if (!transpose_options_of(ctx)->inplace)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "inplace",
                       "it moves from one tensor to another; inplace_square works in place");
}

enum gpurun_status transpose_launch_naive_read(struct gpurun_ctx *ctx)
{
    return TRANSPOSE_DISPATCH(ctx, naive_read_run, ctx);
}
