/*
 * Sorts what a variant has selected, best first, and writes it as the answer. What is sorted are pairs of key
 * and index as one number each, of which no two are equal: see topk_pairs.cuh.
 */
#ifndef TOPK_SORT_H
#define TOPK_SORT_H

#include "gpurun/key.h"
#include "topk.h"

enum {
    SORT_BLOCK = 256, /* threads that sort a bucket */
    SORT_BUCKETS_MAX = 1024,
    SORT_BUCKET_LEAST = 1024, /* pairs: no more buckets than that gives */
    SORT_OVERSAMPLE = 4,      /* samples per bucket */
    SORT_FEW = 9,   /* pairs that a thread holds; odd, so that threads side by side meet */
    SORT_MANY = 17, /* no bank conflicts */
};

/* Which of a row's pairs is the i-th of the sample: one of each `stride`, at a place that hashing i gives, so
 * that no order of the pairs meets a pattern. */
GPURUN_KEY_INLINE int64_t topk_sort_sample_at(int64_t i, int64_t stride)
{
    uint32_t hash = (uint32_t)i * UINT32_C(0x9e3779b1);

    hash = (hash ^ (hash >> 15)) * UINT32_C(0x85ebca77);
    hash ^= hash >> 13;
    return i * stride + (int64_t)(((uint64_t)hash * (uint64_t)stride) >> 32);
}

#ifdef __cplusplus
extern "C" {
#endif

/* Whether pairs take 16 bytes instead of 8. */
bool topk_sort_is_wide(const struct gpurun_ctx *ctx);

/* Whether the device has the shared memory; notes the reason where it has not. */
enum gpurun_status topk_sort_supported(struct gpurun_ctx *ctx);

/* Scratch memory for `rows` rows; 0 where the answer is not to be sorted. The pairs, rows x k, lie at its
 * start. */
size_t topk_sort_scratch(const struct gpurun_ctx *ctx, int64_t rows);

/* Sorts the pairs of `rows` rows from row `first` of the job on, at most TOPK_GRID_Y_MAX. The pairs are
 * overwritten. */
enum gpurun_status topk_launch_sort(struct gpurun_ctx *ctx, void *scratch, int64_t first,
                                    int64_t rows);

#ifdef __cplusplus
}
#endif

#endif
