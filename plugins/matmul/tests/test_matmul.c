/*
 * matmul on the CPU: setup, run_cpu and verify, against products worked out by hand and by NumPy
 * (matmul_numpy.h). The core is a small fake whose tensors are allocated to the byte, so that a sanitizer sees
 * any step outside them; what lies between rows is NaN, or far from any number used.
 */
#include "gpurun/half.h"
#include "matmul.h"
#include "matmul_numpy.h"
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- a fake core ------------------------------------------------------------------------------------ */

enum { TENSORS = 4, POISON = 0xa5 };

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    struct matmul_options options;
    struct matmul_state state;
    struct gpurun_tensor tensors[TENSORS];
    int tensor_count;
    struct gpurun_shape files[2]; /* of a and b; rank 0: a generator */
    struct gpurun_proof proof;    /* of the last verify */
    char message[512];            /* of the last failure or wrong element */
};

#include "plugin_tensors.h"

static enum gpurun_status fake_input_shape(struct gpurun_ctx *ctx, const char *name,
                                           struct gpurun_shape *shape)
{
    const struct job *job = (struct job *)ctx;
    const int which = name[0] - 'a';

    if (which < 2 && job->files[which].rank > 0)
        *shape = job->files[which];
    return GPURUN_OK;
}

static const struct gpurun_core fake_core = FAKE_CORE(fake_allocate, fake_input_shape);

static struct job *job_new(enum gpurun_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    struct job *job = calloc(1, sizeof(*job));

    job->ctx.core = &fake_core;
    job->ctx.options = &job->options;
    job->ctx.state = &job->state;
    job->ctx.threads = 1;
    job->options = (struct matmul_options){.m = m,
                                           .n = n,
                                           .k = k,
                                           .batch = 1,
                                           .dtype = dtype,
                                           .alpha = 1,
                                           .lda = GPURUN_AUTO,
                                           .ldb = GPURUN_AUTO,
                                           .ldc = GPURUN_AUTO};
    return job;
}

static void job_free(struct job *job)
{
    gpurun_plugin.teardown(&job->ctx);
    for (int i = 0; i < job->tensor_count; i++)
        free(job->tensors[i].host);
    free(job);
}

/* --- elements ----------------------------------------------------------------------------------------- */

static const enum gpurun_dtype dtypes[] = {GPURUN_INT32,  GPURUN_INT64, GPURUN_FLOAT,
                                           GPURUN_DOUBLE, GPURUN_HALF,  GPURUN_BFLOAT16};

static void put(struct gpurun_tensor *t, int64_t at, double x)
{
    switch (t->dtype) {
    case GPURUN_INT32:
        ((int32_t *)t->host)[at] = isnan(x) ? 0x5a5a5a5a : (int32_t)x;
        break;
    case GPURUN_INT64:
        ((int64_t *)t->host)[at] = isnan(x) ? INT64_C(0x5a5a5a5a5a5a5a5a) : (int64_t)x;
        break;
    case GPURUN_FLOAT:
        ((float *)t->host)[at] = (float)x;
        break;
    case GPURUN_DOUBLE:
        ((double *)t->host)[at] = x;
        break;
    case GPURUN_HALF:
        ((uint16_t *)t->host)[at] = gpurun_half_from_double(x);
        break;
    default:
        ((uint16_t *)t->host)[at] = gpurun_bfloat16_from_double(x);
        break;
    }
}

static double get(const struct gpurun_tensor *t, int64_t at)
{
    if (t->dtype == GPURUN_INT32)
        return ((const int32_t *)t->host)[at];
    return t->dtype == GPURUN_INT64 ? (double)((const int64_t *)t->host)[at]
                                    : matmul_real_at(t, at);
}

static bool is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a <= b && a >= b);
}

/* Fills a tensor with rows x cols values, batch after batch, turned where `turned`; NaN between rows. */
static void fill(struct gpurun_tensor *t, const double *values, int64_t rows, int64_t cols,
                 bool turned)
{
    const int64_t ld = t->dims[t->rank - 1], step = (turned ? cols : rows) * ld;

    for (int64_t i = 0; i < t->elems; i++)
        put(t, i, NAN);
    for (int64_t b = 0; b < (t->rank == 3 ? t->dims[0] : 1); b++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++)
                put(t, b * step + (turned ? j * ld + i : i * ld + j),
                    values[(b * rows + i) * cols + j]);
}

static void setup_job(struct job *job)
{
    ck_assert_msg(gpurun_plugin.setup(&job->ctx) == GPURUN_OK, "%s", job->message);
}

static void poison(struct job *job)
{
    memset(job->state.product->host, POISON, job->state.product->bytes);
}

static void run_job(struct job *job)
{
    poison(job);
    ck_assert_int_eq(gpurun_plugin.run_cpu(&job->ctx), GPURUN_OK);
}

