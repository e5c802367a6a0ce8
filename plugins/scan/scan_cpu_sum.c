/*
 * Sums of a piece. A vector is scanned within itself, by as many additions as it takes to double one element to all;
 * what is before it, in its block and before that, is added then. So the longest chain of additions is 13: three
 * within a vector, one for each vector of the block, and two for what is before the block, which is kept in two
 * doubles. Written with vector extensions and compiled twice on x86-64: for every such machine, and for AVX2, chosen
 * when it runs; both add in the same order.
 */
#include "scan_cpu.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { VECTOR = 32, VECTORS = 8 }; /* bytes; vectors of a block */

typedef uint32_t lanes_u32 __attribute__((vector_size(VECTOR), aligned(4), may_alias));
typedef uint64_t lanes_u64 __attribute__((vector_size(VECTOR), aligned(8), may_alias));
typedef float lanes_f32 __attribute__((vector_size(VECTOR), aligned(4), may_alias));
typedef double lanes_f64 __attribute__((vector_size(VECTOR), aligned(8), may_alias));
typedef int32_t half_i32 __attribute__((vector_size(VECTOR / 2), aligned(4), may_alias));
typedef uint32_t half_u32 __attribute__((vector_size(VECTOR / 2), aligned(4), may_alias));
typedef float half_f32 __attribute__((vector_size(VECTOR / 2), aligned(4), may_alias));

/* Each element with all before it; zero: a vector of nothing. */
#define PREFIX_8(x, zero)                                                                          \
    do {                                                                                           \
        (x) += __builtin_shufflevector(x, zero, 8, 0, 1, 2, 8, 4, 5, 6);                           \
        (x) += __builtin_shufflevector(x, zero, 8, 9, 0, 1, 12, 13, 4, 5);                         \
        (x) += __builtin_shufflevector(x, zero, 8, 9, 10, 11, 3, 3, 3, 3);                         \
    } while (0)
#define PREFIX_4(x, zero)                                                                          \
    do {                                                                                           \
        (x) += __builtin_shufflevector(x, zero, 4, 0, 6, 2);                                       \
        (x) += __builtin_shufflevector(x, zero, 4, 5, 1, 1);                                       \
    } while (0)
#define LAST_8(x) __builtin_shufflevector(x, x, 7, 7, 7, 7, 7, 7, 7, 7)
#define LAST_4(x) __builtin_shufflevector(x, x, 3, 3, 3, 3)
/* The elements of x one place on, behind what is before them. */
#define BEHIND_8(before, x) __builtin_shufflevector(before, x, 0, 8, 9, 10, 11, 12, 13, 14)
#define BEHIND_4(before, x) __builtin_shufflevector(before, x, 0, 4, 5, 6)

/* Takes a sum into a carry, and reads two of them together. */
#define WHOLE_TAKE(c, x) ((c)->whole += (uint64_t)(x))
#define WHOLE_AT(a, b)   ((a)->whole + (b)->whole)
#define REAL_TAKE(c, x)  scan_carry_add((c), (double)(x))
#define REAL_AT(a, b)    (((a)->real + (b)->real) + ((a)->lost + (b)->lost))

/* In any order. */
#define DEFINE_WHOLE_TOTAL(name, attributes, in, acc, from, lanes, WIDTH)                          \
    attributes static void name##_total(const void *data, int64_t elems,                           \
                                        struct scan_number identity, struct carry *total)          \
    {                                                                                              \
        const in *one = data;                                                                      \
        const int64_t whole = elems - elems % (WIDTH * VECTORS);                                   \
        lanes sums[VECTORS] = {{0}};                                                               \
                                                                                                   \
        (void)identity;                                                                            \
        *total = (struct carry){0};                                                                \
        for (int64_t i = 0; i < whole; i += WIDTH * VECTORS)                                       \
            for (int v = 0; v < VECTORS; v++)                                                      \
                sums[v] +=                                                                         \
                    __builtin_convertvector(((const from *)(const void *)(one + i))[v], lanes);    \
        for (int v = 0; v < VECTORS * WIDTH; v++)                                                  \
            total->whole += sums[v / WIDTH][v % WIDTH];                                            \
        for (int64_t i = whole; i < elems; i++)                                                    \
            total->whole += (acc)one[i];                                                           \
    }

