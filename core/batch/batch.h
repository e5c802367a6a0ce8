/*
 * A batch from its text to its exit code: validated whole, then run job by job in a worker that is
 * replaced when it dies. Every case of every job ends with one record.
 */
#ifndef GPURUN_BATCH_BATCH_H
#define GPURUN_BATCH_BATCH_H

#include "batch/devices.h"
#include "batch/shard.h"
#include "plan/job.h"
#include "report/compare.h"
#include <jansson.h>

enum exit_code {
    EXIT_PASSED = 0,
    EXIT_FAILED = 1,    /* a case did not pass */
    EXIT_USAGE = 2,     /* usage, or a fault that the text alone shows: nothing ran */
    EXIT_NO_LOAD = 3,   /* a plugin was found but could not be loaded */
    EXIT_NO_DEVICE = 4, /* none where one was demanded */
    EXIT_INTERRUPTED = 130,
};

/* What validation found out about a job. */
struct checked {
    json_t *description; /* see runner_check; NULL after a load error or a crash */
    char
        *trouble; /* why the job could not be described though its text has no fault; may be NULL */
    bool no_load; /* the trouble is that its plugin does not load */
};

/* Validates every job in a child: faults are added, results (one per job, for batch_free_checked) returned.
 * A setup that crashes or hangs is no fault of the text: the job stays, and running it will tell. With
 * `options` the descriptions hold every option, resolved. From here on signals are caught (interrupt.h). */
struct checked *batch_check(const struct plan *plan, bool options, struct faults *faults);
void batch_free_checked(struct checked *checked, size_t count);

/* The names of a job's cases, for the caller to free; a job that could not be described is one. */
json_t *checked_cases(const struct checked *c);

struct batch_options {
    enum output_format format;
    struct shard shard;       /* the part of the jobs to run */
    struct devices devices;   /* the GPUs that share the jobs */
    long workers;             /* of a batch on the CPU; 0: not given */
    bool strict;              /* unsupported cases count as failures */
    bool fail_fast;           /* stop at the first case that did not pass */
    bool dry_run;             /* say what would run */
    const char *junit;        /* write JUnit XML here at the end; NULL: nowhere */
    const char *records;      /* append records here; NULL: nowhere */
    bool resume;              /* leave out what has a record, in `records` or in `resume_from` */
    bool retry_failed;        /* but not where the last one did not pass */
    const char **resume_from; /* more files to read */
    size_t resume_from_count;
    json_t *collect;  /* an array that gets all records; NULL: none; not with OUTPUT_TABLE */
    double gap;       /* of the comparison with a job's `baseline`, see compare.h */
    unsigned fail_on; /* the verdicts of it that make the exit code 1 */
};

enum exit_code batch_run(const struct plan *plan, const struct checked *checked,
                         const struct batch_options *options);

/* Asks a fresh worker one thing outside any plan, about `what`; NULL after it died or took longer than `seconds`
 * (0: it may take for ever), with a message printed. The answer is the caller's: {"result":...} or
 * {"load_error":TEXT}. */
json_t *batch_ask(json_t *command, const char *what, double seconds);

#endif
