/*
 * What all tests of the contract share: failing with what was tried, a job made of choices, making it small.
 */
#ifndef CONTRACT_TRIAL_H
#define CONTRACT_TRIAL_H

#include "gpurun/half.h"
#include "gpurun/key.h"
#include "job/memory.h"
#include "job/value.h"
#include "run/case.h"
#include "run/selftest.h"
#include "run/tensors.h"
#include <check.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTIONS_MAX = 64,
    HALVINGS = 60,     /* from any 64-bit size down to 1 */
    SMALL = 32,        /* a whole-number option at or below it is not halved */
    SPOILT_MAX = 4097, /* elements of one tensor that are spoilt, evenly spread */
};

/* What one run may have to do, after shrinking: of a job that runs a few times, and of one whose answer is spoilt and
 * judged thousands of times. */
static const struct most {
    double operations, bytes;
} MOST = {5e6, 3e7}, MOST_PAIRED = {5e5, 3e6}, MOST_JUDGED = {1e5, 2e5};

static const double SPOIL_S = 1; /* per tensor and mode of proof */

static const int64_t sizes[] = {1000, 4097};
static const int64_t offsets[] = {0, 1, 3};
static const char *const generators[] = {
    "uniform", "ascending", "descending", "constant value=3", "few-distinct count=3",
    "special", "normal",    "zipf"};
static const int64_t modes[] = {VERIFY_FULL, VERIFY_CERTIFY};

static const double SIZES_CPU_S = 2, SIZES_GPU_S = 12;

static const char *so_path;
static double sizes_s;             /* how long sizes are tried */
static char *const *only_variants; /* NULL: all; ends with NULL */
static char plugin_name[NAME_MAX + 1];
static struct plugin plugin;
static struct device *device; /* NULL: on the CPU */
static struct device_info device_info;

/* --- failing with its circumstances ----------------------------------------------------------- */

static char circumstances[600];

#define REQUIRE(condition, ...)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            char text_[1500];                                                                      \
            snprintf(text_, sizeof text_, __VA_ARGS__);                                            \
            ck_abort_msg("%s: %s: %s", plugin_name, circumstances, text_);                         \
        }                                                                                          \
    } while (0)

/* Ends the line of a group: how long it took, from the end of the one before (in a process of its own, from the
 * first). */
static void end_line(void)
{
    static double before;
    const double now = now_s();

    if (before > 0)
        printf("; %.1f s", now - before);
    printf("\n");
    fflush(stdout);
    before = now;
}

/* One line per group, so that a log tells what was covered. */
static void report(const char *group, int runs, int refused)
{
    printf("%s %s: %d runs%s", plugin_name, group, runs,
           runs + refused == 0 ? " (none apply)" : "");
    if (refused > 0)
        printf(", %d refused with a reason", refused);
    end_line();
}

/* --- a job made of choices -------------------------------------------------------------------- */

struct config {
    struct {
        const char *key;
        char text[48];
    } set[OPTIONS_MAX];
    size_t count;
    const char *generator;
    int64_t offset, memory, threads;
};

struct trial {
    struct job job;
    struct setting settings[OPTIONS_MAX];
    struct binding inputs[TENSORS_MAX];
    struct run run;
    struct faults faults;
    enum gpurun_status status; /* of prepare and setup */
};

static struct config plain_config(void)
{
    return (struct config){.generator = "uniform", .memory = GPURUN_AUTO, .threads = GPURUN_AUTO};
}

static void choose(struct config *c, const char *key, const char *text)
{
    size_t i = 0;

    while (i < c->count && strcmp(c->set[i].key, key) != 0)
        i++;
    REQUIRE(i < OPTIONS_MAX, "more options than this test has room for");
    c->set[i].key = key;
    snprintf(c->set[i].text, sizeof c->set[i].text, "%s", text);
    c->count += i == c->count;
}

static void choose_whole(struct config *c, const char *key, int64_t value)
{
    char text[32];

    snprintf(text, sizeof text, "%lld", (long long)value);
    choose(c, key, text);
}

static void describe(const struct config *c)
{
    int used = snprintf(circumstances, sizeof circumstances, "input %s, offset %lld, memory %s",
                        c->generator, (long long)c->offset,
                        c->memory == GPURUN_AUTO ? "auto" : memory_names[c->memory]);

    for (size_t i = 0; i < c->count && used < (int)sizeof circumstances; i++)
        used += snprintf(circumstances + used, sizeof circumstances - (size_t)used, ", %s = %s",
                         c->set[i].key, c->set[i].text);
}

static void default_job(struct trial *t)
{
    struct why why;

    t->job = (struct job){.name = plugin_name, .settings = t->settings, .inputs = t->inputs};
    t->job.where = (struct origin){"contract", 1};
    option_set_defaults(&core_options_table, &t->job.core, &why);
}

