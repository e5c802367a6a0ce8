/*
 * bandwidth: how fast memory is read, written, copied, scaled and added up: STREAM's loops, and a bare read and
 * a bare write.
 */
#include "bandwidth.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BANDWIDTH_DEFAULT_N = 16000000 };

#define OPTION(field) .offset = offsetof(struct bandwidth_options, field), .name = #field

static const char *const kinds[] = {"read", "write", "copy", "scale", "triad", NULL};
static const char *const dtypes[] = {"uint32", "float", NULL};

static const struct gpurun_option options[] = {
    {OPTION(n), .type = GPURUN_OPTION_INT, .def = "auto", .max = 1e18, .unit = "elements",
     .flags = GPURUN_OPTION_AUTO,
     .help = "elements of 4 bytes in each array; auto: the file's, else 16M"},
    {OPTION(kind), .type = GPURUN_OPTION_CHOICE, .def = "copy", .choices = kinds,
     .help =
         "read: sums of in; write: out = value; copy: out = in; scale: out = value * in; triad: "
         "out = addend + value * in"},
    {OPTION(dtype), .type = GPURUN_OPTION_DTYPE, .def = "auto", .choices = dtypes,
     .flags = GPURUN_OPTION_AUTO, .help = "element type; auto: the file's, else float"},
    {OPTION(value), .type = GPURUN_OPTION_REAL, .def = "3",
     .help = "what write stores, and scale and triad multiply by"},
    {OPTION(passes), .type = GPURUN_OPTION_INT, .def = "1", .min = 1, .max = 500, .unit = "passes",
     .help = "so many times over the arrays in one run: data that is used again"},
    {OPTION(block), .type = GPURUN_OPTION_INT, .def = "512", .min = 32, .max = 1024,
     .unit = "threads", .flags = GPURUN_OPTION_TUNABLE,
     .help = "threads per block, a multiple of 32"},
    {OPTION(grid), .type = GPURUN_OPTION_INT, .def = "0", .min = 0, .max = 64,
     .unit = "blocks per multiprocessor", .flags = GPURUN_OPTION_TUNABLE,
     .help = "blocks that share all pieces of 64 KiB; 0: one block per piece"},
};

#ifdef GPURUN_WITH_CUDA
static const struct gpurun_variant variants[] = {
    {.name = "scalar",
     .idea = "4-byte accesses, one of them in flight per thread",
     .launch = bandwidth_launch_scalar},
    {.name = "unrolled",
     .idea = "4-byte accesses, eight in flight per thread",
     .launch = bandwidth_launch_unrolled},
    {.name = "vector",
     .idea = "16-byte accesses, eight in flight per thread",
     .launch = bandwidth_launch_vector},
    {.name = "cuda",
     .idea = "cudaMemcpyAsync for copy, cuMemsetD32Async for write",
     .capabilities = GPURUN_PEER,
     .supported = bandwidth_cuda_supported,
     .launch = bandwidth_launch_cuda},
};
#endif

/* --- setup -------------------------------------------------------------------------------------------- */

/* What a file says of an input; a generator says nothing. */
static enum gpurun_status fit_input(struct gpurun_ctx *ctx, const char *name)
{
    struct bandwidth_options *o = ctx->options;
    struct gpurun_shape shape = {.dtype = o->dtype};
    int64_t elems = 1;

    GPURUN_TRY(gpurun_input_shape(ctx, name, &shape));
    if (shape.dtype != GPURUN_AUTO && shape.dtype != GPURUN_UINT32 && shape.dtype != GPURUN_FLOAT)
        return gpurun_fail(ctx, GPURUN_INVALID, "dtype",
                           "the file of %s is %s; bandwidth takes uint32 and float", name,
                           gpurun_dtype_name((enum gpurun_dtype)shape.dtype));
    o->dtype = shape.dtype;
    for (int i = 0; i < shape.rank; i++)
        elems *= shape.dims[i];
    if (shape.rank > 0 && o->n == GPURUN_AUTO)
        o->n = elems;
    if (shape.rank > 0 && o->n != elems)
        return gpurun_fail(ctx, GPURUN_INVALID, "n", "%" PRId64 ", but the file of %s has %" PRId64,
                           o->n, name, elems);
    return GPURUN_OK;
}

static enum gpurun_status fit_inputs(struct gpurun_ctx *ctx)
{
    struct bandwidth_options *o = ctx->options;

    if (o->kind != BANDWIDTH_WRITE)
        GPURUN_TRY(fit_input(ctx, "in"));
    if (o->kind == BANDWIDTH_TRIAD)
        GPURUN_TRY(fit_input(ctx, "addend"));
    if (o->dtype == GPURUN_AUTO)
        o->dtype = GPURUN_FLOAT;
    if (o->n == GPURUN_AUTO)
        o->n = BANDWIDTH_DEFAULT_N;
    return GPURUN_OK;
}

/* The value as an element's bits. */
static enum gpurun_status take_value(struct gpurun_ctx *ctx)
{
    const struct bandwidth_options *o = ctx->options;
    struct bandwidth_state *s = ctx->state;
    const float real = (float)o->value;

