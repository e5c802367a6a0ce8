/*
 * conv on the CPU: setup, run_cpu and verify, against images worked out by hand and images filtered by OpenCV
 * (make_data.py). The core is a small fake whose tensors are allocated to the byte, so that a sanitizer sees
 * any step outside them.
 */
#include "conv.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- a fake core ------------------------------------------------------------------------------------ */

enum { TENSORS = 2, POISON = 0xa5 };

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    struct conv_options options;
    struct conv_state state;
    struct gpurun_tensor tensors[TENSORS], declared;
    int tensor_count;
    struct gpurun_shape file;
    struct gpurun_proof proof; /* of the last verify */
    char message[512];         /* of the last failure or wrong element */
};

#include "plugin_tensors.h"

static enum gpurun_status fake_input_shape(struct gpurun_ctx *ctx, const char *name,
                                           struct gpurun_shape *shape)
{
    const struct job *job = (struct job *)ctx;

    ck_assert_str_eq(name, "image");
    if (job->file.rank > 0)
        *shape = job->file;
    return GPURUN_OK;
}

static const struct gpurun_core fake_core = FAKE_CORE(fake_allocate, fake_input_shape);

static struct job *job_new(const char *mask, const char *border, int64_t width, int64_t height,
                           int64_t channels)
{
    struct job *job = calloc(1, sizeof(*job));

    job->ctx.core = &fake_core;
    job->ctx.options = &job->options;
    job->ctx.state = &job->state;
    job->ctx.threads = 2;
    job->options = (struct conv_options){.mask = mask,
                                         .sigma = fake_auto_real(),
                                         .border = border,
                                         .scale = fake_auto_real(),
                                         .dtype = GPURUN_UINT8,
                                         .width = width,
                                         .height = height,
                                         .channels = channels};
    return job;
}

static void job_free(struct job *job)
{
    gpurun_plugin.teardown(&job->ctx);
    for (int i = 0; i < job->tensor_count; i++)
        free(job->tensors[i].host);
    free(job);
}

/* Runs on `image`. */
static void job_run(struct job *job, const void *image)
{
    ck_assert_msg(gpurun_plugin.setup(&job->ctx) == GPURUN_OK, "%s", job->message);
    if (job->tensors[0].bytes > 0)
        memcpy(job->tensors[0].host, image, job->tensors[0].bytes);
    memset(job->tensors[1].host, POISON, job->tensors[1].bytes);
    job->declared = job->tensors[1];
    ck_assert_int_eq(gpurun_plugin.run_cpu(&job->ctx), GPURUN_OK);
}

/* How many elements verify calls wrong. */
static int64_t job_verify(struct job *job)
{
    job->message[0] = '\0';
    job->tensors[1] = job->declared;
    job->proof = (struct gpurun_proof){.mode = GPURUN_VERIFY_AUTO};
    ck_assert_int_eq(gpurun_plugin.verify(&job->ctx, &job->proof), GPURUN_OK);
    ck_assert_ptr_nonnull(job->proof.detects);
    ck_assert_int_eq(job->proof.mode, GPURUN_VERIFY_FULL);
    return job->proof.wrong;
}

static uint8_t *filtered(struct job *job)
{
    return job->state.filtered->host;
}

