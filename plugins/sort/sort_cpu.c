/*
 * The baseline. Keys without values are sorted in sort_cpu_keys.c. Pairs: a stable radix sort. In memory it goes by
 * the highest digit first, so that one pass leaves stretches that fit a core's cache; those are sorted by the
 * digits below it, least first, and the few pairs that these leave open are inserted. Threads share the first
 * pass and then take whole stretches. Keys stay raw bits until a digit is read, so the bits of NaN and -0 survive.
 */
#include "sort_cpu.h"
#include "sort_cpu_keys.h"
#include <omp.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    PART_LEAST = 1 << 14, /* elements that are worth a thread */
    HUGE_PAGE = 2 << 20,
    SAMPLES = 9, /* whose median is the pivot of a step */
};

/* --- each kind of pair ------------------------------------------------------------------------------- */

#define NAME(x)  x##_whole32_4
#define BITS     uint32_t
#define INFINITE UINT32_C(0x7f800000)
#define REAL     false
#define VALUE    uint32_t
#include "sort_cpu_kind.h"

#define NAME(x)  x##_whole32_8
#define BITS     uint32_t
#define INFINITE UINT32_C(0x7f800000)
#define REAL     false
#define VALUE    uint64_t
#include "sort_cpu_kind.h"

#define NAME(x)  x##_real32_4
#define BITS     uint32_t
#define INFINITE UINT32_C(0x7f800000)
#define REAL     true
#define VALUE    uint32_t
#include "sort_cpu_kind.h"

#define NAME(x)  x##_real32_8
#define BITS     uint32_t
#define INFINITE UINT32_C(0x7f800000)
#define REAL     true
#define VALUE    uint64_t
#include "sort_cpu_kind.h"

#define NAME(x)  x##_whole64_4
#define BITS     uint64_t
#define INFINITE UINT64_C(0x7ff0000000000000)
#define REAL     false
#define VALUE    uint32_t
#include "sort_cpu_kind.h"

#define NAME(x)  x##_whole64_8
#define BITS     uint64_t
#define INFINITE UINT64_C(0x7ff0000000000000)
#define REAL     false
#define VALUE    uint64_t
#include "sort_cpu_kind.h"

#define NAME(x)  x##_real64_4
#define BITS     uint64_t
#define INFINITE UINT64_C(0x7ff0000000000000)
#define REAL     true
#define VALUE    uint32_t
#include "sort_cpu_kind.h"

#define NAME(x)  x##_real64_8
#define BITS     uint64_t
#define INFINITE UINT64_C(0x7ff0000000000000)
#define REAL     true
#define VALUE    uint64_t
#include "sort_cpu_kind.h"

static const struct kind *kind_of(const struct sort_state *s)
{
    static const struct kind *const kinds[2][2][2] = {
        {{&kind_whole32_4, &kind_whole32_8}, {&kind_real32_4, &kind_real32_8}},
        {{&kind_whole64_4, &kind_whole64_8}, {&kind_real64_4, &kind_real64_8}}};

    return kinds[s->elem_bytes == 8][s->map.is_real][s->value_bytes == 8];
}

/* --- the sort ---------------------------------------------------------------------------------------------- */

struct sorter {
    const struct kind *kind;
    struct sort_map map;
    struct items to, other;
    struct items cache; /* CPU_CACHED elements per thread */
    int threads;
    int64_t (*at)[CPU_TOPS]; /* one per thread */
};

/* Bits in which keys differ; a part begins with the last element of the part before, which joins the two. */
static uint64_t find_differing(const struct sorter *s, struct items from, int64_t begin,
                               int64_t end)
{
    uint64_t found = 0;

#pragma omp parallel for num_threads(s->threads) schedule(static, 1) reduction(| : found)
    for (int i = 0; i < s->threads; i++) {
        const int64_t first = sort_cpu_part(begin, end, i, s->threads);

        found |= s->kind->differing(from, first > begin ? first - 1 : first,
                                    sort_cpu_part(begin, end, i + 1, s->threads), s->map);
    }
    return found;
}