/* Undoes what verify did to the shape, as the core does. */
static void open_gaps(struct job *job)
{
    struct gpurun_tensor *t = job->state.product;

    t->dims[t->rank - 1] = job->options.ldc;
    t->elems = job->options.batch * job->options.m * job->options.ldc;
    t->bytes = (size_t)t->elems * gpurun_dtype_bytes(t->dtype);
}

/* How many elements verify calls wrong. */
static int64_t judge(struct job *job, enum gpurun_verify mode)
{
    job->message[0] = '\0';
    job->proof = (struct gpurun_proof){.mode = mode};
    ck_assert_int_eq(gpurun_plugin.verify(&job->ctx, &job->proof), GPURUN_OK);
    ck_assert_ptr_nonnull(job->proof.detects);
    return job->proof.wrong;
}

static void expect_right(struct job *job, enum gpurun_verify mode)
{
    ck_assert_msg(judge(job, mode) == 0, "%s", job->message);
    ck_assert_int_eq(job->proof.mode, mode);
}

/* --- by hand ---------------------------------------------------------------------------------------------- */

/* 2 x 3 times 3 x 2, and what else the tests make of it. */
static const double two_a[] = {1, -2, 3, 0, 4, -1}, two_b[] = {2, 1, 0, -3, 5, 4};
static const double two_ab[] = {17, 19, -5, -16}, two_c[] = {1, 2, 3, 4};
static const double two_scaled[] = {33, 36, -13, -36}; /* 2 A B - C */

static struct job *two_job(enum gpurun_dtype dtype, bool turn_a, bool turn_b, int64_t pad,
                           bool scaled)
{
    struct job *job = job_new(dtype, 2, 2, 3);

    job->options.transpose_a = turn_a;
    job->options.transpose_b = turn_b;
    job->options.lda = (turn_a ? 2 : 3) + pad;
    job->options.ldb = (turn_b ? 3 : 2) + 2 * pad;
    job->options.ldc = 2 + 3 * pad;
    job->options.alpha = scaled ? 2 : 1;
    job->options.beta = scaled ? -1 : 0;
    setup_job(job);
    ck_assert(scaled == (job->state.c != NULL));
    fill(job->state.a, two_a, 2, 3, turn_a);
    fill(job->state.b, two_b, 3, 2, turn_b);
    if (scaled)
        fill(job->state.c, two_c, 2, 2, false);
    run_job(job);
    return job;
}

static void expect_two(struct job *job, const double *expected)
{
    const struct gpurun_tensor *product = job->state.product;
    const int64_t ldc = job->options.ldc;
    const unsigned char *bytes = product->host;
    const size_t size = gpurun_dtype_bytes(product->dtype);

    for (int64_t i = 0; i < 2; i++) {
        for (int64_t j = 0; j < 2; j++)
            ck_assert(is_same(get(product, i * ldc + j), expected[i * 2 + j]));
        for (size_t b = (size_t)(i * ldc + 2) * size; b < (size_t)((i + 1) * ldc) * size; b++)
            ck_assert_int_eq(bytes[b], POISON);
    }
}

START_TEST(by_hand_turned_padded_and_scaled)
{
    for (int way = 0; way < 16; way++) {
        const bool scaled = way & 8;
        struct job *job = two_job(dtypes[_i], way & 1, way & 2, way & 4 ? 1 : 0, scaled);

        expect_two(job, scaled ? two_scaled : two_ab);
        expect_right(job, way & 1 ? GPURUN_VERIFY_FULL : GPURUN_VERIFY_CERTIFY);
        ck_assert_int_eq(job->proof.checked, 4);
        ck_assert_int_eq(job->state.product->dims[1], 2);
        ck_assert_int_eq(job->state.product->elems, 4);
        for (int64_t i = 0; i < 4; i++) /* rows have moved together */
            ck_assert(is_same(get(job->state.product, i), scaled ? two_scaled[i] : two_ab[i]));
        job_free(job);
    }
}
END_TEST

START_TEST(whole_numbers_wrap)
{
    struct job *job = job_new(GPURUN_INT32, 1, 1, 2);
    int64_t *a, *b;

    setup_job(job);
    put(job->state.a, 0, INT32_MAX);
    put(job->state.a, 1, 2);
    put(job->state.b, 0, 2);
    put(job->state.b, 1, 3);
    run_job(job);
    ck_assert_int_eq(*(int32_t *)job->state.product->host, 4); /* 2^32 - 2 + 6 */
    expect_right(job, GPURUN_VERIFY_FULL);
    expect_right(job, GPURUN_VERIFY_CERTIFY);
    job_free(job);

    job = job_new(GPURUN_INT64, 1, 1, 2);
    setup_job(job);
    a = job->state.a->host;
    b = job->state.b->host;
    a[0] = INT64_MIN;
    a[1] = b[1] = 1;
    b[0] = 3;
    run_job(job);
    ck_assert(*(int64_t *)job->state.product->host == INT64_MIN + 1);
    expect_right(job, GPURUN_VERIFY_FULL);
    expect_right(job, GPURUN_VERIFY_CERTIFY);
    job_free(job);
}
END_TEST

