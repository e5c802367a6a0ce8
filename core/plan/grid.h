/*
 * The grid of jobs that the sweeps of one section make: every value of each with every value of the
 * others, the last one fastest; keys that `zip` names walk together.
 */
#ifndef GPURUN_PLAN_GRID_H
#define GPURUN_PLAN_GRID_H

#include "job/sweep.h"
#include "plan/setting.h"

/* One swept setting. */
struct axis {
    size_t setting; /* index */
    size_t loop;    /* index: zipped axes share one */
    struct sweep sweep;
};

struct grid {
    struct axis *axes; /* in the order of their settings; none: one job, as it stands */
    size_t axis_count;
    size_t *loops; /* how many values each walks through */
    size_t loop_count;
    size_t jobs;
};

/* Finds the sweeps among the settings of [section]. False after a fault; free with grid_free in any case. */
bool grid_make(const struct settings *settings, const char *section, struct origin where,
               struct grid *grid, struct faults *faults);

/* What job `index` adds to its section's name: "/n=1M,k=10", or "". The caller frees it. */
char *grid_name(const struct grid *grid, const struct settings *settings, size_t index);

/* Sets the values of job `index`; the texts belong to the grid. */
void grid_set(const struct grid *grid, struct settings *settings, size_t index);

void grid_free(struct grid *grid);

#endif
