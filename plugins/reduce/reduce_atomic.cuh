/*
 * What the two atomic variants share: which kinds one atomic can do, and what surrounds their kernels. Sums
 * of floats go into a double, as a chain of additions as long as the input would not keep the bound.
 */
#ifndef REDUCE_ATOMIC_CUH
#define REDUCE_ATOMIC_CUH

#include "reduce_device.cuh"

typedef reduce_sum<float, double, true, float> reduce_sum_float_in_double;

/* Calls function<OPERATION>(...) for a kind that reduce_atomic_check accepts. */
#define REDUCE_ATOMIC_DISPATCH(kind, function, ...)                                                \
    ((kind) == REDUCE_SUM_32            ? function<reduce_sum_32>(__VA_ARGS__)                     \
     : (kind) == REDUCE_SUM_INT32_WIDE  ? function<reduce_sum_int32_wide>(__VA_ARGS__)             \
     : (kind) == REDUCE_SUM_UINT32_WIDE ? function<reduce_sum_uint32_wide>(__VA_ARGS__)            \
     : (kind) == REDUCE_SUM_64          ? function<reduce_sum_64>(__VA_ARGS__)                     \
     : (kind) == REDUCE_SUM_FLOAT       ? function<reduce_sum_float_in_double>(__VA_ARGS__)        \
     : (kind) == REDUCE_BEST_32         ? function<reduce_best_32>(__VA_ARGS__)                    \
     : (kind) == REDUCE_BEST_FLOAT      ? function<reduce_best_float>(__VA_ARGS__)                 \
     : (kind) == REDUCE_BEST_64         ? function<reduce_best_64>(__VA_ARGS__)                    \
                                        : function<reduce_best_double>(__VA_ARGS__))

static __device__ __forceinline__ void reduce_atomic_add(uint32_t *word, uint32_t x)
{
    atomicAdd(word, x);
}

static __device__ __forceinline__ void reduce_atomic_add(uint64_t *word, uint64_t x)
{
    atomicAdd(reinterpret_cast<unsigned long long *>(word), static_cast<unsigned long long>(x));
}

static __device__ __forceinline__ void reduce_atomic_add(double *word, double x)
{
    atomicAdd(word, x);
}

static __device__ __forceinline__ void reduce_atomic_max(uint32_t *word, uint32_t x)
{
    atomicMax(word, x);
}

static __device__ __forceinline__ void reduce_atomic_max(uint64_t *word, uint64_t x)
{
    atomicMax(reinterpret_cast<unsigned long long *>(word), static_cast<unsigned long long>(x));
}

template <typename OP>
static __device__ __forceinline__ void reduce_atomic_join(typename OP::ACC *word,
                                                          typename OP::ACC x)
{
    if constexpr (OP::SUM)
        reduce_atomic_add(word, x);
    else
        reduce_atomic_max(word, x);
}

/* One thread. */
template <typename OP>
static __global__ void reduce_atomic_write_kernel(struct reduce_job job,
                                                  const typename OP::ACC *word)
{
    OP::write(job, *word);
}

static inline enum gpurun_status reduce_atomic_check(struct gpurun_ctx *ctx)
{
    const struct reduce_options *o = reduce_options_of(ctx);
    const enum reduce_kind kind = reduce_state_of(ctx)->kind;

    if (reduce_is_place(kind))
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "op",
                           "an element and its index are more than one atomic can change");
    if (kind == REDUCE_SUM_FLOAT_WIDE || kind == REDUCE_SUM_DOUBLE)
        return gpurun_fail(
            ctx, GPURUN_UNSUPPORTED, "op",
            "a chain of additions as long as the input does not keep the error bound, "
            "and atomics add in nothing wider than double");
    if (kind == REDUCE_SUM_FLOAT && o->deterministic)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "deterministic",
                           "atomics add reals in any order: only with deterministic = no");
    return reduce_check_grid(ctx, o->block);
}

/* One thread per element, one word for all: 0 is nothing to sums and to the largest key alike. */
template <typename OP>
static enum gpurun_status reduce_atomic_run(struct gpurun_ctx *ctx,
                                            void (*kernel)(struct reduce_job, typename OP::ACC *))
{
    const struct reduce_options *o = reduce_options_of(ctx);
    const struct reduce_job job = reduce_job_of(ctx);
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    typename OP::ACC *word = static_cast<typename OP::ACC *>(ctx->scratch);

    GPURUN_CUDA_TRY(ctx, cudaMemsetAsync(word, 0, sizeof(*word), stream));
    kernel<<<static_cast<unsigned>((o->n + o->block - 1) / o->block),
             static_cast<unsigned>(o->block), 0, stream>>>(job, word);
    reduce_atomic_write_kernel<OP><<<1, 1, 0, stream>>>(job, word);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

#endif
