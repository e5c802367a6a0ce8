/*
 * The sort of keys of one width. Included once per width, without a guard, with
 *     NAME(x)  x with a suffix of the width     BITS  uint32_t or uint64_t
 *     REAL  the reals of that width            INFINITE  the bits of infinity
 */

enum {
    NAME(LINE) = sizeof(struct line) / sizeof(BITS),
    NAME(CACHED) = KEYS_CACHE_BYTES / sizeof(BITS),
    NAME(LONE) = KEYS_LONE_BYTES / sizeof(BITS),
    NAME(WHOLE) = sizeof(BITS) == 4 ? KEYS_WHOLE32 : KEYS_WHOLE64,
    NAME(FEW) = sizeof(BITS) == 4 ? KEYS_FEW32 : KEYS_FEW64,
    NAME(TOP) = 8 * sizeof(BITS) - 1, /* the bit of the sign */
};

/* --- elements and keys ------------------------------------------------------------------------------- */

/* Bits in order: as sort_key, but -0 is next to 0, and NaNs are beyond the infinities of either sign. is_real is a
 * constant to the compiler. */
static inline __attribute__((always_inline)) BITS NAME(plain_key)(BITS bits, struct sort_map map,
                                                                  bool is_real)
{
    const BITS turn = (BITS)map.flip ^ ((BITS)is_real << NAME(TOP));
    const BITS all_if_negative = 0 - (bits >> NAME(TOP));

    return bits ^ turn ^ (is_real ? all_if_negative >> 1 : 0);
}

static inline bool NAME(is_nan)(BITS bits)
{
    return (BITS)(bits << 1) > (BITS)(INFINITE << 1);
}

static void NAME(make_keys)(const BITS *from, BITS *to, int64_t elems, struct sort_map map)
{
    for (int64_t i = 0; i < elems; i++)
        to[i] = NAME(plain_key)(from[i], map, map.is_real);
}

static void NAME(make_elements)(const BITS *from, BITS *to, int64_t elems, struct sort_map map)
{
    const BITS sign = (BITS)1 << NAME(TOP), flip = (BITS)map.flip;

    if (!map.is_real && flip == 0 && from == to)
        return;
    for (int64_t i = 0; i < elems; i++) {
        const BITS key = from[i] ^ flip;
        to[i] = map.is_real ? key ^ (sign | ((key >> NAME(TOP)) - 1)) : key;
    }
}

/* Of reals: the lowest key of what is no NaN; the highest is its complement. */
static inline BITS NAME(lowest)(struct sort_map map)
{
    const BITS infinite = NAME(plain_key)(INFINITE, map, true);

    return infinite < (BITS)~infinite ? infinite : (BITS)~infinite;
}

static inline __attribute__((always_inline)) struct keys_range
NAME(survey_as)(const BITS *from, int64_t elems, struct sort_map map, bool is_real)
{
    BITS least = ~(BITS)0, largest = 0, has_special = 0;

    for (int64_t i = 0; i < elems; i++) {
        const BITS key = NAME(plain_key)(from[i], map, is_real);

        least = key < least ? key : least;
        largest = key > largest ? key : largest;
        has_special |= is_real && from[i] == (BITS)1 << NAME(TOP);
    }
    return (struct keys_range){.least = least, .largest = largest, .has_special = has_special};
}

static struct keys_range NAME(survey)(const BITS *from, int64_t elems, struct sort_map map)
{
    const BITS lowest = NAME(lowest)(map);
    struct keys_range range;

    if (!map.is_real || elems == 0)
        return NAME(survey_as)(from, elems, map, false);
    range = NAME(survey_as)(from, elems, map, true);
    range.has_nan = range.least < lowest || range.largest > (BITS)~lowest;
    range.has_special |= range.has_nan;
    return range;
}

/* --- within the cache ---------------------------------------------------------------------------------- */

static void NAME(insert)(BITS *keys, int64_t elems)
{
    for (int64_t i = 1; i < elems; i++) {
        const BITS x = keys[i];
        int64_t j = i;

        for (; j > 0 && keys[j - 1] > x; j--)
            keys[j] = keys[j - 1];
        keys[j] = x;
    }
}

static inline void NAME(place)(uint32_t *at, int values)
{
    uint32_t before = 0;

    for (int value = 0; value < values; value++) {
        const uint32_t count = at[value];
        at[value] = before;
        before += count;
    }
}

