/* Plugins are the fakes of the build; each test is a process of its own, so what it loads dies with it. */
#include "plan/registry.h"

#include "job/memory.h"
#include <check.h>
#include <ctype.h>
#include <elf.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test_registry_XXXXXX";
static char fakes[PATH_MAX]; /* BUILD/fakes, found from where this program stands: BUILD/tests */

static void find_fakes(void)
{
    const ssize_t length = readlink("/proc/self/exe", fakes, sizeof fakes - 20);

    ck_assert_int_gt(length, 0);
    fakes[length] = '\0';
    strcpy(strrchr(fakes, '/'), "/../fakes");
}

static void enter_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    find_fakes();
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static void leave_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes folder/PATH, and the folders on the way to it. */
static void make_file(const char *path, const void *bytes, size_t size)
{
    char *copy = copy_text(path);
    FILE *stream;

    for (char *slash = copy; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        mkdir(copy, 0700);
    }
    free(copy);
    stream = fopen(path, "wb");
    ck_assert_msg(stream != NULL, "%s", path);
    fwrite(bytes, 1, size, stream);
    fclose(stream);
    ck_assert_int_eq(chmod(path, 0600), 0);
}

static void make_empty(const char *path)
{
    make_file(path, "", 0);
}

/* --- where plugins are looked for -------------------------------------------------------------------- */

START_TEST(test_names)
{
    static const char *const expected[] = {"beta", "both", "flat", "inner", NULL};
    char **names;

    make_empty("one/flat.so");
    make_empty("one/inner/inner.so");
    make_empty("one/both.so");
    make_empty("one/both/both.so");
    make_empty("one/.hidden.so");
    make_empty("one/.hidden/.hidden.so");
    make_empty("one/other/none.so");
    make_empty("one/empty/readme");
    make_empty("one/libx.so.1");
    make_empty("one/notes.txt");
    make_empty("two/beta.so");
    make_empty("two/flat/flat.so");
    setenv("GPURUN_PLUGIN_PATH", "missing:one::two:one", 1);
    names = registry_names();
    for (size_t i = 0; expected[i] != NULL || names[i] != NULL; i++) {
        ck_assert_msg(names[i] != NULL, "no %s", expected[i]);
        ck_assert_msg(expected[i] != NULL, "%s too", names[i]);
        ck_assert_str_eq(names[i], expected[i]);
    }
    registry_free_names(names);
}
END_TEST

START_TEST(test_no_names)
{
    char **names;

    unsetenv("GPURUN_PLUGIN_PATH");
    names = registry_names();
    ck_assert_ptr_null(names[0]);
    registry_free_names(names);
    setenv("GPURUN_PLUGIN_PATH", "", 1);
    names = registry_names();
    ck_assert_ptr_null(names[0]);
    registry_free_names(names);
}
END_TEST

static void check_found(const char *path)
{
    struct why why = {""};
    char *found = registry_find("x", &why);

    ck_assert_msg(found != NULL, "%s", why.text);
    ck_assert_str_eq(found, path);
    free(found);
}

/* Folders in the order given; in each, x/x.so goes before x.so. */
START_TEST(test_search_order)
{
    char *found;
    struct why why = {""};

    setenv("GPURUN_PLUGIN_PATH", "one:two", 1);
    make_empty("two/x.so");
    check_found("two/x.so");
    make_empty("two/x/x.so");
    check_found("two/x/x.so");
    make_empty("one/x.so");
    check_found("one/x.so");
    make_empty("one/x/x.so");
    check_found("one/x/x.so");
    setenv("GPURUN_PLUGIN_PATH", "two:one", 1);
    check_found("two/x/x.so");
    found = registry_find("y", &why);
    ck_assert_ptr_null(found);
    ck_assert_ptr_nonnull(strstr(why.text, "two/y/y.so, two/y.so, one/y/y.so, one/y.so, "));
    ck_assert_ptr_nonnull(strstr(why.text, "/tests/plugins/y/y.so"));
    ck_assert_ptr_nonnull(strstr(why.text, "/../lib/gpurun/plugins/y.so"));
}
END_TEST

