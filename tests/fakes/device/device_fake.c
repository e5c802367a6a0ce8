/*
 * A pretend GPU in host memory, for tests of everything around a device on machines without one: a gpurun
 * linked with this file runs the fakes' variants, which are plain C functions. GPURUN_FAKE_DEVICE sets
 * what it is like: "none" (no device), "small" (1 MB free), "lost" (every wait fails), "serial" (it cannot be
 * held), "late" (every hold runs out), "graphless" (nothing can be in a graph), "skewed" (its clock is 2 % fast), or unset.
 * GPURUN_FAKE_DEVICES is how many there are, 1 when unset; device 1 is lost as soon as there is a file
 * GPURUN_FAKE_LOST.
 */
#include "job/memory.h"
#include "run/device.h"
#include "run/run.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct device {
    int index;
    double started_s;
    bool is_held;
    size_t used;
};

struct device_graph {
    device_work *work;
    void *user;
    int repeats;
};

static const size_t SMALL_BYTES = 1 << 20, LARGE_BYTES = (size_t)1 << 34;

static bool is(const char *what)
{
    const char *set = getenv("GPURUN_FAKE_DEVICE");

    return set != NULL && strcmp(set, what) == 0;
}

static int count(struct why *why)
{
    const char *devices = getenv("GPURUN_FAKE_DEVICES");

    if (!is("none"))
        return devices ? atoi(devices) : 1;
    why_fail(why, GPURUN_UNSUPPORTED, "the fake driver has no device");
    return 0;
}

static enum gpurun_status info(int index, struct device_info *out, struct why *why)
{
    (void)why;
    *out = (struct device_info){.name = "Fake GPU",
                                .limits = {.compute = 90,
                                           .sm_count = 1,
                                           .shared_bytes = 1 << 16,
                                           .l2_bytes = 1 << 20,
                                           .global_bytes = LARGE_BYTES}};
    snprintf(out->uuid, sizeof out->uuid, "GPU-00000000-0000-0000-0000-%012d", index);
    return GPURUN_OK;
}

static enum gpurun_status open_device(int index, struct device **out, struct why *why)
{
    (void)why;
    *out = allocate(1, sizeof **out);
    (*out)->index = index;
    return GPURUN_OK;
}

static void close_device(struct device *d)
{
    free(d);
}

static gpurun_stream stream(struct device *d)
{
    return d;
}

static size_t free_bytes(struct device *d)
{
    return (is("small") ? SMALL_BYTES : LARGE_BYTES) - d->used;
}

static enum gpurun_status alloc(struct device *d, size_t bytes, void **out, struct why *why)
{
    *out = NULL;
    if (bytes > free_bytes(d) || (*out = malloc(bytes)) == NULL)
        return why_fail(why, GPURUN_NO_MEMORY, "%zu bytes of device memory: out of memory", bytes);
    d->used += is("small") ? bytes : 0;
    return GPURUN_OK;
}

static enum gpurun_status alloc_host(struct device *d, size_t bytes, bool mapped, void **out,
                                     struct why *why)
{
    (void)mapped;
    return alloc(d, bytes, out, why);
}

static enum gpurun_status device_view(struct device *d, void *mapped_host, void **out,
                                      struct why *why)
{
    (void)d;
    (void)why;
    *out = mapped_host;
    return GPURUN_OK;
}

static void release(struct device *d, void *pointer)
{
    (void)d;
    free(pointer);
}

static enum gpurun_status copy(struct device *d, void *to, const void *from, size_t bytes,
                               struct why *why)
{
    (void)d;
    (void)why;
    memcpy(to, from, bytes);
    return GPURUN_OK;
}

static enum gpurun_status fill(struct device *d, void *pointer, int byte, size_t bytes,
                               struct why *why)
{
    (void)d;
    (void)why;
    memset(pointer, byte, bytes);
    return GPURUN_OK;
}

static enum gpurun_status prefetch(struct device *d, void *pointer, size_t bytes, bool to_host,
                                   struct why *why)
{
    (void)d;
    (void)pointer;
    (void)bytes;
    (void)to_host;
    (void)why;
    return GPURUN_OK;
}

static enum gpurun_status read_all(struct device *d, const void *pointer, size_t bytes,
                                   struct why *why)
{
    static volatile unsigned char sink;

    (void)d;
    (void)why;
    for (size_t i = 0; i < bytes; i += 64)
        sink = ((const unsigned char *)pointer)[i];
    (void)sink;
    return GPURUN_OK;
}

static bool is_lost(const struct device *d)
{
    const char *file = getenv("GPURUN_FAKE_LOST");

    return is("lost") || (d->index == 1 && file != NULL && access(file, F_OK) == 0);
}

static enum gpurun_status sync_stream(struct device *d, struct why *why)
{
    return is_lost(d) ? why_fail(why, GPURUN_DEVICE, "the fake device fell off the bus")
                      : GPURUN_OK;
}

static enum gpurun_status timer_start(struct device *d, bool hold, struct why *why)
{
    (void)why;
    d->is_held = hold;
    d->started_s = now_s();
    return GPURUN_OK;
}

static enum gpurun_status timer_stop(struct device *d, double *ms, bool *ran_out, struct why *why)
{
    *ms = (now_s() - d->started_s) * (is("skewed") ? 1.02e3 : 1e3);
    *ran_out = d->is_held && is("late");
    return sync_stream(d, why);
}

static bool can_hold(struct device *d, struct why *why)
{
    (void)d;
    if (is("serial"))
        why_fail(why, GPURUN_UNSUPPORTED, "the fake device launches one by one");
    return !is("serial");
}

static enum gpurun_status graph_launch(struct device *d, struct device_graph *graph,
                                       struct why *why)
{
    enum gpurun_status status = GPURUN_OK;

    (void)d;
    (void)why;
    for (int i = 0; i < graph->repeats && status == GPURUN_OK; i++)
        status = graph->work(graph->user);
    return status;
}

static enum gpurun_status graph_make(struct device *d, device_work *work, void *user, int repeats,
                                     struct device_graph **out, struct why *why)
{
    *out = NULL;
    if (is("graphless"))
        return why_fail(why, GPURUN_UNSUPPORTED, "the fake device has no graphs");
    *out = allocate(1, sizeof **out);
    **out = (struct device_graph){work, user, repeats};
    return graph_launch(d, *out, why);
}

static void graph_free(struct device_graph *graph)
{
    free(graph);
}

static enum gpurun_status spin(struct device *d, double seconds, struct why *why)
{
    const double end = now_s() + seconds;

    (void)d;
    (void)why;
    while (now_s() < end)
        continue;
    return GPURUN_OK;
}

const struct device_api device_api = {
    .count = count,
    .info = info,
    .open = open_device,
    .close = close_device,
    .stream = stream,
    .free_bytes = free_bytes,
    .alloc = alloc,
    .alloc_managed = alloc,
    .alloc_host = alloc_host,
    .device_view = device_view,
    .release = release,
    .release_host = release,
    .copy = copy,
    .fill = fill,
    .prefetch = prefetch,
    .read = read_all,
    .sync = sync_stream,
    .timer_start = timer_start,
    .timer_stop = timer_stop,
    .can_hold = can_hold,
    .graph_make = graph_make,
    .graph_launch = graph_launch,
    .graph_free = graph_free,
    .spin = spin,
};
