/*
 * bandwidth on the CPU: setup, run_cpu and verify, against answers worked out by hand. The core is a small fake
 * whose tensors are allocated to the byte, so that a sanitizer sees any step outside them.
 */
#include "bandwidth.h"
#include "bandwidth_piece.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- a fake core ------------------------------------------------------------------------------------ */

enum { TENSORS = 3, POISON = 0xa5 };

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    struct bandwidth_options options;
    struct bandwidth_state state;
    struct gpurun_tensor tensors[TENSORS];
    int tensor_count, tensors_given;
    struct gpurun_shape files[2]; /* of in and addend */
    char message[512];            /* of the last failure or wrong element */
};

#include "plugin_tensors.h"

static struct gpurun_tensor *fake_tensor(struct gpurun_ctx *ctx, const char *name,
                                         enum gpurun_role role, enum gpurun_dtype dtype, int rank,
                                         const int64_t *dims)
{
    const struct job *job = (struct job *)ctx;

    if (job->tensor_count >= job->tensors_given)
        return NULL;
    return fake_allocate(ctx, name, role, dtype, rank, dims);
}

static enum gpurun_status fake_input_shape(struct gpurun_ctx *ctx, const char *name,
                                           struct gpurun_shape *shape)
{
    const struct job *job = (struct job *)ctx;
    const struct gpurun_shape *file = &job->files[strcmp(name, "addend") == 0];

    if (file->rank > 0)
        *shape = *file;
    return GPURUN_OK;
}

static const struct gpurun_core fake_core = FAKE_CORE(fake_tensor, fake_input_shape);

static struct job *job_new(enum bandwidth_kind kind, int64_t dtype, int64_t n)
{
    struct job *job = calloc(1, sizeof(*job));

    job->ctx.core = &fake_core;
    job->ctx.options = &job->options;
    job->ctx.state = &job->state;
    job->ctx.threads = 2;
    job->tensors_given = TENSORS;
    job->options = (struct bandwidth_options){
        .n = n, .kind = kind, .dtype = dtype, .value = 3, .passes = 1, .block = 512};
    return job;
}

static void job_free(struct job *job)
{
    gpurun_plugin.teardown(&job->ctx);
    for (int i = 0; i < job->tensor_count; i++)
        free(job->tensors[i].host);
    free(job);
}

static struct gpurun_tensor *job_answer(struct job *job)
{
    return &job->tensors[job->tensor_count - 1];
}

/* Sets the job up, with `in` and `addend` where it has them. */
static void job_setup(struct job *job, const void *in, const void *addend)
{
    const void *const data[] = {in, addend};

    ck_assert_msg(gpurun_plugin.setup(&job->ctx) == GPURUN_OK, "%s", job->message);
    for (int i = 0; i < job->tensor_count - 1; i++)
        memcpy(job->tensors[i].host, data[i], job->tensors[i].bytes);
    memset(job_answer(job)->host, POISON, job_answer(job)->bytes);
}

static int64_t job_verify(struct job *job)
{
    struct gpurun_proof proof = {.mode = GPURUN_VERIFY_CERTIFY};

    job->message[0] = '\0';
    ck_assert_int_eq(gpurun_plugin.verify(&job->ctx, &proof), GPURUN_OK);
    ck_assert_int_eq(proof.mode, GPURUN_VERIFY_FULL);
    ck_assert_int_eq(proof.checked, job->options.n);
    ck_assert_ptr_nonnull(proof.detects);
    return proof.wrong;
}

/* Runs the job and compares bytes; frees it. */
static void job_expect(struct job *job, const void *in, const void *addend, const void *answer)
{
    job_setup(job, in, addend);
    ck_assert_int_eq(gpurun_plugin.run_cpu(&job->ctx), GPURUN_OK);
    ck_assert_mem_eq(job_answer(job)->host, answer, job_answer(job)->bytes);
    ck_assert_msg(job_verify(job) == 0, "verify: %s", job->message);
    job_free(job);
}

static void job_refuse(struct job *job, const char *words)
{
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_INVALID);
    ck_assert_ptr_nonnull(strstr(job->message, words));
    job_free(job);
}

/* --- answers ---------------------------------------------------------------------------------------- */

static const uint32_t whole[] = {0, 1, 7, 0x80000001, 0xffffffff};
static const uint32_t more[] = {5, 0xffffffff, 2, 1, 4};