/* The whole answer, and that verify thinks so too; then freed. */
static void expect(struct job *job, const void *image, const uint8_t *right, size_t count)
{
    job_run(job, image);
    ck_assert_uint_eq(job->state.filtered->bytes, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(filtered(job)[i] == right[i], "element %zu is %d, should be %d", i,
                      filtered(job)[i], right[i]);
    ck_assert_msg(job_verify(job) == 0, "%s", job->message);
    ck_assert_int_eq(job->proof.checked, (int64_t)count);
    job_free(job);
}

/* --- by hand: borders ----------------------------------------------------------------------------------- */

static const uint8_t line[] = {1, 2, 3};

/* 1 0 2 on 1 2 3: left + 2 * right, with what the border puts on both ends. */
static void expect_line(const char *border, int first, int middle, int last)
{
    const uint8_t right[] = {(uint8_t)first, (uint8_t)middle, (uint8_t)last};

    expect(job_new("1 0 2", border, 3, 1, 1), line, right, 3);
}

START_TEST(every_border_by_hand)
{
    const uint8_t cropped[] = {7};

    expect_line("constant:10", 10 + 4, 1 + 6, 2 + 20);
    expect_line("replicate", 1 + 4, 1 + 6, 2 + 6);
    expect_line("reflect", 1 + 4, 1 + 6, 2 + 6); /* one pixel beyond: as replicate */
    expect_line("reflect101", 2 + 4, 1 + 6, 2 + 4);
    expect_line("wrap", 3 + 4, 1 + 6, 2 + 2);
    expect_line("frame:140", 140, 7, 140);
    expect(job_new("1 0 2", "crop", 3, 1, 1), line, cropped, 1);
}
END_TEST

/* 1 0 0 0 1 reaches two pixels out: reflect and replicate differ. */
START_TEST(borders_two_pixels_out_by_hand)
{
    static const struct {
        const char *border;
        uint8_t right[3];
    } cases[] = {
        {"replicate", {1 + 3, 1 + 3, 1 + 3}},
        {"reflect", {2 + 3, 1 + 3, 1 + 2}},
        {"reflect101", {3 + 3, 2 + 2, 1 + 1}},
        {"wrap", {2 + 3, 3 + 1, 1 + 2}},
        {"constant:0", {3, 0, 1}},
    };

    for (size_t i = 0; i < GPURUN_COUNT(cases); i++)
        expect(job_new("1 0 0 0 1", cases[i].border, 3, 1, 1), line, cases[i].right, 3);
}
END_TEST

/* A mask of one tap, 9 to the left of the centre, on two pixels: places run on until they are inside. */
START_TEST(borders_far_outside_by_hand)
{
    static const char mask[] = "1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";
    static const uint8_t two[] = {5, 8}, one[] = {7};
    static const uint8_t wrapped[] = {8, 5}, reflected[] = {5, 5}, mirrored[] = {8, 5};
    static const char *const borders[] = {"replicate", "reflect", "reflect101", "wrap"};

    expect(job_new(mask, "wrap", 2, 1, 1), two, wrapped, 2);
    /* reflect: ..., -9 is 5 8 8 5 5 8 8 5 5 [5 8] counted back: -1 5, -2 8, -3 8, -4 5, -5 5 ... -9 5, -8 5 */
    expect(job_new(mask, "reflect", 2, 1, 1), two, reflected, 2);
    expect(job_new(mask, "reflect101", 2, 1, 1), two, mirrored, 2);
    for (size_t i = 0; i < GPURUN_COUNT(borders); i++)
        expect(job_new(mask, borders[i], 1, 1, 1), one, one, 1);
}
END_TEST

START_TEST(both_modes_by_hand)
{
    static const uint8_t image[] = {0, 0, 0, 0, 1, 0, 0, 0, 0};
    static const uint8_t turned[] = {9, 8, 7, 6, 5, 4, 3, 2, 1},
                         same[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct job *job = job_new("1 2 3 / 4 5 6 / 7 8 9", "constant:0", 3, 3, 1);

    expect(job, image, turned, 9); /* correlation with a single 1 turns the mask by half a turn */
    job = job_new("1 2 3 / 4 5 6 / 7 8 9", "constant:0", 3, 3, 1);
    job->options.mode = CONV_CONVOLVE;
    expect(job, image, same, 9);
}
END_TEST

START_TEST(channels_do_not_mix)
{
    static const uint8_t image[] = {1, 10, 100, 2, 20, 200};
    static const uint8_t right[] = {3, 30, 255, 3, 30, 255};

    expect(job_new("1 1 0", "wrap", 2, 1, 3), image, right, 6);
    expect(job_new("0 1 1", "wrap", 2, 1, 3), image, right, 6);
}
END_TEST

/* --- by hand: rounding ------------------------------------------------------------------------------------ */

static void expect_scaled(enum conv_round round, double scale, double bias, const int *right)
{
    static const uint8_t image[] = {0, 1, 2, 3, 5, 255};
    uint8_t bytes[6];
    struct job *job = job_new("1", "replicate", 6, 1, 1);

    for (int i = 0; i < 6; i++)
        bytes[i] = (uint8_t)right[i];
    job->options.round = round;
    job->options.scale = scale;
    job->options.bias = bias;
    expect(job, image, bytes, 6);
}

START_TEST(rounding_by_hand)
{
    static const int up[] = {0, 1, 1, 2, 3, 128}, even[] = {0, 0, 1, 2, 2, 128};
    static const int down[] = {0, 0, 1, 1, 2, 127};
    static const int minus[] = {10, 10, 9, 9, 8, 0}, minus_even[] = {10, 10, 9, 8, 8, 0};
    static const int minus_down[] = {10, 9, 9, 8, 7, 0}, thirds[] = {0, 0, 1, 1, 2, 85};
    static const int biased[] = {128, 129, 130, 131, 133, 255}, tripled[] = {0, 3, 6, 9, 15, 255};

    expect_scaled(CONV_NEAREST, 0.5, 0, up);
    expect_scaled(CONV_EVEN, 0.5, 0, even);
    expect_scaled(CONV_DOWN, 0.5, 0, down);
    expect_scaled(CONV_NEAREST, -0.5, 10, minus); /* 10, 9.5, 9, 8.5, 7.5, -117.5 */
    expect_scaled(CONV_EVEN, -0.5, 10, minus_even);
    expect_scaled(CONV_DOWN, -0.5, 10, minus_down);
    expect_scaled(CONV_NEAREST, 1.0 / 3, 0, thirds); /* needs more than 32 bits on the way */
    expect_scaled(CONV_NEAREST, 1, 128, biased);
    expect_scaled(CONV_NEAREST, 3, 0, tripled);
    expect_scaled(CONV_NEAREST, 1, 0.25, (const int[]){0, 1, 2, 3, 5, 255});
    expect_scaled(CONV_NEAREST, 1, 0.5, (const int[]){1, 2, 3, 4, 6, 255});
}
END_TEST

/* sharpen3 on a lone 255 in black, and on a lone 0 in white: -1275 and 765, then 9 - 8 of 255. */
START_TEST(saturation_by_hand)
{
    static const uint8_t bright[] = {0, 0, 0, 0, 255, 0, 0, 0, 0};
    static const uint8_t dark[] = {255, 255, 255, 255, 0, 255, 255, 255, 255};
    static const uint8_t sharp[] = {0, 255, 0, 255, 255, 255, 0, 255, 0};
    static const uint8_t framed[] = {140, 140, 140, 140, 0, 140, 140, 140, 140};

    expect(job_new("sharpen3", "constant:0", 3, 3, 1), bright, sharp, 9);
    expect(job_new("sharpen3", "frame:140", 3, 3, 1), dark, framed, 9); /* -8 * 255 */
}
END_TEST

/* The teaching text's picture: sharpen5 leaves two pixels on each side at 140. */
START_TEST(frame_of_the_teaching_masks)
{
    enum { SIDE = 7 };
    uint8_t image[SIDE * SIDE], right[SIDE * SIDE];

    for (int i = 0; i < SIDE * SIDE; i++) {
        const int x = i % SIDE, y = i / SIDE;

        image[i] = 20; /* the mask's rows add up to -1, -1, 6, -1 and -1 */
        right[i] = x < 2 || x > 4 || y < 2 || y > 4 ? 140 : 2 * 20;
    }
    expect(job_new("sharpen5", "frame:140", SIDE, SIDE, 1), image, right, sizeof image);
}
END_TEST

/* --- flat pictures ------------------------------------------------------------------------------------------ */

START_TEST(box_and_gaussian_keep_flat_pictures)
{
    static const char *const names[] = {"box", "gaussian"};
    char mask[16];

    snprintf(mask, sizeof mask, "%s%d", names[_i % 2], 3 + _i / 2 * 2);
    for (int value = 0; value < 256; value++) {
        uint8_t flat[35];

        memset(flat, value, sizeof flat);
        expect(job_new(mask, "reflect101", 7, 5, 1), flat, flat, sizeof flat);
    }
}
END_TEST

START_TEST(whole_weights_add_up_to_a_power_of_two)
{
    for (int i = 0; i < 30; i++) {
        struct conv_mask mask;
        char text[16], why[100];
        int64_t sum = 0;

        snprintf(text, sizeof text, "%s%d", i % 2 ? "box" : "gaussian", 3 + i / 2 * 2);
        ck_assert(conv_mask_parse(&mask, text, false, i == 0 ? 0.3 : 0, why, sizeof why));
        for (int k = 0; k < mask.width * mask.height; k++) {
            sum += mask.weight[k];
            ck_assert_int_ge(mask.weight[k], 0);
            ck_assert_int_eq(mask.weight[k], mask.weight[mask.width * mask.height - 1 - k]);
        }
        ck_assert_int_eq(sum, INT64_C(1) << mask.shift);
    }
}
END_TEST

/* --- against OpenCV ------------------------------------------------------------------------------------------- */

/* The bytes behind the header of a .npy file. */
static void *read_npy(const char *name, size_t bytes)
{
    char path[500];
    void *data = malloc(bytes);
    FILE *stream;

    snprintf(path, sizeof path, TEST_DATA "/../../plugins/conv/tests/data/%s.npy", name);
    stream = fopen(path, "rb");
    ck_assert_msg(stream != NULL, "cannot open %s", path);
    ck_assert_int_eq(fseek(stream, 128, SEEK_SET), 0);
    ck_assert_uint_eq(fread(data, 1, bytes, stream), bytes);
    ck_assert_int_eq(fgetc(stream), EOF);
    fclose(stream);
    return data;
}

START_TEST(bytes_are_what_opencv_says)
{
    enum { BYTES = 13 * 17 * 3 };
    static const struct {
        const char *mask, *border, *file;
    } cases[] = {
        {"sharpen5", "replicate", "sharpen5_replicate"},
        {"sharpen5", "reflect", "sharpen5_reflect"},
        {"sharpen5", "reflect101", "sharpen5_reflect101"},
        {"sharpen5", "wrap", "sharpen5_wrap"},
        {"gaussian3", "reflect101", "gaussian3"},
        {"gaussian5", "reflect101", "gaussian5"},
        {"sobel_x3", "replicate", "sobel_x3"},
        {"sobel_x5", "replicate", "sobel_x5"},
        {"sobel_x7", "replicate", "sobel_x7"},
        {"sobel_y3", "replicate", "sobel_y3"},
        {"sobel_y5", "replicate", "sobel_y5"},
        {"sobel_y7", "replicate", "sobel_y7"},
        {"laplacian3", "replicate", "laplacian3"},
        {"laplacian5", "replicate", "laplacian5"},
    };
    uint8_t *image = read_npy("image", BYTES), *right = read_npy(cases[_i].file, BYTES);

    expect(job_new(cases[_i].mask, cases[_i].border, 17, 13, 3), image, right, BYTES);
    free(image);
    free(right);
}
END_TEST

static void expect_floats(const char *mask, double sigma, const char *border, const char *file)
{
    enum { COUNT = 9 * 11 };
    float *image = read_npy("reals", COUNT * 4), *right = read_npy(file, COUNT * 4);
    struct job *job = job_new(mask, border, 11, 9, 1);

    job->options.dtype = GPURUN_FLOAT;
    if (sigma > 0)
        job->options.sigma = sigma;
    job_run(job, image);
    for (int i = 0; i < COUNT; i++)
        ck_assert_double_le(
            fabs((double)((float *)job->state.filtered->host)[i] - (double)right[i]), 1e-6);
    ck_assert_msg(job_verify(job) == 0, "%s", job->message);
    ck_assert(job->proof.bound > 0 && job->proof.bound < 1e-5);
    job_free(job);
    free(image);
    free(right);
}

START_TEST(floats_are_what_opencv_says)
{
    expect_floats("box7", 0, "reflect", "box7_reals");
    expect_floats("gaussian9", 1.7, "replicate", "gaussian9_reals");
}
END_TEST

/* --- shapes ----------------------------------------------------------------------------------------------------- */

/* Every width around vectors and channels, rows around bands, every border: verify agrees. */
START_TEST(every_size)
{
    static const char *const borders[] = {"constant:9", "replicate", "reflect", "reflect101",
                                          "wrap",       "crop",      "frame:3"};
    static const char *const masks[] = {"sharpen3", "gaussian7", "box31", "sobel_x5", "1 2 3"};
    static const int64_t heights[] = {0, 1, 2, 5, 63, 64, 65, 130};
    uint8_t *image = malloc(130 * 70 * 4);

    for (int i = 0; i < 130 * 70 * 4; i++)
        image[i] = (uint8_t)(i * 37 ^ i >> 5);
    for (int64_t width = 0; width < 70; width += width < 6 ? 1 : 7)
        for (size_t h = 0; h < GPURUN_COUNT(heights); h++) {
            const size_t k = (size_t)width + h;
            struct job *job =
                job_new(masks[k % 5], borders[_i], width, heights[h], k % 3 ? 2 + k % 3 : 1);

            job_run(job, image);
            ck_assert_msg(job_verify(job) == 0, "%s", job->message);
            job_free(job);
        }
    free(image);
}
END_TEST

/* Rows that the baseline takes in strips: too short for one that reads no edge, of one, of several. */
START_TEST(floats_in_strips)
{
    static const char *const masks[] = {"sharpen3", "box3", "sharpen5", "gaussian7"};
    static const char *const borders[] = {"replicate", "constant:2", "wrap", "crop", "frame:3"};
    static const int64_t widths[] = {100, 213, 222, 300, 701, 2770};
    enum { HEIGHT = 66, CHANNELS = 3 };
    float *image = malloc((size_t)(2770 * HEIGHT * CHANNELS) * sizeof *image);

    for (int64_t i = 0; i < 2770 * HEIGHT * CHANNELS; i++)
        image[i] = (float)(i * 7919 % 1009) / 64 - 5;
    for (size_t m = 0; m < 4; m++)
        for (size_t b = 0; b < 5; b++) {
            struct job *job = job_new(masks[m], borders[b], widths[_i], HEIGHT, CHANNELS);

            job->options.dtype = GPURUN_FLOAT;
            job_run(job, image);
            ck_assert_msg(job_verify(job) == 0, "%s %s: %s", masks[m], borders[b], job->message);
            job_free(job);
        }
    free(image);
}
END_TEST

START_TEST(padding_is_left_alone)
{
    static const uint8_t image[] = {1, 2, 3, 99, 98, 4, 5, 6, 97, 96};
    static const uint8_t right[] = {3, 5, 6, 9, 11, 12};
    struct job *job = job_new("0 1 1", "replicate", 3, 2, 1);

    job->options.pitch = 5;
    job_run(job, image);
    ck_assert_int_eq(job->state.filtered->dims[1], 5);
    for (int i = 0; i < 10; i++)
        ck_assert(i % 5 < 3 || filtered(job)[i] == POISON);
    ck_assert_msg(job_verify(job) == 0, "%s", job->message);
    ck_assert_int_eq(job->state.filtered->dims[1], 3); /* what is shown and written: no padding */
    ck_assert_int_eq(job->state.filtered->elems, 6);
    ck_assert_mem_eq(filtered(job), right, 6);
    job_free(job);
    job = job_new("0 1 1", "replicate", 3, 2, 1);
    job->options.pitch = 5;
    job_run(job, image);
    filtered(job)[8] = 0;
    ck_assert_int_eq(job_verify(job), 1);
    ck_assert_str_eq(job->message, "row 1: the padding behind it was written");
    job_free(job);
    job = job_new("0 1 1", "replicate", 3, 2, 1); /* with one value in every row, too */
    job->options.pitch = 5;
    job_run(job, image);
    for (int i = 0; i < 10; i++)
        filtered(job)[i] = i % 5 < 3 ? filtered(job)[i] : 0;
    ck_assert_int_eq(job_verify(job), 2);
    job_free(job);
}
END_TEST

/* --- masks ------------------------------------------------------------------------------------------------------ */

static void expect_mask_error(const char *text, bool is_real, double sigma, const char *message)
{
    struct conv_mask mask;
    char why[300] = "";

    ck_assert_msg(!conv_mask_parse(&mask, text, is_real, sigma, why, sizeof why), "'%s' is taken",
                  text);
    ck_assert_msg(strncmp(why, message, strlen(message)) == 0, "'%s': %s", text, why);
}

START_TEST(mask_errors_say_what_and_where)
{
    expect_mask_error("", false, 0, "there is no mask");
    expect_mask_error("1 2 x", false, 0, "row 1, number 3: 'x' is not a number");
    expect_mask_error("1 2 3 / 4 nan 6 / 7 8 9", true, 0, "row 2, number 2: 'nan' is not a number");
    expect_mask_error("1 2 3 / 4 1e999 6", true, 0, "row 2, number 2: '1e999' is not a number");
    expect_mask_error("1 0.5 1", false, 0, "row 1, number 2: 0.5 is not whole");
    expect_mask_error("1 9000000 1", false, 0, "row 1, number 2: 9000000 is too large");
    expect_mask_error("8000000 -8000000 1", false, 0, "its weights add up to 16000001");
    expect_mask_error("1 2 3 / 4 5", false, 0, "row 2 has 2 numbers, row 1 has 3");
    expect_mask_error("1 2 3 /", false, 0, "row 2 has no numbers");
    expect_mask_error("/ 1 2 3", false, 0, "row 1 has no numbers");
    expect_mask_error("1 2 / 3 4", false, 0, "2 columns and 2 rows: both must be odd");
    expect_mask_error("1 / 2", false, 0, "1 columns and 2 rows");
    expect_mask_error("blur3", false, 0, "'blur3' is no mask; there are sharpen3");
    expect_mask_error("box", false, 0, "'box': the size follows the name at once, as in box3");
    expect_mask_error("box 5", false, 0, "'box 5': the size follows the name at once, as in box3");
    expect_mask_error("box4", false, 0, "'box4': a size is odd, from 3 to 31");
    expect_mask_error("box33", false, 0, "'box33': a size is odd, from 3 to 31");
    expect_mask_error("box99999999999", false, 0, "'box99999999999': a size is odd");
    expect_mask_error("box5x", false, 0, "'box5x': nothing may follow box5");
    expect_mask_error("sharpen7", false, 0, "'sharpen7': sharpen has the sizes 3 and 5");
    expect_mask_error("box5", false, 2, "'box5' has no sigma");
    expect_mask_error("1 2 1", false, 2, "rows of numbers have no sigma");
    expect_mask_error("sobel_x31", false, 0, "its weights add up to");
    expect_mask_error("1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", false, 0,
                      "row 1 has more than 31 numbers");
    expect_mask_error("1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1", false, 0,
                      "more than 31 rows");
}
END_TEST

START_TEST(products_are_found_exactly)
{
    static const struct {
        const char *text;
        bool is_separable;
    } cases[] = {
        {"sharpen3", false},
        {"sharpen5", false},
        {"box5", true},
        {"gaussian7", true},
        {"sobel_y3", true},
        {"laplacian3", false},
        {"1 2 3", true},
        {"2 4 6 / 3 6 9 / -4 -8 -12", true},
        {"0 0 0 / 2 4 6 / 3 6 9", true},
        {"2 4 6 / 3 6 9 / -4 -8 -13", false},
        {"0 0 0 / 0 0 0 / 0 0 0", false},
    };

    for (size_t i = 0; i < GPURUN_COUNT(cases); i++)
        for (int real = 0; real < 2; real++) {
            struct conv_mask mask;
            char why[100];

            ck_assert(conv_mask_parse(&mask, cases[i].text, real, 0, why, sizeof why));
            ck_assert_msg(mask.is_separable == cases[i].is_separable, "%s", cases[i].text);
            for (int k = 0; mask.is_separable && !real && k < mask.width * mask.height; k++)
                ck_assert_int_eq(mask.column[k / mask.width] * mask.row[k % mask.width],
                                 mask.weight[k]);
        }
}
END_TEST

static unsigned random_below(uint64_t *state, unsigned below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*state >> 33) % below;
}

/* What is written comes back: random rows, with blanks of all kinds around slashes. */
START_TEST(random_masks_come_back)
{
    uint64_t state = 1;

    for (int round = 0; round < 500; round++) {
        const int width = 1 + 2 * (int)random_below(&state, 8);
        const int height = 1 + 2 * (int)random_below(&state, 8);
        int weights[15 * 15], used = 0;
        char text[4000], why[100];
        struct conv_mask mask;

        for (int k = 0; k < width * height; k++) {
            weights[k] = (int)random_below(&state, 20001) - 10000;
            used += snprintf(text + used, sizeof text - (size_t)used, "%s%d",
                             k == 0                    ? ""
                             : k % width != 0          ? random_below(&state, 2) ? "  " : "\t"
                             : random_below(&state, 2) ? "/"
                                                       : " / ",
                             weights[k]);
        }
        ck_assert_msg(conv_mask_parse(&mask, text, false, 0, why, sizeof why), "%s: %s", text, why);
        ck_assert_int_eq(mask.width, width);
        ck_assert_int_eq(mask.height, height);
        for (int k = 0; k < width * height; k++)
            ck_assert_int_eq(mask.weight[k], weights[k]);
    }
}
END_TEST

/* Random text: taken or refused with a reason, and a mask that is taken can be used. */
START_TEST(random_text_is_judged)
{
    static const char letters[] = "0123456789 -./ex+boxgaussian_sobel\t";
    uint64_t state = 2;
    int taken = 0;

    for (int round = 0; round < 20000; round++) {
        char text[24], why[300] = "";
        const unsigned length = random_below(&state, sizeof text);
        struct conv_mask mask;

        for (unsigned i = 0; i < length; i++)
            text[i] = letters[random_below(&state, round % 2 ? 15 : sizeof letters - 1)];
        text[length] = '\0';
        if (!conv_mask_parse(&mask, text, round % 3 == 0, 0, why, sizeof why)) {
            ck_assert_msg(why[0] != '\0', "'%s' is refused without a reason", text);
            continue;
        }
        taken++;
        ck_assert(mask.width % 2 == 1 && mask.height % 2 == 1);
        ck_assert(mask.width <= CONV_SIZE_MAX && mask.height <= CONV_SIZE_MAX);
    }
    ck_assert_int_gt(taken, 10);
}
END_TEST

/* --- setup -------------------------------------------------------------------------------------------------------- */

static void expect_refusal(struct job *job, const char *message)
{
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_INVALID);
    ck_assert_str_eq(job->message, message);
    job_free(job);
}

