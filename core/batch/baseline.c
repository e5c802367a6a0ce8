#include "batch/baseline.h"

#include "report/report.h"
#include "run/record.h"
#include <stdlib.h>
#include <string.h>

static bool read_one(struct baselines *b, const char *path)
{
    json_t *records;

    if (json_object_get(b->records, path) != NULL)
        return true;
    records = report_read((char *const *)&path, 1);
    if (records == NULL)
        return false;
    if (json_array_size(records) == 0)
        fprintf(stderr, "gpurun: baseline %s: it holds no record, so there is nothing to compare\n",
                path);
    b->count += json_array_size(records) > 0;
    json_object_set(b->records, path, records);
    json_decref(records);
    return json_array_size(json_object_get(b->records, path)) > 0;
}

bool baselines_read(struct baselines *b, const struct plan *plan,
                    const struct batch_options *options)
{
    bool is_read = true;

    *b = (struct baselines){.records = json_object(), .jobs = json_object()};
    for (size_t i = 0; i < plan->count && is_read && !options->dry_run; i++) {
        char *path = job_baseline_path(&plan->jobs[i]);

        if (path != NULL) {
            is_read = read_one(b, path);
            json_object_set_new(b->jobs, plan->jobs[i].name, json_string(path));
        }
        free(path);
    }
    return is_read;
}

/* The records of jobs that are compared with `path` and that ran: `ran` holds their names. */
static json_t *select_records(const struct baselines *b, const json_t *records, const char *path,
                              const json_t *ran)
{
    json_t *selected = json_array(), *record;
    size_t i;

    json_array_foreach((json_t *)records, i, record)
    {
        const char *job = json_text_at(record, "job");

        if (strcmp(json_text_at(b->jobs, job), path) == 0 && json_object_get(ran, job) != NULL)
            json_array_append(selected, record);
    }
    return selected;
}

static bool compare_with(const struct baselines *b, const char *path, const json_t *records,
                         const json_t *ran, const struct batch_options *options)
{
    json_t *before = select_records(b, json_object_get(b->records, path), path, ran);
    json_t *now = select_records(b, records, path, ran);
    json_t *comparison = compare_records(before, now, options->gap);
    const bool fails = compare_fails(comparison, options->fail_on);
    char summary[400];

    compare_summary(comparison, summary, sizeof summary);
    if (options->format == OUTPUT_TABLE) {
        printf("\nCompared with %s:\n\n", path);
        compare_print(OUTPUT_TABLE, comparison);
    } else {
        fprintf(stderr, "gpurun: compared with %s: %s\n", path, summary);
    }
    json_decref(comparison);
    json_decref(before);
    json_decref(now);
    return fails;
}

bool baselines_fail(const struct baselines *b, const json_t *records,
                    const struct batch_options *options)
{
    json_t *ran = json_object(), *record, *unused;
    bool fails = false;
    const char *path;
    size_t i;

    json_array_foreach((json_t *)records, i, record)
        json_object_set_new(ran, json_text_at(record, "job"), json_true());
    json_object_foreach(b->records, path, unused)
    {
        fails = compare_with(b, path, records, ran, options) || fails;
    }
    json_decref(ran);
    return fails;
}

void baselines_free(struct baselines *b)
{
    json_decref(b->records);
    json_decref(b->jobs);
}
