/*
 * transpose, variant "inplace_square": a block holds two tiles that mirror each other and swaps them, turned.
 *
 * Mapping  a block per pair of tiles (i, j) and (j, i), one tile on the diagonal; the tiles are vector's. Where
 *          a row does not begin at a multiple of 16 bytes: 32 x 32 elements, 256 threads, one by one.
 * Memory   reads and writes each element once; both tiles are read before either is written.
 * Bound    memory; one of the tiles' neighbours in time is a whole row of tiles away.
 * Limits   square matrices, inplace = yes.
 */
#include "transpose_tile.cuh"

enum { SWAP_SIDE = 32, SWAP_BLOCK = 256, SWAP_STEP = SWAP_BLOCK / SWAP_SIDE };

/* The pairs of a matrix: its n tiles beside each other, and n / 2 + 1 that follow each round the corner. */
struct swap_job {
    int64_t side, tiles, pairs; /* of a matrix in elements, in tiles; pairs of all matrices */
};

struct swap_place {
    int64_t matrix, row, col; /* of one tile, in elements; the other's are exchanged */
    bool is_here;             /* this block has a pair */
};

/* Tile i is paired with i, i + 1, ... i + n / 2 modulo n: each pair once, but for even n the last ones twice,
 * of which the second are dropped. */
static __device__ __forceinline__ struct swap_place swap_place_of(struct swap_job job,
                                                                  int tile_side)
{
    const int64_t block = transpose_block(), reach = job.tiles / 2 + 1;
    const int64_t line = block / reach, step = block - line * reach;
    const int64_t matrix = line / job.tiles, i = line - matrix * job.tiles;
    const int64_t j = i + step < job.tiles ? i + step : i + step - job.tiles;
    const bool is_twice = step * 2 == job.tiles && i >= step;

    return {matrix, i * tile_side, j * tile_side, block < job.pairs && !is_twice};
}

/* Registers hold both tiles. */
template <typename BITS> static constexpr int swap_blocks_per_sm()
{
    constexpr int most = GPURUN_SM_THREADS / tile_shape<BITS>::BLOCK;

    return tile_shape<BITS>::PACKS == 4 ? most / 2 : most / 4 > 0 ? most / 4 : 1;
}

template <typename BITS>
static __global__ void __launch_bounds__(tile_shape<BITS>::BLOCK, swap_blocks_per_sm<BITS>())
    transpose_inplace_square_kernel(BITS *data, struct swap_job job)
{
    extern __shared__ __align__(16) char swap_shared[];
    const struct swap_place place = swap_place_of(job, tile_shape<BITS>::SIDE);
    const int64_t rows = job.side - place.row, cols = job.side - place.col;
    BITS *matrix = data + place.matrix * job.side * job.side;
    BITS *upper = matrix + place.row * job.side + place.col;
    BITS *lower = matrix + place.col * job.side + place.row;
    struct tile_part<BITS> upper_part, lower_part;

    if (!place.is_here)
        return;
    tile_load<BITS, TILE_CHANGES>(upper_part, upper, job.side, rows, cols);
    if (upper != lower)
        tile_load<BITS, TILE_CHANGES>(lower_part, lower, job.side, cols, rows);
    tile_share(upper_part, swap_shared);
    __syncthreads(); /* the first tile is turned, and both have been read */
    tile_store(swap_shared, lower, job.side, cols, rows);
    if (upper == lower)
        return;
    __syncthreads(); /* shared memory is free again */
    tile_share(lower_part, swap_shared);
    __syncthreads();
    tile_store(swap_shared, upper, job.side, rows, cols);
}

/* What a thread holds of a tile of single elements. */
template <typename BITS> struct swap_part {
    BITS value[SWAP_SIDE / SWAP_STEP];
};

/* Rows [0, rows) and columns [0, cols) of the tile at `from`, 0 where there are none. */
template <typename BITS>
static __device__ __forceinline__ void swap_load(struct swap_part<BITS> &part, const BITS *from,
                                                 int64_t pitch, int64_t rows, int64_t cols)
{
    const int x = threadIdx.x % SWAP_SIDE, first = threadIdx.x / SWAP_SIDE;

#pragma unroll
    for (int i = 0; i < SWAP_SIDE / SWAP_STEP; i++) {
        const int y = first + i * SWAP_STEP;

        part.value[i] = 0;
        if (y < rows && x < cols)
            part.value[i] = from[y * pitch + x];
    }
}

