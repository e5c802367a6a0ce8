/*
 * Bytes under a separable mask whose row and column read the same from either end. Pixels with the same weight are
 * added first, and the processor multiplies and adds 16-bit numbers in pairs: along the row a pair is two weights'
 * pixels; down the column it is the two parts of one sum, which has more than 16 bits. Sums along the row are made
 * once for each line and kept while the mask passes.
 */
#include "conv_cpu_symmetric.h"
#include <stdlib.h>

#ifdef __x86_64__
enum {
    CUT = 5,           /* lowest bits of a sum that are a part of their own */
    STRIP = 1152,      /* elements of a row that are taken at a time, at the most, */
    STRIP_LEAST = 192, /* and at the least */
    SUMS_MOST = 6144,  /* of all lines under the mask: they stay in the L1 cache */
    BAND_ROWS = 16, /* of the answer, for each line under the mask, whose sums a band begins with */
    SUM_MOST = INT16_MAX << (CUT - 1), /* twice as much without its lowest bits fits 16 bits */
    WEIGHT_MOST = INT16_MAX >> CUT,
};

_Static_assert((int)CONV_CPU_SYMMETRIC_ROW_MOST == (int)SUM_MOST / 255, "one bound for all widths");

struct taps {
    int width;
    int64_t channels;
    int height;
    /* Each two weights of 16 bits. along: of half the width and the one before it, then two by two up to the first.
     * down: of the two parts of a sum. */
    int32_t along[CONV_SIZE_MAX / 2 + 1], down[CONV_SIZE_MAX / 2 + 1];
};

/* What is kept of a strip, from row to row. */
struct state {
    struct taps taps;
    int first; /* where the top line under the mask stands in `rows` */
    _Alignas(64) int32_t rows[CONV_SIZE_MAX][STRIP]; /* sums along the mask's row, cut */
};

static int32_t pair_of(int32_t low, int32_t high)
{
    return (int32_t)((uint32_t)high << 16 | (low & 0xffff));
}

static struct taps taps_of(const struct conv_cpu *cpu)
{
    const struct conv_mask *mask = cpu->mask;
    struct taps taps = {.width = mask->width, .height = mask->height, .channels = cpu->channels};

    for (int j = 0; j <= mask->width / 2; j++)
        taps.along[j] = pair_of(mask->row[j], j > 0 ? mask->row[j - 1] : 0);
    for (int i = 0; i <= mask->height / 2; i++)
        taps.down[i] = pair_of(mask->column[i], mask->column[i] * (1 << CUT));
    return taps;
}

static void begin_band(const struct conv_cpu *cpu, struct state *state)
{
    state->taps = taps_of(cpu);
    state->first = 0;
}

/* --- 16 bytes at a time ------------------------------------------------------------------------------ */

#define NAME(x)      x##_sse2
#define VECTOR_BYTES 16
#define TARGET
#define ADD_TWO(v)        add_two_sse2((__m128i)(v))
#define VECTOR            __m128i
#define V(name)           _mm_##name
#define ADD_MADD(s, a, b) _mm_add_epi32((__m128i)(s), _mm_madd_epi16((__m128i)(a), (__m128i)(b)))
#define PUT(to, v)        _mm_storeu_si128((__m128i *)(void *)(to), v)

static inline __m128i add_two_sse2(__m128i v)
{
    return _mm_add_epi16(_mm_srli_epi16(v, 8), _mm_and_si128(v, _mm_set1_epi16(0xff)));
}

#include "conv_cpu_symmetric_kind.h"

/* --- 32------------------------------------------- */

#define AVX2         __attribute__((target("avx2")))
#define NAME(x)      x##_avx2
#define VECTOR_BYTES 32
#define TARGET       AVX2
#define ADD_TWO(v)   _mm256_maddubs_epi16((__m256i)(v), _mm256_set1_epi8(1))
#define VECTOR       __m256i
#define V(name)      _mm256_##name
#define ADD_MADD(s, a, b)                                                                          \
    _mm256_add_epi32((__m256i)(s), _mm256_madd_epi16((__m256i)(a), (__m256i)(b)))
#define PUT(to, v) _mm256_storeu_si256((__m256i *)(void *)(to), v)

#include "conv_cpu_symmetric_kind.h"

/* --- 64, which add what they multiply -------------------------------------------------------------------- */

#define AVX512            __attribute__((target("avx512bw,avx512vnni")))
#define NAME(x)           x##_avx512
#define VECTOR_BYTES      64
#define TARGET            AVX512
#define VECTOR            __m512i
#define V(name)           _mm512_##name
#define ADD_TWO(v)        _mm512_maddubs_epi16((__m512i)(v), _mm512_set1_epi8(1))
#define ADD_MADD(s, a, b) _mm512_dpwssd_epi32((__m512i)(s), (__m512i)(a), (__m512i)(b))
#define PUT(to, v)        _mm512_storeu_si512(to, v)

#include "conv_cpu_symmetric_kind.h"

/* --- which masks ------------------------------------------------------------------------------------------ */

static int32_t magnitude(const int32_t *weights, int count)
{
    int32_t sum = 0;

    for (int i = 0; i < count; i++)
        sum += abs(weights[i]);
    return sum;
}

static bool is_symmetric(const int32_t *weights, int count)
{
    for (int i = 0; i < count / 2; i++)
        if (weights[i] != weights[count - 1 - i])
            return false;
    return count >= 3;
}

static int64_t strip_most(int height)
{
    const int64_t fits = SUMS_MOST / height / STRIP_LEAST * STRIP_LEAST;

    return fits < STRIP_LEAST ? STRIP_LEAST : fits > STRIP ? STRIP : fits;
}

bool conv_cpu_use_symmetric(struct conv_cpu *cpu)
{
    const struct conv_mask *mask = cpu->mask;

    if (!mask->is_separable || !is_symmetric(mask->row, mask->width) ||
        !is_symmetric(mask->column, mask->height))
        return false;
    for (int i = 0; i < mask->height; i++)
        if (abs(mask->column[i]) > WEIGHT_MOST)
            return false;
    if (255 * magnitude(mask->row, mask->width) > SUM_MOST)
        return false;
    cpu->strip_most = strip_most(mask->height);
    cpu->band = BAND_ROWS * mask->height;
    if (cpu->level == CONV_CPU_AVX512 && conv_cpu_use_symmetric_avx512(cpu))
        return true;
    cpu->state_bytes = sizeof(struct state);
    cpu->down = cpu->level == CONV_CPU_AVX512 ? down_avx512
                : cpu->level == CONV_CPU_AVX2 ? down_avx2
                                              : down_sse2;
    return true;
}
#else
bool conv_cpu_use_symmetric(struct conv_cpu *cpu)
{
    (void)cpu;
    return false;
}
#endif
