/*
 * The loops of conv_cpu_symmetric.c for one width of vectors. Included once per width, without a guard, with
 *     NAME(x)  x with a suffix of the width     VECTOR_BYTES  of a vector     TARGET  attribute of its functions
 *     VECTOR  the type that instructions take one as, V(name) an instruction on it
 *     ADD_TWO(v)  words: the sum of each two neighbouring bytes
 *     ADD_MADD(sums, a, b)  sums, each with two neighbouring products of words more
 *     PUT(to, v)  stores one
 * Sums stand as unpacking leaves them, which packing undoes.
 */
#define INLINE TARGET static inline __attribute__((always_inline))

enum { NAME(LANES) = VECTOR_BYTES / sizeof(int32_t), NAME(CHUNK) = 4 * NAME(LANES) };

typedef uint8_t NAME(bytes) __attribute__((vector_size(VECTOR_BYTES)));
typedef int16_t NAME(words) __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t NAME(sums) __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t NAME(bits) __attribute__((vector_size(VECTOR_BYTES)));

_Static_assert(2 * (int)NAME(CHUNK) <= (int)CONV_CPU_SLACK && (int)STRIP % NAME(CHUNK) == 0,
               "two chunks may reach as far behind a row, and strips are whole chunks");

INLINE NAME(bytes) NAME(bytes_at)(const char *from)
{
    NAME(bytes) bytes;

    memcpy(&bytes, from, sizeof bytes);
    return bytes;
}

/* Bytes, or the sums of two vectors of them, as words. */
struct NAME(wide) {
    NAME(words) low, high;
};

INLINE struct NAME(wide) NAME(widen)(NAME(bytes) a)
{
    const NAME(bytes) zero = {0};

    return (struct NAME(wide)){(NAME(words))V(unpacklo_epi8)((VECTOR)a, (VECTOR)zero),
                               (NAME(words))V(unpackhi_epi8)((VECTOR)a, (VECTOR)zero)};
}

INLINE struct NAME(wide) NAME(add_bytes)(const char *left, const char *right)
{
    const NAME(bytes) a = NAME(bytes_at)(left), b = NAME(bytes_at)(right);

    return (struct NAME(wide)){(NAME(words))ADD_TWO(V(unpacklo_epi8)((VECTOR)a, (VECTOR)b)),
                               (NAME(words))ADD_TWO(V(unpackhi_epi8)((VECTOR)a, (VECTOR)b))};
}

/* Adds what is in a and b, times the two weights of the pair. */
INLINE void NAME(add_pair)(NAME(sums) sums[4], struct NAME(wide) a, struct NAME(wide) b,
                           int32_t weights)
{
    const NAME(words) pair = (NAME(words))((NAME(sums)){0} + weights);

    sums[0] = (NAME(sums))ADD_MADD(sums[0], V(unpacklo_epi16)((VECTOR)a.low, (VECTOR)b.low), pair);
    sums[1] = (NAME(sums))ADD_MADD(sums[1], V(unpackhi_epi16)((VECTOR)a.low, (VECTOR)b.low), pair);
    sums[2] =
        (NAME(sums))ADD_MADD(sums[2], V(unpacklo_epi16)((VECTOR)a.high, (VECTOR)b.high), pair);
    sums[3] =
        (NAME(sums))ADD_MADD(sums[3], V(unpackhi_epi16)((VECTOR)a.high, (VECTOR)b.high), pair);
}

/* A sum in two words: its lowest CUT bits, and above them the others. */
INLINE NAME(sums) NAME(cut)(NAME(sums) sums)
{
    const NAME(bits) bits = (NAME(bits))sums;

    return (NAME(sums))((bits << (16 - CUT) & 0xffff0000) | (bits & ((1 << CUT) - 1)));
}

/* Two taps of a row and those as far from its other end. */
INLINE struct NAME(wide) NAME(both_ends)(const struct taps *taps, const char *line, int tap)
{
    return NAME(add_bytes)(line + tap * taps->channels,
                           line + (taps->width - 1 - tap) * taps->channels);
}

