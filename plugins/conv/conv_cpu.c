/*
 * The baseline. Threads take bands of rows. Every row of the image is copied once into a line with what stands
 * beyond its edges, so that no inner loop asks where it is; the last lines stand in a ring. Vectors of sums
 * stay in registers while the mask goes by. A separable mask goes down the lines first, in strips that stay in the
 * cache until it has gone along them. Whole numbers are summed in 16 bits where the mask allows it, else in 32.
 */
#include "conv_cpu.h"
#include "conv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BAND = 64 }; /* rows that a thread takes at a time */

/* What a thread works with. */
struct worker {
    const struct gpurun_ctx *ctx;
    const struct conv_cpu *cpu;
    char *lines; /* a ring of as many rows as the mask has */
    size_t line_bytes;
};

static size_t elem_bytes(const struct gpurun_ctx *ctx)
{
    return gpurun_dtype_bytes(conv_state_of(ctx)->image->dtype);
}

static void put_fill(const struct gpurun_ctx *ctx, char *to, int64_t count)
{
    const float fill = (float)conv_state_of(ctx)->fill;

    if (elem_bytes(ctx) == 1)
        memset(to, (int)conv_state_of(ctx)->fill, (size_t)count);
    else
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * 4, &fill, 4);
}

/* One pixel beyond an edge of the line whose image part starts at `line`. */
static void extend(const struct gpurun_ctx *ctx, char *line, int64_t pixel)
{
    const struct conv_options *o = conv_options_of(ctx);
    const int64_t size = (int64_t)elem_bytes(ctx) * o->channels;
    const int64_t from =
        conv_border_at((int32_t)pixel, (int32_t)o->width, conv_state_of(ctx)->border);

    if (from < 0)
        put_fill(ctx, line + pixel * size, o->channels);
    else
        memcpy(line + pixel * size, line + from * size, (size_t)size);
}

/* Row y of the image with its surroundings; y may lie outside. */
static void load_line(const struct gpurun_ctx *ctx, char *line, int64_t y)
{
    const struct conv_options *o = conv_options_of(ctx);
    const struct conv_state *s = conv_state_of(ctx);
    const int64_t size = (int64_t)elem_bytes(ctx);
    const int64_t radius = s->border == CONV_CROP ? 0 : s->mask.width / 2;
    const int64_t from = conv_border_at((int32_t)y, (int32_t)o->height, s->border);
    char *image = line + radius * o->channels * size;

    if (from < 0) {
        put_fill(ctx, line, (o->width + 2 * radius) * o->channels);
        return;
    }
    memcpy(image, (const char *)s->image->host + from * s->in_pitch * size,
           (size_t)(o->width * o->channels * size));
    for (int64_t i = 1; i <= radius; i++) {
        extend(ctx, image, -i);
        extend(ctx, image, o->width - 1 + i);
    }
}

static void frame_row(const struct gpurun_ctx *ctx, char *row, int64_t y)
{
    const struct conv_options *o = conv_options_of(ctx);
    const struct conv_state *s = conv_state_of(ctx);
    const int64_t radius_x = s->mask.width / 2, radius_y = s->mask.height / 2;
    const int64_t size = (int64_t)elem_bytes(ctx) * o->channels;
    const bool is_all = y < radius_y || y >= o->height - radius_y || o->width <= 2 * radius_x;

    put_fill(ctx, row, (is_all ? o->width : radius_x) * o->channels);
    if (!is_all)
        put_fill(ctx, row + (o->width - radius_x) * size, radius_x * o->channels);
}

