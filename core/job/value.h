/*
 * Values as a job file writes them, turned into numbers. Nothing here depends on the locale; trailing
 * garbage, overflow and empty texts are errors whose reason says what would be right. All return
 * GPURUN_OK or GPURUN_INVALID; on failure *out is untouched.
 */
#ifndef GPURUN_JOB_VALUE_H
#define GPURUN_JOB_VALUE_H

#include "job/why.h"
#include <stdbool.h>

/* Integers: 20, -3, 0x1F, 1_000_000, 1e8, 1.5K, 100M, 4Ki. K M G T are powers of 1000, Ki Mi Gi Ti of
 * 1024. The value must be whole and fit 64 bits; nothing is rounded. */
enum gpurun_status value_parse_int(const char *text, int64_t *out, struct why *why);

/* Decimals: everything an integer can be, and 0.25, -1.5e-3, inf, -inf, nan. */
enum gpurun_status value_parse_real(const char *text, double *out, struct why *why);

/* yes no true false on off, any case; also 1 and 0. */
enum gpurun_status value_parse_bool(const char *text, bool *out, struct why *why);

/* Seconds: 10s, 5m, 1.5h, 250ms, 30us, 2d; a bare number is seconds. Not negative, not infinite. */
enum gpurun_status value_parse_duration(const char *text, double *out, struct why *why);

/* The candidate nearest to `text` (edit distance, ignoring case), or NULL when none is near enough to be
 * worth suggesting. `names` ends with NULL. */
const char *value_nearest(const char *text, const char *const *names);

#endif
