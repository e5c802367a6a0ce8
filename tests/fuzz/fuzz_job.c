/*
 * Fuzzes the text of job files: sections and keys, then every value through every parser of values, then
 * plans of up to three files, which lines of %%% part and which can include each other. Nothing is written
 * to the disk. What is taken is held against what jobfile.h, sweep.h, value.h, option.h and job.h promise.
 */
#include "job/jobfile.h"
#include "job/memory.h"
#include "job/sweep.h"
#include "job/value.h"
#include "job/variables.h"
#include "plan/job.h"
#include "run/generate.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ELEMS = 5, FILES = 3, JOBS_AFFORDED = 4096 };

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* A failure says why. */
static bool is_good(enum gpurun_status status, const struct why *why)
{
    require(status == GPURUN_OK || status == GPURUN_INVALID);
    require(memchr(why->text, '\0', sizeof why->text) != NULL);
    require(status == GPURUN_OK || why->text[0] != '\0');
    return status == GPURUN_OK;
}

/* --- the file -------------------------------------------------------------------------------------- */

static int count_lines(const uint8_t *data, size_t size)
{
    int lines = 1;

    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    return lines;
}

static void check_faults(const struct faults *faults, int lines)
{
    for (size_t i = 0; i < faults->count; i++) {
        char *end;
        long line;

        require(strncmp(faults->texts[i], "x.ini:", 6) == 0);
        line = strtol(faults->texts[i] + 6, &end, 10);
        require(line >= 1 && line <= lines && strncmp(end, ": ", 2) == 0 && end[2] != '\0');
    }
}

static bool is_trimmed(const char *text)
{
    const size_t length = strlen(text);

    return length == 0 ||
           (!isspace((unsigned char)text[0]) && !isspace((unsigned char)text[length - 1]));
}

static void check_section(const struct section *s, int *line, int lines)
{
    require(is_trimmed(s->name) && strchr(s->name, ']') == NULL && strchr(s->name, '\n') == NULL);
    require(s->line > *line);
    *line = s->line;
    for (size_t i = 0; i < s->count; i++) {
        const struct entry *e = &s->entries[i];

        require(e->line > *line && e->line <= lines);
        *line = e->line;
        require(e->key[0] != '\0' && strpbrk(e->key, " =[];#\t\r\n") == NULL);
        require(e->value[0] != '\0' && is_trimmed(e->value) && strpbrk(e->value, "\r\n") == NULL);
        for (size_t k = 0; k < i; k++)
            require(strcmp(s->entries[k].key, e->key) != 0);
    }
}

/* --- values ------------------------------------------------------------------------------------------ */

static void check_numbers(const char *text)
{
    struct why why = {""};
    int64_t whole;
    double real = 0, seconds = 0;
    bool flag;

    if (is_good(value_parse_int(text, &whole, &why), &why)) {
        require(is_good(value_parse_real(text, &real, &why), &why));
        require(fabs(real - (double)whole) <= 1e-15 * fabs((double)whole));
    }
    is_good(value_parse_real(text, &real, &why), &why);
    is_good(value_parse_bool(text, &flag, &why), &why);
    if (is_good(value_parse_duration(text, &seconds, &why), &why))
        require(isfinite(seconds) && seconds >= 0 && !signbit(seconds));
}

static void check_range(const struct gpurun_option *row, const struct core_options *core)
{
    const void *field = (const char *)core + row->offset;
    const bool is_real = row->type == GPURUN_OPTION_REAL || row->type == GPURUN_OPTION_DURATION;
    const double value = is_real ? *(const double *)field : (double)*(const int64_t *)field;
    const bool is_auto =
        is_real ? gpurun_real_is_auto(value) : *(const int64_t *)field == GPURUN_AUTO;

    if ((row->min != 0 || row->max != 0) && !((row->flags & GPURUN_OPTION_AUTO) && is_auto))
        require(value >= row->min && value <= row->max);
}

/* Any text may stand behind any key. */
static void check_options(const char *text)
{
    struct core_options core;
    struct why why = {""};

    require(option_set_defaults(&core_options_table, &core, &why) == GPURUN_OK);
    for (uint32_t i = 0; i < core_options_table.count; i++) {
        const struct gpurun_option *row = option_at(&core_options_table, i);
        json_t *json;

        if (!is_good(option_set(row, text, &core, &why), &why) || row->type == GPURUN_OPTION_TEXT)
            continue;
        check_range(row, &core);
        json = option_to_json(row, &core);
        require(json != NULL && !json_is_null(json));
        json_decref(json);
    }
}

