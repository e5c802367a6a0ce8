/*
 * The sort of what topk's variants select, on a device: numbers of pairs about its edges, and pairs that
 * defeat its sample. Pairs are dealt from the order that is right, so that is known without sorting.
 */
#include "topk_sort.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef GPURUN_WITH_CUDA
enum { TENSORS = 4 };

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    struct topk_options options;
    struct topk_state state;
    struct gpurun_tensor tensors[TENSORS];
    void *memory[TENSORS];
    int tensor_count, offset;
    uint64_t *pairs;   /* rows x k, as they lie before the sort; words, two where they are wide */
    char message[512]; /* of the last failure */
};

#include "plugin_managed.h"

/* How the pairs lie before the sort. */
enum layout {
    LAYOUT_SHUFFLED,
    LAYOUT_IN_ORDER,
    LAYOUT_HIDDEN, /* the sample sees the best only: all others get into one bucket */
};

struct sort_case {
    enum gpurun_dtype dtype;
    int64_t rows, k, ties; /* `ties` elements have the same key */
    enum layout layout;
    bool has_little_memory; /* shared memory for tiles of SORT_FEW only */
};

/* The right order: the rank-th has the key `rank / ties` places below the largest, and of these keys the
 * lower ones have the lower indices. */
static int64_t index_of_rank(const struct sort_case *c, int64_t rank)
{
    const int64_t groups = (c->k + c->ties - 1) / c->ties, group = rank / c->ties;

    return (groups - 1 - group) * c->ties + rank % c->ties;
}

/* Reals begin with NaN, and one of their keys is zero, of either sign. */
static uint64_t bits_of_rank(const struct sort_case *c, int64_t rank)
{
    const int64_t group = rank / c->ties;
    float real = group == 0 ? NAN : (float)(100 - group);
    uint32_t bits;

    if (c->dtype != GPURUN_FLOAT)
        return (uint64_t)(INT32_MAX - group);
    real = group == 100 && rank % 2 == 1 ? -0.0f : real;
    memcpy(&bits, &real, sizeof(bits));
    return bits;
}

static void store_bits(struct gpurun_tensor *t, int64_t at, uint64_t bits)
{
    if (gpurun_dtype_bytes(t->dtype) == sizeof(uint32_t))
        ((uint32_t *)t->host)[at] = (uint32_t)bits;
    else
        ((uint64_t *)t->host)[at] = bits;
}

static uint64_t load_bits(const struct gpurun_tensor *t, int64_t at)
{
    return gpurun_dtype_bytes(t->dtype) == sizeof(uint32_t) ? ((uint32_t *)t->host)[at]
                                                            : ((uint64_t *)t->host)[at];
}

static size_t pair_bytes(const struct job *job)
{
    const size_t pairs = (size_t)(job->options.rows * job->options.k);

    return pairs * sizeof(uint64_t) * (topk_sort_is_wide(&job->ctx) ? 2 : 1);
}

static struct job *job_new(const struct sort_case *c)
{
    struct job *job = calloc(1, sizeof(*job));
    size_t bytes;

    job->options = (struct topk_options){.n = (c->k + c->ties - 1) / c->ties * c->ties,
                                         .rows = c->rows,
                                         .k = c->k,
                                         .dtype = c->dtype,
                                         .sorted = 1,
                                         .block = 256,
                                         .grid = 32};
    managed_setup(job);
    if (c->has_little_memory)
        job->ctx.device.shared_bytes = 48 << 10;
    ck_assert_msg(topk_sort_supported(&job->ctx) == GPURUN_OK, "%s", job->message);
    bytes = topk_sort_scratch(&job->ctx, c->rows);
    REQUIRE(cudaMalloc(&job->ctx.scratch, bytes));
    REQUIRE(cudaMemset(job->ctx.scratch, GPURUN_POISON, bytes));
    job->pairs = malloc(pair_bytes(job));
    return job;
}

