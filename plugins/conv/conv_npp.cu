/*
 * conv, variant "npp": the peer, nppiFilterBorder of NVIDIA's performance primitives, opened when it is first wanted.
 *
 * Mapping  NPP's.
 * Memory   image and answer once each at best; the mask lies in global memory, stored there once.
 * Bound    NPP's: not memory.
 * Limits   what NPP does as we define it: border replicate, and crop, whose results need no border; no bias, scale 1 for
 *          bytes (NPP's divisor drops the fraction, ours rounds) and floats; images of less than 2^31 bytes a row.
 */
#include "conv_global.cuh"
#include <dlfcn.h>

/* What NPP's headers say, as far as it is used here. */
struct npp_size {
    int width, height;
};

struct npp_point {
    int x, y;
};

enum { NPP_REPLICATE = 2 };

struct npp_stream {
    cudaStream_t stream;
    int device, sm_count, sm_threads, block_threads;
    size_t block_shared_bytes;
    int compute_major, compute_minor;
    unsigned stream_flags;
    int reserved;
};

static_assert(sizeof(struct npp_stream) == 48, "as NPP lays it out");

typedef int npp_filter_bytes(const uint8_t *in, int in_step, struct npp_size size,
                             struct npp_point offset, uint8_t *out, int out_step,
                             struct npp_size out_size, const int32_t *mask,
                             struct npp_size mask_size, struct npp_point anchor, int divisor,
                             int border, struct npp_stream stream);
typedef int npp_filter_floats(const float *in, int in_step, struct npp_size size,
                              struct npp_point offset, float *out, int out_step,
                              struct npp_size out_size, const float *mask,
                              struct npp_size mask_size, struct npp_point anchor, int border,
                              struct npp_stream stream);

/* While options are only checked there is no image yet, and nothing to say against it. */
static bool npp_is_aligned(const struct gpurun_tensor *image, int64_t pitch)
{
    return reinterpret_cast<uintptr_t>(image->dev) % 4 == 0 && pitch % 4 == 0;
}

static enum gpurun_status npp_check_options(struct gpurun_ctx *ctx)
{
    const struct conv_state *s = conv_state_of(ctx);
    const struct conv_options *o = conv_options_of(ctx);
    const double size = static_cast<double>(gpurun_dtype_bytes(s->image->dtype));

    if (s->border != CONV_REPLICATE && s->border != CONV_CROP)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "border",
                           "nppiFilterBorder knows replicate only (and crop needs none)");
    if (o->bias < 0 || o->bias > 0)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "bias", "nppiFilterBorder has none");
    if (o->scale < 1 || o->scale > 1)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "scale",
                           "nppiFilterBorder divides by a whole number and drops the fraction, or "
                           "does not scale");
    if (static_cast<double>(s->in_pitch) * size > INT32_MAX)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "width",
                           "NPP counts the bytes of a row in 31 bits");
    if (o->channels == 4 && !s->mask.is_real && !npp_is_aligned(s->image, s->in_pitch))
        return gpurun_fail(
            ctx, GPURUN_UNSUPPORTED, "offset",
            "NPP takes four channels only where rows begin at a multiple of 4 bytes");
    return GPURUN_OK;
}

static const char *npp_name(const struct gpurun_ctx *ctx)
{
    static const char *const names[2][5] = {
        {NULL, "nppiFilterBorder_8u_C1R_Ctx", NULL, "nppiFilterBorder_8u_C3R_Ctx",
         "nppiFilterBorder_8u_C4R_Ctx"},
        {NULL, "nppiFilterBorder_32f_C1R_Ctx", NULL, "nppiFilterBorder_32f_C3R_Ctx",
         "nppiFilterBorder_32f_C4R_Ctx"}};

    return names[conv_state_of(ctx)->mask.is_real][conv_options_of(ctx)->channels];
}

enum { NPP_SIDE_MAX = 65535 }; /* pixels; 1,048,575 rows were refused with status -1000 */

enum gpurun_status conv_npp_supported(struct gpurun_ctx *ctx)
{
    const struct conv_options *o = conv_options_of(ctx);
    static const char *const common[] = {"libnppc.so.13", "libnppc.so.12", NULL};
    static const char *const filters[] = {"libnppif.so.13", "libnppif.so.12", NULL};
    void *library;

