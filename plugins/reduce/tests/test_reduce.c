/*
 * reduce on the CPU: setup, run_cpu and verify, against answers worked out by hand and sums worked out by
 * Python's fractions. The core is a small fake whose tensors are allocated to the byte, so that a sanitizer
 * sees any step outside them.
 */
#include "reduce.h"
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- a fake core ------------------------------------------------------------------------------------ */

enum { TENSORS = 3, POISON = 0xa5, MANY = (1 << 24) + 1000 };

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    struct reduce_options options;
    struct reduce_state state;
    struct gpurun_tensor tensors[TENSORS];
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

    ck_assert_str_eq(name, "in");
    if (job->file.rank > 0)
        *shape = job->file;
    return GPURUN_OK;
}

static const struct gpurun_core fake_core = FAKE_CORE(fake_allocate, fake_input_shape);

static struct job *job_new(enum gpurun_dtype dtype, enum reduce_op op, int64_t n)
{
    struct job *job = calloc(1, sizeof(*job));

    job->ctx.core = &fake_core;
    job->ctx.options = &job->options;
    job->ctx.state = &job->state;
    job->ctx.threads = 2;
    job->options = (struct reduce_options){.n = n,
                                           .dtype = dtype,
                                           .op = op,
                                           .accumulate = GPURUN_AUTO,
                                           .deterministic = 1,
                                           .block = 256};
    return job;
}

static void job_free(struct job *job)
{
    gpurun_plugin.teardown(&job->ctx);
    for (int i = 0; i < job->tensor_count; i++)
        free(job->tensors[i].host);
    free(job);
}

/* Runs on `data`; the answer is judged, and must be right. */
static void job_run(struct job *job, const void *data)
{
    ck_assert_msg(gpurun_plugin.setup(&job->ctx) == GPURUN_OK, "%s", job->message);
    if (job->tensors[0].bytes > 0)
        memcpy(job->tensors[0].host, data, job->tensors[0].bytes);
    for (int i = 1; i < job->tensor_count; i++)
        memset(job->tensors[i].host, POISON, job->tensors[i].bytes);
    ck_assert_int_eq(gpurun_plugin.run_cpu(&job->ctx), GPURUN_OK);
}

/* How many elements verify calls wrong. */
static int64_t job_verify(struct job *job)
{
    job->message[0] = '\0';
    job->proof = (struct gpurun_proof){.mode = GPURUN_VERIFY_AUTO};
    ck_assert_int_eq(gpurun_plugin.verify(&job->ctx, &job->proof), GPURUN_OK);
    ck_assert_ptr_nonnull(job->proof.detects);
    ck_assert_int_eq(job->proof.mode, GPURUN_VERIFY_FULL);
    ck_assert_int_eq(job->proof.checked, job->state.index ? 2 : 1);
    return job->proof.wrong;
}

static void job_expect_right(struct job *job)
{
    ck_assert_msg(job_verify(job) == 0, "%s", job->message);
}

static void *value_of(struct job *job)
{
    return job->state.value->host;
}

/* A whole answer, then freed. */
static void expect_whole(struct job *job, const void *data, enum gpurun_dtype dtype, int64_t value)
{
    job_run(job, data);
    ck_assert_int_eq(job->state.value->dtype, dtype);
    if (gpurun_dtype_bytes(dtype) == 4)
        ck_assert_int_eq(*(int32_t *)value_of(job), (int32_t)value);
    else
        ck_assert_int_eq(*(int64_t *)value_of(job), value);
    job_expect_right(job);
    ck_assert(job->proof.bound <= 0 && job->proof.worst_error <= 0);
    job_free(job);
}

static double real_value(struct job *job)
{
    return job->state.value->dtype == GPURUN_FLOAT ? (double)*(float *)value_of(job)
                                                   : *(double *)value_of(job);
}

static bool is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a <= b && a >= b);
}

static void expect_real(struct job *job, const void *data, double value)
{
    job_run(job, data);
    ck_assert_msg(is_same(real_value(job), value), "%g is not %g", real_value(job), value);
    job_expect_right(job);
    job_free(job);
}

/* --- by hand: whole numbers --------------------------------------------------------------------------- */

static const int32_t seven[] = {3, -9, INT32_MAX, 7, -9, INT32_MAX, 1};

