/*
 * Which part of a batch this gpurun takes: by a hash of each job's full name, so that a job is in the same
 * part whatever else is in the batch.
 */
#ifndef GPURUN_BATCH_SHARD_H
#define GPURUN_BATCH_SHARD_H

#include "job/why.h"
#include <stdbool.h>

struct shard {
    long index, count; /* 1 to count; count 0: everything */
};

/* "2/5", "slurm" or "slurm/5"; the latter two read Slurm's variables. GPURUN_INVALID with the reason. */
enum gpurun_status shard_parse(const char *text, struct shard *shard, struct why *why);

bool shard_takes(const struct shard *shard, const char *job);

#endif
