#include "run/run.h"

#include "job/memory.h"
#include "job/value.h"
#include "run/compare.h"
#include "run/datafile.h"
#include "run/guard.h"
#include "run/library.h"
#include "run/record.h"
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char default_input[] = "uniform";

const char *case_status_name(enum case_status status)
{
    static const char *const names[] = {"passed",  "failed",      "error",         "crashed",
                                        "timeout", "unsupported", "out-of-memory", "interrupted"};
    return names[status];
}

double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum gpurun_status run_fail(struct run *run, enum gpurun_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(run->why.text, sizeof run->why.text, format, args);
    va_end(args);
    return status;
}

/* --- what the core does for a plugin --- */

static struct run *run_of(struct gpurun_ctx *ctx)
{
    return (struct run *)ctx;
}

static enum gpurun_status plugin_fail(struct gpurun_ctx *ctx, enum gpurun_status status,
                                      const char *key, const char *format, ...)
{
    struct run *run = run_of(ctx);
    char what[800];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (key != NULL)
        fault_format(run->why.text, sizeof run->why.text, job_origin(run->job, key), key, what);
    else if (status == GPURUN_INVALID)
        fault_format(run->why.text, sizeof run->why.text, run->job->where, NULL, what);
    else
        snprintf(run->why.text, sizeof run->why.text, "%s", what);
    return status;
}

static void plugin_wrong(struct gpurun_ctx *ctx, struct gpurun_proof *proof, const char *format,
                         ...)
{
    struct run_case *c = run_of(ctx)->judged;
    va_list args;

    if (c != NULL && proof->wrong < WRONG_SHOWN) {
        va_start(args, format);
        vsnprintf(c->wrong[proof->wrong], sizeof c->wrong[0], format, args);
        va_end(args);
    }
    proof->wrong++;
}

static void *plugin_library(struct gpurun_ctx *ctx, const char *const *sonames)
{
    struct why why;
    void *handle = library_open(sonames, &why);

    if (handle == NULL)
        plugin_fail(ctx, GPURUN_UNSUPPORTED, NULL, "%s", why.text);
    return handle;
}

static void plugin_note(struct gpurun_ctx *ctx, const char *format, ...)
{
    struct run_case *c = run_of(ctx)->running;
    va_list args;

    if (c == NULL)
        return;
    va_start(args, format);
    vsnprintf(c->path, sizeof c->path, format, args);
    va_end(args);
}

/* The job's `input...` or `output...` key for a tensor: by its name, or the plain key for the first of its
 * role. NULL: not given. */
static const struct binding *find_binding(const struct run *run, const char *name, bool is_output,
                                          bool is_first)
{
    const struct binding *list = is_output ? run->job->outputs : run->job->inputs;
    const size_t count = is_output ? run->job->output_count : run->job->input_count;

    for (size_t i = 0; i < count; i++)
        if (list[i].tensor == NULL ? is_first : strcmp(list[i].tensor, name) == 0)
            return &list[i];
    return NULL;
}

static bool is_first_of_role(const struct run *run, bool is_output)
{
    for (int i = 0; i < run->buffer_count; i++)
        if ((run->buffers[i].tensor.role == GPURUN_OUT) == is_output)
            return false;
    return true;
}

static bool is_file(const struct binding *b)
{
    return b != NULL && strncmp(b->text, "file:", 5) == 0;
}

static enum gpurun_status plugin_input_shape(struct gpurun_ctx *ctx, const char *name,
                                             struct gpurun_shape *shape)
{
    struct run *run = run_of(ctx);
    const struct binding *b = find_binding(run, name, false, is_first_of_role(run, false));
    struct datafile file;
    struct why why;
    enum gpurun_status status;

    shape->rank = 0;
    if (!is_file(b))
        return GPURUN_OK;
    status = datafile_inspect(b->text + 5, shape->dtype, &file, &why);
    if (status == GPURUN_OK)
        status = datafile_check_limit(b->text + 5, &file, run->core.picture_limit, &why);
    if (status != GPURUN_OK)
        return plugin_fail(ctx, status, b->key, "%s", why.text);
    shape->dtype = file.dtype;
    shape->rank = file.rank;
    memcpy(shape->dims, file.dims, sizeof shape->dims);
    return GPURUN_OK;
}

