/*
 * Between the files of the cub variant, which are apart because CUB takes long to compile: about eight seconds for
 * each type of key, of value and direction. So not every combination is there.
 */
#ifndef SORT_CUB_H
#define SORT_CUB_H

#include "gpurun/cuda.h"
#include "sort.h"
#include <stdint.h>

/* Sorts, or with no `temp` only says how much it needs. Calls CUB as its tuning likes it best: the type of the
 * count picks the tile, and a 64-bit one is the faster for keys, a 32-bit one for pairs. */
cudaError_t sort_cub_keys_32(const struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes);
cudaError_t sort_cub_keys_64(const struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes);
cudaError_t sort_cub_pairs(const struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes);

template <typename KEY> static inline const KEY *sort_cub_in(const struct gpurun_ctx *ctx)
{
    return static_cast<const KEY *>(sort_state_of(ctx)->keys->dev);
}

template <typename KEY> static inline KEY *sort_cub_out(const struct gpurun_ctx *ctx)
{
    return static_cast<KEY *>(sort_state_of(ctx)->sorted->dev);
}

#endif
