/*
 * The baseline of conv against sums added up here one by one: symmetric masks of every size and strength, whose
 * factors fit 16 bits or do not, boxes, small weights, rows longer than a strip, and answers that go past the cache.
 */
#include "conv.h"
#include "conv_cpu.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct gpurun_ctx ctx; /* first: the core gets its address */
    struct conv_options options;
    struct conv_state state;
    struct gpurun_tensor image, filtered;
    char message[512];
};

#include "plugin_core.h"

static const struct gpurun_core fake_core = {
    .struct_size = sizeof(struct gpurun_core), .fail = fake_fail, .wrong = fake_wrong};

/* A job on an image of no border, which holds `image`. */
static struct job *job_new_of(enum gpurun_dtype dtype, const char *mask, int64_t width,
                              int64_t height, int64_t channels, void *image)
{
    struct job *job = calloc(1, sizeof(*job));
    struct conv_state *s = &job->state;
    char why[200];

    ck_assert_msg(conv_mask_parse(&s->mask, mask, dtype == GPURUN_FLOAT, 0, why, sizeof why), "%s",
                  why);
    job->ctx =
        (struct gpurun_ctx){.core = &fake_core, .options = &job->options, .state = s, .threads = 2};
    job->options =
        (struct conv_options){.width = width, .height = height, .channels = channels, .scale = 1};
    s->border = CONV_CROP;
    s->out_width = width - s->mask.width + 1;
    s->out_height = height - s->mask.height + 1;
    s->in_pitch = width * channels;
    s->out_pitch = s->out_width * channels;
    job->image = (struct gpurun_tensor){.dtype = dtype, .host = image};
    job->filtered = (struct gpurun_tensor){.dtype = dtype};
    ck_assert_int_eq(
        posix_memalign(&job->filtered.host, 64,
                       (size_t)(s->out_height * s->out_pitch) * gpurun_dtype_bytes(dtype)),
        0);
    s->image = &job->image;
    s->filtered = &job->filtered;
    return job;
}

/* Of bytes, with the sums' upper bits for an answer. */
static struct job *job_new(const char *mask, int64_t width, int64_t height, int64_t channels,
                           uint8_t *image)
{
    return job_new_of(GPURUN_UINT8, mask, width, height, channels, image);
}

static void job_free(struct job *job)
{
    free(job->filtered.host);
    free(job);
}

/* The sum at a place of the answer, before scale and bias. */
static int64_t sum_at(const struct job *job, int64_t y, int64_t e)
{
    const struct conv_state *s = &job->state;
    const uint8_t *image = job->image.host;
    int64_t sum = 0;

    for (int i = 0; i < s->mask.height; i++)
        for (int j = 0; j < s->mask.width; j++)
            sum += (int64_t)s->mask.weight[i * s->mask.width + j] *
                   image[(y + i) * s->in_pitch + e + j * job->options.channels];
    return sum;
}

/* floor((sum * multiplier + add) / 2^shift), or where half of 2^shift in `add` rounds, with ties to even on request,
 * saturated. */
static int result_of(int64_t sum, const struct conv_tail *tail)
{
    const double exact = ldexp((double)sum * tail->multiplier + (double)tail->add, -tail->shift);
    const double result = tail->is_even ? rint(exact - 0.5) : floor(exact);

    return result < 0 ? 0 : result > 255 ? 255 : (int)result;
}

/* What each `step`th row of the answer should be. */
static uint8_t *make_right(const struct job *job, int64_t step)
{
    const struct conv_state *s = &job->state;
    uint8_t *right = malloc((size_t)(s->out_height * s->out_pitch));

    for (int64_t y = 0; y < s->out_height; y += step)
        for (int64_t e = 0; e < s->out_pitch; e++)
            right[y * s->out_pitch + e] = (uint8_t)result_of(sum_at(job, y, e), &s->tail);
    return right;
}

/* Each `step`th row, by all that the processor has, and by less. No assertion per element: Check notes down each that
 * holds. */
