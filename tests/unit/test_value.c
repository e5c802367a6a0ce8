#include "job/value.h"

#include <check.h>
#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- integers --------------------------------------------------------------------------------- */

struct int_case {
    const char *text;
    int64_t value;
};

static const struct int_case int_good[] = {
    {"0", 0},
    {"-0", 0},
    {"20", 20},
    {"+20", 20},
    {"-3", -3},
    {"007", 7},
    {"0x1F", 31},
    {"0X1f", 31},
    {"-0x10", -16},
    {"0xdead_beef", 3735928559},
    {"0x1e8", 488},
    {"0x7fffffffffffffff", INT64_MAX},
    {"1_000_000", 1000000},
    {"1e8", 100000000},
    {"1E+2", 100},
    {"100e-2", 1},
    {"1.25e2", 125},
    {"1.50e1", 15},
    {"1.0", 1},
    {"20.", 20},
    {".5K", 500},
    {"1.5K", 1500},
    {"1.5k", 1500},
    {"100M", 100000000},
    {"2G", 2000000000},
    {"3T", 3000000000000},
    {"1e3K", 1000000},
    {"4Ki", 4096},
    {"4ki", 4096},
    {"1.5Mi", 1572864},
    {"2Gi", 2147483648},
    {"1Ti", 1099511627776},
    {"0.5Ki", 512},
    {"0.0009765625Ki", 1},
    {"0.75e1Ki", 7680},
    {"0e999999999999999999999", 0},
    {"0.000e-5", 0},
    {"0.0000000000000000000000000000000000000000000000001e49", 1},
    {"9223372036854775807", INT64_MAX},
    {"9_223_372_036_854_775_807", INT64_MAX},
    {"-9223372036854775808", INT64_MIN},
    {"9223372036854775.807K", INT64_MAX},
    {"9007199254740991Ki", INT64_C(9223372036854774784)},
    {"-8Ti", INT64_C(-8796093022208)},
    {"-8388608Ti", INT64_MIN},
};

START_TEST(test_int_good)
{
    const struct int_case *c = &int_good[_i];
    struct why why = {""};
    int64_t value = -77;

    ck_assert_msg(value_parse_int(c->text, &value, &why) == GPURUN_OK, "%s: %s", c->text, why.text);
    ck_assert_msg(value == c->value, "%s gave %" PRId64, c->text, value);
}
END_TEST

struct bad_case {
    const char *text, *reason;
};

static const struct bad_case int_bad[] = {
    {"", "the value is empty (write 20, 1e8, 100M or 4Ki)"},
    {"12x", "'12x' is not a whole number (write 20, 1e8, 100M or 4Ki)"},
    {"1.5", "'1.5' is not a whole number (write 20, 1e8, 100M or 4Ki)"},
    {"1e30", "'1e30' does not fit 64 bits (at most 9223372036854775807)"},
    {"9223372036854775808", "does not fit 64 bits"},
    {"-9223372036854775809", "does not fit 64 bits (at least -9223372036854775808)"},
    {"0x8000000000000000", "does not fit"},
    {"0xffffffffffffffffffffffffffffffffffffffffffffffff", "does not fit"},
    {"9223372036854775.808K", "does not fit"},
    {"8388608Ti", "does not fit"},
    {"18446744073709551616", "does not fit"},
    {"1e999999999999999999999", "does not fit"},
    {"340282366920938463463374607431768211456", "does not fit"},
    {"340282366920938463463374607431768211457e1000", "does not fit"},
    {"1.5e0", "not a whole number"},
    {"1e-1", "not a whole number"},
    {"1e-999999999999999999999", "not a whole number"},
    {"0.3Ki", "not a whole number"},
    {"0.00048828125Ki", "not a whole number"},
    {"1.0005K", "not a whole number"},
    {"1.234567890123456789012345678901234567890123Ki", "has more than 38 digits"},
    {"_1", "not a whole number"},
    {"1_", "not a whole number"},
    {"1__0", "not a whole number"},
    {"1_.0", "not a whole number"},
    {"1._0", "not a whole number"},
    {"1_K", "not a whole number"},
    {"0x_1", "not a whole number"},
    {"0x", "not a whole number"},
    {"0x1K", "not a whole number"},
    {"0xg", "not a whole number"},
    {"-", "not a whole number"},
    {"+-1", "not a whole number"},
    {"--1", "not a whole number"},
    {".", "not a whole number"},
    {"e5", "not a whole number"},
    {"1e", "not a whole number"},
    {"1e+", "not a whole number"},
    {"1e5e5", "not a whole number"},
    {"1e1_0", "not a whole number"},
    {"1,5", "not a whole number"},
    {"1.5.5", "not a whole number"},
    {"100m", "not a whole number"},
    {"100MB", "not a whole number"},
    {"4KiB", "not a whole number"},
    {"4KK", "not a whole number"},
    {" 4", "not a whole number"},
    {"4 ", "not a whole number"},
    {"4 K", "not a whole number"},
    {"inf", "not a whole number"},
    {"K", "not a whole number"},
};

