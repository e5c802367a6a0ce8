/*
 * Scans of a piece with AVX2: maxima, minima, and sums of bytes. A vector is scanned within its halves, by as many
 * operations as it takes to double one element to all, then across them; what is before it is taken in last. So a
 * vector waits for the one before by one operation. None of these rounds, so their order may be any that keeps
 * elements in theirs.
 */
#include "scan_cpu.h"
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE AVX2 static inline __attribute__((always_inline))

enum { VECTOR = 32 };

INLINE __m256i vector_at(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

INLINE __m256i max_int64(__m256i a, __m256i b)
{
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
}

INLINE __m256i min_int64(__m256i a, __m256i b)
{
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(b, a));
}

/* What turns elements into others of the same order, which instructions compare, and back. */
#define NO_TURN   _mm256_setzero_si256()
#define SIGN_TURN _mm256_set1_epi64x(INT64_MIN)

/* Of two equal reals, and of a number and a NaN, the processor takes the second: right where the first is no NaN. */
#define DEFINE_REAL(name, vector, suffix, instruction)                                             \
    INLINE __m256i name(__m256i a, __m256i b)                                                      \
    {                                                                                              \
        return _mm256_cast##suffix##_si256(                                                        \
            instruction(_mm256_castsi256_##suffix(a), _mm256_castsi256_##suffix(b)));              \
    }                                                                                              \
    INLINE __m256i name##_nan(__m256i a, __m256i b)                                                \
    {                                                                                              \
        const vector x = _mm256_castsi256_##suffix(a), y = _mm256_castsi256_##suffix(b);           \
                                                                                                   \
        return _mm256_cast##suffix##_si256(_mm256_blendv_##suffix(                                 \
            instruction(x, y), x, _mm256_cmp_##suffix(x, x, _CMP_UNORD_Q)));                       \
    }
DEFINE_REAL(max_ps, __m256, ps, _mm256_max_ps)
DEFINE_REAL(min_ps, __m256, ps, _mm256_min_ps)
DEFINE_REAL(max_pd, __m256d, pd, _mm256_max_pd)
DEFINE_REAL(min_pd, __m256d, pd, _mm256_min_pd)

INLINE bool is_nan_ps(__m256i a, __m256i b)
{
    return _mm256_movemask_ps(
        _mm256_cmp_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), _CMP_UNORD_Q));
}

INLINE bool is_nan_pd(__m256i a, __m256i b)
{
    return _mm256_movemask_pd(
        _mm256_cmp_pd(_mm256_castsi256_pd(a), _mm256_castsi256_pd(b), _CMP_UNORD_Q));
}

INLINE bool is_whole(__m256i a, __m256i b)
{
    (void)a;
    (void)b;
    return false;
}

/* Which bytes of a half are its last element, all over it. */
#define LAST_1 _mm256_set1_epi8(15)
#define LAST_4 _mm256_set1_epi32(0x0f0e0d0c)
#define LAST_8 _mm256_set1_epi64x(0x0f0e0d0c0b0a0908)

/* x and the elements `places` before each in its half; before the first there is nothing. */
#define JOIN(op, x, nothing, places, WIDTH)                                                        \
    ((places) * (WIDTH) < 16                                                                       \
         ? op(_mm256_alignr_epi8(x, nothing,                                                       \
                                 (places) * (WIDTH) < 16 ? 16 - (places) * (WIDTH) : 0),           \
              x)                                                                                   \
         : (x))

