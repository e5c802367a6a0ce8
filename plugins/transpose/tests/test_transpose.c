/*
 * transpose on the CPU: setup, run_cpu and verify, against answers worked out by hand and answers of NumPy. The
 * core is a small fake whose tensors are allocated to the byte, so that a sanitizer sees any step outside them.
 */
#include "transpose.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "transpose_expected.h"

/* --- a fake core ------------------------------------------------------------------------------------ */

enum { TENSORS = 2, POISON = 0xa5, OFFSET_MOST = 3 };

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    struct transpose_options options;
    struct transpose_state state;
    struct gpurun_tensor tensors[TENSORS];
    void *blocks[TENSORS]; /* what the tensors lie in, `offset` elements from the start */
    void *original;        /* in place: the input as it was */
    int tensor_count, tensors_given;
    int64_t offset;
    struct gpurun_shape file;
    char message[512]; /* of the last failure or wrong element */
};

#include "plugin_core.h"

static struct gpurun_tensor *fake_tensor(struct gpurun_ctx *ctx, const char *name,
                                         enum gpurun_role role, enum gpurun_dtype dtype, int rank,
                                         const int64_t *dims)
{
    struct job *job = (struct job *)ctx;
    struct gpurun_tensor *t = &job->tensors[job->tensor_count];
    const size_t skip = (size_t)job->offset * gpurun_dtype_bytes(dtype);

    if (job->tensor_count >= job->tensors_given)
        return NULL;
    *t = (struct gpurun_tensor){
        .name = name, .role = role, .dtype = dtype, .rank = rank, .elems = 1};
    for (int i = 0; i < rank; i++) {
        t->dims[i] = dims[i];
        t->elems *= dims[i];
    }
    t->bytes = (size_t)t->elems * gpurun_dtype_bytes(dtype);
    job->blocks[job->tensor_count] = malloc(skip + t->bytes > 0 ? skip + t->bytes : 1);
    t->host = (char *)job->blocks[job->tensor_count++] + skip;
    return t;
}

static enum gpurun_status fake_input_shape(struct gpurun_ctx *ctx, const char *name,
                                           struct gpurun_shape *shape)
{
    const struct job *job = (struct job *)ctx;

    ck_assert_str_eq(name, "a");
    if (job->file.rank > 0)
        *shape = job->file;
    return GPURUN_OK;
}

static const struct gpurun_core fake_core = {.struct_size = sizeof(struct gpurun_core),
                                             .tensor = fake_tensor,
                                             .input_shape = fake_input_shape,
                                             .fail = fake_fail,
                                             .wrong = fake_wrong};

static struct job *job_new(enum gpurun_dtype dtype, int64_t rows, int64_t cols)
{
    struct job *job = calloc(1, sizeof(*job));

    job->ctx.core = &fake_core;
    job->ctx.options = &job->options;
    job->ctx.state = &job->state;
    job->ctx.threads = 2;
    job->tensors_given = TENSORS;
    job->options =
        (struct transpose_options){.rows = rows, .cols = cols, .dtype = dtype, .batch = 1};
    return job;
}

static void job_free(struct job *job)
{
    gpurun_plugin.teardown(&job->ctx);
    for (int i = 0; i < job->tensor_count; i++)
        free(job->blocks[i]);
    free(job->original);
    free(job);
}

static struct gpurun_tensor *job_out(struct job *job)
{
    return &job->tensors[job->tensor_count - 1];
}

/* Fills the input with `data`; the answer, where it has a place of its own, with poison. */
static void job_fill(struct job *job, const void *data)
{
    if (job->tensor_count > 1)
        memset(job->tensors[1].host, POISON, job->tensors[1].bytes);
    memcpy(job->tensors[0].host, data, job->tensors[0].bytes);
    if (job->tensors[0].role != GPURUN_INOUT)
        return;
    free(job->original);
    job->original = malloc(job->tensors[0].bytes + 1);
    memcpy(job->original, data, job->tensors[0].bytes);
    job->tensors[0].original = job->original;
}

static void job_setup(struct job *job, const void *data)
{
    ck_assert_msg(gpurun_plugin.setup(&job->ctx) == GPURUN_OK, "%s", job->message);
    job_fill(job, data);
}

