/* The plan of job.h: from sections to jobs, and what no two jobs may share. */
#include "plan/job.h"

#include "job/memory.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* --- clashes between files --- */

enum use { AS_OUTPUT, AS_INPUT, AS_BASELINE, AS_JOB_FILE };

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
    char *resolved = job_resolved_path(path);

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

static void add_baseline_use(struct path_uses *uses, const struct job *job)
{
    char *path = job_baseline_path(job);

    if (path != NULL)
        add_use(uses, path,
                &(struct path_use){.key = "baseline",
                                   .text = job->core.baseline,
                                   .where = job_origin(job, "baseline"),
                                   .use = AS_BASELINE});
    free(path);
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
        add_baseline_use(&uses, &plan->jobs[i]);
    }
    for (size_t i = 0; i < plan->sources.count; i++) {
        const char *path = plan->sources.list[i]->file.path;

        add_use(&uses, path, &(struct path_use){.where = {path, 0}, .use = AS_JOB_FILE});
    }
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
        faults_add(
            faults, written->where, written->key,
            "%s is written by more than one job: give each a section and an output of its own",
            written->text);
    else
        faults_add(faults, written->where, written->key,
                   "%s is also %s of %s: give it a name of its own", written->text,
                   other->use == AS_OUTPUT     ? "an output"
                   : other->use == AS_BASELINE ? "the baseline"
                                               : "an input",
                   place);
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

void plan_check_records(const struct plan *plan, const char *option, const char *path,
                        struct faults *faults)
{
    const struct path_use records = {.text = path, .where = {option, 0}, .use = AS_OUTPUT};
    struct path_uses uses = list_uses(plan);
    char *resolved = job_resolved_path(path);

    /* Records may be appended to a baseline: it is read before. */
    for (size_t i = 0; resolved != NULL && i < uses.count; i++)
        if (strcmp(uses.list[i].path, resolved) == 0 &&
            !(uses.list[i].use == AS_BASELINE && strcmp(option, "--records") == 0))
            add_clash(&records, &uses.list[i], faults);
    free(resolved);
    free_uses(&uses);
}

/* --- the jobs of a section --- */

static void gather_settings(const struct sources *sources, size_t source,
                            const struct section *section, const struct override *overrides,
                            size_t override_count, struct settings *out)
{
    const char *path = sources->list[source]->file.path;

    sources_defaults(sources, source, out);
    for (size_t k = 0; k < section->count; k++)
        settings_put(out, &(struct setting){.key = section->entries[k].key,
                                            .text = section->entries[k].value,
                                            .where = {path, section->entries[k].line}});
    for (size_t i = 0; i < override_count; i++)
        settings_put(out, &(struct setting){.key = overrides[i].key,
                                            .text = overrides[i].value,
                                            .where = {"-s", 0},
                                            .shared = true});
}

/* What the command line says of all files. */
struct request {
    const struct override *overrides;
    size_t override_count;
    const char *only;
};

static bool is_wanted(const struct request *r, const char *section_name, const char *name)
{
    return r->only == NULL || fnmatch(r->only, section_name, 0) == 0 ||
           fnmatch(r->only, name, 0) == 0;
}

/* False where no job of the section can be wanted, whatever its sweeps make: what is not is not judged. */
static bool may_be_wanted(const struct request *r, const char *section_name)
{
    const size_t length = strlen(section_name);
    const size_t plain = r->only ? strcspn(r->only, "*?[\\") : 0;

    if (plain > length)
        return strncmp(r->only, section_name, length) == 0 && r->only[length] == '/';
    return plain == 0 || (strncmp(r->only, section_name, plain) == 0 &&
                          (plain == length || r->only[plain] != '\0'));
}

