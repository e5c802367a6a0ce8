/* The processor's side of the environment that times were taken in. */
#ifndef GPURUN_RUN_MACHINE_H
#define GPURUN_RUN_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

/* The processors that this process may use, "0-3,8". */
void machine_affinity(char *text, size_t size);

/* What decides the clock of the first of them, "performance" say; "" where the system does not tell. */
void machine_governor(char *text, size_t size);

/* False where /proc counts processes as another PID namespace does (unshare --pid without a /proc of its own), or is
 * not there: a number of ours is another process there. */
bool machine_proc_is_ours(void);

#endif
