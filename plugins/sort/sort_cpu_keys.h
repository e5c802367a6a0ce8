/*
 * Between sort_cpu.c, sort_cpu_keys.c and sort_cpu_keys_kind.h: the sort of keys without values.
 */
#ifndef SORT_CPU_KEYS_H
#define SORT_CPU_KEYS_H

#include "sort_cpu.h"
#include "sort_cpu_vector.h"
#ifdef __x86_64__
#include <emmintrin.h>
#endif

enum {
    KEYS_CELL_BITS = 20, /* a plan knows keys by so many bits of their range, at most */
    KEYS_CELLS = 1 << KEYS_CELL_BITS,
    KEYS_SHARES = 1 << 11,                            /* of a pass in memory, at most; */
    KEYS_BUCKETS = KEYS_SHARES + KEYS_SHARES / 2 + 1, /* these fit, however cells share them */
    KEYS_SAMPLES = 1 << 15,                           /* fit 16 bits, were they all in one cell */
    KEYS_CELL_STEP_BITS = 4,                          /* log2 of elements per cell, at least */
    KEYS_SAMPLE_STEP = 64,                            /* elements per sample, at least */
    KEYS_DIGIT_BITS = 11,        /* of one of two passes in the cache, at most */
    KEYS_SPARE_BITS = 5,         /* so many bits more than log2(n) leave few keys open */
    KEYS_LONE_DIGIT_BITS = 13,   /* of the only pass */
    KEYS_LONE_BYTES = 3 << 13,   /* keys for which one pass is enough */
    KEYS_SMALL_BYTES = 1 << 14,  /* a share of which one pass makes an end, */
    KEYS_SMALL_SHARES = 1 << 9,  /* unless there would be more of them than this: then */
    KEYS_BUCKET_BYTES = 1 << 17, /* a share that two passes in the cache like */
    KEYS_CACHE_BYTES = 1 << 20,  /* that they can do with */
    KEYS_DENSE = KEYS_CACHE_BYTES / sizeof(uint32_t), /* a range whose every key can be counted */
    KEYS_WHOLE32 = 1 << 24, /* keys that vectors sort without a pass in memory, */
    KEYS_WHOLE64 = 1 << 20,
    KEYS_FEW32 = 1 << 21, /* and from which on few values are counted first */
    KEYS_FEW64 = 1 << 16,
    KEYS_SHARED = 1 << 15,     /* elements that are worth more than one thread */
    KEYS_FEW_THREADS = 2,      /* that do not share what has a frequent value */
    KEYS_SPREAD_BITS = 6,      /* keys are spread evenly if of so many samples no more are in one */
    KEYS_SPREAD_SAMPLES = 256, /* of the cells that these bits make of the range */
    KEYS_SPREAD_MOST = 16,
    KEYS_FEW = 48,           /* values that are worth counting, */
    KEYS_FEW_SLOT_BITS = 10, /* and room for them, so that a factor that keeps them apart */
    KEYS_FEW_SLOTS = 1 << KEYS_FEW_SLOT_BITS,
    KEYS_FEW_TRIES = 200,    /* is found soon, */
    KEYS_FEW_SAMPLES = 1024, /* if so many elements have no others */
};

/* Four lines of the cache: longer than one, as a branch is mispredicted each time they are full. */
struct line {
    _Alignas(64) char bytes[256];
};

/* Writes them whole, past the cache where the machine can. */
static inline void line_store(void *to, const struct line *line)
{
#ifdef __x86_64__
    for (size_t i = 0; i < sizeof(*line) / sizeof(__m128i); i++)
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

/* Which bucket a key goes to: the keys from `low` on, in cells of 2^shift. Buckets ascend with keys. */
struct keys_plan {
    uint64_t low;
    int shift, buckets;
    uint16_t bucket[KEYS_CELLS];
};

/* Least and largest key, and whether some elements do not go where their key does: NaN, and zeros if one is -0. */
struct keys_range {
    uint64_t least, largest;
    bool has_nan, has_special;
};

/* NaNs whose key is below all others', other elements whose key is below the zeros', zeros, all NaNs: how many, then
 * where the next one goes. */
struct keys_tally {
    int64_t heads, below, zeros, nans;
};

/* What a thread has for itself; what a small sort needs of it comes first. */
struct keys_room {
    struct line cache[KEYS_CACHE_BYTES / sizeof(struct line)];
    struct line lines[KEYS_BUCKETS]; /* of each bucket, until they are full */
    uint8_t fill[KEYS_BUCKETS];      /* elements in them */
    int64_t at[KEYS_BUCKETS];        /* elements of a bucket, then where its line goes */
    int64_t first[KEYS_BUCKETS];     /* where its first element goes */
    struct keys_range range;
    struct keys_tally tally;
    struct keys_plan plan;
};

struct keys_job {
    const void *in;
    void *to, *other; /* `other` may be written anywhere */
    int64_t elems;
    struct sort_map map;
    int threads;
    bool has_vectors;        /* the processor has what sort_cpu_vector.h takes */
    struct keys_room *rooms; /* one per thread */
};

/* How many bits it takes to write x, at least 1. */
static inline int keys_bits_of(uint64_t x)
{
    return 64 - __builtin_clzll(x | 1);
}

void sort_cpu_keys32(const struct keys_job *job);
void sort_cpu_keys64(const struct keys_job *job);

#endif
