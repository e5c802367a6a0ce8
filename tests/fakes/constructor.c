/* Misbehaves while it is loaded, before any hook: as MISBEHAVE says, names of misbehave.h with commas between. */
#define FAKE_NAME "constructor"
#include "minimal.h"

#include "misbehave.h"

__attribute__((constructor)) static void construct(void)
{
    static const char *const names[] = {MISBEHAVE_NAMES};
    const char *wanted = getenv("MISBEHAVE");
    char *list = strdup(wanted ? wanted : ""), *rest;

    for (char *name = strtok_r(list, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest))
        for (size_t i = 0; i < GPURUN_COUNT(names); i++)
            if (strcmp(names[i], name) == 0)
                misbehave_functions[i]();
    free(list);
}
