/*
 * Bytes under a mask of small weights, whose sums fit 16 bits: of two taps at a time the processor multiplies bytes
 * by signed bytes and adds the products. Masks of 3 x 3 and 5 x 5, and such with fewer rows or a single column, go down
 * the image two rows at a time. A row of the image is read once, for all rows of the answer that it belongs to: two of
 * them are done then, the sums of the others are kept. Else each row of the answer is worked out alone, by the taps
 * that have a weight.
 */
#include "conv_cpu.h"
#include <stdlib.h>

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE AVX2 static inline __attribute__((always_inline))
/* Of known counts, so that arrays stay in registers. */
#define UNROLL _Pragma("GCC unroll 8")

enum {
    VECTOR = 32, /* bytes */
    CHUNK = 64,
    MAGNITUDE_MOST = INT16_MAX / 255,
    PAIRS_MOST = MAGNITUDE_MOST / 2 + 1,
    WORDS = VECTOR / sizeof(int16_t),
    SIDE_MOST = 5, /* of masks that go two rows at a time; */
    HALF_SIDE = SIDE_MOST / 2,
    STRIP = 7680, /* elements of a row that they are taken to at a time, */
    BAND = 128,   /* rows, and */
    RUN = 512,    /* results of the lower one that go to memory */
};

_Static_assert(2 * (int)CHUNK <= (int)CONV_CPU_SLACK, "two chunks may reach as far behind a row");
_Static_assert((int)STRIP % (int)CHUNK == 0 && (int)RUN % (int)CHUNK == 0,
               "strips and runs are whole chunks");

/* --- a row of the answer at a time ---------------------------------------------------------------------- */

/* Two taps: where their bytes stand for element 0, and their weights, the first in the low byte. */
struct pair {
    const char *first, *second;
    int32_t weights; /* in either half */
};

static int pairs_of(const struct conv_cpu *cpu, const char *const *rows, struct pair *pairs)
{
    const struct conv_mask *mask = cpu->mask;
    int taps = 0;

    for (int i = 0; i < mask->width * mask->height; i++) {
        const char *at = rows[i / mask->width] + i % mask->width * cpu->channels;
        const int32_t weight = mask->weight[i] & 0xff;
        struct pair *pair = &pairs[taps / 2];

        if (weight == 0)
            continue;
        if (taps++ % 2 == 0)
            *pair = (struct pair){at, at, weight * 0x10001};
        else
            *pair = (struct pair){pair->first, at,
                                  (int32_t)((uint32_t)weight * 0x1000100) | pair->weights};
    }
    return (taps + 1) / 2;
}

/* Sums of 32 bytes: within each half of 16 the lower eight and the upper. */
struct sums {
    __m256i low, high;
};

AVX2 static inline void add_pair(struct sums *sums, const char *first, const char *second,
                                 __m256i weights)
{
    const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)first);
    const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)second);
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);

    sums->low = _mm256_add_epi16(sums->low, _mm256_maddubs_epi16(low, weights));
    sums->high = _mm256_add_epi16(sums->high, _mm256_maddubs_epi16(high, weights));
}

AVX2 static inline __m256i finish(const struct conv_tail *tail, struct sums sums)
{
    const __m256i add = _mm256_set1_epi16((int16_t)tail->add);
    const __m128i shift = _mm_cvtsi32_si128(tail->shift);

    return _mm256_packus_epi16(_mm256_sra_epi16(_mm256_adds_epi16(sums.low, add), shift),
                               _mm256_sra_epi16(_mm256_adds_epi16(sums.high, add), shift));
}

/* The results of a chunk that may be the last of its row. */
AVX2 static inline void put_chunk(const struct conv_cpu *cpu, char *to, const __m256i results[2],
                                  int64_t left)
{
    __m256i *const at = (__m256i *)(void *)to;

    if (left < CHUNK) {
        memcpy(to, results, (size_t)left);
    } else if (cpu->is_streamed) {
        _mm256_stream_si256(at, results[0]);
        _mm256_stream_si256(at + 1, results[1]);
    } else {
        _mm256_storeu_si256(at, results[0]);
        _mm256_storeu_si256(at + 1, results[1]);
    }
}

