/*
 * The reference: rows and columns of the product, term by term in the order of k. Whole numbers are added
 * modulo 2^64; double in double-double, each product and sum with its exact error (Dekker's product, Knuth's
 * sum); every other real in double, in which its products are exact. Nothing is taken from run_cpu.
 */
#include "gpurun/half.h"
#include "matmul.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOGETHER = 8 }; /* lines that share one reading of the other matrix */

/* Largest float that tf32 does not round to infinity: 2^128 - 2^116. */
#define TF32_MOST   0x1.ffep+127
#define TF32_NORMAL 0x1p-126

double matmul_real_at(const struct gpurun_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case GPURUN_HALF:
        return (double)gpurun_half_to_float(((const uint16_t *)t->host)[i]);
    case GPURUN_BFLOAT16:
        return (double)gpurun_bfloat16_to_float(((const uint16_t *)t->host)[i]);
    case GPURUN_FLOAT:
        return (double)((const float *)t->host)[i];
    default:
        return ((const double *)t->host)[i];
    }
}

static uint64_t whole_at(const struct gpurun_tensor *t, int64_t i)
{
    return t->dtype == GPURUN_INT32 ? (uint64_t)(int64_t)((const int32_t *)t->host)[i]
                                    : ((const uint64_t *)t->host)[i];
}

double matmul_scalar(const struct gpurun_ctx *ctx, double value)
{
    const enum gpurun_dtype dtype = matmul_dtype_of(ctx);

    return dtype == GPURUN_DOUBLE || matmul_is_whole(dtype) ? value : (double)(float)value;
}

/* --- what is multiplied ---------------------------------------------------------------------------------- */

/* Lines number `index` of `left`, each times `right`: rows of A times B, or columns of B times A. */
struct factors {
    const struct gpurun_tensor *left, *right;
    int64_t left_line, left_deep, left_batch;
    int64_t right_deep, right_along, right_batch;
    int64_t deep, along;
};

static struct factors factors_of(const struct gpurun_ctx *ctx, bool is_column)
{
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct matmul_layout *l = &s->layout;
    const int64_t deep = matmul_has_product(ctx) ? l->k : 0;

    if (is_column)
        return (struct factors){s->b,     s->a,     l->b_col,   l->b_row, l->b_batch,
                                l->a_col, l->a_row, l->a_batch, deep,     l->m};
    return (struct factors){s->a,     s->b,     l->a_row,   l->a_col, l->a_batch,
                            l->b_row, l->b_col, l->b_batch, deep,     l->n};
}

/* Where place p of a line lies in C and in the product. */
static int64_t place_of(const struct matmul_layout *l, const struct matmul_line *line, int64_t p)
{
    const int64_t start = line->batch * l->c_batch;

    return line->is_column ? start + p * l->ldc + line->index : start + line->index * l->ldc + p;
}

/* --- whole numbers ----------------------------------------------------------------------------------------- */

static void whole_lines(const struct gpurun_ctx *ctx, struct matmul_line *lines, int64_t count,
                        void *room)
{
    const struct matmul_options *o = matmul_options_of(ctx);
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct factors f = factors_of(ctx, lines[0].is_column);
    const uint64_t alpha = (uint64_t)(int64_t)o->alpha, beta = (uint64_t)(int64_t)o->beta;
    uint64_t *across = room;

    for (int64_t r = 0; r < count; r++)
        memset(lines[r].values, 0, (size_t)f.along * sizeof(uint64_t));
    for (int64_t x = 0; x < f.deep; x++) {
        const int64_t from = lines[0].batch * f.right_batch + x * f.right_deep;

        for (int64_t p = 0; p < f.along; p++)
            across[p] = whole_at(f.right, from + p * f.right_along);
        for (int64_t r = 0; r < count; r++) {
            const uint64_t one =
                whole_at(f.left, lines[r].batch * f.left_batch + lines[r].index * f.left_line +
                                     x * f.left_deep);
            uint64_t *values = lines[r].values;

            for (int64_t p = 0; p < f.along; p++)
                values[p] += one * across[p];
        }
    }
    for (int64_t r = 0; r < count; r++)
        for (int64_t p = 0; p < f.along; p++) {
            uint64_t *value = (uint64_t *)lines[r].values + p;

            *value *= alpha;
            if (s->c)
                *value += beta * whole_at(s->c, place_of(&s->layout, &lines[r], p));
        }
}

