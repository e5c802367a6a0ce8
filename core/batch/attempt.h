/*
 * A batch in work: what batch.c (from start to end), pool.c (its workers), attempt.c (one job, until each of
 * its cases has a record) and resume.c (what earlier batches recorded) share.
 */
#ifndef GPURUN_BATCH_ATTEMPT_H
#define GPURUN_BATCH_ATTEMPT_H

#include "batch/batch.h"
#include "batch/history.h"
#include "batch/ledger.h"
#include "run/runner.h"

struct batch {
    const struct plan *plan;
    const struct checked *checked;
    const struct batch_options *options;
    struct ledger ledger;
    struct history history; /* empty unless resumed */
    size_t total;           /* cases, as far as validation could tell */
    double start;           /* now_s */
    size_t sharers;         /* workers that run on the same CPUs */
    bool
        has_no_device; /* there is none at all: a job that may do without runs its cpu case alone */
    bool any_no_load, any_no_device;
    bool any_bad_end;   /* a worker died after its job's last record */
    bool has_stopped;   /* --fail-fast */
    size_t not_run;     /* jobs that have no record because of that */
    size_t would_run;   /* --dry-run: cases */
    const char *hashed; /* the plugin whose file's hash is `hash` */
    char hash[HASH_TEXT];
};

enum attempt_stage {
    ATTEMPT_FRESH,
    ATTEMPT_LISTS, /* the worker is asked for the cases with their identities */
    ATTEMPT_RUNS,
    ATTEMPT_OVER,
};

/* One job while it runs; its cases by name. */
struct attempt {
    size_t index;
    enum attempt_stage stage;
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

/* True while a case of the job has no record. */
bool attempt_has_rest(const struct attempt *a);

/* True when the array has the text `name`. */
bool names_hold(const json_t *names, const char *name);

/* case_id and key (HASH_TEXT each) of a case that no worker has told: from the text and the plugin's file. */
void attempt_identity(struct batch *b, const struct attempt *a, const char *name, char *case_id,
                      char *key);

/* The names of a job's cases, as far as they are known before it runs. */
json_t *batch_cases(const struct batch *b, size_t index);

/* A job's attempt, for attempt_free. */
struct attempt *attempt_make(const struct batch *b, size_t index);
void attempt_free(struct attempt *a);

/* What a worker is to be told next, for worker_command; NULL when the job is over. `device` is for a job that
 * leaves it open. */
json_t *attempt_command(struct batch *b, struct attempt *a, int device);

/* Takes one message of the worker; true when it was the command's last, *end then says what becomes of the
 * worker. */
bool attempt_take(struct batch *b, struct attempt *a, const json_t *message, enum runner_end *end);

/* The worker died or hung. */
void attempt_lose(struct batch *b, struct attempt *a, enum case_status status, const char *how);

/* A job is over, and all before it are: prints it, keeps its records. */
void batch_end_job(struct batch *b, const struct attempt *a);

/* Reads the files that --resume and its like name. False, with the reason printed, when one cannot be. */
bool resume_read(struct batch *b);

/* Takes the cases for done that an earlier batch recorded, as far as the text tells. */
void resume_by_text(struct batch *b, struct attempt *a);

/* The same once the worker has told its cases, {NAME:{"case_id":..,"key":..}}. */
void resume_by_identity(struct batch *b, struct attempt *a);

#endif
