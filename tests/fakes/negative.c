/*
 * out = the largest value - in, for pictures: what a plugin for pictures needs of the core, with no more
 * around it. `crop` leaves rows and columns off the answer.
 */
#include "gpurun/plugin.h"
#include <stddef.h>

struct options {
    int64_t dtype, crop;
};

struct state {
    struct gpurun_tensor *in, *out;
    double most;
    int64_t channels;
};

static const char *const dtypes[] = {"uint8", "uint16", "float", NULL};

static const struct gpurun_option option_rows[] = {
    {.name = "dtype",
     .help = "what to hold the picture in",
     .type = GPURUN_OPTION_DTYPE,
     .offset = offsetof(struct options, dtype),
     .def = "auto",
     .choices = dtypes,
     .flags = GPURUN_OPTION_AUTO},
    {.name = "crop",
     .help = "rows and columns to leave off at the end",
     .type = GPURUN_OPTION_INT,
     .offset = offsetof(struct options, crop),
     .def = "0",
     .min = 0,
     .max = 1000},
};

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    struct options *o = ctx->options;
    struct state *s = ctx->state;
    struct gpurun_shape shape = {.dtype = o->dtype};
    int64_t dims[GPURUN_RANK_MAX];

    GPURUN_TRY(gpurun_input_shape(ctx, "in", &shape));
    if (shape.rank < 2)
        shape = (struct gpurun_shape){.dtype = o->dtype, .rank = 2, .dims = {5, 7}};
    if (shape.dtype == GPURUN_AUTO)
        shape.dtype = GPURUN_UINT8;
    o->dtype = shape.dtype;
    s->most = o->dtype == GPURUN_UINT16 ? 65535 : 255;
    s->channels = shape.rank == 3 ? shape.dims[2] : 1;
    for (int i = 0; i < shape.rank; i++)
        dims[i] = shape.dims[i] - (i < 2 ? o->crop : 0);
    s->in =
        gpurun_tensor(ctx, "in", GPURUN_IN, (enum gpurun_dtype)o->dtype, shape.rank, shape.dims);
    if (s->in == NULL)
        return GPURUN_INVALID;
    s->out = gpurun_tensor(ctx, "out", GPURUN_OUT, (enum gpurun_dtype)o->dtype, shape.rank, dims);
    if (s->out == NULL)
        return GPURUN_INVALID;
    ctx->work.elements = (double)s->out->elems;
    return GPURUN_OK;
}

static double get(const struct gpurun_tensor *t, int64_t i)
{
    if (t->dtype == GPURUN_UINT8)
        return ((const uint8_t *)t->host)[i];
    if (t->dtype == GPURUN_UINT16)
        return ((const uint16_t *)t->host)[i];
    return (double)((const float *)t->host)[i];
}

static void set(const struct gpurun_tensor *t, int64_t i, double value)
{
    if (t->dtype == GPURUN_UINT8)
        ((uint8_t *)t->host)[i] = (uint8_t)value;
    else if (t->dtype == GPURUN_UINT16)
        ((uint16_t *)t->host)[i] = (uint16_t)value;
    else
        ((float *)t->host)[i] = (float)value;
}

static double negative_of(const struct state *s, int64_t i)
{
    const int64_t row = s->out->dims[1] * s->channels, wide_row = s->in->dims[1] * s->channels;

    return s->most - get(s->in, i / row * wide_row + i % row);
}

static enum gpurun_status run_cpu(struct gpurun_ctx *ctx)
{
    const struct state *s = ctx->state;

    for (int64_t i = 0; i < s->out->elems; i++)
        set(s->out, i, negative_of(s, i));
    return GPURUN_OK;
}

static enum gpurun_status verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct state *s = ctx->state;

    proof->mode = GPURUN_VERIFY_FULL;
    proof->checked = s->out->elems;
    for (int64_t i = 0; i < s->out->elems; i++)
        if (!(get(s->out, i) == negative_of(s, i)))
            gpurun_wrong(ctx, proof, "element %lld", (long long)i);
    return GPURUN_OK;
}

static void teardown(struct gpurun_ctx *ctx)
{
    (void)ctx;
}

const struct gpurun_plugin gpurun_plugin = {
    .magic = GPURUN_MAGIC,
    .abi_major = GPURUN_ABI_MAJOR,
    .abi_minor = GPURUN_ABI_MINOR,
    .struct_size = sizeof(struct gpurun_plugin),
    .option_size = sizeof option_rows[0],
    .option_count = GPURUN_COUNT(option_rows),
    .name = "negative",
    .summary = "a fake for pictures",
    .options = option_rows,
    .options_bytes = sizeof(struct options),
    .state_bytes = sizeof(struct state),
    .memory = GPURUN_MEMORY_ALL,
    .memory_why = "a fake",
    .setup = setup,
    .run_cpu = run_cpu,
    .verify = verify,
    .teardown = teardown,
};
