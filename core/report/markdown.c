/* One Markdown table per job, then what there is to say about memory strategies. */
#include "report/output.h"

#include "report/charts.h"
#include "run/record.h"
#include <math.h>
#include <string.h>

void markdown_cell(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("|\\`*_<>[]", *text) != NULL)
            fputc('\\', to);
        fputc(*text == '\n' || *text == '\r' ? ' ' : *text, to);
    }
}

static void write_number(FILE *to, const json_t *value, const char *unit)
{
    if (json_is_number(value))
        fprintf(to, " %.4g%s |", json_number_value(value), unit);
    else
        fputs(" - |", to);
}

static void write_interval(FILE *to, const json_t *record)
{
    const double median = json_number_value(output_at(record, "time_ms.median"));
    const double low = json_number_value(output_at(record, "time_ms.median_ci95.0"));
    const double high = json_number_value(output_at(record, "time_ms.median_ci95.1"));

    if (median > 0)
        fprintf(to, " %.2g |", 100 * fmax(high - median, median - low) / median);
    else
        fputs(" - |", to);
}

static void write_row(FILE *to, const json_t *record)
{
    const double rate = json_number_value(output_at(record, "throughput.bytes_per_s"));

    fputs("| ", to);
    markdown_cell(to, json_text_at(record, "variant"));
    fputs(" | ", to);
    markdown_cell(to, json_text_at(record, "status"));
    fputs(json_is_true(json_object_get(record, "resumed")) ? ", resumed | " : " | ", to);
    markdown_cell(to, json_text_at(json_object_get(record, "proof"), "mode"));
    fputs(" |", to);
    write_number(to, output_at(record, "time_ms.median"), "");
    write_interval(to, record);
    if (rate > 0)
        fprintf(to, " %.4g |", rate * 1e-9);
    else
        fputs(" - |", to);
    write_number(to, output_at(record, "limit.percent"), "");
    write_number(to, output_at(record, "end_to_end_ms.median"), "");
    write_number(to, output_at(record, "versus.cpu.median"), "x");
    fputc(' ', to);
    markdown_cell(to, json_text_at(record, "reason"));
    fputs(" |\n", to);
}

/* Which memory strategy was fastest up to which size, where several were measured. */
static void write_strategies(FILE *to, const json_t *records)
{
    json_t *all = charts_of(records), *charts, *chart;
    const char *plugin;
    size_t i;

    json_object_foreach(all, plugin, charts)
    {
        json_array_foreach(charts, i, chart)
        {
            if (json_text_at(chart, "text")[0] == '\0')
                continue;
            fputs("\n", to);
            markdown_cell(to, json_text_at(chart, "title"));
            fputs(": ", to);
            markdown_cell(to, json_text_at(chart, "text"));
            fputs("\n", to);
        }
    }
    json_decref(all);
}

void markdown_write(FILE *to, const json_t *records)
{
    json_t *jobs = output_by_job(records), *job, *record;
    size_t i, k;

    json_array_foreach(jobs, i, job)
    {
        fputs(i > 0 ? "\n### " : "### ", to);
        markdown_cell(to, json_text_at(json_array_get(job, 0), "job"));
        fputs(
            "\n\n| case | status | proof | median ms | +- % | GB/s | % of limit | end to end ms | "
            "vs cpu | reason |\n|---|---|---|--:|--:|--:|--:|--:|--:|---|\n",
            to);
        json_array_foreach(job, k, record) write_row(to, record);
    }
    json_decref(jobs);
    write_strategies(to, records);
}
