/*
 * A job file as text: its sections and their keys with line numbers. inih does the parsing; what it would
 * do silently (cut long lines, drop empty sections, join indented lines, stop at a NUL, cut values at
 * ` ;`) is handled here or refused with its line. Variables in values are replaced here, and `include` lines
 * are kept apart; what other keys and values mean is not known here.
 */
#ifndef GPURUN_JOB_JOBFILE_H
#define GPURUN_JOB_JOBFILE_H

#include "job/faults.h"
#include <stdbool.h>

struct entry {
    char *key;
    char *value; /* trimmed, never empty */
    int line;
};

struct section {
    char *name; /* "global" holds defaults for this file */
    int line;
    struct entry *entries;
    size_t count;
};

struct jobfile {
    char *path;               /* as given; "<stdin>" for "-" */
    struct section *sections; /* in file order */
    size_t count;
    size_t *globals; /* indices of the [global] sections */
    size_t global_count;
    struct entry
        *includes; /* of [global] and of the lines above the first section, in file order */
    size_t include_count;
};

bool section_is_global(const struct section *section);

/* Reads and parses `path`, or standard input for "-". Every fault found is added; the result holds what
 * could be read. Free with jobfile_free in any case. */
void jobfile_read(const char *path, struct jobfile *out, struct faults *faults);

/* The same from memory: `path` only names it in messages. */
void jobfile_parse(const char *path, const char *bytes, size_t size, struct jobfile *out,
                   struct faults *faults);

void jobfile_free(struct jobfile *file);

#endif
