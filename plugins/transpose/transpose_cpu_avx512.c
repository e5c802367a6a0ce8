/*
 * The baseline's part for AVX-512: a line is one register, and is read, turned and written as one. Columns of a panel
 * go down by tiles. Where rows of the answer do not begin at lines, the end of a tile's line waits for the tile
 * below, so that every line of the answer is written once and whole, but for those at the ends of its rows.
 */
#include "transpose_cpu.h"
#ifdef __x86_64__
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vbmi")))

enum {
    LINE = TRANSPOSE_LINE,
    DEEP = 2, /* tiles below each other that are turned before they are written: longer writes */
};

/* --- turning a tile --------------------------------------------------------------------------------- */

/* Which elements of two registers stand side by side, in either half of the result. */
#define FROM_0_4(n, m)  n, m, n + 1, m + 1, n + 2, m + 2, n + 3, m + 3
#define FROM_0_8(n, m)  FROM_0_4(n, m), FROM_0_4(n + 4, m + 4)
#define FROM_0_16(n, m) FROM_0_8(n, m), FROM_0_8(n + 8, m + 8)
#define FROM_0_32(n, m) FROM_0_16(n, m), FROM_0_16(n + 16, m + 16)

/* COUNT registers of x: each round interleaves the upper half of them with the lower. */
#define INTERLEAVE(COUNT, PAIRS, HALF)                                                             \
    for (size_t round = 1; round < (COUNT); round *= 2) {                                          \
        for (size_t k = 0; 2 * k + 1 < (COUNT); k++) {                                             \
            y[2 * k] = __builtin_shufflevector(x[k], x[k + (COUNT) / 2], PAIRS(0, 2 * (HALF)));    \
            y[2 * k + 1] =                                                                         \
                __builtin_shufflevector(x[k], x[k + (COUNT) / 2], PAIRS(HALF, 3 * (HALF)));        \
        }                                                                                          \
        memcpy(x, y, (COUNT) * sizeof(*x));                                                        \
    }

/* A tile has FEW * MANY rows, more than registers hold: MANY of them, FEW rows apart, are turned at a time, which leaves
 * FEW columns in each register, and then those of FEW registers. */
#define DEFINE_TURN(name, elem, MANY, FEW, PAIRS)                                                  \
    AVX512 void name(const char *in, size_t pitch, char *out, size_t pitch_out)                    \
    {                                                                                              \
        typedef elem line __attribute__((vector_size(LINE)));                                      \
        enum { HALF = LINE / 2 / sizeof(elem) };                                                   \
        line x[MANY], y[MANY], part[MANY][FEW];                                                    \
                                                                                                   \
        for (size_t j = 0; j < FEW; j++) {                                                         \
            for (size_t k = 0; k < MANY; k++)                                                      \
                memcpy(&x[k], in + (k * FEW + j) * pitch, LINE);                                   \
            INTERLEAVE(MANY, PAIRS, HALF)                                                          \
            for (size_t k = 0; k < MANY; k++)                                                      \
                part[k][j] = x[k];                                                                 \
        }                                                                                          \
        for (size_t p = 0; p < MANY; p++) {                                                        \
            for (size_t k = 0; k < FEW; k++)                                                       \
                x[k] = part[p][k];                                                                 \
            INTERLEAVE(FEW, PAIRS, HALF)                                                           \
            for (size_t k = 0; k < FEW; k++)                                                       \
                memcpy(out + (p * FEW + k) * pitch_out, &x[k], LINE);                              \
        }                                                                                          \
    }

DEFINE_TURN(transpose_turn_1_avx512, uint8_t, 8, 8, FROM_0_32)
DEFINE_TURN(transpose_turn_2_avx512, uint16_t, 16, 2, FROM_0_16)
DEFINE_TURN(transpose_turn_4_avx512, uint32_t, 16, 1, FROM_0_8)
DEFINE_TURN(transpose_turn_8_avx512, uint64_t, 8, 1, FROM_0_4)

/* --- writing it --------------------------------------------------------------------------------------- */

/* The last `bytes` of a line and, after them, the first ones of another. */
AVX512 static inline __m512i join_lines(__m512i line, __m512i then, size_t bytes)
{
    static const _Alignas(LINE) char places[LINE] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    const __m512i first = _mm512_set1_epi8((char)(LINE - bytes));

    return _mm512_permutex2var_epi8(line, _mm512_add_epi8(_mm512_load_si512(places), first), then);
}

/* Bytes `begin` to `end` of a line, of which there may be none. */
AVX512 static inline void store_part(char *to, __m512i line, size_t begin, size_t end)
{
    const uint64_t before_end = end < LINE ? (UINT64_C(1) << end) - 1 : UINT64_MAX;

    if (begin == 0 && end >= LINE)
        _mm512_stream_si512((void *)to, line);
    else if (begin < end)
        _mm512_mask_storeu_epi8(to, before_end & UINT64_MAX << begin, line);
}

