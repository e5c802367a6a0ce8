/*
 * The baseline. The input is cut into pieces of fixed size, threads take runs of them, and the
 * pieces' results are joined in order: the answer's bits do not depend on the number of threads.
 */
#include "gpurun/host_memory.h"
#include "reduce.h"
#include "reduce_key.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE_BYTES = 65536,
    RUN =
        16, /* pieces that a thread takes at a time: one that the system has put to sleep holds up few */
};

static int64_t piece_elems(const struct gpurun_ctx *ctx)
{
    return PIECE_BYTES / (int64_t)gpurun_dtype_bytes(reduce_state_of(ctx)->in->dtype);
}

static const void *element_at(const struct gpurun_ctx *ctx, int64_t i)
{
    const struct gpurun_tensor *in = reduce_state_of(ctx)->in;

    return (const char *)in->host + (size_t)i * gpurun_dtype_bytes(in->dtype);
}

static void run_pieces(const struct gpurun_ctx *ctx, struct reduce_part *parts, int64_t count)
{
    const struct reduce_state *s = reduce_state_of(ctx);
    const int64_t n = reduce_options_of(ctx)->n, step = piece_elems(ctx);
    reduce_block *const block = reduce_block_of(s->kind, gpurun_best_vectors());
    const bool in_row = gpurun_reads_in_row();

#pragma omp parallel for num_threads(ctx->threads) schedule(dynamic, RUN) if (count > 1)
    for (int64_t i = 0; i < count; i++) {
        const int64_t begin = i * step, end = n - begin < step ? n : begin + step;

        block(element_at(ctx, begin), end - begin, s->flip, in_row, &parts[i]);
    }
}

static struct reduce_part join_sums(const struct reduce_part *parts, int64_t count)
{
    struct reduce_part all = {0};

    for (int64_t i = 0; i < count; i++) {
        all.whole += parts[i].whole;
        reduce_part_add(&all, parts[i].real);
        all.rest += parts[i].rest;
    }
    if (isfinite(all.real + all.rest)) /* the rest means nothing once a sum was infinite */
        all.real += all.rest;
    return all;
}

static void write_sum(const struct reduce_state *s, const struct reduce_part *sum)
{
    switch (s->kind) {
    case REDUCE_SUM_32:
        *(uint32_t *)s->value->host = (uint32_t)sum->whole;
        break;
    case REDUCE_SUM_FLOAT:
        *(float *)s->value->host = (float)sum->real;
        break;
    case REDUCE_SUM_FLOAT_WIDE:
    case REDUCE_SUM_DOUBLE:
        *(double *)s->value->host = sum->real;
        break;
    default:
        *(uint64_t *)s->value->host = sum->whole;
        break;
    }
}

/* The first piece with the best key. */
static int64_t best_piece(const struct reduce_part *parts, int64_t count)
{
    int64_t best = 0;

    for (int64_t i = 1; i < count; i++)
        if (parts[i].whole > parts[best].whole)
            best = i;
    return best;
}

static void write_value(const struct reduce_state *s, uint64_t key)
{
    const bool is_real = gpurun_dtype_is_real(s->in->dtype);

    if (gpurun_dtype_bytes(s->in->dtype) == 4)
        *(uint32_t *)s->value->host = reduce_unkey32((uint32_t)key, is_real, (uint32_t)s->flip);
    else
        *(uint64_t *)s->value->host = reduce_unkey64(key, is_real, s->flip);
}

static uint64_t key_at(const struct gpurun_ctx *ctx, int64_t i)
{
    const struct reduce_state *s = reduce_state_of(ctx);
    const bool is_real = gpurun_dtype_is_real(s->in->dtype);

    if (gpurun_dtype_bytes(s->in->dtype) == 4)
        return reduce_key32(((const uint32_t *)s->in->host)[i], is_real, (uint32_t)s->flip);
    return reduce_key64(((const uint64_t *)s->in->host)[i], is_real, s->flip);
}

/* Only the winning piece is searched. */
static void write_place(const struct gpurun_ctx *ctx, int64_t piece, uint64_t key)
{
    const struct reduce_state *s = reduce_state_of(ctx);
    int64_t i = piece * piece_elems(ctx);

    while (key_at(ctx, i) != key)
        i++;
    *(int64_t *)s->index->host = i;
    memcpy(s->value->host, element_at(ctx, i), gpurun_dtype_bytes(s->in->dtype));
}

enum gpurun_status reduce_run_cpu(struct gpurun_ctx *ctx)
{
    const struct reduce_state *s = reduce_state_of(ctx);
    const int64_t step = piece_elems(ctx), count = (reduce_options_of(ctx)->n + step - 1) / step;
    struct reduce_part *parts = calloc((size_t)count + 1, sizeof(*parts));

    if (!parts)
        return gpurun_fail(ctx, GPURUN_NO_MEMORY, "n",
                           "no host memory for the results of %lld pieces", (long long)count);
    run_pieces(ctx, parts, count);
    if (s->kind <= REDUCE_SUM_DOUBLE) {
        const struct reduce_part sum = join_sums(parts, count);
        write_sum(s, &sum);
    } else {
        const int64_t best = best_piece(parts, count);
        if (reduce_is_place(s->kind))
            write_place(ctx, best, parts[best].whole);
        else
            write_value(s, parts[best].whole);
    }
    free(parts);
    return GPURUN_OK;
}
