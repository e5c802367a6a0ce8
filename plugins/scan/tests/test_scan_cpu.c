/*
 * The baseline of scan on results that go past the cache, held against a running sum; and on reals, whose bits must
 * be the same for any number of threads.
 */
#include "scan.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMS = 5000077 };

/* Element i of the input; sums of them wrap in 32 bits. */
static int32_t value_at(int64_t i)
{
    return (int32_t)((uint32_t)i * 2654435761u);
}

static void *make_input(enum gpurun_dtype dtype)
{
    int64_t *in = malloc((ELEMS + 1) * sizeof(*in));

    for (int64_t i = 0; i < ELEMS; i++) {
        if (dtype == GPURUN_INT64)
            in[i] = value_at(i);
        else
            ((int32_t *)in)[i] = value_at(i);
    }
    return in;
}

static void expect_sums(const void *out, enum gpurun_dtype dtype, bool is_exclusive)
{
    uint64_t sum = 0;

    for (int64_t i = 0; i < ELEMS; i++) {
        const uint64_t before = sum, with = sum += (uint64_t)(int64_t)value_at(i);
        const uint64_t right = is_exclusive ? before : with;
        const uint64_t is =
            dtype == GPURUN_INT64 ? ((const uint64_t *)out)[i] : ((const uint32_t *)out)[i];

        if (is != (dtype == GPURUN_INT64 ? right : (uint32_t)right))
            ck_abort_msg("element %lld", (long long)i);
    }
}

/* Both kinds, results of 4 and 8 bytes, one part and two, at a multiple of 16 bytes and beside one. */
START_TEST(sums_past_the_cache)
{
    static const enum gpurun_dtype dtypes[][2] = {
        {GPURUN_INT32, GPURUN_INT32}, {GPURUN_INT32, GPURUN_INT64}, {GPURUN_INT64, GPURUN_INT64}};
    const enum gpurun_dtype dtype = dtypes[_i / 4][0], acc = dtypes[_i / 4][1];
    const size_t skip = gpurun_dtype_bytes(acc) * (size_t)(_i / 2 % 2);
    void *input = make_input(dtype);
    char *output = malloc((ELEMS + 1) * gpurun_dtype_bytes(acc));
    struct gpurun_tensor in = {.host = input}, out = {.host = output + skip};
    struct scan_options options = {
        .n = ELEMS, .dtype = dtype, .op = SCAN_SUM, .accumulate = dtype != acc};
    struct scan_state state = {.in = &in, .out = &out, .dtype = dtype, .acc = acc};
    struct gpurun_ctx ctx = {.options = &options, .state = &state, .threads = 1 + _i % 2};

    for (int is_exclusive = 0; is_exclusive < 2; is_exclusive++) {
        options.kind = is_exclusive ? SCAN_EXCLUSIVE : SCAN_INCLUSIVE;
        ck_assert_int_eq(scan_run_cpu(&ctx), GPURUN_OK);
        expect_sums(out.host, acc, is_exclusive);
    }
    free(input);
    free(output);
}
END_TEST

enum { REALS = 1000003 };

/* Reals of both signs and many magnitudes. */
static double real_at(int64_t i)
{
    return ldexp((double)value_at(i), (int)(i * 7 % 40) - 60);
}

static void *make_reals(enum gpurun_dtype dtype)
{
    double *in = malloc(REALS * sizeof(*in));

    for (int64_t i = 0; i < REALS; i++) {
        if (dtype == GPURUN_DOUBLE)
            in[i] = real_at(i);
        else
            ((float *)in)[i] = (float)real_at(i);
    }
    return in;
}

/* Sums as the proof bounds them, in long double, which holds these exactly enough. */
static void expect_reals(const void *in, const void *out, enum gpurun_dtype dtype,
                         enum gpurun_dtype acc, bool is_exclusive)
{
    const long double unit = acc == GPURUN_DOUBLE ? 0x1p-53L : 0x1p-24L;
    long double sum = 0, magnitude = 0;

    for (int64_t i = 0; i < REALS; i++) {
        const long double before = sum, x = dtype == GPURUN_DOUBLE
                                                ? (long double)((const double *)in)[i]
                                                : (long double)((const float *)in)[i];
        const long double is = acc == GPURUN_DOUBLE ? (long double)((const double *)out)[i]
                                                    : (long double)((const float *)out)[i];

        sum += x;
        magnitude += fabsl(x);
        if (!(fabsl(is - (is_exclusive ? before : sum)) <= SCAN_CHAIN * unit * magnitude))
            ck_abort_msg("element %lld", (long long)i);
    }
}

START_TEST(reals_by_any_number_of_threads)
{
    static const enum gpurun_dtype dtypes[][2] = {{GPURUN_FLOAT, GPURUN_FLOAT},
                                                  {GPURUN_FLOAT, GPURUN_DOUBLE},
                                                  {GPURUN_DOUBLE, GPURUN_DOUBLE}};
    const enum gpurun_dtype dtype = dtypes[_i / 2][0], acc = dtypes[_i / 2][1];
    const size_t bytes = REALS * gpurun_dtype_bytes(acc);
    struct gpurun_tensor in = {.host = make_reals(dtype)}, out = {.host = malloc(bytes)};
    struct scan_options options = {
        .n = REALS, .dtype = dtype, .op = SCAN_SUM, .accumulate = dtype != acc, .kind = _i % 2};
    struct scan_state state = {.in = &in, .out = &out, .dtype = dtype, .acc = acc, .is_real = true};
    struct gpurun_ctx ctx = {.options = &options, .state = &state, .threads = 1};
    void *alone = malloc(bytes);

    ck_assert_int_eq(scan_run_cpu(&ctx), GPURUN_OK);
    expect_reals(in.host, out.host, dtype, acc, _i % 2);
    memcpy(alone, out.host, bytes);
    for (ctx.threads = 2; ctx.threads <= 32; ctx.threads *= 2) {
        memset(out.host, 0xa5, bytes);
        ck_assert_int_eq(scan_run_cpu(&ctx), GPURUN_OK);
        ck_assert_msg(memcmp(alone, out.host, bytes) == 0, "%d threads", ctx.threads);
    }
    free(in.host);
    free(out.host);
    free(alone);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scan_cpu");
    TCase *large = tcase_create("large");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(large, 120);
    tcase_add_loop_test(large, sums_past_the_cache, 0, 12);
    tcase_add_loop_test(large, reals_by_any_number_of_threads, 0, 6);
    suite_add_tcase(suite, large);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
