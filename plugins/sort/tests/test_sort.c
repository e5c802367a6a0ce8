/*
 * sort on the CPU: setup, run_cpu and verify, against answers worked out by hand. The core is a small fake
 * whose tensors are allocated to the byte, so that a sanitizer sees any step outside them.
 */
#include "sort.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- a fake core ------------------------------------------------------------------------------------ */

enum { TENSORS = 4, POISON = 0xa5 };

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    struct sort_options options;
    struct sort_state state;
    struct gpurun_tensor tensors[TENSORS];
    int tensor_count;
    struct gpurun_shape file;
    char message[512]; /* of the last failure or wrong element */
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

    ck_assert(strcmp(name, "keys") == 0 || strcmp(name, "values") == 0);
    if (job->file.rank > 0 && strcmp(name, "keys") == 0)
        *shape = job->file;
    return GPURUN_OK;
}

static const struct gpurun_core fake_core = FAKE_CORE(fake_tensor, fake_input_shape);

static struct job *job_new(enum gpurun_dtype dtype, int64_t n)
{
    struct job *job = calloc(1, sizeof(*job));

    job->ctx.core = &fake_core;
    job->ctx.options = &job->options;
    job->ctx.state = &job->state;
    job->ctx.threads = 1;
    job->options = (struct sort_options){.n = n, .dtype = dtype, .steps = 0, .block = 256};
    return job;
}

static void job_free(struct job *job)
{
    gpurun_plugin.teardown(&job->ctx);
    for (int i = 0; i < job->tensor_count; i++)
        free(job->tensors[i].host);
    free(job);
}

static void job_poison(struct job *job)
{
    for (int i = 0; i < job->tensor_count; i++)
        if (job->tensors[i].role == GPURUN_OUT)
            memset(job->tensors[i].host, POISON, job->tensors[i].bytes);
}

/* Values are the indices, so that they show where an element came from. */
static void fill_values(struct job *job)
{
    const struct gpurun_tensor *values = job->state.values;

    for (int64_t i = 0; values && i < values->elems; i++)
        if (values->dtype == GPURUN_UINT32)
            ((uint32_t *)values->host)[i] = (uint32_t)i;
        else
            ((uint64_t *)values->host)[i] = (uint64_t)i;
}

static void job_setup(struct job *job, const void *data)
{
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    memcpy(job->state.keys->host, data, job->state.keys->bytes);
    fill_values(job);
    job_poison(job);
}

/* How many elements verify calls wrong. */
static int64_t job_verify(struct job *job, enum gpurun_verify mode, unsigned relaxed)
{
    struct gpurun_proof proof = {.mode = mode, .relaxed = relaxed};

    job->message[0] = '\0';
    ck_assert_int_eq(gpurun_plugin.verify(&job->ctx, &proof), GPURUN_OK);
    ck_assert_ptr_nonnull(proof.detects);
    ck_assert(proof.bound <= 0);
    ck_assert_int_eq(proof.checked, job->options.n);
    return proof.wrong;
}

static void job_run(struct job *job)
{
    job_poison(job);
    ck_assert_int_eq(gpurun_plugin.run_cpu(&job->ctx), GPURUN_OK);
}

static void job_prove(struct job *job)
{
    ck_assert_msg(job_verify(job, GPURUN_VERIFY_FULL, 0) == 0, "full: %s", job->message);
    ck_assert_msg(job_verify(job, GPURUN_VERIFY_CERTIFY, 0) == 0, "certify: %s", job->message);
}

/* Whether element i of the answer is data[from], and the value with it `from`. */
static bool is_right(const struct job *job, const void *data, int64_t i, int64_t from)
{
    const size_t size = gpurun_dtype_bytes(job->options.dtype);
    const void *values = job->state.sorted_values ? job->state.sorted_values->host : NULL;

    return memcmp((const char *)job->state.sorted->host + (size_t)i * size,
                  (const char *)data + (size_t)from * size, size) == 0 &&
           (job->options.values == SORT_VALUES_NONE ||
            (job->options.values == SORT_VALUES_UINT32
                 ? ((const uint32_t *)values)[i] == (uint32_t)from
                 : ((const uint64_t *)values)[i] == (uint64_t)from));
}

/* Runs as pairs whose values are indices, and compares these with `order`; then without values. No assertion per
 * element: Check notes down each that holds. */
