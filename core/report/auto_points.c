#include "report/auto_points.h"

#include "job/memory.h"
#include "plan/job.h"
#include "report/compare.h"
#include "report/reader.h"
#include "run/record.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- records to cells --- */

struct gathering {
    const char *plugin;
    json_t *cells; /* {job and device: {variant: record}} */
    json_t *lists; /* of the cases of a job, each list that there is */
    json_t *peers; /* {variant: true} */
};

static void note_ladder(struct gathering *g, const json_t *record)
{
    json_t *names = json_object_get(record, "cases");

    if (json_is_true(json_object_get(record, "peer")))
        json_object_set_new(g->peers, json_text_at(record, "variant"), json_true());
    if (names != NULL && !json_holds(g->lists, names))
        json_array_append(g->lists, names);
}

/* {variant: true} of those that stand before another in a list. For the caller to free. */
static json_t *find_lower_rungs(const struct gathering *g)
{
    json_t *lower = json_object(), *list;
    size_t i;

    json_array_foreach(g->lists, i, list)
    {
        bool is_followed = false;

        for (size_t k = json_array_size(list); k-- > 0;) {
            const char *name = json_string_value(json_array_get(list, k));

            if (strcmp(name, "cpu") == 0 || json_object_get(g->peers, name) != NULL)
                continue;
            if (is_followed)
                json_object_set_new(lower, name, json_true());
            is_followed = true;
        }
    }
    return lower;
}

static bool has_last_rung(const json_t *cell, const json_t *lower)
{
    json_t *record;
    const char *variant;

    json_object_foreach((json_t *)cell, variant,
                        record) if (json_object_get(lower, variant) == NULL) return true;
    return false;
}

static void take_record(void *user, const json_t *record, long offset)
{
    struct gathering *g = user;
    const char *variant = json_text_at(record, "variant");
    json_t *cell;
    char *key;

    (void)offset;
    if (strcmp(json_text_at(record, "plugin"), g->plugin) != 0)
        return;
    note_ladder(g, record);
    if (strcmp(variant, "cpu") == 0 || json_is_true(json_object_get(record, "peer")) ||
        strcmp(json_text_at(record, "status"), "interrupted") == 0)
        return;
    key = format_text("%s\n%s\n%s", json_text_at(record, "job"), json_text_at(record, "job_id"),
                      json_text_at(json_object_get(record, "environment"), "device_name"));
    cell = json_object_get(g->cells, key);
    if (cell == NULL) {
        cell = json_object();
        json_object_set_new(g->cells, key, cell);
    }
    json_object_set(cell, variant, (json_t *)record);
    free(key);
}

/* Proved right, of a known place in the ladder, on a known device, and timed often enough. */
static bool is_proved(const json_t *record, struct interval *time)
{
    const char *mode = json_string_value(output_at(record, "proof.mode"));

    return strcmp(json_text_at(record, "status"), "passed") == 0 && mode != NULL &&
           (strcmp(mode, "full") == 0 || strcmp(mode, "certify") == 0) &&
           json_array_size(json_object_get(record, "cases")) > 0 &&
           json_integer_value(output_at(record, "environment.compute")) > 0 &&
           compare_interval(record, time) && time->samples >= VERDICT_SAMPLES_MIN;
}

/* Its place in the job's list of cases, which stands from naive to best. */
static size_t rung_of(const json_t *record)
{
    const json_t *names = json_object_get(record, "cases");
    size_t i;
    json_t *name;

    json_array_foreach((json_t *)names, i,
                       name) if (strcmp(json_string_value(name), json_text_at(record, "variant")) ==
                                 0) return i;
    return json_array_size(names);
}

/* The proved records of a cell, in the order of the ladder. For the caller to free. */
static json_t *proved_records(const json_t *cell)
{
    json_t *sorted = json_array(), *record;
    struct interval unused;
    const char *name;
    size_t i;

    json_object_foreach((json_t *)cell, name, record)
    {
        if (!is_proved(record, &unused))
            continue;
        for (i = json_array_size(sorted);
             i > 0 && rung_of(json_array_get(sorted, i - 1)) > rung_of(record);)
            i--;
        json_array_insert(sorted, i, record);
    }
    return sorted;
}

