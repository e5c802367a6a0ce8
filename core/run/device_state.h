/* What NVML says of the device while a job's rounds run: clocks, heat, power, and what holds it back. */
#ifndef GPURUN_RUN_DEVICE_STATE_H
#define GPURUN_RUN_DEVICE_STATE_H

#include "measure/stats.h"
#include <jansson.h>
#include <stdbool.h>

/* All zero before device_state_begin. Readings that the driver does not give have no samples. */
struct device_state {
    void *handle; /* NVML's; NULL: nothing is known */
    struct samples sm_mhz, memory_mhz, temperature_c, power_w;
    unsigned long long reasons; /* NVML's bits, all that were seen */
    /* Asking for it takes milliseconds, so only long rounds are asked: from the first look that is late enough. */
    bool has_energy;
    unsigned long long energy_start_mj, energy_mj;
    double energy_start_s, energy_s; /* energy_mj was used in energy_s */
    double begin_s, next_s;          /* not looked at again before next_s */
};

void device_state_begin(struct device_state *s, const char *uuid);

/* Looks, at most twenty times a second. */
void device_state_look(struct device_state *s);

/* Looks a last time. */
void device_state_end(struct device_state *s);

/* True where the device was kept below the clock it could have: by heat, by power, or by its maker. */
bool device_state_is_throttled(const struct device_state *s);

/* {"sm_clock_mhz":..,"memory_clock_mhz":..,"temperature_c":..,"power_w":..,"energy_j":..,"energy_s":..,
 * "throttle":[..]}:
 * medians of what was seen, temperature the highest; what is not known is left out. NULL where nothing is. */
json_t *device_state_json(const struct device_state *s);

void device_state_free(struct device_state *s);

#endif
