/*
 * Bytes under a separable mask of up to 7 x 7 whose column reads the same from either end, 64 at a time and two rows
 * of the answer together. Of four taps of the row the processor multiplies bytes by signed bytes and adds the products, so a
 * weight is two digits, upper and lower, and a sum along the row two words: those of its digits. Down the column
 * it multiplies and adds both, after words of two lines with the same weight have been added, for which they
 * are moved to around 0. Sums along the row are made once for each line and kept while the mask passes.
 */
#include "conv_cpu_symmetric.h"

#ifdef __x86_64__
#define TARGET __attribute__((target("avx512bw,avx512vbmi,avx512vnni")))
#define INLINE TARGET static inline __attribute__((always_inline))

enum {
    SIDE_MOST = 7,
    GROUPS = 2, /* of four taps of a row */
    DIGIT = 5,  /* bits */
    BASE = 1 << DIGIT,
    LANES = sizeof(__m512i) / sizeof(int32_t),
    VECTORS = 4,
    CHUNK = VECTORS * LANES,
    WORD = 1 << 16,
    STRIP = 1536,          /* elements of a row that are taken at a time */
    PITCH = STRIP + CHUNK, /* from row to row of sums, so that they do not meet in the cache */
};

/* Sums of digits are within 2^15 of each other, so moved to around 0 two of them fit a word. */
_Static_assert(255 * (int)SIDE_MOST * (int)BASE / 2 <= INT16_MAX &&
                   255 * ((int)CONV_CPU_SYMMETRIC_ROW_MOST / (int)BASE + (int)SIDE_MOST) <=
                       INT16_MAX,
               "of seven digits");
_Static_assert((int)STRIP % (int)CHUNK == 0 && (int)CONV_CPU_RUN % (int)CHUNK == 0,
               "strips and runs are whole chunks");

/* Of a row's weights the upper or lower digits, and where sums of them begin. */
struct digits {
    __m512i groups[GROUPS], start;
};

/* A mask in all lanes of vectors. */
struct taps {
    int64_t step;      /* bytes from a group to the next */
    __m512i spread[2]; /* where the bytes of a group stand, of two vectors of sums */
    struct digits upper, lower;
    __m512i down[SIDE_MOST / 2 + 1]; /* a weight for either word */
    __m512i
        start; /* of sums down the column: what was moved, and what is added before they are shifted */
};

/* What is kept of a strip, from row to row. */
struct state {
    struct taps taps;
    bool is_ahead; /* the next row has been worked out, with the one above it */
    int first;     /* where the top line under the mask stands in `rows` */
    struct conv_cpu_run upper, lower;
    /* Sums along the mask's row, of the lines under it and of the one below. */
    _Alignas(64) int32_t rows[SIDE_MOST + 1][PITCH];
};

/* --- a mask -------------------------------------------------------------------------------------------- */

/* Lays digits of `count` weights. Returns what must be added to their sums to be around 0. */
TARGET static int32_t lay_digits(const int32_t *weights, int count, struct digits *digits)
{
    int8_t bytes[GROUPS * 4] = {0};
    int32_t sum = 0;

    for (int j = 0; j < count; j++) {
        bytes[j] = (int8_t)weights[j];
        sum += weights[j];
    }
    for (int g = 0; g < GROUPS; g++) {
        int32_t group;

        memcpy(&group, bytes + g * 4, sizeof group);
        digits->groups[g] = _mm512_set1_epi32(group);
    }
    return -(255 * sum / 2);
}

/* Of the bytes that follow a vector's first, those that its sums multiply: a sum's four taps, then the next one's. */
TARGET static __m512i spread_of(int first, int64_t channels)
{
    uint8_t places[sizeof(__m512i)];

    for (int k = 0; k < (int)sizeof places; k++)
        places[k] = (uint8_t)(first + k / 4 + k % 4 * channels);
    return _mm512_loadu_si512(places);
}

