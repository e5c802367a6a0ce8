/* What a set of samples says: all statistics of a record, none of which deletes a sample. */
#ifndef GPURUN_MEASURE_STATS_H
#define GPURUN_MEASURE_STATS_H

#include <stddef.h>

/* Times of one case in order of measurement; `round` of each, so that two cases can be paired. */
struct samples {
    double *values;
    int *rounds;
    size_t count;
};

void samples_add(struct samples *s, int round, double value);
void samples_free(struct samples *s);

struct stats {
    size_t n;
    double min, p5, q1, median, q3, p95, max, mean, sd;
    double mad; /* median of the distances from the median */
    /* At least 95 % confidence for the median, from order statistics: no shape is assumed. With fewer than
     * 6 samples that much cannot be had and the interval is the whole range. */
    double low, high;
};

/* All zero for no samples. */
struct stats stats_of(const double *values, size_t count);

/* Half the width of the median's interval: the farther end's distance. */
double stats_half_width(const struct stats *s);

/* The values in ascending order, for the caller to free. */
double *stats_sorted(const double *values, size_t count);

/* Statistics of `numerator` over `denominator`, round by round; rounds that only one has are left out. */
struct stats stats_of_ratio(const struct samples *numerator, const struct samples *denominator);

#endif