/* Moves each key to at[digit]++; `from` and `to` are apart. */
static inline void NAME(scatter)(const BITS *restrict from, BITS *restrict to, int64_t elems,
                                 BITS least, int shift, BITS mask, uint32_t *restrict at)
{
    for (int64_t i = 0; i < elems; i++) {
        const BITS key = from[i];

        to[at[(BITS)(key - least) >> shift & mask]++] = key;
    }
}

/* By the digit of `bits` bits from `shift` up, which are all above it that keys have. */
static void NAME(sort_digit)(const BITS *from, BITS *to, int64_t elems, BITS least, int shift,
                             int bits)
{
    uint32_t at[1 << KEYS_LONE_DIGIT_BITS];

    memset(at, 0, sizeof(*at) << bits);
    for (int64_t i = 0; i < elems; i++)
        at[(BITS)(from[i] - least) >> shift]++;
    NAME(place)(at, 1 << bits);
    NAME(scatter)(from, to, elems, least, shift, ~(BITS)0, at);
}

/* By the two digits that these bits make, the lower first. */
static void NAME(sort_digits)(const BITS *from, BITS *to, BITS *cache, int64_t elems, BITS least,
                              int shift, int bits)
{
    const int bits0 = bits / 2, shift1 = shift + bits0;
    const BITS mask = ((BITS)1 << bits0) - 1;
    uint32_t at0[1 << KEYS_DIGIT_BITS], at1[1 << KEYS_DIGIT_BITS];

    memset(at0, 0, sizeof(*at0) << bits0);
    memset(at1, 0, sizeof(*at1) << (bits - bits0));
    for (int64_t i = 0; i < elems; i++) {
        const BITS key = from[i] - least;

        at0[key >> shift & mask]++;
        at1[key >> shift1]++;
    }
    NAME(place)(at0, 1 << bits0);
    NAME(place)(at1, 1 << (bits - bits0));
    NAME(scatter)(from, cache, elems, least, shift, mask, at0);
    NAME(scatter)(cache, to, elems, least, shift1, ~(BITS)0, at1);
}

static void NAME(sort_cached)(const BITS *from, BITS *to, BITS *cache, int64_t elems,
                              struct keys_range range);

/* The run of keys around i with the same bits from `low` up, in order; returns where it ends. */
static int64_t NAME(settle_run)(BITS *keys, BITS *cache, int64_t elems, BITS least, int low,
                                int64_t i)
{
    static const struct sort_map none;
    const BITS high = (BITS)(keys[i] - least) >> low;
    int64_t begin = i, end = i + 1;

    while (begin > 0 && (BITS)(keys[begin - 1] - least) >> low == high)
        begin--;
    while (end < elems && (BITS)(keys[end] - least) >> low == high)
        end++;
    if (end - begin <= CPU_FEW)
        NAME(insert)(keys + begin, end - begin);
    else
        NAME(sort_cached)
    (keys + begin, keys + begin, cache, end - begin, NAME(survey)(keys + begin, end - begin, none));
    return end;
}

/* Puts keys 0 and 1 in order, then 2 and 3, and so on: no branch, so runs of a few keys cost no misprediction. */
static void NAME(order_pairs)(BITS *keys, int64_t elems)
{
    for (int64_t i = 0; i + 1 < elems; i += 2) {
        const BITS a = keys[i], b = keys[i + 1];

        keys[i] = a < b ? a : b;
        keys[i + 1] = a < b ? b : a;
    }
}

/* Keys in order by their bits from `low` up: sorts the runs that these bits leave open and out of order. */
static void NAME(settle)(BITS *keys, BITS *cache, int64_t elems, BITS least, int low)
{
    enum { STRETCH = 64 };

    for (int64_t begin = 1, end; begin < elems; begin = end) {
        BITS is_open = 0;

        end = begin + STRETCH < elems ? begin + STRETCH : elems;
        if (end == begin + STRETCH)
            for (int i = 0; i < STRETCH; i++)
                is_open |= keys[begin + i] < keys[begin + i - 1];
        if (!is_open && end == begin + STRETCH)
            continue;
        for (int64_t i = begin; i < end; i++)
            if (keys[i] < keys[i - 1])
                end = i = NAME(settle_run)(keys, cache, elems, least, low, i);
    }
}

