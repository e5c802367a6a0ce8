#include "batch/cpus.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

struct cpu {
    int number;
    long package, core;
};

static long read_topology(int cpu, const char *what)
{
    char path[120];
    FILE *f;
    long number = cpu;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
    if ((f = fopen(path, "r")) == NULL)
        return number;
    if (fscanf(f, "%ld", &number) != 1)
        number = cpu;
    fclose(f);
    return number;
}

static int compare(const void *a, const void *b)
{
    const struct cpu *x = a, *y = b;

    if (x->package != y->package)
        return x->package < y->package ? -1 : 1;
    if (x->core != y->core)
        return x->core < y->core ? -1 : 1;
    return x->number - y->number;
}

void cpus_take(const struct cpus *cpus)
{
    struct cpu list[CPU_SETSIZE];
    cpu_set_t set;
    int count = 0, first, end;

    if (cpus->parts == 0 || sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            list[count++] = (struct cpu){i, read_topology(i, "physical_package_id"),
                                         read_topology(i, "core_id")};
    if (count == 0)
        return;
    qsort(list, (size_t)count, sizeof *list, compare);
    first = cpus->parts <= count ? cpus->part * count / cpus->parts : cpus->part % count;
    end = cpus->parts <= count ? (cpus->part + 1) * count / cpus->parts : first + 1;
    CPU_ZERO(&set);
    for (int i = first; i < end; i++)
        CPU_SET(list[i].number, &set);
    sched_setaffinity(0, sizeof set, &set);
}
