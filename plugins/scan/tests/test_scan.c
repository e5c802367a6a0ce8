/*
 * scan on the CPU: setup, run_cpu and verify, against answers worked out by hand. The core is a small fake
 * whose tensors are allocated to the byte, so that a sanitizer sees any step outside them.
 */
#include "scan.h"
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- a fake core ------------------------------------------------------------------------------------ */

enum { TENSORS = 2, POISON = 0xa5 };

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    struct scan_options options;
    struct scan_state state;
    struct gpurun_tensor tensors[TENSORS];
    int tensor_count;
    struct gpurun_shape file;
    double error, bound; /* what verify said */
    char message[512];   /* of the last failure or wrong element */
};

#include "plugin_tensors.h"

static struct gpurun_tensor *fake_tensor(struct gpurun_ctx *ctx, const char *name,
                                         enum gpurun_role role, enum gpurun_dtype dtype, int rank,
                                         const int64_t *dims)
{
    ck_assert_int_eq(rank, 1);
    return fake_allocate(ctx, name, role, dtype, rank, dims);
}

static enum gpurun_status fake_input_shape(struct gpurun_ctx *ctx, const char *name,
                                           struct gpurun_shape *shape)
{
    const struct job *job = (struct job *)ctx;

    ck_assert_str_eq(name, "in");
    if (job->file.rank > 0)
        *shape = job->file;
    return GPURUN_OK;
}

static const struct gpurun_core fake_core = FAKE_CORE(fake_tensor, fake_input_shape);

static struct job *job_new(enum gpurun_dtype dtype, int64_t n, enum scan_kind kind, enum scan_op op)
{
    struct job *job = calloc(1, sizeof(*job));

    job->ctx.core = &fake_core;
    job->ctx.options = &job->options;
    job->ctx.state = &job->state;
    job->ctx.threads = 1;
    job->options = (struct scan_options){
        .n = n, .dtype = dtype, .kind = kind, .op = op, .init = fake_auto_real(), .block = 256};
    return job;
}

static void job_free(struct job *job)
{
    gpurun_plugin.teardown(&job->ctx);
    for (int i = 0; i < job->tensor_count; i++)
        free(job->tensors[i].host);
    free(job);
}

static void job_setup(struct job *job, const void *data)
{
    ck_assert_msg(gpurun_plugin.setup(&job->ctx) == GPURUN_OK, "%s", job->message);
    if (job->tensors[0].bytes > 0)
        memcpy(job->tensors[0].host, data, job->tensors[0].bytes);
    memset(job->tensors[1].host, POISON, job->tensors[1].bytes);
}

/* How many elements verify calls wrong. */
static int64_t job_verify(struct job *job)
{
    struct gpurun_proof proof = {.mode = GPURUN_VERIFY_AUTO};

    job->message[0] = '\0';
    ck_assert_int_eq(gpurun_plugin.verify(&job->ctx, &proof), GPURUN_OK);
    ck_assert_ptr_nonnull(proof.detects);
    ck_assert_int_eq(proof.mode, GPURUN_VERIFY_FULL);
    ck_assert_int_eq(proof.checked, job->options.n);
    job->error = proof.worst_error;
    job->bound = proof.bound;
    return proof.wrong;
}

static void job_run(struct job *job)
{
    memset(job->tensors[1].host, POISON, job->tensors[1].bytes);
    ck_assert_int_eq(gpurun_plugin.run_cpu(&job->ctx), GPURUN_OK);
}

/* Runs a job that has been set up, compares the bytes with `answer`, has verify agree; frees the job. */
static void job_expect(struct job *job, const void *answer)
{
    job_run(job);
    ck_assert_mem_eq(job->tensors[1].host, answer, job->tensors[1].bytes);
    ck_assert_msg(job_verify(job) == 0, "verify: %s", job->message);
    job_free(job);
}

/* One case by hand: the element type and the answer's, the job's four words, elements, answer. */
#define EXPECT(in, out, dtype, kind, op, width, first, data, answer)                               \
    do {                                                                                           \
        static const in data_[] = data;                                                            \
        static const out answer_[] = answer;                                                       \
        struct job *job_ = job_new(dtype, (int64_t)(sizeof(data_) / sizeof(in)), kind, op);        \
        job_->options.accumulate = (width);                                                        \
        job_->options.init = (first);                                                              \
        job_setup(job_, data_);                                                                    \
        ck_assert_uint_eq(job_->tensors[1].bytes, sizeof(answer_));                                \
        job_expect(job_, answer_);                                                                 \
    } while (0)

