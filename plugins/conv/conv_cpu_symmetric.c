/*
 * Bytes under a separable mask whose row and column read the same from either end. Pixels with the same weight
 * are added first, and the processor multiplies and adds 16-bit numbers in pairs: down the column a pair is two
 * weights' pixels; along the row it is the two parts of one sum, which has more than 16 bits.
 */
#include "conv_cpu.h"
#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

enum {
    CUT = 5,      /* lowest bits of a sum that are a part of their own */
    STRIP = 2048, /* elements that go down, and then along while the cache has them */
    SUM_MOST = INT16_MAX << (CUT - 1), /* twice as much without its lowest bits fits 16 bits */
    WEIGHT_MOST = INT16_MAX >> CUT,
};

struct taps {
    int width, height;
    int64_t channels;
    /* Each two weights of 16 bits. down: of half the height and the one before it, then two by two up to the top.
     * along: of the two parts of a sum. */
    int32_t down[CONV_SIZE_MAX / 2 + 1], along[CONV_SIZE_MAX / 2 + 1];
};

static int32_t pair_of(int32_t low, int32_t high)
{
    return (int32_t)((uint32_t)high << 16 | (low & 0xffff));
}

static struct taps taps_of(const struct conv_cpu *cpu)
{
    const struct conv_mask *mask = cpu->mask;
    struct taps taps = {.width = mask->width, .height = mask->height, .channels = cpu->channels};

    for (int i = 0; i <= mask->height / 2; i++)
        taps.down[i] = pair_of(mask->column[i], i > 0 ? mask->column[i - 1] : 0);
    for (int j = 0; j <= mask->width / 2; j++)
        taps.along[j] = pair_of(mask->row[j], mask->row[j] * (1 << CUT));
    return taps;
}

/* --- 16 bytes at a time ------------------------------------------------------------------------------ */

#define NAME(x)      x##_sse2
#define VECTOR_BYTES 16
#define TARGET
#define ADD_TWO(v)      add_two_sse2((__m128i)(v))
#define MADD(a, b)      _mm_madd_epi16((__m128i)(a), (__m128i)(b))
#define TO_BYTES(to, v) to_bytes_sse2(to, (const __m128i *)(v))
#define BYTES_LOW       0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define BYTES_HIGH      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define WORDS_LOW       0, 8, 1, 9, 2, 10, 3, 11
#define WORDS_HIGH      4, 12, 5, 13, 6, 14, 7, 15
#define ORDER(v)        ((void)(v))

static inline __m128i add_two_sse2(__m128i v)
{
    return _mm_add_epi16(_mm_srli_epi16(v, 8), _mm_and_si128(v, _mm_set1_epi16(0xff)));
}

static inline void to_bytes_sse2(uint8_t *to, const __m128i v[4])
{
    const __m128i low = _mm_packs_epi32(v[0], v[1]), high = _mm_packs_epi32(v[2], v[3]);
    const __m128i bytes = _mm_packus_epi16(low, high);

    _mm_storeu_si128((__m128i *)(void *)to, bytes);
}

#include "conv_cpu_symmetric_kind.h"

/* --- 32, within whose halves bytes and words change places ------------------------------------------- */

#define AVX2            __attribute__((target("avx2")))
#define NAME(x)         x##_avx2
#define VECTOR_BYTES    32
#define TARGET          AVX2
#define ADD_TWO(v)      _mm256_maddubs_epi16((__m256i)(v), _mm256_set1_epi8(1))
#define MADD(a, b)      _mm256_madd_epi16((__m256i)(a), (__m256i)(b))
#define TO_BYTES(to, v) to_bytes_avx2(to, (const __m256i *)(v))
#define BYTES_LOW                                                                                  \
    0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 16, 48, 17, 49, 18, 50, 19, 51, 20,    \
        52, 21, 53, 22, 54, 23, 55
#define BYTES_HIGH                                                                                 \
    8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47, 24, 56, 25, 57, 26, 58, 27, 59,  \
        28, 60, 29, 61, 30, 62, 31, 63
#define WORDS_LOW  0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27
#define WORDS_HIGH 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31
#define ORDER(v)   order_avx2((__m256i *)(v))

AVX2 static inline void order_avx2(__m256i v[4])
{
    const __m256i a = v[0], b = v[1], c = v[2], d = v[3];

    v[0] = _mm256_permute2x128_si256(a, b, 0x20);
    v[1] = _mm256_permute2x128_si256(c, d, 0x20);
    v[2] = _mm256_permute2x128_si256(a, b, 0x31);
    v[3] = _mm256_permute2x128_si256(c, d, 0x31);
}

AVX2 static inline void to_bytes_avx2(uint8_t *to, const __m256i v[4])
{
    const __m256i low = _mm256_packs_epi32(v[0], v[1]), high = _mm256_packs_epi32(v[2], v[3]);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);

    _mm256_storeu_si256((__m256i *)(void *)to, bytes);
}

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

bool conv_cpu_use_symmetric(struct conv_cpu *cpu)
{
    const struct conv_mask *mask = cpu->mask;

    if (!mask->is_separable || !is_symmetric(mask->row, mask->width) ||
        !is_symmetric(mask->column, mask->height))
        return false;
    for (int j = 0; j < mask->width; j++)
        if (abs(mask->row[j]) > WEIGHT_MOST)
            return false;
    if (255 * magnitude(mask->column, mask->height) > SUM_MOST)
        return false;
    cpu->down = cpu->level >= CONV_CPU_AVX2 ? down_avx2 : down_sse2;
    return true;
}
#else
bool conv_cpu_use_symmetric(struct conv_cpu *cpu)
{
    (void)cpu;
    return false;
}
#endif
