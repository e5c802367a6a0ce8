#include "run/datafile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 16 << 20, /* one pread; also the buffer of a transposition */
    TILE_COLUMNS = 32,      /* columns that a transposition reads side by side */
};

/* Notes why a file cannot be used, after its path. */
static enum gpurun_status fail(struct why *why, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum gpurun_status fail(struct why *why, const char *path, const char *format, ...)
{
    char reason[400];
    va_list args;

    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return why_fail(why, GPURUN_ERROR, "%.600s: %s", path, reason);
}

bool datafile_is_npy(const char *path)
{
    const size_t length = strlen(path);

    return length >= 4 && strcmp(path + length - 4, ".npy") == 0;
}

/* --- inspecting -------------------------------------------------------------------------------- */

/* Opens a regular file; O_NONBLOCK, so that a pipe is refused rather than waited for. */
static enum gpurun_status open_file(const char *path, int *fd, off_t *size, struct why *why)
{
    struct stat info = {.st_size = 0};

    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return fail(why, path, "cannot be opened: %s", strerror(errno));
    if (fstat(*fd, &info) == 0 && S_ISREG(info.st_mode)) {
        *size = info.st_size;
        return GPURUN_OK;
    }
    close(*fd);
    return fail(why, path, "is %s, not a file",
                S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe");
}

/* Reads exactly `size` bytes at `at`. */
static enum gpurun_status read_exactly(const char *path, int fd, void *into, size_t size, off_t at,
                                       struct why *why)
{
    char *to = into;

    while (size > 0) {
        const ssize_t got = pread(fd, to, size < CHUNK_BYTES ? size : CHUNK_BYTES, at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(why, path, "cannot be read: %s", strerror(errno));
        if (got == 0)
            return fail(why, path, "became shorter while it was read");
        to += got;
        at += got;
        size -= (size_t)got;
    }
    return GPURUN_OK;
}

static enum gpurun_status inspect_raw(const char *path, int64_t dtype, struct datafile *file,
                                      struct why *why)
{
    off_t bytes;

    if (dtype == GPURUN_AUTO)
        return why_fail(
            why, GPURUN_INVALID,
            "%.600s: a raw file does not say what it holds (set dtype, or give a .npy file)", path);
    file->dtype = (enum gpurun_dtype)dtype;
    bytes = (off_t)gpurun_dtype_bytes(file->dtype);
    if (file->file_size % bytes != 0)
        return fail(why, path, "its %lld bytes are no whole number of %s elements of %lld bytes",
                    (long long)file->file_size, gpurun_dtype_name(file->dtype), (long long)bytes);
    file->rank = 1;
    file->elems = file->dims[0] = file->file_size / bytes;
    return GPURUN_OK;
}

static enum gpurun_status check_npy(const char *path, int64_t dtype, const struct datafile *file,
                                    struct why *why)
{
    const int64_t promised = file->elems * (int64_t)gpurun_dtype_bytes(file->dtype);
    const int64_t held = file->file_size - file->data_at;

    if (held < promised)
        return fail(why, path, "is cut short: it promises %lld bytes of data, the file holds %lld",
                    (long long)promised, (long long)held);
    if (held > promised)
        return fail(why, path, "has %lld bytes after the %lld bytes of data that it promises",
                    (long long)(held - promised), (long long)promised);
    if (file->dtype == GPURUN_BFLOAT16 && dtype != GPURUN_BFLOAT16)
        return fail(why, path,
                    "holds raw records of 2 bytes ('V2'): they are taken for bfloat16 where the "
                    "job says dtype = bfloat16");
    if (dtype != GPURUN_AUTO && dtype != (int64_t)file->dtype)
        return fail(why, path, "holds %s, the job says %s", gpurun_dtype_name(file->dtype),
                    gpurun_dtype_name((enum gpurun_dtype)dtype));
    return GPURUN_OK;
}

/* --- pictures ---------------------------------------------------------------------------------- */

/* All of a file, for the caller to free. */
static enum gpurun_status load_whole(const char *path, int fd, off_t size, unsigned char **out,
                                     struct why *why)
{
    enum gpurun_status status;

    *out = malloc((size_t)size + 1);
    if (*out == NULL)
        return why_fail(why, GPURUN_NO_MEMORY, "%.600s: no memory for its %lld bytes", path,
                        (long long)size);
    status = read_exactly(path, fd, *out, (size_t)size, 0, why);
    if (status != GPURUN_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

static enum gpurun_status take_picture(const char *path, int64_t dtype, struct datafile *file,
                                       struct why *why)
{
    file->dtype = picture_dtype(&file->picture);
    file->rank = picture_dims(&file->picture, file->dims);
    file->elems = 1;
    for (int i = 0; i < file->rank; i++)
        file->elems *= file->dims[i];
    if (dtype == GPURUN_AUTO || dtype == (int64_t)file->dtype)
        return GPURUN_OK;
    if (dtype != GPURUN_FLOAT && dtype != GPURUN_DOUBLE)
        return fail(why, path, "holds %s, the job says %s (a picture becomes %s, float or double)",
                    gpurun_dtype_name(file->dtype), gpurun_dtype_name((enum gpurun_dtype)dtype),
                    gpurun_dtype_name(file->dtype));
    file->dtype = (enum gpurun_dtype)dtype;
    return GPURUN_OK;
}

static enum gpurun_status inspect_picture(const char *path, int fd, int64_t dtype,
                                          struct datafile *file, struct why *why)
{
    unsigned char *bytes;
    struct why inner;
    enum gpurun_status status;

    GPURUN_TRY(load_whole(path, fd, file->file_size, &bytes, why));
    status = picture_inspect(file->format, bytes, (size_t)file->file_size, &file->picture, &inner);
    free(bytes);
    if (status != GPURUN_OK)
        return fail(why, path, "%s", inner.text);
    return take_picture(path, dtype, file, why);
}

static enum gpurun_status read_picture(const char *path, int fd, const struct datafile *file,
                                       void *into, struct why *why)
{
    unsigned char *bytes;
    struct why inner;
    enum gpurun_status status;

    GPURUN_TRY(load_whole(path, fd, file->file_size, &bytes, why));
    status = picture_read(file->format, bytes, (size_t)file->file_size, &file->picture, file->dtype,
                          into, &inner);
    free(bytes);
    return status == GPURUN_OK ? GPURUN_OK : fail(why, path, "%s", inner.text);
}

enum gpurun_status datafile_check_limit(const char *path, const struct datafile *file,
                                        int64_t limit, struct why *why)
{
    const int64_t bytes = file->elems * (int64_t)gpurun_dtype_bytes(file->dtype);

    if (file->format == PICTURE_NONE || bytes <= limit)
        return GPURUN_OK;
    return fail(why, path,
                "is a picture of %lld by %lld, which takes %lld bytes, above picture_limit (%lld): "
                "if it is to be read, write picture_limit = %lld",
                (long long)file->dims[1], (long long)file->dims[0], (long long)bytes,
                (long long)limit, (long long)bytes);
}

/* --- all kinds --------------------------------------------------------------------------------- */

static enum gpurun_status inspect_npy(const char *path, int fd, int64_t dtype,
                                      struct datafile *file, struct why *why)
{
    const off_t size = file->file_size;
    const size_t prefix = size < NPY_PREFIX_MAX ? (size_t)size : NPY_PREFIX_MAX;
    unsigned char *bytes;
    struct why inner;
    enum gpurun_status status;

    if (size == 0)
        return fail(why, path, "is empty, not even a header");
    bytes = malloc(prefix);
    if (bytes == NULL)
        return why_fail(why, GPURUN_NO_MEMORY, "%.600s: no memory for its header", path);
    status = read_exactly(path, fd, bytes, prefix, 0, why);
    if (status == GPURUN_OK && npy_parse_header(bytes, prefix, file, &inner) != GPURUN_OK)
        status = fail(why, path, "%s", inner.text);
    free(bytes);
    file->file_size = size;
    return status == GPURUN_OK ? check_npy(path, dtype, file, why) : status;
}

enum gpurun_status datafile_inspect(const char *path, int64_t dtype, struct datafile *out,
                                    struct why *why)
{
    struct datafile file = {.rank = 0};
    enum gpurun_status status;
    int fd;

    GPURUN_TRY(open_file(path, &fd, &file.file_size, why));
    file.format = picture_format(path);
    if (datafile_is_npy(path))
        status = inspect_npy(path, fd, dtype, &file, why);
    else if (file.format != PICTURE_NONE)
        status = inspect_picture(path, fd, dtype, &file, why);
    else
        status = inspect_raw(path, dtype, &file, why);
    close(fd);
    if (status == GPURUN_OK)
        *out = file;
    return status;
}

/* --- reading ----------------------------------------------------------------------------------- */

/* Through memcpy, for elements may lie at odd addresses; it costs nothing. */
#define SWAP_ALL(type, swap)                                                                       \
    for (size_t i = 0; i < elems; i++) {                                                           \
        type value;                                                                                \
        memcpy(&value, at + i * sizeof value, sizeof value);                                       \
        value = swap(value);                                                                       \
        memcpy(at + i * sizeof value, &value, sizeof value);                                       \
    }

static void swap_elements(char *at, size_t elems, size_t width)
{
    switch (width) {
    case 2:
        SWAP_ALL(uint16_t, __builtin_bswap16)
        break;
    case 4:
        SWAP_ALL(uint32_t, __builtin_bswap32)
        break;
    case 8:
        SWAP_ALL(uint64_t, __builtin_bswap64)
        break;
    default:
        break;
    }
}

/* A Fortran-ordered file being read: columns of dims[0] neighbouring elements, which lie `stride`
 * elements apart in memory. A tile is some rows of some columns, column after column. */
struct transposition {
    const char *path;
    int fd;
    const struct datafile *file;
    size_t width; /* bytes of an element */
    int64_t rows, columns, stride;
    char *tile;
    char *into;
};

struct tile {
    int64_t row, rows, column, columns;
};

/* Where the first element of a column lies in C order. */
static int64_t column_start(const struct transposition *t, int64_t column)
{
    const struct datafile *file = t->file;
    int64_t stride = t->stride, start = 0;

    for (int i = 1; i < file->rank; i++) {
        stride /= file->dims[i];
        start += column % file->dims[i] * stride;
        column /= file->dims[i];
    }
    return start;
}

/* Moves up to TILE_COLUMNS columns side by side, so that neighbours in memory are written
 * together. */
static inline void scatter_columns(const struct transposition *t, const struct tile *tile,
                                   int64_t first, size_t width)
{
    const int64_t left = tile->columns - first;
    const int count = left < TILE_COLUMNS ? (int)left : TILE_COLUMNS;
    const char *from = t->tile + (size_t)(first * tile->rows) * width;
    char *to[TILE_COLUMNS];

    for (int c = 0; c < count; c++)
        to[c] = t->into +
                (size_t)(column_start(t, tile->column + first + c) + tile->row * t->stride) * width;
    for (int64_t row = 0; row < tile->rows; row++) {
        for (int c = 0; c < count; c++) {
            memcpy(to[c], from + (size_t)(c * tile->rows + row) * width, width);
            to[c] += (size_t)t->stride * width;
        }
    }
}

static void scatter(const struct transposition *t, const struct tile *tile)
{
    for (int64_t first = 0; first < tile->columns; first += TILE_COLUMNS) {
        switch (t->width) { /* constants, so that each memcpy becomes one move */
        case 1:
            scatter_columns(t, tile, first, 1);
            break;
        case 2:
            scatter_columns(t, tile, first, 2);
            break;
        case 4:
            scatter_columns(t, tile, first, 4);
            break;
        default:
            scatter_columns(t, tile, first, 8);
            break;
        }
    }
}

/* Whole columns lie together in the file; parts of columns are read one by one. */
static enum gpurun_status read_tile(const struct transposition *t, const struct tile *tile,
                                    struct why *why)
{
    const bool whole = tile->rows == t->rows;
    const size_t bytes = (size_t)(tile->rows * (whole ? tile->columns : 1)) * t->width;

    for (int64_t c = 0; c < (whole ? 1 : tile->columns); c++) {
        const int64_t first = (tile->column + c) * t->rows + tile->row;

        GPURUN_TRY(read_exactly(t->path, t->fd, t->tile + (size_t)c * bytes, bytes,
                                t->file->data_at + first * (off_t)t->width, why));
    }
    if (t->file->swapped)
        swap_elements(t->tile, (size_t)(tile->rows * tile->columns), t->width);
    scatter(t, tile);
    return GPURUN_OK;
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Tiles of whole columns where TILE_COLUMNS of them fit the buffer, else of parts of so many
 * columns. */
static enum gpurun_status read_transposed(const struct transposition *t, struct why *why)
{
    const int64_t room = CHUNK_BYTES / (int64_t)t->width;
    const int64_t rows = min_i64(t->rows, room / TILE_COLUMNS), columns = room / rows;
    struct tile tile;

    for (tile.column = 0; tile.column < t->columns; tile.column += columns) {
        tile.columns = min_i64(columns, t->columns - tile.column);
        for (tile.row = 0; tile.row < t->rows; tile.row += rows) {
            tile.rows = min_i64(rows, t->rows - tile.row);
            GPURUN_TRY(read_tile(t, &tile, why));
        }
    }
    return GPURUN_OK;
}

static enum gpurun_status read_fortran(const char *path, int fd, const struct datafile *file,
                                       void *into, struct why *why)
{
    struct transposition t = {
        .path = path,
        .fd = fd,
        .file = file,
        .width = gpurun_dtype_bytes(file->dtype),
        .rows = file->dims[0],
        .columns = file->elems / file->dims[0],
        .stride = file->elems / file->dims[0],
        .into = into,
    };
    enum gpurun_status status;

    t.tile = malloc((size_t)min_i64(CHUNK_BYTES, file->elems * (int64_t)t.width));
    if (t.tile == NULL)
        return why_fail(why, GPURUN_NO_MEMORY, "%.600s: no memory to reorder its elements", path);
    status = read_transposed(&t, why);
    free(t.tile);
    return status;
}

static enum gpurun_status read_straight(const char *path, int fd, const struct datafile *file,
                                        void *into, struct why *why)
{
    const size_t width = gpurun_dtype_bytes(file->dtype);
    const int64_t step = CHUNK_BYTES / (int64_t)width;

    /* Swapped chunk by chunk, while a chunk is still in the cache. */
    for (int64_t first = 0; first < file->elems; first += step) {
        const size_t elems = (size_t)min_i64(step, file->elems - first);
        char *to = (char *)into + (size_t)first * width;

        GPURUN_TRY(
            read_exactly(path, fd, to, elems * width, file->data_at + first * (off_t)width, why));
        if (file->swapped)
            swap_elements(to, elems, width);
    }
    return GPURUN_OK;
}

enum gpurun_status datafile_read(const char *path, const struct datafile *file, void *into,
                                 struct why *why)
{
    enum gpurun_status status;
    off_t size;
    int fd;

    GPURUN_TRY(open_file(path, &fd, &size, why));
    if (size != file->file_size)
        status = fail(why, path, "changed from %lld to %lld bytes since it was inspected",
                      (long long)file->file_size, (long long)size);
    else if (file->format != PICTURE_NONE)
        status = read_picture(path, fd, file, into, why);
    else if (file->fortran && file->rank > 1 && file->elems > 0)
        status = read_fortran(path, fd, file, into, why);
    else
        status = read_straight(path, fd, file, into, why);
    close(fd);
    return status;
}
