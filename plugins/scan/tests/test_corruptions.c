/*
 * verify of scan on answers with one fault, wherever it is: a value that is changed, two that are swapped,
 * and prefixes that are off by one element for a stretch. The proof walks the array in chunks, so the
 * places are around their ends, with one thread and with several.
 */
#include "scan.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { N = 70001, STRETCH = 100, POISON = 0xa5 };

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    struct scan_options options;
    struct scan_state state;
    struct gpurun_tensor tensors[2];
    int tensor_count;
    char message[512];
};

#include "plugin_tensors.h"

static const struct gpurun_core fake_core = FAKE_CORE(fake_allocate, fake_no_file);

/* One to seven everywhere, so that every prefix differs from the next by more than a rounding. */
static void put(const struct gpurun_tensor *t, int i)
{
    const int x = 1 + i * 5 % 7;

    if (t->dtype == GPURUN_UINT8)
        ((uint8_t *)t->host)[i] = (uint8_t)x;
    else if (t->dtype == GPURUN_FLOAT)
        ((float *)t->host)[i] = (float)x;
    else if (t->dtype == GPURUN_DOUBLE)
        ((double *)t->host)[i] = x;
    else if (gpurun_dtype_bytes(t->dtype) == 4)
        ((int32_t *)t->host)[i] = x;
    else
        ((int64_t *)t->host)[i] = x;
}

static struct job *job_new(enum gpurun_dtype dtype, int64_t kind, int64_t accumulate, int threads)
{
    struct job *job = calloc(1, sizeof(*job));

    job->ctx.core = &fake_core;
    job->ctx.options = &job->options;
    job->ctx.state = &job->state;
    job->ctx.threads = threads;
    job->options = (struct scan_options){.n = N,
                                         .dtype = dtype,
                                         .kind = kind,
                                         .op = SCAN_SUM,
                                         .accumulate = accumulate,
                                         .init = fake_auto_real(),
                                         .block = 256};
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    for (int i = 0; i < N; i++)
        put(job->state.in, i);
    memset(job->state.out->host, POISON, job->state.out->bytes);
    ck_assert_int_eq(gpurun_plugin.run_cpu(&job->ctx), GPURUN_OK);
    return job;
}

static void job_free(struct job *job)
{
    gpurun_plugin.teardown(&job->ctx);
    for (int i = 0; i < job->tensor_count; i++)
        free(job->tensors[i].host);
    free(job);
}

static int64_t verify(struct job *job)
{
    struct gpurun_proof proof = {.mode = GPURUN_VERIFY_FULL};

    ck_assert_int_eq(gpurun_plugin.verify(&job->ctx, &proof), GPURUN_OK);
    return proof.wrong;
}

static unsigned char *out_at(const struct job *job, int i)
{
    return (unsigned char *)job->state.out->host +
           (size_t)i * gpurun_dtype_bytes(job->state.out->dtype);
}

/* --- faults; each says how many elements it makes wrong ---------------------------------------------- */

static int changed(struct job *job, int place)
{
    const size_t size = gpurun_dtype_bytes(job->state.out->dtype);

    out_at(job, place)[job->state.is_real ? size - 1 : 0] ^= 1;
    return 1;
}

static int swapped(struct job *job, int place)
{
    const size_t size = gpurun_dtype_bytes(job->state.out->dtype);
    const int i = place + 1 < N ? place : place - 1;
    unsigned char kept[8];

    memcpy(kept, out_at(job, i), size);
    memcpy(out_at(job, i), out_at(job, i + 1), size);
    memcpy(out_at(job, i + 1), kept, size);
    return 2;
}

static int stretch_from(int place)
{
    return N - 1 - place < STRETCH ? N - 1 - place : STRETCH;
}

/* Behind `place`, for a stretch, each prefix is that of the element before. */
static int off_by_one(struct job *job, int place)
{
    const size_t size = gpurun_dtype_bytes(job->state.out->dtype);

    memmove(out_at(job, place) + size, out_at(job, place), (size_t)stretch_from(place) * size);
    return stretch_from(place);
}

/* A byte of poison may be right by chance. */
static int poisoned(struct job *job, int place)
{
    const size_t size = gpurun_dtype_bytes(job->state.out->dtype);

    memset(out_at(job, place), POISON, (size_t)stretch_from(place) * size);
    return stretch_from(place) / 2;
}

static int (*const faults[])(struct job *job, int place) = {changed, swapped, off_by_one, poisoned};

/* Around the ends of blocks, of the proof's chunks of 2^15, and of the array. */
static const int places[] = {0,     1,     2,     255,   256,   4095,  4096, 32767,
                             32768, 32769, 65535, 65536, N - 3, N - 2, N - 1};

/* The right answer, spoiled at each place in turn and mended. */
static int spoil_everywhere(struct job *job, int fault)
{
    char *right = malloc(job->state.out->bytes);
    int count = 0;

    memcpy(right, job->state.out->host, job->state.out->bytes);
    for (size_t p = 0; p < GPURUN_COUNT(places); p++) {
        const int least = faults[fault](job, places[p]);

        ck_assert_msg(verify(job) >= least, "%s to %s, threads %d: fault %d at %d",
                      gpurun_dtype_name(job->state.dtype), gpurun_dtype_name(job->state.acc),
                      job->ctx.threads, fault, places[p]);
        memcpy(job->state.out->host, right, job->state.out->bytes);
        count += least > 0;
    }
    ck_assert_int_eq(verify(job), 0);
    free(right);
    return count;
}

/* Small whole numbers: float sums are exact up to 2^24, and the bound is below one. */
static const enum gpurun_dtype dtypes[] = {GPURUN_UINT8,  GPURUN_INT32, GPURUN_UINT32, GPURUN_INT64,
                                           GPURUN_UINT64, GPURUN_FLOAT, GPURUN_DOUBLE};

START_TEST(a_fault_is_seen_wherever_it_is)
{
    for (size_t d = 0; d < GPURUN_COUNT(dtypes); d++)
        for (int64_t kind = SCAN_INCLUSIVE; kind <= SCAN_EXCLUSIVE; kind++)
            for (int threads = 1; threads <= 3; threads += 2) {
                const bool is_float = dtypes[d] == GPURUN_FLOAT;
                struct job *job =
                    job_new(dtypes[d], kind, is_float ? SCAN_WIDE : SCAN_SAME, threads);

                ck_assert_msg(verify(job) == 0, "a right answer: %s", job->message);
                ck_assert_int_ge(spoil_everywhere(job, _i), 13);
                job_free(job);
            }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scan corruptions");
    TCase *seen = tcase_create("seen");
    SRunner *runner;
    int failed;

    tcase_set_timeout(seen, 60);
    tcase_add_loop_test(seen, a_fault_is_seen_wherever_it_is, 0, (int)GPURUN_COUNT(faults));
    suite_add_tcase(suite, seen);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
