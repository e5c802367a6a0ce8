#include "batch/devices.h"

#include <stdlib.h>
#include <string.h>

bool devices_hold(const struct devices *devices, int index)
{
    for (size_t i = 0; i < devices->count; i++)
        if (devices->indexes[i] == index)
            return true;
    return devices->is_all;
}

static enum gpurun_status add(struct devices *devices, const char *item, struct why *why)
{
    char *end;
    const long index = strtol(item, &end, 10);

    if (item[0] < '0' || item[0] > '9' || *end != '\0' || index >= 1 << 20)
        return why_fail(why, GPURUN_INVALID,
                        "'%.40s' is no device: write all, or numbers from gpurun devices, 0,1",
                        item);
    if (devices_hold(devices, (int)index))
        return why_fail(why, GPURUN_INVALID, "%ld is named twice", index);
    if (devices->count == DEVICES_MAX)
        return why_fail(why, GPURUN_INVALID, "more than %d devices", DEVICES_MAX);
    devices->indexes[devices->count++] = (int)index;
    return GPURUN_OK;
}

enum gpurun_status devices_parse(const char *text, struct devices *devices, struct why *why)
{
    const char *at = text;
    char item[64];

    *devices = (struct devices){.text = text, .is_all = strcmp(text, "all") == 0};
    if (devices->is_all)
        return GPURUN_OK;
    while (true) {
        const size_t whole = strcspn(at, ","),
                     length = whole < sizeof item ? whole : sizeof item - 1;

        memcpy(item, at, length);
        item[length] = '\0';
        GPURUN_TRY(add(devices, item, why));
        if (at[whole] == '\0')
            return GPURUN_OK;
        at += whole + 1;
    }
}
