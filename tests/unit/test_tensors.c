/* The bytes of tensors without a device, around a plugin that lives here. */
#include "run/tensors.h"

#include "job/memory.h"
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ELEMS = 12 };

struct state {
    struct gpurun_tensor *in, *acc, *out, *scalar;
};

static enum gpurun_dtype dtype; /* of `in`, `acc` and `out`, set by each test */

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    static const int64_t dims[] = {3, 4};
    struct state *s = ctx->state;

    s->in = gpurun_tensor(ctx, "in", GPURUN_IN, dtype, 2, dims);
    s->acc = gpurun_tensor(ctx, "acc", GPURUN_INOUT, dtype, 2, dims);
    s->out = gpurun_tensor(ctx, "out", GPURUN_OUT, dtype, 2, dims);
    s->scalar = gpurun_tensor(ctx, "scalar", GPURUN_OUT, GPURUN_INT64, 0, dims);
    return s->in && s->acc && s->out && s->scalar ? GPURUN_OK : GPURUN_INVALID;
}

static void teardown(struct gpurun_ctx *ctx)
{
    (void)ctx;
}

static const struct gpurun_plugin table = {.name = "here",
                                           .state_bytes = sizeof(struct state),
                                           .options_bytes = 8,
                                           .memory = GPURUN_MEMORY_ALL,
                                           .setup = setup,
                                           .teardown = teardown};

static struct binding inputs[2], outputs[2];
static struct job job;
static struct plugin plugin = {.table = &table};
static struct run run;
static struct faults faults;
static struct state *state;

static void start(void)
{
    struct why why = {""};

    job = (struct job){.name = (char *)"x.ini:a", .inputs = inputs, .outputs = outputs};
    job.where = (struct origin){"x.ini", 1};
    option_set_defaults(&core_options_table, &job.core, &why);
    dtype = GPURUN_INT32;
}

static void finish(void)
{
    tensors_free(&run);
    run_finish(&run);
    faults_free(&faults);
}

static void check_ok(enum gpurun_status status)
{
    ck_assert_msg(status == GPURUN_OK, "%s", run.why.text);
}

/* Up to filled inputs. */
static void begin(void)
{
    check_ok(run_prepare(&run, &job, &plugin, &faults));
    check_ok(run_setup(&run));
    check_ok(tensors_allocate(&run));
    state = run.ctx.state;
    check_ok(tensors_fill(&run));
}

static void bind_input(size_t i, const char *tensor, const char *text)
{
    inputs[i] = (struct binding){.key = "input", .tensor = tensor, .text = text};
    job.input_count = i + 1;
}

/* --- allocation and filling -------------------------------------------------------------------------- */

static const int64_t offsets[] = {0, 1, 3, 17, 4096};

START_TEST(test_offset)
{
    const int64_t offset = offsets[_i];

    job.core.offset = offset;
    dtype = GPURUN_INT16;
    begin();
    for (int i = 0; i < run.buffer_count; i++) {
        const struct buffer *b = &run.buffers[i];
        const size_t size = gpurun_dtype_bytes(b->tensor.dtype);

        ck_assert_int_eq((char *)b->tensor.host - (char *)b->host_block, offset * (int64_t)size);
        ck_assert_uint_eq((size_t)b->host_block % 4096, 0);
        ck_assert_uint_eq(b->block_bytes, b->tensor.bytes + (size_t)offset * size);
        ck_assert_ptr_null(b->tensor.dev);
        memset(b->tensor.host, 1, b->tensor.bytes); /* to the last byte: a sanitizer watches */
    }
}
END_TEST

START_TEST(test_fill)
{
    const int32_t *in, *acc;

    bind_input(0, NULL, "ascending start=5 step=2");
    bind_input(1, "acc", "constant value=-7");
    begin();
    in = state->in->host;
    acc = state->acc->host;
    for (int i = 0; i < ELEMS; i++) {
        ck_assert_int_eq(in[i], 5 + 2 * i);
        ck_assert_int_eq(acc[i], -7);
    }
    check_ok(tensors_check_inputs(&run, false));
}
END_TEST

