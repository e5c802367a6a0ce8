/*
 * What people read: a job's heading and a table with one row per case, made from records alone.
 */
#ifndef GPURUN_REPORT_TABLE_H
#define GPURUN_REPORT_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* `heading` is the job message of runner.h, NULL when the job never got so far or did not run: a record then
 * stands in, where one knows the machine. `ended` are its records. */
void table_print(const char *job, const json_t *heading, const json_t *ended);

/* The last line: how many passed and whether that is all; `resumed` of them are from earlier records. */
void table_summary(size_t passed, size_t unsupported, size_t failed, size_t resumed,
                   const char *verdict);

/* 100M, 1.5K, 123: exact, short. And 400 MB, 1.2 GB: three digits. */
void format_count(long long count, char *text, size_t size);
void format_bytes(double bytes, char *text, size_t size);

/* Four significant digits without an exponent. */
void format_number(double value, char *text, size_t size);

/* True when standard output is a terminal whose user wants colours. */
bool table_has_colour(void);

/* A value as a user would write it in a job file. */
void format_json(const json_t *value, char *text, size_t size);

#endif