    GPURUN_TRY(npp_check_options(ctx));
    if (o->width > NPP_SIDE_MAX || o->height > NPP_SIDE_MAX)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, o->height > NPP_SIDE_MAX ? "height" : "width",
                           "NPP's launch fails for so many; it is asked for %d at most",
                           NPP_SIDE_MAX);
    if (gpurun_library(ctx, common) == NULL || (library = gpurun_library(ctx, filters)) == NULL)
        return GPURUN_UNSUPPORTED;
    conv_state_of(ctx)->npp_filter = dlsym(library, npp_name(ctx));
    if (conv_state_of(ctx)->npp_filter == NULL)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL, "this libnppif has no %s", npp_name(ctx));
    return GPURUN_OK;
}

size_t conv_npp_state(struct gpurun_ctx *)
{
    return sizeof(struct conv_weights);
}

static cudaError_t npp_fill_stream(const struct gpurun_ctx *ctx, struct npp_stream *to)
{
    int *const fields[] = {&to->sm_threads, &to->block_threads, &to->compute_major,
                           &to->compute_minor};
    static const enum cudaDeviceAttr attributes[] = {
        cudaDevAttrMaxThreadsPerMultiProcessor, cudaDevAttrMaxThreadsPerBlock,
        cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor};
    cudaError_t error = cudaGetDevice(&to->device);
    int shared_bytes = 0;

    to->stream = gpurun_cuda_stream(ctx);
    to->sm_count = ctx->device.sm_count;
    for (int i = 0; i < 4 && error == cudaSuccess; i++)
        error = cudaDeviceGetAttribute(fields[i], attributes[i], to->device);
    if (error == cudaSuccess)
        error =
            cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlock, to->device);
    if (error == cudaSuccess)
        error = cudaStreamGetFlags(to->stream, &to->stream_flags);
    to->block_shared_bytes = static_cast<size_t>(shared_bytes);
    return error;
}

/* NPP turns its mask round: it is given ours turned round before, and the anchor that then is the centre. */
static int npp_call(struct gpurun_ctx *ctx, const struct npp_stream *stream)
{
    const struct conv_state *s = conv_state_of(ctx);
    const struct conv_job job = conv_job_of(ctx);
    const struct npp_size size = {job.width, job.height};
    const struct npp_size out_size = {static_cast<int>(s->out_width), job.out_height};
    const struct npp_size mask_size = {job.mask_width, job.mask_height};
    const struct npp_point centre = {job.mask_width / 2, job.mask_height / 2};
    const bool is_cropped = s->border == CONV_CROP;
    const struct npp_point offset = {is_cropped ? centre.x : 0, is_cropped ? centre.y : 0};
    const int64_t first = offset.y * s->in_pitch + offset.x * job.channels;
    const int elem_bytes = static_cast<int>(gpurun_dtype_bytes(s->image->dtype));
    const int in_step = static_cast<int>(s->in_pitch) * elem_bytes;
    const int out_step = static_cast<int>(s->out_pitch) * elem_bytes;

    if (s->mask.is_real)
        return reinterpret_cast<npp_filter_floats *>(const_cast<void *>(s->npp_filter))(
            static_cast<const float *>(job.in) + first, in_step, size, offset,
            static_cast<float *>(job.out), out_step, out_size,
            static_cast<const float *>(ctx->variant_state), mask_size, centre, NPP_REPLICATE,
            *stream);
    return reinterpret_cast<npp_filter_bytes *>(const_cast<void *>(s->npp_filter))(
        static_cast<const uint8_t *>(job.in) + first, in_step, size, offset,
        static_cast<uint8_t *>(job.out), out_step, out_size,
        static_cast<const int32_t *>(ctx->variant_state), mask_size, centre, 1, NPP_REPLICATE,
        *stream);
}

enum gpurun_status conv_launch_npp(struct gpurun_ctx *ctx)
{
    struct conv_state *s = conv_state_of(ctx);
    struct npp_stream stream = {};
    int status;

    GPURUN_CUDA_TRY(ctx, npp_fill_stream(ctx, &stream));
    if (s->npp_mask != ctx->variant_state)
        conv_global_store(ctx, ctx->variant_state, true);
    s->npp_mask = ctx->variant_state;
    status = npp_call(ctx, &stream);
    if (status < 0)
        return gpurun_fail(ctx, GPURUN_ERROR, NULL, "%s: status %d", npp_name(ctx), status);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}