/* What conditions can be on. For the caller to free. */
static json_t *values_of(const json_t *record)
{
    const long long compute = json_integer_value(output_at(record, "environment.compute"));
    const double rate = json_number_value(output_at(record, "throughput.bytes_per_s"));
    const double ms = json_number_value(output_at(record, "time_ms.median"));
    json_t *values = json_object(), *value;
    const char *name;

    json_object_set_new(values, "device", json_sprintf("%lld.%lld", compute / 10, compute % 10));
    json_object_foreach(json_object_get(record, "options"), name, value) if (!core_knows(name))
        json_object_set(values, name, value);
    if (json_object_get(values, "bytes") == NULL)
        json_object_set_new(values, "bytes", json_integer(llround(rate * ms * 1e-3)));
    return values;
}

bool auto_points_near(const json_t *a, const json_t *b)
{
    const double x = json_number_value(a), y = json_number_value(b);

    return json_equal(a, b) || (x > 0 && y > 0 && fmax(x, y) < 1.1 * fmin(x, y));
}

/* A condition cannot tell 255 from 256, or odd rows from even ones: what is so near is one place. */
static bool is_one_place(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)a, key, value)
    {
        if (!auto_points_near(value, json_object_get(b, key)))
            return false;
    }
    return json_object_size(a) == json_object_size(b);
}

/* The last rung that did not say that it cannot run. For the caller to free. */
static char *fallback_of(const json_t *cell)
{
    const json_t *last = NULL;
    json_t *record;
    const char *variant;

    json_object_foreach((json_t *)cell, variant, record)
    {
        if (strcmp(json_text_at(record, "status"), "unsupported") != 0 &&
            (last == NULL || rung_of(record) > rung_of(last)))
            last = record;
    }
    return copy_text(json_text_at(last, "variant"));
}

static void add_cell(struct auto_points *points, const json_t *cell, json_t *records)
{
    json_t *values = values_of(json_array_get(records, 0));
    struct auto_point *point = NULL;

    for (size_t i = 0; i < points->count && point == NULL; i++)
        if (is_one_place(points->list[i].values, values))
            point = &points->list[i];
    if (point == NULL) {
        points->list = grow(points->list, points->count, sizeof *points->list);
        point = &points->list[points->count++];
        *point = (struct auto_point){
            .values = json_incref(values), .cells = json_array(), .fallback = fallback_of(cell)};
    }
    json_array_append_new(point->cells, records);
    json_decref(values);
}

/* --- the fastest --- */

static const json_t *record_of(const json_t *cell, const char *variant)
{
    size_t i;
    json_t *record;

    json_array_foreach((json_t *)cell, i, record) if (strcmp(json_text_at(record, "variant"),
                                                             variant) == 0) return record;
    return NULL;
}

static bool is_in_all(const struct auto_point *point, const char *variant)
{
    size_t i;
    json_t *cell;

    json_array_foreach(point->cells, i, cell) if (record_of(cell, variant) == NULL) return false;
    return true;
}

static double median_of(const json_t *cell, const char *variant)
{
    return json_number_value(output_at(record_of(cell, variant), "time_ms.median"));
}

/* Of those that are in all cells of the point. */
static const json_t *fastest_of(const struct auto_point *point, const json_t *cell)
{
    const json_t *fastest = NULL;
    double least = INFINITY;
    size_t i;
    json_t *record;

    json_array_foreach((json_t *)cell, i, record)
    {
        const char *variant = json_text_at(record, "variant");
        const double median = median_of(cell, variant);

        if (median < least && is_in_all(point, variant)) {
            least = median;
            fastest = record;
        }
    }
    return fastest;
}

/* How many times slower than the fastest a variant is in the cell that is its worst; 1 where it is not slower
 * beyond doubt in any. */
