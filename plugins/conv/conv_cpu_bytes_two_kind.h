/*
 * Of conv_cpu_bytes_kind.h, two rows of the answer at a time: masks of 3 x 3 and 5 x 5, and such with fewer rows or a
 * single column. A row of the image is read once, for all rows of the answer that it belongs to: two of them are done
 * then, the sums of the others are kept.
 */

enum {
    SIDE_MOST = 5, /* of such masks; */
    HALF_SIDE = SIDE_MOST / 2,
    STRIP = 7680, /* elements of a row that they are taken to at a time, */
    BAND = 128,   /* and rows */
};

_Static_assert((int)STRIP % (int)CHUNK == 0 && (int)CONV_CPU_RUN % (int)CHUNK == 0,
               "strips and runs are whole chunks");

/* A mask in the middle of one of 3 x 3 or 5 x 5, at its lower edge: what is beside it and above has no weight. */
struct laid {
    int64_t step; /* bytes from a column to the next; where there is but one, it stands for all */
    /* Two weights side by side: of a row, left of the middle and as far right of it; of the middle, a row's and the
     * one's below it. */
    vector beside[SIDE_MOST][HALF_SIDE], middle[SIDE_MOST + 1];
    /* Of a product: the row's weights side by side as above, the middle one for the upper line of two and for the lower;
     * the column's in words. */
    vector along[HALF_SIDE], along_middle[2], down[SIDE_MOST];
};

