/*
 * What the files of transpose's baseline share: parts of a matrix, panels, and sets of instructions to move them by.
 */
#ifndef TRANSPOSE_CPU_H
#define TRANSPOSE_CPU_H

#include "transpose.h"
#include <string.h>

enum {
    TRANSPOSE_LINE = 64, /* bytes of a tile's row, before and after */
};

/* Instructions, each with those before it. */
enum transpose_set { TRANSPOSE_ANY, TRANSPOSE_AVX2, TRANSPOSE_AVX512 };

/* The last that this machine has. */
enum transpose_set transpose_best_set(void);

/* The baseline by a set that this machine has; transpose_run_cpu takes the best. */
enum gpurun_status transpose_run_cpu_by(struct gpurun_ctx *ctx, enum transpose_set set);

/* Reads a tile whose rows are `pitch` bytes apart, and leaves it turned, in rows `pitch_out` bytes apart. */
typedef void transpose_turn(const char *in, size_t pitch, char *out, size_t pitch_out);

/* Part of a matrix, and where it goes; pitches in bytes. */
struct transpose_block {
    const char *in;
    char *out;
    int64_t rows, cols;
    size_t pitch_in, pitch_out;
};

/* What of a panel is still to be gathered, row after row: each one's bytes from `at` on. */
struct transpose_gather {
    const char *from;
    char *to;
    size_t pitch_from, pitch_to, bytes, at;
    size_t ahead; /* bytes from a line to the one that is fetched */
    int64_t rows;
};

/* A line some rows below is fetched, which may lie beyond the panel: no hardware foresees the jump from row to row. */
static inline void transpose_gather_line(struct transpose_gather *g)
{
    if (g->rows == 0)
        return;
    __builtin_prefetch((const void *)((uintptr_t)g->from + g->at + g->ahead));
    if (g->bytes - g->at >= TRANSPOSE_LINE) /* of a size that the compiler knows */
        memcpy(g->to + g->at, g->from + g->at, TRANSPOSE_LINE);
    else
        memcpy(g->to + g->at, g->from + g->at, g->bytes - g->at);
    g->at += TRANSPOSE_LINE;
    if (g->at < g->bytes)
        return;
    __builtin_prefetch((const void *)((uintptr_t)g->from + g->bytes - 1 + g->ahead));
    g->at = 0;
    g->from += g->pitch_from;
    g->to += g->pitch_to;
    g->rows--;
}

/* A block that is gathered, in rows `pitch` bytes apart, on its way to where it goes. */
struct transpose_panel {
    struct transpose_block block;
    const char *from;
    size_t pitch;

    /* A line for each column: the last tile's, of which the end may not be written yet. Panels below each other pass it
     * on, from one that is the `top` of them, before which there is nothing, to the `bottom`, after which nothing
     * comes; the others are whole tiles high. */
    char *carry;
    bool is_top, is_bottom;
};

/* Turns and writes a panel of elements of `size` bytes, past the cache, and gathers the next one meanwhile: a line for
 * each that is written, and the rest. What tiles have beyond the panel's edges goes nowhere. */
typedef void transpose_put(const struct transpose_panel *p, size_t size, transpose_turn *turn,
                           struct transpose_gather *next);

#ifdef __x86_64__
transpose_put transpose_put_avx512;
transpose_turn transpose_turn_1_avx512, transpose_turn_2_avx512, transpose_turn_4_avx512,
    transpose_turn_8_avx512;
#endif

#endif