/* From how often each part has each value to where its first such element goes; where values begin. */
static void place_parts(const struct sorter *s, int64_t begin, int parts, int64_t *begins)
{
    for (int value = 0; value < CPU_TOPS; value++) {
        begins[value] = begin;
        for (int i = 0; i < parts; i++) {
            const int64_t count = s->at[i][value];
            s->at[i][value] = begin;
            begin += count;
        }
    }
    begins[CPU_TOPS] = begin;
}

static void partition_shared(const struct sorter *s, struct items from, struct items to,
                             int64_t begin, int64_t end, struct window w, int64_t *begins)
{
    const int parts = s->threads;

#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int i = 0; i < parts; i++) {
        memset(s->at[i], 0, sizeof(s->at[i]));
        s->kind->count(from, sort_cpu_part(begin, end, i, parts),
                       sort_cpu_part(begin, end, i + 1, parts), s->map, w, s->at[i]);
    }
    place_parts(s, begin, parts, begins);
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int i = 0; i < parts; i++) {
        const int64_t first = sort_cpu_part(begin, end, i, parts);
        const int64_t last = sort_cpu_part(begin, end, i + 1, parts);

        s->kind->scatter(from, to, first, last, s->map, w, s->at[i]);
    }
}

/* One thread's work. */
static void sort_alone(const struct sorter *s, struct items from, int64_t begin, int64_t end)
{
    const struct kind *kind = s->kind;
    const int thread = omp_get_thread_num();

    kind->sort(kind->at(from, begin), kind->at(s->to, begin), kind->at(s->other, begin),
               kind->at(s->cache, (int64_t)thread * CPU_CACHED), end - begin, s->map);
}

/* A stretch that is worth all threads. Values of the digit that are still more than a fair share of it are
 * shared in their turn; the others are one thread's work each. */
static void sort_shared(const struct sorter *s, struct items from, int64_t begin, int64_t end)
{
    const int64_t share = (end - begin) / s->threads;
    const struct items next = from.keys == s->to.keys ? s->other : s->to;
    const uint64_t differing = find_differing(s, from, begin, end);
    int64_t begins[CPU_TOPS + 1];
    struct window w = {.bits = CPU_TOP_BITS};

    if (differing == 0 || end - begin <= CPU_CACHED) {
        sort_alone(s, from, begin, end);
        return;
    }
    w.shift = 64 - __builtin_clzll(differing) - CPU_TOP_BITS;
    w.shift = w.shift > 0 ? w.shift : 0;
    partition_shared(s, from, next, begin, end, w, begins);
    for (int value = 0; value < CPU_TOPS; value++)
        if (begins[value + 1] - begins[value] > share)
            sort_shared(s, next, begins[value], begins[value + 1]);
#pragma omp parallel for num_threads(s->threads) schedule(dynamic)
    for (int value = 0; value < CPU_TOPS; value++)
        if (begins[value + 1] - begins[value] <= share)
            sort_alone(s, next, begins[value], begins[value + 1]);
}

/* Where a run writes besides the answer. Kept for the next run: fresh pages would take a third of its time. Touched
 * here and there, so the fewer pages the better, unless little of it is. What is never touched costs nothing. */
static char *room_of(struct sort_state *s, size_t bytes, bool is_large)
{
    if (bytes <= s->room_bytes)
        return s->room;
    free(s->room);
    s->room = aligned_alloc(HUGE_PAGE, bytes);
    s->room_bytes = s->room ? bytes : 0;
    if (s->room && is_large)
        madvise(s->room, bytes, MADV_HUGEPAGE); /* a wish: sorting goes on without */
    return s->room;
}

/* So many bytes each, side by side; false where there is no memory. */
static bool take_rooms(struct sort_state *s, void **rooms, size_t *bytes, int count, bool is_large)
{
    size_t all = 0;
    char *next;

    for (int i = 0; i < count; i++)
        all += bytes[i] = (bytes[i] / HUGE_PAGE + 1) * HUGE_PAGE;
    next = room_of(s, all, is_large);
    for (int i = 0; next && i < count; i++) {
        rooms[i] = next;
        next += bytes[i];
    }
    return next;
}

