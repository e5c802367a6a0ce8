/* Comparisons as a table for people, CSV, Markdown and JSON. */
#include "job/memory.h"
#include "report/compare.h"
#include "report/progress.h"
#include "report/table.h"
#include "run/record.h"
#include <stdlib.h>
#include <string.h>

/* --- the cells of a row, for people --- */

enum { VERDICT, CASE, BEFORE, NOW, CHANGE, RANGE, CYCLES, NOTE, CELLS };

static const char *const headers[CELLS] = {"verdict",  "case",    "old ms",   "new ms",
                                           "change %", "range %", "cycles %", "note"};

static char *time_cell(const json_t *side)
{
    char text[40] = "-";
    const json_t *median = json_object_get(side, "median_ms");

    if (median != NULL)
        format_number(json_number_value(median), text, sizeof text);
    return copy_text(text);
}

static char *percent_cell(const json_t *value)
{
    return json_is_number(value) ? format_text("%+.2f", json_number_value(value)) : copy_text("-");
}

static char *range_cell(const json_t *range)
{
    if (range == NULL)
        return copy_text("-");
    return format_text("%+.2f to %+.2f", json_number_value(json_array_get(range, 0)),
                       json_number_value(json_array_get(range, 1)));
}

/* What is this case's own; what a change of machine or program did to all stands above the table. */
static char *note_cell(const json_t *row)
{
    char *text = copy_text(""), *longer;
    json_t *note;
    size_t i;

    json_array_foreach(json_object_get(row, "notes"), i, note)
    {
        longer = format_text("%s%s%s", text, text[0] ? "; " : "", json_string_value(note));
        free(text);
        text = longer;
    }
    return text;
}

static void fill_cells(const json_t *row, char *cells[CELLS])
{
    cells[VERDICT] = copy_text(json_text_at(row, "verdict"));
    cells[CASE] = format_text("%s %s", json_text_at(row, "job"), json_text_at(row, "variant"));
    cells[BEFORE] = time_cell(json_object_get(row, "old"));
    cells[NOW] = time_cell(json_object_get(row, "new"));
    cells[CHANGE] = percent_cell(json_object_get(row, "change_percent"));
    cells[RANGE] = range_cell(json_object_get(row, "change_percent_range"));
    cells[CYCLES] = percent_cell(json_object_get(row, "cycles_change_percent"));
    cells[NOTE] = note_cell(row);
}

static void free_cells(char *cells[CELLS])
{
    for (int c = 0; c < CELLS; c++)
        free(cells[c]);
}

/* --- the table --- */

static const char *colour_of(const char *verdict)
{
    switch (verdict_from(verdict)) {
    case VERDICT_FAILED:
    case VERDICT_SLOWER:
    case VERDICT_FAILING:
        return "\033[31m";
    case VERDICT_MISSING:
    case VERDICT_CHANGED:
    case VERDICT_UNCERTAIN:
        return "\033[33m";
    case VERDICT_FASTER:
    case VERDICT_MENDED:
        return "\033[32m";
    default:
        return "";
    }
}

/* `shown`: the columns that say anything. */
static void print_cells(const char *const cells[CELLS], const int widths[CELLS],
                        const bool shown[CELLS], const char *colour)
{
    printf("  %s%-*s%s", colour, widths[VERDICT], cells[VERDICT], colour[0] ? "\033[0m" : "");
    for (int c = CASE; c < CELLS; c++)
        if (!shown[c])
            continue;
        else if (c == NOTE)
            printf("%s%.*s", cells[c][0] != '\0' ? "  " : "", (int)strcspn(cells[c], "\r\n"),
                   cells[c]);
        else
            printf(c == CASE ? "  %-*s" : "  %*s", widths[c], cells[c]);
    printf("\n");
}

static void widen(const char *const cells[CELLS], int widths[CELLS])
{
    for (int c = 0; c < CELLS; c++)
        widths[c] = (int)strlen(cells[c]) > widths[c] ? (int)strlen(cells[c]) : widths[c];
}

static void print_rows(const json_t *rows)
{
    const bool has_colour = table_has_colour();
    bool shown[CELLS] = {true, true, true, true, true, true};
    int widths[CELLS] = {0};
    json_t *row;
    size_t i;

    widen(headers, widths);
    json_array_foreach((json_t *)rows, i, row)
    {
        char *cells[CELLS];

        fill_cells(row, cells);
        widen((const char *const *)cells, widths);
        shown[CYCLES] = shown[CYCLES] || cells[CYCLES][0] != '-' || cells[CYCLES][1] != '\0';
        shown[NOTE] = shown[NOTE] || cells[NOTE][0] != '\0';
        free_cells(cells);
    }
    print_cells(headers, widths, shown, "");
    json_array_foreach((json_t *)rows, i, row)
    {
        char *cells[CELLS];

        fill_cells(row, cells);
        print_cells((const char *const *)cells, widths, shown,
                    has_colour ? colour_of(cells[VERDICT]) : "");
        free_cells(cells);
    }
}

