/*
 * The proof. Full: every element against the reference. Certify: Freivalds' check (matmul_certify.c); for reals
 * also some rows and columns against the reference. Bounds are derived in the README.
 */
#include "matmul_verify.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINES_MOST = 32, /* rows, and as many columns, that certify recomputes */
    LINES_LEAST = 4,
};

static const double AUTO_FULL_TERMS = 0x1p27, LINES_TERMS = 0x1p30;

static struct matmul_precision precision_of(const struct gpurun_ctx *ctx)
{
    struct matmul_precision p = {.sum = 0x1p-24, .sum_least = 0x1p-149, .out_most = INFINITY};

    switch (matmul_dtype_of(ctx)) {
    case GPURUN_DOUBLE:
        return (struct matmul_precision){
            .sum = 0x1p-53, .sum_least = 0x1p-1074, .out_most = INFINITY};
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

static double bound_at(const struct gpurun_ctx *ctx, const struct matmul_precision *p,
                       long double magnitude, double value)
{
    const long double sum =
        matmul_sum_factor(ctx, p) * magnitude + (matmul_depth_of(ctx) + 3) * p->sum_least;

    return (double)(sum + p->out * (fabsl(value) + sum) + p->out_least);
}

/* --- judging one element ---------------------------------------------------------------------- */

static bool is_same_infinity(double a, double b)
{
    return isinf(a) && isinf(b) && (a > 0) == (b > 0);
}

/* An answer or a truth that is not finite, or an answer that the quick comparison does not accept. */
static bool is_right_element(struct matmul_judge *j, double got, const struct matmul_element *truth)
{
    const double bound = bound_at(j->ctx, &j->precision, truth->magnitude, truth->value);

    if (isnan(truth->value))
        return isnan(got);
    if (isinf(truth->value) && !truth->is_beyond)
        return is_same_infinity(got, truth->value) || (isnan(got) && truth->may_overflow);
    if (isfinite(got))
        return fabs(got - truth->value) <= bound;
    if (truth->may_overflow)
        return true;
    return isinf(got) && fabs(truth->value) + bound >= j->precision.out_most &&
           (got > 0) == (truth->value > 0);
}

static void say_wrong(struct matmul_judge *j, int64_t batch, int64_t i, int64_t column, double got,
                      double truth, double bound)
{
    gpurun_wrong(j->ctx, j->proof,
                 "product %" PRId64 ": (%" PRId64 ",%" PRId64
                 ") is %.17g, should be %.17g: off by %.3g, at most %.3g",
                 batch, i, column, got, truth, fabs(got - truth), bound);
}

bool matmul_judge_slowly(struct matmul_judge *j, int64_t batch, int64_t i, int64_t column)
{
    const double got =
        matmul_real_at(matmul_state_of(j->ctx)->product, matmul_place_in(j->ctx, batch, i, column));
    const struct matmul_element truth = matmul_truth_at(j->ctx, batch, i, column);

    if (is_right_element(j, got, &truth))
        return true;
    say_wrong(j, batch, i, column, got, truth.value,
              bound_at(j->ctx, &j->precision, truth.magnitude, truth.value));
    j->proof->worst_error = fmax(j->proof->worst_error,
                                 isfinite(got - truth.value) ? fabs(got - truth.value) : INFINITY);
    return false;
}

static void judge_real_line(struct matmul_judge *j, const struct matmul_line *line)
{
    const struct matmul_layout *l = &matmul_state_of(j->ctx)->layout;
    const struct gpurun_tensor *product = matmul_state_of(j->ctx)->product;
    const int64_t places = line->is_column ? l->m : l->n;

    for (int64_t p = 0; p < places; p++) {
        const int64_t i = line->is_column ? p : line->index;
        const int64_t column = line->is_column ? line->index : p;
        const double got = matmul_real_at(product, matmul_place_in(j->ctx, line->batch, i, column));
        const double truth = ((const double *)line->values)[p], magnitude = line->magnitudes[p];
        const double error = fabs((got - truth) - (line->rests ? line->rests[p] : 0));
        const double bound = bound_at(j->ctx, &j->precision, magnitude, truth);

        if (!(error <= bound) || !isfinite(bound)) {
            matmul_judge_slowly(j, line->batch, i, column);
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

static void judge_whole_line(struct matmul_judge *j, const struct matmul_line *line)
{
    const struct gpurun_tensor *product = matmul_state_of(j->ctx)->product;
    const bool is_narrow = product->dtype == GPURUN_INT32;

    for (int64_t p = 0; p < matmul_options_of(j->ctx)->n; p++) {
        const uint64_t got =
            matmul_bits_at(product, matmul_place_in(j->ctx, line->batch, line->index, p));
        const uint64_t truth = ((const uint64_t *)line->values)[p] & matmul_mask_of(product);
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

/* --- which lines ------------------------------------------------------------------------------ */

static bool wants_full(const struct gpurun_ctx *ctx, enum gpurun_verify mode)
{
    const struct matmul_options *o = matmul_options_of(ctx);
    const double terms = (double)o->m * (double)o->n * (double)o->k * (double)o->batch;

    return mode == GPURUN_VERIFY_FULL || (mode == GPURUN_VERIFY_AUTO && terms <= AUTO_FULL_TERMS) ||
           !matmul_can_certify(ctx);
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
        count == all ? i
                     : i * span + (int64_t)(matmul_mixed((uint64_t)i + is_column) % (uint64_t)span);

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
    if (matmul_truth_lines(ctx, truth->lines, truth->count))
        return true;
    free(truth->memory); /* or the next answer would be held against half a truth */
    truth->memory = NULL;
    return false;
}

/* --- the whole answer ------------------------------------------------------------------------- */

/* Elements between rows are not the product's: all bytes there must still be what the core left. */
static void check_gaps(struct matmul_judge *j)
{
    const struct matmul_state *s = matmul_state_of(j->ctx);
    const struct matmul_layout *l = &s->layout;
    const size_t bytes = gpurun_dtype_bytes(s->product->dtype);
    const size_t gap = (size_t)(l->ldc - l->n) * bytes;
    const unsigned char *host = s->product->host;

    for (int64_t row = 0; gap > 0 && row < l->m * l->batch; row++) {
        const unsigned char *here = host + (size_t)(row * l->ldc + l->n) * bytes;

        for (size_t i = 0; i < gap; i++)
            if (here[i] != GPURUN_POISON) {
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

static void judge_reals(struct matmul_judge *j, const struct matmul_truth *truth)
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
    struct matmul_judge j = {.ctx = ctx, .proof = proof, .precision = precision_of(ctx)};
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
        ok = matmul_check_products(&j);
    if (!ok)
        return gpurun_fail(ctx, GPURUN_NO_MEMORY, "verify", "no host memory for the proof");
    check_gaps(&j);
    proof->detects = detects(truth, is_whole, proof->bound);
    close_gaps(ctx);
    return GPURUN_OK;
}
