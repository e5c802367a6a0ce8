#include "batch/tune.h"

#include "batch/interrupt.h"
#include "job/memory.h"
#include "report/family.h"
#include "report/table.h"
#include "run/record.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 5 }; /* settings above a section */

/* --- what came out --- */

static double median_of(const json_t *record)
{
    const bool is_passed = strcmp(json_text_at(record, "status"), "passed") == 0;

    return is_passed ? json_number_value(output_at(record, "time_ms.median")) : 0;
}

static int compare_medians(const void *a, const void *b)
{
    const double x = median_of(*(json_t *const *)a), y = median_of(*(json_t *const *)b);

    if ((x > 0) != (y > 0)) /* what did not pass comes last */
        return x > 0 ? -1 : 1;
    return (x > y) - (x < y);
}

static void put_values(FILE *to, const json_t *record, const json_t *tunables)
{
    const json_t *options = json_object_get(record, "options");
    const char *name;
    json_t *unused;
    char text[80];

    json_object_foreach((json_t *)tunables, name, unused)
    {
        output_scalar(json_object_get(options, name), text, sizeof text);
        fprintf(to, "  %s %s", name, text);
    }
}

static void print_setting(const json_t *record, const json_t *tunables, const char *what)
{
    char text[40];

    format_number(median_of(record), text, sizeof text);
    printf("#   %s ms", text);
    put_values(stdout, record, tunables);
    printf("%s\n", what);
}

static const struct job *job_named(const struct plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->count; i++)
        if (strcmp(plan->jobs[i].name, name) == 0)
            return &plan->jobs[i];
    return NULL;
}

/* What the job says and is still right for this variant alone, each key once. Where it writes and what it is
 * compared with are no part of a setting. */
static bool is_kept(const char *key, const json_t *tunables)
{
    static const char *const left_out[] = {"plugin", "variant", "zip", "include", "baseline"};

    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++)
        if (strcmp(key, left_out[i]) == 0)
            return false;
    return strncmp(key, "output", 6) != 0 && json_object_get(tunables, key) == NULL;
}

static void print_section(const struct job *job, const json_t *record, const json_t *tunables,
                          const char *family)
{
    const char *sweep = strchr(family, ','), *name;
    char text[80];
    json_t *unused;

    printf("[%s%s %s]\nplugin = %s\nvariant = %s\n", job->section, sweep ? sweep : "",
           json_text_at(record, "variant"), job->core.plugin, json_text_at(record, "variant"));
    for (size_t i = 0; i < job->setting_count; i++)
        if (is_kept(job->settings[i].key, tunables))
            printf("%s = %s\n", job->settings[i].key, job->settings[i].text);
    json_object_foreach((json_t *)tunables, name, unused)
    {
        output_scalar(json_object_get(json_object_get(record, "options"), name), text, sizeof text);
        printf("%s = %s\n", name, text);
    }
    printf("\n");
}

static bool is_default(const json_t *record, const json_t *tunables, const json_t *defaults)
{
    const json_t *options = json_object_get(record, "options");
    const char *name;
    json_t *unused;

    json_object_foreach((json_t *)tunables, name, unused)
    {
        if (!json_equal(json_object_get(options, name), json_object_get(defaults, name)))
            return false;
    }
    return true;
}

/* True when the best is faster than the default beyond doubt, by the rule of `gpurun compare`. */
static bool is_gain(const json_t *best, const json_t *standard, double gap)
{
    struct interval before, now;

    return standard == NULL ||
           (compare_interval(standard, &before) && compare_interval(best, &now) &&
            verdict_of(&before, &now, gap) == VERDICT_FASTER);
}

/* The settings of one variant, from the fastest on. */
struct ranking {
    json_t **records;
    size_t count, passed,
        standard; /* `standard`: the default's place, `count` when it did not pass */
};

static struct ranking rank(const json_t *records, const json_t *tunables, const json_t *defaults)
{
    struct ranking r = {.count = json_array_size(records)};

    r.records = allocate(r.count + 1, sizeof *r.records);
    for (size_t i = 0; i < r.count; i++)
        r.records[i] = json_array_get(records, i);
    qsort(r.records, r.count, sizeof *r.records, compare_medians);
    while (r.passed < r.count && median_of(r.records[r.passed]) > 0)
        r.passed++;
    while (r.standard < r.passed && !is_default(r.records[r.standard], tunables, defaults))
        r.standard++;
    r.standard = r.standard == r.passed ? r.count : r.standard;
    return r;
}