static void expect_rows(struct job *job, int64_t step)
{
    const struct conv_state *s = &job->state;
    uint8_t *filtered = job->filtered.host, *right = make_right(job, step);

    for (int level = CONV_CPU_PLAIN; level <= (int)conv_cpu_level(); level++) {
        memset(filtered, 0x5a, (size_t)(s->out_height * s->out_pitch));
        ck_assert_int_eq(conv_run_cpu_at(&job->ctx, (enum conv_cpu_level)level), GPURUN_OK);
        for (int64_t y = 0; y < s->out_height; y += step)
            for (int64_t e = y * s->out_pitch; e < (y + 1) * s->out_pitch; e++)
                if (filtered[e] != right[e])
                    ck_abort_msg("level %d, row %lld, element %lld is %d, should be %d", level,
                                 (long long)y, (long long)(e - y * s->out_pitch), filtered[e],
                                 right[e]);
    }
    free(right);
}

/* Of rows the first and the last. */
static void expect_right(struct job *job)
{
    expect_rows(job, job->state.out_height > 2 ? job->state.out_height - 1 : 1);
}

/* Times `multiplier`, through `shift` bits, and 100 more. */
static struct conv_tail tail_of(int multiplier, int shift, bool is_even, bool is_wide)
{
    const int64_t half = shift > 0 ? INT64_C(1) << (shift - 1) : 0;

    return (struct conv_tail){.add = (INT64_C(100) << shift) + half,
                              .multiplier = multiplier,
                              .shift = shift,
                              .is_even = is_even && shift > 0,
                              .is_wide = is_wide};
}

static uint8_t *make_image(size_t bytes)
{
    uint8_t *image = malloc(bytes);

    for (size_t i = 0; i < bytes; i++)
        image[i] = (uint8_t)(i % 7 == 0 ? 255 : i * i >> 3);
    return image;
}

static int weight_at(int i, int size, int most)
{
    const int from_edge = i < size - 1 - i ? i : size - 1 - i;

    return (from_edge * 7919 + size * 10007) % (2 * most + 1) - most;
}

/* A column of small weights times a row of weights up to `most`, each the same from both ends. */
static void write_mask(char *text, int rows, int columns, int most)
{
    for (int k = 0; k < rows * columns; k++)
        text += sprintf(text, "%d%s",
                        weight_at(k / columns, rows, 3) * weight_at(k % columns, columns, most),
                        k + 1 == rows * columns      ? ""
                        : k % columns == columns - 1 ? " / "
                                                     : " ");
}

static const int mosts[] = {1, 30, 600, 1023, 1024, 1030};

static void expect_symmetric(int rows, int columns, int most, int channels)
{
    enum { WIDTH = 70, HEIGHT = 32 };
    uint8_t *image = make_image((size_t)(WIDTH * HEIGHT * channels));
    char *text = malloc(CONV_TAPS_MAX * 8);
    struct job *job;
    int shift;

    write_mask(text, rows, columns, most);
    job = job_new(text, WIDTH, rows + 1, channels, image);
    shift = (int)log2(job->state.mask.magnitude + 1);
    for (int is_even = 0; is_even < 2; is_even++) {
        job->state.tail = tail_of(1, shift, is_even, true);
        expect_right(job);
        job->state.tail = tail_of(1, shift < 23 ? shift : 22, is_even, false);
        expect_right(job);
    }
    job_free(job);
    free(image);
    free(text);
}

START_TEST(symmetric_masks_of_every_size_and_strength)
{
    expect_symmetric(3 + _i % 15 * 2, 31 - _i % 15 * 2, mosts[_i / 15], 3);
}
END_TEST

START_TEST(small_symmetric_masks)
{
    for (int channels = 1; channels <= 4; channels++)
        expect_symmetric(3 + _i % 4 * 2, 3 + _i / 4 % 4 * 2, mosts[_i / 16], channels);
}
END_TEST

/* Rows of weights that are equal but for the middle one, about multiples of 32, and columns up to what a word holds 32
 * times: white above, black and white below. */