START_TEST(test_int_bad)
{
    const struct bad_case *c = &int_bad[_i];
    struct why why = {""};
    int64_t value = -77;

    ck_assert_msg(value_parse_int(c->text, &value, &why) == GPURUN_INVALID, "%s passed", c->text);
    ck_assert_msg(strstr(why.text, c->reason) != NULL, "%s: %s", c->text, why.text);
    ck_assert_int_eq(value, -77);
}
END_TEST

/* A long text must not push the reason out of the message. */
START_TEST(test_long_text)
{
    char text[5000];
    struct why why = {""};
    int64_t value;

    memset(text, '7', sizeof text);
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(value_parse_int(text, &value, &why), GPURUN_INVALID);
    ck_assert_ptr_nonnull(strstr(why.text, "does not fit 64 bits"));
    memset(text, 'x', sizeof text - 1);
    ck_assert_int_eq(value_parse_int(text, &value, &why), GPURUN_INVALID);
    ck_assert_ptr_nonnull(strstr(why.text, "not a whole number"));
}
END_TEST

/* --- decimals ---------------------------------------------------------------------------------- */

struct real_case {
    const char *text;
    double value;
};

static const struct real_case real_good[] = {
    {"0", 0.0},
    {"-0", -0.0},
    {"-0.0", -0.0},
    {"20", 20},
    {"0.25", 0.25},
    {".5", 0.5},
    {"5.", 5},
    {"-1.5e-3", -0.0015},
    {"0.1", 0.1},
    {"1.5K", 1500},
    {"0.1M", 100000},
    {"1.1Ki", 1.1 * 1024},
    {"0x10", 16},
    {"1_000.000_5", 1000.0005},
    {"9007199254740993", 9007199254740992.0},
    {"9007199254740993.0000000000000000000000000000000000000000000000001", 9007199254740994.0},
    {"1.7976931348623157e308", DBL_MAX},
    {"4.9406564584124654e-324", 0x1p-1074},
    {"2.2250738585072014e-308", DBL_MIN},
    {"1e-300", 1e-300},
    {"0e999999", 0.0},
    {"inf", INFINITY},
    {"Inf", INFINITY},
    {"+inf", INFINITY},
    {"-INF", -INFINITY},
    {"nan", NAN},
    {"-NaN", -NAN},
};

START_TEST(test_real_good)
{
    const struct real_case *c = &real_good[_i];
    struct why why = {""};
    double value = -77;

    ck_assert_msg(value_parse_real(c->text, &value, &why) == GPURUN_OK, "%s: %s", c->text,
                  why.text);
    if (isnan(c->value))
        ck_assert(isnan(value));
    else
        ck_assert_msg(value == c->value, "%s gave %a", c->text, value);
    ck_assert_int_eq(signbit(value) != 0, signbit(c->value) != 0);
}
END_TEST