static struct job *plain_job(void)
{
    return job_new("box3", "replicate", 4, 4, 3);
}

static struct job *file_job(struct gpurun_shape file)
{
    struct job *job = job_new("box3", "replicate", GPURUN_AUTO, GPURUN_AUTO, GPURUN_AUTO);

    job->options.dtype = GPURUN_AUTO;
    job->file = file;
    return job;
}

START_TEST(setup_refuses_bad_options)
{
    struct job *job = plain_job();

    job->options.pitch = 11;
    expect_refusal(job, "pitch: 11 is less than the 12 elements of a row");
    job = plain_job();
    job->options.channels = 2;
    expect_refusal(job,
                   "channels: 2: conv takes 1 (gray), 3 or 4; gray with alpha must be made one of "
                   "them first");
    job = plain_job();
    job->options.sigma = 0;
    expect_refusal(job, "sigma: must be above 0");
    job = plain_job();
    job->options.sigma = 1;
    expect_refusal(job, "mask: 'box3' has no sigma: leave sigma at auto");
    job = plain_job();
    job->options.scale = NAN;
    expect_refusal(job, "scale: must be a number");
    job = plain_job();
    job->options.width = 536870911; /* of 4 channels: a tile and a halo further on 31 bits end */
    job->options.height = 1;
    expect_refusal(job, "width: 536870911 x 1 pixels; a side has at most 536800000");
    job = plain_job();
    job->options.bias = NAN;
    expect_refusal(job, "bias: must be a number");
    expect_refusal(
        job_new("box3", "mirror", 4, 4, 1),
        "border: 'mirror' is no border; there are constant:V replicate reflect reflect101 "
        "wrap crop frame:V");
    expect_refusal(job_new("box3", "wrap:1", 4, 4, 1), "border: wrap takes no value");
    expect_refusal(job_new("box3", "frame", 4, 4, 1), "border: frame needs a value, as in frame:0");
    expect_refusal(job_new("box3", "constant:x", 4, 4, 1), "border: 'x' is not a number");
    expect_refusal(job_new("box3", "constant:", 4, 4, 1), "border: '' is not a number");
    expect_refusal(job_new("box3", "constant:256", 4, 4, 1),
                   "border: 256 is not a value of uint8: a whole number from 0 to 255");
    expect_refusal(job_new("box3", "constant:0.5", 4, 4, 1),
                   "border: 0.5 is not a value of uint8: a whole number from 0 to 255");
}
END_TEST

