/*
 * The reference: every element again, in wider arithmetic. Whole numbers are summed modulo 2^64; reals in
 * double-double, eight sums at a time, each addition with its exact error (Knuth's TwoSum); extremes are
 * compared as C compares. Parts of fixed size are joined in order, so threads do not change a bit of it, and
 * nothing is taken from run_cpu or the kernels.
 */
#include "reduce.h"
#include <math.h>
#include <stdlib.h>

enum { PART = 1 << 16, LANES = 8 };

/* What part of a huge sum is kept where the whole is above what a double holds. */
#define SCALE_DOWN 0x1p-64

struct part {
    uint64_t whole;
    int64_t index;
    double sum, rest, magnitude;
    int64_t nans, ups, downs;
};

/* Knuth's TwoSum: sum + rest + x is kept, as the rest takes the error of the addition. */
static inline void two_sum(double *sum, double *rest, double x)
{
    const double total = *sum + x, added = total - *sum;

    *rest += (*sum - (total - added)) + (x - added);
    *sum = total;
}

#define DEFINE_WHOLE(type)                                                                         \
    static void sum_##type(const void *in, int64_t begin, int64_t end, struct part *part)          \
    {                                                                                              \
        const type *x = in;                                                                        \
                                                                                                   \
        for (int64_t i = begin; i < end; i++)                                                      \
            part->whole += (uint64_t)x[i];                                                         \
    }

#define DEFINE_REAL(type)                                                                          \
    static void sum_##type(const void *in, int64_t begin, int64_t end, double scale,               \
                           struct part *part)                                                      \
    {                                                                                              \
        const type *x = in;                                                                        \
        double sum[LANES] = {0}, rest[LANES] = {0}, magnitude[LANES] = {0};                        \
                                                                                                   \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const int lane = (int)(i % LANES);                                                     \
            const double y = (double)x[i] * scale;                                                 \
                                                                                                   \
            part->nans += isnan(y);                                                                \
            part->ups += isinf(y) && y > 0;                                                        \
            part->downs += isinf(y) && y < 0;                                                      \
            if (!isfinite(y))                                                                      \
                continue;                                                                          \
            two_sum(&sum[lane], &rest[lane], y);                                                   \
            magnitude[lane] += fabs(y);                                                            \
        }                                                                                          \
        for (int lane = 0; lane < LANES; lane++) {                                                 \
            two_sum(&part->sum, &part->rest, sum[lane]);                                           \
            part->rest += rest[lane];                                                              \
            part->magnitude += magnitude[lane];                                                    \
        }                                                                                          \
    }

