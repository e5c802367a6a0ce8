/*
 * scan, variant "cub" with op = max or min.
 *
 * Mapping  cub::DeviceScan with an operator of our own, as CUB's does not keep NaN.
 * Memory   reads and writes everything once, after a kernel that resets the words of the tiles.
 * Bound    memory, and the latency of the look-back.
 * Limits   n below 2^32; accumulate = same. Which of the two it is, the operator finds out at run time.
 */
#include "scan_cub.h"
#include "scan_device.cuh"
#include <cub/device/device_scan.cuh>

/* A functor, as CUB asks for one. */
struct cub_order {
    bool is_max;

    template <typename TYPE> __device__ TYPE operator()(TYPE a, TYPE b) const
    {
        return is_max ? scan_join<SCAN_MAX>(a, b) : scan_join<SCAN_MIN>(a, b);
    }
};

/* With no `temp`, only says how much it needs. */
template <typename TYPE>
static cudaError_t cub_order_scan(const struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    const struct scan_args<TYPE, TYPE> args = scan_args_of<TYPE, TYPE>(ctx);
    const struct cub_order order = {scan_options_of(ctx)->op == SCAN_MAX};
    const uint32_t n = static_cast<uint32_t>(args.n);
    const cudaStream_t stream = gpurun_cuda_stream(ctx);

    if (args.exclusive)
        return cub::DeviceScan::ExclusiveScan(temp, *temp_bytes, args.in, args.out, order,
                                              args.init, n, stream);
    return cub::DeviceScan::InclusiveScan(temp, *temp_bytes, args.in, args.out, order, n, stream);
}

static cudaError_t cub_order_run(const struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    switch (scan_state_of(ctx)->dtype) {
    case GPURUN_UINT8:
        return cub_order_scan<uint8_t>(ctx, temp, temp_bytes);
    case GPURUN_INT32:
        return cub_order_scan<int32_t>(ctx, temp, temp_bytes);
    case GPURUN_UINT32:
        return cub_order_scan<uint32_t>(ctx, temp, temp_bytes);
    case GPURUN_INT64:
        return cub_order_scan<int64_t>(ctx, temp, temp_bytes);
    case GPURUN_UINT64:
        return cub_order_scan<uint64_t>(ctx, temp, temp_bytes);
    case GPURUN_FLOAT:
        return cub_order_scan<float>(ctx, temp, temp_bytes);
    default:
        return cub_order_scan<double>(ctx, temp, temp_bytes);
    }
}

enum gpurun_status scan_cub_order_supported(struct gpurun_ctx *ctx)
{
    const struct scan_state *s = scan_state_of(ctx);

    if (s->acc == s->dtype)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "accumulate",
                       "the peer is built for max and min with accumulate = same");
}

size_t scan_cub_order_scratch(struct gpurun_ctx *ctx)
{
    size_t bytes = 0;

    return cub_order_run(ctx, NULL, &bytes) == cudaSuccess ? bytes : 0;
}

enum gpurun_status scan_launch_cub_order(struct gpurun_ctx *ctx)
{
    size_t bytes = 0;

    GPURUN_CUDA_TRY(ctx, cub_order_run(ctx, NULL, &bytes));
    GPURUN_CUDA_TRY(ctx, cub_order_run(ctx, ctx->scratch, &bytes));
    return GPURUN_OK;
}
