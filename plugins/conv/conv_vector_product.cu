/*
 * conv, variant "vector": bytes by masks that are the product of a column and a row, through tensor cores.
 *
 * Along the row: 16 results of a row of the image are a product of a band matrix of the mask's row, 16 x 32 KS, with the
 * bytes around them (mma m16n8k32, signed bytes by bytes into int32), 8 rows of the image at a time. Weights have two
 * digits of base 128, so two products make the sums. Down the column: the sums of 16 rows are cut in two pieces of 10
 * bits, which as halves are the other factor of a band matrix of the mask's column (mma m16n8k16 into float): 16 results
 * of 8 rows. What a lane holds of the first product is what it must hold of the second one's factor: nothing moves
 * between lanes until the results are bytes.
 *
 * All is exact. Sums along the row are within 2^19; 2^19 is added, so that pieces are from 0 to 1023, and a half of 1024 +
 * piece is 0x6400 with the piece in its lowest bits. Sums of those times the column's weights are within 2^22; floats begin
 * as 1.5 * 2^23, so that their bits are an integer's. What was added comes off at the end, in one constant.
 *
 * Mapping  a block of 8 warps takes 256 elements of a band of rows and walks down, 16 rows a stage (conv_lines.cuh), 32
 *          elements a warp. The pieces of the last BLOCKS stages stay in registers.
 * Memory   each row is read (band + height - 1) / band * (256 + halo) / 256 times in all. Results leave as 8 bytes a lane,
 *          32 a row.
 * Bound    tensor instructions: per 512 results 8 KS along the row and 8 BLOCKS down the column.
 * Limits   the mask must be a product of whole numbers whose magnitudes add up to 2055 along the row and 2048 down the
 *          column; compute capability 8.0.
 */
#include "conv_lines.cuh"
#include "conv_vector.h"
#include "gpurun/half.h"

enum {
    PRODUCT_WARPS = 8,
    PRODUCT_WARP_ELEMS = 32,
    PRODUCT_BLOCK = 32 * PRODUCT_WARPS,
    PRODUCT_ELEMS = PRODUCT_WARPS * PRODUCT_WARP_ELEMS,
    PRODUCT_ROWS = 16, /* of a stage */
    PRODUCT_STAGES = 5,
    PRODUCT_TURNS = 16, /* stages' rows of results of a block: at most, and where blocks are few */
    PRODUCT_TURNS_LEAST = 2,
    PRODUCT_PIECE_BITS = 10,
    PRODUCT_DIGIT_BITS = 7,
    PRODUCT_ROW_MAX = 2055, /* 255 times it is below 2^19 */
    PRODUCT_COLUMN_MAX = 2048,
};

#define PRODUCT_OFFSET   (1 << 19)
#define PRODUCT_MAGIC    0x4B400000u /* the bits of 1.5 * 2^23 */
#define PRODUCT_ONE      0x64006400u /* two halves of 1024 */
#define PRODUCT_LOW_BITS 0x03FF03FFu

/* The band matrices as what stands on their diagonals. KS: products along the row, of 32 bytes each; BLOCKS: down the
 * column, of 16 rows each. */
template <int KS, int BLOCKS> struct product_mask {
    uint32_t row[2][8 * KS +
                    5]; /* two digits: byte i is of element k and result m with k - m = i - 15 */
    uint16_t column[16 * BLOCKS + 16]; /* halves: i is of row k and result n with k - n = i - 15 */
    int32_t lead;    /* elements before 16 results that the row's band begins with */
    uint32_t excess; /* what sums are too large by */
};

template <int KS> static __host__ __device__ constexpr int product_span()
{
    return PRODUCT_ELEMS + 32 * KS;
}

