/*
 * reduce, variant "cub": the peer, cub::DeviceReduce; its sums, and the launcher.
 *
 * Mapping  CUB's: a grid that fills the device, then one block over its results.
 * Memory   reads each element once; 16-byte loads where the input is a plain pointer.
 * Bound    memory; at small n two launches.
 * Limits   float sums in chains longer than ours; bit-reproducible as far as CUB is.
 */
#include "reduce_cub.h"
#include "reduce_device.cuh"
#include <cub/device/device_reduce.cuh>
#include <cuda/std/functional>

/* Each of these enqueues a reduction; with no `temp` it only says how much it needs. */
template <typename IN>
static cudaError_t cub_sum(struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    const struct reduce_job job = reduce_job_of(ctx);

    return cub::DeviceReduce::Sum(temp, *temp_bytes, static_cast<const IN *>(job.in),
                                  static_cast<IN *>(job.value), job.n, gpurun_cuda_stream(ctx));
}

template <typename IN, typename ACC>
static cudaError_t cub_sum_wide(struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    const struct reduce_job job = reduce_job_of(ctx);

    return cub::DeviceReduce::Reduce(temp, *temp_bytes, static_cast<const IN *>(job.in),
                                     static_cast<ACC *>(job.value), job.n, cuda::std::plus<ACC>{},
                                     ACC{0}, gpurun_cuda_stream(ctx));
}

static cudaError_t cub_reduce(struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    switch (reduce_state_of(ctx)->kind) {
    case REDUCE_SUM_32:
        return cub_sum<uint32_t>(ctx, temp, temp_bytes);
    case REDUCE_SUM_INT32_WIDE:
        return cub_sum_wide<int32_t, int64_t>(ctx, temp, temp_bytes);
    case REDUCE_SUM_UINT32_WIDE:
        return cub_sum_wide<uint32_t, uint64_t>(ctx, temp, temp_bytes);
    case REDUCE_SUM_64:
        return cub_sum<uint64_t>(ctx, temp, temp_bytes);
    case REDUCE_SUM_FLOAT:
        return cub_sum<float>(ctx, temp, temp_bytes);
    case REDUCE_SUM_FLOAT_WIDE:
        return cub_sum_wide<float, double>(ctx, temp, temp_bytes);
    case REDUCE_SUM_DOUBLE:
        return cub_sum<double>(ctx, temp, temp_bytes);
    default:
        return reduce_cub_extreme(ctx, temp, temp_bytes);
    }
}

size_t reduce_cub_scratch(struct gpurun_ctx *ctx)
{
    size_t bytes = 0;

    if (reduce_options_of(ctx)->n == 0 || cub_reduce(ctx, NULL, &bytes) != cudaSuccess)
        return 0;
    return CUB_PLACE_BYTES + bytes;
}

enum gpurun_status reduce_launch_cub(struct gpurun_ctx *ctx)
{
    size_t bytes = 0;

    GPURUN_CUDA_TRY(ctx, cub_reduce(ctx, NULL, &bytes));
    GPURUN_CUDA_TRY(ctx,
                    cub_reduce(ctx, static_cast<char *>(ctx->scratch) + CUB_PLACE_BYTES, &bytes));
    return reduce_cub_write(ctx);
}
