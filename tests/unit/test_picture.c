/* Fixtures are made by tests/data/make_pictures.py, without this code or its libraries where they are
 * exact; the formulas below are the ones there. */
#include "run/picture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PICTURES TEST_DATA "/pictures/"

enum { WIDTH = 7, HEIGHT = 5, SMOOTH_WIDTH = 24, SMOOTH_HEIGHT = 17 };

struct file {
    unsigned char *bytes; /* a block of just its size, so that a sanitizer sees a read beyond it */
    size_t size;
    enum picture_format format;
};

static struct file load(const char *name)
{
    struct file f = {.format = picture_format(name)};
    char path[512];
    FILE *stream;

    snprintf(path, sizeof path, PICTURES "%s", name);
    stream = fopen(path, "rb");
    ck_assert_msg(stream != NULL, "%s", path);
    fseek(stream, 0, SEEK_END);
    f.size = (size_t)ftell(stream);
    rewind(stream);
    f.bytes = malloc(f.size);
    ck_assert_uint_eq(fread(f.bytes, 1, f.size, stream), f.size);
    fclose(stream);
    return f;
}

/* Inspects and reads; NULL with the reason where that fails. For the caller to free. */
static void *decode(const struct file *f, enum gpurun_dtype dtype, struct picture *p,
                    struct why *why)
{
    int64_t dims[GPURUN_RANK_MAX];
    enum gpurun_dtype as;
    unsigned char *pixels;
    size_t bytes;

    if (picture_inspect(f->format, f->bytes, f->size, p, why) != GPURUN_OK)
        return NULL;
    picture_dims(p, dims);
    as = dtype == GPURUN_INT8 ? picture_dtype(p) : dtype;
    bytes = (size_t)(dims[0] * dims[1] * p->channels) * gpurun_dtype_bytes(as);
    pixels = malloc(bytes);
    memset(pixels, 0xEE, bytes);
    if (picture_read(f->format, f->bytes, f->size, p, as, pixels, why) == GPURUN_OK)
        return pixels;
    free(pixels);
    return NULL;
}

/* In the picture's own dtype. */
static const enum gpurun_dtype OWN = GPURUN_INT8;

/* --- exact pictures ------------------------------------------------------------------------------ */

static unsigned value(int bits, int y, int x, int c)
{
    if (bits == 16)
        return (unsigned)(3571 * y + 1237 * x + 20011 * c + 77) % 65536;
    return (unsigned)(37 * y + 11 * x + 101 * c + 7) % (1u << bits);
}

/* What is expected of a fixture: `bits` of its values, a palette's `count` of colours, `alphas` of which
 * have an alpha; a colour that is transparent; the largest value of a PGM. */
