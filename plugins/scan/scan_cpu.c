/*
 * The baseline. Threads take pieces in turn. Each adds its piece up, while it comes to the cache, and scans it from
 * there once it knows the totals of those before: memory is read once. One thread has no need to add up first.
 * Sums of larger types are scan_cpu_sum.c's, and maxima, minima and sums of bytes scan_cpu_avx2.c's where the machine
 * has AVX2; the loops here are for all else.
 *
 * Blocks of 64 elements are 8 segments that are first joined and then scanned side by side: 8 chains of operations
 * at once instead of one.
 */
#include "scan_cpu.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

enum { SEGMENTS = 8, SEGMENT = 8, BLOCK = SEGMENTS * SEGMENT };

enum {
    PIECE = 1 << 14,      /* elements: the cache keeps them until they are scanned */
    PAST_CACHE = 1 << 24, /* bytes of results that the cache does not hold */
    PAST_CACHE_ALIGNMENT = 32,
    LOOKS = 1 << 10, /* at what another thread has not said yet */
};

static struct carry carry_of(struct scan_number number)
{
    return (struct carry){number.whole, number.real, 0.0};
}

#define SUM(a, b) ((a) + (b))
/* NaN when either is, the first one; of equal ones the second. */
#define LARGER(a, b)  ((((a) > (b)) | ((a) != (a))) ? (a) : (b))
#define SMALLER(a, b) ((((a) < (b)) | ((a) != (a))) ? (a) : (b))

/* Reads a carry as an element, and takes a total into it. */
#define WHOLE_AT(carry)           ((carry)->whole)
#define WHOLE_TAKE(acc, op, c, t) ((c)->whole = (uint64_t)(acc)op((acc)(c)->whole, (t)))
#define REAL_AT(carry)            ((carry)->real)
#define REAL_TAKE(acc, op, c, t)  ((c)->real = (double)op((acc)(c)->real, (t)))

static inline void store_past_cache(void *to, const void *from, size_t bytes)
{
#ifdef __x86_64__
    for (size_t i = 0; i < bytes / sizeof(__m128i); i++)
        _mm_stream_si128((__m128i *)to + i, ((const __m128i *)from)[i]);
#else
    memcpy(to, from, bytes);
#endif
}

/* Before another thread reads what was stored past the cache. */
static void scan_fence(void)
{
#ifdef __x86_64__
    _mm_sfence();
#endif
}

