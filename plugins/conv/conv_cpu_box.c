/*
 * Boxes of bytes. The weights of a box along an axis are one number at both ends, and that or one more (or one less)
 * between: a window of all taps, and narrower ones within it that are added or taken away. The sums along the
 * mask's row are made once for each line and kept while the mask passes; a sum of the answer becomes the one below
 * it by what enters its windows and what leaves them. Along a long row the sum of a window is the difference of
 * two totals, each of all that stands before an end of it; they run over, and differ by the right number modulo
 * 2^16 all the same. So no cost grows with the box, but that of a band's first row.
 */
#include "conv_cpu.h"
#include <stdlib.h>

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE AVX2 static inline __attribute__((always_inline))

enum {
    BLOCK = 16,      /* columns that are worked on at a time */
    PAIRS = 2,       /* windows within a box, at the most */
    DIRECT_MOST = 9, /* taps of a row that are added one by one */
    STRIP = 1152,    /* elements */
    BAND_ROWS = 16, /* of the answer, for each line under the mask, whose sums a band begins with */
};

_Static_assert((int)STRIP % (2 * (int)BLOCK) == 0 && 8 * (int)BLOCK <= (int)CONV_CPU_SLACK,
               "strips are whole pairs of blocks, and totals reach a few blocks behind a row");

/* How the weights along an axis step. A window within the box begins at its pair's `minus` and ends at `plus`; one
 * that is taken away, the other way round. Pairs that there are not are windows of nothing. */
struct steps {
    int32_t edge; /* the first weight */
    int size, pairs;
    int plus[PAIRS], minus[PAIRS];
};

/* How the sums along a line are made: of two sums of words, times two weights. */
struct along {
    int pairs;
    int taps; /* that are added one by one; 0: by totals */
    __m256i weights;
    /* Places of taps that have the edge's weight, the first at 0, and of the others. */
    int64_t edge_at[DIRECT_MOST], other_at[DIRECT_MOST];
    /* Places of totals, where windows begin and end. */
    int64_t end, plus[PAIRS], minus[PAIRS];
};

/* What a worker keeps of a strip, from row to row. Columns of a block are in the order that unpacking leaves. */
struct state {
    struct steps down;
    struct along along;
    int first; /* where the top line under the mask stands in `rows` */
    /* Of the next row of the answer; along the row, of the lines under the mask. */
    _Alignas(64) int32_t sums[STRIP], rows[CONV_SIZE_MAX][STRIP];
    uint16_t totals[STRIP + REACH_MOST + 4 * BLOCK];
};

/* Two vectors of sums: the first and third quarter of a block, and the second and fourth. */
struct block {
    __m256i even, odd;
};

INLINE struct block block_at(const int32_t *from)
{
    const __m256i *at = (const __m256i *)(const void *)from;

    return (struct block){_mm256_load_si256(at), _mm256_load_si256(at + 1)};
}

INLINE void put_block(int32_t *to, struct block block)
{
    __m256i *at = (__m256i *)(void *)to;

    _mm256_store_si256(at, block.even);
    _mm256_store_si256(at + 1, block.odd);
}

INLINE struct block block_add(struct block a, struct block b)
{
    return (struct block){_mm256_add_epi32(a.even, b.even), _mm256_add_epi32(a.odd, b.odd)};
}

INLINE struct block block_subtract(struct block a, struct block b)
{
    return (struct block){_mm256_sub_epi32(a.even, b.even), _mm256_sub_epi32(a.odd, b.odd)};
}

INLINE struct block block_times(struct block a, __m256i weight)
{
    return (struct block){_mm256_mullo_epi32(a.even, weight), _mm256_mullo_epi32(a.odd, weight)};
}

INLINE __m256i words_at(const char *bytes)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)bytes));
}

