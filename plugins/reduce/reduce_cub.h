/*
 * Between the files of the cub variant: reduce_cub.cu sums, reduce_cub_extremes.cu does the rest. Apart,
 * because CUB takes long to compile.
 */
#ifndef REDUCE_CUB_H
#define REDUCE_CUB_H

#include "gpurun/cuda.h"
#include "reduce.h"

enum {
    CUB_PLACE_BYTES = 256
}; /* of scratch before CUB's own, which stays aligned; holds a place */

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueues a reduction of any kind but a sum; with no `temp` it only says how much it needs. A place is left
 * at the start of the scratch memory. */
cudaError_t reduce_cub_extreme(struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes);

/* Writes out the place, where one was asked for. */
enum gpurun_status reduce_cub_write(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