START_TEST(digits_as_heavy_as_words_hold)
{
    static const int rows[][2] = {{16, 17},   {15, 16},     {-16, -17}, {272, 271},
                                  {271, 272}, {-272, -271}, {293, 297}, {-293, -297}};
    static const int columns[][2] = {{1023, 1}, {-1023, 1}, {1, 800}, {1024, 1}};
    enum { SIDE = 7, WIDTH = 100, HEIGHT = 31 };
    uint8_t image[WIDTH * HEIGHT];
    char text[SIDE * SIDE * 12];
    struct job *job;
    char *at = text;

    for (int k = 0; k < SIDE * SIDE; k++)
        at += sprintf(at, "%d%s",
                      columns[_i % 4][k / SIDE != 0 && k / SIDE != SIDE - 1] *
                          rows[_i / 4][k % SIDE == SIDE / 2],
                      k % SIDE == SIDE - 1 && k < SIDE * SIDE - 1 ? " / " : " ");
    memset(image, 255, sizeof image);
    for (int i = WIDTH * HEIGHT / 2; i < WIDTH * HEIGHT; i++)
        image[i] = i * i % 11 < 5 ? 255 : 0;
    job = job_new(text, WIDTH, HEIGHT, 1, image);
    job->state.tail = tail_of(1, 14, false, false);
    expect_rows(job, 1);
    job->state.tail = tail_of(1, 22, false, true);
    expect_rows(job, 1);
    job_free(job);
}
END_TEST

/* Sums of a row, and of a column, at both ends of what two of them hold in 16 bits. */
START_TEST(axes_as_heavy_as_words_hold)
{
    static const int heavies[] = {1023, 1026, 1027, 1028, 1029, 2000};
    uint8_t image[9 * 90];
    char text[100];

    memset(image, 255, sizeof image);
    for (int k = 0; k < 4; k++) {
        const int sign = k % 2 == 0 ? -1 : 1, heavy = sign * heavies[_i];
        struct job *job;

        if (k < 2)
            sprintf(text, "%d %d %d / %d %d %d / %d %d %d", heavy, heavy, heavy, sign, sign, sign,
                    heavy, heavy, heavy);
        else
            sprintf(text, "%d %d %d / %d %d %d / %d %d %d", heavy, sign, heavy, heavy, sign, heavy,
                    heavy, sign, heavy);
        job = job_new(text, 90, 9, 1, image);
        job->state.tail = tail_of(1, 14, false, false);
        expect_right(job);
        job_free(job);
    }
}
END_TEST

static int box_weight(int i, int size, int kind, int edge)
{
    const int inner = i < size - 1 - i ? i : size - 1 - i;

    if (kind == 0 || inner == 0)
        return edge;
    if (kind == 1) /* one window within */
        return edge - (inner >= (size + 1) / 4);
    if (kind == 2) /* one with a hole */
        return edge + (inner >= 1 && inner < size / 2);
    return edge + inner % 2; /* more windows than two, from 7 on */
}

/* Weights that differ by one, each axis with windows of its own, in all shapes: of several bands, and longer than a
 * strip. */
START_TEST(boxes_of_all_shapes)
{
    static const int edges[] = {12, 409, -77}, channels[] = {1, 3, 4};
    enum { WIDTH = 450, HEIGHT = 150 };
    const int rows = 3 + _i % 15 * 2, columns = 31 - _i * 4 % 15 * 2;
    uint8_t *image = make_image(WIDTH * HEIGHT * 4);
    char *text = malloc(CONV_TAPS_MAX * 8);

    for (int kinds = 0; kinds < 16; kinds++) {
        struct job *job;
        char *at = text;
        int shift;

        for (int k = 0; k < rows * columns; k++)
            at += sprintf(at, "%d%s",
                          box_weight(k / columns, rows, kinds / 4, 5) *
                              box_weight(k % columns, columns, kinds % 4, edges[_i % 3]),
                          k % columns == columns - 1 && k / columns < rows - 1 ? " / " : " ");
        job = job_new(text, WIDTH, HEIGHT, channels[(_i + kinds) % 3], image);
        shift = (int)log2(job->state.mask.magnitude + 1);
        job->state.tail = tail_of(1, shift < 23 ? shift : 22, false, false);
        expect_rows(job, 73);
        job_free(job);
    }
    free(image);
    free(text);
}
END_TEST

/* Weights of a row at both ends of what words hold. */
START_TEST(boxes_as_heavy_as_words_hold)
{
    static const int heavies[] = {32766, 32767, 32768, -32766, -32767, -32768};
    uint8_t image[9 * 90];
    char text[100];
    struct job *job;

    memset(image, 255, sizeof image);
    for (int other = heavies[_i] - 1; other <= heavies[_i] + 1; other++) {
        sprintf(text, "%d %d %d / %d %d %d / %d %d %d", heavies[_i], other, heavies[_i],
                heavies[_i], other, heavies[_i], heavies[_i], other, heavies[_i]);
        job = job_new(text, 90, 9, 1, image);
        job->state.tail = tail_of(1, 18, false, false);
        expect_right(job);
        job_free(job);
    }
}
END_TEST

