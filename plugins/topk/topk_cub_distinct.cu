/*
 * topk, variant "cub" with distinct = yes: sorts everything and drops repeats.
 *
 * Mapping  cub::DeviceRadixSort of (value, index), then cub::DeviceSelect::UniqueByKey; a row at a time.
 * Memory   17 passes over the pairs of 8 bytes, 33 over those of 12, and 3 more to drop repeats.
 * Bound    CUB's sort.
 * Limits   n below 2^32; NaN by its bits. The sort is stable, so the first of equal values is the lowest.
 */
#include "topk_cub.h"
#include "topk_device.cuh"
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

enum { CUB_DISTINCT_BLOCK = 256 };

/* The same value: equal, which joins the zeros, or the same NaN. A functor, as CUB asks for one. */
struct cub_same {
    template <typename TYPE> __device__ bool operator()(TYPE a, TYPE b) const
    {
        return a == b || (a != a && b != b && bits_of(a) == bits_of(b));
    }
    static __device__ int bits_of(float x)
    {
        return __float_as_int(x);
    }
    static __device__ long long bits_of(double x)
    {
        return __double_as_longlong(x);
    }
    template <typename TYPE> static __device__ TYPE bits_of(TYPE x)
    {
        return x;
    }
};

struct cub_scratch {
    uint32_t *positions, *sorted_positions, *unique_positions; /* n each */
    void *sorted, *unique;                                     /* n elements each */
    uint32_t *unique_count;
    void *temp;
    size_t temp_bytes; /* what the hungrier of the two calls needs */
    size_t bytes;      /* all of the above */
};

static __global__ void __launch_bounds__(CUB_DISTINCT_BLOCK)
    topk_cub_positions_kernel(uint32_t *positions, int64_t n)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * CUB_DISTINCT_BLOCK + threadIdx.x;

    if (i < n)
        positions[i] = static_cast<uint32_t>(i);
}

/* Takes the answer from the right end of the values, which rise. */
template <typename TYPE>
static __global__ void __launch_bounds__(CUB_DISTINCT_BLOCK)
    topk_cub_take_kernel(struct topk_rows row, const uint32_t *positions,
                         const uint32_t *positions_count, bool smallest)
{
    const int64_t slot = static_cast<int64_t>(blockIdx.x) * CUB_DISTINCT_BLOCK + threadIdx.x;
    const int64_t unique = *positions_count, count = unique < row.k ? unique : row.k;

    if (slot < count)
        topk_write<TYPE>(row, 0, slot, positions[smallest ? slot : unique - 1 - slot]);
    if (slot == 0)
        *row.count = count;
}

/* Sorts; with no `temp`, only says how much it needs. */
template <typename TYPE>
static cudaError_t cub_sort(const struct gpurun_ctx *ctx, const struct cub_scratch *s,
                            const void *in, size_t *temp_bytes)
{
    return cub::DeviceRadixSort::SortPairs(
        s->temp, *temp_bytes, static_cast<const TYPE *>(in), static_cast<TYPE *>(s->sorted),
        s->positions, s->sorted_positions, static_cast<uint32_t>(topk_options_of(ctx)->n), 0,
        static_cast<int>(8 * sizeof(TYPE)), gpurun_cuda_stream(ctx));
}

/* Drops repeats; likewise. */
template <typename TYPE>
static cudaError_t cub_unite(const struct gpurun_ctx *ctx, const struct cub_scratch *s,
                             size_t *temp_bytes)
{
    return cub::DeviceSelect::UniqueByKey(
        s->temp, *temp_bytes, static_cast<const TYPE *>(s->sorted),
        static_cast<const uint32_t *>(s->sorted_positions), static_cast<TYPE *>(s->unique),
        s->unique_positions, s->unique_count, static_cast<uint32_t>(topk_options_of(ctx)->n),
        cub_same{}, gpurun_cuda_stream(ctx));
}

/* Divides the scratch memory, wherever it is, and finds its size. */
template <typename TYPE>
static cudaError_t cub_plan(const struct gpurun_ctx *ctx, struct cub_scratch *s)
{
    const size_t n = static_cast<size_t>(topk_options_of(ctx)->n);
    char *scratch = static_cast<char *>(ctx->scratch), *const begin = scratch;
    size_t sort_bytes = 0, unite_bytes = 0;
    cudaError_t error;

    s->positions = static_cast<uint32_t *>(topk_carve(&scratch, n * sizeof(uint32_t)));
    s->sorted_positions = static_cast<uint32_t *>(topk_carve(&scratch, n * sizeof(uint32_t)));
    s->unique_positions = static_cast<uint32_t *>(topk_carve(&scratch, n * sizeof(uint32_t)));
    s->sorted = topk_carve(&scratch, n * sizeof(TYPE));
    s->unique = topk_carve(&scratch, n * sizeof(TYPE));
    s->unique_count = static_cast<uint32_t *>(topk_carve(&scratch, sizeof(uint32_t)));
    s->temp = NULL;
    error = cub_sort<TYPE>(ctx, s, NULL, &sort_bytes);
    if (error == cudaSuccess)
        error = cub_unite<TYPE>(ctx, s, &unite_bytes);
    s->temp_bytes = sort_bytes > unite_bytes ? sort_bytes : unite_bytes;
    s->temp = topk_carve(&scratch, s->temp_bytes);
    s->bytes = static_cast<size_t>(scratch - begin);
    return error;
}

template <typename TYPE> static enum gpurun_status cub_run(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const unsigned all_blocks =
        static_cast<unsigned>((o->n + CUB_DISTINCT_BLOCK - 1) / CUB_DISTINCT_BLOCK);
    const unsigned k_blocks =
        static_cast<unsigned>((o->k + CUB_DISTINCT_BLOCK - 1) / CUB_DISTINCT_BLOCK);
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    struct cub_scratch s;

    GPURUN_CUDA_TRY(ctx, cub_plan<TYPE>(ctx, &s));
    topk_cub_positions_kernel<<<all_blocks, CUB_DISTINCT_BLOCK, 0, stream>>>(s.positions, o->n);
    for (int64_t i = 0; i < o->rows; i++) {
        const struct topk_rows row = topk_rows_from(ctx, i);

        GPURUN_CUDA_TRY(ctx, cub_sort<TYPE>(ctx, &s, row.in, &s.temp_bytes));
        GPURUN_CUDA_TRY(ctx, cub_unite<TYPE>(ctx, &s, &s.temp_bytes));
        topk_cub_take_kernel<TYPE><<<k_blocks, CUB_DISTINCT_BLOCK, 0, stream>>>(
            row, s.unique_positions, s.unique_count, o->order == TOPK_SMALLEST);
    }
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status topk_cub_distinct_supported(struct gpurun_ctx *ctx)
{
    const int64_t n = topk_options_of(ctx)->n;

    if (n <= UINT32_MAX)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "n",
                       "distinct sorts with indices of 32 bits: n = %lld is not below 2^32",
                       static_cast<long long>(n));
}

size_t topk_cub_distinct_scratch(struct gpurun_ctx *ctx)
{
    struct cub_scratch s;

    if (topk_options_of(ctx)->n == 0)
        return 0;
    return TOPK_CUB_DISPATCH(topk_options_of(ctx), cub_plan, ctx, &s) == cudaSuccess ? s.bytes : 0;
}

enum gpurun_status topk_launch_cub_distinct(struct gpurun_ctx *ctx)
{
    return TOPK_CUB_DISPATCH(topk_options_of(ctx), cub_run, ctx);
}
