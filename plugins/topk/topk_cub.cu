/*
 * topk, variant "cub": the peer, cub::DeviceTopK on values and their indices.
 *
 * Mapping  CUB's; one call per row.
 * Memory   two to four reads of the input; candidates in buffers of n / 128 elements.
 * Bound    memory, until many keys share their upper digits: then atomics and further reads.
 * Limits   any order, any of equal elements, NaN by its bits; needs CCCL 3.2 or newer at build time.
 */
#include "topk_cub.h"
#include "topk_device.cuh"
#include <cub/version.cuh>

#if CUB_VERSION >= 300200 && __has_include(<cub/device/device_topk.cuh>)
#define TOPK_HAS_DEVICE_TOPK 1
#include <cub/device/device_topk.cuh>
#include <cuda/iterator>
#else
#define TOPK_HAS_DEVICE_TOPK 0
#endif

enum { CUB_FILL_BLOCK = 256 };

#if TOPK_HAS_DEVICE_TOPK
static __global__ void __launch_bounds__(CUB_FILL_BLOCK)
    topk_cub_count_kernel(int64_t *count, int64_t rows, int64_t k)
{
    const int64_t row = static_cast<int64_t>(blockIdx.x) * CUB_FILL_BLOCK + threadIdx.x;

    if (row < rows)
        count[row] = k;
}

/* One row; with no `temp`, only says how much it needs. */
template <typename TYPE>
static cudaError_t cub_select(const struct gpurun_ctx *ctx, int64_t row, void *temp,
                              size_t *temp_bytes)
{
    const struct topk_options *o = topk_options_of(ctx);
    const struct topk_rows at = topk_rows_from(ctx, row);
    const TYPE *in = static_cast<const TYPE *>(at.in);
    TYPE *values = static_cast<TYPE *>(at.values);
    const cuda::counting_iterator<int64_t> positions(0);
    const auto how = cuda::std::execution::env{
        cuda::stream_ref{gpurun_cuda_stream(ctx)},
        cuda::execution::require(cuda::execution::determinism::not_guaranteed,
                                 cuda::execution::output_ordering::unsorted)};

    if (o->order == TOPK_SMALLEST)
        return cub::DeviceTopK::MinPairs(temp, *temp_bytes, in, values, positions, at.indices, o->n,
                                         o->k, how);
    return cub::DeviceTopK::MaxPairs(temp, *temp_bytes, in, values, positions, at.indices, o->n,
                                     o->k, how);
}

enum gpurun_status topk_cub_supported(struct gpurun_ctx *ctx)
{
    return topk_options_of(ctx)->distinct ? topk_cub_distinct_supported(ctx) : GPURUN_OK;
}

size_t topk_cub_scratch(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    size_t bytes = 0;

    if (o->distinct)
        return topk_cub_distinct_scratch(ctx);
    if (o->k > 0 && TOPK_CUB_DISPATCH(o, cub_select, ctx, 0, NULL, &bytes) != cudaSuccess)
        return 0;
    return bytes;
}

enum gpurun_status topk_launch_cub(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const unsigned blocks = static_cast<unsigned>((o->rows + CUB_FILL_BLOCK - 1) / CUB_FILL_BLOCK);
    size_t bytes = 0;

    if (o->distinct)
        return topk_launch_cub_distinct(ctx);
    GPURUN_CUDA_TRY(ctx, TOPK_CUB_DISPATCH(o, cub_select, ctx, 0, NULL, &bytes));
    for (int64_t row = 0; row < o->rows; row++)
        GPURUN_CUDA_TRY(ctx, TOPK_CUB_DISPATCH(o, cub_select, ctx, row, ctx->scratch, &bytes));
    topk_cub_count_kernel<<<blocks, CUB_FILL_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(
        topk_rows_from(ctx, 0).count, o->rows, o->k);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}
#else
enum gpurun_status topk_cub_supported(struct gpurun_ctx *ctx)
{
    if (topk_options_of(ctx)->distinct)
        return topk_cub_distinct_supported(ctx);
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL, "needs CCCL 3.2 or newer at build time");
}

size_t topk_cub_scratch(struct gpurun_ctx *ctx)
{
    return topk_cub_distinct_scratch(ctx);
}

enum gpurun_status topk_launch_cub(struct gpurun_ctx *ctx)
{
    return topk_launch_cub_distinct(ctx);
}
#endif
