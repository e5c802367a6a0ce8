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
#define ADD_TWO(v)        add_two_sse2((__m128i)(v))
#define VECTOR            __m128i
#define V(name)           _mm_##name
#define ADD_MADD(s, a, b) _mm_add_epi32((__m128i)(s), _mm_madd_epi16((__m128i)(a), (__m128i)(b)))
#define TO_BYTES(to, v)   to_bytes_sse2(to, (const __m128i *)(v))
#define ORDER(v)          ((void)(v))

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

#define AVX2         __attribute__((target("avx2")))
#define NAME(x)      x##_avx2
#define VECTOR_BYTES 32
#define TARGET       AVX2
#define ADD_TWO(v)   _mm256_maddubs_epi16((__m256i)(v), _mm256_set1_epi8(1))
#define VECTOR       __m256i
#define V(name)      _mm256_##name
#define ADD_MADD(s, a, b)                                                                          \
    _mm256_add_epi32((__m256i)(s), _mm256_madd_epi16((__m256i)(a), (__m256i)(b)))
#define TO_BYTES(to, v) to_bytes_avx2(to, (const __m256i *)(v))
#define ORDER(v)        order_avx2((__m256i *)(v))

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

/* --- 64, which add what they multiply -------------------------------------------------------------------- */

#define AVX512            __attribute__((target("avx512bw,avx512vnni")))
#define NAME(x)           x##_avx512
#define VECTOR_BYTES      64
#define TARGET            AVX512
#define VECTOR            __m512i
#define V(name)           _mm512_##name
#define ADD_TWO(v)        _mm512_maddubs_epi16((__m512i)(v), _mm512_set1_epi8(1))
#define ADD_MADD(s, a, b) _mm512_dpwssd_epi32((__m512i)(s), (__m512i)(a), (__m512i)(b))
#define TO_BYTES(to, v)   to_bytes_avx512(to, (const __m512i *)(v))
#define ORDER(v)          order_avx512((__m512i *)(v))

AVX512 static inline void order_avx512(__m512i v[4])
{
    const __m512i a = _mm512_shuffle_i32x4(v[0], v[1], 0x44),
                  b = _mm512_shuffle_i32x4(v[2], v[3], 0x44),
                  c = _mm512_shuffle_i32x4(v[0], v[1], 0xee),
                  d = _mm512_shuffle_i32x4(v[2], v[3], 0xee);

    v[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    v[1] = _mm512_shuffle_i32x4(a, b, 0xdd);
    v[2] = _mm512_shuffle_i32x4(c, d, 0x88);
    v[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
}

AVX512 static inline void to_bytes_avx512(uint8_t *to, const __m512i v[4])
{
    const __m512i low = _mm512_packs_epi32(v[0], v[1]), high = _mm512_packs_epi32(v[2], v[3]);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);

    _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high)));
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
