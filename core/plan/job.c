#include "plan/job.h"

#include "job/memory.h"
#include "job/value.h"
#include "run/generate.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FIELD(name) offsetof(struct core_options, name)

const char *const memory_names[] = {"explicit", "pinned", "zerocopy", "managed", NULL};
const char *const cache_names[] = {"hot", "cold", NULL};
const char *const launch_names[] = {"stream", "graph", NULL};
static const char *const verify_choices[] = {"auto", "full", "certify", "off", NULL};

static const struct gpurun_option core_rows[] = {
    {.name = "plugin",
     .type = GPURUN_OPTION_TEXT,
     .offset = FIELD(plugin),
     .def = "",
     .help = "the algorithm to run; required"},
    {.name = "variant",
     .type = GPURUN_OPTION_TEXT,
     .offset = FIELD(variant),
     .def = "auto",
     .help = "GPU implementations: auto (the best), all, or a list a, b, c"},
    {.name = "device",
     .type = GPURUN_OPTION_TEXT,
     .offset = FIELD(device),
     .def = "auto",
     .help = "auto (a GPU where there is one), gpu (fail without), cpu, or a device number"},
    {.name = "memory",
     .type = GPURUN_OPTION_CHOICE,
     .offset = FIELD(memory),
     .def = "auto",
     .choices = memory_names,
     .flags = GPURUN_OPTION_AUTO,
     .help = "how bytes travel; auto is the plugin's default"},
    {.name = "prefetch",
     .type = GPURUN_OPTION_BOOL,
     .offset = FIELD(prefetch),
     .def = "no",
     .help = "managed memory: move pages ahead of the kernel"},
    {.name = "seed",
     .type = GPURUN_OPTION_INT,
     .offset = FIELD(seed),
     .def = "1",
     .min = 0,
     .max = 9.2e18,
     .help = "of the input generators and of the order within rounds"},
    {.name = "offset",
     .type = GPURUN_OPTION_INT,
     .offset = FIELD(offset),
     .def = "0",
     .min = 0,
     .max = 1 << 20,
     .unit = "elements",
     .help = "start every tensor so far into its allocation"},
    {.name = "cpu",
     .type = GPURUN_OPTION_BOOL,
     .offset = FIELD(cpu),
     .def = "on",
     .help = "run the CPU baseline too"},
    {.name = "threads",
     .type = GPURUN_OPTION_INT,
     .offset = FIELD(threads),
     .def = "auto",
     .min = 1,
     .max = 4096,
     .flags = GPURUN_OPTION_AUTO,
     .help = "CPU threads; auto is all that this process may use"},
    {.name = "verify",
     .type = GPURUN_OPTION_CHOICE,
     .offset = FIELD(verify),
     .def = "auto",
     .choices = verify_choices,
     .help = "proof: full reference, certificate, auto by cost, or off"},
    {.name = "repeat",
     .type = GPURUN_OPTION_INT,
     .offset = FIELD(repeat),
     .def = "auto",
     .min = 1,
     .max = 1e6,
     .unit = "rounds",
     .flags = GPURUN_OPTION_AUTO,
     .help = "timed rounds; auto: until the medians are known to 0.5 %, 10 at the least"},
    {.name = "warmup",
     .type = GPURUN_OPTION_INT,
     .offset = FIELD(warmup),
     .def = "auto",
     .min = 0,
     .max = 1e6,
     .unit = "runs",
     .flags = GPURUN_OPTION_AUTO,
     .help = "untimed runs of every case before; auto: 3, then until times are steady"},
    {.name = "min_time",
     .type = GPURUN_OPTION_DURATION,
     .offset = FIELD(min_time),
     .def = "auto",
     .min = 0,
     .max = 1e6,
     .flags = GPURUN_OPTION_AUTO,
     .help = "go on with rounds for so long; auto: 0.5s where repeat is auto, else 0s"},
    {.name = "max_time",
     .type = GPURUN_OPTION_DURATION,
     .offset = FIELD(max_time),
     .def = "60s",
     .min = 0,
     .max = 1e6,
     .help = "stop the rounds after so long, whatever repeat says"},
    {.name = "cache",
     .type = GPURUN_OPTION_CHOICE,
     .offset = FIELD(cache),
     .def = "hot",
     .choices = cache_names,
     .help = "before each timed run: as runs before it left it, or overwritten"},
    {.name = "launch",
     .type = GPURUN_OPTION_CHOICE,
     .offset = FIELD(launch),
     .def = "stream",
     .choices = launch_names,
     .help = "a timed run is one on the stream, or many in one CUDA graph, divided"},
    {.name = "samples",
     .type = GPURUN_OPTION_BOOL,
     .offset = FIELD(samples),
     .def = "no",
     .help = "put every sample into the record"},
    {.name = "timeout",
     .type = GPURUN_OPTION_DURATION,
     .offset = FIELD(timeout),
     .def = "10m",
     .min = 0.01,
     .max = 1e7,
     .help = "a job that takes longer is stopped; the case then running is lost"},
    {.name = "retries",
     .type = GPURUN_OPTION_INT,
     .offset = FIELD(retries),
     .def = "0",
     .min = 0,
     .max = 100,
     .help = "try a case that crashed, timed out or could not run so many times again"},
    {.name = "baseline",
     .type = GPURUN_OPTION_TEXT,
     .offset = FIELD(baseline),
     .def = "none",
     .help = "compare with the records of this file, relative to the job file"},
    {.name = "show",
     .type = GPURUN_OPTION_TEXT,
     .offset = FIELD(show),
     .def = "0",
     .help = "print so many first elements of every output, or the one at i,j"},
    {.name = "picture_limit",
     .type = GPURUN_OPTION_INT,
     .offset = FIELD(picture_limit),
     .def = "1Gi",
     .min = 1,
     .max = 9.2e18,
     .unit = "bytes",
     .help = "refuse pictures that would be larger once decoded"},
    {.name = "memory_limit",
     .type = GPURUN_OPTION_INT,
     .offset = FIELD(memory_limit),
     .def = "auto",
     .min = 1 << 20,
     .max = 9.2e18,
     .flags = GPURUN_OPTION_AUTO,
     .unit = "bytes",
     .help = "stop a worker that takes more host memory; auto is nine tenths of what is free"},
};

