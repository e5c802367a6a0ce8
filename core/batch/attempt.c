#include "batch/attempt.h"

#include "batch/interrupt.h"
#include "job/memory.h"
#include "report/progress.h"
#include "run/identity.h"
#include "run/record.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct job *batch_job(const struct batch *b, const struct attempt *a)
{
    return &b->plan->jobs[a->index];
}

static void set(json_t **slot, json_t *value)
{
    json_decref(*slot);
    *slot = json_incref(value);
}

bool names_hold(const json_t *names, const char *name)
{
    size_t i;
    json_t *item;

    json_array_foreach(names, i, item) if (strcmp(json_string_value(item), name) == 0) return true;
    return false;
}

/* The job's cases are these: the total follows. */
static void expect(struct batch *b, struct attempt *a, json_t *names)
{
    b->total += json_array_size(names);
    b->total -= json_array_size(a->expected);
    set(&a->expected, names);
}

bool attempt_has_rest(const struct attempt *a)
{
    size_t i;
    json_t *name;

    json_array_foreach(a->expected, i,
                       name) if (!names_hold(a->done, json_string_value(name))) return true;
    return false;
}

/* --- identities --- */

/* The hash of a plugin's file, "" where there is none; the last one is kept, for the next job is mostly of the
 * same plugin. It belongs to the batch. */
static const char *plugin_build(struct batch *b, const char *plugin)
{
    struct why why;
    char *path;

    if (b->hashed != NULL && strcmp(b->hashed, plugin) == 0)
        return b->hash;
    b->hashed = plugin;
    b->hash[0] = '\0';
    if ((path = registry_find(plugin, &why)) != NULL)
        registry_build(path, b->hash, sizeof b->hash);
    free(path);
    return b->hash;
}

/* case_id and key of a case that no worker has told: from the text and the plugin's file. */
void attempt_identity(struct batch *b, const struct attempt *a, const char *name, char *case_id,
                      char *key)
{
    identity_case(a->question, name, case_id);
    identity_key_of_text(case_id, plugin_build(b, batch_job(b, a)->core.plugin), key);
}

/* A record, which it takes over, with the job's part, which the worker told once for all cases. */
static json_t *add_heading(const struct attempt *a, json_t *record)
{
    json_t *whole = a->heading != NULL ? json_copy(a->heading) : json_object();

    json_object_del(whole, "type");
    json_object_del(whole, "no_gpu");
    json_object_update(whole, record);
    json_decref(record);
    if (json_object_get(whole, "cases") == NULL)
        json_object_set(whole, "cases", a->expected);
    return whole;
}

/* What the worker did not know, or did not live to say. */
static void complete_record(struct batch *b, const struct attempt *a, json_t *record)
{
    const char *name = json_text_at(record, "variant");
    const json_t *known = json_object_get(a->identities, name);
    const json_int_t tries = json_integer_value(json_object_get(a->tries, name)) +
                             json_integer_value(json_object_get(a->tries, ""));
    char case_id[HASH_TEXT], key[HASH_TEXT];

    json_object_set_new(record, "attempts", json_integer(tries + 1));
    json_object_set_new(record, "job_id", json_string(a->question));
    if (json_text_at(record, "key")[0] != '\0')
        return;
    if (known != NULL) {
        json_object_set(record, "case_id", json_object_get(known, "case_id"));
        json_object_set(record, "key", json_object_get(known, "key"));
        return;
    }
    attempt_identity(b, a, name, case_id, key);
    json_object_set_new(record, "case_id", json_string(case_id));
    json_object_set_new(record, "key", json_string(key));
}

/* --- cases that end --- */

/* Takes over `record`. */
static void take_record(struct batch *b, struct attempt *a, json_t *record)
{
    record = add_heading(a, record);
    complete_record(b, a, record);
    json_array_append(a->done, json_object_get(record, "variant"));
    ledger_enter(&b->ledger, record);
    progress_end_case(&(struct progress){.done = ledger_count(&b->ledger),
                                         .total = b->total,
                                         .elapsed_s = now_s() - b->start},
                      record);
    json_array_append_new(a->rows, record);
    if (b->options->fail_fast && ledger_has_failure(&b->ledger))
        b->has_stopped = true;
}

