/*
 * The file of --records: one line per case, appended with one write as the case ends, synced at the latest
 * SYNC_S later, locked against every other gpurun. Whatever happens to the file is told on standard error.
 */
#ifndef GPURUN_BATCH_RECORDS_H
#define GPURUN_BATCH_RECORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct records {
    const char *path;   /* the caller's */
    int fd;             /* -1: no file */
    bool is_regular;    /* else a pipe or a device: nothing to repair, to sync or to find deleted */
    off_t start, end;   /* where this run's lines begin, and end */
    double dirty_since; /* now_s of the oldest line that is not synced; 0: none */
    bool has_lost;      /* a record of this run is not in the file */
    bool has_stopped;   /* a write failed: there are no more */
};

/* Opens, locks, and takes back a last line that was cut off. `path` NULL: no file, and all below does
 * nothing. False, with the reason printed, when it cannot be. */
bool records_open(struct records *r, const char *path);

void records_append(struct records *r, const json_t *record);

/* When records_sync is due (now_s); 0: there is nothing to sync. */
double records_sync_due(const struct records *r);
void records_sync(struct records *r);

/* True when every record that was appended is in the file. */
bool records_close(struct records *r);

#endif
