/* A case's record: one JSON object, described in docs/records.md. */
#ifndef GPURUN_RUN_RECORD_H
#define GPURUN_RUN_RECORD_H

#include "run/run.h"

enum { RECORD_SCHEMA = 1 };

/* What the table's heading needs and every record of the job repeats: plugin, memory, device, options,
 * input, environment, names of cases. For the caller to free. */
json_t *record_job(const struct run *run);

/* All options of the core and the plugin, resolved. For the caller to free. */
json_t *record_options(const struct run *run);

/* The record of a case that has ended. For the caller to free. */
json_t *record_case(const struct run *run, const struct run_case *c, const json_t *job);

/* The record of a case of which nothing is known but how it ended: its worker died, or its plugin could
 * not be loaded. `name` is "cpu" or a variant's name. */
json_t *record_lost(const struct job *job, const char *name, enum case_status status,
                    const char *reason);

/* Text as JSON: bytes that are not UTF-8 become U+FFFD, so that it is always valid. */
json_t *json_text(const char *text);

/* The text at `key`; "" where there is none. It belongs to the object. */
const char *json_text_at(const json_t *object, const char *key);

/* Whether an array has an item that equals the value. */
bool json_holds(const json_t *list, const json_t *value);

/* A number as JSON; null where JSON has none (NaN, infinities). */
json_t *json_number(double value);

#endif
