/*
 * A batch in work: what batch.c (all jobs), attempt.c (one job, until each of its cases has a record) and
 * resume.c (what earlier batches recorded) share.
 */
#ifndef GPURUN_BATCH_ATTEMPT_H
#define GPURUN_BATCH_ATTEMPT_H

#include "batch/batch.h"
#include "batch/history.h"
#include "batch/ledger.h"
#include "batch/worker.h"
#include "run/run.h"

struct batch {
    const struct plan *plan;
    const struct checked *checked;
    const struct batch_options *options;
    struct worker worker;
    struct ledger ledger;
    struct history history; /* empty unless resumed */
    size_t total;           /* cases, as far as validation could tell */
    double start;           /* now_s */
    bool any_no_load, any_no_device;
    bool any_bad_end;   /* a worker died after its job's last record */
    bool has_stopped;   /* --fail-fast */
    size_t not_run;     /* jobs after that */
    size_t would_run;   /* --dry-run: cases */
    const char *hashed; /* the plugin whose file's hash is `hash` */
    char hash[HASH_TEXT];
};

/* One job while it runs; its cases by name. */
struct attempt {
    size_t index;
    json_t *heading;    /* the "job" message; NULL before it */
    json_t *expected;   /* case names: from validation, then from the worker */
    json_t *identities; /* of the cases, from the worker; NULL before it has them */
    json_t *done;       /* names with a record */
    json_t *rows;       /* their records, for the table */
    json_t *tries;      /* by name, how often a case was tried in vain and is tried again */
    json_t *current;    /* the case in hand: a name, or null */
    bool again;         /* a case is to be tried again */
    char phase[64];
    char question[HASH_TEXT]; /* the part of case_id that its cases share */
};

const struct job *batch_job(const struct batch *b, const struct attempt *a);

/* The job's cases are these: the batch's total follows. */
void attempt_expect(struct batch *b, struct attempt *a, json_t *names);

/* True while a case of the job has no record. */
bool attempt_has_rest(const struct attempt *a);

/* True when the array has the text `name`. */
bool names_hold(const json_t *names, const char *name);

/* case_id and key (HASH_TEXT each) of a case that no worker has told: from the text and the plugin's file. */
void attempt_identity(struct batch *b, const struct attempt *a, const char *name, char *case_id,
                      char *key);

/* Every case of the job without a record ends with this one. */
void attempt_end_rest(struct batch *b, struct attempt *a, enum case_status status,
                      const char *reason);

/* One attempt at a job; true when it is to be run again without the cases that have records. */
bool attempt_run(struct batch *b, struct attempt *a);

/* Reads the files that --resume and its like name. False, with the reason printed, when one cannot be. */
bool resume_read(struct batch *b);

/* Asks the worker for the job's cases with their identities; false when it cannot tell. */
bool resume_list(struct batch *b, struct attempt *a);

/* Takes the cases for done that an earlier batch recorded. */
void resume_find(struct batch *b, struct attempt *a);

#endif
