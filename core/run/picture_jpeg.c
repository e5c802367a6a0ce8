/*
 * JPEG through libjpeg-turbo. Its errors and its warnings jump back to the function that called it, which
 * holds nothing of its own: all that lives is in struct reader or writer, whose owner frees it.
 */
#include "run/picture_codec.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

enum {
    QUALITY = 95,
    SCANS_MAX = 500, /* of a progressive picture: more are a trap, every one costs a pass */
    PIECE_BYTES = 1 << 16,
};

/* First in readers and writers: libjpeg hands back a pointer to it. */
struct escape {
    struct jpeg_error_mgr errors;
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
};

static void on_error(j_common_ptr info)
{
    struct escape *escape = (struct escape *)info->err;

    info->err->format_message(info, escape->text);
    longjmp(escape->back, 1);
}

/* Below 0 are warnings, above it traces. */
static void on_message(j_common_ptr info, int level)
{
    if (level < 0)
        on_error(info);
}

static struct jpeg_error_mgr *set_escape(struct escape *escape)
{
    jpeg_std_error(&escape->errors);
    escape->errors.error_exit = on_error;
    escape->errors.emit_message = on_message;
    return &escape->errors;
}

/* --- reading ------------------------------------------------------------------------------------ */

struct reader {
    struct escape escape;
    struct jpeg_decompress_struct info;
    struct jpeg_progress_mgr progress;
};

static void watch_scans(j_common_ptr info)
{
    struct reader *r = (struct reader *)info->err;

    if (r->info.input_scan_number <= SCANS_MAX)
        return;
    snprintf(r->escape.text, sizeof r->escape.text, "more than %d scans", SCANS_MAX);
    longjmp(r->escape.back, 1);
}

static bool read_header(struct reader *r, const unsigned char *bytes, size_t size)
{
    if (setjmp(r->escape.back) != 0)
        return false;
    jpeg_create_decompress(&r->info);
    r->progress.progress_monitor = watch_scans;
    r->info.progress = &r->progress;
    jpeg_mem_src(&r->info, bytes, (unsigned long)size);
    jpeg_save_markers(&r->info, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(&r->info, TRUE);
    return true;
}

static enum gpurun_status read_orientation(const struct reader *r, int *orientation,
                                           struct why *why)
{
    static const char name[] = "Exif\0"; /* and the 0 at its end */

    *orientation = 1;
    for (const struct jpeg_marker_struct *m = r->info.marker_list; m != NULL; m = m->next)
        if (m->data_length >= sizeof name && memcmp(m->data, name, sizeof name) == 0)
            return picture_exif(m->data + sizeof name, m->data_length - sizeof name, orientation,
                                why);
    return GPURUN_OK;
}

static enum gpurun_status understand_header(const struct reader *r, struct picture *out,
                                            struct why *why)
{
    const J_COLOR_SPACE space = r->info.jpeg_color_space;
    const bool is_gray = r->info.num_components == 1;

    if (space == JCS_CMYK || space == JCS_YCCK)
        return why_fail(why, GPURUN_ERROR,
                        "holds CMYK colours, which gpurun does not read (convert it to RGB)");
    if (!is_gray && space != JCS_YCbCr && space != JCS_RGB)
        return why_fail(why, GPURUN_ERROR,
                        "has %d components that are no colours gpurun knows (it reads gray, YCbCr "
                        "and RGB)",
                        r->info.num_components);
    if (r->info.data_precision != 8)
        return why_fail(why, GPURUN_ERROR, "has %d bits a value; gpurun reads JPEG of 8",
                        r->info.data_precision);
    out->width = r->info.image_width;
    out->height = r->info.image_height;
    out->channels = is_gray ? 1 : 3;
    out->bits = 8;
    return read_orientation(r, &out->orientation, why);
}

static bool read_pixels(struct reader *r, const struct picture *p, unsigned char *into)
{
    if (setjmp(r->escape.back) != 0)
        return false;
    r->info.out_color_space = p->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&r->info);
    while (r->info.output_scanline < r->info.output_height) {
        JSAMPROW row = into + r->info.output_scanline * picture_stride(p);

        jpeg_read_scanlines(&r->info, &row, 1);
    }
    jpeg_finish_decompress(&r->info);
    return true;
}