/* How many elements verify calls wrong, whatever it was asked for. */
static int64_t job_verify(struct job *job)
{
    static const enum gpurun_verify modes[] = {GPURUN_VERIFY_FULL, GPURUN_VERIFY_CERTIFY};
    int64_t wrong = 0;

    for (int i = 0; i < 2; i++) {
        struct gpurun_proof proof = {.mode = modes[i]};

        job->message[0] = '\0';
        ck_assert_int_eq(gpurun_plugin.verify(&job->ctx, &proof), GPURUN_OK);
        ck_assert_ptr_nonnull(proof.detects);
        ck_assert_int_eq(proof.mode, GPURUN_VERIFY_FULL);
        ck_assert_int_eq(proof.checked, job_out(job)->elems);
        ck_assert(i == 0 || wrong == proof.wrong);
        wrong = proof.wrong;
    }
    return wrong;
}

static void job_run(struct job *job)
{
    ck_assert_int_eq(gpurun_plugin.run_cpu(&job->ctx), GPURUN_OK);
}

/* Sets a job up, runs it, compares the bytes with `answer`, has verify agree; frees the job. */
static void job_expect(struct job *job, const void *data, const void *answer, size_t bytes)
{
    job_setup(job, data);
    job_run(job);
    ck_assert_uint_eq(job_out(job)->bytes, bytes);
    ck_assert_mem_eq(job_out(job)->host, answer, bytes);
    ck_assert_msg(job_verify(job) == 0, "verify: %s", job->message);
    job_free(job);
}

/* --- run_cpu, by hand ------------------------------------------------------------------------------- */

START_TEST(rows_become_columns)
{
    static const int32_t data[] = {1, 2, 3, 4, 5, 6}, answer[] = {1, 4, 2, 5, 3, 6};

    job_expect(job_new(GPURUN_INT32, 2, 3), data, answer, sizeof(answer));
    job_expect(job_new(GPURUN_INT32, 3, 2), answer, data, sizeof(data));
}
END_TEST

START_TEST(a_row_becomes_a_column)
{
    static const uint8_t data[] = {3, 1, 4, 1, 5};

    job_expect(job_new(GPURUN_UINT8, 1, 5), data, data, sizeof(data));
    job_expect(job_new(GPURUN_UINT8, 5, 1), data, data, sizeof(data));
    job_expect(job_new(GPURUN_UINT8, 1, 1), data, data, 1);
}
END_TEST

START_TEST(every_matrix_of_a_batch)
{
    static const int16_t data[] = {1, 2, 3, 4, -5, -6, -7, -8};
    static const int16_t answer[] = {1, 3, 2, 4, -5, -7, -6, -8};
    static const int16_t flat[] = {1, 3, -5, -7, 2, 4, -6, -8};
    static const int16_t flat_answer[] = {1, 2, 3, 4, -5, -6, -7, -8};
    struct job *job = job_new(GPURUN_INT16, 2, 2);

    job->options.batch = 2;
    job_expect(job, data, answer, sizeof(answer));
    job_expect(job_new(GPURUN_INT16, 2, 4), flat, flat_answer, sizeof(flat_answer));
}
END_TEST

START_TEST(a_square_in_place)
{
    static const int64_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const int64_t answer[] = {1, 4, 7, 2, 5, 8, 3, 6, 9};
    struct job *job = job_new(GPURUN_INT64, 3, 3);

    job->options.inplace = 1;
    job_setup(job, data);
    ck_assert_int_eq(job->tensor_count, 1);
    ck_assert_int_eq(job->tensors[0].role, GPURUN_INOUT);
    for (int again = 0; again < 2; again++) {
        job_fill(job, data);
        job_run(job);
        ck_assert_mem_eq(job->tensors[0].host, answer, sizeof(answer));
        ck_assert_int_eq(job_verify(job), 0);
    }
    job_free(job);
}
END_TEST

