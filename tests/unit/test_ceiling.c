/* The yardsticks: what they read, copy and fill, of how many bytes, and why there are none. The device is the test's own. */
#include "run/ceiling.h"

#include "run/run.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { L2_BYTES = 1 << 14, FILL = 0x5A, PIECE = 1 << 14 /* where a copy goes begins at one */ };

/* --- a device of host memory ------------------------------------------------------------------------------ */

static size_t device_bytes;
static bool device_is_full;

static size_t free_bytes(struct device *d)
{
    (void)d;
    return device_bytes;
}

static enum gpurun_status alloc(struct device *d, size_t bytes, void **out, struct why *why)
{
    (void)d;
    *out = device_is_full ? NULL : malloc(bytes);
    return *out ? GPURUN_OK : why_fail(why, GPURUN_NO_MEMORY, "the device is full");
}

static void release(struct device *d, void *pointer)
{
    (void)d;
    free(pointer);
}

static enum gpurun_status fill(struct device *d, void *pointer, int byte, size_t bytes,
                               struct why *why)
{
    (void)d;
    (void)why;
    memset(pointer, byte, bytes);
    return GPURUN_OK;
}

static bool can_hold(struct device *d, struct why *why)
{
    (void)d;
    (void)why;
    return true;
}

const struct device_api device_api = {.free_bytes = free_bytes,
                                      .alloc = alloc,
                                      .release = release,
                                      .fill = fill,
                                      .can_hold = can_hold};

/* --- a run -------------------------------------------------------------------------------------------------- */

static struct run run;
static struct ceiling *ceiling;

static void begin(enum memory_side side, double read, double written, int threads)
{
    run.ctx.work = (struct gpurun_work){.bytes_read = read, .bytes_written = written};
    run.ctx.device.l2_bytes = L2_BYTES;
    run.ctx.threads = threads;
    ceiling = &run.ceilings[side];
    ck_assert_int_eq(ceiling_begin(&run, side), GPURUN_OK);
}

static void end(enum memory_side side)
{
    ceiling_end(&run, side);
    ck_assert_ptr_null(ceiling->memory);
    for (int y = 0; y < YARDSTICKS; y++)
        samples_free(&ceiling->ms[y]);
    memset(&run, 0, offsetof(struct run, cases));
}

/* --- what they do --------------------------------------------------------------------------------------------- */

static const size_t sizes[] = {32, 4000, 1 << 16, (1 << 16) + 32, (1 << 18) + 96, 3000000};

/* Of all three, only the one that fits is read, and its round is kept. */
static void check_samples(enum yardstick kind)
{
    for (int y = 0; y < YARDSTICKS; y++) {
        ck_assert_int_eq(ceiling_read(&run, SIDE_HOST, (enum yardstick)y, 7), GPURUN_OK);
        ck_assert_uint_eq(ceiling->ms[y].count, y == (int)kind);
    }
    ck_assert_int_eq(ceiling->ms[kind].rounds[0], 7);
    ck_assert(ceiling->ms[kind].values[0] >= 0);
}

START_TEST(test_copies)
{
    const size_t bytes = sizes[_i], half = bytes / 2;

    for (int threads = 1; threads <= 3; threads++) {
        char *memory, *other;

        begin(SIDE_HOST, (double)half, (double)half, threads);
        ck_assert_uint_eq(ceiling->bytes, bytes);
        memory = ceiling->memory;
        other = memory + (half + PIECE - 1) / PIECE * PIECE;
        for (int past_caches = 0; past_caches < 2; past_caches++) {
            ceiling->past_caches = past_caches;
            for (size_t i = 0; i < half; i++)
                memory[i] = (char)(i * 7 + i / 251 + (size_t)past_caches);
            memset(other, 0, half);
            ck_assert_int_eq(ceiling_read(&run, SIDE_HOST, YARDSTICK_COPY, 0), GPURUN_OK);
            ck_assert_mem_eq(other, memory, half);
        }
        samples_free(&ceiling->ms[YARDSTICK_COPY]);
        check_samples(YARDSTICK_COPY);
        end(SIDE_HOST);
    }
}
END_TEST

START_TEST(test_fills)
{
    for (int threads = 1; threads <= 3; threads++) {
        char *memory;

        begin(SIDE_HOST, 0, (double)sizes[_i], threads);
        ck_assert_uint_eq(ceiling->bytes, sizes[_i]);
        memory = ceiling->memory;
        for (int past_caches = 0; past_caches < 2; past_caches++) {
            size_t filled = 0;

            ceiling->past_caches = past_caches;
            memset(memory, 0, sizes[_i]);
            ck_assert_int_eq(ceiling_read(&run, SIDE_HOST, YARDSTICK_WRITE, 0), GPURUN_OK);
            for (size_t i = 0; i < sizes[_i]; i++)
                filled += memory[i] == FILL;
            ck_assert_uint_eq(filled, sizes[_i]);
        }
        samples_free(&ceiling->ms[YARDSTICK_WRITE]);
        check_samples(YARDSTICK_WRITE);
        end(SIDE_HOST);
    }
}
END_TEST

