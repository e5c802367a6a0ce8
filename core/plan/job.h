/*
 * Jobs: sections of job files with their defaults and overrides applied, the core's own keys parsed, and
 * the rest kept as text for the plugin's table. Everything here is known from text alone: no plugin is
 * loaded and no device is touched.
 */
#ifndef GPURUN_PLAN_JOB_H
#define GPURUN_PLAN_JOB_H

#include "job/jobfile.h"
#include "plan/option.h"

/* The core's keys, parsed. Field comments give units; the table in job.c gives the help. */
struct core_options {
    const char *plugin;
    int64_t memory; /* enum gpurun_memory or GPURUN_AUTO: the plugin's default */
    int64_t prefetch;
    const char *device;  /* auto, cpu, gpu or an index */
    const char *variant; /* auto, all or a list */
    int64_t seed;
    int64_t offset;                     /* elements */
    int64_t repeat;                     /* rounds */
    int64_t warmup;                     /* runs */
    double min_time, max_time, timeout; /* seconds */
    int64_t verify;                     /* VERIFY_... below */
    int64_t cpu;                        /* 0 or 1 */
    int64_t threads;                    /* or GPURUN_AUTO */
    const char *show;
    int64_t picture_limit; /* bytes */
};

enum { VERIFY_AUTO, VERIFY_FULL, VERIFY_CERTIFY, VERIFY_OFF };

extern const struct option_table core_options_table;

/* By enum gpurun_memory; ends with NULL. */
extern const char *const memory_names[];

/* One key of a job, with where its text came from. */
struct setting {
    const char *key, *text;
    struct origin where;
    bool
        shared; /* from [global] or the command line: a plugin that does not know the key ignores it */
};

/* `input.NAME = text` or `output.NAME = text`; tensor NULL: the first of its role. */
struct binding {
    const char *key, *tensor, *text;
    struct origin where;
    bool shared;
};

struct job {
    char *name; /* file:section */
    struct origin where;
    struct setting *settings; /* the winner of each key, in order of first appearance */
    size_t setting_count;
    struct core_options core;
    struct binding *inputs, *outputs;
    size_t input_count, output_count;
};

/* `-s key=value` from the command line. */
struct override {
    const char *key, *value;
};

struct plan {
    struct jobfile *files;
    size_t file_count;
    struct job *jobs;
    size_t count;
    bool is_partial; /* `only` left jobs out */
};

/* Reads all files and resolves their jobs; `only` (may be NULL) is a glob on full names. Faults are
 * added; jobs with faults are still listed. Free with plan_free. */
void plan_read(char *const *paths, size_t path_count, const struct override *overrides,
               size_t override_count, const char *only, struct plan *plan, struct faults *faults);

/* --records may name no file that the plan reads or writes. */
void plan_check_records(const struct plan *plan, const char *path, struct faults *faults);

void plan_free(struct plan *plan);

/* Where `key` was set for this job, for messages. */
struct origin job_origin(const struct job *job, const char *key);

/* True for keys that the core itself knows (`input.a` and `output.b` included). */
bool core_knows(const char *key);

/* The names of the core's keys, for suggestions; ends with NULL. */
const char *const *core_key_names(void);

/* What `show` asks for: *count elements from the start, or the one at index (rank numbers). */
struct show {
    int64_t count;
    int rank;
    int64_t index[GPURUN_RANK_MAX];
};
enum gpurun_status show_parse(const char *text, struct show *show, struct why *why);

/* A comma-separated list: the next item, trimmed, into `item`; false at the end. */
bool list_next(const char **text, char *item, size_t size);

#endif
