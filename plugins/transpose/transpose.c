/*
 * transpose: rows become columns.
 */
#include "transpose.h"
#include <inttypes.h>
#include <string.h>

enum { TRANSPOSE_DEFAULT_SIDE = 1000 };

#define OPTION(field) .offset = offsetof(struct transpose_options, field), .name = #field

static const char *const dtypes[] = {"uint8", "int16", "int32", "int64", "float", "double", NULL};

static const struct gpurun_option options[] = {
    {OPTION(rows), .type = GPURUN_OPTION_INT, .def = "auto", .max = 1e18, .unit = "rows",
     .flags = GPURUN_OPTION_AUTO, .help = "rows of `a`; auto: the file's, else 1000"},
    {OPTION(cols), .type = GPURUN_OPTION_INT, .def = "auto", .max = 1e18, .unit = "columns",
     .flags = GPURUN_OPTION_AUTO, .help = "columns of `a`; auto: the file's, else 1000"},
    {OPTION(dtype), .type = GPURUN_OPTION_DTYPE, .def = "auto", .choices = dtypes,
     .flags = GPURUN_OPTION_AUTO, .help = "element type; auto: the file's, else float"},
    {OPTION(batch), .type = GPURUN_OPTION_INT, .def = "1", .max = 1e18, .unit = "matrices",
     .help = "so many matrices, one behind the other"},
    {OPTION(inplace), .type = GPURUN_OPTION_BOOL, .def = "no",
     .help = "square matrices: the answer takes the place of the input"},
};

#ifdef GPURUN_WITH_CUDA
static const struct gpurun_variant variants[] = {
    {.name = "naive_read",
     .idea = "one thread per element: a warp reads a row, and writes to 32 rows",
     .supported = transpose_apart_supported,
     .launch = transpose_launch_naive_read},
    {.name = "naive_write",
     .idea = "the other way round: a warp reads from 32 rows, and writes a row",
     .supported = transpose_apart_supported,
     .launch = transpose_launch_naive_write},
    {.name = "tiled16",
     .idea = "a 16x16 tile turned in shared memory, whose banks conflict eightfold",
     .supported = transpose_apart_supported,
     .launch = transpose_launch_tiled16},
    {.name = "padded16",
     .idea = "the same with rows of 17: the conflicts are gone",
     .supported = transpose_apart_supported,
     .launch = transpose_launch_padded16},
    {.name = "diagonal",
     .idea = "the same with blocks numbered along diagonals, against partition camping",
     .supported = transpose_apart_supported,
     .launch = transpose_launch_diagonal},
    {.name = "inplace_square",
     .idea = "a block swaps two tiles that mirror each other; in place, square only",
     .supported = transpose_inplace_square_supported,
     .launch = transpose_launch_inplace_square},
    {.name = "vector",
     .idea =
         "16-byte accesses, turned in registers and a swizzled tile; odd pitches by whole lines",
     .supported = transpose_apart_supported,
     .launch = transpose_launch_vector},
    {.name = "cublas",
     .idea = "cublasSgeam, cublasDgeam; may give another NaN for a NaN",
     .capabilities = GPURUN_PEER,
     .supported = transpose_cublas_supported,
     .launch = transpose_launch_cublas},
};
#endif

/* --- setup -------------------------------------------------------------------------------------------- */

static enum gpurun_status take_dim(struct gpurun_ctx *ctx, const char *key, int64_t *dim,
                                   int64_t file)
{
    if (*dim == GPURUN_AUTO)
        *dim = file;
    if (*dim != file)
        return gpurun_fail(ctx, GPURUN_INVALID, key, "%" PRId64 ", but the file has %" PRId64, *dim,
                           file);
    return GPURUN_OK;
}

/* A file without a shape of two dimensions or three: rows and cols must say it. */
static enum gpurun_status fit_flat(struct gpurun_ctx *ctx, const struct transpose_options *o,
                                   const struct gpurun_shape *shape)
{
    int64_t elems;

    if (shape->rank != 1)
        return gpurun_fail(ctx, GPURUN_INVALID, "input",
                           "the file has %d dimensions; transpose takes two, or three with batch",
                           shape->rank);
    if (o->rows == GPURUN_AUTO || o->cols == GPURUN_AUTO)
        return gpurun_fail(ctx, GPURUN_INVALID, o->rows == GPURUN_AUTO ? "rows" : "cols",
                           "the file does not tell rows from columns: say both");
    if (__builtin_mul_overflow(o->rows, o->cols, &elems) ||
        __builtin_mul_overflow(elems, o->batch, &elems) || elems != shape->dims[0])
        return gpurun_fail(ctx, GPURUN_INVALID, "rows",
                           "%" PRId64 " matrices of %" PRId64 " x %" PRId64
                           ", but the file has %" PRId64 " elements",
                           o->batch, o->rows, o->cols, shape->dims[0]);
    return GPURUN_OK;
}

