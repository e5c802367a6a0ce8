/*
 * Writing an array: all of it into a temporary file in the target's folder, then one rename.
 */
#include "run/datafile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 16 << 20, /* one write */
    TEMPORARY_TRIES = 100,
};

static enum gpurun_status fail(struct why *why, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum gpurun_status fail(struct why *why, const char *path, const char *format, ...)
{
    char reason[400];
    va_list args;

    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return why_fail(why, GPURUN_ERROR, "%.600s: cannot be written: %s", path, reason);
}

static enum gpurun_status write_all(const char *path, int fd, const void *data, size_t size,
                                    struct why *why)
{
    const char *from = data;

    while (size > 0) {
        const ssize_t put = write(fd, from, size < CHUNK_BYTES ? size : CHUNK_BYTES);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail(why, path, "%s", strerror(errno));
        from += put;
        size -= (size_t)put;
    }
    return GPURUN_OK;
}

/* The target may be missing or a regular file: renaming over a device would replace it by a
 * file. */
static enum gpurun_status check_target(const char *path, struct why *why)
{
    struct stat info;

    if (*path == '\0' || path[strlen(path) - 1] == '/')
        return fail(why, path, "names no file");
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode))
        return GPURUN_OK;
    return fail(why, path, "it is %s, not a file",
                S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe");
}

/* Creates a temporary file in the target's folder. Not mkostemp: its files are closed to all but
 * their owner, and the umask cannot be read without being changed. */
static enum gpurun_status open_temporary(const char *path, char temporary[PATH_MAX], int *fd,
                                         struct why *why)
{
    char copy[PATH_MAX];
    const char *folder;

    if ((size_t)snprintf(copy, sizeof copy, "%s", path) >= sizeof copy)
        return fail(why, path, "its name is too long");
    folder = dirname(copy);
    for (int i = 0; i < TEMPORARY_TRIES; i++) {
        if (snprintf(temporary, PATH_MAX, "%s/.gpurun-%ld-%d.tmp", folder, (long)getpid(), i) >=
            PATH_MAX)
            return fail(why, path, "its name is too long");
        *fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*fd >= 0)
            return GPURUN_OK;
        if (errno != EEXIST)
            return fail(why, path, "cannot create a file in %.200s: %s", folder, strerror(errno));
    }
    return fail(why, path, "%.200s is full of temporary files (.gpurun-*.tmp)", folder);
}

static enum gpurun_status write_picture(const char *path, int fd, const struct picture *p,
                                        const void *data, struct why *why)
{
    unsigned char *bytes;
    size_t size;
    struct why inner;
    enum gpurun_status status;

    if (picture_write(picture_format(path), p, data, &bytes, &size, &inner) != GPURUN_OK)
        return fail(why, path, "%s", inner.text);
    status = write_all(path, fd, bytes, size, why);
    free(bytes);
    return status;
}

static enum gpurun_status write_array(const char *path, int fd, enum gpurun_dtype dtype, int rank,
                                      const int64_t *dims, const void *data, struct why *why)
{
    size_t bytes = gpurun_dtype_bytes(dtype);
    char header[NPY_HEADER_MAX];

    for (int i = 0; i < rank; i++)
        bytes *= (size_t)dims[i];
    if (datafile_is_npy(path))
        GPURUN_TRY(write_all(path, fd, header, npy_format_header(dtype, rank, dims, header), why));
    return write_all(path, fd, data, bytes, why);
}

/* Writes, syncs and closes the temporary file. */
static enum gpurun_status write_temporary(const char *path, int fd, enum gpurun_dtype dtype,
                                          int rank, const int64_t *dims, const void *data,
                                          struct why *why)
{
    struct picture p;
    struct why inner;
    enum gpurun_status status = GPURUN_OK;

    if (picture_format(path) == PICTURE_NONE)
        status = write_array(path, fd, dtype, rank, dims, data, why);
    else if (picture_of_array(path, dtype, rank, dims, &p, &inner) != GPURUN_OK)
        status = fail(why, path, "%s", inner.text);
    else
        status = write_picture(path, fd, &p, data, why);
    if (status == GPURUN_OK && fsync(fd) != 0)
        status = fail(why, path, "%s", strerror(errno));
    if (close(fd) != 0 && status == GPURUN_OK)
        status = fail(why, path, "%s", strerror(errno));
    return status;
}

enum gpurun_status datafile_write(const char *path, enum gpurun_dtype dtype, int rank,
                                  const int64_t *dims, const void *data, struct why *why)
{
    char temporary[PATH_MAX];
    enum gpurun_status status;
    int fd = -1;

    GPURUN_TRY(check_target(path, why));
    GPURUN_TRY(open_temporary(path, temporary, &fd, why));
    status = write_temporary(path, fd, dtype, rank, dims, data, why);
    if (status == GPURUN_OK && rename(temporary, path) != 0)
        status = fail(why, path, "%s", strerror(errno));
    if (status != GPURUN_OK)
        unlink(temporary);
    return status;
}
