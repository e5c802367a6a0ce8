/*
 * conv, variant "constant": the mask in constant memory.
 *
 * Mapping  as naive: a block takes 64 elements of 4 rows.
 * Memory   the mask is a kernel parameter: such parameters lie in constant memory, and all lanes read the same
 *          weight at once, as an operand of the multiplication. So jobs never share, or wait for, one symbol.
 * Bound    load instructions: one per tap, and where the neighbour lies; the image's inside needs no such thought.
 * Limits   the mask has 31 x 31 taps at most: a parameter block holds 4 KiB.
 */
#include "conv_device.cuh"

enum { CONSTANT_ELEMS = 64, CONSTANT_ROWS = 4 };

static_assert(sizeof(struct conv_job) + sizeof(struct conv_weights) <= 4096,
              "kernel parameters fit 4 KiB");

/* The sum where the whole neighbourhood lies inside; `first` is its first element. */
template <typename ELEM>
static __device__ __forceinline__ typename conv_kind<ELEM>::SUM
constant_inside(const struct conv_job &job, const struct conv_weights &weights, const ELEM *first)
{
    typename conv_kind<ELEM>::SUM sum = 0;

    for (int i = 0; i < job.mask_height; i++, first += job.in_pitch)
        for (int j = 0; j < job.mask_width; j++)
            sum =
                conv_kind<ELEM>::add(sum, conv_kind<ELEM>::weight(weights, i * job.mask_width + j),
                                     first[j * job.channels]);
    return sum;
}

template <typename ELEM>
static __device__ __forceinline__ typename conv_kind<ELEM>::SUM
constant_edge(const struct conv_job &job, const struct conv_weights &weights, int32_t e, int32_t y)
{
    typename conv_kind<ELEM>::SUM sum = 0;

    for (int i = 0; i < job.mask_height; i++)
        for (int j = 0; j < job.mask_width; j++)
            sum =
                conv_kind<ELEM>::add(sum, conv_kind<ELEM>::weight(weights, i * job.mask_width + j),
                                     conv_fetch<ELEM>(job, e + j * job.channels, y + i));
    return sum;
}

template <typename ELEM>
static __global__ void __launch_bounds__(CONSTANT_ELEMS *CONSTANT_ROWS)
    conv_constant_kernel(const struct conv_job job, const struct conv_weights weights)
{
    const int32_t e = static_cast<int32_t>(blockIdx.x % job.tiles_x) * CONSTANT_ELEMS +
                      threadIdx.x % CONSTANT_ELEMS;
    const int32_t y = static_cast<int32_t>(blockIdx.x / job.tiles_x) * CONSTANT_ROWS +
                      threadIdx.x / CONSTANT_ELEMS;
    const int32_t first_e = e + job.first_e, first_y = y + job.first_y;
    const bool is_inside = first_e >= 0 && first_y >= 0 &&
                           first_e + (job.mask_width - 1) * job.channels < job.elems &&
                           first_y + job.mask_height <= job.height;

    if (e >= job.out_elems || y >= job.out_height)
        return;
    conv_store<ELEM>(job, e, y,
                     is_inside ? constant_inside<ELEM>(job, weights,
                                                       static_cast<const ELEM *>(job.in) +
                                                           first_y * job.in_pitch + first_e)
                               : constant_edge<ELEM>(job, weights, first_e, first_y));
}

template <typename ELEM> static enum gpurun_status constant_run(struct gpurun_ctx *ctx)
{
    struct conv_job job = conv_job_of(ctx);
    const int64_t tiles = conv_tiles(&job, CONSTANT_ELEMS, CONSTANT_ROWS);

    conv_constant_kernel<ELEM><<<static_cast<unsigned>(tiles), CONSTANT_ELEMS * CONSTANT_ROWS, 0,
                                 gpurun_cuda_stream(ctx)>>>(job, conv_weights_of(ctx));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status conv_constant_supported(struct gpurun_ctx *ctx)
{
    return conv_check_grid(ctx, CONSTANT_ELEMS, CONSTANT_ROWS);
}

enum gpurun_status conv_launch_constant(struct gpurun_ctx *ctx)
{
    return CONV_DISPATCH(ctx, constant_run, ctx);
}
