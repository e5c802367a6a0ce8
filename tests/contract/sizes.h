/*
 * Sizes worth trying, in three streams that end when their list does: every size from 0 on, the edges of
 * tiles and blocks, and random sizes and primes. All up to 2^20 + 1, the same each time.
 */
#ifndef CONTRACT_SIZES_H
#define CONTRACT_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIZES_EVERY_LAST = 4200,
    SIZES_LARGEST = (1 << 20) + 1,
    SIZES_EDGES_MAX = 2048,
    SIZES_RANDOM_MAX = 100000,
};

enum size_stream { SIZES_EVERY, SIZES_EDGES, SIZES_RANDOM, SIZES_STREAMS };

struct sizes {
    int64_t next[SIZES_STREAMS]; /* how many sizes each stream has given */
    int64_t edges[SIZES_EDGES_MAX];
    int64_t edge_count;
    uint64_t random;
};

static inline uint64_t sizes_draw(struct sizes *s, uint64_t below)
{
    s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (s->random >> 33) % below;
}

/* Evenly over the logarithm: as many of two digits as of six. */
static inline int64_t sizes_draw_any(struct sizes *s, int64_t largest)
{
    int bits = 0;
    int64_t size;

    while ((largest >> bits) > 1)
        bits++;
    bits = (int)sizes_draw(s, (uint64_t)bits + 1);
    size = (INT64_C(1) << bits) + (int64_t)sizes_draw(s, UINT64_C(1) << bits);
    return size < largest ? size : largest;
}

/* All multiples of `step` up to `last`, with their neighbours. */
static inline void sizes_add_edges(struct sizes *s, int64_t step, int64_t last)
{
    for (int64_t size = step; size <= last; size += step)
        for (int64_t i = -1; i <= 1 && s->edge_count < SIZES_EDGES_MAX; i++)
            s->edges[s->edge_count++] = size + i;
}

/* The largest first, then the others in a fixed random order, so that little time sees a bit of each. */
static inline void sizes_start(struct sizes *s)
{
    *s = (struct sizes){.random = 1};
    sizes_add_edges(s, INT64_C(1) << 20, INT64_C(1) << 20);
    sizes_add_edges(s, 256, 16384);
    sizes_add_edges(s, 1536, 98304);
    sizes_add_edges(s, 2048, 131072);
    sizes_add_edges(s, 16384, (INT64_C(1) << 20) - 16384);
    for (int64_t i = s->edge_count - 1; i > 3; i--) {
        const int64_t k = 3 + (int64_t)sizes_draw(s, (uint64_t)i - 2), swap = s->edges[i];

        s->edges[i] = s->edges[k];
        s->edges[k] = swap;
    }
}

static inline bool sizes_is_prime(int64_t n)
{
    for (int64_t d = 2; d * d <= n; d++)
        if (n % d == 0)
            return false;
    return n > 1;
}

/* The next size of a stream, -1 at its end. */
static inline int64_t sizes_next(struct sizes *s, enum size_stream stream)
{
    const int64_t i = s->next[stream]++;
    int64_t size;

    if (stream == SIZES_EVERY)
        return i <= SIZES_EVERY_LAST ? i : -1;
    if (stream == SIZES_EDGES)
        return i < s->edge_count ? s->edges[i] : -1;
    size = sizes_draw_any(s, SIZES_LARGEST);
    while (i % 2 == 0 && !sizes_is_prime(size))
        size = size < SIZES_LARGEST ? size + 1 : 2;
    return i < SIZES_RANDOM_MAX ? size : -1;
}

#endif
