/*
 * matmul, variant "cublas": the peer, opened when it is first asked for and kept as long as the process lives: its start
 * takes longer than most products.
 *
 * Mapping  cuBLAS's own.
 * Memory   cuBLAS's own; its workspace is our scratch, so it allocates nothing while it is timed. With beta,
 *          C is copied to the product first, as cuBLAS adds in place.
 * Bound    cuBLAS's own.
 * Limits   no whole numbers; sizes and leading dimensions in 32 bits. Half and bfloat16 accumulate in float.
 *
 * The library counts columns first: a row-major product is the column-major product of the operands the other
 * way round.
 */
#include "matmul_device.cuh"
#include <dlfcn.h>
#include <library_types.h>

/* Of cublas_v2.h and cublas_api.h, which the CUDA compiler does not bring: what is called here. */
enum {
    CUBLAS_OK = 0,
    CUBLAS_N = 0,
    CUBLAS_T = 1,
    CUBLAS_GEMM_AUTO = -1,
    CUBLAS_COMPUTE_FLOAT = 68,
    CUBLAS_COMPUTE_DOUBLE = 70,
    CUBLAS_COMPUTE_TF32 = 77,
    CUBLAS_NO_REDUCED_SUMS = 16, /* math mode: partial sums of 16-bit products are not rounded */
};

enum { CUBLAS_WORKSPACE = 32 << 20 }; /* bytes; what cuBLAS would take by itself on Hopper */

typedef int cublas_create(void **handle);
typedef int cublas_destroy(void *handle);
typedef int cublas_set_stream(void *handle, cudaStream_t stream);
typedef int cublas_set_workspace(void *handle, void *workspace, size_t bytes);
typedef int cublas_set_math_mode(void *handle, int mode);
typedef int cublas_gemm(void *handle, int transa, int transb, int m, int n, int k,
                        const void *alpha, const void *a, cudaDataType_t a_type, int lda,
                        long long a_step, const void *b, cudaDataType_t b_type, int ldb,
                        long long b_step, const void *beta, void *c, cudaDataType_t c_type, int ldc,
                        long long c_step, int batch, int compute, int algorithm);

struct cublas {
    int device;   /* that the handle is for */
    void *handle; /* NULL: none is open */
    cublas_destroy *destroy;
    cublas_set_stream *set_stream;
    cublas_set_workspace *set_workspace;
    cublas_set_math_mode *set_math_mode;
    cublas_gemm *gemm;
};

static struct cublas kept;

/* Finds the functions and makes a handle. */
static enum gpurun_status cublas_open(struct gpurun_ctx *ctx, struct cublas *lib)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", NULL};
    void *const so = gpurun_library(ctx, names);
    cublas_create *create;
    int error;

    if (so == NULL)
        return GPURUN_UNSUPPORTED;
    create = reinterpret_cast<cublas_create *>(dlsym(so, "cublasCreate_v2"));
    lib->destroy = reinterpret_cast<cublas_destroy *>(dlsym(so, "cublasDestroy_v2"));
    lib->set_stream = reinterpret_cast<cublas_set_stream *>(dlsym(so, "cublasSetStream_v2"));
    lib->set_workspace =
        reinterpret_cast<cublas_set_workspace *>(dlsym(so, "cublasSetWorkspace_v2"));
    lib->set_math_mode = reinterpret_cast<cublas_set_math_mode *>(dlsym(so, "cublasSetMathMode"));
    lib->gemm = reinterpret_cast<cublas_gemm *>(dlsym(so, "cublasGemmStridedBatchedEx"));
    if (!create || !lib->destroy || !lib->set_stream || !lib->set_workspace ||
        !lib->set_math_mode || !lib->gemm)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL, "cuBLAS lacks a function that is called");
    error = create(&lib->handle);
    if (error != CUBLAS_OK)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL, "cublasCreate: status %d", error);
    return GPURUN_OK;
}

static bool cublas_fits(const struct gpurun_ctx *ctx)
{
    const struct matmul_options *o = matmul_options_of(ctx);
    const int64_t sizes[] = {o->m, o->n, o->k, o->batch, o->lda, o->ldb, o->ldc};

    for (size_t i = 0; i < GPURUN_COUNT(sizes); i++)
        if (sizes[i] > INT32_MAX)
            return false;
    return true;
}

enum gpurun_status matmul_cublas_supported(struct gpurun_ctx *ctx)
{
    int device;