AVX2 static void down_one(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip, char *out)
{
    struct pair pairs[PAIRS_MOST];
    const int count = pairs_of(cpu, strip->lines, pairs);

    for (int64_t e = 0; e < strip->elems; e += CHUNK) {
        struct sums left = {{0}, {0}}, right = {{0}, {0}};
        __m256i results[2];

        conv_cpu_fetch(cpu, strip, e, CHUNK);
        for (int i = 0; i < count; i++) {
            const __m256i weights = _mm256_set1_epi32(pairs[i].weights);

            add_pair(&left, pairs[i].first + e, pairs[i].second + e, weights);
            add_pair(&right, pairs[i].first + e + VECTOR, pairs[i].second + e + VECTOR, weights);
        }
        results[0] = finish(&cpu->tail, left);
        results[1] = finish(&cpu->tail, right);
        put_chunk(cpu, out + e, results, strip->elems - e);
    }
}

/* --- two rows of the answer at a time ------------------------------------------------------------------ */

/* A mask in the middle of one of 3 x 3 or 5 x 5, at its lower edge: what is beside it and above has no weight. */
struct laid {
    int64_t step; /* bytes from a column to the next; where there is but one, it stands for all */
    /* Two weights side by side: of a row, left of the middle and as far right of it; of the middle, a row's and the
     * one's below it. */
    __m256i beside[SIDE_MOST][HALF_SIDE], middle[SIDE_MOST + 1];
};

/* What of a mask is known as the code is compiled. */
struct kind {
    int side;
    bool is_mirrored; /* rows read the same from below */
    bool is_plain;    /* sums are results */
};

/* What is kept from row to row of a strip. */
struct kept {
    bool is_ahead; /* the next row has been worked out, with the one above it */
    struct laid mask;
    /* Results of the lower row: memory likes to get them in longer runs than a chunk. */
    __m256i lower[RUN / VECTOR];
    /* Of the rows of the answer that are begun, from the top: WORDS of each, then the next WORDS of each. */
    _Alignas(CHUNK) int16_t sums[(SIDE_MOST - 1) * (STRIP + CHUNK)];
};

static int side_of(const struct conv_mask *mask)
{
    return mask->width <= 3 && mask->height <= 3 ? 3 : SIDE_MOST;
}

/* Row i and column j of a mask that is laid; 0 beside it and above. */
static int weight_at(const struct conv_mask *mask, int side, int i, int j)
{
    const int row = i - (side - mask->height), column = j - (side - mask->width) / 2;

    return row >= 0 && row < mask->height && column >= 0 && column < mask->width
               ? mask->weight[row * mask->width + column]
               : 0;
}

AVX2 static inline __m256i weight_pair(int first, int second)
{
    return _mm256_set1_epi16((int16_t)((first & 0xff) | (second & 0xff) << 8));
}

AVX2 static void lay(const struct conv_cpu *cpu, struct laid *laid)
{
    const struct conv_mask *mask = cpu->mask;
    const int side = side_of(mask), half = side / 2;

    laid->step = mask->width > 1 ? cpu->channels : 0;
    for (int i = 0; i < side; i++)
        for (int j = 0; j < half; j++)
            laid->beside[i][j] =
                weight_pair(weight_at(mask, side, i, j), weight_at(mask, side, i, side - 1 - j));
    for (int i = 0; i <= side; i++)
        laid->middle[i] =
            weight_pair(weight_at(mask, side, i - 1, half), weight_at(mask, side, i, half));
}

/* The bytes of two lines, side by side as their weights are. */
struct pixels {
    __m256i upper[HALF_SIDE], lower[HALF_SIDE], middle;
};

INLINE __m256i unpack(const char *first, const char *second, bool is_high)
{
    const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)first);
    const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)second);

    return is_high ? _mm256_unpackhi_epi8(a, b) : _mm256_unpacklo_epi8(a, b);
}

INLINE struct pixels pixels_at(const char *upper, const char *lower, const struct laid *mask,
                               int side, bool is_high)
{
    const int64_t step = mask->step, middle = side / 2 * step;
    struct pixels x;

    UNROLL
    for (int j = 0; j < side / 2; j++) {
        const int64_t left = j * step, right = (side - 1 - j) * step;

        x.upper[j] = unpack(upper + left, upper + right, is_high);
        x.lower[j] = unpack(lower + left, lower + right, is_high);
    }
    x.middle = unpack(upper + middle, lower + middle, is_high);
    return x;
}

