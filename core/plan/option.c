#include "plan/option.h"

#include "job/value.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

const struct gpurun_option *option_at(const struct option_table *table, uint32_t i)
{
    return (const struct gpurun_option *)((const char *)table->rows + (size_t)i * table->stride);
}

const struct gpurun_option *option_find(const struct option_table *table, const char *name)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (strcmp(option_at(table, i)->name, name) == 0)
            return option_at(table, i);
    return NULL;
}

static bool has_range(const struct gpurun_option *row)
{
    return row->min != 0 || row->max != 0;
}

/* A bound as a user would write it: whole where it is whole. */
static void format_bound(double bound, char *text, size_t size)
{
    if (fabs(bound) < 1e15 && bound == floor(bound))
        snprintf(text, size, "%.0f", bound);
    else
        snprintf(text, size, "%g", bound);
}

static enum gpurun_status check_range(const struct gpurun_option *row, double value,
                                      const char *text, struct why *why)
{
    const char *unit = row->type == GPURUN_OPTION_DURATION ? "s" : "";
    char bound[40];

    if (!has_range(row) || (value >= row->min && value <= row->max))
        return GPURUN_OK;
    format_bound(value < row->min ? row->min : row->max, bound, sizeof bound);
    return why_fail(why, GPURUN_INVALID, "%.80s is %s %s%s", text,
                    value < row->min ? "below" : "above", bound, unit);
}

static void join_choices(const struct gpurun_option *row, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; row->choices[i] != NULL && used < size; i++) {
        const char *separator = i == 0 ? "" : row->choices[i + 1] == NULL ? " or " : ", ";

        used += (size_t)snprintf(text + used, size - used, "%s%s", separator, row->choices[i]);
    }
}

static enum gpurun_status set_choice(const struct gpurun_option *row, const char *text,
                                     int64_t *field, struct why *why)
{
    char choices[400];

    for (int64_t i = 0; row->choices[i] != NULL; i++) {
        if (strcmp(row->choices[i], text) != 0)
            continue;
        *field = i;
        for (int64_t d = 0; row->type == GPURUN_OPTION_DTYPE && d < GPURUN_DTYPE_COUNT; d++)
            if (strcmp(gpurun_dtype_name((enum gpurun_dtype)d), text) == 0)
                *field = d;
        return GPURUN_OK;
    }
    join_choices(row, choices, sizeof choices);
    return why_fail(why, GPURUN_INVALID, "'%s' is not one of %s%s", text, choices,
                    row->flags & GPURUN_OPTION_AUTO ? ", or auto" : "");
}

static enum gpurun_status set_number(const struct gpurun_option *row, const char *text, void *field,
                                     struct why *why)
{
    int64_t whole;
    double real;

    if (row->type == GPURUN_OPTION_INT) {
        GPURUN_TRY(value_parse_int(text, &whole, why));
        GPURUN_TRY(check_range(row, (double)whole, text, why));
        *(int64_t *)field = whole;
        return GPURUN_OK;
    }
    GPURUN_TRY(row->type == GPURUN_OPTION_REAL ? value_parse_real(text, &real, why)
                                               : value_parse_duration(text, &real, why));
    GPURUN_TRY(check_range(row, real, text, why));
    *(double *)field = real;
    return GPURUN_OK;
}

static bool is_real(const struct gpurun_option *row)
{
    return row->type == GPURUN_OPTION_REAL || row->type == GPURUN_OPTION_DURATION;
}

static void set_auto(const struct gpurun_option *row, void *field)
{
    const int64_t whole = GPURUN_AUTO;
    const uint64_t real = GPURUN_AUTO_REAL_BITS;

    memcpy(field, is_real(row) ? (const void *)&real : (const void *)&whole, sizeof whole);
}

static bool holds_auto(const struct gpurun_option *row, const void *field)
{
    if (!(row->flags & GPURUN_OPTION_AUTO))
        return false;
    return is_real(row) ? gpurun_real_is_auto(*(const double *)field)
                        : *(const int64_t *)field == GPURUN_AUTO;
}

enum gpurun_status option_set(const struct gpurun_option *row, const char *text, void *options,
                              struct why *why)
{
    void *field = (char *)options + row->offset;
    bool flag;

    if ((row->flags & GPURUN_OPTION_AUTO) && strcmp(text, "auto") == 0) {
        set_auto(row, field);
        return GPURUN_OK;
    }
    switch (row->type) {
    case GPURUN_OPTION_INT:
    case GPURUN_OPTION_REAL:
    case GPURUN_OPTION_DURATION:
        return set_number(row, text, field, why);
    case GPURUN_OPTION_BOOL:
        GPURUN_TRY(value_parse_bool(text, &flag, why));
        *(int64_t *)field = flag;
        return GPURUN_OK;
    case GPURUN_OPTION_CHOICE:
    case GPURUN_OPTION_DTYPE:
        return set_choice(row, text, field, why);
    case GPURUN_OPTION_TEXT:
        *(const char **)field = text;
        return GPURUN_OK;
    }
    return why_fail(why, GPURUN_INVALID, "is of a type that this gpurun does not know");
}

enum gpurun_status option_set_defaults(const struct option_table *table, void *options,
                                       struct why *why)
{
    for (uint32_t i = 0; i < table->count; i++)
        GPURUN_TRY(option_set(option_at(table, i), option_at(table, i)->def, options, why));
    return GPURUN_OK;
}

/* As a user would write it where JSON has no number for it. */
static json_t *real_to_json(double value)
{
    if (isnan(value))
        return json_string("nan");
    return isinf(value) ? json_string(value > 0 ? "inf" : "-inf") : json_real(value);
}

json_t *option_to_json(const struct gpurun_option *row, const void *options)
{
    const void *field = (const char *)options + row->offset;
    const int64_t whole = row->type == GPURUN_OPTION_TEXT ? 0 : *(const int64_t *)field;

    if (holds_auto(row, field))
        return json_string("auto");
    switch (row->type) {
    case GPURUN_OPTION_INT:
        return json_integer(whole);
    case GPURUN_OPTION_BOOL:
        return json_boolean(whole);
    case GPURUN_OPTION_CHOICE:
        return json_string(row->choices[whole]);
    case GPURUN_OPTION_DTYPE:
        return json_string(gpurun_dtype_name((enum gpurun_dtype)whole));
    case GPURUN_OPTION_REAL:
    case GPURUN_OPTION_DURATION:
        return real_to_json(*(const double *)field);
    case GPURUN_OPTION_TEXT:
        return json_string(*(const char *const *)field);
    }
    return json_null();
}

const char *option_type_name(const struct gpurun_option *row)
{
    static const char *const names[] = {"whole number", "number",   "yes or no", "choice",
                                        "dtype",        "duration", "text"};

    return (unsigned)row->type < sizeof names / sizeof names[0] ? names[row->type] : "unknown";
}

void option_describe_range(const struct gpurun_option *row, char *text, size_t size)
{
    char low[40], high[40];

    text[0] = '\0';
    if (row->type == GPURUN_OPTION_CHOICE || row->type == GPURUN_OPTION_DTYPE) {
        join_choices(row, text, size);
    } else if (has_range(row)) {
        format_bound(row->min, low, sizeof low);
        format_bound(row->max, high, sizeof high);
        if (row->max >= 9e18)
            snprintf(text, size, "%s or more", low);
        else
            snprintf(text, size, "%s to %s", low, high);
    }
}
