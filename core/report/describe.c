#include "report/describe.h"

#include "plan/auto_table.h"
#include "plan/job.h"
#include "report/table.h"
#include "run/record.h"
#include "run/runner.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- gathering, in a worker --- */

static json_t *option_json(const struct gpurun_option *row)
{
    char range[400];

    option_describe_range(row, range, sizeof range);
    return json_pack("{sbssssssssssss}", "tunable", (row->flags & GPURUN_OPTION_TUNABLE) != 0,
                     "name", row->name, "type", option_type_name(row), "default", row->def, "range",
                     range, "unit", row->unit ? row->unit : "", "help", row->help);
}

/* Whether the first device can run a variant, with the plugin's default options. */
static const char *variant_state(struct run *run, const struct gpurun_variant *v, bool ready,
                                 char *text, size_t size)
{
    if (run->ctx.device.compute == 0 || !ready)
        return run->why.text;
    if (v->min_compute > run->ctx.device.compute) {
        snprintf(text, size, "needs compute capability %d.%d", v->min_compute / 10,
                 v->min_compute % 10);
        return text;
    }
    if (v->supported != NULL && v->supported(&run->ctx) != GPURUN_OK)
        return run->why.text;
    return "";
}

static json_t *variants_json(struct run *run, bool ready)
{
    json_t *list = json_array();
    char text[100];

    for (uint32_t i = 0; i < run->plugin->table->variant_count; i++) {
        const struct gpurun_variant *v = plugin_variant(run->plugin, i);

        json_array_append_new(list,
                              json_pack("{sssssbss}", "name", v->name, "idea", v->idea, "peer",
                                        (v->capabilities & GPURUN_PEER) != 0, "cannot",
                                        variant_state(run, v, ready, text, sizeof text)));
    }
    return list;
}

static json_t *memory_json(const struct gpurun_plugin *p)
{
    json_t *list = json_array();

    for (int i = 0; i < GPURUN_MEMORY_COUNT; i++)
        if (p->memory & GPURUN_MEMORY_BIT(i))
            json_array_append_new(list, json_string(memory_names[i]));
    return json_pack("{sossss}", "strategies", list, "default", memory_names[p->memory_default],
                     "why", p->memory_why);
}

/* The table of `auto`; NULL when there is none. */
static json_t *auto_json(const struct auto_table *table)
{
    json_t *faults = json_array();

    if (table == NULL) {
        json_decref(faults);
        return NULL;
    }
    for (size_t i = 0; i < table->faults.count; i++)
        json_array_append_new(faults, json_text(table->faults.texts[i]));
    return json_pack("{sosIso}", "path", json_text(table->path), "rules", (json_int_t)table->count,
                     "faults", faults);
}

json_t *describe_plugin(const struct plugin *plugin)
{
    struct job job = {.name = (char *)plugin->table->name, .where = {"defaults", 0}};
    struct run *run = calloc(1, sizeof *run);
    struct faults faults = {0};
    struct device_info info = {0};
    json_t *options = json_array(), *description;
    struct why why;
    bool ready;

    option_set_defaults(&core_options_table, &job.core, &why);
    run_prepare(run, &job, plugin, &faults);
    if (device_api.count(&run->why) > 0)
        device_api.info(0, &info, &run->why);
    run->ctx.device = info.limits;
    ready = run_setup(run) == GPURUN_OK;
    for (uint32_t i = 0; i < plugin->options.count; i++)
        json_array_append_new(options, option_json(option_at(&plugin->options, i)));
    description = json_pack("{sssssssosososo*}", "name", plugin->table->name, "summary",
                            plugin->table->summary, "path", plugin->path, "options", options,
                            "variants", variants_json(run, ready), "memory",
                            memory_json(plugin->table), "auto", auto_json(plugin->auto_table));
    json_object_set_new(description, "device", json_text(info.name));
    run_finish(run);
    faults_free(&faults);
    free(run);
    return description;
}

json_t *describe_devices(void)
{
    struct why why = {""};
    const int count = device_api.count(&why);
    json_t *list = json_array();

    for (int i = 0; i < count; i++) {
        struct device_info info;

        if (device_api.info(i, &info, &why) != GPURUN_OK)
            continue;
        json_array_append_new(list, json_pack("{sisososisisIsIsIsisi}", "index", i, "name",
                                              json_text(info.name), "uuid", json_text(info.uuid),
                                              "compute", info.limits.compute, "sm_count",
                                              info.limits.sm_count, "bytes",
                                              (json_int_t)info.limits.global_bytes, "l2",
                                              (json_int_t)info.limits.l2_bytes, "shared",
                                              (json_int_t)info.limits.shared_bytes, "driver",
                                              info.driver, "runtime", info.runtime));
    }
    return json_pack("{soso}", "devices", list, "why", json_text(why.text));
}

/* --- printing, in the parent --- */

static void print_option(const json_t *o)
{
    printf("  %-13s %-13s default %-9s", json_text_at(o, "name"), json_text_at(o, "type"),
           json_text_at(o, "default")[0] ? json_text_at(o, "default") : "none");
    printf("%s%s%s%s%s\n", json_text_at(o, "range")[0] ? " " : "", json_text_at(o, "range"),
           json_text_at(o, "unit")[0] ? " " : "", json_text_at(o, "unit"),
           json_is_true(json_object_get(o, "tunable")) ? " (tunable)" : "");
    printf("  %-13s %s\n", "", json_text_at(o, "help"));
}

