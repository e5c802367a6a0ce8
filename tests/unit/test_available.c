#include "run/available.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Control groups in a folder of their own: ROOT, ROOT/job, ROOT/job/step. */

static char root[] = "/tmp/gpurun-groups.XXXXXX";

static void write_file(const char *group, const char *name, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof path, "%s%s/%s", root, group, name);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static void write_group(const char *group, const char *most, const char *now)
{
    write_file(group, "memory.max", most);
    write_file(group, "memory.current", now);
}

static void make_folders(void)
{
    char path[256];

    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(path, sizeof path, "%s/job", root);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/job/step", root);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void remove_folders(void)
{
    char command[256];

    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}

static uint64_t left(const char *group)
{
    return available_in_groups(root, group, GROUPS_V2);
}

START_TEST(test_no_limit)
{
    ck_assert_uint_eq(left("/job/step"), UINT64_MAX);
    write_group("/job/step", "max\n", "400\n");
    ck_assert_uint_eq(left("/job/step"), UINT64_MAX);
    ck_assert_uint_eq(left("/"), UINT64_MAX);
}
END_TEST

/* Slurm, say, limits the job and says "max" for its steps. */
START_TEST(test_a_limit_above)
{
    write_group("/job/step", "max\n", "300\n");
    write_group("/job", "1000\n", "400\n");
    ck_assert_uint_eq(left("/job/step"), 600);
    ck_assert_uint_eq(left("/job"), 600);
    ck_assert_uint_eq(left("/"), UINT64_MAX);
    write_group("/job/step", "350\n", "300\n");
    ck_assert_uint_eq(left("/job/step"), 50);
    write_group("", "420\n", "400\n");
    ck_assert_uint_eq(left("/job/step"), 20);
}
END_TEST

/* A group that has read large files is full of their pages, and has room all the same. */
START_TEST(test_pages_of_files_do_not_count)
{
    write_group("/job", "1000\n", "990\n");
    write_file("/job", "memory.stat",
               "anon 90\nfile 900\ninactive_file_other 7\ninactive_file 600\nactive_file 300\n");
    ck_assert_uint_eq(left("/job/step"), 910);
}
END_TEST

START_TEST(test_a_full_group)
{
    write_group("/job", "1000\n", "1000\n");
    ck_assert_uint_eq(left("/job"), 0);
    write_group("/job", "1000\n", "1100\n");
    ck_assert_uint_eq(left("/job"), 0);
    write_file("/job", "memory.stat", "inactive_file 5000\n"); /* the figures are of two moments */
    ck_assert_uint_eq(left("/job"), 1000);
}
END_TEST

/* In a container the name is the host's, and the root is the container's. */
START_TEST(test_a_folder_that_is_not_there)
{
    write_group("", "1000\n", "100\n");
    ck_assert_uint_eq(left("/docker/0123/job"), 900);
}
END_TEST

START_TEST(test_version_1)
{
    write_file("/job", "memory.limit_in_bytes", "1000\n");
    write_file("/job", "memory.usage_in_bytes", "800\n");
    write_file("/job", "memory.stat",
               "inactive_file 1\ntotal_inactive_file 200\ntotal_active_file 50\n");
    ck_assert_uint_eq(available_in_groups(root, "/job/step", GROUPS_V1), 450);
    ck_assert_uint_eq(left("/job/step"), UINT64_MAX);
}
END_TEST

/* Of this machine, whatever it has. */
START_TEST(test_own)
{
    const uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t bytes = available_bytes();

    ck_assert_uint_gt(bytes, 1 << 20);
    ck_assert_uint_lt(bytes, all);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("available");
    TCase *all = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(all, make_folders, remove_folders);
    tcase_add_test(all, test_no_limit);
    tcase_add_test(all, test_a_limit_above);
    tcase_add_test(all, test_pages_of_files_do_not_count);
    tcase_add_test(all, test_a_full_group);
    tcase_add_test(all, test_a_folder_that_is_not_there);
    tcase_add_test(all, test_version_1);
    tcase_add_test(all, test_own);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