/* By so many of their highest bits that a digit's value has about one key. Exchanging neighbours four times
 * orders nearly all that is left. */
static void NAME(sort_lone_digit)(const BITS *from, BITS *to, BITS *cache, int64_t elems,
                                  BITS least, int all)
{
    const int wanted = keys_bits_of((uint64_t)elems * 3 / 4), bits = wanted < all ? wanted : all;

    NAME(sort_digit)(from, cache, elems, least, all - bits, bits);
    memcpy(to, cache, (size_t)elems * sizeof(BITS));
    if (bits == all)
        return;
    for (int i = 0; i < 4; i++)
        NAME(order_pairs)(to + i % 2, elems - i % 2);
    NAME(settle)(to, cache, elems, least, all - bits);
}

/* Keys that are not all the same, by as many of their highest bits as pay, then what these leave open. */
static void NAME(sort_cached)(const BITS *from, BITS *to, BITS *cache, int64_t elems,
                              struct keys_range range)
{
    const BITS least = (BITS)range.least;
    const int all = keys_bits_of((BITS)range.largest - least);
    int bits = keys_bits_of((uint64_t)elems) + KEYS_SPARE_BITS;

    bits = bits < 2 * KEYS_DIGIT_BITS ? bits : 2 * KEYS_DIGIT_BITS;
    bits = bits < all ? bits : all;
    if (bits <= KEYS_DIGIT_BITS || elems <= NAME(LONE)) {
        NAME(sort_lone_digit)(from, to, cache, elems, least, all);
        return;
    }
    NAME(sort_digits)(from, to, cache, elems, least, all - bits, bits);
    if (bits < all)
        NAME(settle)(to, cache, elems, least, all - bits);
}

/* --- in memory ----------------------------------------------------------------------------------------- */

/* How many of a few elements are in each cell; returns how many were looked at. */
static int64_t NAME(sample)(const BITS *from, int64_t elems, struct sort_map map,
                            struct keys_plan *plan)
{
    const int64_t fair = elems / KEYS_SAMPLE_STEP;
    const int64_t samples = fair < KEYS_SAMPLES ? fair : KEYS_SAMPLES, step = elems / samples;
    uint64_t random = 1;

    for (int64_t i = 0; i < samples; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const int64_t at = i * step + (int64_t)((random >> 33) % (uint64_t)step);
        const BITS key = NAME(plain_key)(from[at], map, map.is_real) - (BITS)plan->low;

        plan->bucket[key >> plan->shift]++;
    }
    return samples;
}

/* Joins cells in pairs until one would have more than `most` samples; returns how many are left. */
static int64_t NAME(join_cells)(struct keys_plan *plan, int64_t cells, int64_t most)
{
    for (; cells > 2; cells = (cells + 1) / 2, plan->shift++) {
        int64_t largest = 0;

        for (int64_t c = 0; c < cells / 2; c++) {
            const int64_t both = plan->bucket[2 * c] + plan->bucket[2 * c + 1];
            largest = both > largest ? both : largest;
        }
        if (largest > most)
            break;
        for (int64_t c = 0; c < cells / 2; c++)
            plan->bucket[c] = (uint16_t)(plan->bucket[2 * c] + plan->bucket[2 * c + 1]);
        if (cells % 2)
            plan->bucket[cells / 2] = plan->bucket[cells - 1];
    }
    return cells;
}

/* Into how many parts to cut more keys than the cache holds: small ones, unless those were too many. */
static int64_t NAME(shares_of)(int64_t elems)
{
    const int64_t bytes = elems * (int64_t)sizeof(BITS);
    const int64_t small = bytes / KEYS_SMALL_BYTES, large = bytes / KEYS_BUCKET_BYTES;
    const int64_t least = small < KEYS_SMALL_SHARES ? small : KEYS_SMALL_SHARES;

    if (large > KEYS_SHARES)
        return KEYS_SHARES;
    return large > least ? large : least;
}

/*
 * A plan for more keys than the cache holds, which are not all the same. A bucket ends where it and half of the
 * next cell are more than a share of the sample, even if either is empty. So there are at most 3 buckets for 2
 * shares; and as there are more than 2 shares, the least and the largest key never meet: every bucket is
 * smaller than the whole, whatever the sample has missed.
 */
