/* CSV by RFC 4180: one line per record, ended by CR LF, a header first. */
#include "job/memory.h"
#include "report/output.h"
#include <stdlib.h>
#include <string.h>

/* What every file has, before the options and the inputs of its records. */
static const struct column {
    const char *name, *path;
} columns[] = {
    {"job", "job"},
    {"plugin", "plugin"},
    {"variant", "variant"},
    {"peer", "peer"},
    {"memory", "memory"},
    {"device", "device"},
    {"device_name", "environment.device_name"},
    {"host", "environment.host"},
    {"status", "status"},
    {"reason", "reason"},
    {"flags", "flags"},
    {"resumed", "resumed"},
    {"attempts", "attempts"},
    {"proof", "proof.mode"},
    {"checked", "proof.checked"},
    {"wrong", "proof.wrong"},
    {"worst_error", "proof.worst_error"},
    {"bound", "proof.bound"},
    {"runs", "time_ms.n"},
    {"median_ms", "time_ms.median"},
    {"median_low_ms", "time_ms.median_ci95.0"},
    {"median_high_ms", "time_ms.median_ci95.1"},
    {"min_ms", "time_ms.min"},
    {"max_ms", "time_ms.max"},
    {"upload_ms", "phases_ms.upload.median"},
    {"download_ms", "phases_ms.download.median"},
    {"end_to_end_ms", "end_to_end_ms.median"},
    {"bytes_per_s", "throughput.bytes_per_s"},
    {"operations_per_s", "throughput.operations_per_s"},
    {"elements_per_s", "throughput.elements_per_s"},
    {"percent_of_limit", "limit.percent"},
    {"versus_cpu", "versus.cpu.median"},
    {"path", "path"},
    {"auto", "auto"},
    {"cache", "cache"},
    {"launch", "launch"},
    {"launch_gaps", "launch_gaps"},
    {"runs_per_sample", "runs_per_sample"},
    {"stop", "stop"},
    {"started", "started"},
    {"case_id", "case_id"},
    {"key", "key"},
};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

static void write_text(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
}

static void write_field(FILE *to, const char *prefix, const char *text)
{
    const bool is_quoted = strpbrk(text, ",\"\r\n") != NULL;

    fputs(is_quoted ? "\"" : "", to);
    fputs(prefix, to);
    write_text(to, text);
    fputs(is_quoted ? "\"" : "", to);
}

/* A list of words, such as flags, is one field with blanks between. */
static void write_words(FILE *to, const json_t *list)
{
    const json_t *word;
    char *text = copy_text("");
    size_t i;

    json_array_foreach(list, i, word) if (json_is_string(word))
    {
        char *longer = format_text("%s%s%s", text, text[0] ? " " : "", json_string_value(word));

        free(text);
        text = longer;
    }
    write_field(to, "", text);
    free(text);
}

void csv_scalar(FILE *to, const json_t *value)
{
    char text[64];

    if (json_is_string(value)) {
        write_field(to, "", json_string_value(value));
        return;
    }
    if (json_is_array(value)) {
        write_words(to, value);
        return;
    }
    output_scalar(value, text, sizeof text);
    write_field(to, "", text);
}

/* The names that any record has, in the order in which they turn up. For the caller to free. */
static json_t *all_options(const json_t *records)
{
    json_t *names = json_object(), *record, *value;
    const char *name;
    size_t i;

    json_array_foreach(records, i, record)
        json_object_foreach(json_object_get(record, "options"), name, value)
            json_object_set_new(names, name, json_null());
    return names;
}

static json_t *all_inputs(const json_t *records)
{
    json_t *names = json_object(), *record, *input;
    size_t i, k;

    json_array_foreach(records, i, record)
        json_array_foreach(json_object_get(record, "input"), k,
                           input) if (json_is_string(json_object_get(input, "tensor")))
            json_object_set_new(names, json_string_value(json_object_get(input, "tensor")),
                                json_null());
    return names;
}

static const json_t *input_source(const json_t *record, const char *tensor)
{
    json_t *input;
    size_t i;

    json_array_foreach(json_object_get(record, "input"), i, input)
    {
        const char *name = json_string_value(json_object_get(input, "tensor"));

        if (name != NULL && strcmp(name, tensor) == 0)
            return json_object_get(input, "source");
    }
    return NULL;
}

static void write_header(FILE *to, json_t *options, json_t *inputs)
{
    const char *name;
    json_t *unused;

    for (size_t c = 0; c < COLUMN_COUNT; c++) {
        fputs(c > 0 ? "," : "", to);
        write_field(to, "", columns[c].name);
    }
    json_object_foreach(options, name, unused)
    {
        fputc(',', to);
        write_field(to, "options.", name);
    }
    json_object_foreach(inputs, name, unused)
    {
        fputc(',', to);
        write_field(to, "input.", name);
    }
    fputs("\r\n", to);
}

static void write_row(FILE *to, const json_t *record, json_t *options, json_t *inputs)
{
    const char *name;
    json_t *unused;

    for (size_t c = 0; c < COLUMN_COUNT; c++) {
        fputs(c > 0 ? "," : "", to);
        csv_scalar(to, output_at(record, columns[c].path));
    }
    json_object_foreach(options, name, unused)
    {
        fputc(',', to);
        csv_scalar(to, json_object_get(json_object_get(record, "options"), name));
    }
    json_object_foreach(inputs, name, unused)
    {
        fputc(',', to);
        csv_scalar(to, input_source(record, name));
    }
    fputs("\r\n", to);
}

void csv_write(FILE *to, const json_t *records)
{
    json_t *options = all_options(records), *inputs = all_inputs(records), *record;
    size_t i;

    write_header(to, options, inputs);
    json_array_foreach(records, i, record) write_row(to, record, options, inputs);
    json_decref(options);
    json_decref(inputs);
}
