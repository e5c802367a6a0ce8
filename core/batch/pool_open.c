/* The pool of pool.h, from its workers' places to its end. */
#include "batch/pool.h"

#include "batch/interrupt.h"
#include "job/memory.h"
#include "job/value.h"
#include "run/record.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LIST_S = 120; /* a driver may take so long to start */

int pool_named_device(const struct job *job)
{
    int64_t index;
    struct why why;

    if (value_parse_int(job->core.device, &index, &why) != GPURUN_OK || index < 0)
        return -1;
    return index < INT_MAX ? (int)index : INT_MAX;
}

bool pool_is_for_cpu(const struct job *job)
{
    return strcmp(job->core.device, "cpu") == 0;
}

const char *pool_uuid(const struct pool *p, int device)
{
    size_t i;
    json_t *d;

    json_array_foreach(p->devices, i, d) if (json_integer_value(json_object_get(d, "index")) ==
                                             device) return json_text_at(d, "uuid");
    return "";
}

/* Asks the first worker, which stays. */
static void list_devices(struct pool *p, struct worker *w, struct why *why)
{
    enum channel_event event = CHANNEL_ENDED;
    json_t *answer = NULL;
    char death[200];

    if (worker_command(w, p->batch->plan, json_pack("{ss}", "do", "devices")))
        event = channel_receive(w->fd, now_s() + LIST_S, &interrupted, &answer);
    if (event == CHANNEL_MESSAGE) {
        const json_t *result = json_object_get(answer, "result");

        p->devices = json_incref(json_object_get(result, "devices"));
        why_fail(why, GPURUN_OK, "%s", json_text_at(result, "why"));
        json_decref(answer);
    } else if (event == CHANNEL_ENDED) {
        worker_bury(w, death, sizeof death);
        why_fail(why, GPURUN_OK, "no worker could list them: %s", death);
    } else {
        why_fail(why, GPURUN_OK, "they were not listed within %gs", LIST_S);
        worker_stop(w, false);
    }
}

static int count_devices(const json_t *devices)
{
    size_t i;
    json_t *d;
    int count = 0;

    json_array_foreach(devices, i, d)
    {
        const int index = (int)json_integer_value(json_object_get(d, "index"));

        count = index >= count ? index + 1 : count;
    }
    return count;
}

/* Every device that was asked for has to be there, and every job has to find its own among them. */
static enum exit_code check_devices(const struct pool *p, const struct why *why)
{
    const struct devices *wanted = &p->batch->options->devices;
    const struct plan *plan = p->batch->plan;
    struct faults faults = {0};
    enum exit_code code;

    if (p->device_count == 0) {
        fprintf(stderr, "gpurun: --devices %s: no device: %s\n", wanted->text, why->text);
        return EXIT_NO_DEVICE;
    }
    for (size_t i = 0; i < wanted->count; i++)
        if (pool_uuid(p, wanted->indexes[i])[0] == '\0') {
            fprintf(stderr,
                    "gpurun: --devices %s: there is no device %d; gpurun devices lists them\n",
                    wanted->text, wanted->indexes[i]);
            return EXIT_NO_DEVICE;
        }
    for (size_t i = 0; i < plan->count; i++) {
        const int named = pool_named_device(&plan->jobs[i]);

        if (p->states[i] == JOB_DUE && named >= 0 && !devices_hold(wanted, named))
            faults_add(&faults, job_origin(&plan->jobs[i], "device"), "device",
                       "%d is not among --devices %s", named, wanted->text);
    }
    code = faults.count > 0 ? EXIT_USAGE : EXIT_PASSED;
    faults_print(&faults);
    faults_free(&faults);
    return code;
}

/* --workers is for the CPU: where there is a GPU, no job may use it. */
static enum exit_code check_workers(const struct pool *p)
{
    const struct plan *plan = p->batch->plan;
    char place[600];

    for (size_t i = 0; i < plan->count && p->device_count > 0; i++)
        if (p->states[i] == JOB_DUE && !pool_is_for_cpu(&plan->jobs[i])) {
            fprintf(stderr,
                    "gpurun: --workers is for jobs with device = cpu, and %s: %s may use a GPU: "
                    "add -s device=cpu, or have one worker per GPU, --devices all\n",
                    origin_text(plan->jobs[i].where, place, sizeof place), plan->jobs[i].name);
            return EXIT_USAGE;
        }
    return EXIT_PASSED;
}

static bool any_for_device(const struct pool *p)
{
    for (size_t i = 0; i < p->batch->plan->count; i++)
        if (p->states[i] == JOB_DUE && !pool_is_for_cpu(&p->batch->plan->jobs[i]))
            return true;
    return false;
}

static void make_slots(struct pool *p, const struct worker *first)
{
    const struct batch_options *o = p->batch->options;

    p->slot_count = 1;
    if (o->workers > 0)
        p->slot_count = (size_t)o->workers;
    else if (o->devices.count > 0)
        p->slot_count = o->devices.count;
    else if (o->devices.is_all && json_array_size(p->devices) > 0)
        p->slot_count = json_array_size(p->devices);
    p->slots = allocate(p->slot_count, sizeof *p->slots);
    p->polls = allocate(p->slot_count, sizeof *p->polls);
    for (size_t i = 0; i < p->slot_count; i++) {
        struct slot *s = &p->slots[i];

        *s = (struct slot){.held = -1, .lock = {-1}};
        if (o->devices.is_all)
            s->device =
                (int)json_integer_value(json_object_get(json_array_get(p->devices, i), "index"));
        else if (o->devices.count > 0)
            s->device = o->devices.indexes[i];
        if (i == 0)
            s->worker = *first;
        if (o->workers > 0)
            s->worker.cpus = (struct cpus){(int)i, (int)o->workers};
    }
    p->batch->sharers = o->workers > 0 ? 1 : p->slot_count;
}

enum exit_code pool_open(struct pool *p, struct batch *b)
{
    const struct batch_options *o = b->options;
    struct worker first = {.cpus = {0, (int)o->workers}};
    struct why why = {""};
    enum exit_code code = EXIT_PASSED;

    *p = (struct pool){.batch = b, .cpu = {-1}};
    p->attempts = allocate(b->plan->count, sizeof *p->attempts);
    p->states = allocate(b->plan->count, sizeof *p->states);
    for (size_t i = 0; i < b->plan->count; i++)
        p->states[i] = shard_takes(&o->shard, b->plan->jobs[i].name) ? JOB_DUE : JOB_TOLD;
    if (o->devices.text != NULL || any_for_device(p))
        list_devices(p, &first, &why);
    p->device_count = count_devices(p->devices);
    b->has_no_device = p->devices != NULL && p->device_count == 0;
    if (o->devices.text != NULL && !interrupted)
        code = check_devices(p, &why);
    else if (o->workers > 0)
        code = check_workers(p);
    make_slots(p, &first);
    return code;
}

void pool_close(struct pool *p)
{
    for (size_t i = 0; i < p->slot_count; i++) {
        worker_stop(&p->slots[i].worker, true);
        lock_release(&p->slots[i].lock);
    }
    lock_release(&p->cpu);
    json_decref(p->devices);
    free(p->slots);
    free(p->polls);
    free(p->attempts);
    free(p->states);
}
