#include "run/record.h"

#include "gpurun/version.h"
#include "job/memory.h"
#include "run/identity.h"
#include "run/machine.h"
#include "run/record_times.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

/* Length of the UTF-8 sequence at `s`, 0 when it is none that JSON may hold. */
static size_t utf8_length(const unsigned char *s)
{
    const size_t length = *s < 0x80             ? 1
                          : (*s & 0xE0) == 0xC0 ? 2
                          : (*s & 0xF0) == 0xE0 ? 3
                          : (*s & 0xF8) == 0xF0 ? 4
                                                : 0;
    uint32_t code;

    if (length < 2)
        return length;
    code = *s & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    if (code < (length == 2   ? 0x80u
                : length == 3 ? 0x800u
                              : 0x10000u) ||
        code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return 0;
    return length;
}

json_t *json_text(const char *text)
{
    char *clean = allocate(3 * strlen(text) + 1, 1), *to = clean;
    json_t *json;

    while (*text != '\0') {
        size_t length = utf8_length((const unsigned char *)text);

        memcpy(to, length ? text : "\xEF\xBF\xBD", length ? length : 3);
        to += length ? length : 3;
        text += length ? length : 1;
    }
    json = json_string(clean);
    free(clean);
    return json;
}

const char *json_text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

bool json_holds(const json_t *list, const json_t *value)
{
    size_t i;
    json_t *item;

    json_array_foreach((json_t *)list, i, item) if (json_equal(item, value)) return true;
    return false;
}

json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *hash_text(uint64_t hash)
{
    char text[17];

    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    return json_string(text);
}

/* --- the job's part --- */

static void add_options(json_t *into, const struct option_table *table, const void *options)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct gpurun_option *row = option_at(table, i);
        json_t *value = row->type == GPURUN_OPTION_TEXT
                            ? json_text(*(const char *const *)((const char *)options + row->offset))
                            : option_to_json(row, options);

        json_object_set_new(into, row->name, value);
    }
}

static json_t *inputs_json(const struct run *run)
{
    json_t *list = json_array();

    for (int i = 0; i < run->buffer_count; i++) {
        const struct buffer *b = &run->buffers[i];
        const struct gpurun_tensor *t = &b->declared;
        json_t *shape, *input;

        if (t->role == GPURUN_OUT)
            continue;
        shape = json_array();
        for (int k = 0; k < t->rank; k++)
            json_array_append_new(shape, json_integer(t->dims[k]));
        input = json_pack("{sssososssIso}", "tensor", t->name, "source",
                          json_text(b->source ? b->source->text : "uniform"), "shape", shape,
                          "dtype", gpurun_dtype_name(t->dtype), "bytes", (json_int_t)t->bytes,
                          "hash", hash_text(b->hash));
        json_array_append_new(list, input);
    }
    return list;
}

