/*
 * The baseline. Threads take bands of rows, and of a band a few strips of columns at a time. Rows are read where they
 * stand; where a strip reaches beyond an edge they are copied first, with what stands beyond it, into a ring of
 * lines, so that no inner loop asks where it is. Vectors of sums stay in registers while the mask goes by. A
 * separable mask goes down the lines first, in strips that stay in the cache until it has gone along them. Whole
 * numbers are summed in 16 bits where the mask allows it, else in 32.
 */
#include "conv_cpu.h"
#include "conv.h"
#include "gpurun/host_memory.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    BAND = 64,  /* rows that a thread takes at a time, at the least */
    EDGE = 192, /* elements of a strip at an edge: whole pixels, no fewer than half a mask */
    STRIP_MOST = 40 * EDGE,
    STREAM_BYTES = 1 << 23, /* of an answer that goes past the cache */
    ALIGNMENT = 64,         /* of lines, and of what is kept from row to row */
    STRIPS = 3,             /* that go down side by side: the edges and what is between */
};

_Static_assert(2 * (int)EDGE >= (int)REACH_MOST &&
                   (int)STRIP_MOST >= 2 * (int)EDGE + (int)CONV_CPU_SLACK + 2 * (int)REACH_MOST,
               "a line holds the longest strip that is copied");