/* Elements and bytes of a shape; false when a product does not fit or a length is negative. */
static bool size_shape(struct gpurun_tensor *t)
{
    int64_t bytes;

    t->elems = 1;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] < 0 || __builtin_mul_overflow(t->elems, t->dims[i], &t->elems))
            return false;
    if (__builtin_mul_overflow(t->elems, (int64_t)gpurun_dtype_bytes(t->dtype), &bytes) ||
        bytes > INT64_MAX / 4)
        return false;
    t->bytes = (size_t)bytes;
    return true;
}

static bool attach_source(struct run *run, struct buffer *b, const struct binding *source)
{
    struct why why;

    b->source = source;
    if (is_file(source))
        return true;
    if (generator_parse(source ? source->text : default_input, &b->generator, &why) == GPURUN_OK &&
        generator_check(&b->generator, b->tensor.dtype, &why) == GPURUN_OK)
        return true;
    plugin_fail(&run->ctx, GPURUN_INVALID, source ? source->key : NULL, "%s", why.text);
    return false;
}

static struct gpurun_tensor *plugin_tensor(struct gpurun_ctx *ctx, const char *name,
                                           enum gpurun_role role, enum gpurun_dtype dtype, int rank,
                                           const int64_t *dims)
{
    struct run *run = run_of(ctx);
    struct buffer *b = &run->buffers[run->buffer_count];
    const bool is_first = is_first_of_role(run, role == GPURUN_OUT);

    if (!run->in_setup || run->buffer_count == TENSORS_MAX || rank < 0 || rank > GPURUN_RANK_MAX) {
        plugin_fail(ctx, GPURUN_ERROR, NULL, "tensor %s: asked for outside setup, or of rank %d",
                    name, rank);
        return NULL;
    }
    b->tensor = (struct gpurun_tensor){.name = name, .role = role, .dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++) /* none for a scalar, whose dims may be NULL */
        b->tensor.dims[i] = dims[i];
    if (!size_shape(&b->tensor)) {
        plugin_fail(ctx, GPURUN_INVALID, NULL,
                    "tensor %s: its size in bytes does not fit 64 bits: make the job smaller",
                    name);
        return NULL;
    }
    if (role != GPURUN_OUT && !attach_source(run, b, find_binding(run, name, false, is_first)))
        return NULL;
    b->declared = b->tensor;
    run->buffer_count++;
    return &b->tensor;
}

const struct gpurun_core run_core = {.struct_size = sizeof run_core,
                                     .tensor = plugin_tensor,
                                     .input_shape = plugin_input_shape,
                                     .fail = plugin_fail,
                                     .wrong = plugin_wrong,
                                     .library = plugin_library,
                                     .note = plugin_note};

/* --- before and after setup --- */

/* Nearest name over the plugin's options and the core's keys. */
static const char *nearest_key(const struct plugin *plugin, const char *key)
{
    const char *const *core_names = core_key_names();
    const char **names;
    const char *nearest;
    size_t count = 0;

    while (core_names[count] != NULL)
        count++;
    names = allocate(count + plugin->options.count + 1, sizeof *names);
    memcpy(names, core_names, count * sizeof *names);
    for (uint32_t i = 0; i < plugin->options.count; i++)
        names[count++] = option_at(&plugin->options, i)->name;
    nearest = value_nearest(key, names);
    free(names);
    return nearest;
}

static void note_unknown_key(const struct run *run, const char *key, struct why *why)
{
    const char *name = run->plugin->table->name, *nearest = nearest_key(run->plugin, key);

    why_fail(why, GPURUN_INVALID, "is no option of %s%s%s%s; gpurun describe %s lists them", name,
             nearest ? ", did you mean " : "", nearest ? nearest : "", nearest ? "?" : "", name);
}