static void NAME(make_plan)(const BITS *from, int64_t elems, struct sort_map map,
                            struct keys_range range, struct keys_plan *plan)
{
    const BITS width = (BITS)(range.largest - range.least);
    const int64_t shares = NAME(shares_of)(elems);
    int64_t cells, samples, sum = 0;
    int bits = keys_bits_of((uint64_t)elems) - KEYS_CELL_STEP_BITS, bucket = 0;

    bits = bits < KEYS_CELL_BITS ? bits : KEYS_CELL_BITS;
    plan->low = range.least;
    plan->shift = keys_bits_of(width) > bits ? keys_bits_of(width) - bits : 0;
    cells = (int64_t)(width >> plan->shift) + 1;
    memset(plan->bucket, 0, (size_t)cells * sizeof(*plan->bucket));
    samples = NAME(sample)(from, elems, map, plan);
    cells = NAME(join_cells)(plan, cells, samples / shares / 2);
    for (int64_t c = 0; c < cells; c++) {
        const int64_t seen = plan->bucket[c];

        if (c > 0 && (2 * sum + seen) * shares > 2 * samples) {
            bucket++;
            sum = 0;
        }
        plan->bucket[c] = (uint16_t)bucket;
        sum += seen;
    }
    plan->buckets = bucket + 1;
}

static inline size_t NAME(bucket_of)(BITS key, BITS low, int shift, const uint16_t *bucket)
{
    return bucket[(BITS)(key - low) >> shift];
}

/* How many elements each bucket gets. */
static inline __attribute__((always_inline)) void NAME(count_as)(const BITS *from, int64_t elems,
                                                                 struct sort_map map, bool is_real,
                                                                 const struct keys_plan *plan,
                                                                 int64_t *at)
{
    const BITS low = (BITS)plan->low;
    const int shift = plan->shift;

    memset(at, 0, (size_t)plan->buckets * sizeof(*at));
    for (int64_t i = 0; i < elems; i++)
        at[NAME(bucket_of)(NAME(plain_key)(from[i], map, is_real), low, shift, plan->bucket)]++;
}

static void NAME(count)(const BITS *from, int64_t elems, struct sort_map map,
                        const struct keys_plan *plan, int64_t *at)
{
    if (map.is_real)
        NAME(count_as)(from, elems, map, true, plan, at);
    else
        NAME(count_as)(from, elems, map, false, plan, at);
}

/* Where lines would begin in `to`: so many elements before it. */
static inline int64_t NAME(skew_of)(const BITS *to)
{
    return (int64_t)((uintptr_t)to / sizeof(BITS) % NAME(LINE));
}

/* A line of a bucket that has ended at `stop`, without what is before the bucket's first element. */
static __attribute__((noinline)) void NAME(write_line)(BITS *to, int64_t begin, int64_t stop,
                                                       int64_t first, const struct line *line)
{
    const int64_t from = begin > first ? begin : first;

    memcpy(to + from, (const BITS *)(const void *)line + (from - begin),
           (size_t)(stop - from) * sizeof(BITS));
}

/* Makes keys of elements and moves them to their buckets, which begin at room->first. */
static inline __attribute__((always_inline)) void
NAME(stream_as)(const BITS *from, int64_t elems, struct sort_map map, bool is_real,
                const struct keys_plan *plan, BITS *restrict to, struct keys_room *restrict room)
{
    enum { LINE = NAME(LINE) };
    const BITS low = (BITS)plan->low;
    const int shift = plan->shift;
    const int64_t skew = NAME(skew_of)(to);

    for (int b = 0; b < plan->buckets; b++) {
        room->fill[b] = (uint8_t)((room->first[b] + skew) % LINE);
        room->at[b] = room->first[b] - room->fill[b];
    }
    for (int64_t i = 0; i < elems; i++) {
        const BITS key = NAME(plain_key)(from[i], map, is_real);
        const size_t b = NAME(bucket_of)(key, low, shift, plan->bucket);
        struct line *line = &room->lines[b];
        unsigned fill = room->fill[b];

        ((BITS *)(void *)line)[fill++] = key;
        if (fill == LINE) {
            if (room->at[b] >= room->first[b])
                line_store(to + room->at[b], line);
            else
                NAME(write_line)(to, room->at[b], room->at[b] + LINE, room->first[b], line);
            room->at[b] += LINE;
            fill = 0;
        }
        room->fill[b] = (uint8_t)fill;
    }
    for (int b = 0; b < plan->buckets; b++)
        NAME(write_line)
    (to, room->at[b], room->at[b] + room->fill[b], room->first[b], &room->lines[b]);
    line_fence();
}

