/*
 * Verify on trial: answers that are missing or spoilt must fail.
 */
#ifndef CONTRACT_SPOIL_H
#define CONTRACT_SPOIL_H

#include "cpu.h"

/* --- verify ----------------------------------------------------------------------------------- */

START_TEST(test_a_missing_answer_fails)
{
    int runs = 0;

    for (size_t s = 0; s < GPURUN_COUNT(sizes); s++) {
        const struct config c = sized_config(sizes[s]);
        struct trial *t = trial_new(&c);
        struct run_case cpu = {.name = "cpu"};

        REQUIRE(t->status == GPURUN_OK, "%s", t->run.why.text);
        fill(t);
        check_idle_fails(t, &cpu); /* before any right answer, and after one */
        prove(t, &cpu, VERIFY_FULL);
        check_idle_fails(t, &cpu);
        runs += 2;
        trial_free(t);
    }
    report("verify, nothing done", runs, 0);
}
END_TEST

enum { SPOIL_WAYS = 3 };

static double get_real(enum gpurun_dtype dtype, const void *element)
{
    float narrow;
    uint16_t word;
    double real;

    switch (dtype) {
    case GPURUN_FLOAT:
        memcpy(&narrow, element, sizeof narrow);
        return (double)narrow;
    case GPURUN_HALF:
    case GPURUN_BFLOAT16:
        memcpy(&word, element, sizeof word);
        return (double)(dtype == GPURUN_HALF ? gpurun_half_to_float(word)
                                             : gpurun_bfloat16_to_float(word));
    default:
        memcpy(&real, element, sizeof real);
        return real;
    }
}

static void put_real(enum gpurun_dtype dtype, void *element, double real)
{
    const float narrow = (float)real;
    uint16_t word;

    switch (dtype) {
    case GPURUN_FLOAT:
        memcpy(element, &narrow, sizeof narrow);
        break;
    case GPURUN_HALF:
    case GPURUN_BFLOAT16:
        word = dtype == GPURUN_HALF ? gpurun_half_from_double(real)
                                    : gpurun_bfloat16_from_double(real);
        memcpy(element, &word, sizeof word);
        break;
    default:
        memcpy(element, &real, sizeof real);
        break;
    }
}

/* Another value in one element: for reals NaN, infinity and a thousand times off, for integers the lowest
 * bit, the top bits and the poison. False when it is the same as before. */
static bool spoil(enum gpurun_dtype dtype, void *element, int way)
{
    const size_t size = gpurun_dtype_bytes(dtype);
    unsigned char before[8], *bytes = element;
    double real;

    memcpy(before, element, size);
    if (gpurun_dtype_is_real(dtype)) {
        real = get_real(dtype, element);
        if (!isfinite(real))
            real = 0;
        else
            real = way == 0 ? NAN : way == 1 ? INFINITY : real + 1000 * (fabs(real) + 1);
        put_real(dtype, element, real);
    } else if (way == 0) {
        bytes[0] ^= 0x01;
    } else if (way == 1) {
        bytes[size - 1] ^= 0xC0;
    } else {
        memset(bytes, 0xA5, size);
    }
    return memcmp(before, bytes, size) != 0;
}

static void put_back(struct run *run, char *const kept[TENSORS_MAX])
{
    tensors_reset_shapes(run);
    for (int i = 0; i < run->buffer_count; i++)
        if (kept[i] != NULL)
            memcpy(run->buffers[i].tensor.host, kept[i], run->buffers[i].declared.bytes);
}

static bool judge_passes(struct trial *t, struct run_case *c)
{
    c->status = CASE_PASSED;
    REQUIRE(case_judge(&t->run, c) == GPURUN_OK, "a spoilt answer is not judged: %s",
            t->run.why.text);
    return c->status == CASE_PASSED;
}

/* One tensor, `elems` elements of which mean something; as many of them as time allows. */
static int spoil_tensor(struct trial *t, int b, int64_t elems, char *const kept[TENSORS_MAX])
{
    struct gpurun_tensor *tensor = &t->run.buffers[b].tensor;
    const int64_t step = elems / SPOILT_MAX + 1;
    const double start = now_s();
    struct run_case cpu = {.name = "cpu"};
    int count = 0;

    for (int64_t i = 0; i<elems; i += now_s() - start> SPOIL_S ? elems / 16 + 1 : step)
        for (int way = 0; way < SPOIL_WAYS; way++) {
            put_back(&t->run, kept);
            if (!spoil(tensor->dtype,
                       (char *)tensor->host + (size_t)i * gpurun_dtype_bytes(tensor->dtype), way))
                continue;
            REQUIRE(!judge_passes(t, &cpu), "verify = %s: %s[%lld] spoilt in way %d passes",
                    t->run.core.verify == VERIFY_FULL ? "full" : "certify", tensor->name,
                    (long long)i, way);
            count++;
        }
    return count;
}

