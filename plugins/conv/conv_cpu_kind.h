/*
 * The loops of the baseline for one kind of sum. Before it is included ELEM is the type of an element, SUM of a
 * sum, WEIGHT(name) the mask's array of that kind, and WIDEN(elems) makes a vector of elements one of sums. finish
 * turns a chunk of sums into results. Where VECTOR_BYTES, of a vector, is defined, TARGET is what functions need
 * for it.
 */
#include <string.h>

#ifndef VECTOR_BYTES
#ifdef __AVX2__
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define TARGET
#endif

enum {
    LANES = VECTOR_BYTES / sizeof(SUM),
    VECTORS = VECTOR_BYTES > 32 ? 4 : 8, /* as long as they stay in registers */
    CHUNK = LANES * VECTORS,
    CHUNK_BYTES = CHUNK * sizeof(ELEM)
};

typedef SUM sum_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef ELEM elem_vector __attribute__((vector_size(LANES * sizeof(ELEM))));
typedef uint16_t step_vector __attribute__((vector_size(LANES * sizeof(uint16_t))));

enum { STRIP = 8192 / sizeof(SUM) };

_Static_assert(2 * (int)CHUNK <= (int)CONV_CPU_SLACK && (int)STRIP % (int)CHUNK == 0,
               "two chunks may reach as far behind a row, and strips are whole chunks");

TARGET static void finish(const struct conv_cpu *cpu, const sum_vector chunk[VECTORS],
                          ELEM *results);

/* Adds weight times the elements from `from` on. */
TARGET static inline void add_elems(sum_vector sums[VECTORS], const ELEM *from, SUM weight)
{
    for (int v = 0; v < VECTORS; v++) {
        elem_vector elems;

        memcpy(&elems, from + v * LANES, sizeof elems);
        sums[v] += WIDEN(elems) * weight;
    }
}

TARGET static inline void add_sums(sum_vector sums[VECTORS], const SUM *from, SUM weight)
{
    for (int v = 0; v < VECTORS; v++) {
        sum_vector more;

        memcpy(&more, from + v * LANES, sizeof more);
        sums[v] += more * weight;
    }
}

/* A separable mask: down its column first, into sums that stay in the cache while the row goes along them. */
TARGET static void down_along(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                              char *out)
{
    const char *const *rows = strip->lines;
    const struct conv_mask *mask = cpu->mask;
    const int64_t reach = (mask->width - 1) * cpu->channels;
    const int64_t row_bytes = strip->elems * (int64_t)sizeof(ELEM);
    _Alignas(64) SUM sums[STRIP + REACH_MOST + CHUNK];
    struct conv_cpu_run run;

    for (int64_t at = 0; at < strip->elems; at += STRIP) {
        const int64_t elems = strip->elems - at < STRIP ? strip->elems - at : STRIP;
        const int64_t whole = (elems + CHUNK - 1) / CHUNK * CHUNK;

        for (int64_t e = 0; e < whole + reach; e += CHUNK) {
            sum_vector chunk[VECTORS] = {0};

            for (int i = 0; i < mask->height; i++)
                add_elems(chunk, (const ELEM *)(const void *)rows[i] + at + e,
                          (SUM)mask->WEIGHT(column)[i]);
            memcpy(sums + e, chunk, sizeof chunk);
        }
        for (int64_t e = 0; e < elems; e += CHUNK) {
            const int64_t byte = (at + e) * (int64_t)sizeof(ELEM);
            sum_vector chunk[VECTORS] = {0};

            conv_cpu_fetch(cpu, strip, byte, CHUNK_BYTES);
            for (int j = 0; j < mask->width; j++)
                add_sums(chunk, sums + e + j * cpu->channels, (SUM)mask->WEIGHT(row)[j]);
            finish(cpu, chunk, (ELEM *)(void *)conv_cpu_place(&run, byte));
            conv_cpu_put_chunk(cpu, &run, out, byte, CHUNK_BYTES, row_bytes);
        }
    }
}

TARGET static void down_lines(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                              char *out)
{
    const char *const *rows = strip->lines;
    const int width = cpu->mask->width;
    const int64_t row_bytes = strip->elems * (int64_t)sizeof(ELEM);
    struct conv_cpu_run run;

    for (int64_t e = 0; e < strip->elems; e += CHUNK) {
        const int64_t byte = e * (int64_t)sizeof(ELEM);
        sum_vector chunk[VECTORS] = {0};

        conv_cpu_fetch(cpu, strip, byte, CHUNK_BYTES);
        for (int i = 0; i < cpu->mask->height; i++) {
            const ELEM *in = (const ELEM *)(const void *)rows[i] + e;

            for (int j = 0; j < width; j++)
                add_elems(chunk, in + j * cpu->channels,
                          (SUM)cpu->mask->WEIGHT(weight)[i * width + j]);
        }
        finish(cpu, chunk, (ELEM *)(void *)conv_cpu_place(&run, byte));
        conv_cpu_put_chunk(cpu, &run, out, byte, CHUNK_BYTES, row_bytes);
    }
}

/* Of a mask: its rows one by one, or its column and then its row. */
static inline void use(struct conv_cpu *cpu, bool two_steps)
{
    cpu->down = two_steps ? down_along : down_lines;
}
