#include "run/available.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Version 1 counts a group alone unless asked for the total with those below it; version 2 always does. */
static const struct group_files {
    const char *most, *now, *inactive, *active; /* the last two are lines of memory.stat */
} files_of[] = {
    [GROUPS_V1] = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                   "total_active_file"},
    [GROUPS_V2] = {"memory.max", "memory.current", "inactive_file", "active_file"},
};

static FILE *open_file(const char *folder, const char *name)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return fopen(path, "re");
}

/* The number behind `name` in a file of lines "name 123", which it closes; 0 when it is not there. */
static uint64_t read_line(FILE *f, const char *name)
{
    const size_t length = strlen(name);
    char line[256];
    uint64_t number = 0;

    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, length) == 0 && line[length] == ' ')
            number = strtoull(line + length, NULL, 10);
    if (f != NULL)
        fclose(f);
    return number;
}

/* A file of one number; UINT64_MAX when there is none, or it says "max". */
static uint64_t read_number(const char *folder, const char *name)
{
    char text[32] = "";
    FILE *f = open_file(folder, name);

    if (f == NULL)
        return UINT64_MAX;
    if (fgets(text, sizeof text, f) == NULL)
        text[0] = '\0';
    fclose(f);
    return text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

static uint64_t left_in(const char *folder, const struct group_files *files)
{
    const uint64_t most = read_number(folder, files->most), now = read_number(folder, files->now);
    uint64_t returnable, held;

    if (most == UINT64_MAX || now == UINT64_MAX)
        return UINT64_MAX;
    returnable = read_line(open_file(folder, "memory.stat"), files->inactive) +
                 read_line(open_file(folder, "memory.stat"), files->active);
    held = now > returnable ? now - returnable : 0;
    return held < most ? most - held : 0;
}

uint64_t available_in_groups(const char *root, const char *group, enum group_version version)
{
    const size_t shortest = strlen(root);
    uint64_t least = UINT64_MAX;
    char folder[PATH_MAX], *end;

    if ((size_t)snprintf(folder, sizeof folder, "%s%s", root, group) >= sizeof folder)
        return UINT64_MAX;
    do {
        const uint64_t left = left_in(folder, &files_of[version]);

        least = left < least ? left : least;
        end = strrchr(folder, '/');
        if (end != NULL)
            *end = '\0';
    } while (end != NULL && end >= folder + shortest);
    return least;
}

/* By lines "0::/job" (version 2) and "4:memory:/job". Inside a container the folder of the name may not be there;
 * then the container's own, the root, is. */
static uint64_t left_in_own_groups(void)
{
    char line[PATH_MAX], *controllers, *group;
    uint64_t least = UINT64_MAX, left;
    FILE *f = fopen("/proc/self/cgroup", "re");

    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        controllers = strchr(line, ':');
        group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = '\0';
        left = UINT64_MAX;
        if (controllers[1] == '\0')
            left = available_in_groups("/sys/fs/cgroup", group, GROUPS_V2);
        else if (strcmp(controllers + 1, "memory") == 0)
            left = available_in_groups("/sys/fs/cgroup/memory", group, GROUPS_V1);
        least = left < least ? left : least;
    }
    if (f != NULL)
        fclose(f);
    return least;
}

uint64_t available_bytes(void)
{
    const uint64_t machine = read_line(fopen("/proc/meminfo", "re"), "MemAvailable:") * 1024;
    uint64_t left = left_in_own_groups();

    if (machine > 0 && machine < left)
        left = machine;
    return left == UINT64_MAX ? 0 : left / 10 * 9;
}