static const struct exact {
    const char *name;
    int bits, channels, count, alphas, key, most;
} exacts[] = {
    {"gray1.png", 1, 1, 0, 0, 0, 0},
    {"gray2.png", 2, 1, 0, 0, 0, 0},
    {"gray4.png", 4, 1, 0, 0, 0, 0},
    {"gray8.png", 8, 1, 0, 0, 0, 0},
    {"gray16.png", 16, 1, 0, 0, 0, 0},
    {"gray_alpha8.png", 8, 2, 0, 0, 0, 0},
    {"gray_alpha16.png", 16, 2, 0, 0, 0, 0},
    {"rgb8.png", 8, 3, 0, 0, 0, 0},
    {"rgb16.png", 16, 3, 0, 0, 0, 0},
    {"rgba8.png", 8, 4, 0, 0, 0, 0},
    {"rgba16.png", 16, 4, 0, 0, 0, 0},
    {"gray1_interlaced.png", 1, 1, 0, 0, 0, 0},
    {"gray2_interlaced.png", 2, 1, 0, 0, 0, 0},
    {"gray4_interlaced.png", 4, 1, 0, 0, 0, 0},
    {"gray8_interlaced.png", 8, 1, 0, 0, 0, 0},
    {"gray16_interlaced.png", 16, 1, 0, 0, 0, 0},
    {"gray_alpha8_interlaced.png", 8, 2, 0, 0, 0, 0},
    {"gray_alpha16_interlaced.png", 16, 2, 0, 0, 0, 0},
    {"rgb8_interlaced.png", 8, 3, 0, 0, 0, 0},
    {"rgb16_interlaced.png", 16, 3, 0, 0, 0, 0},
    {"rgba8_interlaced.png", 8, 4, 0, 0, 0, 0},
    {"rgba16_interlaced.png", 16, 4, 0, 0, 0, 0},
    {"palette1.png", 8, 3, 2, 0, 0, 0},
    {"palette2.png", 8, 3, 4, 0, 0, 0},
    {"palette4.png", 8, 3, 16, 0, 0, 0},
    {"palette8.png", 8, 3, 35, 0, 0, 0},
    {"palette1_alpha.png", 8, 4, 2, 1, 0, 0},
    {"palette2_alpha.png", 8, 4, 4, 3, 0, 0},
    {"palette4_alpha.png", 8, 4, 16, 15, 0, 0},
    {"palette8_alpha.png", 8, 4, 35, 34, 0, 0},
    {"palette1_interlaced.png", 8, 3, 2, 0, 0, 0},
    {"palette8_interlaced.png", 8, 3, 35, 0, 0, 0},
    {"palette2_alpha_interlaced.png", 8, 4, 4, 3, 0, 0},
    {"palette4_alpha_interlaced.png", 8, 4, 16, 15, 0, 0},
    {"gray4_key.png", 4, 2, 0, 0, 1, 0},
    {"gray8_key.png", 8, 2, 0, 0, 1, 0},
    {"gray16_key.png", 16, 2, 0, 0, 1, 0},
    {"rgb8_key.png", 8, 4, 0, 0, 1, 0},
    {"rgb16_key.png", 16, 4, 0, 0, 1, 0},
    {"extras.png", 8, 3, 0, 0, 0, 0},
    {"plain1.pgm", 16, 1, 0, 0, 0, 1},
    {"plain100.pgm", 16, 1, 0, 0, 0, 100},
    {"plain255.pgm", 16, 1, 0, 0, 0, 255},
    {"plain256.pgm", 16, 1, 0, 0, 0, 256},
    {"plain1000.pgm", 16, 1, 0, 0, 0, 1000},
    {"plain65535.pgm", 16, 1, 0, 0, 0, 65535},
    {"plain1.ppm", 16, 3, 0, 0, 0, 1},
    {"plain100.ppm", 16, 3, 0, 0, 0, 100},
    {"plain255.ppm", 16, 3, 0, 0, 0, 255},
    {"plain65535.ppm", 16, 3, 0, 0, 0, 65535},
    {"raw1.pgm", 16, 1, 0, 0, 0, 1},
    {"raw100.pgm", 16, 1, 0, 0, 0, 100},
    {"raw255.pgm", 16, 1, 0, 0, 0, 255},
    {"raw256.pgm", 16, 1, 0, 0, 0, 256},
    {"raw1000.pgm", 16, 1, 0, 0, 0, 1000},
    {"raw65535.pgm", 16, 1, 0, 0, 0, 65535},
    {"raw100.ppm", 16, 3, 0, 0, 0, 100},
    {"raw255.ppm", 16, 3, 0, 0, 0, 255},
    {"raw1000.ppm", 16, 3, 0, 0, 0, 1000},
    {"raw65535.ppm", 16, 3, 0, 0, 0, 65535},
    {"comments.pgm", 16, 1, 0, 0, 0, 255},
    {"plain.pbm", 16, 1, 0, 0, 0, -1},
    {"raw.pbm", 16, 1, 0, 0, 0, -1},
};

static unsigned palette_value(const struct exact *e, int y, int x, int c)
{
    const int i = (y * WIDTH + x) % e->count;
    const int parts[] = {7 * i, 255 - 5 * i, i * i, i < e->alphas ? 255 - 3 * i : 255};

    return (unsigned)parts[c] & 255;
}

/* Alpha of a picture with one transparent colour. */
static unsigned key_alpha(const struct exact *e, int y, int x)
{
    bool same = true;

    for (int c = 0; c < e->channels - 1; c++)
        same = same && value(e->bits, y, x, c) == value(e->bits, 2, 3, c);
    return same ? 0 : e->bits == 16 ? 65535 : 255;
}

