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
 *   {"type":"record",...}    a case has ended; "record" is the record, without the fields that are as in "job"
 *   {"type":"no-device"}     one was demanded and there is none
 * `say` takes over the message. `time_cpu` returns once no other gpurun times the CPU, and with false ends
 * this process's turn; NULL: nothing is timed. */
struct runner_listener {
    void (*say)(void *user, json_t *message);
    void (*time_cpu)(void *user, bool begin);
    void *user;
};

/* What of a job is run, and where. */
struct runner_order {
    const json_t *skip; /* an array: names of cases that are not run again */
    int device;         /* for a job that leaves it open */
    int64_t sharers;    /* workers on the same CPUs, this one among them */
    uint64_t memory;    /* bytes that the process may take; 0: nobody says */
};

enum runner_end {
    RUNNER_DONE,
    RUNNER_REPLACE, /* done, but the device failed: this process is of no more use */
    RUNNER_AGAIN, /* the same, and the job is to be run again without the cases that have records */
};

enum runner_end runner_run(const struct job *job, const struct plugin *plugin,
                           const struct runner_order *order,
                           const struct runner_listener *listener);

/* The check that `gpurun check` makes of a job, with no device and no data: options and setup. Faults are
 * added; the result describes the job (its cases and question, with `options` its options too) or is NULL after faults. */
json_t *runner_check(const struct job *job, const struct plugin *plugin, bool options,
                     struct faults *faults);

/* What `run` would find: {NAME:{"case_id":..,"key":..}} for every case, with no data. NULL after a
 * failure, which running the job will tell. */
json_t *runner_identify(const struct job *job, const struct plugin *plugin, int device);

/* Whether the device does anything at all: one that fell off the bus does not. */
enum gpurun_status runner_probe(int device, struct why *why);

#endif