/* What a thread works with. */
struct worker {
    const struct gpurun_ctx *ctx;
    const struct conv_cpu *cpu;
    int strips;  /* that go down side by side, at the most */
    char *rooms; /* one for each: a ring of lines, then what is kept from row to row */
    size_t line_bytes, ring_bytes, room_bytes;
    int64_t band;         /* rows that are taken at a time */
    int64_t elems, reach; /* of a row of the image; from a mask's first element to its last */
    int64_t left;         /* elements from there to the mask's centre; crop: 0 */
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

/* Elements `begin` to `end` of a row, whole pixels beyond one of its edges. */
static void put_outside(const struct worker *w, char *to, const char *row, int64_t begin,
                        int64_t end)
{
    const struct conv_options *o = conv_options_of(w->ctx);
    const int64_t size = (int64_t)elem_bytes(w->ctx) * o->channels;

    for (int64_t e = begin; e < end; e += o->channels, to += size) {
        const int64_t from = conv_border_at((int32_t)(e / o->channels), (int32_t)o->width,
                                            conv_state_of(w->ctx)->border);

        if (from < 0)
            put_fill(w->ctx, to, o->channels);
        else
            memcpy(to, row + from * size, (size_t)size);
    }
}

static int64_t between(int64_t least, int64_t value, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Elements `begin` to `end` of row y of the image, either of which may lie outside, and readable ones behind
 * them: where they stand, else copied to `line`. */
static const char *get_line(const struct worker *w, char *line, int64_t y, int64_t begin,
                            int64_t end)
{
    const struct conv_state *s = conv_state_of(w->ctx);
    const int64_t from =
        conv_border_at((int32_t)y, (int32_t)conv_options_of(w->ctx)->height, s->border);
    const int64_t size = (int64_t)elem_bytes(w->ctx);
    const int64_t inside = between(begin, 0, end), outside = between(begin, w->elems, end);
    const char *row;

    if (from < 0) {
        put_fill(w->ctx, line, end - begin);
        return line;
    }
    row = (const char *)s->image->host + from * s->in_pitch * size;
    if (begin >= 0 && end + CONV_CPU_SLACK <= w->elems)
        return row + begin * size;
    put_outside(w, line, row, begin, inside);
    memcpy(line + (inside - begin) * size, row + inside * size,
           (size_t)((outside - inside) * size));
    put_outside(w, line + (outside - begin) * size, row, outside, end);
    return line;
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

/* Where the image has element e of row y, or the nearest to it. */
static const char *place_in(const struct worker *w, int64_t y, int64_t e)
{
    const struct conv_state *s = conv_state_of(w->ctx);
    const int64_t row = between(0, y, conv_options_of(w->ctx)->height - 1);

    return (const char *)s->image->host +
           (row * s->in_pitch + between(0, e, w->elems - 1)) * (int64_t)elem_bytes(w->ctx);
}

/* Works out row y of the answer, between `begin` and `end`: its lines are there. */
static void run_row(const struct worker *w, struct conv_cpu_strip *strip, int64_t y, int64_t begin,
                    int64_t end)
{
    const struct conv_state *s = conv_state_of(w->ctx);
    const size_t size = elem_bytes(w->ctx);
    char *const out = (char *)s->filtered->host + (size_t)(y * s->out_pitch + strip->at) * size;

    strip->is_first = y == begin;
    strip->next_out = y + 1 < end ? out + (size_t)s->out_pitch * size : out;
    w->cpu->down(w->cpu, strip, out);
}

/* The line that follows those which row y of the answer needs, of a band that begins with row `begin`. */
static void follow_line(const struct worker *w, struct conv_cpu_strip *strip, int64_t y,
                        int64_t begin)
{
    const struct conv_state *s = conv_state_of(w->ctx);
    const int64_t height = s->mask.height, from = strip->at - w->left;
    const int64_t next = y + height - (s->border == CONV_CROP ? 0 : height / 2);
    char *const line = strip->room + (size_t)((y - begin + height) % (height + 1)) * w->line_bytes;

    memmove(strip->lines, strip->lines + 1, (size_t)height * sizeof *strip->lines);
    strip->lines[height] = get_line(w, line, next, from, from + strip->elems + w->reach);
    for (int64_t k = 0; k < 2; k++)
        strip->next_in[k] = place_in(w, next + 1 + k, from);
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How many elements of a row of the answer to take from `at` on. In place few at an edge, and then as many as need
 * nothing from beyond one. */
static int64_t strip_elems(const struct worker *w, int64_t at)
{
    const int64_t left = conv_out_elems(w->ctx) - at;
    const int64_t inside = w->elems - CONV_CPU_SLACK - w->reach - (at - w->left);
    const int64_t edge = at < w->left ? EDGE : 0;

    if (!w->cpu->in_place) {
        const int64_t strips = (left + w->cpu->strip_most - 1) / w->cpu->strip_most,
                      fair = (left + strips - 1) / strips;

        return least_of(left, (fair + EDGE - 1) / EDGE * EDGE);
    }
    if (inside < edge + EDGE)
        return left;
    return edge > 0 ? edge : least_of(inside - inside % EDGE, w->cpu->strip_most);
}

/* Takes the strips from column `at` on that go down together. Returns how many these are. */
static int take_strips(const struct worker *w, struct conv_cpu_strip *strips, int64_t at)
{
    int count = 0;

    for (; count < w->strips && at < conv_out_elems(w->ctx); count++) {
        struct conv_cpu_strip *strip = &strips[count];

        strip->at = at;
        strip->elems = strip_elems(w, at);
        strip->room = w->rooms + (size_t)count * w->room_bytes;
        strip->state = strip->room + w->ring_bytes;
        at += strip->elems;
    }
    return count;
}

/* Rows `begin` to `end` of the answer. */
static void run_band(const struct worker *w, int64_t begin, int64_t end)
{
    const struct conv_state *s = conv_state_of(w->ctx);
    const int64_t elems = conv_out_elems(w->ctx);
    struct conv_cpu_strip strips[STRIPS];

    for (int64_t at = 0; at < elems;) {
        const int count = take_strips(w, strips, at);

        for (int64_t y = begin - s->mask.height; y < end; y++)
            for (int k = 0; k < count; k++) {
                follow_line(w, &strips[k], y, begin);
                if (y >= begin)
                    run_row(w, &strips[k], y, begin, end);
            }
        at = strips[count - 1].at + strips[count - 1].elems;
    }
    for (int64_t y = begin; y < end && s->border == CONV_FRAME; y++)
        frame_row(w->ctx,
                  (char *)s->filtered->host + (size_t)(y * s->out_pitch) * elem_bytes(w->ctx), y);
}

/* A step along sums that the cache keeps pays where it halves the multiplications. */
static bool in_two_steps(const struct conv_mask *mask)
{
    return mask->is_separable && 2 * (mask->width + mask->height) < mask->width * mask->height;
}

/* Whether results go past the cache: more than stay in it. */
static bool is_streamed(const struct gpurun_ctx *ctx)
{
    const struct conv_state *s = conv_state_of(ctx);

    return (size_t)s->out_pitch * elem_bytes(ctx) * (size_t)s->out_height >= STREAM_BYTES;
}

enum conv_cpu_level conv_cpu_level(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni"))
        return CONV_CPU_AVX512;
    if (__builtin_cpu_supports("avx2"))
        return CONV_CPU_AVX2;
#endif
    return CONV_CPU_PLAIN;
}

/* How the sums of this mask are kept. */
static struct conv_cpu choose(const struct gpurun_ctx *ctx, enum conv_cpu_level level)
{
    const struct conv_state *s = conv_state_of(ctx);
    const struct conv_options *o = conv_options_of(ctx);
    const bool two_steps = in_two_steps(&s->mask);
    struct conv_cpu cpu = {.mask = &s->mask,
                           .tail = s->tail,
                           .scale = (float)o->scale,
                           .bias = (float)o->bias,
                           .channels = o->channels,
                           .level = level,
                           .in_place = s->mask.is_real,
                           .strip_most = STRIP_MOST,
                           .band = BAND};

    if (is_streamed(ctx))
        conv_cpu_use_stream(&cpu);
    cpu.is_unsigned = true;
    for (int k = 0; k < s->mask.width * s->mask.height; k++)
        cpu.is_unsigned = cpu.is_unsigned && s->mask.weight[k] >= 0;
    cpu.is_narrow = cpu.is_unsigned && s->tail.multiplier == 1 && s->tail.add >= 0 &&
                    !s->tail.is_even && !s->tail.is_wide &&
                    255 * s->mask.magnitude + (double)s->tail.add <= UINT16_MAX;
    if (s->mask.is_real)
        conv_cpu_use_float(&cpu, two_steps);
    else if (conv_cpu_use_bytes(&cpu) || conv_cpu_use_box(&cpu) || conv_cpu_use_symmetric(&cpu))
        return cpu;
    else if (255 * s->mask.magnitude <= (cpu.is_unsigned ? UINT16_MAX : INT16_MAX))
        conv_cpu_use_int16(&cpu, two_steps);
    else
        conv_cpu_use_int32(&cpu, two_steps);
    return cpu;
}

static void run_bands(const struct worker *w, int64_t *next)
{
    const int64_t rows = conv_state_of(w->ctx)->out_height;

    for (;;) {
        int64_t begin;

#pragma omp atomic capture
        {
            begin = *next;
            *next += w->band;
        }
        if (begin >= rows)
            return;
        run_band(w, begin, rows - begin < w->band ? rows : begin + w->band);
    }
}

/* So that every row starts aligned. */
static size_t rounded_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* As many bands for each thread, of about the rows that this kind of sum likes. */
static int64_t band_rows(int64_t rows, int64_t threads, int64_t likes)
{
    const int64_t bands = rows / likes / threads * threads;
    const int64_t each = bands > 0 ? (rows + bands - 1) / bands : (rows + threads - 1) / threads;

    return each < BAND ? BAND : each;
}

enum gpurun_status conv_run_cpu_at(struct gpurun_ctx *ctx, enum conv_cpu_level level)
{
    const struct conv_state *s = conv_state_of(ctx);
    const struct conv_options *o = conv_options_of(ctx);
    const struct conv_cpu cpu = choose(ctx, level);
    struct worker plain = {.ctx = ctx,
                           .cpu = &cpu,
                           .elems = o->width * o->channels,
                           .reach = (s->mask.width - 1) * o->channels,
                           .strips = cpu.in_place ? STRIPS : 1,
                           .band = band_rows(s->out_height, ctx->threads, cpu.band)};
    const int64_t longest = conv_out_elems(ctx) < STRIP_MOST ? conv_out_elems(ctx) : STRIP_MOST;
    const int64_t bands = (s->out_height + plain.band - 1) / plain.band;
    const int64_t threads = ctx->threads < bands ? ctx->threads : bands;
    size_t bytes;
    char *memory;
    int64_t next = 0;

    if (s->out_width == 0 || s->out_height == 0)
        return GPURUN_OK;
    plain.left = s->border == CONV_CROP ? 0 : plain.reach / 2;
    plain.line_bytes =
        rounded_up((size_t)(longest + plain.reach + CONV_CPU_SLACK) * elem_bytes(ctx));
    plain.ring_bytes = plain.line_bytes * (size_t)(s->mask.height + 1);
    plain.room_bytes = plain.ring_bytes + rounded_up(cpu.state_bytes);
    bytes = plain.room_bytes * (size_t)plain.strips;
    memory = aligned_alloc(ALIGNMENT, (size_t)threads * bytes);
    if (!memory)
        return gpurun_fail(ctx, GPURUN_NO_MEMORY, "threads",
                           "no host memory for %d lines for each of %" PRId64 " threads",
                           s->mask.height + 1, threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int64_t i = 0; i < threads; i++) {
        struct worker w = plain;

        w.rooms = memory + (size_t)i * bytes;
        for (int k = 0; k < w.strips; k++)
            memset(w.rooms + (size_t)k * w.room_bytes, 0, w.ring_bytes);
        run_bands(&w, &next);
        gpurun_end_past_caches();
    }
    free(memory);
    return GPURUN_OK;
}

enum gpurun_status conv_run_cpu(struct gpurun_ctx *ctx)
{
    return conv_run_cpu_at(ctx, conv_cpu_level());
}