/* --- reals --------------------------------------------------------------------------------------------------- */

/* Knuth's sum: *sum + *rest + x is kept, but for what *rest rounds. */
static inline void two_sum(double *sum, double *rest, double x)
{
    const double total = *sum + x, added = total - *sum;

    *rest += (*sum - (total - added)) + (x - added);
    *sum = total;
}

/* x = high + low, each of half the bits; not for x above 2^996. */
static inline void split(double x, double *high, double *low)
{
    const double big = 134217729.0 * x; /* 2^27 + 1 */

    *high = big - (big - x);
    *low = x - *high;
}

/* Dekker's product: a * b less its rounded value `product`. */
static inline double product_rest(double a, double b, double product)
{
    double a_high, a_low, b_high, b_low;

    split(a, &a_high, &a_low);
    split(b, &b_high, &b_low);
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
}

static void add_terms(struct matmul_line *line, double one, const double *across, int64_t along)
{
    double *values = line->values, *magnitudes = line->magnitudes, *rests = line->rests;

    if (!rests) {
        for (int64_t p = 0; p < along; p++) {
            const double term = one * across[p];

            values[p] += term;
            magnitudes[p] += fabs(term);
        }
        return;
    }
    for (int64_t p = 0; p < along; p++) {
        const double term = one * across[p];

        rests[p] += product_rest(one, across[p], term);
        two_sum(&values[p], &rests[p], term);
        magnitudes[p] += fabs(term);
    }
}

/* alpha times the sum, plus beta C. */
static void scale_place(const struct gpurun_ctx *ctx, struct matmul_line *line, int64_t p)
{
    const struct matmul_state *s = matmul_state_of(ctx);
    const double alpha = matmul_scalar(ctx, matmul_options_of(ctx)->alpha);
    const double beta = matmul_scalar(ctx, matmul_options_of(ctx)->beta);
    double *value = (double *)line->values + p, rest = 0;
    const double sum = *value, c = s->c ? matmul_real_at(s->c, place_of(&s->layout, line, p)) : 0;

    *value = alpha * sum;
    line->magnitudes[p] *= fabs(alpha);
    if (line->rests)
        rest = product_rest(alpha, sum, *value) + alpha * line->rests[p];
    if (s->c) {
        const double term = beta * c;

        rest += line->rests ? product_rest(beta, c, term) : 0;
        two_sum(value, &rest, term);
        line->magnitudes[p] += fabs(term);
    }
    if (line->rests)
        line->rests[p] = rest;
    else if (isfinite(*value))
        *value += rest;
}

static void real_lines(const struct gpurun_ctx *ctx, struct matmul_line *lines, int64_t count,
                       void *room)
{
    const struct factors f = factors_of(ctx, lines[0].is_column);
    double *across = room;

    for (int64_t r = 0; r < count; r++) {
        memset(lines[r].values, 0, (size_t)f.along * sizeof(double));
        memset(lines[r].magnitudes, 0, (size_t)f.along * sizeof(double));
        if (lines[r].rests)
            memset(lines[r].rests, 0, (size_t)f.along * sizeof(double));
    }
    for (int64_t x = 0; x < f.deep; x++) {
        const int64_t from = lines[0].batch * f.right_batch + x * f.right_deep;

        for (int64_t p = 0; p < f.along; p++)
            across[p] = matmul_real_at(f.right, from + p * f.right_along);
        for (int64_t r = 0; r < count; r++)
            add_terms(&lines[r],
                      matmul_real_at(f.left, lines[r].batch * f.left_batch +
                                                 lines[r].index * f.left_line + x * f.left_deep),
                      across, f.along);
    }
    for (int64_t r = 0; r < count; r++)
        for (int64_t p = 0; p < f.along; p++)
            scale_place(ctx, &lines[r], p);
}

