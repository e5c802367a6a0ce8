/*
 * Between the files of the maxima variant: topk_maxima.cu reads, and narrows down to a small k;
 * topk_maxima_wide.cu does so for a larger one.
 */
#ifndef TOPK_MAXIMA_H
#define TOPK_MAXIMA_H

#include "topk.h"

enum {
    MAXIMA_K_MAX = 2048,
    MAXIMA_ONE_K_MAX = 32, /* that one block narrows down to */
    MAXIMA_WIDE_BITS = 11,
    MAXIMA_WIDE_ZEROS = 4 + (1 << MAXIMA_WIDE_BITS) /* words of scratch that begin as 0 */
};

#ifdef __cplusplus
extern "C" {
#endif

/* For k from MAXIMA_ONE_K_MAX + 1 to MAXIMA_K_MAX. The first MAXIMA_WIDE_ZEROS words of `scratch` are 0, and
 * group_maxima has the keys of a row of so many tiles, once what is on the stream is done. */
enum gpurun_status topk_maxima_wide_supported(struct gpurun_ctx *ctx);
size_t topk_maxima_wide_scratch(struct gpurun_ctx *ctx);
enum gpurun_status topk_maxima_wide_launch(struct gpurun_ctx *ctx, const void *group_maxima,
                                           int64_t tiles, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
