#include "measure/stats.h"

#include "job/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void samples_add(struct samples *s, int round, double value)
{
    s->values = grow(s->values, s->count, sizeof *s->values);
    s->rounds = grow(s->rounds, s->count, sizeof *s->rounds);
    s->values[s->count] = value;
    s->rounds[s->count++] = round;
}

void samples_free(struct samples *s)
{
    free(s->values);
    free(s->rounds);
    *s = (struct samples){0};
}

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Linear interpolation between order statistics, 0 <= p <= 1. */
static double quantile(const double *sorted, size_t n, double p)
{
    const double at = p * (double)(n - 1);
    const size_t below = (size_t)at;

    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

/* The largest r such that order statistics r and n+1-r (from 1) hold the median with 95 % confidence: the
 * binomial tail P(X < r), X ~ B(n, 1/2), is at most 2.5 %. 0 when n is too small for any. */
static size_t confidence_rank(size_t n)
{
    double tail = 0;
    size_t r = 0;

    while (r < n) {
        tail += exp(lgamma((double)n + 1) - lgamma((double)r + 1) - lgamma((double)(n - r) + 1) -
                    (double)n * log(2));
        if (tail > 0.025)
            break;
        r++;
    }
    return r;
}

double *stats_sorted(const double *values, size_t count)
{
    double *sorted = allocate(count, sizeof *sorted);

    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    return sorted;
}

/* Median of the distances from `centre`; the values are lost. */
static double median_distance(double *values, size_t n, double centre)
{
    for (size_t i = 0; i < n; i++)
        values[i] = fabs(values[i] - centre);
    qsort(values, n, sizeof *values, compare_doubles);
    return quantile(values, n, 0.5);
}

double stats_half_width(const struct stats *s)
{
    return fmax(s->high - s->median, s->median - s->low);
}

struct stats stats_of(const double *values, size_t count)
{
    struct stats s = {.n = count};
    double *sorted, squares = 0;
    size_t rank;

    if (count == 0)
        return s;
    sorted = stats_sorted(values, count);
    for (size_t i = 0; i < count; i++)
        s.mean += sorted[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (sorted[i] - s.mean) * (sorted[i] - s.mean);
    s.sd = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
    s.min = sorted[0];
    s.p5 = quantile(sorted, count, 0.05);
    s.q1 = quantile(sorted, count, 0.25);
    s.median = quantile(sorted, count, 0.5);
    s.q3 = quantile(sorted, count, 0.75);
    s.p95 = quantile(sorted, count, 0.95);
    s.max = sorted[count - 1];
    rank = confidence_rank(count);
    s.low = rank ? sorted[rank - 1] : s.min;
    s.high = rank ? sorted[count - rank] : s.max;
    s.mad = median_distance(sorted, count, s.median);
    free(sorted);
    return s;
}

struct stats stats_of_ratio(const struct samples *numerator, const struct samples *denominator)
{
    double *ratios = allocate(numerator->count, sizeof *ratios);
    struct stats s;
    size_t pairs = 0;

    /* Both are in round order, so one walk pairs them. */
    for (size_t i = 0, k = 0; i < numerator->count; i++) {
        while (k < denominator->count && denominator->rounds[k] < numerator->rounds[i])
            k++;
        if (k < denominator->count && denominator->rounds[k] == numerator->rounds[i] &&
            denominator->values[k] > 0)
            ratios[pairs++] = numerator->values[i] / denominator->values[k];
    }
    s = stats_of(ratios, pairs);
    free(ratios);
    return s;
}