/* Sum over x of (1233^2 + x)(x + 1233^2), for x below 2000: row and column 1233 of the tour's job. */
START_TEST(the_element_of_the_tour)
{
    struct job *job = job_new(GPURUN_INT64, 1, 1, 2000);

    setup_job(job);
    for (int64_t x = 0; x < 2000; x++) {
        put(job->state.a, x, 1233 * 1233 + (double)x);
        put(job->state.b, x, (double)x + 1233 * 1233);
    }
    run_job(job);
    ck_assert(*(int64_t *)job->state.product->host == INT64_C(4628638067131000));
    job_free(job);
}
END_TEST

START_TEST(a_product_of_nothing_is_beta_c)
{
    static const double c[] = {1, -2, 3, 4};
    struct job *job = job_new(dtypes[_i], 2, 2, 0);

    job->options.beta = 3;
    setup_job(job);
    fill(job->state.c, c, 2, 2, false);
    run_job(job);
    for (int64_t i = 0; i < 4; i++)
        ck_assert(is_same(get(job->state.product, i), 3 * c[i]));
    expect_right(job, GPURUN_VERIFY_FULL);
    expect_right(job, GPURUN_VERIFY_CERTIFY);
    job_free(job);

    job = job_new(dtypes[_i], 2, 2, 0);
    setup_job(job);
    ck_assert_ptr_null(job->state.c);
    run_job(job);
    for (int64_t i = 0; i < 4; i++)
        ck_assert(is_same(get(job->state.product, i), 0));
    expect_right(job, GPURUN_VERIFY_FULL);
    job_free(job);
}
END_TEST

/* With alpha = 0 the tensors a and b are not read: NaN in them does not matter. */
START_TEST(alpha_0_does_not_read_a_and_b)
{
    struct job *job = job_new(GPURUN_FLOAT, 2, 2, 3);

    job->options.alpha = 0;
    job->options.beta = 1;
    setup_job(job);
    for (int64_t i = 0; i < 6; i++) {
        put(job->state.a, i, NAN);
        put(job->state.b, i, INFINITY);
    }
    fill(job->state.c, two_c, 2, 2, false);
    run_job(job);
    expect_two(job, two_c);
    expect_right(job, GPURUN_VERIFY_FULL);
    job_free(job);
}
END_TEST

START_TEST(nothing_at_all)
{
    static const int64_t sizes[][2] = {{0, 3}, {3, 0}, {0, 0}};
    struct job *job = job_new(dtypes[_i], sizes[_i % 3][0], sizes[_i % 3][1], 2);

    setup_job(job);
    memset(job->state.a->host, 0, job->state.a->bytes);
    memset(job->state.b->host, 0, job->state.b->bytes);
    run_job(job);
    expect_right(job, GPURUN_VERIFY_FULL);
    expect_right(job, GPURUN_VERIFY_CERTIFY);
    ck_assert_int_eq(job->proof.checked, 0);
    job_free(job);
}
END_TEST

/* Batches of 1 x 2 times 2 x 1: 1*3 + 2*4, 5*7 + 6*8, -1*2 + 0*9. */
START_TEST(batches_are_products_of_their_own)
{
    static const double a[] = {1, 2, 5, 6, -1, 0}, b[] = {3, 4, 7, 8, 2, 9};
    static const double expected[] = {11, 83, -2};
    struct job *job = job_new(dtypes[_i], 1, 1, 2);

    job->options.batch = 3;
    job->options.ldb = 4;
    setup_job(job);
    fill(job->state.a, a, 1, 2, false);
    fill(job->state.b, b, 2, 1, false);
    run_job(job);
    ck_assert_int_eq(job->state.product->rank, 3);
    for (int64_t i = 0; i < 3; i++)
        ck_assert(is_same(get(job->state.product, i), expected[i]));
    expect_right(job, GPURUN_VERIFY_CERTIFY);
    expect_right(job, GPURUN_VERIFY_FULL);
    put(job->state.product, 1, 84);
    ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), 1);
    ck_assert_int_ge(judge(job, GPURUN_VERIFY_CERTIFY), 1);
    job_free(job);
}
END_TEST

/* --- by NumPy ------------------------------------------------------------------------------------------------ */