#define LIST(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define AUTO fake_auto_real()

/* --- run_cpu, by hand ------------------------------------------------------------------------------- */

START_TEST(sums_inclusive_and_exclusive)
{
    EXPECT(int32_t, int32_t, GPURUN_INT32, SCAN_INCLUSIVE, SCAN_SUM, SCAN_SAME, AUTO,
           LIST(3, -1, 4, -1, 5), LIST(3, 2, 6, 5, 10));
    EXPECT(int32_t, int32_t, GPURUN_INT32, SCAN_EXCLUSIVE, SCAN_SUM, SCAN_SAME, AUTO,
           LIST(3, -1, 4, -1, 5), LIST(0, 3, 2, 6, 5));
}
END_TEST

START_TEST(maxima_and_minima)
{
    EXPECT(int32_t, int32_t, GPURUN_INT32, SCAN_INCLUSIVE, SCAN_MAX, SCAN_SAME, AUTO,
           LIST(-3, -7, 4, -1, 5), LIST(-3, -3, 4, 4, 5));
    EXPECT(int32_t, int32_t, GPURUN_INT32, SCAN_EXCLUSIVE, SCAN_MAX, SCAN_SAME, AUTO,
           LIST(-3, -7, 4, -1), LIST(INT32_MIN, -3, -3, 4));
    EXPECT(int32_t, int32_t, GPURUN_INT32, SCAN_INCLUSIVE, SCAN_MIN, SCAN_SAME, AUTO,
           LIST(3, 4, -1, 0, -7), LIST(3, 3, -1, -1, -7));
    EXPECT(int32_t, int32_t, GPURUN_INT32, SCAN_EXCLUSIVE, SCAN_MIN, SCAN_SAME, AUTO,
           LIST(3, 4, -1, 0), LIST(INT32_MAX, 3, 3, -1));
}
END_TEST

START_TEST(each_type_has_its_order_and_its_identity)
{
    EXPECT(uint8_t, uint8_t, GPURUN_UINT8, SCAN_EXCLUSIVE, SCAN_MAX, SCAN_SAME, AUTO,
           LIST(1, 200, 100), LIST(0, 1, 200));
    EXPECT(uint8_t, uint8_t, GPURUN_UINT8, SCAN_EXCLUSIVE, SCAN_MIN, SCAN_SAME, AUTO, LIST(200, 1),
           LIST(255, 200));
    EXPECT(uint32_t, uint32_t, GPURUN_UINT32, SCAN_EXCLUSIVE, SCAN_MAX, SCAN_SAME, AUTO,
           LIST(1, 0x80000000u, 2), LIST(0, 1, 0x80000000u));
    EXPECT(uint32_t, uint32_t, GPURUN_UINT32, SCAN_EXCLUSIVE, SCAN_MIN, SCAN_SAME, AUTO,
           LIST(0x80000000u, 1), LIST(UINT32_MAX, 0x80000000u));
    EXPECT(int64_t, int64_t, GPURUN_INT64, SCAN_EXCLUSIVE, SCAN_MAX, SCAN_SAME, AUTO,
           LIST(-1, INT64_C(1) << 40), LIST(INT64_MIN, -1));
    EXPECT(int64_t, int64_t, GPURUN_INT64, SCAN_EXCLUSIVE, SCAN_MIN, SCAN_SAME, AUTO,
           LIST(INT64_C(1) << 40, -1), LIST(INT64_MAX, INT64_C(1) << 40));
    EXPECT(uint64_t, uint64_t, GPURUN_UINT64, SCAN_EXCLUSIVE, SCAN_MAX, SCAN_SAME, AUTO,
           LIST(1, UINT64_C(1) << 63, 2), LIST(0, 1, UINT64_C(1) << 63));
    EXPECT(uint64_t, uint64_t, GPURUN_UINT64, SCAN_EXCLUSIVE, SCAN_MIN, SCAN_SAME, AUTO,
           LIST(UINT64_C(1) << 63, 1), LIST(UINT64_MAX, UINT64_C(1) << 63));
    EXPECT(float, float, GPURUN_FLOAT, SCAN_EXCLUSIVE, SCAN_MAX, SCAN_SAME, AUTO, LIST(-2.5f, 1),
           LIST(-INFINITY, -2.5f));
    EXPECT(double, double, GPURUN_DOUBLE, SCAN_EXCLUSIVE, SCAN_MIN, SCAN_SAME, AUTO, LIST(-2.5, 1),
           LIST(INFINITY, -2.5));
}
END_TEST