static unsigned expected(const struct exact *e, int y, int x, int c)
{
    const double full = e->most > 255 ? 65535 : 255;

    if (e->count > 0)
        return palette_value(e, y, x, c);
    if (e->most < 0) /* a bit that is set is black */
        return value(16, y, x, c) % 2 ? 0 : 255;
    if (e->most > 0)
        return (unsigned)(value(16, y, x, c) % (unsigned)(e->most + 1) * full / e->most + 0.5);
    if (e->key && c == e->channels - 1)
        return key_alpha(e, y, x);
    return e->bits < 8 ? value(e->bits, y, x, c) * 255 / ((1u << e->bits) - 1)
                       : value(e->bits, y, x, c);
}

static double element(const void *pixels, enum gpurun_dtype dtype, size_t i)
{
    switch (dtype) {
    case GPURUN_UINT8:
        return ((const uint8_t *)pixels)[i];
    case GPURUN_UINT16:
        return ((const uint16_t *)pixels)[i];
    case GPURUN_FLOAT:
        return (double)((const float *)pixels)[i];
    default:
        return ((const double *)pixels)[i];
    }
}

START_TEST(test_exact)
{
    static const enum gpurun_dtype dtypes[] = {GPURUN_INT8, GPURUN_FLOAT, GPURUN_DOUBLE};
    const struct exact *e = &exacts[_i];
    const bool wide = e->most != 0 ? e->most > 255 : e->bits == 16;
    const struct file f = load(e->name);

    for (size_t d = 0; d < GPURUN_COUNT(dtypes); d++) {
        struct picture p;
        struct why why = {""};
        void *pixels = decode(&f, dtypes[d], &p, &why);
        const enum gpurun_dtype as = dtypes[d] == OWN ? picture_dtype(&p) : dtypes[d];
        size_t i = 0;

        ck_assert_msg(pixels != NULL, "%s: %s", e->name, why.text);
        ck_assert_int_eq(p.width, WIDTH);
        ck_assert_int_eq(p.height, HEIGHT);
        ck_assert_int_eq(p.channels, e->channels);
        ck_assert_int_eq(p.bits, wide ? 16 : 8);
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                for (int c = 0; c < e->channels; c++, i++)
                    if (element(pixels, as, i) != (double)expected(e, y, x, c))
                        ck_abort_msg("%s: (%d, %d, %d) is %g, not %u", e->name, y, x, c,
                                     element(pixels, as, i), expected(e, y, x, c));
        free(pixels);
    }
    free(f.bytes);
}
END_TEST

START_TEST(test_one_pixel)
{
    static const char *const names[] = {"one.png", "one_interlaced.png"};
    const struct file f = load(names[_i]);
    struct picture p;
    struct why why = {""};
    unsigned char *pixels = decode(&f, OWN, &p, &why);

    ck_assert_msg(pixels != NULL, "%s", why.text);
    ck_assert(p.width == 1 && p.height == 1 && p.channels == 3);
    ck_assert(pixels[0] == 7 && pixels[1] == 108 && pixels[2] == 209);
    free(pixels);
    free(f.bytes);
}
END_TEST

/* EXIF's 6 means: turn a quarter to the right. So the stored left column is the shown top row, from the
 * bottom up. */
START_TEST(test_png_orientation)
{
    const struct file f = load("exif6.png");
    struct picture p;
    struct why why = {""};
    unsigned char *pixels = decode(&f, OWN, &p, &why);
    int64_t dims[GPURUN_RANK_MAX];

    ck_assert_msg(pixels != NULL, "%s", why.text);
    ck_assert_int_eq(picture_dims(&p, dims), 3);
    ck_assert(dims[0] == WIDTH && dims[1] == HEIGHT && dims[2] == 3);
    for (int y = 0; y < WIDTH; y++)
        for (int x = 0; x < HEIGHT; x++)
            for (int c = 0; c < 3; c++)
                ck_assert_uint_eq(pixels[(y * HEIGHT + x) * 3 + c], value(8, HEIGHT - 1 - x, y, c));
    free(pixels);
    free(f.bytes);
}
END_TEST

