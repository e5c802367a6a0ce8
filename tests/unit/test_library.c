/* Opening vendors' libraries, with the system's own in their place. */
#include "run/library.h"

#include <check.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test_library_XXXXXX";

static void enter_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(setenv("CUDA_HOME", folder, 1), 0);
}

static void leave_folder(void)
{
    char command[100];

    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static const char *const math_names[] = {"libgpurun_has_none.so.9", "libm.so.6", NULL};

START_TEST(test_the_loader_finds_it)
{
    struct why why = {""};
    void *handle = library_open(math_names, &why);
    double (*cosine)(double);

    ck_assert_msg(handle != NULL, "%s", why.text);
    *(void **)&cosine = dlsym(handle, "cos");
    ck_assert(cosine != NULL);
    ck_assert(cosine(0) == 1);
    ck_assert_ptr_eq(library_open(math_names, &why), handle);
}
END_TEST

START_TEST(test_none_is_there)
{
    static const char *const names[] = {"libgpurun_a.so.2", "libgpurun_a.so.1", NULL};
    char expected[400];
    struct why why = {""};

    snprintf(
        expected, sizeof expected,
        "neither the loader nor the CUDA folder %s has libgpurun_a.so.2, libgpurun_a.so.1 (set "
        "CUDA_HOME to the folder that does)",
        folder);
    ck_assert_ptr_null(library_open(names, &why));
    ck_assert_str_eq(why.text, expected);
}
END_TEST

static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};

/* The toolkit's folder as it is laid out here or there, and named by either variable. */
static const struct place {
    const char *folders[3], *variable;
} places[] = {
    {{"lib64"}, "CUDA_HOME"},
    {{"lib"}, "CUDA_PATH"},
    {{"targets", "targets/x86_64-linux", "targets/x86_64-linux/lib"}, "CUDA_HOME"},
};

/* A library that the loader knows, under a name that it does not. */
static void put_library(const struct place *p)
{
    char path[PATH_MAX], target[PATH_MAX];
    Dl_info info;
    int last = 0;

    for (int i = 0; i < 3 && p->folders[i] != NULL; last = i++) {
        snprintf(path, sizeof path, "%s/%s", folder, p->folders[i]);
        ck_assert_int_eq(mkdir(path, 0700), 0);
    }
    ck_assert_int_ne(dladdr(dlsym(RTLD_DEFAULT, "cos"), &info), 0);
    ck_assert_ptr_nonnull(realpath(info.dli_fname, target));
    snprintf(path, sizeof path, "%s/%s/libgpurun_b.so.1", folder, p->folders[last]);
    ck_assert_int_eq(symlink(target, path), 0);
}

START_TEST(test_the_cuda_folder_has_it)
{
    static const char *const names[] = {"libgpurun_b.so.2", "libgpurun_b.so.1", NULL};
    const struct place *p = &places[_i];
    struct why why = {""};
    void *handle;

    ck_assert_ptr_nonnull(library_open(math_names, &why)); /* puts cos there */
    put_library(p);
    for (size_t i = 0; i < GPURUN_COUNT(variables); i++)
        unsetenv(variables[i]);
    setenv(p->variable, folder, 1);
    handle = library_open(names, &why);
    ck_assert_msg(handle != NULL, "%s", why.text);
    ck_assert_ptr_nonnull(dlsym(handle, "cos"));
}
END_TEST

START_TEST(test_a_file_that_is_no_library)
{
    static const char *const names[] = {"libgpurun_c.so.1", NULL};
    char path[PATH_MAX];
    struct why why = {""};
    FILE *stream;

    snprintf(path, sizeof path, "%s/lib64", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/lib64/libgpurun_c.so.1", folder);
    stream = fopen(path, "w");
    fputs("no library", stream);
    fclose(stream);
    ck_assert_ptr_null(library_open(names, &why));
    ck_assert_ptr_nonnull(strstr(why.text, "libgpurun_c.so.1 (set CUDA_HOME"));
    ck_assert_msg(strstr(why.text, "; ") != NULL &&
                      strstr(why.text, "lib64/libgpurun_c.so.1: ") != NULL,
                  "%s", why.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("library");
    TCase *tests = tcase_create("library");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, enter_folder, leave_folder);
    tcase_add_test(tests, test_the_loader_finds_it);
    tcase_add_test(tests, test_none_is_there);
    tcase_add_loop_test(tests, test_the_cuda_folder_has_it, 0, GPURUN_COUNT(places));
    tcase_add_test(tests, test_a_file_that_is_no_library);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