static void NAME(stream)(const BITS *from, int64_t elems, struct sort_map map,
                         const struct keys_plan *plan, BITS *to, struct keys_room *room)
{
    if (map.is_real)
        NAME(stream_as)(from, elems, map, true, plan, to, room);
    else
        NAME(stream_as)(from, elems, map, false, plan, to, room);
}

/* From how many elements each part has in each bucket to where its first goes; where buckets begin. */
static void NAME(place_parts)(const struct keys_plan *plan, struct keys_room *rooms, int parts,
                              int64_t begin, int64_t *begins)
{
    for (int b = 0; b < plan->buckets; b++) {
        begins[b] = begin;
        for (int i = 0; i < parts; i++) {
            rooms[i].first[b] = begin;
            begin += rooms[i].at[b];
        }
    }
    begins[plan->buckets] = begin;
}

/* Whether vectors sort these elements, or keys that a map makes nothing of, faster than digits do: always, unless
 * keys are long and are spread so evenly that each value of a digit has its share. */
static bool NAME(is_for_vectors)(const struct keys_job *job, const BITS *from, int64_t elems,
                                 struct sort_map map, struct keys_range range)
{
    const int bits = keys_bits_of((BITS)(range.largest - range.least));
    const int shift = bits > KEYS_SPREAD_BITS ? bits - KEYS_SPREAD_BITS : 0;
    int counts[1 << KEYS_SPREAD_BITS] = {0};

    if (!job->has_vectors)
        return false;
    if (sizeof(BITS) == 4 || elems < KEYS_SPREAD_SAMPLES)
        return true;
    for (int64_t i = 0; i < KEYS_SPREAD_SAMPLES; i++) {
        const BITS sample = from[elems / KEYS_SPREAD_SAMPLES * i];
        const BITS key = NAME(plain_key)(sample, map, map.is_real) - (BITS)range.least;

        if (++counts[key >> shift] > KEYS_SPREAD_MOST)
            return true;
    }
    return false;
}

/* How vectors make keys, which have a sign, as this map does. */
static struct vector_turn NAME(turn_of)(struct sort_map map)
{
    const BITS sign = (BITS)1 << NAME(TOP);

    return (struct vector_turn){(BITS)map.flip ^ (map.is_real ? 0 : sign), map.is_real};
}

/* From what `first` makes keys of to what `last` makes them of. `from` may be `to` or `other`. */
static void NAME(sort_by_vectors)(const BITS *from, BITS *to, BITS *other, int64_t elems,
                                  struct sort_map first, struct sort_map last)
{
    const struct vector_job job = {.from = from,
                                   .to = to,
                                   .other = other,
                                   .elems = elems,
                                   .first = NAME(turn_of)(first),
                                   .last = NAME(turn_of)(last),
                                   .levels = sort_cpu_vector_levels(elems)};

    NAME(sort_cpu_vector)(&job);
}

/* All elements; doubles as they are, if none is a NaN. */
static void NAME(sort_whole)(const struct keys_job *whole, bool has_nan)
{
    const struct vector_turn turn = {whole->map.flip & (UINT64_C(1) << 63), false};
    const struct vector_job job = {whole->in,
                                   whole->to,
                                   whole->other,
                                   whole->elems,
                                   turn,
                                   turn,
                                   sort_cpu_vector_levels(whole->elems)};

    if (sizeof(BITS) == 8 && whole->map.is_real && !has_nan)
        sort_cpu_vector_real64(&job);
    else
        NAME(sort_by_vectors)
    (whole->in, whole->to, whole->other, whole->elems, whole->map, whole->map);
}

