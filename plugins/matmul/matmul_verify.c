/*
 * The proof. Full: every element against the reference. Certify: Freivalds' check, that the product times a
 * vector is A times (B times the vector), with many random vectors; for reals also some rows and columns
 * against the reference. Bounds are derived in the README.
 */
#include "matmul.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WHOLE_VECTORS = 64, /* each misses a wrong element half the time at worst */
    REAL_VECTORS = 32,
    LINES_MOST = 32, /* rows, and as many columns, that certify recomputes */
    LINES_LEAST = 4,
};

static const double AUTO_FULL_TERMS = 0x1p27, LINES_TERMS = 0x1p30, VECTOR_BYTES_MOST = 0x1p30;
static const double CERTIFY_MOST = 1e90; /* above it products of three come near overflow */

/* With signs that are chosen at random, a sum of errors is above 9 times the root of the sum of their squares
 * with a probability below 2 exp(-81/2) (Hoeffding): never, in any number of rows. */
static const double NEVER_ABOVE = 9;

/* What the arithmetic of a dtype rounds, relative to a value and at its smallest. */
struct precision {
    double sum, sum_least; /* of the accumulator */
    double out, out_least; /* of the product's elements, beyond that */
    double in;             /* of the inputs: tf32 */
    double out_most;       /* from here on an element rounds to infinity */
};

static struct precision precision_of(const struct gpurun_ctx *ctx)
{
    struct precision p = {.sum = 0x1p-24, .sum_least = 0x1p-149, .out_most = INFINITY};

    switch (matmul_dtype_of(ctx)) {
    case GPURUN_DOUBLE:
        return (struct precision){.sum = 0x1p-53, .sum_least = 0x1p-1074, .out_most = INFINITY};
    case GPURUN_HALF:
        p.out = 0x1p-11;
        p.out_least = 0x1p-25;
        p.out_most = 65520;
        return p;
    case GPURUN_BFLOAT16:
        p.out = 0x1p-8;
        p.out_least = 0x1p-134;
        p.out_most = 0x1.ffp+127;
        return p;
    default:
        if (matmul_options_of(ctx)->compute == MATMUL_COMPUTE_TF32)
            p.in = 0x1p-11;
        return p;
    }
}

static double depth_of(const struct gpurun_ctx *ctx)
{
    return matmul_has_product(ctx) ? (double)matmul_options_of(ctx)->k : 0;
}

/* What a sum of products may be off by, in units of the sum of their magnitudes: 4 sqrt(k) roundings, three
 * for alpha, beta and their sum, and the inputs' own. */
static double sum_factor(const struct gpurun_ctx *ctx, const struct precision *p)
{
    return (4 * sqrt(depth_of(ctx)) + 3) * p->sum + 2 * p->in + p->in * p->in;
}

static double bound_at(const struct gpurun_ctx *ctx, const struct precision *p, double magnitude,
                       double value)
{
    const double sum = sum_factor(ctx, p) * magnitude + (depth_of(ctx) + 3) * p->sum_least;

    return sum + p->out * (fabs(value) + sum) + p->out_least;
}

/* --- judging one element ----------------------------------------------------------------------------------- */

struct judge {
    struct gpurun_ctx *ctx;
    struct gpurun_proof *proof;
    struct precision precision;
    double relative_sum;
    int64_t relative_count;
};

static bool is_same_infinity(double a, double b)
{
    return isinf(a) && isinf(b) && (a > 0) == (b > 0);
}

/* An answer or a truth that is not finite, or an answer that the quick comparison does not accept. */
static bool is_right_element(struct judge *j, double got, const struct matmul_element *truth)
{
    const double bound = bound_at(j->ctx, &j->precision, truth->magnitude, truth->value);

    if (isnan(truth->value))
        return isnan(got);
    if (isinf(truth->value))
        return is_same_infinity(got, truth->value) || (isnan(got) && truth->may_overflow);
    if (isfinite(got))
        return fabs(got - truth->value) <= bound;
    if (truth->may_overflow)
        return true;
    return isinf(got) && fabs(truth->value) + bound >= j->precision.out_most &&
           (got > 0) == (truth->value > 0);
}

