/*
 * How rows of an answer are cut into bands, one for each block in a column of tiles: the last are the lowest, so that all
 * multiprocessors end together.
 */
#ifndef CONV_BANDS_H
#define CONV_BANDS_H

#include "conv_border.h"

enum { CONV_HEIGHTS = 3 };

/* From the top: counts[0] bands of rows[0] rows, then counts[1] of rows[1], and so on; the last band may reach beyond the
 * answer. */
struct conv_bands {
    int32_t counts[CONV_HEIGHTS], rows[CONV_HEIGHTS];
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

/* Rows of the answer that a band of so many stages makes: with the mask's they fill whole stages. */
CONV_INLINE int32_t conv_band_rows(int mask_rows, int turns)
{
    return mask_rows * turns - (mask_rows - 1);
}

/* Stages for a band: as many as leave one for each of `side` blocks that run side by side, within `least` and `most`. */
static inline int conv_choose_turns(int32_t rows, int64_t side, int mask_rows, int most, int least)
{
    int turns = most;

    while (turns > least && (rows - 1) / conv_band_rows(mask_rows, turns) + 1 < side)
        turns--;
    return turns;
}

/* Cuts `rows` >= 1 rows into bands of `turns` stages, the last of which are `tail` of half as many and `tail` of a quarter, of
 * `least` at least. Returns how many bands these are. */
static inline int64_t conv_cut_bands(int32_t rows, int64_t tail, int mask_rows, int turns,
                                     int least, struct conv_bands *bands)
{
    int64_t count = 0, left = rows;

    for (int k = CONV_HEIGHTS - 1; k >= 0; k--) {
        const int part = turns >> k;

        bands->rows[k] = conv_band_rows(mask_rows, part > least ? part : least);
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
    return count;
}

#endif
