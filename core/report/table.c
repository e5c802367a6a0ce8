#include "report/table.h"

#include "plan/job.h"
#include "report/progress.h"
#include "run/record.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLUMNS = 12, CELL = 64 };

/* --- small formatting --- */

void format_count(long long count, char *text, size_t size)
{
    static const struct {
        long long unit;
        char letter;
    } units[] = {{1000000000000, 'T'}, {1000000000, 'G'}, {1000000, 'M'}, {1000, 'K'}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (count >= units[i].unit && count % (units[i].unit / 10) == 0) {
            const long long tenths = count % units[i].unit / (units[i].unit / 10);

            if (tenths > 0)
                snprintf(text, size, "%lld.%lld%c", count / units[i].unit, tenths, units[i].letter);
            else
                snprintf(text, size, "%lld%c", count / units[i].unit, units[i].letter);
            return;
        }
    snprintf(text, size, "%lld", count);
}

void format_bytes(double bytes, char *text, size_t size)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    size_t i = 0;

    while (bytes >= 999.5 && i + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1000;
        i++;
    }
    snprintf(text, size, "%.3g %s", bytes, units[i]);
}

void format_number(double value, char *text, size_t size)
{
    const double digits = value > 0 ? floor(log10(value)) + 1 : 1;

    snprintf(text, size, "%.*f", digits >= 4 ? 0 : digits <= -3 ? 6 : 4 - (int)digits, value);
}

void format_json(const json_t *value, char *text, size_t size)
{
    char *dumped;

    if (json_is_string(value))
        snprintf(text, size, "%s", json_string_value(value));
    else if (json_is_integer(value))
        format_count(json_integer_value(value), text, size);
    else if (json_is_boolean(value))
        snprintf(text, size, "%s", json_is_true(value) ? "yes" : "no");
    else {
        dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        snprintf(text, size, "%s", dumped ? dumped : "?");
        free(dumped);
    }
}

static double number_at(const json_t *object, const char *key, const char *inner)
{
    return json_number_value(json_object_get(json_object_get(object, key), inner));
}

bool table_has_colour(void)
{
    const char *no_color = getenv("NO_COLOR");

    return isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0');
}

/* --- the heading --- */

/* The plugin's options, resolved; what the core's keys say stands in the other lines. */
static void print_options(const json_t *heading)
{
    const char *key;
    json_t *value;

    printf("  options  ");
    json_object_foreach(json_object_get(heading, "options"), key, value)
    {
        char text[80];

        if (core_knows(key))
            continue;
        format_json(value, text, sizeof text);
        printf(" %s %s ", key, text);
    }
    printf("\n");
}

static void print_inputs(const json_t *heading)
{
    const json_t *options = json_object_get(heading, "options");
    size_t i, k;
    json_t *input, *dim;

    json_array_foreach(json_object_get(heading, "input"), i, input)
    {
        char bytes[32], count[32];

        format_bytes(json_number_value(json_object_get(input, "bytes")), bytes, sizeof bytes);
        printf("  input     %s: ", json_text_at(input, "tensor"));
        json_array_foreach(json_object_get(input, "shape"), k, dim)
        {
            format_count(json_integer_value(dim), count, sizeof count);
            printf("%s%s", k ? " x " : "", count);
        }
        printf(" %s (%s), %s", json_text_at(input, "dtype"), bytes, json_text_at(input, "source"));
        if (strncmp(json_text_at(input, "source"), "file:", 5) != 0)
            printf(", seed %lld", (long long)json_integer_value(json_object_get(options, "seed")));
        printf("\n");
    }
}

static void print_machine(const json_t *heading)
{
    const json_t *e = json_object_get(heading, "environment");
    char bytes[32];

    if (json_object_get(e, "device_name") != NULL) {
        format_bytes(json_number_value(json_object_get(e, "device_bytes")), bytes, sizeof bytes);
        printf("  GPU       %s (%s), %lld multiprocessors, %s; memory %s\n",
               json_text_at(e, "device_name"), json_text_at(heading, "device"),
               (long long)json_integer_value(json_object_get(e, "sm_count")), bytes,
               json_text_at(heading, "memory"));
    } else {
        printf("  GPU       none used%s%s\n", json_text_at(heading, "no_gpu")[0] ? ": " : "",
               json_text_at(heading, "no_gpu"));
    }
    printf("  CPU       %s, %lld of %lld threads\n", json_text_at(e, "cpu"),
           (long long)json_integer_value(json_object_get(e, "threads")),
           (long long)json_integer_value(json_object_get(e, "cpus")));
}

