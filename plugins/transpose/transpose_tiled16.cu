/*
 * transpose, variant "tiled16": a 16 x 16 tile turned in shared memory.
 *
 * Mapping  a block of 256 threads per tile, one element each; tiles of a row follow each other.
 * Memory   reads and writes 16 elements in a row; shared memory is written along rows, read along columns.
 * Bound    bank conflicts: the 16 elements of a column of 4-byte elements lie in 2 banks, 8 turns for a warp.
 * Limits   none; half a line at a time for 4-byte elements, an eighth for bytes.
 */
#include "transpose_tile16.cuh"

template <typename BITS>
static __global__ void __launch_bounds__(TILE16_BLOCK)
    transpose_tiled16_kernel(struct transpose_job<BITS> job)
{
    const int64_t block = transpose_block();

    if (block < job.tiles)
        tile16_move<BITS, TILE16>(job, transpose_along_rows(job, block, TILE16, TILE16));
}

template <typename BITS> static enum gpurun_status tiled16_run(struct gpurun_ctx *ctx)
{
    const struct transpose_job<BITS> job = transpose_job_of<BITS>(ctx, TILE16, TILE16);

    transpose_tiled16_kernel<BITS>
        <<<transpose_grid(job.tiles), TILE16_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(job);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status transpose_launch_tiled16(struct gpurun_ctx *ctx)
{
    return TRANSPOSE_DISPATCH(ctx, tiled16_run, ctx);
}