/* Sorts keys begin to end of `from`, which is job->to or job->other, and leaves elements in job->to. */
static void NAME(sort_alone)(const struct keys_job *job, struct keys_room *room, BITS *from,
                             int64_t begin, int64_t end)
{
    static const struct sort_map none;
    const int64_t elems = end - begin;
    BITS *to = job->to, *next = from == to ? job->other : to;
    struct keys_plan *plan = &room->plan;
    int64_t begins[KEYS_BUCKETS + 1];

    room->range = NAME(survey)(from + begin, elems, none);
    if (elems == 0 || room->range.least == room->range.largest) {
        NAME(make_elements)(from + begin, to + begin, elems, job->map);
        return;
    }
    if (NAME(is_for_vectors)(job, from + begin, elems, none, room->range)) {
        NAME(sort_by_vectors)
        (from + begin, to + begin,
         elems <= NAME(CACHED) ? (BITS *)(void *)room->cache : (BITS *)job->other + begin, elems,
         none, job->map);
        return;
    }
    if (elems <= NAME(CACHED)) {
        NAME(sort_cached)
        (from + begin, to + begin, (BITS *)(void *)room->cache, elems, room->range);
        NAME(make_elements)(to + begin, to + begin, elems, job->map);
        return;
    }
    NAME(make_plan)(from + begin, elems, none, room->range, plan);
    NAME(count)(from + begin, elems, none, plan, room->at);
    NAME(place_parts)(plan, room, 1, begin, begins);
    NAME(stream)(from + begin, elems, none, plan, next, room);
    for (int b = 0, buckets = plan->buckets; b < buckets; b++)
        NAME(sort_alone)(job, room, next, begins[b], begins[b + 1]);
}

/* What all threads find in their parts of `from`. */
static struct keys_range NAME(survey_shared)(const struct keys_job *job, const BITS *from,
                                             int64_t begin, int64_t end, struct sort_map map)
{
    struct keys_range all = {.least = UINT64_MAX};

#pragma omp parallel for num_threads(job->threads) schedule(static, 1)
    for (int i = 0; i < job->threads; i++) {
        const int64_t first = sort_cpu_part(begin, end, i, job->threads);
        const int64_t last = sort_cpu_part(begin, end, i + 1, job->threads);

        job->rooms[i].range = NAME(survey)(from + first, last - first, map);
    }
    for (int i = 0; i < job->threads; i++) {
        const struct keys_range *range = &job->rooms[i].range;

        all.least = range->least < all.least ? range->least : all.least;
        all.largest = range->largest > all.largest ? range->largest : all.largest;
        all.has_special |= range->has_special;
        all.has_nan |= range->has_nan;
    }
    return all;
}

/* Makes keys of elements and moves them to their buckets; returns the number of buckets. */
static int NAME(partition_shared)(const struct keys_job *job, const BITS *from, BITS *to,
                                  int64_t begin, int64_t end, struct sort_map map,
                                  const struct keys_plan *plan, int64_t *begins)
{
    const int parts = job->threads;

#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int i = 0; i < parts; i++) {
        const int64_t first = sort_cpu_part(begin, end, i, parts);
        const int64_t last = sort_cpu_part(begin, end, i + 1, parts);

        NAME(count)(from + first, last - first, map, plan, job->rooms[i].at);
    }
    NAME(place_parts)(plan, job->rooms, parts, begin, begins);
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int i = 0; i < parts; i++) {
        const int64_t first = sort_cpu_part(begin, end, i, parts);
        const int64_t last = sort_cpu_part(begin, end, i + 1, parts);

        NAME(stream)(from + first, last - first, map, plan, to, &job->rooms[i]);
    }
    return plan->buckets;
}

/* A stretch that is worth all threads. Buckets that are still more than a fair share of it are shared in
 * their turn; the others are one thread's work each. */
static void NAME(sort_shared)(const struct keys_job *job, const BITS *from, BITS *to, int64_t begin,
                              int64_t end, struct sort_map map, struct keys_range range)
{
    static const struct sort_map none;
    const int64_t fair = (end - begin) / job->threads;
    const int64_t share = fair > NAME(CACHED) ? fair : NAME(CACHED);
    BITS *next = to == job->to ? job->other : job->to;
    int64_t begins[KEYS_BUCKETS + 1];
    int buckets;

    NAME(make_plan)(from + begin, end - begin, map, range, &job->rooms->plan);
    buckets = NAME(partition_shared)(job, from, to, begin, end, map, &job->rooms->plan, begins);
    for (int b = 0; b < buckets && job->threads > 1; b++) {
        if (begins[b + 1] - begins[b] <= share)
            continue;
        range = NAME(survey_shared)(job, to, begins[b], begins[b + 1], none);
        if (range.least < range.largest)
            NAME(sort_shared)
        (job, to, next, begins[b], begins[b + 1], none, range);
        else NAME(make_elements)(to + begins[b], (BITS *)job->to + begins[b],
                                 begins[b + 1] - begins[b], job->map);
    }
#pragma omp parallel for num_threads(job->threads) schedule(dynamic, 4)
    for (int b = 0; b < buckets; b++)
        if (job->threads == 1 || begins[b + 1] - begins[b] <= share)
            NAME(sort_alone)
    (job, &job->rooms[omp_get_thread_num()], to, begins[b], begins[b + 1]);
}

