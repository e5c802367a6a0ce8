/*
 * reduce: the sum of an array, its least or largest element, or where that is.
 */
#include "reduce.h"
#include "reduce_key.h"
#include <inttypes.h>

enum { REDUCE_DEFAULT_N = 1000000 };

#define OPTION(field) .offset = offsetof(struct reduce_options, field), .name = #field

static const char *const dtypes[] = {"int32", "uint32", "int64", "uint64", "float", "double", NULL};
static const char *const ops[] = {"sum", "min", "max", "argmin", "argmax", NULL};
static const char *const accumulates[] = {"same", "wide", NULL};

static const struct gpurun_option options[] = {
    {OPTION(n), .type = GPURUN_OPTION_INT, .def = "auto", .max = 1e18, .unit = "elements",
     .flags = GPURUN_OPTION_AUTO, .help = "elements; auto: the file's, else 1M"},
    {OPTION(dtype), .type = GPURUN_OPTION_DTYPE, .def = "auto", .choices = dtypes,
     .flags = GPURUN_OPTION_AUTO, .help = "element type; auto: the file's, else int32"},
    {OPTION(op), .type = GPURUN_OPTION_CHOICE, .def = "sum", .choices = ops,
     .help = "what to find; NaN wins every min and max, argmin and argmax take the first"},
    {OPTION(accumulate), .type = GPURUN_OPTION_CHOICE, .def = "auto", .choices = accumulates,
     .flags = GPURUN_OPTION_AUTO,
     .help = "sums: in the dtype, or in 64 bits; auto: wide for whole numbers, same for reals"},
    {OPTION(deterministic), .type = GPURUN_OPTION_BOOL, .def = "yes",
     .help = "real sums: two runs give the same bits"},
    {OPTION(block), .type = GPURUN_OPTION_INT, .def = "256", .min = 32, .max = 1024,
     .unit = "threads", .flags = GPURUN_OPTION_TUNABLE,
     .help = "threads per block, a power of 2; unrolled and vector have their own"},
};

#ifdef GPURUN_WITH_CUDA
static const struct gpurun_variant variants[] = {
    {.name = "interleaved",
     .idea = "a tree of neighbours in shared memory: threads that work lie ever further apart",
     .supported = reduce_interleaved_supported,
     .scratch_bytes = reduce_interleaved_scratch,
     .launch = reduce_launch_interleaved},
    {.name = "halving",
     .idea = "a tree in shared memory whose upper half is added to its lower half",
     .supported = reduce_halving_supported,
     .scratch_bytes = reduce_halving_scratch,
     .launch = reduce_launch_halving},
    {.name = "chunked",
     .idea = "each thread walks a contiguous piece, so a warp touches 32 places at once",
     .state_bytes = reduce_chunked_state,
     .launch = reduce_launch_chunked},
    {.name = "unrolled",
     .idea = "eight elements per thread before a tree of known size, its last warp unsynchronised",
     .supported = reduce_unrolled_supported,
     .scratch_bytes = reduce_unrolled_scratch,
     .launch = reduce_launch_unrolled},
    {.name = "shuffle",
     .idea = "eight elements per thread, then warp shuffles; shared memory holds one item a warp",
     .supported = reduce_shuffle_supported,
     .scratch_bytes = reduce_shuffle_scratch,
     .launch = reduce_launch_shuffle},
    {.name = "atomic_global",
     .idea = "one atomic on one global word per element",
     .supported = reduce_atomic_global_supported,
     .scratch_bytes = reduce_atomic_global_scratch,
     .launch = reduce_launch_atomic_global},
    {.name = "atomic_block",
     .idea = "atomics on a word in shared memory, then one global atomic per block",
     .supported = reduce_atomic_block_supported,
     .scratch_bytes = reduce_atomic_block_scratch,
     .launch = reduce_launch_atomic_block},
    {.name = "vector",
     .idea = "eight 16-byte loads in flight per thread; the last block joins the blocks' results",
     .state_bytes = reduce_vector_state,
     .launch = reduce_launch_vector},
    {.name = "cub",
     .idea = "cub::DeviceReduce, accumulating in the same width",
     .capabilities = GPURUN_PEER,
     .scratch_bytes = reduce_cub_scratch,
     .launch = reduce_launch_cub},
};
#endif

static enum gpurun_status fit_input(struct gpurun_ctx *ctx, struct reduce_options *o)
{
    struct gpurun_shape shape = {.dtype = o->dtype};
    int64_t elems = 1;

    GPURUN_TRY(gpurun_input_shape(ctx, "in", &shape));
    o->dtype = shape.dtype == GPURUN_AUTO ? GPURUN_INT32 : shape.dtype;
    if (o->dtype < GPURUN_INT32)
        return gpurun_fail(ctx, GPURUN_INVALID, "dtype",
                           "the file's is %s; reduce takes int32 uint32 int64 uint64 float double",
                           gpurun_dtype_name((enum gpurun_dtype)o->dtype));
    for (int i = 0; i < shape.rank; i++)
        elems *= shape.dims[i];
    if (shape.rank > 0 && o->n == GPURUN_AUTO)
        o->n = elems;
    if (shape.rank > 0 && o->n != elems)
        return gpurun_fail(ctx, GPURUN_INVALID, "n", "%" PRId64 ", but the file has %" PRId64, o->n,
                           elems);
    if (o->n == GPURUN_AUTO)
        o->n = REDUCE_DEFAULT_N;
    return GPURUN_OK;
}

