#include "run/warm.h"

#include <stddef.h>

static struct {
    struct device *device; /* NULL: none is open */
    int index;
    struct device_info info;
} kept;

/* What a plugin has reset under our hands is forgotten, not closed: nothing of it can be given back. */
static void look_after_kept(int index)
{
    struct why unused;

    if (kept.device != NULL && device_api.sync(kept.device, &unused) != GPURUN_OK)
        kept.device = NULL;
    if (kept.device == NULL || kept.index == index)
        return;
    device_api.close(kept.device);
    kept.device = NULL;
}

enum gpurun_status warm_open(int index, struct device **device, struct device_info *info,
                             struct why *why)
{
    look_after_kept(index);
    if (kept.device == NULL) {
        GPURUN_TRY(device_api.info(index, &kept.info, why));
        GPURUN_TRY(device_api.open(index, &kept.device, why));
        kept.index = index;
    }
    *device = kept.device;
    *info = kept.info;
    return GPURUN_OK;
}
