/* What two measurements of one case say of each other. */
#ifndef GPURUN_REPORT_VERDICT_H
#define GPURUN_REPORT_VERDICT_H

#include "job/why.h"
#include <stdbool.h>

/* In the order in which a comparison lists them: what wants a look comes first. */
enum verdict {
    VERDICT_FAILED,    /* it passed, and does not any more */
    VERDICT_SLOWER,    /* the intervals are apart, by the gap at the least */
    VERDICT_MISSING,   /* only the old records have an end of it */
    VERDICT_CHANGED,   /* its options or its data differ: the times are not compared */
    VERDICT_UNCERTAIN, /* neither faster, slower nor the same can be said */
    VERDICT_FAILING,   /* it passed neither time */
    VERDICT_FASTER,
    VERDICT_MENDED, /* it passes, and did not before */
    VERDICT_ADDED,  /* only the new records have an end of it */
    VERDICT_SAME,   /* no point of one interval is further than the gap from one of the other */
    VERDICT_COUNT
};

/* A median with its confidence interval, of so many samples; any unit. */
struct interval {
    double low, median, high;
    long long samples;
};

/* Fewer have no 95 % interval of the median (stats.h): nothing but UNCERTAIN follows from them. */
enum { VERDICT_SAMPLES_MIN = 6 };

/* FASTER, SLOWER, SAME or UNCERTAIN. `gap` is the least ratio less one that counts, 0.01 for 1 %. Swapping
 * the two swaps FASTER and SLOWER. */
enum verdict verdict_of(const struct interval *before, const struct interval *now, double gap);

/* "SLOWER"; and from it, VERDICT_COUNT for what is none. */
const char *verdict_name(enum verdict verdict);
enum verdict verdict_from(const char *name);

/* A list of verdicts in small letters, "slower,failed": one bit each, 1u << VERDICT_SLOWER. */
enum gpurun_status verdict_parse_list(const char *text, unsigned *bits, struct why *why);

/* A percentage from 0% to 100%, as a fraction. */
enum gpurun_status verdict_parse_gap(const char *text, double *gap, struct why *why);

#endif
