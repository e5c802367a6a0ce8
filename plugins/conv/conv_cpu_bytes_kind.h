/*
 * The loops of conv_cpu_bytes.c for one width of vectors. Before it is included VECTOR_BYTES is that of a vector,
 * `vector` the type of one, TARGET the attribute of functions on them, and V(name) an instruction's name.
 *
 * Of two taps at a time the processor multiplies bytes by signed bytes and adds the products. Masks of 3 x 3 and 5
 * x 5, and such with fewer rows or a single column, go down the image two rows at a time. A row of the image is
 * read once, for all rows of the answer that it belongs to: two of them are done then, the sums of the others are
 * kept. Else each row of the answer is worked out alone, by the taps that have a weight.
 */
#include "conv_cpu_bytes.h"

#define INLINE TARGET static inline __attribute__((always_inline))
/* Of known counts, so that arrays stay in registers. */
#define UNROLL _Pragma("GCC unroll 8")

enum {
    CHUNK = 64, /* bytes */
    VECTORS = CHUNK / VECTOR_BYTES,
    PAIRS_MOST = CONV_CPU_BYTES_MAGNITUDE / 2 + 1,
    WORDS = VECTOR_BYTES / sizeof(int16_t),
    SIDE_MOST = 5, /* of masks that go two rows at a time; */
    HALF_SIDE = SIDE_MOST / 2,
    STRIP = 7680, /* elements of a row that they are taken to at a time, */
    BAND = 128,   /* and rows */
};

_Static_assert(2 * (int)CHUNK <= (int)CONV_CPU_SLACK, "two chunks may reach as far behind a row");
_Static_assert((int)STRIP % (int)CHUNK == 0 && (int)CONV_CPU_RUN % (int)CHUNK == 0,
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

INLINE vector bytes_at(const char *from)
{
    vector bytes;

    memcpy(&bytes, from, sizeof bytes);
    return bytes;
}

/* Sums of a vector of bytes: within each 16 of them the lower eight and the upper. */
struct sums {
    vector low, high;
};

TARGET static inline void add_pair(struct sums *sums, const char *first, const char *second,
                                   vector weights)
{
    const vector a = bytes_at(first);
    const vector b = bytes_at(second);
    const vector low = V(unpacklo_epi8)(a, b), high = V(unpackhi_epi8)(a, b);

    sums->low = V(add_epi16)(sums->low, V(maddubs_epi16)(low, weights));
    sums->high = V(add_epi16)(sums->high, V(maddubs_epi16)(high, weights));
}

TARGET static inline vector finish(const struct conv_tail *tail, struct sums sums)
{
    const vector add = V(set1_epi16)((int16_t)tail->add);
    const __m128i shift = _mm_cvtsi32_si128(tail->shift);

    return V(packus_epi16)(V(sra_epi16)(V(adds_epi16)(sums.low, add), shift),
                           V(sra_epi16)(V(adds_epi16)(sums.high, add), shift));
}

TARGET static void down_one(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                            char *out)
{
    struct pair pairs[PAIRS_MOST];
    const int count = pairs_of(cpu, strip->lines, pairs);
    struct conv_cpu_run run;

    for (int64_t e = 0; e < strip->elems; e += CHUNK) {
        struct sums sums[VECTORS] = {0};
        vector *results = (vector *)(void *)conv_cpu_place(&run, e);

        conv_cpu_fetch(cpu, strip, e, CHUNK);
        for (int i = 0; i < count; i++)
            for (int v = 0; v < VECTORS; v++)
                add_pair(&sums[v], pairs[i].first + e + v * VECTOR_BYTES,
                         pairs[i].second + e + v * VECTOR_BYTES, V(set1_epi32)(pairs[i].weights));
        for (int v = 0; v < VECTORS; v++)
            results[v] = finish(&cpu->tail, sums[v]);
        conv_cpu_put_chunk(cpu, &run, out, e, CHUNK, strip->elems);
    }
}

/* --- two rows of the answer at a time ------------------------------------------------------------------ */

/* A mask in the middle of one of 3 x 3 or 5 x 5, at its lower edge: what is beside it and above has no weight. */
struct laid {
    int64_t step; /* bytes from a column to the next; where there is but one, it stands for all */
    /* Two weights side by side: of a row, left of the middle and as far right of it; of the middle, a row's and the
     * one's below it. */
    vector beside[SIDE_MOST][HALF_SIDE], middle[SIDE_MOST + 1];
};

/* What of a mask is known as the code is compiled. */
struct kind {
    int side;
    bool is_mirrored; /* rows read the same from below */
    bool is_plain;    /* sums are results */
    bool is_box;      /* the box of 3 x 3 by 2^22, whose weights are not used */
};

/* What is kept from row to row of a strip. */
struct kept {
    bool is_ahead; /* the next row has been worked out, with the one above it */
    struct laid mask;
    struct conv_cpu_run upper, lower;
    /* Of the rows of the answer that are begun, from the top: WORDS of each, then the next WORDS of each. */
    _Alignas(CHUNK) int16_t sums[(SIDE_MOST - 1) * (STRIP + CHUNK)];
};

/* Sums that are kept of a column. */
static inline int kept_rows(struct kind kind)
{
    return kind.is_box ? SIDE_MOST - 1 : kind.side - 1;
}

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

TARGET static inline vector weight_pair(int first, int second)
{
    return V(set1_epi16)((int16_t)((first & 0xff) | (second & 0xff) << 8));
}

TARGET static void lay(const struct conv_cpu *cpu, struct laid *laid)
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
    vector upper[HALF_SIDE], lower[HALF_SIDE], middle;
};

