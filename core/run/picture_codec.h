/* Inside the pictures: what picture.c asks of each format's file. */
#ifndef GPURUN_RUN_PICTURE_CODEC_H
#define GPURUN_RUN_PICTURE_CODEC_H

#include "run/picture.h"

/* A file being written, in memory. */
struct picture_bytes {
    unsigned char *data;
    size_t size, room;
};

/* False when memory runs out; what is there stays. */
bool picture_bytes_add(struct picture_bytes *bytes, const void *data, size_t size);

/* All of these leave the reason in *why. `read` is given a picture that is as `inspect` said, and writes
 * its pixels in the file's order and in the machine's byte order. */
struct picture_codec {
    const char *name;
    enum gpurun_status (*inspect)(const unsigned char *bytes, size_t size, struct picture *out,
                                  struct why *why);
    enum gpurun_status (*read)(const unsigned char *bytes, size_t size, const struct picture *p,
                               void *into, struct why *why);
    enum gpurun_status (*write)(const struct picture *p, const void *pixels,
                                struct picture_bytes *out, struct why *why);
};

extern const struct picture_codec picture_png, picture_jpeg, picture_pnm;

/* Bytes from row to row. */
static inline size_t picture_stride(const struct picture *p)
{
    return (size_t)p->width * (size_t)p->channels * (size_t)(p->bits / 8);
}

/* The orientation in an EXIF block, which starts with its byte order, "II" or "MM"; 1 where it has none.
 * GPURUN_ERROR where it is broken. */
enum gpurun_status picture_exif(const unsigned char *block, size_t size, int *orientation,
                                struct why *why);

#endif
