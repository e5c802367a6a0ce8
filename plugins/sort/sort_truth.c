/*
 * The reference: a bottom-up merge sort of indices. Of equal keys the left one goes first, so it is stable.
 */
#include "sort_truth.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFINE_COMPARE_WHOLE(type)                                                                 \
    static int compare_##type(const void *data, int64_t a, int64_t b, bool descending)             \
    {                                                                                              \
        const type x = ((const type *)data)[a], y = ((const type *)data)[b];                       \
        const int c = (x > y) - (x < y);                                                           \
        return descending ? -c : c;                                                                \
    }

/* By value: NaN is last in either direction. By bits: NaN lies beyond the infinity of its sign, and turns
 * with the order; zeros stay equal. */
#define DEFINE_COMPARE_REAL(type, bits, bits_max)                                                  \
    static int compare_##type(const void *data, int64_t a, int64_t b, bool descending)             \
    {                                                                                              \
        const type x = ((const type *)data)[a], y = ((const type *)data)[b];                       \
        const bool x_nan = isnan(x), y_nan = isnan(y);                                             \
        const int c = (x > y) - (x < y);                                                           \
        return x_nan || y_nan ? x_nan - y_nan : descending ? -c : c;                               \
    }                                                                                              \
    static int compare_##type##_bits(const void *data, int64_t a, int64_t b, bool descending)      \
    {                                                                                              \
        const type x = ((const type *)data)[a], y = ((const type *)data)[b];                       \
        bits i, k;                                                                                 \
        if (x == y)                                                                                \
            return 0;                                                                              \
        memcpy(&i, &x, sizeof(i));                                                                 \
        memcpy(&k, &y, sizeof(k));                                                                 \
        i = i < 0 ? i ^ (bits_max) : i;                                                            \
        k = k < 0 ? k ^ (bits_max) : k;                                                            \
        return descending ? (k > i) - (k < i) : (i > k) - (i < k);                                 \
    }

DEFINE_COMPARE_WHOLE(int32_t)
DEFINE_COMPARE_WHOLE(uint32_t)
DEFINE_COMPARE_WHOLE(int64_t)
DEFINE_COMPARE_WHOLE(uint64_t)
DEFINE_COMPARE_REAL(float, int32_t, INT32_MAX)
DEFINE_COMPARE_REAL(double, int64_t, INT64_MAX)

static int (*const compares[GPURUN_DTYPE_COUNT][2])(const void *, int64_t, int64_t, bool) = {
    [GPURUN_INT32] = {compare_int32_t, compare_int32_t},
    [GPURUN_UINT32] = {compare_uint32_t, compare_uint32_t},
    [GPURUN_INT64] = {compare_int64_t, compare_int64_t},
    [GPURUN_UINT64] = {compare_uint64_t, compare_uint64_t},
    [GPURUN_FLOAT] = {compare_float, compare_float_bits},
    [GPURUN_DOUBLE] = {compare_double, compare_double_bits},
};

struct sort_judge sort_judge_for(const struct gpurun_ctx *ctx, unsigned relaxed)
{
    const struct sort_options *o = sort_options_of(ctx);
    const bool by_bits = sort_state_of(ctx)->map.is_real && (relaxed & GPURUN_FLOAT_BY_BITS) != 0;

    return (struct sort_judge){
        .compare = compares[o->dtype][by_bits],
        .n = o->n,
        .descending = o->order == SORT_DESCENDING,
        .by_bits = by_bits,
        .threads = ctx->threads,
    };
}

/* Merges from[begin..middle) and from[middle..end) into the same places of `to`. */
static void merge(const struct sort_judge *j, const void *keys, const int64_t *from, int64_t *to,
                  int64_t begin, int64_t middle, int64_t end)
{
    int64_t left = begin, right = middle;

    for (int64_t i = begin; i < end; i++) {
        const bool take_left =
            left < middle &&
            (right == end || j->compare(keys, from[left], from[right], j->descending) <= 0);

        to[i] = take_left ? from[left++] : from[right++];
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t *sort_truth_find(const struct sort_judge *j, const void *keys)
{
    const size_t room = (size_t)j->n * sizeof(int64_t) + 1;
    int64_t *from = malloc(room), *to = malloc(room);

    if (!from || !to) {
        free(from);
        free(to);
        return NULL;
    }
    for (int64_t i = 0; i < j->n; i++)
        from[i] = i;
    for (int64_t width = 1; width < j->n; width *= 2) {
        int64_t *const merged = to;

#pragma omp parallel for num_threads(j->threads)
        for (int64_t begin = 0; begin < j->n; begin += 2 * width)
            merge(j, keys, from, to, begin, least(begin + width, j->n),
                  least(begin + 2 * width, j->n));
        to = from;
        from = merged;
    }
    free(to);
    return from;
}
