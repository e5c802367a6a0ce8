/* What `gpurun tune` tries: values of the options that change speed and never the answer. */
#ifndef GPURUN_PLAN_TUNABLE_H
#define GPURUN_PLAN_TUNABLE_H

#include "plan/option.h"

/* {"block": "32, 64, 128"}: lists as a job file writes them. Of whole numbers the powers of two in their
 * range, of choices and yes or no all; and the default. For the caller to free. */
json_t *tunable_values(const struct option_table *table);

#endif
