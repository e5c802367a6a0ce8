/*
 * How often work runs for one reading: on a device whose readings the test makes up, and on the host, whose earlier one it
 * does.
 */
#include "run/timing.h"

#include "run/run.h"
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

enum { L2_BYTES = 1 << 20 };

static double reads_ms;
static int runs;

static enum gpurun_status timer_start(struct device *d, bool hold, struct why *why)
{
    (void)d;
    (void)hold;
    (void)why;
    return GPURUN_OK;
}

static enum gpurun_status timer_stop(struct device *d, double *ms, bool *ran_out, struct why *why)
{
    (void)d;
    (void)why;
    *ms = reads_ms;
    *ran_out = false;
    return GPURUN_OK;
}

static bool can_hold(struct device *d, struct why *why)
{
    (void)d;
    (void)why;
    return true;
}

const struct device_api device_api = {
    .timer_start = timer_start, .timer_stop = timer_stop, .can_hold = can_hold};

static enum gpurun_status work(struct run *run, void *user)
{
    (void)run;
    (void)user;
    runs++;
    return GPURUN_OK;
}

/* Runs in each of five readings of work of so many bytes that reads `ms`, the last digit first. */
static int runs_in_readings(double bytes, double ms)
{
    struct run *run = calloc(1, sizeof *run);
    struct timing t = {.run = run, .work = work, .bytes = bytes};
    int digits = 0;

    ck_assert_ptr_nonnull(run);
    run->ctx.device.l2_bytes = L2_BYTES;
    reads_ms = ms;
    ck_assert_int_eq(timing_prepare(&t), GPURUN_OK);
    for (int i = 0, place = 1; i < 5; i++, place *= 10) {
        double read;

        runs = 0;
        ck_assert_int_eq(timing_read(&t, &read), GPURUN_OK);
        ck_assert_double_eq(read, ms);
        digits += runs * place;
    }
    free(run);
    return digits;
}

/* Runs in the first reading on the host of work that `ms` is known of, of so much of its cache. */
static int runs_on_host(double caches, double ms)
{
    struct run *run = calloc(1, sizeof *run);
    struct timing t = {.run = run, .work = work, .side = SIDE_HOST, .last_ms = ms};
    double read;

    ck_assert_ptr_nonnull(run);
    run->ctx.device.l2_bytes = L2_BYTES; /* of no account */
    t.bytes = caches * timing_cache_bytes(run, SIDE_HOST);
    ck_assert_int_eq(timing_prepare(&t), GPURUN_OK);
    runs = 0;
    ck_assert_int_eq(timing_read(&t, &read), GPURUN_OK);
    ck_assert(read >= 0 && read < 60e3);
    ck_assert_double_eq(t.last_ms, read);
    free(run);
    return runs;
}

START_TEST(test_on_the_host)
{
    static struct run none;

    if (!(timing_cache_bytes(&none, SIDE_HOST) > 0))
        return; /* the system does not say */
    ck_assert_int_eq(runs_on_host(2, 0), 2);
    ck_assert_int_eq(runs_on_host(2, 1.99), 4);
    ck_assert_int_eq(runs_on_host(2, 2), 2);
    ck_assert_int_eq(runs_on_host(2, 99), 2);
    ck_assert_int_eq(runs_on_host(2, 100), 1);
    ck_assert_int_eq(runs_on_host(2.01, 0), 1);
    ck_assert_int_eq(runs_on_host(2.01, 1.99), 2);
    ck_assert_int_eq(runs_on_host(2.01, 2), 1);
}
END_TEST

START_TEST(test_small_work_runs_behind_itself)
{
    ck_assert_int_eq(runs_in_readings(2 * L2_BYTES, 0.01), 22222);
    ck_assert_int_eq(runs_in_readings(2 * L2_BYTES, 100), 22222);
}
END_TEST

/* What it takes is not known before the first reading. */
START_TEST(test_large_work_runs_behind_itself_unless_it_is_long)
{
    ck_assert_int_eq(runs_in_readings(2 * L2_BYTES + 1, 1.99), 22221);
    ck_assert_int_eq(runs_in_readings(2 * L2_BYTES + 1, 2), 11111);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("timing");
    TCase *tests = tcase_create("timing");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, test_small_work_runs_behind_itself);
    tcase_add_test(tests, test_on_the_host);
    tcase_add_test(tests, test_large_work_runs_behind_itself_unless_it_is_long);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
