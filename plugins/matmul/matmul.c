/*
 * matmul: the product of two matrices, alpha A B + beta C.
 */
#include "matmul.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MATMUL_DEFAULT_SIZE = 1000 };

#define OPTION(field) .offset = offsetof(struct matmul_options, field), .name = #field
#define SIZE(field, text)                                                                          \
    {                                                                                              \
        OPTION(field), .type = GPURUN_OPTION_INT, .def = "auto", .max = 1e18, .unit = "elements",  \
                       .flags = GPURUN_OPTION_AUTO, .help = text                                   \
    }

static const char *const dtypes[] = {"int32", "int64", "float", "double", "half", "bfloat16", NULL};
static const char *const computes[] = {"default", "tf32", NULL};

static const struct gpurun_option options[] = {
    SIZE(m, "rows of A and of the product; auto: the file's, else 1000"),
    SIZE(n, "columns of B and of the product; auto: the file's, else 1000"),
    SIZE(k, "columns of A, rows of B; auto: the file's, else 1000"),
    {OPTION(batch), .type = GPURUN_OPTION_INT, .def = "1", .min = 1, .max = 1e9, .unit = "products",
     .help = "so many products at once; above 1 the tensors have three dimensions"},
    {OPTION(dtype), .type = GPURUN_OPTION_DTYPE, .def = "auto", .choices = dtypes,
     .flags = GPURUN_OPTION_AUTO, .help = "element type; auto: the file's, else float"},
    {OPTION(compute), .type = GPURUN_OPTION_CHOICE, .def = "default", .choices = computes,
     .help = "tf32: float inputs may be rounded to 11 bits before they are multiplied"},
    {OPTION(transpose_a), .type = GPURUN_OPTION_BOOL, .def = "no",
     .help = "the tensor a holds A transposed: k rows of m"},
    {OPTION(transpose_b), .type = GPURUN_OPTION_BOOL, .def = "no",
     .help = "the tensor b holds B transposed: n rows of k"},
    {OPTION(alpha), .type = GPURUN_OPTION_REAL, .def = "1",
     .help = "factor of A B; whole for whole numbers"},
    {OPTION(beta), .type = GPURUN_OPTION_REAL, .def = "0",
     .help = "factor of C; at 0 there is no input c"},
    SIZE(lda, "from one row of the tensor a to the next; auto: the file's, else no gap"),
    SIZE(ldb, "from one row of the tensor b to the next; auto: the file's, else no gap"),
    SIZE(ldc, "from one row of c and of the product to the next; auto: the file's, else no gap"),
};

#ifdef GPURUN_WITH_CUDA
static const struct gpurun_variant variants[] = {
    {.name = "global_accumulate",
     .idea = "one thread per element, whose sum lives in global memory",
     .supported = matmul_global_accumulate_supported,
     .scratch_bytes = matmul_global_accumulate_scratch,
     .launch = matmul_launch_global_accumulate},
    {.name = "naive",
     .idea = "one thread per element, whose sum lives in a register",
     .supported = matmul_naive_supported,
     .launch = matmul_launch_naive},
    {.name = "tiled",
     .idea = "32 x 32 tiles of A and B in shared memory, each read 32 times from there",
     .supported = matmul_tiled_supported,
     .launch = matmul_launch_tiled},
    {.name = "register",
     .idea = "a tile of the product in each thread's registers; the next tiles arrive meanwhile",
     .supported = matmul_register_supported,
     .launch = matmul_launch_register},
    {.name = "tensor",
     .idea = "tensor cores: wgmma fed by TMA on Hopper, else mma.sync fed by cp.async",
     .min_compute = 80,
     .supported = matmul_tensor_supported,
     .launch = matmul_launch_tensor},
    {.name = "cublas",
     .idea = "cublasGemmStridedBatchedEx",
     .capabilities = GPURUN_PEER,
     .supported = matmul_cublas_supported,
     .scratch_bytes = matmul_cublas_scratch,
     .launch = matmul_launch_cublas},
};
#endif

