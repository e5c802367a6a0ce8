/*
 * Finding and loading plugins. Only child processes load them: a constructor in a shared object is
 * foreign code. The folders searched are those of GPURUN_PLUGIN_PATH (separated by ':'), then `plugins`
 * beside the executable, then ../lib/gpurun/plugins from it; in each, NAME/NAME.so and NAME.so.
 */
#ifndef GPURUN_PLAN_REGISTRY_H
#define GPURUN_PLAN_REGISTRY_H

#include "plan/option.h"

struct auto_table;

struct plugin {
    char *path;
    void *handle;
    const struct gpurun_plugin *table;
    struct option_table options;
    char build[17];                /* hash of the file's bytes, hexadecimal */
    struct auto_table *auto_table; /* of the file NAME.auto beside it; NULL: there is none */
};

/* Where NAME's file is, for the caller to free; NULL when there is none, with the places tried in *why. */
char *registry_find(const char *name, struct why *why);

/* The hash of a file's bytes, as in struct plugin; "" when it cannot be read. */
void registry_build(const char *path, char *build, size_t size);

/* Loads the file found for NAME, checks its table, and keeps it open for the life of the process.
 * GPURUN_ERROR with every reason otherwise. */
enum gpurun_status registry_load(const char *name, struct plugin *out, struct why *why);

/* All plugin names found, sorted, each once; a NULL-terminated list for the caller to free with
 * registry_free_names. */
char **registry_names(void);
void registry_free_names(char **names);

const struct gpurun_variant *plugin_variant(const struct plugin *plugin, uint32_t i);

/* NULL when there is none. */
const struct gpurun_variant *plugin_find_variant(const struct plugin *plugin, const char *name);

#endif