/* Signalling and quiet NaN with payloads, both zeros, a denormal. */
START_TEST(every_bit_survives)
{
    static const uint32_t floats[] = {0x7f800001, 0xffc12345, 0x80000000,
                                      0x00000001, 0,          0x7fffffff};
    static const uint32_t floats_answer[] = {0x7f800001, 0x00000001, 0xffc12345,
                                             0,          0x80000000, 0x7fffffff};
    static const uint64_t doubles[] = {UINT64_C(0x7ff0000000000001), UINT64_C(0xfff8123456789abc),
                                       UINT64_C(0x8000000000000000), 1};
    static const uint64_t doubles_answer[] = {UINT64_C(0x7ff0000000000001),
                                              UINT64_C(0x8000000000000000),
                                              UINT64_C(0xfff8123456789abc), 1};

    job_expect(job_new(GPURUN_FLOAT, 2, 3), floats, floats_answer, sizeof(floats));
    job_expect(job_new(GPURUN_DOUBLE, 2, 2), doubles, doubles_answer, sizeof(doubles));
}
END_TEST

START_TEST(nothing_is_an_answer_too)
{
    static const int64_t shapes[][3] = {{0, 5, 1}, {5, 0, 1}, {0, 0, 1}, {5, 5, 0}};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int64_t inplace = 0; inplace < 2; inplace++) {
            struct job *job = job_new(GPURUN_FLOAT, shapes[i][0], shapes[i][1]);

            job->options.batch = shapes[i][2];
            job->options.inplace = inplace && shapes[i][0] == shapes[i][1];
            job_expect(job, "", "", 0);
        }
}
END_TEST

/* --- run_cpu, by NumPy ------------------------------------------------------------------------------- */

static uint64_t fnv(const void *data, size_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The input that make_transpose.py describes. */
static unsigned char *make_input(const struct expected *e)
{
    const size_t elems = (size_t)(e->batch * e->rows * e->cols);
    unsigned char *data = malloc(elems * e->size);

    for (size_t i = 0; i < elems; i++) {
        const uint64_t bits = i * UINT64_C(0x9e3779b97f4a7c15) + 1;

        for (size_t k = 0; k < e->size; k++)
            data[i * e->size + k] = (unsigned char)(bits >> 8 * k);
    }
    return data;
}

static void expect_numpy(const struct expected *e, enum gpurun_dtype dtype, int64_t offset,
                         int64_t inplace)
{
    struct job *job = job_new(dtype, e->rows, e->cols);
    unsigned char *data = make_input(e);

    job->options.batch = e->batch;
    job->options.inplace = inplace;
    job->offset = offset;
    job_setup(job, data);
    job_run(job);
    ck_assert_msg(fnv(job_out(job)->host, job_out(job)->bytes) == e->hash,
                  "%d of %d x %d %s, offset %d, inplace %d", (int)e->batch, (int)e->rows,
                  (int)e->cols, gpurun_dtype_name(dtype), (int)offset, (int)inplace);
    ck_assert_msg(job_verify(job) == 0, "verify: %s", job->message);
    free(data);
    job_free(job);
}

START_TEST(as_numpy_does)
{
    static const enum gpurun_dtype dtypes[] = {GPURUN_UINT8, GPURUN_INT16, GPURUN_INT32,
                                               GPURUN_INT64, GPURUN_FLOAT, GPURUN_DOUBLE};

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++)
            for (int64_t offset = 0; offset <= OFFSET_MOST; offset++) {
                const struct expected *e = &expected[i];

                if (gpurun_dtype_bytes(dtypes[d]) != e->size)
                    continue;
                expect_numpy(e, dtypes[d], offset, 0);
                if (e->rows == e->cols)
                    expect_numpy(e, dtypes[d], offset, 1);
            }
}
END_TEST

/* More tiles than a task has, and answers of some MB whose rows are whole lines (1088 floats) and are not. */
START_TEST(large_answers)
{
    static const int64_t sides[] = {1088, 1087};

    for (size_t i = 0; i < 2; i++)
        for (int64_t offset = 0; offset < 2; offset++) {
            struct job *job = job_new(GPURUN_FLOAT, sides[i], 1152);
            uint32_t *in;
            const uint32_t *out;
            int64_t wrong = 0;

            job->offset = offset;
            ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
            in = job->tensors[0].host;
            out = job->tensors[1].host;
            for (int64_t k = 0; k < sides[i] * 1152; k++)
                in[k] = (uint32_t)k;
            job_run(job);
            for (int64_t k = 0; k < sides[i] * 1152; k++)
                wrong += out[k] != (uint32_t)(k % sides[i] * 1152 + k / sides[i]);
            ck_assert_int_eq(wrong, 0);
            ck_assert_int_eq(job_verify(job), 0);
            job_free(job);
        }
}
END_TEST

