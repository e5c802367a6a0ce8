/*
 * out = in in any shape, on a pretend device, with variants that break the contract in one way each: what the
 * contract test has to find. Its steady variants have to pass.
 */
#include "gpurun/plugin.h"
#include <stddef.h>
#include <string.h>

struct options {
    int64_t rows, cols, dtype, order, flip, block;
};

struct state {
    struct gpurun_tensor *in, *out;
    int runs;
};

static const char *const dtypes[] = {"int32", "float", "double", NULL};
static const char *const orders[] = {"up", "down", "sideways", NULL};

#define AT(field) .name = #field, .offset = offsetof(struct options, field)

static const struct gpurun_option option_rows[] = {
    {AT(rows), .help = "rows", .type = GPURUN_OPTION_INT, .def = "3", .max = 1e9, .unit = "rows"},
    {AT(cols), .help = "columns", .type = GPURUN_OPTION_INT, .def = "1000", .max = 1e9,
     .unit = "columns"},
    {AT(dtype), .help = "element type", .type = GPURUN_OPTION_DTYPE, .def = "float",
     .choices = dtypes},
    {AT(order), .help = "a choice", .type = GPURUN_OPTION_CHOICE, .def = "up", .choices = orders},
    {AT(flip), .help = "a yes or no", .type = GPURUN_OPTION_BOOL, .def = "no"},
    {AT(block), .help = "a tunable", .type = GPURUN_OPTION_INT, .def = "32", .min = 1, .max = 64,
     .flags = GPURUN_OPTION_TUNABLE},
};

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    const struct options *o = ctx->options;
    struct state *s = ctx->state;
    const int64_t dims[] = {o->rows, o->cols};
    const enum gpurun_dtype dtype = (enum gpurun_dtype)o->dtype;

    if (o->order == 2 && o->flip)
        return gpurun_fail(ctx, GPURUN_INVALID, "flip", "sideways cannot be flipped");
    s->in = gpurun_tensor(ctx, "in", GPURUN_IN, dtype, 2, dims);
    s->out = gpurun_tensor(ctx, "out", GPURUN_OUT, dtype, 2, dims);
    if (s->in == NULL || s->out == NULL)
        return GPURUN_INVALID;
    ctx->work = (struct gpurun_work){.bytes_read = (double)s->in->bytes,
                                     .bytes_written = (double)s->out->bytes,
                                     .elements = (double)s->in->elems};
    return GPURUN_OK;
}

static enum gpurun_status run_cpu(struct gpurun_ctx *ctx)
{
    const struct state *s = ctx->state;

    memcpy(s->out->host, s->in->host, s->in->bytes);
    return GPURUN_OK;
}

static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    struct state *s = ctx->state;

    s->runs++;
    return v->launch(ctx);
}

static enum gpurun_status launch_steady(struct gpurun_ctx *ctx)
{
    const struct state *s = ctx->state;

    memcpy(s->out->dev, s->in->dev, s->in->bytes);
    return GPURUN_OK;
}

/* Leaves the last element out. */
static enum gpurun_status launch_short(struct gpurun_ctx *ctx)
{
    const struct state *s = ctx->state;
    const size_t last = s->in->elems > 0 ? gpurun_dtype_bytes(s->in->dtype) : 0;

    memcpy(s->out->dev, s->in->dev, s->in->bytes - last);
    return GPURUN_OK;
}

/* Right but for rows of one size, as a kernel is whose tile ends there. */
static enum gpurun_status launch_tile_edge(struct gpurun_ctx *ctx)
{
    const struct options *o = ctx->options;

    return o->cols == 257 || o->rows == 257 ? launch_short(ctx) : launch_steady(ctx);
}

/* Right but for the largest sizes. */
static enum gpurun_status launch_large(struct gpurun_ctx *ctx)
{
    const struct options *o = ctx->options;

    return o->cols > 1 << 20 ? launch_short(ctx) : launch_steady(ctx);
}

/* Writes one element too many. */
static enum gpurun_status launch_behind(struct gpurun_ctx *ctx)
{
    const struct state *s = ctx->state;

    memset((char *)s->out->dev + s->out->bytes, 0, gpurun_dtype_bytes(s->out->dtype));
    return launch_steady(ctx);
}

/* Right, and then the input is other than it was. */
static enum gpurun_status launch_write_input(struct gpurun_ctx *ctx)
{
    const struct state *s = ctx->state;

    launch_steady(ctx);
    if (s->in->elems == 777)
        *(unsigned char *)s->in->dev += 1;
    return GPURUN_OK;
}

/* Right but where two choices meet. */
static enum gpurun_status launch_pair(struct gpurun_ctx *ctx)
{
    const struct options *o = ctx->options;

    return o->flip && o->order == 1 ? launch_short(ctx) : launch_steady(ctx);
}

