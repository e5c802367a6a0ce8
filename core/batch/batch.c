#include "batch/batch.h"

#include "batch/worker.h"
#include "job/memory.h"
#include "report/table.h"
#include "run/record.h"
#include "run/runner.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* --- talking to a worker --- */

/* Starts the worker if there is none, sends the command. */
static bool command_worker(struct worker *w, const struct plan *plan, json_t *command)
{
    if (w->pid == 0 && !worker_start(w, plan)) {
        json_decref(command);
        return false;
    }
    return channel_send(w->fd, command);
}

json_t *batch_ask(json_t *command)
{
    struct worker w = {0};
    json_t *answer = NULL;
    char death[200];

    if (!command_worker(&w, NULL, command)) {
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

/* --- validation --- */

static void take_check(struct checked *c, const json_t *end, struct faults *faults)
{
    size_t i;
    json_t *fault;
    const char *load_error = json_string_value(json_object_get(end, "load_error"));

    json_array_foreach(json_object_get(end, "faults"), i, fault)
        faults_add_text(faults, json_string_value(fault));
    c->description = json_incref(json_object_get(end, "result"));
    c->no_load = load_error != NULL;
    c->trouble = load_error ? copy_text(load_error) : NULL;
}

static void check_one(struct worker *w, const struct plan *plan, size_t i, bool options,
                      struct checked *c, struct faults *faults)
{
    json_t *end = NULL;
    char death[200];
    enum channel_event event = CHANNEL_ENDED;

    if (command_worker(
            w, plan,
            json_pack("{sssIsb}", "do", "check", "job", (json_int_t)i, "options", options)))
        event = channel_receive(w->fd, now_s() + plan->jobs[i].core.timeout, &interrupted, &end);
    if (event == CHANNEL_MESSAGE) {
        take_check(c, end, faults);
        json_decref(end);
    } else if (event == CHANNEL_ENDED && w->pid > 0) {
        worker_bury(w, death, sizeof death);
        c->trouble = format_text("while it was checked: %s", death);
    } else {
        worker_stop(w, false);
        c->trouble = copy_text("while it was checked: it took longer than its timeout");
    }
}

/* A key of [global] or of -s, and why it is a fault unless another job knows it. */
struct shared_key {
    const char *key, *text;
    struct origin where;
    bool is_known;
};

struct shared_keys {
    struct shared_key *list;
    size_t count;
};

/* A job that could not be described may know every key. */
static void note_shared_key(struct shared_keys *keys, const struct setting *s,
                            const struct checked *c)
{
    const json_t *foreign = json_object_get(c->description, "foreign");
    const char *text = json_string_value(json_object_get(foreign, s->key));
    size_t i = keys->count;

    while (i > 0 && (keys->list[i - 1].where.line != s->where.line ||
                     keys->list[i - 1].where.file != s->where.file ||
                     strcmp(keys->list[i - 1].key, s->key) != 0))
        i--;
    if (i == 0) {
        keys->list = grow(keys->list, keys->count, sizeof *keys->list);
        keys->list[keys->count++] = (struct shared_key){.key = s->key, .where = s->where};
        i = keys->count;
    }
    keys->list[i - 1].text = text;
    keys->list[i - 1].is_known = keys->list[i - 1].is_known || foreign == NULL || text == NULL;
}

/* What --only left out may be whom a key of [global] is for; -s is for those that are left. */
static void check_shared_keys(const struct plan *plan, const struct checked *checked,
                              struct faults *faults)
{
    struct shared_keys keys = {NULL, 0};

    for (size_t i = 0; i < plan->count; i++)
        for (size_t k = 0; k < plan->jobs[i].setting_count; k++) {
            const struct setting *s = &plan->jobs[i].settings[k];

            if (s->shared && !(plan->is_partial && s->where.line > 0))
                note_shared_key(&keys, s, &checked[i]);
        }
    for (size_t i = 0; i < keys.count; i++)
        if (!keys.list[i].is_known)
            faults_add(faults, keys.list[i].where, keys.list[i].key, "%s", keys.list[i].text);
    free(keys.list);
}

struct checked *batch_check(const struct plan *plan, bool options, struct faults *faults)
{
    struct checked *checked = allocate(plan->count, sizeof *checked);
    struct worker w = {0};

    for (size_t i = 0; i < plan->count && !interrupted; i++)
        if (plan->jobs[i].core.plugin[0] != '\0')
            check_one(&w, plan, i, options, &checked[i], faults);
    worker_stop(&w, true);
    check_shared_keys(plan, checked, faults);
    return checked;
}

void batch_free_checked(struct checked *checked, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_decref(checked[i].description);
        free(checked[i].trouble);
    }
    free(checked);
}

/* --- running --- */

struct batch {
    const struct plan *plan;
    const struct checked *checked;
    const struct batch_options *options;
    struct worker worker;
    int records_fd; /* -1: none */
    bool records_failed;
    json_t *records; /* all, for --json */
    bool any_no_load, any_no_device;
    bool any_bad_end; /* a worker died after its job's last record */
    size_t passed, unsupported, failed;
};

/* One job while it runs; its cases by name. */
struct attempt {
    size_t index;
    json_t *heading;  /* the "job" message; NULL before it */
    json_t *expected; /* case names: from validation, then from the worker */
    json_t *done;     /* names with a record */
    json_t *rows;     /* their records, for the table */
    json_t *current;  /* the case in hand: a name, or null */
    char phase[64];
};

/* One line, whole or not at all: what a full disk cut off is taken back. */
static bool write_line(int fd, const char *text, size_t size)
{
    const off_t before = lseek(fd, 0, SEEK_END);
    const ssize_t written = write(fd, text, size);

    if (written == (ssize_t)size)
        return fdatasync(fd) == 0 || errno == EINVAL; /* a pipe has nothing to sync */
    if (written >= 0) {
        if (before >= 0 && ftruncate(fd, before) != 0)
            return false;
        errno = ENOSPC;
    }
    return false;
}

static void append_record(struct batch *b, const json_t *record)
{
    char *text;
    size_t size;

    if (b->records_fd < 0 || b->records_failed)
        return;
    text = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(17));
    size = strlen(text);
    text[size] = '\n'; /* over the terminator */
    b->records_failed = !write_line(b->records_fd, text, size + 1);
    if (b->records_failed)
        fprintf(stderr, "gpurun: --records %s: %s: records from here on are lost\n",
                b->options->records, strerror(errno));
    free(text);
}

