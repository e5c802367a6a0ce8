#include "plan/option.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fields {
    int64_t before; /* a guard: no option lives here */
    int64_t n, flag, order, dtype, wide;
    double real, time;
    const char *text;
    int64_t after;
};

static const char *const orders[] = {"largest", "smallest", "none", NULL};
static const char *const dtypes[] = {"double", "int32", "uint64", NULL};

/* Rows longer than this core's: what a later ABI would bring. */
struct long_row {
    struct gpurun_option row;
    char later[24];
};

#define AT(field) .offset = offsetof(struct fields, field), .name = #field

static const struct long_row rows[] = {
    {.row = {AT(n), .type = GPURUN_OPTION_INT, .def = "4Ki", .min = -5, .max = 1e6,
             .unit = "elements", .flags = GPURUN_OPTION_AUTO}},
    {.row = {AT(flag), .type = GPURUN_OPTION_BOOL, .def = "yes"}},
    {.row = {AT(order), .type = GPURUN_OPTION_CHOICE, .def = "smallest", .choices = orders}},
    {.row = {AT(dtype), .type = GPURUN_OPTION_DTYPE, .def = "auto", .choices = dtypes,
             .flags = GPURUN_OPTION_AUTO}},
    {.row = {AT(wide), .type = GPURUN_OPTION_INT, .def = "-1"}},
    {.row = {AT(real), .type = GPURUN_OPTION_REAL, .def = "0.5", .min = 0.25, .max = 2}},
    {.row = {AT(time), .type = GPURUN_OPTION_DURATION, .def = "1.5m", .min = 0, .max = 3600}},
    {.row = {AT(text), .type = GPURUN_OPTION_TEXT, .def = "a b"}, .later = "not read"},
};

static const struct option_table table = {&rows[0].row, GPURUN_COUNT(rows), sizeof rows[0]};

static struct fields defaults(void)
{
    struct fields f = {.before = 111, .after = 222};
    struct why why = {""};

    ck_assert_msg(option_set_defaults(&table, &f, &why) == GPURUN_OK, "%s", why.text);
    return f;
}

static const struct gpurun_option *row_of(const char *name)
{
    const struct gpurun_option *row = option_find(&table, name);

    ck_assert_ptr_nonnull(row);
    return row;
}

START_TEST(test_rows_are_found_by_stride)
{
    for (uint32_t i = 0; i < GPURUN_COUNT(rows); i++) {
        ck_assert_ptr_eq(option_at(&table, i), &rows[i].row);
        ck_assert_ptr_eq(option_find(&table, rows[i].row.name), &rows[i].row);
    }
    ck_assert_ptr_null(option_find(&table, "N"));
    ck_assert_ptr_null(option_find(&table, ""));
    ck_assert_ptr_null(option_find(&table, "nn"));
}
END_TEST

START_TEST(test_defaults)
{
    const struct fields f = defaults();

    ck_assert_int_eq(f.n, 4096);
    ck_assert_int_eq(f.flag, 1);
    ck_assert_int_eq(f.order, 1);
    ck_assert_int_eq(f.dtype, GPURUN_AUTO);
    ck_assert_int_eq(f.wide, -1);
    ck_assert(f.real == 0.5);
    ck_assert(f.time == 90);
    ck_assert_str_eq(f.text, "a b");
    ck_assert_int_eq(f.before, 111);
    ck_assert_int_eq(f.after, 222);
}
END_TEST

START_TEST(test_defaults_that_contradict_the_row)
{
    const struct gpurun_option row = {AT(n), .type = GPURUN_OPTION_INT, .def = "9", .max = 8};
    const struct option_table one = {&row, 1, sizeof row};
    struct fields f = {0};
    struct why why = {""};

    ck_assert_int_eq(option_set_defaults(&one, &f, &why), GPURUN_INVALID);
    ck_assert_str_eq(why.text, "9 is above 8");
}
END_TEST

