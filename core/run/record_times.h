/* The measured part of a case's record: times, rates, ratios, how they were read, and doubts about them. */
#ifndef GPURUN_RUN_RECORD_TIMES_H
#define GPURUN_RUN_RECORD_TIMES_H

#include "run/run.h"

/* Adds the fields of a passed case that has been timed, and its flags to the record's. */
void record_times(json_t *record, const struct run *run, const struct run_case *c);

#endif
