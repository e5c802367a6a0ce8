/*
 * verify of sort on answers that are wrong by one element among many, in every dtype, direction and mode of
 * proof, with one thread and with several: a swapped pair, a changed value, a lost and a doubled key, an
 * unstable pair, a shift by one, the answer to other data. Keys are few among many, so ties are everywhere.
 */
#include "sort.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1511, DISTINCT = 97, TENSORS = 4, POISON = 0xa5 };

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    struct sort_options options;
    struct sort_state state;
    struct gpurun_tensor tensors[TENSORS];
    int tensor_count;
    char message[512];
};

#include "plugin_tensors.h"

static const struct gpurun_core fake_core = FAKE_CORE(fake_allocate, fake_no_file);

/* The i-th key: a whole number around 0, or a quarter of one. */
static void put_key(const struct gpurun_tensor *t, int i, int64_t whole)
{
    switch (t->dtype) {
    case GPURUN_FLOAT:
        ((float *)t->host)[i] = (float)whole / 4;
        break;
    case GPURUN_DOUBLE:
        ((double *)t->host)[i] = (double)whole / 4;
        break;
    case GPURUN_INT64:
    case GPURUN_UINT64:
        ((int64_t *)t->host)[i] = whole * 1000000007;
        break;
    default:
        ((int32_t *)t->host)[i] = (int32_t)whole;
        break;
    }
}

static void fill(struct job *job, uint64_t seed)
{
    for (int i = 0; i < N; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        put_key(job->state.keys, i, (int64_t)(seed >> 33) % DISTINCT - DISTINCT / 2);
        if (job->options.values == SORT_VALUES_UINT32)
            ((uint32_t *)job->state.values->host)[i] = (uint32_t)i;
        if (job->options.values == SORT_VALUES_UINT64)
            ((uint64_t *)job->state.values->host)[i] = (uint64_t)i;
    }
}

static struct job *job_new(enum gpurun_dtype dtype, int64_t order, int64_t values, int threads)
{
    struct job *job = calloc(1, sizeof(*job));

    job->ctx.core = &fake_core;
    job->ctx.options = &job->options;
    job->ctx.state = &job->state;
    job->ctx.threads = threads;
    job->options = (struct sort_options){
        .n = N, .dtype = dtype, .order = order, .values = values, .block = 256};
    ck_assert_int_eq(gpurun_plugin.setup(&job->ctx), GPURUN_OK);
    fill(job, 1);
    return job;
}

static void job_free(struct job *job)
{
    gpurun_plugin.teardown(&job->ctx);
    for (int i = 0; i < job->tensor_count; i++)
        free(job->tensors[i].host);
    free(job);
}

static int64_t verify(struct job *job, enum gpurun_verify mode)
{
    struct gpurun_proof proof = {.mode = mode};

    ck_assert_int_eq(gpurun_plugin.verify(&job->ctx, &proof), GPURUN_OK);
    ck_assert_int_eq(proof.mode, mode);
    return proof.wrong;
}

/* --- one wrong element ------------------------------------------------------------------------------- */

static unsigned char *key_at(const struct job *job, int i)
{
    return (unsigned char *)job->state.sorted->host + (size_t)i * job->state.elem_bytes;
}

static unsigned char *value_at(const struct job *job, int i)
{
    return (unsigned char *)job->state.sorted_values->host + (size_t)i * job->state.value_bytes;
}

static bool has_values(const struct job *job)
{
    return job->state.sorted_values != NULL;
}

static bool is_tie(const struct job *job, int i)
{
    return memcmp(key_at(job, i), key_at(job, i + 1), job->state.elem_bytes) == 0;
}

/* The first place from `start` on whose key is, or is not, the next one's; else the last before it. */
static int find(const struct job *job, int start, bool tie)
{
    for (int i = start; i + 1 < N; i++)
        if (is_tie(job, i) == tie)
            return i;
    for (int i = start < N - 2 ? start : N - 2; i >= 0; i--)
        if (is_tie(job, i) == tie)
            return i;
    ck_abort_msg("no such place");
    return -1;
}

static void swap(unsigned char *a, unsigned char *b, size_t bytes)
{
    unsigned char kept[8];

    memcpy(kept, a, bytes);
    memcpy(a, b, bytes);
    memcpy(b, kept, bytes);
}

static bool swapped_keys(struct job *job, int place)
{
    const int i = find(job, place, false);

    swap(key_at(job, i), key_at(job, i + 1), job->state.elem_bytes);
    return true;
}

/* The pairs are whole; the two stand in the wrong order. */
static bool swapped_pairs(struct job *job, int place)
{
    const int i = find(job, place, false);

    swapped_keys(job, place);
    if (has_values(job))
        swap(value_at(job, i), value_at(job, i + 1), job->state.value_bytes);
    return has_values(job);
}

static bool swapped_values(struct job *job, int place)
{
    const int i = find(job, place, false);

    if (has_values(job))
        swap(value_at(job, i), value_at(job, i + 1), job->state.value_bytes);
    return has_values(job);
}

/* Keys in order, pairs whole: only stability is hurt. */
static bool unstable_pair(struct job *job, int place)
{
    const int i = find(job, place, true);

    if (has_values(job))
        swap(value_at(job, i), value_at(job, i + 1), job->state.value_bytes);
    return has_values(job);
}

