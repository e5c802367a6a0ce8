#include "run/selftest_measure.h"

#include "job/memory.h"
#include "report/compare.h"
#include "run/case.h"
#include "run/record.h"
#include "run/sample.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { READINGS = 20, TRIALS = 100, LATE_ROUND = 1000 /* in which copies are not timed apart */ };
enum { NOTHING, WAIT_SHORT, WAIT_LONG, ONE, OTHER, KINDS };

static const double CLOCK_ERROR = 0.01, SHORT_S = 1e-3, LONG_S = 10e-3, SAME_S = 1e-4;
static const double SPIN_S = 0.5e-3;
static const double EMPTY_ERROR_MS = 0.2e-3, EMPTY_ERROR_CPU_MS = 1e-3;

/* --- a plugin of the core's own, whose variants are the kinds of work --- */

static struct run *run_of(struct gpurun_ctx *ctx)
{
    return (struct run *)ctx; /* its first member */
}

static enum gpurun_status launch_nothing(struct gpurun_ctx *ctx)
{
    (void)ctx;
    return GPURUN_OK;
}

static enum gpurun_status launch_short(struct gpurun_ctx *ctx)
{
    return device_api.spin(run_of(ctx)->device, SHORT_S, &run_of(ctx)->why);
}

static enum gpurun_status launch_long(struct gpurun_ctx *ctx)
{
    return device_api.spin(run_of(ctx)->device, LONG_S, &run_of(ctx)->why);
}

/* What a case of memory-bound work is: the bytes of the ceilings. */
static enum gpurun_status launch_same(struct gpurun_ctx *ctx)
{
    struct run *run = run_of(ctx);

    const struct ceiling *c = &run->ceilings[SIDE_DEVICE];

    return device_api.read(run->device, c->memory, c->bytes, &run->why);
}

static const struct gpurun_variant variants[KINDS] = {
    [NOTHING] = {.name = "nothing", .idea = "enqueues nothing", .launch = launch_nothing},
    [WAIT_SHORT] = {.name = "wait_short", .idea = "waits 1 ms", .launch = launch_short},
    [WAIT_LONG] = {.name = "wait_long", .idea = "waits 10 ms", .launch = launch_long},
    [ONE] = {.name = "one", .idea = "reads memory", .launch = launch_same},
    [OTHER] = {.name = "other", .idea = "the same", .launch = launch_same},
};

/* Another clock than the one that times are taken with. */
static double other_clock_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* All but the end is slept through: a busy processor takes turns with who spins, and gives who wakes up the next one. */
static enum gpurun_status run_cpu(struct gpurun_ctx *ctx)
{
    static const double wait_s[KINDS] = {0, SHORT_S, LONG_S, SAME_S, SAME_S};
    const struct run *run = run_of(ctx);
    const double wait = wait_s[run->running - run->cases], end = other_clock_s() + wait;

    if (wait > SPIN_S)
        nanosleep(&(struct timespec){.tv_nsec = (long)((wait - SPIN_S) * 1e9)}, NULL);
    while (wait > 0 && other_clock_s() < end)
        continue;
    return GPURUN_OK;
}

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    ctx->work.bytes_read = 16 << 20;
    return GPURUN_OK;
}

static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    return v->launch(ctx);
}

static void teardown(struct gpurun_ctx *ctx)
{
    (void)ctx;
}

static const struct gpurun_plugin table = {
    .name = "selftest",
    .variants = variants,
    .variant_count = KINDS,
    .variant_size = sizeof variants[0],
    .options_bytes = 1,
    .state_bytes = 1,
    .memory = GPURUN_MEMORY_ALL,
    .setup = setup,
    .run_gpu = run_gpu,
    .run_cpu = run_cpu,
    .teardown = teardown,
};
static const struct plugin plugin = {.table = &table};

/* --- reading --- */

struct instrument {
    struct run run;
    struct job job;
    struct faults faults;
    json_t *lines;
    bool passed;
};

static void say(struct instrument *t, bool is_right, const char *format, ...)
{
    char text[1400];
    const size_t used = (size_t)snprintf(text, sizeof text, "%s", is_right ? "" : "WRONG: ");
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, sizeof text - used, format, args);
    va_end(args);
    t->passed = t->passed && is_right;
    json_array_append_new(t->lines, json_text(text));
}

static enum gpurun_status open_first_device(struct run *run)
{
    struct why none;

    if (device_api.count(&none) == 0)
        return GPURUN_OK;
    GPURUN_TRY(device_api.info(0, &run->device_info, &run->why));
    GPURUN_TRY(device_api.open(0, &run->device, &run->why));
    run->ctx.device = run->device_info.limits;
    run->ctx.stream = device_api.stream(run->device);
    return GPURUN_OK;
}

static enum gpurun_status begin(struct instrument *t)
{
    struct run *run = &t->run;
    struct why why;