static json_t *environment_json(const struct run *run)
{
    const struct device_info *d = &run->device_info;
    char host[256] = "", cpu[256], affinity[256], governor[64];
    json_t *e = json_object();

    gethostname(host, sizeof host - 1);
    identity_cpu_model(cpu, sizeof cpu);
    json_object_set_new(e, "host", json_text(host));
    json_object_set_new(e, "cpu", json_text(cpu));
    json_object_set_new(e, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    json_object_set_new(e, "threads", json_integer(run->core.threads));
    machine_affinity(affinity, sizeof affinity);
    machine_governor(governor, sizeof governor);
    json_object_set_new(e, "cpu_affinity", json_string(affinity));
    json_object_set_new(e, "cpu_governor", governor[0] ? json_text(governor) : json_null());
    json_object_set_new(e, "build", json_string(GPURUN_VERSION));
    json_object_set_new(e, "program_build", json_string(identity_build()));
    json_object_set_new(e, "plugin_build", json_string(run->plugin->build));
    if (run->device == NULL)
        return e;
    json_object_set_new(e, "device_name", json_text(d->name));
    json_object_set_new(e, "device_uuid", json_string(d->uuid));
    json_object_set_new(e, "compute", json_integer(d->limits.compute));
    json_object_set_new(e, "sm_count", json_integer(d->limits.sm_count));
    json_object_set_new(e, "device_bytes", json_integer((json_int_t)d->limits.global_bytes));
    json_object_set_new(e, "driver", json_integer(d->driver));
    json_object_set_new(e, "runtime", json_integer(d->runtime));
    return e;
}

json_t *record_options(const struct run *run)
{
    json_t *options = json_object();

    add_options(options, &core_options_table, &run->core);
    add_options(options, &run->plugin->options, run->ctx.options);
    return options;
}

static json_t *case_names(const struct run *run)
{
    json_t *names = json_array();

    for (int i = 0; i < run->case_count; i++)
        json_array_append_new(names, json_string(run->cases[i].name));
    return names;
}

json_t *record_job(const struct run *run)
{
    json_t *job = json_object();
    char device[16] = "cpu";

    if (run->device != NULL)
        snprintf(device, sizeof device, "gpu:%d", run->device_index);
    json_object_set_new(job, "schema", json_integer(RECORD_SCHEMA));
    json_object_set_new(job, "job", json_text(run->job->name));
    json_object_set_new(job, "plugin", json_string(run->plugin->table->name));
    json_object_set_new(job, "memory", json_string(memory_names[run->core.memory]));
    json_object_set_new(job, "device", json_string(device));
    json_object_set_new(job, "options", record_options(run));
    json_object_set_new(job, "input", inputs_json(run));
    json_object_set_new(job, "environment", environment_json(run));
    json_object_set_new(job, "cases", case_names(run));
    json_object_set_new(job, "started", json_string(run->started));
    return job;
}

/* --- the case's part --- */

static json_t *proof_json(const struct run *run, const struct run_case *c)
{
    static const char *const modes[] = {"none", "full", "certify"};
    const struct gpurun_proof *p = &c->proof;
    json_t *proof, *wrong = json_array(), *relaxed = json_array();

    for (int i = 0; i < WRONG_SHOWN && i < p->wrong; i++)
        json_array_append_new(wrong, json_text(c->wrong[i]));
    if (p->relaxed & GPURUN_UNSORTED)
        json_array_append_new(relaxed, json_string("unsorted"));
    if (p->relaxed & GPURUN_TIES_ANY)
        json_array_append_new(relaxed, json_string("ties_any"));
    if (p->relaxed & GPURUN_FLOAT_BY_BITS)
        json_array_append_new(relaxed, json_string("float_by_bits"));
    proof =
        json_pack("{sssIsIsoso}", "mode", run->core.verify == VERIFY_OFF ? "off" : modes[p->mode],
                  "checked", (json_int_t)p->checked, "wrong", (json_int_t)p->wrong, "first_wrong",
                  wrong, "relaxed", relaxed);
    json_object_set_new(proof, "worst_error", json_number(p->worst_error));
    json_object_set_new(proof, "bound", json_number(p->bound));
    json_object_set_new(proof, "detects", p->detects ? json_text(p->detects) : json_null());
    if (p->relative_to == NULL)
        return proof;
    json_object_set_new(proof, "worst_relative", json_number(p->worst_relative));
    json_object_set_new(proof, "mean_relative", json_number(p->mean_relative));
    json_object_set_new(proof, "relative_to", json_text(p->relative_to));
    return proof;
}

/* On a case of the device: who else computed there. */
static void add_sharing(json_t *record, const struct sharing *s)
{
    json_t *environment = json_copy(json_object_get(record, "environment")), *pids = json_array();

    for (unsigned i = 0; i < s->pid_count; i++)
        json_array_append_new(pids, json_integer(s->pids[i]));
    json_object_set_new(environment, "other_processes", json_integer(s->others));
    json_object_set_new(environment, "other_pids", pids);
    json_object_set_new(record, "environment", environment);
    json_array_append_new(json_object_get(record, "flags"), json_string("shared-device"));
}

json_t *record_case(const struct run *run, const struct run_case *c, const json_t *job)
{
    json_t *record = json_copy((json_t *)job);

    json_object_set_new(record, "variant", json_string(c->name));
    json_object_set_new(
        record, "peer",
        json_boolean(c->variant != NULL && (c->variant->capabilities & GPURUN_PEER)));
    if (c->variant == NULL)
        json_object_set_new(record, "device", json_string("cpu"));
    json_object_set_new(record, "status", json_string(case_status_name(c->status)));
    json_object_set_new(record, "reason", json_text(c->reason));
    json_object_set_new(record, "flags", json_array());
    if (c->variant != NULL && run->sharing.others > 0)
        add_sharing(record, &run->sharing);
    json_object_set_new(record, "proof", proof_json(run, c));
    if (c->status == CASE_PASSED && c->time_ms.count > 0)
        record_times(record, run, c);
    if (c->shown != NULL)
        json_object_set(record, "shown", c->shown);
    if (c->answer != NULL)
        json_object_set(record, "answer", c->answer);
    if (c->answer != NULL && c->time_ms.count > 0)
        json_object_set_new(record, "answer_repeats", json_boolean(!c->answer_varies));
    if (c->path[0] != '\0')
        json_object_set_new(record, "path", json_text(c->path));
    if (c->variant != NULL && run->chosen_by[0] != '\0')
        json_object_set_new(record, "auto", json_text(run->chosen_by));
    json_object_set_new(record, "rounds", json_integer(run->rounds));
    json_object_set_new(record, "round_id", hash_text((uint64_t)run->core.seed));
    json_object_set_new(record, "case_id", json_string(c->case_id));
    json_object_set_new(record, "key", json_string(c->key));
    return record;
}

json_t *record_lost(const struct job *job, const char *name, enum case_status status,
                    const char *reason)
{
    char started[32];
    const time_t now = time(NULL);
    struct tm utc;

    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return json_pack("{sisosososossso*s[]ss}", "schema", RECORD_SCHEMA, "job", json_text(job->name),
                     "plugin", json_text(job->core.plugin), "variant", json_text(name), "device",
                     json_text(job->core.device), "status", case_status_name(status), "reason",
                     json_text(reason), "flags", "started", started);
}