START_TEST(whole_sums_wrap)
{
    EXPECT(uint8_t, uint8_t, GPURUN_UINT8, SCAN_INCLUSIVE, SCAN_SUM, SCAN_SAME, AUTO,
           LIST(200, 100, 3), LIST(200, 44, 47));
    EXPECT(int32_t, int32_t, GPURUN_INT32, SCAN_INCLUSIVE, SCAN_SUM, SCAN_SAME, AUTO,
           LIST(INT32_MAX, 1, -1), LIST(INT32_MAX, INT32_MIN, INT32_MAX));
    EXPECT(uint32_t, uint32_t, GPURUN_UINT32, SCAN_INCLUSIVE, SCAN_SUM, SCAN_SAME, AUTO,
           LIST(UINT32_MAX, 2), LIST(UINT32_MAX, 1));
    EXPECT(int64_t, int64_t, GPURUN_INT64, SCAN_INCLUSIVE, SCAN_SUM, SCAN_SAME, AUTO,
           LIST(INT64_MIN, -1), LIST(INT64_MIN, INT64_MAX));
    EXPECT(uint64_t, uint64_t, GPURUN_UINT64, SCAN_INCLUSIVE, SCAN_SUM, SCAN_SAME, AUTO,
           LIST(UINT64_MAX, 2), LIST(UINT64_MAX, 1));
}
END_TEST

START_TEST(wide_sums_do_not)
{
    EXPECT(uint8_t, uint32_t, GPURUN_UINT8, SCAN_INCLUSIVE, SCAN_SUM, SCAN_WIDE, AUTO,
           LIST(200, 100, 3), LIST(200, 300, 303));
    EXPECT(int32_t, int64_t, GPURUN_INT32, SCAN_INCLUSIVE, SCAN_SUM, SCAN_WIDE, AUTO,
           LIST(INT32_MAX, 1, INT32_MIN, -2), LIST(INT32_MAX, INT64_C(2147483648), 0, -2));
    EXPECT(uint32_t, uint64_t, GPURUN_UINT32, SCAN_INCLUSIVE, SCAN_SUM, SCAN_WIDE, AUTO,
           LIST(UINT32_MAX, 2), LIST(UINT32_MAX, UINT64_C(4294967297)));
    EXPECT(float, double, GPURUN_FLOAT, SCAN_INCLUSIVE, SCAN_SUM, SCAN_WIDE, AUTO,
           LIST(16777216, 1, 1), LIST(16777216, 16777217, 16777218));
    EXPECT(int64_t, int64_t, GPURUN_INT64, SCAN_INCLUSIVE, SCAN_SUM, SCAN_WIDE, AUTO, LIST(1, 2),
           LIST(1, 3));
    EXPECT(int32_t, int64_t, GPURUN_INT32, SCAN_EXCLUSIVE, SCAN_MAX, SCAN_WIDE, AUTO, LIST(-5, 2),
           LIST(INT64_MIN, -5));
    EXPECT(uint8_t, uint32_t, GPURUN_UINT8, SCAN_EXCLUSIVE, SCAN_MIN, SCAN_WIDE, AUTO, LIST(5, 2),
           LIST(UINT32_MAX, 5));
}
END_TEST

