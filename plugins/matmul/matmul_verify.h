/*
 * What the two halves of the proof share: bounds, where elements lie, and the verdict that is reached so far.
 */
#ifndef MATMUL_VERIFY_H
#define MATMUL_VERIFY_H

#include "matmul.h"
#include <math.h>

/* What the arithmetic of a dtype rounds, relative to a value and at its smallest. */
struct matmul_precision {
    double sum, sum_least; /* of the accumulator */
    double out, out_least; /* of the product's elements, beyond that */
    double in;             /* of the inputs: tf32 */
    double out_most;       /* from here on an element rounds to infinity */
};

/* An answer on trial. */
struct matmul_judge {
    struct gpurun_ctx *ctx;
    struct gpurun_proof *proof;
    struct matmul_precision precision;
    double relative_sum;
    int64_t relative_count;
};

/* Whether vectors say anything about this job. */
bool matmul_can_certify(const struct gpurun_ctx *ctx);

/* Freivalds' check of every product: counts what is wrong, and makes proof->bound its limit at least. False: no
 * memory. */
bool matmul_check_products(struct matmul_judge *j);

/* Judges an element of reals by all its terms, and counts it if it is wrong. */
bool matmul_judge_slowly(struct matmul_judge *j, int64_t batch, int64_t i, int64_t column);

/* How many products are added up. */
static inline double matmul_depth_of(const struct gpurun_ctx *ctx)
{
    return matmul_has_product(ctx) ? (double)matmul_options_of(ctx)->k : 0;
}

/* What a sum of products may be off by, in units of the sum of their magnitudes: 4 sqrt(k) roundings, three
 * for alpha, beta and their sum, and the inputs' own. */
static inline double matmul_sum_factor(const struct gpurun_ctx *ctx,
                                       const struct matmul_precision *p)
{
    return (4 * sqrt(matmul_depth_of(ctx)) + 3) * p->sum + 2 * p->in + p->in * p->in;
}

/* Where an element of C and of the product lies. */
static inline int64_t matmul_place_in(const struct gpurun_ctx *ctx, int64_t batch, int64_t i,
                                      int64_t column)
{
    const struct matmul_layout *l = &matmul_state_of(ctx)->layout;

    return batch * l->c_batch + i * l->ldc + column;
}

/* Element i of a tensor of whole numbers, modulo what matmul_mask_of says. */
static inline uint64_t matmul_bits_at(const struct gpurun_tensor *t, int64_t i)
{
    return t->dtype == GPURUN_INT32 ? ((const uint32_t *)t->host)[i]
                                    : ((const uint64_t *)t->host)[i];
}

/* Which bits of a whole number count. */
static inline uint64_t matmul_mask_of(const struct gpurun_tensor *t)
{
    return t->dtype == GPURUN_INT32 ? UINT32_MAX : UINT64_MAX;
}

/* Well mixed bits from a number (splitmix64). */
static inline uint64_t matmul_mixed(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

#endif
