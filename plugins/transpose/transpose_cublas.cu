/*
 * transpose, variant "cublas": the vendor's geam, C = 1 op(A) + 0 B, as a yardstick.
 *
 * Mapping  cuBLAS's own. It counts columns first: a row-major rows x cols matrix is its cols x rows one.
 * Memory   reads and writes each element once.
 * Bound    memory.
 * Limits   float and double, one matrix, sides below 2^31. It multiplies: a NaN may come out as another NaN.
 */
#include "gpurun/cublas.cuh"
#include "transpose_device.cuh"

typedef int cublas_sgeam(void *handle, int turn_a, int turn_b, int m, int n, const float *alpha,
                         const float *a, int lda, const float *beta, const float *b, int ldb,
                         float *c, int ldc);
typedef int cublas_dgeam(void *handle, int turn_a, int turn_b, int m, int n, const double *alpha,
                         const double *a, int lda, const double *beta, const double *b, int ldb,
                         double *c, int ldc);

static cublas_sgeam *sgeam;
static cublas_dgeam *dgeam;

static enum gpurun_status check_options(struct gpurun_ctx *ctx)
{
    const struct transpose_options *o = transpose_options_of(ctx);

    if (o->dtype != GPURUN_FLOAT && o->dtype != GPURUN_DOUBLE)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "dtype",
                           "cuBLAS has geam for float and double alone, not for %s",
                           gpurun_dtype_name(static_cast<enum gpurun_dtype>(o->dtype)));
    if (o->batch != 1)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "batch",
                           "geam takes one matrix at a time, so that launches would be timed: "
                           "set batch = 1");
    if (o->rows > INT32_MAX || o->cols > INT32_MAX)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, o->rows > INT32_MAX ? "rows" : "cols",
                           "cuBLAS counts rows and columns in 32 bits: at most %d", INT32_MAX);
    return transpose_apart_supported(ctx);
}

enum gpurun_status transpose_cublas_supported(struct gpurun_ctx *ctx)
{
    GPURUN_TRY(check_options(ctx));
    GPURUN_TRY(gpurun_cublas_open(ctx));
    GPURUN_TRY(gpurun_cublas_find(ctx, "cublasSgeam", &sgeam));
    return gpurun_cublas_find(ctx, "cublasDgeam", &dgeam);
}

/* C = 1 A' + 0 C. */
template <typename ELEM, typename GEAM> static int geam(struct gpurun_ctx *ctx, GEAM *function)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    const struct transpose_state *s = transpose_state_of(ctx);
    const int rows = static_cast<int>(o->rows), cols = static_cast<int>(o->cols);
    const ELEM one = 1, zero = 0;
    ELEM *out = static_cast<ELEM *>(s->out->dev);

    return function(gpurun_cublas_kept.handle, GPURUN_CUBLAS_TRANSPOSED, GPURUN_CUBLAS_PLAIN, rows,
                    cols, &one, static_cast<const ELEM *>(s->in->dev), cols, &zero, out, rows, out,
                    rows);
}

enum gpurun_status transpose_launch_cublas(struct gpurun_ctx *ctx)
{
    GPURUN_TRY(gpurun_cublas_follow(ctx));
    return transpose_options_of(ctx)->dtype == GPURUN_FLOAT
               ? gpurun_cublas_check(ctx, geam<float>(ctx, sgeam), "cublasSgeam")
               : gpurun_cublas_check(ctx, geam<double>(ctx, dgeam), "cublasDgeam");
}