START_TEST(init_stands_in_front)
{
    EXPECT(int32_t, int32_t, GPURUN_INT32, SCAN_INCLUSIVE, SCAN_SUM, SCAN_SAME, 100.0, LIST(1, 2),
           LIST(101, 103));
    EXPECT(int32_t, int32_t, GPURUN_INT32, SCAN_EXCLUSIVE, SCAN_SUM, SCAN_SAME, -100.0, LIST(1, 2),
           LIST(-100, -99));
    EXPECT(int32_t, int64_t, GPURUN_INT32, SCAN_EXCLUSIVE, SCAN_MAX, SCAN_WIDE, -1e12, LIST(-7, 2),
           LIST(-INT64_C(1000000000000), -7));
    EXPECT(uint8_t, uint32_t, GPURUN_UINT8, SCAN_EXCLUSIVE, SCAN_MIN, SCAN_WIDE, 300.0, LIST(7, 2),
           LIST(300, 7));
    EXPECT(float, float, GPURUN_FLOAT, SCAN_INCLUSIVE, SCAN_MIN, SCAN_SAME, 0.5, LIST(1, 0.25f),
           LIST(0.5f, 0.25f));
    EXPECT(double, double, GPURUN_DOUBLE, SCAN_EXCLUSIVE, SCAN_SUM, SCAN_SAME, 0.5, LIST(1, 2),
           LIST(0.5, 1.5));
}
END_TEST

/* A NaN passes comparisons with nothing, so its answers are looked at one by one. */
static void expect_reals(const float *data, enum scan_op op, const float *answer)
{
    struct job *job = job_new(GPURUN_FLOAT, 6, SCAN_INCLUSIVE, op);
    const float *out;

    job_setup(job, data);
    job_run(job);
    out = job->tensors[1].host;
    for (int i = 0; i < 6; i++)
        ck_assert_msg(isnan(answer[i]) ? isnan(out[i])
                                       : !(out[i] < answer[i]) && !(out[i] > answer[i]),
                      "op %d: out[%d] is %g", (int)op, i, (double)out[i]);
    ck_assert_msg(job_verify(job) == 0, "verify: %s", job->message);
    job_free(job);
}

START_TEST(nan_stays)
{
    static const float data[] = {1, -INFINITY, 2, NAN, INFINITY, -3};
    static const float sums[] = {1, -INFINITY, -INFINITY, NAN, NAN, NAN};
    static const float maxima[] = {1, 1, 2, NAN, NAN, NAN};
    static const float minima[] = {1, -INFINITY, -INFINITY, NAN, NAN, NAN};

    expect_reals(data, SCAN_SUM, sums);
    expect_reals(data, SCAN_MAX, maxima);
    expect_reals(data, SCAN_MIN, minima);
}
END_TEST

START_TEST(infinities_meet)
{
    static const float data[] = {-0.0f, 0, INFINITY, 5, -INFINITY, 1};
    static const float sums[] = {0, 0, INFINITY, INFINITY, NAN, NAN};
    static const float maxima[] = {0, 0, INFINITY, INFINITY, INFINITY, INFINITY};
    static const float minima[] = {0, 0, 0, 0, -INFINITY, -INFINITY};

    expect_reals(data, SCAN_SUM, sums);
    expect_reals(data, SCAN_MAX, maxima);
    expect_reals(data, SCAN_MIN, minima);
}
END_TEST

START_TEST(nothing_is_an_answer_too)
{
    struct job *job = job_new(GPURUN_INT32, 0, SCAN_EXCLUSIVE, SCAN_MAX);

    job_setup(job, "");
    job_expect(job, "");
}
END_TEST

/* --- setup ------------------------------------------------------------------------------------------- */

static void expect_refused(struct job *job, const char *message)
{
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_INVALID);
    ck_assert_msg(strstr(job->message, message) != NULL, "said: %s", job->message);
    job_free(job);
}

static void expect_init_refused(enum gpurun_dtype dtype, double init)
{
    struct job *job = job_new(dtype, 5, SCAN_INCLUSIVE, SCAN_SUM);

    job->options.init = init;
    expect_refused(job, "init: ");
}

