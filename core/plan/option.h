/*
 * Option tables: one row gives parsing, range check, default, help and the record's text. The core's own
 * keys and every plugin's options are such tables.
 */
#ifndef GPURUN_PLAN_OPTION_H
#define GPURUN_PLAN_OPTION_H

#include "job/why.h"
#include <jansson.h>

struct option_table {
    const struct gpurun_option *rows;
    uint32_t count;
    uint32_t stride; /* bytes from row to row: a plugin's rows may be shorter or longer than ours */
};

const struct gpurun_option *option_at(const struct option_table *table, uint32_t i);

/* NULL when there is none. */
const struct gpurun_option *option_find(const struct option_table *table, const char *name);

/* Parses `text` and stores it in the field of `options` that the row names. GPURUN_INVALID with what
 * would be right; TEXT fields keep the pointer. */
enum gpurun_status option_set(const struct gpurun_option *row, const char *text, void *options,
                              struct why *why);

/* Stores every default. Fails only on a table that contradicts itself. */
enum gpurun_status option_set_defaults(const struct option_table *table, void *options,
                                       struct why *why);

/* The field's value as JSON: what a record shows. */
json_t *option_to_json(const struct gpurun_option *row, const void *options);

/* "whole number", "choice", ... and "1 to 1024", "largest or smallest", ... for describe. */
const char *option_type_name(const struct gpurun_option *row);
void option_describe_range(const struct gpurun_option *row, char *text, size_t size);

#endif