START_TEST(test_whole_numbers)
{
    const uint64_t sum[] = {0x180000008};
    const uint32_t value[] = {3, 3, 3, 3, 3}, scaled[] = {0, 3, 21, 0x80000003, 0xfffffffd};
    const uint32_t triad[] = {5, 2, 23, 0x80000004, 1};

    job_expect(job_new(BANDWIDTH_READ, GPURUN_UINT32, 5), whole, NULL, sum);
    job_expect(job_new(BANDWIDTH_WRITE, GPURUN_UINT32, 5), NULL, NULL, value);
    job_expect(job_new(BANDWIDTH_COPY, GPURUN_UINT32, 5), whole, NULL, whole);
    job_expect(job_new(BANDWIDTH_SCALE, GPURUN_UINT32, 5), whole, NULL, scaled);
    job_expect(job_new(BANDWIDTH_TRIAD, GPURUN_UINT32, 5), whole, more, triad);
}
END_TEST

/* 3 * 16777215 = 50331645 is no float and becomes 50331644; a fused triad would keep the 1. */
START_TEST(test_reals)
{
    const float in[] = {1.5f, -0.0f, 16777215.0f, 0x1p126f, INFINITY, 0x1p-149f};
    const float addend[] = {0.25f, 0.0f, -50331644.0f, -0x1p126f, 1.0f, 0.0f};
    const float value[] = {3, 3, 3, 3, 3, 3};
    const float scaled[] = {4.5f, -0.0f, 50331644.0f, 0x1.8p127f, INFINITY, 3 * 0x1p-149f};
    const float triad[] = {4.75f, 0.0f, 0.0f, 0x1p127f, INFINITY, 3 * 0x1p-149f};
    const uint64_t sum[] = {UINT64_C(0x3fc00000) + 0x80000000 + 0x4b7fffff + 0x7e800000 +
                            0x7f800000 + 1};

    job_expect(job_new(BANDWIDTH_READ, GPURUN_FLOAT, 6), in, NULL, sum);
    job_expect(job_new(BANDWIDTH_WRITE, GPURUN_FLOAT, 6), NULL, NULL, value);
    job_expect(job_new(BANDWIDTH_COPY, GPURUN_FLOAT, 6), in, NULL, in);
    job_expect(job_new(BANDWIDTH_SCALE, GPURUN_FLOAT, 6), in, NULL, scaled);
    job_expect(job_new(BANDWIDTH_TRIAD, GPURUN_FLOAT, 6), in, addend, triad);
}
END_TEST

/* 40000 elements i: pieces of 16384, 16384 and 7232. The sum from a to b - 1 is (b - a) (a + b - 1) / 2. */
START_TEST(test_sums_of_pieces)
{
    const uint64_t sums[] = {UINT64_C(16384) * 16383 / 2, UINT64_C(16384) * (16384 + 32767) / 2,
                             UINT64_C(7232) * (32768 + 39999) / 2};
    uint32_t *in = malloc(40000 * sizeof(*in));

    for (uint32_t i = 0; i < 40000; i++)
        in[i] = i;
    job_expect(job_new(BANDWIDTH_READ, GPURUN_UINT32, 40000), in, NULL, sums);
    free(in);
}
END_TEST

/* Large arrays go past the caches; every start of a line, and a tail. */
START_TEST(test_large_copies)
{
    const int64_t n = (1 << 20) + 77;
    uint32_t *in = malloc((size_t)n * sizeof(*in)), *triad = malloc((size_t)n * sizeof(*triad));
    struct job *job;

    for (int64_t i = 0; i < n; i++) {
        in[i] = (uint32_t)i * 2654435761u;
        triad[i] = in[i] * 4;
    }
    job_expect(job_new(BANDWIDTH_COPY, GPURUN_UINT32, n), in, NULL, in);
    job = job_new(BANDWIDTH_TRIAD, GPURUN_UINT32, n);
    job->options.passes = 3;
    job_expect(job, in, in, triad);
    free(triad);
    free(in);
}
END_TEST

START_TEST(test_nothing)
{
    for (int kind = BANDWIDTH_READ; kind <= BANDWIDTH_TRIAD; kind++)
        job_expect(job_new((enum bandwidth_kind)kind, GPURUN_FLOAT, 0), "", "", "");
}
END_TEST

/* --- proof ------------------------------------------------------------------------------------------ */

