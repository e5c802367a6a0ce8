/*
 * Settings: keys of a job with their texts and where those came from. Lists of them hold each key once, in
 * the order of first appearance; keys and texts belong to the job file or the command line.
 */
#ifndef GPURUN_PLAN_SETTING_H
#define GPURUN_PLAN_SETTING_H

#include "job/faults.h"
#include <stdbool.h>

struct setting {
    const char *key, *text;
    struct origin where;
    /* From [global] or the command line: a plugin that does not know the key ignores it. Not where it is a
     * sweep: that would make jobs that differ in nothing. */
    bool shared;
    struct origin rival; /* another [global], as near, that has another text; file NULL: none */
};

struct settings {
    struct setting *list; /* owned */
    size_t count;
};

struct setting *settings_find(const struct settings *settings, const char *key);

/* `s` goes before what the list has of its key. */
void settings_put(struct settings *settings, const struct setting *s);

/* `s` is as near as what the list has: the first stays, and a different text is its rival. */
void settings_lend(struct settings *settings, const struct setting *s);

void settings_free(struct settings *settings);

#endif
