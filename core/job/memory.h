/*
 * Small allocations of the core's own (names, tables). A machine that cannot give a few bytes cannot go
 * on: these end the process with a plain message instead of returning NULL. The user's data never comes
 * from here; tensors have a path of their own that reports out-of-memory.
 */
#ifndef GPURUN_JOB_MEMORY_H
#define GPURUN_JOB_MEMORY_H

#include <stddef.h>

/* Zeroed; never NULL. */
void *allocate(size_t count, size_t size);
void *allocate_uncleared(size_t size); /* for what is large, and mostly never touched */
char *copy_text(const char *text);
char *copy_text_n(const char *text, size_t length);
char *format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes room for one more element behind `count` of them: capacities are powers of two. */
void *grow(void *array, size_t count, size_t size);

#endif
