/*
 * Faults on a real device. `stray` writes a little past its tensor, inside the allocation's granularity:
 * the answer is right and only compute-sanitizer can tell. The others fail as their ideas say.
 */
#include "gpurun/cuda.h"
#include <stddef.h>

enum { STRAY_ELEMS = 1000, STRAY_BLOCK = 128 };

struct stray_state {
    struct gpurun_tensor *in, *out;
};

static __global__ void stray_kernel(const float *in, float *out, int elems)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (i < elems)
        out[i] = in[i];
    if (i == elems) /* the planted fault: one element too far */
        out[i] = 1;
}

static __global__ void good_kernel(const float *in, float *out, int elems)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (i < elems)
        out[i] = in[i];
}

static __global__ void illegal_kernel(float *out)
{
    out[(size_t)1 << 40] = 1;
}

static __global__ void trap_kernel()
{
    __trap();
}

static __global__ void spin_kernel(volatile float *out)
{
    while (out[0] == out[0] || out[0] != out[0])
        continue;
}

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    struct stray_state *s = static_cast<struct stray_state *>(ctx->state);
    const int64_t dims[] = {STRAY_ELEMS};

    s->in = gpurun_tensor(ctx, "in", GPURUN_IN, GPURUN_FLOAT, 1, dims);
    s->out = gpurun_tensor(ctx, "out", GPURUN_OUT, GPURUN_FLOAT, 1, dims);
    ctx->work.bytes_read = ctx->work.bytes_written = sizeof(float) * STRAY_ELEMS;
    ctx->work.elements = STRAY_ELEMS;
    return s->in != nullptr && s->out != nullptr ? GPURUN_OK : GPURUN_INVALID;
}

static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    return v->launch(ctx);
}

static enum gpurun_status run_cpu(struct gpurun_ctx *ctx)
{
    const struct stray_state *s = static_cast<const struct stray_state *>(ctx->state);

    for (int i = 0; i < STRAY_ELEMS; i++)
        static_cast<float *>(s->out->host)[i] = static_cast<const float *>(s->in->host)[i];
    return GPURUN_OK;
}

static enum gpurun_status verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct stray_state *s = static_cast<const struct stray_state *>(ctx->state);

    proof->mode = GPURUN_VERIFY_FULL;
    proof->checked = STRAY_ELEMS;
    for (int i = 0; i < STRAY_ELEMS; i++)
        if (!(static_cast<float *>(s->out->host)[i] == static_cast<float *>(s->in->host)[i]))
            gpurun_wrong(ctx, proof, "element %d", i);
    return GPURUN_OK;
}

static void teardown(struct gpurun_ctx *ctx)
{
    (void)ctx;
}

static const float *in_of(const struct gpurun_ctx *ctx)
{
    return static_cast<const float *>(static_cast<const struct stray_state *>(ctx->state)->in->dev);
}

static float *out_of(const struct gpurun_ctx *ctx)
{
    return static_cast<float *>(static_cast<const struct stray_state *>(ctx->state)->out->dev);
}

static enum gpurun_status launch_stray(struct gpurun_ctx *ctx)
{
    stray_kernel<<<STRAY_ELEMS / STRAY_BLOCK + 1, STRAY_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(
        in_of(ctx), out_of(ctx), STRAY_ELEMS);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

static enum gpurun_status launch_good(struct gpurun_ctx *ctx)
{
    good_kernel<<<STRAY_ELEMS / STRAY_BLOCK + 1, STRAY_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(
        in_of(ctx), out_of(ctx), STRAY_ELEMS);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

static enum gpurun_status launch_illegal(struct gpurun_ctx *ctx)
{
    illegal_kernel<<<1, 1, 0, gpurun_cuda_stream(ctx)>>>(out_of(ctx));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

static enum gpurun_status launch_trap(struct gpurun_ctx *ctx)
{
    trap_kernel<<<1, 1, 0, gpurun_cuda_stream(ctx)>>>();
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

static enum gpurun_status launch_spin(struct gpurun_ctx *ctx)
{
    spin_kernel<<<1, 1, 0, gpurun_cuda_stream(ctx)>>>(out_of(ctx));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

static enum gpurun_status launch_late(struct gpurun_ctx *ctx)
{
    good_kernel<<<1, 4096, 0, gpurun_cuda_stream(ctx)>>>(in_of(ctx), out_of(ctx), STRAY_ELEMS);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

/* C++ has no designated initialisers that nvcc takes everywhere: the fields in plugin.h's order. */
static const struct gpurun_variant variants[] = {
    {"stray", "writes one element too far", 0, 0, nullptr, nullptr, nullptr, launch_stray},
    {"illegal", "writes far outside", 0, 0, nullptr, nullptr, nullptr, launch_illegal},
    {"trap", "stops itself", 0, 0, nullptr, nullptr, nullptr, launch_trap},
    {"spin", "never ends", 0, 0, nullptr, nullptr, nullptr, launch_spin},
    {"late_launch", "asks for a block that is too large", 0, 0, nullptr, nullptr, nullptr,
     launch_late},
    {"good", "right", 0, 0, nullptr, nullptr, nullptr, launch_good},
};

const struct gpurun_plugin gpurun_plugin = {
    GPURUN_MAGIC,
    GPURUN_ABI_MAJOR,
    GPURUN_ABI_MINOR,
    sizeof(struct gpurun_plugin),
    sizeof(struct gpurun_option),
    0,
    sizeof variants[0],
    GPURUN_COUNT(variants),
    "stray",
    "faults on a real device",
    nullptr,
    variants,
    sizeof(int64_t),
    sizeof(struct stray_state),
    GPURUN_MEMORY_ALL,
    GPURUN_EXPLICIT,
    "it makes no difference",
    setup,
    run_gpu,
    run_cpu,
    verify,
    teardown,
};
