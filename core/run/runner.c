#include "run/runner.h"
#include "plan/tunable.h"

#include "job/memory.h"
#include "job/value.h"
#include "run/answer.h"
#include "run/case.h"
#include "run/choose.h"
#include "run/guard.h"
#include "run/identity.h"
#include "run/record.h"
#include "run/rounds.h"
#include "run/sample.h"
#include "run/tensors.h"
#include "run/warm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A run with its listener: what the callbacks from the rounds need. */
struct runner {
    const struct runner_listener *listener;
    const struct runner_order *order;
    json_t *job; /* the job's part of every record, once known */
    struct run_case *current;
    const char *phase; /* of it, as last told */
    bool in_rounds;
    bool times_cpu; /* this process has its turn */
    bool has_told;  /* the listener knows the job's part */
    struct run run; /* last: run_prepare clears of it what it needs */
};

static struct runner *make_runner(const struct runner_order *order,
                                  const struct runner_listener *listener)
{
    struct runner *r = allocate_uncleared(sizeof *r);

    memset(r, 0, offsetof(struct runner, run));
    r->order = order;
    r->listener = listener;
    return r;
}

static void say(struct runner *r, json_t *message)
{
    r->listener->say(r->listener->user, message);
}

static void time_cpu(struct runner *r, bool begin)
{
    const double start = now_s();

    if (r->listener->time_cpu == NULL || r->times_cpu == begin)
        return;
    r->times_cpu = begin;
    r->listener->time_cpu(r->listener->user, begin);
    r->run.waited_s += now_s() - start;
}

/* Beside a device the CPU has its turn case by case, so that other devices' workers do not wait for this
 * one's. Without one, all rounds are the CPU's, and nothing comes between them. */
static void enter(void *user, struct run_case *c, const char *phase)
{
    struct runner *r = user;

    guard_restore();
    if (r->phase == NULL || r->current != c || strcmp(r->phase, phase) != 0)
        say(r, json_pack("{ssssso}", "type", "phase", "phase", phase, "case",
                         c ? json_string(c->name) : json_null()));
    r->current = c;
    r->phase = phase;
    if (r->run.device != NULL)
        time_cpu(r, c != NULL && c->variant == NULL && r->in_rounds);
}

/* Without what it has of the job, once that was told. */
static json_t *make_record(const struct runner *r, const struct run_case *c)
{
    json_t *record = record_case(&r->run, c, r->job), *value;
    const char *name;

    json_object_foreach(r->job, name,
                        value) if (r->has_told && json_object_get(record, name) == value)
        json_object_del(record, name);
    return record;
}

static void send_record(struct runner *r, struct run_case *c)
{
    if (c->skipped || c->done)
        return;
    c->done = true;
    say(r, json_pack("{ssso}", "type", "record", "record", make_record(r, c)));
}

/* --- which cases --- */

static bool is_skipped(const json_t *skip, const char *name)
{
    size_t i;
    json_t *item;

    json_array_foreach(skip, i, item) if (strcmp(json_string_value(item), name) == 0) return true;
    return false;
}

static void add_case(struct run *run, const struct gpurun_variant *v, const char *name,
                     const json_t *skip)
{
    struct run_case *c = &run->cases[run->case_count];

    for (int i = 0; i < run->case_count; i++)
        if (strcmp(run->cases[i].name, name) == 0)
            return;
    if (run->case_count == CASES_MAX)
        return;
    *c = (struct run_case){.variant = v, .name = name, .skipped = is_skipped(skip, name)};
    run->case_count++;
}

static enum gpurun_status list_gpu_cases(struct run *run, const json_t *skip)
{
    const char *list = run->core.variant;
    const struct gpurun_variant *v;
    char item[64];

    if (strcmp(list, "auto") == 0) {
        GPURUN_TRY(choose_variant(run, &v));
        if (v != NULL)
            add_case(run, v, v->name, skip);
        return GPURUN_OK;
    }
    if (strcmp(list, "all") == 0) {
        for (uint32_t i = 0; i < run->plugin->table->variant_count; i++) {
            v = plugin_variant(run->plugin, i);
            add_case(run, v, v->name, skip);
        }
        return GPURUN_OK;
    }
    while (list_next(&list, item, sizeof item))
        if ((v = plugin_find_variant(run->plugin, item)) != NULL)
            add_case(run, v, v->name, skip);
    return GPURUN_OK;
}

