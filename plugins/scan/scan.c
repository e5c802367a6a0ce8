/*
 * scan: sums, maxima or minima of all prefixes of an array.
 */
#include "scan.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SCAN_DEFAULT_N = 1000000 };

/* Up to here a double holds every whole number. */
#define INIT_WHOLE_MAX 9007199254740992.0

#define OPTION(field) .offset = offsetof(struct scan_options, field), .name = #field

static const char *const dtypes[] = {"uint8",  "int32", "uint32", "int64",
                                     "uint64", "float", "double", NULL};
static const char *const kinds[] = {"inclusive", "exclusive", NULL};
static const char *const ops[] = {"sum", "max", "min", NULL};
static const char *const accumulates[] = {"same", "wide", NULL};

static const struct gpurun_option options[] = {
    {OPTION(n), .type = GPURUN_OPTION_INT, .def = "auto", .max = 1e18, .unit = "elements",
     .flags = GPURUN_OPTION_AUTO, .help = "elements; auto: the file's, else 1M"},
    {OPTION(dtype), .type = GPURUN_OPTION_DTYPE, .def = "auto", .choices = dtypes,
     .flags = GPURUN_OPTION_AUTO, .help = "element type; auto: the file's, else int32"},
    {OPTION(kind), .type = GPURUN_OPTION_CHOICE, .def = "inclusive", .choices = kinds,
     .help = "whether element i is part of result i"},
    {OPTION(op), .type = GPURUN_OPTION_CHOICE, .def = "sum", .choices = ops,
     .help = "what joins two elements; whole sums wrap modulo 2^bits, NaN stays"},
    {OPTION(accumulate), .type = GPURUN_OPTION_CHOICE, .def = "same", .choices = accumulates,
     .help = "type of the results; wide: uint8 to uint32, 32 bits to 64, float to double"},
    {OPTION(init), .type = GPURUN_OPTION_REAL, .def = "auto", .flags = GPURUN_OPTION_AUTO,
     .help = "a number in front of the first element; auto (and -0): the identity of op"},
    {OPTION(block), .type = GPURUN_OPTION_INT, .def = "256", .min = 32, .max = SCAN_BLOCK_MAX,
     .unit = "threads", .flags = GPURUN_OPTION_TUNABLE,
     .help = "threads per block of the variants before lookback"},
};

#ifdef GPURUN_WITH_CUDA
static const struct gpurun_variant variants[] = {
    {.name = "hillis_steele",
     .idea = "each step adds the element 1, 2, 4, ... to the left, between two buffers",
     .scratch_bytes = scan_hillis_steele_scratch,
     .launch = scan_launch_hillis_steele},
    {.name = "hillis_steele_inplace",
     .idea = "the same in one buffer: a temporary and a second barrier per step",
     .scratch_bytes = scan_hillis_steele_inplace_scratch,
     .launch = scan_launch_hillis_steele_inplace},
    {.name = "blelloch",
     .idea = "a tree of sums up, prefixes down: 2n additions instead of n log n",
     .supported = scan_blelloch_supported,
     .scratch_bytes = scan_blelloch_scratch,
     .launch = scan_launch_blelloch},
    {.name = "blelloch_padded",
     .idea = "the same with a gap after every 32 words, so that banks do not conflict",
     .supported = scan_blelloch_padded_supported,
     .scratch_bytes = scan_blelloch_padded_scratch,
     .launch = scan_launch_blelloch_padded},
    {.name = "three_kernel",
     .idea = "blocks scanned in registers by warp shuffles, a scan of their sums, an addition",
     .supported = scan_three_kernel_supported,
     .scratch_bytes = scan_three_kernel_scratch,
     .launch = scan_launch_three_kernel},
    {.name = "lookback",
     .idea = "one pass: tiles publish their sums, and each adds up those before it",
     .state_bytes = scan_lookback_state,
     .launch = scan_launch_lookback},
    {.name = "cub",
     .idea = "cub::DeviceScan",
     .capabilities = GPURUN_PEER,
     .supported = scan_cub_supported,
     .scratch_bytes = scan_cub_scratch,
     .launch = scan_launch_cub},
};
#endif

static bool is_signed(enum gpurun_dtype dtype)
{
    return dtype == GPURUN_INT32 || dtype == GPURUN_INT64;
}

static enum gpurun_dtype acc_of(enum gpurun_dtype dtype, int64_t accumulate)
{
    if (accumulate == SCAN_SAME)
        return dtype;
    switch (dtype) {
    case GPURUN_UINT8:
        return GPURUN_UINT32;
    case GPURUN_INT32:
        return GPURUN_INT64;
    case GPURUN_UINT32:
        return GPURUN_UINT64;
    case GPURUN_FLOAT:
        return GPURUN_DOUBLE;
    default:
        return dtype;
    }
}

/* What changes nothing in front of other elements. */
static struct scan_number identity_of(enum gpurun_dtype acc, int64_t op)
{
    const int bits = 8 * (int)gpurun_dtype_bytes(acc);
    const uint64_t highest = UINT64_MAX >> (64 - bits + is_signed(acc));

