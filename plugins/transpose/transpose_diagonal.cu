/*
 * transpose, variant "diagonal": padded16 with blocks numbered along diagonals.
 *
 * Mapping  as padded16, but the tiles that follow each other step down and to the right at once.
 * Memory   as padded16; neighbours in time touch different columns of the input and of the answer, which on
 *          devices without hashed addresses are different memory partitions.
 * Bound    memory; today the neighbours no longer complete each other's lines.
 * Limits   none.
 */
#include "transpose_tile16.cuh"

/* Tile n: rows of tiles one after the other, each a column further to the right than the one before. */
template <typename BITS>
static __device__ __forceinline__ struct transpose_place
diagonal_place(const struct transpose_job<BITS> &job, int64_t n)
{
    const int64_t line = n / job.high, high = n - line * job.high;
    const int64_t matrix = line / job.wide, wide = (line - matrix * job.wide + high) % job.wide;

    return {matrix, high * TILE16, wide * TILE16};
}

template <typename BITS>
static __global__ void __launch_bounds__(TILE16_BLOCK)
    transpose_diagonal_kernel(struct transpose_job<BITS> job)
{
    const int64_t block = transpose_block();

    if (block < job.tiles)
        tile16_move<BITS, TILE16 + 1>(job, diagonal_place(job, block));
}

template <typename BITS> static enum gpurun_status diagonal_run(struct gpurun_ctx *ctx)
{
    const struct transpose_job<BITS> job = transpose_job_of<BITS>(ctx, TILE16, TILE16);

    transpose_diagonal_kernel<BITS>
        <<<transpose_grid(job.tiles), TILE16_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(job);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status transpose_launch_diagonal(struct gpurun_ctx *ctx)
{
    return TRANSPOSE_DISPATCH(ctx, diagonal_run, ctx);
}