INLINE __m256i totals_at(const uint16_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

/* False: this is no box, or one of too many windows. */
static bool steps_of(const int32_t *weights, int size, struct steps *steps)
{
    *steps = (struct steps){.edge = weights[0], .size = size};
    for (int i = 0; i < size; i++)
        if (abs(weights[i] - weights[0]) > 1 || weights[i] != weights[size - 1 - i])
            return false;
    for (int i = 1; i <= size / 2; i++) {
        const int step = weights[i] - weights[i - 1];

        if (step == 0)
            continue;
        if (abs(step) > 1 || steps->pairs == PAIRS)
            return false;
        steps->plus[steps->pairs] = step > 0 ? size - i : i;
        steps->minus[steps->pairs++] = step > 0 ? i : size - i;
    }
    return size >= 3 && abs(steps->edge) < INT16_MAX;
}

static int32_t pair_of(int32_t low, int32_t high)
{
    return (int32_t)((uint32_t)high << 16 | (low & 0xffff));
}

AVX2 static struct along along_of(const struct conv_cpu *cpu)
{
    const struct conv_mask *mask = cpu->mask;
    struct along along = {.end = mask->width * cpu->channels};
    struct steps steps;
    int edges = 0, others = 0;
    int32_t other = 1;

    steps_of(mask->row, mask->width, &steps);
    along.pairs = steps.pairs;
    for (int k = 0; k < PAIRS; k++) {
        along.plus[k] = steps.plus[k] * cpu->channels;
        along.minus[k] = steps.minus[k] * cpu->channels;
    }
    for (int j = 0; j < mask->width && mask->width <= DIRECT_MOST; j++)
        if (mask->row[j] == steps.edge) {
            along.edge_at[edges++] = j * cpu->channels;
        } else {
            along.other_at[others++] = j * cpu->channels;
            other = mask->row[j];
        }
    if (others > 0 && others == mask->width / 2)
        along.taps = mask->width;
    else
        other = 1;
    along.weights = _mm256_set1_epi32(pair_of(steps.edge, other));
    return along;
}

/* --- totals along a line ------------------------------------------------------------------------------ */

/* Which of eight totals each of the next eight goes on from, the first of which is `ahead` on. */
INLINE __m128i order_of(int channels, int ahead)
{
    uint16_t order[8];
    __m128i bytes;

    for (int i = 0; i < 8; i++)
        order[i] = (uint16_t)((8 - channels + (ahead + i) % channels) * 0x0202 + 0x0100);
    memcpy(&bytes, order, sizeof bytes);
    return bytes;
}

/* Totals within each half of words `channels` apart. */
INLINE __m256i total_halves(__m256i words, int channels)
{
    if (channels == 3) {
        words = _mm256_add_epi16(words, _mm256_bslli_epi128(words, 6));
        return _mm256_add_epi16(words, _mm256_bslli_epi128(words, 12));
    }
    if (channels == 1) {
        words = _mm256_add_epi16(words, _mm256_bslli_epi128(words, 2));
        words = _mm256_add_epi16(words, _mm256_bslli_epi128(words, 4));
    }
    return _mm256_add_epi16(words, _mm256_bslli_epi128(words, 8));
}

INLINE void make_totals(const char *line, int64_t count, uint16_t *totals, int channels)
{
    const __m128i next = order_of(channels, 0);
    const __m256i half = _mm256_set_m128i(next, next);
    const __m256i whole = _mm256_set_m128i(order_of(channels, 8), next);
    __m256i before = _mm256_setzero_si256(); /* the last eight, in both halves */

    memset(totals, 0, (size_t)channels * sizeof *totals);
    for (int64_t e = 0; e < count; e += BLOCK) {
        __m256i words = total_halves(words_at(line + e), channels);

        words = _mm256_add_epi16(
            words, _mm256_shuffle_epi8(_mm256_permute2x128_si256(words, words, 0x08), half));
        words = _mm256_add_epi16(words, _mm256_shuffle_epi8(before, whole));
        before = _mm256_permute2x128_si256(words, words, 0x11);
        _mm256_storeu_si256((__m256i *)(void *)(totals + channels + e), words);
    }
}

AVX2 static void make_totals_of(const char *line, int64_t count, uint16_t *totals, int64_t channels)
{
    if (channels == 1)
        make_totals(line, count, totals, 1);
    else if (channels == 3)
        make_totals(line, count, totals, 3);
    else
        make_totals(line, count, totals, 4);
}

/* --- sums along a line -------------------------------------------------------------------------------- */

INLINE struct block weigh(__m256i a, __m256i b, __m256i weights)
{
    return (struct block){_mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), weights),
                          _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), weights)};
}

