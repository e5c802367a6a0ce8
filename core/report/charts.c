#include "report/charts.h"

#include "job/memory.h"
#include "report/family.h"
#include "report/output.h"
#include "report/strategies.h"
#include "report/table.h"
#include "run/record.h"
#include <stdlib.h>
#include <string.h>

static double number_at(const json_t *record, const char *path)
{
    return json_number_value(output_at(record, path));
}

static bool is_timed(const json_t *record)
{
    return strcmp(json_text_at(record, "status"), "passed") == 0 &&
           number_at(record, "time_ms.median") > 0;
}

static bool is_cpu(const json_t *record)
{
    return strcmp(json_text_at(record, "variant"), "cpu") == 0;
}

double charts_rate(const json_t *record, const char **unit)
{
    const double operations = number_at(record, "throughput.operations_per_s");

    *unit = operations > 0 ? "GOP/s" : "GB/s";
    return 1e-9 * (operations > 0 ? operations : number_at(record, "throughput.bytes_per_s"));
}

/* The limit in the unit of the rate; 0 where the limit is one of bytes and the rate is not. */
static double limit_rate(const json_t *record)
{
    const char *unit, *kind = json_text_at(json_object_get(record, "limit"), "kind");
    const double rate = charts_rate(record, &unit), percent = number_at(record, "limit.percent");
    const bool is_of_bytes =
        strcmp(kind, "read") == 0 || strcmp(kind, "copy") == 0 || strcmp(kind, "write") == 0;

    if (percent <= 0 || is_of_bytes != (strcmp(unit, "GB/s") == 0))
        return 0;
    return 100 * rate / percent;
}

/* Whether the limit of these records is the CPU's: beside a device it is no measure. */
static bool are_all_cpu(const json_t *records)
{
    json_t *record;
    size_t i;

    json_array_foreach((json_t *)records, i, record)
    {
        if (!is_cpu(record))
            return false;
    }
    return true;
}

/* --- jobs that belong together --- */

static bool is_axis(const void *user, const char *key, size_t length)
{
    static const char *const axes[] = {"n", "memory", "prefetch"};

    (void)user;
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++)
        if (strlen(axes[i]) == length && strncmp(axes[i], key, length) == 0)
            return true;
    return false;
}

/* Appends to the array at `key`, which is made where it is missing. */
static void add_to(json_t *object, const char *key, json_t *value)
{
    if (json_object_get(object, key) == NULL)
        json_object_set_new(object, key, json_array());
    json_array_append(json_object_get(object, key), value);
}

/* {family: [record]} */
static json_t *families_of(const json_t *records, const char *plugin)
{
    json_t *families = json_object(), *record;
    size_t i;

    json_array_foreach((json_t *)records, i, record)
    {
        char *family = family_name(json_text_at(record, "job"), is_axis, NULL);

        if (is_timed(record) && strcmp(json_text_at(record, "plugin"), plugin) == 0)
            add_to(families, family, record);
        free(family);
    }
    return families;
}

/* {TEXT: [record]} by a text of each record. */
static json_t *split_by(const json_t *records, char *(*text_of)(const json_t *))
{
    json_t *parts = json_object(), *record;
    size_t i;

    json_array_foreach((json_t *)records, i, record)
    {
        char *text = text_of(record);

        add_to(parts, text, record);
        free(text);
    }
    return parts;
}

static char *variant_of(const json_t *record)
{
    return copy_text(json_text_at(record, "variant"));
}

static char *job_of(const json_t *record)
{
    return copy_text(json_text_at(record, "job"));
}

static double size_of(const json_t *record)
{
    return number_at(record, "options.n");
}

/* The records of the first of the jobs with the largest n. */
static json_t *largest_of(const json_t *records)
{
    json_t *largest = json_array(), *record;
    double size = -1;
    const char *job = "";
    size_t i;

    json_array_foreach((json_t *)records, i, record) if (size_of(record) > size)
    {
        size = size_of(record);
        job = json_text_at(record, "job");
    }
    json_array_foreach((json_t *)records, i, record) if (strcmp(json_text_at(record, "job"), job) ==
                                                         0) json_array_append(largest, record);
    return largest;
}

/* --- charts --- */

static json_t *new_chart(const char *kind, const char *title, const char *x)
{
    return json_pack("{sssssssss[]}", "kind", kind, "title", title, "x", x, "text", "", "series");
}