    t->job = (struct job){.name = "selftest", .where = {"selftest", 0}};
    option_set_defaults(&core_options_table, &t->job.core, &why);
    GPURUN_TRY(run_prepare(run, &t->job, &plugin, &t->faults));
    GPURUN_TRY(open_first_device(run));
    GPURUN_TRY(run_setup(run));
    run->case_count = KINDS;
    for (int i = 0; i < KINDS; i++)
        run->cases[i] = (struct run_case){.variant = run->device ? &variants[i] : NULL,
                                          .name = variants[i].name};
    GPURUN_TRY(sample_begin(run));
    for (int i = 0; i < KINDS; i++)
        GPURUN_TRY(sample_prepare(run, &run->cases[i], 0));
    return GPURUN_OK;
}

static enum gpurun_status read_once(struct instrument *t, int kind)
{
    return sample_case(&t->run, &t->run.cases[kind], LATE_ROUND, false);
}

static struct stats stats_of_kind(const struct instrument *t, int kind)
{
    const struct samples *s = &t->run.cases[kind].time_ms;

    return stats_of(s->values, s->count);
}

/* --- the tests --- */

/* A CPU that has other work makes waits longer, never shorter: there the shortest counts. */
static enum gpurun_status test_clock(struct instrument *t, int kind, double seconds)
{
    const double ms = seconds * 1e3;
    struct stats s;
    double read_ms;

    for (int i = 0; i < READINGS; i++)
        GPURUN_TRY(read_once(t, kind));
    s = stats_of_kind(t, kind);
    read_ms = t->run.device ? s.median : s.min;
    say(t, fabs(read_ms - ms) <= CLOCK_ERROR * ms, "a wait of %g ms reads %.5g ms (1 %% allowed)",
        ms, read_ms);
    return GPURUN_OK;
}

/* What nothing takes by the same clock. */
static enum gpurun_status read_empty(struct instrument *t)
{
    double start;

    if (t->run.device != NULL)
        return ceiling_read(&t->run, SIDE_DEVICE, YARDSTICK_NOTHING, LATE_ROUND);
    start = now_s();
    samples_add(&t->run.ceilings[SIDE_DEVICE].ms[YARDSTICK_NOTHING], LATE_ROUND,
                (now_s() - start) * 1e3);
    return GPURUN_OK;
}

static enum gpurun_status test_nothing(struct instrument *t)
{
    const struct samples *empty = &t->run.ceilings[SIDE_DEVICE].ms[YARDSTICK_NOTHING];
    const double allowed = t->run.device ? EMPTY_ERROR_MS : EMPTY_ERROR_CPU_MS;
    double nothing, none;

    for (int i = 0; i < READINGS; i++) {
        GPURUN_TRY(read_empty(t));
        GPURUN_TRY(read_once(t, NOTHING));
    }
    none = stats_of(empty->values, empty->count).median;
    nothing = stats_of_kind(t, NOTHING).median;
    say(t, fabs(nothing - none) <= allowed,
        "a plugin that does nothing reads %.4g us, an empty reading %.4g us (%g us allowed)",
        nothing * 1e3, none * 1e3, allowed * 1e3);
    return GPURUN_OK;
}

/* What `gpurun compare` would say of the two, by its own gap. */
static enum verdict compare_kinds(const struct instrument *t, int before, int now)
{
    const struct stats b = stats_of_kind(t, before), n = stats_of_kind(t, now);

    return verdict_of(&(struct interval){b.low, b.median, b.high, (long long)b.n},
                      &(struct interval){n.low, n.median, n.high, (long long)n.n}, COMPARE_GAP);
}

static enum gpurun_status test_same(struct instrument *t)
{
    int apart = 0;

    for (int trial = 0; trial < TRIALS; trial++) {
        enum verdict verdict;

        samples_free(&t->run.cases[ONE].time_ms);
        samples_free(&t->run.cases[OTHER].time_ms);
        for (int i = 0; i < READINGS; i++) {
            const int first = (i + trial) % 2 ? ONE : OTHER;

            GPURUN_TRY(read_once(t, first));
            GPURUN_TRY(read_once(t, ONE + OTHER - first));
        }
        verdict = compare_kinds(t, ONE, OTHER);
        apart += verdict == VERDICT_FASTER || verdict == VERDICT_SLOWER;
    }
    say(t, apart == 0, "two identical variants: neither faster nor slower %d times of %d",
        TRIALS - apart, TRIALS);
    return GPURUN_OK;
}

static enum gpurun_status test_all(struct instrument *t)
{
    GPURUN_TRY(begin(t));
    GPURUN_TRY(test_clock(t, WAIT_SHORT, SHORT_S));
    GPURUN_TRY(test_clock(t, WAIT_LONG, LONG_S));
    GPURUN_TRY(test_nothing(t));
    return test_same(t);
}

json_t *selftest_measure(void)
{
    struct instrument *t = allocate(1, sizeof *t);
    json_t *result;

    t->lines = json_array();
    t->passed = true;
    if (test_all(t) != GPURUN_OK)
        say(t, false, "could not be read: %s", t->run.why.text);
    result = json_pack("{sbsosO}", "passed", t->passed, "by",
                       json_text(t->run.device ? t->run.device_info.name : "the CPU's clock"),
                       "lines", t->lines);
    json_decref(t->lines);
    sample_end(&t->run);
    if (t->run.device != NULL)
        device_api.close(t->run.device);
    run_finish(&t->run);
    faults_free(&t->faults);
    free(t);
    return result;
}
