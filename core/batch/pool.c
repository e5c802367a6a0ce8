#include "batch/pool.h"

#include "batch/interrupt.h"
#include "job/memory.h"
#include "report/progress.h"
#include "run/record.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double PAUSE_S = 2;                      /* who wakes up so late was stopped */
static const double PROBE_S = 60;                     /* a driver may take so long to start */
static const double LOCK_S = 0.1, CPU_LOCK_S = 0.002; /* how often another's lock is tried */
enum { MESSAGES_AT_ONCE = 64 }; /* of one worker, before the others are heard */

static bool has_to_stop(const struct pool *p)
{
    return interrupted || p->batch->has_stopped;
}

/* --- which job goes where --- */

/* A lost device still gets the jobs that name it: they fail with the reason. */
static bool fits(const struct pool *p, const struct slot *s, const struct job *job)
{
    const int named = pool_named_device(job);

    if (named >= 0 && p->batch->options->devices.text != NULL)
        return named == s->device;
    return !s->is_lost;
}

/* The device that the job would run on here; -1: none. */
static int device_for(const struct pool *p, const struct slot *s, const struct job *job)
{
    const int named = pool_named_device(job), device = named >= 0 ? named : s->device;

    return pool_is_for_cpu(job) || device >= p->device_count ? -1 : device;
}

static void let_go(struct slot *s)
{
    lock_release(&s->lock);
    s->held = -1;
    s->is_tried = false;
}

/* Once for each place: what is the matter with the lock of its device. */
static void say_lock(struct slot *s, int device, enum lock_state state, const struct why *why)
{
    if (s->has_said)
        return;
    s->has_said = true;
    progress_clear();
    if (state == LOCK_BUSY)
        fprintf(
            stderr,
            "gpurun: gpu:%d is in use by another gpurun, %s: waiting for it; Ctrl-C ends this\n",
            device, why->text);
    else
        fprintf(stderr, "gpurun: gpu:%d cannot be locked: %s: let no other gpurun use it\n", device,
                why->text);
}

/* The device is this gpurun's until the worker's end, for so long does its context stay there. */
static bool hold(struct pool *p, struct slot *s, int device)
{
    enum lock_state state;
    struct why why;

    if (device < 0 || s->held == device || p->batch->options->dry_run)
        return true;
    if (s->held >= 0) /* its context stays on that one as long as it lives */
        worker_stop(&s->worker, true);
    let_go(s);
    state = lock_take(&s->lock, pool_uuid(p, device), &why);
    if (state != LOCK_HELD)
        say_lock(s, device, state, &why);
    if (state == LOCK_BUSY)
        return false;
    s->held = device;
    return true;
}

/* The first due job that this place can take, or SIZE_MAX. */
static size_t find_job(struct pool *p, struct slot *s)
{
    const struct plan *plan = p->batch->plan;
    int busy = -1;

    s->waits = false;
    while (p->first_due < plan->count && p->states[p->first_due] != JOB_DUE)
        p->first_due++;
    for (size_t i = p->first_due; i < plan->count; i++) {
        const int device = device_for(p, s, &plan->jobs[i]);

        if (p->states[i] != JOB_DUE || !fits(p, s, &plan->jobs[i]))
            continue;
        if ((device < 0 || device != busy) && hold(p, s, device))
            return i;
        s->waits = true;
        busy = device;
    }
    return SIZE_MAX;
}

/* The end of a worker can take longer than lines may wait for the disk. */
static void sync_records(struct pool *p)
{
    records_sync(&p->batch->ledger.records);
}

/* --- one worker's commands --- */

static void end_job(struct pool *p, struct slot *s)
{
    p->states[s->job->index] = JOB_OVER;
    s->job = NULL;
}

/* One that was killed while it had nothing to do is replaced without a word. */
static void replace_dead(struct slot *s)
{
    json_t *stray = NULL;
    char text[200];

    if (s->worker.pid > 0 &&
        (channel_take(s->worker.fd, &s->worker.inbox, &stray) == CHANNEL_ENDED ||
         worker_has_ended(&s->worker)))
        worker_bury(&s->worker, text, sizeof text);
    json_decref(stray);
}

/* Sends the job's next command; at its end the place is idle. */
static void go_on(struct pool *p, struct slot *s)
{
    struct batch *b = p->batch;
    enum case_status status;
    json_t *command;
    char text[200];

    while ((command = attempt_command(b, s->job, s->device)) != NULL) {
        s->deadline = now_s() + batch_job(b, s->job)->core.timeout;
        replace_dead(s);
        if (worker_command(&s->worker, b->plan, command))
            return;
        status = worker_bury(&s->worker, text, sizeof text);
        attempt_lose(b, s->job, status, text);
    }
    end_job(p, s);
}

/* --- a device that may be lost --- */

static size_t count_working(const struct pool *p)
{
    size_t count = 0;

    for (size_t i = 0; i < p->slot_count; i++)
        count += !p->slots[i].is_lost;
    return count;
}