START_TEST(numpy_whole)
{
    struct job *job = job_new(GPURUN_INT64, NUMPY_M, NUMPY_N, NUMPY_K);

    setup_job(job);
    memcpy(job->state.a->host, numpy_whole_a, sizeof(numpy_whole_a));
    memcpy(job->state.b->host, numpy_whole_b, sizeof(numpy_whole_b));
    run_job(job);
    ck_assert_mem_eq(job->state.product->host, numpy_whole_product, sizeof(numpy_whole_product));
    expect_right(job, GPURUN_VERIFY_FULL);
    memcpy(job->state.product->host, numpy_whole_product, sizeof(numpy_whole_product));
    expect_right(job, GPURUN_VERIFY_CERTIFY);
    job_free(job);
}
END_TEST

/* Inputs are halves: every dtype holds them but bfloat16. Sums of 9 products of magnitudes below 1. */
START_TEST(numpy_reals)
{
    static const enum gpurun_dtype reals[] = {GPURUN_FLOAT, GPURUN_DOUBLE, GPURUN_HALF};
    static const double apart[] = {0x1p-20, 0x1p-49, 0x1p-10};
    struct job *job = job_new(reals[_i], NUMPY_M, NUMPY_N, NUMPY_K);

    setup_job(job);
    fill(job->state.a, numpy_real_a, NUMPY_M, NUMPY_K, false);
    fill(job->state.b, numpy_real_b, NUMPY_K, NUMPY_N, false);
    run_job(job);
    for (int64_t i = 0; i < NUMPY_M * NUMPY_N; i++)
        ck_assert(fabs(get(job->state.product, i) - numpy_real_product[i]) <= apart[_i]);
    for (int64_t i = 0; i < NUMPY_M * NUMPY_N && reals[_i] == GPURUN_HALF; i++)
        ck_assert_int_le(
            abs(((int16_t *)job->state.product->host)[i] - (int16_t)numpy_half_product[i]), 1);
    expect_right(job, GPURUN_VERIFY_FULL);
    for (int64_t i = 0; i < NUMPY_M * NUMPY_N; i++)
        put(job->state.product, i, numpy_real_product[i]);
    expect_right(job, GPURUN_VERIFY_CERTIFY);
    job_free(job);
}
END_TEST

/* --- verify ------------------------------------------------------------------------------------------------------ */

/* A job of m x n with k terms of 1 each, whose answer is right. */
static struct job *ones_job(enum gpurun_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    struct job *job = job_new(dtype, m, n, k);

    setup_job(job);
    for (int64_t i = 0; i < job->state.a->elems; i++)
        put(job->state.a, i, 1);
    for (int64_t i = 0; i < job->state.b->elems; i++)
        put(job->state.b, i, 1);
    for (int64_t i = 0; i < job->state.product->elems; i++)
        put(job->state.product, i, (double)k);
    return job;
}

/* Every element in turn, its top bit and its lowest one. */
START_TEST(verify_refuses_one_wrong_bit)
{
    static const enum gpurun_verify modes[] = {GPURUN_VERIFY_FULL, GPURUN_VERIFY_CERTIFY};
    const enum gpurun_dtype dtype = dtypes[_i];
    const size_t size = gpurun_dtype_bytes(dtype);
    struct job *job = ones_job(dtype, 37, 35, 16);
    unsigned char *bytes = job->state.product->host;

    for (int mode = 0; mode < 2; mode++) {
        expect_right(job, modes[mode]);
        for (size_t i = 0; i < 37 * 35; i += 61) {
            bytes[i * size + size - 1] ^= 0x80;
            ck_assert_int_ge(judge(job, modes[mode]), 1);
            bytes[i * size + size - 1] ^= 0x80;
            bytes[i * size] ^= 1;
            ck_assert(judge(job, modes[mode]) >= 1 || !matmul_is_whole(dtype));
            bytes[i * size] ^= 1;
        }
    }
    job_free(job);
}
END_TEST

/* 64 ones: the bound is (4 sqrt(64) + 3) 2^-24 64 and 67 2^-149, 1.3351e-4. */
START_TEST(verify_draws_the_line_at_its_bound)
{
    struct job *job = ones_job(GPURUN_FLOAT, 3, 5, 64);
    const double bound = 35 * 0x1p-24 * 64;

    expect_right(job, GPURUN_VERIFY_FULL);
    ck_assert(fabs(job->proof.bound - bound) <= 1e-12);
    put(job->state.product, 7, 64 + 1.30e-4);
    ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), 0);
    ck_assert(fabs(job->proof.worst_error - 1.30e-4) <= 8e-6);
    ck_assert(fabs(job->proof.worst_relative - job->proof.worst_error / 64) <= 1e-12);
    ck_assert(fabs(job->proof.mean_relative - job->proof.worst_relative / 15) <= 1e-12);
    ck_assert_str_eq(job->proof.relative_to, "|A||B|");
    put(job->state.product, 7, 64 + 1.45e-4);
    ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), 1);
    put(job->state.product, 7, 64 - 1.45e-4);
    ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), 1);
    job_free(job);
}
END_TEST

