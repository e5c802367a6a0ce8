/*
 * A mask in global memory, for what cannot take it as a kernel parameter.
 */
#ifndef CONV_GLOBAL_CUH
#define CONV_GLOBAL_CUH

#include "conv_device.cuh"

enum { CONV_GLOBAL_BLOCK = 256 };

/* Mapping: a thread per weight, in one block. */
static __global__ void conv_global_kernel(const struct conv_weights weights, int taps, int32_t *to,
                                          int is_reversed)
{
    for (int i = threadIdx.x; i < taps; i += CONV_GLOBAL_BLOCK)
        to[i] = weights.value.whole[is_reversed ? taps - 1 - i : i];
}

/* Enqueues the store of the mask's weights, whatever their type, at `to`. */
static inline void conv_global_store(const struct gpurun_ctx *ctx, void *to, bool is_reversed)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;

    conv_global_kernel<<<1, CONV_GLOBAL_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(
        conv_weights_of(ctx), mask->width * mask->height, static_cast<int32_t *>(to), is_reversed);
}

#endif
