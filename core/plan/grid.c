#include "plan/grid.h"

#include "job/memory.h"
#include "job/value.h"
#include "plan/job.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ZIP_KEY_MAX = 128, /* bytes, more than a key has */
};

static struct axis *find_axis(const struct grid *g, const struct settings *settings,
                              const char *key)
{
    for (size_t i = 0; i < g->axis_count; i++)
        if (strcmp(settings->list[g->axes[i].setting].key, key) == 0)
            return &g->axes[i];
    return NULL;
}

static bool add_axis(struct grid *g, const struct setting *s, size_t index, struct faults *faults)
{
    const bool ranges = !job_key_is_input(s->key);
    struct axis axis = {.setting = index};
    struct why why;

    if (!job_key_can_sweep(s->key) || !sweep_is_one(s->text, ranges))
        return true;
    if (sweep_parse(s->text, ranges, &axis.sweep, &why) != GPURUN_OK) {
        faults_add(faults, s->where, s->key, "%s", why.text);
        sweep_free(&axis.sweep);
        return false;
    }
    g->axes = grow(g->axes, g->axis_count, sizeof *g->axes);
    g->axes[g->axis_count++] = axis;
    return true;
}

/* --- zip --- */

/* The axis of a key that `zip` names, or NULL with a fault. */
static struct axis *zipped_axis(struct grid *g, const struct settings *settings, const char *key,
                                const struct setting *zip, const char *section,
                                struct faults *faults)
{
    const char **names = allocate(settings->count + 1, sizeof *names);
    struct axis *axis = find_axis(g, settings, key);
    const char *nearest;

    for (size_t i = 0; i < settings->count; i++)
        names[i] = settings->list[i].key;
    nearest = value_nearest(key, names);
    if (*key == '\0')
        faults_add(faults, zip->where, zip->key,
                   "an element of the list is empty: write two keys or more, n, k");
    else if (axis == NULL && settings_find(settings, key) != NULL)
        faults_add(faults, zip->where, zip->key,
                   "%.80s is no sweep in [%s]: give it a list, or leave it out here", key, section);
    else if (axis == NULL)
        faults_add(faults, zip->where, zip->key, "[%s] sets no '%.80s'%s%s%s", section, key,
                   nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "");
    free(names);
    return axis;
}

/* Puts the keys of `zip = a, b` into one loop. */
static bool zip_axes(struct grid *g, const struct settings *settings, const struct setting *zip,
                     const char *section, struct faults *faults)
{
    const struct axis *first = NULL;
    const char *rest = zip->text;
    char key[ZIP_KEY_MAX];
    size_t keys = 0;

    for (; list_next(&rest, key, sizeof key); keys++) {
        struct axis *axis = zipped_axis(g, settings, key, zip, section, faults);
        const char *first_key = first ? settings->list[first->setting].key : "";

        if (axis == NULL)
            return false;
        if (axis->loop > 0) {
            faults_add(faults, zip->where, zip->key, "%s is named twice", key);
            return false;
        }
        if (first != NULL && axis->sweep.count != first->sweep.count) {
            faults_add(faults, zip->where, zip->key,
                       "%s has %zu values and %s has %zu in [%s]: give both as many", first_key,
                       first->sweep.count, key, axis->sweep.count, section);
            return false;
        }
        first = first ? first : axis;
        axis->loop = 1;
    }
    if (keys < 2)
        faults_add(faults, zip->where, zip->key, "names one key: write two or more, n, k");
    return keys >= 2;
}

/* --- the grid --- */

/* Numbers the loops: one for each axis, one for all that are zipped. */
static void number_loops(struct grid *g)
{
    size_t zipped = g->axis_count; /* none yet */

    g->loops = allocate(g->axis_count, sizeof *g->loops);
    for (size_t i = 0; i < g->axis_count; i++) {
        struct axis *axis = &g->axes[i];
        const bool is_zipped = axis->loop > 0;

        if (is_zipped && zipped < g->axis_count) {
            axis->loop = zipped;
            continue;
        }
        axis->loop = g->loop_count++;
        g->loops[axis->loop] = axis->sweep.count;
        zipped = is_zipped ? axis->loop : zipped;
    }
}

/* Counts up to far beyond SWEEP_MAX; *exact is false where there are even more. */
static size_t count_jobs(const struct grid *g, bool *exact)
{
    const size_t enough = SIZE_MAX / SWEEP_MAX;
    size_t jobs = 1, i = 0;

    for (; i < g->loop_count && jobs <= enough; i++)
        jobs *= g->loops[i]; /* each at most SWEEP_MAX */
    *exact = i == g->loop_count;
    return jobs;
}

bool grid_make(const struct settings *settings, const char *section, struct origin where,
               struct grid *grid, struct faults *faults)
{
    const struct setting *zip = settings_find(settings, "zip");
    bool good = true, exact;

    *grid = (struct grid){.jobs = 0};
    for (size_t i = 0; i < settings->count; i++)
        good = add_axis(grid, &settings->list[i], i, faults) && good;
    if (!good || (zip != NULL && !zip_axes(grid, settings, zip, section, faults)))
        return false;
    number_loops(grid);
    grid->jobs = count_jobs(grid, &exact);
    if (grid->jobs > SWEEP_MAX)
        faults_add(faults, where, NULL, "the sweeps of [%s] make %s%zu jobs: at most %d", section,
                   exact ? "" : "more than ", grid->jobs, (int)SWEEP_MAX);
    return grid->jobs <= SWEEP_MAX;
}

static const char *value_at(const struct grid *grid, const struct axis *axis, size_t index)
{
    for (size_t i = grid->loop_count - 1; i > axis->loop; i--)
        index /= grid->loops[i];
    return axis->sweep.values[index % grid->loops[axis->loop]];
}

char *grid_name(const struct grid *grid, const struct settings *settings, size_t index)
{
    char *name = copy_text("");

    for (size_t i = 0; i < grid->axis_count; i++) {
        const struct axis *axis = &grid->axes[i];
        char *longer = format_text("%s%c%s=%s", name, i ? ',' : '/',
                                   settings->list[axis->setting].key, value_at(grid, axis, index));

        free(name);
        name = longer;
    }
    return name;
}

void grid_set(const struct grid *grid, struct settings *settings, size_t index)
{
    for (size_t i = 0; i < grid->axis_count; i++) {
        struct setting *s = &settings->list[grid->axes[i].setting];

        s->text = value_at(grid, &grid->axes[i], index);
        s->shared = false;
    }
}

void grid_free(struct grid *grid)
{
    for (size_t i = 0; i < grid->axis_count; i++)
        sweep_free(&grid->axes[i].sweep);
    free(grid->axes);
    free(grid->loops);
    *grid = (struct grid){.jobs = 0};
}