static struct job *int32_job(enum reduce_op op, int64_t n)
{
    return job_new(GPURUN_INT32, op, n);
}

static void expect_place(struct job *job, const void *data, int64_t index)
{
    const size_t size = gpurun_dtype_bytes((enum gpurun_dtype)job->options.dtype);

    job_run(job, data);
    ck_assert_int_eq(*(int64_t *)job->state.index->host, index);
    ck_assert_mem_eq(value_of(job), (const char *)data + (size_t)index * size, size);
    job_expect_right(job);
    job_free(job);
}

START_TEST(int32_by_hand)
{
    expect_whole(int32_job(REDUCE_SUM, 7), seven, GPURUN_INT64, INT64_C(4294967287));
    expect_whole(int32_job(REDUCE_MIN, 7), seven, GPURUN_INT32, -9);
    expect_whole(int32_job(REDUCE_MAX, 7), seven, GPURUN_INT32, INT32_MAX);
    expect_place(int32_job(REDUCE_ARGMIN, 7), seven, 1);
    expect_place(int32_job(REDUCE_ARGMAX, 7), seven, 2);
}
END_TEST

START_TEST(sums_wrap_in_the_width_they_accumulate_in)
{
    static const int64_t longs[] = {INT64_MAX, 1, 5};
    static const uint64_t ulongs[] = {UINT64_MAX, 3};
    static const uint32_t uints[] = {UINT32_MAX, UINT32_MAX};
    struct job *job = int32_job(REDUCE_SUM, 7);

    job->options.accumulate = REDUCE_SAME;
    expect_whole(job, seven, GPURUN_INT32, -9);
    job = job_new(GPURUN_UINT32, REDUCE_SUM, 2);
    job->options.accumulate = REDUCE_SAME;
    expect_whole(job, uints, GPURUN_UINT32, (int32_t)(UINT32_MAX - 1));
    expect_whole(job_new(GPURUN_UINT32, REDUCE_SUM, 2), uints, GPURUN_UINT64,
                 INT64_C(2) * UINT32_MAX);
    expect_whole(job_new(GPURUN_INT64, REDUCE_SUM, 3), longs, GPURUN_INT64, INT64_MIN + 5);
    expect_whole(job_new(GPURUN_UINT64, REDUCE_SUM, 2), ulongs, GPURUN_UINT64, 2);
}
END_TEST

START_TEST(extremes_of_every_whole_dtype)
{
    static const uint32_t u[] = {5, UINT32_MAX, 0, 0x80000000u, 0};
    static const int64_t l[] = {0, INT64_MIN, -1, INT64_MAX, INT64_C(1) << 32};
    static const uint64_t w[] = {UINT64_C(1) << 63, 1, UINT64_MAX, 1, 7};

    expect_whole(job_new(GPURUN_UINT32, REDUCE_MIN, 5), u, GPURUN_UINT32, 0);
    expect_whole(job_new(GPURUN_UINT32, REDUCE_MAX, 5), u, GPURUN_UINT32, -1);
    expect_place(job_new(GPURUN_UINT32, REDUCE_ARGMIN, 5), u, 2);
    expect_place(job_new(GPURUN_UINT32, REDUCE_ARGMAX, 5), u, 1);
    expect_whole(job_new(GPURUN_INT64, REDUCE_MIN, 5), l, GPURUN_INT64, INT64_MIN);
    expect_whole(job_new(GPURUN_INT64, REDUCE_MAX, 5), l, GPURUN_INT64, INT64_MAX);
    expect_place(job_new(GPURUN_INT64, REDUCE_ARGMIN, 5), l, 1);
    expect_place(job_new(GPURUN_INT64, REDUCE_ARGMAX, 5), l, 3);
    expect_whole(job_new(GPURUN_UINT64, REDUCE_MIN, 5), w, GPURUN_UINT64, 1);
    expect_whole(job_new(GPURUN_UINT64, REDUCE_MAX, 5), w, GPURUN_UINT64, -1);
    expect_place(job_new(GPURUN_UINT64, REDUCE_ARGMIN, 5), w, 1);
    expect_place(job_new(GPURUN_UINT64, REDUCE_ARGMAX, 5), w, 2);
}
END_TEST

