#include "job/faults.h"

#include "job/memory.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAULTS_SHOWN = 20, FAULTS_LOOK_BACK = 64 };

const char *origin_text(struct origin where, char *text, size_t size)
{
    if (where.file == NULL)
        snprintf(text, size, "default");
    else if (where.line == 0)
        snprintf(text, size, "%s", where.file);
    else
        snprintf(text, size, "%s:%d", where.file, where.line);
    return text;
}

void fault_format(char *text, size_t size, struct origin where, const char *key, const char *what)
{
    char place[600];

    origin_text(where, place, sizeof place);
    if (key != NULL)
        snprintf(text, size, "%s: %s: %s", place, key, what);
    else
        snprintf(text, size, "%s: %s", place, what);
}

/* A fault in [global] is found once per job; it is one fault. Looking back a little way is enough. */
static bool is_known(const struct faults *faults, const char *text)
{
    const size_t first = faults->count > FAULTS_LOOK_BACK ? faults->count - FAULTS_LOOK_BACK : 0;

    for (size_t i = first; i < faults->count; i++)
        if (strcmp(faults->texts[i], text) == 0)
            return true;
    return false;
}

void faults_add_text(struct faults *faults, const char *text)
{
    if (is_known(faults, text))
        return;
    faults->texts = grow(faults->texts, faults->count, sizeof *faults->texts);
    faults->texts[faults->count++] = copy_text(text);
}

void faults_add(struct faults *faults, struct origin where, const char *key, const char *format,
                ...)
{
    char what[1024], text[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    fault_format(text, sizeof text, where, key, what);
    faults_add_text(faults, text);
}

void faults_print(const struct faults *faults)
{
    for (size_t i = 0; i < faults->count && i < FAULTS_SHOWN; i++)
        fprintf(stderr, "%s\n", faults->texts[i]);
    if (faults->count > FAULTS_SHOWN)
        fprintf(stderr, "... and %zu more faults\n", faults->count - FAULTS_SHOWN);
}

void faults_free(struct faults *faults)
{
    for (size_t i = 0; i < faults->count; i++)
        free(faults->texts[i]);
    free(faults->texts);
    *faults = (struct faults){0};
}
