/*
 * transpose, variant "vector": 16-byte accesses on both sides, each element touched by few instructions.
 *
 * Mapping  a block per tile of 256 x 256 bytes' worth (64 x 64 of 4 bytes: 256 threads, four packs each), one
 *          after the other along rows of the answer. Where a row does not begin at a multiple of 16 bytes a
 *          block of 512 threads moves 192 x 128 elements one by one, by whole lines. One row or column is copied.
 * Memory   reads and writes each element once; up to eight 16-byte loads, or thirty elements, in flight a thread.
 * Bound    memory; where rows of the input begin within lines the L2 cache, which is then to fetch 256 bytes at once.
 * Limits   a matrix much smaller than a tile leaves most of its block idle.
 */
#include "transpose_lines.cuh"
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

template <typename BITS>
static __global__ void __launch_bounds__(LINES_BLOCK, GPURUN_SM_THREADS / 2 / LINES_BLOCK)
    transpose_vector_lines_kernel(struct transpose_job<BITS> job, int tile_rows)
{
    extern __shared__ __align__(16) char vector_shared[];
    BITS *shared = reinterpret_cast<BITS *>(vector_shared);
    typedef lines_shape<BITS> shape;
    const int64_t block = transpose_block();
    const int high = tile_rows - shape::SHARED_ROWS;
    const struct transpose_place tile = transpose_along_cols(job, block, high, shape::COLS);
    const int shared_rows = tile.row > 0 ? shape::SHARED_ROWS : 0;
    const int64_t row = tile.row - shared_rows;
    const int64_t rows = job.rows - row, cols = job.cols - tile.col;
    const struct lines_size size = {static_cast<int>(rows < tile_rows ? rows : tile_rows),
                                    static_cast<int>(cols < shape::COLS ? cols : shape::COLS)};

    if (block >= job.tiles)
        return;
    lines_load(shared, job.in + transpose_in_at(job, tile.matrix, row, tile.col), job.cols, size);
    __syncthreads();
    lines_store(shared, job.out + transpose_out_at(job, tile.matrix, row, tile.col), job.rows, size,
                shared_rows, high);
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

template <typename BITS> static enum gpurun_status vector_run_lines(struct gpurun_ctx *ctx)
{
    typedef lines_shape<BITS> shape;
    const int rows = lines_rows<BITS>(ctx);
    const size_t shared_bytes = rows * shape::PITCH * sizeof(BITS);
    const int high = rows - shape::SHARED_ROWS;
    struct transpose_job<BITS> job = transpose_job_of<BITS>(ctx, high, shape::COLS);

    /* What a tile begins earlier to write, it ends earlier. */
    job.high = (job.rows + shape::SHARED_ROWS + high - 1) / high;
    job.tiles = job.high * job.wide * transpose_options_of(ctx)->batch;
    TILE_ALLOW_SHARED(ctx, transpose_vector_lines_kernel<BITS>, shared_bytes);
    transpose_vector_lines_kernel<BITS>
        <<<transpose_grid(job.tiles), LINES_BLOCK, shared_bytes, gpurun_cuda_stream(ctx)>>>(job,
                                                                                            rows);
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
        return vector_run_lines<BITS>(ctx);
    return tile_is_aligned(s->in->dev, o->cols, sizeof(BITS), LINE_BYTES)
               ? vector_run_packs<BITS, TILE_LINES>(ctx)
               : vector_run_packs<BITS, TILE_SHARES_LINES>(ctx);
}

enum gpurun_status transpose_launch_vector(struct gpurun_ctx *ctx)
{
    return TRANSPOSE_DISPATCH(ctx, vector_run, ctx);
}