static int64_t place_in(const struct gpurun_ctx *ctx, int64_t batch, int64_t i, int64_t column)
{
    const struct matmul_layout *l = &matmul_state_of(ctx)->layout;

    return batch * l->c_batch + i * l->ldc + column;
}

static void say_wrong(struct judge *j, int64_t batch, int64_t i, int64_t column, double got,
                      double truth, double bound)
{
    gpurun_wrong(j->ctx, j->proof,
                 "product %" PRId64 ": (%" PRId64 ",%" PRId64
                 ") is %.17g, should be %.17g: off by %.3g, at most %.3g",
                 batch, i, column, got, truth, fabs(got - truth), bound);
}

static bool judge_slowly(struct judge *j, int64_t batch, int64_t i, int64_t column)
{
    const double got =
        matmul_real_at(matmul_state_of(j->ctx)->product, place_in(j->ctx, batch, i, column));
    const struct matmul_element truth = matmul_truth_at(j->ctx, batch, i, column);

    if (is_right_element(j, got, &truth))
        return true;
    say_wrong(j, batch, i, column, got, truth.value,
              bound_at(j->ctx, &j->precision, truth.magnitude, truth.value));
    j->proof->worst_error = fmax(j->proof->worst_error,
                                 isfinite(got - truth.value) ? fabs(got - truth.value) : INFINITY);
    return false;
}

static void judge_real_line(struct judge *j, const struct matmul_line *line)
{
    const struct matmul_layout *l = &matmul_state_of(j->ctx)->layout;
    const struct gpurun_tensor *product = matmul_state_of(j->ctx)->product;
    const int64_t places = line->is_column ? l->m : l->n;

    for (int64_t p = 0; p < places; p++) {
        const int64_t i = line->is_column ? p : line->index;
        const int64_t column = line->is_column ? line->index : p;
        const double got = matmul_real_at(product, place_in(j->ctx, line->batch, i, column));
        const double truth = ((const double *)line->values)[p], magnitude = line->magnitudes[p];
        const double error = fabs((got - truth) - (line->rests ? line->rests[p] : 0));
        const double bound = bound_at(j->ctx, &j->precision, magnitude, truth);

        if (!(error <= bound) || !isfinite(bound)) {
            judge_slowly(j, line->batch, i, column);
            continue;
        }
        j->proof->worst_error = fmax(j->proof->worst_error, error);
        j->proof->bound = fmax(j->proof->bound, bound);
        if (magnitude > 0) {
            j->proof->worst_relative = fmax(j->proof->worst_relative, error / magnitude);
            j->relative_sum += error / magnitude;
        }
        j->relative_count++;
    }
}

static uint64_t whole_at(const struct gpurun_tensor *t, int64_t i)
{
    return t->dtype == GPURUN_INT32 ? ((const uint32_t *)t->host)[i]
                                    : ((const uint64_t *)t->host)[i];
}

/* Which bits of a whole number count. */
static uint64_t mask_of(const struct gpurun_tensor *t)
{
    return t->dtype == GPURUN_INT32 ? UINT32_MAX : UINT64_MAX;
}

static void judge_whole_line(struct judge *j, const struct matmul_line *line)
{
    const struct gpurun_tensor *product = matmul_state_of(j->ctx)->product;
    const bool is_narrow = product->dtype == GPURUN_INT32;

    for (int64_t p = 0; p < matmul_options_of(j->ctx)->n; p++) {
        const uint64_t got = whole_at(product, place_in(j->ctx, line->batch, line->index, p));
        const uint64_t truth = ((const uint64_t *)line->values)[p] & mask_of(product);
        const uint64_t apart = got - truth;

        if (got == truth)
            continue;
        j->proof->worst_error =
            fmax(j->proof->worst_error,
                 fabs(is_narrow ? (double)(int32_t)(uint32_t)apart : (double)(int64_t)apart));
        gpurun_wrong(j->ctx, j->proof,
                     "product %" PRId64 ": (%" PRId64 ",%" PRId64 ") is %" PRId64
                     ", should be %" PRId64,
                     line->batch, line->index, p, is_narrow ? (int32_t)got : (int64_t)got,
                     is_narrow ? (int32_t)truth : (int64_t)truth);
    }
}

