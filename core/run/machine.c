#include "run/machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From `from` up, the first processor that is in the set or, where `in` is 0, is not. */
static int next_cpu(const cpu_set_t *set, int from, int in)
{
    while (from < CPU_SETSIZE && (CPU_ISSET(from, set) != 0) != in)
        from++;
    return from;
}

void machine_affinity(char *text, size_t size)
{
    cpu_set_t set;
    size_t used = 0;

    text[0] = '\0';
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    for (int first = next_cpu(&set, 0, 1), end; first < CPU_SETSIZE && used < size;
         first = next_cpu(&set, end, 1)) {
        end = next_cpu(&set, first, 0);
        used += (size_t)snprintf(text + used, size - used, "%s%d", used ? "," : "", first);
        if (end - first > 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, "-%d", end - 1);
    }
}

void machine_governor(char *text, size_t size)
{
    cpu_set_t set;
    char path[100];
    FILE *f;

    text[0] = '\0';
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor",
             next_cpu(&set, 0, 1));
    if ((f = fopen(path, "r")) == NULL)
        return;
    if (fgets(text, (int)size, f) == NULL)
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    fclose(f);
}

bool machine_proc_is_ours(void)
{
    char text[32] = "";

    return readlink("/proc/self", text, sizeof text - 1) > 0 && strtol(text, NULL, 10) == getpid();
}
