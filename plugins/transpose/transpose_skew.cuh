/*
 * A tile of matrices whose rows do not begin at multiples of 16 bytes, moved by 16-byte accesses all the same. Of each row
 * the packs are read that begin where whole 16 bytes do, one more than the row's part of the tile fills. Each is joined with
 * the next lane's and shifted to where the tile begins, then turned and shared as in transpose_tile.cuh. A pack of the
 * answer is joined from two of shared memory, shifted to where whole 16 bytes begin there.
 *
 * What a tile writes of a row of the answer begins and ends where a sector does (of bytes and of two where a pack does), as
 * a sector that two tiles write a part of costs the memory more. So each row's part begins up to a sector earlier than the
 * tile does, and a few rows of the input are read by two tiles.
 */
#ifndef TRANSPOSE_SKEW_CUH
#define TRANSPOSE_SKEW_CUH

#include "transpose_tile.cuh"

template <typename BITS> struct skew_shape {
    typedef tile_shape<BITS> tile;
    static constexpr int BYTES = sizeof(BITS);
    static constexpr int LANES = TILE_ROW_PACKS * (BYTES == 8 ? 2 : 1); /* that read a row */
    static constexpr int COLS = (LANES - 1) * tile::WIDTH; /* as each needs the next one's pack */
    static constexpr int ROWS = tile::SIDE * (BYTES < 4 ? 1 : 2);       /* that are read */
    static constexpr int ALIGN = BYTES < 4 ? PACK_BYTES : SECTOR_BYTES; /* of what is written */
    static constexpr int SHARED_ROWS = ALIGN / BYTES;                   /* that two tiles read */
    static constexpr int HIGH = ROWS - SHARED_ROWS;                     /* rows that are written */
    static constexpr int LANES_OUT = ROWS / tile::WIDTH; /* that write a row of the answer */
    static constexpr int PACKS = 8;                      /* of a thread */
    static constexpr int GROUPS = ROWS / PACKS;          /* threads above each other */
    static constexpr int BLOCK = GROUPS * LANES;         /* threads */
    static constexpr int PIECE_BYTES = tile::PIECE_WORDS * 4;
    static constexpr int ROW_BYTES = ROWS * BYTES; /* of shared memory */
    static constexpr int SHARED_BYTES = COLS * ROW_BYTES;
};

/* A tile in the input: its first element is number `at` of the tensor's `total`, rows are `pitch` apart. */
template <typename BITS> struct skew_source {
    const BITS *in;
    int64_t at, total, pitch;
    int rows, cols; /* what there is of the tile */
};

/* By how many elements `at` is beyond a multiple of `bytes`. */
template <typename BITS> static __device__ __forceinline__ int skew_of(const BITS *at, int bytes)
{
    return (static_cast<int>(reinterpret_cast<uintptr_t>(at)) & (bytes - 1)) /
           static_cast<int>(sizeof(BITS));
}

/* By how many elements `at` is before one. */
template <typename BITS> static __device__ __forceinline__ int skew_to(const BITS *at, int bytes)
{
    return -skew_of(at, bytes) & (bytes / static_cast<int>(sizeof(BITS)) - 1);
}

/* A pack's worth of two packs, from element `skew` of the first on. */
template <typename BITS>
static __device__ __forceinline__ uint4 skew_join(const uint4 &low, const uint4 &high, int skew)
{
    const int bytes = skew * static_cast<int>(sizeof(BITS));
    uint32_t word[] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};

#pragma unroll
    for (int i = 0; i < 6; i++)
        word[i] = bytes & 8 ? word[i + 2] : word[i];
    if constexpr (sizeof(BITS) < 8)
#pragma unroll
        for (int i = 0; i < 5; i++)
            word[i] = bytes & 4 ? word[i + 1] : word[i];
    if constexpr (sizeof(BITS) < 4)
#pragma unroll
        for (int i = 0; i < PACK_WORDS; i++)
            word[i] = __funnelshift_r(word[i], word[i + 1], bytes % 4 * 8);
    return make_uint4(word[0], word[1], word[2], word[3]);
}

/* As one access: assigned, a pack that comes from registers is taken apart into words. */
static __device__ __forceinline__ void skew_write(void *to, const uint4 &v)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
}

/* The row of which a thread's pack `p` is. */
template <typename BITS> static __device__ __forceinline__ int skew_row(int p)
{
    typedef skew_shape<BITS> shape;
    constexpr int high = tile_shape<BITS>::HIGH;

    return (p / high * shape::GROUPS + threadIdx.x / shape::LANES) * high + p % high;
}

/* Reads a thread's packs of the tile, but for those that the tensor has only a part of. */
template <typename BITS>
static __device__ __forceinline__ void skew_load(struct tile_pack *part,
                                                 const struct skew_source<BITS> &from)
{
    typedef skew_shape<BITS> shape;
    constexpr int width = tile_shape<BITS>::WIDTH;
    const int lane = threadIdx.x % shape::LANES;

#pragma unroll
    for (int p = 0; p < shape::PACKS; p++) {
        const int row = skew_row<BITS>(p);
        const int64_t begin = from.at + row * from.pitch;
        const BITS *line = from.in + begin;
        const int col = lane * width - skew_of(line, PACK_BYTES);

        part[p] = {};
        if (row < from.rows && col < from.cols && begin + col >= 0 &&
            begin + col <= from.total - width)
            part[p] = tile_read<TILE_SHARES_LINES>(line + col);
    }
}

