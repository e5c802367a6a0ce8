#include "plan/job.h"

#include "job/memory.h"
#include "job/value.h"
#include "run/generate.h"
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FIELD(name) offsetof(struct core_options, name)

const char *const memory_names[] = {"explicit", "pinned", "zerocopy", "managed", NULL};
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
     .def = "20",
     .min = 1,
     .max = 1e6,
     .unit = "rounds",
     .help = "timed rounds at the least"},
    {.name = "warmup",
     .type = GPURUN_OPTION_INT,
     .offset = FIELD(warmup),
     .def = "3",
     .min = 0,
     .max = 1e6,
     .unit = "runs",
     .help = "untimed runs of every case before the rounds"},
    {.name = "min_time",
     .type = GPURUN_OPTION_DURATION,
     .offset = FIELD(min_time),
     .def = "0s",
     .min = 0,
     .max = 1e6,
     .help = "go on with rounds for so long"},
    {.name = "max_time",
     .type = GPURUN_OPTION_DURATION,
     .offset = FIELD(max_time),
     .def = "60s",
     .min = 0,
     .max = 1e6,
     .help = "stop the rounds after so long, whatever repeat says"},
    {.name = "timeout",
     .type = GPURUN_OPTION_DURATION,
     .offset = FIELD(timeout),
     .def = "10m",
     .min = 0.01,
     .max = 1e7,
     .help = "a job that takes longer is stopped; the case then running is lost"},
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
};

const struct option_table core_options_table = {
    .rows = core_rows, .count = GPURUN_COUNT(core_rows), .stride = sizeof core_rows[0]};

