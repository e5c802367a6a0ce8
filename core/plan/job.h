/*
 * Jobs: sections of job files with their defaults and overrides applied and their sweeps taken apart, the
 * core's own keys parsed, and the rest kept as text for the plugin's table. Everything here is known from
 * text alone: no plugin is loaded and no device is touched.
 */
#ifndef GPURUN_PLAN_JOB_H
#define GPURUN_PLAN_JOB_H

#include "plan/grid.h"
#include "plan/option.h"
#include "plan/source.h"

/* The core's keys, parsed. Field comments give units; the table in job.c gives the help. */
struct core_options {
    const char *plugin;
    int64_t memory; /* enum gpurun_memory or GPURUN_AUTO: the plugin's default */
    int64_t prefetch;
    const char *device;  /* auto, cpu, gpu or an index */
    const char *variant; /* auto, all or a list */
    int64_t seed;
    int64_t offset;                     /* elements */
    int64_t repeat;                     /* rounds, or GPURUN_AUTO: until the median is known well */
    int64_t warmup;                     /* runs, or GPURUN_AUTO: until times are steady */
    double min_time, max_time, timeout; /* seconds; min_time may be auto */
    int64_t retries;                    /* of a case that crashed, hung or failed to run */
    int64_t verify;                     /* VERIFY_... below */
    int64_t cpu;                        /* 0 or 1 */
    int64_t threads;                    /* or GPURUN_AUTO */
    const char *baseline;               /* as written; see job_baseline_path */
    const char *show;
    int64_t picture_limit; /* bytes */
    int64_t cache, launch; /* CACHE_..., LAUNCH_... below */
    int64_t samples;       /* 0 or 1: raw samples go into the record */
    int64_t memory_limit;  /* bytes, or GPURUN_AUTO */
};

enum { CACHE_HOT, CACHE_COLD };
enum { LAUNCH_STREAM, LAUNCH_GRAPH };
enum { VERIFY_AUTO, VERIFY_FULL, VERIFY_CERTIFY, VERIFY_OFF };

extern const struct option_table core_options_table;

/* By enum gpurun_memory, by CACHE_... and by LAUNCH_...; end with NULL. */
extern const char *const memory_names[], *const cache_names[], *const launch_names[];

/* `input.NAME = text` or `output.NAME = text`; tensor NULL: the first of its role. */
struct binding {
    const char *key, *tensor, *text;
    struct origin where;
    bool shared;
};

struct job {
    char *name;          /* file:section, and of a sweep file:section/n=1M,k=10 */
    const char *section; /* NULL: it comes from no file */
    struct origin where;
    struct setting *settings; /* the winner of each key, in order of first appearance */
    size_t setting_count;
    struct core_options core;
    struct binding *inputs, *outputs;
    size_t input_count, output_count;
};

/* Parses the core's keys of a job whose settings are known, and checks all that needs no plugin. */
void job_resolve(struct job *job, struct faults *faults);

/* The path that `path` will have once written: its folder resolved, its last name kept. NULL: no folder.
 * The caller frees it. */
char *job_resolved_path(const char *path);

/* The file of records to compare with; a relative path starts at the job file's folder. NULL: none. The
 * caller frees it. */
char *job_baseline_path(const struct job *job);

/* `-s key=value` from the command line. */
struct override {
    const char *key, *value;
};

struct plan {
    struct sources sources;
    struct grid *grids; /* of the sections that have sweeps: they own the values */
    size_t grid_count;
    struct job *jobs;
    size_t count;
    bool is_partial; /* `only` or a faulty sweep left jobs out */
};

/* Reads all files and what they include, and resolves their jobs; `only` (may be NULL) is a glob on full
 * names, or on file:section for all jobs of a sweep. Faults are added; jobs with faults are still listed,
 * but for those of a faulty sweep. Free with plan_free. */
void plan_read(char *const *paths, size_t path_count, const struct override *overrides,
               size_t override_count, const char *only, struct plan *plan, struct faults *faults);

/* The same for files that are parsed already: those of plan->sources, which nothing else is set in. */
void plan_make(const struct override *overrides, size_t override_count, const char *only,
               struct plan *plan, struct faults *faults);

/* The file of an option, --records or --junit, may be none that the plan reads or writes. */
void plan_check_records(const struct plan *plan, const char *option, const char *path,
                        struct faults *faults);

void plan_free(struct plan *plan);

/* Where `key` was set for this job, for messages. */
struct origin job_origin(const struct job *job, const char *key);

/* True for keys that the core itself knows (`input.a` and `output.b` included). */
bool core_knows(const char *key);

/* True for keys whose lists and ranges are sweeps: a plugin's, and memory, prefetch and input. */
bool job_key_can_sweep(const char *key);

/* True for `input` and `input.NAME`. */
bool job_key_is_input(const char *key);

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
