/*
 * reduce, variant "halving": a tree in shared memory whose upper half is added to its lower half.
 *
 * Mapping  one thread per element, block elements a block; passes until one result is left.
 * Memory   reads each element once, coalesced; shared memory without bank conflicts.
 * Bound    barriers and idle threads: half of them stop after the first step.
 * Limits   one 4- or 8-byte load in flight per thread.
 */
#include "reduce_passes.cuh"

template <typename OP, bool FIRST>
static __global__ void __launch_bounds__(1024)
    reduce_halving_kernel(struct reduce_job job, struct reduce_pass<typename OP::ACC> pass)
{
    extern __shared__ __align__(16) unsigned char halving_shared[];
    typename OP::ACC *shared = reinterpret_cast<typename OP::ACC *>(halving_shared);
    const unsigned thread = threadIdx.x;

    shared[thread] = reduce_pass_gather<OP, FIRST, 1>(job, pass);
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half)
            shared[thread] = OP::join(shared[thread], shared[thread + half]);
        __syncthreads();
    }
    if (thread == 0)
        reduce_pass_store<OP>(job, pass, shared[0]);
}

template <typename OP> static enum gpurun_status halving_run(struct gpurun_ctx *ctx)
{
    const int block = static_cast<int>(reduce_options_of(ctx)->block);

    return reduce_passes<OP>(ctx, block, 1, block * sizeof(typename OP::ACC),
                             reduce_halving_kernel<OP, true>, reduce_halving_kernel<OP, false>);
}

enum gpurun_status reduce_halving_supported(struct gpurun_ctx *ctx)
{
    return reduce_check_grid(ctx, reduce_options_of(ctx)->block);
}

size_t reduce_halving_scratch(struct gpurun_ctx *ctx)
{
    return reduce_passes_scratch(ctx, reduce_options_of(ctx)->block);
}

enum gpurun_status reduce_launch_halving(struct gpurun_ctx *ctx)
{
    return REDUCE_DISPATCH(reduce_state_of(ctx)->kind, halving_run, ctx);
}