/* More places than a message holds. */
START_TEST(test_long_search_path)
{
    char *path = calloc(1, 40000);
    struct why why = {""};

    ck_assert_ptr_nonnull(path);
    for (int i = 0; i < 3000; i++)
        strcat(path + 10 * i, "/no/where:");
    setenv("GPURUN_PLUGIN_PATH", path, 1);
    ck_assert_ptr_null(registry_find("x", &why));
    ck_assert_ptr_nonnull(strstr(why.text, "/no/where/x/x.so, /no/where/x.so"));
    free(path);
}
END_TEST

/* --- what is not loaded -------------------------------------------------------------------------------- */

static void check_refused(const char *name, const char *reason)
{
    struct plugin plugin;
    struct why why = {""};

    ck_assert_int_eq(registry_load(name, &plugin, &why), GPURUN_ERROR);
    ck_assert_msg(strstr(why.text, reason) != NULL, "%s: %s, not %s", name, why.text, reason);
    free(plugin.path);
}

START_TEST(test_files_that_are_no_plugins)
{
    Elf64_Ehdr foreign = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                          .e_machine = EM_PPC64};

    setenv("GPURUN_PLUGIN_PATH", ".", 1);
    make_empty("nothing.so");
    check_refused("nothing", "./nothing.so is not a shared object (no ELF header)");
    make_file("text.so", "#!/bin/sh\n", 10);
    check_refused("text", "./text.so is not a shared object (no ELF header)");
    make_file("foreign.so", &foreign, sizeof foreign);
    check_refused("foreign", "./foreign.so is built for 64-bit POWER, this gpurun runs on ");
#ifdef __x86_64__
    foreign.e_machine = EM_X86_64;
#else
    foreign.e_machine = EM_AARCH64;
#endif
    make_file("cut.so", &foreign, 20);
    check_refused("cut", "./cut.so: ");
    make_file("hollow.so", &foreign, sizeof foreign);
    check_refused("hollow", "./hollow.so: ");
    ck_assert_int_eq(mkdir("shelf.so", 0700), 0);
    check_refused("shelf", "./shelf.so is not a regular file");
    check_refused("missing", "./missing/missing.so, ./missing.so, ");
}
END_TEST

START_TEST(test_what_anyone_can_write_is_not_loaded)
{
    setenv("GPURUN_PLUGIN_PATH", "shelf", 1);
    make_empty("shelf/x.so");
    ck_assert_int_eq(chmod("shelf/x.so", 0602), 0);
    check_refused("x", "shelf/x.so can be written by anyone: refused (chmod o-w shelf/x.so)");
    ck_assert_int_eq(chmod("shelf/x.so", 0600), 0);
    ck_assert_int_eq(chmod("shelf", 0777), 0);
    check_refused("x", "the folder shelf can be written by anyone: refused (chmod o-w shelf)");
    ck_assert_int_eq(chmod("shelf", 0700), 0);
    check_refused("x", "shelf/x.so is not a shared object");
}
END_TEST

static const struct bad_fake {
    const char *name, *reason;
} bad_fakes[] = {
    {"bad_magic", "bad_magic.so: its gpurun_plugin is no plugin table (magic "},
    {"new_abi", "new_abi.so: built for ABI "},
    {"old_abi", "old_abi.so: built for ABI "},
    {"short_table", "short_table.so: its table has "},
    {"no_symbol", "no_symbol.so exports no gpurun_plugin: is it a gpurun plugin?"},
    {"no_hook", "no_hook.so: has no "},
    {"wrong_name", "wrong_name.so: calls itself '"},
    {"twin_options", "twin_options.so: option "},
    {"core_key", "core_key.so: option "},
    {"bad_default", "bad_default.so: option "},
};

START_TEST(test_bad_fake)
{
    const struct bad_fake *c = &bad_fakes[_i];

    setenv("GPURUN_PLUGIN_PATH", fakes, 1);
    check_refused(c->name, c->reason);
}
END_TEST

