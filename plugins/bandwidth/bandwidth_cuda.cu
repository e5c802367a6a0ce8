/*
 * bandwidth, peer "cuda": the driver's own copy and fill, on the device.
 *
 * cuMemsetD32Async fills with words, which the runtime's cudaMemsetAsync does not; it is the driver's and is
 * asked for by name, so that nothing is linked with the driver.
 */
#include "bandwidth.h"
#include "gpurun/cuda.h"
#include <cuda.h>

typedef CUresult (*cuda_fill)(CUdeviceptr to, unsigned value, size_t elems, CUstream stream);

static enum gpurun_status find_fill(struct gpurun_ctx *ctx)
{
    struct bandwidth_state *s = bandwidth_state_of(ctx);
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuMemsetD32Async", &s->fill, 12000,
                                                               cudaEnableDefault, &found);
#else
    const cudaError_t error =
        cudaGetDriverEntryPoint("cuMemsetD32Async", &s->fill, cudaEnableDefault, &found);
#endif

    if (error == cudaSuccess && found == cudaDriverEntryPointSuccess)
        return GPURUN_OK;
    (void)cudaGetLastError();
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL, "the driver has no cuMemsetD32Async");
}

/* Between two places of the host's memory CUDA would copy without the device. */
static enum gpurun_status copy_supported(struct gpurun_ctx *ctx)
{
    const void *in = bandwidth_state_of(ctx)->in->dev;
    struct cudaPointerAttributes where = {};

    if (in != NULL)
        GPURUN_CUDA_TRY(ctx, cudaPointerGetAttributes(&where, in));
    if (where.type == cudaMemoryTypeHost)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "memory",
                           "with zerocopy both arrays lie on the host: the device would not copy");
    return GPURUN_OK;
}

enum gpurun_status bandwidth_cuda_supported(struct gpurun_ctx *ctx)
{
    switch (bandwidth_options_of(ctx)->kind) {
    case BANDWIDTH_COPY:
        return copy_supported(ctx);
    case BANDWIDTH_WRITE:
        return find_fill(ctx);
    default:
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "kind",
                           "CUDA has calls for copy and write, for nothing else");
    }
}

static enum gpurun_status fill_out(struct gpurun_ctx *ctx)
{
    const struct bandwidth_state *s = bandwidth_state_of(ctx);
    const CUresult result = reinterpret_cast<cuda_fill>(s->fill)(
        reinterpret_cast<CUdeviceptr>(s->out->dev), s->value, static_cast<size_t>(s->out->elems),
        gpurun_cuda_stream(ctx));

    if (result != CUDA_SUCCESS)
        return gpurun_fail(ctx, GPURUN_DEVICE, NULL, "cuMemsetD32Async: CUDA error %d",
                           static_cast<int>(result));
    return GPURUN_OK;
}

enum gpurun_status bandwidth_launch_cuda(struct gpurun_ctx *ctx)
{
    const struct bandwidth_state *s = bandwidth_state_of(ctx);

    if (bandwidth_options_of(ctx)->kind == BANDWIDTH_WRITE)
        return fill_out(ctx);
    GPURUN_CUDA_TRY(ctx, cudaMemcpyAsync(s->out->dev, s->in->dev, s->out->bytes, cudaMemcpyDefault,
                                         gpurun_cuda_stream(ctx)));
    return GPURUN_OK;
}