static bool sort_pairs(struct sort_state *s, int64_t n, int threads)
{
    const size_t elems = (size_t)n, cached = (size_t)threads * CPU_CACHED;
    const struct items in = {s->keys->host, s->values->host};
    struct sorter sorter = {.kind = kind_of(s),
                            .map = s->map,
                            .to = {s->sorted->host, s->sorted_values->host},
                            .threads = threads};
    size_t bytes[] = {elems * s->elem_bytes, elems * s->value_bytes, cached * s->elem_bytes,
                      cached * s->value_bytes, (size_t)threads * sizeof(*sorter.at)};
    void *rooms[GPURUN_COUNT(bytes)];

    if (!take_rooms(s, rooms, bytes, GPURUN_COUNT(bytes), n > CPU_CACHED))
        return false;
    sorter.other = (struct items){rooms[0], rooms[1]};
    sorter.cache = (struct items){rooms[2], rooms[3]};
    sorter.at = rooms[4];
    sort_shared(&sorter, in, 0, n);
    return true;
}

static bool sort_keys(struct sort_state *s, int64_t n, int threads)
{
    struct keys_job job = {.in = s->keys->host,
                           .to = s->sorted->host,
                           .elems = n,
                           .map = s->map,
                           .threads = threads,
                           .has_vectors = !s->is_plain && sort_cpu_vector_is_here()};
    size_t bytes[] = {(size_t)n * s->elem_bytes, (size_t)threads * sizeof(*job.rooms)};
    void *rooms[GPURUN_COUNT(bytes)];

    if (!take_rooms(s, rooms, bytes, GPURUN_COUNT(bytes), bytes[0] > KEYS_CACHE_BYTES))
        return false;
    job.other = rooms[0];
    job.rooms = rooms[1];
    if (s->elem_bytes == 4)
        sort_cpu_keys32(&job);
    else
        sort_cpu_keys64(&job);
    return true;
}

static bool sort_whole(struct gpurun_ctx *ctx)
{
    struct sort_state *s = sort_state_of(ctx);
    const int64_t n = sort_options_of(ctx)->n, worth = n / PART_LEAST + 1;
    const int threads = worth < ctx->threads ? (int)worth : ctx->threads;

    return s->values ? sort_pairs(s, n, threads) : sort_keys(s, n, threads);
}

/* --- one step of quicksort ------------------------------------------------------------------------------ */

static uint64_t key_at(const struct sort_state *s, int64_t i)
{
    if (s->elem_bytes == 4)
        return sort_key32(((const uint32_t *)s->keys->host)[i], s->map);
    return sort_key64(((const uint64_t *)s->keys->host)[i], s->map);
}

/* The median of a few keys, evenly spaced. */
static uint64_t choose_pivot(const struct sort_state *s, int64_t n)
{
    uint64_t keys[SAMPLES];

    for (int i = 0; i < SAMPLES; i++) {
        const uint64_t key = key_at(s, n / SAMPLES * i);
        int at = i;

        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
    return keys[SAMPLES / 2];
}

/* What is below the pivot, then what equals it, then the rest. */
static void partition(struct gpurun_ctx *ctx)
{
    const struct sort_state *s = sort_state_of(ctx);
    const int64_t n = sort_options_of(ctx)->n;
    const uint64_t pivot = n > 0 ? choose_pivot(s, n) : 0;
    int64_t *bounds = s->bounds->host, at[3] = {0, 0, 0};

    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = key_at(s, i);
        at[1] += key < pivot;
        at[2] += key <= pivot;
    }
    bounds[0] = at[1];
    bounds[1] = at[2];
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = key_at(s, i);
        int64_t *to = &at[(key >= pivot) + (key > pivot)];

        memcpy((char *)s->sorted->host + (size_t)(*to)++ * s->elem_bytes,
               (const char *)s->keys->host + (size_t)i * s->elem_bytes, s->elem_bytes);
    }
}

enum gpurun_status sort_run_cpu(struct gpurun_ctx *ctx)
{
    if (sort_is_one_step(ctx)) {
        partition(ctx);
        return GPURUN_OK;
    }
    return sort_whole(ctx) ? GPURUN_OK
                           : gpurun_fail(ctx, GPURUN_NO_MEMORY, "n",
                                         "no host memory for a second copy of the data");
}
