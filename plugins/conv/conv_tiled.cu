/*
 * conv, variant "tiled": a tile and its surroundings in shared memory.
 *
 * Mapping  a block takes 128 elements of 16 rows; each of 256 threads sums 8 of them, 2 rows apart.
 * Memory   an element is read once per block: (128 + halo) x (16 + halo) for 2048 results; taps come from
 *          shared memory, where neighbouring lanes read neighbouring elements.
 * Bound    shared memory loads: one per tap.
 * Limits   the mask as in constant; its halo and the tile fit 48 KiB for every mask.
 */
#include "conv_device.cuh"

enum { TILED_BLOCK = 256, TILED_ELEMS = 128, TILED_ROWS = 16 };

/* Elements of a row of the tile with its surroundings. */
static __host__ __device__ __forceinline__ int tiled_stride(const struct conv_job &job)
{
    return TILED_ELEMS + (job.mask_width - 1) * job.channels;
}

/* Brings the tile that starts at (first_e, first_y), which may lie outside; ends with a barrier. */
template <typename ELEM>
static __device__ __forceinline__ void tiled_load(const struct conv_job &job, int32_t first_e,
                                                  int32_t first_y, ELEM *tile)
{
    const int stride = tiled_stride(job), rows = TILED_ROWS + job.mask_height - 1;
    const bool is_inside = first_e >= 0 && first_y >= 0 && first_e + stride <= job.elems &&
                           first_y + rows <= job.height;
    const ELEM *in = static_cast<const ELEM *>(job.in) + first_y * job.in_pitch + first_e;

    for (int i = threadIdx.x / 32; i < rows; i += TILED_BLOCK / 32)
        for (int k = threadIdx.x % 32; k < stride; k += 32)
            tile[i * stride + k] = is_inside ? in[i * job.in_pitch + k]
                                             : conv_fetch<ELEM>(job, first_e + k, first_y + i);
    __syncthreads();
}

template <typename ELEM>
static __global__ void __launch_bounds__(TILED_BLOCK)
    conv_tiled_kernel(const struct conv_job job, const struct conv_weights weights)
{
    extern __shared__ float shared[];
    ELEM *tile = reinterpret_cast<ELEM *>(shared);
    const int32_t begin_e = static_cast<int32_t>(blockIdx.x % job.tiles_x) * TILED_ELEMS;
    const int32_t begin_y = static_cast<int32_t>(blockIdx.x / job.tiles_x) * TILED_ROWS;
    const int lane = threadIdx.x % TILED_ELEMS, stride = tiled_stride(job);

    tiled_load<ELEM>(job, begin_e + job.first_e, begin_y + job.first_y, tile);
    if (begin_e + lane >= job.out_elems)
        return;
    for (int r = threadIdx.x / TILED_ELEMS; r < TILED_ROWS; r += TILED_BLOCK / TILED_ELEMS) {
        typename conv_kind<ELEM>::SUM sum = 0;

        for (int i = 0; i < job.mask_height; i++)
            for (int j = 0; j < job.mask_width; j++)
                sum = conv_kind<ELEM>::add(sum,
                                           conv_kind<ELEM>::weight(weights, i * job.mask_width + j),
                                           tile[(r + i) * stride + lane + j * job.channels]);
        if (begin_y + r < job.out_height)
            conv_store<ELEM>(job, begin_e + lane, begin_y + r, sum);
    }
}

template <typename ELEM> static enum gpurun_status tiled_run(struct gpurun_ctx *ctx)
{
    struct conv_job job = conv_job_of(ctx);
    const int64_t tiles = conv_tiles(&job, TILED_ELEMS, TILED_ROWS);
    const size_t shared_bytes =
        static_cast<size_t>(tiled_stride(job)) * (TILED_ROWS + job.mask_height - 1) * sizeof(ELEM);

    conv_tiled_kernel<ELEM>
        <<<static_cast<unsigned>(tiles), TILED_BLOCK, shared_bytes, gpurun_cuda_stream(ctx)>>>(
            job, conv_weights_of(ctx));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status conv_tiled_supported(struct gpurun_ctx *ctx)
{
    return conv_check_grid(ctx, TILED_ELEMS, TILED_ROWS);
}

enum gpurun_status conv_launch_tiled(struct gpurun_ctx *ctx)
{
    return CONV_DISPATCH(ctx, tiled_run, ctx);
}