/* Certify must see any one element off by more than twice what it calls its bound. */
START_TEST(certify_sees_what_it_says)
{
    static const enum gpurun_dtype reals[] = {GPURUN_FLOAT, GPURUN_DOUBLE, GPURUN_HALF,
                                              GPURUN_BFLOAT16};
    struct job *job = ones_job(reals[_i], 50, 70, 64);
    double bound;

    expect_right(job, GPURUN_VERIFY_CERTIFY);
    bound = job->proof.bound;
    ck_assert(bound > 0 && bound < (_i == 3 ? 32 : 4));
    for (int64_t i = 0; i < 50 * 70; i += 97) {
        put(job->state.product, i, 64 + (i & 1 ? -2.1 : 2.1) * bound);
        ck_assert_int_ge(judge(job, GPURUN_VERIFY_CERTIFY), 1);
        put(job->state.product, i, 64);
    }
    job_free(job);
}
END_TEST

/* Two elements of a row that make up for each other, with a sum that is right. */
START_TEST(certify_sees_two_that_cancel)
{
    struct job *job = ones_job(dtypes[_i], 40, 41, 8);

    for (int64_t j = 1; j < 41; j += 6) {
        put(job->state.product, 5 * 41, 8 + 64);
        put(job->state.product, 5 * 41 + j, 8 - 64);
        ck_assert_int_ge(judge(job, GPURUN_VERIFY_CERTIFY), 1);
        put(job->state.product, 5 * 41 + j, 8);
    }
    job_free(job);
}
END_TEST

/* One term of 1: seven roundings of it are allowed, of 2^-53 each. */
START_TEST(double_is_held_to_its_own_precision)
{
    struct job *job = ones_job(GPURUN_DOUBLE, 1, 1, 1);

    put(job->state.product, 0, 1 + 0x1p-51);
    ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), 0);
    put(job->state.product, 0, 1 + 0x1p-50);
    ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), 1);
    job_free(job);
}
END_TEST

/* 2^60 + 1 - 2^60 from products that no double holds: (2^30 + 1)^2 - 2^60 - 2^31 = 1. */
START_TEST(double_truth_is_wider_than_double)
{
    static const double a[] = {0x1p30 + 1, -0x1p30, -0x1p31}, b[] = {0x1p30 + 1, 0x1p30, 1};
    struct job *job = job_new(GPURUN_DOUBLE, 1, 1, 3);

    setup_job(job);
    fill(job->state.a, a, 1, 3, false);
    fill(job->state.b, b, 3, 1, false);
    put(job->state.product, 0, 1);
    expect_right(job, GPURUN_VERIFY_FULL);
    ck_assert(job->proof.worst_error <= 0);
    job_free(job);
}
END_TEST

/* 1 + 2^-12 rounds to 1 as tf32: right where that is allowed. */
START_TEST(tf32_is_allowed_only_where_asked)
{
    for (int tf32 = 0; tf32 < 2; tf32++) {
        struct job *job = job_new(GPURUN_FLOAT, 1, 1, 1);

        job->options.compute = tf32;
        setup_job(job);
        put(job->state.a, 0, 1 + 0x1p-12);
        put(job->state.b, 0, 1 + 0x1p-12);
        put(job->state.product, 0, 1);
        ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), !tf32);
        ck_assert_int_eq(judge(job, GPURUN_VERIFY_CERTIFY) > 0, !tf32);
        job_free(job);
    }
}
END_TEST

/* What one product a * b may be answered with. */
static int64_t judge_one(enum gpurun_dtype dtype, double a, double b, double answer,
                         enum gpurun_verify mode)
{
    struct job *job = job_new(dtype, 1, 1, 1);
    int64_t wrong;

    setup_job(job);
    put(job->state.a, 0, a);
    put(job->state.b, 0, b);
    put(job->state.product, 0, answer);
    wrong = judge(job, mode);
    if (!isfinite(a) || !isfinite(b))
        ck_assert_int_eq(job->proof.mode, GPURUN_VERIFY_FULL);
    job_free(job);
    return wrong;
}