/* Where two files as near as each other set a key, which one holds would be a matter of order. */
static void check_rivals(const struct job *job, struct faults *faults)
{
    char first[600], second[600];

    for (size_t i = 0; i < job->setting_count; i++) {
        const struct setting *s = &job->settings[i];

        if (s->rival.file != NULL)
            faults_add(faults, job->where, s->key, "%s and %s both set it for [%s]: set it here",
                       origin_text(s->where, first, sizeof first),
                       origin_text(s->rival, second, sizeof second), job->section);
    }
}

/* Takes over `name`; the settings are copied. */
static void add_job(struct plan *plan, char *name, const struct section *section,
                    struct origin where, const struct settings *settings, struct faults *faults)
{
    struct job *job;

    plan->jobs = grow(plan->jobs, plan->count, sizeof *plan->jobs);
    job = &plan->jobs[plan->count++];
    *job = (struct job){.name = name,
                        .section = section->name,
                        .where = where,
                        .settings = allocate(settings->count, sizeof *job->settings),
                        .setting_count = settings->count};
    if (settings->count > 0)
        memcpy(job->settings, settings->list, settings->count * sizeof *job->settings);
    check_rivals(job, faults);
    job_resolve(job, faults);
}

/* The jobs of a section's grid that are wanted. */
static void add_grid(struct plan *plan, const struct section *section, struct origin where,
                     const struct request *r, struct settings *settings, const struct grid *grid,
                     struct faults *faults)
{
    char *section_name = format_text("%s:%s", where.file, section->name);

    for (size_t i = 0; i < grid->jobs; i++) {
        char *suffix = grid_name(grid, settings, i);
        char *name = format_text("%s%s", section_name, suffix);

        free(suffix);
        if (is_wanted(r, section_name, name)) {
            grid_set(grid, settings, i);
            add_job(plan, name, section, where, settings, faults);
        } else {
            plan->is_partial = true;
            free(name);
        }
    }
    free(section_name);
}

/* Takes the sweeps of a section apart. */
static bool make_grid(const struct settings *settings, const struct section *section,
                      struct origin where, const struct request *r, struct grid *grid,
                      struct faults *faults)
{
    char *section_name = format_text("%s:%s", where.file, section->name);
    const bool judged = may_be_wanted(r, section_name);
    struct faults ignored = {NULL, 0};
    const bool made = grid_make(settings, section->name, where, grid, judged ? faults : &ignored);

    faults_free(&ignored);
    free(section_name);
    return made;
}

/* Adds the jobs of one section; returns how many it makes, wanted or not. */
static size_t add_section(struct plan *plan, size_t source, const struct section *section,
                          const struct request *r, struct faults *faults)
{
    const struct origin where = {plan->sources.list[source]->file.path, section->line};
    struct settings settings = {NULL, 0};
    struct grid grid;
    size_t jobs = 1;

    gather_settings(&plan->sources, source, section, r->overrides, r->override_count, &settings);
    if (make_grid(&settings, section, where, r, &grid, faults)) {
        add_grid(plan, section, where, r, &settings, &grid, faults);
        jobs = grid.jobs;
    } else {
        plan->is_partial = true;
    }
    if (grid.axis_count > 0) {
        plan->grids = grow(plan->grids, plan->grid_count, sizeof *plan->grids);
        plan->grids[plan->grid_count++] = grid;
    } else {
        grid_free(&grid);
    }
    settings_free(&settings);
    return jobs;
}

/* Adds the jobs of what a file includes, then its own; returns how many there are, wanted or not. */
static size_t add_source(struct plan *plan, size_t index, const struct request *r,
                         struct faults *faults)
{
    struct source *source = plan->sources.list[index];
    size_t jobs = 0, own = 0;

    if (source->is_taken)
        return 0;
    source->is_taken = true;
    for (size_t i = 0; i < source->includes.count; i++)
        jobs += add_source(plan, source->includes.list[i], r, faults);
    for (size_t k = 0; k < source->file.count && own <= SWEEP_MAX; k++)
        if (!section_is_global(&source->file.sections[k]))
            own += add_section(plan, index, &source->file.sections[k], r, faults);
    if (own > SWEEP_MAX)
        faults_add(faults, (struct origin){source->file.path, 0}, NULL,
                   "makes more than %d jobs: part it into several files", (int)SWEEP_MAX);
    return jobs + own;
}

