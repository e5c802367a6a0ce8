#include "plan/source.h"

#include "job/memory.h"
#include "plan/job.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 16 };

void sources_add(struct sources *sources, const struct jobfile *file, bool is_faulty)
{
    struct source *s = allocate(1, sizeof *s);

    s->file = *file;
    s->is_faulty = is_faulty;
    sources->list = grow(sources->list, sources->count, sizeof *sources->list);
    sources->list[sources->count++] = s;
}

bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* --- includes --- */

/* The path of `text`, as the file at `from` writes it. */
static char *path_beside(const char *from, const char *text)
{
    const char *slash = strrchr(from, '/');

    if (strcmp(text, "-") == 0 && slash == NULL)
        return copy_text("./-"); /* a file of that name: not standard input */
    if (*text == '/' || slash == NULL)
        return copy_text(text);
    return format_text("%.*s%s", (int)(slash - from + 1), from, text);
}

static bool can_be_read(const char *path, struct origin where, struct faults *faults)
{
    struct stat info;

    if (stat(path, &info) != 0)
        faults_add(faults, where, "include", "%s: %s", path, strerror(errno));
    else if (S_ISDIR(info.st_mode))
        faults_add(faults, where, "include", "%s is a folder: name a job file", path);
    else if (!S_ISREG(info.st_mode))
        faults_add(faults, where, "include", "%s is not a regular file", path);
    else
        return true;
    return false;
}

/* The index of the file at `path`, or the count. */
static size_t find_source(const struct sources *sources, const char *path)
{
    size_t i = 0;

    while (i < sources->count && strcmp(sources->list[i]->file.path, path) != 0 &&
           !is_same_file(sources->list[i]->file.path, path))
        i++;
    return i;
}

static bool holds(const struct source_list *l, size_t index)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->list[i] == index)
            return true;
    return false;
}

static void add_index(struct source_list *l, size_t index)
{
    l->list = grow(l->list, l->count, sizeof *l->list);
    l->list[l->count++] = index;
}

static void read_includes(struct sources *sources, size_t index, int depth, struct faults *faults);

/* Source `from` includes `path`. */
static void include_path(struct sources *sources, size_t from, const char *path,
                         struct origin where, int depth, struct faults *faults)
{
    const size_t index = find_source(sources, path), before = faults->count;
    struct jobfile file;

    if (index == sources->count) {
        if (!can_be_read(path, where, faults))
            return;
        jobfile_read(path, &file, faults);
        sources_add(sources, &file, faults->count > before);
    }
    if (sources->list[index]->is_open)
        faults_add(faults, where, "include",
                   "%s includes this file, or is it: files may not go round in a circle", path);
    else if (depth == DEPTH_MAX)
        faults_add(faults, where, "include", "%s would be more than %d files deep", path,
                   (int)DEPTH_MAX);
    else if (holds(&sources->list[from]->includes, index))
        faults_add(faults, where, "include", "%s is included twice", path);
    else {
        add_index(&sources->list[from]->includes, index);
        add_index(&sources->list[index]->includers, from);
        read_includes(sources, index, depth + 1, faults);
    }
}

static void read_includes(struct sources *sources, size_t index, int depth, struct faults *faults)
{
    struct source *s = sources->list[index];
    const size_t before = faults->count;

    if (s->is_read)
        return;
    s->is_read = s->is_open = true;
    for (size_t i = 0; i < s->file.include_count; i++) {
        const struct origin where = {s->file.path, s->file.includes[i].line};
        const char *rest = s->file.includes[i].value;
        char item[PATH_MAX];

        while (list_next(&rest, item, sizeof item)) {
            char *path = path_beside(s->file.path, item);

            if (*item != '\0')
                include_path(sources, index, path, where, depth, faults);
            else
                faults_add(faults, where, "include",
                           "an element of the list is empty: write a.ini, b.ini");
            free(path);
        }
    }
    s->is_open = false;
    s->is_faulty = s->is_faulty || faults->count > before;
}

void sources_read_includes(struct sources *sources, struct faults *faults)
{
    const size_t given = sources->count;

    for (size_t i = 0; i < given; i++)
        read_includes(sources, i, 0, faults);
}

bool sources_hold_jobs(const struct sources *sources, size_t index)
{
    const struct source *s = sources->list[index];
    bool holds_one = s->file.count > s->file.global_count;

    for (size_t i = 0; i < s->includes.count && !holds_one; i++)
        holds_one = sources_hold_jobs(sources, s->includes.list[i]);
    return holds_one;
}

/* --- defaults --- */

static void put_all(struct settings *to, const struct settings *from)
{
    for (size_t i = 0; i < from->count; i++)
        settings_put(to, &from->list[i]);
}

static void put_own(struct settings *to, const struct jobfile *file)
{
    for (size_t g = 0; g < file->global_count; g++) {
        const struct section *s = &file->sections[file->globals[g]];

        for (size_t k = 0; k < s->count; k++)
            settings_put(to, &(struct setting){.key = s->entries[k].key,
                                               .text = s->entries[k].value,
                                               .where = {file->path, s->entries[k].line},
                                               .shared = true});
    }
}

static const struct settings *settings_around(const struct sources *sources, size_t index,
                                              bool inner);

/* What the files of `list` lend: none of them is nearer than another. */
static void lend_all(const struct sources *sources, const struct source_list *list, bool inner,
                     struct settings *out)
{
    for (size_t i = 0; i < list->count; i++) {
        struct settings whole = {NULL, 0};

        put_all(&whole, settings_around(sources, list->list[i], inner));
        put_own(&whole, &sources->list[list->list[i]]->file);
        for (size_t k = 0; k < whole.count; k++)
            settings_lend(out, &whole.list[k]);
        settings_free(&whole);
    }
}

/* Its inner or its outer settings, made when first asked for. */
static const struct settings *settings_around(const struct sources *sources, size_t index,
                                              bool inner)
{
    struct source *s = sources->list[index];
    bool *has = inner ? &s->has_inner : &s->has_outer;
    struct settings *made = inner ? &s->inner : &s->outer;

    if (!*has)
        lend_all(sources, inner ? &s->includes : &s->includers, inner, made);
    *has = true;
    return made;
}

void sources_defaults(const struct sources *sources, size_t index, struct settings *out)
{
    put_all(out, settings_around(sources, index, false));
    put_all(out, settings_around(sources, index, true));
    put_own(out, &sources->list[index]->file);
}

void sources_free(struct sources *sources)
{
    for (size_t i = 0; i < sources->count; i++) {
        struct source *s = sources->list[i];

        jobfile_free(&s->file);
        free(s->includes.list);
        free(s->includers.list);
        settings_free(&s->inner);
        settings_free(&s->outer);
        free(s);
    }
    free(sources->list);
    *sources = (struct sources){NULL, 0};
}
