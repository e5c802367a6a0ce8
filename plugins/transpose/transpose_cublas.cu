/*
 * transpose, variant "cublas": the vendor's geam, C = 1 op(A) + 0 B, as a yardstick.
 *
 * Mapping  cuBLAS's own. It counts columns first: a row-major rows x cols matrix is its cols x rows one.
 * Memory   reads and writes each element once.
 * Bound    memory.
 * Limits   float and double, one matrix, sides below 2^31. It multiplies: a NaN may come out as another NaN.
 *
 * It is opened when it is first asked for, and kept as long as the process lives.
 */
#include "transpose_device.cuh"
#include <dlfcn.h>

/* What is needed of cublas_v2.h: cuBLAS is opened when it is asked for, and its headers may be missing. */
enum { CUBLAS_SUCCESS = 0, CUBLAS_OP_PLAIN = 0, CUBLAS_OP_TURNED = 1 };

typedef int cublas_create(void **handle);
typedef int cublas_destroy(void *handle);
typedef int cublas_set_stream(void *handle, cudaStream_t stream);
typedef int cublas_sgeam(void *handle, int turn_a, int turn_b, int m, int n, const float *alpha,
                         const float *a, int lda, const float *beta, const float *b, int ldb,
                         float *c, int ldc);
typedef int cublas_dgeam(void *handle, int turn_a, int turn_b, int m, int n, const double *alpha,
                         const double *a, int lda, const double *beta, const double *b, int ldb,
                         double *c, int ldc);

struct cublas {
    int device;   /* that the handle is for */
    void *handle; /* NULL: none is open */
    cublas_destroy *destroy;
    cublas_set_stream *set_stream;
    cublas_sgeam *sgeam;
    cublas_dgeam *dgeam;
};

static struct cublas kept;

static enum gpurun_status find_symbol(struct gpurun_ctx *ctx, void *library, const char *name,
                                      void **symbol)
{
    *symbol = dlsym(library, name);
    if (*symbol)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL, "cuBLAS has no %s", name);
}

static enum gpurun_status check_status(struct gpurun_ctx *ctx, int status, const char *what)
{
    if (status == CUBLAS_SUCCESS)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_DEVICE, NULL, "%s: cuBLAS status %d", what, status);
}

static enum gpurun_status open_cublas(struct gpurun_ctx *ctx, struct cublas *cublas)
{
    static const char *const sonames[] = {"libcublas.so.13", "libcublas.so.12", NULL};
    void *library = gpurun_library(ctx, sonames), *create;

    if (!library)
        return GPURUN_UNSUPPORTED;
    GPURUN_TRY(find_symbol(ctx, library, "cublasCreate_v2", &create));
    GPURUN_TRY(
        find_symbol(ctx, library, "cublasDestroy_v2", reinterpret_cast<void **>(&cublas->destroy)));
    GPURUN_TRY(find_symbol(ctx, library, "cublasSetStream_v2",
                           reinterpret_cast<void **>(&cublas->set_stream)));
    GPURUN_TRY(find_symbol(ctx, library, "cublasSgeam", reinterpret_cast<void **>(&cublas->sgeam)));
    GPURUN_TRY(find_symbol(ctx, library, "cublasDgeam", reinterpret_cast<void **>(&cublas->dgeam)));
    if (reinterpret_cast<cublas_create *>(create)(&cublas->handle) != CUBLAS_SUCCESS)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL, "cuBLAS cannot be started here");
    return GPURUN_OK;
}

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
    int device;

    GPURUN_TRY(check_options(ctx));
    GPURUN_CUDA_TRY(ctx, cudaGetDevice(&device));
    if (kept.handle && kept.device == device)
        return GPURUN_OK;
    if (kept.handle)
        kept.destroy(kept.handle);
    kept = {};
    kept.device = device;
    return open_cublas(ctx, &kept);
}

enum gpurun_status transpose_launch_cublas(struct gpurun_ctx *ctx)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    const struct transpose_state *s = transpose_state_of(ctx);
    const int rows = static_cast<int>(o->rows), cols = static_cast<int>(o->cols);
    const float one = 1, zero = 0;
    const double one_wide = 1, zero_wide = 0;

    GPURUN_TRY(check_status(ctx, kept.set_stream(kept.handle, gpurun_cuda_stream(ctx)),
                            "cublasSetStream"));
    if (o->dtype == GPURUN_FLOAT) {
        float *out = static_cast<float *>(s->out->dev);

        return check_status(ctx,
                            kept.sgeam(kept.handle, CUBLAS_OP_TURNED, CUBLAS_OP_PLAIN, rows, cols,
                                       &one, static_cast<const float *>(s->in->dev), cols, &zero,
                                       out, rows, out, rows),
                            "cublasSgeam");
    }
    double *out = static_cast<double *>(s->out->dev);

    return check_status(ctx,
                        kept.dgeam(kept.handle, CUBLAS_OP_TURNED, CUBLAS_OP_PLAIN, rows, cols,
                                   &one_wide, static_cast<const double *>(s->in->dev), cols,
                                   &zero_wide, out, rows, out, rows),
                        "cublasDgeam");
}
