/*
 * scan, variant "cub": the peer, cub::DeviceScan.
 *
 * Mapping  CUB's: a tile per block, decoupled look-back.
 * Memory   reads and writes everything once, after a kernel that resets the words of the tiles.
 * Bound    memory, and the latency of the look-back.
 * Limits   n below 2^32; init only where the scan is exclusive; max and min only where accumulate = same.
 *          Bits of a float sum depend on timing, and its chain of additions has no bound but the tiles.
 */
#include "scan_cub.h"
#include "scan_device.cuh"
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>

/* With no `temp`, only says how much it needs. CUB takes the type of the operator's result for the type to
 * sum in. */
template <typename IN, typename ACC, int OP>
static cudaError_t cub_sum(const struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    const struct scan_args<IN, ACC> args = scan_args_of<IN, ACC>(ctx);
    const uint32_t n = static_cast<uint32_t>(args.n);
    const cudaStream_t stream = gpurun_cuda_stream(ctx);

    if (args.exclusive)
        return cub::DeviceScan::ExclusiveScan(temp, *temp_bytes, args.in, args.out,
                                              cuda::std::plus<ACC>{}, args.init, n, stream);
    return cub::DeviceScan::InclusiveScan(temp, *temp_bytes, args.in, args.out,
                                          cuda::std::plus<ACC>{}, n, stream);
}

enum gpurun_status scan_cub_supported(struct gpurun_ctx *ctx)
{
    const struct scan_options *o = scan_options_of(ctx);
    const struct scan_state *s = scan_state_of(ctx);
    const bool has_init =
        s->is_real ? s->init.real != s->identity.real : s->init.whole != s->identity.whole;

    if (o->n > UINT32_MAX)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "n",
                           "the peer is built for indices of 32 bits: n = %lld is not below 2^32",
                           static_cast<long long>(o->n));
    if (has_init && o->kind == SCAN_INCLUSIVE)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "init",
                           "the peer takes it only where the scan is exclusive");
    return o->op == SCAN_SUM ? GPURUN_OK : scan_cub_order_supported(ctx);
}

size_t scan_cub_scratch(struct gpurun_ctx *ctx)
{
    size_t bytes = 0;

    if (scan_options_of(ctx)->op != SCAN_SUM)
        return scan_cub_order_scratch(ctx);
    return SCAN_DISPATCH_SUM(ctx, cub_sum, ctx, NULL, &bytes) == cudaSuccess ? bytes : 0;
}

enum gpurun_status scan_launch_cub(struct gpurun_ctx *ctx)
{
    size_t bytes = 0;

    if (scan_options_of(ctx)->op != SCAN_SUM)
        return scan_launch_cub_order(ctx);
    GPURUN_CUDA_TRY(ctx, SCAN_DISPATCH_SUM(ctx, cub_sum, ctx, NULL, &bytes));
    GPURUN_CUDA_TRY(ctx, SCAN_DISPATCH_SUM(ctx, cub_sum, ctx, ctx->scratch, &bytes));
    return GPURUN_OK;
}
