/*
 * matmul, variant "global_accumulate": every partial sum goes to memory and comes back.
 *
 * Mapping  one thread per element of the product, a block per 8 rows of 32.
 * Memory   per term a load of A (one for the warp), of B (coalesced), and a load and a store of the sum, which lies
 *          in scratch and goes to the product after every part of so many terms that its error stays bounded.
 * Bound    the chain of store and load: a trip to the cache per term, whatever the arithmetic costs.
 * Limits   16-bit reals would be rounded after every term.
 */
#include "matmul_device.cuh"

enum { ACCUMULATE_COLS = 32, ACCUMULATE_ROWS = 8 };

template <typename T>
static __global__ void __launch_bounds__(ACCUMULATE_COLS *ACCUMULATE_ROWS)
    matmul_global_accumulate_kernel(struct matmul_job job, T *sums, int64_t part)
{
    const struct matmul_layout &l = job.layout;
    const struct matmul_tile tile = matmul_tile_at(l, blockIdx.x, ACCUMULATE_ROWS, ACCUMULATE_COLS);
    const int64_t i = tile.i + threadIdx.y, j = tile.j + threadIdx.x;
    const int64_t at = tile.batch * l.c_batch + i * l.ldc + j;
    const T *a = static_cast<const T *>(job.a) + tile.batch * l.a_batch + i * l.a_row;
    const T *b = static_cast<const T *>(job.b) + tile.batch * l.b_batch + j * l.b_col;
    volatile T *total = static_cast<volatile T *>(job.product) + at; /* volatile: in no register */
    volatile T *sum = sums + (tile.batch * l.m + i) * l.n + j;

    if (i >= l.m || j >= l.n)
        return;
    *total = 0;
    for (int64_t first = 0; first < l.k; first += part) {
        *sum = 0;
        for (int64_t x = first; x < l.k && x < first + part; x++)
            *sum = *sum + a[x * l.a_col] * b[x * l.b_row];
        *total = *total + *sum;
    }
    matmul_finish<T>(job, at, *total);
}

template <typename T> static enum gpurun_status accumulate_run(struct gpurun_ctx *ctx)
{
    const dim3 block(ACCUMULATE_COLS, ACCUMULATE_ROWS);
    const int64_t blocks = matmul_tile_count(ctx, ACCUMULATE_ROWS, ACCUMULATE_COLS);

    matmul_global_accumulate_kernel<T>
        <<<static_cast<unsigned>(blocks), block, 0, gpurun_cuda_stream(ctx)>>>(
            matmul_job_of(ctx), static_cast<T *>(ctx->scratch),
            matmul_part_of(matmul_state_of(ctx)->layout.k));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status matmul_global_accumulate_supported(struct gpurun_ctx *ctx)
{
    if (matmul_is_narrow(ctx))
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "dtype",
                           "a sum in memory would be rounded to %s after every term",
                           gpurun_dtype_name(matmul_dtype_of(ctx)));
    return matmul_check_grid(ctx, ACCUMULATE_ROWS, ACCUMULATE_COLS);
}

size_t matmul_global_accumulate_scratch(struct gpurun_ctx *ctx)
{
    const struct matmul_layout &l = matmul_state_of(ctx)->layout;

    return static_cast<size_t>(l.batch * l.m * l.n) * gpurun_dtype_bytes(matmul_dtype_of(ctx));
}

enum gpurun_status matmul_launch_global_accumulate(struct gpurun_ctx *ctx)
{
    return MATMUL_DISPATCH_WIDE(matmul_dtype_of(ctx), accumulate_run, ctx);
}
