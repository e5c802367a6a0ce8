/*
 * sort, variant "cub": the peer, cub::DeviceRadixSort; here keys of four bytes.
 *
 * Mapping  CUB's: one kernel for all histograms, then a single pass per digit of eight bits.
 * Memory   36 bytes a key of four bytes, 136 of eight; every digit is processed, whatever the keys.
 * Bound    latency: eight votes a key.
 * Limits   NaN by its bits. Compiled for keys ascending (uint32 and float: descending too) and 32-bit pairs.
 */
#include "sort_cub.h"
#include <cub/device/device_radix_sort.cuh>

template <typename KEY>
static cudaError_t ascending(const struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    return cub::DeviceRadixSort::SortKeys(
        temp, *temp_bytes, sort_cub_in<KEY>(ctx), sort_cub_out<KEY>(ctx), sort_options_of(ctx)->n,
        0, static_cast<int>(8 * sizeof(KEY)), gpurun_cuda_stream(ctx));
}

template <typename KEY>
static cudaError_t descending(const struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    return cub::DeviceRadixSort::SortKeysDescending(
        temp, *temp_bytes, sort_cub_in<KEY>(ctx), sort_cub_out<KEY>(ctx), sort_options_of(ctx)->n,
        0, static_cast<int>(8 * sizeof(KEY)), gpurun_cuda_stream(ctx));
}

cudaError_t sort_cub_keys_32(const struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    const struct sort_options *o = sort_options_of(ctx);

    if (o->order == SORT_DESCENDING)
        return o->dtype == GPURUN_FLOAT ? descending<float>(ctx, temp, temp_bytes)
                                        : descending<uint32_t>(ctx, temp, temp_bytes);
    if (o->dtype == GPURUN_INT32)
        return ascending<int32_t>(ctx, temp, temp_bytes);
    return o->dtype == GPURUN_FLOAT ? ascending<float>(ctx, temp, temp_bytes)
                                    : ascending<uint32_t>(ctx, temp, temp_bytes);
}

static cudaError_t call(const struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    if (sort_options_of(ctx)->values != SORT_VALUES_NONE)
        return sort_cub_pairs(ctx, temp, temp_bytes);
    return sort_state_of(ctx)->elem_bytes == 4 ? sort_cub_keys_32(ctx, temp, temp_bytes)
                                               : sort_cub_keys_64(ctx, temp, temp_bytes);
}

enum gpurun_status sort_cub_supported(struct gpurun_ctx *ctx)
{
    const struct sort_options *o = sort_options_of(ctx);
    const bool is_pairs = o->values != SORT_VALUES_NONE;

    GPURUN_TRY(sort_whole_supported(ctx));
    if (o->order == SORT_DESCENDING &&
        (is_pairs || (o->dtype != GPURUN_UINT32 && o->dtype != GPURUN_FLOAT)))
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "order",
                           "CUB is compiled to descend for keys of uint32 and float only");
    if (is_pairs && (o->values != SORT_VALUES_UINT32 ||
                     (o->dtype != GPURUN_UINT32 && o->dtype != GPURUN_UINT64)))
        return gpurun_fail(
            ctx, GPURUN_UNSUPPORTED, "values",
            "CUB is compiled for pairs of uint32 or uint64 with values of uint32 only");
    if (is_pairs && o->n > INT32_MAX)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "n",
                           "CUB is compiled for fewer than 2^31 pairs only");
    return GPURUN_OK;
}

size_t sort_cub_scratch(struct gpurun_ctx *ctx)
{
    size_t bytes = 0;

    return call(ctx, NULL, &bytes) == cudaSuccess ? bytes : 0;
}

enum gpurun_status sort_launch_cub(struct gpurun_ctx *ctx)
{
    size_t bytes = 0;

    GPURUN_CUDA_TRY(ctx, call(ctx, NULL, &bytes));
    GPURUN_CUDA_TRY(ctx, call(ctx, ctx->scratch, &bytes));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}
