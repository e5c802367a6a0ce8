/* Signs that a set of samples is not one steady quantity. Nothing is left out for them. */
#ifndef GPURUN_MEASURE_SHAPE_H
#define GPURUN_MEASURE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

/* How many lie more than three times the interquartile range outside the quartiles: one in 400,000 of a normal
 * distribution. */
size_t shape_outliers(const double *values, size_t count);

/* Whether the first is such an outlier to those after it, on the upper side, and 5 % above their median. Of
 * 10 samples of one normal distribution it is said of up to 1.4 sets in 100, of 20 or more of less than one
 * in 1000; of a strongly skewed one of up to 8 in 100. With fewer than 10 samples it is never said. */
bool shape_first_is_slow(const double *values, size_t count);

/* Whether the samples are two heaps: split where the squares about the two means are least, with a tenth (and 3)
 * of them on either side, the means are six standard deviations of a heap apart, and 2 % of the median. Of 20
 * samples of one normal distribution it is said of one set in 1000, of a uniform one of one in 100, of a
 * strongly skewed one of four in 100; of 50 or more of less than one in 200. With fewer than 20 samples it is
 * never said. tests/data/make_stats.py measures these rates. */
bool shape_is_bimodal(const double *values, size_t count);

#endif
