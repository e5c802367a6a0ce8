#include "measure/shape.h"

#include "job/memory.h"
#include "measure/stats.h"
#include <math.h>
#include <stdlib.h>

enum { FIRST_LEAST = 10, HEAPS_LEAST = 20, HEAP_LEAST = 3 };

static const double FENCE = 3;      /* interquartile ranges */
static const double APART = 6;      /* standard deviations */
static const double NOTABLE = 0.02; /* of the median */
static const double SLOW_FIRST = 0.05;

size_t shape_outliers(const double *values, size_t count)
{
    const struct stats s = stats_of(values, count);
    const double reach = FENCE * (s.q3 - s.q1);
    size_t outside = 0;

    for (size_t i = 0; i < count; i++)
        outside += values[i] < s.q1 - reach || values[i] > s.q3 + reach;
    return outside;
}

bool shape_first_is_slow(const double *values, size_t count)
{
    struct stats rest;

    if (count < FIRST_LEAST)
        return false;
    rest = stats_of(values + 1, count - 1);
    return values[0] > rest.q3 + FENCE * (rest.q3 - rest.q1) &&
           values[0] > (1 + SLOW_FIRST) * rest.median;
}

struct heaps {
    double within;        /* squares about the two means */
    double low, high;     /* the means */
    double mean_variance; /* of the two */
};

/* Sums of the first k sorted values and of their squares are sum[k] and squares[k]. */
static struct heaps split_at(const double *sum, const double *squares, size_t k, size_t n)
{
    const double a = (double)k, b = (double)(n - k);
    const double sum_b = sum[n] - sum[k], squares_b = squares[n] - squares[k];
    const double within_a = fmax(0, squares[k] - sum[k] * sum[k] / a);
    const double within_b = fmax(0, squares_b - sum_b * sum_b / b);

    return (struct heaps){.within = within_a + within_b,
                          .low = sum[k] / a,
                          .high = sum_b / b,
                          .mean_variance = (within_a / a + within_b / b) / 2};
}

/* `sums` has room for 2 (n + 1). The values are taken from their median, or large ones would lose the squares'
 * digits. */
static struct heaps best_split(const double *sorted, size_t n, double median, double *sums)
{
    double *sum = sums, *squares = sums + n + 1;
    const size_t tenth = (n + 9) / 10, least = tenth > HEAP_LEAST ? tenth : HEAP_LEAST;
    struct heaps best;

    sum[0] = squares[0] = 0;
    for (size_t i = 0; i < n; i++) {
        const double x = sorted[i] - median;

        sum[i + 1] = sum[i] + x;
        squares[i + 1] = squares[i] + x * x;
    }
    best = split_at(sum, squares, least, n);
    for (size_t k = least + 1; k <= n - least; k++) {
        const struct heaps h = split_at(sum, squares, k, n);

        if (h.within < best.within)
            best = h;
    }
    return best;
}

bool shape_is_bimodal(const double *values, size_t count)
{
    double *sorted, *sums, median;
    struct heaps h;

    if (count < HEAPS_LEAST)
        return false;
    sorted = stats_sorted(values, count);
    sums = allocate(2 * (count + 1), sizeof *sums);
    median = stats_of(values, count).median;
    h = best_split(sorted, count, median, sums);
    free(sorted);
    free(sums);
    return h.high - h.low > APART * sqrt(h.mean_variance) &&
           h.high - h.low > NOTABLE * fabs(median);
}
