/*
 * selftest on verifiers that are blind in one way each: what they cannot see must be named, and nothing else.
 */
#include "run/selftest.h"
#include <check.h>
#include <math.h>
#include <string.h>

#undef fail /* Check's old name for ck_abort_msg; gpurun_fail has a member of that name */

enum { N = 1000, RUNS_MAX = 16 };

enum blindness {
    SEES_ALL,
    LOWEST_BIT,
    TOP_BIT,
    ORDER,
    COUNT, /* of equal elements */
    FIRST,
    LAST,
    STALE,
    NAN_PASSES,
    UNTOUCHED,
    BLIND_TO_ALL,
    REFUSES_ALL,
    FAILS,
};

struct options {
    int64_t dtype, sorted, strict;
};

struct state {
    struct gpurun_tensor *in, *out;
};

static enum blindness blindness;
static double bound;
static uint32_t kept[RUNS_MAX][N]; /* every answer that run_cpu gave */
static int kept_count;

static const char *const dtypes[] = {"int32", "float", NULL};

static const struct gpurun_option rows[] = {
    {.name = "dtype",
     .help = "element type",
     .type = GPURUN_OPTION_DTYPE,
     .offset = offsetof(struct options, dtype),
     .def = "int32",
     .choices = dtypes},
    {.name = "sorted",
     .help = "no: in any order",
     .type = GPURUN_OPTION_BOOL,
     .offset = offsetof(struct options, sorted),
     .def = "yes"},
    {.name = "strict",
     .help = "yes: setup refuses the job",
     .type = GPURUN_OPTION_BOOL,
     .offset = offsetof(struct options, strict),
     .def = "no"},
};

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    const struct options *o = ctx->options;
    struct state *s = ctx->state;
    const int64_t n = N;

    if (o->strict)
        return gpurun_fail(ctx, GPURUN_INVALID, "strict", "not this");
    s->in = gpurun_tensor(ctx, "in", GPURUN_IN, (enum gpurun_dtype)o->dtype, 1, &n);
    s->out = gpurun_tensor(ctx, "out", GPURUN_OUT, (enum gpurun_dtype)o->dtype, 1, &n);
    ctx->work.elements = N;
    return s->in && s->out ? GPURUN_OK : GPURUN_INVALID;
}

static enum gpurun_status run_cpu(struct gpurun_ctx *ctx)
{
    const struct state *s = ctx->state;

    if (blindness == FAILS)
        return gpurun_fail(ctx, GPURUN_ERROR, NULL, "no answer today");
    memcpy(s->out->host, s->in->host, s->in->bytes);
    ck_assert_int_lt(kept_count, RUNS_MAX);
    memcpy(kept[kept_count++], s->out->host, s->out->bytes);
    return GPURUN_OK;
}

static uint32_t word(const struct gpurun_tensor *t, int i)
{
    return ((const uint32_t *)t->host)[i];
}

static bool is_in(const struct gpurun_tensor *t, uint32_t w)
{
    for (int i = 0; i < N; i++)
        if (word(t, i) == w)
            return true;
    return false;
}

/* Sums of elements and of their squares. */
static bool same_multiset(const struct state *s)
{
    uint64_t sums[2] = {0, 0}, squares[2] = {0, 0};

    for (int i = 0; i < N; i++) {
        sums[0] += word(s->in, i);
        sums[1] += word(s->out, i);
        squares[0] += (uint64_t)word(s->in, i) * word(s->in, i);
        squares[1] += (uint64_t)word(s->out, i) * word(s->out, i);
    }
    return sums[0] == sums[1] && squares[0] == squares[1];
}

static bool is_kept(const struct state *s)
{
    for (int i = 0; i < kept_count; i++)
        if (memcmp(kept[i], s->out->host, s->out->bytes) == 0)
            return true;
    return false;
}

/* Reals may be off by `bound`; with NAN_PASSES they are compared the wrong way round. */
static bool is_close(const struct state *s, int i)
{
    const double error =
        fabs((double)((const float *)s->in->host)[i] - (double)((const float *)s->out->host)[i]);

    return blindness == NAN_PASSES ? !(error > bound) : error <= bound;
}