/* --- by hand: reals ----------------------------------------------------------------------------------- */

/* As float and as double: the sum or the extreme, and for extremes the place. */
static void expect_reals(enum reduce_op op, const double *data, int n, double value, int64_t index)
{
    const enum reduce_op place = op == REDUCE_MIN ? REDUCE_ARGMIN : REDUCE_ARGMAX;
    float narrow[16];

    for (int i = 0; i < n; i++)
        narrow[i] = (float)data[i];
    expect_real(job_new(GPURUN_DOUBLE, op, n), data, value);
    expect_real(job_new(GPURUN_FLOAT, op, n), narrow, value);
    if (op == REDUCE_SUM)
        return;
    expect_place(job_new(GPURUN_DOUBLE, place, n), data, index);
    expect_place(job_new(GPURUN_FLOAT, place, n), narrow, index);
}

START_TEST(reals_by_hand)
{
    static const double plain[] = {1.5, -2.25, 8, 8, -2.25};
    static const double nans[] = {1, NAN, -INFINITY, -NAN, INFINITY};
    static const double ups[] = {INFINITY, INFINITY}, downs[] = {-INFINITY, -INFINITY};
    static const double both[] = {1, INFINITY, -INFINITY}, zeros[] = {-0.0, 0.0, -0.0};

    expect_reals(REDUCE_SUM, plain, 5, 13, -1);
    expect_reals(REDUCE_MIN, plain, 5, -2.25, 1);
    expect_reals(REDUCE_MAX, plain, 5, 8, 2);
    expect_reals(REDUCE_SUM, nans, 5, NAN, -1);
    expect_reals(REDUCE_MIN, nans, 5, NAN, 1);
    expect_reals(REDUCE_MAX, nans, 5, NAN, 1);
    expect_reals(REDUCE_SUM, ups, 2, INFINITY, -1);
    expect_reals(REDUCE_MIN, ups, 2, INFINITY, 0);
    expect_reals(REDUCE_MAX, downs, 2, -INFINITY, 0);
    expect_reals(REDUCE_SUM, downs, 2, -INFINITY, -1);
    expect_reals(REDUCE_SUM, both, 3, NAN, -1);
    expect_reals(REDUCE_MIN, both, 3, -INFINITY, 2);
    expect_reals(REDUCE_MAX, both, 3, INFINITY, 1);
    expect_reals(REDUCE_SUM, zeros, 3, 0, -1);
    expect_reals(REDUCE_MIN, zeros, 3, 0, 0);
    expect_reals(REDUCE_MAX, zeros + 1, 2, 0, 0);
}
END_TEST

START_TEST(float_sums_can_be_wide)
{
    static const float data[] = {16777216.0f, 1, 1, 1, -16777216.0f, 0.5f};
    struct job *job = job_new(GPURUN_FLOAT, REDUCE_SUM, 6);

    job->options.accumulate = REDUCE_WIDE;
    job_run(job, data);
    ck_assert_int_eq(job->state.value->dtype, GPURUN_DOUBLE);
    ck_assert(is_same(real_value(job), 3.5));
    job_expect_right(job);
    job_free(job);
}
END_TEST

START_TEST(double_sums_above_what_a_double_holds)
{
    static const double data[] = {DBL_MAX, DBL_MAX, -DBL_MAX, -DBL_MAX, 1};
    struct job *job = job_new(GPURUN_DOUBLE, REDUCE_SUM, 5);

    job_run(job, data);
    job_expect_right(job); /* an infinity on the way cannot be held against it */
    *(double *)value_of(job) = 1;
    job_expect_right(job);
    *(double *)value_of(job) = 1e300;
    ck_assert_int_eq(job_verify(job), 1);
    job_free(job);
}
END_TEST

/* --- sizes -------------------------------------------------------------------------------------------- */

static const int64_t sizes[] = {1,     2,     31,    32,    33,     63,    64,
                                65,    1000,  1023,  1024,  1025,   8191,  16384,
                                16385, 65535, 65536, 65537, 100003, 300007};

