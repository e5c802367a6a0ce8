/*
 * topk on the CPU: setup, run_cpu and verify, against answers worked out by hand. The core is a small fake
 * whose tensors are allocated to the byte, so that a sanitizer sees any step outside them.
 */
#include "topk.h"
#include "topk_band.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- a fake core ------------------------------------------------------------------------------------ */

enum { TENSORS = 4, POISON = 0xa5 };

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    struct topk_options options;
    struct topk_state state;
    struct gpurun_tensor tensors[TENSORS];
    int64_t allocated[TENSORS]; /* bytes */
    struct gpurun_tensor
        declared[TENSORS]; /* as setup asked; put back before a run, as the core does */
    int tensor_count;
    struct gpurun_shape file;
    char message[512]; /* of the last failure or wrong element */
};

#include "plugin_tensors.h"

static struct gpurun_tensor *fake_tensor(struct gpurun_ctx *ctx, const char *name,
                                         enum gpurun_role role, enum gpurun_dtype dtype, int rank,
                                         const int64_t *dims)
{
    struct job *job = (struct job *)ctx;
    const int place = job->tensor_count;
    struct gpurun_tensor *t = fake_allocate(ctx, name, role, dtype, rank, dims);

    job->declared[place] = *t;
    job->allocated[place] = (int64_t)t->bytes;
    return t;
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

static struct job *job_new(enum gpurun_dtype dtype, int64_t rows, int64_t n, int64_t k)
{
    struct job *job = calloc(1, sizeof(*job));

    job->ctx.core = &fake_core;
    job->ctx.options = &job->options;
    job->ctx.state = &job->state;
    job->ctx.threads = 1;
    job->options = (struct topk_options){.n = n,
                                         .rows = rows,
                                         .k = k,
                                         .dtype = dtype,
                                         .order = TOPK_LARGEST,
                                         .sorted = 1,
                                         .block = 256,
                                         .grid = 32};
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
    for (int i = 1; i < job->tensor_count; i++)
        memset(job->tensors[i].host, POISON, (size_t)job->allocated[i]);
}

static void job_setup(struct job *job, const void *data)
{
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    memcpy(job->tensors[0].host, data, job->tensors[0].bytes);
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
    if (mode != GPURUN_VERIFY_AUTO)
        ck_assert_int_eq(proof.mode, mode);
    return proof.wrong;
}

static void job_run(struct job *job)
{
    memcpy(job->tensors, job->declared, sizeof(job->tensors));
    job_poison(job);
    ck_assert_int_eq(gpurun_plugin.run_cpu(&job->ctx), GPURUN_OK);
}

static int64_t *job_indices(struct job *job)
{
    return job->state.indices->host;
}

/* Runs, compares row 0 with `indices`, and has both proofs agree. */
static void job_expect(struct job *job, const int64_t *indices, int64_t count)
{
    job_run(job);
    ck_assert_int_eq(*(int64_t *)job->state.count->host, count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_int_eq(job_indices(job)[i], indices[i]);
    ck_assert_msg(job_verify(job, GPURUN_VERIFY_FULL, 0) == 0, "full: %s", job->message);
    job_run(job);
    ck_assert_msg(job_verify(job, GPURUN_VERIFY_CERTIFY, 0) == 0, "certify: %s", job->message);
}

#define EXPECT(job, ...)                                                                           \
    job_expect((job), (const int64_t[]){__VA_ARGS__},                                              \
               (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

/* --- run_cpu, by hand ------------------------------------------------------------------------------- */

static struct job *int32_job(const int32_t *data, int64_t n, int64_t k, bool smallest,
                             bool distinct)
{
    struct job *job = job_new(GPURUN_INT32, 1, n, k);

    job->options.order = smallest ? TOPK_SMALLEST : TOPK_LARGEST;
    job->options.distinct = distinct;
    job_setup(job, data);
    return job;
}

START_TEST(picks_the_largest_with_ties_at_the_lowest_index)
{
    static const int32_t data[] = {3, 9, 3, 7, 9, 1, 3};
    struct job *job = int32_job(data, 7, 4, false, false);

    EXPECT(job, 1, 4, 3, 0);
    job_free(job);
}
END_TEST

START_TEST(picks_the_smallest_with_ties_at_the_lowest_index)
{
    static const int32_t data[] = {3, 9, 3, 7, 9, 1, 3};
    struct job *job = int32_job(data, 7, 3, true, false);

    EXPECT(job, 5, 0, 2);
    job_free(job);
}
END_TEST

START_TEST(distinct_keeps_each_value_once)
{
    static const int32_t data[] = {3, 9, 3, 7, 9, 1, 3};
    struct job *job = int32_job(data, 7, 3, false, true);

    EXPECT(job, 1, 3, 0);
    job_free(job);
}
END_TEST

START_TEST(distinct_returns_fewer_than_k)
{
    static const int32_t data[] = {3, 9, 3, 7, 9, 1, 3};
    struct job *job = int32_job(data, 7, 6, true, true);

    EXPECT(job, 5, 0, 3, 1);
    ck_assert_int_eq(job->state.values->dims[0], 4);
    ck_assert_int_eq(job->state.values->elems, 4);
    ck_assert_uint_eq(job->state.indices->bytes, 32);
    job_free(job);
}
END_TEST

START_TEST(extremes_are_values_like_any_other)
{
    static const int32_t data[] = {INT32_MIN, 0, -1, INT32_MIN, INT32_MAX, INT32_MIN};
    struct job *job = int32_job(data, 6, 6, false, false);

    EXPECT(job, 4, 1, 2, 0, 3, 5);
    job_free(job);
    job = int32_job(data, 6, 2, true, true);
    EXPECT(job, 0, 2);
    job_free(job);
}
END_TEST

START_TEST(all_equal)
{
    static const int32_t data[] = {-7, -7, -7, -7, -7};
    struct job *job = int32_job(data, 5, 3, false, false);

    EXPECT(job, 0, 1, 2);
    job_free(job);
    job = int32_job(data, 5, 3, false, true);
    EXPECT(job, 0);
    job_free(job);
}
END_TEST

START_TEST(ascending_and_descending)
{
    int32_t up[40], down[40];

    for (int i = 0; i < 40; i++) {
        up[i] = i - 20;
        down[i] = 20 - i;
    }
    for (int distinct = 0; distinct < 2; distinct++) {
        struct job *job = int32_job(up, 40, 3, false, distinct);
        EXPECT(job, 39, 38, 37);
        job_free(job);
        job = int32_job(down, 40, 3, false, distinct);
        EXPECT(job, 0, 1, 2);
        job_free(job);
    }
}
END_TEST

START_TEST(nothing_is_an_answer_too)
{
    static const int32_t data[] = {5, 6};
    const int64_t none[] = {0};

    for (int distinct = 0; distinct < 2; distinct++) {
        struct job *job = int32_job(data, 2, 0, false, distinct);
        job_expect(job, none, 0);
        job_free(job);
        job = int32_job(data, 0, 0, false, distinct);
        job_expect(job, none, 0);
        job_free(job);
    }
}
END_TEST

START_TEST(unsigned_numbers_have_no_sign)
{
    static const uint32_t small[] = {1, UINT32_MAX, 0x80000000u, 0x7fffffffu};
    static const uint64_t large[] = {1, UINT64_MAX, UINT64_C(1) << 63, UINT64_MAX >> 1};
    struct job *job = job_new(GPURUN_UINT32, 1, 4, 4);

    job_setup(job, small);
    EXPECT(job, 1, 2, 3, 0);
    job_free(job);
    job = job_new(GPURUN_UINT64, 1, 4, 4);
    job_setup(job, large);
    EXPECT(job, 1, 2, 3, 0);
    job_free(job);
}
END_TEST

START_TEST(long_numbers_are_compared_whole)
{
    static const int64_t data[] = {INT64_MIN, 1, INT64_C(1) << 32, -1, (INT64_C(1) << 32) + 1,
                                   INT64_MAX};
    struct job *job = job_new(GPURUN_INT64, 1, 6, 6);

    job_setup(job, data);
    EXPECT(job, 5, 4, 2, 1, 3, 0);
    job_free(job);
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
    f[1] = d[1] = NAN;
    f[4] = copysignf(NAN, -1.0f);
    d[4] = copysign(NAN, -1.0);
    memcpy(&f[7], &(uint32_t){0x7f800001}, sizeof(float));
    memcpy(&d[7], &(uint64_t){0x7ff0000000000001}, sizeof(double));
}

static struct job *real_job(bool wide, int64_t k, bool smallest, bool distinct)
{
    struct job *job = job_new(wide ? GPURUN_DOUBLE : GPURUN_FLOAT, 1, 9, k);
    float f[9];
    double d[9];

    reals(f, d);
    job->options.order = smallest ? TOPK_SMALLEST : TOPK_LARGEST;
    job->options.distinct = distinct;
    job_setup(job, wide ? (const void *)d : (const void *)f);
    return job;
}

START_TEST(nan_is_the_largest_and_zeros_are_equal)
{
    struct job *job = real_job(_i, 9, false, false);

    EXPECT(job, 1, 4, 7, 3, 0, 2, 5, 8, 6);
    job_free(job);
    job = real_job(_i, 9, true, false);
    EXPECT(job, 6, 8, 2, 5, 0, 3, 1, 4, 7);
    job_free(job);
    job = real_job(_i, 2, false, false);
    EXPECT(job, 1, 4);
    job_free(job);
}
END_TEST

START_TEST(distinct_knows_one_nan_and_one_zero)
{
    struct job *job = real_job(_i, 9, false, true);

    EXPECT(job, 1, 3, 0, 2, 8, 6);
    job_free(job);
    job = real_job(_i, 4, true, true);
    EXPECT(job, 6, 8, 2, 0);
    job_free(job);
}
END_TEST

START_TEST(value_bits_are_kept)
{
    struct job *job = real_job(0, 9, false, false);
    const uint32_t *values;

    job_run(job);
    values = job->state.values->host;
    ck_assert_uint_eq(values[2], 0x7f800001);
    ck_assert_uint_eq(values[5], 0x80000000);
    ck_assert_uint_eq(values[6], 0);
    job_free(job);
}
END_TEST

START_TEST(each_row_has_its_own_answer)
{
    static const int32_t data[] = {1, 2, 3, 9, 9, 9, 4, 6, 5};
    struct job *job = job_new(GPURUN_INT32, 3, 3, 2);

    job->ctx.threads = _i;
    job_setup(job, data);
    EXPECT(job, 2, 1);
    ck_assert_int_eq(job_indices(job)[2], 0);
    ck_assert_int_eq(job_indices(job)[3], 1);
    ck_assert_int_eq(job_indices(job)[4], 1);
    ck_assert_int_eq(job_indices(job)[5], 2);
    ck_assert_int_eq(job->state.values->rank, 2);
    job_free(job);
}
END_TEST

START_TEST(ragged_rows_are_left_flat)
{
    static const int32_t data[] = {1, 2, 3, 9, 9, 9, 4, 6, 4};
    static const int64_t indices[] = {2, 1, 0, 0, 1, 0};
    static const int32_t values[] = {3, 2, 1, 9, 6, 4};
    struct job *job = job_new(GPURUN_INT32, 3, 3, 3);

    job->options.distinct = 1;
    job_setup(job, data);
    job_run(job);
    ck_assert_int_eq(job_verify(job, GPURUN_VERIFY_CERTIFY, 0), 0);
    ck_assert_int_eq(job->state.values->rank, 1);
    ck_assert_int_eq(job->state.values->dims[0], 6);
    ck_assert_mem_eq(job->state.values->host, values, sizeof(values));
    ck_assert_mem_eq(job->state.indices->host, indices, sizeof(indices));
    job_run(job);
    ck_assert_int_eq(job_verify(job, GPURUN_VERIFY_FULL, 0), 0);
    job_free(job);
}
END_TEST

START_TEST(even_rows_are_left_narrow)
{
    static const int32_t data[] = {1, 1, 3, 9, 9, 2};
    static const int64_t indices[] = {2, 0, 0, 2};
    struct job *job = job_new(GPURUN_INT32, 2, 3, 3);

    job->options.distinct = 1;
    job_setup(job, data);
    job_run(job);
    ck_assert_int_eq(job_verify(job, GPURUN_VERIFY_FULL, 0), 0);
    ck_assert_int_eq(job->state.indices->rank, 2);
    ck_assert_int_eq(job->state.indices->dims[0], 2);
    ck_assert_int_eq(job->state.indices->dims[1], 2);
    ck_assert_mem_eq(job->state.indices->host, indices, sizeof(indices));
    job_free(job);
}
END_TEST

/* --- setup ------------------------------------------------------------------------------------------ */

static void expect_refusal(struct job *job, const char *message)
{
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_INVALID);
    ck_assert_str_eq(job->message, message);
    job_free(job);
}

static struct job *file_job(int64_t rows, int64_t n, int rank, int64_t dim0, int64_t dim1)
{
    struct job *job = job_new(GPURUN_INT32, rows, n, 2);

    job->options.dtype = GPURUN_AUTO;
    job->file = (struct gpurun_shape){GPURUN_DOUBLE, rank, {dim0, dim1}};
    return job;
}

START_TEST(setup_refuses_what_cannot_be)
{
    expect_refusal(job_new(GPURUN_INT32, 1, 10, 11), "k: 11 is above n = 10");
    expect_refusal(
        job_new(GPURUN_INT32, INT64_C(1) << 40, INT64_C(1) << 40, 1),
        "n: 1099511627776 rows of 1099511627776 elements are more than 64 bits can address");
    expect_refusal(file_job(GPURUN_AUTO, 8, 1, 9, 0),
                   "n: 1 rows of 8 elements are not the 9 elements of the file");
    expect_refusal(file_job(2, GPURUN_AUTO, 1, 9, 0),
                   "rows: 2 rows of 4 elements are not the 9 elements of the file");
    expect_refusal(file_job(GPURUN_AUTO, 4, 2, 3, 5), "n: 4, but the file has 5");
    expect_refusal(file_job(2, GPURUN_AUTO, 2, 3, 5), "rows: 2, but the file has 3");
    expect_refusal(file_job(GPURUN_AUTO, GPURUN_AUTO, 3, 3, 5),
                   "input: the file has 3 dimensions; topk takes n, or rows x n");
}
END_TEST

START_TEST(setup_takes_its_shape_from_the_file)
{
    struct job *job = file_job(GPURUN_AUTO, GPURUN_AUTO, 2, 3, 5);

    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    ck_assert_int_eq(job->options.rows, 3);
    ck_assert_int_eq(job->options.n, 5);
    ck_assert_int_eq(job->options.dtype, GPURUN_DOUBLE);
    ck_assert_int_eq(job->state.indices->dims[0], 3);
    ck_assert_int_eq(job->state.indices->dims[1], 2);
    ck_assert(job->ctx.work.bytes_read >= 120 && job->ctx.work.bytes_read <= 120);
    ck_assert(job->ctx.work.bytes_written >= 96 && job->ctx.work.bytes_written <= 96);
    job_free(job);

    job = file_job(3, GPURUN_AUTO, 1, 12, 0);
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    ck_assert_int_eq(job->options.n, 4);
    job_free(job);

    job = job_new(GPURUN_INT32, GPURUN_AUTO, GPURUN_AUTO, 2);
    job->options.dtype = GPURUN_AUTO;
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    ck_assert_int_eq(job->options.n, 1000000);
    ck_assert_int_eq(job->options.rows, 1);
    ck_assert_int_eq(job->options.dtype, GPURUN_INT32);
    ck_assert_int_eq(job->state.values->rank, 1);
    job_free(job);
}
END_TEST

/* --- verify refuses ----------------------------------------------------------------------------------- */

/* k = 4 of this: places 0..3 are elements 2, 5, 0, 3 (of value 8, 8, 5, 5); element 6 ties too. */
static const int32_t tied[] = {5, 1, 8, 5, 2, 8, 5, 0};
/* Distinct: 2, 0, 4, 1 (of value 8, 5, 2, 1). */

static void swap_places(struct job *job, int a, int b)
{
    int64_t *i = job->state.indices->host;
    int32_t *v = job->state.values->host;
    const int64_t index = i[a];
    const int32_t value = v[a];

    i[a] = i[b];
    v[a] = v[b];
    i[b] = index;
    v[b] = value;
}

static void put(struct job *job, int place, int64_t index)
{
    ((int64_t *)job->state.indices->host)[place] = index;
    ((int32_t *)job->state.values->host)[place] = tied[index];
}

static void set_count(struct job *job, int64_t count)
{
    *(int64_t *)job->state.count->host = count;
}

static void wrong_index(struct job *job)
{
    ((int64_t *)job->state.indices->host)[1] = 4;
}
static void wild_index(struct job *job)
{
    ((int64_t *)job->state.indices->host)[3] = INT64_MAX;
}
static void negative_index(struct job *job)
{
    ((int64_t *)job->state.indices->host)[0] = -1;
}
static void index_n(struct job *job)
{
    ((int64_t *)job->state.indices->host)[0] = 8;
}
static void flipped_bit(struct job *job)
{
    ((int32_t *)job->state.values->host)[3] ^= 1;
}
static void swapped_order(struct job *job)
{
    swap_places(job, 1, 2);
}
static void swapped_tie(struct job *job)
{
    swap_places(job, 0, 1);
}
static void repeated_index(struct job *job)
{
    put(job, 3, 0);
}
static void repeated_first(struct job *job)
{
    put(job, 1, 2);
}
static void higher_index_on_tie(struct job *job)
{
    put(job, 3, 6);
}
static void missing_larger(struct job *job)
{
    put(job, 1, 0);
    put(job, 2, 3);
    put(job, 3, 6);
}
static void worse_last(struct job *job)
{
    put(job, 3, 4);
}
static void count_short(struct job *job)
{
    set_count(job, 3);
}
static void count_long(struct job *job)
{
    set_count(job, 5);
}
static void count_negative(struct job *job)
{
    set_count(job, -1);
}
static void count_wild(struct job *job)
{
    set_count(job, INT64_MAX);
}
static void untouched(struct job *job)
{
    job_poison(job);
}
static void all_zero(struct job *job)
{
    memset(job->state.indices->host, 0, 32);
    memset(job->state.values->host, 0, 16);
}

static void distinct_higher_index(struct job *job)
{
    put(job, 1, 3);
}
static void distinct_repeat(struct job *job)
{
    put(job, 1, 5);
}
static void distinct_missing(struct job *job)
{
    put(job, 2, 1);
    put(job, 3, 7);
}
static void distinct_one_missing(struct job *job)
{
    put(job, 3, 7);
}

struct corruption {
    const char *name;
    void (*apply)(struct job *job);
    bool plain, distinct;
    unsigned harmless; /* what a peer may do, of GPURUN_UNSORTED and GPURUN_TIES_ANY */
};

static const struct corruption corruptions[] = {
    {"wrong index", wrong_index, true, true, 0},
    {"wild index", wild_index, true, true, 0},
    {"negative index", negative_index, true, true, 0},
    {"index n", index_n, true, true, 0},
    {"flipped bit", flipped_bit, true, true, 0},
    {"swapped order", swapped_order, true, true, GPURUN_UNSORTED},
    {"swapped tie", swapped_tie, true, false, GPURUN_UNSORTED | GPURUN_TIES_ANY},
    {"repeated index", repeated_index, true, true, 0},
    {"repeated first", repeated_first, true, true, 0},
    {"higher index on tie", higher_index_on_tie, true, false, GPURUN_TIES_ANY},
    {"missing larger", missing_larger, true, false, 0},
    {"worse last", worse_last, true, false, 0},
    {"count short", count_short, true, true, 0},
    {"count long", count_long, true, true, 0},
    {"count negative", count_negative, true, true, 0},
    {"count wild", count_wild, true, true, 0},
    {"untouched", untouched, true, true, 0},
    {"all zero", all_zero, true, true, 0},
    {"distinct, higher index", distinct_higher_index, false, true, GPURUN_TIES_ANY},
    {"distinct, repeat", distinct_repeat, false, true, 0},
    {"distinct, missing", distinct_missing, false, true, 0},
    {"distinct, one missing", distinct_one_missing, false, true, 0},
};

static void corrupt(const struct corruption *c, bool distinct, enum gpurun_verify mode)
{
    static const unsigned promises[] = {0, GPURUN_UNSORTED, GPURUN_TIES_ANY,
                                        GPURUN_UNSORTED | GPURUN_TIES_ANY};
    struct job *job = int32_job(tied, 8, 4, false, distinct);

    for (size_t i = 0; i < GPURUN_COUNT(promises); i++) {
        const bool harmless = (c->harmless & promises[i]) != 0;

        job_run(job);
        ck_assert_msg(job_verify(job, mode, promises[i]) == 0, "%s: %s", c->name, job->message);
        job_run(job);
        c->apply(job);
        ck_assert_msg((job_verify(job, mode, promises[i]) == 0) == harmless,
                      "%s, distinct %d, mode %d, relaxed %u: %s", c->name, distinct, (int)mode,
                      promises[i], job->message);
    }
    job_free(job);
}

START_TEST(verify_refuses_each_corruption)
{
    const struct corruption *c = &corruptions[_i];

    for (int distinct = 0; distinct < 2; distinct++) {
        if (!(distinct ? c->distinct : c->plain))
            continue;
        corrupt(c, distinct, GPURUN_VERIFY_FULL);
        corrupt(c, distinct, GPURUN_VERIFY_CERTIFY);
    }
}
END_TEST

START_TEST(verify_wants_every_value_when_there_are_fewer_than_k)
{
    struct job *job = int32_job(tied, 8, 8, false, true);

    for (enum gpurun_verify mode = GPURUN_VERIFY_FULL; mode <= GPURUN_VERIFY_CERTIFY; mode++) {
        job_run(job);
        ck_assert_int_eq(*(int64_t *)job->state.count->host, 5);
        ck_assert_int_eq(job_verify(job, mode, 0), 0);
        job_run(job);
        set_count(job, 4);
        ck_assert_int_gt(job_verify(job, mode, 0), 0);
        job_run(job);
        set_count(job, 0);
        ck_assert_int_gt(job_verify(job, mode, 0), 0);
    }
    job_free(job);
}
END_TEST

START_TEST(verify_by_bits_puts_nan_where_its_sign_does)
{
    /* By bits: 1 and 7 are positive NaNs, 1 the larger; 4 is a negative one, below -infinity. */
    static const int64_t by_bits[] = {1, 7, 3, 0, 2, 5, 8, 6, 4};
    struct job *job = real_job(_i, 9, false, false);
    const size_t size = job->state.elem_bytes;

    for (enum gpurun_verify mode = GPURUN_VERIFY_FULL; mode <= GPURUN_VERIFY_CERTIFY; mode++) {
        job_run(job);
        for (int i = 0; i < 9; i++) {
            job_indices(job)[i] = by_bits[i];
            memcpy((char *)job->state.values->host + (size_t)i * size,
                   (char *)job->state.in->host + (size_t)by_bits[i] * size, size);
        }
        ck_assert_int_eq(job_verify(job, mode, GPURUN_FLOAT_BY_BITS), 0);
        ck_assert_int_gt(job_verify(job, mode, 0), 0);
        job_run(job);
        ck_assert_int_gt(job_verify(job, mode, GPURUN_FLOAT_BY_BITS), 0);
        ck_assert_int_eq(job_verify(job, mode, GPURUN_FLOAT_BY_BITS | GPURUN_UNSORTED), 0);
    }
    job_free(job);
}
END_TEST

START_TEST(sorted_no_accepts_any_order)
{
    struct job *job = job_new(GPURUN_INT32, 1, 8, 4);

    job->options.sorted = 0;
    job_setup(job, tied);
    for (enum gpurun_verify mode = GPURUN_VERIFY_FULL; mode <= GPURUN_VERIFY_CERTIFY; mode++) {
        job_run(job);
        swap_places(job, 0, 3);
        ck_assert_int_eq(job_verify(job, mode, 0), 0);
        job_run(job);
        put(job, 3, 6);
        ck_assert_int_gt(job_verify(job, mode, 0), 0);
    }
    job_free(job);
}
END_TEST

START_TEST(auto_is_full_while_that_is_cheap)
{
    struct gpurun_proof proof = {.mode = GPURUN_VERIFY_AUTO};
    struct job *job = int32_job(tied, 8, 4, false, false);

    job_run(job);
    ck_assert_int_eq(gpurun_plugin.verify(&job->ctx, &proof), GPURUN_OK);
    ck_assert_int_eq(proof.mode, GPURUN_VERIFY_FULL);
    ck_assert_int_eq(proof.checked, 4);
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

/* Few values, all bits, rising or falling; floats among them NaNs and both zeros. */
static void fill(enum gpurun_dtype dtype, void *data, int64_t elems, uint64_t *seed)
{
    const int kind = (int)(draw(seed) % 5), values = 1 + (int)(draw(seed) % 9);

    for (int64_t i = 0; i < elems; i++) {
        const uint64_t random = draw(seed);
        int64_t x = kind == 0   ? (int64_t)random
                    : kind == 1 ? i
                    : kind == 2 ? -i
                                : (int64_t)(random % (uint64_t)values) - values / 2;

        if (kind == 4 && random >> 60 == 0)
            x = random & 4096 ? INT64_MAX : INT64_MIN;
        if (dtype == GPURUN_FLOAT && kind > 0)
            ((float *)data)[i] =
                x == 1 && random >> 63 ? NAN : (float)x * (random >> 62 & 1 ? 1.0f : -1.0f);
        else if (dtype == GPURUN_DOUBLE && kind > 0)
            ((double *)data)[i] =
                x == 1 && random >> 63 ? NAN : (double)x * (random >> 62 & 1 ? 1.0 : -1.0);
        else if (gpurun_dtype_bytes(dtype) == 4)
            ((int32_t *)data)[i] = (int32_t)(x ^ (x >> 32));
        else
            ((int64_t *)data)[i] = x;
    }
}

static void compare_once(uint64_t *seed, int64_t n_max)
{
    const enum gpurun_dtype dtype = (enum gpurun_dtype)(GPURUN_INT32 + draw(seed) % 6);
    const int64_t rows = 1 + (int64_t)(draw(seed) % 4), n = (int64_t)(draw(seed) % (uint64_t)n_max);
    const int64_t k = (int64_t)(draw(seed) % (uint64_t)(n < 100 || draw(seed) % 2 ? n + 1 : 70));
    void *data = malloc((size_t)(rows * n) * 8 + 1);
    struct job *job = job_new(dtype, rows, n, k);

    job->options.order = (int64_t)(draw(seed) % 2);
    job->options.distinct = (int64_t)(draw(seed) % 2);
    job->ctx.threads = 1 + (int)(draw(seed) % 4);
    fill(dtype, data, rows * n, seed);
    job_setup(job, data);
    for (enum gpurun_verify mode = GPURUN_VERIFY_FULL; mode <= GPURUN_VERIFY_CERTIFY; mode++) {
        job_run(job);
        ck_assert_msg(job_verify(job, mode, 0) == 0,
                      "%s rows %d n %d k %d order %d distinct %d threads %d mode %d: %s",
                      gpurun_dtype_name(dtype), (int)rows, (int)n, (int)k, (int)job->options.order,
                      (int)job->options.distinct, job->ctx.threads, (int)mode, job->message);
    }
    job_free(job);
    free(data);
}

START_TEST(run_cpu_is_right_on_small_arrays)
{
    uint64_t seed = (uint64_t)_i << 32;

    for (int i = 0; i < 300; i++)
        compare_once(&seed, 60);
}
END_TEST

START_TEST(run_cpu_is_right_on_arrays_of_many_blocks)
{
    uint64_t seed = (uint64_t)_i << 40;

    for (int i = 0; i < 12; i++)
        compare_once(&seed, 70000);
}
END_TEST

/* --- where the variant band takes its sample ---------------------------------------------------------- */

START_TEST(the_sample_takes_one_element_of_each_part)
{
    static const uint32_t sizes[][2] = {{7, 7}, {1000, 999}, {1000003, 135168}, {4294901760, 512}};
    const uint32_t n = sizes[_i][0], samples = sizes[_i][1];
    const struct band_plan plan = {
        .n = n, .samples = samples, .stride = ((uint64_t)n << 32) / samples};
    uint64_t moved = 0;

    for (uint32_t i = 0; i < samples; i++) {
        const uint64_t at = band_sample_at(&plan, i), part = (uint64_t)i * n / samples;

        ck_assert_uint_lt(at, n);
        ck_assert_uint_ge(at + 1, part); /* the stride is rounded down */
        ck_assert_uint_lt(at * samples, ((uint64_t)i + 1) * n);
        moved += at - (at < part ? at : part);
    }
    if (n >= 4 * samples) /* on the average the middle of a part */
        ck_assert_uint_gt(moved * 3, n);
}
END_TEST

static Suite *topk_suite(void)
{
    Suite *suite = suite_create("topk");
    TCase *run = tcase_create("run_cpu"), *setup = tcase_create("setup");
    TCase *verify = tcase_create("verify"), *both = tcase_create("run_cpu against verify");

    tcase_add_test(run, picks_the_largest_with_ties_at_the_lowest_index);
    tcase_add_test(run, picks_the_smallest_with_ties_at_the_lowest_index);
    tcase_add_test(run, distinct_keeps_each_value_once);
    tcase_add_test(run, distinct_returns_fewer_than_k);
    tcase_add_test(run, extremes_are_values_like_any_other);
    tcase_add_test(run, all_equal);
    tcase_add_test(run, ascending_and_descending);
    tcase_add_test(run, nothing_is_an_answer_too);
    tcase_add_test(run, unsigned_numbers_have_no_sign);
    tcase_add_test(run, long_numbers_are_compared_whole);
    tcase_add_loop_test(run, nan_is_the_largest_and_zeros_are_equal, 0, 2);
    tcase_add_loop_test(run, distinct_knows_one_nan_and_one_zero, 0, 2);
    tcase_add_test(run, value_bits_are_kept);
    tcase_add_loop_test(run, each_row_has_its_own_answer, 1, 5);
    tcase_add_test(run, ragged_rows_are_left_flat);
    tcase_add_test(run, even_rows_are_left_narrow);
    suite_add_tcase(suite, run);

    tcase_add_test(setup, setup_refuses_what_cannot_be);
    tcase_add_test(setup, setup_takes_its_shape_from_the_file);
    suite_add_tcase(suite, setup);

    tcase_add_loop_test(verify, verify_refuses_each_corruption, 0, (int)GPURUN_COUNT(corruptions));
    tcase_add_test(verify, verify_wants_every_value_when_there_are_fewer_than_k);
    tcase_add_loop_test(verify, verify_by_bits_puts_nan_where_its_sign_does, 0, 2);
    tcase_add_test(verify, sorted_no_accepts_any_order);
    tcase_add_test(verify, auto_is_full_while_that_is_cheap);
    suite_add_tcase(suite, verify);

    tcase_set_timeout(both, 60);
    tcase_add_loop_test(both, the_sample_takes_one_element_of_each_part, 0, 4);
    tcase_add_loop_test(both, run_cpu_is_right_on_small_arrays, 0, 4);
    tcase_add_loop_test(both, run_cpu_is_right_on_arrays_of_many_blocks, 0, 4);
    suite_add_tcase(suite, both);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(topk_suite());
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
