/*
 * The baseline, and a reading of the CPU's own memory. Threads take contiguous runs of pieces. What is computed
 * goes to a block that the nearest cache holds, and from there to memory: past the caches where the arrays are
 * large, as a line that is stored in the ordinary way is read first.
 */
#include "bandwidth.h"
#include <string.h>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

enum {
    LINE = 64,              /* bytes */
    PACK = 16,              /* bytes of a store past the caches */
    BLOCK = 1024,           /* elements that are computed at a time */
    STREAM_BYTES = 1 << 22, /* of an array that goes past the caches */
};

/* --- storing ------------------------------------------------------------------------------------------ */

/* Whole lines, of which `to` is the first. */
static void stream_lines(char *to, const char *from, size_t bytes)
{
#ifdef __x86_64__
    for (size_t at = 0; at < bytes; at += PACK)
        _mm_stream_si128((__m128i *)(void *)(to + at),
                         _mm_loadu_si128((const __m128i *)(const void *)(from + at)));
#else
    memcpy(to, from, bytes);
#endif
}

/* Before another thread reads what stream_lines has written. */
static void stream_end(void)
{
#ifdef __x86_64__
    _mm_sfence();
#endif
}

static void store(uint32_t *to, const uint32_t *from, size_t elems, bool is_streamed)
{
    const size_t bytes = elems * sizeof(*to), past = (uintptr_t)to % LINE;
    const size_t before = past > 0 ? LINE - past : 0, first = before < bytes ? before : bytes;
    const size_t lines = (bytes - first) / LINE * LINE, done = first + lines;

    if (!is_streamed) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, first);
    stream_lines((char *)to + first, (const char *)from + first, lines);
    memcpy((char *)to + done, (const char *)from + done, bytes - done);
}

/* --- computing ---------------------------------------------------------------------------------------- */

/* Elements lie in pairs. Four places of the piece are read in turn: more of the memory system is busy than with one. */
#define DEFINE_SUM_OF(name, attributes, BYTES)                                                     \
    attributes static uint64_t name(const uint32_t *in, int64_t elems)                             \
    {                                                                                              \
        typedef uint64_t lanes __attribute__((vector_size(BYTES), aligned(4), may_alias));         \
        enum { PLACES = 4, PER_STEP = PLACES * BYTES / sizeof(uint32_t) };                         \
        const int64_t steps = elems / PER_STEP;                                                    \
        const lanes *many = (const lanes *)(const void *)in;                                       \
        lanes low[PLACES] = {{0}}, high[PLACES] = {{0}}, all = {0};                                \
        uint64_t sum = 0;                                                                          \
                                                                                                   \
        for (int64_t i = 0; i < steps; i++)                                                        \
            for (int p = 0; p < PLACES; p++) {                                                     \
                const lanes pairs = many[i + p * steps];                                           \
                                                                                                   \
                low[p] += pairs & UINT32_MAX;                                                      \
                high[p] += pairs >> 32;                                                            \
            }                                                                                      \
        for (int p = 0; p < PLACES; p++)                                                           \
            all += low[p] + high[p];                                                               \
        for (size_t lane = 0; lane < BYTES / sizeof(uint64_t); lane++)                             \
            sum += all[lane];                                                                      \
        for (int64_t i = steps * PER_STEP; i < elems; i++)                                         \
            sum += in[i];                                                                          \
        return sum;                                                                                \
    }

DEFINE_SUM_OF(sum_of_any, , 16)
#ifdef __x86_64__
DEFINE_SUM_OF(sum_of_avx2, __attribute__((target("avx2"))), 32)
#endif

static uint64_t sum_of(const uint32_t *in, int64_t elems)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        return sum_of_avx2(in, elems);
#endif
    return sum_of_any(in, elems);
}

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
    _Alignas(LINE) union block block;

    if (o->kind == BANDWIDTH_READ) {
        ((uint64_t *)s->sums->host)[number] =
            sum_of((const uint32_t *)s->in->host + begin, end - begin);
        return;
    }
    for (int64_t at = begin; at < end; at += BLOCK) {
        const int64_t elems = end - at < BLOCK ? end - at : BLOCK;

        store((uint32_t *)s->out->host + at,
              compute(s, (enum bandwidth_kind)o->kind, at, elems, &block), (size_t)elems,
              s->out->bytes >= STREAM_BYTES);
    }
    stream_end();
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