/* In the order in which the scan adds. */
#define DEFINE_REAL_TOTAL(name, attributes, in, acc, from, lanes, WIDTH)                           \
    attributes static void name##_total(const void *data, int64_t elems,                           \
                                        struct scan_number identity, struct carry *total)          \
    {                                                                                              \
        const in *one = data;                                                                      \
        const int64_t whole = elems - elems % (WIDTH * VECTORS);                                   \
                                                                                                   \
        (void)identity;                                                                            \
        *total = (struct carry){0};                                                                \
        for (int64_t i = 0; i < whole; i += WIDTH * VECTORS) {                                     \
            lanes x[VECTORS], sum;                                                                 \
                                                                                                   \
            name##_block(one + i, x, &sum, false);                                                 \
            REAL_TAKE(total, sum[0]);                                                              \
        }                                                                                          \
        for (int64_t i = whole; i < elems; i++)                                                    \
            REAL_TAKE(total, (acc)one[i]);                                                         \
    }

/* in, acc: types of elements and of sums; from, lanes: vectors of as many of them; WIDTH: how many. */
#define DEFINE_SUM(name, attributes, stream, TAKE, AT, in, acc, from, lanes, WIDTH)                \
    /* Scans a block by itself; its sum goes to all places of `sum`. */                            \
    attributes static inline __attribute__((always_inline)) void name##_block(                     \
        const in *data, lanes x[VECTORS], lanes *sum, bool exclusive)                              \
    {                                                                                              \
        const lanes zero = {0};                                                                    \
        lanes before = zero;                                                                       \
                                                                                                   \
        for (int v = 0; v < VECTORS; v++) {                                                        \
            x[v] = __builtin_convertvector(((const from *)(const void *)data)[v], lanes);          \
            PREFIX_##WIDTH(x[v], zero);                                                            \
        }                                                                                          \
        for (int v = 0; v < VECTORS; v++) {                                                        \
            const lanes last = LAST_##WIDTH(x[v]);                                                 \
                                                                                                   \
            x[v] += before;                                                                        \
            if (exclusive)                                                                         \
                x[v] = BEHIND_##WIDTH(before, x[v]);                                               \
            before += last;                                                                        \
        }                                                                                          \
        *sum = before;                                                                             \
    }                                                                                              \
    attributes static inline __attribute__((always_inline)) void name##_scan_as(                   \
        const in *one, acc *to, int64_t elems, struct carry *carry, bool exclusive,                \
        bool past_cache)                                                                           \
    {                                                                                              \
        const int64_t whole = elems - elems % (WIDTH * VECTORS);                                   \
        struct carry own = {0};                                                                    \
                                                                                                   \
        for (int64_t i = 0; i < whole; i += WIDTH * VECTORS) {                                     \
            const lanes before = (lanes){0} + (acc)AT(carry, &own);                                \
            lanes x[VECTORS], sum;                                                                 \
                                                                                                   \
            name##_block(one + i, x, &sum, exclusive);                                             \
            TAKE(&own, sum[0]);                                                                    \
            for (int v = 0; v < VECTORS; v++) {                                                    \
                x[v] += before;                                                                    \
                if (past_cache)                                                                    \
                    stream(to + i + v * WIDTH, &x[v]);                                             \
                else                                                                               \
                    ((lanes *)(void *)(to + i))[v] = x[v];                                         \
            }                                                                                      \
        }                                                                                          \
        for (int64_t i = whole; i < elems; i++) {                                                  \
            const acc before = (acc)AT(carry, &own);                                               \
                                                                                                   \
            TAKE(&own, (acc)one[i]);                                                               \
            to[i] = exclusive ? before : (acc)AT(carry, &own);                                     \
        }                                                                                          \
        scan_carry_join(carry, own);                                                               \
    }                                                                                              \
    attributes static void name##_scan(const void *data, void *out, int64_t elems,                 \
                                       struct scan_number identity, struct carry *carry,           \
                                       struct scan_way way)                                        \
    {                                                                                              \
        (void)identity;                                                                            \
        if (way.exclusive && way.past_cache)                                                       \
            name##_scan_as(data, out, elems, carry, true, true);                                   \
        else if (way.exclusive)                                                                    \
            name##_scan_as(data, out, elems, carry, true, false);                                  \
        else if (way.past_cache)                                                                   \
            name##_scan_as(data, out, elems, carry, false, true);                                  \
        else                                                                                       \
            name##_scan_as(data, out, elems, carry, false, false);                                 \
    }

