/* Two tensors in one picture, around a plugin that lives here. What is written is PGM and PPM, whose bytes
 * are known by hand. */
#include "run/compare.h"

#include "run/tensors.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct asked {
    enum gpurun_role role;
    enum gpurun_dtype dtype;
    int rank;
    int64_t dims[3];
} asked[2]; /* set by each test; dtype GPURUN_DTYPE_COUNT: no second tensor */

static struct gpurun_tensor *tensors[2];

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    for (int i = 0; i < 2 && asked[i].dtype != GPURUN_DTYPE_COUNT; i++) {
        const struct asked *a = &asked[i];

        tensors[i] =
            gpurun_tensor(ctx, i ? "second" : "first", a->role, a->dtype, a->rank, a->dims);
        if (tensors[i] == NULL)
            return GPURUN_INVALID;
    }
    return GPURUN_OK;
}

static void teardown(struct gpurun_ctx *ctx)
{
    (void)ctx;
}

static const struct gpurun_plugin table = {.name = "here",
                                           .state_bytes = 8,
                                           .options_bytes = 8,
                                           .memory = GPURUN_MEMORY_ALL,
                                           .setup = setup,
                                           .teardown = teardown};

static char folder[] = "/tmp/test_compare_XXXXXX";
static struct binding input = {.key = "input", .text = "ascending", .where = {"x.ini", 2}};
static struct binding output = {
    .key = "output.compare", .tensor = "compare", .where = {"x.ini", 3}};
static struct job job;
static struct plugin plugin = {.table = &table};
static struct run run;
static struct faults faults;

static void start(void)
{
    struct why why = {""};

    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    job = (struct job){.name = (char *)"x.ini:a",
                       .where = {"x.ini", 1},
                       .inputs = &input,
                       .input_count = 1,
                       .outputs = &output,
                       .output_count = 1};
    option_set_defaults(&core_options_table, &job.core, &why);
}

static void finish(void)
{
    tensors_free(&run);
    run_finish(&run);
    unlink("both.pgm");
    unlink("both.ppm");
    rmdir(folder);
}

static enum gpurun_status begin(const char *path)
{
    output.text = path;
    ck_assert_int_eq(run_prepare(&run, &job, &plugin, &faults), GPURUN_OK);
    GPURUN_TRY(run_setup(&run));
    GPURUN_TRY(tensors_allocate(&run));
    return tensors_fill(&run);
}

static void check_file(const char *path, const char *bytes, size_t size)
{
    char got[200];
    FILE *stream = fopen(path, "rb");

    ck_assert_ptr_nonnull(stream);
    ck_assert_uint_eq(fread(got, 1, sizeof got, stream), size);
    ck_assert_mem_eq(got, bytes, size);
    fclose(stream);
}

#define CHECK_FILE(path, bytes) check_file(path, bytes, sizeof(bytes) - 1)

START_TEST(test_higher_and_wider)
{
    asked[0] = (struct asked){GPURUN_IN, GPURUN_UINT8, 2, {1, 4, 0}};
    asked[1] = (struct asked){GPURUN_OUT, GPURUN_UINT8, 3, {2, 3, 1}};
    ck_assert_msg(begin("both.pgm") == GPURUN_OK, "%s", run.why.text);
    memcpy(tensors[1]->host, "abcdef", 6);
    ck_assert_int_eq(tensors_write_outputs(&run), GPURUN_OK);
    CHECK_FILE("both.pgm", "P5\n7 2\n255\n\0\1\2\3abc\0\0\0\0def");
}
END_TEST

START_TEST(test_colours_of_16_bits)
{
    static const uint16_t answer[] = {0x4142, 0x4344, 0x4546};

    asked[0] = (struct asked){GPURUN_IN, GPURUN_UINT16, 3, {2, 1, 3}};
    asked[1] = (struct asked){GPURUN_OUT, GPURUN_UINT16, 3, {1, 1, 3}};
    ck_assert_msg(begin("both.ppm") == GPURUN_OK, "%s", run.why.text);
    memcpy(tensors[1]->host, answer, sizeof answer);
    ck_assert_int_eq(tensors_write_outputs(&run), GPURUN_OK);
    CHECK_FILE("both.ppm", "P6\n2 2\n65535\n\0\0\0\1\0\2ABCDEF\0\3\0\4\0\5\0\0\0\0\0\0");
}
END_TEST

