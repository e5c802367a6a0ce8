/* How much memory a worker may take that is told nothing: what the machine and its control groups have left. */
#ifndef GPURUN_RUN_AVAILABLE_H
#define GPURUN_RUN_AVAILABLE_H

#include <stdint.h>

/* Nine tenths of the bytes that are left to this process; 0 where nothing says how many, or none are. */
uint64_t available_bytes(void);

/* Versions of control groups, by what their files are called. */
enum group_version { GROUPS_V1, GROUPS_V2 };

/* What the group `group`, "/job/step" below the folder `root`, and all those above it leave, in bytes. Pages of
 * files do not count: the system takes them back. UINT64_MAX where none sets a limit. */
uint64_t available_in_groups(const char *root, const char *group, enum group_version version);

#endif
