/*
 * The sort of keys that lie in a small range, by counting each there could be: keys as they are, or reals that are
 * whole numbers, whose keys are far apart. Part of sort_cpu_keys_kind.h.
 */

/* What is counted: the key `least` and those behind it, or the number `first` and those behind it in the order. */
struct NAME(dense) {
    struct sort_map map;
    bool are_whole;
    BITS least;
    int32_t first, step; /* of whole numbers */
    int64_t width;       /* from the first to the last */
};

static inline BITS NAME(bits_of_whole)(int32_t number)
{
    const REAL real = (REAL)number;
    BITS bits;

    memcpy(&bits, &real, sizeof bits);
    return bits;
}

/* Whether these are the bits of a whole number that an int32_t holds; -0 is none. */
static bool NAME(is_whole)(BITS bits, int32_t *number)
{
    REAL real;

    memcpy(&real, &bits, sizeof real);
    if (!(real >= INT32_MIN && real < -(REAL)INT32_MIN))
        return false;
    *number = (int32_t)real;
    return NAME(bits_of_whole)(*number) == bits;
}

/* Whether all keys tell their elements, and the first and the last are whole numbers so close together that a count for
 * each between fits the cache. What the elements between are, is seen when they are counted. */
static bool NAME(are_whole)(struct keys_range range, struct NAME(dense) * dense)
{
    const BITS ends[2] = {(BITS)range.least, (BITS)range.largest};
    BITS bits[2];
    int32_t first, last;

    NAME(make_elements)(ends, bits, 2, dense->map);
    if (!dense->map.is_real || !NAME(is_whole)(bits[0], &first) || !NAME(is_whole)(bits[1], &last))
        return false;
    dense->are_whole = true;
    dense->first = first;
    dense->step = first < last ? 1 : -1;
    dense->width = first < last ? (int64_t)last - first : (int64_t)first - last;
    return dense->width < KEYS_DENSE;
}

/* Whether elements are worth a count for each there could be. */
static bool NAME(is_dense)(const struct keys_job *job, struct keys_range range,
                           struct NAME(dense) * dense)
{
    const uint64_t width = range.largest - range.least;

    *dense = (struct NAME(dense)){.map = job->map, .width = (int64_t)width};
    if (range.has_special || job->elems > UINT32_MAX ||
        (width >= KEYS_DENSE && !NAME(are_whole)(range, dense)) || dense->width >= job->elems / 2)
        return false;
    dense->least = (BITS)range.least;
    return true;
}

static inline __attribute__((always_inline)) void
NAME(count_dense_as)(const BITS *from, int64_t elems, struct sort_map map, bool is_real, BITS least,
                     uint32_t *counts)
{
    for (int64_t i = 0; i < elems; i++)
        counts[(BITS)(NAME(plain_key)(from[i], map, is_real) - least)]++;
}

/* False: one of the elements is no whole number. They are all between the first and the last. */
static bool NAME(count_whole)(const struct NAME(dense) * dense, const BITS *from, int64_t elems,
                              uint32_t *counts)
{
    enum { PIECE = 1 << 9 };
    uint32_t places[PIECE];

    for (int64_t begin = 0; begin < elems; begin += PIECE) {
        const int64_t count = elems - begin < PIECE ? elems - begin : PIECE;
        BITS others = 0;

        for (int64_t i = 0; i < count; i++) {
            const BITS bits = from[begin + i];
            REAL real;
            int32_t number;

            memcpy(&real, &bits, sizeof real);
            number = (int32_t)real;
            others |= NAME(bits_of_whole)(number) ^ bits;
            places[i] = (uint32_t)((number - dense->first) * dense->step);
        }
        if (others != 0)
            return false;
        for (int64_t i = 0; i < count; i++)
            counts[places[i]]++;
    }
    return true;
}

/* False: they are not what they seemed. */
static bool NAME(count_dense)(const struct NAME(dense) * dense, const BITS *from, int64_t elems,
                              uint32_t *counts)
{
    memset(counts, 0, (size_t)(dense->width + 1) * sizeof(*counts));
    if (dense->are_whole)
        return NAME(count_whole)(dense, from, elems, counts);
    if (dense->map.is_real)
        NAME(count_dense_as)(from, elems, dense->map, true, dense->least, counts);
    else
        NAME(count_dense_as)(from, elems, dense->map, false, dense->least, counts);
    return true;
}

static BITS NAME(dense_element)(const struct NAME(dense) * dense, int64_t i)
{
    const BITS key = dense->least + (BITS)i;
    BITS bits;

    if (dense->are_whole)
        return NAME(bits_of_whole)(dense->first + (int32_t)i * dense->step);
    NAME(make_elements)(&key, &bits, 1, dense->map);
    return bits;
}

/* Elements first to last of the answer. */
static void NAME(fill_dense)(const struct NAME(dense) * dense, BITS *to, int64_t first,
                             int64_t last, const uint32_t *counts)
{
    int64_t next = first, end = 0;

    for (int64_t i = 0; i <= dense->width && end < last; i++) {
        BITS bits;

        end += counts[i];
        if (next >= end)
            continue;
        bits = NAME(dense_element)(dense, i);
        while (next < end && next < last)
            to[next++] = bits;
    }
}

/* False, and `to` as it was: this is not for counting. */
static bool NAME(sort_dense)(const struct keys_job *job, struct keys_range range)
{
    struct NAME(dense) dense;
    uint32_t *all = (uint32_t *)(void *)job->rooms->cache;
    bool are_right = true;

    if (!NAME(is_dense)(job, range, &dense))
        return false;
#pragma omp parallel for num_threads(job->threads) schedule(static, 1) reduction(&& : are_right)
    for (int i = 0; i < job->threads; i++) {
        const int64_t first = sort_cpu_part(0, job->elems, i, job->threads);
        const int64_t last = sort_cpu_part(0, job->elems, i + 1, job->threads);

        are_right = NAME(count_dense)(&dense, (const BITS *)job->in + first, last - first,
                                      (uint32_t *)(void *)job->rooms[i].cache) &&
                    are_right;
    }
    if (!are_right)
        return false;
    for (int i = 1; i < job->threads; i++) {
        const uint32_t *counts = (const uint32_t *)(const void *)job->rooms[i].cache;

        for (int64_t c = 0; c <= dense.width; c++)
            all[c] += counts[c];
    }
#pragma omp parallel for num_threads(job->threads) schedule(static, 1)
    for (int i = 0; i < job->threads; i++)
        NAME(fill_dense)
    (&dense, job->to, sort_cpu_part(0, job->elems, i, job->threads),
     sort_cpu_part(0, job->elems, i + 1, job->threads), all);
    return true;
}
