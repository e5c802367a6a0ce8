/*
 * conv, variant "vector": bytes by masks that are the product of a column and a row, through tensor cores.
 *
 * Along the row: 16 results of a row of the image are a product of a band matrix of the mask's row, 16 x 16 STEPS, with the
 * bytes around them (mma m16n8k32, bytes by bytes into int32), 8 rows of the image at a time. Of four channels and a wide mask
 * the band would be mostly zeros: such rows are read as PLANES, a channel each, by permutations of the words that are loaded.
 * A weight above 255 or below 0 has a second digit of base 256; the second digits' band is as narrow as what of it is not 0:
 * 32 KH. Down the column: the sums are cut in two pieces, of 8 and of 11 bits, which as halves are one factor of a product with
 * a band matrix of the mask's column (mma m16n8k16 into float): 16 rows of 8 results. What a lane holds of the first product is
 * what it must hold of the second one's factor, and of that it holds neighbours in a row of the answer.
 *
 * All is exact. Sums along the row are from 0 to 2^19 - 1, with what is added where weights are negative, so each piece is
 * at most 2047: the bits of such a number are a half, of it times 2^-24, and cutting is one byte permutation per piece and
 * two sums. Sums of those times the column's weights are below 2^22 units of 2^-24, which floats hold. Most masks (box,
 * gaussian) have no negative weights and end with a shift by 22. Their high sums begin with a quarter and what is added, stay
 * below a half, and take 1/256 of the low ones, rounded towards zero, which loses nothing that counts: the result is 8 bits of
 * that float.
 *
 * Mapping  a block of 8 warps takes 256 elements of a band of rows and walks down, 32 elements a warp. Stages of 16 rows
 *          are read in turns of BLOCKS, whose pieces stay in registers: the code is straight and each block of them has its
 *          place. While warps read one turn, copies of the next one or two are on their way: each warp copies two lines of a
 *          stage, puts what is beyond the image's edges into them, and shifts them if rows are not aligned. A barrier of the
 *          block begins each turn. The last bands are lower, so that all multiprocessors end together.
 * Memory   each row is read (band + height - 1) / band * 1.3 to 1.6 times in all, mostly from the L2. Results leave as 8 bytes
 *          a lane, 32 a row. Those of planes, of rows that are not aligned and at edges are put together in shared memory, a
 *          turn at a time, and leave as 16 bytes a lane, from multiples of 16 on.
 * Bound    tensor instructions: per 512 results 2 STEPS + 4 KH along the row and 8 BLOCKS down the column, 6 cycles each; about
 *          150 instructions in all, 180 if not aligned.
 * Limits   the mask must be a product of whole numbers whose magnitudes add up to 2055 along the row and 2048 down the
 *          column; compute capability 8.0.
 */
#include "conv_bands.h"
#include "conv_lines.cuh"
#include "conv_vector.h"
#include "gpurun/half.h"

enum {
    PRODUCT_WARPS = 8,
    PRODUCT_WARP_ELEMS = 32,
    PRODUCT_BLOCK = 32 * PRODUCT_WARPS,
    PRODUCT_ELEMS = PRODUCT_WARPS * PRODUCT_WARP_ELEMS,
    PRODUCT_ROWS = 16,    /* of a stage */
    PRODUCT_STAGES = 6,   /* of the ring: two or three turns */
    PRODUCT_BAND = 63,    /* stages' rows of results of a block, at most */
    PRODUCT_WAVES = 4,    /* of blocks, at least, unless bands are of one turn */
    PRODUCT_LOW_BITS = 8, /* of a sum along the row; 11 are high */
    PRODUCT_DIGIT = 256,
    PRODUCT_ROW_MAX = 2055, /* 256 more than 255 times it are below 2^19 */
    PRODUCT_COLUMN_MAX = 2048,
    PRODUCT_FAST_SHIFT = 22,
    PRODUCT_FAST_UP = 1 << 10, /* from a quarter, and results of 2^-10 each, to 256 and of 1 each */
    PRODUCT_FAST_BYTE = (1 << 23) - (1 << 8), /* from 256 to where floats are 1 apart */
};

#define PRODUCT_MIDDLE  0.75f /* floats about it are 2^-24 apart */
#define PRODUCT_QUARTER 0.25f /* from it to a half they are 2^-25 apart */

/* The band matrices as what stands on their diagonals. STEPS: of 16 elements along the row; BLOCKS: of 16 rows down the column.
 * Rows are of two digits: byte i is of element k, result m: k - m = i - 15. */
template <int PLANES, int STEPS, int BLOCKS> struct product_mask {
    uint32_t row[2][4 * STEPS + 5];
    uint16_t column[16 * BLOCKS + 16]; /* halves: i is of row k and result n with k - n = i - 15 */
    int32_t lead;    /* elements before 16 results that the row's band begins with */
    int32_t offset;  /* what is added to sums along the row, in units of a second digit */
    uint32_t excess; /* what sums are too large by, unless they are fast */
    float begin;     /* what sums of high pieces begin with: more than 0 if they are */
    int32_t digit;   /* 256: as no constant it is multiplied by, where shifts have more to do */
};

/* Elements of a line: what the band takes, from a whole sector of 32 on. */
template <int PLANES, int STEPS> static __host__ __device__ constexpr int product_span()
{
    return PRODUCT_ELEMS + 16 * (PLANES > 1 ? PLANES * (STEPS - 1) : STEPS + 1);
}

/* Whether lanes read lines in pairs of words, of 8 bytes, for 32 elements. */
template <int PLANES, int STEPS> static __host__ __device__ constexpr bool product_are_pairs()
{
    return PLANES == 1 && STEPS % 2 == 0;
}

/* 16 bytes from a line to the next: such that four lines read in pairs have banks of their own, or eight in words, or two that
 * are four apart in 16 bytes. */
template <int PLANES, int STEPS> static __host__ __device__ constexpr int product_pitch()
{
    constexpr int chunks = product_span<PLANES, STEPS>() / 16 + 1;

    return product_are_pairs<PLANES, STEPS>() ? (chunks + 1) / 4 * 4 + 2 : chunks | 1;
}

/* Stages' lines, turn after turn. A line may begin anywhere in its first 16 bytes. */
template <int PLANES, int STEPS> struct product_ring {
    uint4 lines[PRODUCT_STAGES][PRODUCT_ROWS][product_pitch<PLANES, STEPS>()];
};

/* A row of a tile's results as it will lie in memory, from 16 whole bytes on that hold the first. */
struct product_answer {
    uint8_t bytes[PRODUCT_ELEMS + 16];
};

/* Whether answers are put together from words, so a row begins up to 3 bytes early, else from bytes: in kernels for aligned rows,
 * which do so at edges alone, words would cost registers. */
template <int PLANES, bool IS_ALIGNED, bool IS_FAST>
static __device__ constexpr bool product_are_words()
{
    return PLANES == 1 && !IS_ALIGNED && IS_FAST;
}

/* Whether lanes store results themselves, by 8 bytes. */
template <int PLANES, bool IS_ALIGNED, bool IS_FAST, bool IS_INSIDE>
static __device__ constexpr bool product_is_direct()
{
    return PLANES == 1 && IS_ALIGNED && IS_FAST && IS_INSIDE;
}