/* Element i is i mod 7, so the sum is known; the least is the first 0, the largest the first 6. */
static void fill(void *data, enum gpurun_dtype dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (dtype == GPURUN_FLOAT)
            ((float *)data)[i] = (float)(i % 7);
        else if (dtype == GPURUN_DOUBLE)
            ((double *)data)[i] = (double)(i % 7);
        else if (gpurun_dtype_bytes(dtype) == 4)
            ((int32_t *)data)[i] = (int32_t)(i % 7);
        else
            ((int64_t *)data)[i] = i % 7;
    }
}

static int64_t sum_of(int64_t n)
{
    return n / 7 * 21 + (n % 7) * (n % 7 - 1) / 2;
}

static void sizes_of_dtype(enum gpurun_dtype dtype, int64_t n, void *data)
{
    const bool is_real = dtype >= GPURUN_FLOAT;
    const enum gpurun_dtype sum_dtype = dtype == GPURUN_INT32    ? GPURUN_INT64
                                        : dtype == GPURUN_UINT32 ? GPURUN_UINT64
                                                                 : dtype;

    fill(data, dtype, n);
    expect_place(job_new(dtype, REDUCE_ARGMIN, n), data, 0);
    expect_place(job_new(dtype, REDUCE_ARGMAX, n), data, n > 6 ? 6 : n - 1);
    if (is_real) {
        expect_real(job_new(dtype, REDUCE_SUM, n), data, (double)sum_of(n));
        expect_real(job_new(dtype, REDUCE_MIN, n), data, 0);
        expect_real(job_new(dtype, REDUCE_MAX, n), data, n > 6 ? 6 : (double)(n - 1));
    } else {
        expect_whole(job_new(dtype, REDUCE_SUM, n), data, sum_dtype, sum_of(n));
        expect_whole(job_new(dtype, REDUCE_MIN, n), data, dtype, 0);
        expect_whole(job_new(dtype, REDUCE_MAX, n), data, dtype, n > 6 ? 6 : n - 1);
    }
}

START_TEST(every_size_of_every_dtype)
{
    const int64_t n = sizes[_i];
    void *data = malloc((size_t)n * 8);

    for (int dtype = GPURUN_INT32; dtype <= GPURUN_DOUBLE; dtype++)
        sizes_of_dtype((enum gpurun_dtype)dtype, n, data);
    free(data);
}
END_TEST

/* The best element at each end of pieces and vectors. */
START_TEST(the_place_is_found_wherever_it_is)
{
    enum { N = 40000 };
    static const int64_t at[] = {0, 1, 7, 8, 4095, 8191, 8192, 16383, 16384, 32767, 32768, N - 1};
    float *data = calloc(N, sizeof(*data));

    for (size_t i = 0; i < GPURUN_COUNT(at); i++) {
        data[at[i]] = -1;
        expect_place(job_new(GPURUN_FLOAT, REDUCE_ARGMIN, N), data, at[i]);
        data[at[i]] = NAN;
        expect_place(job_new(GPURUN_FLOAT, REDUCE_ARGMAX, N), data, at[i]);
        data[at[i]] = 0;
    }
    free(data);
}
END_TEST

START_TEST(the_sum_of_nothing_is_0)
{
    for (int dtype = GPURUN_INT32; dtype <= GPURUN_DOUBLE; dtype++) {
        struct job *job = job_new((enum gpurun_dtype)dtype, REDUCE_SUM, 0);

        job_run(job, NULL);
        ck_assert_int_eq(gpurun_dtype_bytes(job->state.value->dtype) == 4
                             ? *(int32_t *)value_of(job)
                             : *(int64_t *)value_of(job),
                         0);
        job_expect_right(job);
        job_free(job);
    }
}
END_TEST

START_TEST(threads_do_not_change_a_bit)
{
    enum { N = 200001 };
    float *data = malloc(N * sizeof(*data)), first = 0;

    for (int i = 0; i < N; i++)
        data[i] = 1.0f / (float)(i + 1);
    for (int threads = 1; threads < 6; threads++) {
        struct job *job = job_new(GPURUN_FLOAT, REDUCE_SUM, N);

        job->ctx.threads = threads;
        job_run(job, data);
        if (threads == 1)
            first = *(float *)value_of(job);
        ck_assert_mem_eq(&first, value_of(job), sizeof(first));
        job_free(job);
    }
    free(data);
}
END_TEST

/* --- setup -------------------------------------------------------------------------------------------- */

