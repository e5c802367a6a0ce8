/*
 * NVML, the driver's library of readings, opened when something is first asked of it. Where it is missing,
 * or too old for a reading, that reading is missing too: nothing here is an error. Only in workers.
 */
#ifndef GPURUN_RUN_NVML_H
#define GPURUN_RUN_NVML_H

/* As NVML lays it out since driver 450. */
struct nvml_process {
    unsigned pid; /* as the machine numbers it, whatever a container shows */
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

enum nvml_clock { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };

/* NVML's functions, by its own conventions: 0 is success. One that this driver has not is NULL, but for
 * the first two. */
struct nvml {
    int (*init)(void);
    int (*device_by_uuid)(const char *uuid, void **device);
    int (*processes)(void *device, unsigned *count, struct nvml_process *list);
    int (*clock)(void *device, enum nvml_clock which, unsigned *mhz);
    int (*temperature)(void *device, int sensor, unsigned *celsius); /* sensor 0: the chip */
    int (*power)(void *device, unsigned *milliwatts);
    int (*energy)(void *device, unsigned long long *millijoules); /* since the driver was loaded */
    int (*reasons)(void *device, unsigned long long *bits); /* what holds the clock back now */
};

enum { NVML_SUCCESS = 0, NVML_INSUFFICIENT_SIZE = 7 };

/* NULL: there is none. */
const struct nvml *nvml_open(void);

/* NVML's handle of a device, by its UUID as in device_info; NULL when there is none. */
void *nvml_device(const char *uuid);

#endif