/* Writes the pair of a rank, and the element that it stands for. */
static void put_pair(struct job *job, const struct sort_case *c, int64_t row, int64_t slot,
                     int64_t rank)
{
    const uint64_t bits = bits_of_rank(c, rank), flip = job->state.flip;
    const uint64_t index = (uint64_t)index_of_rank(c, rank);
    uint64_t *words = job->pairs;

    store_bits(&job->tensors[0], row * job->options.n + (int64_t)index, bits);
    if (topk_sort_is_wide(&job->ctx)) {
        words[2 * (row * c->k + slot)] = index;
        words[2 * (row * c->k + slot) + 1] = ~gpurun_key64(bits, job->state.is_real, flip);
    } else {
        words[row * c->k + slot] =
            (uint64_t)~gpurun_key32((uint32_t)bits, job->state.is_real, (uint32_t)flip) << 32 |
            index;
    }
}

/* Slots that the sample looks at, 1 each. */
static unsigned char *sampled_slots(int64_t k)
{
    const int64_t wanted = (k + SORT_BUCKET_LEAST - 1) / SORT_BUCKET_LEAST;
    const int64_t buckets = wanted < SORT_BUCKETS_MAX ? wanted : SORT_BUCKETS_MAX;
    unsigned char *is_sampled = calloc((size_t)k, 1);

    for (int64_t i = 0; i < buckets * SORT_OVERSAMPLE; i++)
        is_sampled[topk_sort_sample_at(i, k / (buckets * SORT_OVERSAMPLE))] = 1;
    return is_sampled;
}

/* A step that goes through all of k slots: a prime that does not divide k. */
static int64_t step_for(int64_t k)
{
    return k % 1000003 != 0 ? 1000003 : 1000033;
}

static void deal(struct job *job, const struct sort_case *c, int64_t row)
{
    unsigned char *is_sampled = c->layout == LAYOUT_HIDDEN ? sampled_slots(c->k) : NULL;
    int64_t best = 0, others = 0, slot;

    for (int64_t i = 0; is_sampled && i < c->k; i++)
        others += is_sampled[i];
    for (int64_t i = 0; i < c->k; i++) {
        slot = c->layout == LAYOUT_IN_ORDER ? i : i * (step_for(c->k) % c->k) % c->k;
        put_pair(job, c, row, slot, !is_sampled ? i : is_sampled[slot] ? best++ : others++);
    }
    free(is_sampled);
}

static void expect_order(const struct job *job, const struct sort_case *c, int64_t row)
{
    const int64_t *indices = job->tensors[2].host;

    for (int64_t rank = 0; rank < c->k; rank++) {
        const int64_t at = row * c->k + rank, wanted = index_of_rank(c, rank);
        const uint64_t bits = load_bits(&job->tensors[0], row * job->options.n + wanted);

        if (indices[at] != wanted || load_bits(&job->tensors[1], at) != bits)
            ck_abort_msg("k %ld row %ld: rank %ld has index %ld, not %ld", (long)c->k, (long)row,
                         (long)rank, (long)indices[at], (long)wanted);
    }
}

static void expect_sorted(const struct sort_case *c)
{
    struct job *job = job_new(c);

    for (int run = 0; run < 2; run++) { /* the second starts from what the first left */
        managed_poison(job);
        for (int64_t row = 0; row < c->rows; row++)
            deal(job, c, row);
        REQUIRE(cudaMemcpy(job->ctx.scratch, job->pairs, pair_bytes(job), cudaMemcpyHostToDevice));
        ck_assert_msg(topk_launch_sort(&job->ctx, job->ctx.scratch, 0, c->rows) == GPURUN_OK, "%s",
                      job->message);
        REQUIRE(cudaDeviceSynchronize());
        for (int64_t row = 0; row < c->rows; row++)
            expect_order(job, c, row);
    }
    free(job->pairs);
    managed_free(job);
}

/* The edges: what a thread holds, what a warp, what a block, where buckets begin. */
static const int64_t edges[] = {
    1,
    SORT_FEW,
    32 * SORT_FEW,
    SORT_BLOCK,
    SORT_BLOCK *SORT_FEW,
    SORT_BLOCK *SORT_MANY,
    16 * SORT_BUCKET_LEAST,
    SORT_BUCKETS_MAX *SORT_BUCKET_LEAST,
};