/* The box of 3 x 3, rounded to the nearest: flat pictures of all bytes, black and white, of two neighbouring bytes
 * and noise, in all channels. */
START_TEST(smallest_box)
{
    enum { WIDTH = 300, HEIGHT = 520 };
    static const int spans[] = {1, 2, 255, 256};
    const int64_t channels = _i % 3 == 0 ? 1 : 2 + _i % 3;
    uint8_t *image = malloc((size_t)(WIDTH * HEIGHT * channels));
    struct job *job = job_new("box3", WIDTH, HEIGHT, channels, image);
    const int span = spans[_i / 3];
    uint32_t noise = 1;

    for (int64_t i = 0; i < WIDTH * HEIGHT * channels; i++) {
        noise = noise * 1664525 + 1013904223;
        image[i] = (uint8_t)(span == 255 ? (noise >> 31) * 255
                             : span == 256
                                 ? noise >> 24
                                 : i / (WIDTH * channels) / 2 % 256 + (noise >> 31) * (span - 1));
    }
    job->state.tail = (struct conv_tail){.add = 1 << 21, .multiplier = 1, .shift = 22};
    expect_rows(job, 1);
    job_free(job);
    free(image);
}
END_TEST

/* Longer than what goes down a mask's column at a time, with one and several channels. */
START_TEST(rows_longer_than_a_strip)
{
    static const char *const masks[] = {"gaussian15", "box31",    "sobel_x7",
                                        "sobel_y7",   "sharpen5", "gaussian5"};
    static const int64_t widths[] = {8193, 4125, 2080};
    const int64_t width = widths[_i % 3];
    uint8_t *image = make_image((size_t)(width * 32 * 4));
    struct job *job = job_new(masks[_i / 3], width, 32, _i % 3 == 0 ? 1 : 2 + _i % 3, image);
    const int shift = (int)log2(job->state.mask.magnitude + 1);

    job->state.tail = tail_of(1, shift < 23 ? shift : 22, false, shift > 22);
    expect_right(job);
    job->state.tail = tail_of(shift < 16 ? 3 : 1, shift < 16 ? shift + 2 : 22, false, shift > 22);
    expect_right(job);
    job_free(job);
    free(image);
}
END_TEST

/* Rows that are cut into two strips of the largest size, and into strips of about half of it. */
START_TEST(rows_of_whole_strips)
{
    static const int64_t widths[] = {15360, 15361, 7680, 7681, 23040};
    const int64_t width = widths[_i] + 2;
    uint8_t *image = make_image((size_t)(width * 5));
    struct job *job = job_new("sharpen3", width, 5, 1, image);

    job->state.tail = tail_of(1, 3, false, false);
    expect_rows(job, 1);
    job_free(job);
    free(image);
}
END_TEST

/* Masks that go two rows at a time, and one that does not: whole and smaller ones, that read the same from below and do not.
 * Answers of one row, of an even and an odd number, in one band and in two; rows that end within a chunk and with one,
 * within a run and with one, that are copied and that are read where they stand. Each mask meets each number of bands, and
 * so does each width. */
START_TEST(small_masks)
{
    static const char *const masks[] = {
        "sharpen3",
        "sharpen5",
        "1 2 3 / -4 5 6 / 7 -8 9",
        "1 -2 3 / -4 50 6 / 1 -2 3",
        "1 2 -3 / 0 0 0 / -3 2 1",
        "1 2 3 4 5 / -6 7 -8 9 1 / 2 3 4 5 6 / 7 -8 9 1 -2 / 3 4 5 6 7",
        "1 2 3 4 5 / -6 7 -8 9 1 / 2 3 4 5 6 / -6 7 -8 9 1 / 1 2 3 4 5",
        "1 2 3 / -4 5 6 / 7 -8 9 / 1 2 -3 / 4 5 6",
        "1 2 3 4 5 / -6 7 -8 9 1 / 2 3 4 5 6",
        "1 -2 5 -4 3",
        "1 / -2 / 5 / -4 / 3",
        "1 / -2 / 5",
        "-3"};
    static const int64_t widths[] = {1, 64, 127, 512, 575, 705, 1090};
    static const int64_t heights[] = {1, 2, 5, 131, 301, 128}; /* of the last three, one a time */
    const size_t high = 3 + (_i / GPURUN_COUNT(widths) + _i % GPURUN_COUNT(widths)) % 3;
    enum { WIDTH_MOST = 1090 + 4, HEIGHT_MOST = 301 + 4, CHANNELS_MOST = 4 };
    const char *const text = masks[_i / GPURUN_COUNT(widths)];
    uint8_t *image = make_image(WIDTH_MOST * HEIGHT_MOST * CHANNELS_MOST);

    for (size_t k = 0; k <= high; k += k == 2 ? high - 2 : 1) {
        const int64_t width = widths[_i % GPURUN_COUNT(widths)] + 4, height = heights[k] + 4;
        struct job *job = job_new(text, width, height, k % 3 == 0 ? 1 : 2 + (int64_t)k % 3, image);

        job->state.tail = (struct conv_tail){.multiplier = 1};
        expect_rows(job, 1);
        job->state.tail = tail_of(1, 2, false, false);
        expect_rows(job, 1);
        job_free(job);
    }
    free(image);
}
END_TEST

