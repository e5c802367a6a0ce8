/*
 * The loops of the baseline for one kind of pair. Included once per kind, without a guard, with
 *     NAME(x)  x with a suffix of the kind    BITS  uint32_t or uint64_t
 *     INFINITE  the bits of infinity          REAL  whether keys are floats
 *     VALUE    type of a value
 */

/* sort_key, with neither branches nor a look at what the kind of element makes plain. */
static inline BITS NAME(key)(BITS bits, struct sort_map map)
{
    const BITS sign = (BITS)1 << (8 * sizeof(BITS) - 1), magnitude = bits & ~sign;
    BITS key = bits ^ (sign | (0 - (bits >> (8 * sizeof(BITS) - 1))));

    if (!REAL)
        return bits ^ (BITS)map.flip;
    key = magnitude == 0 ? sign : key;
    key = magnitude > INFINITE ? ~(BITS)0 : key;
    return (key ^ (BITS)map.flip) - (BITS)map.less;
}

static inline BITS NAME(key_at)(struct items from, int64_t i, struct sort_map map)
{
    return NAME(key)(((const BITS *)from.keys)[i], map);
}

static inline void NAME(move)(struct items to, int64_t j, struct items from, int64_t i)
{
    ((BITS *)to.keys)[j] = ((const BITS *)from.keys)[i];
    ((VALUE *)to.values)[j] = ((const VALUE *)from.values)[i];
}

static uint64_t NAME(differing)(struct items from, int64_t begin, int64_t end, struct sort_map map)
{
    const BITS first = begin < end ? NAME(key_at)(from, begin, map) : 0;
    BITS found = 0;

    for (int64_t i = begin; i < end; i++)
        found |= NAME(key_at)(from, i, map) ^ first;
    return found;
}

static void NAME(count)(struct items from, int64_t begin, int64_t end, struct sort_map map,
                        struct window w, int64_t *at)
{
    const BITS mask = ((BITS)1 << w.bits) - 1;

    for (int64_t i = begin; i < end; i++)
        at[NAME(key_at)(from, i, map) >> w.shift & mask]++;
}

static void NAME(scatter)(struct items from, struct items to, int64_t begin, int64_t end,
                          struct sort_map map, struct window w, int64_t *at)
{
    const BITS mask = ((BITS)1 << w.bits) - 1;

    for (int64_t i = begin; i < end; i++)
        NAME(move)(to, at[NAME(key_at)(from, i, map) >> w.shift & mask]++, from, i);
}

static void NAME(insert)(struct items from, struct items to, int64_t begin, int64_t end,
                         struct sort_map map)
{
    BITS *keys = to.keys;
    VALUE *values = to.values;

    for (int64_t i = begin; i < end; i++) {
        const BITS bits = ((const BITS *)from.keys)[i], x = NAME(key)(bits, map);
        const VALUE value = ((const VALUE *)from.values)[i];
        int64_t j = i;

        for (; j > begin && NAME(key)(keys[j - 1], map) > x; j--)
            NAME(move)(to, j, to, j - 1);
        keys[j] = bits;
        values[j] = value;
    }
}

static void NAME(copy)(struct items from, struct items to, int64_t elems)
{
    if (from.keys == to.keys)
        return;
    memcpy(to.keys, from.keys, (size_t)elems * sizeof(BITS));
    memcpy(to.values, from.values, (size_t)elems * sizeof(VALUE));
}

static inline struct items NAME(at)(struct items items, int64_t i)
{
    items.keys = (BITS *)items.keys + i;
    items.values = (VALUE *)items.values + i;
    return items;
}

static void NAME(sort)(struct items from, struct items to, struct items other, struct items cache,
                       int64_t elems, struct sort_map map);