START_TEST(setup_refuses_files_that_do_not_fit)
{
    struct job *job = file_job((struct gpurun_shape){GPURUN_UINT16, 2, {4, 4}});

    expect_refusal(job, "dtype: the file's is uint16; conv takes uint8 float");
    expect_refusal(
        file_job((struct gpurun_shape){GPURUN_UINT8, 3, {4, 4, 2}}),
        "channels: 2: conv takes 1 (gray), 3 or 4; gray with alpha must be made one of them "
        "first");
    expect_refusal(file_job((struct gpurun_shape){GPURUN_UINT8, 1, {16}}),
                   "input: the file has 1 dimensions; an image has 2, or 3 with channels");
    job = file_job((struct gpurun_shape){GPURUN_UINT8, 3, {4, 5, 3}});
    job->options.height = 5;
    expect_refusal(job, "height: 5, but the file has 4");
    job = file_job((struct gpurun_shape){GPURUN_UINT8, 3, {4, 5, 3}});
    job->options.channels = 4;
    expect_refusal(job, "channels: 4, but the file has 3");
    job = file_job((struct gpurun_shape){GPURUN_UINT8, 3, {4, 5, 3}});
    job->options.width = 4;
    expect_refusal(
        job, "width: 4 pixels of 3 channels, but a row of the file has 15 elements; pitch says "
             "where rows are padded");
}
END_TEST

