#include "job/jobfile.h"

#include "job/memory.h"
#include "job/variables.h"
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum {
    KEY_MAX = 100,             /* bytes; inih's line buffer holds 200 */
    FILE_MAX = 64 << 20,       /* bytes */
    LINE_MAX_BYTES = 64 << 10, /* a line longer than this is no job file's */
};

/* inih asks for lines and calls back with keys. It is only ever given short, plain lines; `value` keeps
 * the real one of the line it was given last. */
struct reader {
    struct jobfile *file;
    struct faults *faults;
    const char *at, *end;
    int line;
    const char *value;
    size_t value_length;
};

bool section_is_global(const struct section *section)
{
    return strcmp(section->name, "global") == 0;
}

static struct origin here(const struct reader *r)
{
    return (struct origin){r->file->path, r->line};
}

static void trim(const char **text, size_t *length)
{
    while (*length > 0 && isspace((unsigned char)**text)) {
        (*text)++;
        (*length)--;
    }
    while (*length > 0 && isspace((unsigned char)(*text)[*length - 1]))
        (*length)--;
}

static void open_section(struct reader *r, const char *text, size_t length)
{
    const char *close = memchr(text, ']', length);
    const char *name = text + 1;
    struct section *s;
    size_t name_length;

    if (close == NULL || close != text + length - 1) {
        faults_add(r->faults, here(r), NULL,
                   close ? "text after ']': write [name] alone on its line"
                         : "'[' without ']': write [name]");
        close = close ? close : text + length;
    }
    name_length = (size_t)(close - name);
    trim(&name, &name_length);
    if (name_length == 0)
        faults_add(r->faults, here(r), NULL, "a section needs a name: write [name]");
    r->file->sections = grow(r->file->sections, r->file->count, sizeof *r->file->sections);
    s = &r->file->sections[r->file->count++];
    *s = (struct section){.name = copy_text_n(name, name_length), .line = r->line};
    if (strcasecmp(s->name, "global") == 0 && !section_is_global(s))
        faults_add(r->faults, here(r), NULL, "[%s]: defaults are written [global], in lower case",
                   s->name);
}

/* True when `value` would be cut by inih, or misread by a person: comments have lines of their own. */
static bool has_inline_comment(const char *value, size_t length)
{
    for (size_t i = 1; i < length; i++)
        if ((value[i] == ';' || value[i] == '#') && isspace((unsigned char)value[i - 1]))
            return true;
    return false;
}

/* Writes "key=v" for inih into `buffer`, or an empty line after a fault. */
static void give_entry(struct reader *r, const char *text, size_t length, char *buffer, size_t size)
{
    const char *equals = memchr(text, '=', length);
    size_t key_length;

    strcpy(buffer, "\n");
    if (equals == NULL) {
        faults_add(r->faults, here(r), NULL, "'%.*s' is not a key: write key = value, or [section]",
                   (int)(length < 40 ? length : 40), text);
        return;
    }
    r->value = equals + 1;
    r->value_length = (size_t)(text + length - r->value);
    trim(&r->value, &r->value_length);
    key_length = (size_t)(equals - text);
    trim(&text, &key_length);
    for (size_t i = 0; i < key_length; i++)
        if (!isalnum((unsigned char)text[i]) && strchr("_.-", text[i]) == NULL) {
            faults_add(r->faults, here(r), NULL,
                       "'%.*s' is not a key: letters, digits, '_', '.' and '-' only",
                       (int)(key_length < 40 ? key_length : 40), text);
            return;
        }
    if (key_length == 0 || key_length > KEY_MAX)
        faults_add(r->faults, here(r), NULL,
                   key_length ? "a key this long is not known"
                              : "no key before '=': write key = value");
    else
        snprintf(buffer, size, "%.*s=v\n", (int)key_length, text);
}

/* Checks what would make the line mean something else than it shows; false: skip the line. */
static bool line_is_sound(struct reader *r, const char *text, size_t length)
{
    if (memchr(text, '\0', length) != NULL)
        faults_add(r->faults, here(r), NULL, "a NUL byte: this is not a text file");
    else if (memchr(text, '\r', length) != NULL)
        faults_add(r->faults, here(r), NULL, "a bare carriage return: end lines with LF or CR LF");
    else if (length > LINE_MAX_BYTES)
        faults_add(r->faults, here(r), NULL, "a line of %zu bytes: at most %d", length,
                   (int)LINE_MAX_BYTES);
    else
        return true;
    return false;
}