/* Where verify moved a smaller answer together the gaps mean nothing: those rows are left alone. */
static int64_t elems_that_count(const struct buffer *b)
{
    if (b->tensor.role == GPURUN_IN)
        return 0;
    return b->tensor.elems == b->declared.elems || b->declared.rank <= 1 ? b->tensor.elems : 0;
}

static int spoil_every_element(const struct config *c)
{
    struct trial *t = trial_new(c);
    struct run_case cpu = {.name = "cpu"};
    char *kept[TENSORS_MAX] = {NULL};
    int64_t elems[TENSORS_MAX];
    int count = 0;

    REQUIRE(t->status == GPURUN_OK, "%s", t->run.why.text);
    fill(t);
    run_cpu_once(t, &cpu);
    keep_answer(&t->run, kept);
    for (size_t m = 0; m < GPURUN_COUNT(modes); m++) {
        t->run.core.verify = modes[m];
        put_back(&t->run, kept);
        REQUIRE(judge_passes(t, &cpu), "the right answer is refused: %s", cpu.reason);
        for (int i = 0; i < t->run.buffer_count; i++)
            elems[i] = elems_that_count(&t->run.buffers[i]);
        for (int i = 0; i < t->run.buffer_count; i++)
            count += spoil_tensor(t, i, elems[i], kept);
        put_back(&t->run, kept);
        REQUIRE(judge_passes(t, &cpu), "the right answer is refused later: %s", cpu.reason);
    }
    free_answer(&t->run, kept);
    trial_free(t);
    return count;
}

START_TEST(test_every_spoilt_element_fails)
{
    int count = 0;

    for (size_t s = 0; s < GPURUN_COUNT(sizes); s++) {
        struct config c = judged_config(sizes[s]);

        count += spoil_every_element(&c);
        c.offset = 1;
        c.generator = "few-distinct count=7";
        count += spoil_every_element(&c);
    }
    report("verify, one element spoilt", count, 0);
    ck_assert_int_gt(count, 0);
}
END_TEST

START_TEST(test_selftest)
{
    json_t *result = selftest_plugin(&plugin);
    const json_t *missed = json_object_get(result, "missed");

    strcpy(circumstances, "selftest");
    REQUIRE(json_array_size(missed) == 0, "%zu missed, the first: %s", json_array_size(missed),
            json_string_value(json_array_get(missed, 0)));
    report("selftest", (int)json_integer_value(json_object_get(result, "corruptions")), 0);
    ck_assert_int_gt(json_integer_value(json_object_get(result, "corruptions")), 0);
    json_decref(result);
}
END_TEST

/* The kinds of spoiled answers of `gpurun selftest`, on a job with the settings of `c`; on few distinct values
 * in place of the dtype's extremes, whose sums may be infinite or not a number and right all the same. */
static void selftest_config(const struct config *c, int *runs, int *refused)
{
    const bool is_uniform = strcmp(c->generator, "uniform") == 0;
    json_t *missed = json_array();
    struct setting settings[OPTIONS_MAX];
    long long count;

    describe(c);
    for (size_t i = 0; i < c->count; i++)
        settings[i] = (struct setting){
            .key = c->set[i].key, .text = c->set[i].text, .where = {"contract", 2}};
    count = selftest_job(&plugin, settings, c->count,
                         is_uniform ? "uniform" : "few-distinct count=5", missed);
    REQUIRE(json_array_size(missed) == 0, "%zu missed, the first: %s", json_array_size(missed),
            json_string_value(json_array_get(missed, 0)));
    *runs += (int)count;
    *refused += count == 0;
    json_decref(missed);
}

START_TEST(test_selftest_of_every_choice)
{
    const struct config base = judged_config(sizes[0]);
    int runs = 0, refused = 0;

    visit_choices(&base, selftest_config, &runs, &refused);
    report("selftest of every choice", runs, refused);
    ck_assert(runs > refused || runs + refused == 0);
}
END_TEST

#endif