/* --- Freivalds ------------------------------------------------------------------------------------------------ */

/* Well mixed bits from a number (splitmix64). */
static uint64_t mixed(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The random vectors x, and B x; element i of vector v is [i * vectors + v]. */
struct vectors {
    void *x, *b_x;
    double b_norm; /* reals: the root of the sum of squares of B */
};

static void add_whole(const struct gpurun_tensor *t, int64_t at, int64_t step, int64_t count,
                      uint64_t factor, const uint64_t *x, uint64_t sums[WHOLE_VECTORS])
{
    for (int64_t i = 0; i < count; i++) {
        const uint64_t one = factor * whole_at(t, at + i * step);

        for (int v = 0; v < WHOLE_VECTORS; v++)
            sums[v] += one * x[i * WHOLE_VECTORS + v];
    }
}

static void make_whole_vectors(const struct gpurun_ctx *ctx, int64_t batch, struct vectors *v)
{
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct matmul_layout *l = &s->layout;
    uint64_t *x = v->x, *b_x = v->b_x;

#pragma omp parallel for num_threads(ctx->threads) schedule(static)
    for (int64_t i = 0; i < l->n * WHOLE_VECTORS; i++)
        x[i] = mixed((uint64_t)i);
    memset(b_x, 0, (size_t)l->k * WHOLE_VECTORS * sizeof(*b_x));
#pragma omp parallel for num_threads(ctx->threads) schedule(static)
    for (int64_t row = 0; row < (int64_t)depth_of(ctx); row++)
        add_whole(s->b, batch * l->b_batch + row * l->b_row, l->b_col, l->n, 1, x,
                  b_x + row * WHOLE_VECTORS);
}

/* Whether alpha A (B x) + beta C x - product x is 0 in a row, for all vectors. */
static bool is_right_whole_row(const struct gpurun_ctx *ctx, int64_t batch, int64_t i,
                               const struct vectors *v)
{
    const struct matmul_options *o = matmul_options_of(ctx);
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct matmul_layout *l = &s->layout;
    const int64_t at = place_in(ctx, batch, i, 0);
    uint64_t sums[WHOLE_VECTORS] = {0}, left = 0;

    if (matmul_has_product(ctx))
        add_whole(s->a, batch * l->a_batch + i * l->a_row, l->a_col, l->k,
                  (uint64_t)(int64_t)o->alpha, v->b_x, sums);
    if (s->c)
        add_whole(s->c, at, 1, l->n, (uint64_t)(int64_t)o->beta, v->x, sums);
    add_whole(s->product, at, 1, l->n, UINT64_MAX, v->x, sums); /* -1 */
    for (int n = 0; n < WHOLE_VECTORS; n++)
        left |= sums[n];
    return (left & mask_of(s->product)) == 0;
}

/* Adds a row times the vectors, and its squares. The row is as it is stored, or stands in `row`. */
static double add_real(const double *row, int64_t count, double factor, const double *x,
                       double sums[REAL_VECTORS])
{
    double squares = 0;

    for (int64_t i = 0; i < count; i++) {
        const double one = factor * row[i];

        for (int v = 0; v < REAL_VECTORS; v++)
            sums[v] += one * x[i * REAL_VECTORS + v];
        squares += one * one;
    }
    return squares;
}

static void load_row(const struct gpurun_tensor *t, int64_t at, int64_t step, int64_t count,
                     double *row)
{
    for (int64_t i = 0; i < count; i++)
        row[i] = matmul_real_at(t, at + i * step);
}

static int64_t longest_row(const struct matmul_layout *l)
{
    return l->n > l->k ? l->n : l->k;
}

/* False: no memory. */
static bool make_real_vectors(const struct gpurun_ctx *ctx, int64_t batch, struct vectors *v)
{
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct matmul_layout *l = &s->layout;
    double *x = v->x, *b_x = v->b_x, squares = 0;
    bool ok = true;

#pragma omp parallel for num_threads(ctx->threads) schedule(static)
    for (int64_t i = 0; i < l->n * REAL_VECTORS; i++)
        x[i] = (mixed((uint64_t)i) & 1) == 0 ? 1 : -1;
    memset(b_x, 0, (size_t)l->k * REAL_VECTORS * sizeof(*b_x));
#pragma omp parallel num_threads(ctx->threads) reduction(&& : ok) reduction(+ : squares)
    {
        double *row = malloc(sizeof(*row) * (size_t)longest_row(l) + 1);

        ok = row != NULL;
#pragma omp for schedule(static)
        for (int64_t r = 0; r < (int64_t)depth_of(ctx); r++)
            if (row) {
                load_row(s->b, batch * l->b_batch + r * l->b_row, l->b_col, l->n, row);
                squares += add_real(row, l->n, 1, x, b_x + r * REAL_VECTORS);
            }
        free(row);
    }
    v->b_norm = sqrt(squares);
    return ok;
}

/* What a row's sum of signed errors stays below, from the lengths of the rows of alpha A, beta C and the
 * product; the last term is this check's own arithmetic. */
static double row_limit(const struct gpurun_ctx *ctx, const struct precision *p, double ab,
                        double c, double product)
{
    const double n = (double)matmul_options_of(ctx)->n, k = depth_of(ctx);
    const double each = sum_factor(ctx, p) * (ab + c) + 1.01 * p->out * product +
                        sqrt(n) * ((k + 3) * p->sum_least + p->out_least);

    return NEVER_ABOVE * each + 4 * sqrt(n + k) * 0x1p-53 * sqrt(n) * (ab + c + product);
}

/* How far a row is from right, and how far it may be; `row` is room. An element that is not finite counts as
 * right here: it is judged by itself. */
struct row_check {
    double off, limit;
};

static struct row_check check_real_row(struct gpurun_ctx *ctx, const struct precision *p,
                                       int64_t batch, int64_t i, const struct vectors *v,
                                       double *row)
{
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct matmul_layout *l = &s->layout;
    const double alpha = matmul_scalar(ctx, matmul_options_of(ctx)->alpha);
    const double beta = matmul_scalar(ctx, matmul_options_of(ctx)->beta);
    const int64_t at = place_in(ctx, batch, i, 0), depth = (int64_t)depth_of(ctx);
    double sums[REAL_VECTORS] = {0}, ab, c = 0, product;
    struct row_check check = {0};

    load_row(s->a, batch * l->a_batch + i * l->a_row, l->a_col, depth, row);
    ab = sqrt(add_real(row, depth, alpha, v->b_x, sums)) * v->b_norm;
    if (s->c) {
        load_row(s->c, at, 1, l->n, row);
        c = sqrt(add_real(row, l->n, beta, v->x, sums));
    }
    load_row(s->product, at, 1, l->n, row);
    for (int64_t j = 0; j < l->n; j++)
        if (!isfinite(row[j]))
            row[j] = matmul_truth_at(ctx, batch, i, j).value;
    product = sqrt(add_real(row, l->n, -1, v->x, sums));
    for (int n = 0; n < REAL_VECTORS; n++)
        check.off = fabs(sums[n]) <= check.off ? check.off : fabs(sums[n]); /* keeps a NaN */
    check.limit = row_limit(ctx, p, ab, c, product);
    return check;
}

static void say_wrong_row(struct judge *j, int64_t batch, int64_t i)
{
    gpurun_wrong(j->ctx, j->proof,
                 "product %" PRId64 ": row %" PRId64
                 " times a random vector is not A times (B times "
                 "it)",
                 batch, i);
}

static bool check_whole_product(struct judge *j, int64_t batch, struct vectors *v)
{
    const struct gpurun_ctx *ctx = j->ctx;
    const int64_t m = matmul_options_of(ctx)->m;
    bool *right = malloc((size_t)m + 1);

    if (!right)
        return false;
    make_whole_vectors(ctx, batch, v);
#pragma omp parallel for num_threads(ctx->threads) schedule(static)
    for (int64_t i = 0; i < m; i++)
        right[i] = is_right_whole_row(ctx, batch, i, v);
    for (int64_t i = 0; i < m; i++)
        if (!right[i])
            say_wrong_row(j, batch, i);
    free(right);
    return true;
}

/* Elements that are not finite, of inputs that are: an overflow, or wrong. */
static void judge_infinite(struct judge *j, int64_t batch)
{
    const struct matmul_state *s = matmul_state_of(j->ctx);

    for (int64_t i = 0; i < s->layout.m; i++)
        for (int64_t column = 0; column < s->layout.n; column++)
            if (!isfinite(matmul_real_at(s->product, place_in(j->ctx, batch, i, column))))
                judge_slowly(j, batch, i, column);
}

static bool check_real_product(struct judge *j, int64_t batch, struct vectors *v)
{
    struct gpurun_ctx *ctx = j->ctx;
    const struct matmul_layout *l = &matmul_state_of(ctx)->layout;
    struct row_check *checks = calloc((size_t)l->m + 1, sizeof(*checks));
    bool ok = checks && make_real_vectors(ctx, batch, v);

#pragma omp parallel num_threads(ctx->threads) reduction(&& : ok)
    {
        double *row = malloc(sizeof(*row) * (size_t)longest_row(l) + 1);

        ok = ok && row != NULL;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < l->m; i++)
            if (checks && row)
                checks[i] = check_real_row(ctx, &j->precision, batch, i, v, row);
        free(row);
    }
    for (int64_t i = 0; ok && i < l->m; i++) {
        j->proof->bound = fmax(j->proof->bound, checks[i].limit);
        if (!(checks[i].off <= checks[i].limit))
            say_wrong_row(j, batch, i);
    }
    free(checks);
    judge_infinite(j, batch);
    return ok;
}

