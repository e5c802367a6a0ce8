/* How far a batch is, on standard error: a line on a terminal that is written over and over; elsewhere a line
 * for each case that has ended, in batches that are long. */
#ifndef GPURUN_REPORT_PROGRESS_H
#define GPURUN_REPORT_PROGRESS_H

#include <jansson.h>
#include <stddef.h>

enum { PROGRESS_SHOWN = 8 };

struct progress_case {
    const char *job, *name; /* name NULL: none of its cases yet */
    const char *phase;
};

struct progress {
    size_t done, resumed; /* cases; of these, not run now */
    size_t total, failed;
    double elapsed_s;
    struct progress_case running[PROGRESS_SHOWN];
    size_t count;
};

/* Overwrites the line on a terminal, at most 20 times a second while no case ends. */
void progress_show(const struct progress *p);

/* A case has ended: its line where there is no terminal, in a batch of more than 20 cases or 10 s. */
void progress_end_case(const struct progress *p, const json_t *record);

/* Takes the terminal's line away before anything else is printed. */
void progress_clear(void);

#endif
