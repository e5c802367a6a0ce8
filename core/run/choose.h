/* `variant = auto`: which one that is for a job, by its options, its size and its device. */
#ifndef GPURUN_RUN_CHOOSE_H
#define GPURUN_RUN_CHOOSE_H

#include "run/run.h"

/* After run_setup, with run->ctx.device and the device's name known: the first rule of the plugin's table
 * that fits and whose variant can run here, else the last variant that is no peer and can; run->chosen_by says
 * which. Where none can run, the first, whose case will say why; NULL for a plugin without variants.
 * GPURUN_INVALID when the table has faults. */
enum gpurun_status choose_variant(struct run *run, const struct gpurun_variant **out);

/* Adds the faults of the table that the job's `auto` would be chosen by; of a plugin only once. */
void choose_check(const struct run *run, struct faults *faults);

#endif