/* in: type of the elements; acc: of the results, unsigned for whole sums; nothing: the identity as acc. */
#define DEFINE_SCAN(name, in, acc, op, at, take, member)                                           \
    static inline acc name##_segments(const in *from, acc nothing, acc *totals)                    \
    {                                                                                              \
        acc all = nothing;                                                                         \
                                                                                                   \
        for (int s = 0; s < SEGMENTS; s++)                                                         \
            totals[s] = nothing;                                                                   \
        for (int i = 0; i < SEGMENT; i++)                                                          \
            for (int s = 0; s < SEGMENTS; s++)                                                     \
                totals[s] = (acc)op(totals[s], (acc)from[s * SEGMENT + i]);                        \
        for (int s = 0; s < SEGMENTS; s++)                                                         \
            all = (acc)op(all, totals[s]);                                                         \
        return all;                                                                                \
    }                                                                                              \
    static void name##_total(const void *data, int64_t elems, struct scan_number identity,         \
                             struct carry *total)                                                  \
    {                                                                                              \
        const acc nothing = (acc)identity.member;                                                  \
        const in *from = data;                                                                     \
        const int64_t whole = elems - elems % BLOCK;                                               \
        acc totals[SEGMENTS];                                                                      \
                                                                                                   \
        *total = carry_of(identity);                                                               \
        for (int64_t i = 0; i < whole; i += BLOCK) {                                               \
            const acc all = name##_segments(from + i, nothing, totals);                            \
            take(acc, op, total, all);                                                             \
        }                                                                                          \
        for (int64_t i = whole; i < elems; i++)                                                    \
            take(acc, op, total, (acc)from[i]);                                                    \
    }                                                                                              \
    static inline __attribute__((always_inline)) void name##_blocks(                               \
        const in *from, acc *to, int64_t elems, acc nothing, struct carry *carry, bool exclusive,  \
        bool may_pass)                                                                             \
    {                                                                                              \
        /* Reals and bytes wait for operations rather than for memory. */                          \
        const bool past_cache = (acc)0.5 == 0 && sizeof(acc) >= 4 && may_pass;                     \
                                                                                                   \
        for (int64_t at_block = 0; at_block < elems; at_block += BLOCK) {                          \
            const in *x = from + at_block;                                                         \
            acc before[SEGMENTS], totals[SEGMENTS];                                                \
            _Alignas(64) acc results[BLOCK];                                                       \
            acc *y = past_cache ? results : to + at_block;                                         \
            const acc all = name##_segments(x, nothing, totals);                                   \
                                                                                                   \
            before[0] = (acc)at(carry);                                                            \
            for (int s = 1; s < SEGMENTS; s++)                                                     \
                before[s] = (acc)op(before[s - 1], totals[s - 1]);                                 \
            take(acc, op, carry, all);                                                             \
            for (int i = 0; i < SEGMENT; i++)                                                      \
                for (int s = 0; s < SEGMENTS; s++) {                                               \
                    const acc with = (acc)op(before[s], (acc)x[s * SEGMENT + i]);                  \
                    y[s * SEGMENT + i] = exclusive ? before[s] : with;                             \
                    before[s] = with;                                                              \
                }                                                                                  \
            if (past_cache)                                                                        \
                store_past_cache(to + at_block, results, sizeof(results));                         \
        }                                                                                          \
    }                                                                                              \
    static void name##_scan(const void *data, void *out, int64_t elems,                            \
                            struct scan_number identity, struct carry *carry, struct scan_way way) \
    {                                                                                              \
        const acc nothing = (acc)identity.member;                                                  \
        const int64_t whole = elems - elems % BLOCK;                                               \
        const in *from = data;                                                                     \
        acc *to = out;                                                                             \
                                                                                                   \
        if (way.exclusive)                                                                         \
            name##_blocks(from, to, whole, nothing, carry, true, way.past_cache);                  \
        else                                                                                       \
            name##_blocks(from, to, whole, nothing, carry, false, way.past_cache);                 \
        for (int64_t i = whole; i < elems; i++) {                                                  \
            const acc before = (acc)at(carry);                                                     \
            take(acc, op, carry, (acc)from[i]);                                                    \
            to[i] = way.exclusive ? before : (acc)at(carry);                                       \
        }                                                                                          \
    }

#define DEFINE_WHOLE(name, in, acc, op) DEFINE_SCAN(name, in, acc, op, WHOLE_AT, WHOLE_TAKE, whole)
#define DEFINE_REAL(name, in, acc, op)  DEFINE_SCAN(name, in, acc, op, REAL_AT, REAL_TAKE, real)

