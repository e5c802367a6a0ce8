/* What earlier batches recorded, by key: where the last record of each case stands. */
#ifndef GPURUN_BATCH_HISTORY_H
#define GPURUN_BATCH_HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct history {
    struct history_entry *entries; /* sorted by key, of one key in the order of reading */
    size_t count;
    const char *path; /* of the file being read */
};

/* Adds a file's records. False, with the reason printed, when it cannot be read. All files are to be read before anything is asked. */
bool history_read(struct history *h, const char *path);

/* The last record with this key, for the caller to free; NULL when there is none. */
json_t *history_find(const struct history *h, const char *key);

void history_free(struct history *h);

#endif
