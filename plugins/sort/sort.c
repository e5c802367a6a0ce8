/*
 * sort: orders keys, alone or with a value each, stably and in either direction.
 */
#include "sort.h"
#include <inttypes.h>
#include <stdlib.h>

enum { SORT_DEFAULT_N = 1000000 };

#define OPTION(field) .offset = offsetof(struct sort_options, field), .name = #field

static const char *const dtypes[] = {"int32", "uint32", "int64", "uint64", "float", "double", NULL};
static const char *const orders[] = {"ascending", "descending", NULL};
static const char *const value_types[] = {"none", "uint32", "uint64", NULL};

static const struct gpurun_option options[] = {
    {OPTION(n), .type = GPURUN_OPTION_INT, .def = "auto", .max = 1e18, .unit = "elements",
     .flags = GPURUN_OPTION_AUTO, .help = "elements to sort; auto: the file's, else 1M"},
    {OPTION(dtype), .type = GPURUN_OPTION_DTYPE, .def = "auto", .choices = dtypes,
     .flags = GPURUN_OPTION_AUTO, .help = "type of the keys; auto: the file's, else int32"},
    {OPTION(order), .type = GPURUN_OPTION_CHOICE, .def = "ascending", .choices = orders,
     .help = "stable in either direction; NaN is last in either"},
    {OPTION(values), .type = GPURUN_OPTION_CHOICE, .def = "none", .choices = value_types,
     .help = "type of the value that travels with each key; input.values fills them"},
    {OPTION(steps), .type = GPURUN_OPTION_INT, .def = "0", .min = 0, .max = 1, .unit = "steps",
     .help = "1: only quicksort's first partition step, with its bounds; 0: the whole sort"},
    {OPTION(block), .type = GPURUN_OPTION_INT, .def = "256", .min = 32, .max = 1024,
     .unit = "threads", .flags = GPURUN_OPTION_TUNABLE,
     .help = "threads per block of the steps that odd_even and bitonic take in global memory"},
};

#ifdef GPURUN_WITH_CUDA
static const struct gpurun_variant variants[] = {
    {.name = "odd_even",
     .idea = "Batcher's odd-even merge network: the same comparisons whatever the data",
     .supported = sort_whole_supported,
     .scratch_bytes = sort_odd_even_scratch,
     .launch = sort_launch_odd_even},
    {.name = "bitonic",
     .idea = "bitonic network: in shared memory while a tile holds it, then in global memory",
     .supported = sort_whole_supported,
     .scratch_bytes = sort_bitonic_scratch,
     .launch = sort_launch_bitonic},
    {.name = "merge",
     .idea = "sorted tiles, merged in pairs; blocks share each merge by merge path",
     .supported = sort_whole_supported,
     .scratch_bytes = sort_merge_scratch,
     .launch = sort_launch_merge},
    {.name = "quicksort",
     .idea = "three-way partition by ballots; the device launches the next level by itself",
     .scratch_bytes = sort_quicksort_scratch,
     .launch = sort_launch_quicksort},
    {.name = "split",
     .idea = "radix sort of one bit at a time: a scan says where zeros and ones go",
     .supported = sort_whole_supported,
     .scratch_bytes = sort_split_scratch,
     .launch = sort_launch_split},
    {.name = "radix",
     .idea = "radix sort of eight bits at a time: histogram, scan and scatter as kernels",
     .supported = sort_whole_supported,
     .scratch_bytes = sort_radix_scratch,
     .launch = sort_launch_radix},
    {.name = "onesweep",
     .idea = "eight bits in one pass: tiles look back for where they write",
     .supported = sort_onesweep_supported,
     .scratch_bytes = sort_onesweep_scratch,
     .launch = sort_launch_onesweep},
    {.name = "cub",
     .idea = "cub::DeviceRadixSort",
     .capabilities = GPURUN_PEER | GPURUN_FLOAT_BY_BITS,
     .supported = sort_cub_supported,
     .scratch_bytes = sort_cub_scratch,
     .launch = sort_launch_cub},
};
#endif

/* What a file says of the inputs, and defaults for what nobody says. */
static enum gpurun_status fit_input(struct gpurun_ctx *ctx, struct sort_options *o,
                                    const char *name, int64_t *dtype)
{
    struct gpurun_shape shape = {.dtype = *dtype};

    GPURUN_TRY(gpurun_input_shape(ctx, name, &shape));
    *dtype = shape.dtype;
    if (shape.rank > 1)
        return gpurun_fail(ctx, GPURUN_INVALID, "input",
                           "the file has %d dimensions; sort takes one", shape.rank);
    if (shape.rank == 1 && o->n == GPURUN_AUTO)
        o->n = shape.dims[0];
    if (shape.rank == 1 && o->n != shape.dims[0])
        return gpurun_fail(ctx, GPURUN_INVALID, "n", "%" PRId64 ", but the file of %s has %" PRId64,
                           o->n, name, shape.dims[0]);
    return GPURUN_OK;
}

static enum gpurun_status fit_inputs(struct gpurun_ctx *ctx, struct sort_options *o,
                                     enum gpurun_dtype value_dtype)
{
    int64_t value = value_dtype;

