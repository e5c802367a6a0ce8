/*
 * The loops that run_cpu spends its time in. Written with vector extensions, so that they are vector code at
 * any optimisation level, and compiled for every machine and, on x86-64, for AVX2 and AVX-512, chosen when it
 * runs.
 */
#include "gpurun/host_memory.h"
#include "reduce.h"
#include "reduce_key.h"
#include <stddef.h>

/* Additions of reals in one chain, before a partial sum goes where nothing is lost. */
enum { REAL_RUN = 32 };

/* 16 bytes are a register on every machine that matters; 32 only with AVX. */
typedef uint32_t narrow_u32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t narrow_i32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t narrow_u64 __attribute__((vector_size(16), aligned(8), may_alias));
typedef int64_t narrow_i64 __attribute__((vector_size(16), aligned(8), may_alias));
typedef float narrow_f32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef double narrow_f64 __attribute__((vector_size(16), aligned(8), may_alias));
typedef uint32_t half_u32 __attribute__((vector_size(8), aligned(4), may_alias));
typedef int32_t half_i32 __attribute__((vector_size(8), aligned(4), may_alias));
typedef float half_f32 __attribute__((vector_size(8), aligned(4), may_alias));
#ifdef __x86_64__
typedef uint32_t wide_u32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t wide_i32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint64_t wide_u64 __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t wide_i64 __attribute__((vector_size(32), aligned(8), may_alias));
typedef float wide_f32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef double wide_f64 __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint32_t widest_u32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t widest_i32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint64_t widest_u64 __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t widest_i64 __attribute__((vector_size(64), aligned(8), may_alias));
#endif

/* What is read as the k-th of step i. */
#define TAKE(k) many[i * order.next + (k)*order.apart]

/* Whole numbers: `from` holds as many elements as `lanes` has numbers. */
#define DEFINE_SUM(name, attributes, from, lanes, element, number)                                 \
    attributes static void name(const void *data, int64_t elems, uint64_t flip, bool in_row,       \
                                struct reduce_part *part)                                          \
    {                                                                                              \
        enum { LANES = sizeof(from) / sizeof(element) };                                           \
        const int64_t steps = elems / (LANES * GPURUN_READ_MANY);                                  \
        const struct gpurun_read_order order = gpurun_read_order(in_row, steps);                   \
        const element *one = data;                                                                 \
        const from *many = data;                                                                   \
        lanes a = {0}, b = {0}, c = {0}, d = {0};                                                  \
        number sum = 0;                                                                            \
                                                                                                   \
        (void)flip;                                                                                \
        for (int64_t i = 0; i < steps; i++) {                                                      \
            a += __builtin_convertvector(TAKE(0), lanes);                                          \
            b += __builtin_convertvector(TAKE(1), lanes);                                          \
            c += __builtin_convertvector(TAKE(2), lanes);                                          \
            d += __builtin_convertvector(TAKE(3), lanes);                                          \
        }                                                                                          \
        a += b + c + d;                                                                            \
        for (int lane = 0; lane < LANES; lane++)                                                   \
            sum += (number)a[lane];                                                                \
        for (int64_t i = steps * LANES * GPURUN_READ_MANY; i < elems; i++)                         \
            sum += (number)one[i];                                                                 \
        part->whole = sum;                                                                         \
    }

