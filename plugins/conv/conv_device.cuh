/*
 * What the kernels of conv share: a run's images and mask as kernels are given them, elements beyond the edges,
 * and the end of every sum. A row is taken as elements: a tap's neighbour in x is `channels` elements away.
 */
#ifndef CONV_DEVICE_CUH
#define CONV_DEVICE_CUH

#include "conv.h"
#include "gpurun/cuda.h"

/* A mask as a kernel parameter, which lies in constant memory. */
struct conv_weights {
    union {
        int32_t whole[CONV_TAPS_MAX];
        float real[CONV_TAPS_MAX];
    } value;
};

struct conv_job {
    const void *in;
    void *out;
    int64_t in_pitch, out_pitch; /* elements */
    struct conv_tail tail;
    float scale, bias, fill;
    int border; /* enum conv_border */
    int32_t width, height, channels;
    int32_t elems, out_elems, out_height; /* elems: of a row */
    int32_t mask_width, mask_height;
    int32_t first_e, first_y; /* where the mask of element 0 of row 0 starts */
    unsigned tiles_x;         /* tiles in a row of tiles, of kernels that have tiles */
};

/* What depends on the element: byte or float. */
template <typename ELEM> struct conv_kind;

template <> struct conv_kind<uint8_t> {
    typedef int32_t SUM;

    static __device__ __forceinline__ SUM weight(const struct conv_weights &weights, int i)
    {
        return weights.value.whole[i];
    }
    static __device__ __forceinline__ SUM add(SUM sum, SUM weight, uint8_t elem)
    {
        return sum + weight * static_cast<SUM>(elem);
    }
    static __device__ __forceinline__ uint8_t finish(const struct conv_job &job, SUM sum)
    {
        return conv_saturate(conv_tail_apply(sum, &job.tail));
    }
};

template <> struct conv_kind<float> {
    typedef float SUM;

    static __device__ __forceinline__ SUM weight(const struct conv_weights &weights, int i)
    {
        return weights.value.real[i];
    }
    static __device__ __forceinline__ SUM add(SUM sum, SUM weight, float elem)
    {
        return fmaf(weight, elem, sum);
    }
    static __device__ __forceinline__ float finish(const struct conv_job &job, SUM sum)
    {
        return fmaf(job.scale, sum, job.bias);
    }
};

/* Which element of a row stands at place e, which may lie outside, or -1 for the constant; border as elements of
 * whole pixels. */
static __device__ __forceinline__ int32_t conv_border_elem(const struct conv_job &job, int32_t e)
{
    if (e >= 0 && e < job.elems)
        return e;

    const int32_t pixel = e < 0 ? -((job.channels - 1 - e) / job.channels) : e / job.channels;
    const int32_t from = conv_border_at(pixel, job.width, job.border);

    return from < 0 ? -1 : from * job.channels + (e - pixel * job.channels);
}

/* Element e of row y, either of which may lie outside. */
template <typename ELEM>
static __device__ __forceinline__ ELEM conv_fetch(const struct conv_job &job, int32_t e, int32_t y)
{
    const int32_t row = conv_border_at(y, job.height, job.border);
    const int32_t place = conv_border_elem(job, e);

    if (row < 0 || place < 0)
        return static_cast<ELEM>(job.fill);
    return static_cast<const ELEM *>(job.in)[row * job.in_pitch + place];
}

/* Whether frame leaves this element of the answer out. */
static __device__ __forceinline__ bool conv_is_framed(const struct conv_job &job, int32_t e,
                                                      int32_t y)
{
    const int32_t margin = job.mask_width / 2 * job.channels, radius = job.mask_height / 2;

    return job.border == CONV_FRAME &&
           (e < margin || e >= job.elems - margin || y < radius || y >= job.height - radius);
}

/* The end of a sum. */
template <typename ELEM>
static __device__ __forceinline__ void conv_store(const struct conv_job &job, int32_t e, int32_t y,
                                                  typename conv_kind<ELEM>::SUM sum)
{
    static_cast<ELEM *>(job.out)[y * job.out_pitch + e] =
        conv_is_framed(job, e, y) ? static_cast<ELEM>(job.fill) : conv_kind<ELEM>::finish(job, sum);
}

static inline struct conv_job conv_job_of(const struct gpurun_ctx *ctx)
{
    const struct conv_state *s = conv_state_of(ctx);
    const struct conv_options *o = conv_options_of(ctx);
    const bool is_cropped = s->border == CONV_CROP;
    struct conv_job job = {};

    job.in = s->image->dev;
    job.out = s->filtered->dev;
    job.in_pitch = s->in_pitch;
    job.out_pitch = s->out_pitch;
    job.tail = s->tail;
    job.scale = static_cast<float>(o->scale);
    job.bias = static_cast<float>(o->bias);
    job.fill = static_cast<float>(s->fill);
    job.border = s->border;
    job.width = static_cast<int32_t>(o->width);
    job.height = static_cast<int32_t>(o->height);
    job.channels = static_cast<int32_t>(o->channels);
    job.elems = job.width * job.channels;
    job.out_elems = static_cast<int32_t>(conv_out_elems(ctx));
    job.out_height = static_cast<int32_t>(s->out_height);
    job.mask_width = s->mask.width;
    job.mask_height = s->mask.height;
    job.first_e = is_cropped ? 0 : -(s->mask.width / 2) * job.channels;
    job.first_y = is_cropped ? 0 : -(s->mask.height / 2);
    return job;
}

static inline struct conv_weights conv_weights_of(const struct gpurun_ctx *ctx)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;
    struct conv_weights weights;

    for (int i = 0; i < CONV_TAPS_MAX; i++)
        if (mask->is_real)
            weights.value.real[i] = mask->weight_real[i];
        else
            weights.value.whole[i] = mask->weight[i];
    return weights;
}

/* Tiles of so many elements by so many rows that cover the answer; sets tiles_x. */
static inline int64_t conv_tiles(struct conv_job *job, int tile_elems, int tile_rows)
{
    const int64_t across = (static_cast<int64_t>(job->out_elems) + tile_elems - 1) / tile_elems;

    job->tiles_x = static_cast<unsigned>(across);
    return across * ((static_cast<int64_t>(job->out_height) + tile_rows - 1) / tile_rows);
}

/* One block per tile must fit the one dimension of a grid. */
static inline enum gpurun_status conv_check_grid(struct gpurun_ctx *ctx, int tile_elems,
                                                 int tile_rows)
{
    struct conv_job job = conv_job_of(ctx);
    const int64_t tiles = conv_tiles(&job, tile_elems, tile_rows);

    return tiles <= INT32_MAX ? GPURUN_OK
                              : gpurun_fail(ctx, GPURUN_UNSUPPORTED, "width",
                                            "%lld blocks are more than a grid holds",
                                            static_cast<long long>(tiles));
}

/* Calls function<ELEM>(...) for the job's elements. */
#define CONV_DISPATCH(ctx, function, ...)                                                          \
    (conv_state_of(ctx)->mask.is_real ? function<float>(__VA_ARGS__)                               \
                                      : function<uint8_t>(__VA_ARGS__))

#endif
