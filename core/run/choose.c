#include "run/choose.h"

#include "plan/auto_table.h"
#include "run/case.h"
#include <stdio.h>
#include <string.h>

/* What was passed over, and why, behind what is chosen. */
static void pass_over(struct run *run, const struct auto_rule *rule, char *passed, size_t size)
{
    const size_t used = strlen(passed);

    snprintf(passed + used, size - used, " (line %d says %s: %s)", rule->line, rule->variant->name,
             run->why.text);
}

static const struct gpurun_variant *choose_by_table(struct run *run, const struct auto_table *table,
                                                    char *passed, size_t size)
{
    const struct auto_question question = {.options = run->ctx.options,
                                           .bytes = run->ctx.work.bytes_read +
                                                    run->ctx.work.bytes_written,
                                           .compute = run->ctx.device.compute,
                                           .device_name = run->device_info.name};
    const struct auto_rule *rule;

    for (size_t i = 0; (rule = auto_table_next(table, i, &question)) != NULL;
         i = (size_t)(rule - table->rules) + 1) {
        if (case_check_variant(run, rule->variant) == GPURUN_OK) {
            snprintf(run->chosen_by, sizeof run->chosen_by, "%s:%d%s", table->name, rule->line,
                     passed);
            return rule->variant;
        }
        pass_over(run, rule, passed, size);
    }
    return NULL;
}

/* Variants stand from naive to best. */
static const struct gpurun_variant *choose_last(struct run *run)
{
    for (uint32_t i = run->plugin->table->variant_count; i-- > 0;) {
        const struct gpurun_variant *v = plugin_variant(run->plugin, i);

        if (!(v->capabilities & GPURUN_PEER) && case_check_variant(run, v) == GPURUN_OK)
            return v;
    }
    return NULL;
}

enum gpurun_status choose_variant(struct run *run, const struct gpurun_variant **out)
{
    const struct auto_table *table = run->plugin->auto_table;
    char passed[300] = "";

    *out = NULL;
    if (run->plugin->table->variant_count == 0)
        return GPURUN_OK;
    if (table != NULL && table->faults.count > 0)
        return run_fail(run, GPURUN_INVALID, "%s", table->faults.texts[0]);
    if (table != NULL)
        *out = choose_by_table(run, table, passed, sizeof passed);
    if (*out != NULL)
        return GPURUN_OK;
    *out = choose_last(run);
    snprintf(run->chosen_by, sizeof run->chosen_by, "%s%s%s%s%s",
             *out ? "the last of the ladder that can run" : "nothing of the ladder can run",
             table ? "; no rule of " : "", table ? table->name : "", table ? " fits" : "", passed);
    if (*out == NULL)
        *out = plugin_variant(run->plugin, 0);
    return GPURUN_OK;
}

void choose_check(const struct run *run, struct faults *faults)
{
    if (run->plugin->auto_table != NULL && strcmp(run->core.variant, "auto") == 0)
        auto_table_tell(run->plugin->auto_table, faults);
}
