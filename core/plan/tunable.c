#include "plan/tunable.h"

#include "job/value.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t MOST = INT64_C(1) << 40;

static void add_value(FILE *to, long *count, const char *text)
{
    fprintf(to, "%s%s", (*count)++ > 0 ? ", " : "", text);
}

/* The default stands among the powers of two where it belongs, or before them: 0, say, or `auto`. */
static void add_whole_numbers(FILE *to, const struct gpurun_option *row, long *count)
{
    const bool is_unbounded = row->min == 0 && row->max == 0;
    struct why why;
    int64_t def = GPURUN_AUTO;
    char text[32];

    if (value_parse_int(row->def, &def, &why) != GPURUN_OK || def < 1)
        add_value(to, count, row->def);
    for (int64_t power = 1; power <= MOST; power *= 2) {
        if (def > power / 2 && def < power)
            add_value(to, count, row->def);
        snprintf(text, sizeof text, "%lld", (long long)power);
        if (is_unbounded ? power >= def / 16 && power / 16 <= def
                         : power >= row->min && power <= row->max)
            add_value(to, count, text);
    }
}

static void add_choices(FILE *to, const struct gpurun_option *row, long *count)
{
    if (row->flags & GPURUN_OPTION_AUTO)
        add_value(to, count, "auto");
    for (size_t i = 0; row->choices != NULL && row->choices[i] != NULL; i++)
        add_value(to, count, row->choices[i]);
}

static char *values_of(const struct gpurun_option *row)
{
    char *text = NULL;
    size_t size;
    long count = 0;
    FILE *to = open_memstream(&text, &size);

    if (row->type == GPURUN_OPTION_INT)
        add_whole_numbers(to, row, &count);
    else if (row->type == GPURUN_OPTION_BOOL)
        fputs("no, yes", to);
    else if (row->type == GPURUN_OPTION_CHOICE)
        add_choices(to, row, &count);
    else
        add_value(to, &count, row->def);
    fclose(to);
    return text;
}

json_t *tunable_values(const struct option_table *table)
{
    json_t *values = json_object();

    for (uint32_t i = 0; i < table->count; i++) {
        const struct gpurun_option *row = option_at(table, i);

        if (row->flags & GPURUN_OPTION_TUNABLE) {
            char *text = values_of(row);

            json_object_set_new(values, row->name, json_string(text));
            free(text);
        }
    }
    return values;
}
