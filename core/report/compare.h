/*
 * `gpurun compare`: the records of one time held against those of another, case by case. A comparison is
 * JSON, the same for every output: docs/compare.md lists its fields.
 */
#ifndef GPURUN_REPORT_COMPARE_H
#define GPURUN_REPORT_COMPARE_H

#include "report/output.h"
#include "report/verdict.h"

struct compare_options {
    enum output_format format;
    double gap;       /* see verdict_of */
    unsigned fail_on; /* 1u << enum verdict, of those that set the exit code */
};

#define COMPARE_GAP 0.01 /* where none is given */

/* The median of a record's times. False where it has none that can be compared. */
bool compare_interval(const json_t *record, struct interval *t);

/* Compares two arrays of records, one per case as report_read gives them. For the caller to free. */
json_t *compare_records(const json_t *before, const json_t *now, double gap);

/* Prints a comparison to standard output. */
void compare_print(enum output_format format, const json_t *comparison);

/* How many cases were compared and what came out, "2 SLOWER, 41 SAME", as one line of text. */
void compare_summary(const json_t *comparison, char *text, size_t size);

/* True when a case has a verdict of `fail_on`, or when no case is in both and there was something to fail
 * on: then nothing was compared. */
bool compare_fails(const json_t *comparison, unsigned fail_on);

/* Reads both files, compares and prints: 0, 1 where `fail_on` says so, 2 when a file cannot be read or
 * holds no record. */
int compare_files(const char *before, const char *now, const struct compare_options *options);

#endif