/* Makes results of the elements x, and what is before the next ones of `before`, what was before these. */
#define DEFINE_VECTOR(name, WIDTH, op)                                                             \
    INLINE __m256i name(__m256i x, __m256i nothing, __m256i *before)                               \
    {                                                                                              \
        __m256i low, last, results;                                                                \
                                                                                                   \
        x = JOIN(op, x, nothing, 1, WIDTH);                                                        \
        x = JOIN(op, x, nothing, 2, WIDTH);                                                        \
        x = JOIN(op, x, nothing, 4, WIDTH);                                                        \
        x = JOIN(op, x, nothing, 8, WIDTH);                                                        \
        low = _mm256_permute2x128_si256(_mm256_shuffle_epi8(x, LAST_##WIDTH), nothing, 0x02);      \
        x = op(low, x);                                                                            \
        last = _mm256_shuffle_epi8(_mm256_permute2x128_si256(x, x, 0x11), LAST_##WIDTH);           \
        results = op(*before, x);                                                                  \
        *before = op(*before, last);                                                               \
        return results;                                                                            \
    }

/* type: of elements and results, of WIDTH bytes; member: of a carry, as which it stands there. Where is_nan says so,
 * nan_op does what op does. */
#define DEFINE_SCAN(name, type, WIDTH, op, nan_op, is_nan, turn, member)                           \
    DEFINE_VECTOR(name##_vector, WIDTH, op)                                                        \
    DEFINE_VECTOR(name##_nan_vector, WIDTH, nan_op)                                                \
    INLINE __m256i name##_all(type element)                                                        \
    {                                                                                              \
        type all[VECTOR / WIDTH];                                                                  \
                                                                                                   \
        for (int i = 0; i < VECTOR / WIDTH; i++)                                                   \
            all[i] = element;                                                                      \
        return vector_at(all);                                                                     \
    }                                                                                              \
    INLINE void name##_scan_as(const type *from, type *to, int64_t elems, type nothing,            \
                               type *carry, bool exclusive, bool past_cache)                       \
    {                                                                                              \
        const __m256i none = _mm256_xor_si256(name##_all(nothing), turn);                          \
        __m256i before = _mm256_xor_si256(name##_all(*carry), turn);                               \
                                                                                                   \
        for (int64_t i = 0; i < elems; i += VECTOR / WIDTH) {                                      \
            const __m256i x = _mm256_xor_si256(vector_at(from + i), turn), first = before;         \
            __m256i results = is_nan(x, before) ? name##_nan_vector(x, none, &before)              \
                                                : name##_vector(x, none, &before);                 \
                                                                                                   \
            if (exclusive)                                                                         \
                results = _mm256_alignr_epi8(                                                      \
                    results, _mm256_permute2x128_si256(first, results, 0x21), 16 - WIDTH);         \
            results = _mm256_xor_si256(results, turn);                                             \
            if (past_cache)                                                                        \
                _mm256_stream_si256((__m256i *)(void *)(to + i), results);                         \
            else                                                                                   \
                _mm256_storeu_si256((__m256i *)(void *)(to + i), results);                         \
        }                                                                                          \
        before = _mm256_xor_si256(before, turn);                                                   \
        memcpy(carry, &before, sizeof *carry);                                                     \
    }                                                                                              \
    AVX2 static void name##_scan(const void *in, void *out, int64_t elems,                         \
                                 struct scan_number identity, struct carry *carry,                 \
                                 struct scan_way way)                                              \
    {                                                                                              \
        const type nothing = (type)identity.member, *from = in;                                    \
        const int64_t whole = elems - elems % (VECTOR / WIDTH), rest = elems - whole;              \
        type before = (type)carry->member, *to = out, ends[2][VECTOR / WIDTH];                     \
                                                                                                   \
        if (way.past_cache && way.exclusive)                                                       \
            name##_scan_as(from, to, whole, nothing, &before, true, true);                         \
        else if (way.past_cache)                                                                   \
            name##_scan_as(from, to, whole, nothing, &before, false, true);                        \
        else if (way.exclusive)                                                                    \
            name##_scan_as(from, to, whole, nothing, &before, true, false);                        \
        else                                                                                       \
            name##_scan_as(from, to, whole, nothing, &before, false, false);                       \
        if (rest > 0) {                                                                            \
            for (int i = 0; i < VECTOR / WIDTH; i++)                                               \
                ends[0][i] = i < rest ? from[whole + i] : nothing;                                 \
            if (way.exclusive)                                                                     \
                name##_scan_as(ends[0], ends[1], VECTOR / WIDTH, nothing, &before, true, false);   \
            else                                                                                   \
                name##_scan_as(ends[0], ends[1], VECTOR / WIDTH, nothing, &before, false, false);  \
            memcpy(to + whole, ends[1], (size_t)rest * WIDTH);                                     \
        }                                                                                          \
        carry->member = before;                                                                    \
    }

#define DEFINE_WHOLE(name, type, WIDTH, op, turn)                                                  \
    DEFINE_SCAN(name, type, WIDTH, op, op, is_whole, turn, whole)
#define DEFINE_REAL_SCAN(name, type, WIDTH, op, is_nan)                                            \
    DEFINE_SCAN(name, type, WIDTH, op, op##_nan, is_nan, NO_TURN, real)

DEFINE_WHOLE(sum_uint8, uint8_t, 1, _mm256_add_epi8, NO_TURN)
DEFINE_WHOLE(max_uint8, uint8_t, 1, _mm256_max_epu8, NO_TURN)
DEFINE_WHOLE(min_uint8, uint8_t, 1, _mm256_min_epu8, NO_TURN)
DEFINE_WHOLE(max_int32, int32_t, 4, _mm256_max_epi32, NO_TURN)
DEFINE_WHOLE(min_int32, int32_t, 4, _mm256_min_epi32, NO_TURN)
DEFINE_WHOLE(max_uint32, uint32_t, 4, _mm256_max_epu32, NO_TURN)
DEFINE_WHOLE(min_uint32, uint32_t, 4, _mm256_min_epu32, NO_TURN)
DEFINE_WHOLE(max_int64, int64_t, 8, max_int64, NO_TURN)
DEFINE_WHOLE(min_int64, int64_t, 8, min_int64, NO_TURN)
DEFINE_WHOLE(max_uint64, uint64_t, 8, max_int64, SIGN_TURN)
DEFINE_WHOLE(min_uint64, uint64_t, 8, min_int64, SIGN_TURN)
DEFINE_REAL_SCAN(max_float, float, 4, max_ps, is_nan_ps)
DEFINE_REAL_SCAN(min_float, float, 4, min_ps, is_nan_ps)
DEFINE_REAL_SCAN(max_double, double, 8, max_pd, is_nan_pd)
DEFINE_REAL_SCAN(min_double, double, 8, min_pd, is_nan_pd)

scan_piece *scan_cpu_avx2(enum scan_op op, enum gpurun_dtype dtype)
{
    static scan_piece *const pieces[3][GPURUN_DTYPE_COUNT] = {
        [SCAN_SUM] = {[GPURUN_UINT8] = sum_uint8_scan},
        [SCAN_MAX] = {[GPURUN_UINT8] = max_uint8_scan,
                      [GPURUN_INT32] = max_int32_scan,
                      [GPURUN_UINT32] = max_uint32_scan,
                      [GPURUN_INT64] = max_int64_scan,
                      [GPURUN_UINT64] = max_uint64_scan,
                      [GPURUN_FLOAT] = max_float_scan,
                      [GPURUN_DOUBLE] = max_double_scan},
        [SCAN_MIN] = {[GPURUN_UINT8] = min_uint8_scan,
                      [GPURUN_INT32] = min_int32_scan,
                      [GPURUN_UINT32] = min_uint32_scan,
                      [GPURUN_INT64] = min_int64_scan,
                      [GPURUN_UINT64] = min_uint64_scan,
                      [GPURUN_FLOAT] = min_float_scan,
                      [GPURUN_DOUBLE] = min_double_scan},
    };

    return __builtin_cpu_supports("avx2") ? pieces[op][dtype] : NULL;
}
#else
scan_piece *scan_cpu_avx2(enum scan_op op, enum gpurun_dtype dtype)
{
    (void)op;
    (void)dtype;
    return NULL;
}
#endif
