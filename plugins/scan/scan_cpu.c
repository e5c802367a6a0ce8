/*
 * The baseline: threads take contiguous parts, sum them, and scan each from what is before it. One thread
 * needs one pass. Within a part, blocks of 64 elements are 8 segments that are first summed and then scanned
 * side by side: 8 chains of additions at once instead of one. Real sums are carried from block to block in
 * two doubles, so that the longest chain of a result is 24 additions.
 */
#include "scan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

enum { SEGMENTS = 8, SEGMENT = 8, BLOCK = SEGMENTS * SEGMENT };

/* Parts shorter than this are not worth a thread. */
enum { PART_MIN = 1 << 15 };

/* Bytes of results of one part that the cache does not hold. */
enum { PAST_CACHE = 1 << 24 };

/* What is before an element; real sums are real + lost. */
struct carry {
    uint64_t whole;
    double real, lost;
};

struct cpu_scan {
    void (*total)(const void *in, int64_t elems, struct scan_number identity, struct carry *carry);
    void (*scan)(const void *in, void *out, int64_t elems, struct scan_number identity,
                 struct carry *carry, bool exclusive);
};

#define SUM(a, b) ((a) + (b))
/* NaN when either is. */
#define LARGER(a, b)  ((((a) <= (b)) | ((b) != (b))) ? (b) : (a))
#define SMALLER(a, b) ((((a) >= (b)) | ((b) != (b))) ? (b) : (a))

/* Reads a carry as an element, and takes a total into it. */
#define WHOLE_AT(carry)           ((carry)->whole)
#define WHOLE_TAKE(acc, op, c, t) ((c)->whole = (uint64_t)(acc)op((acc)(c)->whole, (t)))
#define REAL_AT(carry)            ((carry)->real)
#define REAL_TAKE(acc, op, c, t)  ((c)->real = (double)op((acc)(c)->real, (t)))
#define EXACT_AT(carry)           ((carry)->real + (carry)->lost)
#define EXACT_TAKE(acc, op, c, t) carry_add((c), (double)(t))

/* Whether results go past the cache: they would not stay in it. Such stores want 16-byte addresses. */
static inline bool is_past_cache(const void *to, int64_t bytes)
{
#ifdef __x86_64__
    return bytes >= PAST_CACHE && (uintptr_t)to % 16 == 0;
#else
    (void)to;
    (void)bytes;
    return false;
#endif
}

static inline void store_past_cache(void *to, const void *from, size_t bytes)
{
#ifdef __x86_64__
    for (size_t i = 0; i < bytes / sizeof(__m128i); i++)
        _mm_stream_si128((__m128i *)to + i, ((const __m128i *)from)[i]);
#else
    memcpy(to, from, bytes);
#endif
}

/* Before another thread reads what store_past_cache has written. */
static inline void end_past_cache(void)
{
#ifdef __x86_64__
    _mm_sfence();
#endif
}

