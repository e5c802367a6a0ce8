/*
 * The loops of conv_cpu_symmetric.c for one width of vectors. Included once per width, without a guard, with
 *     NAME(x)  x with a suffix of the width     VECTOR_BYTES  of a vector     TARGET  attribute of its functions
 *     VECTOR  the type that instructions take one as, V(name) an instruction on it
 *     ADD_TWO(v)  words: the sum of each two neighbouring bytes
 *     ADD_MADD(sums, a, b)  sums, each with two neighbouring products of words more
 *     TO_BYTES(to, v)  the bytes that four vectors of sums saturate to
 *     ORDER(v)  puts four vectors of sums, as unpacking leaves them, in the order of the bytes
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

INLINE struct NAME(wide) NAME(add_rows)(const char *const *rows, int i, int j, int64_t e)
{
    const NAME(bytes) a = NAME(bytes_at)(rows[i] + e), b = NAME(bytes_at)(rows[j] + e);

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

/* A chunk of sums down the mask's column, cut. */
INLINE void NAME(go_down)(const struct taps *taps, const char *const *rows, int64_t e, int32_t *to)
{
    const int last = taps->height - 1, half = taps->height / 2;
    NAME(sums) sums[4] = {{0}, {0}, {0}, {0}};

    NAME(add_pair)
    (sums, NAME(widen)(NAME(bytes_at)(rows[half] + e)), NAME(add_rows)(rows, half - 1, half + 1, e),
     taps->down[half]);
    for (int i = half - 2; i >= 0; i -= 2) {
        const int next = i > 0 ? i - 1 : 0;

        NAME(add_pair)
        (sums, NAME(add_rows)(rows, i, last - i, e), NAME(add_rows)(rows, next, last - next, e),
         taps->down[i]);
    }
    for (int v = 0; v < 4; v++)
        sums[v] = NAME(cut)(sums[v]);
    ORDER(sums);
    memcpy(to, sums, 4 * sizeof *sums);
}

INLINE NAME(words) NAME(words_at)(const int32_t *from)
{
    NAME(words) words;

    memcpy(&words, from, sizeof words);
    return words;
}

/* A chunk of sums along the mask's row. */
INLINE void NAME(go_along)(const struct taps *taps, const int32_t *from, NAME(sums) sums[4])
{
    const int64_t reach = (taps->width - 1) * taps->channels;
    const int half = taps->width / 2;

    for (int v = 0; v < 4; v++) {
        const NAME(words) weight = (NAME(words))((NAME(sums)){0} + taps->along[half]);

        sums[v] = (NAME(sums))V(madd_epi16)(
            (VECTOR)NAME(words_at)(from + reach / 2 + v * NAME(LANES)), (VECTOR)weight);
    }
    for (int j = 0; j < half; j++) {
        const NAME(words) weight = (NAME(words))((NAME(sums)){0} + taps->along[j]);
        const int32_t *left = from + j * taps->channels, *right = from + reach - j * taps->channels;

        for (int v = 0; v < 4; v++, left += NAME(LANES), right += NAME(LANES))
            sums[v] =
                (NAME(sums))ADD_MADD(sums[v], NAME(words_at)(left) + NAME(words_at)(right), weight);
    }
}

INLINE void NAME(finish)(const struct conv_tail *tail, NAME(sums) sums[4], uint8_t *to)
{
    if (tail->is_wide || tail->is_even) {
        int32_t plain[NAME(CHUNK)];

        memcpy(plain, sums, sizeof plain);
        for (int i = 0; i < NAME(CHUNK); i++)
            to[i] = conv_saturate(conv_tail_apply(plain[i], tail));
        return;
    }
    for (int v = 0; v < 4; v++) {
        if (tail->multiplier != 1)
            sums[v] *= tail->multiplier;
        sums[v] = (sums[v] + (int32_t)tail->add) >> tail->shift;
    }
    TO_BYTES(to, sums);
}

TARGET static void NAME(down)(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                              char *out)
{
    const struct taps taps = taps_of(cpu);
    const int64_t reach = (taps.width - 1) * taps.channels;
    _Alignas(64) int32_t cut[STRIP + REACH_MOST + NAME(CHUNK)];
    struct conv_cpu_run run;

    for (int64_t at = 0; at < strip->elems; at += STRIP) {
        const int64_t elems = strip->elems - at < STRIP ? strip->elems - at : STRIP;
        const int64_t whole = (elems + NAME(CHUNK) - 1) / NAME(CHUNK) * NAME(CHUNK);

        for (int64_t e = 0; e < whole + reach; e += NAME(CHUNK))
            NAME(go_down)(&taps, strip->lines, at + e, cut + e);
        for (int64_t e = 0; e < elems; e += NAME(CHUNK)) {
            NAME(sums) sums[4];

            conv_cpu_fetch(cpu, strip, at + e, NAME(CHUNK));
            NAME(go_along)(&taps, cut + e, sums);
            NAME(finish)(&cpu->tail, sums, (uint8_t *)conv_cpu_place(&run, at + e));
            conv_cpu_put_chunk(cpu, &run, out, at + e, NAME(CHUNK), strip->elems);
        }
    }
}

#undef INLINE
#undef NAME
#undef VECTOR_BYTES
#undef TARGET
#undef ADD_TWO
#undef ADD_MADD
#undef VECTOR
#undef V
#undef TO_BYTES
#undef ORDER
