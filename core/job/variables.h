/*
 * Environment variables in the values of a job file: ${NAME} and ${NAME:-DEFAULT}.
 */
#ifndef GPURUN_JOB_VARIABLES_H
#define GPURUN_JOB_VARIABLES_H

#include "job/why.h"

/* `text` with its variables replaced, into *out for the caller to free. ${NAME:-DEFAULT} is DEFAULT where
 * NAME is unset or empty; `$$` is one dollar; any other dollar stays. What a variable holds is not looked
 * into again. GPURUN_INVALID, and *out untouched, where a variable is unset or badly written. */
enum gpurun_status variables_expand(const char *text, char **out, struct why *why);

#endif
