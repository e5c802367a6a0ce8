#include "measure/stats.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check_near(double value, double expected)
{
    ck_assert_msg(fabs(value - expected) <= 1e-14 * fabs(expected), "%.17g, not %.17g", value,
                  expected);
}

/* From numpy.percentile(x, [25, 50, 75], method='linear'), x.mean() and x.std(ddof=1) of NumPy 2. */
static const struct stats_case {
    size_t n;
    double values[11];
    double min, q1, median, q3, max, mean, sd;
} cases[] = {
    {1, {3}, 3, 3, 3, 3, 3, 3, 0},
    {2, {1, 2}, 1, 1.25, 1.5, 1.75, 2, 1.5, 0.7071067811865476},
    {3, {5, -1, 2.5}, -1, 0.75, 2.5, 3.75, 5, 2.1666666666666665, 3.013856886670854},
    {4, {4, 1, 3, 2}, 1, 1.75, 2.5, 3.25, 4, 2.5, 1.2909944487358056},
    {5, {0.1, 0.7, 0.3, 0.9, 0.5}, 0.1, 0.3, 0.5, 0.7, 0.9, 0.5, 0.31622776601683794},
    {6, {7, 7, 7, 1, 7, 7}, 1, 7, 7, 7, 7, 6, 2.449489742783178},
    {10, {9, 1, 8, 2, 7, 3, 6, 4, 5, 0}, 0, 2.25, 4.5, 6.75, 9, 4.5, 3.0276503540974917},
    {11,
     {0.013, 0.0129, 0.0131, 0.5, 0.01295, 0.0128, 0.0133, 0.0127, 0.0135, 0.013, 0.012},
     0.012,
     0.01285,
     0.013,
     0.0132,
     0.5,
     0.05720454545454545,
     0.1468591271500438},
};

START_TEST(test_quartiles_are_numpys)
{
    const struct stats_case *c = &cases[_i];
    double values[11];
    struct stats s;

    memcpy(values, c->values, sizeof values);
    s = stats_of(values, c->n);
    ck_assert_uint_eq(s.n, c->n);
    check_near(s.min, c->min);
    check_near(s.q1, c->q1);
    check_near(s.median, c->median);
    check_near(s.q3, c->q3);
    check_near(s.max, c->max);
    check_near(s.mean, c->mean);
    check_near(s.sd, c->sd);
    ck_assert_mem_eq(values, c->values, sizeof values); /* the samples keep their order */
}
END_TEST

START_TEST(test_nothing)
{
    const struct stats nothing = {0}, s = stats_of(NULL, 0);

    ck_assert_mem_eq(&s, &nothing, sizeof s);
}
END_TEST

/* For n = 1 to 100 the largest r with P(X < r) <= 1/40, X ~ B(n, 1/2), in exact fractions of Python;
 * order statistics r and n + 1 - r then hold the median with 95 %. 0: no such r. */
static const unsigned char ranks[100] = {
    0,  0,  0,  0,  0,  1,  1,  1,  2,  2,  2,  3,  3,  3,  4,  4,  5,  5,  5,  6,
    6,  6,  7,  7,  8,  8,  8,  9,  9,  10, 10, 10, 11, 11, 12, 12, 13, 13, 13, 14,
    14, 15, 15, 16, 16, 16, 17, 17, 18, 18, 19, 19, 19, 20, 20, 21, 21, 22, 22, 22,
    23, 23, 24, 24, 25, 25, 26, 26, 26, 27, 27, 28, 28, 29, 29, 29, 30, 30, 31, 31,
    32, 32, 33, 33, 33, 34, 34, 35, 35, 36, 36, 37, 37, 38, 38, 38, 39, 39, 40, 40,
};

START_TEST(test_confidence_ranks)
{
    const size_t n = (size_t)_i;
    const double low = ranks[n - 1] ? ranks[n - 1] : 1;
    double values[100];
    struct stats s;

    for (size_t i = 0; i < n; i++) /* 1 to n, from both ends by turns */
        values[i] = (double)(i % 2 ? n - i / 2 : i / 2 + 1);
    s = stats_of(values, n);
    ck_assert_msg(s.low == low, "n = %zu: from %g, not %g", n, s.low, low);
    ck_assert_msg(s.high == (double)n + 1 - low, "n = %zu: to %g", n, s.high);
}
END_TEST