/* By taps, of which one more than half has the edge's weight. */
INLINE struct block along_taps(const struct along *along, const char *line, int64_t e, int taps)
{
    __m256i edge = words_at(line + e), other = words_at(line + e + along->other_at[0]);

    for (int j = 1; j <= taps / 2; j++)
        edge = _mm256_add_epi16(edge, words_at(line + e + along->edge_at[j]));
    for (int j = 1; j < taps / 2; j++)
        other = _mm256_add_epi16(other, words_at(line + e + along->other_at[j]));
    return weigh(edge, other, along->weights);
}

INLINE struct block along_totals(const struct along *along, const uint16_t *totals, int64_t e,
                                 int pairs)
{
    const uint16_t *from = totals + e;
    const __m256i all = _mm256_sub_epi16(totals_at(from + along->end), totals_at(from));
    __m256i inner = _mm256_setzero_si256();

    for (int k = 0; k < pairs; k++)
        inner = _mm256_add_epi16(inner, _mm256_sub_epi16(totals_at(from + along->plus[k]),
                                                         totals_at(from + along->minus[k])));
    return weigh(all, inner, along->weights);
}

struct line {
    const char *elems;
    const uint16_t *totals; /* where taps are not added one by one */
};

INLINE struct line line_of(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip, int i)
{
    struct state *state = strip->state;

    if (state->along.taps == 0)
        make_totals_of(strip->lines[i], strip->elems + 2 * BLOCK + state->along.end, state->totals,
                       cpu->channels);
    return (struct line){strip->lines[i], state->totals};
}

INLINE struct block along_line(const struct along *along, struct line line, int64_t e, int taps,
                               int pairs)
{
    return taps > 0 ? along_taps(along, line.elems, e, taps)
                    : along_totals(along, line.totals, e, pairs);
}

/* --- rows of the answer --------------------------------------------------------------------------------- */

/* The first row of a band, of whose lines there are no sums yet. */
INLINE void begin_band(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip, int taps,
                       int pairs)
{
    const struct conv_mask *mask = cpu->mask;
    struct state *state = strip->state;
    const struct along along = state->along;

    memset(state->sums, 0, sizeof state->sums);
    state->first = 0;
    for (int i = 0; i < mask->height; i++) {
        const __m256i weight = _mm256_set1_epi32(mask->column[i]);
        const struct line line = line_of(cpu, strip, i);

        for (int64_t e = 0; e < strip->elems; e += BLOCK) {
            const struct block sums = along_line(&along, line, e, taps, pairs);

            put_block(state->rows[i] + e, sums);
            put_block(state->sums + e,
                      block_add(block_at(state->sums + e), block_times(sums, weight)));
        }
    }
}

/* Where sums along the lines stand that enter and leave windows: those of the lowest line take the place of those
 * of the top one. */
struct column {
    int32_t *top, *plus[PAIRS], *minus[PAIRS];
};

static struct column column_of(struct state *state)
{
    const struct steps *down = &state->down;
    struct column column = {.top = state->rows[state->first]};

    for (int k = 0; k < PAIRS; k++) {
        column.plus[k] = state->rows[(state->first + down->plus[k]) % down->size];
        column.minus[k] = state->rows[(state->first + down->minus[k]) % down->size];
    }
    return column;
}

