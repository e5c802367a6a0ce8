/* EXIF is a TIFF file in small: a byte order, then a table of 12-byte entries; one of them is wanted. */
#include "run/picture_codec.h"

#include <string.h>

enum {
    TIFF_MAGIC = 42,
    ENTRY_BYTES = 12,
    TAG_ORIENTATION = 0x112,
    TYPE_SHORT = 3,
};

struct exif {
    const unsigned char *block;
    size_t size;
    bool big_endian;
};

static unsigned number_at(const struct exif *e, size_t at, int bytes)
{
    unsigned value = 0;

    for (int i = 0; i < bytes; i++)
        value |= (unsigned)e->block[at + (size_t)i] << (8 * (e->big_endian ? bytes - 1 - i : i));
    return value;
}

static enum gpurun_status find_orientation(const struct exif *e, size_t table, int *orientation,
                                           struct why *why)
{
    const size_t count = number_at(e, table, 2);

    if ((e->size - table - 2) / ENTRY_BYTES < count)
        return why_fail(why, GPURUN_ERROR, "its EXIF data is cut short");
    for (size_t i = 0; i < count; i++) {
        const size_t entry = table + 2 + i * ENTRY_BYTES;

        if (number_at(e, entry, 2) != TAG_ORIENTATION)
            continue;
        if (number_at(e, entry + 2, 2) != TYPE_SHORT || number_at(e, entry + 4, 4) != 1)
            return why_fail(why, GPURUN_ERROR, "its EXIF orientation is no number");
        *orientation = (int)number_at(e, entry + 8, 2);
        if (*orientation >= 1 && *orientation <= 8)
            return GPURUN_OK;
        return why_fail(why, GPURUN_ERROR, "its EXIF orientation is %d; there are 1 to 8",
                        *orientation);
    }
    return GPURUN_OK;
}

enum gpurun_status picture_exif(const unsigned char *block, size_t size, int *orientation,
                                struct why *why)
{
    struct exif e = {block, size, false};
    size_t table;

    *orientation = 1;
    if (size < 8 || (memcmp(block, "II", 2) != 0 && memcmp(block, "MM", 2) != 0))
        return why_fail(why, GPURUN_ERROR, "its EXIF data names no byte order");
    e.big_endian = block[0] == 'M';
    table = number_at(&e, 4, 4);
    if (number_at(&e, 2, 2) != TIFF_MAGIC)
        return why_fail(why, GPURUN_ERROR, "its EXIF data does not start as EXIF does");
    if (table > size - 2)
        return why_fail(why, GPURUN_ERROR, "its EXIF data is cut short");
    return find_orientation(&e, table, orientation, why);
}
