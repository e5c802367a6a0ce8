/*
 * The least plugin there can be, for fakes that are wrong in one way: each defines the macro of what it
 * gets wrong, then includes this.
 */
#include "gpurun/plugin.h"

#ifndef FAKE_MAGIC
#define FAKE_MAGIC GPURUN_MAGIC
#endif
#ifndef FAKE_MAJOR
#define FAKE_MAJOR GPURUN_ABI_MAJOR
#endif
#ifndef FAKE_MINOR
#define FAKE_MINOR GPURUN_ABI_MINOR
#endif
#ifndef FAKE_SIZE
#define FAKE_SIZE sizeof(struct gpurun_plugin)
#endif
#ifndef FAKE_SETUP
#define FAKE_SETUP setup
#endif
#ifndef FAKE_OPTIONS_BYTES
#define FAKE_OPTIONS_BYTES sizeof(int64_t)
#endif
#ifndef FAKE_VERIFY
#define FAKE_VERIFY verify
#endif
#ifndef FAKE_RUN_GPU
#define FAKE_RUN_GPU run_gpu
#endif
#ifndef FAKE_VARIANTS
#define FAKE_VARIANTS                                                                              \
    {                                                                                              \
        .name = "nothing", .idea = "does nothing", .launch = launch                                \
    }
#endif
#ifndef FAKE_MEMORY
#define FAKE_MEMORY GPURUN_MEMORY_ALL
#endif
#ifndef FAKE_OPTIONS
#define FAKE_OPTIONS                                                                               \
    {                                                                                              \
        .name = "n", .help = "elements", .type = GPURUN_OPTION_INT, .def = "1"                     \
    }
#endif

static inline enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    (void)ctx;
    return GPURUN_OK;
}

static inline enum gpurun_status launch(struct gpurun_ctx *ctx)
{
    (void)ctx;
    return GPURUN_OK;
}

static inline enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    return v->launch(ctx);
}

static enum gpurun_status run_cpu(struct gpurun_ctx *ctx)
{
    (void)ctx;
    return GPURUN_OK;
}

static inline enum gpurun_status verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    (void)ctx;
    proof->mode = GPURUN_VERIFY_FULL;
    return GPURUN_OK;
}

static void teardown(struct gpurun_ctx *ctx)
{
    (void)ctx;
}

static const struct gpurun_option options[] = {FAKE_OPTIONS};

static const struct gpurun_variant variants[] = {FAKE_VARIANTS};

const struct gpurun_plugin gpurun_plugin = {
    .magic = FAKE_MAGIC,
    .abi_major = FAKE_MAJOR,
    .abi_minor = FAKE_MINOR,
    .struct_size = FAKE_SIZE,
    .option_size = sizeof options[0],
    .option_count = GPURUN_COUNT(options),
    .variant_size = sizeof variants[0],
    .variant_count = GPURUN_COUNT(variants),
    .name = FAKE_NAME,
    .summary = "a fake",
    .options = options,
    .variants = variants,
    .options_bytes = FAKE_OPTIONS_BYTES,
    .memory = FAKE_MEMORY,
    .memory_why = "a fake",
    .setup = FAKE_SETUP,
    .run_gpu = FAKE_RUN_GPU,
    .run_cpu = run_cpu,
    .verify = FAKE_VERIFY,
    .teardown = teardown,
};