template <typename BITS>
static __device__ __forceinline__ void swap_share(const struct swap_part<BITS> &part,
                                                  BITS (&tile)[SWAP_SIDE][SWAP_SIDE + 1])
{
#pragma unroll
    for (int i = 0; i < SWAP_SIDE / SWAP_STEP; i++)
        tile[threadIdx.x / SWAP_SIDE + i * SWAP_STEP][threadIdx.x % SWAP_SIDE] = part.value[i];
}

/* The turned tile to its rows [0, rows) and columns [0, cols). */
template <typename BITS>
static __device__ __forceinline__ void swap_put(const BITS (&tile)[SWAP_SIDE][SWAP_SIDE + 1],
                                                BITS *to, int64_t pitch, int64_t rows, int64_t cols)
{
    const int x = threadIdx.x % SWAP_SIDE;

#pragma unroll
    for (int y = threadIdx.x / SWAP_SIDE; y < SWAP_SIDE; y += SWAP_STEP)
        if (y < rows && x < cols)
            to[y * pitch + x] = tile[x][y];
}

template <typename BITS>
static __global__ void __launch_bounds__(SWAP_BLOCK)
    transpose_inplace_square_single_kernel(BITS *data, struct swap_job job)
{
    __shared__ BITS upper_tile[SWAP_SIDE][SWAP_SIDE + 1], lower_tile[SWAP_SIDE][SWAP_SIDE + 1];
    const struct swap_place place = swap_place_of(job, SWAP_SIDE);
    const int64_t rows = job.side - place.row, cols = job.side - place.col;
    BITS *matrix = data + place.matrix * job.side * job.side;
    BITS *upper = matrix + place.row * job.side + place.col;
    BITS *lower = matrix + place.col * job.side + place.row;
    struct swap_part<BITS> upper_part, lower_part;

    if (!place.is_here)
        return;
    swap_load(upper_part, upper, job.side, rows, cols);
    swap_load(lower_part, lower, job.side, cols, rows);
    swap_share(upper_part, upper_tile);
    swap_share(lower_part, lower_tile);
    __syncthreads(); /* both are turned, and both have been read */
    swap_put(upper_tile, lower, job.side, cols, rows);
    if (upper != lower)
        swap_put(lower_tile, upper, job.side, rows, cols);
}

static struct swap_job swap_job_of(const struct gpurun_ctx *ctx, int tile_side)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    struct swap_job job;

    job.side = o->rows;
    job.tiles = (o->rows + tile_side - 1) / tile_side;
    job.pairs = job.tiles * (job.tiles / 2 + 1) * o->batch;
    return job;
}

template <typename BITS> static enum gpurun_status swap_run(struct gpurun_ctx *ctx)
{
    typedef tile_shape<BITS> shape;
    BITS *data = static_cast<BITS *>(transpose_state_of(ctx)->in->dev);
    const bool is_aligned =
        tile_is_aligned(data, transpose_options_of(ctx)->cols, sizeof(BITS), PACK_BYTES);
    const struct swap_job job = swap_job_of(ctx, is_aligned ? shape::SIDE : int{SWAP_SIDE});

    if (is_aligned) {
        TILE_ALLOW_SHARED(ctx, transpose_inplace_square_kernel<BITS>, shape::SHARED_BYTES);
        transpose_inplace_square_kernel<BITS>
            <<<transpose_grid(job.pairs), shape::BLOCK, shape::SHARED_BYTES,
               gpurun_cuda_stream(ctx)>>>(data, job);
    } else {
        transpose_inplace_square_single_kernel<BITS>
            <<<transpose_grid(job.pairs), SWAP_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(data, job);
    }
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status transpose_inplace_square_supported(struct gpurun_ctx *ctx)
{
    if (transpose_options_of(ctx)->inplace)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "inplace",
                       "it works in place alone: set inplace = yes");
}

enum gpurun_status transpose_launch_inplace_square(struct gpurun_ctx *ctx)
{
    return TRANSPOSE_DISPATCH(ctx, swap_run, ctx);
}
