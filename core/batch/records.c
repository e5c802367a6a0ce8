#include "batch/records.h"

#include "job/memory.h"
#include "run/run.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const double SYNC_S = 0.05; /* a power cut costs the lines of so long */

static void complain(const struct records *r, const char *what)
{
    fprintf(stderr, "gpurun: --records %s: %s\n", r->path, what);
}

/* --- the last line --- */

/* Where the line that holds the byte before `end` starts. */
static off_t line_start(int fd, off_t end)
{
    char piece[4096];

    while (end > 0) {
        const size_t size = end < (off_t)sizeof piece ? (size_t)end : sizeof piece;

        if (pread(fd, piece, size, end - (off_t)size) != (ssize_t)size)
            return -1;
        for (size_t i = size; i-- > 0;)
            if (piece[i] == '\n')
                return end - (off_t)(size - 1 - i);
        end -= (off_t)size;
    }
    return 0;
}

/* True when the bytes are one whole JSON object: only its newline is missing. */
static bool is_whole(int fd, off_t start, off_t end)
{
    const size_t size = (size_t)(end - start);
    char *text = allocate(size, 1);
    json_t *json = NULL;

    if (pread(fd, text, size, start) == (ssize_t)size)
        json = json_loadb(text, size, 0, NULL);
    free(text);
    json_decref(json);
    return json != NULL;
}

/* A line without its newline is what a kill or a full disk left of a record: it goes, so that the next
 * record is a line of its own. */
static bool repair_tail(struct records *r, off_t size)
{
    char last = '\n', text[100];
    off_t start;

    r->end = size;
    if (size > 0 && pread(r->fd, &last, 1, size - 1) != 1)
        return false;
    if (last == '\n')
        return true;
    if ((start = line_start(r->fd, size)) < 0)
        return false;
    if (is_whole(r->fd, start, size)) {
        r->end = size + 1;
        return write(r->fd, "\n", 1) == 1;
    }
    snprintf(text, sizeof text, "its last line was cut off: its %lld bytes were taken back",
             (long long)(size - start));
    complain(r, text);
    r->end = start;
    return ftruncate(r->fd, start) == 0;
}

/* --- opening --- */

/* A gpurun that was just killed may still be on its way out: a second is granted. */
static bool lock(const struct records *r)
{
    const double deadline = now_s() + 1;
    bool is_locked;

    while (!(is_locked = flock(r->fd, LOCK_EX | LOCK_NB) == 0) && errno == EWOULDBLOCK &&
           now_s() < deadline)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (is_locked)
        return true;
    if (errno == EWOULDBLOCK) {
        complain(r, "another gpurun is writing to it: give each its own file, gpurun report reads "
                    "many");
        return false;
    }
    complain(r, "it cannot be locked here: let no other gpurun write to it");
    return true;
}

static bool open_file(struct records *r)
{
    struct stat info;

    r->fd = open(r->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (r->fd < 0 && errno != EISDIR) /* a pipe's writing end */
        r->fd = open(r->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (r->fd < 0 || fstat(r->fd, &info) != 0) {
        complain(r, strerror(errno));
        return false;
    }
    r->is_regular = S_ISREG(info.st_mode);
    if (!r->is_regular)
        return true;
    if (!lock(r))
        return false;
    if (repair_tail(r, info.st_size))
        return true;
    complain(r, strerror(errno));
    return false;
}

static void close_file(struct records *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}

bool records_open(struct records *r, const char *path)
{
    *r = (struct records){.path = path, .fd = -1};
    if (path == NULL)
        return true;
    if (!open_file(r)) {
        close_file(r);
        return false;
    }
    r->start = r->end;
    return true;
}

/* --- what others do to the file meanwhile --- */

static bool copy_bytes(int from, off_t start, off_t end, int to)
{
    char piece[4096];

    while (start < end) {
        const size_t left = (size_t)(end - start);
        const ssize_t got = pread(from, piece, left < sizeof piece ? left : sizeof piece, start);

        if (got <= 0 || write(to, piece, (size_t)got) != got)
            return false;
        start += got;
    }
    return true;
}

/* The deleted file lives as long as it is open: this run's lines go to a new one. */
static void make_anew(struct records *r)
{
    struct records deleted = *r;

    complain(r, "it was deleted while it was written to: made anew with the records of this run");
    if (!open_file(r) || !copy_bytes(deleted.fd, deleted.start, deleted.end, r->fd)) {
        complain(r, "that failed: records are lost, from here on too");
        r->has_lost = r->has_stopped = true;
    }
    r->start = r->end;
    r->end += deleted.end - deleted.start;
    r->dirty_since = now_s();
    close_file(&deleted);
}

static void note_cut(struct records *r, off_t size)
{
    complain(r, "it was cut short while it was written to: records are lost, the next ones follow");
    r->has_lost = true;
    if (!repair_tail(r, size))
        complain(r, strerror(errno));
    r->start = r->start < r->end ? r->start : r->end;
}

static void look_after(struct records *r)
{
    struct stat info;

    if (!r->is_regular || fstat(r->fd, &info) != 0)
        return;
    if (info.st_nlink == 0)
        make_anew(r);
    else if (info.st_size < r->end)
        note_cut(r, info.st_size);
}

/* --- appending --- */

/* One line, whole or not at all: what a full disk cut off is taken back. */
static bool write_line(struct records *r, const char *text, size_t size)
{
    const off_t before = r->is_regular ? lseek(r->fd, 0, SEEK_END) : 0;
    size_t done = 0;
    int error;

    while (done < size) {
        const ssize_t written = write(r->fd, text + done, size - done);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        done += (size_t)written;
    }
    if (done == size) {
        r->end = before + (off_t)size;
        return true;
    }
    error = errno;
    if (r->is_regular && ftruncate(r->fd, before) != 0)
        complain(r, "a part of a line is left at its end");
    errno = error;
    return false;
}

static void stop(struct records *r)
{
    fprintf(stderr, "gpurun: --records %s: %s: records from here on are lost\n", r->path,
            strerror(errno));
    r->has_lost = r->has_stopped = true;
}

void records_append(struct records *r, const json_t *record)
{
    char *text;
    size_t size;

    if (r->fd < 0 || r->has_stopped)
        return;
    look_after(r);
    if (r->has_stopped)
        return;
    text = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(17));
    size = strlen(text);
    text[size] = '\n'; /* over the terminator */
    if (!write_line(r, text, size + 1))
        stop(r);
    else if (r->is_regular && r->dirty_since == 0)
        r->dirty_since = now_s();
    free(text);
    if (r->dirty_since > 0 && now_s() >= records_sync_due(r))
        records_sync(r);
}

double records_sync_due(const struct records *r)
{
    return r->dirty_since > 0 ? r->dirty_since + SYNC_S : 0;
}

void records_sync(struct records *r)
{
    const bool is_dirty = r->dirty_since > 0 && r->fd >= 0;

    r->dirty_since = 0;
    if (is_dirty && fdatasync(r->fd) != 0 && errno != EINVAL &&
        !r->has_stopped) /* EINVAL: it cannot be synced */
        stop(r);
}

bool records_close(struct records *r)
{
    if (r->fd < 0)
        return !r->has_lost;
    if (!r->has_stopped)
        look_after(r); /* what happened after the last record */
    records_sync(r);
    if (close(r->fd) != 0 && !r->has_stopped)
        stop(r);
    r->fd = -1;
    return !r->has_lost;
}