/* --- JPEG ---------------------------------------------------------------------------------------- */

static const char *const smooths[] = {
    "gray.jpg",       "gray_progressive.jpg", "colour.jpg",        "colour_progressive.jpg",
    "colour_rgb.jpg", "colour_restarts.jpeg", "turned1.jpg",       "turned2.jpg",
    "turned3.jpg",    "turned4.jpg",          "turned5.jpg",       "turned6.jpg",
    "turned7.jpg",    "turned8.jpg",          "exif_elsewhere.jpg"};

static void check_smooth(const unsigned char *pixels, const struct picture *p, int tolerance)
{
    int64_t dims[GPURUN_RANK_MAX];

    picture_dims(p, dims);
    ck_assert_int_eq(dims[0], SMOOTH_HEIGHT);
    ck_assert_int_eq(dims[1], SMOOTH_WIDTH);
    for (int y = 0; y < SMOOTH_HEIGHT; y++)
        for (int x = 0; x < SMOOTH_WIDTH; x++)
            for (int c = 0; c < p->channels; c++) {
                const int got = pixels[(y * SMOOTH_WIDTH + x) * p->channels + c];
                const int want = 20 + 4 * y + 3 * x + 40 * c;

                if (abs(got - want) > tolerance)
                    ck_abort_msg("(%d, %d, %d) is %d, not near %d", y, x, c, got, want);
            }
}

/* At quality 100 a gradient comes back to within rounding; all eight orientations show the same. */
START_TEST(test_smooth)
{
    const struct file f = load(smooths[_i]);
    struct picture p;
    struct why why = {""};
    unsigned char *pixels = decode(&f, OWN, &p, &why);

    ck_assert_msg(pixels != NULL, "%s: %s", smooths[_i], why.text);
    ck_assert_int_eq(p.channels, strncmp(smooths[_i], "gray", 4) == 0 ? 1 : 3);
    if (strncmp(smooths[_i], "turned", 6) == 0)
        ck_assert_int_eq(p.orientation, smooths[_i][6] - '0');
    check_smooth(pixels, &p, 3);
    free(pixels);
    free(f.bytes);
}
END_TEST

/* A picture in many scans, the last of each component being the one that counts. */
START_TEST(test_scans)
{
    const struct file f = load("scans.jpg");
    struct picture p;
    struct why why = {""};
    unsigned char *pixels = decode(&f, OWN, &p, &why);

    ck_assert_msg(pixels != NULL, "%s", why.text);
    ck_assert(p.width == 8 && p.height == 8 && p.channels == 3);
    for (int i = 0; i < 8 * 8 * 3; i++)
        ck_assert_int_le(abs(pixels[i] - (20 + 4 * (i / 24) + 3 * (i / 3 % 8))), 3);
    free(pixels);
    free(f.bytes);
}
END_TEST

/* --- what is refused ------------------------------------------------------------------------------ */