START_TEST(what_is_not_finite_must_be_so_in_truth)
{
    static const struct {
        enum gpurun_dtype dtype;
        double a, b, answer;
        bool right;
    } cases[] = {
        {GPURUN_FLOAT, 2, 3, NAN, false},
        {GPURUN_FLOAT, 2, 3, INFINITY, false},
        {GPURUN_FLOAT, NAN, 3, NAN, true},
        {GPURUN_FLOAT, NAN, 3, 3, false},
        {GPURUN_FLOAT, INFINITY, 3, INFINITY, true},
        {GPURUN_FLOAT, INFINITY, 3, -INFINITY, false},
        {GPURUN_FLOAT, INFINITY, 3, FLT_MAX, false},
        {GPURUN_FLOAT, INFINITY, 3, NAN, false},
        {GPURUN_FLOAT, INFINITY, 0, NAN, true},
        {GPURUN_FLOAT, 3e38, 10, INFINITY, true},
        {GPURUN_FLOAT, 3e38, 10, FLT_MAX, false},
        {GPURUN_HALF, 300, 300, INFINITY, true},
        {GPURUN_HALF, 300, 300, -INFINITY, false},
        {GPURUN_HALF, 300, 300, 65504, false},
        {GPURUN_HALF, 300, 200, 60000, true},
        {GPURUN_HALF, 300, 200, INFINITY, false},
        {GPURUN_BFLOAT16, 2, 3, NAN, false},
        {GPURUN_DOUBLE, 1e300, 1e300, INFINITY, true},
        {GPURUN_DOUBLE, 1e300, 1e300, 1e300, false},
        {GPURUN_DOUBLE, 1e300, 2, 2e300, true},
        {GPURUN_DOUBLE, 1e300, 2, 2.1e300, false},
        {GPURUN_DOUBLE, 1e300, 2, INFINITY, false},
    };

    for (size_t i = 0; i < GPURUN_COUNT(cases); i++)
        for (int mode = GPURUN_VERIFY_FULL; mode <= GPURUN_VERIFY_CERTIFY; mode++)
            ck_assert_msg((judge_one(cases[i].dtype, cases[i].a, cases[i].b, cases[i].answer,
                                     (enum gpurun_verify)mode) == 0) == cases[i].right,
                          "case %zu, mode %d", i, mode);
}
END_TEST

/* 1.7e308 - 0.85e308: finite, though the magnitudes add up to more than the largest double. */
START_TEST(magnitudes_may_be_more_than_a_double_holds)
{
    struct job *job = job_new(GPURUN_DOUBLE, 1, 1, 2);

    setup_job(job);
    put(job->state.a, 0, 1.7e308);
    put(job->state.a, 1, 1.7e308);
    put(job->state.b, 0, 1);
    put(job->state.b, 1, -0.5);
    put(job->state.product, 0, 0.85e308);
    ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), 0);
    put(job->state.product, 0, 0.85e308 * (1 + 0x1p-48));
    ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), 1);
    job_free(job);
    job = job_new(GPURUN_DOUBLE, 1, 1, 1); /* nor is there room for the largest and its bound */
    setup_job(job);
    put(job->state.a, 0, DBL_MAX);
    put(job->state.b, 0, 1);
    put(job->state.product, 0, DBL_MAX);
    ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), 0);
    put(job->state.product, 0, DBL_MAX * (1 - 0x1p-48));
    ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), 1);
    job_free(job);
}
END_TEST

/* -1e400 + 1e400 + 1e400: a sum that begins with the first term stays at -infinity, others end elsewhere. */
START_TEST(a_sum_beyond_any_double_may_end_at_either_infinity)
{
    struct job *job = job_new(GPURUN_DOUBLE, 1, 1, 3);
    static const struct {
        double answer;
        int wrong;
    } cases[] = {{-INFINITY, 0}, {INFINITY, 0}, {NAN, 0}, {DBL_MAX, 1}, {0, 1}};

    setup_job(job);
    for (int x = 0; x < 3; x++) {
        put(job->state.a, x, 1e200);
        put(job->state.b, x, x == 0 ? -1e200 : 1e200);
    }
    for (size_t i = 0; i < GPURUN_COUNT(cases); i++) {
        put(job->state.product, 0, cases[i].answer);
        ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), cases[i].wrong);
    }
    job_free(job);
}
END_TEST

START_TEST(verify_refuses_a_gap_that_was_written_to)
{
    struct job *job = two_job(dtypes[_i], false, false, 1, false);
    struct gpurun_tensor *product = job->state.product;
    unsigned char *bytes = product->host;

    bytes[product->bytes - 1] ^= 1;
    ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), 1);
    open_gaps(job);
    run_job(job);
    expect_right(job, GPURUN_VERIFY_FULL);
    job_free(job);
}
END_TEST

/* Zeros behind every row, as a write of whole pieces leaves them. */
START_TEST(verify_refuses_gaps_that_are_all_the_same)
{
    struct job *job = two_job(dtypes[_i], false, false, 1, false);
    struct gpurun_tensor *product = job->state.product;
    const size_t size = gpurun_dtype_bytes(product->dtype);
    const size_t row = (size_t)job->options.ldc * size, used = (size_t)job->options.n * size;

    for (int64_t i = 0; i < job->options.m; i++)
        memset((char *)product->host + (size_t)i * row + used, 0, row - used);
    ck_assert_int_eq(judge(job, GPURUN_VERIFY_FULL), job->options.m);
    job_free(job);
}
END_TEST

