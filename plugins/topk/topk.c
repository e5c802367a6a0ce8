/*
 * topk: the k largest or smallest elements of each row, with their indices.
 */
#include "topk.h"
#include "gpurun/key.h"
#include <inttypes.h>

enum { TOPK_DEFAULT_N = 1000000 };

#define OPTION(field) .offset = offsetof(struct topk_options, field), .name = #field

static const char *const dtypes[] = {"int32", "uint32", "int64", "uint64", "float", "double", NULL};
static const char *const orders[] = {"largest", "smallest", NULL};

static const struct gpurun_option options[] = {
    {OPTION(n), .type = GPURUN_OPTION_INT, .def = "auto", .max = 1e18, .unit = "elements",
     .flags = GPURUN_OPTION_AUTO, .help = "elements of a row; auto: the file's, else 1M"},
    {OPTION(rows), .type = GPURUN_OPTION_INT, .def = "auto", .max = 1e18, .unit = "rows",
     .flags = GPURUN_OPTION_AUTO,
     .help = "rows, each with a top k of its own; auto: the file's, else 1"},
    {OPTION(k), .type = GPURUN_OPTION_INT, .def = "20", .max = 1e18, .unit = "elements",
     .help = "elements to select from each row, at most n"},
    {OPTION(dtype), .type = GPURUN_OPTION_DTYPE, .def = "auto", .choices = dtypes,
     .flags = GPURUN_OPTION_AUTO, .help = "element type; auto: the file's, else int32"},
    {OPTION(order), .type = GPURUN_OPTION_CHOICE, .def = "largest", .choices = orders,
     .help = "which end to select; NaN is the largest"},
    {OPTION(distinct), .type = GPURUN_OPTION_BOOL, .def = "no",
     .help = "select each value once, at its lowest index"},
    {OPTION(sorted), .type = GPURUN_OPTION_BOOL, .def = "yes",
     .help = "best first; no: the same elements in any order"},
    {OPTION(block), .type = GPURUN_OPTION_INT, .def = "256", .min = 1, .max = 1024,
     .unit = "threads", .flags = GPURUN_OPTION_TUNABLE, .help = "threads per block of two_pass"},
    {OPTION(grid), .type = GPURUN_OPTION_INT, .def = "32", .min = 1, .max = 65535, .unit = "blocks",
     .flags = GPURUN_OPTION_TUNABLE, .help = "most blocks per row of two_pass"},
};

#ifdef GPURUN_WITH_CUDA
static const struct gpurun_variant variants[] = {
    {.name = "two_pass",
     .idea = "each thread keeps its k best in shared memory, merged per block, then per row",
     .supported = topk_two_pass_supported,
     .scratch_bytes = topk_two_pass_scratch,
     .launch = topk_launch_two_pass},
    {.name = "radix",
     .idea = "finds the k-th key digit by digit, then gathers what is not below it",
     .supported = topk_radix_supported,
     .scratch_bytes = topk_radix_scratch,
     .launch = topk_launch_radix},
    {.name = "band",
     .idea = "a sample gives two limits around the k-th key; one read, then a small band",
     .supported = topk_band_supported,
     .scratch_bytes = topk_band_scratch,
     .launch = topk_launch_band},
    {.name = "maxima",
     .idea = "one read leaves the maximum of every 2 KiB; the k best of those are read again",
     .supported = topk_maxima_supported,
     .scratch_bytes = topk_maxima_scratch,
     .state_bytes = topk_maxima_state,
     .launch = topk_launch_maxima},
    {.name = "cub",
     .idea = "cub::DeviceTopK; distinct: DeviceRadixSort and DeviceSelect::UniqueByKey",
     .capabilities = GPURUN_PEER | GPURUN_UNSORTED | GPURUN_TIES_ANY | GPURUN_FLOAT_BY_BITS,
     .supported = topk_cub_supported,
     .scratch_bytes = topk_cub_scratch,
     .launch = topk_launch_cub},
};
#endif

/* A file of one dimension may be read as several rows, when the job says how many. */
static enum gpurun_status fit_flat_file(struct gpurun_ctx *ctx, struct topk_options *o,
                                        int64_t elems)
{
    int64_t total;

    if (o->rows == GPURUN_AUTO)
        o->rows = 1;
    if (o->n == GPURUN_AUTO)
        o->n = o->rows > 0 ? elems / o->rows : 0;
    if (__builtin_mul_overflow(o->rows, o->n, &total) || total != elems)
        return gpurun_fail(ctx, GPURUN_INVALID, o->rows == 1 ? "n" : "rows",
                           "%" PRId64 " rows of %" PRId64 " elements are not the %" PRId64
                           " elements of the file",
                           o->rows, o->n, elems);
    return GPURUN_OK;
}

static enum gpurun_status fit_dimension(struct gpurun_ctx *ctx, const char *key, int64_t *option,
                                        int64_t of_file)
{
    if (*option == GPURUN_AUTO)
        *option = of_file;
    if (*option != of_file)
        return gpurun_fail(ctx, GPURUN_INVALID, key, "%" PRId64 ", but the file has %" PRId64,
                           *option, of_file);
    return GPURUN_OK;
}

static enum gpurun_status fit_input(struct gpurun_ctx *ctx, struct topk_options *o, int *rank)
{
    struct gpurun_shape shape = {.dtype = o->dtype};