/* Of the lower halves of each 16 bytes, then of the upper ones. The compiler must not load twice, for either half: a
 * load of 64 bytes mostly takes from two lines. */
INLINE void unpack(vector a, vector b, vector *low, vector *high)
{
    __asm__("" : "+v"(a), "+v"(b));
    *low = V(unpacklo_epi8)(a, b);
    *high = V(unpackhi_epi8)(a, b);
}

INLINE void pixels_at(const char *upper, const char *lower, const struct laid *mask, int side,
                      struct pixels *low, struct pixels *high)
{
    const int64_t step = mask->step, middle = side / 2 * step;

    UNROLL
    for (int j = 0; j < side / 2; j++) {
        const int64_t left = j * step, right = (side - 1 - j) * step;

        unpack(bytes_at(upper + left), bytes_at(upper + right), &low->upper[j], &high->upper[j]);
        unpack(bytes_at(lower + left), bytes_at(lower + right), &low->lower[j], &high->lower[j]);
    }
    unpack(bytes_at(upper + middle), bytes_at(lower + middle), &low->middle, &high->middle);
}

/* What row `row` of the mask makes of a line, but for its middle. */
INLINE vector beside_sum(const vector *pixels, const struct laid *mask, int row, struct kind kind)
{
    const vector *weights =
        mask->beside[kind.is_mirrored && row > kind.side / 2 ? kind.side - 1 - row : row];
    vector sum = V(maddubs_epi16)(pixels[0], weights[0]);

    UNROLL
    for (int j = 1; j < kind.side / 2; j++)
        sum = V(add_epi16)(sum, V(maddubs_epi16)(pixels[j], weights[j]));
    return sum;
}

/* Adds two lines to all sums that they belong to. The two upper ones are done, the others move up. */
INLINE void add_lines(struct pixels x, const struct laid *mask, struct kind kind, int16_t *sums,
                      vector done[2])
{
    vector *const at = (vector *)(void *)sums;

    UNROLL
    for (int k = 0; k <= kind.side; k++) {
        const int row = kind.side - k; /* of the mask, on the lower line */
        vector sum = V(maddubs_epi16)(x.middle, mask->middle[row]);

        if (k < kind.side - 1)
            sum = V(add_epi16)(sum, at[k]);
        if (k < kind.side)
            sum = V(add_epi16)(sum, beside_sum(x.upper, mask, row - 1, kind));
        if (k > 0)
            sum = V(add_epi16)(sum, beside_sum(x.lower, mask, row, kind));
        *(k < 2 ? &done[k] : &at[k - 2]) = sum;
    }
}

/* A line under a box, a sum each of three pixels in a row and the one in the middle, and what is kept of the two
 * before. */
struct box_line {
    vector row, middle;
};

struct box_kept {
    vector rows, cross; /* both sums; the lower one and both in the middle */
    struct box_line lower;
};

INLINE struct box_line box_line(vector sides, vector middle)
{
    struct box_line line = {.middle = V(add_epi16)(middle, V(set1_epi16)(CONV_CPU_BOX_EXTRA))};

    line.row = V(add_epi16)(V(maddubs_epi16)(sides, V(set1_epi8)(1)), line.middle);
    return line;
}

/* Of the sum of all nine pixels and that of the middle row and column, the middle one twice: with what box_line
 * adds. */
INLINE vector box_result(vector all, vector cross)
{
    const vector most = V(mulhi_epu16)(all, V(set1_epi16)(CONV_CPU_BOX_NINTH));
    const vector left =
        V(sub_epi16)(V(sub_epi16)(V(mullo_epi16)(all, V(set1_epi16)(CONV_CPU_BOX_ALL)),
                                  V(mullo_epi16)(most, V(set1_epi16)(CONV_CPU_BOX_STEP))),
                     V(add_epi16)(cross, V(set1_epi16)(CONV_CPU_BOX_LEAST)));

    return V(add_epi16)(most, V(srai_epi16)(left, 15));
}