template <int KS>
struct product_ring : conv_ring<uint8_t, product_span<KS>(), PRODUCT_ROWS, PRODUCT_STAGES> {
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/* Both band matrices as a lane holds them. */
template <int KS, int BLOCKS> struct product_factors {
    uint32_t row[KS][2][4];
    uint32_t column[2][BLOCKS][2]; /* of results 0 to 7, and 8 to 15 */
};

/* Where a lane stands: of its warp's 32 elements it stores 8, of one row of 8. */
struct product_lane {
    int32_t e;    /* the first of its 8 elements */
    int quarter;  /* which of the four lanes of a row it is */
    bool has_all; /* all of the warp's results are in the image, and none in the frame */
};

/* sums += a * b, signed bytes by bytes */
static __device__ __forceinline__ void product_add_bytes(int32_t (&sums)[4], const uint32_t (&a)[4],
                                                         uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* sums += a * b, halves; sums are the bits of floats */
static __device__ __forceinline__ void
product_add_halves(uint32_t (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Of a matrix of 8 x 8 pairs of bytes, two of a row in each lane, the same of its transpose. */
static __device__ __forceinline__ uint32_t product_transpose(uint32_t pairs)
{
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(pairs));
    return pairs;
}

/* Four saturated bytes, the first lowest. */
static __device__ __forceinline__ uint32_t product_pack(int32_t a, int32_t b, int32_t c, int32_t d)
{
    uint32_t high, all;

    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(d), "r"(c));
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(b), "r"(a), "r"(high));
    return all;
}

/* Four bytes from byte `at` on, of words. */
static __device__ __forceinline__ uint32_t product_word(const uint32_t *words, int at)
{
    return __funnelshift_r(words[at / 4], words[at / 4 + 1], 8 * (at % 4));
}

template <int KS, int BLOCKS>
static __device__ __forceinline__ void
product_find_factors(const struct product_mask<KS, BLOCKS> &mask,
                     struct product_factors<KS, BLOCKS> *factors)
{
    const int group = threadIdx.x % 32 / 4, quarter = threadIdx.x % 4;

#pragma unroll
    for (int k = 0; k < KS; k++)
#pragma unroll
        for (int digit = 0; digit < 2; digit++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                factors->row[k][digit][i] =
                    product_word(mask.row[digit],
                                 32 * k + 16 * (i / 2) + 4 * quarter - group - 8 * (i % 2) + 15);
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int q = 0; q < BLOCKS; q++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int at = 16 * q + 2 * quarter + 8 * i - 8 * half - group + 15;

                factors->column[half][q][i] =
                    mask.column[at] | static_cast<uint32_t>(mask.column[at + 1]) << 16;
            }
}

/* Two sums along the row to the pieces that two halves hold: the low and the high. */
static __device__ __forceinline__ void product_cut(int32_t a, int32_t b, uint32_t *low,
                                                   uint32_t *high)
{
    *low = (__byte_perm(a, b, 0x5410) & PRODUCT_LOW_BITS) | PRODUCT_ONE;
    *high =
        (__byte_perm(a, b, 0x6521) >> (PRODUCT_PIECE_BITS - 8) & PRODUCT_LOW_BITS) | PRODUCT_ONE;
}

/* Word i of a line that begins `shift` bytes before it is due. */
template <bool IS_ALIGNED>
static __device__ __forceinline__ uint32_t product_word_at(const uint32_t *line, int i, int shift)
{
    return IS_ALIGNED ? line[i] : __funnelshift_r(line[i], line[i + 1], 8 * shift);
}

/* Along the row: 8 lines, of which the lane loads its own, into half `part` of the pieces of a block of 16. */
template <int KS, int BLOCKS, bool IS_ALIGNED>
static __device__ __forceinline__ void
product_along(const struct product_factors<KS, BLOCKS> &factors, const uint32_t *line, int shift,
              int part, uint32_t (&pieces)[2][2][4])
{
    uint32_t words[2 * KS + 1];

#pragma unroll
    for (int i = 0; i < 2 * KS + 1; i++)
        words[i] = product_word_at<IS_ALIGNED>(line, 4 * i, shift);
#pragma unroll
    for (int side = 0; side < 2; side++) {
        int32_t low[4] = {PRODUCT_OFFSET, PRODUCT_OFFSET, PRODUCT_OFFSET, PRODUCT_OFFSET};
        int32_t high[4] = {0, 0, 0, 0};

#pragma unroll
        for (int k = 0; k < KS; k++) {
            product_add_bytes(low, factors.row[k][0], words[side + 2 * k], words[side + 2 * k + 1]);
            product_add_bytes(high, factors.row[k][1], words[side + 2 * k],
                              words[side + 2 * k + 1]);
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            low[i] += high[i] << PRODUCT_DIGIT_BITS;
        product_cut(low[0], low[1], &pieces[side][0][2 * part], &pieces[side][1][2 * part]);
        product_cut(low[2], low[3], &pieces[side][0][2 * part + 1], &pieces[side][1][2 * part + 1]);
    }
}

/* Down the column: the sums of 16 elements of 8 rows. */
template <int BLOCKS>
static __device__ __forceinline__ void product_down(const uint32_t (&column)[BLOCKS][2],
                                                    const uint32_t (&pieces)[BLOCKS][2][2][4],
                                                    int side, uint32_t excess, int32_t (&sums)[4])
{
    uint32_t low[4] = {PRODUCT_MAGIC, PRODUCT_MAGIC, PRODUCT_MAGIC, PRODUCT_MAGIC};
    uint32_t high[4] = {PRODUCT_MAGIC, PRODUCT_MAGIC, PRODUCT_MAGIC, PRODUCT_MAGIC};

#pragma unroll
    for (int q = 0; q < BLOCKS; q++) {
        product_add_halves(low, pieces[q][side][0], column[q]);
        product_add_halves(high, pieces[q][side][1], column[q]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        sums[i] = static_cast<int32_t>((high[i] << PRODUCT_PIECE_BITS) + low[i] - excess);
}

/* The results of a lane's elements m and m + 8 of two rows, as bytes in this order: m, m + 8 of the one row, and of the
 * other. IS_FAST: sums have what is added in them, and need only be shifted. */
template <bool IS_FAST>
static __device__ __forceinline__ uint32_t product_finish(const struct conv_tail &tail,
                                                          const int32_t (&sums)[4])
{
    const int shift = tail.shift;

    if (IS_FAST)
        return product_pack(sums[0] >> shift, sums[2] >> shift, sums[1] >> shift, sums[3] >> shift);
    if (tail.is_wide)
        return product_pack(conv_tail_wide(sums[0], &tail), conv_tail_wide(sums[2], &tail),
                            conv_tail_wide(sums[1], &tail), conv_tail_wide(sums[3], &tail));
    return product_pack(conv_tail_narrow(sums[0], &tail), conv_tail_narrow(sums[2], &tail),
                        conv_tail_narrow(sums[1], &tail), conv_tail_narrow(sums[3], &tail));
}

/* From transposed results, of which each of the four lanes of a row has elements 2 quarter, + 8, + 1, + 9 of either 16, to
 * 8 neighbours a lane. */
static __device__ __forceinline__ uint2 product_trade(int quarter, uint32_t left, uint32_t right)
{
    const uint32_t lefts = __byte_perm(left, 0, 0x3120), rights = __byte_perm(right, 0, 0x3120);
    const bool is_upper = quarter >= 2, is_odd = quarter % 2 == 1;
    const uint32_t mine = is_upper ? rights : lefts;
    const uint32_t theirs = __shfl_xor_sync(~0u, is_upper ? lefts : rights, 2);
    const uint32_t kept = __byte_perm(mine, theirs, is_odd ? 0x7632 : 0x5410);
    const uint32_t other =
        __shfl_xor_sync(~0u, __byte_perm(mine, theirs, is_odd ? 0x5410 : 0x7632), 1);
    const uint32_t lows = __byte_perm(kept, other, is_odd ? 0x1054 : 0x5410);
    const uint32_t highs = __byte_perm(kept, other, is_odd ? 0x3276 : 0x7632);

    return is_upper ? make_uint2(highs, lows) : make_uint2(lows, highs);
}

/* Stores 8 bytes at `to`, from any byte on, in words as far as they are the row's of 32: the lane takes over what spills
 * from the one before. */
static __device__ __forceinline__ void product_store_shifted(int quarter, bool is_row, uint8_t *to,
                                                             uint2 bytes)
{
    const unsigned past = static_cast<unsigned>(reinterpret_cast<uintptr_t>(to) % 4);
    const uint32_t before = __shfl_sync(~0u, bytes.y, (threadIdx.x + 31) % 32);
    const uint32_t first = __funnelshift_l(before, bytes.x, 8 * past);
    uint8_t *base = to - past;

    if (!is_row)
        return;
    reinterpret_cast<uint32_t *>(base)[1] = __funnelshift_l(bytes.x, bytes.y, 8 * past);
    if (quarter > 0 || past == 0)
        reinterpret_cast<uint32_t *>(base)[0] = first;
    else
        for (unsigned b = past; b < 4; b++)
            base[b] = static_cast<uint8_t>(first >> 8 * b);
    if (quarter == 3)
        for (unsigned b = 0; b < past; b++)
            base[8 + b] = static_cast<uint8_t>(bytes.y >> (32 - 8 * (past - b)));
}

/* Stores 8 results of row y, byte by byte, those past the end left out. */
static __device__ __forceinline__ void product_store_each(const struct conv_job &job, int32_t e,
                                                          int32_t y, uint2 bytes)
{
    uint8_t *to = static_cast<uint8_t *>(job.out) + y * job.out_pitch + e;

#pragma unroll 1
    for (int b = 0; b < 8 && e + b < job.out_elems; b++)
        to[b] = conv_is_framed(job, e + b, y)
                    ? static_cast<uint8_t>(job.fill)
                    : static_cast<uint8_t>((b < 4 ? bytes.x : bytes.y) >> (8 * (b % 4)));
}

/* 8 rows of results: the lane stores of row y, if that is_row of the tile. */
template <bool IS_ALIGNED, bool IS_FAST>
static __device__ __forceinline__ void product_store(const struct conv_job &job,
                                                     const struct product_lane &mine, int32_t y,
                                                     bool is_row, uint2 bytes)
{
    uint8_t *to = static_cast<uint8_t *>(job.out) + y * job.out_pitch + mine.e;

    if (!IS_FAST && !mine.has_all) {
        if (is_row)
            product_store_each(job, mine.e, y, bytes);
    } else if (!IS_ALIGNED) {
        product_store_shifted(mine.quarter, is_row, to, bytes);
    } else if (is_row) {
        *reinterpret_cast<uint2 *>(to) = bytes;
    }
}

/* Before stage s, in turn: what fills the ring. */
template <bool IS_ALIGNED, int KS>
static __device__ __forceinline__ void
product_fill(const struct conv_job &job, const struct conv_tile &tile, int s, int readers,
             const struct conv_window &window, struct product_ring<KS> *ring)
{
    const int last = window.has_edges ? s + 1 : s - 2;

    if (s % readers == static_cast<int>(threadIdx.x / 32))
#pragma unroll 1
        for (int step = s == 0 ? 0 : last; step <= last; step++)
            conv_fill_stage<IS_ALIGNED>(job, tile, step, window, ring);
}

/* A warp's part of the tile. IS_FAST: it has_all, and sums need only be shifted. */
template <int KS, int BLOCKS, bool IS_ALIGNED, bool IS_FAST>
static __device__ __forceinline__ void
product_walk(const struct conv_job &job, const struct conv_tile &tile,
             const struct conv_window &window, int readers, const struct product_lane &mine,
             const struct product_mask<KS, BLOCKS> &mask, struct product_ring<KS> *ring)
{
    const int group = threadIdx.x % 32 / 4, warp = threadIdx.x / 32;
    const int place =
        (PRODUCT_WARP_ELEMS * warp + tile.e - mask.lead - tile.begin) / 4 + mine.quarter;
    const uint32_t excess = mask.excess - (IS_FAST ? static_cast<uint32_t>(job.tail.add) : 0);
    struct product_factors<KS, BLOCKS> factors;
    uint32_t pieces[BLOCKS][2][2][4] = {};

    product_find_factors(mask, &factors);
#pragma unroll 1
    for (int s = 0; (s - BLOCKS + 1) * PRODUCT_ROWS < tile.rows; s++) {
#pragma unroll
        for (int i = 0; i < 16 * (BLOCKS - 1); i++)
            pieces[i / 16][i / 8 % 2][i / 4 % 2][i % 4] =
                pieces[i / 16 + 1][i / 8 % 2][i / 4 % 2][i % 4];
        if (s * PRODUCT_ROWS < tile.lines) {
            product_fill<IS_ALIGNED>(job, tile, s, readers, window, ring);
            conv_await_stage(s, ring);
#pragma unroll
            for (int part = 0; part < 2; part++) {
                const int line = 8 * part + group;
                const int shift =
                    conv_shift<IS_ALIGNED, uint8_t>(job, tile, s * PRODUCT_ROWS + line);

                product_along<KS, BLOCKS, IS_ALIGNED>(
                    factors,
                    reinterpret_cast<const uint32_t *>(ring->lines[s % PRODUCT_STAGES][line]) +
                        shift / 4 + place,
                    shift, part, pieces[BLOCKS - 1]);
            }
            conv_leave_stage(s, ring);
        }
        if (s < BLOCKS - 1)
            continue;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int row = (s - BLOCKS + 1) * PRODUCT_ROWS + 8 * half + group;
            uint32_t sides[2];

#pragma unroll
            for (int side = 0; side < 2; side++) {
                int32_t sums[4];

                product_down<BLOCKS>(factors.column[half], pieces, side, excess, sums);
                sides[side] = product_transpose(product_finish<IS_FAST>(job.tail, sums));
            }
            product_store<IS_ALIGNED, IS_FAST>(job, mine, tile.y + row, row < tile.rows,
                                               product_trade(mine.quarter, sides[0], sides[1]));
        }
    }
}
#endif

/* IS_ALIGNED: rows of the image begin at multiples of 16 bytes, of the answer of 8. */
template <int KS, int BLOCKS, bool IS_ALIGNED>
static __global__ void __launch_bounds__(PRODUCT_BLOCK, KS == 2 ? 2 : 1)
    conv_vector_product_kernel(const struct conv_job job,
                               const struct product_mask<KS, BLOCKS> mask, int band)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    __shared__ struct product_ring<KS> ring;
    __shared__ struct product_mask<KS, BLOCKS> shared_mask;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int32_t margin = job.border == CONV_FRAME ? job.mask_width / 2 * job.channels : 0;
    const int32_t radius = job.border == CONV_FRAME ? job.mask_height / 2 : 0;
    struct product_lane mine;
    struct conv_tile tile;

    tile.e = static_cast<int32_t>(blockIdx.x % job.tiles_x) * PRODUCT_ELEMS;
    tile.y = static_cast<int32_t>(blockIdx.x / job.tiles_x) * band;
    tile.top = tile.y + job.first_y;
    tile.rows = min(band, job.out_height - tile.y);
    tile.lines = tile.rows + job.mask_height - 1;
    tile.begin = tile.e - (mask.lead + 15) / 16 * 16;
    tile.reach = (job.mask_width - 1) * job.channels + job.first_e;

    const int readers =
        min(PRODUCT_WARPS, (job.out_elems - tile.e + PRODUCT_WARP_ELEMS - 1) / PRODUCT_WARP_ELEMS);
    const struct conv_window window =
        conv_find_window<IS_ALIGNED, uint8_t>(job, tile, PRODUCT_ELEMS);
    if (warp == 0)
        conv_begin_ring<IS_ALIGNED>(job, tile, window, readers, &ring);
    for (int i = threadIdx.x; i < static_cast<int>(sizeof mask / 4); i += PRODUCT_BLOCK)
        reinterpret_cast<uint32_t *>(&shared_mask)[i] =
            reinterpret_cast<const uint32_t *>(&mask)[i];
    __syncthreads();
    if (warp >= readers)
        return;

    const int32_t first = tile.e + PRODUCT_WARP_ELEMS * warp;
    mine.quarter = lane % 4;
    mine.e = first + 8 * mine.quarter;
    mine.has_all = first >= margin && first + PRODUCT_WARP_ELEMS <= job.out_elems - margin &&
                   tile.y >= radius && tile.y + tile.rows <= job.out_height - radius;
    if (mine.has_all && conv_tail_only_shifts(&job.tail))
        product_walk<KS, BLOCKS, IS_ALIGNED, true>(job, tile, window, readers, mine, shared_mask,
                                                   &ring);
    else
        product_walk<KS, BLOCKS, IS_ALIGNED, false>(job, tile, window, readers, mine, shared_mask,
                                                    &ring);
#endif
}

/* --- host ------------------------------------------------------------------------------------------------- */

/* Elements that the band along the row begins with before the results: a multiple of 4, so that words do. */
static int product_lead(const struct conv_job *job)
{
    return (3 - job->first_e) / 4 * 4;
}

/* Products along the row that a mask takes. */
static int product_depth(const struct conv_job *job)
{
    const int reach = (job->mask_width - 1) * job->channels + job->first_e;

    return (product_lead(job) + 16 + reach + 31) / 32;
}

/* Weight of the mask's row for the element that stands `distance` behind the first of them. */
static int32_t product_weight(const struct conv_mask *mask, int channels, int distance)
{
    if (distance < 0 || distance % channels != 0 || distance / channels >= mask->width)
        return 0;
    return mask->row[distance / channels];
}

/* The lower digit of a weight is from -64 to 63. */
static int32_t product_low_digit(int32_t weight)
{
    return ((weight + 64) & 127) - 64;
}

template <int KS, int BLOCKS>
static void product_set_mask(const struct conv_mask *mask, const struct conv_job *job,
                             struct product_mask<KS, BLOCKS> *to)
{
    uint32_t sum = 0;

    memset(to, 0, sizeof *to);
    to->lead = product_lead(job);
    for (int i = 0; i < 32 * KS + 15; i++) {
        const int32_t weight =
            product_weight(mask, job->channels, i - 15 - to->lead - job->first_e);
        const int32_t low = product_low_digit(weight);

        to->row[0][i / 4] |= (static_cast<uint32_t>(low) & 255) << (8 * (i % 4));
        to->row[1][i / 4] |= (static_cast<uint32_t>((weight - low) / 128) & 255) << (8 * (i % 4));
    }
    for (int i = 0; i < mask->height; i++) {
        to->column[i + 15] = gpurun_half_from_double(mask->column[i]);
        sum += static_cast<uint32_t>(mask->column[i]);
    }
    to->excess = ((1u << PRODUCT_PIECE_BITS) + 1) * (PRODUCT_MAGIC + 1024 * sum) +
                 static_cast<uint32_t>(PRODUCT_OFFSET) * sum;
}

/* The highest band of which there are enough for all blocks that the device can run at once. */
static int product_choose_band(const struct gpurun_ctx *ctx, struct conv_job *job, int64_t *tiles)
{
    const int64_t enough = 2 * static_cast<int64_t>(ctx->device.sm_count);
    int turns = PRODUCT_TURNS;

    while ((*tiles = conv_tiles(job, PRODUCT_ELEMS, PRODUCT_ROWS * turns)) < enough &&
           turns > PRODUCT_TURNS_LEAST)
        turns--;
    return PRODUCT_ROWS * turns;
}

static bool product_is_aligned(const struct conv_job *job)
{
    return reinterpret_cast<uintptr_t>(job->in) % 16 == 0 && job->in_pitch % 16 == 0 &&
           reinterpret_cast<uintptr_t>(job->out) % 8 == 0 && job->out_pitch % 8 == 0;
}

template <int KS, int BLOCKS> static enum gpurun_status product_run(struct gpurun_ctx *ctx)
{
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    struct conv_job job = conv_job_of(ctx);
    struct product_mask<KS, BLOCKS> mask;
    int64_t tiles;
    const int band = product_choose_band(ctx, &job, &tiles);
    const unsigned blocks = static_cast<unsigned>(tiles);

    product_set_mask(&conv_state_of(ctx)->mask, &job, &mask);
    if (product_is_aligned(&job))
        conv_vector_product_kernel<KS, BLOCKS, true>
            <<<blocks, PRODUCT_BLOCK, 0, stream>>>(job, mask, band);
    else
        conv_vector_product_kernel<KS, BLOCKS, false>
            <<<blocks, PRODUCT_BLOCK, 0, stream>>>(job, mask, band);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

static int64_t product_magnitude(const int32_t *weights, int count)
{
    int64_t sum = 0;

    for (int i = 0; i < count; i++)
        sum += abs(weights[i]);
    return sum;
}

bool conv_vector_product_takes(const struct gpurun_ctx *ctx)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;

    return !mask->is_real && mask->is_separable && ctx->device.compute >= 80 &&
           product_magnitude(mask->row, mask->width) <= PRODUCT_ROW_MAX &&
           product_magnitude(mask->column, mask->height) <= PRODUCT_COLUMN_MAX;
}

enum gpurun_status conv_vector_product_check(struct gpurun_ctx *ctx)
{
    return conv_check_grid(ctx, PRODUCT_ELEMS, PRODUCT_ROWS * PRODUCT_TURNS);
}

enum gpurun_status conv_vector_product_launch(struct gpurun_ctx *ctx)
{
    const struct conv_job job = conv_job_of(ctx);
    const bool is_low = job.mask_height <= PRODUCT_ROWS + 1;

    switch (product_depth(&job)) {
    case 1:
    case 2:
        return is_low ? product_run<2, 2>(ctx) : product_run<2, 3>(ctx);
    case 3:
    case 4:
        return product_run<4, 3>(ctx);
    default:
        return product_run<5, 3>(ctx);
    }
}
