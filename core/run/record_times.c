#include "run/record_times.h"

#include "measure/shape.h"
#include "run/record.h"
#include <string.h>

/* Below, neither a ceiling nor a case is bound by memory on a large device. */
static const double SUSPECT_BYTES = 32e6, SUSPECT_PERCENT = 105;
static const double NOISY = 0.02; /* half width of the median's interval, over the median */

static json_t *stats_json(const struct samples *s)
{
    const struct stats t = stats_of(s->values, s->count);
    json_t *json;

    if (t.n == 0)
        return json_null();
    json = json_pack("{sIsfsfsfsfsfsfsf}", "n", (json_int_t)t.n, "min", t.min, "p5", t.p5, "q1",
                     t.q1, "median", t.median, "q3", t.q3, "p95", t.p95, "max", t.max);
    json_object_set_new(json, "mean", json_real(t.mean));
    json_object_set_new(json, "sd", json_real(t.sd));
    json_object_set_new(json, "mad", json_real(t.mad));
    json_object_set_new(json, "median_ci95", json_pack("[ff]", t.low, t.high));
    json_object_set_new(json, "outliers",
                        json_integer((json_int_t)shape_outliers(s->values, s->count)));
    return json;
}

static json_t *ratio_json(const struct samples *numerator, const struct samples *denominator)
{
    const struct stats t = stats_of_ratio(numerator, denominator);

    if (t.n == 0)
        return json_null();
    return json_pack("{sIsfs[ff]}", "rounds", (json_int_t)t.n, "median", t.median, "median_ci95",
                     t.low, t.high);
}

/* What a ratio is over, where its name alone does not say. */
static void name_yardstick(json_t *ratio, const struct run *run, const struct run_case *c)
{
    if (c->variant == NULL)
        json_object_set_new(ratio, "threads", json_integer(run->core.threads));
    if (c->path[0] != '\0')
        json_object_set_new(ratio, "path", json_text(c->path));
}

static json_t *throughput_json(const struct run *run, double median_ms)
{
    const struct gpurun_work *w = &run->ctx.work;
    const double seconds = median_ms * 1e-3;

    return json_pack("{sososo}", "bytes_per_s",
                     json_number((w->bytes_read + w->bytes_written) / seconds), "operations_per_s",
                     json_number(w->operations / seconds), "elements_per_s",
                     json_number(w->elements / seconds));
}

static const struct ceiling *ceiling_of(const struct run *run, const struct run_case *c)
{
    return &run->ceilings[c->variant ? SIDE_DEVICE : SIDE_HOST];
}

static json_t *limit_json(const struct run *run, const struct run_case *c)
{
    const struct gpurun_work *w = &run->ctx.work;
    const struct ceiling *ceiling = ceiling_of(run, c);
    static const char *const kinds[] = {"read", "copy", "write"};
    static const char *const times[] = {"read_ms", "copy_ms", "write_ms"};
    const enum yardstick kind = ceiling_kind(w);
    const double scale = (w->bytes_read + w->bytes_written) / (double)ceiling->bytes;
    const struct stats ratio = stats_of_ratio(&ceiling->ms[kind], &c->time_ms);
    json_t *limit;

    if (ceiling->bytes == 0 || ratio.n == 0)
        return json_null();
    limit = json_pack("{sssIsososo}", "kind", kinds[kind], "bytes", (json_int_t)ceiling->bytes,
                      "percent", json_number(100 * scale * ratio.median), "percent_low",
                      json_number(100 * scale * ratio.low), "percent_high",
                      json_number(100 * scale * ratio.high));
    for (int y = YARDSTICK_READ; y <= YARDSTICK_WRITE; y++)
        if (ceiling->ms[y].count > 0)
            json_object_set_new(limit, times[y], stats_json(&ceiling->ms[y]));
    if (c->variant == NULL && kind != YARDSTICK_READ)
        json_object_set_new(limit, "past_caches", json_boolean(ceiling->past_caches));
    return limit;
}

static json_t *versus_json(const struct run *run, const struct run_case *c)
{
    json_t *versus = json_object();

    for (int i = 0; i < run->case_count; i++) {
        const struct run_case *other = &run->cases[i];
        const bool is_yardstick =
            other->variant == NULL || (other->variant->capabilities & GPURUN_PEER);
        json_t *ratio;

        if (other == c || !is_yardstick || other->status != CASE_PASSED ||
            other->time_ms.count == 0)
            continue;
        ratio = ratio_json(&other->time_ms, &c->time_ms);
        name_yardstick(ratio, run, other);
        json_object_set_new(versus, other->name, ratio);
    }
    return versus;
}