/* --- the table --- */

struct table {
    char cells[70][COLUMNS][CELL]; /* row 0: the header */
    int rows, columns;
};

/* Times of a table are in one unit, chosen by its smallest; rates in one, chosen by its largest. Where
 * operations are declared they are what counts, else bytes are. */
struct units {
    const char *time, *rate;
    double per_ms, per_rate;
    const char *rate_key; /* in the record's throughput */
};

static struct units choose_units(const json_t *rows)
{
    struct units u = {"ms", "GB/s", 1, 1e-9, "bytes_per_s"};
    double smallest = INFINITY, operations = 0;
    size_t i;
    json_t *row;

    json_array_foreach(rows, i, row)
    {
        const double median = number_at(row, "time_ms", "median");

        if (median > 0 && median < smallest)
            smallest = median;
        operations = fmax(operations, number_at(row, "throughput", "operations_per_s"));
    }
    if (smallest < 0.01) {
        u.time = "us";
        u.per_ms = 1e3;
    } else if (smallest > 1e4 && isfinite(smallest)) {
        u.time = "s";
        u.per_ms = 1e-3;
    }
    if (operations > 0) {
        u.rate = operations < 1e12 ? "GOP/s" : "TOP/s";
        u.per_rate = operations < 1e12 ? 1e-9 : 1e-12;
        u.rate_key = "operations_per_s";
    }
    return u;
}

static void add_header(struct table *t, const json_t *rows, struct units unit)
{
    static const char *const fixed[] = {"case", "status", "proof"};
    size_t i;
    json_t *row;

    for (i = 0; i < 3; i++)
        snprintf(t->cells[0][i], CELL, "%s", fixed[i]);
    snprintf(t->cells[0][3], CELL, "median %s", unit.time);
    snprintf(t->cells[0][4], CELL, "+- %%");
    snprintf(t->cells[0][5], CELL, "%s", unit.rate);
    snprintf(t->cells[0][6], CELL, "%% of limit");
    snprintf(t->cells[0][7], CELL, "end to end %s", unit.time);
    t->columns = 8;
    json_array_foreach(rows, i, row) if ((strcmp(json_text_at(row, "variant"), "cpu") == 0 ||
                                          json_is_true(json_object_get(row, "peer"))) &&
                                         json_array_size(rows) > 1 && t->columns < COLUMNS)
        snprintf(t->cells[0][t->columns++], CELL, "vs %.30s", json_text_at(row, "variant"));
    t->rows = 1;
}

static void set_number(char *cell, double value)
{
    if (value > 0)
        format_number(value, cell, CELL);
    else
        snprintf(cell, CELL, "-");
}

/* What was done, on how many elements, and how near the answer came where that is reported. */
static void set_proof(char *cell, const json_t *proof)
{
    const json_t *worst = json_object_get(proof, "worst_relative");
    int used;

    if (json_integer_value(json_object_get(proof, "checked")) == 0) {
        snprintf(cell, CELL, "%.10s", proof ? json_text_at(proof, "mode") : "-");
        return;
    }
    used = snprintf(cell, CELL, "%.10s, %lld%s", json_text_at(proof, "mode"),
                    (long long)json_integer_value(json_object_get(proof, "checked")),
                    json_array_size(json_object_get(proof, "relaxed")) ? ", relaxed" : "");
    if (json_is_number(worst))
        snprintf(cell + used, CELL - (size_t)used, ", %.2g %.12s", json_number_value(worst),
                 json_text_at(proof, "relative_to"));
}