static void set_options(struct run *run, struct faults *faults)
{
    const struct gpurun_option *row;
    struct why why;

    for (size_t i = 0; i < run->job->setting_count; i++) {
        const struct setting *s = &run->job->settings[i];

        if (core_knows(s->key))
            continue;
        row = option_find(&run->plugin->options, s->key);
        if (row != NULL) {
            if (option_set(row, s->text, run->ctx.options, &why) != GPURUN_OK)
                faults_add(faults, s->where, s->key, "%s", why.text);
        } else if (!s->shared) {
            note_unknown_key(run, s->key, &why);
            faults_add(faults, s->where, s->key, "%s", why.text);
        }
    }
}

static void resolve_core(struct run *run, struct faults *faults)
{
    const struct gpurun_plugin *p = run->plugin->table;
    cpu_set_t set;
    char item[64];
    const char *list = run->core.variant;

    if (run->core.memory == GPURUN_AUTO)
        run->core.memory = p->memory_default;
    if (!(p->memory & GPURUN_MEMORY_BIT(run->core.memory)))
        faults_add(faults, job_origin(run->job, "memory"), "memory",
                   "%s does not support it; gpurun describe %s lists what it does", p->name,
                   p->name);
    if (run->core.threads == GPURUN_AUTO)
        run->core.threads = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    if (strcmp(list, "auto") == 0 || strcmp(list, "all") == 0)
        return;
    while (p->variant_count > 0 && list_next(&list, item, sizeof item))
        if (plugin_find_variant(run->plugin, item) == NULL)
            faults_add(faults, job_origin(run->job, "variant"), "variant",
                       "'%s' is no variant of %s; gpurun describe %s lists them", item, p->name,
                       p->name);
}

enum gpurun_status run_prepare(struct run *run, const struct job *job, const struct plugin *plugin,
                               struct faults *faults)
{
    const size_t before = faults->count;
    struct why why;

    memset(run, 0, offsetof(struct run, cases));
    run->job = job;
    run->plugin = plugin;
    run->core = job->core;
    run->device_index = -1;
    run->ctx.core = &run_core;
    run->ctx.options = allocate(1, plugin->table->options_bytes);
    run->ctx.state = allocate(1, plugin->table->state_bytes);
    option_set_defaults(&plugin->options, run->ctx.options, &why);
    set_options(run, faults);
    resolve_core(run, faults);
    run->ctx.threads = (int)run->core.threads;
    return faults->count == before ? GPURUN_OK : GPURUN_INVALID;
}

/* An inout tensor can be read from a file and written to one. */
static bool has_role(const struct buffer *b, bool is_output)
{
    return b->tensor.role != (is_output ? GPURUN_IN : GPURUN_OUT);
}

/* The tensor that an input's or output's key names. */
static const struct buffer *find_buffer(const struct run *run, const struct binding *b,
                                        bool is_output)
{
    for (int i = 0; i < run->buffer_count; i++)
        if (has_role(&run->buffers[i], is_output) &&
            (b->tensor == NULL || strcmp(b->tensor, run->buffers[i].tensor.name) == 0))
            return &run->buffers[i];
    return NULL;
}

static bool has_tensor(const struct run *run, const struct binding *b, bool is_output)
{
    return (is_output && compare_is_asked(b)) || find_buffer(run, b, is_output) != NULL;
}

static void note_unknown_tensor(const struct run *run, bool is_output, struct why *why)
{
    char names[300] = "";
    size_t used = 0;

    for (int i = 0; i < run->buffer_count && used < sizeof names; i++)
        if (has_role(&run->buffers[i], is_output))
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     run->buffers[i].tensor.name);
    why_fail(why, GPURUN_INVALID, "%s has no such %s; it has: %s", run->plugin->table->name,
             is_output ? "output" : "input", names[0] ? names : "none");
}

static enum gpurun_status check_bindings(struct run *run, const struct binding *list, size_t count,
                                         bool is_output)
{
    struct why why;

    for (size_t i = 0; i < count; i++)
        if (!list[i].shared && !has_tensor(run, &list[i], is_output)) {
            note_unknown_tensor(run, is_output, &why);
            return plugin_fail(&run->ctx, GPURUN_INVALID, list[i].key, "%s", why.text);
        }
    return GPURUN_OK;
}