/* --- how it was read --- */

static json_t *samples_json(const struct samples *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->count; i++)
        json_array_append_new(list, json_real(s->values[i]));
    return list;
}

/* What the core gave this case on the device: its tensors, its scratch and its private state. */
static size_t allocated_bytes(const struct run *run, const struct run_case *c)
{
    size_t bytes = c->scratch_bytes + c->state_bytes;

    for (int i = 0; i < run->buffer_count; i++) {
        const struct buffer *b = &run->buffers[i];

        bytes += run->core.memory == GPURUN_ZEROCOPY ? 0 : b->block_bytes;
        bytes += b->original_dev ? b->tensor.bytes : 0;
    }
    return bytes;
}

static void add_reading(json_t *record, const struct run *run, const struct run_case *c)
{
    const struct timing *t = &c->timing;
    json_t *state;

    json_object_set_new(record, "cache", c->cache ? json_string(c->cache) : json_null());
    json_object_set_new(record, "stop", run->stop ? json_string(run->stop) : json_null());
    if (c->variant == NULL)
        return;
    state = device_state_json(&run->device_state);
    json_object_set_new(record, "launch",
                        json_string(launch_names[t->graph ? LAUNCH_GRAPH : LAUNCH_STREAM]));
    json_object_set_new(record, "launch_gaps", json_string(t->is_held ? "hidden" : "included"));
    if (t->note[0] != '\0')
        json_object_set_new(record, "launch_note", json_text(t->note));
    json_object_set_new(record, "runs_per_sample", json_integer(t->repeats));
    json_object_set_new(record, "empty_ms",
                        stats_json(&run->ceilings[SIDE_DEVICE].ms[YARDSTICK_NOTHING]));
    if (run->core.warmup == GPURUN_AUTO)
        json_object_set_new(record, "settled", json_boolean(run->is_settled));
    if (state != NULL)
        json_object_set_new(record, "device_state", state);
    json_object_set_new(record, "device_memory",
                        json_pack("{sIsI}", "allocated_bytes", (json_int_t)allocated_bytes(run, c),
                                  "in_use_bytes", (json_int_t)c->in_use_bytes));
}

/* --- doubts --- */

static void flag(json_t *record, bool is_raised, const char *name)
{
    if (is_raised)
        json_array_append_new(json_object_get(record, "flags"), json_string(name));
}

static bool is_suspect(const json_t *record)
{
    const json_t *limit = json_object_get(record, "limit");

    return json_number_value(json_object_get(limit, "bytes")) >= SUSPECT_BYTES &&
           json_number_value(json_object_get(limit, "percent_low")) > SUSPECT_PERCENT;
}

static void add_flags(json_t *record, const struct run *run, const struct run_case *c)
{
    const double *values = c->time_ms.values;
    const size_t count = c->time_ms.count;
    const struct stats t = stats_of(values, count);
    const struct timing *timing = &c->timing;

    flag(record, stats_half_width(&t) > NOISY * t.median, "noisy");
    flag(record, 100 * shape_outliers(values, count) > count, "outliers");
    flag(record, shape_first_is_slow(values, count), "first-slow");
    flag(record, shape_is_bimodal(values, count), "bimodal");
    flag(record, is_suspect(record), "suspect");
    flag(record, c->variant != NULL && device_state_is_throttled(&run->device_state), "throttled");
    flag(record, c->variant != NULL && (!timing->is_held || timing->ran_out > 0), "launch-gaps");
    flag(record, c->answer_varies, "answer-varies");
}

void record_times(json_t *record, const struct run *run, const struct run_case *c)
{
    const struct stats t = stats_of(c->time_ms.values, c->time_ms.count);

    json_object_set_new(record, "time_ms", stats_json(&c->time_ms));
    if (run->core.samples)
        json_object_set_new(record, "samples_ms", samples_json(&c->time_ms));
    json_object_set_new(record, "phases_ms",
                        json_pack("{sososo}", "upload", stats_json(&c->upload_ms), "run",
                                  stats_json(&c->time_ms), "download",
                                  stats_json(&c->download_ms)));
    json_object_set_new(record, "end_to_end_ms",
                        stats_json(c->variant ? &c->end_to_end_ms : &c->time_ms));
    json_object_set_new(record, "throughput", throughput_json(run, t.median));
    json_object_set_new(record, "limit", limit_json(run, c));
    if (ceiling_of(run, c)->note[0] != '\0')
        json_object_set_new(record, "limit_note", json_text(ceiling_of(run, c)->note));
    json_object_set_new(record, "versus", versus_json(run, c));
    add_reading(record, run, c);
    add_flags(record, run, c);
}
