/*
 * The loops of sort_cpu_vector.c for one kind of key. Included once per kind, without a guard, with
 *     NAME(x)  x with a suffix of the kind     BITS, BITS_MOST  of its width     KEY, KEY_MOST  what is compared
 *     RANK(bits), RANKED(rank)  of keys, as unsigned numbers of their order
 *     SET(x)  x in all lanes     SIGNS(v)  all bits of the lanes whose highest is set     MASK(v)  the highest bits
 *     GREATER(a, b)  all bits of the lanes where it is     LANES_FIRST(mask)  the permutation
 *     ORDER_TWO(a, b)  puts the lesser of each lane in *a     TRANSPOSE(v)  as many rows as lanes become columns
 *     SORT_LANES(M, X, H)  the steps that merge sorted lanes: M(reverse, upper), of groups in which `reverse` turns the
 *         lanes round and `upper` is the half above; X(swap, upper), of lanes that `swap` exchanges; H, of rows
 */

enum { NAME(LANES) = VECTOR / sizeof(BITS), NAME(LEAF) = ROWS * NAME(LANES) };

/* --- elements and keys ------------------------------------------------------------------------------------------- */

INLINE __m256i NAME(turned)(__m256i v, bool is_real)
{
    return _mm256_xor_si256(v, _mm256_and_si256(SIGNS(v), SET(is_real ? BITS_MOST >> 1 : 0)));
}

INLINE __m256i NAME(keys_of)(__m256i elements, struct vector_turn turn)
{
    return _mm256_xor_si256(NAME(turned)(elements, turn.is_real), SET(turn.flip));
}

INLINE __m256i NAME(elements_of)(__m256i keys, struct vector_turn turn)
{
    return NAME(turned)(_mm256_xor_si256(keys, SET(turn.flip)), turn.is_real);
}

INLINE KEY NAME(key_in)(BITS bits)
{
    KEY key;

    memcpy(&key, &bits, sizeof key);
    return key;
}

INLINE BITS NAME(bits_of)(KEY key)
{
    BITS bits;

    memcpy(&bits, &key, sizeof bits);
    return bits;
}

INLINE BITS NAME(turned_one)(BITS bits, bool is_real)
{
    return bits ^ (is_real && bits > BITS_MOST >> 1 ? BITS_MOST >> 1 : 0);
}

INLINE BITS NAME(key_of)(BITS element, struct vector_turn turn)
{
    return NAME(turned_one)(element, turn.is_real) ^ (BITS)turn.flip;
}

INLINE BITS NAME(element_of)(KEY key, struct vector_turn turn)
{
    return NAME(turned_one)(NAME(bits_of)(key) ^ (BITS)turn.flip, turn.is_real);
}

/* --- what registers hold ------------------------------------------------------------------------------------------ */

#define ORDER(i, j) ORDER_TWO(&v[i], &v[j])

/* Sorted groups of lanes, two by two: the lower half of a group against the upper one from its end. */
#define MERGE(turn, upper)                                                                         \
    for (int i = 0; i < rows / 2; i++) {                                                           \
        __m256i low = v[i], high = turn(v[rows - 1 - i]);                                          \
                                                                                                   \
        ORDER_TWO(&low, &high);                                                                    \
        v[i] = _mm256_blend_epi32(low, high, upper);                                               \
        v[rows - 1 - i] = turn(_mm256_blend_epi32(high, low, upper));                              \
    }

/* Lanes of each row. */
#define EXCHANGE(swap, upper)                                                                      \
    for (int i = 0; i < rows; i++) {                                                               \
        __m256i low = v[i], high = swap(v[i]);                                                     \
                                                                                                   \
        ORDER_TWO(&low, &high);                                                                    \
        v[i] = _mm256_blend_epi32(low, high, upper);                                               \
    }

INLINE void NAME(halve_rows)(__m256i *v, int rows)
{
    if (rows == 16) {
        HALVE_16(ORDER);
    } else {
        HALVE_8(ORDER, 0);
    }
}
#define HALVE NAME(halve_rows)(v, rows)

INLINE void NAME(sort_columns)(__m256i *v, int rows)
{
    SORT_8(ORDER, 0);
    if (rows == 16) {
        SORT_8(ORDER, 8);
        MERGE_16(ORDER);
    }
}

INLINE __m256i NAME(sort_lanes)(__m256i row)
{
    enum { rows = 1 };
    __m256i v[rows] = {row};

    SORT_LANES(EXCHANGE, EXCHANGE, );
    return v[0];
}

