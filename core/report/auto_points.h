/*
 * What records say of the variants of one plugin: for each setting of its options, size and device at which
 * several were measured, the fastest that was proved right. What tables of `auto` are made from.
 */
#ifndef GPURUN_REPORT_AUTO_POINTS_H
#define GPURUN_REPORT_AUTO_POINTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Jobs that differ in what `auto` does not look at, the data above all, or in numbers by less than a tenth are
 * one point: its values are those of the first. */
struct auto_point {
    json_t *values;   /* "device" ("9.0"), the plugin's options, "bytes" */
    json_t *cells;    /* for each job an array of its variants' records, peers left out */
    char *fallback;   /* what `auto` is there without a rule: the last rung that can run */
    const char *pick; /* the variant to take; it belongs to a record */
    size_t kind;      /* 0: pick is fallback; else a number for each pick */
    double gain_low,
        gain_high; /* how many times as fast as fallback; 0 where that was not proved */
};

/* A cell without the ladder's last rung (a variant that no job lists before another, peers left out) was not
 * held against what `auto` is without a table: it says nothing, nor does one of one variant, or of none that was
 * proved and timed often enough. */
struct auto_points {
    struct auto_point *list;
    size_t count, cells;
    size_t left_out; /* of the cells */
};

/* Reads the files; of a case on one model of device the last record that is no `interrupted` one counts. `gap`
 * is verdict_of's. False, with the reason printed, when a file cannot be read. To be freed in any case. */
bool auto_points_read(char *const *paths, size_t count, const char *plugin, double gap,
                      struct auto_points *out);

/* Whether two values are so near that a condition does not part them: the same, or numbers that differ by less than a
 * tenth. */
bool auto_points_near(const json_t *a, const json_t *b);

void auto_points_free(struct auto_points *points);

#endif
