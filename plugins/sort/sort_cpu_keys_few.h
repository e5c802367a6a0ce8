/*
 * The sort of keys that have few values, by counting them. Part of sort_cpu_keys_kind.h.
 */

/* The values, and where each is counted: at its product with an odd factor, cut. */
struct NAME(few) {
    BITS values[KEYS_FEW], slots[KEYS_FEW_SLOTS], factor;
    int count;
};

static inline size_t NAME(slot_of)(BITS bits, BITS factor)
{
    return (BITS)(bits * factor) >> (8 * sizeof(BITS) - KEYS_FEW_SLOT_BITS);
}

/* A value of the sample; false: one too many, or none that its key tells. */
static bool NAME(add_value)(struct NAME(few) * few, BITS bits, struct sort_map map)
{
    if (map.is_real && (NAME(is_nan)(bits) || bits == (BITS)1 << NAME(TOP)))
        return false;
    for (int v = 0; v < few->count; v++)
        if (few->values[v] == bits)
            return true;
    if (few->count == KEYS_FEW)
        return false;
    few->values[few->count++] = bits;
    return true;
}

/* Slots by this factor; false: two values share one. A slot without a value holds one of another slot. */
static bool NAME(fill_slots)(struct NAME(few) * few)
{
    for (int slot = 0; slot < KEYS_FEW_SLOTS; slot++)
        few->slots[slot] = few->values[0];
    for (int v = 1; v < few->count; v++) {
        BITS *slot = &few->slots[NAME(slot_of)(few->values[v], few->factor)];

        if (*slot != few->values[0] ||
            slot == &few->slots[NAME(slot_of)(few->values[0], few->factor)])
            return false;
        *slot = few->values[v];
    }
    return true;
}

/* Whether a sample has few values; then also slots of their own. */
static bool NAME(find_few)(const struct keys_job *job, struct NAME(few) * few)
{
    const BITS *in = job->in;
    const int64_t step = job->elems / KEYS_FEW_SAMPLES;
    uint64_t random = 1;

    few->count = 0;
    if (step < 2)
        return false;
    for (int64_t i = 0; i < KEYS_FEW_SAMPLES; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (!NAME(add_value)(few, in[i * step + (int64_t)((random >> 33) % (uint64_t)step)],
                             job->map))
            return false;
    }
    for (int tries = 0; tries < KEYS_FEW_TRIES; tries++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        few->factor = (BITS)(random >> (64 - 8 * sizeof(BITS))) | 1;
        if (NAME(fill_slots)(few))
            return true;
    }
    return false;
}

/* Adds how often each slot's value is among the elements; false: another value is. Neighbours that are equal
 * are counted apart, so that none waits for the other. */
static bool NAME(count_few)(const struct NAME(few) * few, const BITS *from, int64_t elems,
                            int64_t *counts)
{
    enum { APART = 4, PIECE = 1 << 12 };
    int64_t apart[APART][KEYS_FEW_SLOTS] = {{0}};

    for (int64_t begin = 0; begin < elems; begin += PIECE) {
        const int64_t end = elems - begin < PIECE ? elems : begin + PIECE;
        BITS other = 0;

        for (int64_t i = begin; i < end; i++) {
            const size_t slot = NAME(slot_of)(from[i], few->factor);

            other |= few->slots[slot] ^ from[i];
            apart[i % APART][slot]++;
        }
        if (other != 0)
            return false;
    }
    for (int slot = 0; slot < KEYS_FEW_SLOTS; slot++)
        counts[slot] += apart[0][slot] + apart[1][slot] + apart[2][slot] + apart[3][slot];
    return true;
}

static void NAME(order_values)(struct NAME(few) * few, struct sort_map map)
{
    for (int v = 1; v < few->count; v++) {
        const BITS bits = few->values[v];
        int at = v;

        for (; at > 0 && NAME(plain_key)(few->values[at - 1], map, map.is_real) >
                             NAME(plain_key)(bits, map, map.is_real);
             at--)
            few->values[at] = few->values[at - 1];
        few->values[at] = bits;
    }
}

/* False, and `to` as it was: there are more values, or such as a key does not tell. */
static bool NAME(sort_few)(const struct keys_job *job)
{
    struct NAME(few) few;
    int64_t counts[KEYS_FEW_SLOTS] = {0}, next = 0;
    bool are_few = true;

    if (!NAME(find_few)(job, &few))
        return false;
#pragma omp parallel for num_threads(job->threads) schedule(static, 1)                             \
    reduction(&& : are_few) reduction(+ : counts)
    for (int i = 0; i < job->threads; i++) {
        const int64_t first = sort_cpu_part(0, job->elems, i, job->threads);
        const int64_t last = sort_cpu_part(0, job->elems, i + 1, job->threads);

        are_few =
            NAME(count_few)(&few, (const BITS *)job->in + first, last - first, counts) && are_few;
    }
    if (!are_few)
        return false;
    NAME(order_values)(&few, job->map);
    for (int v = 0; v < few.count; v++) {
        const BITS bits = few.values[v];
        const int64_t end = next + counts[NAME(slot_of)(bits, few.factor)];

        while (next < end)
            ((BITS *)job->to)[next++] = bits;
    }
    return true;
}