/* better(a, b): a beats b, wherever they stand. */
#define DEFINE_BETTER(type, is_nan)                                                                \
    static bool better_##type(const void *in, int64_t a, int64_t b, bool least)                    \
    {                                                                                              \
        const type x = ((const type *)in)[a], y = ((const type *)in)[b];                           \
                                                                                                   \
        if (is_nan(y))                                                                             \
            return false;                                                                          \
        if (is_nan(x))                                                                             \
            return true;                                                                           \
        return least ? x < y : x > y;                                                              \
    }                                                                                              \
    static void first_##type(const void *in, int64_t begin, int64_t end, bool least,               \
                             struct part *part)                                                    \
    {                                                                                              \
        part->index = begin;                                                                       \
        for (int64_t i = begin + 1; i < end; i++)                                                  \
            if (better_##type(in, i, part->index, least))                                          \
                part->index = i;                                                                   \
    }

#define NEVER(x) false

DEFINE_WHOLE(int32_t)
DEFINE_WHOLE(uint32_t)
DEFINE_WHOLE(uint64_t)
DEFINE_REAL(float)
DEFINE_REAL(double)
DEFINE_BETTER(int32_t, NEVER)
DEFINE_BETTER(uint32_t, NEVER)
DEFINE_BETTER(int64_t, NEVER)
DEFINE_BETTER(uint64_t, NEVER)
DEFINE_BETTER(float, isnan)
DEFINE_BETTER(double, isnan)

/* How extremes of a dtype are found. */
static const struct extreme {
    bool (*better)(const void *in, int64_t a, int64_t b, bool least);
    void (*first)(const void *in, int64_t begin, int64_t end, bool least, struct part *part);
} extremes[] = {
    [GPURUN_INT32] = {better_int32_t, first_int32_t},
    [GPURUN_UINT32] = {better_uint32_t, first_uint32_t},
    [GPURUN_INT64] = {better_int64_t, first_int64_t},
    [GPURUN_UINT64] = {better_uint64_t, first_uint64_t},
    [GPURUN_FLOAT] = {better_float, first_float},
    [GPURUN_DOUBLE] = {better_double, first_double},
};

static bool wants_least(const struct gpurun_ctx *ctx)
{
    const int64_t op = reduce_options_of(ctx)->op;

    return op == REDUCE_MIN || op == REDUCE_ARGMIN;
}

static void find_part(const struct gpurun_ctx *ctx, int64_t begin, int64_t end, double scale,
                      struct part *part)
{
    const struct gpurun_tensor *in = reduce_state_of(ctx)->in;

    if (reduce_options_of(ctx)->op != REDUCE_SUM)
        extremes[in->dtype].first(in->host, begin, end, wants_least(ctx), part);
    else if (in->dtype == GPURUN_INT32)
        sum_int32_t(in->host, begin, end, part);
    else if (in->dtype == GPURUN_UINT32)
        sum_uint32_t(in->host, begin, end, part);
    else if (in->dtype == GPURUN_FLOAT)
        sum_float(in->host, begin, end, scale, part);
    else if (in->dtype == GPURUN_DOUBLE)
        sum_double(in->host, begin, end, scale, part);
    else
        sum_uint64_t(in->host, begin, end, part);
}

static void join_parts(const struct gpurun_ctx *ctx, const struct part *parts, int64_t count,
                       struct reduce_truth *truth)
{
    const struct gpurun_tensor *in = reduce_state_of(ctx)->in;

    for (int64_t i = 0; i < count; i++) {
        const struct part *p = &parts[i];

        truth->whole += p->whole;
        two_sum(&truth->sum, &truth->rest, p->sum);
        truth->rest += p->rest;
        truth->magnitude += p->magnitude;
        truth->nans += p->nans;
        truth->ups += p->ups;
        truth->downs += p->downs;
        if (reduce_options_of(ctx)->op != REDUCE_SUM &&
            extremes[in->dtype].better(in->host, p->index, truth->index, wants_least(ctx)))
            truth->index = p->index;
    }
}

/* All of it, with reals times `scale`. */
static bool find(const struct gpurun_ctx *ctx, double scale, struct reduce_truth *truth)
{
    const int64_t n = reduce_options_of(ctx)->n, count = (n + PART - 1) / PART;
    struct part *parts = calloc((size_t)count + 1, sizeof(*parts));

    if (!parts)
        return false;
#pragma omp parallel for num_threads(ctx->threads) schedule(static) if (count > 1)
    for (int64_t i = 0; i < count; i++)
        find_part(ctx, i * PART, n - i * PART < PART ? n : (i + 1) * PART, scale, &parts[i]);
    *truth = (struct reduce_truth){.scale = scale};
    join_parts(ctx, parts, count, truth);
    free(parts);
    return true;
}

enum gpurun_status reduce_truth_find(struct gpurun_ctx *ctx, struct reduce_truth *truth)
{
    bool ok = find(ctx, 1, truth);

    if (ok && !isfinite(truth->magnitude))
        ok = find(ctx, SCALE_DOWN, truth);
    if (!ok)
        return gpurun_fail(ctx, GPURUN_NO_MEMORY, "verify", "no host memory for the reference");
    truth->is_known = true;
    return GPURUN_OK;
}
