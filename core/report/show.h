/* `gpurun show`: a job with all that it was resolved to, and where each value came from. */
#ifndef GPURUN_REPORT_SHOW_H
#define GPURUN_REPORT_SHOW_H

#include "plan/job.h"
#include <jansson.h>

/* `description` is runner_check's, with options; NULL: `trouble` says why (may be NULL). */
void show_job(const struct job *job, const json_t *description, const char *trouble);

#endif
