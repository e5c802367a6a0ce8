/*
 * A kernel that takes a known number of clock cycles, for what compares times: GPURUN_FAKE_WAIT_PERCENT in the
 * environment makes it so much longer, which no record can know.
 */
#include "gpurun/cuda.h"
#include <stddef.h>
#include <stdlib.h>

struct wait_options {
    int64_t cycles;
};

struct wait_state {
    struct gpurun_tensor *in, *out;
};

static __global__ void wait_kernel(const float *in, float *out, long long cycles)
{
    const long long start = clock64();

    while (clock64() - start < cycles)
        continue;
    *out = *in;
}

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    struct wait_state *s = static_cast<struct wait_state *>(ctx->state);
    const int64_t one = 1;

    s->in = gpurun_tensor(ctx, "in", GPURUN_IN, GPURUN_FLOAT, 1, &one);
    s->out = gpurun_tensor(ctx, "out", GPURUN_OUT, GPURUN_FLOAT, 1, &one);
    ctx->work.bytes_read = ctx->work.bytes_written = sizeof(float);
    ctx->work.elements = 1;
    return s->in != nullptr && s->out != nullptr ? GPURUN_OK : GPURUN_INVALID;
}

static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    return v->launch(ctx);
}

static enum gpurun_status run_cpu(struct gpurun_ctx *ctx)
{
    const struct wait_state *s = static_cast<const struct wait_state *>(ctx->state);

    *static_cast<float *>(s->out->host) = *static_cast<const float *>(s->in->host);
    return GPURUN_OK;
}

static enum gpurun_status verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct wait_state *s = static_cast<const struct wait_state *>(ctx->state);

    proof->mode = GPURUN_VERIFY_FULL;
    proof->checked = 1;
    if (!(*static_cast<float *>(s->out->host) == *static_cast<const float *>(s->in->host)))
        gpurun_wrong(ctx, proof, "the element");
    return GPURUN_OK;
}

static void teardown(struct gpurun_ctx *ctx)
{
    (void)ctx;
}

static enum gpurun_status launch_wait(struct gpurun_ctx *ctx)
{
    const struct wait_state *s = static_cast<const struct wait_state *>(ctx->state);
    const char *percent = getenv("GPURUN_FAKE_WAIT_PERCENT");
    const int64_t cycles = static_cast<const struct wait_options *>(ctx->options)->cycles;

    wait_kernel<<<1, 1, 0, gpurun_cuda_stream(ctx)>>>(
        static_cast<const float *>(s->in->dev), static_cast<float *>(s->out->dev),
        cycles * (100 + (percent != nullptr ? atoi(percent) : 0)) / 100);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

/* The last two tables in plugin.h's order: not every compiler takes designated initialisers in C++. */
static const struct gpurun_variant variants[] = {
    {"wait", "lets cycles go by", 0, 0, nullptr, nullptr, nullptr, launch_wait},
};

static const struct gpurun_option options[] = {
    {"cycles", "to wait", GPURUN_OPTION_INT, offsetof(struct wait_options, cycles), "100000", 1,
     1e9, "cycles", nullptr, 0},
};

const struct gpurun_plugin gpurun_plugin = {
    GPURUN_MAGIC,
    GPURUN_ABI_MAJOR,
    GPURUN_ABI_MINOR,
    sizeof(struct gpurun_plugin),
    sizeof(struct gpurun_option),
    GPURUN_COUNT(options),
    sizeof variants[0],
    GPURUN_COUNT(variants),
    "wait",
    "takes a known time",
    options,
    variants,
    sizeof(struct wait_options),
    sizeof(struct wait_state),
    GPURUN_MEMORY_ALL,
    GPURUN_EXPLICIT,
    "it makes no difference",
    setup,
    run_gpu,
    run_cpu,
    verify,
    teardown,
};