static bool check_products(struct judge *j)
{
    const struct matmul_layout *l = &matmul_state_of(j->ctx)->layout;
    const bool is_whole = matmul_is_whole(matmul_dtype_of(j->ctx));
    const size_t bytes =
        is_whole ? WHOLE_VECTORS * sizeof(uint64_t) : REAL_VECTORS * sizeof(double);
    struct vectors v = {.x = malloc((size_t)l->n * bytes + 1),
                        .b_x = malloc((size_t)l->k * bytes + 1)};
    bool ok = v.x && v.b_x;

    for (int64_t batch = 0; ok && batch < l->batch; batch++)
        ok = (is_whole ? check_whole_product : check_real_product)(j, batch, &v);
    free(v.x);
    free(v.b_x);
    return ok;
}

/* --- which lines ------------------------------------------------------------------------------------------------ */

/* Whether a stored matrix, all batches of it, holds only numbers whose products are far from overflow. */
static bool is_moderate(const struct gpurun_tensor *t, int64_t cols, int threads)
{
    const int64_t ld = t->dims[t->rank - 1], rows = ld > 0 ? t->elems / ld : 0;
    bool moderate = true;

#pragma omp parallel for num_threads(threads) schedule(static) reduction(&& : moderate)
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = row * ld; i < row * ld + cols; i++)
            moderate = moderate && fabs(matmul_real_at(t, i)) <= CERTIFY_MOST;
    return moderate;
}