/* --- what a key does not tell ---------------------------------------------------------------------------- */

static struct keys_tally NAME(tally)(const BITS *from, int64_t elems, struct sort_map map)
{
    enum { PIECE = 1 << 16 };
    const BITS zero = NAME(plain_key)(0, map, true),
               other = NAME(plain_key)((BITS)1 << NAME(TOP), map, true);
    const BITS first = zero < other ? zero : other, lowest = NAME(lowest)(map);
    struct keys_tally tally = {0};

    for (int64_t begin = 0; begin < elems; begin += PIECE) {
        const int64_t end = elems - begin < PIECE ? elems : begin + PIECE;
        BITS heads = 0, below = 0, zeros = 0,
             nans = 0; /* wide enough, and no wider than what is compared */

        for (int64_t i = begin; i < end; i++) {
            const BITS bits = from[i], key = NAME(plain_key)(bits, map, true);

            heads += key < lowest;
            below += key < first;
            zeros += (BITS)(bits << 1) == 0;
            nans += NAME(is_nan)(bits);
        }
        tally.heads += (int64_t)heads;
        tally.below += (int64_t)(below - heads);
        tally.zeros += (int64_t)zeros;
        tally.nans += (int64_t)nans;
    }
    return tally;
}

/* Copies the zeros and the NaNs to where the tally says. */
static void NAME(copy_special)(const struct keys_job *job, int64_t begin, int64_t end,
                               struct keys_tally tally)
{
    enum { PIECE = 1 << 9, SIZE = sizeof(BITS), SPARE = 32 / SIZE };
    const BITS *in = job->in;
    BITS *to = job->to, zeros[PIECE + SPARE], nans[PIECE + SPARE];

    for (; begin < end; begin += PIECE) {
        const int64_t stop = end - begin < PIECE ? end : begin + PIECE;
        struct vector_picks picks = {.zeros = zeros, .nans = nans};
        int64_t i = begin, zero, nan;

        if (job->has_vectors)
            i += NAME(sort_cpu_vector_pick)(in + begin, (stop - begin) * SIZE, &picks) / SIZE;
        zero = picks.zero_bytes / SIZE;
        nan = picks.nan_bytes / SIZE;
        for (; i < stop; i++) {
            zeros[zero] = nans[nan] = in[i];
            zero += (BITS)(in[i] << 1) == 0;
            nan += NAME(is_nan)(in[i]);
        }
        memcpy(to + tally.zeros, zeros, (size_t)zero * SIZE);
        memcpy(to + tally.nans, nans, (size_t)nan * SIZE);
        tally.zeros += zero;
        tally.nans += nan;
    }
}

/* NaNs go to the end, and they and zeros are put in the order of the input. */
static void NAME(restore_special)(const struct keys_job *job)
{
    const BITS *in = job->in;
    struct keys_room *rooms = job->rooms;
    struct keys_tally next = {.nans = job->elems};
    int64_t heads = 0;

#pragma omp parallel for num_threads(job->threads) schedule(static, 1)
    for (int i = 0; i < job->threads; i++) {
        const int64_t first = sort_cpu_part(0, job->elems, i, job->threads);
        const int64_t last = sort_cpu_part(0, job->elems, i + 1, job->threads);

        rooms[i].tally = NAME(tally)(in + first, last - first, job->map);
    }
    for (int i = 0; i < job->threads; i++) {
        heads += rooms[i].tally.heads;
        next.zeros += rooms[i].tally.below;
        next.nans -= rooms[i].tally.nans;
    }
    for (int i = 0; i < job->threads; i++) {
        const struct keys_tally tally = rooms[i].tally;

        rooms[i].tally = next;
        next.zeros += tally.zeros;
        next.nans += tally.nans;
    }
    if (heads > 0)
        memmove(job->to, (const BITS *)job->to + heads,
                (size_t)(job->elems - heads) * sizeof(BITS));
#pragma omp parallel for num_threads(job->threads) schedule(static, 1)
    for (int i = 0; i < job->threads; i++) {
        const int64_t first = sort_cpu_part(0, job->elems, i, job->threads);
        const int64_t last = sort_cpu_part(0, job->elems, i + 1, job->threads);

        NAME(copy_special)(job, first, last, rooms[i].tally);
    }
}

