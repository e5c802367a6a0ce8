/*
 * Fuzzes the text of job files: sections and keys, then every value through every parser of values. Nothing
 * touches the disk. What is taken is held against what jobfile.h, value.h and option.h promise.
 */
#include "job/jobfile.h"
#include "job/value.h"
#include "plan/job.h"
#include "run/generate.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ELEMS = 5 };

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

    if ((row->min != 0 || row->max != 0) &&
        !((row->flags & GPURUN_OPTION_AUTO) && *(const int64_t *)field == GPURUN_AUTO))
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
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int lines = count_lines(data, size);
    struct jobfile file;
    struct faults faults = {0};
    size_t globals = 0;
    int line = 0;

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
    return 0;
}
