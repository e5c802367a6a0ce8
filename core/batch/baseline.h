/* The baselines of a batch's jobs: earlier records that the batch is compared with once it has ended. */
#ifndef GPURUN_BATCH_BASELINE_H
#define GPURUN_BATCH_BASELINE_H

#include "batch/batch.h"

struct baselines {
    json_t *records; /* path: what that file held before the batch ran */
    json_t *jobs;    /* full name of a job: its path */
    size_t count;    /* of paths */
};

/* Reads every baseline of the plan; nothing for a dry run. False, with the reason printed, when one cannot
 * be read or holds no record. Free with baselines_free either way. */
bool baselines_read(struct baselines *b, const struct plan *plan,
                    const struct batch_options *options);

/* Compares `records`, the batch's own, with each baseline and prints: after the batch's table the
 * comparison, else, as standard output is that format's alone, one line on standard error. True when
 * options->fail_on says that the batch has failed. */
bool baselines_fail(const struct baselines *b, const json_t *records,
                    const struct batch_options *options);

void baselines_free(struct baselines *b);

#endif