static bool is_right(const struct state *s, int i)
{
    const uint32_t in = word(s->in, i), out = word(s->out, i);

    if (s->in->dtype == GPURUN_FLOAT)
        return is_close(s, i);
    if (blindness == LOWEST_BIT)
        return in >> 1 == out >> 1;
    if (blindness == TOP_BIT)
        return in << 1 == out << 1;
    if (blindness == COUNT)
        return is_in(s->in, out);
    if (blindness == UNTOUCHED && out == 0xA5A5A5A5)
        return true;
    return in == out;
}

static enum gpurun_status verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct state *s = ctx->state;
    const struct options *o = ctx->options;

    proof->detects = "what it sees";
    proof->checked = N;
    proof->bound = bound;
    if (blindness == BLIND_TO_ALL)
        return GPURUN_OK;
    if (blindness == REFUSES_ALL)
        gpurun_wrong(ctx, proof, "never right");
    if ((blindness == ORDER || !o->sorted) && s->in->dtype == GPURUN_INT32) {
        if (!same_multiset(s))
            gpurun_wrong(ctx, proof, "other elements");
        return GPURUN_OK;
    }
    if (blindness == STALE && is_kept(s))
        return GPURUN_OK;
    for (int i = blindness == FIRST; i < N - (blindness == LAST); i++)
        if (!is_right(s, i))
            gpurun_wrong(ctx, proof, "element %d", i);
    return GPURUN_OK;
}

static void teardown(struct gpurun_ctx *ctx)
{
    (void)ctx;
}

static const struct gpurun_plugin table = {
    .magic = GPURUN_MAGIC,
    .abi_major = GPURUN_ABI_MAJOR,
    .abi_minor = GPURUN_ABI_MINOR,
    .struct_size = sizeof(struct gpurun_plugin),
    .option_size = sizeof rows[0],
    .option_count = GPURUN_COUNT(rows),
    .variant_size = sizeof(struct gpurun_variant),
    .name = "copy",
    .summary = "out = in",
    .options = rows,
    .options_bytes = sizeof(struct options),
    .state_bytes = sizeof(struct state),
    .memory = GPURUN_MEMORY_ALL,
    .memory_why = "it makes no difference",
    .setup = setup,
    .run_cpu = run_cpu,
    .verify = verify,
    .teardown = teardown,
};

static const struct plugin copy = {.table = &table,
                                   .options = {rows, GPURUN_COUNT(rows), sizeof rows[0]}};

static bool is_named(const json_t *missed, const char *what)
{
    for (size_t i = 0; i < json_array_size(missed); i++)
        if (strstr(json_string_value(json_array_get(missed, i)), what) != NULL)
            return true;
    return false;
}

/* With these settings on uniform data; `names`, ended by NULL, are all that is missed. */
static void expect_missed(enum blindness blind, struct setting *settings, size_t count,
                          const char *const *names)
{
    json_t *missed = json_array();
    long long spoilt;

    blindness = blind;
    kept_count = 0;
    spoilt = selftest_job(&copy, settings, count, "uniform", missed);
    ck_assert_int_gt(spoilt, 0);
    for (int i = 0; names[i] != NULL; i++)
        ck_assert_msg(is_named(missed, names[i]), "blindness %d: '%s' is not named", (int)blind,
                      names[i]);
    for (size_t i = 0; i < json_array_size(missed); i++) {
        const char *text = json_string_value(json_array_get(missed, i));
        bool is_expected = false;

        for (int k = 0; names[k] != NULL; k++)
            is_expected = is_expected || strstr(text, names[k]) != NULL;
        ck_assert_msg(is_expected, "blindness %d: %s", (int)blind, text);
    }
    json_decref(missed);
}

