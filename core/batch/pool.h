/*
 * The workers of a batch: one per GPU of --devices, --workers of them, or one. Each idle one takes the first
 * job that it can, so jobs end in any order; batch_end_job is told of them in the order of the batch.
 */
#ifndef GPURUN_BATCH_POOL_H
#define GPURUN_BATCH_POOL_H

#include "batch/attempt.h"
#include "batch/lock.h"
#include "batch/worker.h"
#include <poll.h>

/* A worker's place. The process in it comes and goes. */
struct slot {
    struct worker worker;
    int device;          /* for jobs that leave it open */
    int held;            /* the device that its lock is for; -1: none */
    struct lock lock;    /* may be none though a device is held: it was impossible */
    bool waits;          /* another gpurun has the device of a job that is due */
    bool has_said;       /* that it waits, or that there can be no lock */
    struct attempt *job; /* in hand; NULL: idle */
    double deadline;     /* now_s, of the command in hand */
    double asked_cpu;    /* now_s; 0: it does not wait for the CPU */
    size_t turn;         /* who asked first is first */
    bool is_tried;       /* whether the device that it holds works has been asked */
    bool is_probing;     /* whether its device still works */
    bool is_lost;        /* its device does not */
};

enum job_state { JOB_DUE, JOB_IN_HAND, JOB_OVER, JOB_TOLD };

struct pool {
    struct batch *batch;
    struct slot *slots;
    size_t slot_count;
    struct pollfd *polls; /* one for each */
    int device_count;
    json_t *devices; /* as describe_devices lists them */
    struct attempt **attempts;
    unsigned char *states;        /* enum job_state, by job of the plan */
    size_t first_due, first_kept; /* no job before is due; all before are told of */
    struct lock cpu;
    const struct slot *timing; /* whose turn it is to time the CPU */
    bool cpu_is_busy;          /* another gpurun has the lock */
    bool has_said;             /* that there can be no lock */
    size_t turns;
    double awake; /* now_s, when workers were last listened to; 0: not yet */
};

/* Makes the workers' places. EXIT_PASSED, or why the batch cannot be run, which is then printed. */
enum exit_code pool_open(struct pool *p, struct batch *b);

/* Runs all jobs, until the end, an interrupt or --fail-fast. */
void pool_run(struct pool *p);

void pool_close(struct pool *p);

/* --- what pool.c, pool_open.c and pool_turn.c share --- */

/* The index that a job names; -1: it leaves it open. */
int pool_named_device(const struct job *job);
bool pool_is_for_cpu(const struct job *job);

/* "" where there is no such device. */
const char *pool_uuid(const struct pool *p, int device);

/* The worker asks for its turn, or ends it. */
void pool_ask_turn(struct pool *p, struct slot *s, bool begin);

/* It is gone, or the job is over: neither waits nor has its turn any more. */
void pool_take_turn_back(struct pool *p, struct slot *s);

/* To be called now and then while another gpurun has the lock. */
void pool_give_turn(struct pool *p);

#endif