static enum gpurun_status list_cases(struct run *run, const json_t *skip)
{
    if (run->core.cpu || run->device == NULL)
        add_case(run, NULL, "cpu", skip);
    return run->device != NULL ? list_gpu_cases(run, skip) : GPURUN_OK;
}

/* --- the device --- */

/* Which device the job asks for: its index, or -1 for the CPU with the reason in *why; *demanded is set
 * when there had to be one. `open` is for jobs that leave it open. */
static int choose_device(const struct job *job, int open, bool *demanded, struct why *why)
{
    const char *text = job->core.device;
    struct why unused;
    int64_t index = open;
    int count;

    *demanded = strcmp(text, "auto") != 0 && strcmp(text, "cpu") != 0;
    if (strcmp(text, "cpu") == 0) {
        why_fail(why, GPURUN_OK, "device = cpu");
        return -1;
    }
    count = device_api.count(why);
    if (strcmp(text, "gpu") != 0 && strcmp(text, "auto") != 0)
        value_parse_int(text, &index, &unused);
    if (count > 0 && index >= count) {
        why_fail(why, GPURUN_ERROR, "device = %s: there are %d, numbered from 0", text, count);
        return -1;
    }
    return count > 0 ? (int)index : -1;
}

static enum gpurun_status open_device(struct runner *r, struct why *why)
{
    struct run *run = &r->run;
    bool demanded;
    const int index = choose_device(run->job, r->order->device, &demanded, why);

    if (index < 0 && demanded) {
        say(r, json_pack("{ss}", "type", "no-device"));
        return run_fail(run, GPURUN_ERROR, "no device: %s", why->text);
    }
    if (index >= 0 && run->plugin->table->variant_count == 0) {
        why_fail(why, GPURUN_OK, "%s was built without CUDA", run->plugin->table->name);
        return GPURUN_OK;
    }
    if (index < 0)
        return GPURUN_OK;
    GPURUN_TRY(warm_open(index, &run->device, &run->device_info, &run->why));
    run->device_index = index;
    run->ctx.device = run->device_info.limits;
    run->ctx.stream = device_api.stream(run->device);
    guard_open_device();
    return GPURUN_OK;
}

/* --- proof --- */

static enum gpurun_status prove_case(struct run *run, struct run_case *c)
{
    GPURUN_TRY(case_prepare(run, c));
    GPURUN_TRY(case_prove(run, c));
    answer_keep(run, c);
    if (run->device != NULL)
        c->in_use_bytes = run->ctx.device.global_bytes - device_api.free_bytes(run->device);
    if (c->status == CASE_PASSED)
        c->shown = tensors_show(run);
    tensors_reset_shapes(run);
    return GPURUN_OK;
}

/* Every case once, the CPU first. What fails here is recorded at once. */
static enum gpurun_status prove_all(struct runner *r)
{
    for (int i = 0; i < r->run.case_count; i++) {
        struct run_case *c = &r->run.cases[i];
        enum gpurun_status status;

        if (c->skipped)
            continue;
        enter(r, c, "proof");
        status = prove_case(&r->run, c);
        if (status != GPURUN_OK)
            case_end(&r->run, c, status);
        if (!case_is_live(c))
            send_record(r, c);
        if (status == GPURUN_DEVICE)
            return status;
    }
    return GPURUN_OK;
}

/* --- the answer --- */

/* Whose answer is written: the first passed GPU case that promises everything, else the CPU's. */
static struct run_case *answering_case(struct run *run)
{
    struct run_case *cpu = NULL;

    for (int i = 0; i < run->case_count; i++) {
        struct run_case *c = &run->cases[i];

        if (!case_is_live(c))
            continue;
        if (c->variant == NULL)
            cpu = c;
        else if ((c->variant->capabilities & ~(unsigned)GPURUN_PEER) == 0)
            return c;
    }
    return cpu;
}

/* One more run, proved again, so that what is written is what was just judged. */
static enum gpurun_status write_answer(struct runner *r)
{
    struct run_case *c = answering_case(&r->run);
    enum gpurun_status status;

    if (r->run.job->output_count == 0 || c == NULL)
        return GPURUN_OK;
    enter(r, c, "output");
    status = case_prove(&r->run, c);
    if (status == GPURUN_OK)
        answer_keep(&r->run, c);
    if (status == GPURUN_OK && c->status == CASE_PASSED)
        status = tensors_write_outputs(&r->run);
    if (status != GPURUN_OK)
        case_end(&r->run, c, status);
    return status == GPURUN_DEVICE ? status : GPURUN_OK;
}

