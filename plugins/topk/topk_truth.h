/*
 * How elements are compared in a proof, and the reference that `full` compares with. Elements are
 * compared as C compares them (isnan, <, ==), never through the key map that run_cpu and the kernels
 * share, and nothing is taken from run_cpu.
 */
#ifndef TOPK_TRUTH_H
#define TOPK_TRUTH_H

#include "topk.h"

/* How one row is judged. */
struct topk_judge {
    /* Above, at or below 0 as element a is larger than, equal to or smaller than element b. */
    int (*compare)(const void *row, int64_t a, int64_t b);
    const void *row;
    int64_t n, k;
    bool smallest, distinct, ordered, ties_any;
    int threads;
};

struct topk_judge topk_judge_for(const struct gpurun_ctx *ctx, unsigned relaxed);

/* Above 0: element a has the better value, 0: the same, below 0: the worse. */
static inline int topk_better(const struct topk_judge *j, int64_t a, int64_t b)
{
    const int c = j->compare(j->row, a, b);

    return j->smallest ? -c : c;
}

/* Whether a comes before b in a sorted answer. */
static inline bool topk_precedes(const struct topk_judge *j, int64_t a, int64_t b)
{
    const int c = topk_better(j, a, b);

    return c > 0 || (c == 0 && a < b);
}

/* Merge sort of element indices, best first; `spare` has as much room. */
void topk_sort_indices(const struct topk_judge *j, int64_t *at, int64_t *spare, int64_t count);

/* Fills `truth`, or fails without leaving anything in it. */
enum gpurun_status topk_truth_find(struct gpurun_ctx *ctx, struct topk_truth *truth,
                                   struct topk_judge j);

#endif