/* Options and setup, with the input tensors that an earlier setup asked for bound to the generator. */
static void prepare(struct trial *t, const struct config *c, const char *const *names, size_t count)
{
    default_job(t);
    t->job.core.offset = c->offset;
    t->job.core.memory = c->memory;
    t->job.core.threads = c->threads;
    for (size_t i = 0; i < c->count; i++)
        t->settings[t->job.setting_count++] = (struct setting){
            .key = c->set[i].key, .text = c->set[i].text, .where = {"contract", 2}};
    for (size_t i = 0; i < count; i++)
        t->inputs[t->job.input_count++] =
            (struct binding){.key = "input", .tensor = names[i], .text = c->generator};
    t->status = run_prepare(&t->run, &t->job, &plugin, &t->faults);
    if (t->status != GPURUN_OK) {
        run_fail(&t->run, t->status, "%s", t->faults.texts[0]);
        return;
    }
    t->run.device = device;
    t->run.device_info = device_info;
    t->run.ctx.device = device_info.limits;
    t->run.ctx.stream = device ? device_api.stream(device) : NULL;
    t->status = run_setup(&t->run);
}

static void trial_free(struct trial *t)
{
    tensors_free(&t->run);
    for (int i = 0; i < t->run.case_count && device != NULL; i++)
        device_api.release(device, t->run.cases[i].state);
    if (device != NULL)
        device_api.release(device, t->run.scratch);
    run_finish(&t->run);
    faults_free(&t->faults);
    free(t);
}

/* A failed setup must say why; whether failing is right is the caller's to judge. */
static struct trial *trial_new(const struct config *c)
{
    struct trial *first = allocate(1, sizeof *first), *t = allocate(1, sizeof *t);
    const char *names[TENSORS_MAX];
    size_t count = 0;

    describe(c);
    prepare(first, c, NULL, 0);
    for (int i = 0; first->status == GPURUN_OK && i < first->run.buffer_count; i++)
        if (first->run.buffers[i].tensor.role != GPURUN_OUT)
            names[count++] = first->run.buffers[i].tensor.name;
    trial_free(first);
    prepare(t, c, names, count);
    REQUIRE(t->status == GPURUN_OK || t->run.why.text[0] != '\0', "setup failed without a reason");
    REQUIRE(t->status == GPURUN_OK || t->status == GPURUN_INVALID ||
                t->status == GPURUN_UNSUPPORTED,
            "setup failed with status %d: %s", (int)t->status, t->run.why.text);
    return t;
}

/* --- making it small -------------------------------------------------------------------------- */

static const struct gpurun_option *row_at(uint32_t i)
{
    return option_at(&plugin.options, i);
}

/* A whole number that may change the size of the problem. */
static bool is_size(const struct gpurun_option *row)
{
    return row->type == GPURUN_OPTION_INT && !(row->flags & GPURUN_OPTION_TUNABLE);
}

static int64_t whole_of(const struct trial *t, const struct gpurun_option *row)
{
    return *(const int64_t *)(const void *)((const char *)t->run.ctx.options + row->offset);
}

static bool is_small(const struct gpurun_work *w, const struct most *most)
{
    return w->operations <= most->operations && w->bytes_read + w->bytes_written <= most->bytes;
}

/* Halves what setup chose, to odd numbers; false when there is nothing left to halve. */
static bool halve(struct config *c, const struct trial *t)
{
    bool changed = false;

    for (uint32_t i = 0; i < plugin.options.count; i++)
        if (is_size(row_at(i)) && whole_of(t, row_at(i)) > SMALL) {
            choose_whole(c, row_at(i)->name, whole_of(t, row_at(i)) / 2 | 1);
            changed = true;
        }
    return changed;
}

static void shrink(struct config *c, const struct most *most)
{
    for (int i = 0; i < HALVINGS; i++) {
        struct trial *t = trial_new(c);
        const bool done =
            t->status != GPURUN_OK || is_small(&t->run.ctx.work, most) || !halve(c, t);

        trial_free(t);
        if (done)
            return;
    }
}

/* The plugin at its defaults, with n where there is one, and small. */
static struct config config_within(int64_t n, const struct most *most)
{
    struct config c = plain_config();

    if (option_find(&plugin.options, "n") != NULL)
        choose_whole(&c, "n", n);
    shrink(&c, most);
    return c;
}

static struct config sized_config(int64_t n)
{
    return config_within(n, &MOST);
}

static struct config judged_config(int64_t n)
{
    return config_within(n, &MOST_JUDGED);
}

/* Where another size stands above n, it is lowered to it: k of a top-k, say. */
static void lower_to(struct config *c, int64_t n)
{
    for (uint32_t i = 0; i < plugin.options.count; i++) {
        const struct gpurun_option *row = row_at(i);
        int64_t value;
        struct why why;

        if (!is_size(row) || strcmp(row->name, "n") == 0 ||
            value_parse_int(row->def, &value, &why) != GPURUN_OK || value <= n)
            continue;
        choose_whole(c, row->name, (double)n < row->min ? (int64_t)row->min : n);
    }
}

#endif
