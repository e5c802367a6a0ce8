/*
 * How long work takes: one way of reading it on the device, and one on the host, for every case, the ceilings and the
 * empty reading, so that they can be compared. The way is the job's `launch` and `cache`, as far as the work allows.
 */
#ifndef GPURUN_RUN_TIMING_H
#define GPURUN_RUN_TIMING_H

#include "run/device.h"

struct run;

/* Where the work is done: there it is read by events, here by the monotonic clock. */
enum memory_side { SIDE_DEVICE, SIDE_HOST, SIDES };

/* Enqueues the work or, on the host, does it; or puts its data back as it was before; `user` is the timing's. */
typedef enum gpurun_status timing_step(struct run *run, void *user);

struct timing {
    struct run *run;
    timing_step *work, *restore; /* restore may be NULL */
    void *user;
    enum memory_side side;
    double bytes;   /* what the work touches: less than twice the cache may still lie there */
    bool once;      /* one run a reading: a second without `restore` between would be other work */
    double last_ms; /* of the last reading; before it what is known of a run, or 0 */

    bool is_held; /* launch gaps are hidden */
    struct device_graph *graph;
    int repeats;    /* runs in one reading */
    char note[400]; /* why it is not read as the job says; "" if it is */
    int readings, ran_out;
};

/* The fields above `is_held` are set. Reads once to see what can be done, and makes the graph. */
enum gpurun_status timing_prepare(struct timing *t);

/* Bytes of the side's last cache; 0 where it is not known. */
double timing_cache_bytes(const struct run *run, enum memory_side side);

/* Whether readings are of a cold cache. */
bool timing_is_cold(const struct timing *t);

/* One reading: milliseconds of one run. */
enum gpurun_status timing_read(struct timing *t, double *ms);

void timing_free(struct timing *t);

/* Memory that is written over for cold readings; for run_finish's caller to release before the device. */
void timing_release(struct run *run);

#endif
