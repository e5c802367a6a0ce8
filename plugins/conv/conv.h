/*
 * What the files of the conv plugin share: options, state, and the external symbols of each variant.
 */
#ifndef CONV_H
#define CONV_H

#include "conv_border.h"
#include "conv_mask.h"
#include "gpurun/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

enum conv_mode { CONV_CORRELATE, CONV_CONVOLVE };
enum conv_round { CONV_NEAREST, CONV_EVEN, CONV_DOWN };

struct conv_options {
    const char *mask;
    double sigma;
    int64_t mode; /* enum conv_mode */
    const char *border;
    double scale, bias;
    int64_t round; /* enum conv_round */
    int64_t dtype; /* enum gpurun_dtype */
    int64_t width, height, channels;
    int64_t pitch; /* elements from row to row; 0: no padding */
};

struct conv_state {
    struct gpurun_tensor *image, *filtered;
    struct conv_mask mask; /* as it is laid on the image: flipped already under convolve */
    enum conv_border border;
    double fill;                 /* the value of constant and frame */
    struct conv_tail tail;       /* uint8 */
    int64_t in_pitch, out_pitch; /* elements from row to row */
    int64_t out_width, out_height;
    uint8_t *truth;         /* uint8: the right answer without padding, once verify has made it */
    const void *npp_filter; /* what the npp variant calls */
    const void *npp_mask;   /* device memory that holds its mask already */
};

static inline const struct conv_options *conv_options_of(const struct gpurun_ctx *ctx)
{
    return (const struct conv_options *)ctx->options;
}

static inline struct conv_state *conv_state_of(const struct gpurun_ctx *ctx)
{
    return (struct conv_state *)ctx->state;
}

/* Elements of a row of the answer. */
static inline int64_t conv_out_elems(const struct gpurun_ctx *ctx)
{
    return conv_state_of(ctx)->out_width * conv_options_of(ctx)->channels;
}

/* Whether rows, of both images, are followed by elements that are none of theirs. */
static inline bool conv_is_padded(const struct gpurun_ctx *ctx)
{
    const struct conv_options *o = conv_options_of(ctx);

    return o->pitch > o->width * o->channels;
}

enum gpurun_status conv_run_cpu(struct gpurun_ctx *ctx);

enum gpurun_status conv_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof);

/* CUDA only. */
enum gpurun_status conv_naive_supported(struct gpurun_ctx *ctx);
size_t conv_naive_scratch(struct gpurun_ctx *ctx);
enum gpurun_status conv_launch_naive(struct gpurun_ctx *ctx);

enum gpurun_status conv_constant_supported(struct gpurun_ctx *ctx);
enum gpurun_status conv_launch_constant(struct gpurun_ctx *ctx);

enum gpurun_status conv_tiled_supported(struct gpurun_ctx *ctx);
enum gpurun_status conv_launch_tiled(struct gpurun_ctx *ctx);

enum gpurun_status conv_separable_supported(struct gpurun_ctx *ctx);
enum gpurun_status conv_launch_separable(struct gpurun_ctx *ctx);

enum gpurun_status conv_vector_supported(struct gpurun_ctx *ctx);
enum gpurun_status conv_launch_vector(struct gpurun_ctx *ctx);

enum gpurun_status conv_npp_supported(struct gpurun_ctx *ctx);
size_t conv_npp_state(struct gpurun_ctx *ctx);
enum gpurun_status conv_launch_npp(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
