/*
 * transpose, variant "naive_write": each thread moves one element, in the order of the answer.
 *
 * Mapping  a block of 256 threads per 32 rows of 8 columns; a warp is 32 neighbours of a column.
 * Memory   a warp's 32 reads come from 32 rows, a sector each; writes whole lines.
 * Bound    reads of which a part is used; the rest of each sector is hoped for in a cache.
 * Limits   none.
 */
#include "transpose_device.cuh"

enum { NAIVE_WRITE_BLOCK = 256, NAIVE_WRITE_ROWS = 32, NAIVE_WRITE_COLS = 8 };

template <typename BITS>
static __global__ void __launch_bounds__(NAIVE_WRITE_BLOCK)
    transpose_naive_write_kernel(struct transpose_job<BITS> job)
{
    const int64_t block = transpose_block();
    const struct transpose_place tile =
        transpose_along_cols(job, block, NAIVE_WRITE_ROWS, NAIVE_WRITE_COLS);
    const int64_t r = tile.row + threadIdx.x % NAIVE_WRITE_ROWS;
    const int64_t c = tile.col + threadIdx.x / NAIVE_WRITE_ROWS;

    if (block < job.tiles && r < job.rows && c < job.cols)
        job.out[transpose_out_at(job, tile.matrix, r, c)] =
            job.in[transpose_in_at(job, tile.matrix, r, c)];
}

template <typename BITS> static enum gpurun_status naive_write_run(struct gpurun_ctx *ctx)
{
    const struct transpose_job<BITS> job =
        transpose_job_of<BITS>(ctx, NAIVE_WRITE_ROWS, NAIVE_WRITE_COLS);

    transpose_naive_write_kernel<BITS>
        <<<transpose_grid(job.tiles), NAIVE_WRITE_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(job);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status transpose_launch_naive_write(struct gpurun_ctx *ctx)
{
    return TRANSPOSE_DISPATCH(ctx, naive_write_run, ctx);
}
