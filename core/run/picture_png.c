/*
 * PNG through libpng. Its errors and its warnings jump back to the function that called it, which holds
 * nothing of its own: all that lives is in struct png_job, whose owner frees it.
 */
#include "run/picture_codec.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

struct png_job {
    png_structp png;
    png_infop info;
    jmp_buf escape;
    struct why *why;
    const char *complaint; /* what stands before libpng's own words */
    const unsigned char *bytes;
    size_t left; /* to be read */
    struct picture_bytes *out;
    unsigned char *indices; /* a palette's pixels */
};

static void on_error(png_structp png, png_const_charp text)
{
    struct png_job *job = png_get_error_ptr(png);

    why_fail(job->why, GPURUN_ERROR, "%s%s", job->complaint, text);
    longjmp(job->escape, 1);
}

static void take_bytes(png_structp png, png_bytep into, size_t size)
{
    struct png_job *job = png_get_io_ptr(png);

    if (size > job->left)
        png_error(png, "the file is cut short");
    memcpy(into, job->bytes, size);
    job->bytes += size;
    job->left -= size;
}

/* --- reading ------------------------------------------------------------------------------------ */

/* Chunks that do not change a pixel: skipped, so that a complaint about a colour profile is none about
 * the picture. Their checksums are still looked at. */
static const png_byte skipped_chunks[][5] = {"bKGD", "cHRM", "gAMA", "hIST", "iCCP", "iTXt",
                                             "oFFs", "pCAL", "pHYs", "sBIT", "sCAL", "sPLT",
                                             "sRGB", "tEXt", "tIME", "zTXt"};

