/*
 * What the kernels of transpose share: the matrices, how they are cut into tiles, and the dispatch by element
 * size. Elements are moved as unsigned numbers of their size, so that every bit survives.
 */
#ifndef TRANSPOSE_DEVICE_CUH
#define TRANSPOSE_DEVICE_CUH

#include "gpurun/cuda.h"
#include "transpose.h"

/* `batch` matrices of rows x cols, each cut into high x wide tiles of which the last may be cut short. */
template <typename BITS> struct transpose_job {
    const BITS *in;
    BITS *out;
    int64_t rows, cols;
    int64_t high, wide, tiles; /* of a matrix, beside each other and one below the other; all */
};

/* The top left element of a tile. */
struct transpose_place {
    int64_t matrix, row, col;
};

/* Calls function<BITS>(...) for the element size of the job. */
#define TRANSPOSE_DISPATCH(ctx, function, ...)                                                     \
    (transpose_elem_bytes(ctx) == 1   ? function<uint8_t>(__VA_ARGS__)                             \
     : transpose_elem_bytes(ctx) == 2 ? function<uint16_t>(__VA_ARGS__)                            \
     : transpose_elem_bytes(ctx) == 4 ? function<uint32_t>(__VA_ARGS__)                            \
                                      : function<uint64_t>(__VA_ARGS__))

template <typename BITS>
static inline struct transpose_job<BITS> transpose_job_of(const struct gpurun_ctx *ctx,
                                                          int64_t tile_rows, int64_t tile_cols) {
    const struct transpose_options *o = transpose_options_of(ctx);
    const struct transpose_state *s = transpose_state_of(ctx);
    struct transpose_job<BITS> job;

    job.in = static_cast<const BITS *>(s->in->dev);
    job.out = static_cast<BITS *>(s->out->dev);
    job.rows = o->rows;
    job.cols = o->cols;
    job.high = (o->rows + tile_rows - 1) / tile_rows;
    job.wide = (o->cols + tile_cols - 1) / tile_cols;
    job.tiles = job.high * job.wide * o->batch;
    return job;
}

/*
 * Reads of what the kernel does not write. Tiles whose rows begin in the middle of lines share these lines with their
 * neighbours: the cache is to fetch 256 bytes at once from memory, so that what is read next is there already.
 */
static __device__ __forceinline__ uint4
transpose_read(const uint4 *at)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint4 v;

    asm volatile("ld.global.nc.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at));
    return v;
#else
    return __ldg(at);
#endif
}

/* A grid of at least `blocks` blocks, which transpose_block() numbers. Only x goes up to 2^31 - 1. */
static inline dim3 transpose_grid(int64_t blocks)
{
    const int64_t across = blocks < INT32_MAX ? blocks : int64_t{INT32_MAX};

    return dim3(static_cast<unsigned>(across),
                static_cast<unsigned>((blocks + across - 1) / across));
}

static __device__ __forceinline__ int64_t transpose_block()
{
    return static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x;
}

/* Tile n of all: those of a row of tiles follow each other, then the rows, then the matrices. */
template <typename BITS>
static __device__ __forceinline__ struct transpose_place
transpose_along_rows(const struct transpose_job<BITS> &job, int64_t n, int tile_rows, int tile_cols)
{
    const int64_t line = n / job.wide, matrix = line / job.high;

    return {matrix, (line - matrix * job.high) * tile_rows, (n - line * job.wide) * tile_cols};
}

/* The same for columns of tiles: neighbours in time then write to neighbouring places of the answer. */
template <typename BITS>
static __device__ __forceinline__ struct transpose_place
transpose_along_cols(const struct transpose_job<BITS> &job, int64_t n, int tile_rows, int tile_cols)
{
    const int64_t line = n / job.high, matrix = line / job.wide;

    return {matrix, (n - line * job.high) * tile_rows, (line - matrix * job.wide) * tile_cols};
}

/* Where row r and column c of the input stand, and the same element of the answer. */
template <typename BITS>
static __device__ __forceinline__ int64_t transpose_in_at(const struct transpose_job<BITS> &job,
                                                          int64_t matrix, int64_t r, int64_t c)
{
    return (matrix * job.rows + r) * job.cols + c;
}

template <typename BITS>
static __device__ __forceinline__ int64_t transpose_out_at(const struct transpose_job<BITS> &job,
                                                           int64_t matrix, int64_t r, int64_t c)
{
    return (matrix * job.cols + c) * job.rows + r;
}

#endif