/* The winner is the default unless another setting beats it beyond doubt: chance makes one of many look
 * faster. */
static void print_best(const struct plan *plan, const char *family, const struct ranking *r,
                       const json_t *tunables, double gap)
{
    const json_t *standard = r->standard < r->count ? r->records[r->standard] : NULL;
    const bool has_gain = is_gain(r->records[0], standard, gap);
    const json_t *best = has_gain ? r->records[0] : standard;

    for (size_t i = 0; i < r->passed; i++)
        if (i < SHOWN || i == r->standard)
            print_setting(r->records[i], tunables, i == r->standard ? "  (the default)" : "");
    if (!has_gain)
        printf("#   none is faster than the default beyond doubt\n");
    print_section(job_named(plan, json_text_at(best, "job")), best, tunables, family);
}

static bool print_ranking(const struct plan *plan, const char *family, const json_t *records,
                          const json_t *tunables, const json_t *defaults, double gap)
{
    struct ranking r = rank(records, tunables, defaults);
    const json_t *last = r.records[r.count - 1];
    const bool is_good = r.passed > 0 || strcmp(json_text_at(last, "status"), "unsupported") == 0;

    printf("# %s %s: %zu of %zu settings proved\n", family, json_text_at(last, "variant"), r.passed,
           r.count);
    if (r.passed < r.count)
        printf("#   %s: %.*s\n", json_text_at(last, "status"),
               (int)strcspn(json_text_at(last, "reason"), "\r\n"), json_text_at(last, "reason"));
    if (r.passed > 0)
        print_best(plan, family, &r, tunables, gap);
    else
        printf("\n");
    free(r.records);
    return is_good;
}

/* --- one section --- */

static bool is_tunable(const void *user, const char *key, size_t length)
{
    char name[80];

    snprintf(name, sizeof name, "%.*s", (int)length, key);
    return json_object_get(user, name) != NULL;
}

/* {family and variant: {"family", "records"}} of what ran on a device. */
static json_t *gather(const json_t *records, const json_t *tunables)
{
    json_t *groups = json_object(), *record, *group;
    size_t i;

    json_array_foreach((json_t *)records, i, record)
    {
        char *family = family_name(json_text_at(record, "job"), is_tunable, tunables);
        char *key = format_text("%s\n%s", family, json_text_at(record, "variant"));

        if (strcmp(json_text_at(record, "variant"), "cpu") != 0) {
            if ((group = json_object_get(groups, key)) == NULL) {
                group = json_pack("{sss[]}", "family", family, "records");
                json_object_set_new(groups, key, group);
            }
            json_array_append(json_object_get(group, "records"), record);
        }
        free(family);
        free(key);
    }
    return groups;
}

static bool print_groups(const struct plan *plan, const json_t *records, const json_t *tunables,
                         const json_t *defaults, double gap)
{
    json_t *groups = gather(records, tunables), *group;
    bool is_good = json_object_size(groups) > 0;
    const char *key;

    if (!is_good && json_array_size(records) > 0)
        fprintf(stderr, "gpurun: %s: no case ran on a GPU, so there is nothing to tune\n",
                json_text_at(json_array_get(records, 0), "job"));
    json_object_foreach(groups, key, group)
    {
        is_good = print_ranking(plan, json_text_at(group, "family"),
                                json_object_get(group, "records"), tunables, defaults, gap) &&
                  is_good;
    }
    json_decref(groups);
    return is_good;
}

/* The full name as a glob that matches nothing else. For the caller to free. */
static char *section_glob(const struct job *job)
{
    char *name = format_text("%s:%s", job->where.file, job->section);
    char *glob = allocate(2 * strlen(name) + 1, 1), *to = glob;

    for (const char *c = name; *c != '\0'; c++) {
        if (strchr("*?[\\", *c) != NULL)
            *to++ = '\\';
        *to++ = *c;
    }
    free(name);
    return glob;
}

static bool is_set(const struct job *job, const char *key)
{
    for (size_t i = 0; i < job->setting_count; i++)
        if (strcmp(job->settings[i].key, key) == 0)
            return true;
    return false;
}

/* What the job sets itself, a value or a list, is not touched. For the caller to free. */
static struct override *add_sweeps(const struct tune_request *r, const struct job *job,
                                   const json_t *tunables, size_t *count)
{
    struct override *all =
        allocate(r->override_count + json_object_size(tunables) + 1, sizeof *all);
    const char *name;
    json_t *values;

    *count = r->override_count;
    memcpy(all, r->overrides, *count * sizeof *all);
    json_object_foreach((json_t *)tunables, name, values)
    {
        if (!is_set(job, name))
            all[(*count)++] = (struct override){name, json_string_value(values)};
    }
    return all;
}

