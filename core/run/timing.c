#include "run/timing.h"

#include "run/machine.h"
#include "run/run.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    REPEATS_MAX = 1000,
    SETTLE_RUNS = 3, /* after which a host's cache holds what it will of their data */
};

static const double GRAPH_MS = 2;  /* a graph's runs take about so long together */
static const double LONG_MS = 2;   /* 0.5 % of it is what others leave in the cache */
static const double SLOW_MS = 100; /* 1 % of it is what filling the host's cache takes */

static enum gpurun_status restore(struct timing *t)
{
    return t->restore ? t->restore(t->run, t->user) : GPURUN_OK;
}

static enum gpurun_status enqueue(struct timing *t)
{
    return t->graph ? device_api.graph_launch(t->run->device, t->graph, &t->run->why)
                    : t->work(t->run, t->user);
}

bool timing_is_cold(const struct timing *t)
{
    return t->run->core.cache == CACHE_COLD && (t->side == SIDE_DEVICE || t->run->spoiler != NULL);
}

double timing_cache_bytes(const struct run *run, enum memory_side side)
{
    return side == SIDE_DEVICE ? (double)run->ctx.device.l2_bytes : (double)machine_cache();
}

/* Writes over twice the cache. */
static enum gpurun_status overwrite_cache(const struct timing *t)
{
    struct run *run = t->run;
    const size_t bytes = 2 * run->ctx.device.l2_bytes;
    struct why why;

    if (t->side == SIDE_HOST) {
        memset(run->spoiler, t->readings, run->spoiler_bytes);
        return GPURUN_OK;
    }
    if (run->overwritten == NULL &&
        device_api.alloc(run->device, bytes, &run->overwritten, &why) != GPURUN_OK)
        return run_fail(run, GPURUN_NO_MEMORY, "cache = cold: %s", why.text);
    return device_api.fill(run->device, run->overwritten, 0, bytes, &run->why);
}

static bool is_small(const struct timing *t)
{
    return t->bytes <= 2 * timing_cache_bytes(t->run, t->side);
}

static bool is_short(const struct timing *t)
{
    return t->last_ms > 0 && t->last_ms < LONG_MS;
}

/* Hot: how often the work runs just before, or what other cases of the round left in the cache would decide.
 * Where it is more than the cache holds that is no longer its own data but what others wrote and the memory has
 * not got yet, worth some 10 us on a large device: nothing to work that takes long. The last cache of a host may take
 * in only a part of what passes by, and is nothing to work that takes longer still. */
static int runs_before(const struct timing *t)
{
    if (t->repeats > 1)
        return 0;
    if (!is_small(t))
        return is_short(t);
    if (t->side == SIDE_DEVICE)
        return 1;
    return is_short(t) ? SETTLE_RUNS : t->last_ms < SLOW_MS;
}

static enum gpurun_status set_cache(struct timing *t)
{
    GPURUN_TRY(restore(t));
    if (timing_is_cold(t))
        return overwrite_cache(t);
    for (int left = runs_before(t); left > 0; left--) {
        GPURUN_TRY(enqueue(t));
        GPURUN_TRY(restore(t));
    }
    return GPURUN_OK;
}

static void add_note(struct timing *t, const char *text)
{
    const size_t used = strlen(t->note);

    snprintf(t->note + used, sizeof t->note - used, "%s%s", used ? "; " : "", text);
}

static void give_up_hold(struct timing *t)
{
    t->is_held = false;
    add_note(t,
             "launch gaps are in the readings: it waits for the device, or enqueues more than the "
             "stream takes");
}

static enum gpurun_status read_on_host(struct timing *t, double *ms)
{
    const double start = now_s();

    GPURUN_TRY(t->work(t->run, t->user));
    *ms = (now_s() - start) * 1e3;
    return GPURUN_OK;
}

static enum gpurun_status read_on_device(struct timing *t, double *ms)
{
    struct run *run = t->run;
    enum gpurun_status status, stopped;
    bool ran_out = false;

    GPURUN_TRY(device_api.timer_start(run->device, t->is_held, &run->why));
    status = enqueue(t);
    if (status != GPURUN_OK) {
        struct why unused;

        device_api.timer_stop(run->device, ms, &ran_out, &unused);
        return status;
    }
    stopped = device_api.timer_stop(run->device, ms, &ran_out, &run->why);
    *ms /= t->repeats;
    t->ran_out += ran_out;
    if (ran_out && t->ran_out == t->readings + 1)
        give_up_hold(t);
    return stopped;
}

enum gpurun_status timing_read(struct timing *t, double *ms)
{
    GPURUN_TRY(set_cache(t));
    GPURUN_TRY(t->side == SIDE_HOST ? read_on_host(t, ms) : read_on_device(t, ms));
    t->last_ms = *ms;
    t->readings++;
    return GPURUN_OK;
}

static enum gpurun_status run_work(void *user)
{
    struct timing *t = user;

    return t->work(t->run, t->user);
}

/* As many runs as make a reading long, unless a second run would not be like the first. */
static int choose_repeats(const struct timing *t, double ms)
{
    if (t->once || timing_is_cold(t))
        return 1;
    return (int)fmax(1, fmin(REPEATS_MAX, ceil(GRAPH_MS / fmax(ms, 1e-6))));
}

static enum gpurun_status make_graph(struct timing *t, double ms)
{
    const int repeats = choose_repeats(t, ms);
    enum gpurun_status status;
    char text[300];

    GPURUN_TRY(restore(t));
    status = device_api.graph_make(t->run->device, run_work, t, repeats, &t->graph, &t->run->why);
    if (status == GPURUN_OK)
        t->repeats = repeats;
    if (status != GPURUN_UNSUPPORTED)
        return status;
    snprintf(text, sizeof text, "read on the stream, for it cannot be in a graph: %.220s",
             t->run->why.text);
    add_note(t, text);
    return GPURUN_OK;
}

enum gpurun_status timing_prepare(struct timing *t)
{
    struct why why;
    double ms = 0;

    t->repeats = 1;
    if (t->side == SIDE_HOST)
        return GPURUN_OK;
    t->is_held = device_api.can_hold(t->run->device, &why);
    if (!t->is_held) {
        add_note(t, "launch gaps are in the readings: ");
        snprintf(t->note + strlen(t->note), sizeof t->note - strlen(t->note), "%.200s", why.text);
    }
    if (t->run->core.launch != LAUNCH_GRAPH && t->run->core.warmup == 0)
        return GPURUN_OK;
    GPURUN_TRY(timing_read(t, &ms));
    if (t->run->core.launch == LAUNCH_GRAPH)
        GPURUN_TRY(make_graph(t, ms));
    t->readings = t->ran_out = 0;
    return GPURUN_OK;
}

void timing_free(struct timing *t)
{
    if (t->graph != NULL)
        device_api.graph_free(t->graph);
    t->graph = NULL;
}

void timing_release(struct run *run)
{
    device_api.release(run->device, run->overwritten);
    run->overwritten = NULL;
}
