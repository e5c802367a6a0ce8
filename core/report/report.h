/* `gpurun report`: files of records, read back and merged. */
#ifndef GPURUN_REPORT_REPORT_H
#define GPURUN_REPORT_REPORT_H

#include "report/output.h"

struct report_options {
    enum output_format format;
    bool strict;       /* unsupported cases count as failures */
    const char *junit; /* NULL: none */
    const char *html;  /* the same */
};

/* The records of the files, one per case: the last, but an interrupted one never hides how the case ended.
 * For the caller to free; NULL, with the reason printed, when a file cannot be read. */
json_t *report_read(char *const *paths, size_t count);

/* Reads and prints; the exit code is that of a run with these records. */
int report_print(char *const *paths, size_t count, const struct report_options *options);

#endif