/* What row `row` of the mask makes of a line, but for its middle. */
INLINE __m256i beside_sum(const __m256i *pixels, const struct laid *mask, int row, struct kind kind)
{
    const __m256i *weights =
        mask->beside[kind.is_mirrored && row > kind.side / 2 ? kind.side - 1 - row : row];
    __m256i sum = _mm256_maddubs_epi16(pixels[0], weights[0]);

    UNROLL
    for (int j = 1; j < kind.side / 2; j++)
        sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(pixels[j], weights[j]));
    return sum;
}

/* Adds two lines to all sums that they belong to. The two upper ones are done, the others move up. */
INLINE void add_lines(struct pixels x, const struct laid *mask, struct kind kind, int16_t *sums,
                      __m256i done[2])
{
    __m256i *const at = (__m256i *)(void *)sums;

    UNROLL
    for (int k = 0; k <= kind.side; k++) {
        const int row = kind.side - k; /* of the mask, on the lower line */
        __m256i sum = _mm256_maddubs_epi16(x.middle, mask->middle[row]);

        if (k < kind.side - 1)
            sum = _mm256_add_epi16(sum, at[k]);
        if (k < kind.side)
            sum = _mm256_add_epi16(sum, beside_sum(x.upper, mask, row - 1, kind));
        if (k > 0)
            sum = _mm256_add_epi16(sum, beside_sum(x.lower, mask, row, kind));
        *(k < 2 ? &done[k] : &at[k - 2]) = sum;
    }
}

/* The results of a vector of columns, of either row. */
INLINE void pass_vector(const struct conv_cpu *cpu, const struct laid *mask, struct kind kind,
                        const char *above, const char *below, int16_t *sums, __m256i *upper,
                        __m256i *lower)
{
    const int next = (kind.side - 1) * WORDS;
    __m256i low[2], high[2];

    add_lines(pixels_at(above, below, mask, kind.side, false), mask, kind, sums, low);
    add_lines(pixels_at(above, below, mask, kind.side, true), mask, kind, sums + next, high);
    *upper = kind.is_plain ? _mm256_packus_epi16(low[0], high[0])
                           : finish(&cpu->tail, (struct sums){low[0], high[0]});
    *lower = kind.is_plain ? _mm256_packus_epi16(low[1], high[1])
                           : finish(&cpu->tail, (struct sums){low[1], high[1]});
}

/* A run of the lower row's results to where they belong. */
AVX2 static void put_run(const struct conv_cpu *cpu, const __m256i *from, char *to, int64_t count)
{
    for (int64_t e = 0; e < count; e += CHUNK, from += CHUNK / VECTOR)
        put_chunk(cpu, to + e, from, count - e);
}

/* Two lines under the mask into two rows of the answer, the lower of which may be NULL, or both: then into sums. */
typedef void pass_function(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                           const char *const lines[2], char *upper, char *lower);

INLINE void pass_lines(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                       const char *const lines[2], char *upper, char *lower, struct kind kind)
{
    struct kept *const kept = strip->state;
    const struct laid mask = kept->mask; /* apart from what is written: it stays in registers */
    const char *const above = lines[0], *const below = lines[1];
    const char *const next = strip->next_in[0], *const after = strip->next_in[1];
    int16_t *sums = kept->sums;

    for (int64_t at = 0; at < strip->elems; at += RUN) {
        const int64_t end = strip->elems - at < RUN ? strip->elems : at + RUN;
        __m256i *run = kept->lower;

        for (int64_t e = at; e < end; e += CHUNK, run += CHUNK / VECTOR) {
            __m256i results[2];

            __builtin_prefetch(next + e);
            __builtin_prefetch(after + e);
            for (int v = 0; v < 2; v++, sums += VECTOR * (kind.side - 1))
                pass_vector(cpu, &mask, kind, above + e + v * VECTOR, below + e + v * VECTOR, sums,
                            &results[v], &run[v]);
            if (upper)
                put_chunk(cpu, upper + e, results, end - e);
        }
        if (lower)
            put_run(cpu, kept->lower, lower + at, end - at);
    }
}