static json_t *add_series(json_t *chart, const char *label, json_t *points)
{
    json_t *series = json_pack("{ssso}", "label", label, "points", points);

    json_array_append_new(json_object_get(chart, "series"), series);
    return series;
}

/* The chart joins the others when it has so many series, else it goes. */
static void keep(json_t *charts, json_t *chart, size_t least)
{
    if (json_array_size(json_object_get(chart, "series")) >= least)
        json_array_append_new(charts, chart);
    else
        json_decref(chart);
}

static void add_ladder(json_t *charts, const json_t *records)
{
    json_t *job = largest_of(records), *record, *chart;
    const bool is_of_cpu = are_all_cpu(job);
    const char *unit = "";
    double limit = 0;
    size_t i;

    charts_rate(json_array_get(job, 0), &unit);
    chart = new_chart("bars", json_text_at(json_array_get(job, 0), "job"), unit);
    json_array_foreach(job, i, record)
    {
        const double rate = charts_rate(record, &unit);

        if (rate > 0)
            add_series(chart, json_text_at(record, "variant"), json_pack("[f]", rate));
        if (limit <= 0 && is_cpu(record) == is_of_cpu)
            limit = limit_rate(record);
    }
    if (limit > 0)
        json_object_set_new(chart, "limit", json_real(limit));
    keep(charts, chart, 2);
    json_decref(job);
}

static int compare_points(const void *a, const void *b)
{
    const double x = json_number_value(json_array_get(*(json_t *const *)a, 0));
    const double y = json_number_value(json_array_get(*(json_t *const *)b, 0));

    return (x > y) - (x < y);
}

static json_t *sort_points(json_t *points)
{
    const size_t count = json_array_size(points);
    json_t **list = allocate(count + 1, sizeof *list), *sorted = json_array();

    for (size_t i = 0; i < count; i++)
        list[i] = json_array_get(points, i);
    qsort(list, count, sizeof *list, compare_points);
    for (size_t i = 0; i < count; i++)
        json_array_append(sorted, list[i]);
    free(list);
    json_decref(points);
    return sorted;
}

/* [n, time] in order of n; and into `limits`, unless it is NULL, once for each n, what the time would be at the limit. */
static json_t *points_of(const json_t *records, json_t *limits)
{
    json_t *points = json_array(), *record;
    char key[32];
    size_t i;

    json_array_foreach((json_t *)records, i, record)
    {
        const double n = size_of(record), ms = number_at(record, "time_ms.median");
        const double percent = limit_rate(record) > 0 ? number_at(record, "limit.percent") : 0;

        if (n <= 0)
            continue;
        json_array_append_new(points, json_pack("[ff]", n, ms));
        snprintf(key, sizeof key, "%.17g", n);
        if (limits != NULL && percent > 0 && json_object_get(limits, key) == NULL)
            json_object_set_new(limits, key, json_pack("[ff]", n, ms * percent / 100));
    }
    return sort_points(points);
}

static bool spans_sizes(const json_t *points)
{
    const json_t *first = json_array_get(points, 0);
    const json_t *last = json_array_get(points, json_array_size(points) - 1);

    return json_number_value(json_array_get(first, 0)) < json_number_value(json_array_get(last, 0));
}

static void add_limit_line(json_t *chart, json_t *limits)
{
    json_t *points = json_array(), *pair;
    const char *key;

    json_object_foreach(limits, key, pair) json_array_append(points, pair);
    points = sort_points(points);
    if (spans_sizes(points) && json_array_size(json_object_get(chart, "series")) > 0)
        json_object_set_new(add_series(chart, "limit", json_incref(points)), "is_limit",
                            json_true());
    json_decref(points);
}

static bool has_series(const json_t *chart, const char *label)
{
    json_t *series;
    size_t i;

    json_array_foreach(json_object_get(chart, "series"), i, series)
    {
        if (strcmp(json_text_at(series, "label"), label) == 0)
            return true;
    }
    return false;
}

/* The records are one variant's with one strategy; the CPU has none. */
static void add_line(json_t *chart, const char *strategy, const json_t *records, json_t *limits)
{
    const json_t *first = json_array_get(records, 0);
    const bool is_plain = strategy[0] == '\0' || is_cpu(first);
    char *label = format_text("%s%s%s", json_text_at(first, "variant"), is_plain ? "" : ", ",
                              is_plain ? "" : strategy);
    json_t *points = points_of(records, limits);

    if (spans_sizes(points) && !has_series(chart, label))
        add_series(chart, label, json_incref(points));
    json_decref(points);
    free(label);
}

