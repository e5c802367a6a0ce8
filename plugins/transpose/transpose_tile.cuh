/*
 * A tile of 256 by 256 bytes' worth of elements, moved by 16-byte accesses. Each thread reads a few packs of 16
 * bytes, one below the other, turns them in registers, and leaves the pieces of columns in shared memory; the
 * tile's columns are then read from there and written by 16-byte packs again.
 *
 * Pieces of one row of shared memory lie swizzled: exchanged by an exclusive or with a number of the row, such
 * that the lanes which access shared memory at once touch all banks alike, both when they write and read.
 */
#ifndef TRANSPOSE_TILE_CUH
#define TRANSPOSE_TILE_CUH

#include "transpose_device.cuh"

enum {
    PACK_BYTES = 16,
    PACK_WORDS = 4,
    SECTOR_BYTES = 32,
    LINE_BYTES = 128,
    TILE_ROW_BYTES = 256,
    TILE_ROW_PACKS = 16
};

struct __align__(16) tile_pack
{
    uint32_t word[PACK_WORDS];
};

template <typename BITS> struct tile_shape {
    static constexpr int BYTES = sizeof(BITS);
    static constexpr int WIDTH = PACK_BYTES / BYTES;      /* elements of a pack */
    static constexpr int SIDE = TILE_ROW_BYTES / BYTES;   /* of the tile, in elements */
    static constexpr int HIGH = BYTES == 1 ? 8 : WIDTH;   /* packs turned together */
    static constexpr int TURNS = BYTES == 8 ? 2 : 1;      /* how often a thread turns some */
    static constexpr int PACKS = HIGH * TURNS;            /* of a thread */
    static constexpr int GROUPS = SIDE / PACKS;           /* threads above each other */
    static constexpr int BLOCK = GROUPS * TILE_ROW_PACKS; /* threads */
    static constexpr int PIECE_WORDS = HIGH * BYTES / 4;  /* of a column, as a thread has it */
    static constexpr int SHARED_BYTES = SIDE * TILE_ROW_BYTES;
};

/* A thread's part of a tile. */
template <typename BITS> struct tile_part {
    struct tile_pack pack[tile_shape<BITS>::PACKS];
};

/* What a tile's row `pack` of packs is exchanged with. Pieces of 8 bytes: 16 lanes write at once, and the row's
 * lowest bit comes from packs that are 8 apart. */
template <typename BITS> static __device__ __forceinline__ int tile_key(int pack)
{
    return tile_shape<BITS>::PIECE_WORDS == PACK_WORDS ? pack : pack % 8 * 2 + pack / 8;
}

/* What a tile is read from. */
enum tile_source {
    TILE_CHANGES, /* is written to while the kernel runs, which the read-only path does not allow */
    TILE_LINES,   /* rows are multiples of a line: the tile has its lines for itself */
    TILE_SHARES_LINES,
};

template <enum tile_source SOURCE>
static __device__ __forceinline__ struct tile_pack tile_read(const void *from)
{
    const uint4 *at = static_cast<const uint4 *>(from);
    const uint4 v = SOURCE == TILE_CHANGES ? *at
                    : SOURCE == TILE_LINES ? __ldg(at)
                                           : transpose_read(at);

    return {{v.x, v.y, v.z, v.w}};
}

/* Reads what there is, up to `rows` and `cols`, of the tile that begins at `from`. */
template <typename BITS, enum tile_source SOURCE>
static __device__ __forceinline__ void tile_load(struct tile_part<BITS> &part, const BITS *from,
                                                 int64_t pitch, int64_t rows, int64_t cols)
{
    typedef tile_shape<BITS> shape;
    const int col = threadIdx.x % TILE_ROW_PACKS * shape::WIDTH;

#pragma unroll
    for (int p = 0; p < shape::PACKS; p++) {
        const int group = p / shape::HIGH * shape::GROUPS + threadIdx.x / TILE_ROW_PACKS;
        const int row = group * shape::HIGH + p % shape::HIGH;

        part.pack[p] = {};
        if (row < rows && col < cols)
            part.pack[p] = tile_read<SOURCE>(from + row * pitch + col);
    }
}

/* Bytes a0 a1 a2 a3 and so on become a0 b0 c0 d0 and so on. */
static __device__ __forceinline__ void tile_turn_bytes(uint32_t a, uint32_t b, uint32_t c,
                                                       uint32_t d, uint32_t (&turned)[4])
{
    const uint32_t ab_low = __byte_perm(a, b, 0x5140), ab_high = __byte_perm(a, b, 0x7362);
    const uint32_t cd_low = __byte_perm(c, d, 0x5140), cd_high = __byte_perm(c, d, 0x7362);

    turned[0] = __byte_perm(ab_low, cd_low, 0x5410);
    turned[1] = __byte_perm(ab_low, cd_low, 0x7632);
    turned[2] = __byte_perm(ab_high, cd_high, 0x5410);
    turned[3] = __byte_perm(ab_high, cd_high, 0x7632);
}

