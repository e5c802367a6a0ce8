/*
 * Sizes that go wrong before any answer: 13 is refused, at 30 the device fails, at 40 another tensor is asked for.
 * Its first option is a whole number that is no size. For tests/fault/every_size.sh.
 */
#include "gpurun/plugin.h"

struct choosy_options {
    int64_t shade, n;
};

static enum gpurun_status choosy_setup(struct gpurun_ctx *ctx)
{
    const struct choosy_options *o = ctx->options;
    const enum gpurun_dtype dtype = o->n == 40 ? GPURUN_INT64 : GPURUN_INT32;

    if (o->n == 13)
        return gpurun_fail(ctx, GPURUN_INVALID, "n", "13 is an unlucky number");
    return gpurun_tensor(ctx, "in", GPURUN_IN, dtype, 1, &o->n) &&
                   gpurun_tensor(ctx, "out", GPURUN_OUT, dtype, 1, &o->n)
               ? GPURUN_OK
               : GPURUN_INVALID;
}

static enum gpurun_status choosy_run(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    const struct choosy_options *o = ctx->options;

    if (o->n == 30)
        return gpurun_fail(ctx, GPURUN_DEVICE, NULL, "an illegal memory access");
    return v->launch(ctx);
}

#define FAKE_NAME          "choosy"
#define FAKE_SETUP         choosy_setup
#define FAKE_RUN_GPU       choosy_run
#define FAKE_OPTIONS_BYTES sizeof(struct choosy_options)
#define FAKE_OPTIONS                                                                               \
    {.name = "shade",                                                                              \
     .help = "a number",                                                                           \
     .type = GPURUN_OPTION_INT,                                                                    \
     .def = "1",                                                                                   \
     .offset = offsetof(struct choosy_options, shade)},                                            \
    {                                                                                              \
        .name = "n", .help = "elements", .type = GPURUN_OPTION_INT, .def = "1",                    \
        .offset = offsetof(struct choosy_options, n)                                               \
    }
#include "minimal.h"
