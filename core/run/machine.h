/* The processor's side of the environment that times were taken in, and its memory. */
#ifndef GPURUN_RUN_MACHINE_H
#define GPURUN_RUN_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The processors that this process may use, "0-3,8". */
void machine_affinity(char *text, size_t size);

/* What decides the clock of the first of them, "performance" say; "" where the system does not tell. */
void machine_governor(char *text, size_t size);

/* Bytes of the last cache that the system knows; 0 where it knows none. */
long machine_cache(void);

/* For data of a job's size, in large pages where it is large; free() takes it back. NULL where there is none. */
void *machine_allocate(size_t bytes);

/* The bytes that would be lost with a process: pages of files come back by themselves. 0 where /proc has it not. */
uint64_t machine_memory(pid_t pid);

/* False where /proc counts processes as another PID namespace does (unshare --pid without a /proc of its own), or is
 * not there: a number of ours is another process there. */
bool machine_proc_is_ours(void);

#endif
