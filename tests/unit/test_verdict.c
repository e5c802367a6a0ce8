#include "report/verdict.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* low, median, high, samples of both; by hand, with a gap of 1 %. */
static const struct verdict_case {
    struct interval before, now;
    enum verdict verdict;
} verdict_cases[] = {
    {{99.9, 100, 100.1, 20}, {102.9, 103, 103.1, 20}, VERDICT_SLOWER},
    {{100, 100, 100, 20}, {101, 102, 103, 20}, VERDICT_SLOWER}, /* the gap itself counts */
    {{99.9, 100, 100.1, 20},
     {100.9, 101.5, 102, 20},
     VERDICT_UNCERTAIN}, /* the medians' gap does not */
    {{99.9, 100, 100.1, 20}, {100.8, 100.9, 101.2, 20}, VERDICT_UNCERTAIN}, /* apart, below it */
    {{99.9, 100, 100.1, 20}, {100.2, 100.3, 100.4, 20}, VERDICT_SAME},      /* surely below it */
    {{99.9, 100, 100.1, 20}, {99.9, 100, 100.1, 20}, VERDICT_SAME},
    {{90, 100, 104, 20}, {103, 106, 110, 20}, VERDICT_UNCERTAIN}, /* they overlap */
    {{95, 100, 105, 20}, {95, 100, 105, 20}, VERDICT_UNCERTAIN},  /* too wide for the same */
    {{95, 100, 103, 20}, {103, 106, 110, 20}, VERDICT_UNCERTAIN}, /* they touch */
    {{100, 100, 100, 6}, {200, 200, 200, 6}, VERDICT_SLOWER},
    {{100, 100, 100, 5}, {200, 200, 200, 20}, VERDICT_UNCERTAIN}, /* too few */
    {{100, 100, 100, 20}, {200, 200, 200, 5}, VERDICT_UNCERTAIN},
    {{100, 100, 100, 5}, {100, 100, 100, 5}, VERDICT_UNCERTAIN},
};

START_TEST(test_verdict)
{
    const struct verdict_case *c = &verdict_cases[_i];
    const enum verdict back = c->verdict == VERDICT_SLOWER ? VERDICT_FASTER : c->verdict;

    ck_assert_str_eq(verdict_name(verdict_of(&c->before, &c->now, 0.01)), verdict_name(c->verdict));
    ck_assert_str_eq(verdict_name(verdict_of(&c->now, &c->before, 0.01)), verdict_name(back));
}
END_TEST

/* No gap: any separation counts, and only two lone values can be the same. */
START_TEST(test_no_gap)
{
    const struct interval a = {1, 2, 3, 9}, b = {3.001, 3.002, 3.003, 9}, c = {2, 2, 2, 9};

    ck_assert_int_eq(verdict_of(&a, &b, 0), VERDICT_SLOWER);
    ck_assert_int_eq(verdict_of(&a, &a, 0), VERDICT_UNCERTAIN);
    ck_assert_int_eq(verdict_of(&c, &c, 0), VERDICT_SAME);
}
END_TEST

START_TEST(test_names)
{
    for (int i = 0; i < VERDICT_COUNT; i++)
        ck_assert_int_eq(verdict_from(verdict_name((enum verdict)i)), i);
    ck_assert_int_eq(verdict_from("SLOW"), VERDICT_COUNT);
}
END_TEST

START_TEST(test_list)
{
    unsigned bits = 0;
    struct why why;

    ck_assert_int_eq(verdict_parse_list("slower", &bits, &why), GPURUN_OK);
    ck_assert_uint_eq(bits, 1u << VERDICT_SLOWER);
    ck_assert_int_eq(verdict_parse_list(" failed , slower,failed", &bits, &why), GPURUN_OK);
    ck_assert_uint_eq(bits, 1u << VERDICT_SLOWER | 1u << VERDICT_FAILED);
}
END_TEST

static const char *const bad_lists[] = {"", ",", "slower,", "SLOWER", "slow", "slower failed", "x"};

START_TEST(test_bad_list)
{
    unsigned bits;
    struct why why;

    ck_assert_int_eq(verdict_parse_list(bad_lists[_i], &bits, &why), GPURUN_INVALID);
    ck_assert_ptr_nonnull(strstr(why.text, "is no verdict"));
    ck_assert_ptr_nonnull(strstr(why.text, "slower"));
}
END_TEST

START_TEST(test_gap)
{
    double gap;
    struct why why;

    ck_assert_int_eq(verdict_parse_gap("1%", &gap, &why), GPURUN_OK);
    ck_assert(gap == 0.01);
    ck_assert_int_eq(verdict_parse_gap("0.5%", &gap, &why), GPURUN_OK);
    ck_assert(gap == 0.005);
    ck_assert_int_eq(verdict_parse_gap("0%", &gap, &why), GPURUN_OK);
    ck_assert(gap == 0);
    ck_assert_int_eq(verdict_parse_gap("100%", &gap, &why), GPURUN_OK);
    ck_assert(gap == 1);
}
END_TEST

static const char *const bad_gaps[] = {
    "",     "%",    "1",   "0.01", "-1%",       "101%",
    "nan%", "inf%", "1%%", "x%",   "1 percent", "1.0000000000000000000000000000000000000000%"};

START_TEST(test_bad_gap)
{
    double gap = 7;
    struct why why;

    ck_assert_int_eq(verdict_parse_gap(bad_gaps[_i], &gap, &why), GPURUN_INVALID);
    ck_assert_ptr_nonnull(strstr(why.text, "write 1%"));
    ck_assert(gap == 7);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verdict");
    TCase *all = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(all, test_verdict, 0, sizeof verdict_cases / sizeof verdict_cases[0]);
    tcase_add_test(all, test_no_gap);
    tcase_add_test(all, test_names);
    tcase_add_test(all, test_list);
    tcase_add_loop_test(all, test_bad_list, 0, sizeof bad_lists / sizeof bad_lists[0]);
    tcase_add_test(all, test_gap);
    tcase_add_loop_test(all, test_bad_gap, 0, sizeof bad_gaps / sizeof bad_gaps[0]);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