START_TEST(setup_takes_its_shape_from_the_file)
{
    struct job *job = file_job((struct gpurun_shape){GPURUN_UINT8, 3, {4, 5, 3}});

    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    ck_assert_int_eq(job->options.width, 5);
    ck_assert_int_eq(job->options.height, 4);
    ck_assert_int_eq(job->options.channels, 3);
    ck_assert_int_eq(job->state.filtered->rank, 3);
    ck_assert(job->ctx.work.bytes_read >= 60 && job->ctx.work.bytes_read <= 60);
    job_free(job);
    job = file_job((struct gpurun_shape){GPURUN_FLOAT, 2, {4, 20}});
    job->options.channels = 3;
    job->options.width = 5;
    job->options.pitch = 20;
    ck_assert_msg(gpurun_plugin.setup(&job->ctx) == GPURUN_OK, "%s", job->message);
    ck_assert_int_eq(job->state.in_pitch, 20);
    job_free(job);
    job = file_job((struct gpurun_shape){.dtype = GPURUN_AUTO});
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    ck_assert_int_eq(job->options.width, 512);
    ck_assert_int_eq(job->options.channels, 3);
    ck_assert_int_eq(job->options.dtype, GPURUN_UINT8);
    job_free(job);
}
END_TEST

/* --- verify refuses -------------------------------------------------------------------------------------------- */