/* --- all of them --------------------------------------------------------------------------------------------- */

/* How many lines from `first` on can be computed together. */
static int64_t group_of(const struct matmul_line *lines, int64_t first, int64_t count)
{
    int64_t size = 1;

    while (size < TOGETHER && first + size < count &&
           lines[first + size].batch == lines[first].batch &&
           lines[first + size].is_column == lines[first].is_column)
        size++;
    return size;
}

bool matmul_truth_lines(struct gpurun_ctx *ctx, struct matmul_line *lines, int64_t count)
{
    const struct matmul_layout *l = &matmul_state_of(ctx)->layout;
    const size_t room_bytes = sizeof(double) * (size_t)(l->m > l->n ? l->m : l->n);
    const bool is_whole = matmul_is_whole(matmul_dtype_of(ctx));
    int64_t *starts = malloc(sizeof(*starts) * (size_t)(count + 1)), groups = 0;
    bool ok = starts != NULL;

    for (int64_t i = 0; ok && i < count; i += group_of(lines, i, count))
        starts[groups++] = i;
#pragma omp parallel num_threads(ctx->threads) reduction(&& : ok) if (groups > 1)
    {
        void *room = malloc(room_bytes + 1);

        ok = ok && room != NULL;
#pragma omp for schedule(dynamic)
        for (int64_t g = 0; g < groups; g++) {
            struct matmul_line *first = &lines[starts[g]];

            if (room)
                (is_whole ? whole_lines : real_lines)(ctx, first, group_of(lines, starts[g], count),
                                                      room);
        }
        free(room);
    }
    free(starts);
    return ok;
}

/* --- one element ---------------------------------------------------------------------------------------------- */

/* Terms of one element in long double, which neither overflows nor underflows where a double does. */
struct terms {
    long double sum, finite; /* `finite`: magnitudes of the terms that are */
    bool rounds_to_infinity; /* an input does, as tf32 */
};

static void add_term(struct terms *t, double a, double b, bool is_tf32)
{
    const long double term = (long double)a * b;

    t->sum += term;
    if (!isfinite(term))
        return;
    t->rounds_to_infinity |= is_tf32 && (fabs(a) >= TF32_MOST || fabs(b) >= TF32_MOST);
    t->finite +=
        is_tf32 ? fmaxl(fabsl(a), TF32_NORMAL) * fmaxl(fabsl(b), TF32_NORMAL) : fabsl(term);
}

struct matmul_element matmul_truth_at(struct gpurun_ctx *ctx, int64_t batch, int64_t i, int64_t j)
{
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct matmul_layout *l = &s->layout;
    const struct factors f = factors_of(ctx, false);
    const bool is_tf32 = matmul_options_of(ctx)->compute == MATMUL_COMPUTE_TF32;
    const double alpha = matmul_scalar(ctx, matmul_options_of(ctx)->alpha);
    const double beta = matmul_scalar(ctx, matmul_options_of(ctx)->beta);
    const double most = s->product->dtype == GPURUN_DOUBLE ? DBL_MAX : (double)FLT_MAX;
    struct terms t = {0};
    long double value, magnitude;

    for (int64_t x = 0; x < f.deep && !isnan(t.sum); x++) /* a NaN stays one */
        add_term(&t, matmul_real_at(s->a, batch * l->a_batch + i * l->a_row + x * l->a_col),
                 matmul_real_at(s->b, batch * l->b_batch + x * l->b_row + j * l->b_col), is_tf32);
    value = alpha * t.sum;
    magnitude = fabsl(alpha) * t.finite;
    if (s->c) {
        const long double term =
            (long double)beta * matmul_real_at(s->c, batch * l->c_batch + i * l->ldc + j);

        value += term;
        magnitude += isfinite(term) ? fabsl(term) : 0;
    }
    return (struct matmul_element){
        .value = (double)value,
        .magnitude = magnitude,
        .is_beyond = isfinite(value) && isinf((double)value),
        .may_overflow = t.rounds_to_infinity || fmaxl(t.finite, magnitude) * 1.001L >= most,
    };
}