    GPURUN_TRY(gpurun_input_shape(ctx, "in", &shape));
    o->dtype = shape.dtype == GPURUN_AUTO ? GPURUN_INT32 : shape.dtype;
    if (o->dtype < GPURUN_INT32)
        return gpurun_fail(ctx, GPURUN_INVALID, "dtype",
                           "the file's is %s; topk takes int32 uint32 int64 uint64 float double",
                           gpurun_dtype_name((enum gpurun_dtype)o->dtype));
    if (shape.rank > 2)
        return gpurun_fail(ctx, GPURUN_INVALID, "input",
                           "the file has %d dimensions; topk takes n, or rows x n", shape.rank);
    if (shape.rank == 2) {
        GPURUN_TRY(fit_dimension(ctx, "rows", &o->rows, shape.dims[0]));
        GPURUN_TRY(fit_dimension(ctx, "n", &o->n, shape.dims[1]));
    } else if (shape.rank == 1) {
        GPURUN_TRY(fit_flat_file(ctx, o, shape.dims[0]));
    }
    if (o->rows == GPURUN_AUTO)
        o->rows = 1;
    if (o->n == GPURUN_AUTO)
        o->n = TOPK_DEFAULT_N;
    *rank = shape.rank == 2 || o->rows != 1 ? 2 : 1;
    return GPURUN_OK;
}

/* Room for the input and, as k is at most n, for indices of eight bytes. */
static enum gpurun_status check_size(struct gpurun_ctx *ctx, const struct topk_options *o)
{
    int64_t elems, bytes;

    if (o->k > o->n)
        return gpurun_fail(ctx, GPURUN_INVALID, "k", "%" PRId64 " is above n = %" PRId64, o->k,
                           o->n);
    if (__builtin_mul_overflow(o->rows, o->n, &elems) || __builtin_mul_overflow(elems, 8, &bytes) ||
        __builtin_mul_overflow(o->rows, 8, &bytes))
        return gpurun_fail(ctx, GPURUN_INVALID, "n",
                           "%" PRId64 " rows of %" PRId64
                           " elements are more than 64 bits can address",
                           o->rows, o->n);
    return GPURUN_OK;
}

static enum gpurun_status ask_tensors(struct gpurun_ctx *ctx, const struct topk_options *o)
{
    struct topk_state *s = topk_state_of(ctx);
    const enum gpurun_dtype dtype = (enum gpurun_dtype)o->dtype;
    const int64_t all[2] = {o->rows, o->n}, best[2] = {o->rows, o->k};
    const int from = 2 - s->rank;

    s->in = gpurun_tensor(ctx, "in", GPURUN_IN, dtype, s->rank, all + from);
    s->values = gpurun_tensor(ctx, "values", GPURUN_OUT, dtype, s->rank, best + from);
    s->indices = gpurun_tensor(ctx, "indices", GPURUN_OUT, GPURUN_INT64, s->rank, best + from);
    s->count = gpurun_tensor(ctx, "count", GPURUN_OUT, GPURUN_INT64, 1, &o->rows);
    if (!s->in || !s->values || !s->indices || !s->count)
        return GPURUN_INVALID;
    s->values->varies = s->indices->varies = !o->sorted;
    return GPURUN_OK;
}

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    struct topk_options *o = ctx->options;
    struct topk_state *s = ctx->state;

    GPURUN_TRY(fit_input(ctx, o, &s->rank));
    GPURUN_TRY(check_size(ctx, o));
    s->elem_bytes = gpurun_dtype_bytes((enum gpurun_dtype)o->dtype);
    s->is_real = gpurun_dtype_is_real((enum gpurun_dtype)o->dtype);
    s->flip = gpurun_key_flip((enum gpurun_dtype)o->dtype, o->order == TOPK_SMALLEST);
    GPURUN_TRY(ask_tensors(ctx, o));

    ctx->work = (struct gpurun_work){
        .bytes_read = (double)o->rows * (double)o->n * (double)s->elem_bytes,
        .bytes_written = (double)o->rows * (double)o->k * (double)(s->elem_bytes + sizeof(int64_t)),
        .elements = (double)o->rows * (double)o->n,
    };
    return GPURUN_OK;
}

#ifdef GPURUN_WITH_CUDA
static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    const struct topk_options *o = topk_options_of(ctx);

    if (o->rows == 0 || o->k == 0)
        return topk_launch_nothing(ctx);
    return v->launch(ctx);
}
#endif

static void teardown(struct gpurun_ctx *ctx)
{
    struct topk_state *s = ctx->state;

    for (size_t i = 0; s && i < GPURUN_COUNT(s->truth); i++)
        topk_truth_free(&s->truth[i]);
}

const struct gpurun_plugin gpurun_plugin = {
    .magic = GPURUN_MAGIC,
    .abi_major = GPURUN_ABI_MAJOR,
    .abi_minor = GPURUN_ABI_MINOR,
    .struct_size = sizeof(struct gpurun_plugin),
    .option_size = sizeof(struct gpurun_option),
    .option_count = GPURUN_COUNT(options),
    .variant_size = sizeof(struct gpurun_variant),
    .name = "topk",
    .summary = "the k largest or smallest elements of each row, with their indices",
    .options = options,
#ifdef GPURUN_WITH_CUDA
    .variant_count = GPURUN_COUNT(variants),
    .variants = variants,
    .run_gpu = run_gpu,
#endif
    .options_bytes = sizeof(struct topk_options),
    .state_bytes = sizeof(struct topk_state),
    .memory = GPURUN_MEMORY_ALL,
    .memory_default = GPURUN_EXPLICIT,
    .memory_why = "the input is read several times by most variants, the answer is small",
    .setup = setup,
    .run_cpu = topk_run_cpu,
    .verify = topk_verify,
    .teardown = teardown,
};
