/* What `variant = auto` becomes, with and without a table: a plugin and a device that live here. */
#include "run/choose.h"

#include "plan/auto_table.h"
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static unsigned refused; /* a bit for each variant that cannot run */

/* Check has a macro by the name of the core's fail. */
static enum gpurun_status supported(struct gpurun_ctx *ctx, unsigned bit)
{
    if (refused & bit)
        return (ctx->core->fail)(ctx, GPURUN_UNSUPPORTED, NULL, "not for variant %u", bit);
    return GPURUN_OK;
}

static enum gpurun_status supported_1(struct gpurun_ctx *ctx)
{
    return supported(ctx, 1);
}

static enum gpurun_status supported_2(struct gpurun_ctx *ctx)
{
    return supported(ctx, 2);
}

static const struct gpurun_variant variants[] = {
    {.name = "naive", .supported = supported_1},
    {.name = "tiled", .supported = supported_2},
    {.name = "modern", .min_compute = 100},
    {.name = "vendor", .capabilities = GPURUN_PEER},
};

static const struct gpurun_option rows[] = {
    {.name = "n", .type = GPURUN_OPTION_INT, .def = "1", .max = 1e18}};

static struct gpurun_plugin table;
static struct plugin plugin;
static struct run run;
static struct job job;
static int64_t n;
static char folder[] = "/tmp/test_choose_XXXXXX";

static void start(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    table = (struct gpurun_plugin){.name = "here",
                                   .variants = variants,
                                   .variant_count = GPURUN_COUNT(variants),
                                   .variant_size = sizeof variants[0],
                                   .options_bytes = sizeof n};
    plugin = (struct plugin){
        .path = (char *)"./here.so", .table = &table, .options = {rows, 1, sizeof rows[0]}};
    run.job = &job;
    run.plugin = &plugin;
    run.core.variant = "auto";
    run.ctx.core = &run_core;
    run.ctx.options = &n;
    run.ctx.device.compute = 90;
    snprintf(run.device_info.name, sizeof run.device_info.name, "A GPU");
    n = 5;
}

static void finish(void)
{
    auto_table_free(plugin.auto_table);
    unlink("here.auto");
    ck_assert_int_eq(chdir("/"), 0);
    rmdir(folder);
}

static void load(const char *text)
{
    FILE *f = fopen("here.auto", "w");

    fputs(text, f);
    fclose(f);
    plugin.auto_table = auto_table_load(&plugin);
}

static void expect(const char *name, const char *chosen_by)
{
    const struct gpurun_variant *v;

    ck_assert_int_eq(choose_variant(&run, &v), GPURUN_OK);
    ck_assert_str_eq(v->name, name);
    ck_assert_str_eq(run.chosen_by, chosen_by);
}

START_TEST(test_no_table)
{
    expect("tiled", "the last of the ladder that can run");
    refused = 2;
    expect("naive", "the last of the ladder that can run");
    refused = 3;
    expect("naive", "nothing of the ladder can run");
}
END_TEST

START_TEST(test_table)
{
    load("[a]\nn = ..9\nvariant = naive\n[b]\nbytes = 100..\ndevice = A GPU\nvariant = naive\n");
    expect("naive", "here.auto:1");
    n = 10;
    expect("tiled", "the last of the ladder that can run; no rule of here.auto fits");
    run.ctx.work.bytes_read = 60;
    run.ctx.work.bytes_written = 40;
    expect("naive", "here.auto:4");
}
END_TEST

/* What the table names and cannot run is passed over, and said. */
START_TEST(test_fall_through)
{
    load("[a]\nvariant = modern\n[b]\nn = 6\nvariant = modern\n[c]\nvariant = tiled\n[d]\nvariant "
         "= naive\n");
    expect("tiled",
           "here.auto:6 (line 1 says modern: needs compute capability 10.0, this device has 9.0)");
    refused = 2;
    expect("naive", "here.auto:8 (line 1 says modern: needs compute capability 10.0, this device "
                    "has 9.0) (line "
                    "6 says tiled: not for variant 2)");
    auto_table_free(plugin.auto_table);
    load("[a]\nvariant = tiled\n");
    expect("naive", "the last of the ladder that can run; no rule of here.auto fits (line 1 says "
                    "tiled: not for "
                    "variant 2)");
    refused = 3;
    expect("naive", "nothing of the ladder can run; no rule of here.auto fits (line 1 says tiled: "
                    "not for variant 2)");
}
END_TEST

START_TEST(test_faulty_table)
{
    const struct gpurun_variant *v;
    struct faults faults = {0};

    load("[a]\nn = x\nvariant = naive\n");
    ck_assert_int_eq(choose_variant(&run, &v), GPURUN_INVALID);
    ck_assert_ptr_null(v);
    ck_assert_str_eq(run.why.text,
                     "./here.auto:2: n: 'x' is not a whole number (write 20, 1e8, 100M or 4Ki)");
    run.core.variant = "naive"; /* a job that does not ask the table does not care */
    choose_check(&run, &faults);
    ck_assert_uint_eq(faults.count, 0);
    run.core.variant = "auto";
    choose_check(&run, &faults);
    ck_assert_uint_eq(faults.count, 1);
    faults_free(&faults);
}
END_TEST

START_TEST(test_without_cuda)
{
    const struct gpurun_variant *v;

    table.variant_count = 0;
    ck_assert_int_eq(choose_variant(&run, &v), GPURUN_OK);
    ck_assert_ptr_null(v);
    ck_assert_str_eq(run.chosen_by, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("choose");
    TCase *tests = tcase_create("auto");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tests, start, finish);
    tcase_add_test(tests, test_no_table);
    tcase_add_test(tests, test_table);
    tcase_add_test(tests, test_fall_through);
    tcase_add_test(tests, test_faulty_table);
    tcase_add_test(tests, test_without_cuda);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
