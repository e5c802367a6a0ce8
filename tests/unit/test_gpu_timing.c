/*
 * Holds and graphs on a real device: what the pretend one of the other tests cannot show.
 */
#include "run/device.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 1000, READINGS = 21, BYTES = 32 << 20 };

static struct device *device;
static void *memory;
static struct why why;

#define REQUIRE(call) ck_assert_msg((call) == GPURUN_OK, "%s", why.text)

static enum gpurun_status read_once(void *user)
{
    (void)user;
    return device_api.read(device, memory, BYTES, &why);
}

/* What no graph can hold. */
static enum gpurun_status allocate_memory(void *user)
{
    void *block = NULL;
    const enum gpurun_status status = device_api.alloc(device, BYTES, &block, &why);

    (void)user;
    device_api.release(device, block);
    return status;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of readings of `count` reads, or of one graph, in microseconds of all together. */
static double median_us(int count, bool hold, struct device_graph *graph)
{
    double ms[READINGS];
    bool ran_out;

    for (int i = 0; i < READINGS; i++) {
        REQUIRE(device_api.timer_start(device, hold, &why));
        for (int k = 0; k < count; k++)
            REQUIRE(graph ? device_api.graph_launch(device, graph, &why) : read_once(NULL));
        REQUIRE(device_api.timer_stop(device, &ms[i], &ran_out, &why));
        ck_assert(!ran_out);
    }
    qsort(ms, READINGS, sizeof ms[0], compare_doubles);
    return 1e3 * ms[READINGS / 2];
}

START_TEST(test_a_graph_reads_as_a_batch)
{
    struct device_graph *graph;
    double batch, in_graph, alone, held;

    REQUIRE(device_api.graph_make(device, read_once, NULL, BATCH / 2, &graph, &why));
    batch = median_us(BATCH, false, NULL) / BATCH;
    in_graph = median_us(1, true, graph) / (BATCH / 2);
    alone = median_us(1, false, NULL);
    held = median_us(1, true, NULL);
    printf(
        "a read of 32 MiB: %.2f us in a batch of %d, %.2f us in a graph of %d, %.2f us by itself "
        "held, %.2f us not held\n",
        batch, BATCH, in_graph, BATCH / 2, held, alone);
    /* From launch to launch a stream leaves most of a microsecond, a graph less: 6.98 and 6.07 us on an H200. */
    ck_assert_msg(in_graph > 0.8 * batch && in_graph < 1.05 * batch, "too far apart");
    ck_assert_msg(held < 1.05 * alone, "the hold hides nothing");
    device_api.graph_free(graph);
}
END_TEST

START_TEST(test_a_hold_ends_by_itself)
{
    bool ran_out = false;
    double ms;

    REQUIRE(device_api.timer_start(device, true, &why));
    REQUIRE(read_once(NULL));
    REQUIRE(device_api.sync(device, &why)); /* as a variant that waits for the device would */
    REQUIRE(device_api.timer_stop(device, &ms, &ran_out, &why));
    ck_assert(ran_out);
    ck_assert_msg(ms < 50, "the hold is in the reading: %g ms", ms);
    REQUIRE(device_api.timer_start(device, true, &why));
    REQUIRE(read_once(NULL));
    REQUIRE(device_api.timer_stop(device, &ms, &ran_out, &why));
    ck_assert(!ran_out);
}
END_TEST

START_TEST(test_what_no_graph_can_hold)
{
    struct device_graph *graph;

    ck_assert_int_eq(device_api.graph_make(device, allocate_memory, NULL, 1, &graph, &why),
                     GPURUN_UNSUPPORTED);
    ck_assert_ptr_null(graph);
    ck_assert_str_ne(why.text, "");
    REQUIRE(read_once(NULL));
    REQUIRE(device_api.sync(device, &why));
    REQUIRE(allocate_memory(NULL));
}
END_TEST

START_TEST(test_an_empty_graph)
{
    struct device_graph *graph;

    REQUIRE(device_api.graph_make(device, read_once, NULL, 0, &graph, &why));
    printf("an empty reading: %.2f us on the stream, %.2f us of a graph of nothing\n",
           median_us(0, true, NULL), median_us(1, true, graph));
    device_api.graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpu_timing");
    TCase *tests = tcase_create("timing");
    SRunner *runner;
    int failed;

    if (device_api.count(&why) == 0) {
        printf("skipped: no device (%s)\n", why.text);
        return 77;
    }
    if (device_api.open(0, &device, &why) != GPURUN_OK ||
        device_api.alloc(device, BYTES, &memory, &why) != GPURUN_OK ||
        device_api.fill(device, memory, 0, BYTES, &why) != GPURUN_OK) {
        printf("%s\n", why.text);
        return EXIT_FAILURE;
    }
    tcase_add_test(tests, test_a_graph_reads_as_a_batch);
    tcase_add_test(tests, test_a_hold_ends_by_itself);
    tcase_add_test(tests, test_what_no_graph_can_hold);
    tcase_add_test(tests, test_an_empty_graph);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* no CUDA after a fork */
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    device_api.release(device, memory);
    device_api.close(device);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