static void count_record(struct batch *b, const json_t *record)
{
    const char *status = json_text_at(record, "status");

    if (strcmp(status, "passed") == 0)
        b->passed++;
    else if (strcmp(status, "unsupported") == 0)
        b->unsupported++;
    else
        b->failed++;
}

/* A case has ended: counted, kept, appended. Takes over `record`. */
static void take_record(struct batch *b, struct attempt *a, json_t *record)
{
    json_array_append(a->done, json_object_get(record, "variant"));
    json_array_append(a->rows, record);
    count_record(b, record);
    append_record(b, record);
    json_array_append_new(b->records, record);
}

static bool holds(const json_t *names, const char *name)
{
    size_t i;
    json_t *item;

    json_array_foreach(names, i, item) if (strcmp(json_string_value(item), name) == 0) return true;
    return false;
}

/* Every expected case without a record ends with this one. */
static void end_rest(struct batch *b, struct attempt *a, enum case_status status,
                     const char *reason)
{
    size_t i;
    json_t *name;

    json_array_foreach(a->expected, i, name) if (!holds(a->done, json_string_value(name)))
        take_record(b, a,
                    record_lost(&b->plan->jobs[a->index], json_string_value(name), status, reason));
}

/* The worker died or hung. With a case in hand it is that case's fault and the job goes on without it
 * (true); otherwise the whole job ends. */
static bool lose_worker(struct batch *b, struct attempt *a, enum case_status status,
                        const char *how)
{
    const char *name = json_string_value(a->current);
    const size_t done = json_array_size(a->done);
    char reason[400];

    snprintf(reason, sizeof reason, "%s: %s", a->phase[0] ? a->phase : "start", how);
    if (name != NULL && !holds(a->done, name)) {
        take_record(b, a, record_lost(&b->plan->jobs[a->index], name, status, reason));
        return true;
    }
    end_rest(b, a, status, reason);
    if (json_array_size(a->done) == done) { /* no case is left to blame, but it is a failure */
        fprintf(stderr, "gpurun: %s: %s\n", b->plan->jobs[a->index].name, reason);
        b->any_bad_end = true;
    }
    return false;
}

static void set(json_t **slot, json_t *value)
{
    json_decref(*slot);
    *slot = json_incref(value);
}

/* Takes one message of a running job; true at its end, *end then says what is next. */
static bool take_message(struct batch *b, struct attempt *a, const json_t *message,
                         enum runner_end *end)
{
    const char *type = json_text_at(message, "type");

