/* The line on a terminal, standard error's, that says how far a batch is. Elsewhere there is none. */
#ifndef GPURUN_REPORT_PROGRESS_H
#define GPURUN_REPORT_PROGRESS_H

#include <stddef.h>

/* In cases. */
struct progress {
    size_t done, resumed; /* of these, not run now */
    size_t total, failed;
    double elapsed_s;
};

/* Overwrites the line; `name` is the case in hand, NULL for none. */
void progress_show(const struct progress *p, const char *job, const char *name, const char *phase);

/* Takes the line away before anything else is printed. */
void progress_clear(void);

#endif