const struct option_table core_options_table = {
    .rows = core_rows, .count = GPURUN_COUNT(core_rows), .stride = sizeof core_rows[0]};

const char *const *core_key_names(void)
{
    static const char *const others[] = {"input", "output", "zip", "include"};
    static const char *names[GPURUN_COUNT(core_rows) + GPURUN_COUNT(others) + 1];

    for (uint32_t i = 0; i < GPURUN_COUNT(core_rows); i++)
        names[i] = core_rows[i].name;
    for (uint32_t i = 0; i < GPURUN_COUNT(others); i++)
        names[GPURUN_COUNT(core_rows) + i] = others[i];
    return names;
}

/* "input" or "input.NAME": NAME or "" through *tensor; false for any other key. */
static bool is_binding(const char *key, const char *role, const char **tensor)
{
    const size_t length = strlen(role);

    if (strncmp(key, role, length) != 0 || (key[length] != '\0' && key[length] != '.'))
        return false;
    *tensor = key[length] == '.' ? key + length + 1 : NULL;
    return true;
}

bool core_knows(const char *key)
{
    const char *tensor;

    return option_find(&core_options_table, key) != NULL || is_binding(key, "input", &tensor) ||
           is_binding(key, "output", &tensor) || strcmp(key, "zip") == 0 ||
           strcmp(key, "include") == 0;
}

bool job_key_is_input(const char *key)
{
    const char *tensor;

    return is_binding(key, "input", &tensor);
}

bool job_key_can_sweep(const char *key)
{
    return !core_knows(key) || job_key_is_input(key) || strcmp(key, "memory") == 0 ||
           strcmp(key, "prefetch") == 0;
}