/* zipf first sums up a table of its count: nothing for every round of a fuzzer. */
static bool is_slow(const struct generator *g)
{
    return g->kind == GENERATOR_ZIPF && (g->given == 0 || g->real[0] > 16);
}

static void check_generator(const char *text)
{
    uint64_t data[ELEMS + 1];
    struct gpurun_tensor t = {
        .name = "in", .rank = 1, .dims = {ELEMS}, .elems = ELEMS, .host = data};
    struct generator g;
    struct why why = {""};

    if (!is_good(generator_parse(text, &g, &why), &why))
        return;
    for (int d = 0; d < GPURUN_DTYPE_COUNT; d++) {
        const enum gpurun_dtype dtype = (enum gpurun_dtype)d;
        unsigned char *end = (unsigned char *)data + ELEMS * gpurun_dtype_bytes(dtype);

        if (!is_good(generator_check(&g, dtype, &why), &why) || is_slow(&g))
            continue;
        *end = 0x5C;
        t.dtype = dtype;
        generator_fill(&g, 1, &t, 1);
        require(*end == 0x5C);
    }
}

static void check_lists(const char *text)
{
    const char *rest = text;
    struct show show;
    struct why why = {""};
    char item[64];
    size_t items = 0, commas = 0;

    for (const char *c = text; *c != '\0'; c++)
        commas += *c == ',';
    while (list_next(&rest, item, sizeof item))
        items++;
    require(items == commas + 1);
    if (!is_good(show_parse(text, &show, &why), &why))
        return;
    require(show.count >= 0 && show.rank >= 0 && show.rank <= GPURUN_RANK_MAX);
    require(show.rank == 0 || (size_t)show.rank == items);
    for (int i = 0; i < show.rank; i++)
        require(show.index[i] >= 0);
}

/* The values of a sweep, written as a list, are the same values. */
static void check_sweep_again(const struct sweep *sweep)
{
    struct sweep again;
    struct why why;
    size_t length = 1;
    char *text, *end;

    for (size_t i = 0; i < sweep->count; i++)
        length += strlen(sweep->values[i]) + 1;
    text = end = allocate(length, 1);
    for (size_t i = 0; i < sweep->count; i++) {
        require(sweep->values[i][0] != '\0' && is_trimmed(sweep->values[i]));
        end = stpcpy(end, i ? "," : "");
        end = stpcpy(end, sweep->values[i]);
    }
    require(sweep_parse(text, false, &again, &why) == GPURUN_OK && again.count == sweep->count);
    for (size_t i = 0; i < sweep->count; i++)
        require(strcmp(again.values[i], sweep->values[i]) == 0);
    sweep_free(&again);
    free(text);
}

static void check_sweep(const char *text, bool ranges)
{
    struct sweep sweep;
    struct why why = {""};

    if (is_good(sweep_parse(text, ranges, &sweep, &why), &why)) {
        require(sweep.count > 0 && sweep.count <= SWEEP_MAX);
        require(sweep.count == 1 || sweep_is_one(text, ranges));
        check_sweep_again(&sweep);
    }
    sweep_free(&sweep);
}

/* A text whose every dollar is doubled stands for itself. */
static void check_variables(const char *text)
{
    char *doubled = allocate(2 * strlen(text) + 1, 1), *end = doubled, *value = NULL;
    struct why why = {""};

    if (is_good(variables_expand(text, &value, &why), &why))
        require(strpbrk(value, "\r\n") == NULL);
    free(value);
    for (const char *c = text; *c != '\0'; c++) {
        *end++ = *c;
        if (*c == '$')
            *end++ = *c;
    }
    require(variables_expand(doubled, &value, &why) == GPURUN_OK && strcmp(value, text) == 0);
    free(value);
    free(doubled);
}

static void check_key(const char *key)
{
    const char *const *names = core_key_names();
    const char *nearest = value_nearest(key, names);
    bool is_one = nearest == NULL;

    for (size_t i = 0; names[i] != NULL; i++) {
        is_one = is_one || names[i] == nearest;
        require(strcmp(names[i], key) != 0 || (nearest == names[i] && core_knows(key)));
    }
    require(is_one);
}

