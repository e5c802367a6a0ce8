/*
 * topk's variant "maxima" on a real device, on data made from its own constants: sizes about each edge, and
 * best elements that stand where a level does not expect them. Every answer is held against the plain
 * reference.
 */
#include "topk.h"
#include "topk_maxima.h"
#include "topk_maxima_distinct.h"
#include <math.h>
#include <stdlib.h>

#ifdef GPURUN_WITH_CUDA
enum { TENSORS = 4, OFFSET_MAX = 3, LONG_N = 5000000, MANY_TILES = 257 };

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    struct topk_options options;
    struct topk_state state;
    struct gpurun_tensor tensors[TENSORS];
    void *memory[TENSORS];
    int tensor_count, offset; /* elements that the input begins behind an aligned place */
    char message[512];
};

#include "plugin_managed.h"

static const struct gpurun_variant *maxima(void)
{
    for (uint32_t i = 0; i < gpurun_plugin.variant_count; i++)
        if (strcmp(gpurun_plugin.variants[i].name, "maxima") == 0)
            return &gpurun_plugin.variants[i];
    return NULL;
}

static struct job *job_new(enum gpurun_dtype dtype, int64_t rows, int64_t n, int64_t k, int offset)
{
    struct job *job = calloc(1, sizeof(*job));

    job->options = (struct topk_options){
        .n = n, .rows = rows, .k = k, .dtype = dtype, .sorted = 1, .block = 256, .grid = 32};
    job->offset = offset;
    managed_setup(job);
    return job;
}

/* Runs it twice with the same state, as a job does, and proves both answers: against the plain reference, but a long
 * row by what an answer must be, which takes no sort. Frees the job. */
static void job_prove(struct job *job)
{
    const struct gpurun_variant *v = maxima();
    const size_t scratch_bytes = v->scratch_bytes(&job->ctx),
                 state_bytes = v->state_bytes(&job->ctx);

    ck_assert_msg(v->supported(&job->ctx) == GPURUN_OK, "%s", job->message);
    REQUIRE(cudaMalloc(&job->ctx.scratch, scratch_bytes));
    REQUIRE(cudaMalloc(&job->ctx.variant_state, state_bytes + 1));
    REQUIRE(cudaMemset(job->ctx.variant_state, 0, state_bytes));
    for (int run = 0; run < 2; run++) {
        struct gpurun_proof proof = {.mode = job->options.n > LONG_N ? GPURUN_VERIFY_CERTIFY
                                                                     : GPURUN_VERIFY_FULL};

        REQUIRE(cudaMemset(job->ctx.scratch, GPURUN_POISON, scratch_bytes));
        managed_poison(job);
        ck_assert_msg(gpurun_plugin.run_gpu(&job->ctx, v) == GPURUN_OK, "%s", job->message);
        REQUIRE(cudaDeviceSynchronize());
        ck_assert_int_eq(gpurun_plugin.verify(&job->ctx, &proof), GPURUN_OK);
        ck_assert_msg(proof.wrong == 0, "n %ld k %ld offset %d, run %d: %s", (long)job->options.n,
                      (long)job->options.k, job->offset, run, job->message);
    }
    managed_free(job);
}

/* --- data --- */

enum { /* elements of 4 bytes */
       GROUP = MAXIMA_GROUP_BYTES / 4,
       TILE = MAXIMA_GROUPS * GROUP,
       SHORT_GROUP = GROUP * MAXIMA_SHORT_LOADS / MAXIMA_LOADS,
       SHORT_TILE = MAXIMA_GROUPS * SHORT_GROUP,
};

