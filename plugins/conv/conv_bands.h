/*
 * How rows of an answer are cut into bands, one for each block in a column of tiles: the last are the lowest, so that all
 * multiprocessors end together.
 */
#ifndef CONV_BANDS_H
#define CONV_BANDS_H

#include "conv_border.h"

enum { CONV_HEIGHTS = 3 };

/* Divides numbers below 2^31, by a multiplication. */
struct conv_divider {
    uint32_t by, inverse;
    int32_t shift;
};

/* by: 1 to 2^31 - 1. */
static inline struct conv_divider conv_divider_by(uint32_t by)
{
    struct conv_divider divider = {by, 0, 31};

    while ((uint64_t)1 << (divider.shift - 31) < by)
        divider.shift++;
    divider.inverse = (uint32_t)((((uint64_t)1 << divider.shift) + by - 1) / by);
    return divider;
}

CONV_INLINE uint32_t conv_divide(const struct conv_divider *divider, uint32_t number)
{
    return (uint32_t)((uint64_t)number * divider->inverse >> divider->shift);
}

/* From the top: counts[0] bands of rows[0] rows, then counts[1] of rows[1], and so on; the last band may reach beyond the
 * answer. */
struct conv_bands {
    int32_t counts[CONV_HEIGHTS], rows[CONV_HEIGHTS];
    struct conv_divider columns; /* tiles side by side: what follows each other is a band's */
};

/* The first row of band i; *rows: how many it has. */
CONV_INLINE int32_t conv_band_at(const struct conv_bands *bands, int32_t i, int32_t *rows)
{
    int32_t y = 0;

    *rows = bands->rows[0];
    for (int k = 0; k + 1 < CONV_HEIGHTS && i >= bands->counts[k]; k++) {
        y += bands->counts[k] * bands->rows[k];
        i -= bands->counts[k];
        *rows = bands->rows[k + 1];
    }
    return y + i * *rows;
}

/* How a block works through lines: so many to a stage, and at most and at least so many stages. */
struct conv_stages {
    int mask_rows, lines, most, least;
};

/* Rows of the answer that a band of so many stages makes. */
static inline int32_t conv_band_rows(const struct conv_stages *stages, int turns)
{
    return stages->lines * turns - (stages->mask_rows - 1);
}

/* Stages for a band: as many as leave one for each of `side` blocks that run side by side. */
static inline int conv_choose_turns(const struct conv_stages *stages, int32_t rows, int64_t side)
{
    int turns = stages->most;

    while (turns > stages->least && (rows - 1) / conv_band_rows(stages, turns) + 1 < side)
        turns--;
    return turns;
}

/* Cuts `rows` >= 1 rows, in so many columns, into bands of `turns` stages, the last of which are `tail` of half as many and
 * `tail` of a quarter, of the least at least. Returns how many tiles these are. */
static inline int64_t conv_cut_bands(const struct conv_stages *stages, int32_t rows,
                                     uint32_t columns, int turns, int64_t tail,
                                     struct conv_bands *bands)
{
    int64_t count = 0, left = rows;

    for (int k = CONV_HEIGHTS - 1; k >= 0; k--) {
        const int part = turns >> k;

        bands->rows[k] = conv_band_rows(stages, part > stages->least ? part : stages->least);
    }
    for (int k = 0; k < CONV_HEIGHTS; k++) {
        int64_t after = 0;

        for (int later = k + 1; later < CONV_HEIGHTS; later++)
            after += tail * bands->rows[later];
        bands->counts[k] = left > after ? (int32_t)((left - after) / bands->rows[k]) : 0;
        if (k + 1 == CONV_HEIGHTS)
            bands->counts[k] = (int32_t)((left + bands->rows[k] - 1) / bands->rows[k]);
        left -= (int64_t)bands->counts[k] * bands->rows[k];
        count += bands->counts[k];
    }
    bands->columns = conv_divider_by(columns);
    return count * columns;
}

#endif
