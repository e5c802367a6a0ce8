/* fork() where the system may have no process to give for a moment. */
#ifndef GPURUN_BATCH_SPAWN_H
#define GPURUN_BATCH_SPAWN_H

#include <sys/types.h>

/* As fork(), tried again for up to `patience_s` seconds while processes or memory are lacking and nothing interrupts. */
pid_t spawn(double patience_s);

#endif
