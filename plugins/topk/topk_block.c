/*
 * The two loops that run_cpu spends its time in. Written with vector extensions, so that they are vector
 * code at any optimisation level, and compiled for every machine and, on x86-64, for AVX2 and AVX-512,
 * chosen when it runs.
 */
#include "gpurun/host_memory.h"
#include "gpurun/key.h"
#include "topk.h"
#include <stddef.h>
#include <string.h>

/* 16 bytes are a register on every machine that matters; 32 only with AVX. */
typedef int32_t narrow32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int64_t narrow64 __attribute__((vector_size(16), aligned(8), may_alias));
typedef float narrow_float __attribute__((vector_size(16), aligned(4), may_alias));
typedef double narrow_double __attribute__((vector_size(16), aligned(8), may_alias));
#ifdef __x86_64__
typedef int32_t wide32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int64_t wide64 __attribute__((vector_size(32), aligned(8), may_alias));
typedef float wide_float __attribute__((vector_size(32), aligned(4), may_alias));
typedef double wide_double __attribute__((vector_size(32), aligned(8), may_alias));
typedef int32_t widest32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int64_t widest64 __attribute__((vector_size(64), aligned(8), may_alias));
typedef float widest_float __attribute__((vector_size(64), aligned(4), may_alias));
typedef double widest_double __attribute__((vector_size(64), aligned(8), may_alias));
#endif

/*
 * Keys are compared as signed numbers, as machines compare lanes: a key with its top bit turned. That bit
 * cancels against the one that a signed number's key starts from; a float becomes
 *     negative: all bits but the sign turned; either zero: 0; any NaN: the largest number.
 */
#define SIGNED_KEY(lanes, x, real, top, infinity, turn)                                            \
    do {                                                                                           \
        if (real) {                                                                                \
            const lanes magnitude_ = (x) & (top), nan_ = magnitude_ > (infinity);                  \
            (x) = ((x) ^ (((x) < 0) & (top))) & ~(magnitude_ == 0);                                \
            (x) = ((x) & ~nan_) | (nan_ & (top));                                                  \
        }                                                                                          \
        (x) ^= (turn);                                                                             \
    } while (0)

/* What is read as the k-th of step i. */
#define TAKE(k) many[i * order.next + (k)*order.apart]

#define DEFINE_ABOVE(name, attributes, lanes, number, whole, key, top, infinity, real)             \
    attributes static bool name##_above(const void *data, int64_t elems, uint64_t limit64,         \
                                        uint64_t flip64, bool in_row)                              \
    {                                                                                              \
        enum { LANES = sizeof(lanes) / sizeof(number) };                                           \
        const whole sign = (whole)(top) + 1, flip = (whole)flip64;                                 \
        const number limit = (number)((whole)limit64 ^ sign);                                      \
        const number turn = (number)((real) ? flip : flip ^ sign);                                 \
        const int64_t steps = elems / (LANES * GPURUN_READ_MANY);                                  \
        const struct gpurun_read_order order = gpurun_read_order(in_row, steps);                   \
        const whole *one = data;                                                                   \
        const lanes *many = data;                                                                  \
        lanes found = {0};                                                                         \
        number any = 0;                                                                            \
                                                                                                   \
        for (int64_t i = 0; i < steps; i++) {                                                      \
            lanes a = TAKE(0), b = TAKE(1), c = TAKE(2), d = TAKE(3);                              \
            SIGNED_KEY(lanes, a, real, top, infinity, turn);                                       \
            SIGNED_KEY(lanes, b, real, top, infinity, turn);                                       \
            SIGNED_KEY(lanes, c, real, top, infinity, turn);                                       \
            SIGNED_KEY(lanes, d, real, top, infinity, turn);                                       \
            found |= ((a > limit) | (b > limit)) | ((c > limit) | (d > limit));                    \
        }                                                                                          \
        for (int lane = 0; lane < LANES; lane++)                                                   \
            any |= found[lane];                                                                    \
        for (int64_t i = steps * LANES * GPURUN_READ_MANY; i < elems; i++)                         \
            any |= key(one[i], real, flip) > (whole)limit64;                                       \
        return any != 0;                                                                           \
    }

#define DEFINE_MAXIMA(name, attributes, lanes, number, whole, key, top, infinity, real)            \
    attributes static void name##_maxima(const void *data, int64_t elems, uint64_t flip64,         \
                                         uint64_t *maxima)                                         \
    {                                                                                              \
        enum { LANES = sizeof(lanes) / sizeof(number), VECTORS = TOPK_COLUMNS / LANES };           \
        const whole sign = (whole)(top) + 1, flip = (whole)flip64;                                 \
        const number turn = (number)((real) ? flip : flip ^ sign);                                 \
        const lanes *many = data;                                                                  \
        lanes best[VECTORS];                                                                       \
                                                                                                   \
        for (int v = 0; v < VECTORS; v++) {                                                        \
            best[v] = many[v];                                                                     \
            SIGNED_KEY(lanes, best[v], real, top, infinity, turn);                                 \
        }                                                                                          \
        for (int64_t row = 1; row < elems / TOPK_COLUMNS; row++) {                                 \
            for (int v = 0; v < VECTORS; v++) {                                                    \
                lanes x = many[row * VECTORS + v];                                                 \
                SIGNED_KEY(lanes, x, real, top, infinity, turn);                                   \
                const lanes greater = x > best[v];                                                 \
                best[v] = (x & greater) | (best[v] & ~greater);                                    \
            }                                                                                      \
        }                                                                                          \
        for (int i = 0; i < TOPK_COLUMNS; i++)                                                     \
            maxima[i] = (whole)best[i / LANES][i % LANES] ^ sign;                                  \
    }

