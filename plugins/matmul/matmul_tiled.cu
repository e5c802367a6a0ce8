/*
 * matmul, variant "tiled": blocks of A and B along k go through shared memory.
 *
 * Mapping  one thread per element of the product, a block per 32 x 32 of them.
 * Memory   each element of A and B is read once per block that needs it, 32 times less than by "naive", and
 *          along its own rows whether transposed or not; shared rows are 33 long, so columns meet no bank twice.
 * Bound    shared memory: two loads for each multiplication and addition.
 * Limits   none; sums of some tiles are added apart, so that roundings of reals do not pile up.
 */
#include "matmul_device.cuh"

enum { TILED_SIDE = 32 };

template <typename ACC> struct tiled_shared {
    ACC a[TILED_SIDE][TILED_SIDE + 1]; /* [i][x] */
    ACC b[TILED_SIDE][TILED_SIDE + 1]; /* [x][j] */
};

/* One element of a tile that starts at `from`; zero where the matrix has ended. Threads that are neighbours
 * read neighbours in memory: `turned` says that rows of the tile lie across them. */
template <typename T>
static __device__ __forceinline__ void
tiled_fill(const T *from, int64_t row, int64_t col, int64_t rows_left, int64_t cols_left,
           bool turned, typename matmul_kind<T>::ACC (*to)[TILED_SIDE + 1])
{
    const int r = turned ? threadIdx.x : threadIdx.y, c = turned ? threadIdx.y : threadIdx.x;

    to[r][c] = r < rows_left && c < cols_left ? matmul_load(from[r * row + c * col]) : 0;
}

template <typename T>
static __global__ void __launch_bounds__(TILED_SIDE *TILED_SIDE)
    matmul_tiled_kernel(struct matmul_job job, int tiles)
{
    typedef typename matmul_kind<T>::ACC ACC;
    __shared__ struct tiled_shared<ACC> shared;
    const struct matmul_layout &l = job.layout;
    const struct matmul_tile tile = matmul_tile_at(l, blockIdx.x, TILED_SIDE, TILED_SIDE);
    const T *a = static_cast<const T *>(job.a) + tile.batch * l.a_batch + tile.i * l.a_row;
    const T *b = static_cast<const T *>(job.b) + tile.batch * l.b_batch + tile.j * l.b_col;
    const int64_t i = tile.i + threadIdx.y, j = tile.j + threadIdx.x;
    ACC sum = 0, part = 0;
    int until_added = tiles;

    for (int64_t x = 0; x < l.k; x += TILED_SIDE) {
        tiled_fill<T>(a + x * l.a_col, l.a_row, l.a_col, l.m - tile.i, l.k - x, l.a_col != 1,
                      shared.a);
        tiled_fill<T>(b + x * l.b_row, l.b_row, l.b_col, l.k - x, l.n - tile.j, l.b_col != 1,
                      shared.b);
        __syncthreads();
#pragma unroll
        for (int y = 0; y < TILED_SIDE; y++)
            part += shared.a[threadIdx.y][y] * shared.b[y][threadIdx.x];
        __syncthreads();
        if (--until_added == 0) {
            sum += part;
            part = 0;
            until_added = tiles;
        }
    }
    sum += part;
    if (i < l.m && j < l.n)
        matmul_finish<T>(job, tile.batch * l.c_batch + i * l.ldc + j, sum);
}

template <typename T> static enum gpurun_status tiled_run(struct gpurun_ctx *ctx)
{
    const dim3 block(TILED_SIDE, TILED_SIDE);
    const int64_t blocks = matmul_tile_count(ctx, TILED_SIDE, TILED_SIDE);
    const int tiles = static_cast<int>(matmul_part_of(matmul_state_of(ctx)->layout.k)) / TILED_SIDE;

    matmul_tiled_kernel<T><<<static_cast<unsigned>(blocks), block, 0, gpurun_cuda_stream(ctx)>>>(
        matmul_job_of(ctx), tiles > 0 ? tiles : 1);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status matmul_tiled_supported(struct gpurun_ctx *ctx)
{
    return matmul_check_grid(ctx, TILED_SIDE, TILED_SIDE);
}

enum gpurun_status matmul_launch_tiled(struct gpurun_ctx *ctx)
{
    return MATMUL_DISPATCH(matmul_dtype_of(ctx), tiled_run, ctx);
}