/* What of a mask is known as the code is compiled. */
struct kind {
    int side;
    bool is_mirrored; /* rows read the same from below */
    bool is_plain;    /* sums are results */
    bool is_box;      /* the box of 3 x 3 by 2^22, whose weights are not used */
    bool is_product;  /* of a column and a row */
    bool is_unsigned; /* sums, to 2^16 - 1 with what is added */
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

TARGET static void lay_product(const struct conv_mask *mask, struct laid *laid)
{
    const int32_t *const row = mask->row;
    const int last = mask->width - 1, half = mask->width / 2;

    for (int j = 0; j < half; j++)
        laid->along[j] = weight_pair(row[j], row[last - j]);
    laid->along_middle[0] = weight_pair(row[half], 0);
    laid->along_middle[1] = weight_pair(0, row[half]);
    for (int i = 0; i < mask->height; i++)
        laid->down[i] = V(set1_epi16)((int16_t)mask->column[i]);
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
    if (conv_cpu_is_product5(cpu))
        lay_product(mask, laid);
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

/* The first row of the mask that reads as this one. */
static inline int mirrored(int row, struct kind kind)
{
    return kind.is_mirrored && row > kind.side / 2 ? kind.side - 1 - row : row;
}

/* What row `row` of the mask makes of a line, but for its middle. */
INLINE vector beside_sum(const vector *pixels, const struct laid *mask, int row, struct kind kind)
{
    const vector *weights = mask->beside[mirrored(row, kind)];
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

/* The same for a product: sums along its row serve all rows. */
INLINE void add_row_sums(struct pixels x, const struct laid *mask, struct kind kind, int16_t *sums,
                         vector done[2])
{
    vector *const at = (vector *)(void *)sums;
    vector upper = V(maddubs_epi16)(x.middle, mask->along_middle[0]);
    vector lower = V(maddubs_epi16)(x.middle, mask->along_middle[1]);

    UNROLL
    for (int j = 0; j < kind.side / 2; j++) {
        upper = V(add_epi16)(upper, V(maddubs_epi16)(x.upper[j], mask->along[j]));
        lower = V(add_epi16)(lower, V(maddubs_epi16)(x.lower[j], mask->along[j]));
    }
    UNROLL
    for (int k = 0; k <= kind.side; k++) {
        const int row = kind.side - k; /* of the mask, on the lower line */
        vector sum = {0};

        if (k < kind.side - 1)
            sum = at[k];
        if (k < kind.side)
            sum = V(add_epi16)(sum, V(mullo_epi16)(upper, mask->down[mirrored(row - 1, kind)]));
        if (k > 0)
            sum = V(add_epi16)(sum, V(mullo_epi16)(lower, mask->down[mirrored(row, kind)]));
        *(k < 2 ? &done[k] : &at[k - 2]) = sum;
    }
}

#include "conv_cpu_bytes_box_kind.h"

INLINE vector result_of(const struct conv_tail *tail, vector low, vector high, struct kind kind)
{
    const vector add = V(set1_epi16)((int16_t)tail->add);
    const __m128i shift = _mm_cvtsi32_si128(tail->shift);

    if (kind.is_plain)
        return V(packus_epi16)(low, high);
    if (kind.is_unsigned)
        return V(packus_epi16)(V(srl_epi16)(V(add_epi16)(low, add), shift),
                               V(srl_epi16)(V(add_epi16)(high, add), shift));
    return finish(tail, (struct sums){low, high});
}

/* The results of a vector of columns, of either row. */
INLINE void pass_vector(const struct conv_tail *tail, const struct laid *mask, struct kind kind,
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
    if (kind.is_product) {
        add_row_sums(low_pixels, mask, kind, sums, low);
        add_row_sums(high_pixels, mask, kind, sums + next, high);
    } else {
        add_lines(low_pixels, mask, kind, sums, low);
        add_lines(high_pixels, mask, kind, sums + next, high);
    }
    *upper = result_of(tail, low[0], high[0], kind);
    *lower = result_of(tail, low[1], high[1], kind);
}

/* Two lines under the mask into two rows of the answer, the lower of which may be NULL, or both: then into sums. */
typedef void pass_function(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                           const char *const lines[2], char *upper, char *lower);

/* Columns `at` to `end`, a run of them. */
INLINE void pass_run(const struct conv_cpu_strip *strip, const struct conv_tail *tail,
                     const char *const lines[2], int64_t at, int64_t end, struct kind kind)
{
    struct kept *const kept = strip->state;
    const struct laid mask = kept->mask; /* apart from what is written: it stays in registers */
    const char *const above = lines[0], *const below = lines[1];
    const char *const next = strip->next_in[0], *const after = strip->next_in[1];
    vector *higher = (vector *)(void *)conv_cpu_place(&kept->upper, 0);
    vector *deeper = (vector *)(void *)conv_cpu_place(&kept->lower, 0);
    int16_t *sums = kept->sums + at * kept_rows(kind);

    for (int64_t e = at; e < end; e += CHUNK) {
        __builtin_prefetch(next + e);
        __builtin_prefetch(after + e);
        for (int64_t v = e; v < e + CHUNK;
             v += VECTOR_BYTES, sums += VECTOR_BYTES * kept_rows(kind))
            pass_vector(tail, &mask, kind, above + v, below + v, sums, higher++, deeper++);
    }
}

INLINE void pass_lines(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                       const char *const lines[2], char *upper, char *lower, struct kind kind)
{
    struct kept *const kept = strip->state;
    const int64_t elems = strip->elems;

    for (int64_t at = 0; at < elems; at += CONV_CPU_RUN) {
        const int64_t end = elems - at < CONV_CPU_RUN ? elems : at + CONV_CPU_RUN;

        pass_run(strip, &cpu->tail, lines, at, end, kind);
        if (upper)
            conv_cpu_put_run(cpu, &kept->upper, upper, at, end, end == elems);
        if (lower)
            conv_cpu_put_run(cpu, &kept->lower, lower, at, end, end == elems);
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

DEFINE_DOWN(3, .side = 3)
DEFINE_DOWN(3_plain, .side = 3, .is_plain = true)
DEFINE_DOWN(3_mirrored, .side = 3, .is_mirrored = true)
DEFINE_DOWN(3_mirrored_plain, .side = 3, .is_mirrored = true, .is_plain = true)
DEFINE_DOWN(5, .side = 5)
DEFINE_DOWN(5_plain, .side = 5, .is_plain = true)
DEFINE_DOWN(5_mirrored, .side = 5, .is_mirrored = true)
DEFINE_DOWN(5_mirrored_plain, .side = 5, .is_mirrored = true, .is_plain = true)
DEFINE_DOWN(product, .side = 5, .is_product = true)
DEFINE_DOWN(product_unsigned, .side = 5, .is_product = true, .is_unsigned = true)
DEFINE_DOWN(product_mirrored, .side = 5, .is_mirrored = true, .is_product = true)
DEFINE_DOWN(product_mirrored_unsigned, .side = 5, .is_mirrored = true, .is_product = true,
            .is_unsigned = true)
DEFINE_DOWN(box, .side = 3, .is_box = true)

static bool is_mirrored(const struct conv_mask *mask, int side)
{
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++)
            if (weight_at(mask, side, i, j) != weight_at(mask, side, side - 1 - i, j))
                return false;
    return true;
}

typedef void down_function(const struct conv_cpu *, const struct conv_cpu_strip *, char *);

static down_function *choose_down(const struct conv_cpu *cpu, int side)
{
    static down_function *const downs[2][2][2] = {
        {{down_3, down_3_plain}, {down_3_mirrored, down_3_mirrored_plain}},
        {{down_5, down_5_plain}, {down_5_mirrored, down_5_mirrored_plain}}};
    static down_function *const products[2][2] = {
        {down_product, down_product_unsigned},
        {down_product_mirrored, down_product_mirrored_unsigned}};
    const bool mirrors = is_mirrored(cpu->mask, side);

    if (conv_cpu_is_box3(cpu))
        return down_box;
    if (conv_cpu_is_product5(cpu))
        return products[mirrors][conv_cpu_is_unsigned(cpu)];
    return downs[side == SIDE_MOST][mirrors][cpu->tail.add == 0 && cpu->tail.shift == 0];
}

/* False, and nothing done: not for a mask of this size. */
static bool use_two(struct conv_cpu *cpu)
{
    const struct conv_mask *mask = cpu->mask;
    const int side = side_of(mask);

    if (mask->height > side || (mask->width != side && mask->width != 1))
        return false;
    cpu->down = choose_down(cpu, side);
    cpu->in_place = true;
    cpu->strip_most = STRIP;
    cpu->band = BAND;
    cpu->state_bytes = sizeof(struct kept);
    return true;
}