/* Reals compare as what they are: fewer steps than by key. Not where the limit is no number's key, and not where it
 * is the one that -0 would have: it is not below zero. */
#define DEFINE_REAL_ABOVE(name, attributes, lanes, reals, real, whole, key, infinity)              \
    attributes static bool name##_above(const void *data, int64_t elems, uint64_t limit64,         \
                                        uint64_t flip64, bool in_row)                              \
    {                                                                                              \
        enum { LANES = sizeof(reals) / sizeof(real) };                                             \
        const whole sign = (whole)1 << (8 * sizeof(whole) - 1), flip = (whole)flip64;              \
        const whole plain = (whole)limit64 ^ flip, bits = plain & sign ? plain ^ sign : ~plain;    \
        const int64_t steps = elems / (LANES * GPURUN_READ_MANY);                                  \
        const struct gpurun_read_order order = gpurun_read_order(in_row, steps);                   \
        const whole *one = data;                                                                   \
        const reals *many = data;                                                                  \
        lanes found = {0};                                                                         \
        bool any = false;                                                                          \
        real limit;                                                                                \
                                                                                                   \
        if ((bits & ~sign) > (whole)(infinity) || bits == sign)                                    \
            return name##_key_above(data, elems, limit64, flip64, in_row);                         \
        memcpy(&limit, &bits, sizeof(limit));                                                      \
        const reals limits = (reals){0} + limit;                                                   \
        if (flip == 0) {                                                                           \
            found = ~found;                                                                        \
            for (int64_t i = 0; i < steps; i++)                                                    \
                found &= ((TAKE(0) <= limits) & (TAKE(1) <= limits)) &                             \
                         ((TAKE(2) <= limits) & (TAKE(3) <= limits));                              \
            found = ~found;                                                                        \
        } else {                                                                                   \
            for (int64_t i = 0; i < steps; i++)                                                    \
                found |= ((TAKE(0) < limits) | (TAKE(1) < limits)) |                               \
                         ((TAKE(2) < limits) | (TAKE(3) < limits));                                \
        }                                                                                          \
        for (int lane = 0; lane < LANES; lane++)                                                   \
            any |= found[lane] != 0;                                                               \
        for (int64_t i = steps * LANES * GPURUN_READ_MANY; i < elems; i++)                         \
            any |= key(one[i], true, flip) > (whole)limit64;                                       \
        return any;                                                                                \
    }

#define DEFINE_WHOLE(name, ...) DEFINE_ABOVE(name, __VA_ARGS__) DEFINE_MAXIMA(name, __VA_ARGS__)
#define DEFINE_REAL(name, ...)                                                                     \
    DEFINE_ABOVE(name##_key, __VA_ARGS__) DEFINE_MAXIMA(name, __VA_ARGS__)

#define DEFINE_BLOCKS(suffix, attributes, lanes32, lanes64, reals32, reals64)                      \
    DEFINE_WHOLE(whole32_##suffix, attributes, lanes32, int32_t, uint32_t, gpurun_key32,           \
                 INT32_MAX, 0, false)                                                              \
    DEFINE_REAL(real32_##suffix, attributes, lanes32, int32_t, uint32_t, gpurun_key32, INT32_MAX,  \
                INT32_C(0x7f800000), true)                                                         \
    DEFINE_REAL_ABOVE(real32_##suffix, attributes, lanes32, reals32, float, uint32_t,              \
                      gpurun_key32, UINT32_C(0x7f800000))                                          \
    DEFINE_WHOLE(whole64_##suffix, attributes, lanes64, int64_t, uint64_t, gpurun_key64,           \
                 INT64_MAX, 0, false)                                                              \
    DEFINE_REAL(real64_##suffix, attributes, lanes64, int64_t, uint64_t, gpurun_key64, INT64_MAX,  \
                INT64_C(0x7ff0000000000000), true)                                                 \
    DEFINE_REAL_ABOVE(real64_##suffix, attributes, lanes64, reals64, double, uint64_t,             \
                      gpurun_key64, UINT64_C(0x7ff0000000000000))

/* clang-format off */
#define BLOCKS(suffix)                                                                                 \
    {{{whole32_##suffix##_above, whole32_##suffix##_maxima},                                           \
      {real32_##suffix##_above, real32_##suffix##_maxima}},                                            \
     {{whole64_##suffix##_above, whole64_##suffix##_maxima},                                           \
      {real64_##suffix##_above, real64_##suffix##_maxima}}}
/* clang-format on */

DEFINE_BLOCKS(any, , narrow32, narrow64, narrow_float, narrow_double)
#ifdef __x86_64__
DEFINE_BLOCKS(avx2, __attribute__((target("avx2"))), wide32, wide64, wide_float, wide_double)
DEFINE_BLOCKS(avx512, __attribute__((target("avx512f,avx512dq"))), widest32, widest64, widest_float,
              widest_double)
#endif

const struct topk_block *topk_block_of(size_t elem_bytes, bool is_real, int vectors)
{
    static const struct topk_block any[2][2] = BLOCKS(any);
#ifdef __x86_64__
    static const struct topk_block avx2[2][2] = BLOCKS(avx2);
    static const struct topk_block avx512[2][2] = BLOCKS(avx512);

    if (vectors == GPURUN_VECTORS_AVX512)
        return &avx512[elem_bytes == 8][is_real];
    if (vectors == GPURUN_VECTORS_AVX2)
        return &avx2[elem_bytes == 8][is_real];
#endif
    (void)vectors;
    return &any[elem_bytes == 8][is_real];
}