/* Reals of one sign are in the order of their bits, or in the opposite one: a key is then one operation. `range` is of
 * keys that nothing was taken off. */
static struct sort_map NAME(map_of_range)(struct sort_map map, struct keys_range range)
{
    const BITS ends[2] = {(BITS)range.least, (BITS)range.largest};
    BITS bits[2];

    NAME(make_elements)(ends, bits, 2, map);
    if (map.is_real && bits[0] >> NAME(TOP) == bits[1] >> NAME(TOP))
        map = (struct sort_map){.flip = bits[0] ^ ends[0]};
    return map;
}

#include "sort_cpu_keys_few.h"

#include "sort_cpu_keys_dense.h"

/* Whether a sample has a value often: partitions leave such a one out, where a pass in memory would move it. */
static bool NAME(has_frequent)(const struct keys_job *job)
{
    BITS samples[KEYS_SPREAD_SAMPLES], sorted[KEYS_SPREAD_SAMPLES], other[KEYS_SPREAD_SAMPLES];
    const int64_t step = job->elems / KEYS_SPREAD_SAMPLES;

    for (int64_t i = 0; i < KEYS_SPREAD_SAMPLES; i++)
        samples[i] = ((const BITS *)job->in)[i * step];
    NAME(sort_by_vectors)(samples, sorted, other, KEYS_SPREAD_SAMPLES, job->map, job->map);
    for (int i = KEYS_SPREAD_MOST; i < KEYS_SPREAD_SAMPLES; i++)
        if (sorted[i] == sorted[i - KEYS_SPREAD_MOST])
            return true;
    return false;
}

/* Whether it is worth a pass that cuts all into buckets. Two threads gain less by one than it costs if a value is
 * frequent. */
static bool NAME(is_cut)(const struct keys_job *job, bool by_vectors)
{
    const int64_t whole = by_vectors ? NAME(WHOLE) : NAME(CACHED);

    if (job->elems <= (job->threads > 1 ? KEYS_SHARED : whole))
        return false;
    return !by_vectors || job->threads > KEYS_FEW_THREADS || !NAME(has_frequent)(job);
}

/* All but what keys do not tell. */
static void NAME(sort_by_keys)(const struct keys_job *job, struct keys_range range)
{
    const bool by_vectors = NAME(is_for_vectors)(job, job->in, job->elems, job->map, range);
    struct keys_job alike = *job;

    alike.map = NAME(map_of_range)(job->map, range);
    if (NAME(is_cut)(job, by_vectors)) {
        NAME(sort_shared)(&alike, job->in, job->to, 0, job->elems, alike.map, range);
    } else if (by_vectors) {
        NAME(sort_whole)(job, range.has_nan);
    } else {
        NAME(make_keys)(job->in, job->to, job->elems, alike.map);
        NAME(sort_alone)(&alike, job->rooms, job->to, 0, job->elems);
    }
}

/* Bytes that repeat after one element. */
static bool NAME(are_alike)(const BITS *from, int64_t elems)
{
    return elems < 2 || memcmp(from, from + 1, (size_t)(elems - 1) * sizeof(BITS)) == 0;
}

void NAME(sort_cpu_keys)(const struct keys_job *job)
{
    struct keys_range range;

    if (NAME(are_alike)(job->in, job->elems)) {
        memcpy(job->to, job->in, (size_t)job->elems * sizeof(BITS));
        return;
    }
    range = NAME(survey_shared)(job, job->in, 0, job->elems, job->map);
    if (NAME(sort_dense)(job, range) || (job->elems >= NAME(FEW) && NAME(sort_few)(job)))
        return;
    NAME(sort_by_keys)(job, range);
    if (range.has_special)
        NAME(restore_special)(job);
}

#undef NAME
#undef BITS
#undef REAL
#undef INFINITE