START_TEST(test_wrong_answers)
{
    for (int kind = BANDWIDTH_READ; kind <= BANDWIDTH_TRIAD; kind++) {
        struct job *job = job_new((enum bandwidth_kind)kind, GPURUN_UINT32, 5);

        job_setup(job, whole, more);
        ck_assert_int_eq(job_verify(job), kind == BANDWIDTH_READ ? 1 : 5);
        gpurun_plugin.run_cpu(&job->ctx);
        ck_assert_int_eq(job_verify(job), 0);
        *(unsigned char *)job_answer(job)->host ^= 1;
        ck_assert_int_eq(job_verify(job), 1);
        ck_assert_ptr_nonnull(strstr(job->message, kind == BANDWIDTH_READ ? "sums[0]" : "out[0]"));
        job_free(job);
    }
}
END_TEST

/* Beyond ten, wrong elements are counted without a text of their own. */
START_TEST(test_many_wrong_answers)
{
    struct job *job = job_new(BANDWIDTH_WRITE, GPURUN_FLOAT, 20001);

    job_setup(job, NULL, NULL);
    ck_assert_int_eq(job_verify(job), 20001);
    ck_assert_str_eq(job->message, "out[9] is -2.87351825e-16 (a5a5a5a5), not 3 (40400000)");
    job_free(job);
}
END_TEST

/* Any NaN will do where one was computed, none other where it was moved. */
START_TEST(test_nans)
{
    static const struct {
        enum bandwidth_kind kind;
        int wrong;
    } tries[] = {{BANDWIDTH_COPY, 1}, {BANDWIDTH_SCALE, 0}, {BANDWIDTH_TRIAD, 0}};
    const uint32_t nan_bits = 0x7fc00001, other = 0xffc00123, infinite = 0x7f800000;

    for (int i = 0; i < 3; i++) {
        struct job *job = job_new(tries[i].kind, GPURUN_FLOAT, 1);

        job_setup(job, &nan_bits, &nan_bits);
        memcpy(job_answer(job)->host, &other, sizeof(other));
        ck_assert_int_eq(job_verify(job), tries[i].wrong);
        memcpy(job_answer(job)->host, &infinite, sizeof(infinite));
        ck_assert_int_eq(job_verify(job), 1);
        job_free(job);
    }
}
END_TEST

/* --- setup ------------------------------------------------------------------------------------------ */

/* Bytes that are read and written by a pass over 20001 elements, two pieces. */
START_TEST(test_work)
{
    static const double bytes[][2] = {
        {80004, 16}, {0, 80004}, {80004, 80004}, {80004, 80004}, {160008, 80004}};

    for (int kind = BANDWIDTH_READ; kind <= BANDWIDTH_TRIAD; kind++) {
        struct job *job = job_new((enum bandwidth_kind)kind, GPURUN_AUTO, 20001);

        job->options.passes = 7;
        ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
        ck_assert(fabs(job->ctx.work.bytes_read - 7 * bytes[kind][0]) <= 0);
        ck_assert(fabs(job->ctx.work.bytes_written - 7 * bytes[kind][1]) <= 0);
        ck_assert(fabs(job->ctx.work.elements - 7 * 20001) <= 0);
        ck_assert_int_eq(job->options.dtype, GPURUN_FLOAT);
        job_free(job);
    }
}
END_TEST

START_TEST(test_files)
{
    struct job *job = job_new(BANDWIDTH_TRIAD, GPURUN_AUTO, GPURUN_AUTO);

    job->files[0] = (struct gpurun_shape){.dtype = GPURUN_UINT32, .rank = 2, .dims = {3, 4}};
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    ck_assert_int_eq(job->options.n, 12);
    ck_assert_int_eq(job->options.dtype, GPURUN_UINT32);
    ck_assert_int_eq(job->tensors[1].dtype, GPURUN_UINT32);
    job_free(job);

    job = job_new(BANDWIDTH_TRIAD, GPURUN_AUTO, GPURUN_AUTO);
    job->files[0] = (struct gpurun_shape){.dtype = GPURUN_UINT32, .rank = 1, .dims = {12}};
    job->files[1] = (struct gpurun_shape){.dtype = GPURUN_UINT32, .rank = 1, .dims = {13}};
    job_refuse(job, "n: 12, but the file of addend has 13");

    job = job_new(BANDWIDTH_COPY, GPURUN_AUTO, GPURUN_AUTO);
    job->files[0] = (struct gpurun_shape){.dtype = GPURUN_DOUBLE, .rank = 1, .dims = {12}};
    job_refuse(job, "dtype: the file of in is double; bandwidth takes uint32 and float");
}
END_TEST

