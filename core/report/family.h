/* Jobs of one section that differ in a sweep's values. */
#ifndef GPURUN_REPORT_FAMILY_H
#define GPURUN_REPORT_FAMILY_H

#include <stdbool.h>
#include <stddef.h>

/* True for a key whose values do not part a family; it is `length` bytes long. */
typedef bool (*family_joins)(const void *user, const char *key, size_t length);

/* "file:section, dtype=float" of "file:section/n=1M,dtype=float" where n joins. For the caller to free. */
char *family_name(const char *job, family_joins joins, const void *user);

#endif