/* --- setup ------------------------------------------------------------------------------------------- */

static void expect_refused(struct job *job, const char *message)
{
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_INVALID);
    ck_assert_msg(strstr(job->message, message) != NULL, "said: %s", job->message);
    job_free(job);
}

static struct job *file_job(int64_t rows, int64_t cols, int64_t batch, struct gpurun_shape file)
{
    struct job *job = job_new(GPURUN_FLOAT, rows, cols);

    job->options.batch = batch;
    job->file = file;
    return job;
}

#define FILE_OF(rank_, ...)                                                                        \
    (struct gpurun_shape)                                                                          \
    {                                                                                              \
        .dtype = GPURUN_FLOAT, .rank = (rank_), .dims = { __VA_ARGS__ }                            \
    }

START_TEST(setup_refuses_what_cannot_be)
{
    struct job *job = job_new(GPURUN_FLOAT, 3, 4);

    job->options.inplace = 1;
    expect_refused(job, "inplace: 3 x 4 is not square");
    expect_refused(job_new(GPURUN_UINT16, 3, 4), "dtype: the file's is uint16");
    expect_refused(job_new(GPURUN_HALF, 3, 4), "dtype: the file's is half");
    expect_refused(job_new(GPURUN_UINT8, INT64_C(1) << 40, INT64_C(1) << 40), "rows: 1 matrices");
    expect_refused(job_new(GPURUN_DOUBLE, INT64_C(1) << 30, INT64_C(1) << 30), "rows: 1 matrices");
    job = job_new(GPURUN_UINT8, INT64_C(1) << 30, INT64_C(1) << 30);
    job->options.batch = 8;
    expect_refused(job, "rows: 8 matrices");
}
END_TEST

START_TEST(setup_refuses_files_that_do_not_fit)
{
    expect_refused(file_job(3, GPURUN_AUTO, 1, FILE_OF(2, 4, 5)), "rows: 3, but the file has 4");
    expect_refused(file_job(4, 6, 1, FILE_OF(2, 4, 5)), "cols: 6, but the file has 5");
    expect_refused(file_job(4, 5, 2, FILE_OF(2, 4, 5)), "batch: 2, but the file has one matrix");
    expect_refused(file_job(4, 3, 1, FILE_OF(3, 5, 4, 3)), "batch: 1, but the file has 5 matrices");
    expect_refused(file_job(4, 5, 1, FILE_OF(4, 1, 1, 4, 5)), "input: the file has 4 dimensions");
    expect_refused(file_job(GPURUN_AUTO, 5, 1, FILE_OF(1, 20)), "rows: the file does not tell");
    expect_refused(file_job(4, GPURUN_AUTO, 1, FILE_OF(1, 20)), "cols: the file does not tell");
    expect_refused(file_job(4, 5, 1, FILE_OF(1, 21)), "but the file has 21 elements");
    expect_refused(file_job(INT64_C(1) << 40, INT64_C(1) << 40, 1, FILE_OF(1, 0)),
                   "but the file has 0 elements");
}
END_TEST

static void expect_shape(struct job *job, int64_t rows, int64_t cols, int rank)
{
    ck_assert_msg(gpurun_plugin.setup(&job->ctx) == GPURUN_OK, "%s", job->message);
    ck_assert_int_eq(job->options.rows, rows);
    ck_assert_int_eq(job->options.cols, cols);
    ck_assert_int_eq(job->tensors[0].rank, rank);
    ck_assert_int_eq(job->tensors[0].dims[rank - 2], rows);
    ck_assert_int_eq(job->tensors[0].dims[rank - 1], cols);
    ck_assert_int_eq(job_out(job)->dims[rank - 2], cols);
    ck_assert_int_eq(job_out(job)->dims[rank - 1], rows);
    ck_assert_int_eq((int64_t)job->ctx.work.bytes_read, (int64_t)job->tensors[0].bytes);
    ck_assert_int_eq((int64_t)job->ctx.work.bytes_written, (int64_t)job->tensors[0].bytes);
    job_free(job);
}