/* The options that say how a tensor is stored: `rows` of `cols`, `ld` apart. */
struct stored {
    const char *name, *rows_key, *cols_key, *ld_key;
    int64_t *rows, *cols, *ld;
};

static enum gpurun_status fit_rank(struct gpurun_ctx *ctx, const struct stored *t,
                                   const struct gpurun_shape *shape)
{
    const int64_t batch = matmul_options_of(ctx)->batch;
    const int rank = batch > 1 ? 3 : 2;

    if (shape->rank != rank)
        return gpurun_fail(ctx, GPURUN_INVALID, "input",
                           "the file of %s has %d dimensions; with batch = %" PRId64
                           " it must have %d",
                           t->name, shape->rank, batch, rank);
    if (rank == 3 && shape->dims[0] != batch)
        return gpurun_fail(ctx, GPURUN_INVALID, "batch",
                           "%" PRId64 ", but the file of %s has %" PRId64, batch, t->name,
                           shape->dims[0]);
    return GPURUN_OK;
}

/* What a file says of a matrix; it may have more columns than are asked for, but not more rows. */
static enum gpurun_status fit_file(struct gpurun_ctx *ctx, const struct stored *t, int64_t *dtype)
{
    struct gpurun_shape shape = {.dtype = *dtype};
    int64_t rows, cols;

    GPURUN_TRY(gpurun_input_shape(ctx, t->name, &shape));
    *dtype = shape.dtype;
    if (shape.rank == 0)
        return GPURUN_OK;
    GPURUN_TRY(fit_rank(ctx, t, &shape));
    rows = shape.dims[shape.rank - 2];
    cols = shape.dims[shape.rank - 1];
    if (*t->rows != GPURUN_AUTO && *t->rows != rows)
        return gpurun_fail(ctx, GPURUN_INVALID, t->rows_key,
                           "%" PRId64 ", but the file of %s has %" PRId64 " rows", *t->rows,
                           t->name, rows);
    if (*t->ld != GPURUN_AUTO && *t->ld != cols)
        return gpurun_fail(ctx, GPURUN_INVALID, t->ld_key,
                           "%" PRId64 ", but rows in the file of %s are %" PRId64 " long", *t->ld,
                           t->name, cols);
    *t->rows = rows;
    *t->ld = cols;
    if (*t->cols == GPURUN_AUTO)
        *t->cols = cols;
    return GPURUN_OK;
}

static enum gpurun_status fit_files(struct gpurun_ctx *ctx, struct matmul_options *o,
                                    struct stored t[3])
{
    for (int i = 0; i < (o->beta != 0 ? 3 : 2); i++)
        GPURUN_TRY(fit_file(ctx, &t[i], &o->dtype));
    if (o->dtype == GPURUN_AUTO)
        o->dtype = GPURUN_FLOAT;
    for (size_t i = 0; dtypes[i]; i++)
        if (strcmp(dtypes[i], gpurun_dtype_name((enum gpurun_dtype)o->dtype)) == 0)
            return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_INVALID, "dtype",
                       "the file's is %s; matmul takes int32 int64 float double half bfloat16",
                       gpurun_dtype_name((enum gpurun_dtype)o->dtype));
}

