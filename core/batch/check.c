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

static void check_one(struct worker *w, const struct plan *plan, size_t i, bool options,
                      struct checked *c, struct faults *faults)
{
    json_t *end = NULL;
    char death[200];
    enum channel_event event = CHANNEL_ENDED;

    if (worker_command(
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

    interrupt_catch();
    for (size_t i = 0; i < plan->count && !interrupted; i++)
        if (plan->jobs[i].core.plugin[0] != '\0')
            check_one(&w, plan, i, options, &checked[i], faults);
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