    if (strcmp(type, "phase") == 0) {
        set(&a->current, json_object_get(message, "case"));
        snprintf(a->phase, sizeof a->phase, "%s", json_text_at(message, "phase"));
        if (!b->options->json)
            table_progress(b->plan->jobs[a->index].name, json_string_value(a->current), a->phase);
    } else if (strcmp(type, "job") == 0) {
        set(&a->heading, (json_t *)message);
        set(&a->expected, json_object_get(message, "cases"));
    } else if (strcmp(type, "record") == 0) {
        take_record(b, a, json_incref(json_object_get(message, "record")));
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

/* One attempt at a job; true when it is to be run again without the cases that have records. */
static bool attempt_job(struct batch *b, struct attempt *a)
{
    const double timeout = b->plan->jobs[a->index].core.timeout;
    const double deadline = now_s() + timeout;
    enum channel_event event = CHANNEL_ENDED;
    enum runner_end end = RUNNER_DONE;
    bool ended = false;
    json_t *message;
    char text[200];

    set(&a->current, NULL);
    a->phase[0] = '\0';
    if (command_worker(
            &b->worker, b->plan,
            json_pack("{sssIsO}", "do", "run", "job", (json_int_t)a->index, "skip", a->done)))
        while (!ended && (event = channel_receive(b->worker.fd, deadline, &interrupted,
                                                  &message)) == CHANNEL_MESSAGE) {
            ended = take_message(b, a, message, &end);
            json_decref(message);
        }
    if (ended) {
        if (end != RUNNER_DONE)
            worker_stop(&b->worker, false);
        return end == RUNNER_AGAIN;
    }
    if (event == CHANNEL_INTERRUPTED) {
        worker_stop(&b->worker, false);
        end_rest(b, a, CASE_INTERRUPTED, "interrupted");
        return false;
    }
    if (event == CHANNEL_TIMEOUT) {
        worker_stop(&b->worker, false);
        snprintf(text, sizeof text, "not done after %gs (timeout)", timeout);
        return lose_worker(b, a, CASE_TIMEOUT, text);
    }
    if (b->worker.pid == 0)
        snprintf(text, sizeof text, "cannot start a process: %s", strerror(errno));
    else
        worker_bury(&b->worker, text, sizeof text);
    return lose_worker(b, a, CASE_CRASHED, text);
}

static void run_job(struct batch *b, size_t index)
{
    const struct checked *c = &b->checked[index];
    struct attempt a = {.index = index, .done = json_array(), .rows = json_array()};

    a.expected = json_incref(json_object_get(c->description, "cases"));
    if (a.expected == NULL)
        a.expected = json_pack("[s]", "cpu");
    if (interrupted)
        end_rest(b, &a, CASE_INTERRUPTED, "interrupted");
    else
        while (attempt_job(b, &a))
            continue;
    if (!b->options->json)
        table_print(b->plan->jobs[index].name, a.heading, a.rows);
    json_decref(a.heading);
    json_decref(a.expected);
    json_decref(a.done);
    json_decref(a.rows);
    json_decref(a.current);
}

static enum exit_code exit_of(const struct batch *b)
{
    if (interrupted)
        return EXIT_INTERRUPTED;
    if (b->any_no_device)
        return EXIT_NO_DEVICE;
    if (b->any_no_load)
        return EXIT_NO_LOAD;
    return b->failed > 0 || b->records_failed || b->any_bad_end ||
                   (b->options->strict && b->unsupported > 0)
               ? EXIT_FAILED
               : EXIT_PASSED;
}

static void print_json(const struct batch *b, enum exit_code code)
{
    json_t *all = json_pack("{sisiso}", "schema", RECORD_SCHEMA, "exit", (int)code, "records",
                            json_incref(b->records));

    json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(all);
}

static bool open_records(struct batch *b)
{
    b->records_fd = -1;
    if (b->options->records == NULL)
        return true;
    b->records_fd = open(b->options->records, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (b->records_fd < 0)
        fprintf(stderr, "gpurun: --records %s: %s\n", b->options->records, strerror(errno));
    return b->records_fd >= 0;
}

enum exit_code batch_run(const struct plan *plan, const struct checked *checked,
                         const struct batch_options *options)
{
    struct batch b = {
        .plan = plan, .checked = checked, .options = options, .records = json_array()};
    const struct sigaction action = {.sa_handler = on_interrupt};
    enum exit_code code = EXIT_USAGE;

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (open_records(&b)) {
        for (size_t i = 0; i < plan->count; i++)
            run_job(&b, i);
        worker_stop(&b.worker, true);
        code = exit_of(&b);
        if (options->json)
            print_json(&b, code);
        else
            table_summary(b.passed, b.unsupported, b.failed,
                          interrupted           ? "INTERRUPTED"
                          : code == EXIT_PASSED ? "PASSED"
                                                : "FAILED");
    }
    if (b.records_fd >= 0 && close(b.records_fd) != 0 && code == EXIT_PASSED)
        code = EXIT_FAILED;
    json_decref(b.records);
    return code;
}
