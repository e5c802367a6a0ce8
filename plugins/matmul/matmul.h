/*
 * What the files of the matmul plugin share: options, state, and the external symbols of each variant.
 */
#ifndef MATMUL_H
#define MATMUL_H

#include "gpurun/plugin.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum matmul_compute { MATMUL_COMPUTE_DEFAULT, MATMUL_COMPUTE_TF32 };

struct matmul_options {
    int64_t m, n, k, batch;
    int64_t dtype;   /* enum gpurun_dtype */
    int64_t compute; /* enum matmul_compute */
    int64_t transpose_a, transpose_b;
    double alpha, beta;
    int64_t lda, ldb, ldc;
};

/* Where elements lie. A(i, x) is element batch * a_batch + i * a_row + x * a_col of the tensor a, B(x, j)
 * likewise of b: a transposed matrix only has its steps swapped. C and the product have rows ldc apart. */
struct matmul_layout {
    int64_t m, n, k, batch;
    int64_t a_row, a_col, a_batch;
    int64_t b_row, b_col, b_batch;
    int64_t ldc, c_batch;
};

/* A row or a column of the product as it should be; made when verify first needs it. */
struct matmul_line {
    int64_t batch, index;
    bool is_column;
    void *values;       /* uint64_t for whole numbers, else double */
    double *rests;      /* dtype double: what `values` lost; else NULL */
    double *magnitudes; /* reals: (|alpha||A||B| + |beta C|) at each place; else NULL */
};

struct matmul_truth {
    struct matmul_line *lines;
    int64_t count;
    bool is_full; /* every row, and nothing else */
    void *memory; /* what the lines point to */
    char detects[120];
};

struct matmul_state {
    struct gpurun_tensor *a, *b, *c, *product; /* c: beta != 0 only */
    struct matmul_layout layout;
    struct matmul_truth truth;
};

static inline const struct matmul_options *matmul_options_of(const struct gpurun_ctx *ctx)
{
    return (const struct matmul_options *)ctx->options;
}

static inline struct matmul_state *matmul_state_of(const struct gpurun_ctx *ctx)
{
    return (struct matmul_state *)ctx->state;
}

static inline enum gpurun_dtype matmul_dtype_of(const struct gpurun_ctx *ctx)
{
    return (enum gpurun_dtype)matmul_options_of(ctx)->dtype;
}

static inline bool matmul_is_whole(enum gpurun_dtype dtype)
{
    return dtype == GPURUN_INT32 || dtype == GPURUN_INT64;
}

/* Whether A and B matter: they are not read where they cannot change the product. */
static inline bool matmul_has_product(const struct gpurun_ctx *ctx)
{
    return matmul_options_of(ctx)->k > 0 && matmul_options_of(ctx)->alpha != 0;
}

enum gpurun_status matmul_run_cpu(struct gpurun_ctx *ctx);
bool matmul_cpu_blas(struct gpurun_ctx *ctx); /* false: not built in, or not for this job */

enum gpurun_status matmul_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof);

/* The reference. Lines are computed together; matmul_truth_at is slow and for the odd element. */
bool matmul_truth_lines(struct gpurun_ctx *ctx, struct matmul_line *lines, int64_t count);
struct matmul_element {
    double value;
    long double magnitude; /* of the terms that are finite; may be more than a double holds */
    bool is_beyond;        /* the value is finite, but no double */
    bool may_overflow;     /* a partial sum may, though the value does not */
};
struct matmul_element matmul_truth_at(struct gpurun_ctx *ctx, int64_t batch, int64_t i, int64_t j);
/* Element i of a tensor of reals. */
double matmul_real_at(const struct gpurun_tensor *t, int64_t i);
/* alpha and beta as the product's accumulator holds them. */
double matmul_scalar(const struct gpurun_ctx *ctx, double value);

/* CUDA only. Where there is nothing to multiply: the product is beta C. */
enum gpurun_status matmul_launch_nothing(struct gpurun_ctx *ctx);

enum gpurun_status matmul_global_accumulate_supported(struct gpurun_ctx *ctx);
size_t matmul_global_accumulate_scratch(struct gpurun_ctx *ctx);
enum gpurun_status matmul_launch_global_accumulate(struct gpurun_ctx *ctx);

enum gpurun_status matmul_naive_supported(struct gpurun_ctx *ctx);
enum gpurun_status matmul_launch_naive(struct gpurun_ctx *ctx);

enum gpurun_status matmul_tiled_supported(struct gpurun_ctx *ctx);
enum gpurun_status matmul_launch_tiled(struct gpurun_ctx *ctx);

enum gpurun_status matmul_register_supported(struct gpurun_ctx *ctx);
enum gpurun_status matmul_launch_register(struct gpurun_ctx *ctx);

enum gpurun_status matmul_tensor_supported(struct gpurun_ctx *ctx);
enum gpurun_status matmul_launch_tensor(struct gpurun_ctx *ctx);
enum gpurun_status matmul_tensor_warp(struct gpurun_ctx *ctx); /* by mma.sync */
bool matmul_tensor_group_can(struct gpurun_ctx *ctx);          /* by wgmma: whether, and so */
enum gpurun_status matmul_tensor_group(struct gpurun_ctx *ctx);

enum gpurun_status matmul_cublas_supported(struct gpurun_ctx *ctx);
size_t matmul_cublas_scratch(struct gpurun_ctx *ctx);
enum gpurun_status matmul_launch_cublas(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