#define DEFINE_WHOLE(name, attributes, stream, ...)                                                \
    DEFINE_SUM(name, attributes, stream, WHOLE_TAKE, WHOLE_AT, __VA_ARGS__)                        \
    DEFINE_WHOLE_TOTAL(name, attributes, __VA_ARGS__)
#define DEFINE_REAL(name, attributes, stream, ...)                                                 \
    DEFINE_SUM(name, attributes, stream, REAL_TAKE, REAL_AT, __VA_ARGS__)                          \
    DEFINE_REAL_TOTAL(name, attributes, __VA_ARGS__)

#define DEFINE_SUMS(suffix, ...)                                                                   \
    DEFINE_WHOLE(uint32_##suffix, __VA_ARGS__, uint32_t, uint32_t, lanes_u32, lanes_u32, 8)        \
    DEFINE_WHOLE(uint64_##suffix, __VA_ARGS__, uint64_t, uint64_t, lanes_u64, lanes_u64, 4)        \
    DEFINE_WHOLE(int32_wide_##suffix, __VA_ARGS__, int32_t, uint64_t, half_i32, lanes_u64, 4)      \
    DEFINE_WHOLE(uint32_wide_##suffix, __VA_ARGS__, uint32_t, uint64_t, half_u32, lanes_u64, 4)    \
    DEFINE_REAL(float_##suffix, __VA_ARGS__, float, float, lanes_f32, lanes_f32, 8)                \
    DEFINE_REAL(float_wide_##suffix, __VA_ARGS__, float, double, half_f32, lanes_f64, 4)           \
    DEFINE_REAL(double_##suffix, __VA_ARGS__, double, double, lanes_f64, lanes_f64, 4)

/* [dtype][accumulate]; a sum modulo 2^bits is the same with and without sign. */
#define ROWS(suffix)                                                                               \
    {                                                                                              \
        [GPURUN_INT32] = SCAN_CPU_PAIR(uint32_##suffix, int32_wide_##suffix),                      \
        [GPURUN_UINT32] = SCAN_CPU_PAIR(uint32_##suffix, uint32_wide_##suffix),                    \
        [GPURUN_INT64] = SCAN_CPU_PAIR(uint64_##suffix, uint64_##suffix),                          \
        [GPURUN_UINT64] = SCAN_CPU_PAIR(uint64_##suffix, uint64_##suffix),                         \
        [GPURUN_FLOAT] = SCAN_CPU_PAIR(float_##suffix, float_wide_##suffix),                       \
        [GPURUN_DOUBLE] = SCAN_CPU_PAIR(double_##suffix, double_##suffix),                         \
    }

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))

static inline void stream_any(void *to, const void *vector)
{
    const __m128i *halves = vector;

    _mm_stream_si128(to, _mm_loadu_si128(halves));
    _mm_stream_si128((__m128i *)to + 1, _mm_loadu_si128(halves + 1));
}

AVX2 static inline void stream_avx2(void *to, const void *vector)
{
    _mm256_stream_si256(to, _mm256_loadu_si256(vector));
}

DEFINE_SUMS(any, , stream_any)
DEFINE_SUMS(avx2, AVX2, stream_avx2)
#else
#define STREAM(to, vector) memcpy(to, vector, VECTOR)
DEFINE_SUMS(any, , STREAM)
#endif

const struct cpu_scan *scan_cpu_sum(enum gpurun_dtype dtype, bool wide)
{
    static const struct cpu_scan any[GPURUN_DTYPE_COUNT][2] = ROWS(any);
#ifdef __x86_64__
    static const struct cpu_scan avx2[GPURUN_DTYPE_COUNT][2] = ROWS(avx2);

    if (__builtin_cpu_supports("avx2"))
        return &avx2[dtype][wide];
#endif
    return &any[dtype][wide];
}