/* Makes packs of the tile's own columns of them: each from two, which two lanes have. */
template <typename BITS>
static __device__ __forceinline__ void skew_shift(struct tile_pack *part,
                                                  const struct skew_source<BITS> &from)
{
    typedef skew_shape<BITS> shape;

#pragma unroll
    for (int p = 0; p < shape::PACKS; p++) {
        const BITS *line = from.in + from.at + skew_row<BITS>(p) * from.pitch;
        const struct tile_pack &own = part[p];
        const uint4 next = {__shfl_down_sync(~0u, own.word[0], 1, shape::LANES),
                            __shfl_down_sync(~0u, own.word[1], 1, shape::LANES),
                            __shfl_down_sync(~0u, own.word[2], 1, shape::LANES),
                            __shfl_down_sync(~0u, own.word[3], 1, shape::LANES)};
        const uint4 v =
            skew_join<BITS>(make_uint4(own.word[0], own.word[1], own.word[2], own.word[3]), next,
                            skew_of(line, PACK_BYTES));

        part[p] = {{v.x, v.y, v.z, v.w}};
    }
}

/* Turns a thread's packs into shared memory. The last lane's column is not whole. */
template <typename BITS>
static __device__ __forceinline__ void skew_share(const struct tile_pack *part, char *shared)
{
    typedef skew_shape<BITS> shape;
    typedef tile_shape<BITS> tile;
    const int pack = threadIdx.x % shape::LANES, key = tile_key<BITS>(pack % TILE_ROW_PACKS);

    if (pack == shape::LANES - 1)
        return;
#pragma unroll
    for (int t = 0; t < shape::PACKS / tile::HIGH; t++) {
        const int group = t * shape::GROUPS + threadIdx.x / shape::LANES;
        char *to =
            shared + pack * tile::WIDTH * shape::ROW_BYTES + (group ^ key) * shape::PIECE_BYTES;

        tile_share_pieces<BITS>(part + t * tile::HIGH, to, shape::ROW_BYTES);
    }
}

/* Where the tile's row and column are in shared memory. */
template <typename BITS>
static __device__ __forceinline__ BITS *skew_place(char *shared, int row, int col)
{
    typedef skew_shape<BITS> shape;
    constexpr int high = tile_shape<BITS>::HIGH;
    const int key = tile_key<BITS>(col / tile_shape<BITS>::WIDTH % TILE_ROW_PACKS);
    char *line = shared + col * shape::ROW_BYTES;

    return reinterpret_cast<BITS *>(line + (row / high ^ key) * shape::PIECE_BYTES) + row % high;
}

/* Brings what the tensor has of packs that it has a part of: at its two ends. */
template <typename BITS>
static __device__ __forceinline__ void skew_load_ends(char *shared,
                                                      const struct skew_source<BITS> &from)
{
    constexpr int width = tile_shape<BITS>::WIDTH;

    for (int row = threadIdx.x; row < from.rows; row += skew_shape<BITS>::BLOCK) {
        const int64_t begin = from.at + row * from.pitch;

        for (int col = 0; col < from.cols && begin + col < width; col++)
            *skew_place<BITS>(shared, row, col) = from.in[begin + col];
        for (int col = from.cols - 1; col >= 0 && begin + col > from.total - width; col--)
            *skew_place<BITS>(shared, row, col) = from.in[begin + col];
    }
}

/* Writes the tile's columns as rows, of which the tile's first row is at `to`: of each what begins where a sector or pack
 * does. Of the rows that the tile above reads as well the uppermost tile has none: it begins so many earlier. */
template <typename BITS>
static __device__ __forceinline__ void skew_store(char *shared, BITS *to, int64_t pitch, int rows,
                                                  int cols, int shared_rows)
{
    typedef skew_shape<BITS> shape;
    constexpr int width = tile_shape<BITS>::WIDTH, side = tile_shape<BITS>::SIDE;
    const int lane = threadIdx.x % shape::LANES_OUT;

#pragma unroll 2
    for (int col = threadIdx.x / shape::LANES_OUT; col < cols;
         col += shape::BLOCK / shape::LANES_OUT) {
        BITS *line = to + col * pitch;
        const int shift = skew_to(line, shape::ALIGN);
        const int first = shared_rows > 0 ? shift : 0;
        const int end =
            max(min(shift + shared_rows - shape::SHARED_ROWS + shape::HIGH, rows), first);
        const int body = min(first + skew_to(line + first, PACK_BYTES), end);
        const int body_end = end - (end - body) % width;
        const int row = body + lane * width;

        if (row < body_end) {
            const char *turned = shared + col * shape::ROW_BYTES;
            const int low = row / width, high = (low + 1) % shape::LANES_OUT;

            skew_write(line + row, skew_join<BITS>(tile_unswizzle<BITS>(turned, col % side, low),
                                                   tile_unswizzle<BITS>(turned, col % side, high),
                                                   row % width));
        }
        for (int i = first + lane; i < end - (body_end - body); i += shape::LANES_OUT) {
            const int single = i < body ? i : i + body_end - body;

            line[single] = *skew_place<BITS>(shared, single, col);
        }
    }
}

#endif
