#include "report/reader.h"

#include "run/record.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool are_texts(const json_t *list)
{
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item) if (!json_is_string(item)) return false;
    return true;
}

/* NULL, with the reason in *why, for what is no record of ours. */
static json_t *parse(const char *line, size_t size, const char **why)
{
    static const char *const texts[] = {"job", "variant", "status"};
    json_t *record = json_loadb(line, size, 0, NULL);

    *why = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!json_is_string(json_object_get(record, texts[i])))
            *why = "it is no record";
    if (!are_texts(json_object_get(record, "cases")) ||
        !are_texts(json_object_get(json_object_get(record, "proof"), "first_wrong")))
        *why = "it is no record";
    if (*why == NULL && json_integer_value(json_object_get(record, "schema")) > RECORD_SCHEMA)
        *why = "a newer gpurun wrote it";
    if (*why == NULL)
        return record;
    json_decref(record);
    return NULL;
}

bool reader_read(const char *path, reader_each each, void *user)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    long offset = 0, number = 0;
    bool is_good;

    errno = f != NULL ? 0 : errno;
    while (f != NULL && (size = getline(&line, &room, f)) > 0) {
        const bool is_cut = line[size - 1] != '\n';
        const char *why;
        json_t *record = parse(line, (size_t)size, &why);

        number++;
        if (record != NULL)
            each(user, record, offset);
        else
            fprintf(stderr, "gpurun: %s:%ld: left out: %s\n", path, number,
                    is_cut ? "the line was cut off" : why);
        json_decref(record);
        offset += size;
        errno = 0;
    }
    is_good = f != NULL && !ferror(f);
    if (!is_good)
        fprintf(stderr, "gpurun: %s: %s\n", path, strerror(errno));
    if (f != NULL)
        fclose(f);
    free(line);
    return is_good;
}

json_t *reader_at(const char *path, long offset)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    const char *why;
    size_t room = 0;
    ssize_t size;
    json_t *record = NULL;

    if (f != NULL && fseek(f, offset, SEEK_SET) == 0 && (size = getline(&line, &room, f)) > 0)
        record = parse(line, (size_t)size, &why);
    if (f != NULL)
        fclose(f);
    free(line);
    return record;
}