    if (op == SCAN_SUM)
        return (struct scan_number){0, 0.0};
    if (op == SCAN_MAX)
        return (struct scan_number){is_signed(acc) ? ~highest : 0, -INFINITY};
    return (struct scan_number){highest, INFINITY};
}

/* What the record shows of a start that the user left open. */
static double number_of(const struct scan_state *s, struct scan_number x)
{
    if (s->is_real)
        return x.real;
    return is_signed(s->acc) ? (double)(int64_t)x.whole : (double)x.whole;
}

static enum gpurun_status fit_init(struct gpurun_ctx *ctx, double init, struct scan_state *s)
{
    const int bits = 8 * (int)gpurun_dtype_bytes(s->acc);
    const double highest = ldexp(1.0, is_signed(s->acc) ? bits - 1 : bits);
    const double lowest = is_signed(s->acc) ? -highest : 0.0;

    s->identity = identity_of(s->acc, scan_options_of(ctx)->op);
    s->init = s->identity;
    if (gpurun_real_is_auto(init)) {
        ((struct scan_options *)ctx->options)->init = number_of(s, s->identity);
        return GPURUN_OK;
    }
    if (s->is_real) {
        s->init.real = s->acc == GPURUN_FLOAT ? (double)(float)init : init;
        return GPURUN_OK;
    }
    if (!(init >= lowest && init < highest) || init < trunc(init) || init > trunc(init) ||
        fabs(init) > INIT_WHOLE_MAX)
        return gpurun_fail(ctx, GPURUN_INVALID, "init",
                           "%.17g is not a whole number that %s and 53 bits hold", init,
                           gpurun_dtype_name(s->acc));
    s->init.whole = init < 0 ? (uint64_t)(int64_t)init : (uint64_t)init;
    return GPURUN_OK;
}

static bool takes_dtype(int64_t dtype)
{
    return dtype == GPURUN_UINT8 || dtype >= GPURUN_INT32;
}

static enum gpurun_status fit_input(struct gpurun_ctx *ctx, struct scan_options *o)
{
    struct gpurun_shape shape = {.dtype = o->dtype};

    GPURUN_TRY(gpurun_input_shape(ctx, "in", &shape));
    o->dtype = shape.dtype == GPURUN_AUTO ? GPURUN_INT32 : shape.dtype;
    if (!takes_dtype(o->dtype))
        return gpurun_fail(ctx, GPURUN_INVALID, "dtype",
                           "the file's is %s; scan takes uint8 int32 uint32 int64 uint64 float "
                           "double",
                           gpurun_dtype_name((enum gpurun_dtype)o->dtype));
    if (shape.rank > 1)
        return gpurun_fail(ctx, GPURUN_INVALID, "input",
                           "the file has %d dimensions; scan takes one", shape.rank);
    if (o->n == GPURUN_AUTO)
        o->n = shape.rank == 1 ? shape.dims[0] : SCAN_DEFAULT_N;
    if (shape.rank == 1 && o->n != shape.dims[0])
        return gpurun_fail(ctx, GPURUN_INVALID, "n", "%" PRId64 ", but the file has %" PRId64, o->n,
                           shape.dims[0]);
    return GPURUN_OK;
}

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    struct scan_options *o = ctx->options;
    struct scan_state *s = ctx->state;

    GPURUN_TRY(fit_input(ctx, o));
    s->dtype = (enum gpurun_dtype)o->dtype;
    s->acc = acc_of(s->dtype, o->accumulate);
    s->is_real = s->dtype == GPURUN_FLOAT || s->dtype == GPURUN_DOUBLE;
    GPURUN_TRY(fit_init(ctx, o->init, s));
    s->in = gpurun_tensor(ctx, "in", GPURUN_IN, s->dtype, 1, &o->n);
    s->out = gpurun_tensor(ctx, "out", GPURUN_OUT, s->acc, 1, &o->n);
    if (!s->in || !s->out)
        return GPURUN_INVALID;

    ctx->work = (struct gpurun_work){
        .bytes_read = (double)o->n * (double)gpurun_dtype_bytes(s->dtype),
        .bytes_written = (double)o->n * (double)gpurun_dtype_bytes(s->acc),
        .elements = (double)o->n,
    };
    return GPURUN_OK;
}

#ifdef GPURUN_WITH_CUDA
static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    return scan_options_of(ctx)->n > 0 ? v->launch(ctx) : GPURUN_OK;
}
#endif

/* Nothing is kept outside the state. */
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
    .name = "scan",
    .summary = "sums, maxima or minima of all prefixes of an array",
    .options = options,
#ifdef GPURUN_WITH_CUDA
    .variant_count = GPURUN_COUNT(variants),
    .variants = variants,
    .run_gpu = run_gpu,
#endif
    .options_bytes = sizeof(struct scan_options),
    .state_bytes = sizeof(struct scan_state),
    .memory = GPURUN_MEMORY_ALL,
    .memory_default = GPURUN_EXPLICIT,
    .memory_why = "as much is written as is read, and most variants pass over it twice",
    .setup = setup,
    .run_cpu = scan_run_cpu,
    .verify = scan_verify,
    .teardown = teardown,
};
