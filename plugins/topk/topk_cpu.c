/*
 * The baseline. One pass at the speed of memory: blocks that hold nothing above the k-th best so far are
 * only compared; what is above it is collected, and the collection is sorted and cut to k when it is full.
 * A range of elements has one collection, and ranges are joined in the order of their elements, so of equal
 * keys the collection always holds the lower index first and a stable sort by key alone is enough.
 */
#include "gpurun/host_memory.h"
#include "gpurun/key.h"
#include "topk.h"
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_BYTES = 131072, /* tested at once */
    PIECE = 512,    /* elements of such a block that are then tested again, and collected from */
    SLACK = 4096,   /* least room above k, so that sorting is rare */
    SEEN_BITS = 12, /* distinct: remembered keys, direct-mapped */
};

struct entry {
    uint64_t key;
    int64_t index;
};

struct picks {
    struct entry *entries, *spare; /* capacity of each */
    int64_t count, capacity;
    uint64_t *seen; /* distinct only */
    bool is_full;   /* k that are better were met: only keys above `limit` matter from here on */
    uint64_t limit;
};

static bool picks_alloc(struct picks *p, int64_t capacity, bool distinct)
{
    const size_t room = capacity > 0 ? (size_t)capacity : 1;

    *p = (struct picks){.capacity = capacity};
    p->entries = malloc(room * sizeof(*p->entries));
    p->spare = malloc(room * sizeof(*p->spare));
    p->seen = distinct ? malloc(sizeof(*p->seen) << SEEN_BITS) : NULL;
    return p->entries && p->spare && (p->seen || !distinct);
}

static void picks_free(struct picks *p)
{
    free(p->entries);
    free(p->spare);
    free(p->seen);
}

static inline size_t seen_slot(uint64_t key)
{
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SEEN_BITS));
}

/* An unused slot holds a key that belongs to another slot, so that no key is special: 0 has slot 0. */
static void picks_begin(struct picks *p)
{
    p->count = 0;
    p->is_full = false;
    if (!p->seen)
        return;
    memset(p->seen, 0, sizeof(*p->seen) << SEEN_BITS);
    p->seen[0] = 1;
}

/* Stable radix sort, largest key first. Digits that all entries share are skipped. */
static void picks_sort(struct picks *p, size_t key_bytes)
{
    int64_t at[sizeof(uint64_t)][256];

    memset(at, 0, sizeof(at));
    for (int64_t i = 0; i < p->count; i++)
        for (size_t b = 0; b < key_bytes; b++)
            at[b][(~p->entries[i].key >> (8 * b)) & 255]++;
    for (size_t b = 0; b < key_bytes; b++) {
        struct entry *const from = p->entries, *const to = p->spare;
        int64_t before = 0;

        if (p->count == 0 || at[b][(~from[0].key >> (8 * b)) & 255] == p->count)
            continue;
        for (int digit = 0; digit < 256; digit++) {
            const int64_t here = at[b][digit];
            at[b][digit] = before;
            before += here;
        }
        for (int64_t i = 0; i < p->count; i++)
            to[at[b][(~from[i].key >> (8 * b)) & 255]++] = from[i];
        p->entries = to;
        p->spare = from;
    }
}

/* Keeps the k largest of more than k, of equal ones the first, and their order. Returns the k-th key. */
static uint64_t picks_select(struct picks *p, int64_t k, size_t key_bytes)
{
    uint64_t prefix = 0, mask = 0;
    int64_t need = k, kept = 0;

    for (size_t b = key_bytes; b-- > 0;) {
        int64_t have[256] = {0};
        int digit = 255;

        for (int64_t i = 0; i < p->count; i++)
            if ((p->entries[i].key & mask) == prefix)
                have[(p->entries[i].key >> (8 * b)) & 255]++;
        for (; have[digit] < need; digit--)
            need -= have[digit];
        prefix |= (uint64_t)digit << (8 * b);
        mask |= UINT64_C(255) << (8 * b);
    }
    for (int64_t i = 0; i < p->count; i++)
        if (p->entries[i].key > prefix || (p->entries[i].key == prefix && need-- > 0))
            p->entries[kept++] = p->entries[i];
    p->count = kept;
    return prefix;
}

