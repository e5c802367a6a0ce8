#include "job/variables.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void set_variables(void)
{
    setenv("SIZE", "1M", 1);
    setenv("LIST", "1, 2", 1);
    setenv("_a1", "x", 1);
    setenv("EMPTY", "", 1);
    setenv("NESTED", "${SIZE} $$", 1);
    setenv("LINES", "a\nb", 1);
    unsetenv("UNSET");
}

static const struct value_case {
    const char *text, *value;
} value_cases[] = {
    {"", ""},
    {"plain", "plain"},
    {"${SIZE}", "1M"},
    {"${LIST}, 3", "1, 2, 3"},
    {"a${SIZE}b${_a1}c", "a1Mbxc"},
    {"${SIZE}${SIZE}", "1M1M"},
    {"${EMPTY}", ""},
    {"${EMPTY:-20}", "20"},
    {"${UNSET:-20}", "20"},
    {"${UNSET:-}", ""},
    {"${UNSET:-1, 2..8*2}", "1, 2..8*2"},
    {"${UNSET:-a:-b}", "a:-b"},
    {"${UNSET:-{}", "{"},
    {"${UNSET:-a}}", "a}"},
    {"${SIZE:-20}", "1M"},
    {"file:${UNSET:-jobs/data}/x.npy", "file:jobs/data/x.npy"},
    {"${NESTED}", "${SIZE} $$"}, /* not looked into again */
    {"$", "$"},
    {"$$", "$"},
    {"$$$", "$$"},
    {"$$$$", "$$"},
    {"$${SIZE}", "${SIZE}"},
    {"$$${SIZE}", "$1M"},
    {"$SIZE", "$SIZE"},
    {"a$", "a$"},
    {"$(SIZE) {SIZE} }", "$(SIZE) {SIZE} }"},
};

START_TEST(test_value)
{
    struct why why = {""};
    char *value = NULL;

    ck_assert_msg(variables_expand(value_cases[_i].text, &value, &why) == GPURUN_OK, "%s",
                  why.text);
    ck_assert_str_eq(value, value_cases[_i].value);
    free(value);
}
END_TEST

static const struct fault_case {
    const char *text, *reason;
} fault_cases[] = {
    {"${UNSET}", "${UNSET} is not set: export UNSET, or write ${UNSET:-DEFAULT}"},
    {"${SIZE}${UNSET}", "${UNSET} is not set: export UNSET, or write ${UNSET:-DEFAULT}"},
    {"${SIZE", "'${SIZE' has no '}': write ${NAME} or ${NAME:-DEFAULT}"},
    {"${", "'${' has no '}': write ${NAME} or ${NAME:-DEFAULT}"},
    {"${}", "'${}' is no variable: write ${NAME} or ${NAME:-DEFAULT}"},
    {"${:-x}", "'${:-x}' is no variable: write ${NAME} or ${NAME:-DEFAULT}"},
    {"${1}", "'${1}' is no variable: write ${NAME} or ${NAME:-DEFAULT}"},
    {"${A B}", "'${A B}' is no variable: write ${NAME} or ${NAME:-DEFAULT}"},
    {"${SIZE-x}", "'${SIZE-x}' is no variable: write ${NAME} or ${NAME:-DEFAULT}"},
    {"${SIZE:x}", "'${SIZE:x}' is no variable: write ${NAME} or ${NAME:-DEFAULT}"},
    {"${SIZE:}", "'${SIZE:}' is no variable: write ${NAME} or ${NAME:-DEFAULT}"},
    {"${SIZE:=x}", "'${SIZE:=x}' is no variable: write ${NAME} or ${NAME:-DEFAULT}"},
    {"${A:-${SIZE}}", "'${A:-${SIZE}': a default is plain text, without '$'"},
    {"${LINES}", "${LINES} holds more than one line"},
    {"${aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-}",
     "'${aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' is no variable: write ${NAME} or "
     "${NAME:-DEFAULT}"},
};

START_TEST(test_fault)
{
    struct why why = {""};
    char *value = NULL;

    ck_assert_int_eq(variables_expand(fault_cases[_i].text, &value, &why), GPURUN_INVALID);
    ck_assert_str_eq(why.text, fault_cases[_i].reason);
    ck_assert_ptr_null(value);
}
END_TEST

static Suite *variables_suite(void)
{
    Suite *suite = suite_create("variables");
    TCase *values = tcase_create("values"), *faults = tcase_create("faults");

    tcase_add_checked_fixture(values, set_variables, NULL);
    tcase_add_checked_fixture(faults, set_variables, NULL);
    tcase_add_loop_test(values, test_value, 0, COUNT(value_cases));
    tcase_add_loop_test(faults, test_fault, 0, COUNT(fault_cases));
    suite_add_tcase(suite, values);
    suite_add_tcase(suite, faults);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(variables_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