/* The input as it was, although the answer stands in its place. */
START_TEST(test_inout)
{
    asked[0] = (struct asked){GPURUN_INOUT, GPURUN_UINT8, 2, {1, 3, 0}};
    asked[1].dtype = GPURUN_DTYPE_COUNT;
    ck_assert_msg(begin("both.pgm") == GPURUN_OK, "%s", run.why.text);
    memcpy(tensors[0]->host, "xyz", 3);
    ck_assert_int_eq(tensors_write_outputs(&run), GPURUN_OK);
    CHECK_FILE("both.pgm", "P5\n6 1\n255\n\0\1\2xyz");
}
END_TEST

static const struct refusal {
    struct asked asked[2];
    const char *path, *reason;
} refusals[] = {
    {{{GPURUN_IN, GPURUN_UINT8, 2, {1, 3, 0}}, {GPURUN_OUT, GPURUN_UINT16, 2, {1, 3, 0}}},
     "both.pgm",
     "first is uint8 of 1 channels, second is uint16 of 1: they do not fit one picture"},
    {{{GPURUN_IN, GPURUN_UINT8, 3, {1, 3, 3}}, {GPURUN_OUT, GPURUN_UINT8, 2, {1, 3, 0}}},
     "both.png",
     "first is uint8 of 3 channels, second is uint8 of 1: they do not fit one picture"},
    {{{GPURUN_IN, GPURUN_UINT8, 2, {1, 3, 0}}, {GPURUN_OUT, GPURUN_INT32, 2, {1, 3, 0}}},
     "both.pgm",
     "a picture holds uint8 or uint16, not int32 (name a .npy file)"},
    {{{GPURUN_IN, GPURUN_UINT8, 2, {1, 40000, 0}}, {GPURUN_OUT, GPURUN_UINT8, 2, {1, 40000, 0}}},
     "both.jpg",
     "a JPEG file has at most 65500 rows and columns (name a .npy file)"},
    {{{GPURUN_IN, GPURUN_UINT8, 2, {1, 3, 0}}, {GPURUN_IN, GPURUN_UINT8, 2, {1, 3, 0}}},
     "both.pgm",
     "there is no input, or no output, to compare"},
    {{{GPURUN_IN, GPURUN_UINT8, 2, {1, 3, 0}}, {GPURUN_OUT, GPURUN_UINT8, 2, {1, 3, 0}}},
     "both.bin",
     "both.bin: name a picture (.png .jpg .pgm .ppm)"},
};

START_TEST(test_refused)
{
    const struct refusal *r = &refusals[_i];
    char expected[300];

    memcpy(asked, r->asked, sizeof asked);
    snprintf(expected, sizeof expected, "x.ini:1: output.compare: %s", r->reason);
    ck_assert_int_eq(begin(r->path), GPURUN_INVALID);
    ck_assert_str_eq(run.why.text, expected);
}
END_TEST

/* Where the folder went away in between. */
START_TEST(test_cannot_be_written)
{
    asked[0] = (struct asked){GPURUN_INOUT, GPURUN_UINT8, 2, {1, 3, 0}};
    asked[1].dtype = GPURUN_DTYPE_COUNT;
    ck_assert_int_eq(begin("missing/both.pgm"), GPURUN_OK);
    ck_assert_int_eq(tensors_write_outputs(&run), GPURUN_ERROR);
    ck_assert_ptr_nonnull(strstr(run.why.text, "missing/both.pgm: cannot be written: "));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compare");
    TCase *tests = tcase_create("compare");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, start, finish);
    tcase_add_test(tests, test_higher_and_wider);
    tcase_add_test(tests, test_colours_of_16_bits);
    tcase_add_test(tests, test_inout);
    tcase_add_loop_test(tests, test_refused, 0, GPURUN_COUNT(refusals));
    tcase_add_test(tests, test_cannot_be_written);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
