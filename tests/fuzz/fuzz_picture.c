/*
 * Fuzzes the readers of pictures, all formats on every input, and holds what they take against what
 * picture.h promises: no write outside the pixels, the same pixels twice, and for what can be written a
 * way back.
 */
#include "run/picture.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIXELS_MAX = 1 << 16, GUARD = 16 };

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_reason(const struct why *why)
{
    require(why->text[0] != '\0' && memchr(why->text, '\0', sizeof why->text) != NULL);
}

/* PNG takes every kind; the picture is written as it is shown. */
static void check_round_trip(const struct picture *p, const unsigned char *pixels, size_t bytes)
{
    int64_t dims[GPURUN_RANK_MAX];
    const int rank = picture_dims(p, dims);
    unsigned char *file = NULL, *again = malloc(bytes);
    struct picture shown, read;
    struct why why = {""};
    size_t size;

    require(picture_of_array("x.png", picture_dtype(p), rank, dims, &shown, &why) == GPURUN_OK);
    require(picture_write(PICTURE_PNG, &shown, pixels, &file, &size, &why) == GPURUN_OK);
    require(picture_inspect(PICTURE_PNG, file, size, &read, &why) == GPURUN_OK);
    require(picture_read(PICTURE_PNG, file, size, &read, picture_dtype(p), again, &why) ==
            GPURUN_OK);
    require(memcmp(again, pixels, bytes) == 0);
    free(file);
    free(again);
}

static void check_pixels(enum picture_format format, const uint8_t *data, size_t size,
                         const struct picture *p)
{
    const size_t values = (size_t)p->width * (size_t)p->height * (size_t)p->channels;
    const size_t bytes = values * gpurun_dtype_bytes(picture_dtype(p));
    unsigned char *one = calloc(bytes + GUARD, 1), *two = malloc(bytes + GUARD);
    struct why why = {""};

    memset(two, 0xA5, bytes + GUARD);
    if (picture_read(format, data, size, p, picture_dtype(p), one, &why) != GPURUN_OK) {
        check_reason(&why);
    } else {
        require(picture_read(format, data, size, p, picture_dtype(p), two, &why) == GPURUN_OK);
        require(memcmp(one, two, bytes) == 0); /* every value was written */
        check_round_trip(p, one, bytes);
    }
    for (size_t i = bytes; i < bytes + GUARD; i++)
        require(one[i] == 0 && two[i] == 0xA5);
    free(one);
    free(two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int format = PICTURE_PNG; format <= PICTURE_PNM; format++) {
        struct picture p = {.width = 0};
        struct why why = {""};

        if (picture_inspect((enum picture_format)format, data, size, &p, &why) != GPURUN_OK) {
            check_reason(&why);
            continue;
        }
        require(p.width >= 1 && p.height >= 1 && p.channels >= 1 && p.channels <= 4);
        require((p.bits == 8 || p.bits == 16) && p.orientation >= 1 && p.orientation <= 8);
        if (p.width <= PIXELS_MAX && p.height <= PIXELS_MAX / p.width)
            check_pixels((enum picture_format)format, data, size, &p);
    }
    return 0;
}
