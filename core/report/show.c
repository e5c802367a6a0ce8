#include "report/show.h"

#include "report/table.h"
#include "run/record.h"
#include <stdio.h>
#include <string.h>

static void print_settings(const struct job *job, const struct option_table *table,
                           const json_t *values)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct gpurun_option *row = option_at(table, i);
        char value[200], place[600];

        format_json(json_object_get(values, row->name), value, sizeof value);
        origin_text((struct origin){NULL, 0}, place, sizeof place);
        for (size_t k = 0; k < job->setting_count; k++)
            if (strcmp(job->settings[k].key, row->name) == 0)
                origin_text(job->settings[k].where, place, sizeof place);
        printf("  %-10s %-24s %s\n", row->name, value, place);
    }
}

static void print_bindings(const struct binding *list, size_t count)
{
    char place[600];

    for (size_t i = 0; i < count; i++)
        printf("  %-10s %-24s %s\n", list[i].key, list[i].text,
               origin_text(list[i].where, place, sizeof place));
}

/* The plugin's options in a description are those that the core does not know, in the table's order. */
static void print_plugin_settings(const struct job *job, const json_t *values)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)values, key, value)
    {
        const struct gpurun_option row = {.name = key};
        const struct option_table one = {&row, 1, sizeof row};

        if (!core_knows(key))
            print_settings(job, &one, values);
    }
}

void show_job(const struct job *job, const json_t *description, const char *trouble)
{
    const json_t *values = json_object_get(description, "options");
    size_t i;
    json_t *name;

    printf("%s\n", job->name);
    if (values == NULL) {
        printf("  %s\n\n", trouble ? trouble : "");
        return;
    }
    print_settings(job, &core_options_table, values);
    print_plugin_settings(job, values);
    print_bindings(job->inputs, job->input_count);
    print_bindings(job->outputs, job->output_count);
    printf("  %-10s", "cases");
    json_array_foreach(json_object_get(description, "cases"), i, name)
        printf(" %s", json_string_value(name));
    if (json_object_get(description, "auto") != NULL)
        printf("\n  %-10s %s", "auto", json_text_at(description, "auto"));
    printf("\n\n");
}
