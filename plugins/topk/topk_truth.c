/*
 * The reference: sorts the row, a batch at a time, and keeps the first k.
 */
#include "topk_truth.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1024 }; /* least elements sorted at a time */

#define DEFINE_COMPARE_WHOLE(type)                                                                 \
    static int compare_##type(const void *row, int64_t a, int64_t b)                               \
    {                                                                                              \
        const type x = ((const type *)row)[a], y = ((const type *)row)[b];                         \
        return (x > y) - (x < y);                                                                  \
    }

/* By value: NaN is the largest. By bits: NaN lies beyond the infinity of its sign; zeros stay equal. */
#define DEFINE_COMPARE_REAL(type, bits, bits_max)                                                  \
    static int compare_##type(const void *row, int64_t a, int64_t b)                               \
    {                                                                                              \
        const type x = ((const type *)row)[a], y = ((const type *)row)[b];                         \
        const bool x_nan = isnan(x), y_nan = isnan(y);                                             \
        return x_nan || y_nan ? x_nan - y_nan : (x > y) - (x < y);                                 \
    }                                                                                              \
    static int compare_##type##_bits(const void *row, int64_t a, int64_t b)                        \
    {                                                                                              \
        const type x = ((const type *)row)[a], y = ((const type *)row)[b];                         \
        bits i, j;                                                                                 \
        if (x == y)                                                                                \
            return 0;                                                                              \
        memcpy(&i, &x, sizeof(i));                                                                 \
        memcpy(&j, &y, sizeof(j));                                                                 \
        i = i < 0 ? i ^ (bits_max) : i;                                                            \
        j = j < 0 ? j ^ (bits_max) : j;                                                            \
        return (i > j) - (i < j);                                                                  \
    }

DEFINE_COMPARE_WHOLE(int32_t)
DEFINE_COMPARE_WHOLE(uint32_t)
DEFINE_COMPARE_WHOLE(int64_t)
DEFINE_COMPARE_WHOLE(uint64_t)
DEFINE_COMPARE_REAL(float, int32_t, INT32_MAX)
DEFINE_COMPARE_REAL(double, int64_t, INT64_MAX)

static int (*const compares[GPURUN_DTYPE_COUNT][2])(const void *row, int64_t a, int64_t b) = {
    [GPURUN_INT32] = {compare_int32_t, compare_int32_t},
    [GPURUN_UINT32] = {compare_uint32_t, compare_uint32_t},
    [GPURUN_INT64] = {compare_int64_t, compare_int64_t},
    [GPURUN_UINT64] = {compare_uint64_t, compare_uint64_t},
    [GPURUN_FLOAT] = {compare_float, compare_float_bits},
    [GPURUN_DOUBLE] = {compare_double, compare_double_bits},
};

struct topk_judge topk_judge_for(const struct gpurun_ctx *ctx, unsigned relaxed)
{
    const struct topk_options *o = topk_options_of(ctx);
    const bool by_bits = relaxed & GPURUN_FLOAT_BY_BITS;

    return (struct topk_judge){
        .compare = compares[o->dtype][by_bits],
        .n = o->n,
        .k = o->k,
        .smallest = o->order == TOPK_SMALLEST,
        .distinct = o->distinct != 0,
        .ordered = o->sorted && !(relaxed & GPURUN_UNSORTED),
        .ties_any = (relaxed & GPURUN_TIES_ANY) != 0,
        .threads = ctx->threads,
    };
}

void topk_sort_indices(const struct topk_judge *j, int64_t *at, int64_t *spare, int64_t count)
{
    const int64_t half = count / 2;
    int64_t left = 0, right = half, to = 0;

    if (count < 2)
        return;
    topk_sort_indices(j, at, spare, half);
    topk_sort_indices(j, at + half, spare, count - half);
    if (topk_precedes(j, at[half - 1], at[half]))
        return;
    memcpy(spare, at, (size_t)count * sizeof(*at));
    while (left < half && right < count)
        at[to++] = topk_precedes(j, spare[right], spare[left]) ? spare[right++] : spare[left++];
    while (left < half)
        at[to++] = spare[left++];
    while (right < count)
        at[to++] = spare[right++];
}

/* Sorts what is in `best`, drops repeats in distinct mode, keeps k. */
static int64_t cut(const struct topk_judge *j, int64_t *best, int64_t *spare, int64_t count)
{
    int64_t kept = 0;

    topk_sort_indices(j, best, spare, count);
    for (int64_t i = 0; i < count && kept < j->k; i++)
        if (!j->distinct || kept == 0 || topk_better(j, best[kept - 1], best[i]) != 0)
            best[kept++] = best[i];
    return kept;
}

/* The best k of a row into `best`, which has room for 2k + BATCH. Returns how many there are. */
static int64_t select_row(const struct topk_judge *j, int64_t *best, int64_t *spare)
{
    const int64_t room = 2 * j->k + BATCH;
    int64_t count = 0, limit = -1;

    for (int64_t i = 0; i < j->n; i++) {
        if (limit >= 0 && !topk_precedes(j, i, limit))
            continue;
        best[count++] = i;
        if (count < room)
            continue;
        count = cut(j, best, spare, count);
        limit = count == j->k && count > 0 ? best[count - 1] : -1;
    }
    return cut(j, best, spare, count);
}

enum gpurun_status topk_truth_find(struct gpurun_ctx *ctx, struct topk_truth *t,
                                   struct topk_judge j)
{
    const struct topk_options *o = topk_options_of(ctx);
    const struct topk_state *s = topk_state_of(ctx);
    const size_t room = (size_t)(2 * o->k + BATCH) * sizeof(int64_t);
    int64_t *best = malloc(room), *spare = malloc(room);

    t->indices = malloc((size_t)(o->rows * o->k) * sizeof(int64_t) + 1);
    t->counts = malloc((size_t)o->rows * sizeof(int64_t) + 1);
    if (!best || !spare || !t->indices || !t->counts) {
        free(best);
        free(spare);
        topk_truth_free(t);
        return gpurun_fail(ctx, GPURUN_NO_MEMORY, "verify", "no host memory for the reference");
    }
    for (int64_t row = 0; row < o->rows; row++) {
        j.row = (const char *)s->in->host + (size_t)(row * o->n) * s->elem_bytes;
        t->counts[row] = select_row(&j, best, spare);
        memcpy(t->indices + row * o->k, best, (size_t)t->counts[row] * sizeof(int64_t));
    }
    free(best);
    free(spare);
    return GPURUN_OK;
}

void topk_truth_free(struct topk_truth *truth)
{
    free(truth->indices);
    free(truth->counts);
    *truth = (struct topk_truth){NULL, NULL};
}
