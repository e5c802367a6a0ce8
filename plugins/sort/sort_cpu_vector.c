/*
 * Quicksort by vectors. A partition goes from one of two buffers to the other: a vector is compared with the pivot, one
 * permutation puts its smaller keys first, and it is stored twice, below what is still free and at the end of it. What
 * a few registers hold is sorted by a network: columns first, then columns are merged across lanes.
 */
#include "sort_cpu_vector.h"
#include <math.h>

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2   __attribute__((target("avx2,popcnt")))
#define INLINE AVX2 static inline __attribute__((always_inline))

enum {
    VECTOR = 32, /* bytes */
    ROWS = 16,   /* of a network, at most */
};

/* --- permutations that put the lanes of a mask first, in their order ----------------------------------------- */

#define BELOW(mask, i) __builtin_popcount((mask) & ((1 << (i)) - 1))
#define PLACE(mask, i, lanes)                                                                      \
    ((mask) >> (i)&1 ? BELOW(mask, i) : BELOW(mask, lanes) + (i)-BELOW(mask, i))
#define LANE(mask, i) ((uint64_t)(i) << 8 * PLACE(mask, i, 8))
#define FIRST(mask)                                                                                \
    (LANE(mask, 0) | LANE(mask, 1) | LANE(mask, 2) | LANE(mask, 3) | LANE(mask, 4) |               \
     LANE(mask, 5) | LANE(mask, 6) | LANE(mask, 7))
#define FIRST_4(mask)  FIRST(mask), FIRST((mask) + 1), FIRST((mask) + 2), FIRST((mask) + 3)
#define FIRST_16(mask) FIRST_4(mask), FIRST_4((mask) + 4), FIRST_4((mask) + 8), FIRST_4((mask) + 12)
#define FIRST_64(mask)                                                                             \
    FIRST_16(mask), FIRST_16((mask) + 16), FIRST_16((mask) + 32), FIRST_16((mask) + 48)

/* Lanes of 32 bits, a byte each. */
static const uint64_t first_lanes[256] = {FIRST_64(0), FIRST_64(64), FIRST_64(128), FIRST_64(192)};

INLINE __m256i first_of(uint64_t lanes)
{
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)lanes));
}