static void print_table(const json_t *comparison)
{
    const json_t *differences = json_object_get(comparison, "differences");
    char summary[400];
    const char *text;
    json_t *count;

    progress_clear();
    if (json_object_size(differences) > 0)
        printf("Not the same on both sides:\n");
    json_object_foreach((json_t *)differences, text, count)
        printf("  %s (%lld case%s)\n", text, (long long)json_integer_value(count),
               json_integer_value(count) == 1 ? "" : "s");
    if (json_object_size(differences) > 0)
        printf("\n");
    print_rows(json_object_get(comparison, "cases"));
    compare_summary(comparison, summary, sizeof summary);
    printf("\n%s; a change counts from %.4g %%\n", summary,
           json_number_value(json_object_get(comparison, "gap_percent")));
}

/* --- Markdown --- */

static void print_markdown(const json_t *comparison)
{
    const json_t *differences = json_object_get(comparison, "differences");
    json_t *row, *count;
    const char *text;
    size_t i;

    json_object_foreach((json_t *)differences, text, count)
    {
        fputs("- ", stdout);
        markdown_cell(stdout, text);
        printf(" (%lld)\n", (long long)json_integer_value(count));
    }
    fputs(json_object_size(differences) ? "\n|" : "|", stdout);
    for (int c = 0; c < CELLS; c++)
        printf(" %s |", headers[c]);
    fputs("\n|---|---|--:|--:|--:|--:|--:|---|\n", stdout);
    json_array_foreach(json_object_get(comparison, "cases"), i, row)
    {
        char *cells[CELLS];

        fill_cells(row, cells);
        fputs("|", stdout);
        for (int c = 0; c < CELLS; c++) {
            fputc(' ', stdout);
            markdown_cell(stdout, cells[c]);
            fputs(" |", stdout);
        }
        fputc('\n', stdout);
        free_cells(cells);
    }
}

/* --- CSV --- */

static void print_csv(const json_t *comparison)
{
    static const struct {
        const char *name, *path;
    } columns[] = {{"verdict", "verdict"},
                   {"job", "job"},
                   {"variant", "variant"},
                   {"plugin", "plugin"},
                   {"old_status", "old.status"},
                   {"new_status", "new.status"},
                   {"old_ms", "old.median_ms"},
                   {"old_low_ms", "old.low_ms"},
                   {"old_high_ms", "old.high_ms"},
                   {"old_runs", "old.runs"},
                   {"old_clock_mhz", "old.sm_clock_mhz"},
                   {"new_ms", "new.median_ms"},
                   {"new_low_ms", "new.low_ms"},
                   {"new_high_ms", "new.high_ms"},
                   {"new_runs", "new.runs"},
                   {"new_clock_mhz", "new.sm_clock_mhz"},
                   {"change_percent", "change_percent"},
                   {"change_low_percent", "change_percent_range.0"},
                   {"change_high_percent", "change_percent_range.1"},
                   {"cycles_change_percent", "cycles_change_percent"}};
    enum { COLUMNS = sizeof columns / sizeof columns[0] };
    json_t *row;
    size_t i;

    for (size_t c = 0; c < COLUMNS; c++)
        printf("%s,", columns[c].name);
    fputs("note\r\n", stdout);
    json_array_foreach(json_object_get(comparison, "cases"), i, row)
    {
        char *text = note_cell(row);
        json_t *note = json_string(text);

        for (size_t c = 0; c < COLUMNS; c++) {
            csv_scalar(stdout, output_at(row, columns[c].path));
            fputc(',', stdout);
        }
        csv_scalar(stdout, note);
        fputs("\r\n", stdout);
        json_decref(note);
        free(text);
    }
}

void compare_print(enum output_format format, const json_t *comparison)
{
    switch (format) {
    case OUTPUT_TABLE:
        print_table(comparison);
        break;
    case OUTPUT_CSV:
        print_csv(comparison);
        break;
    case OUTPUT_MARKDOWN:
        print_markdown(comparison);
        break;
    case OUTPUT_JSON:
        json_dumpf(comparison, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
        putchar('\n');
        break;
    case OUTPUT_NONE:
        break;
    }
}