    if (matmul_is_whole(matmul_dtype_of(ctx)))
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "dtype", "cuBLAS has no product of %s",
                           gpurun_dtype_name(matmul_dtype_of(ctx)));
    if (!cublas_fits(ctx))
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL, "cuBLAS is asked in 32-bit sizes");
    GPURUN_CUDA_TRY(ctx, cudaGetDevice(&device));
    if (kept.handle != NULL && kept.device == device)
        return GPURUN_OK;
    if (kept.handle != NULL)
        kept.destroy(kept.handle);
    kept = {};
    kept.device = device;
    return cublas_open(ctx, &kept);
}

size_t matmul_cublas_scratch(struct gpurun_ctx *)
{
    return CUBLAS_WORKSPACE;
}

/* The columns of C that count, to where cuBLAS adds to them. */
static enum gpurun_status cublas_copy_c(struct gpurun_ctx *ctx)
{
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct matmul_layout *l = &s->layout;
    const size_t bytes = gpurun_dtype_bytes(matmul_dtype_of(ctx));

    if (s->c == NULL)
        return GPURUN_OK;
    GPURUN_CUDA_TRY(ctx, cudaMemcpy2DAsync(s->product->dev, l->ldc * bytes, s->c->dev,
                                           l->ldc * bytes, l->n * bytes, l->batch * l->m,
                                           cudaMemcpyDefault, gpurun_cuda_stream(ctx)));
    return GPURUN_OK;
}

/* How cuBLAS names a dtype, and what it is to add in. */
struct cublas_kind {
    cudaDataType_t type;
    int compute;
};

static struct cublas_kind cublas_kind_of(const struct gpurun_ctx *ctx)
{
    const bool is_tf32 = matmul_options_of(ctx)->compute == MATMUL_COMPUTE_TF32;
    const int compute = is_tf32 ? CUBLAS_COMPUTE_TF32 : CUBLAS_COMPUTE_FLOAT;
    struct cublas_kind kind = {CUDA_R_32F, compute};

    if (matmul_dtype_of(ctx) == GPURUN_DOUBLE) {
        kind.type = CUDA_R_64F;
        kind.compute = CUBLAS_COMPUTE_DOUBLE;
    } else if (matmul_dtype_of(ctx) == GPURUN_HALF) {
        kind.type = CUDA_R_16F;
    } else if (matmul_dtype_of(ctx) == GPURUN_BFLOAT16) {
        kind.type = CUDA_R_16BF;
    }
    return kind;
}

static int cublas_call(struct gpurun_ctx *ctx, const struct cublas *lib)
{
    const struct matmul_options *o = matmul_options_of(ctx);
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct matmul_layout *l = &s->layout;
    const struct cublas_kind kind = cublas_kind_of(ctx);
    const float alpha = static_cast<float>(o->alpha), beta = static_cast<float>(o->beta);
    const bool is_double = kind.type == CUDA_R_64F;
    const void *alpha_at = &alpha, *beta_at = &beta;

    if (is_double) {
        alpha_at = &o->alpha;
        beta_at = &o->beta;
    }
    return lib->gemm(lib->handle, o->transpose_b ? CUBLAS_T : CUBLAS_N,
                     o->transpose_a ? CUBLAS_T : CUBLAS_N, static_cast<int>(l->n),
                     static_cast<int>(l->m), static_cast<int>(l->k), alpha_at, s->b->dev, kind.type,
                     static_cast<int>(o->ldb), l->b_batch, s->a->dev, kind.type,
                     static_cast<int>(o->lda), l->a_batch, beta_at, s->product->dev, kind.type,
                     static_cast<int>(l->ldc), l->c_batch, static_cast<int>(l->batch), kind.compute,
                     CUBLAS_GEMM_AUTO);
}

enum gpurun_status matmul_launch_cublas(struct gpurun_ctx *ctx)
{
    int error = kept.set_stream(kept.handle, gpurun_cuda_stream(ctx));

    GPURUN_TRY(cublas_copy_c(ctx));
    if (error == CUBLAS_OK)
        error = kept.set_workspace(kept.handle, ctx->scratch, CUBLAS_WORKSPACE);
    if (error == CUBLAS_OK)
        error = kept.set_math_mode(kept.handle, CUBLAS_NO_REDUCED_SUMS);
    if (error == CUBLAS_OK)
        error = cublas_call(ctx, &kept);
    if (error != CUBLAS_OK)
        return gpurun_fail(ctx, GPURUN_DEVICE, NULL, "cuBLAS: status %d", error);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}