static void lose_device(struct pool *p, struct slot *s, const char *how)
{
    progress_clear();
    fprintf(stderr, "gpurun: gpu:%d is lost: %s: its jobs go to the others\n", s->device, how);
    s->is_probing = false;
    s->is_lost = true;
    worker_stop(&s->worker, false);
    let_go(s);
    if (s->job->stage == ATTEMPT_OVER || pool_named_device(batch_job(p->batch, s->job)) >= 0) {
        go_on(p, s);
        return;
    }
    p->states[s->job->index] = JOB_DUE;
    p->first_due = s->job->index < p->first_due ? s->job->index : p->first_due;
    s->job = NULL;
}

/* At first and after a failure, where other devices could take the jobs: one that is lost would fail them all,
 * and fast. */
static void go_on_if_it_works(struct pool *p, struct slot *s)
{
    const bool may_be_lost = s->held >= 0 && !s->is_lost && count_working(p) > 1;

    if (!may_be_lost || has_to_stop(p)) {
        go_on(p, s);
        return;
    }
    s->is_probing = s->is_tried = true;
    s->deadline = now_s() + PROBE_S;
    if (!worker_command(&s->worker, p->batch->plan,
                        json_pack("{sssi}", "do", "probe", "device", s->held)))
        lose_device(p, s, "no worker can be started");
}

/* --- what workers say --- */

static void take_probe(struct pool *p, struct slot *s, const json_t *message)
{
    const char *trouble = json_text_at(message, "result");

    if (strcmp(json_text_at(message, "type"), "end") != 0)
        return;
    s->is_probing = false;
    if (trouble[0] != '\0')
        lose_device(p, s, trouble);
    else
        go_on(p, s);
}

static void take(struct pool *p, struct slot *s, const json_t *message)
{
    enum runner_end end = RUNNER_DONE;

    if (strcmp(json_text_at(message, "type"), "time-cpu") == 0) {
        pool_ask_turn(p, s, json_is_true(json_object_get(message, "begin")));
    } else if (s->is_probing) {
        take_probe(p, s, message);
    } else if (attempt_take(p->batch, s->job, message, &end)) {
        pool_take_turn_back(p, s);
        if (end == RUNNER_DONE) {
            go_on(p, s);
            return;
        }
        worker_stop(&s->worker, false);
        go_on_if_it_works(p, s);
    }
}

static void lose(struct pool *p, struct slot *s, enum case_status status, const char *how)
{
    pool_take_turn_back(p, s);
    if (s->is_probing) {
        lose_device(p, s, how);
        return;
    }
    attempt_lose(p->batch, s->job, status, how);
    go_on_if_it_works(p, s);
}

static void lose_worker(struct pool *p, struct slot *s)
{
    enum case_status status;
    char text[200];

    sync_records(p);
    status = worker_bury(&s->worker, text, sizeof text);
    lose(p, s, status, text);
}

/* True when the worker lives and has no more to say for now. */
static bool hear(struct pool *p, struct slot *s)
{
    json_t *message;

    for (int i = 0; i < MESSAGES_AT_ONCE && s->job != NULL && !p->batch->has_stopped; i++) {
        switch (channel_take(s->worker.fd, &s->worker.inbox, &message)) {
        case CHANNEL_MESSAGE:
            take(p, s, message);
            json_decref(message);
            break;
        case CHANNEL_ENDED:
            lose_worker(p, s);
            return false;
        default:
            return true;
        }
    }
    return false;
}

/* A keeper that was killed leaves its plugin's processes to nobody, and one of those may keep the channel open. */
static void check_keeper(struct pool *p, struct slot *s)
{
    if (s->job != NULL && worker_has_ended(&s->worker) && hear(p, s) &&
        worker_has_ended(&s->worker))
        lose_worker(p, s);
}

static void check_deadline(struct pool *p, struct slot *s)
{
    char text[200];

    if (s->job == NULL || s->asked_cpu > 0 || now_s() <= s->deadline)
        return;
    sync_records(p);
    worker_stop(&s->worker, false);
    snprintf(text, sizeof text, "not done after %gs (timeout)",
             s->is_probing ? PROBE_S : batch_job(p->batch, s->job)->core.timeout);
    lose(p, s, CASE_TIMEOUT, text);
}

/* --- all workers --- */

static double sooner(double a, double b)
{
    return a < b ? a : b;
}

/* When something is to be done though no worker says a word. */
static double next_event(const struct pool *p)
{
    const double now = now_s(), due = records_sync_due(&p->batch->ledger.records);
    double next = now + 1;

    if (due > 0)
        next = sooner(next, due);
    for (size_t i = 0; i < p->slot_count; i++) {
        const struct slot *s = &p->slots[i];

        if (s->job == NULL && s->waits)
            next = sooner(next, now + LOCK_S);
        if (s->asked_cpu > 0 && p->cpu_is_busy)
            next = sooner(next, now + CPU_LOCK_S);
        if (s->job != NULL && s->asked_cpu == 0)
            next = sooner(next, s->deadline);
    }
    return next;
}

