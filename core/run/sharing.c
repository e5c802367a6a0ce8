#include "run/sharing.h"

#include "run/nvml.h"
#include "run/run.h"
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static const double LOOK_S = 0.05;

/* The list of NVML, for the caller to free; NULL when it gives none. Processes may come while it is asked. */
static struct nvml_process *list_processes(void *device, unsigned *count)
{
    const struct nvml *nvml = nvml_open();
    struct nvml_process *list = NULL;
    unsigned room = SHARING_PIDS_MAX;

    if (nvml->processes == NULL)
        return NULL;
    for (int tries = 0; tries < 3; tries++) {
        int error;

        free(list);
        if ((list = calloc(room, sizeof *list)) == NULL)
            return NULL;
        *count = room;
        if ((error = nvml->processes(device, count, list)) == NVML_SUCCESS)
            return list;
        if (error != NVML_INSUFFICIENT_SIZE)
            break;
        room = *count + SHARING_PIDS_MAX;
    }
    free(list);
    return NULL;
}

static void add_pid(struct sharing *s, unsigned pid)
{
    for (unsigned i = 0; i < s->pid_count; i++)
        if (s->pids[i] == pid)
            return;
    if (s->pid_count < SHARING_PIDS_MAX)
        s->pids[s->pid_count++] = pid;
}

static void add_pids(struct sharing *s, const struct nvml_process *list, unsigned count)
{
    const unsigned own = (unsigned)getpid();
    bool is_listed = false;

    for (unsigned i = 0; i < count; i++)
        is_listed = is_listed || list[i].pid == own;
    for (unsigned i = 0; is_listed && i < count; i++)
        if (list[i].pid != own)
            add_pid(s, list[i].pid);
}

static struct sharing look(void *device)
{
    struct sharing seen = {0};
    unsigned count = 0;
    struct nvml_process *list = list_processes(device, &count);

    if (list != NULL && count > 1) { /* one of them is this process, whatever its number */
        seen.others = count - 1;
        add_pids(&seen, list, count);
    }
    free(list);
    return seen;
}

void sharing_look(struct sharing *s, const char *uuid)
{
    static struct sharing last; /* of the device of last_device, at last_s */
    static void *last_device;
    static double last_s;
    void *device = nvml_device(uuid);

    if (device == NULL)
        return;
    if (device != last_device || now_s() >= last_s + LOOK_S) {
        last = look(device);
        last_device = device;
        last_s = now_s();
    }
    s->others = last.others > s->others ? last.others : s->others;
    for (unsigned i = 0; i < last.pid_count; i++)
        add_pid(s, last.pids[i]);
}
