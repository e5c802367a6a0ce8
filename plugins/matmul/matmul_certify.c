/*
 * Freivalds' check: the product times a vector is A times (B times the vector), for many random vectors, row by
 * row. Bounds are derived in the README.
 */
#include "matmul_verify.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    WHOLE_VECTORS = 64, /* each misses a wrong element half the time at worst */
    REAL_VECTORS = 32,
};

static const double VECTOR_BYTES_MOST = 0x1p30;
static const double CERTIFY_MOST = 1e90; /* above it products of three come near overflow */

/* With signs that are chosen at random, a sum of errors is above 9 times the root of the sum of their squares
 * with a probability below 2 exp(-81/2) (Hoeffding): never, in any number of rows. */
static const double NEVER_ABOVE = 9;

/* --- whether ---------------------------------------------------------------------------------- */

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
bool matmul_can_certify(const struct gpurun_ctx *ctx)
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

/* --- the vectors ------------------------------------------------------------------------------ */

/* The random vectors x, and B x; element i of vector v is [i * vectors + v]. */
struct vectors {
    void *x, *b_x;
    double b_norm; /* reals: the root of the sum of squares of B */
};

static void add_whole(const struct gpurun_tensor *t, int64_t at, int64_t step, int64_t count,
                      uint64_t factor, const uint64_t *x, uint64_t sums[WHOLE_VECTORS])
{
    for (int64_t i = 0; i < count; i++) {
        const uint64_t one = factor * matmul_bits_at(t, at + i * step);

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
        x[i] = matmul_mixed((uint64_t)i);
    memset(b_x, 0, (size_t)l->k * WHOLE_VECTORS * sizeof(*b_x));
#pragma omp parallel for num_threads(ctx->threads) schedule(static)
    for (int64_t row = 0; row < (int64_t)matmul_depth_of(ctx); row++)
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
    const int64_t at = matmul_place_in(ctx, batch, i, 0);
    uint64_t sums[WHOLE_VECTORS] = {0}, left = 0;

    if (matmul_has_product(ctx))
        add_whole(s->a, batch * l->a_batch + i * l->a_row, l->a_col, l->k,
                  (uint64_t)(int64_t)o->alpha, v->b_x, sums);
    if (s->c)
        add_whole(s->c, at, 1, l->n, (uint64_t)(int64_t)o->beta, v->x, sums);
    add_whole(s->product, at, 1, l->n, UINT64_MAX, v->x, sums); /* -1 */
    for (int n = 0; n < WHOLE_VECTORS; n++)
        left |= sums[n];
    return (left & matmul_mask_of(s->product)) == 0;
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
        x[i] = (matmul_mixed((uint64_t)i) & 1) == 0 ? 1 : -1;
    memset(b_x, 0, (size_t)l->k * REAL_VECTORS * sizeof(*b_x));
#pragma omp parallel num_threads(ctx->threads) reduction(&& : ok) reduction(+ : squares)
    {
        double *row = malloc(sizeof(*row) * (size_t)longest_row(l) + 1);

        ok = row != NULL;
#pragma omp for schedule(static)
        for (int64_t r = 0; r < (int64_t)matmul_depth_of(ctx); r++)
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
static double row_limit(const struct gpurun_ctx *ctx, const struct matmul_precision *p, double ab,
                        double c, double product)
{
    const double n = (double)matmul_options_of(ctx)->n, k = matmul_depth_of(ctx);
    const double each = matmul_sum_factor(ctx, p) * (ab + c) + 1.01 * p->out * product +
                        sqrt(n) * ((k + 3) * p->sum_least + p->out_least);

    return NEVER_ABOVE * each + 4 * sqrt(n + k) * 0x1p-53 * sqrt(n) * (ab + c + product);
}

/* How far a row is from right, and how far it may be; `row` is room. An element that is not finite counts as
 * right here: it is judged by itself. */
struct row_check {
    double off, limit;
};

static struct row_check check_real_row(struct gpurun_ctx *ctx, const struct matmul_precision *p,
                                       int64_t batch, int64_t i, const struct vectors *v,
                                       double *row)
{
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct matmul_layout *l = &s->layout;
    const double alpha = matmul_scalar(ctx, matmul_options_of(ctx)->alpha);
    const double beta = matmul_scalar(ctx, matmul_options_of(ctx)->beta);
    const int64_t at = matmul_place_in(ctx, batch, i, 0), depth = (int64_t)matmul_depth_of(ctx);
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

static void say_wrong_row(struct matmul_judge *j, int64_t batch, int64_t i)
{
    gpurun_wrong(j->ctx, j->proof,
                 "product %" PRId64 ": row %" PRId64
                 " times a random vector is not A times (B times "
                 "it)",
                 batch, i);
}

static bool check_whole_product(struct matmul_judge *j, int64_t batch, struct vectors *v)
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
static void judge_infinite(struct matmul_judge *j, int64_t batch)
{
    const struct matmul_state *s = matmul_state_of(j->ctx);

    for (int64_t i = 0; i < s->layout.m; i++)
        for (int64_t column = 0; column < s->layout.n; column++)
            if (!isfinite(matmul_real_at(s->product, matmul_place_in(j->ctx, batch, i, column))))
                matmul_judge_slowly(j, batch, i, column);
}

static bool check_real_product(struct matmul_judge *j, int64_t batch, struct vectors *v)
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

bool matmul_check_products(struct matmul_judge *j)
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