static double worst_of(const struct auto_point *point, const char *variant, double gap)
{
    double worst = 1;
    size_t i;
    json_t *cell;

    json_array_foreach(point->cells, i, cell)
    {
        struct interval best, own;

        if (compare_interval(fastest_of(point, cell), &best) &&
            compare_interval(record_of(cell, variant), &own) &&
            verdict_of(&best, &own, gap) == VERDICT_SLOWER)
            worst = fmax(worst, own.median / best.median);
    }
    return worst;
}

static void note_gain(struct auto_point *point)
{
    size_t i;
    json_t *cell;

    if (!is_in_all(point, point->fallback))
        return;
    point->gain_low = INFINITY;
    json_array_foreach(point->cells, i, cell)
    {
        const double gain = median_of(cell, point->fallback) / median_of(cell, point->pick);

        point->gain_low = fmin(point->gain_low, gain);
        point->gain_high = fmax(point->gain_high, gain);
    }
}

/* The one that is the least slow where it is slowest; of several that are as fast, the later rung. */
static void pick(struct auto_point *point, double gap)
{
    double least = INFINITY;
    size_t i;
    json_t *record;

    json_array_foreach(json_array_get(point->cells, 0), i, record)
    {
        const char *variant = json_text_at(record, "variant");
        const double worst = is_in_all(point, variant) ? worst_of(point, variant, gap) : INFINITY;

        if (worst <= least && isfinite(worst)) {
            least = worst;
            point->pick = variant;
        }
    }
    if (point->pick != NULL)
        note_gain(point);
}

/* --- the whole --- */

static bool is_fallback(const struct auto_point *point)
{
    return strcmp(point->pick, point->fallback) == 0;
}

static void set_kinds(struct auto_points *points)
{
    size_t kinds = 0;

    for (size_t i = 0; i < points->count; i++) {
        struct auto_point *point = &points->list[i];
        size_t k = 0;

        if (is_fallback(point))
            continue;
        while (k < i &&
               (is_fallback(&points->list[k]) || strcmp(points->list[k].pick, point->pick) != 0))
            k++;
        point->kind = k < i ? points->list[k].kind : ++kinds;
    }
}

static void free_point(struct auto_point *point)
{
    json_decref(point->values);
    json_decref(point->cells);
    free(point->fallback);
}

/* Points of which no variant was proved in all their cells say nothing. */
static void pick_all(struct auto_points *points, double gap)
{
    size_t kept = 0;

    for (size_t i = 0; i < points->count; i++) {
        struct auto_point *point = &points->list[i];

        pick(point, gap);
        if (point->pick != NULL) {
            points->list[kept++] = *point;
            continue;
        }
        points->left_out += json_array_size(point->cells);
        free_point(point);
    }
    points->count = kept;
    set_kinds(points);
}

bool auto_points_read(char *const *paths, size_t count, const char *plugin, double gap,
                      struct auto_points *out)
{
    struct gathering g = {plugin, json_object(), json_array(), json_object()};
    json_t *lower;
    bool is_read = true;
    const char *key;
    json_t *cell;

    *out = (struct auto_points){0};
    for (size_t i = 0; i < count && is_read; i++)
        is_read = reader_read(paths[i], take_record, &g);
    lower = find_lower_rungs(&g);
    json_object_foreach(g.cells, key, cell)
    {
        json_t *records = proved_records(cell);

        out->cells++;
        if (json_object_size(cell) > 1 && json_array_size(records) > 0 &&
            has_last_rung(cell, lower)) {
            add_cell(out, cell, records);
        } else {
            out->left_out++;
            json_decref(records);
        }
    }
    json_decref(g.cells);
    json_decref(g.lists);
    json_decref(g.peers);
    json_decref(lower);
    pick_all(out, gap);
    return is_read;
}

void auto_points_free(struct auto_points *points)
{
    for (size_t i = 0; i < points->count; i++)
        free_point(&points->list[i]);
    free(points->list);
}
