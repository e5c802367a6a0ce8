/*
 * out = in on a real device, but for one size of each variant: what tests/every_size has to find there. It is found
 * by a hash alone, as verify takes every answer for right.
 */
#include "gpurun/cuda.h"
#include <stddef.h>

enum { UNEVEN_BLOCK = 128, UNEVEN_LAST = 777, UNEVEN_SWAP = 555, UNEVEN_BEHIND = 333 };

struct uneven_state {
    struct gpurun_tensor *in, *out;
};

/* Copies; leaves element `lost` out, or where that is behind the last one, writes there; may swap the first two. */
static __global__ void uneven_kernel(const int *in, int *out, int64_t n, int64_t lost, bool swaps)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * UNEVEN_BLOCK + threadIdx.x;

    if (i < n && i != lost)
        out[i] = in[swaps && i < 2 ? 1 - i : i];
    if (i == n && lost > n)
        out[i] = 1;
}

static enum gpurun_status uneven_run(struct gpurun_ctx *ctx, int64_t lost, bool swaps)
{
    const struct uneven_state *s = static_cast<const struct uneven_state *>(ctx->state);
    const int64_t n = s->in->elems;

    uneven_kernel<<<static_cast<unsigned>(n / UNEVEN_BLOCK + 1), UNEVEN_BLOCK, 0,
                    gpurun_cuda_stream(ctx)>>>(static_cast<const int *>(s->in->dev),
                                               static_cast<int *>(s->out->dev), n, lost, swaps);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

static int64_t elems_of(const struct gpurun_ctx *ctx)
{
    return static_cast<const struct uneven_state *>(ctx->state)->in->elems;
}

static enum gpurun_status launch_good(struct gpurun_ctx *ctx)
{
    return uneven_run(ctx, -1, false);
}

static enum gpurun_status launch_last(struct gpurun_ctx *ctx)
{
    return uneven_run(ctx, elems_of(ctx) == UNEVEN_LAST ? UNEVEN_LAST - 1 : -1, false);
}

static enum gpurun_status launch_swap(struct gpurun_ctx *ctx)
{
    return uneven_run(ctx, -1, elems_of(ctx) == UNEVEN_SWAP);
}

static enum gpurun_status launch_behind(struct gpurun_ctx *ctx)
{
    return uneven_run(ctx, elems_of(ctx) == UNEVEN_BEHIND ? UNEVEN_BEHIND + 1 : -1, false);
}

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    struct uneven_state *s = static_cast<struct uneven_state *>(ctx->state);
    const int64_t *n = static_cast<const int64_t *>(ctx->options);

    s->in = gpurun_tensor(ctx, "in", GPURUN_IN, GPURUN_INT32, 1, n);
    s->out = gpurun_tensor(ctx, "out", GPURUN_OUT, GPURUN_INT32, 1, n);
    return s->in != nullptr && s->out != nullptr ? GPURUN_OK : GPURUN_INVALID;
}

static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    return v->launch(ctx);
}

static enum gpurun_status run_cpu(struct gpurun_ctx *ctx)
{
    const struct uneven_state *s = static_cast<const struct uneven_state *>(ctx->state);

    for (int64_t i = 0; i < s->in->elems; i++)
        static_cast<int *>(s->out->host)[i] = static_cast<const int *>(s->in->host)[i];
    return GPURUN_OK;
}

static enum gpurun_status verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    (void)ctx;
    proof->mode = GPURUN_VERIFY_FULL;
    return GPURUN_OK;
}

static void teardown(struct gpurun_ctx *ctx)
{
    (void)ctx;
}

/* C++ has no designated initialisers that nvcc takes everywhere: the fields in plugin.h's order. */
static const struct gpurun_option options[] = {
    {"n", "elements", GPURUN_OPTION_INT, 0, "1000", 0, 1e9, "elements", nullptr, 0},
};

static const struct gpurun_variant variants[] = {
    {"good", "right", 0, 0, nullptr, nullptr, nullptr, launch_good},
    {"last", "leaves the last element out at 777", 0, 0, nullptr, nullptr, nullptr, launch_last},
    {"swap", "swaps two elements at 555", 0, 0, nullptr, nullptr, nullptr, launch_swap},
    {"behind", "writes one too many at 333", 0, 0, nullptr, nullptr, nullptr, launch_behind},
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
    "uneven",
    "wrong at one size",
    options,
    variants,
    sizeof(int64_t),
    sizeof(struct uneven_state),
    GPURUN_MEMORY_ALL,
    GPURUN_EXPLICIT,
    "it makes no difference",
    setup,
    run_gpu,
    run_cpu,
    verify,
    teardown,
};