static const struct bad {
    const char *name, *reason;
} bads[] = {
    {"bad_exif_after.png", "has its EXIF orientation after its pixels"},
    {"bad_exif_9.png", "its EXIF orientation is 9; there are 1 to 8"},
    {"bad_index.png", "its PNG data is damaged: colour 34 of a palette of 34"},
    {"bad_no_palette.png", "its PNG data is damaged: "},
    {"bad_short_data.png", "its PNG data is damaged: "},
    {"bad_critical.png", "its PNG data is damaged: "},
    {"bad_bits.png", "its PNG data is damaged: "},
    {"bad_none.png", "its PNG data is damaged: "},
    {"bad_widest.png", "its size is larger than any picture can be"},
    {"bad_cmyk.jpg", "holds CMYK colours, which gpurun does not read (convert it to RGB)"},
    {"bad_exif_0.jpg", "its EXIF orientation is 0; there are 1 to 8"},
    {"bad_exif_9.jpg", "its EXIF orientation is 9; there are 1 to 8"},
    {"bad_exif_long.jpg", "its EXIF orientation is no number"},
    {"bad_exif_order.jpg", "its EXIF data names no byte order"},
    {"bad_exif_magic.jpg", "its EXIF data does not start as EXIF does"},
    {"bad_exif_table.jpg", "its EXIF data is cut short"},
    {"bad_exif_cut.jpg", "its EXIF data is cut short"},
    {"bad_scans.jpg", "its JPEG data is damaged: more than 500 scans"},
    {"bad_two.jpg", "has 2 components that are no colours gpurun knows"},
    {"bad_precision.jpg", ""}, /* by the library or by us, as its version has it */
    {"bad_extra_bytes.jpg", "its JPEG data is damaged: Corrupt JPEG data: "},
    {"bad_value.pgm", "holds the value 101, above its largest of 100"},
    {"bad_raw_value.pgm", "holds the value 101, above its largest of 100"},
    {"bad_most.pgm", "its largest value is 65536; there are 1 to 65535"},
    {"bad_most_0.pgm", "its largest value is 0; there are 1 to 65535"},
    {"bad_no_pixels.pgm", "has no pixels"},
    {"bad_minus.pgm", "its width is no number"},
    {"bad_wide.pgm", "its width is above 2147483647"},
    {"bad_kind.pgm", "is no PBM, PGM or PPM picture"},
    {"bad_bit.pbm", "a pixel is neither 0 nor 1"},
    {"bad_letters.ppm", "its next value is no number"},
};

static void check_refused(const struct file *f, const char *name, const char *reason)
{
    struct picture p;
    struct why why = {""};
    void *pixels = decode(f, OWN, &p, &why);

    ck_assert_msg(pixels == NULL, "%s: was taken", name);
    ck_assert_msg(strncmp(why.text, reason, strlen(reason)) == 0, "%s: %s", name, why.text);
}

START_TEST(test_bad)
{
    const struct file f = load(bads[_i].name);

    check_refused(&f, bads[_i].name, bads[_i].reason);
    free(f.bytes);
}
END_TEST

START_TEST(test_another_kind)
{
    static const enum picture_format formats[] = {PICTURE_PNG, PICTURE_JPEG, PICTURE_PNM};
    static const char *const names[] = {"gray8.png", "gray.jpg", "raw255.pgm"};
    static const char *const reasons[] = {"is no PNG picture", "is no JPEG picture",
                                          "is no PBM, PGM or PPM picture"};

    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            struct file f = load(names[i]);

            f.format = formats[k];
            if (i != k)
                check_refused(&f, names[i], reasons[k]);
            free(f.bytes);
        }
}
END_TEST

/* A header may promise what it likes: nothing of that size is asked for. */
START_TEST(test_huge)
{
    const struct file f = load("huge.png");
    struct picture p;
    struct why why = {""};

    ck_assert_int_eq(picture_inspect(f.format, f.bytes, f.size, &p, &why), GPURUN_OK);
    ck_assert(p.width == 60000 && p.height == 50000 && p.channels == 3 && p.bits == 8);
    free(f.bytes);
}
END_TEST

static const char *const wholes[] = {"rgb8.png",
                                     "gray16_interlaced.png",
                                     "palette4_alpha.png",
                                     "gray8_key.png",
                                     "exif6.png",
                                     "extras.png",
                                     "gray.jpg",
                                     "colour_progressive.jpg",
                                     "turned6.jpg",
                                     "colour_restarts.jpeg",
                                     "raw255.ppm",
                                     "raw1000.pgm",
                                     "raw.pbm",
                                     "plain100.pgm",
                                     "plain65535.ppm",
                                     "plain.pbm"};

/* A block of just `size` bytes of a file. */
static struct file cut(const struct file *whole, size_t size)
{
    struct file f = {.bytes = malloc(size), .size = size, .format = whole->format};

    if (size > 0)
        memcpy(f.bytes, whole->bytes, size);
    return f;
}

/* Only the newline that ends a plain bitmap means nothing. */
START_TEST(test_cut_anywhere)
{
    const char *name = wholes[_i];
    const struct file whole = load(name);
    const size_t least = strcmp(name, "plain.pbm") == 0 ? whole.size - 1 : whole.size;

    for (size_t size = 0; size < least; size++) {
        const struct file f = cut(&whole, size);
        struct picture p;
        struct why why = {""};
        void *pixels = decode(&f, OWN, &p, &why);

        if (pixels != NULL || why.text[0] == '\0')
            ck_abort_msg("%s: %zu of %zu bytes: %s", name, size, whole.size, why.text);
        free(f.bytes);
    }
    free(whole.bytes);
}
END_TEST

