/*
 * Faults that the text of a job file shows: collected, so that a user sees all of them at once, and
 * printed as `file:line: key: what is wrong, and what would be right`.
 */
#ifndef GPURUN_JOB_FAULTS_H
#define GPURUN_JOB_FAULTS_H

#include <stddef.h>

struct faults {
    char **texts; /* owned */
    size_t count;
};

/* Where a value came from. file NULL: the built-in default; line 0: the command line, file says which
 * option. */
struct origin {
    const char *file;
    int line;
};

/* `key` may be NULL. */
void faults_add(struct faults *faults, struct origin where, const char *key, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

/* Adds a finished text, as it reached us from a child process. */
void faults_add_text(struct faults *faults, const char *text);

/* Prints all to standard error, at most 20 of them and how many more there are. */
void faults_print(const struct faults *faults);

void faults_free(struct faults *faults);

/* "jobs/x.ini:7", "-s" or "default", into `text`; returns it. */
const char *origin_text(struct origin where, char *text, size_t size);

/* "file:line: key: " + what, the one format of all such messages; key may be NULL. */
void fault_format(char *text, size_t size, struct origin where, const char *key, const char *what);

#endif
