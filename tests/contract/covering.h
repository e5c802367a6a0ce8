/*
 * A covering array, made row by row: of several factors with a few values each, every pair of values of two
 * factors stands together in some row. Greedy and deterministic. What a row covers is told afterwards, so a
 * row that could not be tried covers nothing and its pair is tried in other company.
 */
#ifndef CONTRACT_COVERING_H
#define CONTRACT_COVERING_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    FACTORS_MAX = 24,
    VALUES_MAX = 64,
    COVERING_TRIES = 6, /* rows in which a pair is refused before it is given up */
    PAIR_COVERED = 100,
};

struct covering {
    int count, values[FACTORS_MAX]; /* factors, and how many values each has */
    unsigned char pair[FACTORS_MAX][VALUES_MAX][FACTORS_MAX][VALUES_MAX]; /* tries, or covered */
    int a, b;                                                             /* the last row's pair */
    bool is_retry; /* which was refused before, in other company */
    uint64_t random;
};

static inline int covering_draw(struct covering *c, int below)
{
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((c->random >> 33) % (uint64_t)below);
}

static inline int covering_add(struct covering *c, int values)
{
    assert(c->count < FACTORS_MAX && values > 0 && values <= VALUES_MAX);
    c->values[c->count] = values;
    return c->count++;
}

/* Always asked with the lower factor first. */
static inline unsigned char *covering_pair(struct covering *c, const int *row, int a, int b)
{
    return a < b ? &c->pair[a][row[a]][b][row[b]] : &c->pair[b][row[b]][a][row[a]];
}

/* An open pair into row[c->a] and row[c->b]; those that were never refused first. */
static inline bool covering_find_open(struct covering *c, int *row)
{
    for (int tries = 0; tries < COVERING_TRIES; tries++)
        for (c->a = 0; c->a < c->count; c->a++)
            for (c->b = c->a + 1; c->b < c->count; c->b++)
                for (int i = 0; i < c->values[c->a] * c->values[c->b]; i++) {
                    row[c->a] = i % c->values[c->a];
                    row[c->b] = i / c->values[c->a];
                    if (*covering_pair(c, row, c->a, c->b) == tries)
                        return true;
                }
    return false;
}

/* The value of factor f that makes most new pairs with what the row has; among equals by lot. */
static inline int covering_best(struct covering *c, int *row, const bool *is_set, int f)
{
    const int start = covering_draw(c, c->values[f]);
    int best = start, most = -1;

    for (int i = 0; i < c->values[f]; i++) {
        int fresh = 0;

        row[f] = (start + i) % c->values[f];
        for (int k = 0; k < c->count; k++)
            fresh += is_set[k] && *covering_pair(c, row, k, f) == 0;
        if (fresh > most) {
            most = fresh;
            best = row[f];
        }
    }
    return best;
}

/* The next row; false when every pair is covered or given up. A pair that was refused before gets its
 * company by lot. */
static inline bool covering_next(struct covering *c, int *row)
{
    bool is_set[FACTORS_MAX] = {false};

    if (!covering_find_open(c, row))
        return false;
    c->is_retry = *covering_pair(c, row, c->a, c->b) != 0;
    is_set[c->a] = is_set[c->b] = true;
    for (int f = 0; f < c->count; f++) {
        if (is_set[f])
            continue;
        row[f] = c->is_retry ? covering_draw(c, c->values[f]) : covering_best(c, row, is_set, f);
        is_set[f] = true;
    }
    return true;
}

static inline void covering_covers(struct covering *c, const int *row)
{
    for (int a = 0; a < c->count; a++)
        for (int b = a + 1; b < c->count; b++)
            *covering_pair(c, row, a, b) = PAIR_COVERED;
}

/* The last row has been tried: its pair is covered by now, or has been refused once more. */
static inline void covering_tried(struct covering *c, const int *row)
{
    unsigned char *pair = covering_pair(c, row, c->a, c->b);

    *pair += *pair != PAIR_COVERED;
}

/* How many pairs were covered, and how many given up. */
static inline void covering_count(struct covering *c, int *covered, int *given_up)
{
    int row[FACTORS_MAX];

    *covered = *given_up = 0;
    for (int a = 0; a < c->count; a++)
        for (int b = a + 1; b < c->count; b++)
            for (int i = 0; i < c->values[a] * c->values[b]; i++) {
                row[a] = i % c->values[a];
                row[b] = i / c->values[a];
                *covered += *covering_pair(c, row, a, b) == PAIR_COVERED;
                *given_up += *covering_pair(c, row, a, b) != PAIR_COVERED;
            }
}

#endif