START_TEST(test_bytes_after_the_end)
{
    const struct file whole = load(wholes[_i]);
    struct file f = cut(&whole, whole.size);
    struct picture p;
    struct why why = {""};
    void *pixels;

    f.size += 100;
    f.bytes = realloc(f.bytes, f.size);
    memset(f.bytes + whole.size, 0x5A, 100);
    pixels = decode(&f, OWN, &p, &why);
    ck_assert_msg(pixels != NULL, "%s: %s", wholes[_i], why.text);
    free(pixels);
    free(f.bytes);
    free(whole.bytes);
}
END_TEST

/* Every byte of a PNG is under a checksum, a length or the signature: no change goes unseen. */
START_TEST(test_png_changed_anywhere)
{
    static const unsigned char changes[] = {0x01, 0x20, 0x80, 0xFF};
    const struct file whole = load(wholes[_i]);

    for (size_t i = 0; i < whole.size; i++)
        for (size_t k = 0; k < sizeof changes; k++) {
            const struct file f = cut(&whole, whole.size);
            struct picture p;
            struct why why = {""};

            f.bytes[i] ^= changes[k];
            if (decode(&f, OWN, &p, &why) != NULL)
                ck_abort_msg("%s: byte %zu ^ %02x was taken", wholes[_i], i, changes[k]);
            free(f.bytes);
        }
    free(whole.bytes);
}
END_TEST

/* A file that is exchanged between the two looks at it. */
START_TEST(test_exchanged)
{
    const struct file f = load("rgb8.png"), other = load("rgb16.png");
    unsigned char pixels[WIDTH * HEIGHT * 3 * 2];
    struct picture p;
    struct why why = {""};

    ck_assert_int_eq(picture_inspect(f.format, f.bytes, f.size, &p, &why), GPURUN_OK);
    ck_assert_int_eq(
        picture_read(other.format, other.bytes, other.size, &p, GPURUN_UINT8, pixels, &why),
        GPURUN_ERROR);
    ck_assert_str_eq(why.text, "is another picture than when it was inspected");
    free(f.bytes);
    free(other.bytes);
}
END_TEST

/* --- writing ------------------------------------------------------------------------------------- */

static struct file encode(const char *path, enum gpurun_dtype dtype, int rank, const int64_t *dims,
                          const void *pixels)
{
    struct file f = {.format = picture_format(path)};
    struct picture p;
    struct why why = {""};

    ck_assert_msg(picture_of_array(path, dtype, rank, dims, &p, &why) == GPURUN_OK, "%s", why.text);
    ck_assert_msg(picture_write(f.format, &p, pixels, &f.bytes, &f.size, &why) == GPURUN_OK, "%s",
                  why.text);
    return f;
}

/* Every kind that is written comes back as it was. */
START_TEST(test_round_trip)
{
    static const char *const names[] = {"x.png", "x.pgm", "x.PPM"};
    static const int64_t shapes[][3] = {
        {1, 1, 1}, {5, 7, 1}, {64, 1, 1}, {3, 1000, 1}, {300, 200, 1}};
    unsigned char *pixels = malloc(300 * 200 * 4 * 2);

    for (int i = 0; i < 300 * 200 * 8; i++)
        pixels[i] = (unsigned char)(i * 7 + i / 256 * 13);
    for (int kind = 0; kind < 3 * 8 * 5; kind++) {
        const char *name = names[kind % 3];
        const int channels = kind / 3 % 4 + 1, wide = kind / 12 % 2;
        int64_t dims[GPURUN_RANK_MAX];
        struct file f;
        struct picture p;
        struct why why = {""};
        void *read;

        if ((kind % 3 == 1 && channels != 1) || (kind % 3 == 2 && channels != 3))
            continue;
        memcpy(dims, shapes[kind / 24], sizeof shapes[0]);
        dims[2] = channels;
        f = encode(name, wide ? GPURUN_UINT16 : GPURUN_UINT8, channels == 1 && wide ? 2 : 3, dims,
                   pixels);
        read = decode(&f, OWN, &p, &why);
        ck_assert_msg(read != NULL, "%s", why.text);
        ck_assert(p.height == dims[0] && p.width == dims[1] && p.channels == channels);
        ck_assert_int_eq(p.bits, wide ? 16 : 8);
        ck_assert_mem_eq(read, pixels, (size_t)(dims[0] * dims[1] * channels * (wide + 1)));
        free(read);
        free(f.bytes);
    }
    free(pixels);
}
END_TEST