/* Adds and keeps the rounding error, where there is one to speak of. */
static inline void carry_add(struct carry *c, double x)
{
    const double sum = c->real + x, part = sum - c->real;
    const double lost = (c->real - (sum - part)) + (x - part);

    c->real = sum;
    c->lost = isfinite(sum) ? c->lost + lost : 0.0;
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
                             struct carry *carry)                                                  \
    {                                                                                              \
        const acc nothing = (acc)identity.member;                                                  \
        const in *from = data;                                                                     \
        const int64_t whole = elems - elems % BLOCK;                                               \
        acc totals[SEGMENTS];                                                                      \
                                                                                                   \
        for (int64_t i = 0; i < whole; i += BLOCK) {                                               \
            const acc all = name##_segments(from + i, nothing, totals);                            \
            take(acc, op, carry, all);                                                             \
        }                                                                                          \
        for (int64_t i = whole; i < elems; i++)                                                    \
            take(acc, op, carry, (acc)from[i]);                                                    \
    }                                                                                              \
    static inline __attribute__((always_inline)) void name##_blocks(                               \
        const in *from, acc *to, int64_t elems, acc nothing, struct carry *carry, bool exclusive)  \
    {                                                                                              \
        /* Reals and bytes wait for additions rather than for memory. */                           \
        const bool past_cache =                                                                    \
            (acc)0.5 == 0 && sizeof(acc) >= 4 && is_past_cache(to, elems * (int64_t)sizeof(acc));  \
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
        if (past_cache)                                                                            \
            end_past_cache();                                                                      \
    }                                                                                              \
    static void name##_scan(const void *data, void *out, int64_t elems,                            \
                            struct scan_number identity, struct carry *carry, bool exclusive)      \
    {                                                                                              \
        const acc nothing = (acc)identity.member;                                                  \
        const int64_t whole = elems - elems % BLOCK;                                               \
        const in *from = data;                                                                     \
        acc *to = out;                                                                             \
                                                                                                   \
        if (exclusive)                                                                             \
            name##_blocks(from, to, whole, nothing, carry, true);                                  \
        else                                                                                       \
            name##_blocks(from, to, whole, nothing, carry, false);                                 \
        for (int64_t i = whole; i < elems; i++) {                                                  \
            const acc before = (acc)at(carry);                                                     \
            take(acc, op, carry, (acc)from[i]);                                                    \
            to[i] = exclusive ? before : (acc)at(carry);                                           \
        }                                                                                          \
    }

#define DEFINE_WHOLE(name, in, acc, op) DEFINE_SCAN(name, in, acc, op, WHOLE_AT, WHOLE_TAKE, whole)
#define DEFINE_REAL(name, in, acc, op)  DEFINE_SCAN(name, in, acc, op, REAL_AT, REAL_TAKE, real)
#define DEFINE_EXACT(name, in, acc)     DEFINE_SCAN(name, in, acc, SUM, EXACT_AT, EXACT_TAKE, real)

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
DEFINE_WHOLE(sum_int32_wide, int32_t, uint64_t, SUM)
DEFINE_WHOLE(sum_uint32, uint32_t, uint32_t, SUM)
DEFINE_WHOLE(sum_uint32_wide, uint32_t, uint64_t, SUM)
DEFINE_WHOLE(sum_uint64, uint64_t, uint64_t, SUM)
DEFINE_EXACT(sum_float, float, float)
DEFINE_EXACT(sum_float_wide, float, double)
DEFINE_EXACT(sum_double, double, double)
DEFINE_ORDER(max, LARGER)
DEFINE_ORDER(min, SMALLER)

