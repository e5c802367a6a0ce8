/*
 * Launch parameters whose best is known: `spin` is fastest at block 64 in style fast. Block 8 gives a wrong
 * answer, block 32 is refused by setup, `flat` takes as long with any, `never` cannot run.
 */
#define FAKE_NAME          "tunable"
#define FAKE_SETUP         tunable_setup
#define FAKE_VERIFY        tunable_verify
#define FAKE_OPTIONS_BYTES sizeof(struct options)
#define FAKE_OPTIONS                                                                               \
    {.name = "n", .help = "elements", .type = GPURUN_OPTION_INT, .def = "1", .max = 1e9},          \
        {.name = "block",                                                                          \
         .help = "threads",                                                                        \
         .type = GPURUN_OPTION_INT,                                                                \
         .offset = offsetof(struct options, block),                                                \
         .def = "24",                                                                              \
         .min = 8,                                                                                 \
         .max = 100,                                                                               \
         .flags = GPURUN_OPTION_TUNABLE},                                                          \
        {.name = "style",                                                                          \
         .help = "how",                                                                            \
         .type = GPURUN_OPTION_CHOICE,                                                             \
         .offset = offsetof(struct options, style),                                                \
         .def = "slow",                                                                            \
         .choices = styles,                                                                        \
         .flags = GPURUN_OPTION_TUNABLE},                                                          \
    {                                                                                              \
        .name = "share", .help = "a real one", .type = GPURUN_OPTION_REAL,                         \
        .offset = offsetof(struct options, share), .def = "0.5", .max = 1,                         \
        .flags = GPURUN_OPTION_TUNABLE                                                             \
    }
#define FAKE_VARIANTS                                                                              \
    {.name = "spin", .idea = "takes as long as its options say", .launch = spin},                  \
        {.name = "flat", .idea = "takes as long with any", .launch = flat},                        \
    {                                                                                              \
        .name = "never", .idea = "cannot run", .launch = flat, .supported = cannot                 \
    }
#include "gpurun/plugin.h"
#include <time.h>

struct options {
    int64_t n, block, style;
    double share;
};

static const char *const styles[] = {"slow", "fast", NULL};

static enum gpurun_status tunable_setup(struct gpurun_ctx *ctx);
static enum gpurun_status tunable_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof);
static enum gpurun_status spin(struct gpurun_ctx *ctx);
static enum gpurun_status flat(struct gpurun_ctx *ctx);
static enum gpurun_status cannot(struct gpurun_ctx *ctx);

#include "minimal.h"

static enum gpurun_status tunable_setup(struct gpurun_ctx *ctx)
{
    const struct options *o = ctx->options;

    if (o->block == 32)
        return gpurun_fail(ctx, GPURUN_INVALID, "block", "32 is one too many");
    return GPURUN_OK;
}

static enum gpurun_status tunable_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct options *o = ctx->options;

    verify(ctx, proof);
    if (o->block == 8)
        gpurun_wrong(ctx, proof, "8 is too few");
    return GPURUN_OK;
}

static void wait_us(double us)
{
    struct timespec start, now;

    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((double)(now.tv_sec - start.tv_sec) * 1e6 +
               (double)(now.tv_nsec - start.tv_nsec) * 1e-3 <
           us);
}

static enum gpurun_status spin(struct gpurun_ctx *ctx)
{
    const struct options *o = ctx->options;

    wait_us((o->block == 64 ? 100 : 400) * (o->style == 0 ? 4 : 1));
    return GPURUN_OK;
}

static enum gpurun_status flat(struct gpurun_ctx *ctx)
{
    (void)ctx;
    wait_us(200);
    return GPURUN_OK;
}

static enum gpurun_status cannot(struct gpurun_ctx *ctx)
{
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL, "not here");
}
