/*
 * The loops of the baseline for one kind of sum. Before it is included ELEM is the type of an element, SUM of a
 * sum, WEIGHT(name) the mask's array of that kind, finish(cpu, sums, results) ends a chunk, and WIDEN(elems) makes a
 * vector of elements one of sums.
 */
#include <string.h>

#ifdef __AVX2__
enum { VECTOR_BYTES = 32 };
#else
enum { VECTOR_BYTES = 16 };
#endif
enum { LANES = VECTOR_BYTES / sizeof(SUM), VECTORS = 4, CHUNK = LANES * VECTORS };

typedef SUM sum_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef ELEM elem_vector __attribute__((vector_size(LANES * sizeof(ELEM))));
typedef uint16_t step_vector __attribute__((vector_size(LANES * sizeof(uint16_t))));

_Static_assert((int)CHUNK <= (int)CONV_CPU_SLACK, "a chunk may reach as far behind a row");

/* Adds weight times the elements from `from` on. */
static inline void add_elems(sum_vector sums[VECTORS], const ELEM *from, SUM weight)
{
    for (int v = 0; v < VECTORS; v++) {
        elem_vector elems;

        memcpy(&elems, from + v * LANES, sizeof elems);
        sums[v] += WIDEN(elems) * weight;
    }
}

static inline void add_sums(sum_vector sums[VECTORS], const SUM *from, SUM weight)
{
    for (int v = 0; v < VECTORS; v++) {
        sum_vector more;

        memcpy(&more, from + v * LANES, sizeof more);
        sums[v] += more * weight;
    }
}

static void along(const struct conv_cpu *cpu, const char *line, char *sums)
{
    const ELEM *in = (const ELEM *)(const void *)line;

    for (int64_t e = 0; e < cpu->elems; e += CHUNK) {
        sum_vector chunk[VECTORS] = {0};

        for (int j = 0; j < cpu->mask->width; j++)
            add_elems(chunk, in + e + j * cpu->channels, (SUM)cpu->mask->WEIGHT(row)[j]);
        memcpy(sums + (size_t)e * sizeof(SUM), chunk, sizeof chunk);
    }
}

static inline void finish_chunk(const struct conv_cpu *cpu, const sum_vector chunk[VECTORS],
                                int64_t e, char *out)
{
    const int64_t left = cpu->elems - e;
    SUM sums[CHUNK];
    ELEM results[CHUNK];

    memcpy(sums, chunk, sizeof sums);
    finish(cpu, sums, results);
    memcpy(out + (size_t)e * sizeof(ELEM), results,
           left < CHUNK ? (size_t)left * sizeof(ELEM) : sizeof results);
}

static void down_sums(const struct conv_cpu *cpu, const char *const *rows, char *out)
{
    for (int64_t e = 0; e < cpu->elems; e += CHUNK) {
        sum_vector chunk[VECTORS] = {0};

        for (int i = 0; i < cpu->mask->height; i++)
            add_sums(chunk, (const SUM *)(const void *)rows[i] + e,
                     (SUM)cpu->mask->WEIGHT(column)[i]);
        finish_chunk(cpu, chunk, e, out);
    }
}

static void down_lines(const struct conv_cpu *cpu, const char *const *rows, char *out)
{
    const int width = cpu->mask->width;

    for (int64_t e = 0; e < cpu->elems; e += CHUNK) {
        sum_vector chunk[VECTORS] = {0};

        for (int i = 0; i < cpu->mask->height; i++) {
            const ELEM *in = (const ELEM *)(const void *)rows[i] + e;

            for (int j = 0; j < width; j++)
                add_elems(chunk, in + j * cpu->channels,
                          (SUM)cpu->mask->WEIGHT(weight)[i * width + j]);
        }
        finish_chunk(cpu, chunk, e, out);
    }
}

static inline void use(struct conv_cpu *cpu, bool two_steps)
{
    cpu->sum_size = sizeof(SUM);
    cpu->along = two_steps ? along : NULL;
    cpu->down = two_steps ? down_sums : down_lines;
}