/* A whole-number field after the text, or the reason why not. */
static const struct int_case {
    const char *name, *text;
    int64_t value;
    const char *reason; /* NULL: right */
} int_cases[] = {
    {"n", "-5", -5, NULL},
    {"n", "1M", 1000000, NULL},
    {"n", "0", 0, NULL},
    {"n", "auto", GPURUN_AUTO, NULL},
    {"n", "-6", 0, "-6 is below -5"},
    {"n", "1000001", 0, "1000001 is above 1000000"},
    {"n", "1e7", 0, "1e7 is above 1000000"},
    {"n", "Auto", 0, "'Auto' is not a whole number (write 20, 1e8, 100M or 4Ki)"},
    {"n", "1.5", 0, "'1.5' is not a whole number (write 20, 1e8, 100M or 4Ki)"},
    {"n", "1 000", 0, "'1 000' is not a whole number (write 20, 1e8, 100M or 4Ki)"},
    {"wide", "9223372036854775807", INT64_MAX, NULL},
    {"wide", "-9223372036854775807", -INT64_MAX, NULL},
    {"wide", "auto", 0, "'auto' is not a whole number (write 20, 1e8, 100M or 4Ki)"},
    {"flag", "off", 0, NULL},
    {"flag", "TRUE", 1, NULL},
    {"flag", "2", 0, "'2' is neither yes nor no (write yes, no, true, false, on or off)"},
    {"flag", "auto", 0, "'auto' is neither yes nor no (write yes, no, true, false, on or off)"},
    {"order", "largest", 0, NULL},
    {"order", "none", 2, NULL},
    {"order", "Largest", 0, "'Largest' is not one of largest, smallest or none"},
    {"order", "large", 0, "'large' is not one of largest, smallest or none"},
    {"order", "", 0, "'' is not one of largest, smallest or none"},
    {"order", "auto", 0, "'auto' is not one of largest, smallest or none"},
    {"dtype", "double", GPURUN_DOUBLE, NULL},
    {"dtype", "int32", GPURUN_INT32, NULL},
    {"dtype", "uint64", GPURUN_UINT64, NULL},
    {"dtype", "auto", GPURUN_AUTO, NULL},
    {"dtype", "int8", 0, "'int8' is not one of double, int32 or uint64, or auto"},
};

START_TEST(test_whole)
{
    const struct int_case *c = &int_cases[_i];
    const struct gpurun_option *row = row_of(c->name);
    struct fields f = defaults();
    const struct fields untouched = f;
    int64_t *field = (int64_t *)(void *)((char *)&f + row->offset);
    struct why why = {""};

    ck_assert_int_eq(option_set(row, c->text, &f, &why), c->reason ? GPURUN_INVALID : GPURUN_OK);
    ck_assert_str_eq(why.text, c->reason ? c->reason : "");
    if (c->reason == NULL)
        ck_assert_int_eq(*field, c->value);
    *field = *(const int64_t *)(const void *)((const char *)&untouched + row->offset);
    ck_assert_mem_eq(&f, &untouched, sizeof f);
}
END_TEST

static const struct real_case {
    const char *name, *text;
    double value;
    const char *reason;
} real_cases[] = {
    {"real", "0.25", 0.25, NULL},
    {"real", "2", 2, NULL},
    {"real", "1e-1", 0, "1e-1 is below 0.25"},
    {"real", "2.0001", 0, "2.0001 is above 2"},
    {"real", "inf", 0, "inf is above 2"},
    {"real", "nan", 0, "nan is above 2"},
    {"real", "x", 0, "'x' is not a number (write 0.25, 1e-3, 100M, inf or nan)"},
    {"time", "250ms", 0.25, NULL},
    {"time", "1h", 3600, NULL},
    {"time", "0", 0, NULL},
    {"time", "2h", 0, "2h is above 3600s"},
    {"time", "-1s", 0, "'-1s' is below zero (write 250ms, 10s, 5m, 1.5h or 2d)"},
    {"time", "5x", 0, "'5x' is not a duration (write 250ms, 10s, 5m, 1.5h or 2d)"},
};

START_TEST(test_real)
{
    const struct real_case *c = &real_cases[_i];
    const struct gpurun_option *row = row_of(c->name);
    struct fields f = defaults();
    const double before = *(double *)(void *)((char *)&f + row->offset);
    struct why why = {""};

    ck_assert_int_eq(option_set(row, c->text, &f, &why), c->reason ? GPURUN_INVALID : GPURUN_OK);
    ck_assert_str_eq(why.text, c->reason ? c->reason : "");
    ck_assert(*(double *)(void *)((char *)&f + row->offset) == (c->reason ? before : c->value));
}
END_TEST

START_TEST(test_text_is_kept_as_it_is)
{
    static const char written[] = "auto, any thing";
    struct fields f = defaults();
    struct why why = {""};

    ck_assert_int_eq(option_set(row_of("text"), written, &f, &why), GPURUN_OK);
    ck_assert_ptr_eq(f.text, written);
}
END_TEST

START_TEST(test_unknown_type)
{
    const struct gpurun_option row = {AT(n), .type = (enum gpurun_option_type)99, .def = "1"};
    struct fields f = {0};
    struct why why = {""};
    json_t *json;

    ck_assert_int_eq(option_set(&row, "1", &f, &why), GPURUN_INVALID);
    ck_assert_str_eq(why.text, "is of a type that this gpurun does not know");
    ck_assert_str_eq(option_type_name(&row), "unknown");
    json = option_to_json(&row, &f);
    ck_assert(json_is_null(json));
    json_decref(json);
}
END_TEST

/* --- what is shown ----------------------------------------------------------------------------------- */

static const struct shown {
    const char *name, *json, *type, *range;
} shown[] = {
    {"n", "4096", "whole number", "-5 to 1000000"},
    {"flag", "true", "yes or no", ""},
    {"order", "\"smallest\"", "choice", "largest, smallest or none"},
    {"dtype", "\"auto\"", "dtype", "double, int32 or uint64"},
    {"wide", "-1", "whole number", ""},
    {"real", "0.5", "number", "0.25 to 2"},
    {"time", "90.0", "duration", "0 to 3600"},
    {"text", "\"a b\"", "text", ""},
};