static void add_row(struct table *t, const json_t *row, struct units unit)
{
    char(*cells)[CELL] = t->cells[t->rows++];
    const json_t *interval = json_object_get(json_object_get(row, "time_ms"), "median_ci95");
    const double median = number_at(row, "time_ms", "median");
    const double low = json_number_value(json_array_get(interval, 0));
    const double high = json_number_value(json_array_get(interval, 1));

    snprintf(cells[0], CELL, "%s", json_text_at(row, "variant"));
    snprintf(cells[1], CELL, "%s", json_text_at(row, "status"));
    for (char *c = cells[1]; *c; c++)
        if (strcmp(json_text_at(row, "status"), "unsupported") != 0 && *c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    if (json_is_true(json_object_get(row, "resumed")))
        strncat(cells[1], ", resumed", CELL - strlen(cells[1]) - 1);
    set_proof(cells[2], json_object_get(row, "proof"));
    set_number(cells[3], median * unit.per_ms);
    if (median > 0)
        snprintf(cells[4], CELL, "%.2g", 100 * fmax(high - median, median - low) / median);
    else
        snprintf(cells[4], CELL, "-");
    set_number(cells[5], number_at(row, "throughput", unit.rate_key) * unit.per_rate);
    set_number(cells[6], number_at(row, "limit", "percent"));
    set_number(cells[7], number_at(row, "end_to_end_ms", "median") * unit.per_ms);
    for (int i = 8; i < t->columns; i++) {
        const json_t *versus = json_object_get(row, "versus");

        set_number(cells[i], number_at(versus, t->cells[0][i] + 3, "median"));
        if (cells[i][0] != '-')
            strncat(cells[i], "x", CELL - strlen(cells[i]) - 1);
    }
}

/* 0: not shown, as no row has anything there. */
static int column_width(const struct table *t, int c)
{
    int width = 0;
    bool is_empty = c > 3;

    for (int r = 0; r < t->rows; r++) {
        const int length = (int)strlen(t->cells[r][c]);

        width = length > width ? length : width;
        is_empty = is_empty && (r == 0 || strcmp(t->cells[r][c], "-") == 0);
    }
    return is_empty ? 0 : width;
}

static void print_table(const struct table *t)
{
    const bool colour = table_has_colour();

    for (int r = 0; r < t->rows; r++) {
        for (int c = 0; c < t->columns; c++) {
            const char *cell = t->cells[r][c];
            const int width = column_width(t, c);

            if (width == 0)
                continue;
            printf("  ");
            if (colour && c == 1 && r > 0)
                printf("%s", strncmp(cell, "PASSED", 6) == 0         ? "\033[32m"
                             : strncmp(cell, "unsupported", 11) == 0 ? "\033[33m"
                                                                     : "\033[31m");
            printf(c < 3 ? "%-*s" : "%*s", width, cell);
            if (colour && c == 1 && r > 0)
                printf("\033[0m");
        }
        printf("\n");
    }
}

/* --- below the table --- */

static void format_element(const json_t *value, char *text, size_t size)
{
    if (json_is_integer(value))
        snprintf(text, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, size, "%.9g", json_real_value(value));
    else
        snprintf(text, size, "%s", json_string_value(value));
}

/* How the device was read: the first row that says so stands for all, but for notes of their own. */
static void print_reading(const json_t *rows)
{
    size_t i;
    json_t *row;

    json_array_foreach(rows, i, row)
    {
        char empty[CELL];

        if (!json_is_object(json_object_get(row, "empty_ms")))
            continue;
        format_number(number_at(row, "empty_ms", "median") * 1e3, empty, sizeof empty);
        printf("\n  read      %s cache, launch %s; %lld rounds (%s); an empty reading is %s us\n",
               json_text_at(row, "cache"), json_text_at(row, "launch"),
               (long long)json_integer_value(json_object_get(row, "rounds")),
               json_text_at(row, "stop"), empty);
        return;
    }
}

/* Doubts about a row: its flags, and why it was not read as the job says. */
static void print_doubts(const json_t *rows)
{
    size_t i, k;
    json_t *row, *flag;

    json_array_foreach(rows, i, row)
    {
        if (json_array_size(json_object_get(row, "flags")) > 0) {
            printf("  %s: flags:", json_text_at(row, "variant"));
            json_array_foreach(json_object_get(row, "flags"), k, flag)
                printf("%s %s", k ? "," : "", json_string_value(flag));
            printf("\n");
        }
        if (json_text_at(row, "launch_note")[0] != '\0')
            printf("  %s: %s\n", json_text_at(row, "variant"), json_text_at(row, "launch_note"));
        if (json_text_at(row, "limit_note")[0] != '\0')
            printf("  %s: %s\n", json_text_at(row, "variant"), json_text_at(row, "limit_note"));
        if (json_text_at(row, "path")[0] != '\0')
            printf("  %s: by %s\n", json_text_at(row, "variant"), json_text_at(row, "path"));
        if (json_text_at(row, "auto")[0] != '\0')
            printf("  %s: auto: %s\n", json_text_at(row, "variant"), json_text_at(row, "auto"));
    }
}

static void print_reasons(const json_t *rows)
{
    size_t i, k;
    json_t *row, *line;

    json_array_foreach(rows, i, row)
    {
        if (json_text_at(row, "reason")[0] == '\0')
            continue;
        printf("  %s: %s\n", json_text_at(row, "variant"), json_text_at(row, "reason"));
        json_array_foreach(json_object_get(json_object_get(row, "proof"), "first_wrong"), k,
                           line) if (k > 0) printf("      %s\n", json_string_value(line));
    }
}

/* One tensor's elements in columns, as many as fit 100 characters. */
static void print_elements(const char *name, const json_t *list)
{
    const size_t count = json_array_size(list);
    int width = 0, per_line;
    char text[40];

    for (size_t i = 0; i < count; i++) {
        format_element(json_array_get(list, i), text, sizeof text);
        width = (int)strlen(text) > width ? (int)strlen(text) : width;
    }
    per_line = (100 - 12) / (width + 1);
    if (per_line > 10)
        per_line = 10;
    for (size_t i = 0; i < count; i++) {
        format_element(json_array_get(list, i), text, sizeof text);
        if (i % (size_t)per_line == 0)
            printf("%s  %-9s", i ? "\n" : "", i ? "" : name);
        printf(" %*s", width, text);
    }
    printf(count ? "\n" : "  %-9s (nothing)\n", name);
}

/* The answer, once: every passed case gave it. */
static void print_shown(const json_t *rows)
{
    const char *name;
    size_t i;
    json_t *row, *list;

    json_array_foreach(rows, i, row)
    {
        const json_t *relaxed = json_object_get(json_object_get(row, "proof"), "relaxed");

        if (strcmp(json_text_at(row, "status"), "passed") != 0 || json_array_size(relaxed) > 0 ||
            json_object_size(json_object_get(row, "shown")) == 0)
            continue;
        printf("\n");
        json_object_foreach(json_object_get(row, "shown"), name, list) print_elements(name, list);
        return;
    }
}

/* Records in the order of the job's cases, which is not that in which they ended. For the caller to free. */
static json_t *in_case_order(const json_t *heading, const json_t *ended)
{
    const json_t *names = json_object_get(heading, "cases");
    json_t *rows = json_array(), *row, *name;
    size_t i, k;

    json_array_foreach(names, i, name) json_array_foreach(
        ended, k, row) if (strcmp(json_text_at(row, "variant"), json_string_value(name)) == 0)
        json_array_append(rows, row);
    if (json_array_size(rows) != json_array_size(ended)) {
        json_array_clear(rows);
        json_array_extend(rows, (json_t *)ended);
    }
    return rows;
}

/* The first record of the device, else the first that knows its machine. */
static const json_t *heading_of(const json_t *ended)
{
    const json_t *found = NULL;
    size_t i;
    json_t *row;

    json_array_foreach(ended, i, row)
    {
        const json_t *e = json_object_get(row, "environment");

        if (e != NULL && strcmp(json_text_at(row, "device"), "cpu") != 0)
            return row;
        if (e != NULL && found == NULL)
            found = row;
    }
    return found;
}

void table_print(const char *job, const json_t *heading, const json_t *ended)
{
    struct table *t = calloc(1, sizeof *t);
    json_t *rows, *row;
    struct units unit;
    size_t i;

    if (heading == NULL)
        heading = heading_of(ended);
    rows = in_case_order(heading, ended);
    unit = choose_units(rows);
    progress_clear();
    printf("%s\n", job);
    if (heading != NULL) {
        print_options(heading);
        print_inputs(heading);
        print_machine(heading);
        printf("\n");
    }
    if (t != NULL) {
        add_header(t, rows, unit);
        json_array_foreach(rows, i, row) if (t->rows < 70) add_row(t, row, unit);
        print_table(t);
    }
    print_reading(rows);
    print_doubts(rows);
    print_reasons(rows);
    print_shown(rows);
    printf("\n");
    fflush(stdout);
    json_decref(rows);
    free(t);
}

void table_summary(size_t passed, size_t unsupported, size_t failed, size_t resumed,
                   const char *verdict)
{
    const bool good = strcmp(verdict, "PASSED") == 0;
    const char *start = table_has_colour() ? good ? "\033[32m" : "\033[31m" : "";

    progress_clear();
    printf("%s%s%s: %zu of %zu cases passed", start, verdict, start[0] ? "\033[0m" : "", passed,
           passed + unsupported + failed);
    if (unsupported > 0)
        printf(", %zu unsupported", unsupported);
    if (failed > 0)
        printf(", %zu not", failed);
    if (resumed > 0)
        printf("; %zu resumed", resumed);
    printf("\n");
}
