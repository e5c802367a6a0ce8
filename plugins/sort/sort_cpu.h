/*
 * Between the files of the baseline: what is sorted, and the sort of each kind of pair.
 */
#ifndef SORT_CPU_H
#define SORT_CPU_H

#include "sort.h"
#include <string.h>

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

/* Where part i of `parts` of begin to end begins. */
static inline int64_t sort_cpu_part(int64_t begin, int64_t end, int i, int parts)
{
    return begin + (end - begin) / parts * i + ((end - begin) % parts) * i / parts;
}

struct kind {
    /* Bits in which keys begin to end differ. */
    uint64_t (*differing)(struct items from, int64_t begin, int64_t end, struct sort_map map);
    /* Adds to at[value] how often the window has each value. */
    void (*count)(struct items from, int64_t begin, int64_t end, struct sort_map map,
                  struct window w, int64_t *at);
    /* Moves each element to at[value]++. */
    void (*scatter)(struct items from, struct items to, int64_t begin, int64_t end,
                    struct sort_map map, struct window w, int64_t *at);
    /* Sorts elements of `from` into the same places of `to`. `from` is `to`, `other`, or neither and then only
     * read; `other` is written too, and `cache`, which has room for CPU_CACHED. */
    void (*sort)(struct items from, struct items to, struct items other, struct items cache,
                 int64_t elems, struct sort_map map);
    struct items (*at)(struct items items, int64_t i);
};

#endif