START_TEST(test_shown)
{
    const struct gpurun_option *row = row_of(shown[_i].name);
    struct fields f = defaults();
    json_t *json = option_to_json(row, &f);
    char *text = json_dumps(json, JSON_ENCODE_ANY);
    char range[100];

    ck_assert_str_eq(text, shown[_i].json);
    ck_assert_str_eq(option_type_name(row), shown[_i].type);
    option_describe_range(row, range, sizeof range);
    ck_assert_str_eq(range, shown[_i].range);
    free(text);
    json_decref(json);
}
END_TEST

START_TEST(test_shown_after_auto)
{
    struct fields f = defaults();
    json_t *json;

    f.n = GPURUN_AUTO;
    json = option_to_json(row_of("n"), &f);
    ck_assert_str_eq(json_string_value(json), "auto");
    json_decref(json);
    f.wide = GPURUN_AUTO; /* without the flag it is a number like any other */
    json = option_to_json(row_of("wide"), &f);
    ck_assert_int_eq(json_integer_value(json), INT64_MIN);
    json_decref(json);
    f.dtype = GPURUN_UINT64;
    json = option_to_json(row_of("dtype"), &f);
    ck_assert_str_eq(json_string_value(json), "uint64");
    json_decref(json);
}
END_TEST

static const struct real_auto {
    const char *text, *json;
    int is_auto;
} real_autos[] = {
    {"auto", "auto", 1}, {"nan", "nan", 0}, {"inf", "inf", 0}, {"-inf", "-inf", 0}, {"-0", NULL, 0},
};

START_TEST(test_real_auto)
{
    const struct gpurun_option row = {
        .name = "r", .type = GPURUN_OPTION_REAL, .def = "auto", .flags = GPURUN_OPTION_AUTO};
    double value = 5;
    struct why why;
    json_t *json;

    ck_assert_int_eq(option_set(&row, real_autos[_i].text, &value, &why), GPURUN_OK);
    ck_assert_int_eq(gpurun_real_is_auto(value), real_autos[_i].is_auto);
    json = option_to_json(&row, &value);
    if (real_autos[_i].json != NULL)
        ck_assert_str_eq(json_string_value(json), real_autos[_i].json);
    else
        ck_assert(json_is_real(json));
    json_decref(json);
}
END_TEST

static const struct range {
    double min, max;
    const char *text;
} ranges[] = {
    {0, 0, ""},
    {0, 9.2e18, "0 or more"},
    {1, 1e18, "1 to 1e+18"},
    {0.01, 1e7, "0.01 to 10000000"},
    {-1, 0, "-1 to 0"},
};

START_TEST(test_ranges)
{
    const struct gpurun_option row = {AT(n), .type = GPURUN_OPTION_INT, .min = ranges[_i].min,
                                      .max = ranges[_i].max};
    char text[100];

    option_describe_range(&row, text, sizeof text);
    ck_assert_str_eq(text, ranges[_i].text);
}
END_TEST

/* Many long choices: the text is cut, nothing is written past it. */
START_TEST(test_choices_that_do_not_fit)
{
    static const char *const many[] = {"abcdefghij", "klmnopqrst", "uvwxyz", NULL};
    const struct gpurun_option row = {AT(order), .type = GPURUN_OPTION_CHOICE, .choices = many};

    for (size_t size = 1; size < 40; size++) {
        char *text = malloc(size);

        ck_assert_ptr_nonnull(text);
        option_describe_range(&row, text, size);
        ck_assert_uint_lt(strnlen(text, size), size);
        ck_assert_int_eq(strncmp(text, "abcdefghij, klmnopqrst or uvwxyz", strlen(text)), 0);
        free(text);
    }
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static Suite *option_suite(void)
{
    Suite *suite = suite_create("option");
    TCase *set = tcase_create("set"), *show = tcase_create("show");

    tcase_add_test(set, test_rows_are_found_by_stride);
    tcase_add_test(set, test_defaults);
    tcase_add_test(set, test_defaults_that_contradict_the_row);
    tcase_add_loop_test(set, test_whole, 0, COUNT(int_cases));
    tcase_add_loop_test(set, test_real, 0, COUNT(real_cases));
    tcase_add_test(set, test_text_is_kept_as_it_is);
    tcase_add_test(set, test_unknown_type);
    tcase_add_loop_test(show, test_shown, 0, COUNT(shown));
    tcase_add_test(show, test_shown_after_auto);
    tcase_add_loop_test(show, test_real_auto, 0, (int)(sizeof real_autos / sizeof real_autos[0]));
    tcase_add_loop_test(show, test_ranges, 0, COUNT(ranges));
    tcase_add_test(show, test_choices_that_do_not_fit);
    suite_add_tcase(suite, set);
    suite_add_tcase(suite, show);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(option_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
