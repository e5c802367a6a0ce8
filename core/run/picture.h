/*
 * Pictures in memory as the bytes of a file, and as rows of pixels: PNG and JPEG through their libraries,
 * PGM, PPM and PBM by hand. What a library only warns of fails here too; bytes after a picture's end do
 * not. Reading a header allocates nothing of the picture's size.
 */
#ifndef GPURUN_RUN_PICTURE_H
#define GPURUN_RUN_PICTURE_H

#include "job/why.h"
#include <stdbool.h>

enum picture_format { PICTURE_NONE, PICTURE_PNG, PICTURE_JPEG, PICTURE_PNM };

/* By the name's ending, in any case: .png .jpg .jpeg .pgm .ppm .pbm; PICTURE_NONE for all else. */
enum picture_format picture_format(const char *path);

/* A picture as its file stores it. */
struct picture {
    int64_t width, height; /* at least 1 */
    int channels;          /* 1 gray, 2 gray and alpha, 3 RGB, 4 RGB and alpha */
    int bits;              /* 8 or 16 of each value; fewer in the file have become 8 */
    int orientation;       /* EXIF's, 1 to 8; from 5 on width and height change places when shown */
};

/* uint8 or uint16. */
enum gpurun_dtype picture_dtype(const struct picture *p);

/* The shape of the picture as it is shown, [height][width] or [height][width][channels]; returns its
 * rank. */
int picture_dims(const struct picture *p, int64_t dims[GPURUN_RANK_MAX]);

/* What the header says. GPURUN_ERROR with the reason for what is no such picture, or none that can be
 * read. */
enum gpurun_status picture_inspect(enum picture_format format, const unsigned char *bytes,
                                   size_t size, struct picture *out, struct why *why);

/* All pixels, turned as they are shown, into an array of picture_dims(p) elements of `dtype`: the
 * picture's own, float or double. `p` is what picture_inspect said; a file that says otherwise now
 * fails. */
enum gpurun_status picture_read(enum picture_format format, const unsigned char *bytes, size_t size,
                                const struct picture *p, enum gpurun_dtype dtype, void *into,
                                struct why *why);

/* Whether an array can be written to a picture of that name; if so what the picture will be. */
enum gpurun_status picture_of_array(const char *path, enum gpurun_dtype dtype, int rank,
                                    const int64_t *dims, struct picture *out, struct why *why);

/* The bytes of a file with the picture, for the caller to free. */
enum gpurun_status picture_write(enum picture_format format, const struct picture *p,
                                 const void *pixels, unsigned char **out, size_t *size,
                                 struct why *why);

#endif
