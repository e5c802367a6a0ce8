#include "report/table.h"

#include <check.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct count_case {
    long long count;
    const char *text;
} count_cases[] = {
    {0, "0"},
    {1, "1"},
    {999, "999"},
    {1000, "1K"},
    {1001, "1001"},
    {1050, "1050"},
    {1100, "1.1K"},
    {1500, "1.5K"},
    {12345, "12345"},
    {999900, "999.9K"},
    {999950, "999950"},
    {1000000, "1M"},
    {1001000, "1001K"},
    {1010000, "1010K"},
    {1500000, "1.5M"},
    {100000000, "100M"},
    {1000000000, "1G"},
    {2500000000, "2.5G"},
    {1000000000000, "1T"},
    {123400000000000, "123.4T"},
    {1048576, "1048576"},
    {9007199254740993000, "9007199254740993K"},
    {LLONG_MAX, "9223372036854775807"},
    {-5, "-5"},
    {-1000, "-1000"},
};

START_TEST(test_count_is_exact)
{
    char text[40];

    format_count(count_cases[_i].count, text, sizeof text);
    ck_assert_str_eq(text, count_cases[_i].text);
}
END_TEST

static const struct bytes_case {
    double bytes;
    const char *text;
} bytes_cases[] = {
    {0, "0 B"},         {1, "1 B"},           {999, "999 B"},         {1000, "1 KB"},
    {1234, "1.23 KB"},  {12345, "12.3 KB"},   {999499, "999 KB"},     {999600, "1 MB"},
    {400e6, "400 MB"},  {4194304, "4.19 MB"}, {1.2e9, "1.2 GB"},      {150.75e9, "151 GB"},
    {2.5e12, "2.5 TB"}, {999.4, "999 B"},     {999999999999, "1 TB"},
};

START_TEST(test_bytes)
{
    char text[40];

    format_bytes(bytes_cases[_i].bytes, text, sizeof text);
    ck_assert_str_eq(text, bytes_cases[_i].text);
}
END_TEST

static const struct json_case {
    const char *json, *text;
} json_cases[] = {
    {"\"largest\"", "largest"}, {"\"\"", ""},       {"100000000", "100M"}, {"-3", "-3"},
    {"1234", "1234"},           {"true", "yes"},    {"false", "no"},       {"0.25", "0.25"},
    {"1e-7", "1e-7"},           {"600.0", "600.0"}, {"null", "null"},      {"[1, 2]", "[1, 2]"},
};

START_TEST(test_json)
{
    json_t *json = json_loads(json_cases[_i].json, JSON_DECODE_ANY, NULL);
    char text[40];

    ck_assert_ptr_nonnull(json);
    format_json(json, text, sizeof text);
    ck_assert_str_eq(text, json_cases[_i].text);
    json_decref(json);
}
END_TEST

START_TEST(test_cut_to_size)
{
    json_t *json = json_string("abcdefgh");
    char text[4] = "...";

    format_json(json, text, sizeof text);
    ck_assert_str_eq(text, "abc");
    format_json(NULL, text, sizeof text);
    ck_assert_str_eq(text, "?");
    format_count(123456, text, sizeof text);
    ck_assert_str_eq(text, "123");
    json_decref(json);
}
END_TEST

/* --- the table, as text --------------------------------------------------------------------------- */

/* Runs with standard output in a file; its text is the caller's. */
static char *printed(void (*print)(const json_t *), const json_t *rows)
{
    FILE *stream = tmpfile();
    const int out = dup(STDOUT_FILENO);
    char *text = calloc(1, 1 << 16);

    ck_assert_ptr_nonnull(stream);
    ck_assert_ptr_nonnull(text);
    fflush(stdout);
    dup2(fileno(stream), STDOUT_FILENO);
    print(rows);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    rewind(stream);
    ck_assert_uint_gt(fread(text, 1, (1 << 16) - 1, stream), 0);
    fclose(stream);
    return text;
}

static void print_rows(const json_t *rows)
{
    table_print("x.ini:a", NULL, rows);
}

