/* `gpurun tune`: every setting of a job's tunable options, proved and measured; the best as a job file. */
#ifndef GPURUN_BATCH_TUNE_H
#define GPURUN_BATCH_TUNE_H

#include "batch/batch.h"

struct tune_request {
    char *const *files;
    size_t file_count;
    const struct override *overrides;
    size_t override_count;
    const char *only;                  /* NULL: all jobs */
    const struct batch_options *batch; /* of which `records` and `gap` count */
};

/* Standard output is a job file with one section per job and variant: the fastest setting, and above it as
 * comments the runners-up and the default. EXIT_FAILED when a job has no tunable option, or no setting of
 * a variant passed. */
enum exit_code tune(const struct tune_request *request);

#endif