static void expect_refusal(struct job *job, const char *message)
{
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_INVALID);
    ck_assert_str_eq(job->message, message);
    job_free(job);
}

START_TEST(setup_refuses_what_cannot_be)
{
    struct job *job = int32_job(REDUCE_SUM, 10);

    job->options.block = 97;
    expect_refusal(job, "block: 97 is not a power of 2");
    expect_refusal(int32_job(REDUCE_MIN, 0),
                   "n: 0 elements have no min: only the sum of nothing is defined");
    expect_refusal(int32_job(REDUCE_ARGMAX, 0),
                   "n: 0 elements have no argmax: only the sum of nothing is defined");
    expect_refusal(int32_job(REDUCE_SUM, INT64_C(1) << 61),
                   "n: 2305843009213693952 elements are more than 64 bits can address");
    job = job_new(GPURUN_INT32, REDUCE_SUM, 8);
    job->file = (struct gpurun_shape){GPURUN_INT32, 2, {3, 5}};
    expect_refusal(job, "n: 8, but the file has 15");
    job = job_new(GPURUN_INT32, REDUCE_SUM, 8);
    job->file = (struct gpurun_shape){GPURUN_UINT8, 1, {8}};
    expect_refusal(
        job, "dtype: the file's is uint8; reduce takes int32 uint32 int64 uint64 float double");
}
END_TEST

START_TEST(setup_takes_its_shape_from_the_file)
{
    struct job *job = job_new(GPURUN_INT32, REDUCE_ARGMIN, GPURUN_AUTO);

    job->options.dtype = GPURUN_AUTO;
    job->file = (struct gpurun_shape){GPURUN_DOUBLE, 2, {3, 5}};
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    ck_assert_int_eq(job->options.n, 15);
    ck_assert_int_eq(job->options.dtype, GPURUN_DOUBLE);
    ck_assert_int_eq(job->options.accumulate, REDUCE_SAME);
    ck_assert(job->ctx.work.bytes_read >= 120 && job->ctx.work.bytes_read <= 120);
    ck_assert(job->ctx.work.bytes_written >= 16 && job->ctx.work.bytes_written <= 16);
    job_free(job);
    job = job_new(GPURUN_INT32, REDUCE_SUM, GPURUN_AUTO);
    job->options.dtype = GPURUN_AUTO;
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    ck_assert_int_eq(job->options.n, 1000000);
    ck_assert_int_eq(job->options.dtype, GPURUN_INT32);
    ck_assert_int_eq(job->options.accumulate, REDUCE_WIDE);
    ck_assert_ptr_null(job->state.index);
    job_free(job);
}
END_TEST

/* --- verify refuses ------------------------------------------------------------------------------------- */

START_TEST(verify_refuses_a_sum_that_is_off_by_one)
{
    struct job *job = int32_job(REDUCE_SUM, 7);

    job_run(job, seven);
    ++*(int64_t *)value_of(job);
    ck_assert_int_eq(job_verify(job), 1);
    ck_assert_str_eq(job->message, "value is 4294967288, should be 4294967287");
    ck_assert(job->proof.worst_error >= 1 && job->proof.worst_error <= 1);
    *(int64_t *)value_of(job) ^= INT64_MIN;
    ck_assert_int_eq(job_verify(job), 1);
    *(int64_t *)value_of(job) = (int32_t)INT64_C(4294967287); /* as if it had wrapped at 32 bits */
    ck_assert_int_eq(job_verify(job), 1);
    job_free(job);
}
END_TEST

START_TEST(verify_refuses_wrong_extremes)
{
    struct job *job = int32_job(REDUCE_MIN, 7);

    job_run(job, seven);
    *(int32_t *)value_of(job) = 1;
    ck_assert_int_eq(job_verify(job), 1);
    ck_assert_str_eq(job->message, "value is 1, should be -9");
    job_free(job);
}
END_TEST

START_TEST(verify_refuses_wrong_places)
{
    struct job *job = int32_job(REDUCE_ARGMAX, 7);
    int64_t *index;

    job_run(job, seven);
    index = job->state.index->host;
    *index = 5; /* the same value, but not the first */
    ck_assert_int_eq(job_verify(job), 1);
    ck_assert_str_eq(job->message, "index is 5, should be 2");
    *index = -1;
    ck_assert_int_eq(job_verify(job), 1);
    *index = INT64_MAX;
    ck_assert_int_eq(job_verify(job), 1);
    *index = 2;
    *(int32_t *)value_of(job) = 7;
    ck_assert_int_eq(job_verify(job), 1);
    job_free(job);
}
END_TEST