/* --- what is loaded --------------------------------------------------------------------------------------- */

START_TEST(test_good_fake)
{
    struct plugin plugin;
    struct why why = {""};
    const struct gpurun_variant *v;

    setenv("GPURUN_PLUGIN_PATH", fakes, 1);
    ck_assert_msg(registry_load("mirror", &plugin, &why) == GPURUN_OK, "%s", why.text);
    ck_assert_ptr_nonnull(strstr(plugin.path, "/fakes/mirror/mirror.so"));
    ck_assert_ptr_nonnull(plugin.handle);
    ck_assert_str_eq(plugin.table->name, "mirror");
    ck_assert_uint_eq(strlen(plugin.build), 16);
    for (const char *c = plugin.build; *c; c++)
        ck_assert(isxdigit((unsigned char)*c));
    ck_assert_uint_eq(plugin.options.count, plugin.table->option_count);
    ck_assert_str_eq(option_at(&plugin.options, 1)->name, "misbehave");
    ck_assert_str_eq(plugin_variant(&plugin, 0)->name, "wrong");
    v = plugin_find_variant(&plugin, "peer");
    ck_assert_ptr_nonnull(v);
    ck_assert_uint_eq(v->capabilities, GPURUN_PEER);
    ck_assert_ptr_null(plugin_find_variant(&plugin, "Peer"));
    ck_assert_ptr_null(plugin_find_variant(&plugin, ""));
    free(plugin.path);
}
END_TEST

/* A copy has the same build, a byte more has not. */
START_TEST(test_build_is_of_the_bytes)
{
    struct plugin here, there, longer;
    struct why why = {""};
    char *path = format_text("%s/mirror/mirror.so", fakes);
    char *bytes = calloc(1, 16 << 20);
    FILE *stream = fopen(path, "rb");
    size_t size;

    ck_assert_msg(stream != NULL && bytes != NULL, "%s", path);
    size = fread(bytes, 1, (16 << 20) - 1, stream);
    fclose(stream);
    make_file("copy/mirror.so", bytes, size);
    make_file("longer/mirror.so", bytes, size + 1);
    setenv("GPURUN_PLUGIN_PATH", fakes, 1);
    ck_assert_msg(registry_load("mirror", &here, &why) == GPURUN_OK, "%s", why.text);
    setenv("GPURUN_PLUGIN_PATH", "copy", 1);
    ck_assert_msg(registry_load("mirror", &there, &why) == GPURUN_OK, "%s", why.text);
    setenv("GPURUN_PLUGIN_PATH", "longer", 1);
    ck_assert_msg(registry_load("mirror", &longer, &why) == GPURUN_OK, "%s", why.text);
    ck_assert_str_eq(there.path, "copy/mirror.so");
    ck_assert_str_eq(here.build, there.build);
    ck_assert_str_ne(here.build, longer.build);
    free(here.path);
    free(there.path);
    free(longer.path);
    free(bytes);
    free(path);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static Suite *registry_suite(void)
{
    Suite *suite = suite_create("registry");
    TCase *search = tcase_create("search"), *load = tcase_create("load");

    tcase_add_checked_fixture(search, enter_folder, leave_folder);
    tcase_add_test(search, test_names);
    tcase_add_test(search, test_no_names);
    tcase_add_test(search, test_search_order);
    tcase_add_test(search, test_long_search_path);
    tcase_add_checked_fixture(load, enter_folder, leave_folder);
    tcase_add_test(load, test_files_that_are_no_plugins);
    tcase_add_test(load, test_what_anyone_can_write_is_not_loaded);
    tcase_add_loop_test(load, test_bad_fake, 0, COUNT(bad_fakes));
    tcase_add_test(load, test_good_fake);
    tcase_add_test(load, test_build_is_of_the_bytes);
    suite_add_tcase(suite, search);
    suite_add_tcase(suite, load);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(registry_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
