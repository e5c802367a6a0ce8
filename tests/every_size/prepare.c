#include "every_size.h"

#include "gpurun/key.h"
#include "job/memory.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROBE_SIZE = 64 };

/* --- the plugin --- */

static enum gpurun_status load(struct every *s, const char *so_path, struct why *why)
{
    char *folder = copy_text(so_path), *slash = strrchr(folder, '/');
    char *name = copy_text(slash ? slash + 1 : so_path), *dot = strstr(name, ".so");
    enum gpurun_status status;

    if (slash != NULL)
        *slash = '\0';
    if (dot != NULL)
        *dot = '\0';
    setenv("GPURUN_PLUGIN_PATH", slash ? folder : ".", 1);
    status = registry_load(name, &s->plugin, why);
    free(folder);
    free(name);
    return status;
}

/* The options as given, in a job that comes from no file. */
static enum gpurun_status set_options(struct every *s, const struct arguments *a, struct why *why)
{
    struct faults faults = {0};
    struct run run;
    enum gpurun_status status;

    option_set_defaults(&core_options_table, &s->job.core, why);
    s->job.settings = s->settings;
    for (int i = 0; i < a->setting_count; i++)
        s->settings[s->job.setting_count++] =
            (struct setting){.key = a->keys[i], .text = a->texts[i], .where = {"-s", 0}};
    status = run_prepare(&run, &s->job, &s->plugin, &faults);
    if (status != GPURUN_OK)
        why_fail(why, status, "%s", faults.texts[0]);
    faults_free(&faults);
    s->options = run.ctx.options;
    free(run.ctx.state);
    return status;
}

/* Those named, or all; without such as promise no bits. The last peer is what they are held against. */
static enum gpurun_status choose_variants(struct every *s, const char *list, struct why *why)
{
    char item[64];

    for (const char *rest = list; rest != NULL && list_next(&rest, item, sizeof item);)
        if (plugin_find_variant(&s->plugin, item) == NULL)
            return why_fail(why, GPURUN_INVALID, "--variants: %s has no variant %s",
                            s->plugin.table->name, item);
    s->peer = -1;
    for (uint32_t i = 0; i < s->plugin.table->variant_count; i++) {
        const struct gpurun_variant *v = plugin_variant(&s->plugin, i);
        bool is_wanted = list == NULL || (v->capabilities & GPURUN_PEER);

        for (const char *rest = list; rest != NULL && list_next(&rest, item, sizeof item);)
            is_wanted = is_wanted || strcmp(item, v->name) == 0;
        if (!is_wanted || s->variant_count == CASES_MAX)
            continue;
        if (v->capabilities & (GPURUN_UNSORTED | GPURUN_TIES_ANY)) {
            printf("%s %s: left out, as it promises no order of equal elements\n",
                   s->plugin.table->name, v->name);
            continue;
        }
        if (v->capabilities & GPURUN_PEER)
            s->peer = s->variant_count;
        s->variants[s->variant_count++] = v;
    }
    return GPURUN_OK;
}

static enum gpurun_status check_size(const struct every *s, const struct gpurun_option *row,
                                     int64_t n, struct why *why)
{
    void *options = allocate(1, s->plugin.table->options_bytes);
    char *text = format_text("%" PRId64, n);
    const enum gpurun_status status = option_set(row, text, options, why);

    free(text);
    free(options);
    return status;
}

/* The bytes that go in at a size; -1 where setup refuses it, with the reason. */
static double input_bytes(struct every *s, int64_t n, struct why *why)
{
    struct worker *w = allocate(1, sizeof *w);
    double bytes = 0;

    worker_init(w, s);
    if (worker_begin(w, n) != GPURUN_OK) {
        bytes = -1;
        *why = w->run.why;
    }
    for (int i = 0; i < w->run.buffer_count && bytes >= 0; i++)
        bytes += w->run.buffers[i].tensor.role == GPURUN_OUT
                     ? 0.0
                     : (double)w->run.buffers[i].tensor.bytes;
    worker_end(w);
    worker_close(w);
    free(w);
    return bytes;
}

/* A whole number, not a tunable, by which the inputs grow. *refusal: why setup takes it not. */
static bool is_size(struct every *s, const struct gpurun_option *row, struct why *refusal)
{
    struct why unused;
    double less, more;

    if (row->type != GPURUN_OPTION_INT || (row->flags & GPURUN_OPTION_TUNABLE) ||
        check_size(s, row, PROBE_SIZE, &unused) != GPURUN_OK ||
        check_size(s, row, PROBE_SIZE + 1, &unused) != GPURUN_OK)
        return false;
    s->size = row;
    less = input_bytes(s, PROBE_SIZE, refusal);
    more = input_bytes(s, PROBE_SIZE + 1, refusal);
    return less >= 0 && less < more;
}

