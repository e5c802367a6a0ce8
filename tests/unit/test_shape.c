/* Statistics and signs of samples of known kinds, against NumPy and SciPy: tests/data/stats.txt. */
#include "measure/shape.h"
#include "measure/stats.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MAX = 200, NUMBERS = 14 };

enum { N, MIN, P5, Q1, MEDIAN, Q3, P95, MAX, MEAN, SD, MAD, OUTLIERS, FIRST_SLOW, BIMODAL };

/* As many numbers as stand there, up to `most`. */
static size_t read_numbers(const char *text, double *numbers, size_t most)
{
    size_t count = 0;
    char *end;

    for (; count < most; count++, text = end) {
        numbers[count] = strtod(text, &end);
        if (end == text)
            break;
    }
    return count;
}

static void check_near(const char *kind, const char *what, double value, double expected)
{
    ck_assert_msg(fabs(value - expected) <= 1e-12 * fabs(expected) + 1e-15,
                  "%s: %s %.17g, not %.17g", kind, what, value, expected);
}

static void check_line(char *line)
{
    const char *kind = strtok(line, "|"), *numbers = strtok(NULL, "|"), *list = strtok(NULL, "|");
    double expected[NUMBERS], values[SAMPLES_MAX];
    const size_t n = read_numbers(list, values, SAMPLES_MAX);
    const struct stats s = stats_of(values, n);

    ck_assert_uint_eq(read_numbers(numbers, expected, NUMBERS), NUMBERS);
    ck_assert_uint_eq(n, (size_t)expected[N]);
    check_near(kind, "min", s.min, expected[MIN]);
    check_near(kind, "p5", s.p5, expected[P5]);
    check_near(kind, "q1", s.q1, expected[Q1]);
    check_near(kind, "median", s.median, expected[MEDIAN]);
    check_near(kind, "q3", s.q3, expected[Q3]);
    check_near(kind, "p95", s.p95, expected[P95]);
    check_near(kind, "max", s.max, expected[MAX]);
    check_near(kind, "mean", s.mean, expected[MEAN]);
    check_near(kind, "sd", s.sd, expected[SD]);
    check_near(kind, "mad", s.mad, expected[MAD]);
    ck_assert_msg(shape_outliers(values, n) == (size_t)expected[OUTLIERS], "%s: outliers", kind);
    ck_assert_msg(shape_first_is_slow(values, n) == (expected[FIRST_SLOW] > 0), "%s: first", kind);
    ck_assert_msg(shape_is_bimodal(values, n) == (expected[BIMODAL] > 0), "%s: heaps", kind);
}

START_TEST(test_known_kinds)
{
    FILE *stream = fopen(TEST_DATA "/stats.txt", "r");
    char line[8192];
    int lines = 0;

    ck_assert_ptr_nonnull(stream);
    while (fgets(line, sizeof line, stream) != NULL)
        if (line[0] != '#') {
            check_line(line);
            lines++;
        }
    fclose(stream);
    ck_assert_int_ge(lines, 18);
}
END_TEST

START_TEST(test_half_width)
{
    const struct stats s = {.median = 10, .low = 9, .high = 12},
                       t = {.median = 10, .low = 7, .high = 11};

    ck_assert(stats_half_width(&s) == 2);
    ck_assert(stats_half_width(&t) == 3);
    ck_assert_uint_eq(shape_outliers(NULL, 0), 0);
    ck_assert(!shape_first_is_slow(NULL, 0) && !shape_is_bimodal(NULL, 0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shape");
    TCase *tests = tcase_create("shape");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, test_known_kinds);
    tcase_add_test(tests, test_half_width);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