/* Shared memory of a block. Answers are of two turns: one is made while the one before is stored. */
template <int PLANES, int STEPS, int BLOCKS> struct product_shared {
    struct product_ring<PLANES, STEPS> ring;
    struct product_answer answers[2][BLOCKS * PRODUCT_ROWS];
    struct product_mask<PLANES, STEPS, BLOCKS> mask;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/* Both band matrices as a lane holds them. */
template <int PLANES, int STEPS, int KH, int BLOCKS> struct product_factors {
    uint32_t low[(STEPS + 1) / 2][4], high[KH > 0 ? KH : 1][4];
    uint32_t column[BLOCKS][4];
    float begin[4];
};

/* Where a lane stands. */
struct product_lane {
    int32_t e;       /* the first of the 8 elements that it stores, if it does so itself */
    int quarter;     /* which of the four lanes of a row it is */
    int place;       /* the word of its lines that it reads first */
    unsigned planes; /* how two words are permuted to two pairs of bytes, of either of two planes */
    int shift;       /* bytes that the lines that it copies begin early, if all are in the image */
    int answer[2];   /* bytes from a stage's answers to its four results in either of its rows */
    int past;        /* bytes that the row that it stores begins behind a multiple of 16 */
};

/* sums += a * b, bytes by bytes */
static __device__ __forceinline__ void product_add_low(int32_t (&sums)[4], const uint32_t (&a)[4],
                                                       uint32_t first, uint32_t second)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(first), "r"(second));
}

/* The same of half as many, by the first half of a. */
static __device__ __forceinline__ void product_add_half(int32_t (&sums)[4], const uint32_t (&a)[4],
                                                        uint32_t b)
{
    asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
}

/* The same as the first, signed bytes by bytes. */
static __device__ __forceinline__ void product_add_high(int32_t (&sums)[4], const uint32_t (&a)[4],
                                                        uint32_t first, uint32_t second)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(first), "r"(second));
}