/* Cases that never got far have records of their own; they must show, with the reason. */
START_TEST(test_rows_without_times)
{
    json_t *rows = json_pack("[{sssssss[]}{sssssss[]}]", "variant", "cpu", "status", "crashed",
                             "reason", "setup: killed", "flags", "variant", "radix", "status",
                             "unsupported", "reason", "needs a thing", "flags");
    char *text;

    ck_assert_ptr_nonnull(rows);
    text = printed(print_rows, rows);
    ck_assert_ptr_nonnull(strstr(text, "x.ini:a"));
    ck_assert_ptr_nonnull(strstr(text, "CRASHED"));
    ck_assert_ptr_nonnull(strstr(text, "setup: killed"));
    ck_assert_ptr_nonnull(strstr(text, "unsupported"));
    ck_assert_ptr_nonnull(strstr(text, "needs a thing"));
    ck_assert_ptr_null(strstr(text, "nan"));
    ck_assert_ptr_null(strstr(text, "\033"));
    free(text);
    json_decref(rows);
}
END_TEST

START_TEST(test_more_rows_and_longer_words_than_there_is_room_for)
{
    json_t *rows = json_array();
    char name[300], *text;

    memset(name, 'v', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 100; i++)
        json_array_append_new(rows, json_pack("{sssssssbs[]}", "variant", name, "status", "passed",
                                              "reason", "", "peer", 1, "flags"));
    text = printed(print_rows, rows);
    ck_assert_ptr_nonnull(strstr(text, "vvv"));
    free(text);
    json_decref(rows);
}
END_TEST

static const struct rate_case {
    double bytes, operations; /* a second */
    const char *heading, *figure;
} rate_cases[] = {
    {123.4e9, 0, "GB/s", "123.4"},
    {123.4e9, 5.678e9, "GOP/s", "5.678"},
    {123.4e9, 999.9e9, "GOP/s", "999.9"},
    {123.4e9, 51.25e12, "TOP/s", "51.25"},
};

/* Operations where they are declared, else bytes; one unit for all rows, that of the fastest. */
START_TEST(test_rates)
{
    const struct rate_case *c = &rate_cases[_i];
    json_t *rows = json_pack("[{sssss{sf}s{sfsf}}{sssss{sf}s{sfsf}}]", "variant", "tiled", "status",
                             "passed", "time_ms", "median", 2.0, "throughput", "bytes_per_s",
                             c->bytes, "operations_per_s", c->operations, "variant", "naive",
                             "status", "passed", "time_ms", "median", 8.0, "throughput",
                             "bytes_per_s", c->bytes / 4, "operations_per_s", c->operations / 4);
    char *text, quarter[32];

    ck_assert_ptr_nonnull(rows);
    text = printed(print_rows, rows);
    snprintf(quarter, sizeof quarter, " %.4g", strtod(c->figure, NULL) / 4);
    ck_assert_msg(strstr(text, c->heading) != NULL, "%s", text);
    ck_assert_msg(strstr(text, c->figure) != NULL, "%s", text);
    quarter[4] = '\0'; /* three characters: the last digit may be rounded either way */
    ck_assert_msg(strstr(text, quarter) != NULL, "no %s in %s", quarter, text);
    free(text);
    json_decref(rows);
}
END_TEST

START_TEST(test_relative_error)
{
    json_t *rows =
        json_pack("[{sssss{sssIs[]sfss}}{sssss{sssIs[s]sfss}}]", "variant", "tiled", "status",
                  "passed", "proof", "mode", "certify", "checked", (json_int_t)16777216, "relaxed",
                  "worst_relative", 3.14e-8, "relative_to", "|A||B|", "variant", "cublas", "status",
                  "passed", "proof", "mode", "full", "checked", (json_int_t)4, "relaxed",
                  "unsorted", "worst_relative", 0.5, "relative_to", "a very long scale of errors");
    char *text;

    ck_assert_ptr_nonnull(rows);
    text = printed(print_rows, rows);
    ck_assert_msg(strstr(text, "certify, 16777216, 3.1e-08 |A||B|  ") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "full, 4, relaxed, 0.5 a very long   ") != NULL, "%s", text);
    free(text);
    json_decref(rows);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static Suite *table_suite(void)
{
    Suite *suite = suite_create("table");
    TCase *format = tcase_create("format"), *print = tcase_create("print");

    tcase_add_loop_test(format, test_count_is_exact, 0, COUNT(count_cases));
    tcase_add_loop_test(format, test_bytes, 0, COUNT(bytes_cases));
    tcase_add_loop_test(format, test_json, 0, COUNT(json_cases));
    tcase_add_test(format, test_cut_to_size);
    tcase_add_test(print, test_rows_without_times);
    tcase_add_test(print, test_more_rows_and_longer_words_than_there_is_room_for);
    tcase_add_loop_test(print, test_rates, 0, COUNT(rate_cases));
    tcase_add_test(print, test_relative_error);
    suite_add_tcase(suite, format);
    suite_add_tcase(suite, print);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(table_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