START_TEST(verify_refuses_one_wrong_byte)
{
    static const uint8_t image[] = {1, 2, 3, 4, 5, 6};
    struct job *job = job_new("1", "replicate", 2, 1, 3);

    job_run(job, image);
    for (int i = 0; i < 6; i++) {
        filtered(job)[i] ^= 1;
        ck_assert_int_eq(job_verify(job), 1);
        filtered(job)[i] ^= 1;
    }
    filtered(job)[4] = 7;
    ck_assert_int_eq(job_verify(job), 1);
    ck_assert_str_eq(job->message, "row 0, pixel 1, channel 1 is 7, should be 5");
    ck_assert(job->proof.worst_error >= 2 && job->proof.worst_error <= 2);
    job_free(job);
}
END_TEST

/* An answer shifted by the mask's radius, as teaching code on the CPU often writes it. */
START_TEST(verify_refuses_a_shifted_answer)
{
    uint8_t image[64];
    struct job *job = job_new("sharpen3", "replicate", 8, 8, 1);

    for (int i = 0; i < 64; i++)
        image[i] = (uint8_t)(i * i);
    job_run(job, image);
    memmove(filtered(job), filtered(job) + 9, 55);
    ck_assert_int_gt(job_verify(job), 10);
    job_free(job);
}
END_TEST