START_TEST(auto_is_full_while_that_is_affordable)
{
    struct job *job = ones_job(GPURUN_INT64, 8, 8, 8);

    ck_assert_int_eq(judge(job, GPURUN_VERIFY_AUTO), 0);
    ck_assert_int_eq(job->proof.mode, GPURUN_VERIFY_FULL);
    job_free(job);
    job = ones_job(GPURUN_INT32, 700, 700, 300); /* more than 2^27 terms */
    ck_assert_int_eq(judge(job, GPURUN_VERIFY_AUTO), 0);
    ck_assert_int_eq(job->proof.mode, GPURUN_VERIFY_CERTIFY);
    job_free(job);
}
END_TEST

/* --- larger: the loops' edges, by truth -------------------------------------------------------------------------- */

START_TEST(every_edge_of_the_blocks)
{
    static const int64_t sizes[][3] = {{1, 300, 300}, {300, 1, 2}, {97, 257, 257}, {96, 256, 256},
                                       {95, 15, 511}, {6, 16, 1},  {7, 17, 513},   {101, 33, 3}};
    struct job *job = job_new(dtypes[_i], 0, 0, 0);

    for (size_t i = 0; i < GPURUN_COUNT(sizes); i++) {
        job_free(job);
        job = job_new(dtypes[_i], sizes[i][0], sizes[i][1], sizes[i][2]);
        job->options.transpose_a = i & 1;
        job->options.transpose_b = i & 2;
        setup_job(job);
        for (int64_t e = 0; e < job->state.a->elems; e++)
            put(job->state.a, e, (double)(e * 7 % 13) - 6);
        for (int64_t e = 0; e < job->state.b->elems; e++)
            put(job->state.b, e, (double)(e * 5 % 11) - 5);
        run_job(job);
        expect_right(job, GPURUN_VERIFY_FULL);
        expect_right(job, GPURUN_VERIFY_CERTIFY);
    }
    job_free(job);
}
END_TEST

START_TEST(threads_do_not_change_a_bit)
{
    struct job *job = job_new(GPURUN_FLOAT, 200, 300, 77);
    float *kept;

    setup_job(job);
    for (int64_t e = 0; e < job->state.a->elems; e++)
        put(job->state.a, e, 1.0 / (double)(e % 101 + 1));
    for (int64_t e = 0; e < job->state.b->elems; e++)
        put(job->state.b, e, 1.0 / (double)(e % 103 + 1));
    run_job(job);
    kept = malloc(job->state.product->bytes);
    memcpy(kept, job->state.product->host, job->state.product->bytes);
    job->ctx.threads = 3;
    run_job(job);
    if (!matmul_cpu_blas(&job->ctx)) /* OpenBLAS keeps no such promise */
        ck_assert_mem_eq(kept, job->state.product->host, job->state.product->bytes);
    free(kept);
    job_free(job);
}
END_TEST

/* --- setup ------------------------------------------------------------------------------------------------------- */

static void expect_refused(struct job *job, const char *part)
{
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_INVALID);
    ck_assert_msg(strstr(job->message, part) != NULL, "'%s' lacks '%s'", job->message, part);
    job_free(job);
}

START_TEST(setup_refuses_what_cannot_be)
{
    struct job *job = job_new(GPURUN_FLOAT, 2, 3, 4);

    job->options.lda = 3;
    expect_refused(job, "lda: 3 is less than a row's k = 4");
    job = job_new(GPURUN_FLOAT, 2, 3, 4);
    job->options.transpose_b = 1;
    job->options.ldb = 3;
    expect_refused(job, "ldb: 3 is less than a row's k = 4");
    job = job_new(GPURUN_FLOAT, 2, 3, 4);
    job->options.ldc = 2;
    expect_refused(job, "ldc: 2 is less than a row's n = 3");
    job = job_new(GPURUN_DOUBLE, 2, 3, 4);
    job->options.compute = MATMUL_COMPUTE_TF32;
    expect_refused(job, "compute: tf32 is for float, not for double");
    job = job_new(GPURUN_INT32, 2, 3, 4);
    job->options.alpha = 0.5;
    expect_refused(job, "alpha: 0.5 is no whole number");
    job = job_new(GPURUN_INT64, 2, 3, 4);
    job->options.beta = 1e17;
    expect_refused(job, "beta: 1e+17 is no whole number up to 2^53");
    job = job_new(GPURUN_FLOAT, 2, 3, 4);
    job->options.beta = INFINITY;
    expect_refused(job, "beta: inf is not a finite number");
    job = job_new(GPURUN_HALF, 2, 3, 4);
    job->options.alpha = 1e39;
    expect_refused(job, "alpha: 1e+39 is more than a float holds");
    job = job_new(GPURUN_FLOAT, 2, 3, 4);
    job->options.beta = -1e-46;
    expect_refused(job, "beta: -1e-46 is 0 as a float, which float accumulates in");
    expect_refused(job_new(GPURUN_FLOAT, INT64_C(1) << 40, 3, INT64_C(1) << 30),
                   "more than 64 bits can address");
}
END_TEST

