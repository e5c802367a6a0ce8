/*
 * reduce, variant "cub", extremes: cub::DeviceReduce for min, max, argmin and argmax.
 *
 * Mapping  CUB's; for places one more launch, which takes the element that was found.
 * Memory   reads each element once; places 4 or 8 bytes at a time, as they have indices.
 * Bound    memory; at small n two or three launches.
 * Limits   CUB's own Min and Max drop NaN, and its ArgMin orders it by chance: reals, and all places, go
 *          through Reduce with an operator that keeps to the plugin's order.
 */
#include "reduce_cub.h"
#include "reduce_device.cuh"
#include <cub/device/device_reduce.cuh>
#include <limits>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

/* The better of two reals, NaN being better than anything. Functors, as CUB asks for them. */
template <typename REAL> struct cub_better {
    bool least;

    __host__ __device__ REAL operator()(REAL a, REAL b) const
    {
        if (a != a)
            return a;
        return b != b || (least ? b < a : b > a) ? b : a;
    }
};

/* Element `index` as a place. */
template <typename OP> struct cub_place {
    const typename OP::IN *in;
    uint64_t flip;

    __device__ typename OP::ACC operator()(int64_t index) const
    {
        return OP::take(in[index], index, flip);
    }
};

template <typename OP> struct cub_join_places {
    __device__ typename OP::ACC operator()(typename OP::ACC a, typename OP::ACC b) const
    {
        return OP::join(a, b);
    }
};

/* Each of these enqueues a reduction; with no `temp` it only says how much it needs. */
template <typename IN>
static cudaError_t cub_best(struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    const struct reduce_job job = reduce_job_of(ctx);
    const IN *in = static_cast<const IN *>(job.in);
    IN *value = static_cast<IN *>(job.value);

    if (reduce_options_of(ctx)->op == REDUCE_MIN)
        return cub::DeviceReduce::Min(temp, *temp_bytes, in, value, job.n, gpurun_cuda_stream(ctx));
    return cub::DeviceReduce::Max(temp, *temp_bytes, in, value, job.n, gpurun_cuda_stream(ctx));
}

template <typename REAL>
static cudaError_t cub_best_real(struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    const struct reduce_job job = reduce_job_of(ctx);
    const bool least = reduce_options_of(ctx)->op == REDUCE_MIN;
    const REAL infinity = std::numeric_limits<REAL>::infinity();

    return cub::DeviceReduce::Reduce(temp, *temp_bytes, static_cast<const REAL *>(job.in),
                                     static_cast<REAL *>(job.value), job.n, cub_better<REAL>{least},
                                     least ? infinity : -infinity, gpurun_cuda_stream(ctx));
}

/* Leaves the place before `temp`, in the scratch memory. */
template <typename OP>
static cudaError_t cub_place_of(struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    const struct reduce_job job = reduce_job_of(ctx);
    const cub_place<OP> take = {static_cast<const typename OP::IN *>(job.in), job.flip};
    const typename OP::ACC none = {0, INT64_MAX};

    return cub::DeviceReduce::Reduce(
        temp, *temp_bytes,
        thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), take),
        static_cast<typename OP::ACC *>(ctx->scratch), job.n, cub_join_places<OP>{}, none,
        gpurun_cuda_stream(ctx));
}

template <typename OP>
static __global__ void reduce_cub_write_kernel(struct reduce_job job, const typename OP::ACC *place)
{
    OP::write(job, *place);
}

cudaError_t reduce_cub_extreme(struct gpurun_ctx *ctx, void *temp, size_t *temp_bytes)
{
    const int64_t dtype = reduce_options_of(ctx)->dtype;

    switch (reduce_state_of(ctx)->kind) {
    case REDUCE_BEST_32:
        return dtype == GPURUN_INT32 ? cub_best<int32_t>(ctx, temp, temp_bytes)
                                     : cub_best<uint32_t>(ctx, temp, temp_bytes);
    case REDUCE_BEST_FLOAT:
        return cub_best_real<float>(ctx, temp, temp_bytes);
    case REDUCE_BEST_64:
        return dtype == GPURUN_INT64 ? cub_best<int64_t>(ctx, temp, temp_bytes)
                                     : cub_best<uint64_t>(ctx, temp, temp_bytes);
    case REDUCE_BEST_DOUBLE:
        return cub_best_real<double>(ctx, temp, temp_bytes);
    case REDUCE_PLACE_32:
        return cub_place_of<reduce_place_32>(ctx, temp, temp_bytes);
    case REDUCE_PLACE_FLOAT:
        return cub_place_of<reduce_place_float>(ctx, temp, temp_bytes);
    case REDUCE_PLACE_64:
        return cub_place_of<reduce_place_64>(ctx, temp, temp_bytes);
    default:
        return cub_place_of<reduce_place_double>(ctx, temp, temp_bytes);
    }
}

template <typename OP> static enum gpurun_status cub_write(struct gpurun_ctx *ctx)
{
    reduce_cub_write_kernel<OP><<<1, 1, 0, gpurun_cuda_stream(ctx)>>>(
        reduce_job_of(ctx), static_cast<const typename OP::ACC *>(ctx->scratch));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status reduce_cub_write(struct gpurun_ctx *ctx)
{
    switch (reduce_state_of(ctx)->kind) {
    case REDUCE_PLACE_32:
        return cub_write<reduce_place_32>(ctx);
    case REDUCE_PLACE_FLOAT:
        return cub_write<reduce_place_float>(ctx);
    case REDUCE_PLACE_64:
        return cub_write<reduce_place_64>(ctx);
    case REDUCE_PLACE_DOUBLE:
        return cub_write<reduce_place_double>(ctx);
    default:
        return GPURUN_OK;
    }
}
