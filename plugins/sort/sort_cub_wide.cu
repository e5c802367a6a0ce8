/*
 * sort, variant "cub": the peer, cub::DeviceRadixSort; here keys of eight bytes, and pairs.
 *
 * Mapping  as in sort_cub.cu.
 * Memory   136 bytes a key of eight bytes; 68 a pair of four and four, 200 of eight and four.
 * Bound    latency: eight votes a key.
 * Limits   as in sort_cub.cu.
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
static cudaError_t pairs(const struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    const struct sort_state *s = sort_state_of(ctx);

    return cub::DeviceRadixSort::SortPairs(
        temp, *temp_bytes, sort_cub_in<KEY>(ctx), sort_cub_out<KEY>(ctx),
        static_cast<const uint32_t *>(s->values->dev),
        static_cast<uint32_t *>(s->sorted_values->dev), static_cast<int>(sort_options_of(ctx)->n),
        0, static_cast<int>(8 * sizeof(KEY)), gpurun_cuda_stream(ctx));
}

cudaError_t sort_cub_keys_64(const struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    const struct sort_options *o = sort_options_of(ctx);

    if (o->dtype == GPURUN_INT64)
        return ascending<int64_t>(ctx, temp, temp_bytes);
    return o->dtype == GPURUN_DOUBLE ? ascending<double>(ctx, temp, temp_bytes)
                                     : ascending<uint64_t>(ctx, temp, temp_bytes);
}

cudaError_t sort_cub_pairs(const struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    return sort_state_of(ctx)->elem_bytes == 4 ? pairs<uint32_t>(ctx, temp, temp_bytes)
                                               : pairs<uint64_t>(ctx, temp, temp_bytes);
}
