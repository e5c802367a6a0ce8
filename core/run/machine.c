#include "run/machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ALIGNMENT = 4096,    /* of host allocations */
    HUGE_PAGE = 2 << 20, /* of large ones */
};

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

/* The number behind `name` in a file of lines "Name:   123 kB", in bytes; 0 when it is not there. */
static uint64_t read_field(FILE *f, const char *name)
{
    char line[256];
    const size_t length = strlen(name);

    rewind(f);
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, length) == 0)
            return strtoull(line + length, NULL, 10) * 1024;
    return 0;
}

uint64_t machine_memory(pid_t pid)
{
    char path[64];
    FILE *f;
    uint64_t bytes;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if ((f = fopen(path, "re")) == NULL)
        return 0;
    bytes = read_field(f, "RssAnon:") + read_field(f, "RssShmem:") + read_field(f, "VmSwap:");
    fclose(f);
    return bytes;
}

long machine_cache(void)
{
    const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);

    return l3 > l2 ? l3 : l2 > 0 ? l2 : 0;
}

/* As NumPy does: with small pages the baseline would wait for address translation. */
void *machine_allocate(size_t bytes)
{
    const size_t alignment = bytes >= HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
    const size_t whole = (bytes + alignment) / alignment * alignment;
    void *memory = aligned_alloc(alignment, whole);

    if (memory != NULL && alignment == HUGE_PAGE)
        madvise(memory, whole, MADV_HUGEPAGE);
    return memory;
}

bool machine_proc_is_ours(void)
{
    char text[32] = "";

    return readlink("/proc/self", text, sizeof text - 1) > 0 && strtol(text, NULL, 10) == getpid();
}
