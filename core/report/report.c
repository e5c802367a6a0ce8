#include "report/report.h"

#include "plan/source.h"
#include "report/html.h"
#include "report/reader.h"
#include "report/table.h"
#include "run/record.h"
#include <stdlib.h>
#include <string.h>

/* Cases by identity, in the order in which they first turn up, and what each job last was. */
struct merge {
    json_t *cases; /* identity: record */
    json_t *jobs;  /* job_id: the names of its cases as it last ran */
};

static bool is_interrupted(const json_t *record)
{
    return strcmp(json_text_at(record, "status"), "interrupted") == 0;
}

static void merge_record(void *user, const json_t *record, long offset)
{
    struct merge *m = user;
    const char *id = json_text_at(record, "case_id"), *job = json_text_at(record, "job_id");
    json_t *names = json_object_get(record, "cases"), *known;
    char text[1000];

    (void)offset;
    if (id[0] == '\0') {
        snprintf(text, sizeof text, "%s %s", json_text_at(record, "job"),
                 json_text_at(record, "variant"));
        id = text;
    }
    known = json_object_get(m->cases, id);
    if (known == NULL || !is_interrupted(record) || is_interrupted(known))
        json_object_set(m->cases, id, (json_t *)record);
    if (job[0] != '\0' && names != NULL && !is_interrupted(record))
        json_object_set(m->jobs, job, names);
}

static bool is_listed(const json_t *names, const char *name)
{
    size_t i;
    json_t *item;

    json_array_foreach(names, i, item) if (json_is_string(item) &&
                                           strcmp(json_string_value(item), name) == 0) return true;
    return false;
}

/* A case that was interrupted before its job knew its cases ("auto", or a variant that turned out to have no
 * device) is none once the job has run. */
static bool is_stale(const struct merge *m, const json_t *record)
{
    const json_t *names = json_object_get(m->jobs, json_text_at(record, "job_id"));

    return is_interrupted(record) && names != NULL &&
           !is_listed(names, json_text_at(record, "variant"));
}

json_t *report_read(char *const *paths, size_t count)
{
    struct merge m = {json_object(), json_object()};
    json_t *records = json_array(), *record;
    const char *id;
    bool is_read = true;

    for (size_t i = 0; i < count && is_read; i++)
        is_read = reader_read(paths[i], merge_record, &m);
    json_object_foreach(m.cases, id, record) if (!is_stale(&m, record))
        json_array_append(records, record);
    json_decref(m.cases);
    json_decref(m.jobs);
    if (is_read)
        return records;
    json_decref(records);
    return NULL;
}

struct counts {
    size_t passed, unsupported, failed;
};

static struct counts count(const json_t *records)
{
    struct counts c = {0};
    size_t i;
    json_t *record;

    json_array_foreach(records, i, record)
    {
        const char *status = json_text_at(record, "status");

        c.passed += strcmp(status, "passed") == 0;
        c.unsupported += strcmp(status, "unsupported") == 0;
    }
    c.failed = json_array_size(records) - c.passed - c.unsupported;
    return c;
}

static void print_tables(const json_t *records, const struct counts *c, bool is_good)
{
    json_t *jobs = output_by_job(records), *job;
    size_t i;

    json_array_foreach(jobs, i, job)
        table_print(json_text_at(json_array_get(job, 0), "job"), NULL, job);
    table_summary(c->passed, c->unsupported, c->failed, 0, is_good ? "PASSED" : "FAILED");
    json_decref(jobs);
}

/* What is to be written may be no file of records: that would be lost. */
static bool is_read_too(char *const *paths, size_t count, const char *option, const char *written)
{
    for (size_t i = 0; i < count; i++)
        if (written != NULL && is_same_file(paths[i], written)) {
            fprintf(stderr, "gpurun: %s: %s is a file of records to be read: name another\n",
                    option, written);
            return true;
        }
    return false;
}

int report_print(char *const *paths, size_t path_count, const struct report_options *options)
{
    json_t *records;
    struct counts c;
    bool is_good;

    if (is_read_too(paths, path_count, "--junit", options->junit) ||
        is_read_too(paths, path_count, "--html", options->html))
        return 2;
    records = report_read(paths, path_count);
    if (records == NULL)
        return 2;
    c = count(records);
    is_good = c.failed == 0 && !(options->strict && c.unsupported > 0);
    if (options->format == OUTPUT_TABLE)
        print_tables(records, &c, is_good);
    else
        output_print(options->format, records, is_good ? 0 : 1);
    if (options->junit != NULL && !output_write_junit(options->junit, records))
        is_good = false;
    if (options->html != NULL && !html_write(options->html, records))
        is_good = false;
    json_decref(records);
    return is_good ? 0 : 1;
}