/* Twice as many bytes take longer: they are all read. The shortest of many counts. */
static double read_ms(size_t bytes)
{
    struct stats s;

    begin(SIDE_HOST, (double)bytes, 8, 1);
    ck_assert_uint_eq(ceiling->bytes, bytes);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(ceiling_read(&run, SIDE_HOST, YARDSTICK_READ, i), GPURUN_OK);
    s = stats_of(ceiling->ms[YARDSTICK_READ].values, 100);
    samples_free(&ceiling->ms[YARDSTICK_READ]);
    check_samples(YARDSTICK_READ);
    end(SIDE_HOST);
    return s.min;
}

START_TEST(test_reads)
{
    ck_assert(read_ms(1 << 20) < 0.5 * read_ms(1 << 23));
}
END_TEST

/* --- how many bytes, and why there are none --------------------------------------------------------------------- */

START_TEST(test_too_few_bytes)
{
    static const double none[] = {0, 31, -1e9, NAN};

    for (int side = 0; side < SIDES; side++)
        for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
            begin((enum memory_side)side, none[i], 0, 1);
            ck_assert_uint_eq(ceiling->bytes, 0);
            ck_assert_str_eq(ceiling->note, "no limit: the job moves fewer than 32 bytes");
            ck_assert_int_eq(ceiling_read(&run, (enum memory_side)side, YARDSTICK_READ, 0),
                             GPURUN_OK);
            ck_assert_uint_eq(ceiling->ms[YARDSTICK_READ].count, 0);
            end((enum memory_side)side);
        }
}
END_TEST

/* Half of what is free, unless that could lie in the cache. */
START_TEST(test_little_memory)
{
    device_bytes = 100000;
    begin(SIDE_DEVICE, 50000, 0, 1);
    ck_assert_uint_eq(ceiling->bytes, 49984);
    ck_assert_str_eq(ceiling->note, "");
    end(SIDE_DEVICE);
    begin(SIDE_DEVICE, 80000, 8, 1);
    ck_assert_uint_eq(ceiling->bytes, 49984);
    ck_assert_str_eq(ceiling->note, "the limit is of 49984 bytes, not 80008: no more are free");
    end(SIDE_DEVICE);
    device_bytes = 4 * L2_BYTES;
    begin(SIDE_DEVICE, 80000, 8, 1);
    ck_assert_uint_eq(ceiling->bytes, 0);
    ck_assert_str_eq(ceiling->note, "no limit: 80008 bytes are not free a second time");
    end(SIDE_DEVICE);
    run.memory_bytes = 1;
    begin(SIDE_HOST, 80000, 8, 1);
    ck_assert_uint_eq(ceiling->bytes, 0);
    ck_assert_str_eq(ceiling->note, "no limit: 80008 bytes are not free a second time");
    end(SIDE_HOST);
}
END_TEST

START_TEST(test_no_memory)
{
    device_bytes = 1 << 20;
    device_is_full = true;
    begin(SIDE_DEVICE, 1000, 0, 1);
    ck_assert_uint_eq(ceiling->bytes, 0);
    ck_assert_str_eq(ceiling->note, "no limit: the device is full");
    end(SIDE_DEVICE);
}
END_TEST

/* What the system says is free is refused all the same. */
START_TEST(test_refused_memory)
{
    struct rlimit most = {.rlim_max = RLIM_INFINITY};
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    ck_assert(f != NULL && fscanf(f, "%lu", &pages) == 1 && fclose(f) == 0);
    most.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + 100000000;
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &most), 0);
    begin(SIDE_HOST, 200000000, 0, 1);
    ck_assert_uint_eq(ceiling->bytes, 0);
    ck_assert_str_eq(ceiling->note, "no limit: 200000000 bytes of host memory");
    end(SIDE_HOST);
}
END_TEST

int main(void)
{
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    Suite *suite = suite_create("ceiling");
    TCase *work = tcase_create("work"), *memory = tcase_create("memory");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(work, test_copies, 0, SIZES);
    tcase_add_loop_test(work, test_fills, 0, SIZES);
    tcase_add_test(work, test_reads);
    tcase_add_test(memory, test_too_few_bytes);
    tcase_add_test(memory, test_little_memory);
    tcase_add_test(memory, test_no_memory);
    tcase_add_test(memory, test_refused_memory);
    suite_add_tcase(suite, work);
    suite_add_tcase(suite, memory);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
