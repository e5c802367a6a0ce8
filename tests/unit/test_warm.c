/*
 * Which devices a worker opens and closes, on devices that only count.
 */
#include "run/warm.h"

#include <check.h>
#include <stdlib.h>

struct device {
    int index;
};

static int opened, closed;
static enum gpurun_status sync_status, open_status;

static enum gpurun_status info(int index, struct device_info *out, struct why *why)
{
    (void)why;
    *out = (struct device_info){.limits = {.sm_count = 100 + index}};
    return GPURUN_OK;
}

static enum gpurun_status open_device(int index, struct device **out, struct why *why)
{
    static struct device devices[2] = {{0}, {1}};

    if (open_status != GPURUN_OK)
        return why_fail(why, open_status, "no room");
    opened++;
    *out = &devices[index];
    return GPURUN_OK;
}

static void close_device(struct device *d)
{
    (void)d;
    closed++;
}

static enum gpurun_status sync_stream(struct device *d, struct why *why)
{
    (void)d;
    (void)why;
    return sync_status;
}

const struct device_api device_api = {
    .info = info, .open = open_device, .close = close_device, .sync = sync_stream};

static void expect_warm(int index, int wanted_opened, int wanted_closed)
{
    struct device *device;
    struct device_info out;
    struct why why;

    ck_assert_int_eq(warm_open(index, &device, &out, &why), GPURUN_OK);
    ck_assert_int_eq(device->index, index);
    ck_assert_int_eq(out.limits.sm_count, 100 + index);
    ck_assert_int_eq(opened, wanted_opened);
    ck_assert_int_eq(closed, wanted_closed);
}

START_TEST(test_one_stays_open)
{
    expect_warm(0, 1, 0);
    expect_warm(0, 1, 0);
}
END_TEST

START_TEST(test_another_takes_its_place)
{
    expect_warm(0, 1, 0);
    expect_warm(1, 2, 1);
    expect_warm(0, 3, 2);
}
END_TEST

/* Nothing of it can be given back. */
START_TEST(test_one_that_was_reset_is_forgotten)
{
    expect_warm(0, 1, 0);
    sync_status = GPURUN_DEVICE;
    expect_warm(0, 2, 0);
    sync_status = GPURUN_OK;
    expect_warm(0, 2, 0);
}
END_TEST

START_TEST(test_one_that_cannot_be_opened_is_tried_again)
{
    struct device *device;
    struct device_info out;
    struct why why;

    open_status = GPURUN_DEVICE;
    ck_assert_int_eq(warm_open(0, &device, &out, &why), GPURUN_DEVICE);
    ck_assert_str_eq(why.text, "no room");
    open_status = GPURUN_OK;
    expect_warm(0, 1, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("warm");
    TCase *tests = tcase_create("warm");
    SRunner *runner;
    int failed;

    tcase_add_test(tests,
                   test_one_stays_open); /* each in a process of its own, where nothing is open */
    tcase_add_test(tests, test_another_takes_its_place);
    tcase_add_test(tests, test_one_that_was_reset_is_forgotten);
    tcase_add_test(tests, test_one_that_cannot_be_opened_is_tried_again);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