static void expect(enum gpurun_dtype dtype, int64_t order, const void *data, const int64_t *from,
                   int64_t n)
{
    for (int64_t values = SORT_VALUES_NONE; values <= SORT_VALUES_UINT64; values++) {
        struct job *job = job_new(dtype, n);
        int64_t i = 0;

        job->options.order = order;
        job->options.values = values;
        job_setup(job, data);
        job_run(job);
        while (i < n && is_right(job, data, i, from[i]))
            i++;
        ck_assert_int_eq(i, n); /* else the first that is wrong */
        job_prove(job);
        job_free(job);
    }
}

#define EXPECT(dtype, order, data, ...)                                                            \
    expect((dtype), (order), (data), (const int64_t[]){__VA_ARGS__},                               \
           (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

/* --- run_cpu, by hand ------------------------------------------------------------------------------- */

START_TEST(orders_both_ways_and_keeps_the_order_of_ties)
{
    static const int32_t data[] = {3, -9, 3, 7, -9, 1, 3};

    EXPECT(GPURUN_INT32, SORT_ASCENDING, data, 1, 4, 5, 0, 2, 6, 3);
    EXPECT(GPURUN_INT32, SORT_DESCENDING, data, 3, 0, 2, 6, 5, 1, 4);
}
END_TEST

/* The teaching text's example of split. */
START_TEST(eight_digits_of_the_text)
{
    static const uint32_t data[] = {0, 0, 1, 0, 1, 1, 0, 1};

    EXPECT(GPURUN_UINT32, SORT_ASCENDING, data, 0, 1, 3, 6, 2, 4, 5, 7);
    EXPECT(GPURUN_UINT32, SORT_DESCENDING, data, 2, 4, 5, 7, 0, 1, 3, 6);
}
END_TEST

START_TEST(extremes_are_values_like_any_other)
{
    static const int32_t small[] = {INT32_MIN, 0, -1, INT32_MIN, INT32_MAX, 1};
    static const int64_t large[] = {INT64_MIN, 1, INT64_C(1) << 32, -1, (INT64_C(1) << 32) + 1,
                                    INT64_MAX};

    EXPECT(GPURUN_INT32, SORT_ASCENDING, small, 0, 3, 2, 1, 5, 4);
    EXPECT(GPURUN_INT32, SORT_DESCENDING, small, 4, 5, 1, 2, 0, 3);
    EXPECT(GPURUN_INT64, SORT_ASCENDING, large, 0, 3, 1, 2, 4, 5);
    EXPECT(GPURUN_INT64, SORT_DESCENDING, large, 5, 4, 2, 1, 3, 0);
}
END_TEST

START_TEST(unsigned_numbers_have_no_sign)
{
    static const uint32_t small[] = {1, UINT32_MAX, 0x80000000u, 0x7fffffffu};
    static const uint64_t large[] = {1, UINT64_MAX, UINT64_C(1) << 63, UINT64_MAX >> 1};

    EXPECT(GPURUN_UINT32, SORT_ASCENDING, small, 0, 3, 2, 1);
    EXPECT(GPURUN_UINT32, SORT_DESCENDING, small, 1, 2, 3, 0);
    EXPECT(GPURUN_UINT64, SORT_ASCENDING, large, 0, 3, 2, 1);
    EXPECT(GPURUN_UINT64, SORT_DESCENDING, large, 1, 2, 3, 0);
}
END_TEST

/* NaNs at 1 (positive), 4 (negative) and 7 (another payload); zeros at 2 (-0) and 5 (+0). */
static void reals(float *f, double *d)
{
    static const double plain[] = {1.5, 0, -0.0, INFINITY, 0, 0.0, -INFINITY, 0, -2.5};

    for (int i = 0; i < 9; i++) {
        d[i] = plain[i];
        f[i] = (float)plain[i];
    }
    f[1] = NAN;
    d[1] = NAN;
    f[4] = copysignf(NAN, -1.0f);
    d[4] = copysign(NAN, -1.0);
    memcpy(&f[7], &(uint32_t){0x7f800001}, sizeof(float));
    memcpy(&d[7], &(uint64_t){0x7ff0000000000001}, sizeof(double));
}

START_TEST(nan_is_last_both_ways_and_zeros_are_equal)
{
    float f[9];
    double d[9];

    reals(f, d);
    EXPECT(GPURUN_FLOAT, SORT_ASCENDING, f, 6, 8, 2, 5, 0, 3, 1, 4, 7);
    EXPECT(GPURUN_DOUBLE, SORT_ASCENDING, d, 6, 8, 2, 5, 0, 3, 1, 4, 7);
    EXPECT(GPURUN_FLOAT, SORT_DESCENDING, f, 3, 0, 2, 5, 8, 6, 1, 4, 7);
    EXPECT(GPURUN_DOUBLE, SORT_DESCENDING, d, 3, 0, 2, 5, 8, 6, 1, 4, 7);
}
END_TEST

START_TEST(nothing_is_an_answer_too)
{
    static const int32_t data[] = {7};
    static const int64_t none[] = {0};

    expect(GPURUN_INT32, SORT_ASCENDING, data, none, 0);
    EXPECT(GPURUN_INT32, SORT_DESCENDING, data, 0);
}
END_TEST

/* --- setup ------------------------------------------------------------------------------------------ */

static void expect_refusal(struct job *job, const char *message)
{
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_INVALID);
    ck_assert_str_eq(job->message, message);
    job_free(job);
}

static struct job *file_job(int64_t n, enum gpurun_dtype dtype, int rank, int64_t elems)
{
    struct job *job = job_new(GPURUN_INT32, n);

    job->options.dtype = GPURUN_AUTO;
    job->file = (struct gpurun_shape){dtype, rank, {elems, 2}};
    return job;
}

START_TEST(setup_refuses_what_cannot_be)
{
    struct job *job = job_new(GPURUN_INT32, INT64_C(1) << 60);

    expect_refusal(job, "n: 1152921504606846976 elements are more than 64 bits can address");
    expect_refusal(file_job(8, GPURUN_DOUBLE, 1, 9), "n: 8, but the file of keys has 9");
    expect_refusal(file_job(GPURUN_AUTO, GPURUN_DOUBLE, 2, 9),
                   "input: the file has 2 dimensions; sort takes one");
    expect_refusal(file_job(GPURUN_AUTO, GPURUN_UINT8, 1, 9),
                   "dtype: the file's is uint8; sort takes int32 uint32 int64 uint64 float double");
    job = job_new(GPURUN_FLOAT, 8);
    job->options.steps = 1;
    expect_refusal(job, "steps: a step is shown of whole numbers without values");
}
END_TEST

START_TEST(setup_takes_its_shape_from_the_file)
{
    struct job *job = file_job(GPURUN_AUTO, GPURUN_DOUBLE, 1, 9);

    job->options.values = SORT_VALUES_UINT32;
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    ck_assert_int_eq(job->options.n, 9);
    ck_assert_int_eq(job->options.dtype, GPURUN_DOUBLE);
    ck_assert(job->ctx.work.bytes_read >= 108 && job->ctx.work.bytes_read <= 108);
    job_free(job);

    job = job_new(GPURUN_INT32, GPURUN_AUTO);
    job->options.dtype = GPURUN_AUTO;
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    ck_assert_int_eq(job->options.n, 1000000);
    ck_assert_int_eq(job->options.dtype, GPURUN_INT32);
    job_free(job);
}
END_TEST

/* --- verify refuses ----------------------------------------------------------------------------------- */

/* In order: elements 7, 1, 4, 0, 3, 6, 2, 5, of value 0 1 2 5 5 5 8 8. */
static const int32_t tied[] = {5, 1, 8, 5, 2, 8, 5, 0};

static int32_t *job_keys(struct job *job)
{
    return job->state.sorted->host;
}

static uint32_t *job_values(struct job *job)
{
    return job->state.sorted_values->host;
}

static void swap_keys(struct job *job)
{
    const int32_t key = job_keys(job)[1];

    job_keys(job)[1] = job_keys(job)[6];
    job_keys(job)[6] = key;
}
static void changed_key(struct job *job)
{
    job_keys(job)[4] ^= 1;
}
static void top_bit(struct job *job)
{
    job_keys(job)[7] ^= INT32_MIN;
}
static void lost_and_doubled(struct job *job)
{
    job_keys(job)[1] = job_keys(job)[2];
}
static void doubled_tie(struct job *job)
{
    job_keys(job)[2] = job_keys(job)[3];
}
static void untouched(struct job *job)
{
    job_poison(job);
}
static void all_zero(struct job *job)
{
    memset(job->state.sorted->host, 0, job->state.sorted->bytes);
}
static void unsorted(struct job *job)
{
    memcpy(job->state.sorted->host, tied, sizeof(tied));
}
static void swapped_values(struct job *job)
{
    const uint32_t value = job_values(job)[1];

    job_values(job)[1] = job_values(job)[2];
    job_values(job)[2] = value;
}
static void unstable_pair(struct job *job)
{
    const uint32_t value = job_values(job)[4];

    job_values(job)[4] = job_values(job)[5];
    job_values(job)[5] = value;
}
static void changed_value(struct job *job)
{
    job_values(job)[0] ^= 8;
}
static void doubled_value(struct job *job)
{
    job_values(job)[7] = job_values(job)[6];
}
static void unsorted_values(struct job *job)
{
    memcpy(job->state.sorted_values->host, job->state.values->host, job->state.values->bytes);
}

struct corruption {
    const char *name;
    void (*apply)(struct job *job);
    bool keys, pairs; /* where it can be applied */
};

static const struct corruption corruptions[] = {
    {"swapped keys", swap_keys, true, true},
    {"changed key", changed_key, true, true},
    {"top bit", top_bit, true, true},
    {"one lost, one doubled", lost_and_doubled, true, true},
    {"one lost, one more of a tie", doubled_tie, true, true},
    {"untouched", untouched, true, true},
    {"all zero", all_zero, true, true},
    {"unsorted", unsorted, true, true},
    {"swapped values", swapped_values, false, true},
    {"unstable pair", unstable_pair, false, true},
    {"changed value", changed_value, false, true},
    {"doubled value", doubled_value, false, true},
    {"unsorted values", unsorted_values, false, true},
};

START_TEST(verify_refuses_each_corruption)
{
    const struct corruption *c = &corruptions[_i];

    for (int pairs = 0; pairs < 2; pairs++)
        for (enum gpurun_verify mode = GPURUN_VERIFY_AUTO; mode <= GPURUN_VERIFY_CERTIFY; mode++) {
            struct job *job = job_new(GPURUN_INT32, 8);

            job->options.values = pairs ? SORT_VALUES_UINT32 : SORT_VALUES_NONE;
            job_setup(job, tied);
            job_run(job);
            ck_assert_msg(job_verify(job, mode, 0) == 0, "%s: %s", c->name, job->message);
            if (pairs ? c->pairs : c->keys) {
                c->apply(job);
                ck_assert_msg(job_verify(job, mode, 0) > 0, "%s, pairs %d, mode %d", c->name, pairs,
                              (int)mode);
            }
            job_free(job);
        }
}
END_TEST

/* Equal reals that can be told apart, in the wrong order: the zeros, and two of the NaNs. */
START_TEST(verify_refuses_unstable_reals)
{
    static const int places[][2] = {{2, 3}, {6, 7}, {7, 8}};
    float f[9], *sorted;
    double d[9];

    reals(f, d);
    for (enum gpurun_verify mode = GPURUN_VERIFY_FULL; mode <= GPURUN_VERIFY_CERTIFY; mode++) {
        struct job *job = job_new(GPURUN_FLOAT, 9);
        float kept[2];

        job_setup(job, f);
        job_run(job);
        ck_assert_int_eq(job_verify(job, mode, 0), 0);
        sorted = job->state.sorted->host;
        memcpy(kept, sorted + places[_i][0], sizeof(kept));
        memcpy(sorted + places[_i][0], kept + 1, sizeof(float));
        memcpy(sorted + places[_i][1], kept, sizeof(float));
        ck_assert_int_gt(job_verify(job, mode, 0), 0);
        job_free(job);
    }
}
END_TEST

START_TEST(verify_by_bits_puts_nan_where_its_sign_does)
{
    /* By bits: 1 and 7 are positive NaNs, 1 the larger; 4 is a negative one, below -infinity. */
    static const int up[] = {4, 6, 8, 2, 5, 0, 3, 7, 1}, down[] = {1, 7, 3, 0, 2, 5, 8, 6, 4};
    const int *by_bits = _i == SORT_ASCENDING ? up : down;
    float f[9];
    double d[9];

    reals(f, d);
    for (enum gpurun_verify mode = GPURUN_VERIFY_FULL; mode <= GPURUN_VERIFY_CERTIFY; mode++) {
        struct job *job = job_new(GPURUN_DOUBLE, 9);

        job->options.order = _i;
        job_setup(job, d);
        job_run(job);
        ck_assert_int_gt(job_verify(job, mode, GPURUN_FLOAT_BY_BITS), 0);
        for (int i = 0; i < 9; i++)
            memcpy((double *)job->state.sorted->host + i, d + by_bits[i], sizeof(double));
        ck_assert_int_eq(job_verify(job, mode, GPURUN_FLOAT_BY_BITS), 0);
        ck_assert_int_gt(job_verify(job, mode, 0), 0);
        job_free(job);
    }
}
END_TEST

START_TEST(pairs_without_ascending_values_are_proved_in_full)
{
    struct gpurun_proof proof = {.mode = GPURUN_VERIFY_CERTIFY};
    struct job *job = job_new(GPURUN_INT32, 8);

    job->options.values = SORT_VALUES_UINT32;
    job_setup(job, tied);
    ((uint32_t *)job->state.values->host)[3] = 0;
    job_run(job);
    ck_assert_int_eq(gpurun_plugin.verify(&job->ctx, &proof), GPURUN_OK);
    ck_assert_int_eq(proof.mode, GPURUN_VERIFY_FULL);
    ck_assert_int_eq(proof.wrong, 0);
    job_free(job);
}
END_TEST

/* --- one step ------------------------------------------------------------------------------------------- */

static void expect_step_refused(struct job *job, int64_t begin, int64_t end)
{
    int64_t *bounds = job->state.bounds->host;

    bounds[0] = begin;
    bounds[1] = end;
    ck_assert_msg(job_verify(job, GPURUN_VERIFY_AUTO, 0) > 0, "%d %d", (int)begin, (int)end);
}

START_TEST(a_step_is_judged_by_its_bounds)
{
    struct job *job = job_new(GPURUN_INT32, 8);
    int64_t *bounds;

    job->options.order = _i;
    job->options.steps = 1;
    job_setup(job, tied);
    job_run(job);
    ck_assert_msg(job_verify(job, GPURUN_VERIFY_AUTO, 0) == 0, "%s", job->message);
    bounds = job->state.bounds->host;
    const int64_t begin = bounds[0], end = bounds[1];
    expect_step_refused(job, begin - 1, end);
    expect_step_refused(job, begin, end - 1);
    expect_step_refused(job, begin, begin);
    expect_step_refused(job, -1, end);
    expect_step_refused(job, begin, 9);
    bounds[0] = begin;
    bounds[1] = end;
    job_keys(job)[begin]++;
    ck_assert_int_gt(job_verify(job, GPURUN_VERIFY_AUTO, 0), 0);
    memset(job->state.sorted->host, 0, job->state.sorted->bytes);
    bounds[0] = 0;
    bounds[1] = 8;
    ck_assert_int_gt(job_verify(job, GPURUN_VERIFY_AUTO, 0), 0);
    job_free(job);
}
END_TEST

/* --- run_cpu against verify, on awkward data ------------------------------------------------------------- */

static uint64_t draw(uint64_t *seed)
{
    uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

enum { SHAPES = 10 };

/* The i-th of n numbers of a shape that has hurt a sort before. */
static int64_t shaped(int shape, int64_t i, int64_t n, uint64_t random)
{
    switch (shape) {
    case 0:
        return (int64_t)random;
    case 1:
        return i;
    case 2:
        return -i;
    case 3:
        return -7;
    case 4:
        return i < n / 2 ? 1 : 0; /* 1024 ones, then 1024 zeros */
    case 5:
        return i < n / 2 ? i : n - i; /* organ pipe */
    case 6:
        return (int64_t)(random % 5) - 2;
    case 7:
        return (int64_t)(random >> random % 64); /* all widths */
    case 8:
        return i % 100 == 0 ? (int64_t)random : (int64_t)(random % 1000); /* a few far out */
    default:
        return (int64_t)(random >> 44 << 20);
    }
}

/* Reals get NaNs and both zeros among small numbers, and any bits among large ones. */
static void fill(enum gpurun_dtype dtype, void *data, int64_t n, int shape, uint64_t *seed)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t random = draw(seed);
        const int64_t x = shaped(shape, i, n, random);
        const bool is_small = x > -1000000 && x < 1000000;

        if (dtype == GPURUN_FLOAT && is_small)
            ((float *)data)[i] = x == 1 && random >> 63 ? NAN : (float)x * (i % 3 ? 0.5f : -0.5f);
        else if (dtype == GPURUN_DOUBLE && is_small)
            ((double *)data)[i] = x == 1 && random >> 63 ? NAN : (double)x * (i % 3 ? 0.5 : -0.5);
        else if (gpurun_dtype_bytes(dtype) == 4)
            ((int32_t *)data)[i] = (int32_t)(x ^ (x >> 32));
        else
            ((int64_t *)data)[i] = x;
    }
}

