/*
 * What `variant = auto` becomes: a table beside the plugin, NAME.auto beside NAME.so. It is INI text as a job
 * file is. Each section is a rule: a variant, and conditions on the device, the bytes moved and the plugin's
 * options that must all hold for it. Rules are tried in their order. What tensors hold plays no part.
 */
#ifndef GPURUN_PLAN_AUTO_TABLE_H
#define GPURUN_PLAN_AUTO_TABLE_H

#include "job/faults.h"
#include "plan/registry.h"

struct auto_condition;

struct auto_rule {
    int line;                             /* of its section */
    const struct gpurun_variant *variant; /* NULL: the plugin was built without CUDA */
    struct auto_condition *conditions;    /* owned */
    size_t count;
};

struct auto_table {
    char *path;
    const char *name; /* the file's, the end of `path` */
    struct auto_rule *rules;
    size_t count;
    struct faults faults; /* with any, there is no telling what the table means: it is not used */
    bool has_told;        /* see auto_table_tell */
};

/* What conditions are held against: a job after setup, and its device. */
struct auto_question {
    const void *options; /* the plugin's */
    double bytes;        /* read and written in one run, as the plugin declares them */
    int compute;         /* 10 * major + minor */
    const char *device_name;
};

/* The table beside a loaded plugin; NULL when it has none. For the caller to free. */
struct auto_table *auto_table_load(const struct plugin *plugin);

/* The first rule from place `from` on whose conditions all hold; NULL when there is none. */
const struct auto_rule *auto_table_next(const struct auto_table *table, size_t from,
                                        const struct auto_question *question);

/* Adds the table's faults, the first time that it is called: they are the same for every job. */
void auto_table_tell(struct auto_table *table, struct faults *faults);

/* NULL is fine. */
void auto_table_free(struct auto_table *table);

#endif