struct origin job_origin(const struct job *job, const char *key)
{
    for (size_t i = 0; key != NULL && i < job->setting_count; i++)
        if (strcmp(job->settings[i].key, key) == 0)
            return job->settings[i].where;
    return job->where;
}

bool list_next(const char **text, char *item, size_t size)
{
    const char *start = *text, *end;

    if (start == NULL)
        return false;
    end = strchr(start, ',');
    *text = end ? end + 1 : NULL;
    end = end ? end : start + strlen(start);
    while (start < end && isspace((unsigned char)*start))
        start++;
    while (end > start && isspace((unsigned char)end[-1]))
        end--;
    snprintf(item, size, "%.*s", (int)(end - start), start);
    return true;
}

enum gpurun_status show_parse(const char *text, struct show *show, struct why *why)
{
    const bool is_index = strchr(text, ',') != NULL;
    char item[400];
    int64_t number;

    *show = (struct show){0};
    while (list_next(&text, item, sizeof item)) {
        if (strlen(item) + 1 == sizeof item)
            return why_fail(why, GPURUN_INVALID, "'%.40s...' is too long for a number", item);
        GPURUN_TRY(value_parse_int(item, &number, why));
        if (number < 0 || show->rank == GPURUN_RANK_MAX)
            return why_fail(why, GPURUN_INVALID, "write a count (20) or one index (3,4)");
        show->index[show->rank++] = number;
    }
    if (!is_index) {
        show->rank = 0;
        show->count = show->index[0];
    }
    return GPURUN_OK;
}

/* --- one job's settings --- */

static void add_binding(struct binding **list, size_t *count, const struct setting *s,
                        const char *tensor)
{
    *list = grow(*list, *count, sizeof **list);
    (*list)[(*count)++] = (struct binding){
        .key = s->key, .tensor = tensor, .text = s->text, .where = s->where, .shared = s->shared};
}

static void parse_core_keys(struct job *job, struct faults *faults)
{
    const struct gpurun_option *row;
    const char *tensor;
    struct why why;

    option_set_defaults(&core_options_table, &job->core, &why);
    for (size_t i = 0; i < job->setting_count; i++) {
        const struct setting *s = &job->settings[i];

        if (is_binding(s->key, "input", &tensor))
            add_binding(&job->inputs, &job->input_count, s, tensor);
        else if (is_binding(s->key, "output", &tensor))
            add_binding(&job->outputs, &job->output_count, s, tensor);
        else if ((row = option_find(&core_options_table, s->key)) != NULL &&
                 option_set(row, s->text, &job->core, &why) != GPURUN_OK)
            faults_add(faults, s->where, s->key, "%s%s", why.text,
                       strchr(s->text, ',') || strstr(s->text, "..") ? "; it is no key to sweep"
                                                                     : "");
    }
}

/* --- checks that need no plugin --- */

static void check_device(const struct job *job, struct faults *faults)
{
    static const char *const words[] = {"auto", "cpu", "gpu", NULL};
    const char *text = job->core.device;
    int64_t index;
    struct why why;

    for (size_t i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0)
            return;
    if (value_parse_int(text, &index, &why) != GPURUN_OK || index < 0 || index > 1023)
        faults_add(faults, job_origin(job, "device"), "device",
                   "'%s' is not auto, cpu, gpu or a device number", text);
}

static void check_input(const struct binding *b, struct faults *faults)
{
    struct generator generator;
    struct stat info;
    struct why why;
    const char *path = b->text + 5;

    if (strncmp(b->text, "file:", 5) != 0) {
        if (generator_parse(b->text, &generator, &why) != GPURUN_OK)
            faults_add(faults, b->where, b->key, "%s", why.text);
    } else if (*path == '\0') {
        faults_add(faults, b->where, b->key, "names no file: write file:PATH");
    } else if (stat(path, &info) != 0) {
        faults_add(faults, b->where, b->key, "%s: %s", path, strerror(errno));
    } else if (S_ISDIR(info.st_mode)) {
        faults_add(faults, b->where, b->key, "%s is a folder: name a file", path);
    } else if (!S_ISREG(info.st_mode)) {
        faults_add(faults, b->where, b->key, "%s is not a regular file", path);
    }
}