START_TEST(setup_takes_its_shape_from_the_file)
{
    const int64_t any = GPURUN_AUTO;
    struct job *job = file_job(any, any, 1, FILE_OF(2, 4, 5));

    job->options.dtype = GPURUN_AUTO;
    expect_shape(job, 4, 5, 2);
    expect_shape(file_job(any, 5, 3, FILE_OF(3, 3, 4, 5)), 4, 5, 3);
    expect_shape(file_job(4, 5, 1, FILE_OF(1, 20)), 4, 5, 2);
    expect_shape(file_job(4, 5, 2, FILE_OF(1, 40)), 4, 5, 3);
}
END_TEST

START_TEST(setup_without_a_file)
{
    const int64_t any = GPURUN_AUTO;
    struct job *job = job_new(GPURUN_FLOAT, any, any);

    job->options.dtype = GPURUN_AUTO;
    expect_shape(job, 1000, 1000, 2);
    expect_shape(job_new(GPURUN_INT16, 7, any), 7, 1000, 2);
    job = job_new(GPURUN_INT16, 7, any);
    job->options.inplace = 1;
    expect_shape(job, 7, 7, 2);
    job = job_new(GPURUN_INT16, any, 8);
    job->options.inplace = 1;
    expect_shape(job, 8, 8, 2);
}
END_TEST

START_TEST(setup_passes_on_that_a_tensor_is_not_given)
{
    for (int given = 0; given < TENSORS; given++) {
        struct job *job = job_new(GPURUN_FLOAT, 3, 4);

        job->tensors_given = given;
        ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_INVALID);
        job_free(job);
    }
}
END_TEST

/* --- verify ------------------------------------------------------------------------------------------ */

enum { ROWS = 203, COLS = 151 };

/* 203 x 151 different values, or 203 x 203 in place, and the right answer. */
static struct job *right_job(int64_t inplace)
{
    const int64_t cols = inplace ? ROWS : COLS;
    struct job *job = job_new(GPURUN_INT32, ROWS, cols);
    int32_t *data = malloc((size_t)(ROWS * cols) * sizeof(*data));

    for (int i = 0; i < ROWS * cols; i++)
        data[i] = (int32_t)((uint32_t)i * 2654435761u);
    job->options.inplace = inplace;
    job_setup(job, data);
    job_run(job);
    ck_assert_msg(job_verify(job) == 0, "%s", job->message);
    free(data);
    return job;
}

START_TEST(verify_refuses_one_changed_value)
{
    for (int64_t inplace = 0; inplace < 2; inplace++) {
        struct job *job = right_job(inplace);

        ((int32_t *)job_out(job)->host)[100 * ROWS + 7] ^= 1;
        ck_assert_int_eq(job_verify(job), 1);
        ck_assert_str_eq(job->message,
                         "matrix 0, row 100, column 7 is not the input's row 7, column 100");
        job_free(job);
    }
}
END_TEST

START_TEST(verify_refuses_one_swapped_pair)
{
    for (int64_t inplace = 0; inplace < 2; inplace++) {
        struct job *job = right_job(inplace);
        int32_t *out = job_out(job)->host;
        const int32_t kept = out[5];

        out[5] = out[ROWS * 150 + 202];
        out[ROWS * 150 + 202] = kept;
        ck_assert_int_eq(job_verify(job), 2);
        job_free(job);
    }
}
END_TEST

/* The poison, the input as it was, and the answer to another input. */
START_TEST(verify_refuses_a_stale_output)
{
    struct job *job = right_job(0), *in_place = right_job(1);

    memset(job->tensors[1].host, POISON, job->tensors[1].bytes);
    ck_assert_int_eq(job_verify(job), ROWS * COLS);
    memcpy(job->tensors[1].host, job->tensors[0].host, job->tensors[0].bytes);
    ck_assert_int_ge(job_verify(job), ROWS * COLS - ROWS - COLS);
    job_run(job);
    ((int32_t *)job->tensors[0].host)[11] += 1;
    ck_assert_int_eq(job_verify(job), 1);
    memcpy(in_place->tensors[0].host, in_place->original, in_place->tensors[0].bytes);
    ck_assert_int_eq(job_verify(in_place), ROWS * ROWS - ROWS);
    job_free(job);
    job_free(in_place);
}
END_TEST

