#include "run/picture_codec.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct picture_codec *const codecs[] = {
    [PICTURE_PNG] = &picture_png, [PICTURE_JPEG] = &picture_jpeg, [PICTURE_PNM] = &picture_pnm};

static const char *ending(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot != NULL ? dot : "";
}

enum picture_format picture_format(const char *path)
{
    static const struct {
        const char *ending;
        enum picture_format format;
    } endings[] = {{".png", PICTURE_PNG}, {".jpg", PICTURE_JPEG}, {".jpeg", PICTURE_JPEG},
                   {".pgm", PICTURE_PNM}, {".ppm", PICTURE_PNM},  {".pbm", PICTURE_PNM}};

    for (size_t i = 0; i < GPURUN_COUNT(endings); i++)
        if (strcasecmp(ending(path), endings[i].ending) == 0)
            return endings[i].format;
    return PICTURE_NONE;
}

enum gpurun_dtype picture_dtype(const struct picture *p)
{
    return p->bits == 16 ? GPURUN_UINT16 : GPURUN_UINT8;
}

int picture_dims(const struct picture *p, int64_t dims[GPURUN_RANK_MAX])
{
    const bool turned = p->orientation >= 5;

    dims[0] = turned ? p->width : p->height;
    dims[1] = turned ? p->height : p->width;
    dims[2] = p->channels;
    return p->channels == 1 ? 2 : 3;
}

bool picture_bytes_add(struct picture_bytes *bytes, const void *data, size_t size)
{
    unsigned char *more;

    if (size > bytes->room - bytes->size) {
        bytes->room = 2 * (bytes->size + size);
        more = realloc(bytes->data, bytes->room);
        if (more == NULL)
            return false;
        bytes->data = more;
    }
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return true;
}

/* --- reading ------------------------------------------------------------------------------------ */

enum gpurun_status picture_inspect(enum picture_format format, const unsigned char *bytes,
                                   size_t size, struct picture *out, struct why *why)
{
    struct picture p = {.orientation = 1};
    int64_t total;

    GPURUN_TRY(codecs[format]->inspect(bytes, size, &p, why));
    if (__builtin_mul_overflow(p.width, p.height, &total) ||
        __builtin_mul_overflow(total, 8 * p.channels, &total))
        return why_fail(why, GPURUN_ERROR, "its size is larger than any picture can be");
    *out = p;
    return GPURUN_OK;
}

/* Where the pixel that is shown at (y, x) is stored. */
static inline int64_t stored_at(const struct picture *p, int64_t y, int64_t x)
{
    const int64_t right = p->width - 1, bottom = p->height - 1;

    switch (p->orientation) {
    case 2:
        return y * p->width + right - x;
    case 3:
        return (bottom - y) * p->width + right - x;
    case 4:
        return (bottom - y) * p->width + x;
    case 5:
        return x * p->width + y;
    case 6:
        return (bottom - x) * p->width + y;
    case 7:
        return (bottom - x) * p->width + right - y;
    case 8:
        return x * p->width + right - y;
    default:
        return y * p->width + x;
    }
}

/* Values of 8 or 16 bits to elements of `dtype`, which may start at any multiple of their size. */
static void convert(const unsigned char *from, int bits, size_t count, enum gpurun_dtype dtype,
                    unsigned char *to)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t wide = from[i];
        float real;

        if (bits == 16)
            memcpy(&wide, from + 2 * i, sizeof wide);
        real = (float)wide;
        if (dtype == GPURUN_FLOAT)
            memcpy(to + i * sizeof real, &real, sizeof real);
        else
            memcpy(to + i * sizeof(double), &(double){(double)real}, sizeof(double));
    }
}

/* Stored pixels to shown ones of `dtype`; `row` holds one shown row. */
static void lay_out(const struct picture *p, const unsigned char *stored, enum gpurun_dtype dtype,
                    unsigned char *row, unsigned char *into)
{
    const size_t pixel = (size_t)p->channels * (size_t)(p->bits / 8);
    int64_t dims[GPURUN_RANK_MAX];
    size_t values, bytes;

    picture_dims(p, dims);
    values = (size_t)dims[1] * (size_t)p->channels;
    bytes = values * gpurun_dtype_bytes(dtype);
    for (int64_t y = 0; y < dims[0]; y++, into += bytes) {
        for (int64_t x = 0; x < dims[1]; x++)
            memcpy(row + (size_t)x * pixel, stored + (size_t)stored_at(p, y, x) * pixel, pixel);
        if (dtype == picture_dtype(p))
            memcpy(into, row, bytes);
        else
            convert(row, p->bits, values, dtype, into);
    }
}

