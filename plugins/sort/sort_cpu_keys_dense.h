/*
 * The sort of keys of a small range, by counting each key there could be. Part of sort_cpu_keys_kind.h.
 */

/* Whether all keys tell their elements, are so close together that a count for each fits the cache, and are
 * worth setting the counts up. */
static bool NAME(is_dense)(const struct keys_job *job, struct keys_range range)
{
    const uint64_t width = range.largest - range.least;

    return !range.has_special && width < KEYS_DENSE && (int64_t)width < job->elems &&
           job->elems <= UINT32_MAX;
}

static inline __attribute__((always_inline)) void
NAME(count_dense_as)(const BITS *from, int64_t elems, struct sort_map map, bool is_real, BITS least,
                     uint32_t *counts)
{
    for (int64_t i = 0; i < elems; i++)
        counts[(BITS)(NAME(plain_key)(from[i], map, is_real) - least)]++;
}

static void NAME(count_dense)(const BITS *from, int64_t elems, struct sort_map map, BITS least,
                              int64_t width, uint32_t *counts)
{
    memset(counts, 0, (size_t)(width + 1) * sizeof(*counts));
    if (map.is_real)
        NAME(count_dense_as)(from, elems, map, true, least, counts);
    else
        NAME(count_dense_as)(from, elems, map, false, least, counts);
}

/* Elements first to last of the answer. */
static void NAME(fill_dense)(BITS *to, int64_t first, int64_t last, struct sort_map map, BITS least,
                             int64_t width, const uint32_t *counts)
{
    int64_t next = first, end = 0;

    for (int64_t i = 0; i <= width && end < last; i++) {
        const BITS key = least + (BITS)i;
        BITS bits;

        end += counts[i];
        if (next >= end)
            continue;
        NAME(make_elements)(&key, &bits, 1, map);
        while (next < end && next < last)
            to[next++] = bits;
    }
}

static void NAME(sort_dense)(const struct keys_job *job, struct keys_range range)
{
    struct sort_map map = job->map;
    const BITS least = (BITS)(range.least + map.less);
    const int64_t width = (int64_t)(range.largest - range.least);
    uint32_t *all = (uint32_t *)(void *)job->rooms->cache;

    map.less = 0;
#pragma omp parallel for num_threads(job->threads) schedule(static, 1)
    for (int i = 0; i < job->threads; i++) {
        const int64_t first = sort_cpu_part(0, job->elems, i, job->threads);
        const int64_t last = sort_cpu_part(0, job->elems, i + 1, job->threads);

        NAME(count_dense)
        ((const BITS *)job->in + first, last - first, map, least, width,
         (uint32_t *)(void *)job->rooms[i].cache);
    }
    for (int i = 1; i < job->threads; i++) {
        const uint32_t *counts = (const uint32_t *)(const void *)job->rooms[i].cache;

        for (int64_t c = 0; c <= width; c++)
            all[c] += counts[c];
    }
#pragma omp parallel for num_threads(job->threads) schedule(static, 1)
    for (int i = 0; i < job->threads; i++)
        NAME(fill_dense)
    (job->to, sort_cpu_part(0, job->elems, i, job->threads),
     sort_cpu_part(0, job->elems, i + 1, job->threads), map, least, width, all);
}