static struct job *file_job(int64_t rows, int64_t cols)
{
    struct job *job = job_new(GPURUN_FLOAT, GPURUN_AUTO, GPURUN_AUTO, GPURUN_AUTO);

    job->options.dtype = GPURUN_AUTO;
    job->files[0] = (struct gpurun_shape){GPURUN_DOUBLE, 2, {rows, cols}};
    return job;
}

START_TEST(setup_takes_its_shape_from_files)
{
    struct job *job = file_job(5, 7);

    job->files[1] = (struct gpurun_shape){GPURUN_DOUBLE, 2, {7, 9}};
    setup_job(job);
    ck_assert_int_eq(job->options.dtype, GPURUN_DOUBLE);
    ck_assert(job->options.m == 5 && job->options.k == 7 && job->options.n == 9);
    ck_assert(job->options.lda == 7 && job->options.ldb == 9 && job->options.ldc == 9);
    job_free(job);

    job = file_job(5, 7);
    job->options.transpose_a = 1;
    job->options.m = 4; /* of rows that are longer */
    job->options.n = 2;
    setup_job(job);
    ck_assert(job->options.m == 4 && job->options.k == 5 && job->options.lda == 7);
    job_free(job);

    job = file_job(5, 7);
    job->options.m = 6;
    expect_refused(job, "m: 6, but the file of a has 5 rows");
    job = file_job(5, 7);
    job->options.lda = 8;
    expect_refused(job, "lda: 8, but rows in the file of a are 7 long");
    job = file_job(5, 7);
    job->files[1] = (struct gpurun_shape){GPURUN_DOUBLE, 2, {8, 9}};
    expect_refused(job, "k: 7, but the file of b has 8 rows");
    job = file_job(5, 7);
    job->options.batch = 2;
    expect_refused(job, "input: the file of a has 2 dimensions; with batch = 2 it must have 3");
    job = file_job(5, 7);
    job->options.batch = 2;
    job->files[0] = (struct gpurun_shape){GPURUN_DOUBLE, 3, {3, 5, 7}};
    expect_refused(job, "batch: 2, but the file of a has 3");
    job = file_job(5, 7);
    job->files[0].dtype = GPURUN_UINT8;
    expect_refused(job, "dtype: the file's is uint8");
}
END_TEST

static Suite *matmul_suite(void)
{
    Suite *suite = suite_create("matmul");
    TCase *run = tcase_create("run_cpu"), *setup = tcase_create("setup");
    TCase *verify = tcase_create("verify");
    const int all = (int)GPURUN_COUNT(dtypes);

    tcase_set_timeout(run, 60);
    tcase_add_loop_test(run, by_hand_turned_padded_and_scaled, 0, all);
    tcase_add_test(run, whole_numbers_wrap);
    tcase_add_test(run, the_element_of_the_tour);
    tcase_add_loop_test(run, a_product_of_nothing_is_beta_c, 0, all);
    tcase_add_test(run, alpha_0_does_not_read_a_and_b);
    tcase_add_loop_test(run, nothing_at_all, 0, all);
    tcase_add_loop_test(run, batches_are_products_of_their_own, 0, all);
    tcase_add_test(run, numpy_whole);
    tcase_add_loop_test(run, numpy_reals, 0, 3);
    tcase_add_loop_test(run, every_edge_of_the_blocks, 0, all);
    tcase_add_test(run, threads_do_not_change_a_bit);
    suite_add_tcase(suite, run);

    tcase_add_test(setup, setup_refuses_what_cannot_be);
    tcase_add_test(setup, setup_takes_its_shape_from_files);
    suite_add_tcase(suite, setup);

    tcase_set_timeout(verify, 60);
    tcase_add_loop_test(verify, verify_refuses_one_wrong_bit, 0, all);
    tcase_add_test(verify, verify_draws_the_line_at_its_bound);
    tcase_add_loop_test(verify, certify_sees_what_it_says, 0, 4);
    tcase_add_loop_test(verify, certify_sees_two_that_cancel, 0, all);
    tcase_add_test(verify, double_is_held_to_its_own_precision);
    tcase_add_test(verify, double_truth_is_wider_than_double);
    tcase_add_test(verify, tf32_is_allowed_only_where_asked);
    tcase_add_test(verify, what_is_not_finite_must_be_so_in_truth);
    tcase_add_test(verify, magnitudes_may_be_more_than_a_double_holds);
    tcase_add_test(verify, a_sum_beyond_any_double_may_end_at_either_infinity);
    tcase_add_loop_test(verify, verify_refuses_a_gap_that_was_written_to, 0, all);
    tcase_add_loop_test(verify, verify_refuses_gaps_that_are_all_the_same, 0, all);
    tcase_add_test(verify, auto_is_full_while_that_is_affordable);
    suite_add_tcase(suite, verify);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(matmul_suite());
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
