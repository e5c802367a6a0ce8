/*
 * What the files of the scan plugin share: options, state, and the external symbols of each variant.
 */
#ifndef SCAN_H
#define SCAN_H

#include "gpurun/plugin.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum scan_kind { SCAN_INCLUSIVE, SCAN_EXCLUSIVE };
enum scan_op { SCAN_SUM, SCAN_MAX, SCAN_MIN };
enum scan_accumulate { SCAN_SAME, SCAN_WIDE };

/* The longest chain of additions that any variant makes of a float result; the proof's bound rests on it. */
enum { SCAN_CHAIN = 64 };

enum { SCAN_BLOCK_MAX = 1024 }; /* threads; `block` goes no higher */

struct scan_options {
    int64_t n;
    int64_t dtype;      /* enum gpurun_dtype */
    int64_t kind;       /* enum scan_kind */
    int64_t op;         /* enum scan_op */
    int64_t accumulate; /* enum scan_accumulate */
    double init;        /* auto becomes the identity of `op` */
    int64_t block;
};

/* A value of the accumulation dtype: `whole` modulo 2^64 and sign-extended, or `real`. */
struct scan_number {
    uint64_t whole;
    double real;
};

struct scan_state {
    struct gpurun_tensor *in, *out;
    enum gpurun_dtype dtype, acc; /* of `in` and of `out` */
    bool is_real;
    struct scan_number identity, init;
};

static inline const struct scan_options *scan_options_of(const struct gpurun_ctx *ctx)
{
    return (const struct scan_options *)ctx->options;
}

static inline struct scan_state *scan_state_of(const struct gpurun_ctx *ctx)
{
    return (struct scan_state *)ctx->state;
}

enum gpurun_status scan_run_cpu(struct gpurun_ctx *ctx);
enum gpurun_status scan_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof);

/* CUDA only. Those that scan blocks share the scratch memory of scan_tree.cuh. */
size_t scan_hillis_steele_scratch(struct gpurun_ctx *ctx);
enum gpurun_status scan_launch_hillis_steele(struct gpurun_ctx *ctx);

size_t scan_hillis_steele_inplace_scratch(struct gpurun_ctx *ctx);
enum gpurun_status scan_launch_hillis_steele_inplace(struct gpurun_ctx *ctx);

enum gpurun_status scan_blelloch_supported(struct gpurun_ctx *ctx);
size_t scan_blelloch_scratch(struct gpurun_ctx *ctx);
enum gpurun_status scan_launch_blelloch(struct gpurun_ctx *ctx);

enum gpurun_status scan_blelloch_padded_supported(struct gpurun_ctx *ctx);
size_t scan_blelloch_padded_scratch(struct gpurun_ctx *ctx);
enum gpurun_status scan_launch_blelloch_padded(struct gpurun_ctx *ctx);

enum gpurun_status scan_three_kernel_supported(struct gpurun_ctx *ctx);
size_t scan_three_kernel_scratch(struct gpurun_ctx *ctx);
enum gpurun_status scan_launch_three_kernel(struct gpurun_ctx *ctx);

size_t scan_lookback_state(struct gpurun_ctx *ctx);
enum gpurun_status scan_launch_lookback(struct gpurun_ctx *ctx);

enum gpurun_status scan_cub_supported(struct gpurun_ctx *ctx);
size_t scan_cub_scratch(struct gpurun_ctx *ctx);
enum gpurun_status scan_launch_cub(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
