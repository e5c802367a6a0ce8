#include "job/sweep.h"

#include "job/memory.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void check_values(const char *text, bool ranges, const char *const *values, size_t count)
{
    struct sweep sweep;
    struct why why = {""};
    const enum gpurun_status status = sweep_parse(text, ranges, &sweep, &why);

    ck_assert_msg(status == GPURUN_OK, "%s: %s", text, why.text);
    ck_assert_msg(sweep.count == count, "%s: %zu values, not %zu", text, sweep.count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(strcmp(sweep.values[i], values[i]) == 0, "%s: %s, not %s", text,
                      sweep.values[i], values[i]);
    sweep_free(&sweep);
    ck_assert_uint_eq(sweep.count, 0);
}

/* --- lists ------------------------------------------------------------------------------------------ */

static const struct list_case {
    const char *text;
    bool ranges;
    const char *values[4];
} list_cases[] = {
    {"a, b", true, {"a", "b"}},
    {"a,b\t,  c d", true, {"a", "b", "c d"}},
    {"1K, 1000", true, {"1K", "1000"}}, /* as written, not what it means */
    {"0, 0x0", true, {"0", "0x0"}},
    {"1 2 1 / 2 4 2, box5", true, {"1 2 1 / 2 4 2", "box5"}},
    {"uniform min=0 max=9, constant value=7", false, {"uniform min=0 max=9", "constant value=7"}},
    {"file:../a.npy, uniform", false, {"file:../a.npy", "uniform"}},
    {"1..4*2, x", false, {"1..4*2", "x"}}, /* no ranges here */
    {"../a, b..c", true, {"../a", "b..c"}},
    {"inf, -inf, nan", true, {"inf", "-inf", "nan"}},
    {"b, a", true, {"b", "a"}},
    {"1..4*2, 3", true, {"1", "2", "4", "3"}},
};

START_TEST(test_list)
{
    const struct list_case *c = &list_cases[_i];
    size_t count = 0;

    while (count < 4 && c->values[count] != NULL)
        count++;
    ck_assert(sweep_is_one(c->text, c->ranges));
    check_values(c->text, c->ranges, c->values, count);
}
END_TEST

static const struct single_case {
    const char *text;
    bool ranges;
} single_cases[] = {
    {"", true},         {"100M", true},     {"uniform min=0", true}, {"..", true},
    {"../a.npy", true}, {"..5*2", true},    {"x..y", true},          {"1..4*2", false},
    {"1.5", true},      {"a..5+1", true},   {"1 2 1 / 2 4 2", true}, {"constant:0.5", true},
    {"1x..2+1", true},  {"file:1..", true},
};

START_TEST(test_no_sweep)
{
    ck_assert_msg(!sweep_is_one(single_cases[_i].text, single_cases[_i].ranges), "%s",
                  single_cases[_i].text);
}
END_TEST

/* --- ranges, as Python has them ----------------------------------------------------------------------- */

START_TEST(test_ranges_of_python)
{
    FILE *stream = fopen(TEST_DATA "/sweep.txt", "r");
    char line[4096];
    int lines = 0;

    ck_assert_ptr_nonnull(stream);
    for (; fgets(line, sizeof line, stream) != NULL; lines++) {
        const char *values[400];
        const char *text = strtok(line, "|\n"), *value;
        size_t count = 0;

        while ((value = strtok(NULL, "|\n")) != NULL && count < 400)
            values[count++] = value;
        ck_assert_uint_gt(count, 0);
        ck_assert_msg(sweep_is_one(text, true), "%s", text);
        check_values(text, true, values, count);
    }
    fclose(stream);
    ck_assert_int_ge(lines, 300);
}
END_TEST

START_TEST(test_as_many_as_may_be)
{
    struct sweep sweep;
    struct why why;

    ck_assert_int_eq(sweep_parse("1..100000+1", true, &sweep, &why), GPURUN_OK);
    ck_assert_uint_eq(sweep.count, 100000);
    ck_assert_str_eq(sweep.values[0], "1");
    ck_assert_str_eq(sweep.values[99999], "100000");
    sweep_free(&sweep);
}
END_TEST

START_TEST(test_a_list_too_long)
{
    char *text = allocate(700000, 1), *end = text;
    struct sweep sweep;
    struct why why;

    for (int i = 0; i <= 100000; i++)
        end += sprintf(end, "%s%d", i ? "," : "", i);
    ck_assert_int_eq(sweep_parse(text, true, &sweep, &why), GPURUN_INVALID);
    ck_assert_str_eq(why.text, "lists more than 100000 values");
    sweep_free(&sweep);
    free(text);
}
END_TEST

/* --- faults --------------------------------------------------------------------------------------------- */

#define NINES "99999999999999999999999999999999999999999999999999999999999999999"

static const struct fault_case {
    const char *text, *reason;
} fault_cases[] = {
    {"1,,2", "an element of the list is empty: write a, b, c"},
    {",1", "an element of the list is empty: write a, b, c"},
    {"1, ", "an element of the list is empty: write a, b, c"},
    {",", "an element of the list is empty: write a, b, c"},
    {"1, 2, 1", "'1' is listed twice: write it once"},
    {"4, 1..8*2", "'4' is listed twice: write it once"},
    {"1,000", "'000' begins with 0: commas part values; write 1_000 or 1K for a number"},
    {"1,024", "'024' begins with 0: commas part values; write 1_000 or 1K for a number"},
    {"1..10", "'1..10' is a range without a step: write FROM..TO*FACTOR or FROM..TO+STEP"},
    {"1..10+", "'1..10+' is a range without a step: write FROM..TO*FACTOR or FROM..TO+STEP"},
    {"1..10*", "'1..10*' is a range without a step: write FROM..TO*FACTOR or FROM..TO+STEP"},
    {"1..10+" NINES,
     "'1..10+" NINES "' is a range without a step: write FROM..TO*FACTOR or FROM..TO+STEP"},
    {"1..+2", "'1..+2' is no range: write FROM..TO*FACTOR or FROM..TO+STEP"},
    {"1..*2", "'1..*2' is no range: write FROM..TO*FACTOR or FROM..TO+STEP"},
    {"1..x*2", "'x' is not a number (write 0.25, 1e-3, 100M, inf or nan)"},
    {"1..9+x", "'x' is not a number (write 0.25, 1e-3, 100M, inf or nan)"},
    {"1..9*2*2", "'2*2' is not a number (write 0.25, 1e-3, 100M, inf or nan)"},
    {"1..inf*2", "'inf' is not a whole number (write 20, 1e8, 100M or 4Ki)"},
    {"nan..5+1", "'nan' is not a whole number (write 20, 1e8, 100M or 4Ki)"},
    {"0.5..inf*2", "'inf' has too many digits for a range"},
    {"1..9*1.5", "'1.5' is not a whole number (write 20, 1e8, 100M or 4Ki)"},
    {"0..1+1e-16", "'1e-16' has too many digits for a range"},
    {"0.1..1e18*2", "'1e18' has too many digits for a range"},
    {"1..1e19*2", "'1e19' does not fit 64 bits (at most 9223372036854775807)"},
    {"1..10*1", "'1..10*1' never ends: its factor is to be a whole number above 1"},
    {"1..10*0", "'1..10*0' never ends: its factor is to be a whole number above 1"},
    {"1..10*-2", "'1..10*-2' never ends: its factor is to be a whole number above 1"},
    {"1..10+0", "'1..10+0' never ends: its step is to be above 0"},
    {"1..10+-1", "'1..10+-1' never ends: its step is to be above 0"},
    {"10..1+-1", "'10..1+-1' never ends: its step is to be above 0"},
    {"0..10*2", "'0..10*2' never ends: with a factor it is to start above 0"},
    {"-1..10*2", "'-1..10*2' never ends: with a factor it is to start above 0"},
    {"10..1+1", "'10..1+1' never ends: 10 is above 1"},
    {"1G..1M*10", "'1G..1M*10' never ends: 1G is above 1M"},
    {"0..100000+1", "'0..100000+1' makes more than 100000 values"},
    {"1..9223372036854775807+1", "'1..9223372036854775807+1' makes more than 100000 values"},
};

START_TEST(test_fault)
{
    struct sweep sweep;
    struct why why = {""};

    ck_assert_int_eq(sweep_parse(fault_cases[_i].text, true, &sweep, &why), GPURUN_INVALID);
    ck_assert_str_eq(why.text, fault_cases[_i].reason);
    sweep_free(&sweep);
}
END_TEST

static Suite *sweep_suite(void)
{
    Suite *suite = suite_create("sweep");
    TCase *lists = tcase_create("lists"), *ranges = tcase_create("ranges");
    TCase *faults = tcase_create("faults");

    tcase_add_loop_test(lists, test_list, 0, COUNT(list_cases));
    tcase_add_loop_test(lists, test_no_sweep, 0, COUNT(single_cases));
    tcase_add_test(lists, test_a_list_too_long);
    tcase_add_test(ranges, test_ranges_of_python);
    tcase_add_test(ranges, test_as_many_as_may_be);
    tcase_add_loop_test(faults, test_fault, 0, COUNT(fault_cases));
    suite_add_tcase(suite, lists);
    suite_add_tcase(suite, ranges);
    suite_add_tcase(suite, faults);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(sweep_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
