#include "batch/batch.h"

#include "batch/history.h"
#include "batch/interrupt.h"
#include "batch/ledger.h"
#include "batch/worker.h"
#include "job/memory.h"
#include "report/table.h"
#include "run/identity.h"
#include "run/record.h"
#include "run/runner.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_t *batch_ask(json_t *command)
{
    struct worker w = {0};
    json_t *answer = NULL;
    char death[200];

    if (!worker_command(&w, NULL, command)) {
        fprintf(stderr, "gpurun: cannot start a process: %s\n", strerror(errno));
        return NULL;
    }
    if (channel_receive(w.fd, 0, NULL, &answer) == CHANNEL_MESSAGE) {
        worker_stop(&w, true);
        return answer;
    }
    worker_bury(&w, death, sizeof death);
    fprintf(stderr, "gpurun: the worker died: %s\n", death);
    return NULL;
}

struct batch {
    const struct plan *plan;
    const struct checked *checked;
    const struct batch_options *options;
    struct worker worker;
    struct ledger ledger;
    struct history history; /* empty unless resumed */
    bool any_no_load, any_no_device;
    bool any_bad_end;   /* a worker died after its job's last record */
    bool has_stopped;   /* --fail-fast */
    size_t not_run;     /* jobs after that */
    size_t would_run;   /* --dry-run: cases */
    const char *hashed; /* the plugin whose file's hash is `hash` */
    char hash[HASH_TEXT];
};

/* One job while it runs; its cases by name. */
struct attempt {
    size_t index;
    json_t *heading;    /* the "job" message; NULL before it */
    json_t *expected;   /* case names: from validation, then from the worker */
    json_t *identities; /* of the cases, from the worker; NULL before it has them */
    json_t *done;       /* names with a record */
    json_t *rows;       /* their records, for the table */
    json_t *tries;      /* by name, how often a case was tried in vain and is tried again */
    json_t *current;    /* the case in hand: a name, or null */
    bool again;         /* a case is to be tried again */
    char phase[64];
    char question[HASH_TEXT]; /* the part of case_id that its cases share */
};

static const struct job *job_of(const struct batch *b, const struct attempt *a)
{
    return &b->plan->jobs[a->index];
}

static void set(json_t **slot, json_t *value)
{
    json_decref(*slot);
    *slot = json_incref(value);
}

static bool holds(const json_t *names, const char *name)
{
    size_t i;
    json_t *item;

    json_array_foreach(names, i, item) if (strcmp(json_string_value(item), name) == 0) return true;
    return false;
}