    GPURUN_TRY(fit_input(ctx, o, "keys", &o->dtype));
    if (o->values != SORT_VALUES_NONE)
        GPURUN_TRY(fit_input(ctx, o, "values", &value));
    if (o->dtype == GPURUN_AUTO)
        o->dtype = GPURUN_INT32;
    if (o->n == GPURUN_AUTO)
        o->n = SORT_DEFAULT_N;
    if (o->dtype < GPURUN_INT32)
        return gpurun_fail(ctx, GPURUN_INVALID, "dtype",
                           "the file's is %s; sort takes int32 uint32 int64 uint64 float double",
                           gpurun_dtype_name((enum gpurun_dtype)o->dtype));
    return GPURUN_OK;
}

static enum gpurun_status check_options(struct gpurun_ctx *ctx, const struct sort_options *o)
{
    const bool is_real = gpurun_dtype_is_real((enum gpurun_dtype)o->dtype);
    int64_t bytes;

    if (__builtin_mul_overflow(o->n, 16, &bytes))
        return gpurun_fail(ctx, GPURUN_INVALID, "n",
                           "%" PRId64 " elements are more than 64 bits can address", o->n);
    if (sort_is_one_step(ctx) && (is_real || o->values != SORT_VALUES_NONE))
        return gpurun_fail(ctx, GPURUN_INVALID, "steps",
                           "a step is shown of whole numbers without values");
    return GPURUN_OK;
}

static enum gpurun_status ask_tensors(struct gpurun_ctx *ctx, const struct sort_options *o,
                                      enum gpurun_dtype value_dtype)
{
    struct sort_state *s = sort_state_of(ctx);
    const enum gpurun_dtype dtype = (enum gpurun_dtype)o->dtype;
    const int64_t n = o->n, two = 2;

    s->keys = gpurun_tensor(ctx, "keys", GPURUN_IN, dtype, 1, &n);
    if (o->values != SORT_VALUES_NONE)
        s->values = gpurun_tensor(ctx, "values", GPURUN_IN, value_dtype, 1, &n);
    s->sorted = gpurun_tensor(ctx, "sorted", GPURUN_OUT, dtype, 1, &n);
    if (o->values != SORT_VALUES_NONE)
        s->sorted_values = gpurun_tensor(ctx, "sorted_values", GPURUN_OUT, value_dtype, 1, &n);
    if (sort_is_one_step(ctx))
        s->bounds = gpurun_tensor(ctx, "bounds", GPURUN_OUT, GPURUN_INT64, 1, &two);
    if (s->sorted)
        s->sorted->varies = sort_is_one_step(ctx); /* a partition's sides are in any order */
    if (!s->keys || !s->sorted || (sort_is_one_step(ctx) && !s->bounds))
        return GPURUN_INVALID;
    return o->values == SORT_VALUES_NONE || (s->values && s->sorted_values) ? GPURUN_OK
                                                                            : GPURUN_INVALID;
}

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    struct sort_options *o = ctx->options;
    struct sort_state *s = ctx->state;
    const enum gpurun_dtype value_dtype =
        o->values == SORT_VALUES_UINT64 ? GPURUN_UINT64 : GPURUN_UINT32;
    double bytes;

    GPURUN_TRY(fit_inputs(ctx, o, value_dtype));
    GPURUN_TRY(check_options(ctx, o));
    s->elem_bytes = gpurun_dtype_bytes((enum gpurun_dtype)o->dtype);
    s->value_bytes = o->values == SORT_VALUES_NONE ? 0 : gpurun_dtype_bytes(value_dtype);
    s->map = sort_map_for((enum gpurun_dtype)o->dtype, o->order == SORT_DESCENDING);
    GPURUN_TRY(ask_tensors(ctx, o, value_dtype));

    bytes = (double)o->n * (double)(s->elem_bytes + s->value_bytes);
    ctx->work =
        (struct gpurun_work){.bytes_read = bytes, .bytes_written = bytes, .elements = (double)o->n};
    return GPURUN_OK;
}

#ifdef GPURUN_WITH_CUDA
static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    if (sort_options_of(ctx)->n == 0 && !sort_is_one_step(ctx))
        return GPURUN_OK;
    return v->launch(ctx);
}
#endif

static void teardown(struct gpurun_ctx *ctx)
{
    struct sort_state *s = ctx->state;

    for (size_t i = 0; s && i < GPURUN_COUNT(s->truth); i++) {
        free(s->truth[i]);
        s->truth[i] = NULL;
    }
    if (s) {
        free(s->room);
        s->room = NULL;
        s->room_bytes = 0;
    }
}

const struct gpurun_plugin gpurun_plugin = {
    .magic = GPURUN_MAGIC,
    .abi_major = GPURUN_ABI_MAJOR,
    .abi_minor = GPURUN_ABI_MINOR,
    .struct_size = sizeof(struct gpurun_plugin),
    .option_size = sizeof(struct gpurun_option),
    .option_count = GPURUN_COUNT(options),
    .variant_size = sizeof(struct gpurun_variant),
    .name = "sort",
    .summary = "keys in order, alone or with a value each; stable in both directions",
    .options = options,
#ifdef GPURUN_WITH_CUDA
    .variant_count = GPURUN_COUNT(variants),
    .variants = variants,
    .run_gpu = run_gpu,
#endif
    .options_bytes = sizeof(struct sort_options),
    .state_bytes = sizeof(struct sort_state),
    .memory = GPURUN_MEMORY_ALL,
    .memory_default = GPURUN_EXPLICIT,
    .memory_why = "every pass reads and writes all of the data, so it has to be on the device",
    .setup = setup,
    .run_cpu = sort_run_cpu,
    .verify = sort_verify,
    .teardown = teardown,
};