/* A stretch in order by its bits from `low` up: sorts each run that these bits leave open. */
static void NAME(settle)(struct items to, struct items cache, int64_t elems, struct sort_map map,
                         int low)
{
    for (int64_t i = 0; i < elems;) {
        const BITS high = NAME(key_at)(to, i, map) >> low;
        int64_t stop = i + 1;

        while (stop < elems && NAME(key_at)(to, stop, map) >> low == high)
            stop++;
        if (stop - i > CPU_FEW)
            NAME(sort)(NAME(at)(to, i), NAME(at)(to, i), cache, cache, stop - i, map);
        else if (stop - i > 1)
            NAME(insert)(to, to, i, stop, map);
        i = stop;
    }
}

/* What the cache holds: two digits of the window below bit `high`, the lower first, then what they leave open. */
static void NAME(sort_cached)(struct items from, struct items to, struct items cache, int64_t elems,
                              struct sort_map map, int high)
{
    const int bits = high < 2 * CPU_DIGIT_BITS ? high : 2 * CPU_DIGIT_BITS;
    const struct window w0 = {high - bits, bits / 2},
                        w1 = {high - bits + bits / 2, bits - bits / 2};
    int64_t at0[CPU_DIGITS] = {0}, at1[CPU_DIGITS] = {0}, before0 = 0, before1 = 0;

    for (int64_t i = 0; i < elems; i++) {
        const BITS key = NAME(key_at)(from, i, map);
        at0[key >> w0.shift & (((BITS)1 << w0.bits) - 1)]++;
        at1[key >> w1.shift & (((BITS)1 << w1.bits) - 1)]++;
    }
    for (int value = 0; value < CPU_DIGITS; value++) {
        const int64_t count0 = at0[value], count1 = at1[value];
        at0[value] = before0;
        at1[value] = before1;
        before0 += count0;
        before1 += count1;
    }
    NAME(scatter)(from, cache, 0, elems, map, w0, at0);
    NAME(scatter)(cache, to, 0, elems, map, w1, at1);
    if (bits < high)
        NAME(settle)(to, cache, elems, map, high - bits);
}

/* What it does not: the digit below bit `high` first, then each of its values by itself. */
static void NAME(sort_split)(struct items from, struct items to, struct items other,
                             struct items cache, int64_t elems, struct sort_map map, int high)
{
    const int bits = high < CPU_SPLIT_BITS ? high : CPU_SPLIT_BITS;
    const struct window w = {high - bits, bits};
    const struct items next = from.keys == to.keys ? other : to;
    int64_t at[1 << CPU_SPLIT_BITS] = {0}, before = 0, begin = 0;

    NAME(count)(from, 0, elems, map, w, at);
    for (int value = 0; value < 1 << bits; value++) {
        const int64_t count = at[value];
        at[value] = before;
        before += count;
    }
    NAME(scatter)(from, next, 0, elems, map, w, at);
    for (int value = 0; value < 1 << bits; value++) {
        NAME(sort)
        (NAME(at)(next, begin), NAME(at)(to, begin), NAME(at)(other, begin), cache,
         at[value] - begin, map);
        begin = at[value];
    }
}

static void NAME(sort)(struct items from, struct items to, struct items other, struct items cache,
                       int64_t elems, struct sort_map map)
{
    uint64_t differing;
    int high;

    if (elems <= CPU_FEW) {
        NAME(insert)(from, to, 0, elems, map);
        return;
    }
    differing = NAME(differing)(from, 0, elems, map);
    high = differing == 0 ? 0 : 64 - __builtin_clzll(differing);
    if (high == 0)
        NAME(copy)(from, to, elems);
    else if (elems <= CPU_CACHED)
        NAME(sort_cached)(from, to, cache, elems, map, high);
    else
        NAME(sort_split)(from, to, other, cache, elems, map, high);
}

static const struct kind NAME(kind) = {NAME(differing), NAME(count), NAME(scatter), NAME(sort),
                                       NAME(at)};

#undef NAME
#undef BITS
#undef INFINITE
#undef REAL
#undef VALUE
