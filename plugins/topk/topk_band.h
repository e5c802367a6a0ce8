/*
 * What the files of the band variant share on the host and on the device: its constants, the plan of a run
 * and where the sample looks.
 */
#ifndef TOPK_BAND_H
#define TOPK_BAND_H

#include "gpurun/key.h"
#include "topk.h"

enum {
    BAND_BLOCK = 512,
    BAND_WARPS = BAND_BLOCK / 32,
    BAND_BLOCKS_PER_SM = 2,
    BAND_VECTOR_BYTES = 16,
    BAND_VECTORS = 4,            /* that a thread has in flight */
    BAND_LEAST_PER_BLOCK = 2048, /* elements: no more blocks than that gives */
    BAND_STASH_FULL = 128,       /* entries that a warp holds back before it writes them */
    BAND_BITS = 11,
    BAND_BINS = 1 << BAND_BITS,
    BAND_SEARCH_ROUNDS = 6, /* digits of a key of 64 bits */
    BAND_CUT_ROUNDS = 9,    /* the same, and the digits of an index of 32 bits */
    BAND_FINAL = 1024,      /* elements that one block ranks by counting */
    BAND_SHARE = 32,        /* the band holds n / BAND_SHARE elements, but at least */
    BAND_LEAST = 1 << 16,
    BAND_K_SHARE = 8, /* k is at most n / BAND_K_SHARE */
};

/* Indices and counts of a row are 32 bits, with room to step over its end. */
#define BAND_N_MAX (UINT32_MAX - 65535)

/* One run over one row. Ranks count from 1, the best. */
struct band_plan {
    uint32_t n, k;
    uint32_t blocks; /* that run, all at once */
    uint32_t samples;
    uint64_t stride;              /* elements per sample, 32 bits of them behind the point */
    uint32_t keep;                /* samples per block, of which the two are among */
    uint32_t rank_high, rank_low; /* in the sample; rank_high 0: nothing is surely above */
    uint32_t sample_most;         /* that the band has room for what they stand for */
    uint32_t band_most;           /* elements */
    uint32_t pack;                /* elements of a 16-byte vector */
    uint32_t head, vectors;       /* elements before the first vector, and vectors */
    uint32_t tile, tiles;         /* elements that a block reads at once, and how many such tiles */
};

/* The element that is the i-th of the sample: one from each of `samples` equal parts of the row, at a place
 * that hashing i gives, so that no order of the data meets a pattern. */
GPURUN_KEY_INLINE uint32_t band_sample_at(const struct band_plan *plan, uint32_t i)
{
    const uint32_t begin = (uint32_t)((i * plan->stride) >> 32);
    const uint32_t end = (uint32_t)(((i + UINT64_C(1)) * plan->stride) >> 32);
    uint32_t hash = i * UINT32_C(0x9e3779b1);

    hash = (hash ^ (hash >> 15)) * UINT32_C(0x85ebca77);
    hash ^= hash >> 13;
    return begin + (uint32_t)(((uint64_t)hash * (end - begin)) >> 32);
}

/* What a run counts in; at the start of its scratch memory. */
struct band_state {
    unsigned bins[BAND_SEARCH_ROUNDS][2][BAND_BINS]; /* of the search of the whole row */
    unsigned cut_bins[BAND_CUT_ROUNDS][BAND_BINS];
    unsigned long long taken; /* above the band in the upper half, in the band in the lower */
    unsigned ties;            /* equal to the lower limit, where these are counted */
    unsigned cut_taken;       /* of the band, by the answer */
    unsigned finals;
};

#ifdef __cplusplus
extern "C" {
#endif

/* What a run will do, on a row that starts at a vector; all 0 where there is nothing to do. */
enum gpurun_status topk_band_plan(struct gpurun_ctx *ctx, struct band_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