START_TEST(test_pgm_bytes)
{
    static const uint16_t wide[] = {1, 2, 258, 65535};
    static const char expected_bytes[] = "P5\n2 2\n65535\n\0\1\0\2\1\2\xFF\xFF";
    const struct file f = encode("x.pgm", GPURUN_UINT16, 2, (const int64_t[]){2, 2}, wide);

    ck_assert_uint_eq(f.size, sizeof expected_bytes - 1);
    ck_assert_mem_eq(f.bytes, expected_bytes, f.size);
    free(f.bytes);
}
END_TEST

START_TEST(test_written_jpeg)
{
    const int channels = _i ? 3 : 1;
    unsigned char pixels[SMOOTH_HEIGHT * SMOOTH_WIDTH * 3];
    size_t i = 0;
    struct file f;
    struct picture p;
    struct why why = {""};
    unsigned char *read;

    for (int y = 0; y < SMOOTH_HEIGHT; y++)
        for (int x = 0; x < SMOOTH_WIDTH; x++)
            for (int c = 0; c < channels; c++)
                pixels[i++] = (unsigned char)(20 + 4 * y + 3 * x + 40 * c);
    f = encode("x.jpg", GPURUN_UINT8, 3, (const int64_t[]){SMOOTH_HEIGHT, SMOOTH_WIDTH, channels},
               pixels);
    read = decode(&f, OWN, &p, &why);
    ck_assert_msg(read != NULL, "%s", why.text);
    ck_assert_int_eq(p.channels, channels);
    check_smooth(read, &p, 8);
    free(read);
    free(f.bytes);
}
END_TEST

/* Larger than the piece that is written at once: noise does not compress. */
START_TEST(test_long_jpeg)
{
    enum { SIDE = 600 };
    unsigned char *pixels = malloc(SIDE * SIDE), *read;
    uint32_t random = 1;
    struct file f;
    struct picture p;
    struct why why = {""};

    for (int i = 0; i < SIDE * SIDE; i++)
        pixels[i] = (unsigned char)((random = random * 1664525 + 1013904223) >> 24);
    f = encode("x.jpeg", GPURUN_UINT8, 2, (const int64_t[]){SIDE, SIDE}, pixels);
    ck_assert_uint_gt(f.size, 1 << 17);
    read = decode(&f, OWN, &p, &why);
    ck_assert_msg(read != NULL, "%s", why.text);
    free(read);
    free(f.bytes);
    free(pixels);
}
END_TEST