static void prepare_reading(struct png_job *job)
{
    png_set_read_fn(job->png, job, take_bytes);
    png_set_user_limits(job->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_crc_action(job->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_benign_errors(job->png, 0);
    png_set_keep_unknown_chunks(job->png, PNG_HANDLE_CHUNK_NEVER, skipped_chunks[0],
                                (int)GPURUN_COUNT(skipped_chunks));
}

static bool has_palette(const struct png_job *job)
{
    return png_get_color_type(job->png, job->info) == PNG_COLOR_TYPE_PALETTE;
}

/* What EXIF says, wherever it stands; 0 with the reason noted. */
static int read_orientation(struct png_job *job)
{
    png_bytep block = NULL;
    png_uint_32 size = 0;
    int orientation = 1;

    if (png_get_eXIf_1(job->png, job->info, &size, &block) == 0)
        return 1;
    return picture_exif(block, size, &orientation, job->why) == GPURUN_OK ? orientation : 0;
}

static bool read_header(struct png_job *job, struct picture *out)
{
    if (setjmp(job->escape) != 0)
        return false;
    prepare_reading(job);
    png_read_info(job->png, job->info);
    out->width = png_get_image_width(job->png, job->info);
    out->height = png_get_image_height(job->png, job->info);
    out->bits = png_get_bit_depth(job->png, job->info) == 16 ? 16 : 8;
    out->channels = has_palette(job) ? 3 : png_get_channels(job->png, job->info);
    if (png_get_valid(job->png, job->info, PNG_INFO_tRNS))
        out->channels++;
    out->orientation = read_orientation(job);
    return out->orientation != 0;
}

/* Values of whole bytes in the machine's order; a palette's indices stay indices. */
static void prepare_pixels(struct png_job *job, const struct picture *p)
{
    if (has_palette(job)) {
        png_set_packing(job->png);
    } else {
        if (png_get_bit_depth(job->png, job->info) < 8)
            png_set_expand_gray_1_2_4_to_8(job->png);
        if (png_get_valid(job->png, job->info, PNG_INFO_tRNS))
            png_set_tRNS_to_alpha(job->png);
        if (p->bits == 16)
            png_set_swap(job->png);
    }
}

/* Every pass of an interlaced picture goes over all rows. */
static void read_rows(struct png_job *job, const struct picture *p, unsigned char *into,
                      size_t stride)
{
    const int passes = png_set_interlace_handling(job->png);

    png_start_read_image(job->png);
    for (int i = 0; i < passes; i++)
        for (int64_t y = 0; y < p->height; y++)
            png_read_row(job->png, into + (size_t)y * stride, NULL);
    png_read_end(job->png, job->info);
}

static bool read_pixels(struct png_job *job, const struct picture *p, unsigned char *into,
                        size_t stride)
{
    int orientation;

    if (setjmp(job->escape) != 0)
        return false;
    prepare_pixels(job, p);
    read_rows(job, p, into, stride);
    orientation = read_orientation(job);
    if (orientation != 0 && orientation != p->orientation)
        why_fail(job->why, GPURUN_ERROR,
                 "has its EXIF orientation after its pixels, where gpurun does not look for it");
    return orientation == p->orientation;
}

/* An index beyond the palette is damage that libpng lets pass. */
static bool look_up(struct png_job *job, const struct picture *p, unsigned char *into)
{
    png_colorp colours = NULL;
    png_bytep alpha = NULL;
    int count = 0, alpha_count = 0;

    png_get_PLTE(job->png, job->info, &colours, &count);
    png_get_tRNS(job->png, job->info, &alpha, &alpha_count, NULL);
    for (size_t i = 0; i < (size_t)p->width * (size_t)p->height; i++) {
        const int index = job->indices[i];

        if (index >= count) {
            why_fail(job->why, GPURUN_ERROR, "%scolour %d of a palette of %d", job->complaint,
                     index, count);
            return false;
        }
        *into++ = colours[index].red;
        *into++ = colours[index].green;
        *into++ = colours[index].blue;
        if (p->channels == 4)
            *into++ = index < alpha_count ? alpha[index] : 255;
    }
    return true;
}

static bool read_palette(struct png_job *job, const struct picture *p, unsigned char *into)
{
    job->indices = malloc((size_t)p->width * (size_t)p->height);
    if (job->indices == NULL) {
        why_fail(job->why, GPURUN_NO_MEMORY, "no memory to decode it");
        return false;
    }
    return read_pixels(job, p, job->indices, (size_t)p->width) && look_up(job, p, into);
}

/* The header into *out and, unless `into` is NULL, the pixels. */
static enum gpurun_status decode(const unsigned char *bytes, size_t size, struct picture *out,
                                 unsigned char *into, struct why *why)
{
    struct png_job job = {
        .why = why, .complaint = "its PNG data is damaged: ", .bytes = bytes, .left = size};
    bool good;

    if (size < 8 || png_sig_cmp(bytes, 0, 8) != 0)
        return why_fail(why, GPURUN_ERROR, "is no PNG picture");
    job.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, on_error, on_error);
    job.info = job.png ? png_create_info_struct(job.png) : NULL;
    if (job.info == NULL) {
        png_destroy_read_struct(&job.png, NULL, NULL);
        return why_fail(why, GPURUN_NO_MEMORY, "no memory to decode it");
    }
    good = read_header(&job, out);
    if (good && into != NULL)
        good = has_palette(&job) ? read_palette(&job, out, into)
                                 : read_pixels(&job, out, into, picture_stride(out));
    png_destroy_read_struct(&job.png, &job.info, NULL);
    free(job.indices);
    return good ? GPURUN_OK : GPURUN_ERROR;
}

static enum gpurun_status inspect(const unsigned char *bytes, size_t size, struct picture *out,
                                  struct why *why)
{
    return decode(bytes, size, out, NULL, why);
}

static enum gpurun_status read_picture(const unsigned char *bytes, size_t size,
                                       const struct picture *p, void *into, struct why *why)
{
    struct picture now = *p;

    return decode(bytes, size, &now, into, why);
}

/* --- writing ------------------------------------------------------------------------------------ */

static void give_bytes(png_structp png, png_bytep from, size_t size)
{
    struct png_job *job = png_get_io_ptr(png);

    if (!picture_bytes_add(job->out, from, size))
        png_error(png, "no memory");
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

static bool encode(struct png_job *job, const struct picture *p, const unsigned char *pixels)
{
    static const int kinds[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};

    if (setjmp(job->escape) != 0)
        return false;
    png_set_write_fn(job->png, job, give_bytes, flush_nothing);
    png_set_user_limits(job->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(job->png, job->info, (png_uint_32)p->width, (png_uint_32)p->height, p->bits,
                 kinds[p->channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(job->png, job->info);
    if (p->bits == 16)
        png_set_swap(job->png);
    for (int64_t y = 0; y < p->height; y++)
        png_write_row(job->png, pixels + (size_t)y * picture_stride(p));
    png_write_end(job->png, NULL);
    return true;
}

static enum gpurun_status write_picture(const struct picture *p, const void *pixels,
                                        struct picture_bytes *out, struct why *why)
{
    struct png_job job = {.why = why, .complaint = "", .out = out};
    bool good = false;

    job.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &job, on_error, on_error);
    job.info = job.png ? png_create_info_struct(job.png) : NULL;
    if (job.info == NULL)
        why_fail(why, GPURUN_ERROR, "no memory");
    else
        good = encode(&job, p, pixels);
    png_destroy_write_struct(&job.png, &job.info);
    return good ? GPURUN_OK : GPURUN_ERROR;
}

const struct picture_codec picture_png = {"PNG", inspect, read_picture, write_picture};