/* Settings that setup refuses are none: their jobs go behind the others. How many stay. */
static size_t keep_valid(struct plan *plan, struct checked *checked)
{
    size_t kept = 0;

    for (size_t i = 0; i < plan->count; i++)
        if (checked[i].description != NULL) {
            const struct job job = plan->jobs[i];
            const struct checked check = checked[i];

            plan->jobs[i] = plan->jobs[kept];
            checked[i] = checked[kept];
            plan->jobs[kept] = job;
            checked[kept++] = check;
        }
    return kept;
}

static enum exit_code run_valid(struct plan *plan, struct checked *checked,
                                const struct tune_request *r, json_t *records)
{
    const size_t all = plan->count;
    struct batch_options options = {.format = OUTPUT_NONE,
                                    .records = r->batch->records,
                                    .collect = records,
                                    .gap = r->batch->gap};
    enum exit_code code;

    plan->count = keep_valid(plan, checked);
    if (plan->count < all)
        printf("# %zu of %zu settings are refused by the plugin\n", all - plan->count, all);
    code = batch_run(plan, checked, &options);
    plan->count = all;
    return code;
}

static enum exit_code tune_section(const struct tune_request *r, const struct job *job,
                                   const json_t *description)
{
    const json_t *tunables = json_object_get(description, "tunable");
    size_t count;
    struct override *overrides = add_sweeps(r, job, tunables, &count);
    char *glob = section_glob(job);
    json_t *records = json_array();
    struct faults faults = {0}, refused = {0};
    struct plan plan;
    struct checked *checked = NULL;
    enum exit_code code = EXIT_USAGE;

    plan_read(r->files, r->file_count, overrides, count, glob, &plan, &faults);
    faults_print(&faults);
    if (faults.count == 0) {
        checked = batch_check(&plan, false, &refused);
        code = interrupted ? EXIT_INTERRUPTED : run_valid(&plan, checked, r, records);
        batch_free_checked(checked, plan.count);
    }
    if (code == EXIT_PASSED || code == EXIT_FAILED)
        code = print_groups(&plan, records, tunables, json_object_get(description, "options"),
                            r->batch->gap)
                   ? EXIT_PASSED
                   : EXIT_FAILED;
    faults_free(&refused);
    faults_free(&faults);
    plan_free(&plan);
    json_decref(records);
    free(overrides);
    free(glob);
    return code;
}

/* --- the whole --- */

static bool is_first_of_section(const struct plan *plan, size_t index)
{
    const struct job *job = &plan->jobs[index];

    return index == 0 || job->where.line != plan->jobs[index - 1].where.line ||
           strcmp(job->where.file, plan->jobs[index - 1].where.file) != 0;
}

static enum exit_code tune_all(const struct tune_request *r, const struct plan *plan,
                               const struct checked *checked)
{
    enum exit_code worst = EXIT_PASSED;

    for (size_t i = 0; i < plan->count && worst <= EXIT_FAILED; i++) {
        const json_t *description = checked[i].description;
        enum exit_code code = EXIT_FAILED;

        if (!is_first_of_section(plan, i))
            continue;
        if (json_object_size(json_object_get(description, "tunable")) > 0)
            code = tune_section(r, &plan->jobs[i], description);
        else
            fprintf(stderr, "gpurun: %s: %s\n", plan->jobs[i].name,
                    checked[i].trouble ? checked[i].trouble
                                       : "its plugin has no option to be tuned");
        worst = code > worst ? code : worst;
    }
    return worst;
}

enum exit_code tune(const struct tune_request *r)
{
    struct plan plan;
    struct faults faults = {0};
    struct checked *checked;
    enum exit_code code = EXIT_USAGE;

    plan_read(r->files, r->file_count, r->overrides, r->override_count, r->only, &plan, &faults);
    checked = batch_check(&plan, true, &faults);
    faults_print(&faults);
    if (interrupted)
        code = EXIT_INTERRUPTED;
    else if (faults.count > 0)
        fprintf(stderr, "gpurun: %zu fault%s, nothing was run\n", faults.count,
                faults.count == 1 ? "" : "s");
    else
        code = tune_all(r, &plan, checked);
    batch_free_checked(checked, plan.count);
    plan_free(&plan);
    faults_free(&faults);
    return code;
}
