/*
 * Float and double on the CPU through OpenBLAS, where CMake found it: see GPURUN_OPENBLAS in CMakeLists.txt.
 */
#include "matmul.h"

#ifdef MATMUL_WITH_OPENBLAS
#include <cblas.h>
#include <limits.h>
#include <string.h>

/* OpenBLAS counts in int, and wants rows at least one element apart. */
static bool fits(const struct matmul_options *o)
{
    const int64_t sizes[] = {o->m, o->n, o->k, o->lda, o->ldb, o->ldc};

    for (size_t i = 0; i < GPURUN_COUNT(sizes); i++)
        if (sizes[i] < 1 || sizes[i] > INT_MAX)
            return false;
    return true;
}

static CBLAS_TRANSPOSE transpose(int64_t is_transposed)
{
    return is_transposed ? CblasTrans : CblasNoTrans;
}

static void run_float(const struct matmul_options *o, const float *a, const float *b, float *c)
{
    cblas_sgemm(CblasRowMajor, transpose(o->transpose_a), transpose(o->transpose_b), (int)o->m,
                (int)o->n, (int)o->k, (float)o->alpha, a, (int)o->lda, b, (int)o->ldb,
                (float)o->beta, c, (int)o->ldc);
}

static void run_double(const struct matmul_options *o, const double *a, const double *b, double *c)
{
    cblas_dgemm(CblasRowMajor, transpose(o->transpose_a), transpose(o->transpose_b), (int)o->m,
                (int)o->n, (int)o->k, o->alpha, a, (int)o->lda, b, (int)o->ldb, o->beta, c,
                (int)o->ldc);
}

/* OpenBLAS adds to C in place: the columns that count are copied there first. */
static void copy_c(const struct matmul_state *s, size_t bytes)
{
    const struct matmul_layout *l = &s->layout;

    for (int64_t row = 0; s->c && row < l->batch * l->m; row++)
        memcpy((char *)s->product->host + (size_t)(row * l->ldc) * bytes,
               (const char *)s->c->host + (size_t)(row * l->ldc) * bytes, (size_t)l->n * bytes);
}

bool matmul_cpu_blas(struct gpurun_ctx *ctx)
{
    const struct matmul_options *o = matmul_options_of(ctx);
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct matmul_layout *l = &s->layout;
    const enum gpurun_dtype dtype = matmul_dtype_of(ctx);

    if ((dtype != GPURUN_FLOAT && dtype != GPURUN_DOUBLE) || !fits(o) || !matmul_has_product(ctx))
        return false;
    gpurun_note(ctx, "OpenBLAS, its kernels for %s", openblas_get_corename());
    openblas_set_num_threads(ctx->threads);
    copy_c(s, gpurun_dtype_bytes(dtype));
    for (int64_t i = 0; i < o->batch; i++)
        if (dtype == GPURUN_FLOAT)
            run_float(o, (const float *)s->a->host + i * l->a_batch,
                      (const float *)s->b->host + i * l->b_batch,
                      (float *)s->product->host + i * l->c_batch);
        else
            run_double(o, (const double *)s->a->host + i * l->a_batch,
                       (const double *)s->b->host + i * l->b_batch,
                       (double *)s->product->host + i * l->c_batch);
    return true;
}
#else
bool matmul_cpu_blas(struct gpurun_ctx *ctx)
{
    (void)ctx;
    return false;
}
#endif
