#include "batch/batch.h"

#include "batch/attempt.h"
#include "batch/baseline.h"
#include "batch/interrupt.h"
#include "report/table.h"
#include "run/identity.h"
#include "run/record.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

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

static void list_dry(struct batch *b, const struct attempt *a)
{
    size_t i;
    json_t *item;

    json_array_foreach(a->rows, i, item)
        printf("%s %s: %s, resumed\n", batch_job(b, a)->name, json_text_at(item, "variant"),
               json_text_at(item, "status"));
    json_array_foreach(a->expected, i, item) if (!names_hold(a->done, json_string_value(item)))
    {
        printf("%s %s: would run\n", batch_job(b, a)->name, json_string_value(item));
        b->would_run++;
    }
}

static void do_job(struct batch *b, struct attempt *a)
{
    const bool is_resumed = b->options->resume || b->options->resume_from_count > 0;

    if (is_resumed && !interrupted)
        resume_find(b, a);
    else if (b->options->dry_run && !interrupted)
        resume_list(b, a);
    if (b->options->dry_run)
        list_dry(b, a);
    else if (interrupted)
        attempt_end_rest(b, a, CASE_INTERRUPTED, "interrupted");
    else
        while (attempt_has_rest(a) && attempt_run(b, a))
            continue;
    if (b->options->format == OUTPUT_TABLE && !b->options->dry_run)
        table_print(batch_job(b, a)->name, a->heading, a->rows);
}

/* From validation; a job that could not be described is one case. */
static json_t *known_cases(const struct checked *c)
{
    json_t *cases = json_object_get(c->description, "cases");

    return cases != NULL ? json_incref(cases) : json_pack("[s]", "cpu");
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
    a.expected = known_cases(&b->checked[index]);
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

static size_t count_cases(const struct checked *c)
{
    json_t *cases = known_cases(c);
    const size_t count = json_array_size(cases);

    json_decref(cases);
    return count;
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
    struct baselines baselines = {0};
    enum exit_code code = EXIT_USAGE;

    b.start = now_s();
    for (size_t i = 0; i < plan->count; i++)
        if (shard_takes(&options->shard, plan->jobs[i].name))
            b.total += count_cases(&checked[i]);
    if ((options->junit == NULL || options->dry_run || output_check_junit(options->junit)) &&
        baselines_read(&baselines, plan, options) && ledger_open(&b.ledger, options) &&
        resume_read(&b)) {
        if (baselines.count > 0 && b.ledger.kept == NULL)
            b.ledger.kept = json_array();
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
        if (options->collect != NULL)
            json_array_extend(options->collect, b.ledger.kept);
        if (!interrupted && baselines_fail(&baselines, b.ledger.kept, options) &&
            code == EXIT_PASSED)
            code = EXIT_FAILED;
    }
    baselines_free(&baselines);
    ledger_free(&b.ledger);
    history_free(&b.history);
    return code;
}