static void check_command_line(char *const *paths, size_t path_count, struct faults *faults)
{
    for (size_t i = 0; i < path_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(paths[i], paths[k]) == 0)
                faults_add(faults, (struct origin){paths[i], 0}, NULL, "given twice");
            else if (is_same_file(paths[i], paths[k]))
                faults_add(faults, (struct origin){paths[i], 0}, NULL,
                           "given twice: it is the same file as %s", paths[k]);
}

static void check_overrides(const struct override *overrides, size_t count, struct faults *faults)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(overrides[i].key, "include") == 0)
            faults_add(faults, (struct origin){"-s", 0}, "include",
                       "belongs in a job file: name the file itself here");
        for (size_t k = 0; k < i; k++)
            if (strcmp(overrides[i].key, overrides[k].key) == 0)
                faults_add(faults, (struct origin){"-s", 0}, overrides[i].key, "given twice");
    }
}

static int compare_names(const void *a, const void *b)
{
    const struct job *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

/* A section may be called what a sweep makes of another's name. */
static void check_names(const struct plan *plan, struct faults *faults)
{
    const struct job **sorted = allocate(plan->count, sizeof *sorted);
    char place[600];

    for (size_t i = 0; i < plan->count; i++)
        sorted[i] = &plan->jobs[i];
    qsort(sorted, plan->count, sizeof *sorted, compare_names);
    for (size_t i = 1; i < plan->count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            faults_add(faults, sorted[i]->where, NULL,
                       "%s is also a job of %s: a job's name must be its own", sorted[i]->name,
                       origin_text(sorted[i - 1]->where, place, sizeof place));
    free(sorted);
}

static void check_empty(const struct plan *plan, size_t given, struct faults *faults)
{
    for (size_t i = 0; i < given; i++) {
        const struct source *source = plan->sources.list[i];

        if (!source->is_faulty && !sources_hold_jobs(&plan->sources, i))
            faults_add(faults, (struct origin){source->file.path, 0}, NULL,
                       "holds no job: write a section, [name], with its keys below it");
    }
}

void plan_make(const struct override *overrides, size_t override_count, const char *only,
               struct plan *plan, struct faults *faults)
{
    const struct request request = {overrides, override_count, only};
    const size_t given = plan->sources.count;
    const size_t before = faults->count;
    size_t jobs = 0;

    sources_read_includes(&plan->sources, faults);
    for (size_t i = 0; i < given; i++)
        jobs += add_source(plan, i, &request, faults);
    check_empty(plan, given, faults);
    if (only != NULL && plan->count == 0 && jobs > 0 && faults->count == before)
        faults_add(faults, (struct origin){"--only", 0}, NULL,
                   "'%s' matches none of %zu jobs; names are file:section", only, jobs);
    if (faults->count == 0)
        check_names(plan, faults);
    check_clashes(plan, faults);
}

void plan_read(char *const *paths, size_t path_count, const struct override *overrides,
               size_t override_count, const char *only, struct plan *plan, struct faults *faults)
{
    *plan = (struct plan){.count = 0};
    check_command_line(paths, path_count, faults);
    check_overrides(overrides, override_count, faults);
    for (size_t i = 0; i < path_count; i++) {
        const size_t before = faults->count;
        struct jobfile file;

        jobfile_read(paths[i], &file, faults);
        sources_add(&plan->sources, &file, faults->count > before);
    }
    plan_make(overrides, override_count, only, plan, faults);
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
    for (size_t i = 0; i < plan->grid_count; i++)
        grid_free(&plan->grids[i]);
    free(plan->grids);
    sources_free(&plan->sources);
    *plan = (struct plan){.count = 0};
}