/* Within the tolerance, and different each time. */
static enum gpurun_status launch_wavering(struct gpurun_ctx *ctx)
{
    const struct state *s = ctx->state;

    launch_steady(ctx);
    if (s->in->elems > 0 && s->in->dtype != GPURUN_INT32)
        *(unsigned char *)s->out->dev ^= (unsigned char)(s->runs & 1);
    return GPURUN_OK;
}

static enum gpurun_status int32_only(struct gpurun_ctx *ctx)
{
    const struct options *o = ctx->options;

    return o->dtype == GPURUN_INT32
               ? GPURUN_OK
               : gpurun_fail(ctx, GPURUN_UNSUPPORTED, "dtype", "int32 alone is done here");
}

/* Trusts scratch to be zero. */
static enum gpurun_status launch_scratch(struct gpurun_ctx *ctx)
{
    return *(const int *)ctx->scratch == 0 ? launch_steady(ctx) : launch_short(ctx);
}

static size_t page(struct gpurun_ctx *ctx)
{
    (void)ctx;
    return 4096;
}

static double real_at(const struct gpurun_tensor *t, int64_t i)
{
    if (t->dtype == GPURUN_INT32)
        return ((const int32_t *)t->host)[i];
    return t->dtype == GPURUN_FLOAT ? (double)((const float *)t->host)[i]
                                    : ((const double *)t->host)[i];
}

/* Equal, or for reals off by at most 2^-20 of the magnitude; NaN for NaN. */
static enum gpurun_status verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct state *s = ctx->state;

    if (proof->mode == GPURUN_VERIFY_AUTO)
        proof->mode = GPURUN_VERIFY_FULL;
    proof->checked = s->out->elems;
    proof->detects = "what is off by more than 2^-20";
    for (int64_t i = 0; i < s->out->elems; i++) {
        const double in = real_at(s->in, i), out = real_at(s->out, i);
        const double allowed =
            s->in->dtype == GPURUN_INT32 ? 0 : 0x1p-20 * (in < 0 ? -in : in) + 0x1p-140;
        const double error = in < out ? out - in : in - out;

        proof->bound = allowed > proof->bound && allowed < 1e300 ? allowed : proof->bound;
        if (!(in <= out && in >= out) && !(in != in && out != out) && !(error <= allowed))
            gpurun_wrong(ctx, proof, "element %lld is %g, not %g", (long long)i, out, in);
    }
    return GPURUN_OK;
}

static void teardown(struct gpurun_ctx *ctx)
{
    (void)ctx;
}

static const struct gpurun_variant variants[] = {
    {.name = "steady", .idea = "right", .launch = launch_steady},
    {.name = "tile_edge", .idea = "wrong at one size", .launch = launch_tile_edge},
    {.name = "large", .idea = "wrong at large sizes", .launch = launch_large},
    {.name = "behind", .idea = "writes behind its answer", .launch = launch_behind},
    {.name = "write_input", .idea = "writes to its input", .launch = launch_write_input},
    {.name = "newer", .idea = "for a later device", .launch = launch_steady, .min_compute = 200},
    {.name = "pair", .idea = "wrong where two choices meet", .launch = launch_pair},
    {.name = "wavering", .idea = "other bits each time", .launch = launch_wavering},
    {.name = "declared",
     .idea = "other bits each time, and says so",
     .launch = launch_wavering,
     .capabilities = GPURUN_TIES_ANY},
    {.name = "scratch",
     .idea = "trusts scratch to be zero",
     .launch = launch_scratch,
     .scratch_bytes = page},
    {.name = "narrow", .idea = "one dtype alone", .launch = launch_steady, .supported = int32_only},
    {.name = "peer",
     .idea = "other bits each time, as a vendor may",
     .launch = launch_wavering,
     .capabilities = GPURUN_PEER},
};

const struct gpurun_plugin gpurun_plugin = {
    .magic = GPURUN_MAGIC,
    .abi_major = GPURUN_ABI_MAJOR,
    .abi_minor = GPURUN_ABI_MINOR,
    .struct_size = sizeof(struct gpurun_plugin),
    .option_size = sizeof option_rows[0],
    .option_count = GPURUN_COUNT(option_rows),
    .variant_size = sizeof variants[0],
    .variant_count = GPURUN_COUNT(variants),
    .name = "faulty",
    .summary = "out = in, and variants that break the contract",
    .options = option_rows,
    .variants = variants,
    .options_bytes = sizeof(struct options),
    .state_bytes = sizeof(struct state),
    .memory = GPURUN_MEMORY_ALL,
    .memory_default = GPURUN_EXPLICIT,
    .memory_why = "it makes no difference",
    .setup = setup,
    .run_gpu = run_gpu,
    .run_cpu = run_cpu,
    .verify = verify,
    .teardown = teardown,
};
