#include "batch/batch.h"

#include "batch/interrupt.h"
#include "batch/worker.h"
#include "job/memory.h"
#include "run/run.h"
#include <stdlib.h>
#include <string.h>

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

/* The worker is gone, was never there, or has to go: with it the check of a job. */
static void lose_check(struct worker *w, enum channel_event event, struct checked *c)
{
    char death[200];

    if (event == CHANNEL_ENDED) {
        worker_bury(w, death, sizeof death);
        c->trouble = format_text("while it was checked: %s", death);
    } else {
        worker_stop(w, false);
        c->trouble = copy_text("while it was checked: it took longer than its timeout");
    }
}

/* The jobs from `first` on that one command is for: a plugin each, and one memory limit, which is the worker's while
 * it checks them. */
static size_t count_alike(const struct plan *plan, size_t first)
{
    size_t i = first;

    while (i < plan->count && plan->jobs[i].core.plugin[0] != '\0' &&
           plan->jobs[i].core.memory_limit == plan->jobs[first].core.memory_limit)
        i++;
    return i - first;
}

/* Has `count` jobs checked by one command, so that the worker need not wait for this process, and returns how many
 * were: it ends with the first that costs the worker. */
static size_t check_alike(struct worker *w, const struct plan *plan, size_t first, size_t count,
                          bool options, struct checked *checked, struct faults *faults)
{
    size_t i = first;

    if (!worker_command(w, plan,
                        json_pack("{sssIsIsb}", "do", "check", "job", (json_int_t)first, "count",
                                  (json_int_t)count, "options", options))) {
        lose_check(w, CHANNEL_ENDED, &checked[first]);
        return 1;
    }
    for (; i < first + count && !interrupted; i++) {
        json_t *end;
        const double deadline = now_s() + plan->jobs[i].core.timeout;
        const enum channel_event event = channel_receive(w->fd, deadline, &interrupted, &end);

        if (event != CHANNEL_MESSAGE) {
            lose_check(w, event, &checked[i]);
            return i + 1 - first;
        }
        take_check(&checked[i], end, faults);
        json_decref(end);
    }
    return i - first;
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

    interrupt_catch();
    for (size_t i = 0; i < plan->count && !interrupted;) {
        const size_t alike = count_alike(plan, i);

        i += alike > 0 ? check_alike(&w, plan, i, alike, options, checked, faults) : 1;
    }
    worker_stop(&w, true);
    if (!interrupted)
        check_shared_keys(plan, checked, faults);
    return checked;
}

json_t *checked_cases(const struct checked *c)
{
    json_t *cases = json_object_get(c->description, "cases");

    return cases != NULL ? json_incref(cases) : json_pack("[s]", "cpu");
}

void batch_free_checked(struct checked *checked, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_decref(checked[i].description);
        free(checked[i].trouble);
    }
    free(checked);
}
