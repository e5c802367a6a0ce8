/*
 * transpose, variant "vector": 16-byte accesses on both sides, each element touched by few instructions.
 *
 * Mapping  a block per tile of 256 x 256 bytes' worth (64 x 64 of 4 bytes: 256 threads, four packs each), one
 *          after the other along rows of the answer. Where a row does not begin at a multiple of 16 bytes tiles
 *          are larger, and packs are shifted (transpose_skew.cuh). One row or column is copied.
 * Memory   reads and writes each element once, but for a tenth to a seventh that two shifted tiles read; up to
 *          eight 16-byte loads in flight a thread.
 * Bound    memory; where rows of the input begin within lines the L2 cache, which is then to fetch 256 bytes at once.
 * Limits   a matrix much smaller than a tile leaves most of its block idle.
 */
#include "transpose_skew.cuh"
#include "transpose_tile.cuh"

/* Blocks that a multiprocessor is to hold: registers for 4 packs leave room for 3 in 4 threads, for 8 for half. */
template <typename BITS> static constexpr int vector_blocks_per_sm()
{
    return GPURUN_SM_THREADS / tile_shape<BITS>::BLOCK * (tile_shape<BITS>::PACKS == 4 ? 3 : 2) / 4;
}

template <typename BITS, enum tile_source SOURCE>
static __global__ void __launch_bounds__(tile_shape<BITS>::BLOCK, vector_blocks_per_sm<BITS>())
    transpose_vector_kernel(struct transpose_job<BITS> job)
{
    extern __shared__ __align__(16) char vector_shared[];
    constexpr int side = tile_shape<BITS>::SIDE;
    const int64_t block = transpose_block();
    const struct transpose_place tile = transpose_along_cols(job, block, side, side);
    const int64_t rows = job.rows - tile.row, cols = job.cols - tile.col;
    struct tile_part<BITS> part;

    if (block >= job.tiles)
        return;
    tile_load<BITS, SOURCE>(part, job.in + transpose_in_at(job, tile.matrix, tile.row, tile.col),
                            job.cols, rows, cols);
    tile_share(part, vector_shared);
    __syncthreads();
    tile_store(vector_shared, job.out + transpose_out_at(job, tile.matrix, tile.row, tile.col),
               job.rows, cols, rows);
}

template <typename BITS, enum tile_source SOURCE>
static enum gpurun_status vector_run_packs(struct gpurun_ctx *ctx)
{
    typedef tile_shape<BITS> shape;
    const struct transpose_job<BITS> job = transpose_job_of<BITS>(ctx, shape::SIDE, shape::SIDE);

    TILE_ALLOW_SHARED(ctx, (transpose_vector_kernel<BITS, SOURCE>), shape::SHARED_BYTES);
    transpose_vector_kernel<BITS, SOURCE>
        <<<transpose_grid(job.tiles), shape::BLOCK, shape::SHARED_BYTES, gpurun_cuda_stream(ctx)>>>(
            job);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

template <typename BITS>
static __global__ void __launch_bounds__(skew_shape<BITS>::BLOCK,
                                         GPURUN_SM_THREADS / 2 / skew_shape<BITS>::BLOCK)
    transpose_vector_skew_kernel(struct transpose_job<BITS> job, int64_t total)
{
    extern __shared__ __align__(16) char vector_shared[];
    typedef skew_shape<BITS> shape;
    constexpr int width = tile_shape<BITS>::WIDTH;
    const int64_t block = transpose_block();
    const struct transpose_place tile = transpose_along_cols(job, block, shape::HIGH, shape::COLS);
    const int shared_rows = tile.row > 0 ? shape::SHARED_ROWS : 0;
    const int64_t row = tile.row - shared_rows;
    const int rows = static_cast<int>(min(job.rows - row, int64_t{shape::ROWS}));
    const int cols = static_cast<int>(min(job.cols - tile.col, int64_t{shape::COLS}));
    const int64_t at = transpose_in_at(job, tile.matrix, row, tile.col);
    const struct skew_source<BITS> from = {
        job.in, at, total, job.cols, rows, cols
    };
    struct tile_pack part[shape::PACKS];

    if (block >= job.tiles)
        return;
    skew_load(part, from);
    skew_shift(part, from);
    skew_share<BITS>(part, vector_shared);
    __syncthreads();
    if (at < width || at + (rows - 1) * job.cols + cols > total - width) {
        skew_load_ends(vector_shared, from);
        __syncthreads();
    }
    skew_store(vector_shared, job.out + transpose_out_at(job, tile.matrix, row, tile.col), job.rows,
               rows, cols, shared_rows);
}

template <typename BITS> static enum gpurun_status vector_run_skew(struct gpurun_ctx *ctx)
{
    typedef skew_shape<BITS> shape;
    const struct transpose_options *o = transpose_options_of(ctx);
    struct transpose_job<BITS> job = transpose_job_of<BITS>(ctx, shape::HIGH, shape::COLS);

    /* What a tile begins earlier to write, it ends earlier. */
    job.high = (job.rows + shape::SHARED_ROWS + shape::HIGH - 1) / shape::HIGH;
    job.tiles = job.high * job.wide * o->batch;
    TILE_ALLOW_SHARED(ctx, transpose_vector_skew_kernel<BITS>, shape::SHARED_BYTES);
    transpose_vector_skew_kernel<BITS>
        <<<transpose_grid(job.tiles), shape::BLOCK, shape::SHARED_BYTES, gpurun_cuda_stream(ctx)>>>(
            job, o->rows * o->cols * o->batch);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

template <typename BITS> static enum gpurun_status vector_run(struct gpurun_ctx *ctx)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    const struct transpose_state *s = transpose_state_of(ctx);

    if (o->rows == 1 || o->cols == 1) {
        GPURUN_CUDA_TRY(ctx, cudaMemcpyAsync(s->out->dev, s->in->dev, s->in->bytes,
                                             cudaMemcpyDefault, gpurun_cuda_stream(ctx)));
        return GPURUN_OK;
    }
    if (!tile_is_aligned(s->in->dev, o->cols, sizeof(BITS), PACK_BYTES) ||
        !tile_is_aligned(s->out->dev, o->rows, sizeof(BITS), PACK_BYTES))
        return vector_run_skew<BITS>(ctx);
    return tile_is_aligned(s->in->dev, o->cols, sizeof(BITS), LINE_BYTES)
               ? vector_run_packs<BITS, TILE_LINES>(ctx)
               : vector_run_packs<BITS, TILE_SHARES_LINES>(ctx);
}

enum gpurun_status transpose_launch_vector(struct gpurun_ctx *ctx)
{
    return TRANSPOSE_DISPATCH(ctx, vector_run, ctx);
}