/* sums += a * b, halves */
static __device__ __forceinline__ void product_add_halves(float (&sums)[4], const uint32_t (&a)[4],
                                                          const uint32_t (&b)[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Four bytes from byte `at` on, of words. */
static __device__ __forceinline__ uint32_t product_word(const uint32_t *words, int at)
{
    return __funnelshift_r(words[at / 4], words[at / 4 + 1], 8 * (at % 4));
}

/* Which of 16 neighbouring results row m of the band along the row is of: such that a lane ends up with four neighbours,
 * and the two middle ones of four lanes have changed places; of planes every fourth, and lanes have neighbours. */
template <int PLANES> static __device__ __forceinline__ int product_place(int m)
{
    const int pair = m % 8 / 2;

    if (PLANES > 1)
        return 4 * (2 * (m / 8) + m % 2) + pair;
    return 4 * (pair / 2 + 2 * (pair % 2)) + 2 * (m / 8) + m % 2;
}

/* Which of 8 lines a group of four lanes reads: of planes such that two groups do not meet in banks of shared memory. */
template <int PLANES> static __device__ __forceinline__ int product_line(int group)
{
    return PLANES > 1 ? group / 2 + 4 * (group % 2) : group;
}

template <int PLANES, int STEPS, int KH, int BLOCKS>
static __device__ __forceinline__ void
product_find_factors(const struct product_mask<PLANES, STEPS, BLOCKS> &mask,
                     struct product_factors<PLANES, STEPS, KH, BLOCKS> *factors)
{
    const int group = threadIdx.x % 32 / 4, quarter = threadIdx.x % 4;
    /* loaded each for itself: instructions take four in a row, and what is the same in two were copied each time */
    const volatile uint16_t *column = mask.column;

#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int at = (product_are_pairs<PLANES, STEPS>() ? 8 * quarter + 4 * (i / 2)
                                                           : 4 * quarter + 16 * (i / 2)) -
                       product_place<PLANES>(group + 8 * (i % 2)) + 15;

#pragma unroll
        for (int k = 0; 2 * k + i / 2 < STEPS; k++)
            factors->low[k][i] = product_word(mask.row[0], 32 * k + at);
#pragma unroll
        for (int k = 0; k < KH; k++)
            factors->high[k][i] = product_word(mask.row[1], 16 * (STEPS / 2 - KH) + 32 * k + at);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        factors->begin[i] = *static_cast<const volatile float *>(&mask.begin);
#pragma unroll
    for (int q = 0; q < BLOCKS; q++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int at = 16 * q + 8 * (i / 2) - group - 8 * (i % 2) + 15;
            const int one = at + product_line<PLANES>(2 * quarter);
            const int other = at + product_line<PLANES>(2 * quarter + 1);

            factors->column[q][i] = column[one] | static_cast<uint32_t>(column[other]) << 16;
        }
}

/* Two sums along the row, from 0 to 2^19 - 1, to the pieces that two halves hold: the low and the high. */
static __device__ __forceinline__ void product_cut(int32_t a, int32_t b, uint32_t *low,
                                                   uint32_t *high)
{
    *low = __byte_perm(a, b, 0x7430);
    *high = __byte_perm(a, b, 0x6521);
}

/* What a lane multiplies of a line: of 16 neighbours and the next, or of two of four planes. `from`: what it reads first. In
 * pairs words of 32 elements are neighbours, else each is of 16. */
template <int PLANES, int STEPS>
static __device__ __forceinline__ void product_load(const uint32_t *from, unsigned planes,
                                                    uint32_t (&words)[2][STEPS])
{
#pragma unroll
    for (int i = 0; PLANES > 1 && i < STEPS; i++) {
        const uint4 four = *reinterpret_cast<const uint4 *>(from + 16 * i);
        const uint32_t low = __byte_perm(four.x, four.y, planes);
        const uint32_t high = __byte_perm(four.z, four.w, planes);

        words[0][i] = __byte_perm(low, high, 0x5410);
        words[1][i] = __byte_perm(low, high, 0x7632);
    }
#pragma unroll
    for (int i = 0; product_are_pairs<PLANES, STEPS>() && i < STEPS; i++) {
        const uint2 pair = *reinterpret_cast<const uint2 *>(from + 4 * i);

        words[i % 2][i / 2 * 2] = pair.x;
        words[i % 2][i / 2 * 2 + 1] = pair.y;
    }
#pragma unroll
    for (int i = 0; PLANES == 1 && STEPS % 2 > 0 && i <= STEPS; i++) {
        const uint32_t word = from[4 * i];

        if (i < STEPS)
            words[0][i] = word;
        if (i > 0)
            words[1][i - 1] = word;
    }
}

/* Along the row: 8 lines, of which the lane loads its own, into half `part` of the pieces of a block of 16. */
template <int PLANES, int STEPS, int KH, int BLOCKS>
static __device__ __forceinline__ void
product_along(const struct product_factors<PLANES, STEPS, KH, BLOCKS> &factors, unsigned planes,
              int32_t offset, int32_t digit, const uint32_t *line, int part,
              uint32_t (&pieces)[2][2][2][2])
{
    constexpr int middle = STEPS / 2 - KH;
    uint32_t words[2][STEPS];

    product_load<PLANES, STEPS>(line, planes, words);
#pragma unroll
    for (int side = 0; side < 2; side++) {
        int32_t sums[4] = {0, 0, 0, 0}, high[4] = {offset, offset, offset, offset};

#pragma unroll
        for (int k = 0; k < STEPS / 2; k++)
            product_add_low(sums, factors.low[k], words[side][2 * k], words[side][2 * k + 1]);
        if (STEPS % 2 > 0)
            product_add_half(sums, factors.low[STEPS / 2], words[side][STEPS - 1]);
#pragma unroll
        for (int k = 0; k < KH; k++) {
            const int step = middle + 2 * k, pair = side + step;

            if (product_are_pairs<PLANES, STEPS>())
                product_add_high(high, factors.high[k], words[pair % 2][pair / 2 * 2],
                                 words[pair % 2][pair / 2 * 2 + 1]);
            else
                product_add_high(high, factors.high[k], words[side][step], words[side][step + 1]);
        }
#pragma unroll
        for (int i = 0; i < 4 && KH > 0; i++)
            sums[i] += high[i] * digit;
#pragma unroll
        for (int j = 0; j < 2; j++)
            product_cut(sums[2 * j], sums[2 * j + 1], &pieces[side][j][0][part],
                        &pieces[side][j][1][part]);
    }
}

/* A sum from both pieces' sums, in units of 2^-24. */
template <int PLANES, int STEPS, int BLOCKS>
static __device__ __forceinline__ int32_t
product_sum(const struct product_mask<PLANES, STEPS, BLOCKS> &mask, float low, float high)
{
    const uint32_t low_bits = __float_as_uint(low + PRODUCT_MIDDLE);
    const uint32_t high_bits = __float_as_uint(high + PRODUCT_MIDDLE);

    return static_cast<int32_t>((high_bits << PRODUCT_LOW_BITS) + low_bits - mask.excess);
}

static __device__ __forceinline__ int32_t product_end(const struct conv_tail &tail, int32_t sum)
{
    return tail.is_wide ? conv_tail_wide(sum, &tail) : conv_tail_narrow(sum, &tail);
}

/* A sum that needs only a shift, as a float from a quarter on, of which bits 15 to 22 are the result: what is cut off is below
 * those that count. */
static __device__ __forceinline__ float product_fast_sum(float low, float high)
{
    return __fmaf_rz(low, 1.0f / PRODUCT_DIGIT, high);
}

/* Four such results as bytes. */
static __device__ __forceinline__ uint32_t product_fast_word(const float (&sums)[4])
{
    const uint32_t two = __byte_perm(__float_as_uint(sums[0]), __float_as_uint(sums[1]), 0x6521);
    const uint32_t more = __byte_perm(__float_as_uint(sums[2]), __float_as_uint(sums[3]), 0x6521);

    return __byte_perm(two << 1, more << 1, 0x7531);
}

/* A lane's four neighbours in either of its rows. */
static __device__ __forceinline__ uint32_t product_fast_words(int r, const float (&low)[2][4],
                                                              const float (&high)[2][4])
{
    float sums[4];

#pragma unroll
    for (int i = 0; i < 4; i++)
        sums[i] = product_fast_sum(low[i / 2][2 * r + i % 2], high[i / 2][2 * r + i % 2]);
    return product_fast_word(sums);
}

/* A result from both pieces' sums. */
template <int PLANES, int STEPS, int BLOCKS, bool IS_FAST>
static __device__ __forceinline__ uint8_t
product_byte(const struct conv_tail &tail, const struct product_mask<PLANES, STEPS, BLOCKS> &mask,
             float low, float high)
{
    if (IS_FAST)
        return static_cast<uint8_t>(__float_as_uint(
            __fmaf_rz(product_fast_sum(low, high), PRODUCT_FAST_UP, PRODUCT_FAST_BYTE)));
    return conv_saturate(product_end(tail, product_sum(mask, low, high)));
}

/* From four neighbours in either 16 elements, where the lanes of a row have those from 0, 8, 4 and 12 on, to 8 neighbours a
 * lane. Words are chosen by permutations: choices became branches, in which shuffles are slow. */
static __device__ __forceinline__ uint2 product_trade(int quarter, uint32_t left, uint32_t right)
{
    const unsigned one = quarter >= 2 ? 0x3210 : 0x7654, other = one ^ 0x4444;
    const uint32_t theirs = __shfl_xor_sync(~0u, __byte_perm(left, right, one), 2);

    return make_uint2(__byte_perm(left, theirs, other), __byte_perm(right, theirs, one));
}

/* Moves a line that begins `shift` bytes before it is due to where it should, by the half of the warp that copied it. */
template <int PLANES, int STEPS>
static __device__ __forceinline__ void product_shift_line(int shift, uint4 *line)
{
    constexpr int pairs = product_span<PLANES, STEPS>() / 8, times = (pairs + 15) / 16;
    const uint32_t *from = reinterpret_cast<const uint32_t *>(line) + shift / 4;
    uint2 words[times];

#pragma unroll
    for (int i = 0; i < times; i++) {
        const int at = 2 * (static_cast<int>(threadIdx.x % 16) + 16 * i);

        if (at < 2 * pairs)
            words[i] = make_uint2(__funnelshift_r(from[at], from[at + 1], 8 * shift),
                                  __funnelshift_r(from[at + 1], from[at + 2], 8 * shift));
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < times; i++) {
        const int at = static_cast<int>(threadIdx.x % 16) + 16 * i;

        if (at < pairs)
            reinterpret_cast<uint2 *>(line)[at] = words[i];
    }
}

/* Where the rows of the answer are that a lane stores from shared memory, from turn to turn. */
struct product_store {
    uint8_t *to; /* 16 whole bytes, of which some are its row's */
    int row;     /* of the tile; below 0: none yet */
};

/* 16 whole bytes of a row of results. */
static __device__ __forceinline__ uint4 product_answer_at(const uint8_t *from, int chunk, int early)
{
    const uint4 words = *reinterpret_cast<const uint4 *>(from + 16 * chunk);
    const uint32_t before = *reinterpret_cast<const uint32_t *>(from + max(16 * chunk - 4, 0));
    const int shift = 8 * early;

    return make_uint4(
        __funnelshift_l(before, words.x, shift), __funnelshift_l(words.x, words.y, shift),
        __funnelshift_l(words.y, words.z, shift), __funnelshift_l(words.z, words.w, shift));
}

/* Stores a row of results from `from` on: a lane 16 whole bytes, and one byte of what is left at its ends. */
static __device__ __forceinline__ void product_store_whole(const uint8_t *from, uint8_t *to,
                                                           int past, int early)
{
    const int chunk = threadIdx.x % 16, end = chunk < past ? PRODUCT_ELEMS + chunk : chunk;

    if (chunk > 0 || past == 0)
        *reinterpret_cast<uint4 *>(to + 16 * chunk) = product_answer_at(from, chunk, early);
    if (past > 0)
        to[end] = from[end - early];
}

/* The same of row y, where not all of it is the answer's, or some is the frame's: a lane what is stored of 16 bytes. */
static __device__ __forceinline__ void product_store_some(const struct conv_job &job,
                                                          const struct conv_tile &tile, int32_t y,
                                                          const uint8_t *from, uint8_t *to,
                                                          int past, int early)
{
    const int end = past + min(PRODUCT_ELEMS, job.out_elems - tile.e);

#pragma unroll 1
    for (int i = 16 * (threadIdx.x % 16); i < end; i += PRODUCT_ELEMS) {
        if (i >= past && i + 16 <= end && job.border != CONV_FRAME) {
            *reinterpret_cast<uint4 *>(to + i) = product_answer_at(from, i / 16, early);
            continue;
        }
#pragma unroll 1
        for (int b = max(i, past); b < min(i + 16, end); b++)
            to[b] = conv_is_framed(job, tile.e + b - past, y) ? static_cast<uint8_t>(job.fill)
                                                              : from[b - early];
    }
}

/* Stores the rows of a turn that are the tile's: 16 lanes one of each stage. */
template <int BLOCKS, bool IS_INSIDE>
static __device__ __forceinline__ void
product_store_turn(const struct conv_job &job, const struct conv_tile &tile,
                   const struct product_store &store, int past, int early,
                   const struct product_answer (&answers)[BLOCKS * PRODUCT_ROWS])
{
#pragma unroll(IS_INSIDE ? BLOCKS : 1)
    for (int n = 0; n < BLOCKS; n++) {
        const bool is_whole =
            IS_INSIDE || (tile.e + PRODUCT_ELEMS <= job.out_elems && job.border != CONV_FRAME);
        const int row = store.row + n * PRODUCT_ROWS;
        const uint8_t *from = answers[n * PRODUCT_ROWS + threadIdx.x / 16].bytes;
        uint8_t *to = store.to + n * PRODUCT_ROWS * job.out_pitch;

        if (row < 0 || row >= tile.rows)
            continue;
        if (is_whole)
            product_store_whole(from, to, past, early);
        else
            product_store_some(job, tile, tile.y + row, from, to, past, early);
    }
}

/* A copy of 16 bytes, if it is_due: without a branch. */
static __device__ __forceinline__ void product_copy_if(bool is_due, void *to, const void *from)
{
    asm volatile(
        "{\n\t.reg .pred p;\n\t"
        "setp.ne.u32 p, %2, 0;\n\t"
        "@p cp.async.cg.shared.global [%0], [%1], 16;\n\t}" ::"r"(gpurun_shared_address(to)),
        "l"(__cvta_generic_to_global(from)), "r"(static_cast<unsigned>(is_due))
        : "memory");
}

/* Of a stage whose lines are whole in the image: the lane's share of the copies into line `to`, that of its half of the warp;
 * from: what it takes of it first. */
template <int PLANES, int STEPS>
static __device__ __forceinline__ void product_copy_share(const uint8_t *from, uint4 *to)
{
    constexpr int chunks = product_span<PLANES, STEPS>() / 16 + 1;
    static_assert(chunks > 16 && chunks <= 32, "two copies a lane");
    const int chunk = threadIdx.x % 16;

    gpurun_copy_16(to + chunk, from);
    product_copy_if(chunk < chunks - 16, to + chunk + 16, from + 256);
}

/* Puts what is beyond the image's edges into a line of stage s, once it is copied: what the lane's half of the warp copied, each
 * 16th byte of what it did not. */
template <int PLANES, int STEPS, bool IS_ALIGNED>
static __device__ __forceinline__ void
product_put_edges(const struct conv_job &job, const struct conv_tile &tile, int s,
                  const struct conv_window &window, uint4 *to)
{
    const int at = s * PRODUCT_ROWS + static_cast<int>(threadIdx.x / 16);
    const struct conv_row<uint8_t> row =
        conv_find_row<IS_ALIGNED, uint8_t, product_span<PLANES, STEPS>()>(job, tile, at);
    const int32_t low = max(row.low, 0), high = min(row.high, job.elems);
    const int lefts = row.from != NULL ? window.lefts : window.to - window.from;
    const int edges = row.from != NULL ? lefts + window.rights : lefts;
    uint8_t *bytes = reinterpret_cast<uint8_t *>(to) - row.first;

    if (at >= tile.lines)
        return;
#pragma unroll 1
    for (int i = threadIdx.x % 16; i < edges; i += 16) {
        const int32_t e = i < lefts ? window.from + i : window.to - 1 - (i - lefts);
        const int32_t place = conv_border_elem(job, e);

        if (e >= low && e < high)
            continue;
        bytes[e] = row.from == NULL || place < 0  ? static_cast<uint8_t>(job.fill)
                   : place >= low && place < high ? bytes[place]
                                                  : row.from[place];
    }
}

/* One side of 16 rows of results, of which the pieces are complete, the `first` block of them on top: the sums of low pieces
 * and of high ones, from `begin` on. */
template <int PLANES, int STEPS, int KH, int BLOCKS>
static __device__ __forceinline__ void
product_down(const struct product_factors<PLANES, STEPS, KH, BLOCKS> &factors,
             const uint32_t (&pieces)[BLOCKS][2][2][2][2], int first, int side, float (&low)[2][4],
             float (&high)[2][4])
{
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            low[j][i] = 0;
            high[j][i] = factors.begin[i];
        }
#pragma unroll
    for (int q = 0; q < BLOCKS; q++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const uint32_t(&of)[2][2] = pieces[(first + q) % BLOCKS][side][j];

            product_add_halves(low[j], factors.column[q], of[0]);
            product_add_halves(high[j], factors.column[q], of[1]);
        }
}

