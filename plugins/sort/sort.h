/*
 * What the files of the sort plugin share: options, state, and the external symbols of each variant.
 */
#ifndef SORT_H
#define SORT_H

#include "gpurun/plugin.h"
#include "sort_key.h"

#ifdef __cplusplus
extern "C" {
#endif

enum sort_order { SORT_ASCENDING, SORT_DESCENDING };

/* Indices of the choices of the option `values`. */
enum sort_values { SORT_VALUES_NONE, SORT_VALUES_UINT32, SORT_VALUES_UINT64 };

struct sort_options {
    int64_t n;
    int64_t dtype;  /* enum gpurun_dtype */
    int64_t order;  /* enum sort_order */
    int64_t values; /* enum sort_values */
    int64_t steps;  /* 1: one partition step of quicksort; 0: the whole sort */
    int64_t block;
};

struct sort_state {
    struct gpurun_tensor *keys, *sorted;
    struct gpurun_tensor *values, *sorted_values; /* NULL without values */
    struct gpurun_tensor *bounds; /* steps = 1 only: where the pivot's band begins and ends */
    size_t elem_bytes, value_bytes;
    struct sort_map map;
    void *room; /* of the baseline, from its first run to teardown */
    size_t room_bytes;
    bool is_plain; /* the baseline takes no vectors, as on processors that have none */
    int64_t
        *truth[2]; /* element i of the answer is element truth[i]; [1]: NaN ordered by its bits */
};

static inline const struct sort_options *sort_options_of(const struct gpurun_ctx *ctx)
{
    return (const struct sort_options *)ctx->options;
}

static inline struct sort_state *sort_state_of(const struct gpurun_ctx *ctx)
{
    return (struct sort_state *)ctx->state;
}

static inline bool sort_is_one_step(const struct gpurun_ctx *ctx)
{
    return sort_options_of(ctx)->steps == 1;
}

enum gpurun_status sort_run_cpu(struct gpurun_ctx *ctx);
enum gpurun_status sort_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof);

/* What every variant but quicksort answers: it has no single step to show. */
static inline enum gpurun_status sort_whole_supported(struct gpurun_ctx *ctx)
{
    if (!sort_is_one_step(ctx))
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "steps", "only quicksort shows a step");
}

/* CUDA only. */
size_t sort_odd_even_scratch(struct gpurun_ctx *ctx);
enum gpurun_status sort_launch_odd_even(struct gpurun_ctx *ctx);

size_t sort_bitonic_scratch(struct gpurun_ctx *ctx);
enum gpurun_status sort_launch_bitonic(struct gpurun_ctx *ctx);

size_t sort_merge_scratch(struct gpurun_ctx *ctx);
enum gpurun_status sort_launch_merge(struct gpurun_ctx *ctx);

size_t sort_quicksort_scratch(struct gpurun_ctx *ctx);
enum gpurun_status sort_launch_quicksort(struct gpurun_ctx *ctx);

size_t sort_split_scratch(struct gpurun_ctx *ctx);
enum gpurun_status sort_launch_split(struct gpurun_ctx *ctx);

size_t sort_radix_scratch(struct gpurun_ctx *ctx);
enum gpurun_status sort_launch_radix(struct gpurun_ctx *ctx);

enum gpurun_status sort_onesweep_supported(struct gpurun_ctx *ctx);
size_t sort_onesweep_scratch(struct gpurun_ctx *ctx);
enum gpurun_status sort_launch_onesweep(struct gpurun_ctx *ctx);

enum gpurun_status sort_cub_supported(struct gpurun_ctx *ctx);
size_t sort_cub_scratch(struct gpurun_ctx *ctx);
enum gpurun_status sort_launch_cub(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