/* Keeps the k largest of different keys, of equal ones the first; sorted. Returns the last of them. */
static uint64_t picks_unite(struct picks *p, int64_t k, size_t key_bytes)
{
    int64_t kept = 0;

    picks_sort(p, key_bytes);
    for (int64_t i = 0; i < p->count && kept < k; i++)
        if (kept == 0 || p->entries[i].key != p->entries[kept - 1].key)
            p->entries[kept++] = p->entries[i];
    p->count = kept;
    return kept > 0 ? p->entries[kept - 1].key : 0;
}

/* Drops what has been beaten, and moves the limit up to the k-th. */
static void picks_prune(struct picks *p, const struct topk_options *o, size_t key_bytes)
{
    uint64_t last;

    if (p->count < o->k || (p->count == o->k && !o->distinct))
        return;
    last = o->distinct ? picks_unite(p, o->k, key_bytes) : picks_select(p, o->k, key_bytes);
    if (p->count < o->k || (p->is_full && last <= p->limit))
        return;
    p->limit = last;
    p->is_full = true;
}

/* The answer of a range: its best k at most, best first. */
static void picks_finish(struct picks *p, const struct topk_options *o, size_t key_bytes)
{
    if (o->distinct) {
        picks_unite(p, o->k, key_bytes);
    } else {
        picks_prune(p, o, key_bytes);
        picks_sort(p, key_bytes);
    }
}

static const void *element_at(const void *row, int64_t index, size_t elem_bytes)
{
    return (const char *)row + (size_t)index * elem_bytes;
}

/* Whether the key is known to have been collected before; remembers it. */
static inline bool was_seen(struct picks *p, uint64_t key)
{
    uint64_t *slot = &p->seen[seen_slot(key)];

    if (*slot == key)
        return true;
    *slot = key;
    return false;
}

static inline uint64_t key_of(const void *row, int64_t i, size_t elem_bytes, bool is_real,
                              uint64_t flip)
{
    if (elem_bytes == 4)
        return gpurun_key32(((const uint32_t *)row)[i], is_real, (uint32_t)flip);
    return gpurun_key64(((const uint64_t *)row)[i], is_real, flip);
}

/* Collects from elements begin to end, for which there is room. Inlined once per kind of element. */
static inline __attribute__((always_inline)) void offer(struct picks *p, const void *row,
                                                        int64_t begin, int64_t end,
                                                        size_t elem_bytes, bool is_real,
                                                        uint64_t flip)
{
    struct entry *const entries = p->entries;
    const uint64_t limit = p->limit;
    int64_t count = p->count;

    if (!p->seen && p->is_full) {
        for (int64_t i = begin; i < end; i++) {
            const uint64_t key = key_of(row, i, elem_bytes, is_real, flip);
            entries[count] = (struct entry){key, i};
            count += key > limit;
        }
    } else {
        for (int64_t i = begin; i < end; i++) {
            const uint64_t key = key_of(row, i, elem_bytes, is_real, flip);
            if ((p->is_full && key <= limit) || (p->seen && was_seen(p, key)))
                continue;
            entries[count++] = (struct entry){key, i};
        }
    }
    p->count = count;
}

/* At least k elements (of different values in distinct mode) are not below the k-th largest maximum of the
 * block's columns, so what is below it is out. Keeps data that grows from being collected whole. */