/* Tiles below each other, turned, of which lines go to rows of the answer. */
struct turned {
    const char *tile;
    char *to, *carry;
    size_t pitch, size, bytes; /* of an element, and what a row gets */
    int64_t lines, tiles;
    bool is_top, is_bottom;
};

AVX512 static inline __m512i line_of(const struct turned *t, int64_t line, int64_t tile)
{
    return _mm512_load_si512(t->tile + tile * (LINE * LINE / (int64_t)t->size) + line * LINE);
}

/* Where rows of the answer begin at lines. */
AVX512 static inline void put_at_lines(const struct turned *t, struct transpose_gather *gather)
{
    for (int64_t k = 0; k < t->lines; k++)
        for (int64_t i = 0; i < t->tiles; i++) {
            transpose_gather_line(gather);
            _mm512_stream_si512((void *)(t->to + (size_t)k * t->pitch + i * LINE),
                                line_of(t, k, i));
        }
}

/* Between tiles: the end of the line above, and each one's beginning. */
AVX512 static inline void put_between(const struct turned *t, struct transpose_gather *gather)
{
    for (int64_t k = 0; k < t->lines; k++) {
        char *to = t->to + (size_t)k * t->pitch;
        const size_t past = (uintptr_t)to % LINE;
        __m512i above = _mm512_load_si512(t->carry + k * LINE);

        for (int64_t i = 0; i < t->tiles; i++) {
            const __m512i line = line_of(t, k, i);

            transpose_gather_line(gather);
            _mm512_stream_si512((void *)(to - past + i * LINE), join_lines(above, line, past));
            above = line;
        }
        _mm512_store_si512(t->carry + k * LINE, above);
    }
}

/* At the top there is no line above, at the bottom none that comes. */
AVX512 static void put_at_edge(const struct turned *t, struct transpose_gather *gather)
{
    for (int64_t k = 0; k < t->lines; k++) {
        char *to = t->to + (size_t)k * t->pitch;
        const size_t past = (uintptr_t)to % LINE, end = past + t->bytes;
        const __m512i line = _mm512_load_si512(t->tile + k * LINE),
                      above = _mm512_load_si512(t->carry + k * LINE);

        transpose_gather_line(gather);
        _mm512_store_si512(t->carry + k * LINE, line);
        store_part(to - past, join_lines(above, line, past), t->is_top ? past : 0, end);
        if (t->is_bottom && end > LINE)
            store_part(to - past + LINE, join_lines(line, line, past), 0, end - LINE);
    }
}

AVX512 static void put_tiles(const struct turned *t, struct transpose_gather *gather)
{
    const bool is_whole = t->bytes % LINE == 0;

    if (is_whole && ((uintptr_t)t->to | t->pitch) % LINE == 0)
        put_at_lines(t, gather);
    else if (t->is_top || t->is_bottom)
        put_at_edge(t, gather);
    else
        put_between(t, gather);
}

AVX512 void transpose_put_avx512(const struct transpose_panel *p, size_t size, transpose_turn *turn,
                                 struct transpose_gather *next)
{
    const struct transpose_block *b = &p->block;
    const int64_t side = LINE / (int64_t)size, most = DEEP * side;
    struct transpose_gather gather = *next; /* apart from what is written: it stays in registers */
    _Alignas(LINE) char tiles[DEEP * LINE * LINE];

    for (int64_t col = 0; col < b->cols; col += side)
        for (int64_t row = 0, high; row < b->rows; row += high) {
            const bool is_top = p->is_top && row == 0,
                       is_bottom = p->is_bottom && row + most >= b->rows;

            high = is_top || is_bottom ? side : most;
            high = b->rows - row < high ? b->rows - row : high;
            for (int64_t i = 0; i < high; i += side)
                turn(p->from + (size_t)(row + i) * p->pitch + (size_t)col * size, p->pitch,
                     tiles + i * LINE, LINE);
            put_tiles(
                &(struct turned){.tile = tiles,
                                 .to = b->out + (size_t)col * b->pitch_out + (size_t)row * size,
                                 .carry = p->carry + col * LINE,
                                 .pitch = b->pitch_out,
                                 .size = size,
                                 .bytes = (size_t)high * size,
                                 .lines = b->cols - col < side ? b->cols - col : side,
                                 .tiles = high / side,
                                 .is_top = is_top,
                                 .is_bottom = is_bottom && row + side >= b->rows},
                &gather);
        }
    while (gather.rows > 0)
        transpose_gather_line(&gather);
}
#endif
