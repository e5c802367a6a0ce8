/*
 * reduce, variant "chunked": each thread walks a contiguous piece of the input.
 *
 * Mapping  2048 threads per SM, n / threads elements each; a tree per block; the last block joins the blocks.
 * Memory   a warp's load touches 32 places: each sector is fetched, and is used again only while it is cached.
 * Bound    L1 and L2 sectors in flight; the grid-stride way of dividing the loop is what vector does.
 * Limits   here for contrast. Chains are as long as a piece, so real sums are compensated.
 */
#include "reduce_finish.cuh"

enum { CHUNKED_SM_THREADS = 2048 };

template <typename OP>
static __global__ void __launch_bounds__(1024)
    reduce_chunked_kernel(struct reduce_job job, int64_t chunk, void *state)
{
    const unsigned claim = reduce_claim(state);
    const int64_t begin = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * chunk;
    const int64_t end = begin + chunk < job.n ? begin + chunk : job.n;
    const typename OP::IN *in = static_cast<const typename OP::IN *>(job.in);
    struct reduce_long<OP> run = {
        OP::none(), OP::none()
    };

    for (int64_t i = begin; i < end; i++)
        reduce_long_add(&run, OP::take(in[i], i, job.flip));
    reduce_finish<OP>(job, reduce_long_end(&run), claim, state);
}

struct chunked_plan {
    int64_t chunk; /* elements per thread */
    unsigned blocks;
};

static struct chunked_plan chunked_plan_for(const struct gpurun_ctx *ctx)
{
    const struct reduce_options *o = reduce_options_of(ctx);
    const int64_t threads = static_cast<int64_t>(ctx->device.sm_count) * CHUNKED_SM_THREADS;
    struct chunked_plan plan;

    plan.chunk = (o->n + threads - 1) / threads;
    plan.blocks =
        static_cast<unsigned>((o->n + plan.chunk * o->block - 1) / (plan.chunk * o->block));
    return plan;
}

template <typename OP> static enum gpurun_status chunked_run(struct gpurun_ctx *ctx)
{
    const struct chunked_plan plan = chunked_plan_for(ctx);

    reduce_chunked_kernel<OP>
        <<<plan.blocks, static_cast<unsigned>(reduce_options_of(ctx)->block), 0,
           gpurun_cuda_stream(ctx)>>>(reduce_job_of(ctx), plan.chunk, ctx->variant_state);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

size_t reduce_chunked_state(struct gpurun_ctx *ctx)
{
    if (reduce_options_of(ctx)->n == 0)
        return 0;
    return reduce_finish_state(ctx, chunked_plan_for(ctx).blocks);
}

enum gpurun_status reduce_launch_chunked(struct gpurun_ctx *ctx)
{
    return REDUCE_DISPATCH(reduce_state_of(ctx)->kind, chunked_run, ctx);
}