START_TEST(setup_refuses_what_cannot_be)
{
    static const double not_int32[] = {0.5, 2147483648.0, -2147483649.0, NAN, INFINITY};
    struct job *job;

    for (int i = 0; i < 5; i++)
        expect_init_refused(GPURUN_INT32, not_int32[i]);
    expect_init_refused(GPURUN_UINT8, 256);
    expect_init_refused(GPURUN_UINT8, -1);
    expect_init_refused(GPURUN_INT64, 1e17);
    job = job_new(GPURUN_INT32, 5, SCAN_INCLUSIVE, SCAN_SUM);
    job->file = (struct gpurun_shape){.dtype = GPURUN_INT32, .rank = 2, .dims = {1, 5}};
    expect_refused(job, "input: the file has 2 dimensions");
    job = job_new(GPURUN_INT32, 5, SCAN_INCLUSIVE, SCAN_SUM);
    job->file = (struct gpurun_shape){.dtype = GPURUN_INT32, .rank = 1, .dims = {6}};
    expect_refused(job, "n: 5, but the file has 6");
    job = job_new(GPURUN_INT16, 5, SCAN_INCLUSIVE, SCAN_SUM);
    expect_refused(job, "dtype: the file's is int16");
}
END_TEST

START_TEST(setup_takes_its_shape_from_the_file)
{
    struct job *job = job_new(GPURUN_INT32, GPURUN_AUTO, SCAN_INCLUSIVE, SCAN_SUM);

    job->options.dtype = GPURUN_AUTO;
    job->options.accumulate = SCAN_WIDE;
    job->file = (struct gpurun_shape){.dtype = GPURUN_FLOAT, .rank = 1, .dims = {7}};
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    ck_assert_int_eq(job->options.n, 7);
    ck_assert_int_eq(job->tensors[0].dtype, GPURUN_FLOAT);
    ck_assert_int_eq(job->tensors[1].dtype, GPURUN_DOUBLE);
    ck_assert(job->ctx.work.bytes_read + job->ctx.work.bytes_written > 83);
    ck_assert(job->ctx.work.bytes_read + job->ctx.work.bytes_written < 85);
    job_free(job);
    job = job_new(GPURUN_INT32, GPURUN_AUTO, SCAN_INCLUSIVE, SCAN_SUM);
    job->options.dtype = GPURUN_AUTO;
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    ck_assert_int_eq(job->options.n, 1000000);
    ck_assert_int_eq(job->options.dtype, GPURUN_INT32);
    job_free(job);
}
END_TEST

/* --- verify ------------------------------------------------------------------------------------------ */

enum { MANY = 100003 };

static struct job *right_job(enum gpurun_dtype dtype, enum scan_kind kind)
{
    int32_t *whole = malloc(MANY * sizeof(*whole));
    float *real = malloc(MANY * sizeof(*real));
    struct job *job = job_new(dtype, MANY, kind, SCAN_SUM);

    for (int i = 0; i < MANY; i++) {
        whole[i] = (int32_t)((uint32_t)i * 2654435761u);
        real[i] = (float)(whole[i] & 0xffff) / 65536.0f;
    }
    job_setup(job, dtype == GPURUN_FLOAT ? (const void *)real : (const void *)whole);
    job_run(job);
    ck_assert_msg(job_verify(job) == 0, "%s", job->message);
    free(whole);
    free(real);
    return job;
}

START_TEST(verify_refuses_an_exclusive_scan_for_an_inclusive_one)
{
    struct job *job = right_job(GPURUN_INT32, SCAN_INCLUSIVE);
    int32_t *out = job->tensors[1].host;

    memmove(out + 1, out, (MANY - 1) * sizeof(*out));
    out[0] = 0;
    ck_assert_int_ge(job_verify(job), MANY - 1);
    job_free(job);
    job = right_job(GPURUN_INT32, SCAN_EXCLUSIVE);
    out = job->tensors[1].host;
    memmove(out, out + 1, (MANY - 1) * sizeof(*out));
    ck_assert_int_ge(job_verify(job), MANY - 2);
    job_free(job);
}
END_TEST

START_TEST(verify_refuses_one_changed_value)
{
    struct job *job = right_job(GPURUN_INT32, SCAN_INCLUSIVE);

    ((int32_t *)job->tensors[1].host)[MANY / 2] ^= 1;
    ck_assert_int_eq(job_verify(job), 1);
    ck_assert_ptr_nonnull(strstr(job->message, "out[50001]"));
    job_free(job);
}
END_TEST