/* A truth that calls an answer right must not depend on who ran first: nobody, here. */
START_TEST(verify_before_any_run)
{
    static const int32_t data[] = {1, 2, 3, 4};
    struct job *job = job_new(GPURUN_INT32, 2, 2);

    job->options.inplace = 1;
    job_setup(job, data);
    ck_assert_int_eq(job_verify(job), 2);
    job_run(job);
    ck_assert_int_eq(job_verify(job), 0);
    job_free(job);
}
END_TEST

/* Of what a kernel computes the number counts; of what is moved every bit does. */
START_TEST(verify_by_value_takes_another_nan_alone)
{
    static const uint32_t data[] = {0x7fc12345, 0x80000000, 0x3f800000, 0x7f800000};
    static const uint32_t other[] = {0x7fffffff, 0x3f800000, 0, 0x7f800000};
    static const uint32_t wrong[] = {0x7f800000, 0x3f800001, 0x7fc00000, 0xff800000};
    static const uint64_t wide[] = {UINT64_C(0x7ff8000000001234), 0, 1, 2};
    static const uint64_t wide_other[] = {UINT64_C(0x7fffffffffffffff), 1, 0, 2};
    struct job *job = job_new(GPURUN_FLOAT, 2, 2);

    job_setup(job, data);
    memcpy(job->tensors[1].host, other, sizeof(other));
    ck_assert_int_eq(job_verify(job), 2);
    job->state.by_value = true;
    ck_assert_int_eq(job_verify(job), 0);
    memcpy(job->tensors[1].host, wrong, sizeof(wrong));
    ck_assert_int_eq(job_verify(job), 4);
    job_run(job);
    memcpy(job->tensors[1].host, other, sizeof(other));
    ck_assert_int_eq(job_verify(job), 2);
    job_free(job);
    job = job_new(GPURUN_DOUBLE, 2, 2);
    job_setup(job, wide);
    job->state.by_value = true;
    memcpy(job->tensors[1].host, wide_other, sizeof(wide_other));
    ck_assert_int_eq(job_verify(job), 0);
    job_free(job);
}
END_TEST

/* --- the suite ---------------------------------------------------------------------------------------- */

static Suite *transpose_suite(void)
{
    Suite *suite = suite_create("transpose");
    TCase *run = tcase_create("run_cpu"), *setup = tcase_create("setup");
    TCase *verify = tcase_create("verify");

    tcase_set_timeout(run, 60);
    tcase_add_test(run, rows_become_columns);
    tcase_add_test(run, a_row_becomes_a_column);
    tcase_add_test(run, every_matrix_of_a_batch);
    tcase_add_test(run, a_square_in_place);
    tcase_add_test(run, every_bit_survives);
    tcase_add_test(run, nothing_is_an_answer_too);
    tcase_add_test(run, as_numpy_does);
    tcase_add_test(run, large_answers);
    suite_add_tcase(suite, run);

    tcase_add_test(setup, setup_refuses_what_cannot_be);
    tcase_add_test(setup, setup_refuses_files_that_do_not_fit);
    tcase_add_test(setup, setup_takes_its_shape_from_the_file);
    tcase_add_test(setup, setup_without_a_file);
    tcase_add_test(setup, setup_passes_on_that_a_tensor_is_not_given);
    suite_add_tcase(suite, setup);

    tcase_add_test(verify, verify_refuses_one_changed_value);
    tcase_add_test(verify, verify_refuses_one_swapped_pair);
    tcase_add_test(verify, verify_refuses_a_stale_output);
    tcase_add_test(verify, verify_before_any_run);
    tcase_add_test(verify, verify_by_value_takes_another_nan_alone);
    suite_add_tcase(suite, verify);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(transpose_suite());
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