/* inih's reader: one line in, one short line out. */
static char *next_line(char *buffer, int size, void *stream)
{
    struct reader *r = stream;
    const char *text = r->at;
    const char *newline;
    size_t length;

    if (r->at >= r->end)
        return NULL;
    newline = memchr(text, '\n', (size_t)(r->end - text));
    length = (size_t)((newline ? newline : r->end) - text);
    r->at = newline ? newline + 1 : r->end;
    r->line++;
    strcpy(buffer, "\n");
    if (r->line == 1 && length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        length -= 3;
    }
    if (length > 0 && text[length - 1] == '\r')
        length--;
    if (!line_is_sound(r, text, length))
        return buffer;
    trim(&text, &length);
    if (length == 0 || *text == ';' || *text == '#')
        return buffer;
    if (*text == '[') {
        open_section(r, text, length);
        strcpy(buffer, "[s]\n");
    } else {
        give_entry(r, text, length, buffer, (size_t)size);
    }
    return buffer;
}

static const struct entry *find_entry(const struct section *s, const char *key)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->entries[i].key, key) == 0)
            return &s->entries[i];
    return NULL;
}

static void add_include(struct reader *r, const char *name, char *value)
{
    struct jobfile *file = r->file;

    file->includes = grow(file->includes, file->include_count, sizeof *file->includes);
    file->includes[file->include_count++] =
        (struct entry){.key = copy_text(name), .value = value, .line = r->line};
}

/* The value with its variables replaced, for the caller to keep; NULL after a fault. */
static char *expand_value(struct reader *r, const char *name)
{
    char *written = copy_text_n(r->value, r->value_length), *value = NULL, *trimmed = NULL;
    const char *start;
    size_t length;
    struct why why;

    if (variables_expand(written, &value, &why) != GPURUN_OK) {
        faults_add(r->faults, here(r), name, "%s", why.text);
    } else {
        start = value;
        length = strlen(value);
        trim(&start, &length);
        if (length > 0)
            trimmed = copy_text_n(start, length);
        else
            faults_add(r->faults, here(r), name,
                       "%.80s is empty: write a value, or remove the line", written);
    }
    free(written);
    free(value);
    return trimmed;
}

/* Says what forbids a key here; false: skip it. */
static bool may_stand(struct reader *r, const struct section *s, const char *name)
{
    const bool is_include = strcmp(name, "include") == 0;
    const struct entry *first = s ? find_entry(s, name) : NULL;

    if (s == NULL && !is_include)
        faults_add(r->faults, here(r), name,
                   "before the first section: put it under [global] or [name]");
    else if (is_include && s != NULL && !section_is_global(s))
        faults_add(r->faults, here(r), name, "belongs in [global], or above the first section");
    else if (r->value_length == 0 || *r->value == ';' || *r->value == '#')
        faults_add(r->faults, here(r), name, "has no value: write %s = VALUE, or remove the line",
                   name);
    else if (has_inline_comment(r->value, r->value_length))
        faults_add(r->faults, here(r), name, "a comment after a value: give it a line of its own");
    else if (first != NULL)
        faults_add(r->faults, here(r), name, "repeated: first set in line %d", first->line);
    else
        return true;
    return false;
}

/* inih's handler: `name` is the key; the value is the reader's, whole. Returning 1 means all is well. */
static int add_entry(void *user, const char *section, const char *name, const char *value)
{
    struct reader *r = user;
    struct section *s = r->file->count > 0 ? &r->file->sections[r->file->count - 1] : NULL;
    char *expanded;

    (void)section;
    (void)value;
    if (!may_stand(r, s, name) || (expanded = expand_value(r, name)) == NULL)
        return 1;
    if (strcmp(name, "include") == 0) {
        add_include(r, name, expanded);
        return 1;
    }
    s->entries = grow(s->entries, s->count, sizeof *s->entries);
    s->entries[s->count++] =
        (struct entry){.key = copy_text(name), .value = expanded, .line = r->line};
    return 1;
}