/* The line that is the last under the mask and the one below it, for two rows of the answer in one call of two. */
static void down_two(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip, char *out,
                     pass_function *pass)
{
    struct kept *const kept = strip->state;
    const int last = cpu->mask->height - 1;

    if (strip->is_first) {
        lay(cpu, &kept->mask);
        memset(kept->sums, 0,
               (size_t)((strip->elems + CHUNK) * (SIDE_MOST - 1)) * sizeof *kept->sums);
        for (int i = 0; i < last; i += 2)
            pass(cpu, strip, strip->lines + i, NULL, NULL);
    } else if (kept->is_ahead) {
        kept->is_ahead = false;
        return;
    }
    kept->is_ahead = strip->next_out != out;
    pass(cpu, strip, strip->lines + last, out, kept->is_ahead ? strip->next_out : NULL);
}

#define DEFINE_DOWN(name, side, is_mirrored, is_plain)                                             \
    AVX2 static void pass_##name(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,   \
                                 const char *const lines[2], char *upper, char *lower)             \
    {                                                                                              \
        pass_lines(cpu, strip, lines, upper, lower, (struct kind){side, is_mirrored, is_plain});   \
    }                                                                                              \
    static void down_##name(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,        \
                            char *out)                                                             \
    {                                                                                              \
        down_two(cpu, strip, out, pass_##name);                                                    \
    }

DEFINE_DOWN(3, 3, false, false)
DEFINE_DOWN(3_plain, 3, false, true)
DEFINE_DOWN(3_mirrored, 3, true, false)
DEFINE_DOWN(3_mirrored_plain, 3, true, true)
DEFINE_DOWN(5, 5, false, false)
DEFINE_DOWN(5_plain, 5, false, true)
DEFINE_DOWN(5_mirrored, 5, true, false)
DEFINE_DOWN(5_mirrored_plain, 5, true, true)

static bool is_mirrored(const struct conv_mask *mask, int side)
{
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++)
            if (weight_at(mask, side, i, j) != weight_at(mask, side, side - 1 - i, j))
                return false;
    return true;
}

/* False, and nothing done: not for a mask of this size. */
static bool use_two(struct conv_cpu *cpu)
{
    typedef void down_lines(const struct conv_cpu *, const struct conv_cpu_strip *, char *);
    static down_lines *const downs[2][2][2] = {
        {{down_3, down_3_plain}, {down_3_mirrored, down_3_mirrored_plain}},
        {{down_5, down_5_plain}, {down_5_mirrored, down_5_mirrored_plain}}};
    const struct conv_mask *mask = cpu->mask;
    const int side = side_of(mask);

    if (mask->height > side || (mask->width != side && mask->width != 1))
        return false;
    cpu->down = downs[side == SIDE_MOST][is_mirrored(mask, side)]
                     [cpu->tail.add == 0 && cpu->tail.shift == 0];
    cpu->in_place = true;
    cpu->strip_most = STRIP;
    cpu->band = BAND;
    cpu->state_bytes = sizeof(struct kept);
    return true;
}

/* --- which masks ------------------------------------------------------------------------------------------ */

bool conv_cpu_use_bytes(struct conv_cpu *cpu)
{
    const struct conv_mask *mask = cpu->mask;
    const struct conv_tail *tail = &cpu->tail;

    if (mask->magnitude > MAGNITUDE_MOST || tail->multiplier != 1 || tail->is_even || tail->is_wide)
        return false;
    for (int i = 0; i < mask->width * mask->height; i++)
        if (mask->weight[i] > INT8_MAX)
            return false;
    /* What saturates at 16 bits saturates at 8 too, unless it is shifted. */
    if (llabs(tail->add) > INT16_MAX ||
        (tail->shift > 0 && 255 * mask->magnitude + (double)llabs(tail->add) > INT16_MAX))
        return false;
    if (!__builtin_cpu_supports("avx2"))
        return false;
    if (!use_two(cpu))
        cpu->down = down_one;
    return true;
}
#else
bool conv_cpu_use_bytes(struct conv_cpu *cpu)
{
    (void)cpu;
    return false;
}
#endif
