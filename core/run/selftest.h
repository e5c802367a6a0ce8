/*
 * Does verify see a wrong answer? The plugin's default job is run on the CPU and its right answer spoiled
 * in many ways; every spoiled answer must be refused, in every mode of proof.
 */
#ifndef GPURUN_RUN_SELFTEST_H
#define GPURUN_RUN_SELFTEST_H

#include "plan/registry.h"

/* {"corruptions":N,"missed":[TEXT...]}; "missed" also names a right answer that was refused. */
json_t *selftest_plugin(const struct plugin *plugin);

#endif
