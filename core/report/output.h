/* Records as a whole, in the formats that machines and reports read. */
#ifndef GPURUN_REPORT_OUTPUT_H
#define GPURUN_REPORT_OUTPUT_H

#include <jansson.h>

enum output_format {
    OUTPUT_TABLE, /* for people, by table.h */
    OUTPUT_JSON,
};

/* Prints all records to standard output in `format`, which is not OUTPUT_TABLE. */
void output_print(enum output_format format, const json_t *records, int exit_code);

#endif