/* A lane's four results in either of its rows, neighbours or, of planes, every fourth of one. */
template <int PLANES, int STEPS, int BLOCKS, bool IS_FAST>
static __device__ __forceinline__ void
product_put_bytes(const struct conv_tail &tail,
                  const struct product_mask<PLANES, STEPS, BLOCKS> &mask, int r,
                  const float (&low)[2][4], const float (&high)[2][4], uint8_t *to)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[PLANES > 1 ? 4 * PLANES * i : i] = product_byte<PLANES, STEPS, BLOCKS, IS_FAST>(
            tail, mask, low[i / 2][2 * r + i % 2], high[i / 2][2 * r + i % 2]);
}

/* Such rows into a stage's answers. */
template <int PLANES, int STEPS, int KH, int BLOCKS, bool IS_ALIGNED, bool IS_FAST>
static __device__ __forceinline__ void
product_answer_rows(const struct conv_tail &tail,
                    const struct product_mask<PLANES, STEPS, BLOCKS> &mask,
                    const struct product_factors<PLANES, STEPS, KH, BLOCKS> &factors,
                    const uint32_t (&pieces)[BLOCKS][2][2][2][2], int first,
                    const struct product_lane &mine, uint8_t *answer)
{
#pragma unroll
    for (int side = 0; side < 2; side++) {
        float low[2][4], high[2][4];

        product_down<PLANES, STEPS, KH, BLOCKS>(factors, pieces, first, side, low, high);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            uint8_t *to = answer + mine.answer[r] + (PLANES > 1 ? side : 16 * side);

            if (product_are_words<PLANES, IS_ALIGNED, IS_FAST>())
                *reinterpret_cast<uint32_t *>(to) = product_fast_words(r, low, high);
            else
                product_put_bytes<PLANES, STEPS, BLOCKS, IS_FAST>(tail, mask, r, low, high, to);
        }
    }
}

