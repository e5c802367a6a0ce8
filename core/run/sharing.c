#include "run/sharing.h"

#include "run/nvml.h"
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* The list of NVML, for the caller to free; NULL when it gives none. Processes may come while it is asked. */
static struct nvml_process *list_processes(void *device, unsigned *count)
{
    const struct nvml *nvml = nvml_open();
    struct nvml_process *list = NULL;
    unsigned room = SHARING_PIDS_MAX;

    if (device == NULL || nvml->processes == NULL)
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

static bool has_pid(const struct sharing *s, unsigned pid)
{
    for (unsigned i = 0; i < s->pid_count; i++)
        if (s->pids[i] == pid)
            return true;
    return false;
}

static void add_pids(struct sharing *s, const struct nvml_process *list, unsigned count)
{
    const unsigned own = (unsigned)getpid();
    bool is_listed = false;

    for (unsigned i = 0; i < count; i++)
        is_listed = is_listed || list[i].pid == own;
    for (unsigned i = 0; is_listed && i < count && s->pid_count < SHARING_PIDS_MAX; i++)
        if (list[i].pid != own && !has_pid(s, list[i].pid))
            s->pids[s->pid_count++] = list[i].pid;
}

void sharing_look(struct sharing *s, const char *uuid)
{
    unsigned count = 0;
    struct nvml_process *list = list_processes(nvml_device(uuid), &count);

    if (list != NULL && count > 1) { /* one of them is this process, whatever its number */
        s->others = count - 1 > s->others ? count - 1 : s->others;
        add_pids(s, list, count);
    }
    free(list);
}