static bool lowest_key_bit(struct job *job, int place)
{
    key_at(job, place)[0] ^= 1;
    return true;
}

static bool top_key_bit(struct job *job, int place)
{
    const bool is_real = job->options.dtype == GPURUN_FLOAT || job->options.dtype == GPURUN_DOUBLE;

    key_at(job, place)[job->state.elem_bytes - 1] ^= is_real ? 0x40 : 0x80;
    return true;
}

static bool lowest_value_bit(struct job *job, int place)
{
    if (has_values(job))
        value_at(job, place)[0] ^= 1;
    return has_values(job);
}

static bool top_value_bit(struct job *job, int place)
{
    if (has_values(job))
        value_at(job, place)[job->state.value_bytes - 1] ^= 0x80;
    return has_values(job);
}

/* One element lost, its neighbour there twice; still in order. */
static bool doubled(struct job *job, int place)
{
    const int i = find(job, place, false);

    memcpy(key_at(job, i), key_at(job, i + 1), job->state.elem_bytes);
    if (has_values(job))
        memcpy(value_at(job, i), value_at(job, i + 1), job->state.value_bytes);
    return true;
}

/* The keys are right; of two equal ones the values are one and the same. */
static bool doubled_value(struct job *job, int place)
{
    const int i = find(job, place, true);

    if (has_values(job))
        memcpy(value_at(job, i + 1), value_at(job, i), job->state.value_bytes);
    return has_values(job);
}

static bool shifted(struct job *job, int place)
{
    const int i = find(job, place, false);
    const size_t bytes = job->state.elem_bytes;

    memmove(key_at(job, i + 1), key_at(job, i), (size_t)(N - 1 - i) * bytes);
    return true;
}

static bool poisoned(struct job *job, int place)
{
    memset(key_at(job, place), POISON, job->state.elem_bytes);
    return true;
}

static bool untouched(struct job *job, int place)
{
    (void)place;
    memset(job->state.sorted->host, POISON, job->state.sorted->bytes);
    if (has_values(job))
        memset(job->state.sorted_values->host, POISON, job->state.sorted_values->bytes);
    return true;
}

/* The answer of a run on other data, left where this one belongs. */
static bool stale(struct job *job, int place)
{
    fill(job, 2 + (uint64_t)place);
    ck_assert_int_eq(gpurun_plugin.run_cpu(&job->ctx), GPURUN_OK);
    fill(job, 1);
    return true;
}

static const struct {
    const char *name;
    bool (*apply)(struct job *job, int place); /* false: nothing to spoil in this job */
} corruptions[] = {
    {"swapped keys", swapped_keys},
    {"swapped pairs", swapped_pairs},
    {"swapped values", swapped_values},
    {"unstable pair", unstable_pair},
    {"lowest bit of a key", lowest_key_bit},
    {"top bit of a key", top_key_bit},
    {"lowest bit of a value", lowest_value_bit},
    {"top bit of a value", top_value_bit},
    {"one lost, one doubled", doubled},
    {"one value lost, one doubled", doubled_value},
    {"shifted by one", shifted},
    {"one poisoned", poisoned},
    {"untouched", untouched},
    {"stale", stale},
};

static int expect_refused(enum gpurun_dtype dtype, int64_t order, int64_t values, int corruption)
{
    static const int places[] = {0, N / 2, N - 1};
    static const enum gpurun_verify modes[] = {GPURUN_VERIFY_FULL, GPURUN_VERIFY_CERTIFY};
    int count = 0;

    for (size_t p = 0; p < GPURUN_COUNT(places); p++) {
        struct job *job = job_new(dtype, order, values, 1 + (int)p % 3);
        bool is_spoilt;

        ck_assert_int_eq(gpurun_plugin.run_cpu(&job->ctx), GPURUN_OK);
        for (size_t m = 0; m < GPURUN_COUNT(modes); m++)
            ck_assert_msg(verify(job, modes[m]) == 0, "a right answer: %s", job->message);
        is_spoilt = corruptions[corruption].apply(job, places[p]);
        for (size_t m = 0; m < GPURUN_COUNT(modes) && is_spoilt; m++)
            ck_assert_msg(verify(job, modes[m]) > 0, "%s, order %d, values %d, mode %d: %s at %d",
                          gpurun_dtype_name(dtype), (int)order, (int)values, (int)modes[m],
                          corruptions[corruption].name, places[p]);
        count += is_spoilt;
        job_free(job);
    }
    return count;
}

START_TEST(one_wrong_element_among_many_is_seen)
{
    int count = 0;

    for (enum gpurun_dtype dtype = GPURUN_INT32; dtype <= GPURUN_DOUBLE; dtype++)
        for (int64_t order = SORT_ASCENDING; order <= SORT_DESCENDING; order++)
            for (int64_t values = SORT_VALUES_NONE; values <= SORT_VALUES_UINT64; values++)
                count += expect_refused(dtype, order, values, _i);
    ck_assert_int_gt(count, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sort corruptions");
    TCase *refused = tcase_create("refused");
    SRunner *runner;
    int failed;

    tcase_set_timeout(refused, 60);
    tcase_add_loop_test(refused, one_wrong_element_among_many_is_seen, 0,
                        (int)GPURUN_COUNT(corruptions));
    suite_add_tcase(suite, refused);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
