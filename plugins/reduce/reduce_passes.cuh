/*
 * For variants that reduce in passes: each launch leaves one result per block, and is launched again on
 * those, until one is left. A launch is the only barrier across blocks that they need.
 */
#ifndef REDUCE_PASSES_CUH
#define REDUCE_PASSES_CUH

#include "reduce_device.cuh"

/* What a pass reads after the first, which reads the input, and where it writes before the last. */
template <typename ACC> struct reduce_pass {
    const ACC *from;
    ACC *to;
    int64_t count;
};

/* A kernel of such a variant. */
template <typename OP>
using reduce_pass_kernel = void (*)(struct reduce_job, struct reduce_pass<typename OP::ACC>);

/* Item i of a pass, or nothing past its end. */
template <typename OP, bool FIRST>
static __device__ __forceinline__ typename OP::ACC
reduce_pass_load(const struct reduce_job &job, const struct reduce_pass<typename OP::ACC> &pass,
                 int64_t i)
{
    if (i >= pass.count)
        return OP::none();
    if constexpr (FIRST)
        return OP::take(static_cast<const typename OP::IN *>(job.in)[i], i, job.flip);
    else
        return pass.from[i];
}

/* ITEMS items that lie a block apart, joined pairwise; all loads are issued before the first is used. */
template <typename OP, bool FIRST, int ITEMS>
static __device__ __forceinline__ typename OP::ACC
reduce_pass_gather(const struct reduce_job &job, const struct reduce_pass<typename OP::ACC> &pass)
{
    const int64_t begin = static_cast<int64_t>(blockIdx.x) * blockDim.x * ITEMS + threadIdx.x;
    typename OP::ACC item[ITEMS];

#pragma unroll
    for (int j = 0; j < ITEMS; j++)
        item[j] =
            reduce_pass_load<OP, FIRST>(job, pass, begin + j * static_cast<int64_t>(blockDim.x));
#pragma unroll
    for (int half = ITEMS / 2; half > 0; half /= 2)
#pragma unroll
        for (int j = 0; j < half; j++)
            item[j] = OP::join(item[j], item[j + half]);
    return item[0];
}

/* Thread 0 only. */
template <typename OP>
static __device__ __forceinline__ void
reduce_pass_store(const struct reduce_job &job, const struct reduce_pass<typename OP::ACC> &pass,
                  typename OP::ACC total)
{
    if (gridDim.x == 1)
        OP::write(job, total);
    else
        pass.to[blockIdx.x] = total;
}

/* Room for the results of all passes but the last. */
static inline size_t reduce_passes_scratch(const struct gpurun_ctx *ctx, int64_t tile)
{
    size_t blocks = 0;

    for (int64_t count = reduce_options_of(ctx)->n; count > tile;) {
        count = (count + tile - 1) / tile;
        blocks += static_cast<size_t>(count);
    }
    return blocks * reduce_acc_bytes(ctx);
}

/* `items` of each thread make a tile; `shared` bytes of shared memory per block. */
template <typename OP>
static enum gpurun_status reduce_passes(struct gpurun_ctx *ctx, int block, int items, size_t shared,
                                        reduce_pass_kernel<OP> first, reduce_pass_kernel<OP> later)
{
    typedef typename OP::ACC ACC;
    const struct reduce_job job = reduce_job_of(ctx);
    const int64_t tile = static_cast<int64_t>(block) * items;
    struct reduce_pass<ACC> pass = {
        NULL, static_cast<ACC *>(ctx->scratch), job.n
    };

    for (reduce_pass_kernel<OP> kernel = first; kernel == first || pass.count > 1; kernel = later) {
        const int64_t blocks = (pass.count + tile - 1) / tile;

        kernel<<<static_cast<unsigned>(blocks), block, shared, gpurun_cuda_stream(ctx)>>>(job,
                                                                                          pass);
        pass.from = pass.to;
        pass.to += blocks;
        pass.count = blocks;
    }
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

#endif
