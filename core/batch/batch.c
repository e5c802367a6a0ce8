#include "batch/batch.h"

#include "batch/attempt.h"
#include "batch/baseline.h"
#include "batch/interrupt.h"
#include "batch/pool.h"
#include "batch/worker.h"
#include "report/table.h"
#include "run/record.h"
#include <stdio.h>
#include <string.h>

json_t *batch_ask(json_t *command, const char *what, double seconds)
{
    struct worker w = {0};
    enum channel_event event;
    json_t *answer = NULL;
    char death[200];

    if (!worker_command(&w, NULL, command)) {
        worker_bury(&w, death, sizeof death);
        fprintf(stderr, "gpurun: %s: %s\n", what, death);
        return NULL;
    }
    event = channel_receive(w.fd, seconds > 0 ? now_s() + seconds : 0, NULL, &answer);
    if (event == CHANNEL_ENDED) {
        worker_bury(&w, death, sizeof death);
        fprintf(stderr, "gpurun: %s: the worker died: %s\n", what, death);
        return NULL;
    }
    worker_stop(&w, event == CHANNEL_MESSAGE);
    if (event == CHANNEL_TIMEOUT)
        fprintf(stderr, "gpurun: %s: no answer after %gs; --timeout TIME waits longer\n", what,
                seconds);
    return answer;
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

void batch_end_job(struct batch *b, const struct attempt *a)
{
    const size_t records = json_array_size(a->rows);

    if (b->has_stopped && records == 0) {
        b->not_run++;
        return;
    }
    ledger_keep(&b->ledger, a->rows);
    if (b->options->dry_run)
        list_dry(b, a);
    else if (b->options->format == OUTPUT_TABLE)
        table_print(batch_job(b, a)->name, a->heading, a->rows);
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

json_t *batch_cases(const struct batch *b, size_t index)
{
    json_t *cases = checked_cases(&b->checked[index]);

    if (!b->has_no_device || strcmp(b->plan->jobs[index].core.device, "auto") != 0 ||
        !names_hold(cases, "cpu"))
        return cases;
    json_decref(cases);
    return json_pack("[s]", "cpu");
}

static size_t count_cases(const struct batch *b)
{
    size_t count = 0;

    for (size_t i = 0; i < b->plan->count; i++)
        if (shard_takes(&b->options->shard, b->plan->jobs[i].name)) {
            json_t *cases = batch_cases(b, i);

            count += json_array_size(cases);
            json_decref(cases);
        }
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

static enum exit_code run_all(struct batch *b, const struct baselines *baselines)
{
    const struct batch_options *o = b->options;
    struct pool pool;
    enum exit_code code = pool_open(&pool, b);

    if (code == EXIT_PASSED) {
        b->total = count_cases(b);
        pool_run(&pool);
        code = exit_of(b, ledger_close(&b->ledger));
        if (o->junit != NULL && !o->dry_run && !output_write_junit(o->junit, b->ledger.kept) &&
            code == EXIT_PASSED)
            code = EXIT_FAILED;
        print_end(b, code);
        if (o->collect != NULL)
            json_array_extend(o->collect, b->ledger.kept);
        if (!interrupted && baselines_fail(baselines, b->ledger.kept, o) && code == EXIT_PASSED)
            code = EXIT_FAILED;
    }
    pool_close(&pool);
    return code;
}

enum exit_code batch_run(const struct plan *plan, const struct checked *checked,
                         const struct batch_options *options)
{
    struct batch b = {.plan = plan, .checked = checked, .options = options};
    struct baselines baselines = {0};
    enum exit_code code = EXIT_USAGE;

    b.start = now_s();
    if ((options->junit == NULL || options->dry_run || output_check_junit(options->junit)) &&
        baselines_read(&baselines, plan, options) && ledger_open(&b.ledger, options) &&
        resume_read(&b)) {
        if (baselines.count > 0 && b.ledger.kept == NULL)
            b.ledger.kept = json_array();
        print_shard(&b);
        code = run_all(&b, &baselines);
    }
    baselines_free(&baselines);
    ledger_free(&b.ledger);
    history_free(&b.history);
    return code;
}
