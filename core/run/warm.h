/* The device that a worker keeps open from job to job: opening one costs more than a small case. */
#ifndef GPURUN_RUN_WARM_H
#define GPURUN_RUN_WARM_H

#include "run/device.h"

/* The device of this number, open until another one is asked for or the process ends. Whoever gets it must not
 * close it. */
enum gpurun_status warm_open(int index, struct device **device, struct device_info *info,
                             struct why *why);

#endif