START_TEST(test_large_n)
{
    enum { MANY = 100000 };
    double *values = malloc(MANY * sizeof *values);
    struct stats s;

    ck_assert_ptr_nonnull(values);
    for (int i = 0; i < MANY; i++)
        values[i] = i;
    s = stats_of(values, MANY);
    /* Exact binomials say rank 49690; the normal law, (n - 1.96 sqrt(n)) / 2, 49690.1. */
    ck_assert(s.low == 49689);
    ck_assert(s.high == 50310);
    free(values);
}
END_TEST

/* --- pairs --------------------------------------------------------------------------------------------- */

static struct samples samples_from(size_t n, const int *rounds, const double *values)
{
    struct samples s = {0};

    for (size_t i = 0; i < n; i++)
        samples_add(&s, rounds[i], values[i]);
    ck_assert_uint_eq(s.count, n);
    return s;
}

START_TEST(test_ratio_pairs_rounds)
{
    static const int over_rounds[] = {0, 1, 3, 4, 7}, under_rounds[] = {1, 2, 3, 4, 6, 8};
    static const double over_values[] = {100, 6, 10, 9, 100},
                        under_values[] = {2, 1000, 2.5, 9, 1000, 1000};
    struct samples over = samples_from(5, over_rounds, over_values);
    struct samples under = samples_from(6, under_rounds, under_values);
    struct stats s = stats_of_ratio(&over, &under);

    /* rounds 1, 3 and 4 are in both: 3, 4, 1 */
    ck_assert_uint_eq(s.n, 3);
    ck_assert(s.median == 3);
    ck_assert(s.min == 1);
    ck_assert(s.max == 4);
    ck_assert(s.low == 1);
    ck_assert(s.high == 4);
    s = stats_of_ratio(&under, &over);
    ck_assert_uint_eq(s.n, 3);
    check_near(s.median, 1 / 3.0);
    samples_free(&over);
    samples_free(&under);
    ck_assert_uint_eq(over.count, 0);
    ck_assert_ptr_null(over.values);
}
END_TEST

START_TEST(test_ratio_without_pairs)
{
    static const int even[] = {0, 2, 4}, odd[] = {1, 3, 5};
    static const double values[] = {1, 2, 3}, zeros[] = {0, 0, 0};
    struct samples a = samples_from(3, even, values), b = samples_from(3, odd, values);
    struct samples c = samples_from(3, even, zeros), none = {0};

    ck_assert_uint_eq(stats_of_ratio(&a, &b).n, 0);
    ck_assert_uint_eq(stats_of_ratio(&a, &none).n, 0);
    ck_assert_uint_eq(stats_of_ratio(&none, &a).n, 0);
    ck_assert_uint_eq(stats_of_ratio(&none, &none).n, 0);
    ck_assert_uint_eq(stats_of_ratio(&a, &c).n, 0); /* nothing is divided by zero */
    samples_free(&a);
    samples_free(&b);
    samples_free(&c);
}
END_TEST

START_TEST(test_samples_keep_their_order)
{
    struct samples s = {0};

    for (int i = 0; i < 1000; i++)
        samples_add(&s, 2 * i, 1000 - i);
    ck_assert_uint_eq(s.count, 1000);
    for (int i = 0; i < 1000; i++)
        if (s.rounds[i] != 2 * i || !(s.values[i] == 1000 - i))
            ck_abort_msg("sample %d is of round %d with %g", i, s.rounds[i], s.values[i]);
    samples_free(&s);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static Suite *stats_suite(void)
{
    Suite *suite = suite_create("stats");
    TCase *one = tcase_create("one"), *pairs = tcase_create("pairs");

    tcase_add_loop_test(one, test_quartiles_are_numpys, 0, COUNT(cases));
    tcase_add_test(one, test_nothing);
    tcase_add_loop_test(one, test_confidence_ranks, 1, COUNT(ranks) + 1);
    tcase_add_test(one, test_large_n);
    tcase_add_test(one, test_samples_keep_their_order);
    tcase_add_test(pairs, test_ratio_pairs_rounds);
    tcase_add_test(pairs, test_ratio_without_pairs);
    suite_add_tcase(suite, one);
    suite_add_tcase(suite, pairs);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(stats_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