START_TEST(test_refused)
{
    static const double no_words[] = {-1, 0.5, 4294967296.0, NAN, INFINITY};
    struct job *job;

    for (size_t i = 0; i < sizeof(no_words) / sizeof(no_words[0]); i++) {
        job = job_new(BANDWIDTH_WRITE, GPURUN_UINT32, 5);
        job->options.value = no_words[i];
        job_refuse(job, "is no uint32");
    }
    job = job_new(BANDWIDTH_COPY, GPURUN_FLOAT, 5);
    job->options.block = 100;
    job_refuse(job, "block: 100 is not a multiple of 32");
    job_refuse(job_new(BANDWIDTH_COPY, GPURUN_FLOAT, INT64_C(1) << 62), "64 bits can address");
    for (int given = 0; given < TENSORS; given++) {
        job = job_new(BANDWIDTH_TRIAD, GPURUN_FLOAT, 5);
        job->tensors_given = given;
        ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_INVALID);
        job_free(job);
    }
}
END_TEST

/* --- pieces ----------------------------------------------------------------------------------------- */

/* Singles and packs cover a piece once, and packs begin at places of packs. */
static void check_piece(int64_t n, int64_t number, int width, int past)
{
    const struct bandwidth_piece p = bandwidth_piece_at(n, number, width, past);
    const int singles = bandwidth_singles(p, width);
    static unsigned char seen[BANDWIDTH_PIECE];
    int wrong = 0;

    memset(seen, 0, sizeof(seen));
    for (int i = 0; i < p.packs * width; i++)
        seen[p.head + i]++;
    for (int i = 0; i < singles; i++)
        seen[bandwidth_single_at(p, width, i)]++;
    for (int i = 0; i < p.length; i++)
        wrong += seen[i] != 1;
    ck_assert_int_eq(wrong, 0);
    ck_assert(p.packs == 0 || (past + p.begin + p.head) % width == 0);
    ck_assert(past == BANDWIDTH_APART ? p.packs == 0 : singles < 2 * width);
}

START_TEST(test_pieces)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 16381, 16383, 16384, 16385, 16387, 40001};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int64_t number = 0; number * BANDWIDTH_PIECE < sizes[i]; number++) {
            for (int past = BANDWIDTH_APART; past < 4; past++)
                check_piece(sizes[i], number, 4, past);
            check_piece(sizes[i], number, 1, 0);
        }
}
END_TEST

/* By hand: 16387 elements, the first 1 behind a place of 4. */
START_TEST(test_pieces_by_hand)
{
    const struct bandwidth_piece first = bandwidth_piece_at(16387, 0, 4, 1);
    const struct bandwidth_piece last = bandwidth_piece_at(16387, 1, 4, 1);

    ck_assert_int_eq(first.length, 16384);
    ck_assert_int_eq(first.head, 3);
    ck_assert_int_eq(first.packs, 4095);
    ck_assert_int_eq(bandwidth_single_at(first, 4, 3), 16383);
    ck_assert_int_eq(last.begin, 16384);
    ck_assert_int_eq(last.length, 3);
    ck_assert_int_eq(last.head, 3);
    ck_assert_int_eq(last.packs, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bandwidth");
    TCase *answers = tcase_create("answers"), *proof = tcase_create("proof");
    TCase *setup = tcase_create("setup"), *pieces = tcase_create("pieces");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(answers, test_whole_numbers);
    tcase_add_test(answers, test_reals);
    tcase_add_test(answers, test_sums_of_pieces);
    tcase_add_test(answers, test_large_copies);
    tcase_add_test(answers, test_nothing);
    tcase_add_test(proof, test_wrong_answers);
    tcase_add_test(proof, test_many_wrong_answers);
    tcase_add_test(proof, test_nans);
    tcase_add_test(setup, test_work);
    tcase_add_test(setup, test_files);
    tcase_add_test(setup, test_refused);
    tcase_add_test(pieces, test_pieces);
    tcase_add_test(pieces, test_pieces_by_hand);
    for (int i = 0; i < 4; i++) {
        TCase *const all[] = {answers, proof, setup, pieces};

        tcase_set_timeout(all[i], 60); /* on a busy machine */
        suite_add_tcase(suite, all[i]);
    }
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