START_TEST(test_fill_is_the_seeds)
{
    int32_t first[ELEMS], acc[ELEMS];

    begin();
    memcpy(first, state->in->host, sizeof first);
    memcpy(acc, state->acc->host, sizeof acc);
    ck_assert_mem_ne(first, acc, sizeof acc); /* each tensor has values of its own */
    check_ok(tensors_fill(&run));
    ck_assert_mem_eq(first, state->in->host, sizeof first);
    run.core.seed = 2;
    check_ok(tensors_fill(&run));
    ck_assert_mem_ne(first, state->in->host, sizeof first);
}
END_TEST

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *stream = fopen(path, "wb");

    ck_assert_ptr_nonnull(stream);
    ck_assert_uint_eq(fwrite(bytes, 1, size, stream), size);
    fclose(stream);
}

START_TEST(test_fill_from_a_file)
{
    char path[] = "/tmp/test_tensors_XXXXXX.raw", *text;
    const int fd = mkstemps(path, 4);
    int32_t values[ELEMS];

    ck_assert_int_ge(fd, 0);
    close(fd);
    for (int i = 0; i < ELEMS; i++)
        values[i] = 100 - i;
    write_file(path, values, sizeof values);
    text = format_text("file:%s", path);
    bind_input(0, "in", text);
    job.core.offset = 1;
    begin();
    ck_assert_mem_eq(state->in->host, values, sizeof values);
    write_file(path, values, sizeof values - 4); /* shorter since setup looked */
    ck_assert_int_eq(tensors_fill(&run), GPURUN_ERROR);
    ck_assert_msg(strncmp(run.why.text, "x.ini:1: input: ", 16) == 0, "%s", run.why.text);
    ck_assert_ptr_nonnull(strstr(run.why.text, "11 elements, the job needs 12"));
    unlink(path);
    ck_assert_int_eq(tensors_fill(&run), GPURUN_ERROR);
    free(text);
}
END_TEST

/* --- between runs ---------------------------------------------------------------------------------------- */

static void check_bytes(const struct gpurun_tensor *t, int byte)
{
    for (size_t i = 0; i < t->bytes; i++)
        ck_assert_uint_eq(((unsigned char *)t->host)[i], (unsigned char)byte);
}

START_TEST(test_poison)
{
    int32_t in[ELEMS], acc[ELEMS];

    begin();
    memcpy(in, state->in->host, sizeof in);
    memcpy(acc, state->acc->host, sizeof acc);
    memset(state->out->host, 0, state->out->bytes);
    memset(state->scalar->host, 0, state->scalar->bytes);
    check_ok(tensors_poison(&run, false));
    check_bytes(state->out, 0xA5);
    check_bytes(state->scalar, 0xA5);
    ck_assert_mem_eq(state->in->host, in, sizeof in);
    ck_assert_mem_eq(state->acc->host, acc, sizeof acc);
}
END_TEST

START_TEST(test_restore)
{
    int32_t acc[ELEMS];

    begin();
    memcpy(acc, state->acc->host, sizeof acc);
    memset(state->acc->host, 1, state->acc->bytes);
    memset(state->out->host, 2, state->out->bytes);
    ck_assert_mem_eq(state->acc->original, acc, sizeof acc);
    check_ok(tensors_restore(&run, false));
    ck_assert_mem_eq(state->acc->host, acc, sizeof acc);
    check_bytes(state->out, 2);
    ck_assert_ptr_null(state->in->original);
    ck_assert_ptr_null(state->out->original);
}
END_TEST

START_TEST(test_reset_shapes)
{
    begin();
    state->out->rank = 1;
    state->out->dims[0] = 5;
    state->out->dims[1] = 99;
    state->out->elems = 5;
    state->out->bytes = 20;
    tensors_reset_shapes(&run);
    ck_assert_int_eq(state->out->rank, 2);
    ck_assert_int_eq(state->out->dims[0], 3);
    ck_assert_int_eq(state->out->dims[1], 4);
    ck_assert_int_eq(state->out->elems, 12);
    ck_assert_uint_eq(state->out->bytes, 48);
    ck_assert_int_eq(state->scalar->elems, 1);
}
END_TEST

/* Any one byte of an input, first to last, and it is put right for the next case. What is not purely
 * input may change. */
