/*
 * Does verify see a wrong answer? A job is run on the CPU and its right answer spoiled in many ways; every
 * spoiled answer must be refused, in every mode of proof.
 */
#ifndef GPURUN_RUN_SELFTEST_H
#define GPURUN_RUN_SELFTEST_H

#include "plan/job.h"
#include "plan/registry.h"

/* The plugin's default job, made smaller where that is much work: {"corruptions":N,"missed":[TEXT...]};
 * "missed" also names a right answer that was refused. */
json_t *selftest_plugin(const struct plugin *plugin);

/* The same for one job with `count` settings, all of them the plugin's, on one generator. Adds to `missed`
 * and returns how many spoiled answers were judged; 0 with nothing missed where setup refuses the job. */
long long selftest_job(const struct plugin *plugin, const struct setting *settings, size_t count,
                       const char *input, json_t *missed);

#endif