static int compare_sections(const void *a, const void *b)
{
    const struct section *const *x = a, *const *y = b;
    const int order = strcmp((*x)->name, (*y)->name);

    return order != 0 ? order : ((*x)->line > (*y)->line) - ((*x)->line < (*y)->line);
}

static void find_repeated_sections(const struct jobfile *file, struct faults *faults)
{
    const struct section **sorted = allocate(file->count, sizeof *sorted);

    for (size_t i = 0; i < file->count; i++)
        sorted[i] = &file->sections[i];
    qsort(sorted, file->count, sizeof *sorted, compare_sections);
    for (size_t i = 1; i < file->count; i++)
        if (!section_is_global(sorted[i]) && strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            faults_add(faults, (struct origin){file->path, sorted[i]->line}, NULL,
                       "[%s] again: first in line %d; a job's name must be its own",
                       sorted[i]->name, sorted[i - 1]->line);
    free(sorted);
}

static void find_globals(struct jobfile *file)
{
    for (size_t i = 0; i < file->count; i++)
        if (section_is_global(&file->sections[i])) {
            file->globals = grow(file->globals, file->global_count, sizeof *file->globals);
            file->globals[file->global_count++] = i;
        }
}

/* Two [global] sections may not set the same key: which one holds would be a matter of order. */
static void find_repeated_globals(const struct jobfile *file, struct faults *faults)
{
    for (size_t g = 1; g < file->global_count; g++) {
        const struct section *later = &file->sections[file->globals[g]];

        for (size_t k = 0; k < later->count; k++)
            for (size_t e = 0; e < g; e++) {
                const struct entry *first =
                    find_entry(&file->sections[file->globals[e]], later->entries[k].key);

                if (first != NULL)
                    faults_add(faults, (struct origin){file->path, later->entries[k].line},
                               first->key, "repeated: first set in line %d", first->line);
            }
    }
}

void jobfile_parse(const char *path, const char *bytes, size_t size, struct jobfile *out,
                   struct faults *faults)
{
    struct reader r = {.file = out, .faults = faults, .at = bytes, .end = bytes + size};

    *out = (struct jobfile){.path = copy_text(path)};
    ini_parse_stream(next_line, &r, add_entry, &r);
    find_repeated_sections(out, faults);
    find_globals(out);
    find_repeated_globals(out, faults);
}

static char *read_all(FILE *stream, size_t *size)
{
    char *bytes = NULL;
    size_t used = 0, room = 0, got;

    do {
        if (used == room) {
            room = room ? 2 * room : 1 << 16;
            bytes = realloc(bytes, room);
            if (bytes == NULL)
                break;
        }
        got = fread(bytes + used, 1, room - used, stream);
        used += got;
    } while (got > 0 && used <= FILE_MAX);
    *size = used;
    return bytes;
}

void jobfile_read(const char *path, struct jobfile *out, struct faults *faults)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "<stdin>" : path;
    const struct origin where = {name, 0};
    FILE *stream = is_stdin ? stdin : fopen(path, "rb");
    struct stat info;
    size_t size = 0;
    char *bytes = NULL;

    *out = (struct jobfile){.path = copy_text(name)};
    if (stream == NULL) {
        faults_add(faults, where, NULL, "cannot open: %s", strerror(errno));
        return;
    }
    if (fstat(fileno(stream), &info) == 0 && S_ISDIR(info.st_mode))
        faults_add(faults, where, NULL, "is a folder: name a job file");
    else if ((bytes = read_all(stream, &size)) == NULL || ferror(stream))
        faults_add(faults, where, NULL, "cannot read: %s", strerror(errno));
    else if (size > FILE_MAX)
        faults_add(faults, where, NULL, "is larger than %d MiB: this is no job file",
                   FILE_MAX >> 20);
    else {
        free(out->path);
        jobfile_parse(name, bytes, size, out, faults);
    }
    free(bytes);
    if (!is_stdin)
        fclose(stream);
}

static void free_entries(struct entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(entries[i].key);
        free(entries[i].value);
    }
    free(entries);
}

void jobfile_free(struct jobfile *file)
{
    for (size_t i = 0; i < file->count; i++) {
        free_entries(file->sections[i].entries, file->sections[i].count);
        free(file->sections[i].name);
    }
    free_entries(file->includes, file->include_count);
    free(file->sections);
    free(file->globals);
    free(file->path);
    *file = (struct jobfile){0};
}