char *job_resolved_path(const char *path)
{
    char folder[PATH_MAX], *real, *whole;
    const char *slash = strrchr(path, '/');

    if ((real = realpath(path, NULL)) != NULL)
        return real;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1,
             slash ? path : ".");
    if ((real = realpath(folder, NULL)) == NULL)
        return NULL;
    whole = format_text("%s/%s", real, slash ? slash + 1 : path);
    free(real);
    return whole;
}

static void check_output(const struct binding *b, struct faults *faults)
{
    struct stat info;
    char *resolved = job_resolved_path(b->text);
    const bool exists = stat(b->text, &info) == 0;

    if (strncmp(b->text, "file:", 5) == 0)
        faults_add(faults, b->where, b->key, "write the path alone, without file:");
    else if (resolved == NULL)
        faults_add(faults, b->where, b->key, "%s: its folder does not exist", b->text);
    else if (b->text[strlen(b->text) - 1] == '/' || (exists && S_ISDIR(info.st_mode)))
        faults_add(faults, b->where, b->key, "%s is a folder: name a file", b->text);
    else if (exists && !S_ISREG(info.st_mode))
        faults_add(faults, b->where, b->key, "%s is not a regular file: name another", b->text);
    free(resolved);
}

char *job_baseline_path(const struct job *job)
{
    const struct origin where = job_origin(job, "baseline");
    const char *slash = where.line > 0 ? strrchr(where.file, '/') : NULL;
    const char *name = job->core.baseline;

    if (strcmp(name, "none") == 0)
        return NULL;
    if (slash == NULL || name[0] == '/')
        return copy_text(name);
    return format_text("%.*s/%s", (int)(slash - where.file), where.file, name);
}

static void check_baseline(const struct job *job, struct faults *faults)
{
    const struct origin where = job_origin(job, "baseline");
    char *path = job_baseline_path(job);
    struct stat info;

    if (path != NULL && stat(path, &info) != 0)
        faults_add(faults, where, "baseline", "%s: %s: name a file of records", path,
                   strerror(errno));
    else if (path != NULL && S_ISDIR(info.st_mode))
        faults_add(faults, where, "baseline", "%s is a folder: name a file of records", path);
    free(path);
}

static void check_times(const struct job *job, struct faults *faults)
{
    if (job->core.min_time > job->core.max_time)
        faults_add(faults, job_origin(job, "min_time"), "min_time", "%gs is above max_time (%gs)",
                   job->core.min_time, job->core.max_time);
}

/* A plugin of a faulty name is not looked for. */
static void check_plugin(struct job *job, struct faults *faults)
{
    if (job->core.plugin[0] == '\0')
        faults_add(faults, job->where, "plugin",
                   "[%s] names no plugin: write plugin = NAME (gpurun list shows them)",
                   job->section);
    else if (strchr(job->core.plugin, ',') != NULL)
        faults_add(faults, job_origin(job, "plugin"), "plugin",
                   "'%s' is more than one: write a section for each", job->core.plugin);
    else
        return;
    job->core.plugin = "";
}

static void check_job(struct job *job, struct faults *faults)
{
    struct show show;
    struct why why;

    check_plugin(job, faults);
    check_device(job, faults);
    check_times(job, faults);
    check_baseline(job, faults);
    if (show_parse(job->core.show, &show, &why) != GPURUN_OK)
        faults_add(faults, job_origin(job, "show"), "show", "%s", why.text);
    for (size_t i = 0; i < job->input_count; i++)
        check_input(&job->inputs[i], faults);
    for (size_t i = 0; i < job->output_count; i++)
        check_output(&job->outputs[i], faults);
}

void job_resolve(struct job *job, struct faults *faults)
{
    parse_core_keys(job, faults);
    check_job(job, faults);
}