INLINE __m256i load(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

INLINE void store(void *to, __m256i v)
{
    _mm256_storeu_si256((__m256i *)to, v);
}

/* --- networks of comparators: C(o + i, o + j) puts the lesser of rows i and j first ---------------------------- */

/* clang-format off */
#define SORT_8(C, o)                                                                               \
    C(o, 2 + o); C(1 + o, 3 + o); C(4 + o, 6 + o); C(5 + o, 7 + o); C(o, 4 + o);                   \
    C(1 + o, 5 + o); C(2 + o, 6 + o); C(3 + o, 7 + o); C(o, 1 + o); C(2 + o, 3 + o);               \
    C(4 + o, 5 + o); C(6 + o, 7 + o); C(2 + o, 4 + o); C(3 + o, 5 + o); C(1 + o, 4 + o);           \
    C(3 + o, 6 + o); C(1 + o, 2 + o); C(3 + o, 4 + o); C(5 + o, 6 + o)
/* Two sorted halves of 16 rows. */
#define MERGE_16(C)                                                                                \
    C(0, 8); C(1, 9); C(2, 10); C(3, 11); C(4, 12); C(5, 13); C(6, 14); C(7, 15); C(4, 8);         \
    C(5, 9); C(6, 10); C(7, 11); C(2, 4); C(3, 5); C(6, 8); C(7, 9); C(10, 12); C(11, 13);         \
    C(1, 2); C(3, 4); C(5, 6); C(7, 8); C(9, 10); C(11, 12); C(13, 14)
/* What first ascends and then descends. */
#define HALVE_4(C, o)                                                                              \
    C(o, 2 + o); C(1 + o, 3 + o); C(o, 1 + o); C(2 + o, 3 + o)
#define HALVE_8(C, o)                                                                              \
    C(o, 4 + o); C(1 + o, 5 + o); C(2 + o, 6 + o); C(3 + o, 7 + o); HALVE_4(C, o);                 \
    HALVE_4(C, 4 + o)
#define HALVE_16(C)                                                                                \
    C(0, 8); C(1, 9); C(2, 10); C(3, 11); C(4, 12); C(5, 13); C(6, 14); C(7, 15);                  \
    HALVE_8(C, 0); HALVE_8(C, 8)
/* clang-format on */

/* --- 8 lanes of 32 bits ---------------------------------------------------------------------------------------- */

INLINE void order32(__m256i *a, __m256i *b)
{
    const __m256i least = _mm256_min_epi32(*a, *b);

    *b = _mm256_max_epi32(*a, *b);
    *a = least;
}

INLINE __m256i reverse_8(__m256i v)
{
    return _mm256_shuffle_epi32(_mm256_permute4x64_epi64(v, 0x4e), 0x1b);
}

/* Eight rows become columns. */
INLINE void transpose32(__m256i v[8])
{
    __m256i a[8], b[8];

    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
        a[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
        v[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
    }
}

#define NAME(x)        x##32
#define BITS           uint32_t
#define BITS_MOST      UINT32_MAX
#define KEY            int32_t
#define KEY_MOST       INT32_MAX
#define RANK(bits)     (bits)
#define RANKED(rank)   (rank)
#define SIGNS(v)       _mm256_srai_epi32(v, 31)
#define ORDER_TWO      order32
#define TRANSPOSE      transpose32
#define SET(x)         _mm256_set1_epi32((int)(x))
#define GREATER(a, b)  _mm256_cmpgt_epi32(a, b)
#define MASK(v)        (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(v))
#define LANES_FIRST(m) first_of(first_lanes[m])
#define SORT_LANES(M, X, H)                                                                        \
    M(SWAP_1, 0xaa);                                                                               \
    H;                                                                                             \
    M(REVERSE_4, 0xcc);                                                                            \
    X(SWAP_1, 0xaa);                                                                               \
    H;                                                                                             \
    M(REVERSE_8, 0xf0);                                                                            \
    X(SWAP_2, 0xcc);                                                                               \
    X(SWAP_1, 0xaa);                                                                               \
    H
#define SWAP_1(v)    _mm256_shuffle_epi32(v, 0xb1)
#define SWAP_2(v)    _mm256_shuffle_epi32(v, 0x4e)
#define REVERSE_4(v) _mm256_shuffle_epi32(v, 0x1b)
#define REVERSE_8(v) reverse_8(v)
#include "sort_cpu_vector_kind.h"
#undef SWAP_1
#undef SWAP_2
#undef REVERSE_4
#undef REVERSE_8

/* --- 4 lanes of 64 bits ---------------------------------------------------------------------------------------- */

INLINE void order64(__m256i *a, __m256i *b)
{
    const __m256i greater = _mm256_cmpgt_epi64(*a, *b);
    const __m256i least = _mm256_blendv_epi8(*a, *b, greater);

    *b = _mm256_blendv_epi8(*b, *a, greater);
    *a = least;
}

/* Four rows become columns. */
INLINE void transpose64(__m256i v[4])
{
    __m256i a[4];

    for (int i = 0; i < 4; i += 2) {
        a[i] = _mm256_unpacklo_epi64(v[i], v[i + 1]);
        a[i + 1] = _mm256_unpackhi_epi64(v[i], v[i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        v[i] = _mm256_permute2x128_si256(a[i], a[i + 2], 0x20);
        v[i + 2] = _mm256_permute2x128_si256(a[i], a[i + 2], 0x31);
    }
}

/* The lanes of a mask of four, as pairs of 32 bits. */
#define PAIRS(mask)                                                                                \
    (((mask)&1) * 3 | ((mask) >> 1 & 1) * 12 | ((mask) >> 2 & 1) * 48 | ((mask) >> 3) * 192)

static const uint64_t first_pairs[16] = {
    FIRST(PAIRS(0)),  FIRST(PAIRS(1)),  FIRST(PAIRS(2)),  FIRST(PAIRS(3)),
    FIRST(PAIRS(4)),  FIRST(PAIRS(5)),  FIRST(PAIRS(6)),  FIRST(PAIRS(7)),
    FIRST(PAIRS(8)),  FIRST(PAIRS(9)),  FIRST(PAIRS(10)), FIRST(PAIRS(11)),
    FIRST(PAIRS(12)), FIRST(PAIRS(13)), FIRST(PAIRS(14)), FIRST(PAIRS(15))};

#define SWAP_1(v)    _mm256_shuffle_epi32(v, 0x4e)
#define REVERSE_4(v) _mm256_permute4x64_epi64(v, 0x1b)
#define SORT_LANES_4(M, X, H)                                                                      \
    M(SWAP_1, 0xcc);                                                                               \
    H;                                                                                             \
    M(REVERSE_4, 0xf0);                                                                            \
    X(SWAP_1, 0xcc);                                                                               \
    H

#define NAME(x)        x##64
#define BITS           uint64_t
#define BITS_MOST      UINT64_MAX
#define KEY            int64_t
#define KEY_MOST       INT64_MAX
#define RANK(bits)     (bits)
#define RANKED(rank)   (rank)
#define SIGNS(v)       _mm256_cmpgt_epi64(_mm256_setzero_si256(), v)
#define ORDER_TWO      order64
#define TRANSPOSE      transpose64
#define SET(x)         _mm256_set1_epi64x((long long)(x))
#define GREATER(a, b)  _mm256_cmpgt_epi64(a, b)
#define MASK(v)        (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(v))
#define LANES_FIRST(m) first_of(first_pairs[m])
#define SORT_LANES     SORT_LANES_4
#include "sort_cpu_vector_kind.h"

/* Doubles that are no NaN, whose two zeros are as good as each other: their order takes an instruction less. */
INLINE void order_real64(__m256i *a, __m256i *b)
{
    const __m256d x = _mm256_castsi256_pd(*a), y = _mm256_castsi256_pd(*b);

    *a = _mm256_castpd_si256(_mm256_min_pd(x, y));
    *b = _mm256_castpd_si256(_mm256_max_pd(x, y));
}

INLINE __m256i greater_real64(__m256i a, __m256i b)
{
    return _mm256_castpd_si256(
        _mm256_cmp_pd(_mm256_castsi256_pd(a), _mm256_castsi256_pd(b), _CMP_GT_OQ));
}

#define NAME(x)        x##_real64
#define BITS           uint64_t
#define BITS_MOST      UINT64_MAX
#define KEY            double
#define KEY_MOST       INFINITY
#define RANK(bits)     key_of64(bits, (struct vector_turn){0, true})
#define RANKED(rank)   turned_one64(rank, true)
#define SIGNS(v)       _mm256_cmpgt_epi64(_mm256_setzero_si256(), v)
#define ORDER_TWO      order_real64
#define TRANSPOSE      transpose64
#define SET(x)         _mm256_set1_epi64x((long long)(x))
#define GREATER(a, b)  greater_real64(a, b)
#define MASK(v)        (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(v))
#define LANES_FIRST(m) first_of(first_pairs[m])
#define SORT_LANES     SORT_LANES_4
#include "sort_cpu_vector_kind.h"

/* --- zeros and NaNs ------------------------------------------------------------------------------------------------ */

/* Appends the lanes of a mask, which all have 4 bytes. */
INLINE void pick(void *to, int64_t *bytes, __m256i v, __m256i lanes)
{
    const unsigned mask = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(lanes));

    store((char *)to + *bytes, _mm256_permutevar8x32_epi32(v, first_of(first_lanes[mask])));
    *bytes += (int64_t)sizeof(uint32_t) * __builtin_popcount(mask);
}

AVX2 int64_t sort_cpu_vector_pick32(const void *from, int64_t bytes, struct vector_picks *picks)
{
    const __m256i zero = _mm256_setzero_si256(), infinite = _mm256_set1_epi32(0x7f800000);
    int64_t at = 0;

    for (; at + VECTOR <= bytes; at += VECTOR) {
        const __m256i v = load((const char *)from + at);
        const __m256i size = _mm256_and_si256(v, _mm256_set1_epi32(INT32_MAX));

        pick(picks->zeros, &picks->zero_bytes, v, _mm256_cmpeq_epi32(size, zero));
        pick(picks->nans, &picks->nan_bytes, v, _mm256_cmpgt_epi32(size, infinite));
    }
    return at;
}

AVX2 int64_t sort_cpu_vector_pick64(const void *from, int64_t bytes, struct vector_picks *picks)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i infinite = _mm256_set1_epi64x(INT64_C(0x7ff0000000000000));
    int64_t at = 0;

    for (; at + VECTOR <= bytes; at += VECTOR) {
        const __m256i v = load((const char *)from + at);
        const __m256i size = _mm256_and_si256(v, _mm256_set1_epi64x(INT64_MAX));

        pick(picks->zeros, &picks->zero_bytes, v, _mm256_cmpeq_epi64(size, zero));
        pick(picks->nans, &picks->nan_bytes, v, _mm256_cmpgt_epi64(size, infinite));
    }
    return at;
}

bool sort_cpu_vector_is_here(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt");
}
#else
bool sort_cpu_vector_is_here(void)
{
    return false;
}

void sort_cpu_vector32(const struct vector_job *job)
{
    (void)job;
}

void sort_cpu_vector64(const struct vector_job *job)
{
    (void)job;
}

void sort_cpu_vector_real64(const struct vector_job *job)
{
    (void)job;
}

int64_t sort_cpu_vector_pick32(const void *from, int64_t bytes, struct vector_picks *picks)
{
    (void)from, (void)bytes, (void)picks;
    return 0;
}

int64_t sort_cpu_vector_pick64(const void *from, int64_t bytes, struct vector_picks *picks)
{
    (void)from, (void)bytes, (void)picks;
    return 0;
}
#endif

int sort_cpu_vector_levels(int64_t elems)
{
    return 2 * (64 - __builtin_clzll((uint64_t)elems | 1));
}