static const struct no_picture {
    const char *path;
    enum gpurun_dtype dtype;
    int rank;
    int64_t dims[GPURUN_RANK_MAX];
    const char *reason;
} no_pictures[] = {
    {"x.png",
     GPURUN_FLOAT,
     2,
     {2, 2},
     "a picture holds uint8 or uint16, not float (name a .npy file)"},
    {"x.png", GPURUN_INT8, 2, {2, 2}, "a picture holds uint8 or uint16, not int8"},
    {"x.png", GPURUN_UINT8, 1, {4}, "a picture is [height][width] or that with 1 to 4 channels"},
    {"x.png", GPURUN_UINT8, 3, {2, 2, 5}, "a picture is [height][width]"},
    {"x.png", GPURUN_UINT8, 3, {2, 2, 0}, "a picture is [height][width]"},
    {"x.png", GPURUN_UINT8, 4, {2, 2, 2, 2}, "a picture is [height][width]"},
    {"x.png", GPURUN_UINT8, 2, {0, 2}, "a picture has at least one pixel"},
    {"x.png", GPURUN_UINT8, 2, {2, 0}, "a picture has at least one pixel"},
    {"x.png", GPURUN_UINT8, 2, {1, INT64_C(1) << 31}, "a PNG file has at most 2147483647 rows"},
    {"x.jpg", GPURUN_UINT8, 2, {65501, 1}, "a JPEG file has at most 65500 rows and columns"},
    {"x.jpg", GPURUN_UINT8, 3, {2, 2, 4}, "a JPEG file has no alpha channel (name a .png file)"},
    {"x.jpeg", GPURUN_UINT8, 3, {2, 2, 2}, "a JPEG file has no alpha channel"},
    {"x.JPG", GPURUN_UINT16, 2, {2, 2}, "a JPEG file holds uint8, not uint16 (name a .png file)"},
    {"x.pgm", GPURUN_UINT8, 3, {2, 2, 3}, "a .pgm file has 1 channel, not 3 (name a .png file)"},
    {"x.ppm", GPURUN_UINT8, 2, {2, 2}, "a .ppm file has 3 channels, not 1 (name a .png file)"},
    {"x.pbm", GPURUN_UINT8, 2, {2, 2}, "gpurun writes no .pbm (name a .pgm or .png file)"},
};

START_TEST(test_no_picture)
{
    const struct no_picture *c = &no_pictures[_i];
    struct picture p = {.width = 77};
    struct why why = {""};

    ck_assert_int_eq(picture_of_array(c->path, c->dtype, c->rank, c->dims, &p, &why),
                     GPURUN_INVALID);
    ck_assert_msg(strncmp(why.text, c->reason, strlen(c->reason)) == 0, "%s", why.text);
    ck_assert_int_eq(p.width, 77);
}
END_TEST

START_TEST(test_formats)
{
    ck_assert_int_eq(picture_format("a.png"), PICTURE_PNG);
    ck_assert_int_eq(picture_format("/a.b/c.JPeG"), PICTURE_JPEG);
    ck_assert_int_eq(picture_format("a.npy.PBM"), PICTURE_PNM);
    ck_assert_int_eq(picture_format("png"), PICTURE_NONE);
    ck_assert_int_eq(picture_format("a.png.npy"), PICTURE_NONE);
    ck_assert_int_eq(picture_format("a.bin"), PICTURE_NONE);
    ck_assert_int_eq(picture_format(""), PICTURE_NONE);
}
END_TEST

static Suite *picture_suite(void)
{
    Suite *suite = suite_create("picture");
    TCase *read = tcase_create("reading"), *refused = tcase_create("refused");
    TCase *write = tcase_create("writing");

    tcase_add_loop_test(read, test_exact, 0, GPURUN_COUNT(exacts));
    tcase_add_loop_test(read, test_one_pixel, 0, 2);
    tcase_add_test(read, test_png_orientation);
    tcase_add_loop_test(read, test_smooth, 0, GPURUN_COUNT(smooths));
    tcase_add_test(read, test_scans);
    tcase_add_loop_test(refused, test_bad, 0, GPURUN_COUNT(bads));
    tcase_add_test(refused, test_another_kind);
    tcase_add_test(refused, test_huge);
    tcase_add_loop_test(refused, test_cut_anywhere, 0, GPURUN_COUNT(wholes));
    tcase_add_loop_test(refused, test_bytes_after_the_end, 0, GPURUN_COUNT(wholes));
    tcase_add_loop_test(refused, test_png_changed_anywhere, 0, 6); /* the PNGs come first */
    tcase_add_test(refused, test_exchanged);
    tcase_set_timeout(refused, 60);
    tcase_add_test(write, test_round_trip);
    tcase_add_test(write, test_pgm_bytes);
    tcase_add_loop_test(write, test_written_jpeg, 0, 2);
    tcase_add_test(write, test_long_jpeg);
    tcase_add_loop_test(write, test_no_picture, 0, GPURUN_COUNT(no_pictures));
    tcase_add_test(write, test_formats);
    suite_add_tcase(suite, read);
    suite_add_tcase(suite, refused);
    suite_add_tcase(suite, write);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(picture_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
