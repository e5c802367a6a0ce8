/*
 * The files of a plan: those given and those that they include, each read once, and what their [global]
 * sections lend each other. The nearest holds: a file's own, then those of the files that it includes,
 * then those of the files that include it.
 */
#ifndef GPURUN_PLAN_SOURCE_H
#define GPURUN_PLAN_SOURCE_H

#include "job/jobfile.h"
#include "plan/setting.h"

/* Indices of sources. */
struct source_list {
    size_t *list;
    size_t count;
};

struct source {
    struct jobfile file;
    struct source_list includes, includers;
    bool is_faulty; /* a fault was found in its text, or in what it includes */
    bool is_open;   /* its includes are being read: to include it now would be a circle */
    bool is_read;   /* its includes are known */
    bool is_taken;  /* its jobs are in the plan */
    bool has_inner, has_outer;
    struct settings inner, outer; /* from the files it includes, and from those that include it */
};

struct sources {
    struct source **list; /* those given first */
    size_t count;
};

/* Takes over `file`; `is_faulty` where reading it found a fault. */
void sources_add(struct sources *sources, const struct jobfile *file, bool is_faulty);

/* Reads what the files include, and what that includes. */
void sources_read_includes(struct sources *sources, struct faults *faults);

/* The [global] settings that hold for jobs of source `index`, put into `out`. */
void sources_defaults(const struct sources *sources, size_t index, struct settings *out);

void sources_free(struct sources *sources);

/* True when both paths lead to one file. */
bool is_same_file(const char *a, const char *b);

/* True when the file, or one that it includes, has a section for a job. */
bool sources_hold_jobs(const struct sources *sources, size_t index);

#endif
