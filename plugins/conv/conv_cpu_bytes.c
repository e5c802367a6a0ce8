/*
 * Bytes under a mask of small weights, whose sums fit 16 bits: of two taps at a time the processor multiplies bytes
 * by signed bytes and adds the products. Taps of no weight are left out.
 */
#include "conv_cpu.h"
#include <stdlib.h>

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

enum {
    VECTOR = 32, /* bytes */
    CHUNK = 64,
    MAGNITUDE_MOST = INT16_MAX / 255,
    PAIRS_MOST = MAGNITUDE_MOST / 2 + 1,
};

_Static_assert(2 * (int)CHUNK <= (int)CONV_CPU_SLACK, "two chunks may reach as far behind a row");

/* Two taps: where their bytes stand for element 0, and their weights, the first in the low byte. */
struct pair {
    const char *first, *second;
    int32_t weights; /* in either half */
};

static int pairs_of(const struct conv_cpu *cpu, const char *const *rows, struct pair *pairs)
{
    const struct conv_mask *mask = cpu->mask;
    int taps = 0;

    for (int i = 0; i < mask->width * mask->height; i++) {
        const char *at = rows[i / mask->width] + i % mask->width * cpu->channels;
        const int32_t weight = mask->weight[i] & 0xff;
        struct pair *pair = &pairs[taps / 2];

        if (weight == 0)
            continue;
        if (taps++ % 2 == 0)
            *pair = (struct pair){at, at, weight * 0x10001};
        else
            *pair = (struct pair){pair->first, at,
                                  (int32_t)((uint32_t)weight * 0x1000100) | pair->weights};
    }
    return (taps + 1) / 2;
}

/* Sums of 32 bytes: within each half of 16 the lower eight and the upper. */
struct sums {
    __m256i low, high;
};

AVX2 static inline void add_pair(struct sums *sums, const char *first, const char *second,
                                 __m256i weights)
{
    const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)first);
    const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)second);
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);

    sums->low = _mm256_add_epi16(sums->low, _mm256_maddubs_epi16(low, weights));
    sums->high = _mm256_add_epi16(sums->high, _mm256_maddubs_epi16(high, weights));
}

AVX2 static inline __m256i finish(const struct conv_tail *tail, struct sums sums)
{
    const __m256i add = _mm256_set1_epi16((int16_t)tail->add);
    const __m128i shift = _mm_cvtsi32_si128(tail->shift);

    return _mm256_packus_epi16(_mm256_sra_epi16(_mm256_adds_epi16(sums.low, add), shift),
                               _mm256_sra_epi16(_mm256_adds_epi16(sums.high, add), shift));
}

AVX2 static inline void put(const struct conv_cpu *cpu, char *to, __m256i results)
{
    if (cpu->is_streamed)
        _mm256_stream_si256((__m256i *)(void *)to, results);
    else
        _mm256_storeu_si256((__m256i *)(void *)to, results);
}

/* The results of a chunk that may be the last of its row. */
AVX2 static inline void put_chunk(const struct conv_cpu *cpu, char *to, const __m256i results[2],
                                  int64_t left)
{
    if (left < CHUNK) {
        memcpy(to, results, (size_t)left);
        return;
    }
    put(cpu, to, results[0]);
    put(cpu, to + VECTOR, results[1]);
}

AVX2 static void down(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip, char *out)
{
    struct pair pairs[PAIRS_MOST];
    const int count = pairs_of(cpu, strip->lines, pairs);

    for (int64_t e = 0; e < strip->elems; e += CHUNK) {
        struct sums left = {{0}, {0}}, right = {{0}, {0}};
        __m256i results[2];

        conv_cpu_fetch(cpu, strip, e, CHUNK);
        for (int i = 0; i < count; i++) {
            const __m256i weights = _mm256_set1_epi32(pairs[i].weights);

            add_pair(&left, pairs[i].first + e, pairs[i].second + e, weights);
            add_pair(&right, pairs[i].first + e + VECTOR, pairs[i].second + e + VECTOR, weights);
        }
        results[0] = finish(&cpu->tail, left);
        results[1] = finish(&cpu->tail, right);
        put_chunk(cpu, out + e, results, strip->elems - e);
    }
}

bool conv_cpu_use_bytes(struct conv_cpu *cpu)
{
    const struct conv_mask *mask = cpu->mask;
    const struct conv_tail *tail = &cpu->tail;

    if (mask->magnitude > MAGNITUDE_MOST || tail->multiplier != 1 || tail->is_even || tail->is_wide)
        return false;
    for (int i = 0; i < mask->width * mask->height; i++)
        if (mask->weight[i] > INT8_MAX)
            return false;
    /* What saturates at 16 bits saturates at 8 too, unless it is shifted. */
    if (llabs(tail->add) > INT16_MAX ||
        (tail->shift > 0 && 255 * mask->magnitude + (double)llabs(tail->add) > INT16_MAX))
        return false;
    if (!__builtin_cpu_supports("avx2"))
        return false;
    cpu->down = down;
    return true;
}
#else
bool conv_cpu_use_bytes(struct conv_cpu *cpu)
{
    (void)cpu;
    return false;
}
#endif
