/*
 * How elements are compared in a proof, and the reference that `full` compares with. Elements are compared as
 * C compares them (isnan, <, ==), never through the key map that run_cpu and the kernels share.
 */
#ifndef SORT_TRUTH_H
#define SORT_TRUTH_H

#include "sort.h"

/* How an answer is judged. */
struct sort_judge {
    /* Below, at or above 0 as element a of `data` goes before, beside or after element b. */
    int (*compare)(const void *data, int64_t a, int64_t b, bool descending);
    int64_t n;
    bool descending, by_bits;
    int threads;
};

struct sort_judge sort_judge_for(const struct gpurun_ctx *ctx, unsigned relaxed);

/* The indices of `keys` in the order of a stable sort, for the caller to free; NULL without memory. */
int64_t *sort_truth_find(const struct sort_judge *j, const void *keys);

#endif
