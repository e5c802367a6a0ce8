/*
 * The life of a job on one device, from data to records. Runs in a worker.
 */
#ifndef GPURUN_RUN_RUNNER_H
#define GPURUN_RUN_RUNNER_H

#include "run/run.h"

/* What the runner tells as it goes; each message is an object with a "type":
 *   {"type":"phase","case":NAME or null,"phase":TEXT}   before anything that could crash or hang
 *   {"type":"cases","cases":{NAME:{"case_id":..,"key":..}}}   before the data
 *   {"type":"job",...}       once the data is there: what the table's heading shows, and the case names
 *   {"type":"record",...}    a case has ended; "record" is the record
 *   {"type":"no-device"}     one was demanded and there is none
 * `say` takes over the message. */
struct runner_listener {
    void (*say)(void *user, json_t *message);
    void *user;
};

enum runner_end {
    RUNNER_DONE,
    RUNNER_REPLACE, /* done, but the device failed: this process is of no more use */
    RUNNER_AGAIN, /* the same, and the job is to be run again without the cases that have records */
};

/* Runs `job` but for the cases whose names are in the array `skip`. */
enum runner_end runner_run(const struct job *job, const struct plugin *plugin, const json_t *skip,
                           const struct runner_listener *listener);

/* The check that `gpurun check` makes of a job, with no device and no data: options and setup. Faults are
 * added; the result describes the job (its cases and question, with `options` its options too) or is NULL after faults. */
json_t *runner_check(const struct job *job, const struct plugin *plugin, bool options,
                     struct faults *faults);

/* What `run` would find: {NAME:{"case_id":..,"key":..}} for every case, with no data. NULL after a
 * failure, which running the job will tell. */
json_t *runner_identify(const struct job *job, const struct plugin *plugin);

#endif
