/*
 * The baseline: a stable radix sort. In memory it goes by the highest digit first, so that one pass leaves
 * stretches that fit a core's cache; those are sorted by the digits below it, least first, and the few keys
 * that these leave open are inserted. Threads share the first pass and then take whole stretches.
 * Elements stay raw bits and become keys where a digit is read, so the bits of NaN and -0 survive.
 */
#include "sort_cpu.h"
#include <omp.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    PART_LEAST = 1 << 14, /* elements that are worth a thread */
    HUGE_PAGE = 2 << 20,
    SAMPLES = 9, /* whose median is the pivot of a step */
};

/* --- each kind of element ---------------------------------------------------------------------------- */

#define NAME(x)    x##_whole32_0
#define BITS       uint32_t
#define INFINITE   UINT32_C(0x7f800000)
#define REAL       false
#define VALUE      uint32_t
#define HAS_VALUES 0
#include "sort_cpu_kind.h"

#define NAME(x)    x##_whole32_4
#define BITS       uint32_t
#define INFINITE   UINT32_C(0x7f800000)
#define REAL       false
#define VALUE      uint32_t
#define HAS_VALUES 1
#include "sort_cpu_kind.h"

#define NAME(x)    x##_whole32_8
#define BITS       uint32_t
#define INFINITE   UINT32_C(0x7f800000)
#define REAL       false
#define VALUE      uint64_t
#define HAS_VALUES 1
#include "sort_cpu_kind.h"

#define NAME(x)    x##_real32_0
#define BITS       uint32_t
#define INFINITE   UINT32_C(0x7f800000)
#define REAL       true
#define VALUE      uint32_t
#define HAS_VALUES 0
#include "sort_cpu_kind.h"

#define NAME(x)    x##_real32_4
#define BITS       uint32_t
#define INFINITE   UINT32_C(0x7f800000)
#define REAL       true
#define VALUE      uint32_t
#define HAS_VALUES 1
#include "sort_cpu_kind.h"

#define NAME(x)    x##_real32_8
#define BITS       uint32_t
#define INFINITE   UINT32_C(0x7f800000)
#define REAL       true
#define VALUE      uint64_t
#define HAS_VALUES 1
#include "sort_cpu_kind.h"

#define NAME(x)    x##_whole64_0
#define BITS       uint64_t
#define INFINITE   UINT64_C(0x7ff0000000000000)
#define REAL       false
#define VALUE      uint32_t
#define HAS_VALUES 0
#include "sort_cpu_kind.h"

#define NAME(x)    x##_whole64_4
#define BITS       uint64_t
#define INFINITE   UINT64_C(0x7ff0000000000000)
#define REAL       false
#define VALUE      uint32_t
#define HAS_VALUES 1
#include "sort_cpu_kind.h"

#define NAME(x)    x##_whole64_8
#define BITS       uint64_t
#define INFINITE   UINT64_C(0x7ff0000000000000)
#define REAL       false
#define VALUE      uint64_t
#define HAS_VALUES 1
#include "sort_cpu_kind.h"

#define NAME(x)    x##_real64_0
#define BITS       uint64_t
#define INFINITE   UINT64_C(0x7ff0000000000000)
#define REAL       true
#define VALUE      uint32_t
#define HAS_VALUES 0
#include "sort_cpu_kind.h"

#define NAME(x)    x##_real64_4
#define BITS       uint64_t
#define INFINITE   UINT64_C(0x7ff0000000000000)
#define REAL       true
#define VALUE      uint32_t
#define HAS_VALUES 1
#include "sort_cpu_kind.h"

#define NAME(x)    x##_real64_8
#define BITS       uint64_t
#define INFINITE   UINT64_C(0x7ff0000000000000)
#define REAL       true
#define VALUE      uint64_t
#define HAS_VALUES 1
#include "sort_cpu_kind.h"

static const struct kind *kind_of(const struct sort_state *s)
{
    static const struct kind *const kinds[2][2][3] = {
        {{&kind_whole32_0, &kind_whole32_4, &kind_whole32_8},
         {&kind_real32_0, &kind_real32_4, &kind_real32_8}},
        {{&kind_whole64_0, &kind_whole64_4, &kind_whole64_8},
         {&kind_real64_0, &kind_real64_4, &kind_real64_8}}};

    return kinds[s->elem_bytes == 8][s->map.is_real][s->value_bytes / 4];
}