static const struct bad_case real_bad[] = {
    {"", "the value is empty (write 0.25, 1e-3, 100M, inf or nan)"},
    {"1.5x", "'1.5x' is not a number (write 0.25, 1e-3, 100M, inf or nan)"},
    {"1e400", "'1e400' is too large for a double (at most 1.797e308; write inf for infinity)"},
    {"-1e400", "too large"},
    {"1e-400", "too small"},
    {"0x1ffffffffffffffff", "does not fit 64 bits"},
    {"0x1.8p1", "not a number"},
    {"1,5", "not a number"},
    {"1.5.", "not a number"},
    {"infinity", "not a number"},
    {"nan(1)", "not a number"},
    {"in", "not a number"},
    {"- 1", "not a number"},
    {"1e5 ", "not a number"},
    {"1_e5", "not a number"},
};

START_TEST(test_real_bad)
{
    const struct bad_case *c = &real_bad[_i];
    struct why why = {""};
    double value = -77;

    ck_assert_msg(value_parse_real(c->text, &value, &why) == GPURUN_INVALID, "%s passed", c->text);
    ck_assert_msg(strstr(why.text, c->reason) != NULL, "%s: %s", c->text, why.text);
    ck_assert(value == -77);
}
END_TEST

/* Under a locale that writes 1,5 numbers still have points. Skipped where none is installed. */
START_TEST(test_real_in_comma_locale)
{
    struct why why = {""};
    double value = 0;

    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL)
        return;
    ck_assert_int_eq(value_parse_real("1.5", &value, &why), GPURUN_OK);
    ck_assert(value == 1.5);
    ck_assert_int_eq(value_parse_real("1,5", &value, &why), GPURUN_INVALID);
}
END_TEST

/* --- durations, booleans ------------------------------------------------------------------------ */

static const struct real_case duration_good[] = {
    {"10", 10},     {"10s", 10},    {"5m", 300},    {"1.5h", 5400}, {"250ms", 0.25},
    {"2d", 172800}, {"30us", 3e-5}, {"1e3s", 1000}, {"0", 0},       {"-0s", 0},
    {"0.1s", 0.1},  {"+1s", 1},     {"1_000ms", 1},
};

START_TEST(test_duration_good)
{
    const struct real_case *c = &duration_good[_i];
    struct why why = {""};
    double value = -77;

    ck_assert_msg(value_parse_duration(c->text, &value, &why) == GPURUN_OK, "%s: %s", c->text,
                  why.text);
    ck_assert_msg(value == c->value && !signbit(value), "%s gave %a", c->text, value);
}
END_TEST

static const struct bad_case duration_bad[] = {
    {"", "the value is empty (write 250ms, 10s, 5m, 1.5h or 2d)"},
    {"10x", "'10x' is not a duration (write 250ms, 10s, 5m, 1.5h or 2d)"},
    {"-1s", "'-1s' is below zero"},
    {"inf", "not a duration"},
    {"nan", "not a duration"},
    {"10 s", "not a duration"},
    {"5M", "not a duration"},
    {"1K", "not a duration"},
    {"0x10", "not a duration"},
    {"s", "not a duration"},
    {"1h30m", "not a duration"},
    {"1e308d", "too long"},
    {"1e999", "too long"},
};

START_TEST(test_duration_bad)
{
    const struct bad_case *c = &duration_bad[_i];
    struct why why = {""};
    double value = -77;

    ck_assert_msg(value_parse_duration(c->text, &value, &why) == GPURUN_INVALID, "%s passed",
                  c->text);
    ck_assert_msg(strstr(why.text, c->reason) != NULL, "%s: %s", c->text, why.text);
    ck_assert(value == -77);
}
END_TEST