static void raise_limit(struct picks *p, const struct gpurun_ctx *ctx, const void *block,
                        int64_t elems)
{
    const struct topk_options *o = topk_options_of(ctx);
    const struct topk_state *s = topk_state_of(ctx);
    uint64_t maxima[TOPK_COLUMNS], best[TOPK_COLUMNS];
    int64_t count = 0;

    topk_block_of(s->elem_bytes, s->is_real, gpurun_best_vectors())
        ->maxima(block, elems, s->flip, maxima);
    for (int i = 0; i < TOPK_COLUMNS; i++) {
        int64_t at = count;
        while (at > 0 && best[at - 1] < maxima[i])
            at--;
        if (o->distinct && at > 0 && best[at - 1] == maxima[i])
            continue;
        memmove(best + at + 1, best + at, (size_t)(count - at) * sizeof(*best));
        best[at] = maxima[i];
        count++;
    }
    if (count < o->k || best[o->k - 1] == 0)
        return;
    if (!p->is_full || p->limit < best[o->k - 1] - 1)
        p->limit = best[o->k - 1] - 1;
    p->is_full = true;
}

static void offer_block(struct picks *p, const struct gpurun_ctx *ctx, const void *row,
                        int64_t begin, int64_t end)
{
    const struct topk_options *o = topk_options_of(ctx);
    const struct topk_state *s = topk_state_of(ctx);
    const struct topk_block *block =
        topk_block_of(s->elem_bytes, s->is_real, gpurun_best_vectors());

    if (o->k <= TOPK_COLUMNS && end - begin >= TOPK_COLUMNS)
        raise_limit(p, ctx, element_at(row, begin, s->elem_bytes), end - begin);
    for (int64_t at = begin; at < end; at += PIECE) {
        const int64_t stop = end - at < PIECE ? end : at + PIECE;

        if (p->is_full && !block->above(element_at(row, at, s->elem_bytes), stop - at, p->limit,
                                        s->flip, gpurun_reads_in_row()))
            continue;
        if (p->capacity - p->count < stop - at)
            picks_prune(p, o, s->elem_bytes);
        if (s->elem_bytes == 4 && !s->is_real)
            offer(p, row, at, stop, 4, false, s->flip);
        else if (s->elem_bytes == 4)
            offer(p, row, at, stop, 4, true, s->flip);
        else if (!s->is_real)
            offer(p, row, at, stop, 8, false, s->flip);
        else
            offer(p, row, at, stop, 8, true, s->flip);
    }
}

/* Leaves the best of elements begin to end of a row, sorted. */
static void picks_scan(struct picks *p, const struct gpurun_ctx *ctx, const void *row,
                       int64_t begin, int64_t end)
{
    const struct topk_options *o = topk_options_of(ctx);
    const struct topk_state *s = topk_state_of(ctx);
    const struct topk_block *block =
        topk_block_of(s->elem_bytes, s->is_real, gpurun_best_vectors());
    const int64_t step = BLOCK_BYTES / (int64_t)s->elem_bytes;

    picks_begin(p);
    for (int64_t at = begin; at < end && o->k > 0; at += step) {
        const int64_t stop = end - at < step ? end : at + step;

        if (!p->is_full || block->above(element_at(row, at, s->elem_bytes), stop - at, p->limit,
                                        s->flip, gpurun_reads_in_row()))
            offer_block(p, ctx, row, at, stop);
        if (o->k <= TOPK_COLUMNS && p->count > 4 * TOPK_COLUMNS)
            picks_prune(p, o, s->elem_bytes); /* cheap, and the limit saves whole blocks */
    }
    picks_finish(p, o, s->elem_bytes);
}

static void write_row(struct gpurun_ctx *ctx, int64_t row, const struct picks *p)
{
    const struct topk_options *o = topk_options_of(ctx);
    const struct topk_state *s = topk_state_of(ctx);
    const size_t size = s->elem_bytes;
    const char *in = (const char *)s->in->host + (size_t)(row * o->n) * size;
    char *values = (char *)s->values->host + (size_t)(row * o->k) * size;
    int64_t *indices = (int64_t *)s->indices->host + row * o->k;

    for (int64_t j = 0; j < p->count; j++) {
        indices[j] = p->entries[j].index;
        memcpy(values + (size_t)j * size, in + (size_t)p->entries[j].index * size, size);
    }
    ((int64_t *)s->count->host)[row] = p->count;
}