/* Such rows to `to`, the first of the lane's 8 elements in its row, and to `next` in the 8th after it, if they are among the
 * `rows` that are left from its row on. */
template <int PLANES, int STEPS, int KH, int BLOCKS>
static __device__ __forceinline__ void
product_store_rows(const struct product_factors<PLANES, STEPS, KH, BLOCKS> &factors,
                   const uint32_t (&pieces)[BLOCKS][2][2][2][2], int first, int quarter, int rows,
                   uint8_t *to, uint8_t *next)
{
    uint32_t words[2][2];

#pragma unroll
    for (int side = 0; side < 2; side++) {
        float low[2][4], high[2][4];

        product_down<PLANES, STEPS, KH, BLOCKS>(factors, pieces, first, side, low, high);
#pragma unroll
        for (int r = 0; r < 2; r++)
            words[r][side] = product_fast_words(r, low, high);
    }
    const uint2 one = product_trade(quarter, words[0][0], words[0][1]);
    const uint2 other = product_trade(quarter, words[1][0], words[1][1]);

    if (rows > 0)
        *reinterpret_cast<uint2 *>(to) = one;
    if (rows > 8)
        *reinterpret_cast<uint2 *>(next) = other;
}

/* How far a warp is in its tile: what changes from turn to turn. */
struct product_turn {
    int s;               /* the first of its stages */
    int place;           /* the turn's in the ring */
    int answers;         /* which of two it makes */
    const uint8_t *from; /* what the lane copies next, if all is in the image */
    int rows;    /* of results, from the one on that the lane stores first, if it does so itself */
    uint8_t *to; /* where it does */
    struct product_store store; /* of the answers before */
};

/* Whether the image has all rows of a turn, of which s is the first stage. */
template <int BLOCKS>
static __device__ __forceinline__ bool product_has_rows(const struct conv_job &job,
                                                        const struct conv_tile &tile, int s)
{
    const int first = tile.top + s * PRODUCT_ROWS;

    return first >= 0 && first + BLOCKS * PRODUCT_ROWS <= job.height;
}

/* Begins the lane's copies of the stages of a turn, if they are of the tile's; s: the first, place: the turn's in the ring. */
template <int PLANES, int STEPS, int BLOCKS, bool IS_ALIGNED, bool IS_INSIDE>
static __device__ __forceinline__ void
product_begin_turn(const struct conv_job &job, const struct conv_tile &tile, int stages, int s,
                   int place, const uint8_t *from, struct product_ring<PLANES, STEPS> *ring)
{
    const int line = threadIdx.x / 16;

    if (IS_INSIDE && s < stages && product_has_rows<BLOCKS>(job, tile, s))
#pragma unroll
        for (int n = 0; n < BLOCKS; n++)
            product_copy_share<PLANES, STEPS>(from + n * PRODUCT_ROWS * job.in_pitch,
                                              ring->lines[place * BLOCKS + n][line]);
    else if (s < stages)
#pragma unroll 1
        for (int n = 0; n < BLOCKS; n++) {
            const int at = (s + n) * PRODUCT_ROWS + line;

            if (at < tile.lines)
                conv_copy_line<IS_ALIGNED, uint8_t, product_span<PLANES, STEPS>()>(
                    job, tile, at, ring->lines[place * BLOCKS + n][line], threadIdx.x % 16, 16,
                    NULL);
        }
    gpurun_copy_commit();
}

/* The stages of a turn, and the rows that they complete, into `answers` if lanes do not store them. */
template <int PLANES, int STEPS, int KH, int BLOCKS, bool IS_ALIGNED, bool IS_FAST, bool IS_INSIDE>
static __device__ __forceinline__ void
product_take_turn(const struct conv_job &job, const struct product_lane &mine,
                  const struct product_mask<PLANES, STEPS, BLOCKS> &mask,
                  const struct product_factors<PLANES, STEPS, KH, BLOCKS> &factors,
                  const struct product_turn &turn, const struct product_ring<PLANES, STEPS> &ring,
                  struct product_answer *answers, uint32_t (&pieces)[BLOCKS][2][2][2][2])
{
#pragma unroll
    for (int n = 0; n < BLOCKS; n++) {
#pragma unroll
        for (int part = 0; part < 2; part++) {
            const int line = 8 * part + product_line<PLANES>(threadIdx.x % 32 / 4);

            product_along<PLANES, STEPS, KH, BLOCKS>(
                factors, mine.planes, IS_FAST ? 0 : mask.offset, mask.digit,
                reinterpret_cast<const uint32_t *>(ring.lines[turn.place * BLOCKS + n][line]) +
                    mine.place,
                part, pieces[n]);
        }
        if (n == BLOCKS - 1 || turn.s > 0) {
            if (product_is_direct<PLANES, IS_ALIGNED, IS_FAST, IS_INSIDE>())
                product_store_rows<PLANES, STEPS, KH, BLOCKS>(
                    factors, pieces, n + 1, mine.quarter, turn.rows - n * PRODUCT_ROWS,
                    turn.to + n * PRODUCT_ROWS * job.out_pitch,
                    turn.to + (n * PRODUCT_ROWS + 8) * job.out_pitch);
            else
                product_answer_rows<PLANES, STEPS, KH, BLOCKS, IS_ALIGNED, IS_FAST>(
                    job.tail, mask, factors, pieces, n + 1, mine, answers[n * PRODUCT_ROWS].bytes);
        }
    }
}

/* Finishes the lines of a turn that the lane's half of the warp has copied: edges first, then all of it to where it is due. */
template <int PLANES, int STEPS, int BLOCKS, bool IS_ALIGNED, bool IS_INSIDE>
static __device__ __forceinline__ void
product_finish_lines(const struct conv_job &job, const struct conv_tile &tile,
                     const struct conv_window &window, const struct product_turn &turn, int shift,
                     struct product_ring<PLANES, STEPS> *ring)
{
    const int line = threadIdx.x / 16;
    const bool has_rows = IS_INSIDE && product_has_rows<BLOCKS>(job, tile, turn.s);

    if (!IS_INSIDE && window.has_edges) {
        __syncwarp();
#pragma unroll 1
        for (int n = 0; n < BLOCKS; n++)
            product_put_edges<PLANES, STEPS, IS_ALIGNED>(
                job, tile, turn.s + n, window, ring->lines[turn.place * BLOCKS + n][line]);
    }
    if (IS_ALIGNED)
        return;
    __syncwarp();
#pragma unroll(IS_INSIDE ? BLOCKS : 1)
    for (int n = 0; n < BLOCKS; n++)
        product_shift_line<PLANES, STEPS>(
            has_rows
                ? shift
                : conv_shift<IS_ALIGNED, uint8_t>(job, tile, (turn.s + n) * PRODUCT_ROWS + line),
            ring->lines[turn.place * BLOCKS + n][line]);
}