START_TEST(test_changed_inputs_are_seen)
{
    unsigned char *in, before[ELEMS * sizeof(int32_t)];

    job.core.offset = 1;
    begin();
    memset(state->acc->host, 1, state->acc->bytes);
    memset(state->out->host, 1, state->out->bytes);
    check_ok(tensors_check_inputs(&run, false));
    in = state->in->host;
    memcpy(before, in, sizeof before);
    for (size_t i = 0; i < state->in->bytes; i++) {
        in[i] ^= 1;
        ck_assert_int_eq(tensors_check_inputs(&run, false), GPURUN_INVALID);
        ck_assert_str_eq(run.why.text, "input in was written to: it is not to be changed");
        ck_assert_mem_eq(in, before, sizeof before);
        check_ok(tensors_check_inputs(&run, false));
    }
}
END_TEST

/* --- answers ------------------------------------------------------------------------------------------------- */

static union {
    int8_t i8[ELEMS];
    uint8_t u8[ELEMS];
    int16_t i16[ELEMS];
    uint16_t u16[ELEMS];
    int32_t i32[ELEMS];
    uint32_t u32[ELEMS];
    int64_t i64[ELEMS];
    uint64_t u64[ELEMS];
    float f32[ELEMS];
    double f64[ELEMS];
} values;

static const struct shown_case {
    enum gpurun_dtype dtype;
    const char *json; /* of the first four elements that set_values puts */
} shown_cases[] = {
    {GPURUN_INT8, "[-128, 127, 0, -1]"},
    {GPURUN_UINT8, "[0, 255, 128, 1]"},
    {GPURUN_INT16, "[-32768, 32767, 0, -1]"},
    {GPURUN_UINT16, "[0, 65535, 32768, 1]"},
    {GPURUN_INT32, "[-2147483648, 2147483647, 0, -1]"},
    {GPURUN_UINT32, "[0, 4294967295, 2147483648, 1]"},
    {GPURUN_INT64, "[-9223372036854775808, 9223372036854775807, 0, -1]"},
    {GPURUN_UINT64, "[\"18446744073709551615\", 9223372036854775807, \"9223372036854775808\", 0]"},
    {GPURUN_FLOAT, "[\"nan\", \"inf\", \"-inf\", 0.10000000149011612]"},
    {GPURUN_DOUBLE, "[\"nan\", \"inf\", \"-inf\", 1.7976931348623157e308]"},
    {GPURUN_HALF, "[\"nan\", \"inf\", \"-inf\", 65504.0]"},
    {GPURUN_BFLOAT16, "[\"nan\", \"inf\", \"-inf\", -1.0078125]"},
};

#define SET(field, ...)                                                                            \
    memcpy(values.field, (const __typeof__(values.field)){__VA_ARGS__}, sizeof values.field)

static void set_values(enum gpurun_dtype of)
{
    switch (of) {
    case GPURUN_INT8:
        SET(i8, INT8_MIN, INT8_MAX, 0, -1);
        break;
    case GPURUN_UINT8:
        SET(u8, 0, UINT8_MAX, 128, 1);
        break;
    case GPURUN_INT16:
        SET(i16, INT16_MIN, INT16_MAX, 0, -1);
        break;
    case GPURUN_UINT16:
        SET(u16, 0, UINT16_MAX, 32768, 1);
        break;
    case GPURUN_INT32:
        SET(i32, INT32_MIN, INT32_MAX, 0, -1);
        break;
    case GPURUN_UINT32:
        SET(u32, 0, UINT32_MAX, UINT32_C(1) << 31, 1);
        break;
    case GPURUN_INT64:
        SET(i64, INT64_MIN, INT64_MAX, 0, -1);
        break;
    case GPURUN_UINT64:
        SET(u64, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63, 0);
        break;
    case GPURUN_FLOAT:
        SET(f32, -NAN, INFINITY, -INFINITY, 0.1f);
        break;
    case GPURUN_HALF:
        SET(u16, 0xfe00, 0x7c00, 0xfc00, 0x7bff);
        break;
    case GPURUN_BFLOAT16:
        SET(u16, 0x7f81, 0x7f80, 0xff80, 0xbf81);
        break;
    default:
        SET(f64, NAN, INFINITY, -INFINITY, DBL_MAX);
    }
}

/* What is shown of one tensor, as text; for the caller to free. */
static char *shown_of(const char *tensor)
{
    json_t *all = tensors_show(&run);
    char *text =
        json_dumps(json_object_get(all, tensor), JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));

    json_decref(all);
    return text;
}