/* Two lines into the sums that they belong to, and these into results. */
INLINE void box_lines(struct box_line upper, struct box_line lower, int16_t *sums, vector done[2])
{
    struct box_kept *const kept = (struct box_kept *)(void *)sums;
    const vector rows = V(add_epi16)(upper.row, lower.row);
    const vector middles = V(add_epi16)(upper.middle, lower.middle);

    done[0] =
        box_result(V(add_epi16)(kept->rows, upper.row), V(add_epi16)(kept->cross, upper.middle));
    done[1] = box_result(V(add_epi16)(kept->lower.row, rows),
                         V(add_epi16)(V(add_epi16)(upper.row, kept->lower.middle), middles));
    *kept = (struct box_kept){rows, V(add_epi16)(lower.row, middles), lower};
}

INLINE void box_vector(const struct laid *mask, const char *above, const char *below, int16_t *sums,
                       vector *upper, vector *lower)
{
    const vector none = {0};
    vector sides[4], middles[4], low[2], high[2];

    unpack(bytes_at(above), bytes_at(above + 2 * mask->step), &sides[0], &sides[1]);
    unpack(bytes_at(below), bytes_at(below + 2 * mask->step), &sides[2], &sides[3]);
    unpack(bytes_at(above + mask->step), none, &middles[0], &middles[1]);
    unpack(bytes_at(below + mask->step), none, &middles[2], &middles[3]);
    box_lines(box_line(sides[0], middles[0]), box_line(sides[2], middles[2]), sums, low);
    box_lines(box_line(sides[1], middles[1]), box_line(sides[3], middles[3]), sums + 4 * WORDS,
              high);
    *upper = V(packus_epi16)(low[0], high[0]);
    *lower = V(packus_epi16)(low[1], high[1]);
}

/* The results of a vector of columns, of either row. */
INLINE void pass_vector(const struct conv_cpu *cpu, const struct laid *mask, struct kind kind,
                        const char *above, const char *below, int16_t *sums, vector *upper,
                        vector *lower)
{
    const int next = (kind.side - 1) * WORDS;
    struct pixels low_pixels, high_pixels;
    vector low[2], high[2];

    if (kind.is_box) {
        box_vector(mask, above, below, sums, upper, lower);
        return;
    }
    pixels_at(above, below, mask, kind.side, &low_pixels, &high_pixels);
    add_lines(low_pixels, mask, kind, sums, low);
    add_lines(high_pixels, mask, kind, sums + next, high);
    *upper = kind.is_plain ? V(packus_epi16)(low[0], high[0])
                           : finish(&cpu->tail, (struct sums){low[0], high[0]});
    *lower = kind.is_plain ? V(packus_epi16)(low[1], high[1])
                           : finish(&cpu->tail, (struct sums){low[1], high[1]});
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

    for (int64_t e = 0; e < strip->elems; e += CHUNK) {
        vector *higher = (vector *)(void *)conv_cpu_place(&kept->upper, e);
        vector *deeper = (vector *)(void *)conv_cpu_place(&kept->lower, e);

        __builtin_prefetch(next + e);
        __builtin_prefetch(after + e);
        for (int v = 0; v < VECTORS; v++, sums += VECTOR_BYTES * kept_rows(kind))
            pass_vector(cpu, &mask, kind, above + e + v * VECTOR_BYTES,
                        below + e + v * VECTOR_BYTES, sums, &higher[v], &deeper[v]);
        if (upper)
            conv_cpu_put_chunk(cpu, &kept->upper, upper, e, CHUNK, strip->elems);
        if (lower)
            conv_cpu_put_chunk(cpu, &kept->lower, lower, e, CHUNK, strip->elems);
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

#define DEFINE_DOWN(name, ...)                                                                     \
    TARGET static void pass_##name(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip, \
                                   const char *const lines[2], char *upper, char *lower)           \
    {                                                                                              \
        pass_lines(cpu, strip, lines, upper, lower, (struct kind){__VA_ARGS__});                   \
    }                                                                                              \
    static void down_##name(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,        \
                            char *out)                                                             \
    {                                                                                              \
        down_two(cpu, strip, out, pass_##name);                                                    \
    }

DEFINE_DOWN(3, 3, false, false, false)
DEFINE_DOWN(3_plain, 3, false, true, false)
DEFINE_DOWN(3_mirrored, 3, true, false, false)
DEFINE_DOWN(3_mirrored_plain, 3, true, true, false)
DEFINE_DOWN(5, 5, false, false, false)
DEFINE_DOWN(5_plain, 5, false, true, false)
DEFINE_DOWN(5_mirrored, 5, true, false, false)
DEFINE_DOWN(5_mirrored_plain, 5, true, true, false)
DEFINE_DOWN(box, 3, true, true, true)

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
    cpu->down = conv_cpu_is_box3(cpu) ? down_box
                                      : downs[side == SIDE_MOST][is_mirrored(mask, side)]
                                             [cpu->tail.add == 0 && cpu->tail.shift == 0];
    cpu->in_place = true;
    cpu->strip_most = STRIP;
    cpu->band = BAND;
    cpu->state_bytes = sizeof(struct kept);
    return true;
}

static void use(struct conv_cpu *cpu)
{
    if (!use_two(cpu))
        cpu->down = down_one;
}