/* --- the whole --- */

static void send_job(struct runner *r, const struct why *no_gpu)
{
    json_t *message;

    r->job = record_job(&r->run);
    message = json_copy(r->job);
    json_object_set_new(message, "type", json_string("job"));
    if (r->run.device == NULL)
        json_object_set_new(message, "no_gpu", json_text(no_gpu->text));
    say(r, message);
    r->has_told = true;
}

static json_t *identities(const struct run *run)
{
    json_t *all = json_object();

    for (int i = 0; i < run->case_count; i++)
        json_object_set_new(
            all, run->cases[i].name,
            json_pack("{ssss}", "case_id", run->cases[i].case_id, "key", run->cases[i].key));
    return all;
}

/* Where the CPU only makes data and proves, workers beside each other take a part of the threads each: with all of
 * them, one would wait for the other's. */
static void share_threads(struct runner *r)
{
    struct run *run = &r->run;

    if (run->device == NULL || run->core.cpu || run->job->core.threads != GPURUN_AUTO)
        return;
    run->core.threads = (run->core.threads + r->order->sharers - 1) / r->order->sharers;
    run->ctx.threads = (int)run->core.threads;
}

/* Setup, data, cases. A failure here is every case's. */
static enum gpurun_status begin(struct runner *r)
{
    struct why no_gpu = {""};

    enter(r, NULL, "setup");
    GPURUN_TRY(open_device(r, &no_gpu));
    share_threads(r);
    GPURUN_TRY(run_setup(&r->run));
    GPURUN_TRY(list_cases(&r->run, r->order->skip));
    identity_set(&r->run);
    say(r, json_pack("{ssso}", "type", "cases", "cases", identities(&r->run)));
    enter(r, NULL, "data");
    GPURUN_TRY(tensors_allocate(&r->run));
    GPURUN_TRY(tensors_fill(&r->run));
    send_job(r, &no_gpu);
    return GPURUN_OK;
}

static void look_around(struct run *run)
{
    if (run->device != NULL)
        sharing_look(&run->sharing, run->device_info.uuid);
}

static enum gpurun_status measure(struct runner *r)
{
    enum gpurun_status status;

    look_around(&r->run);
    r->in_rounds = true;
    if (r->run.device == NULL)
        time_cpu(r, true);
    status = rounds_run(&r->run, enter, r);
    time_cpu(r, false);
    r->in_rounds = false;
    look_around(&r->run);
    return status;
}

/* The lifecycle of design.md section 4, in its order. */
static enum gpurun_status live(struct runner *r)
{
    GPURUN_TRY(prove_all(r));
    GPURUN_TRY(measure(r));
    return write_answer(r);
}

static void release_all(struct run *run)
{
    sample_end(run);
    tensors_free(run);
    for (int i = 0; i < run->case_count && run->device != NULL; i++)
        device_api.release(run->device, run->cases[i].state);
    if (run->device != NULL)
        device_api.release(run->device, run->scratch);
    run_finish(run);
}

/* Before there are cases to blame, the job as a whole is the case. */
static void end_all(struct runner *r, enum gpurun_status status)
{
    if (r->run.case_count == 0)
        add_case(&r->run, NULL, "cpu", r->order->skip);
    if (r->job == NULL)
        r->job = record_job(&r->run);
    for (int i = 0; i < r->run.case_count; i++)
        if (case_is_live(&r->run.cases[i]))
            case_end(&r->run, &r->run.cases[i], status);
}

/* The fault is the case's whose turn it was, so that the next attempt has one case less. */
static enum runner_end lose_device(struct runner *r)
{
    if (r->current != NULL && case_is_live(r->current))
        case_end(&r->run, r->current, GPURUN_DEVICE);
    return RUNNER_AGAIN;
}