START_TEST(verify_refuses_what_is_not_a_number)
{
    static const float plain[] = {1, 2, 3}, with_nan[] = {1, NAN, 3};

    for (int op = REDUCE_SUM; op <= REDUCE_MAX; op++) {
        struct job *job = job_new(GPURUN_FLOAT, (enum reduce_op)op, 3);

        job_run(job, plain);
        *(float *)value_of(job) = NAN;
        ck_assert_int_eq(job_verify(job), 1);
        *(float *)value_of(job) = INFINITY;
        ck_assert_int_eq(job_verify(job), 1);
        job_free(job);
        job = job_new(GPURUN_FLOAT, (enum reduce_op)op, 3);
        job_run(job, with_nan);
        *(float *)value_of(job) = 1;
        ck_assert_int_eq(job_verify(job), 1);
        *(float *)value_of(job) = INFINITY;
        ck_assert_int_eq(job_verify(job), 1);
        job_free(job);
    }
}
END_TEST

START_TEST(verify_tells_infinities_apart)
{
    static const double up[] = {1, INFINITY, 3};
    struct job *job = job_new(GPURUN_DOUBLE, REDUCE_SUM, 3);

    job_run(job, up);
    *(double *)value_of(job) = -INFINITY;
    ck_assert_int_eq(job_verify(job), 1);
    *(double *)value_of(job) = NAN;
    ck_assert_int_eq(job_verify(job), 1);
    *(double *)value_of(job) = DBL_MAX;
    ck_assert_int_eq(job_verify(job), 1);
    job_free(job);
}
END_TEST

/* 2^24 + 1000 ones: a single float stops growing at 2^24. */
START_TEST(verify_refuses_a_sum_that_sticks)
{
    float *ones = malloc(MANY * sizeof(*ones));
    struct job *job = job_new(GPURUN_FLOAT, REDUCE_SUM, MANY);

    for (int i = 0; i < MANY; i++)
        ones[i] = 1;
    job_run(job, ones);
    ck_assert(is_same(*(float *)value_of(job), MANY));
    job_expect_right(job);
    *(float *)value_of(job) = 0x1p24f;
    ck_assert_int_eq(job_verify(job), 1);
    job_free(job);
    free(ones);
}
END_TEST

/* Of 1024 ones the bound is 64 * 2^-24 * 1024 = 2^-8, 64 units in the last place below 1024. */
START_TEST(verify_draws_the_line_at_its_bound)
{
    float ones[1024];
    struct job *job = job_new(GPURUN_FLOAT, REDUCE_SUM, 1024);

    for (int i = 0; i < 1024; i++)
        ones[i] = 1;
    job_run(job, ones);
    ck_assert_int_eq(job_verify(job), 0);
    ck_assert(is_same(job->proof.bound, 0x1p-8));
    *(float *)value_of(job) = 1024 - 0x1p-8f;
    ck_assert_int_eq(job_verify(job), 0);
    ck_assert(is_same(job->proof.worst_error, 0x1p-8));
    *(float *)value_of(job) = nextafterf(1024 - 0x1p-8f, 0);
    ck_assert_int_eq(job_verify(job), 1);
    *(float *)value_of(job) = nextafterf(1024 + 0x1p-8f, INFINITY);
    ck_assert_int_eq(job_verify(job), 1);
    job_free(job);
}
END_TEST

/* Few elements have short chains: two may be off by one rounding, one not at all. */
START_TEST(the_bound_of_few_elements_is_tight)
{
    static const double pair[] = {1, 0x1p-53};
    struct job *job = job_new(GPURUN_DOUBLE, REDUCE_SUM, 2);

    job_run(job, pair);
    ck_assert_int_eq(job_verify(job), 0);
    *(double *)value_of(job) = nextafter(1, 2);
    ck_assert_int_eq(job_verify(job), 0);
    *(double *)value_of(job) = nextafter(nextafter(1, 2), 2);
    ck_assert_int_eq(job_verify(job), 1);
    job_free(job);
    job = job_new(GPURUN_DOUBLE, REDUCE_SUM, 1);
    job_run(job, pair);
    ck_assert(is_same(job->proof.bound, 0));
    *(double *)value_of(job) = nextafter(1, 2);
    ck_assert_int_eq(job_verify(job), 1);
    job_free(job);
}
END_TEST

