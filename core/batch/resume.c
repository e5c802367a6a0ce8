#include "batch/attempt.h"

#include "batch/interrupt.h"
#include "run/record.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

    if (record != NULL && is_final && !names_hold(a->done, name)) {
        json_object_set_new(record, "resumed", json_true());
        json_array_append_new(a->done, json_string(name));
        json_array_append(a->rows, record);
        ledger_resume(&b->ledger, record);
    }
    json_decref(record);
}

/* The worker's list of cases is the right one: only it knows the device. */
bool resume_list(struct batch *b, struct attempt *a)
{
    const char *name;
    json_t *identity, *names;

    if ((a->identities = ask_identities(b, a->index)) == NULL)
        return false;
    names = json_array();
    json_object_foreach(a->identities, name, identity)
        json_array_append_new(names, json_string(name));
    attempt_expect(b, a, names);
    json_decref(names);
    return true;
}

/* By the text alone first: a job whose setup crashes need not crash again. */
void resume_find(struct batch *b, struct attempt *a)
{
    char case_id[HASH_TEXT], key[HASH_TEXT];
    const char *name;
    size_t i;
    json_t *item;

    json_array_foreach(a->expected, i, item)
    {
        attempt_identity(b, a, json_string_value(item), case_id, key);
        take_recorded(b, a, json_string_value(item), key);
    }
    if (attempt_has_rest(a) && resume_list(b, a))
        json_object_foreach(a->identities, name, item)
            take_recorded(b, a, name, json_text_at(item, "key"));
}

bool resume_read(struct batch *b)
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