/* HIGH packs below each other become WIDTH pieces of columns beside each other. */
template <typename BITS>
static __device__ __forceinline__ void
tile_turn(const struct tile_pack *pack,
          uint32_t (&piece)[tile_shape<BITS>::WIDTH][tile_shape<BITS>::PIECE_WORDS])
{
    typedef tile_shape<BITS> shape;

#pragma unroll
    for (int w = 0; w < shape::PIECE_WORDS; w++)
#pragma unroll
        for (int c = 0; c < shape::WIDTH; c++) {
            if constexpr (shape::BYTES == 8) {
                piece[c][w] = pack[w / 2].word[c * 2 + w % 2];
            } else if constexpr (shape::BYTES == 4) {
                piece[c][w] = pack[w].word[c];
            } else if constexpr (shape::BYTES == 2) {
                piece[c][w] = __byte_perm(pack[2 * w].word[c / 2], pack[2 * w + 1].word[c / 2],
                                          c % 2 == 0 ? 0x5410 : 0x7632);
            } else if (c % 4 == 0) {
                uint32_t turned[4];

                tile_turn_bytes(pack[4 * w].word[c / 4], pack[4 * w + 1].word[c / 4],
                                pack[4 * w + 2].word[c / 4], pack[4 * w + 3].word[c / 4], turned);
#pragma unroll
                for (int i = 0; i < 4; i++)
                    piece[c + i][w] = turned[i];
            }
        }
}

/* Turns packs into pieces of columns, one below the other from `to` on. */
template <typename BITS>
static __device__ __forceinline__ void tile_share_pieces(const struct tile_pack *pack, char *to,
                                                         int row_bytes)
{
    typedef tile_shape<BITS> shape;
    uint32_t piece[shape::WIDTH][shape::PIECE_WORDS];

    tile_turn<BITS>(pack, piece);
#pragma unroll
    for (int c = 0; c < shape::WIDTH; c++, to += row_bytes) {
        if constexpr (shape::PIECE_WORDS == PACK_WORDS)
            *reinterpret_cast<uint4 *>(to) =
                make_uint4(piece[c][0], piece[c][1], piece[c][2], piece[c][3]);
        else
            *reinterpret_cast<uint2 *>(to) = make_uint2(piece[c][0], piece[c][1]);
    }
}

/* Turns a thread's part of the tile into shared memory. */
template <typename BITS>
static __device__ __forceinline__ void tile_share(const struct tile_part<BITS> &part, char *shared)
{
    typedef tile_shape<BITS> shape;
    const int pack = threadIdx.x % TILE_ROW_PACKS, key = tile_key<BITS>(pack);

#pragma unroll
    for (int t = 0; t < shape::TURNS; t++) {
        const int group = t * shape::GROUPS + threadIdx.x / TILE_ROW_PACKS;
        char *to =
            shared + pack * shape::WIDTH * TILE_ROW_BYTES + (group ^ key) * shape::PIECE_WORDS * 4;

        tile_share_pieces<BITS>(part.pack + t * shape::HIGH, to, TILE_ROW_BYTES);
    }
}

/* Pack `pack` of row `row` of the turned tile, which is at `line`, pieces put in order again. */
template <typename BITS>
static __device__ __forceinline__ uint4 tile_unswizzle(const char *line, int row, int pack)
{
    const int key = tile_key<BITS>(row / tile_shape<BITS>::WIDTH);
    const uint4 *packs = reinterpret_cast<const uint4 *>(line);

    if constexpr (tile_shape<BITS>::PIECE_WORDS == PACK_WORDS) {
        return packs[pack ^ key];
    } else {
        const uint4 v = packs[pack ^ key / 2];

        return key % 2 == 0 ? v : make_uint4(v.z, v.w, v.x, v.y);
    }
}

/* Writes what there is, up to `rows` and `cols`, of the turned tile to where it begins. */
template <typename BITS>
static __device__ __forceinline__ void tile_store(const char *shared, BITS *to, int64_t pitch,
                                                  int64_t rows, int64_t cols)
{
    typedef tile_shape<BITS> shape;
    const int pack = threadIdx.x % TILE_ROW_PACKS, col = pack * shape::WIDTH;

#pragma unroll
    for (int p = 0; p < shape::PACKS; p++) {
        const int row = p * shape::GROUPS + threadIdx.x / TILE_ROW_PACKS;

        if (row < rows && col < cols)
            *reinterpret_cast<uint4 *>(to + row * pitch + col) =
                tile_unswizzle<BITS>(shared + row * TILE_ROW_BYTES, row, pack);
    }
}

/* Whether a tensor and its rows begin at multiples of `bytes`: of a pack, of a line. */
static inline bool tile_is_aligned(const void *data, int64_t cols, size_t elem_bytes, int bytes)
{
    return reinterpret_cast<uintptr_t>(data) % bytes == 0 &&
           cols * static_cast<int64_t>(elem_bytes) % bytes == 0;
}

/* More shared memory than a kernel may have unasked. */
#define TILE_ALLOW_SHARED(ctx, kernel, bytes)                                                      \
    GPURUN_CUDA_TRY(ctx, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, \
                                              static_cast<int>(bytes)))

#endif
