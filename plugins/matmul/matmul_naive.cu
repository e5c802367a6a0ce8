/*
 * matmul, variant "naive": the definition, one thread per element.
 *
 * Mapping  one thread per element of the product, a block per 8 rows of 32.
 * Memory   per term a load of A (one for the warp) and of B (coalesced where B is not transposed).
 * Bound    the first-level cache: two loads for each multiplication and addition.
 * Limits   none; sums of some terms are added apart, so that roundings of reals do not pile up.
 */
#include "matmul_device.cuh"

enum { NAIVE_COLS = 32, NAIVE_ROWS = 8 };

template <typename T>
static __global__ void __launch_bounds__(NAIVE_COLS *NAIVE_ROWS)
    matmul_naive_kernel(struct matmul_job job, int64_t terms)
{
    typedef typename matmul_kind<T>::ACC ACC;
    const struct matmul_layout &l = job.layout;
    const struct matmul_tile tile = matmul_tile_at(l, blockIdx.x, NAIVE_ROWS, NAIVE_COLS);
    const int64_t i = tile.i + threadIdx.y, j = tile.j + threadIdx.x;
    const T *a = static_cast<const T *>(job.a) + tile.batch * l.a_batch + i * l.a_row;
    const T *b = static_cast<const T *>(job.b) + tile.batch * l.b_batch + j * l.b_col;
    ACC sum = 0;

    if (i >= l.m || j >= l.n)
        return;
    for (int64_t x = 0; x < l.k;) {
        const int64_t end = l.k - x < terms ? l.k : x + terms;
        ACC part = 0;

        for (; x < end; x++)
            part += matmul_load(a[x * l.a_col]) * matmul_load(b[x * l.b_row]);
        sum += part;
    }
    matmul_finish<T>(job, tile.batch * l.c_batch + i * l.ldc + j, sum);
}

/* The product where A and B do not matter. */
template <typename T>
static __global__ void __launch_bounds__(NAIVE_COLS *NAIVE_ROWS)
    matmul_nothing_kernel(struct matmul_job job, int64_t tiles)
{
    const struct matmul_layout &l = job.layout;

    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
        const struct matmul_tile tile = matmul_tile_at(l, number, NAIVE_ROWS, NAIVE_COLS);
        const int64_t i = tile.i + threadIdx.y, j = tile.j + threadIdx.x;

        if (i < l.m && j < l.n)
            matmul_finish<T>(job, tile.batch * l.c_batch + i * l.ldc + j, 0);
    }
}

template <typename T> static enum gpurun_status naive_run(struct gpurun_ctx *ctx)
{
    const dim3 block(NAIVE_COLS, NAIVE_ROWS);
    const int64_t blocks = matmul_tile_count(ctx, NAIVE_ROWS, NAIVE_COLS);

    matmul_naive_kernel<T><<<static_cast<unsigned>(blocks), block, 0, gpurun_cuda_stream(ctx)>>>(
        matmul_job_of(ctx), matmul_part_of(matmul_state_of(ctx)->layout.k));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

template <typename T> static enum gpurun_status nothing_run(struct gpurun_ctx *ctx)
{
    const dim3 block(NAIVE_COLS, NAIVE_ROWS);
    const int64_t tiles = matmul_tile_count(ctx, NAIVE_ROWS, NAIVE_COLS);
    const int64_t most = INT32_MAX, blocks = tiles < most ? tiles : most;

    matmul_nothing_kernel<T><<<static_cast<unsigned>(blocks), block, 0, gpurun_cuda_stream(ctx)>>>(
        matmul_job_of(ctx), tiles);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status matmul_naive_supported(struct gpurun_ctx *ctx)
{
    return matmul_check_grid(ctx, NAIVE_ROWS, NAIVE_COLS);
}

enum gpurun_status matmul_launch_naive(struct gpurun_ctx *ctx)
{
    return MATMUL_DISPATCH(matmul_dtype_of(ctx), naive_run, ctx);
}

enum gpurun_status matmul_launch_nothing(struct gpurun_ctx *ctx)
{
    return MATMUL_DISPATCH(matmul_dtype_of(ctx), nothing_run, ctx);
}
