/*
 * PBM, PGM and PPM, plain (P1 to P3) and raw (P4 to P6). A black bit is 0 and a white one 255; values up
 * to a largest one of 255 or 65535 stay as they are, others are stretched to that range.
 */
#include "run/picture_codec.h"

#include <stdio.h>
#include <string.h>

struct cursor {
    const unsigned char *at, *end;
};

struct header {
    int kind;     /* 1 to 6 */
    int64_t most; /* the largest value */
    struct cursor pixels;
};

static bool is_blank(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Blanks, and comments from # to the line's end. */
static void skip_blanks(struct cursor *c)
{
    bool comment = false;

    for (; c->at < c->end && (comment || *c->at == '#' || is_blank(*c->at)); c->at++)
        comment = *c->at == '#' || (comment && *c->at != '\n' && *c->at != '\r');
}

/* A number and the one character that ends it: a number at the file's end may have lost digits. */
static enum gpurun_status take_number(struct cursor *c, const char *what, int64_t *out,
                                      struct why *why)
{
    const unsigned char *start;

    skip_blanks(c);
    *out = 0;
    for (start = c->at; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        *out = *out * 10 + (*c->at - '0');
        if (*out > INT32_MAX)
            return why_fail(why, GPURUN_ERROR, "its %s is above %d", what, INT32_MAX);
    }
    if (c->at == c->end)
        return why_fail(why, GPURUN_ERROR, "is cut short: it ends where its %s is", what);
    if (c->at == start || !(is_blank(*c->at) || *c->at == '#'))
        return why_fail(why, GPURUN_ERROR, "its %s is no number", what);
    return GPURUN_OK;
}

static enum gpurun_status read_header(const unsigned char *bytes, size_t size, struct picture *p,
                                      struct header *h, struct why *why)
{
    struct cursor c = {bytes + 2, bytes + size};

    if (size < 2 || bytes[0] != 'P' || bytes[1] < '1' || bytes[1] > '6')
        return why_fail(why, GPURUN_ERROR, "is no PBM, PGM or PPM picture");
    h->kind = bytes[1] - '0';
    h->most = 1;
    GPURUN_TRY(take_number(&c, "width", &p->width, why));
    GPURUN_TRY(take_number(&c, "height", &p->height, why));
    if (h->kind % 3 != 1)
        GPURUN_TRY(take_number(&c, "largest value", &h->most, why));
    if (p->width == 0 || p->height == 0)
        return why_fail(why, GPURUN_ERROR, "has no pixels");
    if (h->most < 1 || h->most > 65535)
        return why_fail(why, GPURUN_ERROR, "its largest value is %lld; there are 1 to 65535",
                        (long long)h->most);
    if (*c.at == '#') /* a comment may end the last number, then its line's end does */
        while (c.at < c.end - 1 && *c.at != '\n')
            c.at++;
    c.at++;
    h->pixels = c;
    p->channels = h->kind % 3 == 0 ? 3 : 1;
    p->bits = h->most > 255 ? 16 : 8;
    return GPURUN_OK;
}

static enum gpurun_status inspect(const unsigned char *bytes, size_t size, struct picture *out,
                                  struct why *why)
{
    struct header h;

    return read_header(bytes, size, out, &h, why);
}

/* --- pixels ------------------------------------------------------------------------------------- */

/* To the nearest of the full range. */
static enum gpurun_status put(const struct picture *p, const struct header *h, int64_t value,
                              size_t i, unsigned char *into, struct why *why)
{
    const int64_t full = p->bits == 16 ? 65535 : 255;
    uint16_t wide;

    if (value > h->most)
        return why_fail(why, GPURUN_ERROR, "holds the value %lld, above its largest of %lld",
                        (long long)value, (long long)h->most);
    wide = (uint16_t)(h->most == full ? value : (value * full + h->most / 2) / h->most);
    if (p->bits == 16)
        memcpy(into + 2 * i, &wide, sizeof wide);
    else
        into[i] = (unsigned char)wide;
    return GPURUN_OK;
}

/* In plain bitmaps digits need nothing between them. */
static enum gpurun_status take_bit(struct cursor *c, int64_t *out, struct why *why)
{
    skip_blanks(c);
    if (c->at == c->end)
        return why_fail(why, GPURUN_ERROR, "is cut short: it ends within its pixels");
    if (*c->at != '0' && *c->at != '1')
        return why_fail(why, GPURUN_ERROR, "a pixel is neither 0 nor 1");
    *out = *c->at++ == '0';
    return GPURUN_OK;
}

static enum gpurun_status read_plain(const struct picture *p, struct header *h, size_t values,
                                     unsigned char *into, struct why *why)
{
    for (size_t i = 0; i < values; i++) {
        int64_t value = 0;

        if (h->kind == 1)
            GPURUN_TRY(take_bit(&h->pixels, &value, why));
        else
            GPURUN_TRY(take_number(&h->pixels, "next value", &value, why));
        GPURUN_TRY(put(p, h, value, i, into, why));
    }
    return GPURUN_OK;
}

/* Rows of bits start at whole bytes. */
static void read_bits(const struct picture *p, const struct header *h, unsigned char *into)
{
    const size_t row = ((size_t)p->width + 7) / 8;

    for (size_t y = 0; y < (size_t)p->height; y++)
        for (size_t x = 0; x < (size_t)p->width; x++)
            *into++ = h->pixels.at[y * row + x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
}

static enum gpurun_status read_raw(const struct picture *p, const struct header *h, size_t values,
                                   unsigned char *into, struct why *why)
{
    const size_t held = (size_t)(h->pixels.end - h->pixels.at);
    const size_t wanted = h->kind == 4 ? ((size_t)p->width + 7) / 8 * (size_t)p->height
                                       : values * (size_t)(p->bits / 8);

    if (held < wanted)
        return why_fail(why, GPURUN_ERROR, "is cut short: its pixels take %zu bytes, it holds %zu",
                        wanted, held);
    if (h->kind == 4) {
        read_bits(p, h, into);
        return GPURUN_OK;
    }
    for (size_t i = 0; i < values; i++) {
        const unsigned char *at = h->pixels.at + i * (size_t)(p->bits / 8);

        GPURUN_TRY(put(p, h, p->bits == 16 ? at[0] << 8 | at[1] : at[0], i, into, why));
    }
    return GPURUN_OK;
}

static enum gpurun_status read_picture(const unsigned char *bytes, size_t size,
                                       const struct picture *p, void *into, struct why *why)
{
    const size_t values = (size_t)p->width * (size_t)p->height * (size_t)p->channels;
    struct picture now = {.width = 0};
    struct header h;

    GPURUN_TRY(read_header(bytes, size, &now, &h, why));
    return h.kind <= 3 ? read_plain(p, &h, values, into, why) : read_raw(p, &h, values, into, why);
}

/* --- writing ------------------------------------------------------------------------------------ */

/* Two bytes a value stand in the other order than in memory. */
static bool add_row(struct picture_bytes *out, const unsigned char *row, size_t bytes, int bits)
{
    const size_t start = out->size;

    if (!picture_bytes_add(out, row, bytes))
        return false;
    for (size_t i = start; bits == 16 && i < out->size; i += 2) {
        const unsigned char first = out->data[i];

        out->data[i] = out->data[i + 1];
        out->data[i + 1] = first;
    }
    return true;
}

static enum gpurun_status write_picture(const struct picture *p, const void *pixels,
                                        struct picture_bytes *out, struct why *why)
{
    const unsigned char *row = pixels;
    char header[80];
    const int length =
        snprintf(header, sizeof header, "P%d\n%lld %lld\n%d\n", p->channels == 3 ? 6 : 5,
                 (long long)p->width, (long long)p->height, p->bits == 16 ? 65535 : 255);
    bool good = picture_bytes_add(out, header, (size_t)length);

    for (int64_t y = 0; good && y < p->height; y++, row += picture_stride(p))
        good = add_row(out, row, picture_stride(p), p->bits);
    return good ? GPURUN_OK : why_fail(why, GPURUN_NO_MEMORY, "no memory");
}

const struct picture_codec picture_pnm = {"PGM or PPM", inspect, read_picture, write_picture};