/* As the file has it, then laid out. */
static enum gpurun_status read_aside(const struct picture_codec *codec, const unsigned char *bytes,
                                     size_t size, const struct picture *p, enum gpurun_dtype dtype,
                                     void *into, struct why *why)
{
    const size_t longest = (size_t)(p->width > p->height ? p->width : p->height);
    unsigned char *stored = malloc(picture_stride(p) * (size_t)p->height);
    unsigned char *row = malloc(longest * (size_t)p->channels * (size_t)(p->bits / 8));
    enum gpurun_status status = GPURUN_OK;

    if (stored == NULL || row == NULL)
        status = why_fail(why, GPURUN_NO_MEMORY, "no memory to decode it");
    if (status == GPURUN_OK)
        status = codec->read(bytes, size, p, stored, why);
    if (status == GPURUN_OK)
        lay_out(p, stored, dtype, row, into);
    free(row);
    free(stored);
    return status;
}

enum gpurun_status picture_read(enum picture_format format, const unsigned char *bytes, size_t size,
                                const struct picture *p, enum gpurun_dtype dtype, void *into,
                                struct why *why)
{
    struct picture now = {.width = 0};

    GPURUN_TRY(picture_inspect(format, bytes, size, &now, why));
    if (now.width != p->width || now.height != p->height || now.channels != p->channels ||
        now.bits != p->bits || now.orientation != p->orientation)
        return why_fail(why, GPURUN_ERROR, "is another picture than when it was inspected");
    if (p->orientation != 1 || dtype != picture_dtype(p))
        return read_aside(codecs[format], bytes, size, p, dtype, into, why);
    return codecs[format]->read(bytes, size, p, into, why);
}

/* --- writing ------------------------------------------------------------------------------------ */

enum { JPEG_SIDE_MAX = 65500 };

static enum gpurun_status check_format(const char *path, const struct picture *p, struct why *why)
{
    const enum picture_format format = picture_format(path);
    const int64_t most = format == PICTURE_JPEG ? JPEG_SIDE_MAX : INT32_MAX;

    if (strcasecmp(ending(path), ".pbm") == 0)
        return why_fail(why, GPURUN_INVALID, "gpurun writes no .pbm (name a .pgm or .png file)");
    if (strcasecmp(ending(path), ".pgm") == 0 && p->channels != 1)
        return why_fail(why, GPURUN_INVALID, "a .pgm file has 1 channel, not %d (name a .png file)",
                        p->channels);
    if (strcasecmp(ending(path), ".ppm") == 0 && p->channels != 3)
        return why_fail(why, GPURUN_INVALID,
                        "a .ppm file has 3 channels, not %d (name a .png file)", p->channels);
    if (format == PICTURE_JPEG && p->channels != 1 && p->channels != 3)
        return why_fail(why, GPURUN_INVALID, "a JPEG file has no alpha channel (name a .png file)");
    if (format == PICTURE_JPEG && p->bits != 8)
        return why_fail(why, GPURUN_INVALID,
                        "a JPEG file holds uint8, not uint16 (name a .png file)");
    if (p->width > most || p->height > most)
        return why_fail(why, GPURUN_INVALID,
                        "a %s file has at most %lld rows and columns (name a .npy file)",
                        codecs[format]->name, (long long)most);
    return GPURUN_OK;
}

enum gpurun_status picture_of_array(const char *path, enum gpurun_dtype dtype, int rank,
                                    const int64_t *dims, struct picture *out, struct why *why)
{
    struct picture p = {.channels = 1, .orientation = 1};

    if (dtype != GPURUN_UINT8 && dtype != GPURUN_UINT16)
        return why_fail(why, GPURUN_INVALID,
                        "a picture holds uint8 or uint16, not %s (name a .npy file)",
                        gpurun_dtype_name(dtype));
    if (rank != 2 && (rank != 3 || dims[2] < 1 || dims[2] > 4))
        return why_fail(why, GPURUN_INVALID,
                        "a picture is [height][width] or that with 1 to 4 channels, and this is "
                        "neither (name a .npy file)");
    if (dims[0] < 1 || dims[1] < 1)
        return why_fail(why, GPURUN_INVALID, "a picture has at least one pixel (name a .npy file)");
    p.bits = dtype == GPURUN_UINT16 ? 16 : 8;
    p.height = dims[0];
    p.width = dims[1];
    if (rank == 3)
        p.channels = (int)dims[2];
    GPURUN_TRY(check_format(path, &p, why));
    *out = p;
    return GPURUN_OK;
}

enum gpurun_status picture_write(enum picture_format format, const struct picture *p,
                                 const void *pixels, unsigned char **out, size_t *size,
                                 struct why *why)
{
    struct picture_bytes bytes = {NULL, 0, 0};
    const enum gpurun_status status = codecs[format]->write(p, pixels, &bytes, why);

    if (status != GPURUN_OK) {
        free(bytes.data);
        return status;
    }
    *out = bytes.data;
    *size = bytes.size;
    return GPURUN_OK;
}