/* The record of a case whose worker cannot tell: on the device, where that is known. */
static json_t *lost_record(const struct batch *b, const struct attempt *a, const char *name,
                           enum case_status status, const char *reason)
{
    json_t *record = record_lost(batch_job(b, a), name, status, reason);

    if (a->heading != NULL)
        json_object_set(record, "device", json_object_get(a->heading, "device"));
    if (a->heading != NULL && strcmp(name, "cpu") == 0)
        json_object_set_new(record, "device", json_string("cpu"));
    return record;
}

/* Every expected case without a record ends with this one. */
static void end_rest(struct batch *b, struct attempt *a, enum case_status status,
                     const char *reason)
{
    size_t i;
    json_t *name;

    json_array_foreach(a->expected, i, name) if (!names_hold(a->done, json_string_value(name)))
        take_record(b, a, lost_record(b, a, json_string_value(name), status, reason));
}

/* True when what failed is to be tried again, and counts that; `name` "" is the job as a whole. */
static bool try_again(const struct batch *b, struct attempt *a, const char *name,
                      const char *status, const char *reason)
{
    const json_int_t tries = json_integer_value(json_object_get(a->tries, name));
    const long long retries = batch_job(b, a)->core.retries;

    if (tries >= retries || interrupted)
        return false;
    json_object_set_new(a->tries, name, json_integer(tries + 1));
    a->again = true;
    progress_clear();
    fprintf(stderr, "gpurun: %s%s%s: %s: %s: tried again, %lld of %lld\n", batch_job(b, a)->name,
            name[0] ? " " : "", name, status, reason, (long long)tries + 1, retries);
    return true;
}

static void take_worker_record(struct batch *b, struct attempt *a, json_t *record)
{
    const bool is_error = strcmp(json_text_at(record, "status"), "error") == 0;

    if (is_error &&
        try_again(b, a, json_text_at(record, "variant"), "error", json_text_at(record, "reason")))
        return;
    take_record(b, a, json_incref(record));
}

/* With a case in hand it is that case's fault and the job goes on without it (true); otherwise the whole
 * job ends. */
static bool go_on_without(struct batch *b, struct attempt *a, enum case_status status,
                          const char *how)
{
    const char *name = json_string_value(a->current);
    const bool is_case = name != NULL && !names_hold(a->done, name);
    char reason[400];

    snprintf(reason, sizeof reason, "%s: %s", a->phase[0] ? a->phase : "start", how);
    if (!attempt_has_rest(a)) { /* no case is left to blame, but it is a failure */
        progress_clear();
        fprintf(stderr, "gpurun: %s: %s\n", batch_job(b, a)->name, reason);
        b->any_bad_end = true;
        return false;
    }
    if (try_again(b, a, is_case ? name : "", case_status_name(status), reason))
        return true;
    if (is_case) {
        take_record(b, a, lost_record(b, a, name, status, reason));
        return true;
    }
    end_rest(b, a, status, reason);
    return false;
}

void attempt_lose(struct batch *b, struct attempt *a, enum case_status status, const char *how)
{
    if (a->stage == ATTEMPT_LISTS) /* running it tells more */
        a->stage = b->options->dry_run ? ATTEMPT_OVER : ATTEMPT_RUNS;
    else if (!go_on_without(b, a, status, how))
        a->stage = ATTEMPT_OVER;
}

/* --- one job --- */

struct attempt *attempt_make(const struct batch *b, size_t index)
{
    const struct checked *c = &b->checked[index];
    const char *question = json_text_at(c->description, "question");
    struct attempt *a = allocate(1, sizeof *a);