/* A chunk of sums along the mask's row, cut. */
INLINE void NAME(go_along)(const struct taps *taps, const char *line, int32_t *to)
{
    const int half = taps->width / 2;
    NAME(sums) sums[4] = {{0}, {0}, {0}, {0}};

    NAME(add_pair)
    (sums, NAME(widen)(NAME(bytes_at)(line + half * taps->channels)),
     NAME(both_ends)(taps, line, half - 1), taps->along[half]);
    for (int j = half - 2; j >= 0; j -= 2)
        NAME(add_pair)
    (sums, NAME(both_ends)(taps, line, j), NAME(both_ends)(taps, line, j > 0 ? j - 1 : 0),
     taps->along[j]);
    for (int v = 0; v < 4; v++)
        sums[v] = NAME(cut)(sums[v]);
    memcpy(to, sums, 4 * sizeof *sums);
}

INLINE NAME(words) NAME(words_at)(const int32_t *from)
{
    NAME(words) words;

    memcpy(&words, from, sizeof words);
    return words;
}

/* A chunk of sums down the mask's column, over those along its row. */
INLINE void NAME(go_down)(const struct taps *taps, const int32_t *const *rows, int64_t e,
                          NAME(sums) sums[4])
{
    const int last = taps->height - 1, half = taps->height / 2;
    const NAME(words) middle = (NAME(words))((NAME(sums)){0} + taps->down[half]);

    for (int v = 0; v < 4; v++)
        sums[v] = (NAME(sums))V(madd_epi16)(
            (VECTOR)NAME(words_at)(rows[half] + e + v * NAME(LANES)), (VECTOR)middle);
    for (int i = 0; i < half; i++) {
        const NAME(words) weight = (NAME(words))((NAME(sums)){0} + taps->down[i]);
        const int32_t *above = rows[i] + e, *below = rows[last - i] + e;

        for (int v = 0; v < 4; v++, above += NAME(LANES), below += NAME(LANES))
            sums[v] = (NAME(sums))ADD_MADD(sums[v], NAME(words_at)(above) + NAME(words_at)(below),
                                           weight);
    }
}

INLINE void NAME(finish)(const struct conv_tail *tail, NAME(sums) sums[4], char *to)
{
    if (tail->is_wide || tail->is_even) {
        int32_t plain[NAME(CHUNK)];

        memcpy(plain, sums, sizeof plain);
        for (int i = 0; i < NAME(CHUNK); i++)
            plain[i] = conv_tail_apply(plain[i], tail);
        memcpy(sums, plain, sizeof plain);
    } else {
        for (int v = 0; v < 4; v++) {
            if (tail->multiplier != 1)
                sums[v] *= tail->multiplier;
            sums[v] = (sums[v] + (int32_t)tail->add) >> tail->shift;
        }
    }
    PUT(to, V(packus_epi16)(V(packs_epi32)((VECTOR)sums[0], (VECTOR)sums[1]),
                            V(packs_epi32)((VECTOR)sums[2], (VECTOR)sums[3])));
}

TARGET static void NAME(line_along)(const struct taps *taps, const char *line, int64_t elems,
                                    int32_t *to)
{
    for (int64_t e = 0; e < elems; e += NAME(CHUNK))
        NAME(go_along)(taps, line + e, to + e);
}

TARGET static void NAME(down)(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                              char *out)
{
    struct state *const state = strip->state;
    const struct taps *taps = &state->taps;
    const int height = cpu->mask->height;
    const int32_t *rows[CONV_SIZE_MAX];
    struct conv_cpu_run run;

    if (strip->is_first) {
        begin_band(cpu, state);
        for (int i = 0; i < height - 1; i++)
            NAME(line_along)(taps, strip->lines[i], strip->elems, state->rows[i]);
    }
    NAME(line_along)
    (taps, strip->lines[height - 1], strip->elems,
     state->rows[(state->first + height - 1) % height]);
    for (int i = 0; i < height; i++)
        rows[i] = state->rows[(state->first + i) % height];
    for (int64_t e = 0; e < strip->elems; e += NAME(CHUNK)) {
        NAME(sums) sums[4];

        conv_cpu_fetch(cpu, strip, e, NAME(CHUNK));
        NAME(go_down)(taps, rows, e, sums);
        NAME(finish)(&cpu->tail, sums, conv_cpu_place(&run, e));
        conv_cpu_put_chunk(cpu, &run, out, e, NAME(CHUNK), strip->elems);
    }
    state->first = (state->first + 1) % height;
}

#undef INLINE
#undef NAME
#undef VECTOR_BYTES
#undef TARGET
#undef VECTOR
#undef V
#undef ADD_TWO
#undef ADD_MADD
#undef PUT
