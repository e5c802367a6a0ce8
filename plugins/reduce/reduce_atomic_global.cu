/*
 * reduce, variant "atomic_global": one atomic on one word in global memory per element.
 *
 * Mapping  one thread per element.
 * Memory   reads each element once, coalesced; every thread then changes the same word in the L2.
 * Bound    that word's rate of atomics; the compiler may join a warp's 32-bit sums into one.
 * Limits   no argmin, argmax; real sums only of float, in double, and in any order.
 */
#include "reduce_atomic.cuh"

template <typename OP>
static __global__ void __launch_bounds__(1024)
    reduce_atomic_global_kernel(struct reduce_job job, typename OP::ACC *word)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;

    if (i < job.n)
        reduce_atomic_join<OP>(
            word, OP::take(static_cast<const typename OP::IN *>(job.in)[i], i, job.flip));
}

template <typename OP> static enum gpurun_status atomic_global_run(struct gpurun_ctx *ctx)
{
    return reduce_atomic_run<OP>(ctx, reduce_atomic_global_kernel<OP>);
}

enum gpurun_status reduce_atomic_global_supported(struct gpurun_ctx *ctx)
{
    return reduce_atomic_check(ctx);
}

size_t reduce_atomic_global_scratch(struct gpurun_ctx *)
{
    return sizeof(uint64_t);
}

enum gpurun_status reduce_launch_atomic_global(struct gpurun_ctx *ctx)
{
    return REDUCE_ATOMIC_DISPATCH(reduce_state_of(ctx)->kind, atomic_global_run, ctx);
}