/* One tap: bound (1 + 4) u |x| + 2 u |x|, 7 * 2^-24 at 1. */
START_TEST(verify_draws_the_line_at_its_bound)
{
    static const float image[] = {1};
    struct job *job = job_new("1", "replicate", 1, 1, 1);
    float *got;

    job->options.dtype = GPURUN_FLOAT;
    job_run(job, image);
    got = job->state.filtered->host;
    ck_assert_int_eq(job_verify(job), 0);
    *got = 1 + 6 * 0x1p-24f;
    ck_assert_int_eq(job_verify(job), 0);
    *got = 1 + 8 * 0x1p-24f;
    ck_assert_int_eq(job_verify(job), 1);
    *got = NAN;
    ck_assert_int_eq(job_verify(job), 1);
    *got = INFINITY;
    ck_assert_int_eq(job_verify(job), 1);
    job_free(job);
}
END_TEST

/* A flat picture under one chain of 961 equal terms, whose roundings all point one way: 240 u off at worst, of
 * 2000 pictures tried. A tap that is left out is 17459 u. */
START_TEST(verify_takes_a_long_chain_of_equal_terms)
{
    const float weight = (float)((1.0 / 31) * (1.0 / 31));
    int far = 0;

    for (int i = 1; i <= 100; i++) {
        const float image[] = {(float)i * 0.137f};
        struct job *job = job_new("box31", "replicate", 1, 1, 1);
        float *got, sum = 0;

        job->options.dtype = GPURUN_FLOAT;
        job_run(job, image);
        got = job->state.filtered->host;
        for (int tap = 0; tap < 961; tap++)
            sum = fmaf(weight, image[0], sum);
        far += fabsf(sum - image[0]) > 130 * 0x1p-24f * image[0];
        *got = sum;
        ck_assert_msg(job_verify(job) == 0, "%s", job->message);
        *got = sum - weight * image[0];
        ck_assert_int_eq(job_verify(job), 1);
        job_free(job);
    }
    ck_assert_int_gt(far, 10);
}
END_TEST

