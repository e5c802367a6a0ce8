/*
 * The baseline, and a reading of the CPU's own memory. Threads take contiguous runs of pieces. What is computed
 * goes to a block that the nearest cache holds, and from there to memory: past the caches where the arrays are
 * large, as a line that is stored in the ordinary way is read first.
 */
#include "bandwidth.h"
#include "gpurun/host_memory.h"
#include <string.h>

enum {
    BLOCK = 1024,           /* elements that are computed at a time */
    STREAM_BYTES = 1 << 22, /* of an array that goes past the caches */
};

static void store(uint32_t *to, const uint32_t *from, size_t elems, bool is_streamed)
{
    if (is_streamed)
        gpurun_copy_past_caches(to, from, elems * sizeof(*to));
    else
        memcpy(to, from, elems * sizeof(*to));
}

/* --- computing ---------------------------------------------------------------------------------------- */

union block {
    float real[BLOCK];
    uint32_t whole[BLOCK];
};

static void scale(const struct bandwidth_state *s, int64_t at, int64_t elems, union block *to)
{
    const float *real = (const float *)s->in->host + at;
    const uint32_t *whole = (const uint32_t *)s->in->host + at;
    float factor;

    memcpy(&factor, &s->value, sizeof(factor));
    if (s->is_real)
        for (int64_t i = 0; i < elems; i++)
            to->real[i] = factor * real[i];
    else
        for (int64_t i = 0; i < elems; i++)
            to->whole[i] = s->value * whole[i];
}

static void add(const struct bandwidth_state *s, int64_t at, int64_t elems, union block *to)
{
    const float *real = (const float *)s->addend->host + at;
    const uint32_t *whole = (const uint32_t *)s->addend->host + at;

    if (s->is_real)
        for (int64_t i = 0; i < elems; i++)
            to->real[i] += real[i];
    else
        for (int64_t i = 0; i < elems; i++)
            to->whole[i] += whole[i];
}

/* Elements at .. at + elems of the answer, at most BLOCK: where they lie, which may be in `block`. */
static const uint32_t *compute(const struct bandwidth_state *s, enum bandwidth_kind kind,
                               int64_t at, int64_t elems, union block *block)
{
    if (kind == BANDWIDTH_COPY)
        return (const uint32_t *)s->in->host + at;
    if (kind == BANDWIDTH_WRITE)
        for (int64_t i = 0; i < elems; i++)
            block->whole[i] = s->value;
    else
        scale(s, at, elems, block);
    if (kind == BANDWIDTH_TRIAD)
        add(s, at, elems, block);
    return block->whole;
}

/* --- all of it ---------------------------------------------------------------------------------------- */

static void run_piece(const struct gpurun_ctx *ctx, int64_t number)
{
    const struct bandwidth_options *o = bandwidth_options_of(ctx);
    const struct bandwidth_state *s = bandwidth_state_of(ctx);
    const int64_t begin = number * BANDWIDTH_PIECE;
    const int64_t end = o->n - begin < BANDWIDTH_PIECE ? o->n : begin + BANDWIDTH_PIECE;
    _Alignas(GPURUN_LINE) union block block;

    if (o->kind == BANDWIDTH_READ) {
        ((uint64_t *)s->sums->host)[number] =
            gpurun_sum_words((const uint32_t *)s->in->host + begin, end - begin);
        return;
    }
    for (int64_t at = begin; at < end; at += BLOCK) {
        const int64_t elems = end - at < BLOCK ? end - at : BLOCK;

        store((uint32_t *)s->out->host + at,
              compute(s, (enum bandwidth_kind)o->kind, at, elems, &block), (size_t)elems,
              s->out->bytes >= STREAM_BYTES);
    }
    gpurun_end_past_caches();
}

enum gpurun_status bandwidth_run_cpu(struct gpurun_ctx *ctx)
{
    const int64_t pieces = bandwidth_state_of(ctx)->pieces;

    for (int64_t pass = 0; pass < bandwidth_options_of(ctx)->passes; pass++) {
#pragma omp parallel for num_threads(ctx->threads) schedule(static) if (pieces > 1)
        for (int64_t number = 0; number < pieces; number++)
            run_piece(ctx, number);
    }
    return GPURUN_OK;
}