/* A vector times anything that is not finite says nothing. */
static bool can_certify(const struct gpurun_ctx *ctx)
{
    const struct matmul_options *o = matmul_options_of(ctx);
    const struct matmul_state *s = matmul_state_of(ctx);

    if (((double)o->m + (double)o->n + (double)o->k) * WHOLE_VECTORS * sizeof(uint64_t) >
        VECTOR_BYTES_MOST)
        return false;
    if (matmul_is_whole(matmul_dtype_of(ctx)))
        return true;
    return fabs(o->alpha) <= CERTIFY_MOST && fabs(o->beta) <= CERTIFY_MOST &&
           is_moderate(s->a, o->transpose_a ? o->m : o->k, ctx->threads) &&
           is_moderate(s->b, o->transpose_b ? o->k : o->n, ctx->threads) &&
           (!s->c || is_moderate(s->c, o->n, ctx->threads));
}

static bool wants_full(const struct gpurun_ctx *ctx, enum gpurun_verify mode)
{
    const struct matmul_options *o = matmul_options_of(ctx);
    const double terms = (double)o->m * (double)o->n * (double)o->k * (double)o->batch;

    return mode == GPURUN_VERIFY_FULL || (mode == GPURUN_VERIFY_AUTO && terms <= AUTO_FULL_TERMS) ||
           !can_certify(ctx);
}