START_TEST(verify_tells_nan_and_infinities_apart)
{
    static const float image[] = {INFINITY, -INFINITY, NAN};
    struct job *job = job_new("1", "replicate", 3, 1, 1);
    float *got;

    job->options.dtype = GPURUN_FLOAT;
    job_run(job, image);
    got = job->state.filtered->host;
    ck_assert_int_eq(job_verify(job), 0);
    got[0] = -INFINITY;
    got[1] = 3e38f;
    got[2] = 0;
    ck_assert_int_eq(job_verify(job), 3);
    job_free(job);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);

    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return tcase;
}

static Suite *conv_suite(void)
{
    Suite *suite = suite_create("conv");
    TCase *run = add_case(suite, "run_cpu"), *masks = add_case(suite, "masks");
    TCase *setup = add_case(suite, "setup"), *verify = add_case(suite, "verify");

    tcase_add_test(run, every_border_by_hand);
    tcase_add_test(run, borders_two_pixels_out_by_hand);
    tcase_add_test(run, borders_far_outside_by_hand);
    tcase_add_test(run, both_modes_by_hand);
    tcase_add_test(run, channels_do_not_mix);
    tcase_add_test(run, rounding_by_hand);
    tcase_add_test(run, saturation_by_hand);
    tcase_add_test(run, frame_of_the_teaching_masks);
    tcase_add_loop_test(run, box_and_gaussian_keep_flat_pictures, 0, 30);
    tcase_add_loop_test(run, bytes_are_what_opencv_says, 0, 14);
    tcase_add_test(run, floats_are_what_opencv_says);
    tcase_add_loop_test(run, every_size, 0, 7);
    tcase_add_loop_test(run, floats_in_strips, 0, 6);
    tcase_add_test(run, padding_is_left_alone);

    tcase_add_test(masks, whole_weights_add_up_to_a_power_of_two);
    tcase_add_test(masks, mask_errors_say_what_and_where);
    tcase_add_test(masks, products_are_found_exactly);
    tcase_add_test(masks, random_masks_come_back);
    tcase_add_test(masks, random_text_is_judged);

    tcase_add_test(setup, setup_refuses_bad_options);
    tcase_add_test(setup, setup_refuses_files_that_do_not_fit);
    tcase_add_test(setup, setup_takes_its_shape_from_the_file);

    tcase_add_test(verify, verify_refuses_one_wrong_byte);
    tcase_add_test(verify, verify_refuses_a_shifted_answer);
    tcase_add_test(verify, verify_draws_the_line_at_its_bound);
    tcase_add_test(verify, verify_takes_a_long_chain_of_equal_terms);
    tcase_add_test(verify, verify_tells_nan_and_infinities_apart);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(conv_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
