/* `output.compare = both.png`: a job's first input and first output side by side in one picture. */
#ifndef GPURUN_RUN_COMPARE_H
#define GPURUN_RUN_COMPARE_H

#include "run/run.h"

/* Whether an output's key is output.compare. */
bool compare_is_asked(const struct binding *output);

/* After setup: GPURUN_INVALID where the two cannot stand in one picture of that name. */
enum gpurun_status compare_check(const struct run *run, const char *path, struct why *why);

/* The input as it was, the answer as it is, on a canvas that is as high as the higher and padded with 0. */
enum gpurun_status compare_write(const struct run *run, const char *path, struct why *why);

#endif