/* Products of five and five weights, whose sums fit 16 bits, with and without a sign, just so and just not: white
 * above and noise below. */
START_TEST(small_products)
{
    static const char *const masks[] = {
        "gaussian5",
        "sobel_x5",
        "sobel_y5",
        "2 4 6 8 10 / 1 2 3 4 5 / 0 0 0 0 0 / 4 8 12 16 20 / 3 6 9 12 15",
        "5 10 15 10 5 / 1 2 3 2 1 / 2 4 6 4 2 / 3 6 9 6 3 / 4 8 12 8 4",
        "1 2 1 2 1 / -2 -4 -2 -4 -2 / 3 6 3 6 3 / 1 2 1 2 1 / 5 10 5 10 5",
        "0 0 1 0 0 / 0 0 100 0 0 / 0 0 55 0 0 / 0 0 100 0 0 / 0 0 1 0 0",
        "0 0 1 0 0 / 0 0 100 0 0 / 0 0 56 0 0 / 0 0 100 0 0 / 0 0 1 0 0",
        "0 0 0 0 0 / 0 0 0 0 0 / 63 1 0 1 63 / 0 0 0 0 0 / 63 1 0 1 63",
        "0 0 0 0 0 / 0 0 0 0 0 / 64 0 1 0 64 / 0 0 0 0 0 / 0 0 0 0 0"};
    static const struct conv_tail tails[] = {
        {.multiplier = 1},
        {.add = 128, .multiplier = 1, .shift = 8},
        {.multiplier = 1, .shift = 1},
        {.add = 255, .multiplier = 1, .shift = 7},
        {.add = 256, .multiplier = 1, .shift = 7},
        {.add = -3000, .multiplier = 1, .shift = 5},
        {.add = 128, .multiplier = 1, .shift = 8, .is_even = true},
    };
    enum { WIDTH = 220, HEIGHT = 150, CHANNELS = 3 };
    uint8_t *image = make_image(WIDTH * HEIGHT * CHANNELS);
    struct job *job = job_new(masks[_i], WIDTH, HEIGHT, _i % 2 == 0 ? CHANNELS : 1, image);

    memset(image, 255, WIDTH * 30 * CHANNELS);
    for (size_t k = 0; k < GPURUN_COUNT(tails); k++) {
        job->state.tail = tails[k];
        expect_rows(job, 1);
    }
    job_free(job);
    free(image);
}
END_TEST

/* Masks whose sums fit 16 bits, just so and just not, of pairs of taps and with one left over. */
START_TEST(small_weights)
{
    static const char *const masks[] = {"127",
                                        "128",
                                        "-128",
                                        "0",
                                        "sharpen3",
                                        "sharpen5",
                                        "64 0 -64",
                                        "1 2 1 / 2 4 2 / 1 2 1",
                                        "-127 / 0 / 1",
                                        "9 -8 7 / -6 35 -5 / 40 3 15",
                                        "9 -8 7 / -6 35 -5 / 40 3 16",
                                        "1 0 0 0 0 0 1 / 0 0 0 5 0 0 0 / 1 0 0 0 0 0 -99"};
    static const int64_t widths[] = {7, 66, 129, 200};
    const int64_t width = widths[_i % 4];
    uint8_t *image = make_image((size_t)(width * 9 * 3));
    struct job *job = job_new(masks[_i / 4], width, 9, 1 + _i % 2 * 2, image);

    for (int shift = 0; shift < 9; shift++)
        for (int kind = 0; kind < 3; kind++) {
            job->state.tail = tail_of(kind == 2 ? 3 : 1, shift, kind == 1, false);
            expect_right(job);
        }
    job_free(job);
    free(image);
}
END_TEST