#define DEFINE_ORDER(name, op)                                                                     \
    DEFINE_WHOLE(name##_uint8, uint8_t, uint8_t, op)                                               \
    DEFINE_WHOLE(name##_uint8_wide, uint8_t, uint32_t, op)                                         \
    DEFINE_WHOLE(name##_int32, int32_t, int32_t, op)                                               \
    DEFINE_WHOLE(name##_int32_wide, int32_t, int64_t, op)                                          \
    DEFINE_WHOLE(name##_uint32, uint32_t, uint32_t, op)                                            \
    DEFINE_WHOLE(name##_uint32_wide, uint32_t, uint64_t, op)                                       \
    DEFINE_WHOLE(name##_int64, int64_t, int64_t, op)                                               \
    DEFINE_WHOLE(name##_uint64, uint64_t, uint64_t, op)                                            \
    DEFINE_REAL(name##_float, float, float, op)                                                    \
    DEFINE_REAL(name##_float_wide, float, double, op)                                              \
    DEFINE_REAL(name##_double, double, double, op)

DEFINE_WHOLE(sum_uint8, uint8_t, uint8_t, SUM)
DEFINE_WHOLE(sum_uint8_wide, uint8_t, uint32_t, SUM)
DEFINE_ORDER(max, LARGER)
DEFINE_ORDER(min, SMALLER)

#define ORDER_ROWS(name)                                                                           \
    {                                                                                              \
        [GPURUN_UINT8] = SCAN_CPU_PAIR(name##_uint8, name##_uint8_wide),                           \
        [GPURUN_INT32] = SCAN_CPU_PAIR(name##_int32, name##_int32_wide),                           \
        [GPURUN_UINT32] = SCAN_CPU_PAIR(name##_uint32, name##_uint32_wide),                        \
        [GPURUN_INT64] = SCAN_CPU_PAIR(name##_int64, name##_int64),                                \
        [GPURUN_UINT64] = SCAN_CPU_PAIR(name##_uint64, name##_uint64),                             \
        [GPURUN_FLOAT] = SCAN_CPU_PAIR(name##_float, name##_float_wide),                           \
        [GPURUN_DOUBLE] = SCAN_CPU_PAIR(name##_double, name##_double),                             \
    }

/* [op][dtype][accumulate]; of larger types a sum is scan_cpu_sum.c's, and many a scan scan_cpu_avx2.c's. */
static const struct cpu_scan scans[3][GPURUN_DTYPE_COUNT][2] = {
    [SCAN_SUM] = {[GPURUN_UINT8] = SCAN_CPU_PAIR(sum_uint8, sum_uint8_wide)},
    [SCAN_MAX] = ORDER_ROWS(max),
    [SCAN_MIN] = ORDER_ROWS(min),
};

/* Takes the total of a piece into what is before it, as one element of the accumulation dtype would be. */
static void carry_join(const struct gpurun_ctx *ctx, struct carry *before, struct carry total)
{
    const struct scan_options *o = scan_options_of(ctx);
    const struct scan_state *s = scan_state_of(ctx);

    if (o->op == SCAN_SUM) {
        scan_carry_join(before, total);
    } else if (s->is_real) {
        before->real = o->op == SCAN_MAX ? LARGER(before->real, total.real)
                                         : SMALLER(before->real, total.real);
    } else {
        const uint64_t sign =
            s->acc == GPURUN_INT32 || s->acc == GPURUN_INT64 ? UINT64_C(1) << 63 : 0;
        const bool above = (total.whole ^ sign) > (before->whole ^ sign);

        if (above == (o->op == SCAN_MAX))
            before->whole = total.whole;
    }
}

/* --- pieces --------------------------------------------------------------------------------------------- */

struct total {
    struct carry carry;
    _Atomic bool is_known;
};

/* What threads share. */
struct chain {
    const struct gpurun_ctx *ctx;
    struct cpu_scan scan;
    struct scan_way way;
    int64_t pieces;
    struct total *totals; /* of pieces */
    _Atomic int64_t claimed;
};

struct piece {
    const char *in;
    char *out;
    int64_t elems;
};

static struct piece piece_at(const struct gpurun_ctx *ctx, int64_t i)
{
    const struct scan_state *s = scan_state_of(ctx);
    const int64_t left = scan_options_of(ctx)->n - i * PIECE;

    return (struct piece){
        .in = (const char *)s->in->host + (size_t)(i * PIECE) * gpurun_dtype_bytes(s->dtype),
        .out = (char *)s->out->host + (size_t)(i * PIECE) * gpurun_dtype_bytes(s->acc),
        .elems = left < PIECE ? left : PIECE,
    };
}

/* The total of a piece that another thread has claimed; adds it up again if that thread keeps it waiting. */
static struct carry total_of(struct chain *c, int64_t i)
{
    const struct piece p = piece_at(c->ctx, i);
    struct carry carry;

    for (int looks = 0; looks < LOOKS; looks++)
        if (atomic_load_explicit(&c->totals[i].is_known, memory_order_acquire))
            return c->totals[i].carry;
    c->scan.total(p.in, p.elems, scan_state_of(c->ctx)->identity, &carry);
    return carry;
}

/* One thread's work. It goes through all totals in order: so results do not depend on who does what. */
static void scan_claimed(struct chain *c)
{
    const struct scan_state *s = scan_state_of(c->ctx);
    struct carry before = carry_of(s->init), carry;
    int64_t known = 0, i; /* the piece that `before` is before; the one that is claimed */

    while ((i = atomic_fetch_add_explicit(&c->claimed, 1, memory_order_relaxed)) < c->pieces) {
        const struct piece p = piece_at(c->ctx, i);

        c->scan.total(p.in, p.elems, s->identity, &c->totals[i].carry);
        atomic_store_explicit(&c->totals[i].is_known, true, memory_order_release);
        for (; known < i; known++)
            carry_join(c->ctx, &before, total_of(c, known));
        carry = before;
        c->scan.scan(p.in, p.out, p.elems, s->identity, &carry, c->way);
    }
    scan_fence();
}

static void scan_alone(const struct chain *c)
{
    const struct scan_state *s = scan_state_of(c->ctx);
    struct carry before = carry_of(s->init);

    for (int64_t i = 0; i < c->pieces; i++) {
        const struct piece p = piece_at(c->ctx, i);

        c->scan.scan(p.in, p.out, p.elems, s->identity, &before, c->way);
    }
    scan_fence();
}

static struct cpu_scan scan_of(const struct gpurun_ctx *ctx)
{
    const struct scan_options *o = scan_options_of(ctx);
    const enum gpurun_dtype dtype = scan_state_of(ctx)->dtype;
    struct cpu_scan scan;

    if (o->op == SCAN_SUM && dtype != GPURUN_UINT8)
        return *scan_cpu_sum(dtype, o->accumulate == SCAN_WIDE);
    scan = scans[o->op][dtype][o->accumulate];
    if (scan_state_of(ctx)->acc == dtype && scan_cpu_avx2((enum scan_op)o->op, dtype))
        scan.scan = scan_cpu_avx2((enum scan_op)o->op, dtype);
    return scan;
}

enum gpurun_status scan_run_cpu(struct gpurun_ctx *ctx)
{
    const struct scan_options *o = scan_options_of(ctx);
    const struct scan_state *s = scan_state_of(ctx);
    const int64_t bytes = o->n * (int64_t)gpurun_dtype_bytes(s->acc);
    struct chain chain = {
        .ctx = ctx,
        .scan = scan_of(ctx),
        .way = {.exclusive = o->kind == SCAN_EXCLUSIVE,
                .past_cache =
                    bytes >= PAST_CACHE && (uintptr_t)s->out->host % PAST_CACHE_ALIGNMENT == 0},
        .pieces = (o->n + PIECE - 1) / PIECE,
    };
    const int threads = chain.pieces < ctx->threads ? (int)chain.pieces : ctx->threads;

    if (threads <= 1) {
        scan_alone(&chain);
        return GPURUN_OK;
    }
    chain.totals = calloc((size_t)chain.pieces, sizeof(*chain.totals));
    if (!chain.totals)
        return gpurun_fail(ctx, GPURUN_NO_MEMORY, "n", "no host memory for sums of %lld pieces",
                           (long long)chain.pieces);
#pragma omp parallel num_threads(threads)
    scan_claimed(&chain);
    free(chain.totals);
    return GPURUN_OK;
}
