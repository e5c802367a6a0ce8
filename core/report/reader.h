/* Reading files of records. */
#ifndef GPURUN_REPORT_READER_H
#define GPURUN_REPORT_READER_H

#include <jansson.h>
#include <stdbool.h>

/* Gets every record in the order of its lines, with the place of its line; it belongs to the reader. */
typedef void (*reader_each)(void *user, const json_t *record, long offset);

/* What is no record is left out, with a note on standard error. False, with the reason printed, when the
 * file cannot be read. */
bool reader_read(const char *path, reader_each each, void *user);

/* The record whose line starts at `offset`, for the caller to free; NULL when it is no longer there. */
json_t *reader_at(const char *path, long offset);

#endif