START_TEST(verify_refuses_a_stale_output)
{
    struct job *job = right_job(GPURUN_INT32, SCAN_INCLUSIVE);
    struct job *real = right_job(GPURUN_FLOAT, SCAN_INCLUSIVE);

    ((int32_t *)job->tensors[0].host)[7] += 1;
    ck_assert_int_eq(job_verify(job), MANY - 7);
    memset(job->tensors[1].host, POISON, job->tensors[1].bytes);
    ck_assert_int_ge(job_verify(job), MANY - 1);
    memset(real->tensors[1].host, POISON, real->tensors[1].bytes);
    ck_assert_int_eq(job_verify(real), MANY);
    job_free(job);
    job_free(real);
}
END_TEST

/* Sixteen ones: the bound of out[15] is 64 * 2^-24 * 16 = 2^-14, which is 64 units in the last place. */
START_TEST(verify_draws_the_line_at_the_bound)
{
    float data[16], *out;
    struct job *job = job_new(GPURUN_FLOAT, 16, SCAN_INCLUSIVE, SCAN_SUM);

    for (int i = 0; i < 16; i++)
        data[i] = 1;
    job_setup(job, data);
    job_run(job);
    out = job->tensors[1].host;
    out[15] = 16 + ldexpf(1, -14);
    ck_assert_int_eq(job_verify(job), 0);
    ck_assert_double_eq(job->error, ldexp(1, -14));
    ck_assert_double_eq(job->bound, ldexp(1, -14));
    out[15] = nextafterf(out[15], 17);
    ck_assert_int_eq(job_verify(job), 1);
    ck_assert_double_gt(job->error, job->bound);
    out[15] = 16 - ldexpf(1, -14);
    ck_assert_int_eq(job_verify(job), 0);
    out[15] = nextafterf(out[15], 15);
    ck_assert_int_eq(job_verify(job), 1);
    out[15] = NAN;
    ck_assert_int_eq(job_verify(job), 1);
    out[15] = INFINITY;
    ck_assert_int_eq(job_verify(job), 1);
    job_free(job);
}
END_TEST

/* The plain loop's answer: it sticks at 2^24. */
START_TEST(verify_refuses_a_sum_that_sticks)
{
    const int64_t n = (1 << 24) + 1000;
    float *ones = malloc((size_t)n * sizeof(*ones)), sum = 0, *out;
    struct job *job = job_new(GPURUN_FLOAT, n, SCAN_INCLUSIVE, SCAN_SUM);

    for (int64_t i = 0; i < n; i++)
        ones[i] = 1;
    job_setup(job, ones);
    job_run(job);
    ck_assert_int_eq(job_verify(job), 0);
    out = job->tensors[1].host;
    for (int64_t i = 0; i < n; i++)
        out[i] = sum += 1;
    ck_assert_int_gt(job_verify(job), 0);
    free(ones);
    job_free(job);
}
END_TEST

START_TEST(verify_wants_nan_where_it_belongs)
{
    static const float data[] = {1, 2, NAN, 4};
    struct job *job = job_new(GPURUN_FLOAT, 4, SCAN_INCLUSIVE, _i ? SCAN_MAX : SCAN_SUM);
    float *out;

    job_setup(job, data);
    job_run(job);
    out = job->tensors[1].host;
    out[3] = 4;
    ck_assert_int_eq(job_verify(job), 1);
    out[1] = NAN;
    ck_assert_int_eq(job_verify(job), 2);
    job_free(job);
}
END_TEST

/* Where additions in some order overflow, infinity is no mistake; before, it is. */
START_TEST(verify_knows_overflow)
{
    static const float data[] = {FLT_MAX, FLT_MAX, -FLT_MAX};
    struct job *job = job_new(GPURUN_FLOAT, 3, SCAN_INCLUSIVE, SCAN_SUM);
    float *out;

    job_setup(job, data);
    out = job->tensors[1].host;
    out[0] = FLT_MAX;
    out[1] = INFINITY;
    out[2] = INFINITY;
    ck_assert_int_eq(job_verify(job), 0);
    out[2] = FLT_MAX;
    ck_assert_int_eq(job_verify(job), 0);
    out[2] = 1;
    ck_assert_int_eq(job_verify(job), 1);
    out[1] = FLT_MAX;
    ck_assert_int_eq(job_verify(job), 2);
    job_free(job);
}
END_TEST

/* --- run_cpu against verify -------------------------------------------------------------------------- */