static const struct {
    enum blindness blind;
    const char *names[12];
} cases[] = {
    {SEES_ALL, {NULL}},
    {LOWEST_BIT, {"one bit flipped in out", NULL}},
    {TOP_BIT, {"top bits flipped in out", NULL}},
    {ORDER, {"two elements swapped in out", "two neighbours swapped in out", NULL}},
    {COUNT,
     {"two elements swapped in out", "two neighbours swapped in out",
      "one lost and one doubled in out", "elements shifted by one in out", NULL}},
    {FIRST,
     {"one bit flipped in out", "top bits flipped in out", "one element poisoned in out", NULL}},
    {LAST,
     {"one bit flipped in out", "top bits flipped in out", "one element poisoned in out",
      "one lost and one doubled in out", NULL}},
    {STALE, {"the answer to other data in all", NULL}},
    {UNTOUCHED, {"one element poisoned in out", "untouched output in out", NULL}},
    {BLIND_TO_ALL,
     {"one bit flipped in out", "top bits flipped in out", "one element poisoned in out",
      "two elements swapped in out", "two neighbours swapped in out",
      "one lost and one doubled in out", "elements shifted by one in out",
      "elements shifted back in out", "untouched output in out", "the answer to other data in all",
      NULL}},
};

START_TEST(what_a_verifier_cannot_see_is_named)
{
    bound = 0;
    expect_missed(cases[_i].blind, NULL, 0, cases[_i].names);
}
END_TEST

static struct setting set(const char *key, const char *text)
{
    return (struct setting){.key = key, .text = text, .where = {"test", 1}};
}

/* Uniform reals are in [0, 1): what changes them by up to twice the bound may be right. */
START_TEST(what_is_still_right_is_not_missed)
{
    static const char *const none[] = {NULL}, *const nan[] = {"a NaN in out", NULL};
    struct setting real = set("dtype", "float"), unsorted = set("sorted", "no");

    bound = 0.3;
    expect_missed(SEES_ALL, &real, 1, none);
    expect_missed(NAN_PASSES, &real, 1, nan);
    bound = 0;
    expect_missed(SEES_ALL, &real, 1, none);
    expect_missed(SEES_ALL, &unsorted, 1, none);
}
END_TEST

static void expect_one_text(enum blindness blind, const char *text)
{
    json_t *missed = json_array();

    blindness = blind;
    kept_count = 0;
    ck_assert_int_eq(selftest_job(&copy, NULL, 0, "uniform", missed), 0);
    ck_assert_msg(is_named(missed, text), "'%s' is not named", text);
    json_decref(missed);
}

START_TEST(a_plugin_that_cannot_be_tested_is_named)
{
    bound = 0;
    expect_one_text(REFUSES_ALL, "verify = full: the right answer was refused in all");
    expect_one_text(REFUSES_ALL, "verify = certify: the right answer was refused in all");
    expect_one_text(FAILS, "no answer today");
}
END_TEST

/* Where the job is the tester's own choice, a refusal by setup is no fault. */
START_TEST(a_refused_job_is_no_miss)
{
    struct setting strict = set("strict", "yes");
    json_t *missed = json_array();

    blindness = SEES_ALL;
    ck_assert_int_eq(selftest_job(&copy, &strict, 1, "uniform", missed), 0);
    ck_assert_uint_eq(json_array_size(missed), 0);
    json_decref(missed);
}
END_TEST

START_TEST(the_whole_plugin)
{
    json_t *result;

    bound = 0;
    blindness = SEES_ALL;
    kept_count = 0;
    result = selftest_plugin(&copy);
    ck_assert_int_ge(json_integer_value(json_object_get(result, "corruptions")), 60);
    ck_assert_uint_eq(json_array_size(json_object_get(result, "missed")), 0);
    json_decref(result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("selftest");
    TCase *tests = tcase_create("selftest");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tests, what_a_verifier_cannot_see_is_named, 0, (int)GPURUN_COUNT(cases));
    tcase_add_test(tests, what_is_still_right_is_not_missed);
    tcase_add_test(tests, a_plugin_that_cannot_be_tested_is_named);
    tcase_add_test(tests, a_refused_job_is_no_miss);
    tcase_add_test(tests, the_whole_plugin);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