START_TEST(test_bool)
{
    static const char *const yes[] = {"yes", "true", "on", "1", "YES", "True", "oN"};
    static const char *const no[] = {"no", "false", "off", "0", "No", "FALSE", "Off"};
    static const char *const bad[] = {"", "y", "maybe", "2", "yes ", "yess", "of", "01"};
    struct why why = {""};
    bool value;

    for (size_t i = 0; i < GPURUN_COUNT(yes); i++) {
        value = false;
        ck_assert(value_parse_bool(yes[i], &value, &why) == GPURUN_OK && value);
        value = true;
        ck_assert(value_parse_bool(no[i], &value, &why) == GPURUN_OK && !value);
    }
    for (size_t i = 0; i < GPURUN_COUNT(bad); i++)
        ck_assert_msg(value_parse_bool(bad[i], &value, &why) == GPURUN_INVALID, "%s", bad[i]);
    value_parse_bool("maybe", &value, &why);
    ck_assert_str_eq(why.text,
                     "'maybe' is neither yes nor no (write yes, no, true, false, on or off)");
}
END_TEST

/* --- suggestions --------------------------------------------------------------------------------- */

static const char *const names[] = {"plugin", "memory", "warmup", "repeat", "retries",
                                    "seed",   "input",  "output", "k",      NULL};

static const struct {
    const char *text, *nearest;
} nearest_cases[] = {
    {"plugni", "plugin"}, /* a swap */
    {"plugn", "plugin"},  /* a lost letter */
    {"pluggin", "plugin"},
    {"PLUGIN", "plugin"},
    {"memroy", "memory"},
    {"warm_up", "warmup"},
    {"repeats", "repeat"},
    {"retry", NULL}, /* three edits to retries, and five to repeat: too far */
    {"sed", "seed"},
    {"inptu", "input"},
    {"ouptut", "output"},
    {"n", NULL}, /* one letter never suggests another */
    {"K", "k"},
    {"", NULL},
    {"zzzzzz", NULL},
    {"bandwidth", NULL},
};

START_TEST(test_nearest)
{
    const char *text = nearest_cases[_i].text, *expected = nearest_cases[_i].nearest;
    const char *nearest = value_nearest(text, names);

    if (expected == NULL)
        ck_assert_msg(nearest == NULL, "%s suggested %s", text, nearest);
    else
        ck_assert_msg(nearest != NULL && strcmp(nearest, expected) == 0, "%s suggested %s", text,
                      nearest == NULL ? "nothing" : nearest);
}
END_TEST

START_TEST(test_nearest_odd_inputs)
{
    static const char *const none[] = {NULL};
    static const char *const tie[] = {"aaab", "aaac", NULL};
    static const char *const long_name[] = {
        "a_name_of_more_than_sixty_four_letters_which_no_key_or_plugin_will_ever_have", "seed",
        NULL};
    char text[1000];

    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    ck_assert_ptr_null(value_nearest(text, names));
    ck_assert_ptr_null(value_nearest("seed", none));
    ck_assert_str_eq(value_nearest("aaaa", tie), "aaab");
    ck_assert_str_eq(value_nearest("seeed", long_name), "seed");
}
END_TEST

static Suite *value_suite(void)
{
    Suite *suite = suite_create("value");
    TCase *tcase = tcase_create("parse");

    tcase_add_loop_test(tcase, test_int_good, 0, (int)GPURUN_COUNT(int_good));
    tcase_add_loop_test(tcase, test_int_bad, 0, (int)GPURUN_COUNT(int_bad));
    tcase_add_test(tcase, test_long_text);
    tcase_add_loop_test(tcase, test_real_good, 0, (int)GPURUN_COUNT(real_good));
    tcase_add_loop_test(tcase, test_real_bad, 0, (int)GPURUN_COUNT(real_bad));
    tcase_add_test(tcase, test_real_in_comma_locale);
    tcase_add_loop_test(tcase, test_duration_good, 0, (int)GPURUN_COUNT(duration_good));
    tcase_add_loop_test(tcase, test_duration_bad, 0, (int)GPURUN_COUNT(duration_bad));
    tcase_add_test(tcase, test_bool);
    tcase_add_loop_test(tcase, test_nearest, 0, (int)GPURUN_COUNT(nearest_cases));
    tcase_add_test(tcase, test_nearest_odd_inputs);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(value_suite());
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