/* --- the truth against Python --------------------------------------------------------------------------- */

/* Worked out by Python's fractions. */
enum { DRAWN = 20000, SPREAD = 61 };
#define DOUBLE_HIGH 0x1.76179e5f9e4fcp+32
#define DOUBLE_LOW  0x1.2d4e295fe9935p-22
#define FLOAT_HIGH  0x1.76179f0d0c407p+32

/* A linear congruential generator whose top 53 bits, less a half, and times a power of two, are elements. */
static double drawn(uint64_t *state, int i)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ldexp((double)(*state >> 11) * 0x1p-53 - 0.5, i * 7 % SPREAD - SPREAD / 2);
}

START_TEST(double_double_truth_is_what_fractions_say)
{
    double *data = malloc(DRAWN * sizeof(*data));
    float *narrow = malloc(DRAWN * sizeof(*narrow));
    uint64_t state = 1;
    struct job *job;

    for (int i = 0; i < DRAWN; i++) {
        data[i] = drawn(&state, i);
        narrow[i] = (float)data[i];
    }
    job = job_new(GPURUN_DOUBLE, REDUCE_SUM, DRAWN);
    job_run(job, data);
    job_expect_right(job);
    ck_assert(is_same(job->state.truth.sum + job->state.truth.rest, DOUBLE_HIGH));
    ck_assert(fabs((job->state.truth.sum - DOUBLE_HIGH) + job->state.truth.rest - DOUBLE_LOW) <=
              fabs(DOUBLE_HIGH) * 0x1p-80);
    job_free(job);
    job = job_new(GPURUN_FLOAT, REDUCE_SUM, DRAWN);
    job_run(job, narrow);
    job_expect_right(job);
    ck_assert(is_same(job->state.truth.sum + job->state.truth.rest, FLOAT_HIGH));
    job_free(job);
    free(data);
    free(narrow);
}
END_TEST

static Suite *reduce_suite(void)
{
    Suite *suite = suite_create("reduce");
    TCase *run = tcase_create("run_cpu"), *setup = tcase_create("setup");
    TCase *verify = tcase_create("verify");

    tcase_add_test(run, int32_by_hand);
    tcase_add_test(run, sums_wrap_in_the_width_they_accumulate_in);
    tcase_add_test(run, extremes_of_every_whole_dtype);
    tcase_add_test(run, reals_by_hand);
    tcase_add_test(run, float_sums_can_be_wide);
    tcase_add_test(run, double_sums_above_what_a_double_holds);
    tcase_add_loop_test(run, every_size_of_every_dtype, 0, (int)GPURUN_COUNT(sizes));
    tcase_add_test(run, the_place_is_found_wherever_it_is);
    tcase_add_test(run, the_sum_of_nothing_is_0);
    tcase_add_test(run, threads_do_not_change_a_bit);
    suite_add_tcase(suite, run);

    tcase_add_test(setup, setup_refuses_what_cannot_be);
    tcase_add_test(setup, setup_takes_its_shape_from_the_file);
    suite_add_tcase(suite, setup);

    tcase_set_timeout(verify, 60);
    tcase_add_test(verify, verify_refuses_a_sum_that_is_off_by_one);
    tcase_add_test(verify, verify_refuses_wrong_extremes);
    tcase_add_test(verify, verify_refuses_wrong_places);
    tcase_add_test(verify, verify_refuses_what_is_not_a_number);
    tcase_add_test(verify, verify_tells_infinities_apart);
    tcase_add_test(verify, verify_refuses_a_sum_that_sticks);
    tcase_add_test(verify, verify_draws_the_line_at_its_bound);
    tcase_add_test(verify, the_bound_of_few_elements_is_tight);
    tcase_add_test(verify, double_double_truth_is_what_fractions_say);
    suite_add_tcase(suite, verify);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(reduce_suite());
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