    s->is_real = o->dtype == GPURUN_FLOAT;
    if (s->is_real) {
        memcpy(&s->value, &real, sizeof(real));
        return GPURUN_OK;
    }
    if (!(o->value >= 0 && o->value <= (double)UINT32_MAX && o->value == floor(o->value)))
        return gpurun_fail(ctx, GPURUN_INVALID, "value",
                           "%g is no uint32: a whole number from 0 to 4294967295, or dtype = float",
                           o->value);
    s->value = (uint32_t)o->value;
    return GPURUN_OK;
}

static enum gpurun_status check_options(struct gpurun_ctx *ctx)
{
    const struct bandwidth_options *o = ctx->options;
    int64_t bytes;

    if (__builtin_mul_overflow(o->n, (int64_t)sizeof(uint32_t), &bytes))
        return gpurun_fail(ctx, GPURUN_INVALID, "n",
                           "%" PRId64 " elements are more bytes than 64 bits can address", o->n);
    if (o->block % 32 != 0)
        return gpurun_fail(ctx, GPURUN_INVALID, "block", "%" PRId64 " is not a multiple of 32",
                           o->block);
    return take_value(ctx);
}

static enum gpurun_status ask_tensors(struct gpurun_ctx *ctx)
{
    const struct bandwidth_options *o = ctx->options;
    struct bandwidth_state *s = ctx->state;
    const enum gpurun_dtype dtype = (enum gpurun_dtype)o->dtype;
    const bool has_in = o->kind != BANDWIDTH_WRITE, has_addend = o->kind == BANDWIDTH_TRIAD;

    if (has_in && !(s->in = gpurun_tensor(ctx, "in", GPURUN_IN, dtype, 1, &o->n)))
        return GPURUN_INVALID;
    if (has_addend && !(s->addend = gpurun_tensor(ctx, "addend", GPURUN_IN, dtype, 1, &o->n)))
        return GPURUN_INVALID;
    if (o->kind == BANDWIDTH_READ)
        s->sums = gpurun_tensor(ctx, "sums", GPURUN_OUT, GPURUN_UINT64, 1, &s->pieces);
    else
        s->out = gpurun_tensor(ctx, "out", GPURUN_OUT, dtype, 1, &o->n);
    return s->sums || s->out ? GPURUN_OK : GPURUN_INVALID;
}

/* Every byte that goes to or from memory, as often as it does. */
static struct gpurun_work work_of(const struct gpurun_ctx *ctx)
{
    const struct bandwidth_state *s = ctx->state;
    const double passes = (double)bandwidth_options_of(ctx)->passes;

    return (struct gpurun_work){
        .bytes_read =
            passes * (double)((s->in ? s->in->bytes : 0) + (s->addend ? s->addend->bytes : 0)),
        .bytes_written = passes * (double)(s->sums ? s->sums->bytes : s->out->bytes),
        .elements = passes * (double)bandwidth_options_of(ctx)->n,
    };
}

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    struct bandwidth_state *s = ctx->state;

    GPURUN_TRY(fit_inputs(ctx));
    GPURUN_TRY(check_options(ctx));
    s->pieces = bandwidth_options_of(ctx)->n / BANDWIDTH_PIECE +
                (bandwidth_options_of(ctx)->n % BANDWIDTH_PIECE != 0);
    GPURUN_TRY(ask_tensors(ctx));
    ctx->work = work_of(ctx);
    return GPURUN_OK;
}

/* --- the other hooks ---------------------------------------------------------------------------------- */

#ifdef GPURUN_WITH_CUDA
static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    const struct bandwidth_options *o = bandwidth_options_of(ctx);

    for (int64_t pass = 0; pass < o->passes && o->n > 0; pass++)
        GPURUN_TRY(v->launch(ctx));
    return GPURUN_OK;
}
#endif

/* No hook allocates anything that outlives it. */
static void teardown(struct gpurun_ctx *ctx)
{
    (void)ctx;
}

const struct gpurun_plugin gpurun_plugin = {
    .magic = GPURUN_MAGIC,
    .abi_major = GPURUN_ABI_MAJOR,
    .abi_minor = GPURUN_ABI_MINOR,
    .struct_size = sizeof(struct gpurun_plugin),
    .option_size = sizeof(struct gpurun_option),
    .option_count = GPURUN_COUNT(options),
    .variant_size = sizeof(struct gpurun_variant),
    .name = "bandwidth",
    .summary = "how fast memory is read, written, copied, scaled and added up, as in STREAM",
    .options = options,
#ifdef GPURUN_WITH_CUDA
    .variant_count = GPURUN_COUNT(variants),
    .variants = variants,
    .run_gpu = run_gpu,
#endif
    .options_bytes = sizeof(struct bandwidth_options),
    .state_bytes = sizeof(struct bandwidth_state),
    .memory = GPURUN_MEMORY_ALL,
    .memory_default = GPURUN_EXPLICIT,
    .memory_why = "device memory is what is measured; zerocopy measures the link",
    .setup = setup,
    .run_cpu = bandwidth_run_cpu,
    .verify = bandwidth_verify,
    .teardown = teardown,
};