static bool has_rest(const struct attempt *a)
{
    size_t i;
    json_t *name;

    json_array_foreach(a->expected, i,
                       name) if (!holds(a->done, json_string_value(name))) return true;
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
static void text_identity(struct batch *b, const struct attempt *a, const char *name, char *case_id,
                          char *key)
{
    identity_case(a->question, name, case_id);
    identity_key_of_text(case_id, plugin_build(b, job_of(b, a)->core.plugin), key);
}

/* The job's part of a record whose worker died after it had told it. */
static void add_heading(const struct attempt *a, json_t *record)
{
    static const char *const fields[] = {"memory", "options", "input", "environment", "cases"};

    for (size_t i = 0; a->heading != NULL && i < sizeof fields / sizeof fields[0]; i++)
        if (json_object_get(record, fields[i]) == NULL)
            json_object_set(record, fields[i], json_object_get(a->heading, fields[i]));
    if (json_object_get(record, "cases") == NULL)
        json_object_set(record, "cases", a->expected);
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
    add_heading(a, record);
    if (json_text_at(record, "key")[0] != '\0')
        return;
    if (known != NULL) {
        json_object_set(record, "case_id", json_object_get(known, "case_id"));
        json_object_set(record, "key", json_object_get(known, "key"));
        return;
    }
    text_identity(b, a, name, case_id, key);
    json_object_set_new(record, "case_id", json_string(case_id));
    json_object_set_new(record, "key", json_string(key));
}

/* --- cases that end --- */

/* Takes over `record`. */
static void take_record(struct batch *b, struct attempt *a, json_t *record)
{
    complete_record(b, a, record);
    json_array_append(a->done, json_object_get(record, "variant"));
    ledger_enter(&b->ledger, record);
    json_array_append_new(a->rows, record);
    if (b->options->fail_fast && ledger_has_failure(&b->ledger))
        b->has_stopped = true;
}

/* The record of a case whose worker cannot tell: on the device, where that is known. */
static json_t *lost_record(const struct batch *b, const struct attempt *a, const char *name,
                           enum case_status status, const char *reason)
{
    json_t *record = record_lost(job_of(b, a), name, status, reason);

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

    json_array_foreach(a->expected, i, name) if (!holds(a->done, json_string_value(name)))
        take_record(b, a, lost_record(b, a, json_string_value(name), status, reason));
}

/* True when what failed is to be tried again, and counts that; `name` "" is the job as a whole. */
static bool try_again(const struct batch *b, struct attempt *a, const char *name,
                      const char *status, const char *reason)
{
    const json_int_t tries = json_integer_value(json_object_get(a->tries, name));
    const long long retries = job_of(b, a)->core.retries;

    if (tries >= retries || interrupted)
        return false;
    json_object_set_new(a->tries, name, json_integer(tries + 1));
    a->again = true;
    fprintf(stderr, "gpurun: %s%s%s: %s: %s: tried again, %lld of %lld\n", job_of(b, a)->name,
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

/* The worker died or hung. With a case in hand it is that case's fault and the job goes on without it
 * (true); otherwise the whole job ends. */
static bool lose_worker(struct batch *b, struct attempt *a, enum case_status status,
                        const char *how)
{
    const char *name = json_string_value(a->current);
    const bool is_case = name != NULL && !holds(a->done, name);
    char reason[400];

    snprintf(reason, sizeof reason, "%s: %s", a->phase[0] ? a->phase : "start", how);
    if (!has_rest(a)) { /* no case is left to blame, but it is a failure */
        fprintf(stderr, "gpurun: %s: %s\n", job_of(b, a)->name, reason);
        b->any_bad_end = true;
        return false;
    }
    if (try_again(b, a, is_case ? name : "", case_status_name(status), reason))
        return true;
    if (is_case) {
        take_record(b, a, lost_record(b, a, name, status, reason));
        return !b->has_stopped;
    }
    end_rest(b, a, status, reason);
    return false;
}

/* --- one job --- */

/* Takes one message of a running job; true at its end, *end then says what is next. */
static bool take_message(struct batch *b, struct attempt *a, const json_t *message,
                         enum runner_end *end)
{
    const char *type = json_text_at(message, "type");

    if (strcmp(type, "phase") == 0) {
        set(&a->current, json_object_get(message, "case"));
        snprintf(a->phase, sizeof a->phase, "%s", json_text_at(message, "phase"));
        if (b->options->format == OUTPUT_TABLE)
            table_progress(job_of(b, a)->name, json_string_value(a->current), a->phase);
    } else if (strcmp(type, "cases") == 0) {
        set(&a->identities, json_object_get(message, "cases"));
    } else if (strcmp(type, "job") == 0) {
        set(&a->heading, (json_t *)message);
        set(&a->expected, json_object_get(message, "cases"));
    } else if (strcmp(type, "record") == 0) {
        take_worker_record(b, a, json_object_get(message, "record"));
    } else if (strcmp(type, "no-device") == 0) {
        b->any_no_device = true;
    } else if (strcmp(type, "end") == 0) {
        *end = (enum runner_end)json_integer_value(json_object_get(message, "end"));
        if (json_object_get(message, "load_error") != NULL) {
            b->any_no_load = true;
            end_rest(b, a, CASE_ERROR, json_text_at(message, "load_error"));
        }
        return true;
    }
    return false;
}

/* The next message; lines of --records are synced while there is none. */
static enum channel_event next_message(struct batch *b, double deadline, json_t **message)
{
    const double due = records_sync_due(&b->ledger.records);

    if (due > 0 && !channel_wait(b->worker.fd, due))
        records_sync(&b->ledger.records);
    return channel_receive(b->worker.fd, deadline, &interrupted, message);
}

/* Takes messages until the job's end (true), or until it cannot go on: *event says why. */
static bool follow_job(struct batch *b, struct attempt *a, enum channel_event *event,
                       enum runner_end *end)
{
    const double deadline = now_s() + job_of(b, a)->core.timeout;
    bool ended = false;
    json_t *message;

    *event = CHANNEL_ENDED;
    if (!worker_command(
            &b->worker, b->plan,
            json_pack("{sssIsO}", "do", "run", "job", (json_int_t)a->index, "skip", a->done)))
        return false;
    while (!ended && !b->has_stopped &&
           (*event = next_message(b, deadline, &message)) == CHANNEL_MESSAGE) {
        ended = take_message(b, a, message, end);
        json_decref(message);
    }
    return ended;
}

/* One attempt at a job; true when it is to be run again without the cases that have records. */
static bool attempt_job(struct batch *b, struct attempt *a)
{
    enum channel_event event;
    enum runner_end end = RUNNER_DONE;
    char text[200];

    set(&a->current, NULL);
    a->phase[0] = '\0';
    a->again = false;
    if (follow_job(b, a, &event, &end)) {
        if (end != RUNNER_DONE)
            worker_stop(&b->worker, false);
        return !b->has_stopped && (end == RUNNER_AGAIN || a->again);
    }
    if (b->has_stopped) {
        worker_stop(&b->worker, false);
        return false;
    }
    if (event == CHANNEL_INTERRUPTED) {
        worker_stop(&b->worker, false);
        end_rest(b, a, CASE_INTERRUPTED, "interrupted");
        return false;
    }
    if (event == CHANNEL_TIMEOUT) {
        worker_stop(&b->worker, false);
        snprintf(text, sizeof text, "not done after %gs (timeout)", job_of(b, a)->core.timeout);
        return lose_worker(b, a, CASE_TIMEOUT, text);
    }
    if (b->worker.pid == 0)
        snprintf(text, sizeof text, "cannot start a process: %s", strerror(errno));
    else
        worker_bury(&b->worker, text, sizeof text);
    return lose_worker(b, a, CASE_CRASHED, text);
}

/* --- what earlier batches did --- */

/* The job's cases with their identities, from the worker; NULL when it cannot tell. */
static json_t *ask_identities(struct batch *b, size_t index)
{
    const double deadline = now_s() + b->plan->jobs[index].core.timeout;
    enum channel_event event = CHANNEL_ENDED;
    json_t *end = NULL, *found;
    char death[200];

    if (worker_command(&b->worker, b->plan,
                       json_pack("{sssI}", "do", "identify", "job", (json_int_t)index)))
        event = channel_receive(b->worker.fd, deadline, &interrupted, &end);
    if (event == CHANNEL_ENDED && b->worker.pid > 0)
        worker_bury(&b->worker, death, sizeof death);
    else if (event != CHANNEL_MESSAGE)
        worker_stop(&b->worker, false);
    found = json_incref(json_object_get(end, "result"));
    json_decref(end);
    return found;
}

/* Takes the case for done when its last record says how it ended. */
static void take_recorded(struct batch *b, struct attempt *a, const char *name, const char *key)
{
    json_t *record = history_find(&b->history, key);
    const char *status = json_text_at(record, "status");
    const bool is_final = strcmp(status, "interrupted") != 0 &&
                          (!b->options->retry_failed || strcmp(status, "passed") == 0);

    if (record != NULL && is_final && !holds(a->done, name)) {
        json_object_set_new(record, "resumed", json_true());
        json_array_append_new(a->done, json_string(name));
        json_array_append(a->rows, record);
        ledger_resume(&b->ledger, record);
    }
    json_decref(record);
}

/* The worker's list of cases is the right one: only it knows the device. */
static bool list_cases(struct batch *b, struct attempt *a)
{
    const char *name;
    json_t *identity;

    if ((a->identities = ask_identities(b, a->index)) == NULL)
        return false;
    json_decref(a->expected);
    a->expected = json_array();
    json_object_foreach(a->identities, name, identity)
        json_array_append_new(a->expected, json_string(name));
    return true;
}

/* By the text alone first: a job whose setup crashes need not crash again. */
static void find_recorded(struct batch *b, struct attempt *a)
{
    char case_id[HASH_TEXT], key[HASH_TEXT];
    const char *name;
    size_t i;
    json_t *item;

    json_array_foreach(a->expected, i, item)
    {
        text_identity(b, a, json_string_value(item), case_id, key);
        take_recorded(b, a, json_string_value(item), key);
    }
    if (has_rest(a) && list_cases(b, a))
        json_object_foreach(a->identities, name, item)
            take_recorded(b, a, name, json_text_at(item, "key"));
}

static bool read_history(struct batch *b)
{
    const struct batch_options *o = b->options;

    for (size_t i = 0; i < o->resume_from_count; i++)
        if (!history_read(&b->history, o->resume_from[i]))
            return false;
    if (!o->resume || o->records == NULL || (o->dry_run && access(o->records, F_OK) != 0))
        return true;
    if (!o->dry_run && !b->ledger.records.is_regular) {
        fprintf(stderr, "gpurun: --resume: %s is no regular file\n", o->records);
        return false;
    }
    return history_read(&b->history, o->records);
}

/* --- all jobs --- */

static void list_dry(struct batch *b, const struct attempt *a)
{
    size_t i;
    json_t *item;

    json_array_foreach(a->rows, i, item)
        printf("%s %s: %s, resumed\n", job_of(b, a)->name, json_text_at(item, "variant"),
               json_text_at(item, "status"));
    json_array_foreach(a->expected, i, item) if (!holds(a->done, json_string_value(item)))
    {
        printf("%s %s: would run\n", job_of(b, a)->name, json_string_value(item));
        b->would_run++;
    }
}

static void do_job(struct batch *b, struct attempt *a)
{
    const bool is_resumed = b->options->resume || b->options->resume_from_count > 0;

    if (is_resumed && !interrupted)
        find_recorded(b, a);
    else if (b->options->dry_run && !interrupted)
        list_cases(b, a);
    if (b->options->dry_run)
        list_dry(b, a);
    else if (interrupted)
        end_rest(b, a, CASE_INTERRUPTED, "interrupted");
    else
        while (has_rest(a) && attempt_job(b, a))
            continue;
    if (b->options->format == OUTPUT_TABLE && !b->options->dry_run)
        table_print(job_of(b, a)->name, a->heading, a->rows);
}

static void run_job(struct batch *b, size_t index)
{
    const char *question = json_text_at(b->checked[index].description, "question");
    struct attempt a = {
        .index = index, .done = json_array(), .rows = json_array(), .tries = json_object()};

    if (question[0] != '\0')
        snprintf(a.question, sizeof a.question, "%s", question);
    else
        identity_of_text(&b->plan->jobs[index], a.question);
    a.expected = json_incref(json_object_get(b->checked[index].description, "cases"));
    if (a.expected == NULL)
        a.expected = json_pack("[s]", "cpu");
    do_job(b, &a);
    json_decref(a.heading);
    json_decref(a.expected);
    json_decref(a.identities);
    json_decref(a.done);
    json_decref(a.rows);
    json_decref(a.tries);
    json_decref(a.current);
}

static enum exit_code exit_of(const struct batch *b, bool all_on_disk)
{
    if (interrupted)
        return EXIT_INTERRUPTED;
    if (b->any_no_device)
        return EXIT_NO_DEVICE;
    if (b->any_no_load)
        return EXIT_NO_LOAD;
    if (b->options->dry_run)
        return EXIT_PASSED;
    return ledger_has_failure(&b->ledger) || !all_on_disk || b->any_bad_end ? EXIT_FAILED
                                                                            : EXIT_PASSED;
}

static void print_end(const struct batch *b, enum exit_code code)
{
    const struct ledger *l = &b->ledger;

    if (b->options->dry_run)
        printf("%zu case%s would run, %zu resumed\n", b->would_run, b->would_run == 1 ? "" : "s",
               l->resumed);
    else if (b->options->format != OUTPUT_TABLE)
        output_print(b->options->format, l->kept, code);
    else
        table_summary(l->passed, l->unsupported, l->failed, l->resumed,
                      interrupted           ? "INTERRUPTED"
                      : code == EXIT_PASSED ? "PASSED"
                                            : "FAILED");
    if (b->has_stopped)
        fprintf(stderr, "gpurun: stopped at the first failure (--fail-fast): %zu job%s not run\n",
                b->not_run, b->not_run == 1 ? "" : "s");
}

static void print_shard(const struct batch *b)
{
    const struct shard *shard = &b->options->shard;
    size_t taken = 0;

    for (size_t i = 0; i < b->plan->count; i++)
        taken += shard_takes(shard, b->plan->jobs[i].name);
    if (shard->count > 0)
        fprintf(stderr, "gpurun: part %ld of %ld: %zu of %zu jobs\n", shard->index, shard->count,
                taken, b->plan->count);
}

enum exit_code batch_run(const struct plan *plan, const struct checked *checked,
                         const struct batch_options *options)
{
    struct batch b = {.plan = plan, .checked = checked, .options = options};
    enum exit_code code = EXIT_USAGE;

    interrupt_catch();
    if ((options->junit == NULL || options->dry_run || output_check_junit(options->junit)) &&
        ledger_open(&b.ledger, options) && read_history(&b)) {
        print_shard(&b);
        for (size_t i = 0; i < plan->count; i++)
            if (!shard_takes(&options->shard, plan->jobs[i].name))
                continue;
            else if (b.has_stopped)
                b.not_run++;
            else
                run_job(&b, i);
        worker_stop(&b.worker, true);
        code = exit_of(&b, ledger_close(&b.ledger));
        if (options->junit != NULL && !options->dry_run &&
            !output_write_junit(options->junit, b.ledger.kept) && code == EXIT_PASSED)
            code = EXIT_FAILED;
        print_end(&b, code);
    }
    ledger_free(&b.ledger);
    history_free(&b.history);
    return code;
}