/* Who stops gpurun (Ctrl-Z, a suspended Slurm job) stops its workers too: no job's time runs meanwhile. */
static void forgive_pause(struct pool *p, double slept_s)
{
    const double now = now_s(), late_s = p->awake > 0 ? now - p->awake - slept_s : 0;

    for (size_t i = 0; i < p->slot_count && late_s > PAUSE_S; i++)
        p->slots[i].deadline += late_s;
    p->awake = now;
}

static void wait_for_workers(struct pool *p)
{
    const double left_ms = fmax(0, (next_event(p) - now_s()) * 1e3);
    struct records *records = &p->batch->ledger.records;
    bool any;

    for (size_t i = 0; i < p->slot_count; i++)
        p->polls[i] =
            (struct pollfd){.fd = p->slots[i].job ? p->slots[i].worker.fd : -1, .events = POLLIN};
    any = poll(p->polls, p->slot_count, (int)left_ms + 1) > 0;
    forgive_pause(p, left_ms * 1e-3);
    for (size_t i = 0; i < p->slot_count && any; i++)
        if (p->polls[i].revents != 0)
            hear(p, &p->slots[i]);
    for (size_t i = 0; i < p->slot_count; i++) {
        check_keeper(p, &p->slots[i]);
        check_deadline(p, &p->slots[i]);
    }
    if (p->cpu_is_busy)
        pool_give_turn(p);
    if (records_sync_due(records) > 0 && now_s() >= records_sync_due(records))
        records_sync(records);
}

/* An interrupt, or the first failure under --fail-fast: what runs is not waited for. */
static void stop_all(struct pool *p)
{
    sync_records(p);
    for (size_t i = 0; i < p->slot_count; i++) {
        struct slot *s = &p->slots[i];

        if (s->job == NULL)
            continue;
        worker_stop(&s->worker, false);
        s->is_probing = false;
        go_on(p, s);
    }
}

static void give_jobs(struct pool *p)
{
    for (size_t i = 0; i < p->slot_count; i++) {
        struct slot *s = &p->slots[i];
        size_t job;

        while (s->job == NULL && !has_to_stop(p) && (job = find_job(p, s)) != SIZE_MAX) {
            if (p->attempts[job] == NULL)
                p->attempts[job] = attempt_make(p->batch, job);
            p->states[job] = JOB_IN_HAND;
            s->job = p->attempts[job];
            if (s->held >= 0 && !s->is_tried)
                go_on_if_it_works(p, s);
            else
                go_on(p, s);
        }
    }
}

/* Jobs whose turn it is to be told of; the rest waits for those before it. */
static void tell_jobs(struct pool *p)
{
    const size_t count = p->batch->plan->count;

    while (p->first_kept < count && p->states[p->first_kept] >= JOB_OVER) {
        if (p->states[p->first_kept] == JOB_OVER)
            batch_end_job(p->batch, p->attempts[p->first_kept]);
        attempt_free(p->attempts[p->first_kept]);
        p->attempts[p->first_kept] = NULL;
        p->states[p->first_kept++] = JOB_TOLD;
    }
}

/* What an interrupt or a failure kept from running. */
static void end_due_jobs(struct pool *p)
{
    for (size_t i = 0; i < p->batch->plan->count; i++) {
        if (p->states[i] != JOB_DUE)
            continue;
        if (p->attempts[i] == NULL)
            p->attempts[i] = attempt_make(p->batch, i);
        if (interrupted)
            json_decref(attempt_command(p->batch, p->attempts[i], 0));
        p->states[i] = JOB_OVER;
        tell_jobs(p);
    }
}

static void show_progress(const struct pool *p)
{
    const struct batch *b = p->batch;
    const struct ledger *l = &b->ledger;
    struct progress progress = {.done = ledger_count(l),
                                .resumed = l->resumed,
                                .total = b->total,
                                .failed = l->failed,
                                .elapsed_s = now_s() - b->start};

    for (size_t i = 0; i < p->slot_count && progress.count < PROGRESS_SHOWN; i++) {
        const struct slot *s = &p->slots[i];

        if (s->job == NULL)
            continue;
        progress.running[progress.count++] =
            (struct progress_case){batch_job(b, s->job)->name, json_string_value(s->job->current),
                                   s->asked_cpu > 0 ? "waits for the CPU" : s->job->phase};
    }
    progress_show(&progress);
}

static bool is_any_busy(const struct pool *p)
{
    for (size_t i = 0; i < p->slot_count; i++)
        if (p->slots[i].job != NULL || p->slots[i].waits)
            return true;
    return false;
}

void pool_run(struct pool *p)
{
    while (!has_to_stop(p)) {
        give_jobs(p);
        tell_jobs(p);
        show_progress(p);
        if (!is_any_busy(p))
            break;
        wait_for_workers(p);
    }
    stop_all(p);
    end_due_jobs(p);
    tell_jobs(p);
}
