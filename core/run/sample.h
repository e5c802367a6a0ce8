/* One reading of a case, in the way of timing.h, added to its samples. */
#ifndef GPURUN_RUN_SAMPLE_H
#define GPURUN_RUN_SAMPLE_H

#include "run/run.h"

/* Before any other. Makes the device's ceiling ready. */
enum gpurun_status sample_begin(struct run *run);

/* Makes a case ready to be read, of which a run took `ms` so far as is known; 0: nothing is. */
enum gpurun_status sample_prepare(struct run *run, struct run_case *c, double ms);

/* The device may have idled while the CPU had its turn: one untimed read wakes it. */
enum gpurun_status sample_wake(struct run *run);

/* One timed run; with `prove` its outputs are poisoned before and judged after. */
enum gpurun_status sample_case(struct run *run, struct run_case *c, int round, bool prove);

/* From input valid on the host to output readable on the host. */
enum gpurun_status sample_end_to_end(struct run *run, struct run_case *c, int round);

/* Frees what sample_begin and the others made, before the device is closed. */
void sample_end(struct run *run);

#endif
