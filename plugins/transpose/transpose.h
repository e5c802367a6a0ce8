/*
 * What the files of the transpose plugin share: options, state, and the external symbols of each variant.
 */
#ifndef TRANSPOSE_H
#define TRANSPOSE_H

#include "gpurun/plugin.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct transpose_options {
    int64_t rows, cols;
    int64_t dtype; /* enum gpurun_dtype */
    int64_t batch;
    int64_t inplace;
};

struct transpose_state {
    struct gpurun_tensor *in, *out; /* in place: one and the same */
    bool by_value; /* the answer to be judged comes from arithmetic, see the README */
};

static inline const struct transpose_options *transpose_options_of(const struct gpurun_ctx *ctx)
{
    return (const struct transpose_options *)ctx->options;
}

static inline struct transpose_state *transpose_state_of(const struct gpurun_ctx *ctx)
{
    return (struct transpose_state *)ctx->state;
}

static inline size_t transpose_elem_bytes(const struct gpurun_ctx *ctx)
{
    return gpurun_dtype_bytes((enum gpurun_dtype)transpose_options_of(ctx)->dtype);
}

enum gpurun_status transpose_run_cpu(struct gpurun_ctx *ctx);
enum gpurun_status transpose_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof);

/* CUDA only. */
enum gpurun_status transpose_apart_supported(struct gpurun_ctx *ctx);
enum gpurun_status transpose_launch_naive_read(struct gpurun_ctx *ctx);
enum gpurun_status transpose_launch_naive_write(struct gpurun_ctx *ctx);
enum gpurun_status transpose_launch_tiled16(struct gpurun_ctx *ctx);
enum gpurun_status transpose_launch_padded16(struct gpurun_ctx *ctx);
enum gpurun_status transpose_launch_diagonal(struct gpurun_ctx *ctx);

enum gpurun_status transpose_inplace_square_supported(struct gpurun_ctx *ctx);
enum gpurun_status transpose_launch_inplace_square(struct gpurun_ctx *ctx);

enum gpurun_status transpose_launch_vector(struct gpurun_ctx *ctx);

enum gpurun_status transpose_cublas_supported(struct gpurun_ctx *ctx);
enum gpurun_status transpose_launch_cublas(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
