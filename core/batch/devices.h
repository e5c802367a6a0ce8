/* --devices: the GPUs that share a batch's jobs. */
#ifndef GPURUN_BATCH_DEVICES_H
#define GPURUN_BATCH_DEVICES_H

#include "job/why.h"
#include <stdbool.h>
#include <stddef.h>

enum { DEVICES_MAX = 64 };

struct devices {
    const char *text; /* as given, the caller's; NULL: not given */
    bool is_all;
    int indexes[DEVICES_MAX]; /* unless all */
    size_t count;
};

/* "all", or indexes as gpurun devices numbers them, "0,1". GPURUN_INVALID with the reason. */
enum gpurun_status devices_parse(const char *text, struct devices *devices, struct why *why);

/* True when `index` is one of them. */
bool devices_hold(const struct devices *devices, int index);

#endif
