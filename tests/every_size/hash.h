/*
 * The one thing that a device does for this test beside what device_api has: an answer becomes 64 bits, and
 * poison again. hash_cuda.cu is for a GPU, hash_host.c for the pretend device.
 */
#ifndef EVERY_SIZE_HASH_H
#define EVERY_SIZE_HASH_H

#include "gpurun/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueues on `stream`: *slot += a hash of `bytes` (a multiple of 8, at an address that is one too) and of
 * where each of them is; then every byte is GPURUN_POISON. `salt` tells tensors of one answer apart. NULL, or
 * what is wrong. */
const char *hash_and_poison(gpurun_stream stream, void *dev, size_t bytes, uint64_t salt,
                            uint64_t *slot);

#ifdef __cplusplus
}
#endif

#endif
