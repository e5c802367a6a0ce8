/*
 * reduce, variant "atomic_block": atomics in shared memory first, then one global atomic per block.
 *
 * Mapping  one thread per element.
 * Memory   reads each element once, coalesced; n / block atomics reach the L2.
 * Bound    the shared word: a block's threads change it one after the other.
 * Limits   no argmin, argmax; real sums only of float, in double, and in any order.
 */
#include "reduce_atomic.cuh"

template <typename OP>
static __global__ void __launch_bounds__(1024)
    reduce_atomic_block_kernel(struct reduce_job job, typename OP::ACC *word)
{
    __shared__ typename OP::ACC shared;
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;

    if (threadIdx.x == 0)
        shared = OP::none();
    __syncthreads();
    if (i < job.n)
        reduce_atomic_join<OP>(
            &shared, OP::take(static_cast<const typename OP::IN *>(job.in)[i], i, job.flip));
    __syncthreads();
    if (threadIdx.x == 0)
        reduce_atomic_join<OP>(word, shared);
}

template <typename OP> static enum gpurun_status atomic_block_run(struct gpurun_ctx *ctx)
{
    return reduce_atomic_run<OP>(ctx, reduce_atomic_block_kernel<OP>);
}

enum gpurun_status reduce_atomic_block_supported(struct gpurun_ctx *ctx)
{
    return reduce_atomic_check(ctx);
}

size_t reduce_atomic_block_scratch(struct gpurun_ctx *)
{
    return sizeof(uint64_t);
}

enum gpurun_status reduce_launch_atomic_block(struct gpurun_ctx *ctx)
{
    return REDUCE_ATOMIC_DISPATCH(reduce_state_of(ctx)->kind, atomic_block_run, ctx);
}
