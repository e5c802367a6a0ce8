/* Who else computes on the device while a job is measured, by NVML. */
#ifndef GPURUN_RUN_SHARING_H
#define GPURUN_RUN_SHARING_H

enum { SHARING_PIDS_MAX = 16 };

struct sharing {
    unsigned others; /* the most that were seen at once; 0 too where nothing can be known */
    /* Some of them, the first that were seen. None where this process is not in NVML's list by its own
     * number, as in a container: then it cannot be told from the others. */
    unsigned pids[SHARING_PIDS_MAX];
    unsigned pid_count;
};

/* Looks once more. This process must have a context on the device. */
void sharing_look(struct sharing *s, const char *uuid);

#endif
