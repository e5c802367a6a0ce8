/*
 * Between the files of the baseline: how the rows of a mask are added up, for each kind of sum.
 */
#ifndef CONV_CPU_H
#define CONV_CPU_H

#include "conv_border.h"
#include "conv_mask.h"
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum {
    CONV_CPU_SLACK = 256, /* elements that vectors may read behind a line */
    REACH_MOST =
        (CONV_SIZE_MAX - 1) * 4 /* elements from a mask's first to its last, of 4 channels */
};

/* Some columns of a band, row by row from the top. */
struct conv_cpu_strip {
    int64_t at, elems; /* of a row of the answer: the first, and how many */
    char *room;        /* for lines that are copied */
    /* Those under the mask, top to bottom, then the one that comes next. */
    const char *lines[CONV_SIZE_MAX + 1];
    const char *next_in[2]; /* where the rows of the image stand that are got next */
    char *next_out;         /* where the next row's results go; of a band's last row, its own */
    bool is_first;          /* of its band */
    void *state;            /* what is kept from row to row, aligned for vectors */
};

struct conv_cpu {
    const struct conv_mask *mask;
    struct conv_tail tail;
    float scale, bias;
    int64_t channels;
    bool is_unsigned;   /* no weight is negative, so sums of 16 bits are taken without a sign */
    bool is_narrow;     /* nor is there a factor, and with what is added they fit 16 bits */
    bool is_streamed;   /* results go past the cache: rows begin at multiples of 32 bytes */
    bool in_place;      /* rows are read where they stand, but for their ends */
    int64_t strip_most; /* elements of a row that are taken at a time */
    int64_t band;       /* rows that a thread takes at a time, about */
    size_t state_bytes; /* of what it keeps from row to row */
    /* The lines under the mask into a row of the answer. */
    void (*down)(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip, char *out);
};

/* Whole vectors past the cache where the machine can. */
static inline void conv_cpu_stream(char *to, const void *from, size_t bytes)
{
#if defined __AVX2__
    for (size_t at = 0; at < bytes; at += sizeof(__m256i))
        _mm256_stream_si256(
            (__m256i *)(void *)(to + at),
            _mm256_loadu_si256((const __m256i *)(const void *)((const char *)from + at)));
#elif defined __x86_64__
    for (size_t at = 0; at < bytes; at += sizeof(__m128i))
        _mm_stream_si128((__m128i *)(void *)(to + at),
                         _mm_loadu_si128((const __m128i *)(const void *)((const char *)from + at)));
#else
    memcpy(to, from, bytes);
#endif
}

/* Before another thread reads what was streamed. */
static inline void conv_cpu_stream_end(void)
{
#ifdef __x86_64__
    _mm_sfence();
#endif
}

/* Has `bytes` of the next row, from byte `at` on, brought to the cache: rows of a strip lie too far apart for the
 * processor to foresee. */
static inline void conv_cpu_fetch(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                                  int64_t at, int64_t bytes)
{
    const char *in = strip->next_in[0] + at, *out = strip->next_out + at;

    for (int64_t i = 0; i < bytes; i += 64) {
        __builtin_prefetch(in + i);
        if (!cpu->is_streamed)
            __builtin_prefetch(out + i, 1);
    }
}

void conv_cpu_use_int16(struct conv_cpu *cpu, bool two_steps);
void conv_cpu_use_int32(struct conv_cpu *cpu, bool two_steps);
void conv_cpu_use_float(struct conv_cpu *cpu, bool two_steps);

/* False, and nothing done: not for this mask, or not on this machine. */
bool conv_cpu_use_bytes(struct conv_cpu *cpu);
bool conv_cpu_use_box(struct conv_cpu *cpu);
bool conv_cpu_use_symmetric(struct conv_cpu *cpu);

#endif