TARGET static void lay(const struct conv_cpu *cpu, struct taps *taps)
{
    const struct conv_mask *mask = cpu->mask;
    int32_t upper[SIDE_MOST], lower[SIDE_MOST], moved[2];
    int64_t start = conv_tail_only_shifts(&cpu->tail) ? cpu->tail.add : 0;

    for (int j = 0; j < mask->width; j++) {
        upper[j] = (mask->row[j] + BASE / 2) >> DIGIT;
        lower[j] = mask->row[j] - upper[j] * BASE;
    }
    moved[0] = lay_digits(upper, mask->width, &taps->upper);
    moved[1] = lay_digits(lower, mask->width, &taps->lower);
    taps->upper.start = _mm512_set1_epi32(moved[0]);
    taps->lower.start = _mm512_set1_epi32(moved[1] + WORD / 2);
    for (int i = 0; i <= mask->height / 2; i++)
        taps->down[i] =
            _mm512_set1_epi32(mask->column[i] * BASE * WORD | (mask->column[i] & (WORD - 1)));
    for (int i = 0; i < mask->height; i++)
        start -= (int64_t)mask->column[i] * (moved[0] * BASE + moved[1]);
    taps->start = _mm512_set1_epi32((int32_t)start);
    taps->step = 4 * cpu->channels;
    taps->spread[0] = spread_of(0, cpu->channels);
    taps->spread[1] = spread_of(LANES, cpu->channels);
}

/* --- along its row ------------------------------------------------------------------------------------- */

/* Two vectors of sums. */
INLINE void go_along(const struct taps *taps, const char *line, int32_t *to)
{
    const __m512i sign = _mm512_set1_epi32(WORD / 2);
    __m512i upper[2] = {taps->upper.start, taps->upper.start};
    __m512i lower[2] = {taps->lower.start, taps->lower.start};

    for (int g = 0; g < GROUPS; g++) {
        __m512i bytes = _mm512_loadu_si512(line + g * taps->step);

        __asm__("" : "+v"(bytes)); /* the compiler would load for each of the two */
        for (int v = 0; v < 2; v++) {
            const __m512i four = _mm512_permutexvar_epi8(taps->spread[v], bytes);

            upper[v] = _mm512_dpbusd_epi32(upper[v], four, taps->upper.groups[g]);
            lower[v] = _mm512_dpbusd_epi32(lower[v], four, taps->lower.groups[g]);
        }
    }
    for (int v = 0; v < 2; v++) {
        const __m512i both = _mm512_add_epi32(_mm512_slli_epi32(upper[v], 16), lower[v]);

        _mm512_store_si512(to + v * LANES, _mm512_xor_si512(both, sign));
    }
}

TARGET static void line_along(const struct taps *kept, const char *line, int64_t elems, int32_t *to)
{
    const struct taps taps = *kept; /* apart from what is written: it stays in registers */

    for (int64_t e = 0; e < elems; e += 2 * LANES)
        go_along(&taps, line + e, to + e);
}

/* --- down its column ----------------------------------------------------------------------------------- */

/* A vector of sums over those along the row, and one of the row of the answer below. */
INLINE void go_down(const struct taps *taps, int half, int32_t *const *rows, int64_t e,
                    __m512i *upper, __m512i *lower)
{
    *upper = _mm512_dpwssd_epi32(taps->start, _mm512_load_si512(rows[half] + e), taps->down[half]);
    *lower =
        _mm512_dpwssd_epi32(taps->start, _mm512_load_si512(rows[half + 1] + e), taps->down[half]);
    for (int i = 0; i < half; i++) {
        const int last = 2 * half - i;
        const __m512i above =
            _mm512_add_epi16(_mm512_load_si512(rows[i] + e), _mm512_load_si512(rows[last] + e));
        const __m512i below = _mm512_add_epi16(_mm512_load_si512(rows[i + 1] + e),
                                               _mm512_load_si512(rows[last + 1] + e));

        *upper = _mm512_dpwssd_epi32(*upper, above, taps->down[i]);
        *lower = _mm512_dpwssd_epi32(*lower, below, taps->down[i]);
    }
}

/* Packing leaves each vector's lanes apart. */
INLINE __m512i packed(const __m512i sums[VECTORS])
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i low = _mm512_packs_epi32(sums[0], sums[1]);
    const __m512i high = _mm512_packs_epi32(sums[2], sums[3]);

    return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high));
}