enum runner_end runner_run(const struct job *job, const struct plugin *plugin,
                           const struct runner_order *order, const struct runner_listener *listener)
{
    struct runner *r = make_runner(order, listener);
    struct faults faults = {0};
    const time_t now = time(NULL);
    enum gpurun_status status;
    enum runner_end end = RUNNER_DONE;
    struct tm utc;

    status = run_prepare(&r->run, job, plugin, &faults);
    r->run.memory_bytes = order->memory;
    strftime(r->run.started, sizeof r->run.started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    if (status != GPURUN_OK)
        run_fail(&r->run, status, "%s", faults.texts[0]);
    else
        status = begin(r);
    if (status == GPURUN_OK && (status = live(r)) == GPURUN_DEVICE)
        end = lose_device(r);
    else if (status != GPURUN_OK)
        end_all(r, status);
    if (status == GPURUN_DEVICE && end == RUNNER_DONE)
        end = RUNNER_REPLACE;
    for (int i = 0; i < r->run.case_count; i++)
        if (end != RUNNER_AGAIN || !case_is_live(&r->run.cases[i]))
            send_record(r, &r->run.cases[i]);
    enter(r, NULL, "teardown");
    release_all(&r->run);
    json_decref(r->job);
    faults_free(&faults);
    free(r);
    return end;
}

/* What `auto` would be here, for people; NULL where the job names its variants, or runs on the CPU. */
static json_t *describe_auto(struct run *run)
{
    const struct gpurun_variant *v;
    bool demanded;
    struct why why;
    int index;

    if (strcmp(run->core.variant, "auto") != 0 || strcmp(run->core.device, "cpu") == 0)
        return NULL;
    index = choose_device(run->job, 0, &demanded, &why);
    if (index < 0 || device_api.info(index, &run->device_info, &why) != GPURUN_OK)
        return json_text("known where there is a GPU");
    run->ctx.device = run->device_info.limits;
    if (choose_variant(run, &v) != GPURUN_OK || v == NULL)
        return json_text("none: built without CUDA");
    return json_sprintf("%s: %s", v->name, run->chosen_by);
}

static json_t *describe_checked(struct run *run, bool options)
{
    json_t *cases = json_array();
    const char *list = run->core.variant;
    char item[64], question[HASH_TEXT];

    if (run->core.cpu)
        json_array_append_new(cases, json_string("cpu"));
    while (strcmp(run->core.device, "cpu") != 0 && list_next(&list, item, sizeof item))
        json_array_append_new(cases, json_string(item));
    identity_question(run, question);
    return json_pack("{sossso*so*}", "cases", cases, "question", question, "options",
                     options ? record_options(run) : NULL, "tunable",
                     options ? tunable_values(&run->plugin->options) : NULL);
}

json_t *runner_check(const struct job *job, const struct plugin *plugin, bool options,
                     struct faults *faults)
{
    struct run *run = allocate_uncleared(sizeof *run);
    json_t *described = NULL;
    enum gpurun_status status = run_prepare(run, job, plugin, faults);

    if (status == GPURUN_OK) {
        choose_check(run, faults);
        status = run_setup(run);
        /* A file or a library that fails is only known by running; a wrong option is known now. */
        if (status == GPURUN_INVALID)
            faults_add_text(faults, run->why.text);
        else
            described = describe_checked(run, options);
        if (status == GPURUN_OK)
            json_object_set_new(described, "foreign", run_foreign_keys(run));
        if (status == GPURUN_OK && options)
            json_object_set_new(described, "auto", describe_auto(run));
    }
    run_finish(run);
    free(run);
    return described;
}

static void silence(void *user, json_t *message)
{
    (void)user;
    json_decref(message);
}

json_t *runner_identify(const struct job *job, const struct plugin *plugin, int device)
{
    const struct runner_listener nobody = {silence, NULL, NULL};
    const struct runner_order order = {NULL, device, 1, 0};
    struct runner *r = make_runner(&order, &nobody);
    struct faults faults = {0};
    struct why no_gpu;
    json_t *found = NULL;

    if (run_prepare(&r->run, job, plugin, &faults) == GPURUN_OK &&
        open_device(r, &no_gpu) == GPURUN_OK && run_setup(&r->run) == GPURUN_OK &&
        list_cases(&r->run, NULL) == GPURUN_OK) {
        identity_set(&r->run);
        found = identities(&r->run);
    }
    release_all(&r->run);
    faults_free(&faults);
    free(r);
    return found;
}

enum gpurun_status runner_probe(int device, struct why *why)
{
    enum { BYTES = 4096 };
    struct device *d = NULL;
    void *memory = NULL;
    enum gpurun_status status;

    if (device_api.count(why) <= device)
        return why_fail(why, GPURUN_DEVICE, "it is not there any more");
    if ((status = device_api.open(device, &d, why)) != GPURUN_OK)
        return status;
    if ((status = device_api.alloc(d, BYTES, &memory, why)) == GPURUN_OK &&
        (status = device_api.fill(d, memory, 0, BYTES, why)) == GPURUN_OK)
        status = device_api.sync(d, why);
    device_api.release(d, memory);
    device_api.close(d);
    return status;
}