static void print_auto(const json_t *table)
{
    const json_t *faults = json_object_get(table, "faults");
    size_t i;
    json_t *fault;

    if (table == NULL) {
        printf("  %-13s is the last of these that is no peer and can run\n", "auto");
        return;
    }
    printf("  %-13s is by the first of %lld rules that fits and can run, else the last of these:\n",
           "auto", (long long)json_integer_value(json_object_get(table, "rules")));
    printf("  %-13s %s\n", "", json_text_at(table, "path"));
    json_array_foreach(faults, i, fault) printf("  %-13s %s\n", "", json_string_value(fault));
    if (json_array_size(faults) > 0)
        printf("  %-13s with such faults, jobs of variant = auto are refused\n", "");
}

void print_plugin(const json_t *d)
{
    const json_t *memory = json_object_get(d, "memory");
    size_t i;
    json_t *item;

    printf("%s: %s\n%s\n\nOptions\n", json_text_at(d, "name"), json_text_at(d, "summary"),
           json_text_at(d, "path"));
    json_array_foreach(json_object_get(d, "options"), i, item) print_option(item);
    printf("\nVariants%s%s\n", json_text_at(d, "device")[0] ? " on " : "",
           json_text_at(d, "device"));
    if (json_array_size(json_object_get(d, "variants")) == 0)
        printf("  none: built without CUDA; the CPU baseline runs everywhere\n");
    json_array_foreach(json_object_get(d, "variants"), i, item)
    {
        printf("  %-13s %s%s\n", json_text_at(item, "name"), json_text_at(item, "idea"),
               json_is_true(json_object_get(item, "peer")) ? " (peer)" : "");
        printf("  %-13s %s%s\n", "",
               json_text_at(item, "cannot")[0] ? "cannot run here: " : "runs here",
               json_text_at(item, "cannot"));
    }
    if (json_array_size(json_object_get(d, "variants")) > 0 || json_object_get(d, "auto") != NULL)
        print_auto(json_object_get(d, "auto"));
    printf("\nMemory strategies\n ");
    json_array_foreach(json_object_get(memory, "strategies"), i, item)
        printf(" %s", json_string_value(item));
    printf("\n  default %s: %s\n", json_text_at(memory, "default"), json_text_at(memory, "why"));
}

void print_plugin_line(const char *name, const json_t *d)
{
    size_t i;
    json_t *item;

    printf("%-12s %s; variants:", name, json_text_at(d, "summary"));
    json_array_foreach(json_object_get(d, "variants"), i, item)
        printf(" %s", json_text_at(item, "name"));
    printf("%s cpu\n", json_array_size(json_object_get(d, "variants")) ? "," : "");
}

void print_core(void)
{
    printf("Keys of every job; the plugin adds its own (gpurun describe PLUGIN)\n\n");
    for (uint32_t i = 0; i < core_options_table.count; i++) {
        json_t *o = option_json(option_at(&core_options_table, i));

        print_option(o);
        json_decref(o);
    }
    printf("  %-13s %-13s the first input tensor; input.NAME for another\n", "input", "generator");
    printf("  %-13s file:PATH (.npy, .png .jpg .jpeg .pgm .ppm .pbm, or raw with dtype), or one "
           "of:\n",
           "");
    for (const struct generator_help *g = generator_helps; g->name != NULL; g++)
        printf("  %-13s   %-13s %-16s %s\n", "", g->name, g->parameters, g->help);
    printf("  %-13s %-13s write the first output there (.npy, .png .jpg .jpeg .pgm .ppm, or raw); "
           "output.NAME for another; output.compare for a picture of the first input and output\n",
           "output", "path");
    printf("  %-13s %-13s keys whose sweeps walk together: zip = n, k\n", "zip", "list of keys");
    printf("  %-13s %-13s job files to read first, relative to this one; in [global] or above it\n",
           "include", "list of paths");
}

void print_devices(const json_t *devices)
{
    size_t i;
    json_t *d;

    json_array_foreach(json_object_get(devices, "devices"), i, d)
    {
        const long long compute = json_integer_value(json_object_get(d, "compute"));
        const long long driver = json_integer_value(json_object_get(d, "driver"));
        const long long runtime = json_integer_value(json_object_get(d, "runtime"));
        char bytes[32], l2[32], shared[32];

        format_bytes(json_number_value(json_object_get(d, "bytes")), bytes, sizeof bytes);
        format_bytes(json_number_value(json_object_get(d, "l2")), l2, sizeof l2);
        format_bytes(json_number_value(json_object_get(d, "shared")), shared, sizeof shared);
        printf("%lld  %s  compute %lld.%lld  %lld multiprocessors  memory %s  L2 %s  shared %s\n",
               (long long)json_integer_value(json_object_get(d, "index")), json_text_at(d, "name"),
               compute / 10, compute % 10,
               (long long)json_integer_value(json_object_get(d, "sm_count")), bytes, l2, shared);
        printf("   %s  driver CUDA %lld.%lld  runtime %lld.%lld\n", json_text_at(d, "uuid"),
               driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    }
    if (json_array_size(json_object_get(devices, "devices")) == 0)
        printf("no device: %s\n", json_text_at(devices, "why"));
}
