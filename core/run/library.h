/* Vendor libraries for peers: opened when a variant asks, never linked, never closed. */
#ifndef GPURUN_RUN_LIBRARY_H
#define GPURUN_RUN_LIBRARY_H

#include "job/why.h"

/* The handle of the first of `sonames` (NULL-ended) that the loader finds or that lies in the CUDA folder:
 * $CUDA_HOME, else $CUDA_PATH, else /usr/local/cuda, and there lib64, targets/X/lib or lib. NULL with the
 * names and the folder tried in *why (GPURUN_UNSUPPORTED). */
void *library_open(const char *const *sonames, struct why *why);

#endif