/* The header into *out and, unless `into` is NULL, the pixels. */
static enum gpurun_status decode(const unsigned char *bytes, size_t size, struct picture *out,
                                 unsigned char *into, struct why *why)
{
    struct reader r = {.info = {.mem = NULL}};
    enum gpurun_status status = GPURUN_OK;

    if (size < 3 || memcmp(bytes, "\xFF\xD8\xFF", 3) != 0)
        return why_fail(why, GPURUN_ERROR, "is no JPEG picture");
    r.info.err = set_escape(&r.escape);
    if (!read_header(&r, bytes, size))
        status = why_fail(why, GPURUN_ERROR, "its JPEG data is damaged: %s", r.escape.text);
    if (status == GPURUN_OK)
        status = understand_header(&r, out, why);
    if (status == GPURUN_OK && into != NULL && !read_pixels(&r, out, into))
        status = why_fail(why, GPURUN_ERROR, "its JPEG data is damaged: %s", r.escape.text);
    jpeg_destroy_decompress(&r.info);
    return status;
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

struct writer {
    struct escape escape;
    struct jpeg_compress_struct info;
    struct jpeg_destination_mgr target;
    struct picture_bytes *out;
    unsigned char piece[PIECE_BYTES];
};

static void start_piece(j_compress_ptr info)
{
    struct writer *w = (struct writer *)info->err;

    w->target.next_output_byte = w->piece;
    w->target.free_in_buffer = PIECE_BYTES;
}

static void give_bytes(struct writer *w, size_t size)
{
    if (picture_bytes_add(w->out, w->piece, size))
        return;
    snprintf(w->escape.text, sizeof w->escape.text, "no memory");
    longjmp(w->escape.back, 1);
}

static boolean give_piece(j_compress_ptr info)
{
    give_bytes((struct writer *)info->err, PIECE_BYTES);
    start_piece(info);
    return TRUE;
}

static void give_rest(j_compress_ptr info)
{
    struct writer *w = (struct writer *)info->err;

    give_bytes(w, PIECE_BYTES - w->target.free_in_buffer);
}

static bool encode(struct writer *w, const struct picture *p, const unsigned char *pixels)
{
    if (setjmp(w->escape.back) != 0)
        return false;
    jpeg_create_compress(&w->info);
    w->info.dest = &w->target;
    w->info.image_width = (JDIMENSION)p->width;
    w->info.image_height = (JDIMENSION)p->height;
    w->info.input_components = p->channels;
    w->info.in_color_space = p->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&w->info);
    jpeg_set_quality(&w->info, QUALITY, TRUE);
    jpeg_start_compress(&w->info, TRUE);
    while (w->info.next_scanline < w->info.image_height) {
        JSAMPROW row = (JSAMPROW)pixels + w->info.next_scanline * picture_stride(p);

        jpeg_write_scanlines(&w->info, &row, 1);
    }
    jpeg_finish_compress(&w->info);
    return true;
}

static enum gpurun_status write_picture(const struct picture *p, const void *pixels,
                                        struct picture_bytes *out, struct why *why)
{
    struct writer w = {.out = out};
    bool good;

    w.info.err = set_escape(&w.escape);
    w.target = (struct jpeg_destination_mgr){.init_destination = start_piece,
                                             .empty_output_buffer = give_piece,
                                             .term_destination = give_rest};
    good = encode(&w, p, pixels);
    jpeg_destroy_compress(&w.info);
    return good ? GPURUN_OK : why_fail(why, GPURUN_ERROR, "%s", w.escape.text);
}

const struct picture_codec picture_jpeg = {"JPEG", inspect, read_picture, write_picture};
