/*
 * For a plugin's .cu files: CUDA errors become statuses with the failing expression in their text.
 * Each plugin carries its own static CUDA runtime, so a launch error is visible only here: a launcher
 * ends with GPURUN_LAUNCH_TRY after its last launch.
 */
#ifndef GPURUN_CUDA_H
#define GPURUN_CUDA_H

#include "gpurun/plugin.h"
#include <cuda_runtime_api.h>

/* Threads that a multiprocessor holds: a kernel's registers can be held to what lets it hold them all.
 * Device code only. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
#define GPURUN_SM_THREADS 1024
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ % 100 >= 60 || __CUDA_ARCH__ >= 1200)
#define GPURUN_SM_THREADS 1536
#else
#define GPURUN_SM_THREADS 2048
#endif

static inline cudaStream_t gpurun_cuda_stream(const struct gpurun_ctx *ctx)
{
    return (cudaStream_t)ctx->stream;
}

static inline enum gpurun_status gpurun_cuda_fail(struct gpurun_ctx *ctx, cudaError_t error,
                                                  const char *what)
{
    const enum gpurun_status status =
        error == cudaErrorMemoryAllocation ? GPURUN_NO_MEMORY : GPURUN_DEVICE;

    cudaGetLastError(); /* else the next launch would be blamed for it */
    return gpurun_fail(ctx, status, NULL, "%s: %s (%s)", what, cudaGetErrorString(error),
                       cudaGetErrorName(error));
}

#define GPURUN_CUDA_TRY(ctx, call)                                                                 \
    do {                                                                                           \
        const cudaError_t error_ = (call);                                                         \
        if (error_ != cudaSuccess)                                                                 \
            return gpurun_cuda_fail((ctx), error_, #call);                                         \
    } while (0)

/* With GPURUN_DEBUG_SYNC a fault is pinned on the launch that made it; never for timing. */
#ifdef GPURUN_DEBUG_SYNC
#define GPURUN_LAUNCH_TRY(ctx)                                                                     \
    do {                                                                                           \
        GPURUN_CUDA_TRY((ctx), cudaGetLastError());                                                \
        GPURUN_CUDA_TRY((ctx), cudaStreamSynchronize(gpurun_cuda_stream(ctx)));                    \
    } while (0)
#else
#define GPURUN_LAUNCH_TRY(ctx) GPURUN_CUDA_TRY((ctx), cudaGetLastError())
#endif

#endif