/* `input` and `input.NAME` of one tensor: which of the two it is read from would be chance. */
static enum gpurun_status check_twin_inputs(struct run *run)
{
    const struct binding *list = run->job->inputs;
    const char *first = NULL;
    char place[600];

    for (int i = run->buffer_count; i-- > 0;)
        if (run->buffers[i].tensor.role != GPURUN_OUT)
            first = run->buffers[i].tensor.name;
    for (size_t i = 0; first != NULL && i < run->job->input_count; i++)
        for (size_t k = 0; k < run->job->input_count; k++)
            if (list[i].tensor == NULL && list[k].tensor != NULL &&
                strcmp(list[k].tensor, first) == 0)
                return plugin_fail(&run->ctx, GPURUN_INVALID, list[k].key,
                                   "the same tensor as input (%s): keep one of them",
                                   origin_text(list[i].where, place, sizeof place));
    return GPURUN_OK;
}

/* Whether what is to be written as a picture can be one. */
static enum gpurun_status check_pictures(struct run *run)
{
    struct picture unused;
    struct why why;

    for (size_t i = 0; i < run->job->output_count; i++) {
        const struct binding *binding = &run->job->outputs[i];
        const struct buffer *b = find_buffer(run, binding, true);
        enum gpurun_status status = GPURUN_OK;

        if (compare_is_asked(binding))
            status = compare_check(run, binding->text, &why);
        else if (b != NULL && picture_format(binding->text) != PICTURE_NONE)
            status = picture_of_array(binding->text, b->tensor.dtype, b->tensor.rank,
                                      b->tensor.dims, &unused, &why);
        if (status != GPURUN_OK)
            return plugin_fail(&run->ctx, status, binding->key, "%s", why.text);
    }
    return GPURUN_OK;
}

static void add_foreign_tensors(const struct run *run, const struct binding *list, size_t count,
                                bool is_output, json_t *foreign)
{
    struct why why;

    for (size_t i = 0; i < count; i++)
        if (list[i].shared && !has_tensor(run, &list[i], is_output)) {
            note_unknown_tensor(run, is_output, &why);
            json_object_set_new(foreign, list[i].key, json_text(why.text));
        }
}

json_t *run_foreign_keys(const struct run *run)
{
    json_t *foreign = json_object();
    struct why why;

    for (size_t i = 0; i < run->job->setting_count; i++) {
        const struct setting *s = &run->job->settings[i];

        if (!s->shared || core_knows(s->key) || option_find(&run->plugin->options, s->key) != NULL)
            continue;
        note_unknown_key(run, s->key, &why);
        json_object_set_new(foreign, s->key, json_text(why.text));
    }
    add_foreign_tensors(run, run->job->inputs, run->job->input_count, false, foreign);
    add_foreign_tensors(run, run->job->outputs, run->job->output_count, true, foreign);
    return foreign;
}

enum gpurun_status run_setup(struct run *run)
{
    enum gpurun_status status;

    run->in_setup = true;
    guard_expect();
    status = run->plugin->table->setup(&run->ctx);
    run->in_setup = false;
    GPURUN_TRY(status);
    GPURUN_TRY(check_bindings(run, run->job->inputs, run->job->input_count, false));
    GPURUN_TRY(check_twin_inputs(run));
    GPURUN_TRY(check_bindings(run, run->job->outputs, run->job->output_count, true));
    return check_pictures(run);
}

void run_finish(struct run *run)
{
    guard_expect();
    run->plugin->table->teardown(&run->ctx);
    guard_restore();
    for (int i = 0; i < run->case_count; i++) {
        samples_free(&run->cases[i].time_ms);
        samples_free(&run->cases[i].end_to_end_ms);
        samples_free(&run->cases[i].upload_ms);
        samples_free(&run->cases[i].download_ms);
        json_decref(run->cases[i].shown);
        json_decref(run->cases[i].answer);
    }
    device_state_free(&run->device_state);
    for (int i = 0; i < SIDES * YARDSTICKS; i++)
        samples_free(&run->ceilings[i / YARDSTICKS].ms[i % YARDSTICKS]);
    free(run->ctx.options);
    free(run->ctx.state);
}
