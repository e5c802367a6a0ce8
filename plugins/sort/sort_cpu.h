/*
 * Between sort_cpu.c and sort_cpu_kind.h: what is sorted, and the sort of each kind of element.
 */
#ifndef SORT_CPU_H
#define SORT_CPU_H

#include "sort.h"
#include <string.h>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

enum {
    CPU_DIGIT_BITS = 10, /* of a pass within the cache */
    CPU_DIGITS = 1 << CPU_DIGIT_BITS,
    CPU_SPLIT_BITS = 8, /* of a pass in memory by one thread */
    CPU_TOP_BITS = 9,   /* of the pass that threads share */
    CPU_TOPS = 1 << CPU_TOP_BITS,
    CPU_FEW = 24,         /* elements that are best inserted one by one */
    CPU_CACHED = 1 << 16, /* elements that a core's cache holds twice */
};

/* Keys as raw bits, and values. */
struct items {
    void *keys, *values;
};

/* Bits of a key, from `shift` on. */
struct window {
    int shift, bits;
};

/* A line of the cache. */
struct line {
    _Alignas(64) char bytes[64];
};

/* Writes a whole line, past the cache where the machine can. */
static inline void line_store(void *to, const struct line *line)
{
#ifdef __x86_64__
    for (int i = 0; i < 4; i++)
        _mm_stream_si128((__m128i *)to + i, ((const __m128i *)(const void *)line)[i]);
#else
    memcpy(to, line, sizeof(*line));
#endif
}

/* Before another thread reads what line_store has written. */
static inline void line_fence(void)
{
#ifdef __x86_64__
    _mm_sfence();
#endif
}

/* What a thread has for itself. */
struct room {
    struct items cache; /* CPU_CACHED elements */
    struct line *lines; /* CPU_TOPS */
};

struct kind {
    /* Bits in which keys begin to end differ. */
    uint64_t (*differing)(struct items from, int64_t begin, int64_t end, struct sort_map map);
    /* Adds to at[value] how often the window has each value. */
    void (*count)(struct items from, int64_t begin, int64_t end, struct sort_map map,
                  struct window w, int64_t *at);
    /* Moves each element to at[value]++. */
    void (*scatter)(struct items from, struct items to, int64_t begin, int64_t end,
                    struct sort_map map, struct window w, int64_t *at);
    /* The same for keys without values; `lines` has one for each value. */
    void (*stream)(struct items from, struct items to, int64_t begin, int64_t end,
                   struct sort_map map, struct window w, int64_t *at, struct line *lines);
    /* Sorts elements of `from` into the same places of `to`. `from` is `to`, `other`, or neither and then only
     * read; `other` is written too. */
    void (*sort)(struct items from, struct items to, struct items other, const struct room *room,
                 int64_t elems, struct sort_map map);
    struct items (*at)(struct items items, int64_t i);
};

#endif
