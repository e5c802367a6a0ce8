#include "run/device.h"

static int count(struct why *why)
{
    why_fail(why, GPURUN_UNSUPPORTED, "this gpurun was built without CUDA");
    return 0;
}

const struct device_api device_api = {.count = count};