/* How many entries a range of `elems` elements needs room for. */
static int64_t capacity_for(const struct topk_options *o, int64_t elems)
{
    const int64_t slack = 2 * o->k > SLACK ? 2 * o->k : SLACK;

    return elems - o->k > slack ? o->k + slack : elems;
}

static const void *row_at(const struct gpurun_ctx *ctx, int64_t row)
{
    const struct topk_state *s = topk_state_of(ctx);

    return (const char *)s->in->host + (size_t)(row * topk_options_of(ctx)->n) * s->elem_bytes;
}

/* Many rows: each is one thread's work. */
static bool run_rows(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    bool ok = true;

#pragma omp parallel num_threads(ctx->threads) reduction(&& : ok)
    {
        struct picks p;

        ok = picks_alloc(&p, capacity_for(o, o->n), o->distinct);
#pragma omp for schedule(dynamic)
        for (int64_t row = 0; row < o->rows; row++) {
            if (!ok)
                continue;
            picks_scan(&p, ctx, row_at(ctx, row), 0, o->n);
            write_row(ctx, row, &p);
        }
        picks_free(&p);
    }
    return ok;
}

/* Appends each part to `all` in order: equal keys stay in the order of their indices. */
static bool join_parts(struct picks *all, const struct gpurun_ctx *ctx, const struct picks *parts,
                       int count)
{
    int64_t total = 0;

    for (int i = 0; i < count; i++)
        total += parts[i].count;
    if (!picks_alloc(all, total, false))
        return false;
    for (int i = 0; i < count; i++) {
        memcpy(all->entries + all->count, parts[i].entries,
               (size_t)parts[i].count * sizeof(*parts[i].entries));
        all->count += parts[i].count;
    }
    picks_finish(all, topk_options_of(ctx), topk_state_of(ctx)->elem_bytes);
    return true;
}

/* Few rows: threads share each, in contiguous parts. */
static bool run_parts(struct gpurun_ctx *ctx, int64_t row, struct picks *parts, int count)
{
    const struct topk_options *o = topk_options_of(ctx);
    const int64_t share = (o->n + count - 1) / count;
    struct picks all = {0};
    bool ok = true;

#pragma omp parallel for num_threads(count) schedule(static, 1) reduction(&& : ok)
    for (int i = 0; i < count; i++) {
        const int64_t begin = i * share < o->n ? i * share : o->n;
        const int64_t end = begin + share < o->n ? begin + share : o->n;

        ok = picks_alloc(&parts[i], capacity_for(o, end - begin), o->distinct);
        if (ok)
            picks_scan(&parts[i], ctx, row_at(ctx, row), begin, end);
    }
    if (count == 1) {
        if (ok)
            write_row(ctx, row, &parts[0]);
    } else if (ok) {
        ok = join_parts(&all, ctx, parts, count);
        if (ok)
            write_row(ctx, row, &all);
        picks_free(&all);
    }
    for (int i = 0; i < count; i++)
        picks_free(&parts[i]);
    return ok;
}

enum gpurun_status topk_run_cpu(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const int64_t blocks = (o->n + PIECE - 1) / PIECE;
    const int count = blocks < ctx->threads ? (int)(blocks > 0 ? blocks : 1) : ctx->threads;
    struct picks *parts;
    bool ok = true;

    if (o->rows >= ctx->threads && ctx->threads > 1) {
        ok = run_rows(ctx);
    } else {
        parts = calloc((size_t)count, sizeof(*parts));
        ok = parts != NULL;
        for (int64_t row = 0; ok && row < o->rows; row++)
            ok = run_parts(ctx, row, parts, count);
        free(parts);
    }
    return ok ? GPURUN_OK
              : gpurun_fail(ctx, GPURUN_NO_MEMORY, "k",
                            "no host memory to keep the best elements in");
}
