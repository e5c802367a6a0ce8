/*
 * Why something failed: one text, written by the first place that knows the reason and passed upwards
 * unchanged. Only main turns a status into an exit code.
 */
#ifndef GPURUN_JOB_WHY_H
#define GPURUN_JOB_WHY_H

#include "gpurun/plugin.h"

struct why {
    char text[1024];
};

/* Formats the reason and returns `status`, so that a function can end in `return why_fail(...)`. */
enum gpurun_status why_fail(struct why *why, enum gpurun_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
