/*
 * transpose, variant "padded16": tiled16 with a gap after each row of the tile.
 *
 * Mapping  as tiled16.
 * Memory   as tiled16, but rows of 17 elements: those of a column of 4-byte elements lie in 16 banks.
 * Bound    memory, with half lines and one element per thread in flight.
 * Limits   none; a gap of one element is less than a bank for bytes and int16, which still conflict.
 */
#include "transpose_tile16.cuh"

template <typename BITS>
static __global__ void __launch_bounds__(TILE16_BLOCK)
    transpose_padded16_kernel(struct transpose_job<BITS> job)
{
    const int64_t block = transpose_block();

    if (block < job.tiles)
        tile16_move<BITS, TILE16 + 1>(job, transpose_along_rows(job, block, TILE16, TILE16));
}

template <typename BITS> static enum gpurun_status padded16_run(struct gpurun_ctx *ctx)
{
    const struct transpose_job<BITS> job = transpose_job_of<BITS>(ctx, TILE16, TILE16);

    transpose_padded16_kernel<BITS>
        <<<transpose_grid(job.tiles), TILE16_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(job);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status transpose_launch_padded16(struct gpurun_ctx *ctx)
{
    return TRANSPOSE_DISPATCH(ctx, padded16_run, ctx);
}