const char *const *core_key_names(void)
{
    static const char *names[GPURUN_COUNT(core_rows) + 3];

    for (uint32_t i = 0; i < GPURUN_COUNT(core_rows); i++)
        names[i] = core_rows[i].name;
    names[GPURUN_COUNT(core_rows)] = "input";
    names[GPURUN_COUNT(core_rows) + 1] = "output";
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
           is_binding(key, "output", &tensor);
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

static void add_setting(struct job *job, const char *key, const char *text, struct origin where,
                        bool shared)
{
    for (size_t i = 0; i < job->setting_count; i++)
        if (strcmp(job->settings[i].key, key) == 0) {
            job->settings[i].text = text;
            job->settings[i].where = where;
            job->settings[i].shared = shared && job->settings[i].shared;
            return;
        }
    job->settings = grow(job->settings, job->setting_count, sizeof *job->settings);
    job->settings[job->setting_count++] =
        (struct setting){.key = key, .text = text, .where = where, .shared = shared};
}

static void gather_settings(struct job *job, const struct jobfile *file,
                            const struct section *section, const struct override *overrides,
                            size_t override_count)
{
    for (size_t i = 0; i < file->global_count; i++) {
        const struct section *s = &file->sections[file->globals[i]];

        for (size_t k = 0; k < s->count; k++)
            add_setting(job, s->entries[k].key, s->entries[k].value,
                        (struct origin){file->path, s->entries[k].line}, true);
    }
    for (size_t k = 0; k < section->count; k++)
        add_setting(job, section->entries[k].key, section->entries[k].value,
                    (struct origin){file->path, section->entries[k].line}, false);
    for (size_t i = 0; i < override_count; i++)
        add_setting(job, overrides[i].key, overrides[i].value, (struct origin){"-s", 0}, true);
}

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
            faults_add(faults, s->where, s->key, "%s", why.text);
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

/* The path that `path` will have once written: its folder resolved, its last name kept. NULL: no folder. */
static char *resolved_path(const char *path)
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
    char *resolved = resolved_path(b->text);
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

static void check_times(const struct job *job, struct faults *faults)
{
    if (job->core.min_time > job->core.max_time)
        faults_add(faults, job_origin(job, "min_time"), "min_time", "%gs is above max_time (%gs)",
                   job->core.min_time, job->core.max_time);
}

static void check_job(const struct job *job, struct faults *faults)
{
    struct show show;
    struct why why;

    if (job->core.plugin[0] == '\0')
        faults_add(faults, job->where, "plugin",
                   "[%s] names no plugin: write plugin = NAME (gpurun list "
                   "shows them)",
                   job->name + strlen(job->where.file) + 1);
    check_device(job, faults);
    check_times(job, faults);
    if (show_parse(job->core.show, &show, &why) != GPURUN_OK)
        faults_add(faults, job_origin(job, "show"), "show", "%s", why.text);
    for (size_t i = 0; i < job->input_count; i++)
        check_input(&job->inputs[i], faults);
    for (size_t i = 0; i < job->output_count; i++)
        check_output(&job->outputs[i], faults);
}

/* --- clashes between files --- */

enum use { AS_OUTPUT, AS_INPUT, AS_JOB_FILE };

struct path_use {
    char *path;
    const char *key, *text;
    struct origin where;
    enum use use;
};

struct path_uses {
    struct path_use *list;
    size_t count;
};

static int compare_uses(const void *a, const void *b)
{
    const struct path_use *x = a, *y = b;
    const int order = strcmp(x->path, y->path);

    if (order != 0 || x->use != y->use)
        return order != 0 ? order : (int)x->use - (int)y->use;
    return (x->where.line > y->where.line) - (x->where.line < y->where.line);
}

static void add_use(struct path_uses *uses, const char *path, const struct path_use *use)
{
    char *resolved = resolved_path(path);

    if (resolved == NULL)
        return;
    uses->list = grow(uses->list, uses->count, sizeof *uses->list);
    uses->list[uses->count] = *use;
    uses->list[uses->count++].path = resolved;
}

static void add_binding_use(struct path_uses *uses, const struct binding *b, enum use use)
{
    const bool is_file = use == AS_OUTPUT || strncmp(b->text, "file:", 5) == 0;

    if (is_file)
        add_use(uses, use == AS_OUTPUT ? b->text : b->text + 5,
                &(struct path_use){.key = b->key, .text = b->text, .where = b->where, .use = use});
}

/* Every file that the plan reads or writes, sorted by path; of one path the outputs come first. */
static struct path_uses list_uses(const struct plan *plan)
{
    struct path_uses uses = {NULL, 0};

    for (size_t i = 0; i < plan->count; i++) {
        for (size_t k = 0; k < plan->jobs[i].input_count; k++)
            add_binding_use(&uses, &plan->jobs[i].inputs[k], AS_INPUT);
        for (size_t k = 0; k < plan->jobs[i].output_count; k++)
            add_binding_use(&uses, &plan->jobs[i].outputs[k], AS_OUTPUT);
    }
    for (size_t i = 0; i < plan->file_count; i++)
        add_use(&uses, plan->files[i].path,
                &(struct path_use){.where = {plan->files[i].path, 0}, .use = AS_JOB_FILE});
    if (uses.count > 0)
        qsort(uses.list, uses.count, sizeof *uses.list, compare_uses);
    return uses;
}

static void free_uses(struct path_uses *uses)
{
    for (size_t i = 0; i < uses->count; i++)
        free(uses->list[i].path);
    free(uses->list);
}

/* `written` is to be written although `other` has a claim on the same file. */
static void add_clash(const struct path_use *written, const struct path_use *other,
                      struct faults *faults)
{
    const bool same_line = written->where.line > 0 && written->where.line == other->where.line &&
                           written->where.file == other->where.file;
    char place[600];

    origin_text(other->where, place, sizeof place);
    if (other->use == AS_JOB_FILE)
        faults_add(faults, written->where, written->key,
                   "%s is the job file %s: give it a name of its own", written->text, place);
    else if (same_line)
        faults_add(faults, written->where, written->key,
                   "%s is written by more than one job: set it in each", written->text);
    else
        faults_add(faults, written->where, written->key,
                   "%s is also %s of %s: give it a name of its own", written->text,
                   other->use == AS_OUTPUT ? "an output" : "an input", place);
}

/* An output may not be an input, nor another output, of any job: which bytes it held would be chance. */
static void check_clashes(const struct plan *plan, struct faults *faults)
{
    struct path_uses uses = list_uses(plan);

    for (size_t i = 0, first = 0; i < uses.count; i++) {
        if (strcmp(uses.list[i].path, uses.list[first].path) != 0)
            first = i;
        if (i != first && uses.list[first].use == AS_OUTPUT)
            add_clash(&uses.list[first], &uses.list[i], faults);
    }
    free_uses(&uses);
}

void plan_check_records(const struct plan *plan, const char *path, struct faults *faults)
{
    const struct path_use records = {.text = path, .where = {"--records", 0}, .use = AS_OUTPUT};
    struct path_uses uses = list_uses(plan);
    char *resolved = resolved_path(path);

    for (size_t i = 0; resolved != NULL && i < uses.count; i++)
        if (strcmp(uses.list[i].path, resolved) == 0)
            add_clash(&records, &uses.list[i], faults);
    free(resolved);
    free_uses(&uses);
}

/* --- the plan --- */

static void add_job(struct plan *plan, const struct jobfile *file, const struct section *section,
                    const struct override *overrides, size_t override_count, struct faults *faults)
{
    struct job *job;

    plan->jobs = grow(plan->jobs, plan->count, sizeof *plan->jobs);
    job = &plan->jobs[plan->count++];
    *job = (struct job){.name = format_text("%s:%s", file->path, section->name),
                        .where = {file->path, section->line}};
    gather_settings(job, file, section, overrides, override_count);
    parse_core_keys(job, faults);
    check_job(job, faults);
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static void check_command_line(char *const *paths, size_t path_count,
                               const struct override *overrides, size_t count,
                               struct faults *faults)
{
    for (size_t i = 0; i < path_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(paths[i], paths[k]) == 0)
                faults_add(faults, (struct origin){paths[i], 0}, NULL, "given twice");
            else if (is_same_file(paths[i], paths[k]))
                faults_add(faults, (struct origin){paths[i], 0}, NULL,
                           "given twice: it is the same file as %s", paths[k]);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(overrides[i].key, overrides[k].key) == 0)
                faults_add(faults, (struct origin){"-s", 0}, overrides[i].key, "given twice");
}

void plan_read(char *const *paths, size_t path_count, const struct override *overrides,
               size_t override_count, const char *only, struct plan *plan, struct faults *faults)
{
    size_t sections = 0;
    char *name;

    *plan =
        (struct plan){.files = allocate(path_count, sizeof *plan->files), .file_count = path_count};
    check_command_line(paths, path_count, overrides, override_count, faults);
    for (size_t i = 0; i < path_count; i++) {
        struct jobfile *file = &plan->files[i];
        const size_t faults_before = faults->count;
        size_t jobs = 0;

        jobfile_read(paths[i], file, faults);
        for (size_t k = 0; k < file->count; k++) {
            if (section_is_global(&file->sections[k]))
                continue;
            jobs++;
            name = format_text("%s:%s", file->path, file->sections[k].name);
            if (only == NULL || fnmatch(only, name, 0) == 0)
                add_job(plan, file, &file->sections[k], overrides, override_count, faults);
            else
                plan->is_partial = true;
            free(name);
        }
        if (jobs == 0 && faults->count == faults_before)
            faults_add(faults, (struct origin){file->path, 0}, NULL,
                       "holds no job: write a section, [name], with its keys below it");
        sections += jobs;
    }
    if (only != NULL && plan->count == 0 && sections > 0)
        faults_add(faults, (struct origin){"--only", 0}, NULL,
                   "'%s' matches none of %zu jobs; names are file:section", only, sections);
    check_clashes(plan, faults);
}

void plan_free(struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->jobs[i].name);
        free(plan->jobs[i].settings);
        free(plan->jobs[i].inputs);
        free(plan->jobs[i].outputs);
    }
    free(plan->jobs);
    for (size_t i = 0; i < plan->file_count; i++)
        jobfile_free(&plan->files[i]);
    free(plan->files);
    *plan = (struct plan){0};
}
