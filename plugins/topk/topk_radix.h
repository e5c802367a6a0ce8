/*
 * Between the files of the radix variant: topk_radix.cu selects plainly, topk_radix_distinct.cu by value.
 */
#ifndef TOPK_RADIX_H
#define TOPK_RADIX_H

#include "topk.h"

enum {
    RADIX_BLOCK = 512,       /* threads of the kernels that read the input */
    RADIX_BYTES = 32,        /* of the input that each of them has in flight */
    RADIX_BLOCKS_PER_SM = 4, /* fills an SM of 2048 threads */
    RADIX_DISTINCT_K_MAX = 4096
};

#ifdef __cplusplus
/* Blocks per row that read the input, with `rows` rows in one launch. */
static inline unsigned radix_blocks(const struct gpurun_ctx *ctx, int64_t rows)
{
    const int64_t tile =
        RADIX_BLOCK * RADIX_BYTES / static_cast<int64_t>(topk_state_of(ctx)->elem_bytes);
    const int64_t tiles = (topk_options_of(ctx)->n + tile - 1) / tile;
    const int64_t fill = static_cast<int64_t>(ctx->device.sm_count) * RADIX_BLOCKS_PER_SM / rows;
    const int64_t blocks = tiles < fill ? tiles : fill;

    return static_cast<unsigned>(blocks > 1 ? blocks : 1);
}

extern "C" {
#endif

size_t topk_radix_distinct_scratch(struct gpurun_ctx *ctx);
enum gpurun_status topk_launch_radix_distinct(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