/* Sizes that nobody said, and gaps between rows. */
static enum gpurun_status fit_sizes(struct gpurun_ctx *ctx, const struct matmul_options *o,
                                    const struct stored t[3])
{
    for (int i = 0; i < 3; i++) {
        int64_t elems, bytes;

        *t[i].rows = *t[i].rows == GPURUN_AUTO ? MATMUL_DEFAULT_SIZE : *t[i].rows;
        *t[i].cols = *t[i].cols == GPURUN_AUTO ? MATMUL_DEFAULT_SIZE : *t[i].cols;
        *t[i].ld = *t[i].ld == GPURUN_AUTO ? *t[i].cols : *t[i].ld;
        if (*t[i].ld < *t[i].cols)
            return gpurun_fail(ctx, GPURUN_INVALID, t[i].ld_key,
                               "%" PRId64 " is less than a row's %s = %" PRId64 " elements",
                               *t[i].ld, t[i].cols_key, *t[i].cols);
        if (__builtin_mul_overflow(*t[i].rows, *t[i].ld, &elems) ||
            __builtin_mul_overflow(elems, 8 * o->batch, &bytes))
            return gpurun_fail(ctx, GPURUN_INVALID, t[i].rows_key,
                               "%" PRId64 " rows of %" PRId64
                               " elements are more than 64 bits can address",
                               *t[i].rows, *t[i].ld);
    }
    return GPURUN_OK;
}

static enum gpurun_status check_factor(struct gpurun_ctx *ctx, const char *key, double value)
{
    const bool is_whole = matmul_is_whole(matmul_dtype_of(ctx));

    if (!isfinite(value))
        return gpurun_fail(ctx, GPURUN_INVALID, key, "%g is not a finite number", value);
    if (is_whole && (value < rint(value) || value > rint(value) || fabs(value) > 0x1p53))
        return gpurun_fail(ctx, GPURUN_INVALID, key,
                           "%g is no whole number up to 2^53, which %s needs", value,
                           gpurun_dtype_name(matmul_dtype_of(ctx)));
    if (value != 0 && matmul_scalar(ctx, value) == 0)
        return gpurun_fail(ctx, GPURUN_INVALID, key,
                           "%g is 0 as a float, which %s accumulates in: say 0, or a number above "
                           "1e-45 in magnitude",
                           value, gpurun_dtype_name(matmul_dtype_of(ctx)));
    if (!isfinite(matmul_scalar(ctx, value)))
        return gpurun_fail(ctx, GPURUN_INVALID, key,
                           "%g is more than a float holds, which %s accumulates in", value,
                           gpurun_dtype_name(matmul_dtype_of(ctx)));
    return GPURUN_OK;
}

static enum gpurun_status check_options(struct gpurun_ctx *ctx, const struct matmul_options *o)
{
    if (o->compute == MATMUL_COMPUTE_TF32 && o->dtype != GPURUN_FLOAT)
        return gpurun_fail(ctx, GPURUN_INVALID, "compute", "tf32 is for float, not for %s",
                           gpurun_dtype_name((enum gpurun_dtype)o->dtype));
    GPURUN_TRY(check_factor(ctx, "alpha", o->alpha));
    return check_factor(ctx, "beta", o->beta);
}

static struct matmul_layout layout_of(const struct matmul_options *o)
{
    struct matmul_layout l = {.m = o->m, .n = o->n, .k = o->k, .batch = o->batch};

    l.a_row = o->transpose_a ? 1 : o->lda;
    l.a_col = o->transpose_a ? o->lda : 1;
    l.a_batch = (o->transpose_a ? o->k : o->m) * o->lda;
    l.b_row = o->transpose_b ? 1 : o->ldb;
    l.b_col = o->transpose_b ? o->ldb : 1;
    l.b_batch = (o->transpose_b ? o->n : o->k) * o->ldb;
    l.ldc = o->ldc;
    l.c_batch = o->m * o->ldc;
    return l;
}

static struct gpurun_tensor *ask(struct gpurun_ctx *ctx, const char *name, enum gpurun_role role,
                                 int64_t rows, int64_t ld)
{
    const struct matmul_options *o = matmul_options_of(ctx);
    const int64_t dims[] = {o->batch, rows, ld};
    const int first = o->batch > 1 ? 0 : 1;

    return gpurun_tensor(ctx, name, role, (enum gpurun_dtype)o->dtype, 3 - first, dims + first);
}

static enum gpurun_status ask_tensors(struct gpurun_ctx *ctx, const struct matmul_options *o)
{
    struct matmul_state *s = ctx->state;

