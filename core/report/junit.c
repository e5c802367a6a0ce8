/*
 * JUnit XML: a testsuite per job, a testcase per case. A wrong answer is a failure, a case that did not come
 * to an answer an error, one that is not supported or was interrupted skipped.
 */
#include "report/output.h"

#include "run/record.h"
#include <string.h>

enum kind { PASSED, FAILURE, ERROR, SKIPPED };

static enum kind kind_of(const json_t *record)
{
    static const struct {
        const char *status;
        enum kind kind;
    } kinds[] = {{"passed", PASSED},
                 {"failed", FAILURE},
                 {"unsupported", SKIPPED},
                 {"interrupted", SKIPPED}};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].status, json_text_at(record, "status")) == 0)
            return kinds[i].kind;
    return ERROR;
}

/* Bytes of a character at `s` that XML 1.0 has not, even escaped; 0 for those that it has. `s` is UTF-8. */
static size_t not_xml(const char *s)
{
    const unsigned char c = (unsigned char)*s;

    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r')
        return 1;
    return strncmp(s, "\xEF\xBF\xBE", 3) == 0 || strncmp(s, "\xEF\xBF\xBF", 3) == 0 ? 3 : 0;
}

static const char *escape_of(char c)
{
    static const struct {
        char c;
        const char *text;
    } escapes[] = {{'&', "&amp;"}, {'<', "&lt;"},   {'>', "&gt;"},  {'"', "&quot;"},
                   {'\t', "&#9;"}, {'\n', "&#10;"}, {'\r', "&#13;"}};

    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++)
        if (escapes[i].c == c)
            return escapes[i].text;
    return NULL;
}

void xml_text(FILE *to, const char *text)
{
    while (*text != '\0') {
        const size_t bad = not_xml(text);
        const char *escape = escape_of(*text);

        if (bad > 0)
            fputs("\xEF\xBF\xBD", to);
        else if (escape != NULL)
            fputs(escape, to);
        else
            fputc(*text, to);
        text += bad > 0 ? bad : 1;
    }
}

static void write_attribute(FILE *to, const char *name, const char *text)
{
    fprintf(to, " %s=\"", name);
    xml_text(to, text);
    fputc('"', to);
}

/* What a case took: its median. */
static double seconds_of(const json_t *record)
{
    return json_number_value(output_at(record, "time_ms.median")) * 1e-3;
}

static void write_trouble(FILE *to, const json_t *record, enum kind kind)
{
    static const char *const tags[] = {"", "failure", "error", "skipped"};
    const json_t *lines = output_at(record, "proof.first_wrong");
    size_t i;
    json_t *line;

    fprintf(to, ">\n      <%s", tags[kind]);
    write_attribute(to, "message", json_text_at(record, "reason"));
    if (kind != SKIPPED)
        write_attribute(to, "type", json_text_at(record, "status"));
    fputc('>', to);
    json_array_foreach(lines, i, line) if (json_is_string(line))
    {
        fputs(i > 0 ? "\n" : "", to);
        xml_text(to, json_string_value(line));
    }
    fprintf(to, "</%s>\n    </testcase>\n", tags[kind]);
}

static void write_case(FILE *to, const json_t *record)
{
    const enum kind kind = kind_of(record);

    fputs("    <testcase", to);
    write_attribute(to, "classname", json_text_at(record, "job"));
    write_attribute(to, "name", json_text_at(record, "variant"));
    fprintf(to, " time=\"%.9f\"", seconds_of(record));
    if (kind == PASSED)
        fputs("/>\n", to);
    else
        write_trouble(to, record, kind);
}

static void write_counts(FILE *to, const json_t *records)
{
    size_t counts[SKIPPED + 1] = {0}, i;
    double seconds = 0;
    json_t *record;

    json_array_foreach(records, i, record)
    {
        counts[kind_of(record)]++;
        seconds += seconds_of(record);
    }
    fprintf(to, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.9f\"",
            json_array_size(records), counts[FAILURE], counts[ERROR], counts[SKIPPED], seconds);
}

static void write_suite(FILE *to, const json_t *job)
{
    const json_t *first = json_array_get(job, 0);
    char started[32];
    size_t i;
    json_t *record;

    snprintf(started, sizeof started, "%s", json_text_at(first, "started"));
    started[strcspn(started, "Z")] = '\0'; /* the schema wants no zone */
    fputs("  <testsuite", to);
    write_attribute(to, "name", json_text_at(first, "job"));
    write_counts(to, job);
    write_attribute(to, "timestamp", started);
    write_attribute(to, "hostname", json_text_at(json_object_get(first, "environment"), "host"));
    fputs(">\n", to);
    json_array_foreach(job, i, record) write_case(to, record);
    fputs("  </testsuite>\n", to);
}

void junit_write(FILE *to, const json_t *records)
{
    json_t *jobs = output_by_job(records), *job;
    size_t i;

    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gpurun\"", to);
    write_counts(to, records);
    fputs(">\n", to);
    json_array_foreach(jobs, i, job) write_suite(to, job);
    fputs("</testsuites>\n", to);
    json_decref(jobs);
}