/* Reals: chains of REAL_RUN, then a tree, then sums that keep what they lose. */
#define DEFINE_REAL_SUM(name, attributes, from, lanes, element, number)                            \
    attributes static void name(const void *data, int64_t elems, uint64_t flip, bool in_row,       \
                                struct reduce_part *part)                                          \
    {                                                                                              \
        enum { LANES = sizeof(from) / sizeof(element) };                                           \
        const int64_t steps = elems / (LANES * GPURUN_READ_MANY);                                  \
        const struct gpurun_read_order order = gpurun_read_order(in_row, steps);                   \
        const element *one = data;                                                                 \
        const from *many = data;                                                                   \
                                                                                                   \
        (void)flip;                                                                                \
        for (int64_t i = 0; i < steps;) {                                                          \
            const int64_t stop = steps - i < REAL_RUN ? steps : i + REAL_RUN;                      \
            lanes a = {0}, b = {0}, c = {0}, d = {0};                                              \
            number sum[LANES];                                                                     \
                                                                                                   \
            for (; i < stop; i++) {                                                                \
                a += __builtin_convertvector(TAKE(0), lanes);                                      \
                b += __builtin_convertvector(TAKE(1), lanes);                                      \
                c += __builtin_convertvector(TAKE(2), lanes);                                      \
                d += __builtin_convertvector(TAKE(3), lanes);                                      \
            }                                                                                      \
            a = (a + b) + (c + d);                                                                 \
            for (int lane = 0; lane < LANES; lane++)                                               \
                sum[lane] = a[lane];                                                               \
            for (int width = LANES / 2; width > 0; width /= 2)                                     \
                for (int lane = 0; lane < width; lane++)                                           \
                    sum[lane] += sum[lane + width];                                                \
            reduce_part_add(part, (double)sum[0]);                                                 \
        }                                                                                          \
        for (int64_t i = steps * LANES * GPURUN_READ_MANY; i < elems; i++)                         \
            reduce_part_add(part, (double)one[i]);                                                 \
    }

/*
 * Keys are compared as signed numbers, as machines compare lanes: a key with its top bit turned. That bit
 * cancels against the one that a signed number's key starts from; a float becomes
 *     negative: all bits but the sign turned; either zero: 0; any NaN: the largest number, turned or not.
 */
#define SIGNED_KEY(lanes, x, is_real, top, infinity, turn)                                         \
    do {                                                                                           \
        if (is_real) {                                                                             \
            const lanes magnitude_ = (x) & (top), nan_ = magnitude_ > (infinity);                  \
            (x) = ((x) ^ (((x) < 0) & (top))) & ~(magnitude_ == 0);                                \
            (x) = (((x) ^ (turn)) & ~nan_) | (nan_ & (top));                                       \
        } else {                                                                                   \
            (x) ^= (turn);                                                                         \
        }                                                                                          \
    } while (0)

#define KEEP_GREATER(lanes, best, x)                                                               \
    do {                                                                                           \
        const lanes greater_ = (x) > (best);                                                       \
        (best) = ((x)&greater_) | ((best) & ~greater_);                                            \
    } while (0)

#define DEFINE_BEST(name, attributes, lanes, number, unsigned_, key, top, infinity, is_real)       \
    attributes static void name(const void *data, int64_t elems, uint64_t flip64, bool in_row,     \
                                struct reduce_part *part)                                          \
    {                                                                                              \
        enum { LANES = sizeof(lanes) / sizeof(number) };                                           \
        const unsigned_ sign = (unsigned_)(top) + 1, flip = (unsigned_)flip64;                     \
        const number turn = (number)((is_real) ? flip : flip ^ sign);                              \
        const number least = (number)sign;                                                         \
        const int64_t steps = elems / (LANES * GPURUN_READ_MANY);                                  \
        const struct gpurun_read_order order = gpurun_read_order(in_row, steps);                   \
        const unsigned_ *one = data;                                                               \
        const lanes *many = data;                                                                  \
        lanes best[GPURUN_READ_MANY];                                                              \
        unsigned_ best_key = 0;                                                                    \
                                                                                                   \
        for (int k = 0; k < GPURUN_READ_MANY; k++)                                                 \
            best[k] = (lanes){0} + least;                                                          \
        for (int64_t i = 0; i < steps; i++) {                                                      \
            for (int k = 0; k < GPURUN_READ_MANY; k++) {                                           \
                lanes x = TAKE(k);                                                                 \
                SIGNED_KEY(lanes, x, is_real, top, infinity, turn);                                \
                KEEP_GREATER(lanes, best[k], x);                                                   \
            }                                                                                      \
        }                                                                                          \
        for (int i = 0; i < LANES * GPURUN_READ_MANY; i++) {                                       \
            const unsigned_ found = (unsigned_)best[i / LANES][i % LANES] ^ sign;                  \
            best_key = found > best_key ? found : best_key;                                        \
        }                                                                                          \
        for (int64_t i = steps * LANES * GPURUN_READ_MANY; i < elems; i++) {                       \
            const unsigned_ found = key(one[i], is_real, flip);                                    \
            best_key = found > best_key ? found : best_key;                                        \
        }                                                                                          \
        part->whole = best_key;                                                                    \
    }

