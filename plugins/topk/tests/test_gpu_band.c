/*
 * topk's variant band on a device: data that defeats its sample. The answers are proved by verify; whether
 * the whole row was searched shows in what was counted.
 */
#include "topk_band.h"
#include <stdio.h>
#include <stdlib.h>

#ifdef GPURUN_WITH_CUDA
enum { TENSORS = 4, N = 1000003 };

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    struct topk_options options;
    struct topk_state state;
    struct gpurun_tensor tensors[TENSORS];
    void *memory[TENSORS];
    int tensor_count, offset;
    char message[512]; /* of the last failure or wrong element */
};

#include "plugin_managed.h"

static struct job *job_new(int64_t k, enum topk_order order, int64_t sorted)
{
    struct job *job = calloc(1, sizeof(*job));

    job->options = (struct topk_options){.n = N,
                                         .rows = 1,
                                         .k = k,
                                         .dtype = GPURUN_INT32,
                                         .order = order,
                                         .sorted = sorted,
                                         .block = 256,
                                         .grid = 32};
    managed_setup(job);
    ck_assert_msg(topk_band_supported(&job->ctx) == GPURUN_OK, "%s", job->message);
    REQUIRE(
        cudaMallocManaged(&job->ctx.scratch, topk_band_scratch(&job->ctx), cudaMemAttachGlobal));
    memset(job->ctx.scratch, 0, topk_band_scratch(&job->ctx));
    return job;
}

/* Fills the elements that the sample takes and the others, each with one of `count` values from `first`. */
struct fill {
    int32_t first, count;
};

static void job_fill(struct job *job, struct fill sampled, struct fill others)
{
    int32_t *data = job->tensors[0].host;
    struct band_plan plan;
    uint32_t random = 1;

    for (int64_t i = 0; i < N; i++) {
        random = random * 1664525 + 1013904223;
        data[i] = others.first + (int32_t)((random >> 8) % (uint32_t)others.count);
    }
    ck_assert_int_eq(topk_band_plan(&job->ctx, &plan), GPURUN_OK);
    for (uint32_t i = 0; i < plan.samples; i++) {
        random = random * 1664525 + 1013904223;
        data[band_sample_at(&plan, i)] =
            sampled.first + (int32_t)((random >> 8) % (uint32_t)sampled.count);
    }
}

/* Runs twice, as what a run leaves behind is the next one's start. */
static void job_expect(struct job *job)
{
    for (int run = 0; run < 2; run++) {
        struct gpurun_proof proof = {.mode = GPURUN_VERIFY_FULL};

        managed_poison(job);
        ck_assert_int_eq(topk_launch_band(&job->ctx), GPURUN_OK);
        REQUIRE(cudaDeviceSynchronize());
        ck_assert_int_eq(gpurun_plugin.verify(&job->ctx, &proof), GPURUN_OK);
        ck_assert_msg(proof.wrong == 0, "run %d: %s", run, job->message);
    }
}

/* Whether the whole row was searched: it is counted where nothing else is, and that was zero. */
static bool job_searched_all(const struct job *job)
{
    const struct band_state *s = job->ctx.scratch;
    int64_t counted = 0;

    for (int bin = 0; bin < BAND_BINS; bin++)
        counted += s->bins[0][0][bin];
    return counted > 0;
}

static const struct {
    const char *what;
    int64_t k;
    struct fill sampled, others;
    bool is_wrong; /* the guess */
} cases[] = {
    {"the sample is like the rest", 50000, {0, 1000000}, {0, 1000000}, false},
    {"a frequent value is counted, not kept", 50000, {0, 5}, {0, 5}, false},
    {"all are equal", 50000, {-7, 1}, {-7, 1}, false},
    {"more lies above the upper limit than is wanted", 50000, {0, 1000}, {100000, 1000000}, true},
    {"too little lies above the lower limit", 100000, {100000, 1000}, {0, 1000}, true},
    {"the band is too small for what lies between", 100000, {0, 1000000}, {900000, 1}, true},
    {"the k-th is past the value that is counted", 101500, {0, 10}, {0, 10}, true},
};

START_TEST(a_wrong_guess_is_mended)
{
    for (int way = 0; way < 4; way++) {
        const bool is_smallest = way % 2 == 1;
        struct job *job = job_new(cases[_i].k, is_smallest ? TOPK_SMALLEST : TOPK_LARGEST, way / 2);
        int32_t *data;

        job_fill(job, cases[_i].sampled, cases[_i].others);
        data = job->tensors[0].host;
        for (int64_t i = 0; i < N && is_smallest; i++)
            data[i] = -data[i];
        job_expect(job);
        ck_assert_msg(job_searched_all(job) == cases[_i].is_wrong, "%s", cases[_i].what);
        managed_free(job);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpu_band");
    TCase *tests = tcase_create("guess");
    SRunner *runner;
    int count = 0, failed;

    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        printf("skipped: no device\n");
        return 77;
    }
    tcase_add_loop_test(tests, a_wrong_guess_is_mended, 0, (int)GPURUN_COUNT(cases));
    suite_add_tcase(suite, tests);
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