/* How many of `all` lines, each of `terms` products, are recomputed. */
static int64_t lines_of(double terms, int64_t all)
{
    const double most = fmin(LINES_MOST, fmax(LINES_LEAST, LINES_TERMS / fmax(terms, 1)));

    return (double)all < most ? all : (int64_t)most;
}

/* Line number i of `count` among `all`: every one, or spread at random. */
static struct matmul_line line_at(int64_t i, int64_t count, int64_t all, int64_t per_batch,
                                  bool is_column)
{
    const int64_t span = all / count;
    const int64_t number =
        count == all ? i : i * span + (int64_t)(mixed((uint64_t)i + is_column) % (uint64_t)span);

    return (struct matmul_line){
        .batch = number / per_batch, .index = number % per_batch, .is_column = is_column};
}

/* Gives each line its part of one allocation; returns its size where `memory` is NULL. */
static size_t place_lines(const struct gpurun_ctx *ctx, struct matmul_truth *truth, double *memory)
{
    const struct matmul_layout *l = &matmul_state_of(ctx)->layout;
    const enum gpurun_dtype dtype = matmul_dtype_of(ctx);
    size_t used = 0;

    for (int64_t i = 0; i < truth->count; i++) {
        struct matmul_line *line = &truth->lines[i];
        const size_t places = (size_t)(line->is_column ? l->m : l->n);
        const int arrays = matmul_is_whole(dtype) ? 1 : dtype == GPURUN_DOUBLE ? 3 : 2;

        if (memory) {
            line->values = memory + used;
            line->magnitudes = arrays > 1 ? memory + used + places : NULL;
            line->rests = arrays > 2 ? memory + used + 2 * places : NULL;
        }
        used += places * (size_t)arrays;
    }
    return used * sizeof(double);
}

static bool make_truth(struct gpurun_ctx *ctx, bool is_full)
{
    const struct matmul_layout *l = &matmul_state_of(ctx)->layout;
    struct matmul_truth *truth = &matmul_state_of(ctx)->truth;
    const int64_t rows = l->m * l->batch, columns = l->n * l->batch;
    const bool is_sampled = !is_full && !matmul_is_whole(matmul_dtype_of(ctx));
    const int64_t some_rows = is_full      ? rows
                              : is_sampled ? lines_of((double)l->n * (double)l->k, rows)
                                           : 0;
    const int64_t some_columns = is_sampled ? lines_of((double)l->m * (double)l->k, columns) : 0;

    free(truth->lines);
    free(truth->memory);
    *truth = (struct matmul_truth){.is_full = is_full, .count = some_rows + some_columns};
    truth->lines = malloc(sizeof(*truth->lines) * (size_t)truth->count + 1);
    if (!truth->lines)
        return false;
    for (int64_t i = 0; i < some_rows; i++)
        truth->lines[i] = line_at(i, some_rows, rows, l->m, false);
    for (int64_t i = 0; i < some_columns; i++)
        truth->lines[some_rows + i] = line_at(i, some_columns, columns, l->n, true);
    truth->memory = malloc(place_lines(ctx, truth, NULL) + 1);
    if (!truth->memory)
        return false;
    place_lines(ctx, truth, truth->memory);
    return matmul_truth_lines(ctx, truth->lines, truth->count);
}