/* For one kind of machine: `lanes` registers, and `half` ones whose elements double in size. */
#define DEFINE_WHOLE_BLOCKS(suffix, attributes, lanes, half)                                       \
    DEFINE_SUM(sum_32_##suffix, attributes, lanes##_u32, lanes##_u32, uint32_t, uint32_t)          \
    DEFINE_SUM(sum_int32_wide_##suffix, attributes, half##_i32, lanes##_i64, int32_t, uint64_t)    \
    DEFINE_SUM(sum_uint32_wide_##suffix, attributes, half##_u32, lanes##_u64, uint32_t, uint64_t)  \
    DEFINE_SUM(sum_64_##suffix, attributes, lanes##_u64, lanes##_u64, uint64_t, uint64_t)          \
    DEFINE_BEST(best_32_##suffix, attributes, lanes##_i32, int32_t, uint32_t, reduce_key32,        \
                INT32_MAX, 0, false)                                                               \
    DEFINE_BEST(best_float_##suffix, attributes, lanes##_i32, int32_t, uint32_t, reduce_key32,     \
                INT32_MAX, INT32_C(0x7f800000), true)                                              \
    DEFINE_BEST(best_64_##suffix, attributes, lanes##_i64, int64_t, uint64_t, reduce_key64,        \
                INT64_MAX, 0, false)                                                               \
    DEFINE_BEST(best_double_##suffix, attributes, lanes##_i64, int64_t, uint64_t, reduce_key64,    \
                INT64_MAX, INT64_C(0x7ff0000000000000), true)

#define DEFINE_REAL_BLOCKS(suffix, attributes, lanes, half)                                        \
    DEFINE_REAL_SUM(sum_float_##suffix, attributes, lanes##_f32, lanes##_f32, float, float)        \
    DEFINE_REAL_SUM(sum_float_wide_##suffix, attributes, half##_f32, lanes##_f64, float, double)   \
    DEFINE_REAL_SUM(sum_double_##suffix, attributes, lanes##_f64, lanes##_f64, double, double)

/* real: whose sums of reals they are. */
#define BLOCKS(suffix, real)                                                                       \
    {                                                                                              \
        [REDUCE_SUM_32] = sum_32_##suffix, [REDUCE_SUM_INT32_WIDE] = sum_int32_wide_##suffix,      \
        [REDUCE_SUM_UINT32_WIDE] = sum_uint32_wide_##suffix, [REDUCE_SUM_64] = sum_64_##suffix,    \
        [REDUCE_SUM_FLOAT] = sum_float_##real, [REDUCE_SUM_FLOAT_WIDE] = sum_float_wide_##real,    \
        [REDUCE_SUM_DOUBLE] = sum_double_##real, [REDUCE_BEST_32] = best_32_##suffix,              \
        [REDUCE_BEST_FLOAT] = best_float_##suffix, [REDUCE_BEST_64] = best_64_##suffix,            \
        [REDUCE_BEST_DOUBLE] = best_double_##suffix, [REDUCE_PLACE_32] = best_32_##suffix,         \
        [REDUCE_PLACE_FLOAT] = best_float_##suffix, [REDUCE_PLACE_64] = best_64_##suffix,          \
        [REDUCE_PLACE_DOUBLE] = best_double_##suffix,                                              \
    }

DEFINE_WHOLE_BLOCKS(any, , narrow, half)
DEFINE_REAL_BLOCKS(any, , narrow, half)
#ifdef __x86_64__
#define AVX2   __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512dq")))
DEFINE_WHOLE_BLOCKS(avx2, AVX2, wide, narrow)
DEFINE_REAL_BLOCKS(avx2, AVX2, wide, narrow)
DEFINE_WHOLE_BLOCKS(avx512, AVX512, widest, wide)
#endif

reduce_block *reduce_block_of(enum reduce_kind kind, int vectors)
{
    static reduce_block *const any[] = BLOCKS(any, any);
#ifdef __x86_64__
    static reduce_block *const avx2[] = BLOCKS(avx2, avx2);
    static reduce_block *const avx512[] = BLOCKS(avx512, avx2);

    if (vectors == GPURUN_VECTORS_AVX512)
        return avx512[kind];
    if (vectors == GPURUN_VECTORS_AVX2)
        return avx2[kind];
#endif
    (void)vectors;
    return any[kind];
}
