/*
 * What the files of the topk plugin share: options, state, and the external symbols of each variant.
 */
#ifndef TOPK_H
#define TOPK_H

#include "gpurun/plugin.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum topk_order { TOPK_LARGEST, TOPK_SMALLEST };

struct topk_options {
    int64_t n, rows, k;
    int64_t dtype; /* enum gpurun_dtype */
    int64_t order; /* enum topk_order */
    int64_t distinct, sorted;
    int64_t block, grid;
};

/* The right answer by plain comparison, computed when verify first needs it. */
struct topk_truth {
    int64_t *indices; /* rows x k */
    int64_t *counts;  /* rows */
};

struct topk_state {
    struct gpurun_tensor *in, *values, *indices, *count;
    int rank; /* of `in`, `values` and `indices`: 2 for rows x n, 1 for one row */
    size_t elem_bytes;
    bool is_real;
    uint64_t flip;              /* see gpurun/key.h */
    struct topk_truth truth[2]; /* by the plugin's order, and with NaN ordered by its bits */
};

static inline const struct topk_options *topk_options_of(const struct gpurun_ctx *ctx)
{
    return (const struct topk_options *)ctx->options;
}

static inline struct topk_state *topk_state_of(const struct gpurun_ctx *ctx)
{
    return (struct topk_state *)ctx->state;
}

enum gpurun_status topk_run_cpu(struct gpurun_ctx *ctx);

enum gpurun_status topk_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof);
void topk_truth_free(struct topk_truth *truth);

enum { TOPK_COLUMNS = 64 };

/* Loops over a block of elements at the speed of memory; keys are those of gpurun/key.h. */
struct topk_block {
    /* Whether any key is above `limit`. in_row: how it is read, as gpurun/host_memory.h has it. */
    bool (*above)(const void *data, int64_t elems, uint64_t limit, uint64_t flip, bool in_row);
    /* The largest key of each column, the block being read as rows of TOPK_COLUMNS elements. What is left
     * over at its end is ignored. At least one row. */
    void (*maxima)(const void *data, int64_t elems, uint64_t flip, uint64_t *maxima);
};
/* vectors: one of gpurun/host_memory.h's sets of instructions that this machine has. */
const struct topk_block *topk_block_of(size_t elem_bytes, bool is_real, int vectors);

/* CUDA only. A run that selects nothing: all counts are 0. */
enum gpurun_status topk_launch_nothing(struct gpurun_ctx *ctx);

enum gpurun_status topk_two_pass_supported(struct gpurun_ctx *ctx);
size_t topk_two_pass_scratch(struct gpurun_ctx *ctx);
enum gpurun_status topk_launch_two_pass(struct gpurun_ctx *ctx);

enum gpurun_status topk_radix_supported(struct gpurun_ctx *ctx);
size_t topk_radix_scratch(struct gpurun_ctx *ctx);
enum gpurun_status topk_launch_radix(struct gpurun_ctx *ctx);

enum gpurun_status topk_band_supported(struct gpurun_ctx *ctx);
size_t topk_band_scratch(struct gpurun_ctx *ctx);
enum gpurun_status topk_launch_band(struct gpurun_ctx *ctx);

enum gpurun_status topk_maxima_supported(struct gpurun_ctx *ctx);
size_t topk_maxima_scratch(struct gpurun_ctx *ctx);
size_t topk_maxima_state(struct gpurun_ctx *ctx);
enum gpurun_status topk_launch_maxima(struct gpurun_ctx *ctx);

enum gpurun_status topk_cub_supported(struct gpurun_ctx *ctx);
size_t topk_cub_scratch(struct gpurun_ctx *ctx);
enum gpurun_status topk_launch_cub(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