/* The sums of a block of the answer; in their place are left those of the next row. */
INLINE struct block next_block(const struct column *column, int32_t *sums, struct block enters,
                               int64_t e, __m256i edge, int pairs)
{
    const struct block now = block_at(sums + e);
    struct block more = block_times(block_subtract(enters, block_at(column->top + e)), edge);

    for (int k = 0; k < pairs; k++)
        more = block_add(
            more, block_subtract(block_at(column->plus[k] + e), block_at(column->minus[k] + e)));
    put_block(column->top + e, enters);
    put_block(sums + e, block_add(now, more));
    return now;
}

INLINE __m256i finish(struct block sums, __m256i add, __m128i shift)
{
    return _mm256_packs_epi32(_mm256_sra_epi32(_mm256_add_epi32(sums.even, add), shift),
                              _mm256_sra_epi32(_mm256_add_epi32(sums.odd, add), shift));
}

INLINE void put(char *to, __m256i low, __m256i high)
{
    _mm256_store_si256((__m256i *)(void *)to,
                       _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xd8));
}

INLINE void go_down(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip, char *out,
                    int taps, int pairs)
{
    struct state *state = strip->state;
    const struct along along = state->along;
    const __m256i edge = _mm256_set1_epi32(state->down.edge),
                  add = _mm256_set1_epi32((int32_t)cpu->tail.add);
    const __m128i shift = _mm_cvtsi32_si128(cpu->tail.shift);
    const int64_t elems = strip->elems;
    struct conv_cpu_run run;
    struct column column;
    struct line line;

    if (strip->is_first)
        begin_band(cpu, strip, taps, pairs);
    column = column_of(state);
    line = line_of(cpu, strip, state->down.size);
    for (int64_t e = 0; e < elems; e += 2 * BLOCK) {
        __m256i words[2];

        conv_cpu_fetch(cpu, strip, e, 2 * BLOCK);
        for (int b = 0; b < 2; b++) {
            const int64_t at = e + b * BLOCK;
            const struct block enters = along_line(&along, line, at, taps, pairs);

            words[b] =
                finish(next_block(&column, state->sums, enters, at, edge, pairs), add, shift);
        }
        put(conv_cpu_place(&run, e), words[0], words[1]);
        conv_cpu_put_chunk(cpu, &run, out, e, 2 * BLOCK, elems);
    }
    state->first = (state->first + 1) % state->down.size;
}

INLINE void go_down_by(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip, char *out,
                       int taps)
{
    const struct state *state = strip->state;

    if (state->down.pairs < 2 && state->along.pairs < 2)
        go_down(cpu, strip, out, taps, 1);
    else
        go_down(cpu, strip, out, taps, 2);
}

/* Inlined for each number of taps, so that the compiler unrolls what it knows the length of. */
AVX2 static void down(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip, char *out)
{
    struct state *state = strip->state;

    if (strip->is_first) {
        steps_of(cpu->mask->column, cpu->mask->height, &state->down);
        state->along = along_of(cpu);
    }
    if (state->along.taps == 3)
        go_down_by(cpu, strip, out, 3);
    else if (state->along.taps == 5)
        go_down_by(cpu, strip, out, 5);
    else if (state->along.taps == 7)
        go_down_by(cpu, strip, out, 7);
    else if (state->along.taps == 9)
        go_down_by(cpu, strip, out, 9);
    else
        go_down_by(cpu, strip, out, 0);
}

/* --- which masks ------------------------------------------------------------------------------------------ */

bool conv_cpu_use_box(struct conv_cpu *cpu)
{
    const struct conv_mask *mask = cpu->mask;
    struct steps steps;

    if (!mask->is_separable || !conv_tail_only_shifts(&cpu->tail) ||
        !steps_of(mask->column, mask->height, &steps) ||
        !steps_of(mask->row, mask->width, &steps) || cpu->level == CONV_CPU_PLAIN)
        return false;
    cpu->strip_most = STRIP;
    cpu->band = BAND_ROWS * mask->height;
    cpu->state_bytes = sizeof(struct state);
    cpu->down = down;
    return true;
}
#else
bool conv_cpu_use_box(struct conv_cpu *cpu)
{
    (void)cpu;
    return false;
}
#endif