/* One mask for each kind of sum, in rows that begin at lines of memory, and that do not. */
START_TEST(answers_past_the_cache)
{
    static const char *const masks[] = {"sharpen3", "box3", "gaussian7", "1 2 3 / 4 150 6 / 7 8 9",
                                        "1 2 3 / 4 1500 6 / 7 8 9"};
    static const int64_t widths[] = {4096, 4131};
    const int64_t width = widths[_i % 2] + 6, height = 2050 + 6;
    uint8_t *image = make_image((size_t)(width * height));
    struct job *job = job_new(masks[_i / 2], width, height, 1, image);

    job->state.tail = tail_of(1, (int)log2(job->state.mask.magnitude + 1), false, false);
    expect_rows(job, 3);
    job_free(job);
    free(image);
}
END_TEST

/* Sums of small whole numbers, which floats hold: past the cache, where rows do not begin at lines, and in it. */
START_TEST(floats)
{
    static const char *const masks[] = {"1 2 3 / 4 -5 6 / 7 8 9", "sharpen5", "gaussian7",
                                        "1 -2 1"};
    static const int64_t widths[] = {2048, 2051, 300};
    const int64_t width = widths[_i % 3] + 6, height = 1025 + 6;
    float *image = malloc((size_t)(width * height) * sizeof(*image));
    struct job *job = job_new_of(GPURUN_FLOAT, masks[_i / 3], width, height, 1, image);
    const struct conv_state *s = &job->state;
    const float *filtered = job->filtered.host;

    for (int64_t i = 0; i < width * height; i++)
        image[i] = (float)(i * i % 1009);
    for (int level = CONV_CPU_PLAIN; level <= (int)conv_cpu_level(); level++) {
        memset(job->filtered.host, 0x5a, (size_t)(s->out_height * s->out_pitch) * sizeof(float));
        ck_assert_int_eq(conv_run_cpu_at(&job->ctx, (enum conv_cpu_level)level), GPURUN_OK);
        for (int64_t e = 0; e < s->out_pitch * s->out_height; e++) {
            const int64_t y = e / s->out_pitch, x = e % s->out_pitch;
            double sum = 0;

            for (int k = 0; k < s->mask.width * s->mask.height; k++)
                sum += (double)s->mask.weight_real[k] *
                       image[(y + k / s->mask.width) * width + x + k % s->mask.width];
            if (!(fabs(filtered[e] - sum) <= 1009 * s->mask.magnitude * 5e-6))
                ck_abort_msg("level %d, element %lld is %g, should be %g", level, (long long)e,
                             (double)filtered[e], sum);
        }
    }
    job_free(job);
    free(image);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv_cpu");
    TCase *sums = tcase_create("sums");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(sums, 120);
    tcase_add_loop_test(sums, symmetric_masks_of_every_size_and_strength, 0, 90);
    tcase_add_loop_test(sums, small_symmetric_masks, 0, 96);
    tcase_add_loop_test(sums, digits_as_heavy_as_words_hold, 0, 32);
    tcase_add_loop_test(sums, boxes_of_all_shapes, 0, 15);
    tcase_add_loop_test(sums, boxes_as_heavy_as_words_hold, 0, 6);
    tcase_add_loop_test(sums, smallest_box, 0, 12);
    tcase_add_loop_test(sums, axes_as_heavy_as_words_hold, 0, 6);
    tcase_add_loop_test(sums, rows_longer_than_a_strip, 0, 18);
    tcase_add_loop_test(sums, rows_of_whole_strips, 0, 5);
    tcase_add_loop_test(sums, small_masks, 0, 13 * 7);
    tcase_add_loop_test(sums, small_products, 0, 10);
    tcase_add_loop_test(sums, small_weights, 0, 48);
    tcase_add_loop_test(sums, answers_past_the_cache, 0, 10);
    tcase_add_loop_test(sums, floats, 0, 12);
    suite_add_tcase(suite, sums);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
