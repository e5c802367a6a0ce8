/*
 * How one thread reads and copies host memory as fast as it goes: what the core's own read, copy and fill are made
 * of, and the baseline of the plugin bandwidth. For C.
 */
#ifndef GPURUN_HOST_MEMORY_H
#define GPURUN_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* --- reading ------------------------------------------------------------------------------------------ */

/* Sets of vector instructions, each with those before it. */
enum gpurun_vectors { GPURUN_VECTORS_ANY, GPURUN_VECTORS_AVX2, GPURUN_VECTORS_AVX512 };

/* The last that this processor has: of AVX-512 its F and DQ. */
static inline enum gpurun_vectors gpurun_best_vectors(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return GPURUN_VECTORS_AVX512;
    if (__builtin_cpu_supports("avx2"))
        return GPURUN_VECTORS_AVX2;
#endif
    return GPURUN_VECTORS_ANY;
}

enum {
    GPURUN_READ_MANY = 4,        /* registers that are read at a time */
    GPURUN_READ_PIECE = 1 << 16, /* bytes that are read in one order */
};

/* Of a piece of GPURUN_READ_MANY * steps registers the one that is read as the k-th of step i: i * next + k * apart. */
struct gpurun_read_order {
    int64_t next, apart;
};

/* In a row, or at so many places of the piece in turn. */
static inline struct gpurun_read_order gpurun_read_order(bool in_row, int64_t steps)
{
    return in_row ? (struct gpurun_read_order){GPURUN_READ_MANY, 1}
                  : (struct gpurun_read_order){1, steps};
}

/* Whether this processor reads memory faster in a row: AMD's Zen 5 does, by up to a half, and Intel's Sapphire Rapids at four
 * places, by up to a half too. */
static inline bool gpurun_reads_in_row(void)
{
#ifdef __x86_64__
    return !__builtin_cpu_is("intel");
#else
    return true;
#endif
}

/* The words lie in pairs: of all pairs the sum, less 2^32 - 1 times that of their upper halves. */
#define GPURUN_DEFINE_SUM_WORDS(name, attributes, BYTES)                                           \
    attributes static inline uint64_t name(const uint32_t *in, int64_t elems, bool in_row)         \
    {                                                                                              \
        typedef uint64_t lanes __attribute__((vector_size(BYTES), aligned(4), may_alias));         \
        enum { MANY = GPURUN_READ_MANY, PER_STEP = MANY * BYTES / sizeof(uint32_t) };              \
        const int64_t steps = elems / PER_STEP;                                                    \
        const struct gpurun_read_order order = gpurun_read_order(in_row, steps);                   \
        const lanes *many = (const lanes *)(const void *)in;                                       \
        lanes pairs[MANY] = {{0}}, upper[MANY] = {{0}};                                            \
        uint64_t sum = 0;                                                                          \
                                                                                                   \
        for (int64_t i = 0; i < steps; i++)                                                        \
            for (int k = 0; k < MANY; k++) {                                                       \
                const lanes read = many[i * order.next + k * order.apart];                         \
                                                                                                   \
                pairs[k] += read;                                                                  \
                upper[k] += read >> 32;                                                            \
            }                                                                                      \
        for (int k = 0; k < MANY; k++)                                                             \
            for (size_t lane = 0; lane < BYTES / sizeof(uint64_t); lane++)                         \
                sum += pairs[k][lane] - UINT32_MAX * upper[k][lane];                               \
        for (int64_t i = steps * PER_STEP; i < elems; i++)                                         \
            sum += in[i];                                                                          \
        return sum;                                                                                \
    }

GPURUN_DEFINE_SUM_WORDS(gpurun_sum_piece_any, , 16)
#ifdef __x86_64__
GPURUN_DEFINE_SUM_WORDS(gpurun_sum_piece_avx2, __attribute__((target("avx2"))), 32)
GPURUN_DEFINE_SUM_WORDS(gpurun_sum_piece_avx512, __attribute__((target("avx512f"))), 64)
#endif
#undef GPURUN_DEFINE_SUM_WORDS

static inline uint64_t gpurun_sum_piece(const uint32_t *in, int64_t elems, bool in_row)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return gpurun_sum_piece_avx512(in, elems, in_row);
    if (__builtin_cpu_supports("avx2"))
        return gpurun_sum_piece_avx2(in, elems, in_row);
#endif
    return gpurun_sum_piece_any(in, elems, in_row);
}

/* The sum of all words, modulo 2^64: nothing that is read can be left out unseen. */
static inline uint64_t gpurun_sum_words(const uint32_t *in, int64_t elems)
{
    enum { PIECE = GPURUN_READ_PIECE / sizeof(uint32_t) };
    const bool in_row = gpurun_reads_in_row();
    uint64_t sum = 0;

    for (int64_t at = 0; at < elems; at += PIECE)
        sum += gpurun_sum_piece(in + at, elems - at < PIECE ? elems - at : PIECE, in_row);
    return sum;
}

/* --- copying past the caches -------------------------------------------------------------------------- */

enum { GPURUN_LINE = 64 }; /* bytes */

/* Whole lines, of which `to` is the first. */
static inline void gpurun_stream_lines_any(char *to, const char *from, size_t bytes)
{
#ifdef __x86_64__
    for (size_t at = 0; at < bytes; at += sizeof(__m128i))
        _mm_stream_si128((__m128i *)(void *)(to + at),
                         _mm_loadu_si128((const __m128i *)(const void *)(from + at)));
#else
    memcpy(to, from, bytes);
#endif
}

#ifdef __x86_64__
__attribute__((target("avx512f"))) static inline void
gpurun_stream_lines_avx512(char *to, const char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += sizeof(__m512i))
        _mm512_stream_si512((__m512i *)(void *)(to + at),
                            _mm512_loadu_si512((const void *)(from + at)));
}
#endif

static inline void gpurun_stream_lines(char *to, const char *from, size_t bytes)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        gpurun_stream_lines_avx512(to, from, bytes);
        return;
    }
#endif
    gpurun_stream_lines_any(to, from, bytes);
}

/* As memcpy, but lines that are written whole go past the caches: one that is stored in the ordinary way is read
 * first. For what is larger than the caches. */
static inline void gpurun_copy_past_caches(void *to, const void *from, size_t bytes)
{
    const size_t past = (uintptr_t)to % GPURUN_LINE, before = past > 0 ? GPURUN_LINE - past : 0;
    const size_t first = before < bytes ? before : bytes;
    const size_t lines = (bytes - first) / GPURUN_LINE * GPURUN_LINE, done = first + lines;

    memcpy(to, from, first);
    gpurun_stream_lines((char *)to + first, (const char *)from + first, lines);
    memcpy((char *)to + done, (const char *)from + done, bytes - done);
}

/* Before another thread reads what was copied past the caches. */
static inline void gpurun_end_past_caches(void)
{
#ifdef __x86_64__
    _mm_sfence();
#endif
}

#endif
