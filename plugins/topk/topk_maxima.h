/*
 * Between the files of the maxima variant: topk_maxima.cu reads, and narrows down to a small k;
 * topk_maxima_wide.cu does so for a larger one; topk_maxima_distinct.cu does both for different values.
 */
#ifndef TOPK_MAXIMA_H
#define TOPK_MAXIMA_H

#include "topk.h"

enum {
    MAXIMA_VECTOR_BYTES = 16,
    MAXIMA_LOADS = 4, /* vectors of a lane in a group */
    MAXIMA_GROUP_BYTES = 32 * MAXIMA_LOADS * MAXIMA_VECTOR_BYTES,
    MAXIMA_GROUPS = 32, /* of a tile */
    MAXIMA_SHORT_LOADS =
        1, /* the same for short rows, so that more blocks read and less is read again */
    MAXIMA_SHORT_TILES = 64, /* long ones: so many make a short row */
    MAXIMA_BATCH_TILES = 16, /* and so many one of a batch */
    MAXIMA_HELD = 16,        /* maxima that a thread holds in registers */
    MAXIMA_AT_ONCE = 4,      /* and that it reads at once, where it has more */

    /* what one block narrows down */
    MAXIMA_ONE_K_MAX = 32,
    MAXIMA_PARTS = 64,  /* that a level is dealt to, in turn */
    MAXIMA_FOUND = 128, /* items that a level may leave before they are counted out exactly */
    MAXIMA_LIST = 32,   /* pieces that a level leaves to the next */
    MAXIMA_ALL = 64,    /* tiles that a level takes */

    /* what the grid narrows down */
    MAXIMA_K_MAX = 2048,
    MAXIMA_WIDE_FOUND =
        4096,               /* pairs that one block sorts; where more are left, digits come first */
    MAXIMA_WIDE_SPARE = 64, /* a digit less is worth so many items above twice k */
    MAXIMA_WIDE_BITS = 11,
    MAXIMA_WIDE_ZEROS = 4 + (1 << MAXIMA_WIDE_BITS) /* words of scratch that begin as 0 */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Keys of the maxima of a row's pieces, on the device. */
struct maxima_keys {
    const void *tiles, *groups;
};

/* For k from MAXIMA_ONE_K_MAX + 1 to MAXIMA_K_MAX. The first MAXIMA_WIDE_ZEROS words of `scratch` are 0, and
 * the maxima are those of a row of so many tiles, once what is on the stream is done. */
enum gpurun_status topk_maxima_wide_supported(struct gpurun_ctx *ctx);
size_t topk_maxima_wide_scratch(struct gpurun_ctx *ctx);
enum gpurun_status topk_maxima_wide_launch(struct gpurun_ctx *ctx, struct maxima_keys maxima,
                                           int64_t tiles, void *scratch);

/* For distinct = yes. */
enum gpurun_status topk_maxima_distinct_supported(struct gpurun_ctx *ctx);
size_t topk_maxima_distinct_scratch(struct gpurun_ctx *ctx);
size_t topk_maxima_distinct_state(struct gpurun_ctx *ctx);
enum gpurun_status topk_maxima_distinct_launch(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