/* --- the whole answer --------------------------------------------------------------------------------------------- */

/* Elements between rows are not the product's: all bytes there must still be the one that the core left. */
static void check_gaps(struct judge *j)
{
    const struct matmul_state *s = matmul_state_of(j->ctx);
    const struct matmul_layout *l = &s->layout;
    const size_t bytes = gpurun_dtype_bytes(s->product->dtype);
    const size_t gap = (size_t)(l->ldc - l->n) * bytes;
    const char *host = s->product->host, *first = host + (size_t)l->n * bytes;

    for (int64_t row = 0; gap > 0 && row < l->m * l->batch; row++) {
        const char *here = host + (size_t)(row * l->ldc + l->n) * bytes;

        for (size_t i = 0; i < gap; i++)
            if (here[i] != *first) {
                gpurun_wrong(j->ctx, j->proof, "row %" PRId64 ": the gap behind it was written to",
                             row);
                break;
            }
    }
}

/* The answer is the product's elements alone: rows move together. */
static void close_gaps(const struct gpurun_ctx *ctx)
{
    const struct matmul_layout *l = &matmul_state_of(ctx)->layout;
    struct gpurun_tensor *t = matmul_state_of(ctx)->product;
    const size_t bytes = gpurun_dtype_bytes(t->dtype);

    if (l->ldc == l->n)
        return;
    for (int64_t row = 1; row < l->m * l->batch; row++)
        memmove((char *)t->host + (size_t)(row * l->n) * bytes,
                (char *)t->host + (size_t)(row * l->ldc) * bytes, (size_t)l->n * bytes);
    t->dims[t->rank - 1] = l->n;
    t->elems = l->batch * l->m * l->n;
    t->bytes = (size_t)t->elems * bytes;
}

static const char *detects(struct matmul_truth *truth, bool is_whole, double bound)
{
    if (is_whole)
        return truth->is_full ? "any wrong element"
                              : "any wrong element, but for a chance of 2^-64";
    if (truth->is_full)
        return "an element off by more than the bound of its own sum";
    snprintf(truth->detects, sizeof(truth->detects),
             "an element off by more than %.3g; in the rows and columns recomputed, by its bound",
             2 * bound);
    return truth->detects;
}

static void judge_reals(struct judge *j, const struct matmul_truth *truth)
{
    struct gpurun_proof *proof = j->proof;

    for (int64_t i = 0; i < truth->count; i++)
        judge_real_line(j, &truth->lines[i]);
    proof->mean_relative = j->relative_count > 0 ? j->relative_sum / (double)j->relative_count : 0;
    proof->relative_to = "|A||B|";
}

enum gpurun_status matmul_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    struct matmul_truth *truth = &matmul_state_of(ctx)->truth;
    const bool is_whole = matmul_is_whole(matmul_dtype_of(ctx));
    const bool is_full = wants_full(ctx, proof->mode);
    struct judge j = {.ctx = ctx, .proof = proof, .precision = precision_of(ctx)};
    bool ok = (truth->memory && truth->is_full == is_full) || make_truth(ctx, is_full);

    proof->mode = is_full ? GPURUN_VERIFY_FULL : GPURUN_VERIFY_CERTIFY;
    proof->checked = (int64_t)ctx->work.elements;
    proof->bound = proof->worst_error = proof->worst_relative = 0;
    if (ok && is_whole)
        for (int64_t i = 0; i < truth->count; i++)
            judge_whole_line(&j, &truth->lines[i]);
    else if (ok)
        judge_reals(&j, truth);
    if (ok && !is_full)
        ok = check_products(&j);
    if (!ok)
        return gpurun_fail(ctx, GPURUN_NO_MEMORY, "verify", "no host memory for the proof");
    check_gaps(&j);
    proof->detects = detects(truth, is_whole, proof->bound);
    close_gaps(ctx);
    return GPURUN_OK;
}
