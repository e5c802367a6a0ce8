/*
 * reduce, variant "interleaved": a tree of neighbours in shared memory.
 *
 * Mapping  one thread per element, block elements a block; passes until one result is left.
 * Memory   reads each element once, coalesced; n / block results are written and read again.
 * Bound    instructions: every warp stays busy to the end, ever fewer of its lanes with it.
 * Limits   here for contrast: bank conflicts grow with the stride, and each step needs a division.
 */
#include "reduce_passes.cuh"

template <typename OP, bool FIRST>
static __global__ void __launch_bounds__(1024)
    reduce_interleaved_kernel(struct reduce_job job, struct reduce_pass<typename OP::ACC> pass)
{
    extern __shared__ __align__(16) unsigned char interleaved_shared[];
    typename OP::ACC *shared = reinterpret_cast<typename OP::ACC *>(interleaved_shared);
    const unsigned thread = threadIdx.x;

    shared[thread] = reduce_pass_gather<OP, FIRST, 1>(job, pass);
    __syncthreads();
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        if (thread % (2 * stride) == 0)
            shared[thread] = OP::join(shared[thread], shared[thread + stride]);
        __syncthreads();
    }
    if (thread == 0)
        reduce_pass_store<OP>(job, pass, shared[0]);
}

template <typename OP> static enum gpurun_status interleaved_run(struct gpurun_ctx *ctx)
{
    const int block = static_cast<int>(reduce_options_of(ctx)->block);

    return reduce_passes<OP>(ctx, block, 1, block * sizeof(typename OP::ACC),
                             reduce_interleaved_kernel<OP, true>,
                             reduce_interleaved_kernel<OP, false>);
}

enum gpurun_status reduce_interleaved_supported(struct gpurun_ctx *ctx)
{
    return reduce_check_grid(ctx, reduce_options_of(ctx)->block);
}

size_t reduce_interleaved_scratch(struct gpurun_ctx *ctx)
{
    return reduce_passes_scratch(ctx, reduce_options_of(ctx)->block);
}

enum gpurun_status reduce_launch_interleaved(struct gpurun_ctx *ctx)
{
    return REDUCE_DISPATCH(reduce_state_of(ctx)->kind, interleaved_run, ctx);
}