static void check_shown(const char *show, const char *tensor, const char *json)
{
    char *text;

    run.core.show = show;
    text = shown_of(tensor);
    if (json == NULL) {
        ck_assert_ptr_null(text);
    } else {
        ck_assert_msg(text != NULL, "%s of %s: nothing", show, tensor);
        ck_assert_str_eq(text, json);
    }
    free(text);
}

START_TEST(test_show_dtype)
{
    const struct shown_case *c = &shown_cases[_i];

    dtype = c->dtype;
    set_values(dtype);
    job.core.offset = 3;
    begin();
    memcpy(state->out->host, &values, state->out->bytes);
    check_shown("4", "out", c->json);
}
END_TEST

START_TEST(test_show)
{
    int32_t *out, *acc;

    begin();
    out = state->out->host;
    acc = state->acc->host;
    for (int i = 0; i < ELEMS; i++) {
        out[i] = i;
        acc[i] = -i;
    }
    *(int64_t *)state->scalar->host = 77;
    check_shown("2", "out", "[0, 1]");
    check_shown("2", "acc", "[0, -1]");
    check_shown("2", "scalar", "[77]");
    check_shown("2", "in", NULL); /* not an answer */
    check_shown("100", "out", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]");
    check_shown("0", "out", NULL);
    check_shown("2,3", "out", "[11]");
    check_shown("1,0", "acc", "[-4]");
    check_shown("0,0", "out", "[0]");
    check_shown("3,0", "out", NULL); /* outside */
    check_shown("0,4", "out", NULL);
    check_shown("1,1,1", "out", NULL);
    check_shown("1,1", "scalar", NULL);
    check_shown("9223372036854775807", "out", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]");
    state->out->elems = 1; /* what verify left of it */
    check_shown("3", "out", "[0]");
}
END_TEST

START_TEST(test_write_outputs)
{
    char folder[] = "/tmp/test_tensors_XXXXXX";
    int32_t out[ELEMS], back[2 * ELEMS];
    FILE *stream;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    outputs[0] = (struct binding){.key = "output.out", .tensor = "out", .text = "out.raw"};
    outputs[1] = (struct binding){.key = "output", .tensor = NULL, .text = "first.raw"};
    job.output_count = 2;
    begin();
    for (int i = 0; i < ELEMS; i++)
        ((int32_t *)state->out->host)[i] = out[i] = 1000 + i;
    check_ok(tensors_write_outputs(&run));
    stream = fopen("out.raw", "rb");
    ck_assert_ptr_nonnull(stream);
    ck_assert_uint_eq(fread(back, 1, sizeof back, stream), sizeof out);
    fclose(stream);
    ck_assert_mem_eq(back, out, sizeof out);
    stream = fopen("first.raw", "rb"); /* acc: inout is an answer, and it comes first */
    ck_assert_ptr_nonnull(stream);
    ck_assert_uint_eq(fread(back, 1, sizeof back, stream), state->acc->bytes);
    fclose(stream);
    ck_assert_mem_eq(back, state->acc->host, state->acc->bytes);
    unlink("out.raw");
    unlink("first.raw");
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    outputs[0].text = "/no/such/folder/out.raw";
    ck_assert_int_eq(tensors_write_outputs(&run), GPURUN_ERROR);
    ck_assert_msg(strncmp(run.why.text, "x.ini:1: output.out: ", 21) == 0, "%s", run.why.text);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static Suite *tensors_suite(void)
{
    Suite *suite = suite_create("tensors");
    TCase *bytes = tcase_create("bytes"), *answers = tcase_create("answers");

    tcase_add_checked_fixture(bytes, start, finish);
    tcase_add_loop_test(bytes, test_offset, 0, COUNT(offsets));
    tcase_add_test(bytes, test_fill);
    tcase_add_test(bytes, test_fill_is_the_seeds);
    tcase_add_test(bytes, test_fill_from_a_file);
    tcase_add_test(bytes, test_poison);
    tcase_add_test(bytes, test_restore);
    tcase_add_test(bytes, test_reset_shapes);
    tcase_add_test(bytes, test_changed_inputs_are_seen);
    tcase_add_checked_fixture(answers, start, finish);
    tcase_add_loop_test(answers, test_show_dtype, 0, COUNT(shown_cases));
    tcase_add_test(answers, test_show);
    tcase_add_test(answers, test_write_outputs);
    suite_add_tcase(suite, bytes);
    suite_add_tcase(suite, answers);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(tensors_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
