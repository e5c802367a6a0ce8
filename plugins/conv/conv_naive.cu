/*
 * conv, variant "naive": one thread per element, everything from global memory.
 *
 * Mapping  a block takes 64 elements of 4 rows; each thread walks the mask.
 * Memory   per tap a weight and an element, through the caches.
 * Bound    load instructions: two per tap, and where the neighbour lies is worked out for each.
 * Limits   none.
 */
#include "conv_global.cuh"

enum { NAIVE_ELEMS = 64, NAIVE_ROWS = 4 };

template <typename ELEM>
static __global__ void __launch_bounds__(NAIVE_ELEMS *NAIVE_ROWS)
    conv_naive_kernel(const struct conv_job job, const typename conv_kind<ELEM>::SUM *weights)
{
    const int32_t e =
        static_cast<int32_t>(blockIdx.x % job.tiles_x) * NAIVE_ELEMS + threadIdx.x % NAIVE_ELEMS;
    const int32_t y =
        static_cast<int32_t>(blockIdx.x / job.tiles_x) * NAIVE_ROWS + threadIdx.x / NAIVE_ELEMS;
    typename conv_kind<ELEM>::SUM sum = 0;

    if (e >= job.out_elems || y >= job.out_height)
        return;
    for (int i = 0; i < job.mask_height; i++)
        for (int j = 0; j < job.mask_width; j++)
            sum = conv_kind<ELEM>::add(
                sum, weights[i * job.mask_width + j],
                conv_fetch<ELEM>(job, e + job.first_e + j * job.channels, y + job.first_y + i));
    conv_store<ELEM>(job, e, y, sum);
}

template <typename ELEM> static enum gpurun_status naive_run(struct gpurun_ctx *ctx)
{
    struct conv_job job = conv_job_of(ctx);
    const int64_t tiles = conv_tiles(&job, NAIVE_ELEMS, NAIVE_ROWS);

    conv_global_store(ctx, ctx->scratch, false);
    conv_naive_kernel<ELEM>
        <<<static_cast<unsigned>(tiles), NAIVE_ELEMS * NAIVE_ROWS, 0, gpurun_cuda_stream(ctx)>>>(
            job, static_cast<const typename conv_kind<ELEM>::SUM *>(ctx->scratch));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status conv_naive_supported(struct gpurun_ctx *ctx)
{
    return conv_check_grid(ctx, NAIVE_ELEMS, NAIVE_ROWS);
}

size_t conv_naive_scratch(struct gpurun_ctx *)
{
    return sizeof(struct conv_weights);
}

enum gpurun_status conv_launch_naive(struct gpurun_ctx *ctx)
{
    return CONV_DISPATCH(ctx, naive_run, ctx);
}