static void compare_once(enum gpurun_dtype dtype, int64_t n, int shape, int threads, uint64_t *seed)
{
    void *data = malloc((size_t)n * 8 + 1);
    const uint64_t random = draw(seed);
    struct job *job = job_new(dtype, n);

    job->options.order = (int64_t)(random % 2);
    job->options.values = (int64_t)(random >> 8) % 3;
    job->options.values = job->options.values < 0 ? 0 : job->options.values;
    job->ctx.threads = threads;
    fill(dtype, data, n, shape, seed);
    job_setup(job, data);
    job_run(job);
    for (enum gpurun_verify mode = GPURUN_VERIFY_FULL; mode <= GPURUN_VERIFY_CERTIFY; mode++)
        ck_assert_msg(job_verify(job, mode, 0) == 0,
                      "%s n %d shape %d order %d values %d threads %d mode %d: %s",
                      gpurun_dtype_name(dtype), (int)n, shape, (int)job->options.order,
                      (int)job->options.values, threads, (int)mode, job->message);
    ck_assert_mem_eq(job->state.keys->host, data, job->state.keys->bytes);
    job_free(job);
    free(data);
}

START_TEST(run_cpu_is_right_at_each_size)
{
    static const int64_t sizes[] = {0,  1,  2,  3,   24,   25,   31,   32,
                                    33, 63, 97, 257, 1023, 1024, 1025, 2048};
    uint64_t seed = (uint64_t)_i << 32;

    for (size_t i = 0; i < GPURUN_COUNT(sizes); i++)
        for (int shape = 0; shape < SHAPES; shape++)
            compare_once((enum gpurun_dtype)_i, sizes[i], shape, 1 + shape % 3, &seed);
}
END_TEST