#define PAIR(same, wide)                                                                           \
    {                                                                                              \
        {same##_total, same##_scan},                                                               \
        {                                                                                          \
            wide##_total, wide##_scan                                                              \
        }                                                                                          \
    }

#define ORDER_ROWS(name)                                                                           \
    {                                                                                              \
        [GPURUN_UINT8] = PAIR(name##_uint8, name##_uint8_wide),                                    \
        [GPURUN_INT32] = PAIR(name##_int32, name##_int32_wide),                                    \
        [GPURUN_UINT32] = PAIR(name##_uint32, name##_uint32_wide),                                 \
        [GPURUN_INT64] = PAIR(name##_int64, name##_int64),                                         \
        [GPURUN_UINT64] = PAIR(name##_uint64, name##_uint64),                                      \
        [GPURUN_FLOAT] = PAIR(name##_float, name##_float_wide),                                    \
        [GPURUN_DOUBLE] = PAIR(name##_double, name##_double),                                      \
    }

/* [op][dtype][accumulate]; a sum modulo 2^bits is the same with and without sign. */
static const struct cpu_scan scans[3][GPURUN_DTYPE_COUNT][2] = {
    [SCAN_SUM] =
        {
            [GPURUN_UINT8] = PAIR(sum_uint8, sum_uint8_wide),
            [GPURUN_INT32] = PAIR(sum_uint32, sum_int32_wide),
            [GPURUN_UINT32] = PAIR(sum_uint32, sum_uint32_wide),
            [GPURUN_INT64] = PAIR(sum_uint64, sum_uint64),
            [GPURUN_UINT64] = PAIR(sum_uint64, sum_uint64),
            [GPURUN_FLOAT] = PAIR(sum_float, sum_float_wide),
            [GPURUN_DOUBLE] = PAIR(sum_double, sum_double),
        },
    [SCAN_MAX] = ORDER_ROWS(max),
    [SCAN_MIN] = ORDER_ROWS(min),
};

static struct carry carry_of(struct scan_number number)
{
    return (struct carry){number.whole, number.real, 0.0};
}

/* A part's total is a carry; takes it into another as one element of the accumulation dtype would be. */
static void carry_join(const struct gpurun_ctx *ctx, struct carry *before, struct carry total)
{
    const struct scan_options *o = scan_options_of(ctx);
    const struct scan_state *s = scan_state_of(ctx);

    if (s->is_real && o->op == SCAN_SUM) {
        carry_add(before, total.real);
        if (isfinite(before->real))
            before->lost += total.lost;
    } else if (s->is_real) {
        before->real = o->op == SCAN_MAX ? LARGER(before->real, total.real)
                                         : SMALLER(before->real, total.real);
    } else if (o->op == SCAN_SUM) {
        before->whole += total.whole;
    } else {
        const uint64_t sign =
            s->acc == GPURUN_INT32 || s->acc == GPURUN_INT64 ? UINT64_C(1) << 63 : 0;
        const bool above = (total.whole ^ sign) > (before->whole ^ sign);

        if (above == (o->op == SCAN_MAX))
            before->whole = total.whole;
    }
}

/* A thread's share: whole blocks, the last part shorter or empty. */
struct part {
    const char *in;
    char *out;
    int64_t elems;
};

static struct part part_of(const struct gpurun_ctx *ctx, int i, int count)
{
    const struct scan_state *s = scan_state_of(ctx);
    const int64_t n = scan_options_of(ctx)->n, share = (n / count / BLOCK + 1) * BLOCK;
    const int64_t begin = i * share < n ? i * share : n;

    return (struct part){
        .in = (const char *)s->in->host + (size_t)begin * gpurun_dtype_bytes(s->dtype),
        .out = (char *)s->out->host + (size_t)begin * gpurun_dtype_bytes(s->acc),
        .elems = n - begin < share ? n - begin : share,
    };
}

/* Turns the totals of the parts into what is before each. */
static void scan_carries(const struct gpurun_ctx *ctx, struct carry *carries, int count)
{
    struct carry before = carry_of(scan_state_of(ctx)->init);

    for (int i = 0; i < count; i++) {
        const struct carry total = carries[i];

        carries[i] = before;
        carry_join(ctx, &before, total);
    }
}

static void scan_parts(struct gpurun_ctx *ctx, struct carry *carries, int count)
{
    const struct scan_options *o = scan_options_of(ctx);
    const struct scan_state *s = scan_state_of(ctx);
    const struct cpu_scan *scan = &scans[o->op][s->dtype][o->accumulate];

#pragma omp parallel num_threads(count)
    {
#pragma omp for schedule(static, 1)
        for (int i = 0; i < count; i++) {
            const struct part p = part_of(ctx, i, count);

            carries[i] = carry_of(s->identity);
            if (i < count - 1) /* what is after the last is nobody's */
                scan->total(p.in, p.elems, s->identity, &carries[i]);
        }
#pragma omp single
        scan_carries(ctx, carries, count);
#pragma omp for schedule(static, 1)
        for (int i = 0; i < count; i++) {
            const struct part p = part_of(ctx, i, count);

            scan->scan(p.in, p.out, p.elems, s->identity, &carries[i], o->kind == SCAN_EXCLUSIVE);
        }
    }
}

enum gpurun_status scan_run_cpu(struct gpurun_ctx *ctx)
{
    const int64_t parts = scan_options_of(ctx)->n / PART_MIN + 1;
    const int count = parts < ctx->threads ? (int)parts : ctx->threads;
    struct carry *carries = malloc((size_t)count * sizeof(*carries));

    if (!carries)
        return gpurun_fail(ctx, GPURUN_NO_MEMORY, NULL, "no host memory for sums of parts");
    scan_parts(ctx, carries, count);
    free(carries);
    return GPURUN_OK;
}