static int32_t noise(int64_t i)
{
    return (int32_t)((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static int32_t rising(int64_t i)
{
    return (int32_t)i;
}

static int32_t falling(int64_t i)
{
    return (int32_t)-i;
}

static int32_t lowest(int64_t i)
{
    (void)i;
    return INT32_MIN;
}

static int32_t one_of_ten(int64_t i)
{
    return noise(i) % 10;
}

/* Fewer parts than k have a large one, but many of it: the level must search. */
static int32_t large_in_few(int64_t i, int64_t piece, int64_t parts)
{
    const bool is_large = i % piece == 5 % piece && i / piece % MAXIMA_PARTS < parts;

    return is_large ? 1000 + (int32_t)(i / piece * 3 % 977) : (int32_t)(i % 3);
}

static int32_t large_in_few_tiles(int64_t i)
{
    return large_in_few(i, TILE, MAXIMA_ONE_K_MAX - 1);
}

static int32_t large_in_few_groups(int64_t i)
{
    return large_in_few(i, GROUP, MAXIMA_ONE_K_MAX / 4);
}

/* The tiles' are all the same, so a limit by tiles leaves too many groups, and by parts it finds none. */
static int32_t same_in_few_groups(int64_t i)
{
    return large_in_few(i, GROUP, MAXIMA_ONE_K_MAX / 4) >= 1000 ? 1000 : (int32_t)(i % 3);
}

static int32_t large_in_few_short_groups(int64_t i)
{
    return large_in_few(i, SHORT_GROUP, MAXIMA_ONE_K_MAX / 4);
}

static int32_t large_in_few_vectors(int64_t i)
{
    return i % (4 * MAXIMA_PARTS) < 4 ? 1000 + noise(i) % 977 : (int32_t)(i % 3);
}

/* As many large elements as are ranked and one more, in few groups. */
static int32_t more_than_is_ranked(int64_t i)
{
    return i % 7 == 0 && i / 7 <= MAXIMA_WIDE_FOUND ? 1000 + noise(i) % 977 : -(int32_t)(i % 3);
}

/* So many groups and elements, k of which are the answer, are taken for a digit less; with one more they are not. All
 * of these differ in their last digit alone. */
enum { SPARE_K = MAXIMA_ONE_K_MAX + 1, SPARED = 2 * SPARE_K + MAXIMA_WIDE_SPARE };

static int32_t large_in_so_many(int64_t i, int64_t groups)
{
    const bool is_large = i % GROUP == 3 && i / GROUP < groups;

    return is_large ? (1 << 20) + (int32_t)(i / GROUP * 5 % 1021) : noise(i) % 1000;
}

static int32_t as_many_as_spared(int64_t i)
{
    return large_in_so_many(i, SPARED);
}

static int32_t one_more_than_spared(int64_t i)
{
    return large_in_so_many(i, SPARED + 1);
}

/* The answer's last group is cut short by the row. */
static int32_t large_at_the_end(int64_t i)
{
    return i < SPARE_K * TILE ? 7 : 8;
}

static struct job *job_of(int32_t (*data)(int64_t), int64_t n, int64_t k, int offset)
{
    struct job *job = job_new(GPURUN_INT32, 1, n, k < n ? k : n, offset);
    int32_t *in = job->tensors[0].host;

    for (int64_t i = 0; i < n; i++)
        in[i] = data(i);
    return job;
}

static void prove(int32_t (*data)(int64_t), int64_t n, int64_t k, int offset)
{
    job_prove(job_of(data, n, k, offset));
}

static void prove_distinct(int32_t (*data)(int64_t), int64_t n, int64_t k, int offset)
{
    struct job *job = job_of(data, n, k, offset);

    job->options.distinct = 1;
    job_prove(job);
}

/* --- tests --- */

static const int64_t ks[] = {1, 20, MAXIMA_ONE_K_MAX, MAXIMA_ONE_K_MAX + 1, MAXIMA_K_MAX};

START_TEST(sizes_about_each_edge)
{
    static const int64_t edges[] = {
        4,
        32,
        SHORT_GROUP,
        SHORT_TILE,
        2 * SHORT_TILE,
        MAXIMA_ALL * SHORT_TILE,
        TILE,
        MAXIMA_SHORT_TILES * TILE,
        (MAXIMA_SHORT_TILES + 1) * TILE,
    };

    for (size_t e = 0; e < sizeof(edges) / sizeof(edges[0]); e++)
        for (int64_t n = edges[e] - 2; n <= edges[e] + 2; n++)
            prove(noise, n, ks[_i], (int)(n % (OFFSET_MAX + 1)));
}
END_TEST

START_TEST(many_tiles)
{
    for (int offset = 0; offset <= OFFSET_MAX; offset++) {
        prove(noise, (int64_t)MANY_TILES * TILE, ks[_i], offset);
        prove(one_of_ten, (int64_t)MANY_TILES * TILE + 3 * GROUP + 1, ks[_i], offset);
    }
}
END_TEST

/* On a device of one multiprocessor, whose block has more than its threads hold of the groups' maxima, and more groups
 * to read again than its warps hold. */
START_TEST(more_than_a_block_holds)
{
    static int32_t (*const all[])(int64_t) = {noise, falling, one_of_ten};

    for (size_t d = 0; d < sizeof(all) / sizeof(all[0]); d++) {
        struct job *job = job_of(all[d], (int64_t)MANY_TILES * TILE + 5, ks[_i], 2);

        job->ctx.device.sm_count = 1;
        job_prove(job);
    }
}
END_TEST

START_TEST(ordered_and_tied)
{
    static int32_t (*const all[])(int64_t) = {rising, falling, lowest, one_of_ten};

    for (size_t d = 0; d < sizeof(all) / sizeof(all[0]); d++) {
        prove(all[d], 3 * TILE + 7, ks[_i], 1);
        prove(all[d], (int64_t)MANY_TILES * TILE, ks[_i], 0);
    }
}
END_TEST

START_TEST(best_in_few_parts)
{
    const int64_t tiles = MAXIMA_PARTS * (MAXIMA_FOUND / (MAXIMA_ONE_K_MAX - 1) + 2);

    prove(large_in_few_tiles, tiles * TILE, ks[_i], 0);
    prove(large_in_few_groups, (int64_t)(MAXIMA_PARTS + 9) * TILE, ks[_i], 2);
    prove(same_in_few_groups, (int64_t)(MAXIMA_PARTS + 9) * TILE, ks[_i], 0);
    prove(large_in_few_short_groups, (int64_t)MAXIMA_PARTS * TILE, ks[_i], 2);
    prove(large_in_few_vectors, 5 * TILE + 11, ks[_i], 0);
    prove(large_in_few_vectors, MAXIMA_GROUPS * GROUP - 9, ks[_i], 0);
}
END_TEST

START_TEST(more_than_is_ranked_at_once)
{
    prove(more_than_is_ranked, 8 * TILE, ks[_i], 3);
    prove(rising, MAXIMA_WIDE_FOUND + 1, ks[_i], 0);
    prove(lowest, MAXIMA_WIDE_FOUND, ks[_i], 0);
}
END_TEST

START_TEST(digits_left_out)
{
    for (int offset = 0; offset <= OFFSET_MAX; offset++) {
        prove(as_many_as_spared, SPARE_K * (int64_t)TILE, SPARE_K, offset);
        prove(one_more_than_spared, SPARE_K * (int64_t)TILE, SPARE_K, offset);
        prove(large_at_the_end, SPARE_K * (int64_t)TILE + 5, SPARE_K, offset);
        prove(lowest, (MAXIMA_K_MAX - 1) * (int64_t)GROUP + 1, MAXIMA_K_MAX, offset);
    }
}
END_TEST

/* Rows of a batch, so cut where there are more of them than multiprocessors; and longer ones. */
START_TEST(rows_of_a_batch)
{
    static const int64_t edges[] = {SHORT_GROUP, SHORT_TILE, MAXIMA_BATCH_TILES * TILE};

    for (size_t e = 0; e < sizeof(edges) / sizeof(edges[0]); e++)
        for (int64_t n = edges[e] - 1; n <= edges[e] + 1; n++) {
            struct job *job = job_new(GPURUN_INT32, 3, n, ks[_i], (int)(n % (OFFSET_MAX + 1)));
            int32_t *in = job->tensors[0].host;

            for (int64_t i = 0; i < job->tensors[0].elems; i++)
                in[i] = i < n ? noise(i) : i < 2 * n ? one_of_ten(i) : rising(i);
            job->ctx.device.sm_count = 1;
            job_prove(job);
        }
}
END_TEST

/* --- distinct values --- */

static const int64_t distinct_ks[] = {1, 20, DISTINCT_K_MAX};

/* So long that the first tile's values become known while the rest is read. */
#define KNOWN_N ((int64_t)DISTINCT_TILES_MIN * TILE + 5 * GROUP + 3)

static int32_t thousand(int64_t i)
{
    return noise(i) % 1000;
}

/* Ten values at first, then each once. */
static int32_t tied_then_noise(int64_t i)
{
    return i < TILE ? noise(i) % 10 : noise(i);
}

/* The first tile has one value, which is the least; all others have ten. */
static int32_t lowest_then_ten(int64_t i)
{
    return i < TILE ? INT32_MIN : noise(i) % 10;
}

/* Whole numbers that repeat: where each is known to occur says how far one has to look. */
static int32_t many_thousand(int64_t i)
{
    return noise(i) % 6000;
}

/* Every other number never occurs. */
static int32_t even(int64_t i)
{
    return 2 * (noise(i) % 3000);
}

/* Groups of the same number, the first ones; the lowest, of key 0, occurs once, far behind tiles that are all known. */
static int32_t lowest_once(int64_t i)
{
    return i == KNOWN_N - TILE ? INT32_MIN : INT32_MIN + 1 + (int32_t)(i / GROUP % 9);
}

/* Numbers that repeat, but the largest only at the very end. */
static int32_t largest_at_last(int64_t i)
{
    return i == KNOWN_N - 1 ? 6000 : many_thousand(i);
}

/* In one tile, so many of the largest, one for each of as many threads, and then more. */
static int64_t ties;

static int32_t tied(int64_t i)
{
    return i % 63 == 5 && i / 63 < ties ? 9 : -5;
}

/* So many groups that hold something not below the limit of two values, far from each other. */
static int64_t large_groups;

static int32_t large_in_groups(int64_t i)
{
    return i % GROUP == 11 && i / GROUP < large_groups ? (i / GROUP % 2 ? 5 : 1000) : -1;
}

/* Each group has the same maximum, and few have a value between that and the others', each its own. */
static int32_t hidden_in_last_tiles(int64_t i)
{
    if (i > KNOWN_N - 9 * TILE && i % TILE == 77)
        return 500 + (int32_t)(i / TILE % 8);
    return i % GROUP == 7 ? 1000 : noise(i) % 3;
}

/* Ten values, and one that only the last tiles have. */
static int32_t late_value(int64_t i)
{
    return i == (int64_t)4 * MAXIMA_ALL * TILE ? 7 : 2 * one_of_ten(i);
}

/* The best of each tile is the same, what comes next is each block's own: all have k to hand in. */
static int32_t same_maximum_of_tiles(int64_t i)
{
    return i % TILE == 99 ? INT32_MAX : noise(i) / 2;
}

/* Keys that all factors send to one slot: multiples of what makes their common divisor 1. */
static int32_t colliding(int64_t i)
{
    const uint32_t factor = distinct_factor(0);
    uint32_t inverse = factor;

    for (int step = 0; step < 5; step++)
        inverse *= 2 - factor * inverse;
    return (int32_t)((uint32_t)noise(i) % DISTINCT_K_MAX * inverse ^ UINT32_C(0x80000000));
}

START_TEST(distinct_sizes)
{
    static const int64_t edges[] = {4, 32, GROUP, TILE, MAXIMA_ALL * TILE};

    for (size_t e = 0; e < sizeof(edges) / sizeof(edges[0]); e++)
        for (int64_t n = edges[e] - 1; n <= edges[e] + 1; n++) {
            prove_distinct(noise, n, distinct_ks[_i], (int)(n % (OFFSET_MAX + 1)));
            prove_distinct(thousand, n, distinct_ks[_i], (int)(n % (OFFSET_MAX + 1)));
        }
}
END_TEST

START_TEST(distinct_ordered_and_tied)
{
    static int32_t (*const all[])(int64_t) = {rising, falling, lowest, one_of_ten};

    for (size_t d = 0; d < sizeof(all) / sizeof(all[0]); d++) {
        prove_distinct(all[d], 3 * TILE + 7, distinct_ks[_i], 1);
        prove_distinct(all[d], (int64_t)(MAXIMA_ALL + 1) * TILE, distinct_ks[_i], 0);
        prove_distinct(all[d], KNOWN_N, distinct_ks[_i], 2);
    }
}
END_TEST

START_TEST(distinct_known)
{
    prove_distinct(thousand, KNOWN_N, distinct_ks[_i], 0);
    prove_distinct(tied_then_noise, KNOWN_N, distinct_ks[_i], 0);
    prove_distinct(lowest_then_ten, KNOWN_N, distinct_ks[_i], 1);
    prove_distinct(hidden_in_last_tiles, KNOWN_N, distinct_ks[_i], 0);
    prove_distinct(colliding, KNOWN_N, distinct_ks[_i], 0);
}
END_TEST

/* What one block takes: as much as it ranks, or is by its threads, and one more. */
START_TEST(distinct_few)
{
    static const int64_t counts[] = {DISTINCT_FEW, DISTINCT_RANKED};
    static int32_t (*const all[])(int64_t) = {rising, falling, lowest, one_of_ten, thousand};

    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
        for (ties = counts[c]; ties <= counts[c] + 1; ties++)
            prove_distinct(tied, TILE, distinct_ks[_i], 0);
    for (large_groups = DISTINCT_GROUPS; large_groups <= DISTINCT_GROUPS + 1; large_groups++)
        prove_distinct(large_in_groups, 5 * TILE, 2, 1);
    for (size_t d = 0; d < sizeof(all) / sizeof(all[0]); d++)
        prove_distinct(all[d], TILE, distinct_ks[_i], 3);
}
END_TEST

START_TEST(distinct_dense)
{
    static int32_t (*const all[])(int64_t) = {many_thousand, even, lowest_once, largest_at_last};

    for (size_t d = 0; d < sizeof(all) / sizeof(all[0]); d++)
        prove_distinct(all[d], KNOWN_N, distinct_ks[_i], (int)d);
    prove_distinct(many_thousand, DISTINCT_AHEAD * GROUP + 1, distinct_ks[_i], 0);
}
END_TEST

/* On a device of one multiprocessor, so that its blocks go through their tiles in runs; and on this one, where the
 * lists of all blocks are more than a thread each can take. */
START_TEST(distinct_long_lists)
{
    struct job *job = job_of(late_value, (int64_t)(4 * MAXIMA_ALL + 3) * TILE, distinct_ks[_i], 0);

    job->options.distinct = 1;
    job->ctx.device.sm_count = 1;
    job_prove(job);
    prove_distinct(same_maximum_of_tiles, (int64_t)(DISTINCT_BLOCKS_MAX + 40) * TILE,
                   distinct_ks[_i], 0);
}
END_TEST

/* Zeros of both signs and NaNs are one value each. */
START_TEST(distinct_long_numbers)
{
    static const int64_t sizes[] = {1, 2, 255, 1025, TILE / 2 + 1, 3 * TILE};

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct job *job = job_new(_i % 2 ? GPURUN_DOUBLE : GPURUN_INT64, 1, sizes[s],
                                  sizes[s] < 20 ? sizes[s] : 20, _i / 2);
        int64_t *whole = job->tensors[0].host;
        double *real = job->tensors[0].host;

        for (int64_t i = 0; i < sizes[s]; i++) {
            if (_i % 2)
                real[i] = noise(i) % 4 == 0 ? (i % 2 ? -0.0 : 0.0)
                                            : (noise(i) % 4 == 1 ? -NAN : noise(i) % 15);
            else
                whole[i] = (int64_t)(noise(i) % 9) << 32 | (uint32_t)noise(i + 1) % 9;
        }
        job->options.distinct = 1;
        job_prove(job);
    }
}
END_TEST

/* Rows that begin at any place in a vector; long numbers, both orders. */
START_TEST(rows_of_long_numbers)
{
    static const int64_t sizes[] = {1, 2, 255, 1025, TILE / 2 - 1, TILE + 1};

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct job *job = job_new(_i % 2 ? GPURUN_DOUBLE : GPURUN_INT64, 37, sizes[s],
                                  sizes[s] < 20 ? sizes[s] : 20, _i / 2);
        int64_t *whole = job->tensors[0].host;
        double *real = job->tensors[0].host;

        for (int64_t i = 0; i < job->tensors[0].elems; i++) {
            if (_i % 2)
                real[i] = noise(i) % 16 == 0 ? -0.0 : noise(i) / 65536 - 7;
            else
                whole[i] = (int64_t)noise(i) << 32 | (uint32_t)noise(i + 1);
        }
        job_prove(job);
    }
}
END_TEST

START_TEST(what_it_does_not_do)
{
    struct job *job = job_new(GPURUN_INT32, 1, 5000, MAXIMA_K_MAX + 1, 0);

    ck_assert_int_eq(maxima()->supported(&job->ctx), GPURUN_UNSUPPORTED);
    ck_assert_str_eq(job->message, "k: ranks what is left one by one: k = 2049 is above 2048");
    job->options.k = MAXIMA_ONE_K_MAX + 1;
    ck_assert_int_eq(maxima()->supported(&job->ctx), GPURUN_OK);
    job->ctx.device.shared_bytes = 32 << 10;
    ck_assert_int_eq(maxima()->supported(&job->ctx), GPURUN_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(job->message, "this device has 32768"));
    job->options.rows = 2;
    ck_assert_int_eq(maxima()->supported(&job->ctx), GPURUN_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(job->message, "use radix for rows = 2"));
    job->options.distinct = 1;
    ck_assert_int_eq(maxima()->supported(&job->ctx), GPURUN_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(job->message, "use radix for rows = 2"));
    job->options.rows = 1;
    job->options.k = DISTINCT_K_MAX + 1;
    ck_assert_int_eq(maxima()->supported(&job->ctx), GPURUN_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(job->message, "use radix for k = 33"));
    job->options.k = DISTINCT_K_MAX;
    ck_assert_int_eq(maxima()->supported(&job->ctx), GPURUN_OK);
    gpurun_plugin.teardown(&job->ctx);
    for (int i = 0; i < job->tensor_count; i++)
        cudaFree(job->memory[i]);
    free(job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpu_maxima");
    TCase *tests = tcase_create("maxima"), *distinct = tcase_create("distinct");
    const int k_count = (int)(sizeof(ks) / sizeof(ks[0]));
    const int distinct_k_count = (int)(sizeof(distinct_ks) / sizeof(distinct_ks[0]));
    SRunner *runner;
    int failed, devices = 0;

    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("skipped: no device\n");
        return 77;
    }
    tcase_add_loop_test(tests, sizes_about_each_edge, 0, k_count);
    tcase_add_loop_test(tests, many_tiles, 0, k_count);
    tcase_add_loop_test(tests, more_than_a_block_holds, 0, k_count);
    tcase_add_loop_test(tests, ordered_and_tied, 0, k_count);
    tcase_add_loop_test(tests, best_in_few_parts, 0, k_count);
    tcase_add_loop_test(tests, more_than_is_ranked_at_once, 0, k_count);
    tcase_add_test(tests, digits_left_out);
    tcase_add_loop_test(tests, rows_of_a_batch, 0, k_count - 2);
    tcase_add_loop_test(tests, rows_of_long_numbers, 0, 4);
    tcase_add_loop_test(distinct, distinct_sizes, 0, distinct_k_count);
    tcase_add_loop_test(distinct, distinct_ordered_and_tied, 0, distinct_k_count);
    tcase_add_loop_test(distinct, distinct_known, 0, distinct_k_count);
    tcase_add_loop_test(distinct, distinct_few, 0, distinct_k_count);
    tcase_add_loop_test(distinct, distinct_dense, 0, distinct_k_count);
    tcase_add_loop_test(distinct, distinct_long_lists, 0, distinct_k_count);
    tcase_add_loop_test(distinct, distinct_long_numbers, 0, 4);
    tcase_add_test(tests, what_it_does_not_do);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, distinct);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* no CUDA after a fork */
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
#else
#include <stdio.h>

int main(void)
{
    printf("skipped: no device\n");
    return 77;
}
#endif