START_TEST(run_cpu_is_right_on_arrays_larger_than_a_cache)
{
    const int64_t bytes = (int64_t)gpurun_dtype_bytes((enum gpurun_dtype)_i);
    const int64_t sizes[] = {65536, 100003, 1200028 / bytes};
    uint64_t seed = (uint64_t)_i << 40;

    for (size_t i = 0; i < GPURUN_COUNT(sizes); i++)
        for (int shape = 0; shape < SHAPES; shape++)
            compare_once((enum gpurun_dtype)_i, sizes[i], shape, 1 + shape % 4, &seed);
}
END_TEST

static Suite *sort_suite(void)
{
    Suite *suite = suite_create("sort");
    TCase *run = tcase_create("run_cpu"), *setup = tcase_create("setup");
    TCase *verify = tcase_create("verify"), *both = tcase_create("run_cpu against verify");

    tcase_add_test(run, orders_both_ways_and_keeps_the_order_of_ties);
    tcase_add_test(run, eight_digits_of_the_text);
    tcase_add_test(run, extremes_are_values_like_any_other);
    tcase_add_test(run, unsigned_numbers_have_no_sign);
    tcase_add_test(run, nan_is_last_both_ways_and_zeros_are_equal);
    tcase_add_test(run, nothing_is_an_answer_too);
    suite_add_tcase(suite, run);

    tcase_add_test(setup, setup_refuses_what_cannot_be);
    tcase_add_test(setup, setup_takes_its_shape_from_the_file);
    suite_add_tcase(suite, setup);

    tcase_add_loop_test(verify, verify_refuses_each_corruption, 0, (int)GPURUN_COUNT(corruptions));
    tcase_add_loop_test(verify, verify_refuses_unstable_reals, 0, 3);
    tcase_add_loop_test(verify, verify_by_bits_puts_nan_where_its_sign_does, 0, 2);
    tcase_add_test(verify, pairs_without_ascending_values_are_proved_in_full);
    tcase_add_loop_test(verify, a_step_is_judged_by_its_bounds, 0, 2);
    suite_add_tcase(suite, verify);

    tcase_set_timeout(both, 60);
    tcase_add_loop_test(both, run_cpu_is_right_at_each_size, GPURUN_INT32, GPURUN_DOUBLE + 1);
    tcase_add_loop_test(both, run_cpu_is_right_on_arrays_larger_than_a_cache, GPURUN_INT32,
                        GPURUN_DOUBLE + 1);
    suite_add_tcase(suite, both);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(sort_suite());
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
