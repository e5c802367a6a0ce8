/*
 * What distinct = yes of the maxima variant is made of, for its kernels and for the test that forces each way through
 * them.
 */
#ifndef TOPK_MAXIMA_DISTINCT_H
#define TOPK_MAXIMA_DISTINCT_H

#include "gpurun/key.h"
#include "topk_maxima.h"

enum {
    DISTINCT_BLOCK = 512,
    DISTINCT_WARPS = DISTINCT_BLOCK / 32,
    DISTINCT_K_MAX = 32, /* a list has an entry per lane */

    /* what is known */
    DISTINCT_TILES_MIN = 1024, /* fewer are read before anything could be */
    DISTINCT_REPEATS_MIN = 2,  /* among the maxima of DISTINCT_WARPS groups */
    DISTINCT_SLOT_BITS = 5,    /* a slot per lane */
    DISTINCT_TRIES = 4,        /* of each warp, to find factors by which all keys find room */

    /* what is read again */
    DISTINCT_BLOCKS_MAX = 256, /* that share the groups */
    DISTINCT_PART_BITS = 6,
    DISTINCT_GROUPS = MAXIMA_LIST,  /* that one block takes; more raise the limit first */
    DISTINCT_AHEAD = 1024,          /* the row's first groups, whose maxima count by themselves */
    DISTINCT_DENSE = 64,            /* numbers from the limit on, each of which may be known */
    DISTINCT_COPY_BYTES = 32 << 10, /* of the maxima of tiles */
    DISTINCT_OWN = MAXIMA_ALL * MAXIMA_GROUPS,
    DISTINCT_FEW = 128,    /* threads with an element that is not below the limit */
    DISTINCT_RANKED = 256, /* entries in all that are ranked by counting */
    DISTINCT_ITEMS = DISTINCT_BLOCKS_MAX * DISTINCT_K_MAX / DISTINCT_BLOCK /* else, of a thread */
};

/* The which-th of the factors that are tried: odd, its bits well spread. */
GPURUN_KEY_INLINE uint32_t distinct_factor(uint32_t which)
{
    return UINT32_C(0x9e3779b1) * (2 * which + 1);
}

/* A hash in its upper bits. */
GPURUN_KEY_INLINE uint32_t distinct_hash32(uint32_t key, uint32_t factor)
{
    return key * factor;
}

GPURUN_KEY_INLINE uint32_t distinct_hash64(uint64_t key, uint32_t factor)
{
    return (uint32_t)(key ^ key >> 32) * factor;
}

#endif
