#include "report/output.h"

#include "run/record.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void output_scalar(const json_t *value, char *text, size_t size)
{
    int digits = 15;

    text[0] = '\0';
    if (json_is_string(value))
        snprintf(text, size, "%s", json_string_value(value));
    else if (json_is_integer(value))
        snprintf(text, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_boolean(value))
        snprintf(text, size, "%s", json_is_true(value) ? "yes" : "no");
    else if (json_is_real(value))
        do /* the fewest digits that read back */
            snprintf(text, size, "%.*g", digits, json_real_value(value));
        while (strtod(text, NULL) != json_real_value(value) && ++digits <= 17);
}

const json_t *output_at(const json_t *record, const char *path)
{
    char key[64];

    while (record != NULL && *path != '\0') {
        const size_t length = strcspn(path, ".");

        snprintf(key, sizeof key, "%.*s", (int)length, path);
        record = json_is_array(record) ? json_array_get(record, (size_t)atoi(key))
                                       : json_object_get(record, key);
        path += length + (path[length] == '.');
    }
    return record;
}

json_t *output_by_job(const json_t *records)
{
    json_t *jobs = json_array(), *places = json_object(), *record, *place;
    size_t i;

    json_array_foreach(records, i, record)
    {
        const char *id = json_text_at(record, "job_id");
        const char *key = id[0] != '\0' ? id : json_text_at(record, "job");

        if ((place = json_object_get(places, key)) == NULL) {
            place = json_array();
            json_object_set(places, key, place);
            json_array_append_new(jobs, place);
        }
        json_array_append(place, record);
    }
    json_decref(places);
    return jobs;
}

static void print_json(const json_t *records, int exit_code)
{
    json_t *all =
        json_pack("{sisisO}", "schema", RECORD_SCHEMA, "exit", exit_code, "records", records);

    json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(all);
}

void output_print(enum output_format format, const json_t *records, int exit_code)
{
    if (format == OUTPUT_CSV)
        csv_write(stdout, records);
    else if (format == OUTPUT_MARKDOWN)
        markdown_write(stdout, records);
    else if (format == OUTPUT_JSON)
        print_json(records, exit_code);
}

static bool junit_failed(const char *path)
{
    fprintf(stderr, "gpurun: --junit %s: %s\n", path, strerror(errno));
    return false;
}

bool output_check_junit(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

    if (fd < 0)
        return junit_failed(path);
    close(fd);
    return true;
}

bool output_write_junit(const char *path, const json_t *records)
{
    FILE *to = fopen(path, "we");
    bool is_written;

    if (to == NULL)
        return junit_failed(path);
    junit_write(to, records);
    is_written = fflush(to) == 0 && !ferror(to);
    return (fclose(to) == 0 && is_written) || junit_failed(path);
}