static enum gpurun_status check_options(struct gpurun_ctx *ctx, const struct reduce_options *o)
{
    int64_t bytes;

    if (o->n == 0 && o->op != REDUCE_SUM)
        return gpurun_fail(ctx, GPURUN_INVALID, "n",
                           "0 elements have no %s: only the sum of nothing is defined", ops[o->op]);
    if (__builtin_mul_overflow(o->n, 8, &bytes))
        return gpurun_fail(ctx, GPURUN_INVALID, "n",
                           "%" PRId64 " elements are more than 64 bits can address", o->n);
    if ((o->block & (o->block - 1)) != 0)
        return gpurun_fail(ctx, GPURUN_INVALID, "block", "%" PRId64 " is not a power of 2",
                           o->block);
    return GPURUN_OK;
}

static enum reduce_kind choose_kind(const struct reduce_options *o)
{
    static const enum reduce_kind sums[][2] = {
        [GPURUN_INT32] = {REDUCE_SUM_32, REDUCE_SUM_INT32_WIDE},
        [GPURUN_UINT32] = {REDUCE_SUM_32, REDUCE_SUM_UINT32_WIDE},
        [GPURUN_INT64] = {REDUCE_SUM_64, REDUCE_SUM_64},
        [GPURUN_UINT64] = {REDUCE_SUM_64, REDUCE_SUM_64},
        [GPURUN_FLOAT] = {REDUCE_SUM_FLOAT, REDUCE_SUM_FLOAT_WIDE},
        [GPURUN_DOUBLE] = {REDUCE_SUM_DOUBLE, REDUCE_SUM_DOUBLE},
    };
    const enum gpurun_dtype dtype = (enum gpurun_dtype)o->dtype;
    const enum reduce_kind first =
        o->op == REDUCE_MIN || o->op == REDUCE_MAX ? REDUCE_BEST_32 : REDUCE_PLACE_32;

    if (o->op == REDUCE_SUM)
        return sums[dtype][o->accumulate == REDUCE_WIDE];
    return (enum reduce_kind)((int)first + (gpurun_dtype_bytes(dtype) == 8 ? 2 : 0) +
                              (gpurun_dtype_is_real(dtype) ? 1 : 0));
}

/* The dtype of `value`. */
static enum gpurun_dtype value_dtype(const struct reduce_options *o, enum reduce_kind kind)
{
    switch (kind) {
    case REDUCE_SUM_INT32_WIDE:
        return GPURUN_INT64;
    case REDUCE_SUM_UINT32_WIDE:
        return GPURUN_UINT64;
    case REDUCE_SUM_FLOAT_WIDE:
        return GPURUN_DOUBLE;
    default:
        return (enum gpurun_dtype)o->dtype;
    }
}

static enum gpurun_status ask_tensors(struct gpurun_ctx *ctx, const struct reduce_options *o)
{
    struct reduce_state *s = ctx->state;
    const int64_t one = 1;

    s->in = gpurun_tensor(ctx, "in", GPURUN_IN, (enum gpurun_dtype)o->dtype, 1, &o->n);
    s->value = gpurun_tensor(ctx, "value", GPURUN_OUT, value_dtype(o, s->kind), 1, &one);
    if (reduce_is_place(s->kind))
        s->index = gpurun_tensor(ctx, "index", GPURUN_OUT, GPURUN_INT64, 1, &one);
    if (!s->in || !s->value || (!s->index && reduce_is_place(s->kind)))
        return GPURUN_INVALID;
    s->value->varies = !o->deterministic && gpurun_dtype_is_real(s->value->dtype);
    return GPURUN_OK;
}

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    struct reduce_options *o = ctx->options;
    struct reduce_state *s = ctx->state;

    GPURUN_TRY(fit_input(ctx, o));
    GPURUN_TRY(check_options(ctx, o));
    if (o->accumulate == GPURUN_AUTO)
        o->accumulate = o->op == REDUCE_SUM && !gpurun_dtype_is_real((enum gpurun_dtype)o->dtype)
                            ? REDUCE_WIDE
                            : REDUCE_SAME;
    s->kind = choose_kind(o);
    s->flip =
        gpurun_key_flip((enum gpurun_dtype)o->dtype, o->op == REDUCE_MIN || o->op == REDUCE_ARGMIN);
    GPURUN_TRY(ask_tensors(ctx, o));

    ctx->work = (struct gpurun_work){
        .bytes_read = (double)s->in->bytes,
        .bytes_written = (double)(s->value->bytes + (s->index ? s->index->bytes : 0)),
        .elements = (double)o->n,
    };
    return GPURUN_OK;
}

#ifdef GPURUN_WITH_CUDA
static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    return reduce_options_of(ctx)->n == 0 ? reduce_launch_nothing(ctx) : v->launch(ctx);
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
    .name = "reduce",
    .summary = "the sum of an array, its least or largest element, or where that is",
    .options = options,
#ifdef GPURUN_WITH_CUDA
    .variant_count = GPURUN_COUNT(variants),
    .variants = variants,
    .run_gpu = run_gpu,
#endif
    .options_bytes = sizeof(struct reduce_options),
    .state_bytes = sizeof(struct reduce_state),
    .memory = GPURUN_MEMORY_ALL,
    .memory_default = GPURUN_EXPLICIT,
    .memory_why = "device memory is read once, at ten times the speed of the link and more",
    .setup = setup,
    .run_cpu = reduce_run_cpu,
    .verify = reduce_verify,
    .teardown = teardown,
};