/* Rows `begin` to `end` of the answer. */
static void run_band(struct worker *w, int64_t begin, int64_t end)
{
    const struct conv_state *s = conv_state_of(w->ctx);
    const int64_t height = s->mask.height;
    const int64_t top =
        s->border == CONV_CROP ? 0 : -(height / 2); /* the first row that row 0 needs */
    const char *rows[CONV_SIZE_MAX];

    for (int64_t i = 0; i + 1 < height; i++)
        load_line(w->ctx, w->lines + (size_t)i * w->line_bytes, begin + top + i);
    for (int64_t y = begin; y < end; y++) {
        char *out = (char *)s->filtered->host + (size_t)(y * s->out_pitch) * elem_bytes(w->ctx);

        for (int64_t i = 0; i < height; i++)
            rows[i] = w->lines + (size_t)((y - begin + i) % height) * w->line_bytes;
        load_line(w->ctx, w->lines + (size_t)((y - begin + height - 1) % height) * w->line_bytes,
                  y + top + height - 1);
        w->cpu->down(w->cpu, rows, out);
        if (s->border == CONV_FRAME)
            frame_row(w->ctx, out, y);
    }
}

/* Two steps pay where they are fewer multiplications than one. */
static bool in_two_steps(const struct conv_mask *mask)
{
    return mask->is_separable && mask->width + mask->height < mask->width * mask->height;
}

/* How the sums of this mask are kept. */
static struct conv_cpu choose(const struct gpurun_ctx *ctx)
{
    const struct conv_state *s = conv_state_of(ctx);
    const struct conv_options *o = conv_options_of(ctx);
    const bool two_steps = in_two_steps(&s->mask);
    struct conv_cpu cpu = {.mask = &s->mask,
                           .tail = s->tail,
                           .scale = (float)o->scale,
                           .bias = (float)o->bias,
                           .channels = o->channels,
                           .elems = conv_out_elems(ctx)};

    cpu.is_unsigned = true;
    for (int k = 0; k < s->mask.width * s->mask.height; k++)
        cpu.is_unsigned = cpu.is_unsigned && s->mask.weight[k] >= 0;
    cpu.is_narrow = cpu.is_unsigned && s->tail.multiplier == 1 && s->tail.add >= 0 &&
                    !s->tail.is_even && !s->tail.is_wide &&
                    255 * s->mask.magnitude + (double)s->tail.add <= UINT16_MAX;
    if (s->mask.is_real)
        conv_cpu_use_float(&cpu, two_steps);
    else if (conv_cpu_use_symmetric(&cpu))
        return cpu;
    else if (255 * s->mask.magnitude <= (cpu.is_unsigned ? UINT16_MAX : INT16_MAX))
        conv_cpu_use_int16(&cpu, two_steps);
    else
        conv_cpu_use_int32(&cpu, two_steps);
    return cpu;
}

static void run_bands(struct worker *w, int64_t *next)
{
    const int64_t rows = conv_state_of(w->ctx)->out_height;

    for (;;) {
        int64_t begin;

#pragma omp atomic capture
        {
            begin = *next;
            *next += BAND;
        }
        if (begin >= rows)
            return;
        run_band(w, begin, rows - begin < BAND ? rows : begin + BAND);
    }
}

/* So that every row starts aligned. */
static size_t rounded_up(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

enum gpurun_status conv_run_cpu(struct gpurun_ctx *ctx)
{
    const struct conv_state *s = conv_state_of(ctx);
    const struct conv_options *o = conv_options_of(ctx);
    const struct conv_cpu cpu = choose(ctx);
    const size_t wide = (size_t)((o->width + s->mask.width) * o->channels) + CONV_CPU_SLACK;
    struct worker plain = {.ctx = ctx, .cpu = &cpu};
    const int64_t bands = (s->out_height + BAND - 1) / BAND;
    const int64_t threads = ctx->threads < bands ? ctx->threads : bands;
    size_t bytes;
    char *memory;
    int64_t next = 0;

    if (s->out_width == 0 || s->out_height == 0)
        return GPURUN_OK;
    plain.line_bytes = rounded_up(wide * elem_bytes(ctx));
    bytes = plain.line_bytes * (size_t)s->mask.height;
    memory = calloc((size_t)threads, bytes);
    if (!memory)
        return gpurun_fail(ctx, GPURUN_NO_MEMORY, "width",
                           "no host memory for %d rows of %" PRId64 " pixels per thread",
                           s->mask.height, o->width);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int64_t i = 0; i < threads; i++) {
        struct worker w = plain;

        w.lines = memory + (size_t)i * bytes;
        run_bands(&w, &next);
    }
    free(memory);
    return GPURUN_OK;
}