    s->a = ask(ctx, "a", GPURUN_IN, o->transpose_a ? o->k : o->m, o->lda);
    s->b = ask(ctx, "b", GPURUN_IN, o->transpose_b ? o->n : o->k, o->ldb);
    if (o->beta != 0)
        s->c = ask(ctx, "c", GPURUN_IN, o->m, o->ldc);
    s->product = ask(ctx, "product", GPURUN_OUT, o->m, o->ldc);
    return s->a && s->b && s->product && (s->c || !(o->beta != 0)) ? GPURUN_OK : GPURUN_INVALID;
}

static struct gpurun_work work_of(const struct gpurun_ctx *ctx, const struct matmul_options *o)
{
    const double bytes = (double)gpurun_dtype_bytes((enum gpurun_dtype)o->dtype);
    const double m = (double)o->m, n = (double)o->n, k = (double)o->k, batch = (double)o->batch;
    const bool has_product = matmul_has_product(ctx) && o->m > 0 && o->n > 0;
    struct gpurun_work work = {.elements = batch * m * n, .bytes_written = batch * m * n * bytes};

    work.bytes_read = o->beta != 0 ? work.bytes_written : 0;
    if (has_product) {
        work.bytes_read += batch * (m + n) * k * bytes;
        work.operations = 2 * batch * m * n * k;
    }
    return work;
}

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    struct matmul_options *o = ctx->options;
    struct stored t[] = {
        {"a", "m", "k", "lda", &o->m, &o->k, &o->lda},
        {"b", "k", "n", "ldb", &o->k, &o->n, &o->ldb},
        {"c", "m", "n", "ldc", &o->m, &o->n, &o->ldc},
    };

    if (o->transpose_a)
        t[0] = (struct stored){"a", "k", "m", "lda", &o->k, &o->m, &o->lda};
    if (o->transpose_b)
        t[1] = (struct stored){"b", "n", "k", "ldb", &o->n, &o->k, &o->ldb};
    GPURUN_TRY(fit_files(ctx, o, t));
    GPURUN_TRY(fit_sizes(ctx, o, t));
    GPURUN_TRY(check_options(ctx, o));
    matmul_state_of(ctx)->layout = layout_of(o);
    ctx->work = work_of(ctx, o);
    return ask_tensors(ctx, o);
}

#ifdef GPURUN_WITH_CUDA
static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    if (ctx->work.elements <= 0)
        return GPURUN_OK;
    return matmul_has_product(ctx) ? v->launch(ctx) : matmul_launch_nothing(ctx);
}
#endif

static void teardown(struct gpurun_ctx *ctx)
{
    struct matmul_state *s = ctx->state;

    if (!s)
        return;
    free(s->truth.lines);
    free(s->truth.memory);
    s->truth = (struct matmul_truth){0};
}

const struct gpurun_plugin gpurun_plugin = {
    .magic = GPURUN_MAGIC,
    .abi_major = GPURUN_ABI_MAJOR,
    .abi_minor = GPURUN_ABI_MINOR,
    .struct_size = sizeof(struct gpurun_plugin),
    .option_size = sizeof(struct gpurun_option),
    .option_count = GPURUN_COUNT(options),
    .variant_size = sizeof(struct gpurun_variant),
    .name = "matmul",
    .summary = "the product of two matrices, alpha A B + beta C",
    .options = options,
#ifdef GPURUN_WITH_CUDA
    .variant_count = GPURUN_COUNT(variants),
    .variants = variants,
    .run_gpu = run_gpu,
#endif
    .options_bytes = sizeof(struct matmul_options),
    .state_bytes = sizeof(struct matmul_state),
    .memory = GPURUN_MEMORY_ALL,
    .memory_default = GPURUN_EXPLICIT,
    .memory_why = "every element is read many times, so it has to be on the device",
    .setup = setup,
    .run_cpu = matmul_run_cpu,
    .verify = matmul_verify,
    .teardown = teardown,
};