    *a = (struct attempt){.index = index,
                          .expected = batch_cases(b, index),
                          .done = json_array(),
                          .rows = json_array(),
                          .tries = json_object()};
    if (question[0] != '\0')
        snprintf(a->question, sizeof a->question, "%s", question);
    else
        identity_of_text(&b->plan->jobs[index], a->question);
    return a;
}

void attempt_free(struct attempt *a)
{
    if (a == NULL)
        return;
    json_decref(a->heading);
    json_decref(a->expected);
    json_decref(a->identities);
    json_decref(a->done);
    json_decref(a->rows);
    json_decref(a->tries);
    json_decref(a->current);
    free(a);
}

/* By the text alone first: a job whose setup crashes need not crash again. */
static void start(struct batch *b, struct attempt *a)
{
    const bool is_resumed = b->options->resume || b->options->resume_from_count > 0;

    if (is_resumed && !interrupted)
        resume_by_text(b, a);
    a->stage = is_resumed || b->options->dry_run ? ATTEMPT_LISTS : ATTEMPT_RUNS;
}

json_t *attempt_command(struct batch *b, struct attempt *a, int device)
{
    if (a->stage == ATTEMPT_FRESH)
        start(b, a);
    if (interrupted && !b->options->dry_run)
        end_rest(b, a, CASE_INTERRUPTED, "interrupted");
    if (interrupted || b->has_stopped || !attempt_has_rest(a))
        a->stage = ATTEMPT_OVER;
    if (a->stage == ATTEMPT_OVER)
        return NULL;
    if (a->stage == ATTEMPT_LISTS)
        return json_pack("{sssIsi}", "do", "identify", "job", (json_int_t)a->index, "device",
                         device);
    set(&a->current, NULL);
    a->phase[0] = '\0';
    a->again = false;
    return json_pack("{sssIsOsisI}", "do", "run", "job", (json_int_t)a->index, "skip", a->done,
                     "device", device, "sharers", (json_int_t)b->sharers);
}

/* The worker's list of cases is the right one: only it knows the device. */
static void take_list(struct batch *b, struct attempt *a, const json_t *end)
{
    json_t *names, *identity;
    const char *name;

    a->stage = b->options->dry_run ? ATTEMPT_OVER : ATTEMPT_RUNS;
    if (json_object_get(end, "result") == NULL)
        return;
    set(&a->identities, json_object_get(end, "result"));
    names = json_array();
    json_object_foreach(a->identities, name, identity)
        json_array_append_new(names, json_string(name));
    expect(b, a, names);
    json_decref(names);
    resume_by_identity(b, a);
}

static void take_end(struct batch *b, struct attempt *a, const json_t *message,
                     enum runner_end *end)
{
    *end = (enum runner_end)json_integer_value(json_object_get(message, "end"));
    if (a->stage == ATTEMPT_LISTS) {
        take_list(b, a, message);
        return;
    }
    if (json_object_get(message, "load_error") != NULL) {
        b->any_no_load = true;
        end_rest(b, a, CASE_ERROR, json_text_at(message, "load_error"));
    }
    if (*end != RUNNER_AGAIN && !a->again)
        a->stage = ATTEMPT_OVER;
}

bool attempt_take(struct batch *b, struct attempt *a, const json_t *message, enum runner_end *end)
{
    const char *type = json_text_at(message, "type");

    if (strcmp(type, "phase") == 0) {
        set(&a->current, json_object_get(message, "case"));
        snprintf(a->phase, sizeof a->phase, "%s", json_text_at(message, "phase"));
    } else if (strcmp(type, "cases") == 0) {
        set(&a->identities, json_object_get(message, "cases"));
    } else if (strcmp(type, "job") == 0) {
        set(&a->heading, (json_t *)message);
        expect(b, a, json_object_get(message, "cases"));
    } else if (strcmp(type, "record") == 0) {
        take_worker_record(b, a, json_object_get(message, "record"));
    } else if (strcmp(type, "no-device") == 0) {
        b->any_no_device = true;
    } else if (strcmp(type, "end") == 0) {
        take_end(b, a, message, end);
        return true;
    }
    return false;
}
