#include "run/nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static struct nvml nvml;

/* By newest name first. */
static const struct {
    size_t offset;
    const char *names[2];
} symbols[] = {
    {offsetof(struct nvml, init), {"nvmlInit_v2"}},
    {offsetof(struct nvml, device_by_uuid), {"nvmlDeviceGetHandleByUUID"}},
    {offsetof(struct nvml, processes),
     {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"}},
    {offsetof(struct nvml, clock), {"nvmlDeviceGetClockInfo"}},
    {offsetof(struct nvml, temperature), {"nvmlDeviceGetTemperature"}},
    {offsetof(struct nvml, power), {"nvmlDeviceGetPowerUsage"}},
    {offsetof(struct nvml, energy), {"nvmlDeviceGetTotalEnergyConsumption"}},
    {offsetof(struct nvml, reasons),
     {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}},
};

static void find_symbols(void *library)
{
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = dlsym(library, symbols[i].names[0]);

        if (found == NULL && symbols[i].names[1] != NULL)
            found = dlsym(library, symbols[i].names[1]);
        memcpy((char *)&nvml + symbols[i].offset, &found, sizeof found);
    }
}

const struct nvml *nvml_open(void)
{
    static bool is_tried, is_open;
    void *library;

    if (is_tried)
        return is_open ? &nvml : NULL;
    is_tried = true;
    if ((library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) == NULL)
        return NULL;
    find_symbols(library);
    is_open = nvml.init != NULL && nvml.device_by_uuid != NULL && nvml.init() == NVML_SUCCESS;
    return is_open ? &nvml : NULL;
}

void *nvml_device(const char *uuid)
{
    void *device = NULL;

    if (nvml_open() == NULL || nvml.device_by_uuid(uuid, &device) != NVML_SUCCESS)
        return NULL;
    return device;
}
