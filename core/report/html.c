#include "report/html.h"

#include "gpurun/version.h"
#include "job/memory.h"
#include "measure/stats.h"
#include "report/charts.h"
#include "report/output.h"
#include "report/plot.h"
#include "report/table.h"
#include "run/record.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An element that holds nothing but text; `tag` may have attributes. */
static void put_element(FILE *to, const char *tag, const char *text)
{
    fprintf(to, "<%s>", tag);
    xml_text(to, text);
    fprintf(to, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

/* A number for people, with all its digits for who sorts or reads them. */
static void put_number(FILE *to, const json_t *value, const char *unit)
{
    char text[64], exact[64];
    const double number = json_number_value(value);

    if (!json_is_number(value) || !(number > 0)) {
        fputs("<td class=\"n\">-</td>", to);
        return;
    }
    output_scalar(value, exact, sizeof exact);
    if (number < 1e9)
        format_number(number, text, sizeof text);
    else
        snprintf(text, sizeof text, "%.4g", number);
    fprintf(to, "<td class=\"n\" data-value=\"%s\">%s%s</td>", exact, text, unit);
}

static void put_real(FILE *to, double value)
{
    json_t *json = json_number(value);

    put_number(to, json, "");
    json_decref(json);
}

static void put_text(FILE *to, const char *class, const char *text)
{
    fprintf(to, "<td class=\"%s\">", class);
    xml_text(to, text);
    fputs("</td>", to);
}

/* --- machines --- */

static const struct {
    const char *name, *key;
} machine_rows[] = {
    {"host", "host"},          {"CPU", "cpu"},          {"threads", "threads"},
    {"GPU", "device_name"},    {"UUID", "device_uuid"}, {"multiprocessors", "sm_count"},
    {"bytes", "device_bytes"}, {"driver", "driver"},    {"CUDA runtime", "runtime"},
    {"gpurun", "build"}};
enum { MACHINE_ROWS = sizeof machine_rows / sizeof machine_rows[0] };

/* The environments that differ in what is shown, once each: {"text of all": environment}. */
static json_t *machines_of(const json_t *records)
{
    json_t *machines = json_object(), *record;
    size_t i;

    json_array_foreach((json_t *)records, i, record)
    {
        json_t *e = json_object_get(record, "environment"), *shown = json_object();
        char *text;

        for (int k = 0; k < MACHINE_ROWS; k++)
            json_object_set(shown, machine_rows[k].key, json_object_get(e, machine_rows[k].key));
        text = json_dumps(shown, JSON_COMPACT | JSON_SORT_KEYS);
        if (json_object_size(shown) > 0)
            json_object_set(machines, text, shown);
        json_decref(shown);
        free(text);
    }
    return machines;
}

static void put_machines(FILE *to, const json_t *records)
{
    json_t *machines = machines_of(records), *machine;
    const char *unused;

    fputs("<h2>Machines</h2>\n<div class=\"scroll\"><table id=\"machines\"><tbody>\n", to);
    for (int k = 0; k < MACHINE_ROWS; k++) {
        fputs("<tr>", to);
        put_element(to, "th scope=\"row\"", machine_rows[k].name);
        json_object_foreach(machines, unused, machine)
        {
            char text[300] = "-";

            if (json_object_get(machine, machine_rows[k].key) != NULL)
                output_scalar(json_object_get(machine, machine_rows[k].key), text, sizeof text);
            put_text(to, "t", text);
        }
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div>\n", to);
    json_decref(machines);
}

/* --- cases --- */

static const struct {
    const char *name;
    bool is_number;
} case_columns[] = {{"job", false},      {"case", false},      {"device", false},
                    {"memory", false},   {"status", false},    {"proof", false},
                    {"median ms", true}, {"+- %", true},       {"GB/s", true},
                    {"GOP/s", true},     {"% of limit", true}, {"end to end ms", true},
                    {"vs cpu", true},    {"reason", false}};
enum { CASE_COLUMNS = sizeof case_columns / sizeof case_columns[0] };

/* Half the interval's width; 0 where all of it is one value. */
static void put_spread(FILE *to, const json_t *record)
{
    const double median = json_number_value(output_at(record, "time_ms.median"));
    const double low = json_number_value(output_at(record, "time_ms.median_ci95.0"));
    const double high = json_number_value(output_at(record, "time_ms.median_ci95.1"));

    if (median > 0 && high == median && low == median)
        fputs("<td class=\"n\" data-value=\"0\">0</td>", to);
    else
        put_real(to, median > 0 ? 100 * fmax(high - median, median - low) / median : NAN);
}

static void put_case(FILE *to, const json_t *record)
{
    const char *status = json_text_at(record, "status");
    const bool is_passed = strcmp(status, "passed") == 0;

    fputs("<tr>", to);
    put_text(to, "t", json_text_at(record, "job"));
    put_text(to, "", json_text_at(record, "variant"));
    put_text(to, "", json_text_at(record, "device"));
    put_text(to, "", json_text_at(record, "memory"));
    put_text(to, is_passed ? "passed" : strcmp(status, "unsupported") == 0 ? "" : "bad", status);
    put_text(to, "", json_text_at(json_object_get(record, "proof"), "mode"));
    put_number(to, output_at(record, "time_ms.median"), "");
    put_spread(to, record);
    put_real(to, 1e-9 * json_number_value(output_at(record, "throughput.bytes_per_s")));
    put_real(to, 1e-9 * json_number_value(output_at(record, "throughput.operations_per_s")));
    put_number(to, output_at(record, "limit.percent"), "");
    put_number(to, output_at(record, "end_to_end_ms.median"), "");
    put_number(to, output_at(record, "versus.cpu.median"), "x");
    put_text(to, "t", json_text_at(record, "reason"));
    fputs("</tr>\n", to);
}

static void put_cases(FILE *to, const json_t *records)
{
    json_t *record;
    size_t i;

    fputs(
        "<h2>Cases</h2>\n<div class=\"scroll\"><table id=\"cases\" class=\"sortable\"><thead><tr>",
        to);
    for (int c = 0; c < CASE_COLUMNS; c++)
        fprintf(to, "<th scope=\"col\"%s><button type=\"button\">%s</button></th>",
                case_columns[c].is_number ? " class=\"n\"" : "", case_columns[c].name);
    fputs("</tr></thead><tbody>\n", to);
    json_array_foreach((json_t *)records, i, record) put_case(to, record);
    fputs("</tbody></table></div>\n", to);
}

/* --- charts --- */

/* The numbers of a series, as rows of the table that stands below a plot or in its place. */
static void put_label(FILE *to, const json_t *series)
{
    fputs("<tr>", to);
    put_text(to, "", json_text_at(series, "label"));
}

static void put_bar_rows(FILE *to, const json_t *series)
{
    put_label(to, series);
    put_number(to, json_array_get(json_object_get(series, "points"), 0), "");
    fputs("</tr>\n", to);
}

static void put_stacked_rows(FILE *to, const json_t *series)
{
    const json_t *points = json_object_get(series, "points");
    double sum = 0;

    put_label(to, series);
    for (size_t i = 0; i < json_array_size(points); i++) {
        put_number(to, json_array_get(points, i), "");
        sum += json_number_value(json_array_get(points, i));
    }
    put_real(to, sum);
    fputs("</tr>\n", to);
}

static void put_line_rows(FILE *to, const json_t *series)
{
    json_t *pair;
    size_t i;

    json_array_foreach(json_object_get(series, "points"), i, pair)
    {
        put_label(to, series);
        put_number(to, json_array_get(pair, 0), "");
        put_number(to, json_array_get(pair, 1), "");
        fputs("</tr>\n", to);
    }
}

static void put_strip_rows(FILE *to, const json_t *series)
{
    const json_t *points = json_object_get(series, "points");
    const size_t count = json_array_size(points);
    double *values = allocate(count + 1, sizeof *values);
    struct stats stats;

    for (size_t i = 0; i < count; i++)
        values[i] = json_number_value(json_array_get(points, i));
    stats = stats_of(values, count);
    put_label(to, series);
    put_real(to, (double)count);
    put_real(to, stats.min);
    put_real(to, stats.median);
    put_real(to, stats.max);
    fputs("</tr>\n", to);
    free(values);
}

static const struct kind {
    const char *kind, *heading;
    const char *heads[5]; /* the first of them NULL: that is the chart's own unit */
    void (*put_rows)(FILE *to, const json_t *series);
} kinds[] = {
    {"bars", "The ladder", {"case", NULL}, put_bar_rows},
    {"lines", "Time against n", {"case", "n", "median ms"}, put_line_rows},
    {"stacked",
     "Phases of the memory strategies",
     {"strategy", "upload ms", "kernel ms", "download ms", "sum ms"},
     put_stacked_rows},
    {"strip",
     "Samples, in order downwards",
     {"case", "samples", "min ms", "median ms", "max ms"},
     put_strip_rows},
};

static const struct kind *kind_of(const json_t *chart)
{
    size_t i = 0;

    while (strcmp(kinds[i].kind, json_text_at(chart, "kind")) != 0)
        i++;
    return &kinds[i];
}

static void put_chart_table(FILE *to, const json_t *chart, bool is_drawn)
{
    const struct kind *kind = kind_of(chart);
    json_t *series;
    size_t i;

    fprintf(to,
            "<details%s><summary>the numbers</summary><div class=\"scroll\"><table><thead><tr>\n",
            is_drawn ? "" : " open");
    put_element(to, "th scope=\"col\"", kind->heads[0]);
    if (kind->heads[1] == NULL)
        put_element(to, "th scope=\"col\" class=\"n\"", json_text_at(chart, "x"));
    for (i = 1; i < 5 && kind->heads[i] != NULL; i++)
        put_element(to, "th scope=\"col\" class=\"n\"", kind->heads[i]);
    fputs("</tr></thead><tbody>\n", to);
    json_array_foreach(json_object_get(chart, "series"), i, series) kind->put_rows(to, series);
    fputs("</tbody></table></div></details>\n", to);
}

static void put_chart(FILE *to, const json_t *chart, int number, bool can_plot)
{
    bool is_drawn;

    fprintf(to, "<figure class=\"%s\"><figcaption><h3>%s: ", json_text_at(chart, "kind"),
            kind_of(chart)->heading);
    xml_text(to, json_text_at(chart, "title"));
    fputs("</h3></figcaption>\n", to);
    if (json_text_at(chart, "text")[0] != '\0')
        put_element(to, "p", json_text_at(chart, "text"));
    fputs("<div class=\"scroll\">", to);
    is_drawn = can_plot && plot_write(to, chart, number);
    fputs("</div>\n", to);
    if (can_plot && !is_drawn)
        put_element(to, "p", "gnuplot could not draw this: the numbers stand in.");
    put_chart_table(to, chart, is_drawn);
    fputs("</figure>\n", to);
}

static void put_plugins(FILE *to, const json_t *records)
{
    json_t *plugins = charts_of(records), *charts, *chart;
    const bool can_plot = plot_is_possible();
    const char *plugin;
    int number = 0;
    size_t i;

    if (!can_plot)
        put_element(to, "p id=\"no-plots\"",
                    "gnuplot was not found where this page was made, so tables stand in for its "
                    "plots.");
    json_object_foreach(plugins, plugin, charts)
    {
        if (json_array_size(charts) > 0)
            put_element(to, "h2", plugin);
        json_array_foreach(charts, i, chart) put_chart(to, chart, number++, can_plot);
    }
    json_decref(plugins);
}

/* --- the page --- */

static void put_head(FILE *to)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<title>gpurun report</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n",
          to);
    fputs(html_style, to);
    fputs("</style></head><body>\n<h1>gpurun report</h1>\n", to);
}

static void put_summary(FILE *to, const json_t *records)
{
    size_t passed = 0, unsupported = 0, i;
    json_t *record;

    json_array_foreach((json_t *)records, i, record)
    {
        passed += strcmp(json_text_at(record, "status"), "passed") == 0;
        unsupported += strcmp(json_text_at(record, "status"), "unsupported") == 0;
    }
    fprintf(to, "<p id=\"summary\">%zu of %zu cases passed", passed, json_array_size(records));
    if (unsupported > 0)
        fprintf(to, ", %zu unsupported", unsupported);
    if (json_array_size(records) > passed + unsupported)
        fprintf(to, ", <strong class=\"bad\">%zu not</strong>",
                json_array_size(records) - passed - unsupported);
    fprintf(to, ". Made by gpurun %s.</p>\n", GPURUN_VERSION);
}

static void put_page(FILE *to, const json_t *records)
{
    put_head(to);
    put_summary(to, records);
    put_machines(to, records);
    put_cases(to, records);
    put_plugins(to, records);
    fprintf(to, "<script>\n%s</script>\n</body></html>\n", html_script);
}

static bool write_file(const char *path, const char *page, size_t size)
{
    FILE *to = fopen(path, "we");
    const bool is_written = to != NULL && fwrite(page, 1, size, to) == size && fflush(to) == 0;
    const int error = errno;

    if (to == NULL || (fclose(to) == 0 && is_written))
        return is_written;
    errno = is_written ? errno : error;
    return false;
}

/* Beside its target first, so that a full disk leaves no half of a page. */
static bool replace_file(const char *path, const char *page, size_t size)
{
    char *beside = format_text("%s.part", path);
    const bool is_good = write_file(beside, page, size) && rename(beside, path) == 0;
    const int error = errno;

    if (!is_good)
        unlink(beside);
    free(beside);
    errno = error;
    return is_good;
}

/* A device or a pipe is written to, never replaced. */
static bool write_page(const char *path, const char *page, size_t size)
{
    struct stat info;
    const bool is_special =
        stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);

    if (is_special ? write_file(path, page, size) : replace_file(path, page, size))
        return true;
    fprintf(stderr, "gpurun: --html %s: %s\n", path, strerror(errno));
    return false;
}

bool html_write(const char *path, const json_t *records)
{
    char *page = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&page, &size);
    bool is_good = to != NULL;

    if (is_good) {
        put_page(to, records);
        is_good = fclose(to) == 0;
    }
    is_good = is_good && write_page(path, page, size);
    free(page);
    return is_good;
}