/* What the lane copies first of a tile that is inside: 16 bytes of a line that its half of the warp has. */
static __device__ __forceinline__ const uint8_t *product_first_share(const struct conv_job &job,
                                                                     const struct conv_tile &tile)
{
    const uint8_t *line = static_cast<const uint8_t *>(job.in) +
                          (tile.top + static_cast<int>(threadIdx.x / 16)) * job.in_pitch +
                          tile.begin;

    return line - reinterpret_cast<uintptr_t>(line) % 16 + 16 * (threadIdx.x % 16);
}

/* The tile's first turn. */
template <int BLOCKS>
static __device__ __forceinline__ struct product_turn
product_first_turn(const struct conv_job &job, const struct conv_tile &tile,
                   const struct product_lane &mine)
{
    const int row = static_cast<int>(threadIdx.x % 32 / 4) - (BLOCKS - 1) * PRODUCT_ROWS;
    const int stored = static_cast<int>(threadIdx.x / 16) - (2 * BLOCKS - 1) * PRODUCT_ROWS;
    uint8_t *out = static_cast<uint8_t *>(job.out);
    struct product_turn turn = {};

    turn.from = product_first_share(job, tile);
    turn.rows = tile.rows - row;
    turn.to = out + mine.e + (tile.y + row) * job.out_pitch;
    turn.store.row = stored;
    turn.store.to = out + tile.e + (tile.y + stored) * job.out_pitch - mine.past;
    return turn;
}

/* A warp's part of the tile. IS_INSIDE: all columns of its lines are in the image, and all its results. */
template <int PLANES, int STEPS, int KH, int BLOCKS, bool IS_ALIGNED, bool IS_FAST, bool IS_INSIDE>
static __device__ __forceinline__ void
product_walk(const struct conv_job &job, const struct conv_tile &tile,
             const struct conv_window &window, const struct product_lane &mine,
             const struct product_mask<PLANES, STEPS, BLOCKS> &mask,
             struct product_shared<PLANES, STEPS, BLOCKS> *shared)
{
    constexpr int turns = PRODUCT_STAGES / BLOCKS, ahead = turns - 1, rows = BLOCKS * PRODUCT_ROWS;
    constexpr bool is_direct = product_is_direct<PLANES, IS_ALIGNED, IS_FAST, IS_INSIDE>();
    const int early = product_are_words<PLANES, IS_ALIGNED, IS_FAST>() ? mine.past % 4 : 0;
    const int stages = (tile.lines + PRODUCT_ROWS - 1) / PRODUCT_ROWS;
    struct product_ring<PLANES, STEPS> *ring = &shared->ring;
    struct product_factors<PLANES, STEPS, KH, BLOCKS> factors;
    uint32_t pieces[BLOCKS][2][2][2][2] = {};
    struct product_turn turn = product_first_turn<BLOCKS>(job, tile, mine);

#pragma unroll 1
    for (int i = 0; i < ahead; i++, turn.from += rows * job.in_pitch)
        product_begin_turn<PLANES, STEPS, BLOCKS, IS_ALIGNED, IS_INSIDE>(
            job, tile, stages, i * BLOCKS, i, turn.from, ring);
    product_find_factors<PLANES, STEPS, KH, BLOCKS>(shared->mask, &factors);
#pragma unroll 1
    for (; turn.s < stages; turn.s += BLOCKS, turn.from += rows * job.in_pitch) {
        const int before = turn.place == 0 ? turns - 1 : turn.place - 1;

        gpurun_copy_await<ahead - 1>();
        product_finish_lines<PLANES, STEPS, BLOCKS, IS_ALIGNED, IS_INSIDE>(job, tile, window, turn,
                                                                           mine.shift, ring);
        __syncthreads();
        product_begin_turn<PLANES, STEPS, BLOCKS, IS_ALIGNED, IS_INSIDE>(
            job, tile, stages, turn.s + ahead * BLOCKS, before, turn.from, ring);
        if (!is_direct)
            product_store_turn<BLOCKS, IS_INSIDE>(job, tile, turn.store, mine.past, early,
                                                  shared->answers[turn.answers ^ 1]);
        product_take_turn<PLANES, STEPS, KH, BLOCKS, IS_ALIGNED, IS_FAST, IS_INSIDE>(
            job, mine, mask, factors, turn, *ring, shared->answers[turn.answers], pieces);
        turn.place = turn.place == turns - 1 ? 0 : turn.place + 1;
        turn.answers ^= 1;
        turn.rows -= rows;
        turn.to += rows * job.out_pitch;
        turn.store.row += rows;
        turn.store.to += rows * job.out_pitch;
    }
    if (is_direct)
        return;
    __syncthreads();
    product_store_turn<BLOCKS, IS_INSIDE>(job, tile, turn.store, mine.past, early,
                                          shared->answers[turn.answers ^ 1]);
}
/* The block's tile. Those at either end of the rows take longer, so they are first. */
static __device__ __forceinline__ void product_place_tile(unsigned columns,
                                                          const struct conv_bands &bands,
                                                          int32_t out_height,
                                                          struct conv_tile *tile)
{
    const unsigned ends = min(columns, 2u), first = gridDim.x / columns * ends;
    const bool is_end = blockIdx.x < first;
    const unsigned i = is_end ? blockIdx.x : blockIdx.x - first;
    const unsigned of = is_end ? ends : columns - ends;
    const unsigned column = is_end ? i % of * (columns - 1) : 1 + i % of;
    int32_t stages;

    tile->e = static_cast<int32_t>(column) * PRODUCT_ELEMS;
    tile->y = conv_band_at(&bands, static_cast<int32_t>(i / of), &stages) * PRODUCT_ROWS;
    tile->rows = min(stages * PRODUCT_ROWS, out_height - tile->y);
}

/* Rows of the image that a tile of so many rows of results reads: in as many whole turns as results take, even where the last
 * stages count for nothing. */
template <int BLOCKS> static __device__ __forceinline__ int product_lines(int rows, int height)
{
    const int stages = (rows + PRODUCT_ROWS - 1) / PRODUCT_ROWS + BLOCKS - 1;
    const int all = (stages + BLOCKS - 1) / BLOCKS * BLOCKS * PRODUCT_ROWS;
    const int lines = rows + height - 1;

    return all - lines < PRODUCT_ROWS ? lines : all;
}

/* Bytes that the results of the tile's row r begin behind a multiple of 16. */
static __device__ __forceinline__ int product_past(const struct conv_job &job,
                                                   const struct conv_tile &tile, int r)
{
    return static_cast<int>((reinterpret_cast<uintptr_t>(job.out) + static_cast<unsigned>(tile.e) +
                             (tile.y + r) * job.out_pitch) %
                            16);
}

