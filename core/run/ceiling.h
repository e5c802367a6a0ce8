/*
 * What memory gives: as many bytes as the job moves read, copied or filled by bare loops, on the device and on the
 * host, and a reading of nothing, in the same rounds as the cases. `% of limit` is against them.
 */
#ifndef GPURUN_RUN_CEILING_H
#define GPURUN_RUN_CEILING_H

#include "gpurun/plugin.h"
#include "measure/stats.h"
#include "run/timing.h"

/* On the device all are read. On the host only the one that fits what the job moves. */
enum yardstick {
    YARDSTICK_READ,
    YARDSTICK_COPY,  /* of one half to the other */
    YARDSTICK_WRITE, /* of jobs that read nothing */
    YARDSTICK_NOTHING,
    YARDSTICKS
};

/* One side's. */
struct ceiling {
    void *memory;
    size_t bytes;     /* 0: there is no ceiling */
    bool past_caches; /* on the host: how it stores, which is the faster way here */
    char note[200];   /* why there is none, or one of fewer bytes than the job moves; "" */
    struct timing yardsticks[YARDSTICKS];
    struct samples ms[YARDSTICKS];
};

/* Memory for a side's yardsticks, which are made ready. */
enum gpurun_status ceiling_begin(struct run *run, enum memory_side side);

/* The yardstick that fits the job: a copy where it writes about as much as it reads, a write where it reads nothing. */
enum yardstick ceiling_kind(const struct gpurun_work *w);

/* One reading, added to its samples; none where the side has no such yardstick. */
enum gpurun_status ceiling_read(struct run *run, enum memory_side side, enum yardstick which,
                                int round);

/* Gives the memory back. Samples stay until run_finish. */
void ceiling_end(struct run *run, enum memory_side side);

#endif
