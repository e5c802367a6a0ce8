/* Misbehaves while it is loaded, before any hook: as MISBEHAVE says, one of the names in misbehave.h. */
#define FAKE_NAME "constructor"
#include "minimal.h"

#include "misbehave.h"

__attribute__((constructor)) static void construct(void)
{
    static const char *const names[] = {MISBEHAVE_NAMES};
    const char *wanted = getenv("MISBEHAVE");

    for (size_t i = 0; wanted != NULL && i < GPURUN_COUNT(names); i++)
        if (strcmp(names[i], wanted) == 0)
            misbehave_functions[i]();
}