INLINE void put_sums(const struct conv_tail *tail, __m512i sums[VECTORS], char *to)
{
    const __m512i shift = _mm512_set1_epi32(tail->shift);

    if (conv_tail_only_shifts(tail)) {
        for (int v = 0; v < VECTORS; v++)
            sums[v] = _mm512_srav_epi32(sums[v], shift);
        _mm512_store_si512(to, packed(sums));
    } else {
        int32_t plain[CHUNK];

        for (int v = 0; v < VECTORS; v++)
            _mm512_storeu_si512(plain + v * LANES, sums[v]);
        for (int i = 0; i < CHUNK; i++)
            to[i] = (char)conv_saturate(conv_tail_apply(plain[i], tail));
    }
}

/* The two lines that come after the next two: a pass over a strip is shorter than a way to memory and back. */
static inline void fetch_ahead(const struct conv_cpu_strip *strip, int64_t at)
{
    const int64_t pitch = strip->next_in[1] - strip->next_in[0];

    for (int k = 0; k < 2; k++)
        __builtin_prefetch(
            (const void *)((uintptr_t)strip->next_in[k] + (uintptr_t)(2 * pitch + at)));
}

/* Columns `at` to `end`, a run of them, of two rows of the answer. */
INLINE void run_down_by(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                        int32_t *const *rows, int64_t at, int64_t end, int half)
{
    struct state *const kept = strip->state;
    const struct taps taps = kept->taps;

    for (int64_t e = at; e < end; e += CHUNK) {
        __m512i upper[VECTORS], lower[VECTORS];

        fetch_ahead(strip, e);
        for (int v = 0; v < VECTORS; v++)
            go_down(&taps, half, rows, e + v * LANES, &upper[v], &lower[v]);
        put_sums(&cpu->tail, upper, conv_cpu_place(&kept->upper, e));
        put_sums(&cpu->tail, lower, conv_cpu_place(&kept->lower, e));
    }
}

TARGET static void run_down(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                            int32_t *const *rows, int64_t at, int64_t end)
{
    if (cpu->mask->height == 3)
        run_down_by(cpu, strip, rows, at, end, 1);
    else if (cpu->mask->height == 5)
        run_down_by(cpu, strip, rows, at, end, 2);
    else
        run_down_by(cpu, strip, rows, at, end, 3);
}

/* --- both ---------------------------------------------------------------------------------------------- */

/* Sums along the lines under the mask stand in `rows` from the top, but for the last; then along two more. */
static void begin_rows(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                       int32_t *rows[SIDE_MOST + 1])
{
    struct state *const state = strip->state;
    const int height = cpu->mask->height;

    if (strip->is_first) {
        lay(cpu, &state->taps);
        state->first = 0;
    }
    for (int i = 0; i <= height; i++) {
        rows[i] = state->rows[(state->first + i) % (height + 1)];
        if (strip->is_first || i >= height - 1)
            line_along(&state->taps, strip->lines[i], strip->elems, rows[i]);
    }
    state->first = (state->first + 2) % (height + 1);
}

/* Two rows of the answer in one call of two. */
static void down_two(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip, char *out)
{
    struct state *const state = strip->state;
    const int64_t elems = strip->elems;
    int32_t *rows[SIDE_MOST + 1];

    if (!strip->is_first && state->is_ahead) {
        state->is_ahead = false;
        return;
    }
    state->is_ahead = strip->next_out != out;
    begin_rows(cpu, strip, rows);
    for (int64_t at = 0; at < elems; at += CONV_CPU_RUN) {
        const int64_t end = elems - at < CONV_CPU_RUN ? elems : at + CONV_CPU_RUN;

        run_down(cpu, strip, rows, at, end);
        conv_cpu_put_run(cpu, &state->upper, out, at, end, end == elems);
        if (state->is_ahead)
            conv_cpu_put_run(cpu, &state->lower, strip->next_out, at, end, end == elems);
    }
}

bool conv_cpu_use_symmetric_avx512(struct conv_cpu *cpu)
{
    if (cpu->mask->width > SIDE_MOST || cpu->mask->height > SIDE_MOST ||
        !__builtin_cpu_supports("avx512vbmi"))
        return false;
    cpu->strip_most = STRIP;
    cpu->state_bytes = sizeof(struct state);
    cpu->down = down_two;
    return true;
}
#endif