template <int PLANES, int STEPS, bool IS_ALIGNED, bool IS_FAST>
static __device__ __forceinline__ struct product_lane
product_find_lane(const struct conv_job &job, const struct conv_tile &tile, int32_t lead)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, half = threadIdx.x / 16;
    const int32_t first = tile.e + PRODUCT_WARP_ELEMS * warp;
    const bool is_plane = PLANES > 1, are_pairs = product_are_pairs<PLANES, STEPS>();
    struct product_lane mine;

    mine.quarter = lane % 4;
    mine.e = first + 8 * mine.quarter;
    mine.place = is_plane ? 4 * (PLANES * (warp / 2) + mine.quarter)
                          : (first - lead - tile.begin) / 4 + (are_pairs ? 2 : 1) * mine.quarter;
    mine.planes = warp % 2 == 0 ? 0x5140 : 0x7362;
    mine.past = product_past(job, tile, half);
    mine.shift = static_cast<int>(
        (reinterpret_cast<uintptr_t>(job.in) + (tile.top + half) * job.in_pitch) % 16);
    for (int r = 0; r < 2; r++) {
        const int row = lane / 4 + 8 * r, past = product_past(job, tile, row);
        const int early = product_are_words<PLANES, IS_ALIGNED, IS_FAST>() ? past % 4 : 0;
        const int at =
            is_plane ? 16 * PLANES * (warp / 2) + 2 * (warp % 2) + PLANES * mine.quarter
                     : PRODUCT_WARP_ELEMS * warp + 4 * (mine.quarter / 2 + 2 * (mine.quarter % 2));

        mine.answer[r] = static_cast<int>(sizeof(struct product_answer)) * row + past - early + at;
    }
    return mine;
}
#endif

/* IS_ALIGNED: rows of the image begin at multiples of 16 bytes, of the answer of 8. IS_FAST: product_is_fast(). */
template <int PLANES, int STEPS, int KH, int BLOCKS, bool IS_ALIGNED, bool IS_FAST>
static __global__ void __launch_bounds__(PRODUCT_BLOCK, STEPS <= 4 || 2 * KH < STEPS ? 2 : 1)
    conv_vector_product_kernel(const struct conv_job job,
                               const struct product_mask<PLANES, STEPS, BLOCKS> mask,
                               const struct conv_bands bands)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    extern __shared__ uint4 product_memory[];
    struct product_shared<PLANES, STEPS, BLOCKS> *shared =
        reinterpret_cast<struct product_shared<PLANES, STEPS, BLOCKS> *>(product_memory);
    const int32_t margin = job.border == CONV_FRAME ? job.mask_width / 2 * job.channels : 0;
    const int32_t radius = job.border == CONV_FRAME ? job.mask_height / 2 : 0;
    struct conv_tile tile;

    product_place_tile(static_cast<unsigned>(job.tiles_x), bands, job.out_height, &tile);
    tile.top = tile.y + job.first_y;
    tile.lines = product_lines<BLOCKS>(tile.rows, job.mask_height);
    tile.begin = tile.e - (mask.lead + 31) / 32 * 32; /* a whole sector */
    tile.reach = (job.mask_width - 1) * job.channels + job.first_e;

    const struct conv_window window =
        conv_find_window<IS_ALIGNED, uint8_t>(job, tile, PRODUCT_ELEMS, -1);
    const bool is_inside = !window.has_edges && tile.begin >= 16 &&
                           tile.begin + product_span<PLANES, STEPS>() + 16 <= job.elems &&
                           tile.e >= margin && tile.e + PRODUCT_ELEMS <= job.out_elems - margin &&
                           tile.y >= radius && tile.y + tile.rows <= job.out_height - radius;

    for (int i = threadIdx.x; i < static_cast<int>(sizeof mask / 4); i += PRODUCT_BLOCK)
        reinterpret_cast<uint32_t *>(&shared->mask)[i] =
            reinterpret_cast<const uint32_t *>(&mask)[i];
    __syncthreads();

    const struct product_lane mine =
        product_find_lane<PLANES, STEPS, IS_ALIGNED, IS_FAST>(job, tile, mask.lead);

    if (IS_FAST && is_inside)
        product_walk<PLANES, STEPS, KH, BLOCKS, IS_ALIGNED, IS_FAST, IS_FAST>(job, tile, window,
                                                                              mine, mask, shared);
    else
        product_walk<PLANES, STEPS, KH, BLOCKS, IS_ALIGNED, IS_FAST, false>(job, tile, window, mine,
                                                                            mask, shared);
#endif
}

/* --- host ------------------------------------------------------------------------------------------------- */

/* Elements on either side of a result that count. */
static int product_radius(const struct conv_job *job)
{
    return job->mask_width / 2 * job->channels;
}

/* Steps of 16 elements along the row that a mask takes: 16 results are in the middle of what they read. */
static int product_steps(const struct conv_job *job)
{
    return (product_radius(job) + 8 + 7) / 8;
}

/* Elements that a band of so many steps begins with before the results: a multiple of 8, which lanes load. */
static int product_lead(const struct conv_job *job, int steps)
{
    const int anchor = product_radius(job) + job->first_e; /* 0, but under crop */

    return (8 * steps - 8 - anchor) & ~7;
}

/* Weight of the mask's row for the element that stands `distance` behind the first of them. */
static int32_t product_weight(const struct conv_mask *mask, int channels, int distance)
{
    if (distance < 0 || distance % channels != 0 || distance / channels >= mask->width)
        return 0;
    return mask->row[distance / channels];
}

/* The digit that does not count 256-fold is from 0 to 255. */
static int32_t product_high_digit(int32_t weight)
{
    return (weight - (weight & 255)) / PRODUCT_DIGIT;
}

/* Products that the second digits along the row take, in the middle of so many steps: 0, 1 or, if they take more than one, all
 * of them. */
static int product_high_depth(const struct conv_mask *mask, const struct conv_job *job, int steps)
{
    const int begin = 8 * steps - 16, lead = product_lead(job, steps);
    int products = 0;

    for (int i = 0; i < mask->width; i++) {
        const int at = lead + job->first_e + i * job->channels;

        if (product_high_digit(mask->row[i]) == 0)
            continue;
        if (at < begin || at + 15 >= begin + 32)
            return steps / 2;
        products = 1;
    }
    return products;
}

/* What the sums of the negative ones of `count` weights are, at most, from 0 to `most`. */
static int32_t product_deficit(const int32_t *weights, int count, int32_t most)
{
    int32_t sum = 0;

    for (int i = 0; i < count; i++)
        sum -= weights[i] < 0 ? weights[i] * most : 0;
    return sum;
}

static int32_t product_total(const int32_t *weights, int count)
{
    int32_t sum = 0;

    for (int i = 0; i < count; i++)
        sum += weights[i];
    return sum;
}

/* Whether the results are sums, and what is added in as many bits as there are, that are shifted and do not saturate. */
static bool product_is_fast(const struct conv_mask *mask, const struct conv_tail *tail)
{
    return conv_tail_only_shifts(tail) && tail->shift == PRODUCT_FAST_SHIFT && tail->add >= 0 &&
           tail->add < 1 << PRODUCT_FAST_SHIFT && tail->add % PRODUCT_DIGIT == 0 &&
           product_deficit(mask->row, mask->width, 1) == 0 &&
           product_deficit(mask->column, mask->height, 1) == 0 &&
           product_total(mask->row, mask->width) * product_total(mask->column, mask->height) <=
               1 << PRODUCT_FAST_SHIFT;
}