/* Rows of keys, any padded with the largest, into elements. */
INLINE void NAME(sort_rows)(const BITS *from, BITS *to, int rows, struct vector_turn last)
{
    enum { LANES = NAME(LANES) };
    __m256i v[ROWS];

#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        v[i] = load(from + i * LANES);
    NAME(sort_columns)(v, rows);
    SORT_LANES(MERGE, EXCHANGE, HALVE);
#pragma GCC unroll 4
    for (int i = 0; i < rows; i += LANES) {
        TRANSPOSE(v + i);
#pragma GCC unroll 8
        for (int lane = 0; lane < LANES; lane++)
            store(to + lane * rows + i, NAME(elements_of)(v[i + lane], last));
    }
}

AVX2 static void NAME(sort_8)(const BITS *from, BITS *to, struct vector_turn last)
{
    NAME(sort_rows)(from, to, 8, last);
}

AVX2 static void NAME(sort_16)(const BITS *from, BITS *to, struct vector_turn last)
{
    NAME(sort_rows)(from, to, 16, last);
}

/* At most LEAF keys, which may be at `to` already. */
AVX2 static void NAME(sort_leaf)(const BITS *from, BITS *to, int64_t elems, struct vector_turn last)
{
    enum { LANES = NAME(LANES) };
    const bool is_half = elems <= NAME(LEAF) / 2;
    const int64_t whole = is_half ? NAME(LEAF) / 2 : NAME(LEAF);
    const __m256i most = SET(NAME(bits_of)(KEY_MOST));
    _Alignas(VECTOR) BITS rows[NAME(LEAF)];

    for (int64_t i = elems / LANES * LANES; i < whole; i += LANES)
        store(rows + i, most);
    memcpy(rows, from, (size_t)elems * sizeof(BITS));
    if (is_half)
        NAME(sort_8)(rows, rows, last);
    else
        NAME(sort_16)(rows, rows, last);
    memcpy(to, rows, (size_t)elems * sizeof(BITS));
}

/* --- a partition -------------------------------------------------------------------------------------------------- */

struct NAME(pivot) {
    KEY key;
    bool is_frequent; /* its equals go to neither side; else they go above */
};

/* How many keys went to the beginning, and how many to the end. */
struct NAME(split) {
    int64_t below, above;
};

struct NAME(room) {
    BITS *low, *high; /* what is free is between */
};

INLINE struct NAME(room) NAME(put_one)(struct NAME(room) room, BITS bits, struct NAME(pivot) pivot)
{
    const KEY key = NAME(key_in)(bits);

    *room.low = bits;
    room.high[-1] = bits;
    room.low += key < pivot.key;
    room.high -= pivot.is_frequent ? key > pivot.key : key >= pivot.key;
    return room;
}

INLINE struct NAME(room)
    NAME(put_vector)(struct NAME(room) room, __m256i v, struct NAME(pivot) pivot)
{
    enum { LANES = NAME(LANES), ALL = (1 << LANES) - 1 };
    const unsigned below = MASK(GREATER(SET(NAME(bits_of)(pivot.key)), v));
    const unsigned above =
        pivot.is_frequent ? MASK(GREATER(v, SET(NAME(bits_of)(pivot.key)))) : ALL ^ below;
    const __m256i lows = _mm256_permutevar8x32_epi32(v, LANES_FIRST(below));

    store(room.low, lows);
    store(room.high - LANES,
          pivot.is_frequent ? _mm256_permutevar8x32_epi32(v, LANES_FIRST(ALL ^ above)) : lows);
    room.low += __builtin_popcount(below);
    room.high -= __builtin_popcount(above);
    return room;
}

/* The two stores of a vector must not meet unless they store the same: room for two vectors is always left, or as much
 * as there are vectors. So what is no whole vector comes first; or last, with one vector, where keys are dropped. */
INLINE struct NAME(split) NAME(partition_as)(const BITS *from, BITS *to, int64_t elems,
                                             struct NAME(pivot) pivot, struct vector_turn first)
{
    enum { LANES = NAME(LANES) };
    const int64_t rest = elems % LANES;
    const int64_t head = pivot.is_frequent ? 0 : rest,
                  tail = pivot.is_frequent ? elems - rest - LANES : elems;
    struct NAME(room) room = {to, to + elems};

    for (int64_t i = 0; i < head; i++)
        room = NAME(put_one)(room, NAME(key_of)(from[i], first), pivot);
#pragma GCC unroll 4
    for (int64_t i = head; i < tail; i += LANES)
        room = NAME(put_vector)(room, NAME(keys_of)(load(from + i), first), pivot);
    for (int64_t i = tail; i < elems; i++)
        room = NAME(put_one)(room, NAME(key_of)(from[i], first), pivot);
    return (struct NAME(split)){room.low - to, to + elems - room.high};
}

AVX2 static struct NAME(split) NAME(partition)(const BITS *from, BITS *to, int64_t elems,
                                               struct NAME(pivot) pivot, struct vector_turn first)
{
    static const struct vector_turn none;
    const bool is_turned = first.is_real || first.flip != 0;

