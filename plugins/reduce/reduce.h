/*
 * What the files of the reduce plugin share: options, state, and the external symbols of each variant.
 */
#ifndef REDUCE_H
#define REDUCE_H

#include "gpurun/plugin.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum reduce_op { REDUCE_SUM, REDUCE_MIN, REDUCE_MAX, REDUCE_ARGMIN, REDUCE_ARGMAX };
enum reduce_accumulate { REDUCE_SAME, REDUCE_WIDE };

struct reduce_options {
    int64_t n;
    int64_t dtype;      /* enum gpurun_dtype */
    int64_t op;         /* enum reduce_op */
    int64_t accumulate; /* enum reduce_accumulate */
    int64_t deterministic;
    int64_t block;
};

/* What is done with which elements: what code is compiled for. Extremes are found through the unsigned keys
 * of reduce_key.h, so min and max are one kind, and so are argmin and argmax. */
enum reduce_kind {
    REDUCE_SUM_32,         /* int32 and uint32, modulo 2^32 */
    REDUCE_SUM_INT32_WIDE, /* into 64 bits, here and below */
    REDUCE_SUM_UINT32_WIDE,
    REDUCE_SUM_64, /* int64 and uint64, modulo 2^64 */
    REDUCE_SUM_FLOAT,
    REDUCE_SUM_FLOAT_WIDE,
    REDUCE_SUM_DOUBLE,
    REDUCE_BEST_32,
    REDUCE_BEST_FLOAT,
    REDUCE_BEST_64,
    REDUCE_BEST_DOUBLE,
    REDUCE_PLACE_32,
    REDUCE_PLACE_FLOAT,
    REDUCE_PLACE_64,
    REDUCE_PLACE_DOUBLE,
};

/* A real sum may differ from the truth by this many roundings of the sum of magnitudes: the longest chain of
 * additions that any variant has, see the README. */
enum { REDUCE_CHAIN = 64 };

/* The right answer, computed when verify first needs it. */
struct reduce_truth {
    bool is_known;
    uint64_t whole;           /* sum of whole numbers, modulo 2^64 */
    int64_t index;            /* min, max, argmin, argmax: the first of the best elements */
    double sum, rest;         /* sum of the finite reals, times scale: their sum is the truth */
    double magnitude;         /* sum of their magnitudes, times scale */
    double scale;             /* 1, or less where magnitude is above what a double holds */
    int64_t nans, ups, downs; /* how many reals are NaN, infinity, -infinity */
};

struct reduce_state {
    struct gpurun_tensor *in, *value, *index; /* index: argmin and argmax only */
    enum reduce_kind kind;
    uint64_t flip; /* see reduce_key.h */
    struct reduce_truth truth;
};

static inline const struct reduce_options *reduce_options_of(const struct gpurun_ctx *ctx)
{
    return (const struct reduce_options *)ctx->options;
}

static inline struct reduce_state *reduce_state_of(const struct gpurun_ctx *ctx)
{
    return (struct reduce_state *)ctx->state;
}

static inline bool reduce_is_place(enum reduce_kind kind)
{
    return kind >= REDUCE_PLACE_32;
}

enum gpurun_status reduce_run_cpu(struct gpurun_ctx *ctx);

enum gpurun_status reduce_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof);
enum gpurun_status reduce_truth_find(struct gpurun_ctx *ctx, struct reduce_truth *truth);

/* What a piece of the input comes to on the CPU. */
struct reduce_part {
    uint64_t whole;    /* sum of whole numbers, or the best key */
    double real, rest; /* sum of reals, and what its roundings lost */
};

/* Adds x to the part's real sum, and the rounding error of that to its rest. */
static inline void reduce_part_add(struct reduce_part *part, double x)
{
    const double sum = part->real + x, added = sum - part->real;

    part->rest += (part->real - (sum - added)) + (x - added);
    part->real = sum;
}

/* Loops over a piece of the input at the speed of memory; leaves its sum or its best key. in_row: how it is read, as
 * gpurun/host_memory.h has it; vectors: one of its sets of instructions that this machine has. */
typedef void reduce_block(const void *data, int64_t elems, uint64_t flip, bool in_row,
                          struct reduce_part *part);
reduce_block *reduce_block_of(enum reduce_kind kind, int vectors);

/* CUDA only. The sum of nothing. */
enum gpurun_status reduce_launch_nothing(struct gpurun_ctx *ctx);

enum gpurun_status reduce_interleaved_supported(struct gpurun_ctx *ctx);
size_t reduce_interleaved_scratch(struct gpurun_ctx *ctx);
enum gpurun_status reduce_launch_interleaved(struct gpurun_ctx *ctx);

enum gpurun_status reduce_halving_supported(struct gpurun_ctx *ctx);
size_t reduce_halving_scratch(struct gpurun_ctx *ctx);
enum gpurun_status reduce_launch_halving(struct gpurun_ctx *ctx);

size_t reduce_chunked_state(struct gpurun_ctx *ctx);
enum gpurun_status reduce_launch_chunked(struct gpurun_ctx *ctx);

enum gpurun_status reduce_unrolled_supported(struct gpurun_ctx *ctx);
size_t reduce_unrolled_scratch(struct gpurun_ctx *ctx);
enum gpurun_status reduce_launch_unrolled(struct gpurun_ctx *ctx);

enum gpurun_status reduce_shuffle_supported(struct gpurun_ctx *ctx);
size_t reduce_shuffle_scratch(struct gpurun_ctx *ctx);
enum gpurun_status reduce_launch_shuffle(struct gpurun_ctx *ctx);

enum gpurun_status reduce_atomic_global_supported(struct gpurun_ctx *ctx);
size_t reduce_atomic_global_scratch(struct gpurun_ctx *ctx);
enum gpurun_status reduce_launch_atomic_global(struct gpurun_ctx *ctx);

enum gpurun_status reduce_atomic_block_supported(struct gpurun_ctx *ctx);
size_t reduce_atomic_block_scratch(struct gpurun_ctx *ctx);
enum gpurun_status reduce_launch_atomic_block(struct gpurun_ctx *ctx);

size_t reduce_vector_state(struct gpurun_ctx *ctx);
enum gpurun_status reduce_launch_vector(struct gpurun_ctx *ctx);

size_t reduce_cub_scratch(struct gpurun_ctx *ctx);
enum gpurun_status reduce_launch_cub(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
