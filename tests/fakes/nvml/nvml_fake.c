/*
 * A pretend NVML. GPURUN_FAKE_NVML is a list of words: numbers are other processes on every device; "alien"
 * numbers this process as a container's driver would; "dead" fails to start; "none" knows no device; "hot" is
 * held back by heat; "mute" gives no readings.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

#pragma GCC visibility push(default)
int nvmlInit_v2(void);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *list);
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits);
#pragma GCC visibility pop

enum { SUCCESS = 0, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, UNKNOWN = 999 };

static const char *words(void)
{
    const char *text = getenv("GPURUN_FAKE_NVML");

    return text ? text : "";
}

int nvmlInit_v2(void)
{
    return strstr(words(), "dead") ? UNKNOWN : SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    static int any;

    if (strncmp(uuid, "GPU-", 4) != 0 || strstr(words(), "none"))
        return NOT_FOUND;
    *device = &any;
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *list)
{
    const unsigned room = *count;
    const char *at = words();
    unsigned n = 0;

    (void)device;
    if (n < room)
        list[n] = (struct process){.pid = strstr(at, "alien") ? 99999999 : (unsigned)getpid()};
    for (n = 1; *(at += strcspn(at, "0123456789")) != '\0'; n++) {
        char *end;
        const unsigned pid = (unsigned)strtoul(at, &end, 10);

        if (n < room)
            list[n] = (struct process){.pid = pid};
        at = end;
    }
    *count = n;
    return n > room ? INSUFFICIENT_SIZE : SUCCESS;
}

/* --- readings: an SM clock of 1980 MHz, 2500 mJ from one asking to the next --- */

static int reading(void)
{
    return strstr(words(), "mute") ? UNKNOWN : SUCCESS;
}

int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz)
{
    (void)device;
    *mhz = which == 1 ? 1980 : which == 2 ? 3201 : 0;
    return reading();
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    (void)device;
    *celsius = sensor == 0 ? 41 : 0;
    return reading();
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    (void)device;
    *milliwatts = 350500;
    return reading();
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    static unsigned long long total = 7000000;

    (void)device;
    *millijoules = total += 2500;
    return reading();
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits)
{
    (void)device;
    *bits = strstr(words(), "hot") ? 0x21 : 0x1;
    return reading();
}
