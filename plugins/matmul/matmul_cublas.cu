/*
 * matmul, variant "cublas": the peer.
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
#include "gpurun/cublas.cuh"
#include "matmul_device.cuh"
#include <library_types.h>

/* Of cublas_api.h, which the CUDA compiler does not bring: what is said here. */
enum {
    CUBLAS_GEMM_AUTO = -1,
    CUBLAS_COMPUTE_FLOAT = 68,
    CUBLAS_COMPUTE_DOUBLE = 70,
    CUBLAS_COMPUTE_TF32 = 77,
    CUBLAS_NO_REDUCED_SUMS = 16, /* math mode: partial sums of 16-bit products are not rounded */
};

enum { CUBLAS_WORKSPACE = 32 << 20 }; /* bytes; what cuBLAS would take by itself on Hopper */

typedef int cublas_set_workspace(void *handle, void *workspace, size_t bytes);
typedef int cublas_set_math_mode(void *handle, int mode);
typedef int cublas_gemm(void *handle, int transa, int transb, int m, int n, int k,
                        const void *alpha, const void *a, cudaDataType_t a_type, int lda,
                        long long a_step, const void *b, cudaDataType_t b_type, int ldb,
                        long long b_step, const void *beta, void *c, cudaDataType_t c_type, int ldc,
                        long long c_step, int batch, int compute, int algorithm);

static cublas_set_workspace *set_workspace;
static cublas_set_math_mode *set_math_mode;
static cublas_gemm *gemm;

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
    if (matmul_is_whole(matmul_dtype_of(ctx)))
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "dtype", "cuBLAS has no product of %s",
                           gpurun_dtype_name(matmul_dtype_of(ctx)));
    if (!cublas_fits(ctx))
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL, "cuBLAS is asked in 32-bit sizes");
    GPURUN_TRY(gpurun_cublas_open(ctx));
    GPURUN_TRY(gpurun_cublas_find(ctx, "cublasSetWorkspace_v2", &set_workspace));
    GPURUN_TRY(gpurun_cublas_find(ctx, "cublasSetMathMode", &set_math_mode));
    return gpurun_cublas_find(ctx, "cublasGemmStridedBatchedEx", &gemm);
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

static int cublas_call(struct gpurun_ctx *ctx)
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
    return gemm(
        gpurun_cublas_kept.handle, o->transpose_b ? GPURUN_CUBLAS_TRANSPOSED : GPURUN_CUBLAS_PLAIN,
        o->transpose_a ? GPURUN_CUBLAS_TRANSPOSED : GPURUN_CUBLAS_PLAIN, static_cast<int>(l->n),
        static_cast<int>(l->m), static_cast<int>(l->k), alpha_at, s->b->dev, kind.type,
        static_cast<int>(o->ldb), l->b_batch, s->a->dev, kind.type, static_cast<int>(o->lda),
        l->a_batch, beta_at, s->product->dev, kind.type, static_cast<int>(l->ldc), l->c_batch,
        static_cast<int>(l->batch), kind.compute, CUBLAS_GEMM_AUTO);
}

enum gpurun_status matmul_launch_cublas(struct gpurun_ctx *ctx)
{
    void *const handle = gpurun_cublas_kept.handle;

    GPURUN_TRY(cublas_copy_c(ctx));
    GPURUN_TRY(gpurun_cublas_follow(ctx));
    GPURUN_TRY(gpurun_cublas_check(ctx, set_workspace(handle, ctx->scratch, CUBLAS_WORKSPACE),
                                   "cublasSetWorkspace"));
    GPURUN_TRY(gpurun_cublas_check(ctx, set_math_mode(handle, CUBLAS_NO_REDUCED_SUMS),
                                   "cublasSetMathMode"));
    GPURUN_TRY(gpurun_cublas_check(ctx, cublas_call(ctx), "cublasGemmStridedBatchedEx"));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}