/* What sums down the column end with. */
template <int PLANES, int STEPS, int BLOCKS>
static void product_set_ends(const struct conv_mask *mask, const struct conv_tail *tail,
                             bool is_fast, struct product_mask<PLANES, STEPS, BLOCKS> *to)
{
    const uint32_t sum = static_cast<uint32_t>(product_total(mask->column, mask->height));
    const float middle = PRODUCT_MIDDLE;
    uint32_t bits;

    memcpy(&bits, &middle, sizeof bits);
    to->digit = PRODUCT_DIGIT;
    if (is_fast)
        to->begin = PRODUCT_QUARTER + static_cast<float>(tail->add) / PRODUCT_DIGIT / (1 << 24);
    to->excess =
        (PRODUCT_DIGIT + 1) * bits + static_cast<uint32_t>(to->offset * PRODUCT_DIGIT) * sum;
}

template <int PLANES, int STEPS, int BLOCKS>
static void product_set_mask(const struct conv_mask *mask, const struct conv_job *job, bool is_fast,
                             struct product_mask<PLANES, STEPS, BLOCKS> *to)
{
    memset(to, 0, sizeof *to);
    const int channels = PLANES > 1 ? 1 : job->channels;
    const int first = PLANES > 1 ? job->first_e / PLANES : job->first_e;
    const int lead = PLANES == 1 ? product_lead(job, STEPS) : first < 0 ? 8 * STEPS - 8 : 0;

    to->lead = lead * PLANES;
    to->offset = (product_deficit(mask->row, mask->width, 255) + PRODUCT_DIGIT - 1) / PRODUCT_DIGIT;
    for (int i = 0; i < 16 * STEPS + 15; i++) {
        const int32_t weight = product_weight(mask, channels, i - 15 - lead - first);

        to->row[0][i / 4] |= (static_cast<uint32_t>(weight) & 255) << (8 * (i % 4));
        to->row[1][i / 4] |= (static_cast<uint32_t>(product_high_digit(weight)) & 255)
                             << (8 * (i % 4));
    }
    for (int i = 0; i < mask->height; i++)
        to->column[i + 15] = gpurun_half_from_double(mask->column[i]);
    product_set_ends(mask, &job->tail, is_fast, to);
}

/* Bands of whole turns, in stages' rows. Returns how many tiles there are, of which two run at once on a multiprocessor. */
template <int BLOCKS>
static int64_t product_cut_bands(const struct gpurun_ctx *ctx, struct conv_job *job,
                                 struct conv_bands *bands)
{
    const int64_t columns = conv_tiles(job, PRODUCT_ELEMS, job->out_height);
    const int32_t rows = (job->out_height + PRODUCT_ROWS - 1) / PRODUCT_ROWS;
    const int64_t side = (2 * static_cast<int64_t>(ctx->device.sm_count) + columns - 1) / columns;
    const struct conv_stages stages = {BLOCKS, BLOCKS, (PRODUCT_BAND + BLOCKS - 1) / BLOCKS, 1};
    const int turns = conv_choose_turns(&stages, rows, PRODUCT_WAVES * side);

    return conv_cut_bands(&stages, rows, static_cast<uint32_t>(columns), turns, (side + 1) / 2,
                          bands);
}

static bool product_is_aligned(const struct conv_job *job)
{
    return reinterpret_cast<uintptr_t>(job->in) % 16 == 0 && job->in_pitch % 16 == 0 &&
           reinterpret_cast<uintptr_t>(job->out) % 8 == 0 && job->out_pitch % 8 == 0;
}

template <int PLANES, int STEPS, int KH, int BLOCKS, bool IS_FAST>
static enum gpurun_status product_run(struct gpurun_ctx *ctx)
{
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    struct conv_job job = conv_job_of(ctx);
    struct product_mask<PLANES, STEPS, BLOCKS> mask;
    struct conv_bands bands;
    const unsigned blocks = static_cast<unsigned>(product_cut_bands<BLOCKS>(ctx, &job, &bands));

    product_set_mask(&conv_state_of(ctx)->mask, &job, IS_FAST, &mask);
    const auto kernel =
        IS_FAST && product_is_aligned(&job)
            ? conv_vector_product_kernel<PLANES, STEPS, KH, BLOCKS, IS_FAST, IS_FAST>
            : conv_vector_product_kernel<PLANES, STEPS, KH, BLOCKS, false, IS_FAST>;
    const int bytes = sizeof(struct product_shared<PLANES, STEPS, BLOCKS>);

    GPURUN_CUDA_TRY(
        ctx, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<blocks, PRODUCT_BLOCK, bytes, stream>>>(job, mask, bands);
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
    return conv_check_grid(ctx, PRODUCT_ELEMS, PRODUCT_ROWS * PRODUCT_BAND);
}

/* Of masks and tails that are fast; false: there is no such kernel, as such masks are rare. */
static bool product_run_fast(struct gpurun_ctx *ctx, enum gpurun_status *status)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;
    const struct conv_job job = conv_job_of(ctx);
    const int steps = product_steps(&job);
    const int digits = product_high_depth(mask, &job, steps <= 4 ? 4 : 8);
    const bool is_low = mask->height <= PRODUCT_ROWS + 1;

    if (job.channels == 4 && steps > 4 && is_low && mask->width <= 17)
        *status = product_run<4, 2, 1, 2, true>(ctx);
    else if (job.channels == 4 && steps > 4 && digits == 0)
        *status = product_run<4, 3, 0, 3, true>(ctx);
    else if (steps <= 2 && is_low)
        *status = product_run<1, 2, 1, 2, true>(ctx);
    else if (steps <= 4 && is_low)
        *status = digits == 0   ? product_run<1, 4, 0, 2, true>(ctx)
                  : digits == 1 ? product_run<1, 4, 1, 2, true>(ctx)
                                : product_run<1, 4, 2, 2, true>(ctx);
    else if (steps <= 4 && digits == 0)
        *status = product_run<1, 4, 0, 3, true>(ctx);
    else if (steps <= 7 && digits == 0)
        *status = product_run<1, 7, 0, 3, true>(ctx);
    else if (steps <= 8 && steps > 4 && digits == 1)
        *status = product_run<1, 8, 1, 3, true>(ctx);
    else
        return false;
    return true;
}

enum gpurun_status conv_vector_product_launch(struct gpurun_ctx *ctx)
{
    const struct conv_state *s = conv_state_of(ctx);
    const struct conv_job job = conv_job_of(ctx);
    const int steps = product_steps(&job);
    enum gpurun_status status;

    if (product_is_fast(&s->mask, &s->tail) && product_run_fast(ctx, &status))
        return status;
    if (steps <= 4)
        return s->mask.height <= PRODUCT_ROWS + 1 ? product_run<1, 4, 2, 2, false>(ctx)
                                                  : product_run<1, 4, 2, 3, false>(ctx);
    return steps <= 8 ? product_run<1, 8, 4, 3, false>(ctx) : product_run<1, 10, 5, 3, false>(ctx);
}