/* One line for each variant and, where there are several, strategy. */
static void add_lines(json_t *charts, const char *family, const json_t *records)
{
    json_t *strategies = split_by(records, strategies_name), *variants, *part, *inner;
    json_t *chart = new_chart("lines", family, "n"), *limits = json_object();
    const bool has_many = json_object_size(strategies) > 1, is_of_cpu = are_all_cpu(records);
    const char *strategy, *variant;

    json_object_set_new(chart, "y", json_string("median ms"));
    json_object_foreach(strategies, strategy, part)
    {
        variants = split_by(part, variant_of);
        json_object_foreach(variants, variant, inner)
            add_line(chart, has_many ? strategy : "", inner,
                     is_cpu(json_array_get(inner, 0)) == is_of_cpu ? limits : NULL);
        json_decref(variants);
    }
    add_limit_line(chart, limits);
    keep(charts, chart, 1);
    json_decref(limits);
    json_decref(strategies);
}

/* --- memory strategies --- */

/* One bar for each strategy that was measured at the same size as `largest`. */
static void add_strategies(json_t *chart, const json_t *records, const json_t *largest)
{
    json_t *record;
    size_t i;

    json_array_foreach((json_t *)records, i, record)
    {
        char *strategy = strategies_name(record);

        if (strategies_bytes(record) == strategies_bytes(largest) && !has_series(chart, strategy))
            add_series(chart, strategy,
                       json_pack("[fff]", number_at(record, "phases_ms.upload.median"),
                                 number_at(record, "time_ms.median"),
                                 number_at(record, "phases_ms.download.median")));
        free(strategy);
    }
}

/* The records are one variant's. */
static void add_phases(json_t *charts, const char *family, const json_t *records)
{
    json_t *job = largest_of(records), *chart;
    const json_t *largest = json_array_get(job, 0);
    char size[32], *title, *text = strategies_overtaking(records);

    format_bytes(strategies_bytes(largest), size, sizeof size);
    title = format_text("%s, %s, %s", family, json_text_at(largest, "variant"), size);
    chart = new_chart("stacked", title, "ms");
    json_object_set_new(chart, "text", json_string(text));
    if (!is_cpu(largest))
        add_strategies(chart, records, largest);
    keep(charts, chart, 2);
    json_decref(job);
    free(title);
    free(text);
}

static void add_all_phases(json_t *charts, const char *family, const json_t *records)
{
    json_t *variants = split_by(records, variant_of), *part;
    const char *variant;

    json_object_foreach(variants, variant, part) add_phases(charts, family, part);
    json_decref(variants);
}

static bool are_times(const json_t *samples)
{
    size_t i;
    json_t *sample;

    json_array_foreach((json_t *)samples, i, sample)
    {
        if (!(json_number_value(sample) > 0))
            return false;
    }
    return json_array_size(samples) > 0;
}

static void add_strips(json_t *charts, const json_t *records)
{
    json_t *jobs = split_by(records, job_of), *job, *record;
    const char *name;
    size_t i;

    json_object_foreach(jobs, name, job)
    {
        json_t *chart = new_chart("strip", name, "% from the median of the case");

        json_array_foreach(job, i, record)
        {
            json_t *samples = json_object_get(record, "samples_ms");

            if (are_times(samples))
                add_series(chart, json_text_at(record, "variant"), json_incref(samples));
        }
        keep(charts, chart, 1);
    }
    json_decref(jobs);
}

json_t *charts_of(const json_t *records)
{
    json_t *plugins = json_object(), *all = json_object(), *record, *families, *charts, *family;
    const char *plugin, *name;
    size_t i;

    json_array_foreach((json_t *)records, i, record)
        json_object_set_new(plugins, json_text_at(record, "plugin"), json_null());
    json_object_foreach(plugins, plugin, record)
    {
        charts = json_array();
        families = families_of(records, plugin);
        json_object_foreach(families, name, family)
        {
            add_ladder(charts, family);
            add_lines(charts, name, family);
            add_all_phases(charts, name, family);
            add_strips(charts, family);
        }
        json_decref(families);
        json_object_set_new(all, plugin, charts);
    }
    json_decref(plugins);
    return all;
}
