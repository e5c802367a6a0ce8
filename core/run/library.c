#include "run/library.h"

#include "job/memory.h"
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *cuda_folder(void)
{
    static const char *const names[] = {"CUDA_HOME", "CUDA_PATH"};

    for (size_t i = 0; i < GPURUN_COUNT(names); i++) {
        const char *folder = getenv(names[i]);

        if (folder != NULL && folder[0] != '\0')
            return folder;
    }
    return "/usr/local/cuda";
}

/* What the loader says of a file that is there but cannot be loaded, for the message. */
static void *open_file(const char *path, char *complaint, size_t size)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (handle == NULL)
        snprintf(complaint, size, "; %s", dlerror());
    return handle;
}

static void *open_in_folder(const char *folder, const char *soname, char *complaint, size_t size)
{
    static const char *const places[] = {"lib64", "targets/*/lib", "lib"};
    void *handle = NULL;

    for (size_t i = 0; i < GPURUN_COUNT(places) && handle == NULL; i++) {
        char *pattern = format_text("%s/%s/%s", folder, places[i], soname);
        glob_t found = {0};

        if (glob(pattern, 0, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc && handle == NULL; k++)
                handle = open_file(found.gl_pathv[k], complaint, size);
        globfree(&found);
        free(pattern);
    }
    return handle;
}

void *library_open(const char *const *sonames, struct why *why)
{
    const char *folder = cuda_folder();
    char tried[300] = "", complaint[400] = "";
    size_t used = 0;

    for (size_t i = 0; sonames[i] != NULL; i++) {
        void *handle = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);

        if (handle == NULL)
            handle = open_in_folder(folder, sonames[i], complaint, sizeof complaint);
        if (handle != NULL)
            return handle;
        if (used < sizeof tried)
            used += (size_t)snprintf(tried + used, sizeof tried - used, "%s%s", i ? ", " : "",
                                     sonames[i]);
    }
    why_fail(why, GPURUN_UNSUPPORTED,
             "neither the loader nor the CUDA folder %s has %s (set CUDA_HOME to the folder that "
             "does)%s",
             folder, tried, complaint);
    return NULL;
}
