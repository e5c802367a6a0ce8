/*
 * A tile of matrices whose rows do not begin at multiples of 16 bytes. Elements are moved one by one, but each
 * access of a warp begins where a line does (32 elements of 4 bytes, a sector of bytes), on both sides: as rows
 * begin anywhere, that takes one access more per row, of which the ends are masked.
 *
 * What a tile writes of a row of the answer begins and ends where a sector does, as a sector that two tiles write a part
 * of costs the memory more. So each row's part begins up to a sector earlier than the tile does, and a few rows of the
 * input are read by two tiles. Not so those of bytes and of two, which would be many, and are not what memory waits for.
 */
#ifndef TRANSPOSE_LINES_CUH
#define TRANSPOSE_LINES_CUH

#include "transpose_device.cuh"

enum {
    LINES_BLOCK = 512,
    LINES_WARPS = LINES_BLOCK / 32,
    LINES_ROWS_LEAST = 96, /* of a tile: one batch of loads, or two of 8-byte elements */
    LINES_ROWS_MOST = 2 * LINES_ROWS_LEAST,
    LINES_SECTOR_BYTES = 32,
};

template <typename BITS> struct lines_shape {
    static constexpr int BYTES = sizeof(BITS);
    static constexpr int COLS = BYTES == 8 ? 64 : 128;               /* of a tile */
    static constexpr int PITCH = COLS + (BYTES < 4 ? 4 / BYTES : 1); /* an odd number of banks */
    static constexpr int PIECES = COLS / 32 + 1;                     /* accesses to a row */
    static constexpr int DEEP = BYTES == 8 ? 3 : 6; /* rows of a warp in flight at once */
    static constexpr int PIECES_OUT = LINES_ROWS_MOST / 32 + 1;
    static constexpr int SECTOR = LINES_SECTOR_BYTES / BYTES;
    static constexpr int SHARED_ROWS = BYTES < 4 ? 0 : SECTOR; /* that two tiles read */
};

/* What there is of a tile. */
struct lines_size {
    int rows, cols;
};

/* By how many elements `at` is beyond a multiple of 32. */
template <typename BITS> static __device__ __forceinline__ int lines_skew(const BITS *at)
{
    return static_cast<int>(reinterpret_cast<uintptr_t>(at) / sizeof(BITS) % 32);
}

/* Whether 0 <= i < end. */
static __device__ __forceinline__ bool lines_within(int i, int end)
{
    return static_cast<unsigned>(i) < static_cast<unsigned>(end);
}

/* Brings the tile at `from` to shared memory. What is outside the matrix but inside the tile becomes 0: were
 * stores masked like loads, their predicates would have to live as long as the loads, and there are seven. */
template <typename BITS>
static __device__ __forceinline__ void lines_load(BITS *shared, const BITS *from, int64_t pitch,
                                                  struct lines_size size)
{
    typedef lines_shape<BITS> shape;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

#pragma unroll 1
    for (int first = warp; first - warp < size.rows; first += LINES_WARPS * shape::DEEP) {
        BITS value[shape::DEEP][shape::PIECES];
        int col[shape::DEEP];

#pragma unroll
        for (int i = 0; i < shape::DEEP; i++) {
            const int row = first + i * LINES_WARPS, cols = row < size.rows ? size.cols : 0;
            const BITS *line = from + row * pitch;

            col[i] = lane - lines_skew(line);
#pragma unroll
            for (int k = 0; k < shape::PIECES; k++) {
                value[i][k] = 0;
                if (lines_within(col[i] + k * 32, cols))
                    value[i][k] = transpose_read(line + col[i] + k * 32);
            }
        }
#pragma unroll
        for (int i = 0; i < shape::DEEP; i++) {
            BITS *line = shared + (first + i * LINES_WARPS) * shape::PITCH;

#pragma unroll
            for (int k = 0; k < shape::PIECES; k++)
                if (lines_within(col[i] + k * 32, shape::COLS))
                    line[col[i] + k * 32] = value[i][k];
        }
    }
}

/* Writes the tile's columns as rows, of which the tile's first row is at `to`: `high` rows, from the first sector that
 * begins in the tile on. Of those that the tile above reads as well the uppermost tile has none, which begins to write so
 * many rows earlier. */
template <typename BITS>
static __device__ __forceinline__ void lines_store(const BITS *shared, BITS *to, int64_t pitch,
                                                   struct lines_size size, int shared_rows,
                                                   int high)
{
    typedef lines_shape<BITS> shape;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

#pragma unroll 2
    for (int col = warp; col < size.cols; col += LINES_WARPS) {
        BITS *line = to + col * pitch;
        const int skew = lines_skew(line);
        const int shift = shape::SHARED_ROWS > 0 ? -skew & (shape::SECTOR - 1) : 0;
        const int first = shared_rows > 0 ? shift : 0;
        const int end = max(min(shift + shared_rows - shape::SHARED_ROWS + high, size.rows), first);

#pragma unroll
        for (int k = 0; k < shape::PIECES_OUT; k++) {
            const int row = k * 32 + lane - skew;

            if (lines_within(row - first, end - first))
                line[row] = shared[row * shape::PITCH + col];
        }
    }
}

/* Rows of a tile: the most where there are as many and shared memory has room for two blocks. */
template <typename BITS> static inline int lines_rows(const struct gpurun_ctx *ctx)
{
    const size_t most = LINES_ROWS_MOST * lines_shape<BITS>::PITCH * sizeof(BITS);
    const bool has_room = 2 * most <= ctx->device.shared_bytes;

    return has_room && transpose_options_of(ctx)->rows > LINES_ROWS_LEAST ? LINES_ROWS_MOST
                                                                          : LINES_ROWS_LEAST;
}

#endif
