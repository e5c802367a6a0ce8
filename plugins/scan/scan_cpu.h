/*
 * Between the files of the baseline: what is known before an element, and the loops over one piece.
 */
#ifndef SCAN_CPU_H
#define SCAN_CPU_H

#include "scan.h"
#include <math.h>

/* What is before an element; real sums are real + lost. */
struct carry {
    uint64_t whole;
    double real, lost;
};

/* How results are written. */
struct scan_way {
    bool exclusive;
    bool past_cache; /* at multiples of 32 bytes only */
};

/* Scans a piece; `carry` is what is before it, and then what is before the next. */
typedef void scan_piece(const void *in, void *out, int64_t elems, struct scan_number identity,
                        struct carry *carry, struct scan_way way);

struct cpu_scan {
    /* All elements of a piece together. */
    void (*total)(const void *in, int64_t elems, struct scan_number identity, struct carry *total);
    scan_piece *scan;
};

/* By accumulation dtype: the loops named `same` and `wide`. */
#define SCAN_CPU_PAIR(same, wide)                                                                  \
    {                                                                                              \
        {same##_total, same##_scan},                                                               \
        {                                                                                          \
            wide##_total, wide##_scan                                                              \
        }                                                                                          \
    }

/* Adds and keeps the rounding error, where there is one to speak of. */
static inline void scan_carry_add(struct carry *c, double x)
{
    const double sum = c->real + x, part = sum - c->real;
    const double lost = (c->real - (sum - part)) + (x - part);

    c->real = sum;
    c->lost = isfinite(sum) ? c->lost + lost : 0.0;
}

/* Takes a sum that was added up by itself into another. */
static inline void scan_carry_join(struct carry *before, struct carry total)
{
    before->whole += total.whole;
    scan_carry_add(before, total.real);
    if (isfinite(before->real))
        before->lost += total.lost;
}

/* Sums of elements of four and eight bytes. */
const struct cpu_scan *scan_cpu_sum(enum gpurun_dtype dtype, bool wide);

/* With results of the elements' type; NULL: not these, or not on this machine. */
scan_piece *scan_cpu_avx2(enum scan_op op, enum gpurun_dtype dtype);

#endif
