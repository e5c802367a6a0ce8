/* The books of a batch: every case that ends is counted, kept where a format at the end needs it, and
 * appended to the file of --records. */
#ifndef GPURUN_BATCH_LEDGER_H
#define GPURUN_BATCH_LEDGER_H

#include "batch/batch.h"
#include "batch/records.h"

struct ledger {
    const struct batch_options *options;
    struct records records;
    json_t *kept; /* all records; NULL: nothing asks for them at the end */
    size_t passed, unsupported, failed;
    size_t resumed; /* of these, known from earlier records */
};

/* False, with the reason printed, when the file of --records cannot be used. */
bool ledger_open(struct ledger *l, const struct batch_options *options);

/* A case has ended. The record stays the caller's. */
void ledger_enter(struct ledger *l, json_t *record);

/* A case was left out: `record` is what an earlier batch wrote of it. */
void ledger_resume(struct ledger *l, json_t *record);

/* A job is over: its records, in the order of the batch's jobs, for what is printed at the end. */
void ledger_keep(struct ledger *l, json_t *records);

/* How many cases have ended. */
size_t ledger_count(const struct ledger *l);

/* True when a case has not passed that had to. */
bool ledger_has_failure(const struct ledger *l);

/* Closes the file; false when a record is not in it. */
bool ledger_close(struct ledger *l);
void ledger_free(struct ledger *l);

#endif