static enum gpurun_status fit_file(struct gpurun_ctx *ctx, struct transpose_options *o,
                                   const struct gpurun_shape *shape)
{
    const int64_t *dims = shape->dims;

    if (shape->rank == 3) {
        if (o->batch != dims[0])
            return gpurun_fail(ctx, GPURUN_INVALID, "batch",
                               "%" PRId64 ", but the file has %" PRId64 " matrices (of %" PRId64
                               " x %" PRId64 "); a picture with colours is no matrix",
                               o->batch, dims[0], dims[1], dims[2]);
        dims++;
    } else if (shape->rank != 2) {
        return fit_flat(ctx, o, shape);
    } else if (o->batch != 1) {
        return gpurun_fail(ctx, GPURUN_INVALID, "batch", "%" PRId64 ", but the file has one matrix",
                           o->batch);
    }
    GPURUN_TRY(take_dim(ctx, "rows", &o->rows, dims[0]));
    return take_dim(ctx, "cols", &o->cols, dims[1]);
}

/* Without a file: in place one side makes the other. */
static void fit_nothing(struct transpose_options *o)
{
    if (o->inplace && o->rows == GPURUN_AUTO)
        o->rows = o->cols;
    if (o->inplace && o->cols == GPURUN_AUTO)
        o->cols = o->rows;
    if (o->rows == GPURUN_AUTO)
        o->rows = TRANSPOSE_DEFAULT_SIDE;
    if (o->cols == GPURUN_AUTO)
        o->cols = TRANSPOSE_DEFAULT_SIDE;
}

static bool takes_dtype(int64_t dtype)
{
    for (int i = 0; dtypes[i]; i++)
        if (strcmp(dtypes[i], gpurun_dtype_name((enum gpurun_dtype)dtype)) == 0)
            return true;
    return false;
}

static enum gpurun_status fit_input(struct gpurun_ctx *ctx, struct transpose_options *o)
{
    struct gpurun_shape shape = {.dtype = o->dtype};

    GPURUN_TRY(gpurun_input_shape(ctx, "a", &shape));
    o->dtype = shape.dtype == GPURUN_AUTO ? GPURUN_FLOAT : shape.dtype;
    if (!takes_dtype(o->dtype))
        return gpurun_fail(ctx, GPURUN_INVALID, "dtype",
                           "the file's is %s; transpose takes uint8 int16 int32 int64 float double",
                           gpurun_dtype_name((enum gpurun_dtype)o->dtype));
    if (shape.rank > 0)
        return fit_file(ctx, o, &shape);
    fit_nothing(o);
    return GPURUN_OK;
}

static enum gpurun_status check_options(struct gpurun_ctx *ctx, const struct transpose_options *o)
{
    int64_t bytes;

    if (__builtin_mul_overflow(o->rows, o->cols, &bytes) ||
        __builtin_mul_overflow(bytes, o->batch, &bytes) ||
        __builtin_mul_overflow(bytes, (int64_t)transpose_elem_bytes(ctx), &bytes))
        return gpurun_fail(ctx, GPURUN_INVALID, "rows",
                           "%" PRId64 " matrices of %" PRId64 " x %" PRId64
                           " are more bytes than 64 bits can address",
                           o->batch, o->rows, o->cols);
    if (o->inplace && o->rows != o->cols)
        return gpurun_fail(ctx, GPURUN_INVALID, "inplace",
                           "%" PRId64 " x %" PRId64 " is not square: only square matrices are "
                           "transposed in place; leave inplace = no",
                           o->rows, o->cols);
    return GPURUN_OK;
}

static struct gpurun_tensor *ask_tensor(struct gpurun_ctx *ctx, const char *name,
                                        enum gpurun_role role, int64_t rows, int64_t cols)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    const int64_t dims[] = {o->batch, rows, cols};
    const bool one = o->batch == 1;

    return gpurun_tensor(ctx, name, role, (enum gpurun_dtype)o->dtype, one ? 2 : 3,
                         one ? dims + 1 : dims);
}

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    struct transpose_options *o = ctx->options;
    struct transpose_state *s = ctx->state;

    GPURUN_TRY(fit_input(ctx, o));
    GPURUN_TRY(check_options(ctx, o));
    s->in = ask_tensor(ctx, "a", o->inplace ? GPURUN_INOUT : GPURUN_IN, o->rows, o->cols);
    s->out = o->inplace ? s->in : ask_tensor(ctx, "b", GPURUN_OUT, o->cols, o->rows);
    if (!s->in || !s->out)
        return GPURUN_INVALID;

    ctx->work = (struct gpurun_work){
        .bytes_read = (double)s->in->bytes,
        .bytes_written = (double)s->out->bytes,
        .elements = (double)s->in->elems,
    };
    return GPURUN_OK;
}

/* --- the other hooks ---------------------------------------------------------------------------------- */

#ifdef GPURUN_WITH_CUDA
static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    struct transpose_state *s = ctx->state;

    s->by_value = (v->capabilities & GPURUN_PEER) != 0;
    return s->in->elems > 0 ? v->launch(ctx) : GPURUN_OK;
}
#endif

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
    .name = "transpose",
    .summary = "rows become columns: the bytes of a matrix, moved as they are",
    .options = options,
#ifdef GPURUN_WITH_CUDA
    .variant_count = GPURUN_COUNT(variants),
    .variants = variants,
    .run_gpu = run_gpu,
#endif
    .options_bytes = sizeof(struct transpose_options),
    .state_bytes = sizeof(struct transpose_state),
    .memory = GPURUN_MEMORY_ALL,
    .memory_default = GPURUN_EXPLICIT,
    .memory_why = "as much is written as is read, and a link is far slower than device memory",
    .setup = setup,
    .run_cpu = transpose_run_cpu,
    .verify = transpose_verify,
    .teardown = teardown,
};
