#include "plan/tunable.h"

#include <check.h>
#include <stdlib.h>

static const char *const choices[] = {"a", "b", NULL};

static const struct row_case {
    struct gpurun_option row;
    const char *values;
} row_cases[] = {
    {{.type = GPURUN_OPTION_INT, .def = "256", .min = 32, .max = 1024},
     "32, 64, 128, 256, 512, 1024"},
    {{.type = GPURUN_OPTION_INT, .def = "24", .min = 3, .max = 40}, "4, 8, 16, 24, 32"},
    {{.type = GPURUN_OPTION_INT, .def = "3", .min = 3, .max = 5}, "3, 4"},
    {{.type = GPURUN_OPTION_INT, .def = "100", .min = 65, .max = 127}, "100"},
    {{.type = GPURUN_OPTION_INT, .def = "0", .max = 4}, "0, 1, 2, 4"},
    {{.type = GPURUN_OPTION_INT, .def = "auto", .min = 1, .max = 2, .flags = GPURUN_OPTION_AUTO},
     "auto, 1, 2"},
    {{.type = GPURUN_OPTION_INT, .def = "1K"}, "64, 128, 256, 512, 1K, 1024, 2048, 4096, 8192"},
    {{.type = GPURUN_OPTION_BOOL, .def = "no"}, "no, yes"},
    {{.type = GPURUN_OPTION_CHOICE, .def = "b", .choices = choices}, "a, b"},
    {{.type = GPURUN_OPTION_CHOICE, .def = "a", .choices = choices, .flags = GPURUN_OPTION_AUTO},
     "auto, a, b"},
    {{.type = GPURUN_OPTION_REAL, .def = "0.5", .max = 1}, "0.5"},
    {{.type = GPURUN_OPTION_TEXT, .def = "x"}, "x"},
};

START_TEST(test_values)
{
    struct gpurun_option row = row_cases[_i].row;
    const struct option_table table = {&row, 1, sizeof row};
    json_t *values;

    row.name = "o";
    values = tunable_values(&table);
    ck_assert_uint_eq(json_object_size(values), 0);
    json_decref(values);
    row.flags |= GPURUN_OPTION_TUNABLE;
    values = tunable_values(&table);
    ck_assert_str_eq(json_string_value(json_object_get(values, "o")), row_cases[_i].values);
    json_decref(values);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tunable");
    TCase *all = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(all, test_values, 0, sizeof row_cases / sizeof row_cases[0]);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
