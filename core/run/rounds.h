/*
 * Timing: warm-up, rounds of all live cases in random order, end-to-end rounds. Every case here has been
 * proved. A case that fails is ended with its reason and takes part no further.
 */
#ifndef GPURUN_RUN_ROUNDS_H
#define GPURUN_RUN_ROUNDS_H

#include "run/run.h"

/* `enter` is called before each case's part, so that a crash or hang can be laid at its door. Returns
 * GPURUN_DEVICE when the device is lost, in the last case entered. */
typedef void rounds_enter(void *user, struct run_case *c, const char *phase);
enum gpurun_status rounds_run(struct run *run, rounds_enter *enter, void *user);

#endif