    if (pivot.is_frequent)
        return NAME(partition_as)(from, to, elems, (struct NAME(pivot)){pivot.key, true}, first);
    if (is_turned)
        return NAME(partition_as)(from, to, elems, (struct NAME(pivot)){pivot.key, false}, first);
    return NAME(partition_as)(from, to, elems, (struct NAME(pivot)){pivot.key, false}, none);
}

/* --- pivots --------------------------------------------------------------------------------------------------------- */

/* The median of the medians of each lane of some vectors. Where another lane has the same, it is frequent; else
 * there are smaller ones, so neither side is empty. */
AVX2 static struct NAME(pivot)
    NAME(sampled)(const BITS *from, int64_t elems, struct vector_turn first)
{
    enum { LANES = NAME(LANES), TAKEN = 8 };
    const int64_t step = (elems - LANES) / (TAKEN - 1);
    BITS medians[LANES];
    __m256i v[TAKEN];
    struct NAME(pivot) pivot;

#pragma GCC unroll 8
    for (int i = 0; i < TAKEN; i++)
        v[i] = NAME(keys_of)(load(from + i * step), first);
    NAME(sort_columns)(v, TAKEN);
    store(medians, NAME(sort_lanes)(v[TAKEN / 2]));
    pivot.key = NAME(key_in)(medians[LANES / 2]);
    pivot.is_frequent = NAME(key_in)(medians[LANES / 2 - 1]) == pivot.key;
    return pivot;
}

/* The middle of the range of all: neither side is empty, unless all are the same. As many levels as a key has bits
 * are enough. */
AVX2 static struct NAME(pivot)
    NAME(middle)(const BITS *from, int64_t elems, struct vector_turn first)
{
    KEY least = KEY_MOST, most = -KEY_MOST - 1;
    BITS low, high;

    for (int64_t i = 0; i < elems; i++) {
        const KEY key = NAME(key_in)(NAME(key_of)(from[i], first));

        least = key < least ? key : least;
        most = key > most ? key : most;
    }
    if (least == most)
        return (struct NAME(pivot)){least, true};
    low = RANK(NAME(bits_of)(least + 0)); /* -0 ranks as 0 */
    high = RANK(NAME(bits_of)(most + 0));
    return (struct NAME(pivot)){NAME(key_in)(RANKED(high - (high - low) / 2)), false};
}

/* --- the sort ------------------------------------------------------------------------------------------------------- */

struct NAME(sorter) {
    BITS *to, *other;
    struct vector_turn last;
};

/* Keys begin to begin + elems of the answer, which are made of what is at `from`. */
AVX2 static void NAME(sort_part)(const struct NAME(sorter) * s, const BITS *from, int64_t begin,
                                 int64_t elems, struct vector_turn first, int levels)
{
    static const struct vector_turn none;
    BITS *to = s->to + begin, *next = from == to ? s->other + begin : to;
    struct NAME(pivot) pivot;
    struct NAME(split) split;
    BITS equal;

    if (elems <= NAME(LEAF)) {
        NAME(sort_leaf)(from, to, elems, s->last);
        return;
    }
    pivot = levels > 0 ? NAME(sampled)(from, elems, first) : NAME(middle)(from, elems, first);
    split = NAME(partition)(from, next, elems, pivot, first);
    equal = NAME(element_of)(pivot.key, s->last);
    for (int64_t i = split.below; i < elems - split.above; i++)
        to[i] = equal;
    NAME(sort_part)(s, next, begin, split.below, none, levels - 1);
    NAME(sort_part)
    (s, next + elems - split.above, begin + elems - split.above, split.above, none, levels - 1);
}

AVX2 void NAME(sort_cpu_vector)(const struct vector_job *job)
{
    const struct NAME(sorter) s = {job->to, job->other, job->last};
    const BITS *from = job->from;
    BITS keys[NAME(LEAF)];

    if (job->elems > NAME(LEAF)) {
        NAME(sort_part)(&s, from, 0, job->elems, job->first, job->levels);
        return;
    }
    for (int64_t i = 0; i < job->elems; i++)
        keys[i] = NAME(key_of)(from[i], job->first);
    NAME(sort_leaf)(keys, s.to, job->elems, s.last);
}

#undef ORDER
#undef MERGE
#undef EXCHANGE
#undef HALVE
#undef NAME
#undef BITS
#undef BITS_MOST
#undef KEY
#undef KEY_MOST
#undef RANK
#undef RANKED
#undef SET
#undef SIGNS
#undef GREATER
#undef MASK
#undef LANES_FIRST
#undef ORDER_TWO
#undef TRANSPOSE
#undef SORT_LANES
