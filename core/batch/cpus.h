/* The part of the CPUs that one of several workers runs on. */
#ifndef GPURUN_BATCH_CPUS_H
#define GPURUN_BATCH_CPUS_H

struct cpus {
    int part, parts; /* 0 to parts - 1; parts 0: all that this process may use */
};

/* Confines this process to its part: neighbouring cores with all their threads. With more parts than CPUs
 * some share one. */
void cpus_take(const struct cpus *cpus);

#endif
