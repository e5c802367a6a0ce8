/*
 * The loops of conv_cpu_bytes.c for one width of vectors. Before it is included VECTOR_BYTES is that of a vector,
 * `vector` the type of one, TARGET the attribute of functions on them, and V(name) an instruction's name.
 *
 * Of two taps at a time the processor multiplies bytes by signed bytes and adds the products. Small masks go down the
 * image two rows at a time. Else each row of the answer is worked out alone, by the taps that have a weight.
 */
#include "conv_cpu_bytes.h"

#define INLINE TARGET static inline __attribute__((always_inline))
/* Of known counts, so that arrays stay in registers. */
#define UNROLL _Pragma("GCC unroll 8")

enum {
    CHUNK = 64, /* bytes */
    VECTORS = CHUNK / VECTOR_BYTES,
    PAIRS_MOST = CONV_CPU_BYTES_MAGNITUDE / 2 + 1,
    WORDS = VECTOR_BYTES / sizeof(int16_t),
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

INLINE vector bytes_at(const char *from)
{
    vector bytes;

    memcpy(&bytes, from, sizeof bytes);
    return bytes;
}

/* Sums of a vector of bytes: within each 16 of them the lower eight and the upper. */
struct sums {
    vector low, high;
};

TARGET static inline void add_pair(struct sums *sums, const char *first, const char *second,
                                   vector weights)
{
    const vector a = bytes_at(first);
    const vector b = bytes_at(second);
    const vector low = V(unpacklo_epi8)(a, b), high = V(unpackhi_epi8)(a, b);

    sums->low = V(add_epi16)(sums->low, V(maddubs_epi16)(low, weights));
    sums->high = V(add_epi16)(sums->high, V(maddubs_epi16)(high, weights));
}

TARGET static inline vector finish(const struct conv_tail *tail, struct sums sums)
{
    const vector add = V(set1_epi16)((int16_t)tail->add);
    const __m128i shift = _mm_cvtsi32_si128(tail->shift);

    return V(packus_epi16)(V(sra_epi16)(V(adds_epi16)(sums.low, add), shift),
                           V(sra_epi16)(V(adds_epi16)(sums.high, add), shift));
}

TARGET static void down_one(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                            char *out)
{
    struct pair pairs[PAIRS_MOST];
    const int count = pairs_of(cpu, strip->lines, pairs);
    struct conv_cpu_run run;

    for (int64_t e = 0; e < strip->elems; e += CHUNK) {
        struct sums sums[VECTORS] = {0};
        vector *results = (vector *)(void *)conv_cpu_place(&run, e);

        conv_cpu_fetch(cpu, strip, e, CHUNK);
        for (int i = 0; i < count; i++)
            for (int v = 0; v < VECTORS; v++)
                add_pair(&sums[v], pairs[i].first + e + v * VECTOR_BYTES,
                         pairs[i].second + e + v * VECTOR_BYTES, V(set1_epi32)(pairs[i].weights));
        for (int v = 0; v < VECTORS; v++)
            results[v] = finish(&cpu->tail, sums[v]);
        conv_cpu_put_chunk(cpu, &run, out, e, CHUNK, strip->elems);
    }
}

#include "conv_cpu_bytes_two_kind.h"

static void use(struct conv_cpu *cpu)
{
    if (!use_two(cpu))
        cpu->down = down_one;
}