/* The first such option. */
static enum gpurun_status find_size(struct every *s, const struct arguments *a, struct why *why)
{
    struct why what = {""};
    uint32_t i = 0;

    while (i < s->plugin.options.count && !is_size(s, option_at(&s->plugin.options, i), &what))
        i++;
    if (i == s->plugin.options.count)
        return why_fail(why, GPURUN_INVALID, "%s has no option by which its inputs grow%s%s",
                        s->plugin.table->name, what.text[0] ? "; " : "", what.text);
    if (check_size(s, s->size, a->from, &what) != GPURUN_OK ||
        check_size(s, s->size, a->to, &what) != GPURUN_OK)
        return why_fail(why, GPURUN_INVALID, "%s: %s", s->size->name, what.text);
    return GPURUN_OK;
}

enum gpurun_status every_prepare(struct every *s, const struct arguments *a, struct why *why)
{
    GPURUN_TRY(load(s, a->so_path, why));
    GPURUN_TRY(device_api.info(0, &s->device, why));
    GPURUN_TRY(set_options(s, a, why));
    GPURUN_TRY(choose_variants(s, a->variants, why));
    return find_size(s, a, why);
}

/* --- inputs --- */

/* Only of whole numbers, each in a place of its own, are the right bits the same in every variant. */
static enum gpurun_status check_tensor(const struct gpurun_tensor *t, struct why *why)
{
    const bool is_real = gpurun_dtype_is_real(t->dtype);

    if (t->role == GPURUN_IN || (t->role == GPURUN_OUT && !is_real && !t->varies))
        return GPURUN_OK;
    return why_fail(
        why, GPURUN_INVALID,
        "tensor %s (%s%s%s): bits are compared, so answers are whole numbers, apart from "
        "the input and the same in each run; try -s dtype=int32",
        t->name, gpurun_dtype_name(t->dtype), t->role == GPURUN_INOUT ? ", inout" : "",
        t->varies ? ", varies" : "");
}

static enum gpurun_status make_input(struct every *s, struct device *device,
                                     const struct generator *generator, struct gpurun_tensor *t,
                                     struct why *why)
{
    t->host = allocate(1, t->bytes + 1);
    generator_fill(generator, (uint64_t)s->job.core.seed, t, s->threads);
    GPURUN_TRY(device_api.alloc(device, t->bytes + 1, &t->dev, why));
    return device_api.copy(device, t->dev, t->host, t->bytes, why);
}

enum gpurun_status every_make_inputs(struct every *s, struct device *device, struct why *why)
{
    struct worker *w = allocate(1, sizeof *w);
    enum gpurun_status status;

    worker_init(w, s);
    status = worker_begin(w, s->to);
    *why = w->run.why;
    for (int i = 0; i < w->run.buffer_count && status == GPURUN_OK; i++) {
        s->largest[s->tensor_count++] = w->run.buffers[i].tensor;
        status = check_tensor(&s->largest[i], why);
    }
    for (int i = 0; i < s->tensor_count && status == GPURUN_OK; i++)
        if (s->largest[i].role == GPURUN_IN)
            status = make_input(s, device, &w->run.buffers[i].generator, &s->largest[i], why);
    if (status == GPURUN_OK)
        status = device_api.sync(device, why);
    worker_end(w);
    worker_close(w);
    free(w);
    return status;
}

enum gpurun_status every_end_inputs(struct every *s, struct device *device, struct why *why)
{
    enum gpurun_status status = GPURUN_OK;

    for (int i = 0; i < s->tensor_count; i++) {
        struct gpurun_tensor *t = &s->largest[i];
        void *now = allocate(1, t->bytes + 1);

        if (t->dev != NULL && status == GPURUN_OK)
            status = device_api.copy(device, now, t->dev, t->bytes, why);
        if (t->dev != NULL && status == GPURUN_OK)
            status = device_api.sync(device, why);
        if (t->dev != NULL && status == GPURUN_OK && memcmp(now, t->host, t->bytes) != 0)
            status = why_fail(why, GPURUN_INVALID, "input %s was written to", t->name);
        free(now);
        free(t->host);
        device_api.release(device, t->dev);
    }
    return status;
}
