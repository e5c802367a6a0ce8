/*
 * What the files of the bandwidth plugin share: options, state, how arrays are cut into pieces, and the
 * external symbols of each variant.
 */
#ifndef BANDWIDTH_H
#define BANDWIDTH_H

#include "gpurun/plugin.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Arrays are worked through in pieces of 64 KiB; `read` leaves a sum for each. */
enum { BANDWIDTH_PIECE = 16384 }; /* elements */

enum bandwidth_kind {
    BANDWIDTH_READ,
    BANDWIDTH_WRITE,
    BANDWIDTH_COPY,
    BANDWIDTH_SCALE,
    BANDWIDTH_TRIAD,
};

struct bandwidth_options {
    int64_t n;
    int64_t kind;  /* enum bandwidth_kind */
    int64_t dtype; /* enum gpurun_dtype: UINT32 or FLOAT */
    double value;
    int64_t passes;
    int64_t block, grid;
};

/* Elements are 32-bit words on all sides. Tensors that the kind has not are NULL. */
struct bandwidth_state {
    struct gpurun_tensor *in, *addend; /* addend: triad */
    struct gpurun_tensor *out;         /* all but read */
    struct gpurun_tensor *sums;        /* read: uint64, one for each piece */
    int64_t pieces;
    uint32_t value; /* the option as an element's bits */
    bool is_real;
    void *fill; /* see bandwidth_cuda.cu */
};

static inline const struct bandwidth_options *bandwidth_options_of(const struct gpurun_ctx *ctx)
{
    return (const struct bandwidth_options *)ctx->options;
}

static inline struct bandwidth_state *bandwidth_state_of(const struct gpurun_ctx *ctx)
{
    return (struct bandwidth_state *)ctx->state;
}

enum gpurun_status bandwidth_run_cpu(struct gpurun_ctx *ctx);
enum gpurun_status bandwidth_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof);

/* CUDA only. Each goes over the arrays once. */
enum gpurun_status bandwidth_launch_scalar(struct gpurun_ctx *ctx);
enum gpurun_status bandwidth_launch_unrolled(struct gpurun_ctx *ctx);
enum gpurun_status bandwidth_launch_vector(struct gpurun_ctx *ctx);

enum gpurun_status bandwidth_cuda_supported(struct gpurun_ctx *ctx);
enum gpurun_status bandwidth_launch_cuda(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