static void check_section_values(const struct section *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const char *text = s->entries[i].value;

        check_key(s->entries[i].key);
        check_numbers(text);
        check_options(text);
        check_generator(text);
        check_lists(text);
        check_sweep(text, true);
        check_sweep(text, false);
        check_variables(text);
    }
}

/* --- plans --------------------------------------------------------------------------------------------- */

/* A job's name is its section's, and of a sweep the values behind it; no list is left in it. */
static void check_job(const struct job *job)
{
    char *start = format_text("%s:%s", job->where.file, job->section);
    const size_t length = strlen(start);
    bool swept = false;

    require(strncmp(job->name, start, length) == 0);
    for (size_t i = 0; i < job->setting_count; i++) {
        const struct setting *s = &job->settings[i];
        char *value = format_text("%s=%s", s->key, s->text);

        require(!job_key_can_sweep(s->key) || !sweep_is_one(s->text, !job_key_is_input(s->key)));
        swept = swept || strstr(job->name + length, value) != NULL;
        free(value);
    }
    require(job->name[length] == (swept ? '/' : '\0'));
    free(start);
}

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(*x, *y);
}

static void check_names(const struct plan *plan)
{
    const char **names = allocate(plan->count, sizeof *names);

    for (size_t i = 0; i < plan->count; i++)
        names[i] = plan->jobs[i].name;
    qsort(names, plan->count, sizeof *names, compare_names);
    for (size_t i = 1; i < plan->count; i++)
        require(strcmp(names[i - 1], names[i]) != 0);
    free(names);
}

/* Where the part that starts at `data` ends: before a line of %%%, or at `end`. */
static const char *end_of_part(const char *data, const char *end)
{
    const char *mark = memmem(data, (size_t)(end - data), "\n%%%\n", 5);

    return mark ? mark + 1 : end;
}

/* Whether all values of all sweeps of a file would make too many jobs for a fuzzer's round. */
static bool is_heavy(const struct jobfile *file)
{
    size_t jobs = 1;

    for (size_t i = 0; i < file->count; i++)
        for (size_t k = 0; k < file->sections[i].count && jobs <= JOBS_AFFORDED; k++) {
            struct sweep sweep;
            struct why why;

            if (sweep_parse(file->sections[i].entries[k].value, true, &sweep, &why) == GPURUN_OK)
                jobs *= sweep.count;
            sweep_free(&sweep);
        }
    return jobs > JOBS_AFFORDED;
}

static void check_plan(const char *data, size_t size)
{
    static const char *const paths[FILES] = {"x.ini", "y.ini", "z.ini"};
    const char *end = data + size;
    struct plan plan = {.count = 0};
    struct faults faults = {0};
    bool heavy = false;

    for (int i = 0; i < FILES && data < end; i++) {
        const char *part_end = i + 1 < FILES ? end_of_part(data, end) : end;
        const size_t before = faults.count;
        struct jobfile file;

        jobfile_parse(paths[i], data, (size_t)(part_end - data), &file, &faults);
        heavy = heavy || is_heavy(&file);
        sources_add(&plan.sources, &file, faults.count > before);
        data = part_end < end ? part_end + 4 : end;
    }
    if (!heavy)
        plan_make(NULL, 0, NULL, &plan, &faults);
    for (size_t i = 0; i < plan.count; i++)
        check_job(&plan.jobs[i]);
    if (faults.count == 0)
        check_names(&plan);
    plan_free(&plan);
    faults_free(&faults);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int lines = count_lines(data, size);
    struct jobfile file;
    struct faults faults = {0};
    size_t globals = 0;
    int line = 0;

    setenv("LIST", "1, 2..8*2", 1);
    unsetenv("NONE");
    jobfile_parse("x.ini", (const char *)data, size, &file, &faults);
    check_faults(&faults, lines);
    for (size_t i = 0; i < file.count; i++) {
        check_section(&file.sections[i], &line, lines);
        check_section_values(&file.sections[i]);
        globals += section_is_global(&file.sections[i]);
    }
    require(globals == file.global_count);
    jobfile_free(&file);
    faults_free(&faults);
    check_plan((const char *)data, size);
    return 0;
}