static const int64_t sizes[] = {0,   1,   2,    31,   32,   33,    63,    64,   65,
                                511, 513, 1023, 1024, 1025, 32767, 32769, 99991};

static void fill(struct gpurun_tensor *t, bool special)
{
    uint64_t x = 1;

    for (int64_t i = 0; i < t->elems; i++) {
        const double specials[] = {0.0, -0.0, INFINITY, -1e30, 1e-40, 3e38};
        double value;

        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        value =
            special && x % 7 == 0 ? specials[(x >> 40) % 6] : (double)(int32_t)(x >> 32) / 65536.0;
        if (t->dtype == GPURUN_FLOAT)
            ((float *)t->host)[i] = (float)value;
        else if (t->dtype == GPURUN_DOUBLE)
            ((double *)t->host)[i] = value;
        else
            memcpy((char *)t->host + (size_t)i * gpurun_dtype_bytes(t->dtype), (char *)&x + 2,
                   gpurun_dtype_bytes(t->dtype) > 4 ? 6 : gpurun_dtype_bytes(t->dtype));
    }
}

static void check_one(enum gpurun_dtype dtype, int64_t n, int choice, int threads)
{
    struct job *job = job_new(dtype, n, choice & 1 ? SCAN_EXCLUSIVE : SCAN_INCLUSIVE,
                              (enum scan_op)(choice / 4 % 3));

    job->options.accumulate = choice & 2 ? SCAN_WIDE : SCAN_SAME;
    job->options.init = choice / 12 ? 3.0 : fake_auto_real();
    job->ctx.threads = threads;
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    memset(job->tensors[0].host, 0, job->tensors[0].bytes);
    fill(&job->tensors[0], choice % 3 == 0);
    job_run(job);
    ck_assert_msg(job_verify(job) == 0, "%s, n %d, choice %d: %s", gpurun_dtype_name(dtype), (int)n,
                  choice, job->message);
    job_free(job);
}

START_TEST(run_cpu_is_right)
{
    static const enum gpurun_dtype dtypes[] = {GPURUN_UINT8, GPURUN_INT32,  GPURUN_UINT32,
                                               GPURUN_INT64, GPURUN_UINT64, GPURUN_FLOAT,
                                               GPURUN_DOUBLE};

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (int choice = 0; choice < 24; choice++)
            check_one(dtypes[_i], sizes[s], choice, 1 + choice % 3 * 2);
}
END_TEST

/* --- the suite --------------------------------------------------------------------------------------- */

static Suite *scan_suite(void)
{
    Suite *suite = suite_create("scan");
    TCase *run = tcase_create("run_cpu"), *setup = tcase_create("setup");
    TCase *verify = tcase_create("verify"), *both = tcase_create("run_cpu against verify");

    tcase_add_test(run, sums_inclusive_and_exclusive);
    tcase_add_test(run, maxima_and_minima);
    tcase_add_test(run, each_type_has_its_order_and_its_identity);
    tcase_add_test(run, whole_sums_wrap);
    tcase_add_test(run, wide_sums_do_not);
    tcase_add_test(run, init_stands_in_front);
    tcase_add_test(run, nan_stays);
    tcase_add_test(run, infinities_meet);
    tcase_add_test(run, nothing_is_an_answer_too);
    suite_add_tcase(suite, run);

    tcase_add_test(setup, setup_refuses_what_cannot_be);
    tcase_add_test(setup, setup_takes_its_shape_from_the_file);
    suite_add_tcase(suite, setup);

    tcase_set_timeout(verify, 60);
    tcase_add_test(verify, verify_refuses_an_exclusive_scan_for_an_inclusive_one);
    tcase_add_test(verify, verify_refuses_one_changed_value);
    tcase_add_test(verify, verify_refuses_a_stale_output);
    tcase_add_test(verify, verify_draws_the_line_at_the_bound);
    tcase_add_test(verify, verify_refuses_a_sum_that_sticks);
    tcase_add_loop_test(verify, verify_wants_nan_where_it_belongs, 0, 2);
    tcase_add_test(verify, verify_knows_overflow);
    suite_add_tcase(suite, verify);

    tcase_set_timeout(both, 60);
    tcase_add_loop_test(both, run_cpu_is_right, 0, 7);
    suite_add_tcase(suite, both);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(scan_suite());
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
