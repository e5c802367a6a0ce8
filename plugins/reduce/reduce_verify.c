/*
 * The proof: the answer against the reference, whichever mode is asked, as a full recomputation costs one
 * pass. Whole numbers and extremes must be exact; a real sum may differ by REDUCE_CHAIN roundings of the sum
 * of magnitudes.
 */
#include "reduce.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>

/* A whole number or a real, as an answer or an element holds it. */
struct number {
    uint64_t whole; /* sign-extended */
    double real;
};

static struct number number_at(const struct gpurun_tensor *t, int64_t i)
{
    struct number x = {0, 0};

    switch (t->dtype) {
    case GPURUN_INT32:
        x.whole = (uint64_t)((const int32_t *)t->host)[i];
        break;
    case GPURUN_UINT32:
        x.whole = ((const uint32_t *)t->host)[i];
        break;
    case GPURUN_FLOAT:
        x.real = (double)((const float *)t->host)[i];
        break;
    case GPURUN_DOUBLE:
        x.real = ((const double *)t->host)[i];
        break;
    default:
        x.whole = ((const uint64_t *)t->host)[i];
        break;
    }
    return x;
}

static bool is_real(const struct gpurun_tensor *t)
{
    return t->dtype == GPURUN_FLOAT || t->dtype == GPURUN_DOUBLE;
}

static bool is_unsigned(const struct gpurun_tensor *t)
{
    return t->dtype == GPURUN_UINT32 || t->dtype == GPURUN_UINT64;
}

static void note_error(struct gpurun_proof *proof, double error)
{
    if (!(error <= proof->worst_error))
        proof->worst_error = isnan(error) ? INFINITY : error;
}

/* Whole numbers must be equal. */
static void judge_whole(struct gpurun_ctx *ctx, struct gpurun_proof *proof, uint64_t expected)
{
    const struct gpurun_tensor *value = reduce_state_of(ctx)->value;
    const uint64_t got = number_at(value, 0).whole;
    const int64_t difference = (int64_t)(got - expected);

    note_error(proof, fabs((double)difference));
    if (got == expected)
        return;
    if (is_unsigned(value))
        gpurun_wrong(ctx, proof, "value is %" PRIu64 ", should be %" PRIu64, got, expected);
    else
        gpurun_wrong(ctx, proof, "value is %" PRId64 ", should be %" PRId64, (int64_t)got,
                     (int64_t)expected);
}

/* The sum modulo 2^bits of `value`. */
static uint64_t wrapped_sum(const struct gpurun_tensor *value, uint64_t sum)
{
    if (value->dtype == GPURUN_INT32)
        return (uint64_t)(int64_t)(int32_t)(uint32_t)sum;
    return value->dtype == GPURUN_UINT32 ? (uint32_t)sum : sum;
}

/* The largest number that the sum is made of, and the rounding error of numbers around 1. */
static double largest(const struct gpurun_tensor *value)
{
    return value->dtype == GPURUN_FLOAT ? (double)FLT_MAX : DBL_MAX;
}

static double unit_roundoff(const struct gpurun_tensor *value)
{
    return value->dtype == GPURUN_FLOAT ? 0x1p-24 : 0x1p-53;
}

/* Whether a value that is not finite, where it or the truth is not, is the right one. Partial sums may have
 * overflowed, but only where the magnitudes of the finite elements add up to more than there are numbers. */
static bool is_right_infinity(const struct reduce_truth *truth, double got, bool may_overflow)
{
    if (truth->nans > 0 || (truth->ups > 0 && truth->downs > 0))
        return isnan(got);
    if (truth->ups > 0)
        return isnan(got) ? may_overflow : isinf(got) && got > 0;
    if (truth->downs > 0)
        return isnan(got) ? may_overflow : isinf(got) && got < 0;
    return may_overflow;
}

static void judge_real_sum(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct reduce_state *s = reduce_state_of(ctx);
    const struct reduce_truth *truth = &s->truth;
    const int64_t n = reduce_options_of(ctx)->n;
    const double chain = n > REDUCE_CHAIN ? REDUCE_CHAIN : n > 0 ? (double)(n - 1) : 0;
    const double bound = chain * unit_roundoff(s->value) * truth->magnitude;
    const double got = number_at(s->value, 0).real;
    const double error = fabs((got * truth->scale - truth->sum) - truth->rest);
    const bool is_plain = truth->nans == 0 && truth->ups == 0 && truth->downs == 0;

    proof->bound = bound / truth->scale;
    if (is_plain && isfinite(got)) {
        note_error(proof, error / truth->scale);
        if (!(error <= bound))
            gpurun_wrong(ctx, proof, "value is %.17g, should be %.17g: off by %.3g, at most %.3g",
                         got, (truth->sum + truth->rest) / truth->scale, error / truth->scale,
                         proof->bound);
        return;
    }
    if (is_right_infinity(truth, got, truth->magnitude + bound >= largest(s->value) * truth->scale))
        return;
    note_error(proof, INFINITY);
    gpurun_wrong(ctx, proof,
                 "value is %g, but %" PRId64 " elements are NaN, %" PRId64 " infinity and %" PRId64
                 " -infinity",
                 got, truth->nans, truth->ups, truth->downs);
}

/* The value of the best element: equal, or both NaN. */
static void judge_extreme(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct reduce_state *s = reduce_state_of(ctx);
    const struct number right = number_at(s->in, s->truth.index), got = number_at(s->value, 0);

    if (!is_real(s->in)) {
        judge_whole(ctx, proof, right.whole);
        return;
    }
    if ((isnan(got.real) && isnan(right.real)) ||
        (got.real <= right.real && got.real >= right.real))
        return;
    note_error(proof, fabs(got.real - right.real));
    gpurun_wrong(ctx, proof, "value is %.17g, should be %.17g", got.real, right.real);
}

static void judge_index(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct reduce_state *s = reduce_state_of(ctx);
    const int64_t got = *(const int64_t *)s->index->host;

    if (got != s->truth.index)
        gpurun_wrong(ctx, proof, "index is %" PRId64 ", should be %" PRId64, got, s->truth.index);
}

static void judge(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct reduce_state *s = reduce_state_of(ctx);

    proof->detects = "any wrong value";
    if (s->kind == REDUCE_SUM_FLOAT || s->kind == REDUCE_SUM_FLOAT_WIDE ||
        s->kind == REDUCE_SUM_DOUBLE) {
        proof->detects = "a sum that is off by more than the bound";
        judge_real_sum(ctx, proof);
    } else if (s->kind < REDUCE_BEST_32) {
        judge_whole(ctx, proof, wrapped_sum(s->value, s->truth.whole));
    } else {
        judge_extreme(ctx, proof);
    }
    proof->checked = 1;
    if (!reduce_is_place(s->kind))
        return;
    proof->detects = "any wrong value or index";
    proof->checked = 2;
    judge_index(ctx, proof);
}

enum gpurun_status reduce_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    struct reduce_truth *truth = &reduce_state_of(ctx)->truth;

    if (!truth->is_known)
        GPURUN_TRY(reduce_truth_find(ctx, truth));
    proof->mode = GPURUN_VERIFY_FULL;
    proof->bound = 0;
    proof->worst_error = 0;
    judge(ctx, proof);
    return GPURUN_OK;
}
