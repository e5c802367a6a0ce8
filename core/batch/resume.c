#include "batch/attempt.h"

#include "run/record.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

void resume_by_text(struct batch *b, struct attempt *a)
{
    char case_id[HASH_TEXT], key[HASH_TEXT];
    size_t i;
    json_t *item;

    json_array_foreach(a->expected, i, item)
    {
        attempt_identity(b, a, json_string_value(item), case_id, key);
        take_recorded(b, a, json_string_value(item), key);
    }
}

void resume_by_identity(struct batch *b, struct attempt *a)
{
    const char *name;
    json_t *identity;

    json_object_foreach(a->identities, name, identity)
        take_recorded(b, a, name, json_text_at(identity, "key"));
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
