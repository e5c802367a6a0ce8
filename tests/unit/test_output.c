#include "report/output.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct scalar_case {
    const char *json, *text;
} scalar_cases[] = {
    {"\"a,b\"", "a,b"},
    {"\"\"", ""},
    {"9007199254740993", "9007199254740993"},
    {"-1", "-1"},
    {"true", "yes"},
    {"false", "no"},
    {"null", ""},
    {"[1]", ""},
    {"{}", ""},
    {"0.1", "0.1"},
    {"0.30000000000000004", "0.30000000000000004"}, /* 17 digits */
    {"1.0", "1"},
    {"1e300", "1e+300"},
    {"5e-324", "4.94065645841247e-324"},
    {"-0.0", "-0"},
};

START_TEST(test_scalar)
{
    json_t *json = json_loads(scalar_cases[_i].json, JSON_DECODE_ANY, NULL);
    char text[64];

    ck_assert_ptr_nonnull(json);
    output_scalar(json, text, sizeof text);
    ck_assert_str_eq(text, scalar_cases[_i].text);
    json_decref(json);
}
END_TEST

START_TEST(test_scalar_of_nothing)
{
    char text[4] = "...";

    output_scalar(NULL, text, sizeof text);
    ck_assert_str_eq(text, "");
}
END_TEST

/* Any bits that are a number come back. */
START_TEST(test_reals_read_back)
{
    uint64_t random = 88172645463325252;

    for (int i = 0; i < 100000; i++) {
        double value;
        json_t *json;
        char text[64];

        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        memcpy(&value, &random, sizeof value);
        if ((json = json_real(value)) == NULL) /* NaN, infinity */
            continue;
        output_scalar(json, text, sizeof text);
        ck_assert(strtod(text, NULL) == value);
        json_decref(json);
    }
}
END_TEST

START_TEST(test_at)
{
    json_t *json = json_pack("{s{s[ii]sn}}", "a", "b", 3, 4, "c");

    ck_assert_int_eq(json_integer_value(output_at(json, "a.b.1")), 4);
    ck_assert(json_is_array(output_at(json, "a.b")));
    ck_assert(json_is_null(output_at(json, "a.c")));
    ck_assert_ptr_null(output_at(json, "a.b.2"));
    ck_assert_ptr_null(output_at(json, "a.x.y"));
    ck_assert_ptr_null(output_at(json, "a.b.0.z"));
    ck_assert_ptr_null(output_at(NULL, "a"));
    json_decref(json);
}
END_TEST

START_TEST(test_by_job)
{
    json_t *records =
        json_pack("[{ssss}{ssss}{ss}{ssss}{ss}]", "job", "a", "job_id", "1", "job", "a", "job_id",
                  "2", "job", "b", "job", "a", "job_id", "1", "job", "b");
    json_t *jobs = output_by_job(records);

    ck_assert_uint_eq(json_array_size(jobs), 3);
    ck_assert_uint_eq(json_array_size(json_array_get(jobs, 0)), 2);
    ck_assert_uint_eq(json_array_size(json_array_get(jobs, 1)), 1);
    ck_assert_uint_eq(json_array_size(json_array_get(jobs, 2)), 2);
    ck_assert_ptr_eq(json_array_get(json_array_get(jobs, 0), 1), json_array_get(records, 3));
    json_decref(jobs);
    json_decref(records);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("output");
    TCase *all = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(all, test_scalar, 0, sizeof scalar_cases / sizeof scalar_cases[0]);
    tcase_add_test(all, test_scalar_of_nothing);
    tcase_add_test(all, test_reals_read_back);
    tcase_add_test(all, test_at);
    tcase_add_test(all, test_by_job);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