START_TEST(sizes_about_each_edge_are_sorted)
{
    for (int64_t k = edges[_i] - 1; k <= edges[_i] + 1; k++) {
        if (k == 0)
            continue;
        expect_sorted(&(struct sort_case){GPURUN_INT32, 1, k, 1, LAYOUT_SHUFFLED, false});
        expect_sorted(&(struct sort_case){GPURUN_INT64, 1, k, 3, LAYOUT_SHUFFLED, false});
    }
}
END_TEST

static const struct sort_case cases[] = {
    {GPURUN_INT32, 3, 2 * SORT_BUCKET_LEAST, 1, LAYOUT_SHUFFLED, false},
    {GPURUN_INT32, 3, 20011, 7, LAYOUT_SHUFFLED, false},
    {GPURUN_UINT64, 3, 20011, 7, LAYOUT_IN_ORDER, false},
    {GPURUN_INT32, 1, 300007, 300007, LAYOUT_IN_ORDER, false},
    {GPURUN_FLOAT, 1, 300007, 100, LAYOUT_SHUFFLED, false},
    /* a bucket that shared memory does not hold: two tiles, several, all but the sample */
    {GPURUN_INT32, 1, SORT_BLOCK *SORT_MANY + 2000, 1, LAYOUT_HIDDEN, false},
    {GPURUN_INT32, 2, 100003, 1, LAYOUT_HIDDEN, false},
    {GPURUN_INT64, 2, 100003, 10, LAYOUT_HIDDEN, false},
    {GPURUN_FLOAT, 1, 1000003, 5, LAYOUT_HIDDEN, false},
    /* narrower tiles */
    {GPURUN_INT32, 1, SORT_BLOCK *SORT_FEW, 1, LAYOUT_SHUFFLED, true},
    {GPURUN_INT32, 1, SORT_BLOCK *SORT_FEW + 1, 1, LAYOUT_SHUFFLED, true},
    {GPURUN_INT64, 1, SORT_BLOCK *SORT_FEW + 1, 1, LAYOUT_SHUFFLED, true},
    {GPURUN_INT64, 1, 100003, 4, LAYOUT_HIDDEN, true},
    /* and every bucket larger than one */
    {GPURUN_INT32, 1, SORT_BUCKETS_MAX *SORT_BLOCK *SORT_FEW * 3 / 2, 1, LAYOUT_SHUFFLED, true},
};

START_TEST(every_layout_is_sorted)
{
    expect_sorted(&cases[_i]);
}
END_TEST

START_TEST(too_little_shared_memory_is_said)
{
    struct job *job = job_new(&(struct sort_case){GPURUN_INT32, 1, 10, 1, LAYOUT_IN_ORDER, false});

    job->ctx.device.shared_bytes = 16 << 10;
    ck_assert_int_eq(topk_sort_supported(&job->ctx), GPURUN_UNSUPPORTED);
    ck_assert_msg(strstr(job->message, "sorted: ") == job->message, "%s", job->message);
    job->options.sorted = 0;
    ck_assert_int_eq(topk_sort_supported(&job->ctx), GPURUN_OK);
    ck_assert_uint_eq(topk_sort_scratch(&job->ctx, 1), 0);
    free(job->pairs);
    managed_free(job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpu_sort");
    TCase *sizes = tcase_create("edges"), *layouts = tcase_create("layouts");
    TCase *memory = tcase_create("memory");
    SRunner *runner;
    int count = 0, failed;

    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        printf("skipped: no device\n");
        return 77;
    }
    tcase_add_loop_test(sizes, sizes_about_each_edge_are_sorted, 0, (int)GPURUN_COUNT(edges));
    tcase_add_loop_test(layouts, every_layout_is_sorted, 0, (int)GPURUN_COUNT(cases));
    tcase_add_test(memory, too_little_shared_memory_is_said);
    suite_add_tcase(suite, sizes);
    suite_add_tcase(suite, layouts);
    suite_add_tcase(suite, memory);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
#else
int main(void)
{
    printf("skipped: no device (built without CUDA)\n");
    return 77;
}
#endif