/* --- the sort ---------------------------------------------------------------------------------------------- */

struct sorter {
    const struct kind *kind;
    struct sort_map map;
    struct items to, other;
    struct items cache; /* CPU_CACHED elements per thread */
    int threads;
    int64_t (*at)[CPU_TOPS]; /* one per thread */
    struct line *lines;      /* CPU_TOPS per thread */
};

/* Where part i of `parts` of begin to end begins. */
static int64_t part_of(int64_t begin, int64_t end, int i, int parts)
{
    return begin + (end - begin) / parts * i + ((end - begin) % parts) * i / parts;
}

/* Bits in which keys differ; a part begins with the last element of the part before, which joins the two. */
static uint64_t find_differing(const struct sorter *s, struct items from, int64_t begin,
                               int64_t end)
{
    uint64_t found = 0;

#pragma omp parallel for num_threads(s->threads) schedule(static, 1) reduction(| : found)
    for (int i = 0; i < s->threads; i++) {
        const int64_t first = part_of(begin, end, i, s->threads);

        found |= s->kind->differing(from, first > begin ? first - 1 : first,
                                    part_of(begin, end, i + 1, s->threads), s->map);
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
        s->kind->count(from, part_of(begin, end, i, parts), part_of(begin, end, i + 1, parts),
                       s->map, w, s->at[i]);
    }
    place_parts(s, begin, parts, begins);
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int i = 0; i < parts; i++) {
        const int64_t first = part_of(begin, end, i, parts);
        const int64_t last = part_of(begin, end, i + 1, parts);

        if (from.values)
            s->kind->scatter(from, to, first, last, s->map, w, s->at[i]);
        else
            s->kind->stream(from, to, first, last, s->map, w, s->at[i], s->lines + i * CPU_TOPS);
    }
}

/* One thread's work. */
static void sort_alone(const struct sorter *s, struct items from, int64_t begin, int64_t end)
{
    const struct kind *kind = s->kind;
    const int thread = omp_get_thread_num();
    const struct room room = {kind->at(s->cache, (int64_t)thread * CPU_CACHED),
                              s->lines + (size_t)thread * CPU_TOPS};

    kind->sort(kind->at(from, begin), kind->at(s->to, begin), kind->at(s->other, begin), &room,
               end - begin, s->map);
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

/* Room for a second copy. Its pages are touched here and there, so the fewer the better. */
static void *allocate_spare(int64_t elems, size_t bytes)
{
    const size_t room = ((size_t)elems * bytes / HUGE_PAGE + 1) * HUGE_PAGE;
    void *spare = aligned_alloc(HUGE_PAGE, room);

    if (spare)
        madvise(spare, room, MADV_HUGEPAGE); /* a wish: sorting goes on without */
    return spare;
}

static bool sort_whole(struct gpurun_ctx *ctx)
{
    const struct sort_state *s = sort_state_of(ctx);
    const int64_t n = sort_options_of(ctx)->n, worth = n / PART_LEAST + 1;
    const int threads = worth < ctx->threads ? (int)worth : ctx->threads;
    const int64_t cached = (int64_t)threads * CPU_CACHED;
    const bool has_values = s->value_bytes > 0;
    const struct items in = {s->keys->host, has_values ? s->values->host : NULL};
    struct sorter sorter = {
        .kind = kind_of(s),
        .map = s->map,
        .to = {s->sorted->host, has_values ? s->sorted_values->host : NULL},
        .other = {allocate_spare(n, s->elem_bytes), allocate_spare(n, s->value_bytes)},
        .cache = {allocate_spare(cached, s->elem_bytes), allocate_spare(cached, s->value_bytes)},
        .threads = threads,
        .at = malloc((size_t)threads * sizeof(*sorter.at)),
        .lines =
            aligned_alloc(sizeof(struct line), (size_t)threads * CPU_TOPS * sizeof(*sorter.lines))};
    const bool ok = sorter.other.keys && sorter.other.values && sorter.cache.keys &&
                    sorter.cache.values && sorter.at && sorter.lines;

    if (ok)
        sort_shared(&sorter, in, 0, n);
    free(sorter.other.keys);
    free(sorter.other.values);
    free(sorter.cache.keys);
    free(sorter.cache.values);
    free(sorter.at);
    free(sorter.lines);
    return ok;
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
