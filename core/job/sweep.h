/*
 * Values that a job file writes as a list or a range, `1M, 10M` or `1M..1G*10`: taken apart into the
 * values of a sweep. What they mean is not known here.
 */
#ifndef GPURUN_JOB_SWEEP_H
#define GPURUN_JOB_SWEEP_H

#include "job/why.h"
#include <stdbool.h>
#include <stddef.h>

enum { SWEEP_MAX = 100000 }; /* values of one sweep, and jobs of one file */

struct sweep {
    char **values; /* owned; each as written, or as a range makes it: 1M, 10M, 100M, 1G */
    size_t count;
};

/* True when `text` has a comma or is a range. `ranges` false: ".." means nothing, as in paths. */
bool sweep_is_one(const char *text, bool ranges);

/* The values of a list whose elements may be ranges: FROM..TO*FACTOR, FROM..TO+STEP, TO included where it
 * is met. Values stay in their order and are all different. GPURUN_INVALID with what would be right; *out
 * is to be freed with sweep_free in any case. */
enum gpurun_status sweep_parse(const char *text, bool ranges, struct sweep *out, struct why *why);

void sweep_free(struct sweep *sweep);

#endif
