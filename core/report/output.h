/* Records as a whole, in the formats that machines and reports read. All are of an array of records. */
#ifndef GPURUN_REPORT_OUTPUT_H
#define GPURUN_REPORT_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum output_format {
    OUTPUT_TABLE, /* for people, by table.h */
    OUTPUT_JSON,
    OUTPUT_CSV,
    OUTPUT_MARKDOWN,
    OUTPUT_NONE, /* the caller prints */
};

/* Prints all records to standard output in `format`, which is not OUTPUT_TABLE; nothing for OUTPUT_NONE. */
void output_print(enum output_format format, const json_t *records, int exit_code);

/* Writes all records to `path` as JUnit XML. False, with the reason printed, when that fails. */
bool output_write_junit(const char *path, const json_t *records);

/* False, with the reason printed, when nothing could be written to `path`; what is there stays. */
bool output_check_junit(const char *path);

/* The parts, one file each. */
void csv_write(FILE *to, const json_t *records);
void markdown_write(FILE *to, const json_t *records);
void junit_write(FILE *to, const json_t *records);

/* A scalar as one CSV field; text as one Markdown cell, with all that is markup escaped. */
void csv_scalar(FILE *to, const json_t *value);
void markdown_cell(FILE *to, const char *text);

/* Text as XML or HTML, between tags or in "quotes"; what XML has not becomes U+FFFD. */
void xml_text(FILE *to, const char *text);

/* Records by job: an array of arrays, in the order of each job's first record. For the caller to free. */
json_t *output_by_job(const json_t *records);

/* A scalar as text that reads back as the same value, whatever the locale; "" for what is none. */
void output_scalar(const json_t *value, char *text, size_t size);

/* The value at a path of keys and indices, "time_ms.median_ci95.0"; NULL where there is none. */
const json_t *output_at(const json_t *record, const char *path);

#endif
