/* Tables of `auto` beside a plugin that lives here: what they hold, and what they are refused for. */
#include "plan/auto_table.h"

#include "job/memory.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    int64_t n, k, dtype, distinct, order;
    double scale, wait;
    const char *mask;
};

static const char *const orders[] = {"largest", "smallest", NULL};
static const char *const dtypes[] = {"int32", "float", "half", NULL};

#define OPTION(field) .name = #field, .offset = offsetof(struct options, field)
static const struct gpurun_option rows[] = {
    {OPTION(n), .type = GPURUN_OPTION_INT, .flags = GPURUN_OPTION_AUTO, .max = 1e18},
    {OPTION(k), .type = GPURUN_OPTION_INT, .min = 1, .max = 4096},
    {OPTION(dtype), .type = GPURUN_OPTION_DTYPE, .choices = dtypes},
    {OPTION(distinct), .type = GPURUN_OPTION_BOOL},
    {OPTION(order), .type = GPURUN_OPTION_CHOICE, .choices = orders},
    {OPTION(scale), .type = GPURUN_OPTION_REAL, .flags = GPURUN_OPTION_AUTO},
    {OPTION(wait), .type = GPURUN_OPTION_DURATION},
    {OPTION(mask), .type = GPURUN_OPTION_TEXT},
};

static const struct gpurun_variant variants[] = {
    {.name = "naive"}, {.name = "tiled"}, {.name = "vendor", .capabilities = GPURUN_PEER}};

static struct gpurun_plugin table;
static struct plugin plugin;
static struct auto_table *loaded;
static struct options options;
static struct auto_question question;
static char folder[] = "/tmp/test_auto_table_XXXXXX";

static void start(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    table = (struct gpurun_plugin){.name = "here",
                                   .variants = variants,
                                   .variant_count = GPURUN_COUNT(variants),
                                   .variant_size = sizeof variants[0],
                                   .options_bytes = sizeof(struct options)};
    plugin = (struct plugin){.path = (char *)"./here.so",
                             .table = &table,
                             .options = {rows, GPURUN_COUNT(rows), sizeof rows[0]}};
    options =
        (struct options){.n = 1000, .k = 20, .dtype = GPURUN_FLOAT, .scale = 1.5, .mask = "box3"};
    question = (struct auto_question){
        .options = &options, .bytes = 4000, .compute = 90, .device_name = "NVIDIA H200"};
}

static void finish(void)
{
    auto_table_free(loaded);
    unlink("here.auto");
    ck_assert_int_eq(chdir("/"), 0);
    rmdir(folder);
}

static void load(const char *text)
{
    FILE *f = fopen("here.auto", "w");

    fputs(text, f);
    fclose(f);
    auto_table_free(loaded);
    loaded = auto_table_load(&plugin);
    ck_assert_ptr_nonnull(loaded);
}

/* Whether a rule of this one condition holds. */
static bool holds(const char *condition)
{
    char text[200];

    snprintf(text, sizeof text, "[1]\n%s\nvariant = tiled\n", condition);
    load(text);
    ck_assert_msg(loaded->faults.count == 0, "%s",
                  loaded->faults.count ? loaded->faults.texts[0] : "");
    return auto_table_next(loaded, 0, &question) != NULL;
}

static void expect_fault(const char *text, const char *fault)
{
    load(text);
    ck_assert_uint_ge(loaded->faults.count, 1);
    ck_assert_str_eq(loaded->faults.texts[0], fault);
}

START_TEST(test_no_table)
{
    ck_assert_ptr_null(auto_table_load(&plugin));
    load("# nothing but a comment\n");
    ck_assert_uint_eq(loaded->count, 0);
    ck_assert_uint_eq(loaded->faults.count, 0);
    ck_assert_str_eq(loaded->path, "./here.auto");
    ck_assert_str_eq(loaded->name, "here.auto");
    ck_assert_ptr_null(auto_table_next(loaded, 0, &question));
}
END_TEST

/* The first that holds, then what stands behind it. */
START_TEST(test_order)
{
    const struct auto_rule *rule;

    load("[a]\nn = 1M..\nvariant = naive\n\n[b]\nk = 20\nn = ..1K\nvariant = tiled\n[c]\nvariant = "
         "naive\n");
    ck_assert_uint_eq(loaded->faults.count, 0);
    ck_assert_uint_eq(loaded->count, 3);
    rule = auto_table_next(loaded, 0, &question);
    ck_assert_ptr_eq(rule, &loaded->rules[1]);
    ck_assert_int_eq(rule->line, 5);
    ck_assert_str_eq(rule->variant->name, "tiled");
    ck_assert_ptr_eq(auto_table_next(loaded, 2, &question), &loaded->rules[2]);
    ck_assert_ptr_null(auto_table_next(loaded, 3, &question));
    options.k = 21; /* every condition of a rule must hold */
    ck_assert_ptr_eq(auto_table_next(loaded, 0, &question), &loaded->rules[2]);
}
END_TEST

START_TEST(test_whole_numbers)
{
    ck_assert(holds("n = 1000"));
    ck_assert(holds("n = 1K"));
    ck_assert(!holds("n = 999"));
    ck_assert(holds("n = 1K..2K")); /* ends belong to a range */
    ck_assert(holds("n = 10..1K"));
    ck_assert(!holds("n = 1_001.."));
    ck_assert(!holds("n = ..999"));
    ck_assert(holds("n = ..1K"));
    ck_assert(holds("n = 7, 2..5 ,1K"));
    ck_assert(!holds("n = 7, 2..5"));
    ck_assert(holds("n = ..5, 900.."));
    ck_assert(!holds("n = auto"));
    options.n = GPURUN_AUTO;
    ck_assert(holds("n = auto"));
    ck_assert(!holds("n = ..1M"));
}
END_TEST

START_TEST(test_other_types)
{
    ck_assert(holds("dtype = half, float"));
    ck_assert(!holds("dtype = int32"));
    ck_assert(holds("distinct = no"));
    ck_assert(!holds("distinct = yes"));
    ck_assert(holds("order = largest"));
    ck_assert(holds("mask = box5, box3"));
    ck_assert(!holds("mask = box"));
    ck_assert(holds("scale = 1.5"));
    ck_assert(holds("scale = -inf..1.5"));
    ck_assert(holds("scale = 0.5.."));
    ck_assert(!holds("scale = ..1"));
    ck_assert(!holds("scale = auto"));
    options.scale = NAN;
    ck_assert(!holds("scale = ..1, 1.."));
    memcpy(&options.scale, &(uint64_t){GPURUN_AUTO_REAL_BITS}, sizeof options.scale);
    ck_assert(holds("scale = auto"));
    ck_assert(!holds("scale = ..1"));
    options.wait = 0.25;
    ck_assert(holds("wait = 250ms..1s"));
    ck_assert(!holds("wait = 1s.."));
}
END_TEST

START_TEST(test_device_and_bytes)
{
    ck_assert(holds("device = 9.0"));
    ck_assert(!holds("device = 8.0"));
    ck_assert(holds("device = 8.0, 9.0"));
    ck_assert(holds("device = NVIDIA H200"));
    ck_assert(holds("device = *H[12]00*"));
    ck_assert(!holds("device = H200"));
    question.compute = 120;
    ck_assert(holds("device = 12.0"));
    ck_assert(!holds("device = 1.20"));
    ck_assert(holds("bytes = 4K"));
    ck_assert(holds("bytes = ..4K"));
    ck_assert(!holds("bytes = 4_001.."));
}
END_TEST

/* A plugin whose own option has the name keeps it. */
START_TEST(test_own_bytes)
{
    static const struct gpurun_option own[] = {{.name = "bytes", .type = GPURUN_OPTION_INT}};

    plugin.options = (struct option_table){own, 1, sizeof own[0]};
    options.n = 7; /* the field at offset 0 */
    ck_assert(holds("bytes = 7"));
    ck_assert(!holds("bytes = 4K"));
}
END_TEST

START_TEST(test_faults)
{
    expect_fault(
        "[a]\nkk = 3\nvariant = naive\n",
        "./here.auto:2: kk: is no condition, did you mean k?: there are device, bytes and the "
        "options of here");
    expect_fault("[a]\nn = 3x\nvariant = naive\n",
                 "./here.auto:2: n: '3x' is not a whole number (write 20, 1e8, 100M or 4Ki)");
    expect_fault("[a]\nk = 1..5K\nvariant = naive\n", "./here.auto:2: k: 5K is above 4096");
    expect_fault("[a]\nn = 5..3\nvariant = naive\n",
                 "./here.auto:2: n: '5..3' begins above its end");
    expect_fault("[a]\nscale = 5..3\nvariant = naive\n",
                 "./here.auto:2: scale: '5..3' begins above its end");
    expect_fault("[a]\nn = ..\nvariant = naive\n",
                 "./here.auto:2: n: '..' is no range: write 1K..1M, ..1M or 1M.., with numbers");
    expect_fault(
        "[a]\nn = 1..auto\nvariant = naive\n",
        "./here.auto:2: n: '1..auto' is no range: write 1K..1M, ..1M or 1M.., with numbers");
    expect_fault("[a]\nbytes = auto\nvariant = naive\n",
                 "./here.auto:2: bytes: 'auto' is not a whole number (write 20, 1e8, 100M or 4Ki)");
    expect_fault("[a]\nn = 1,,2\nvariant = naive\n",
                 "./here.auto:2: n: an empty element: remove the comma");
    expect_fault("[a]\ndtype = int8\nvariant = naive\n",
                 "./here.auto:2: dtype: 'int8' is not one of int32, float or half");
    expect_fault(
        "[a]\nvariant = tild\n",
        "./here.auto:2: variant: 'tild' is no variant of here; gpurun describe here lists them");
    expect_fault("[a]\nvariant = vendor\n",
                 "./here.auto:2: variant: vendor is a peer, and auto is never one");
    expect_fault("\n[a]\nn = 1\n",
                 "./here.auto:2: a rule without its variant: write variant = NAME under it");
    expect_fault(
        "[global]\nn = 1\n",
        "./here.auto:1: [global] has no meaning in a table of auto: every section is a rule");
    expect_fault("include = other.auto\n[a]\nvariant = naive\n",
                 "./here.auto:1: include: has no meaning in a table of auto");
    expect_fault("[a]\nvariant = naive\nn\n",
                 "./here.auto:3: 'n' is not a key: write key = value, or [section]");
    ck_assert_int_eq(unlink("here.auto"), 0);
    ck_assert_int_eq(symlink("/", "here.auto"), 0);
    auto_table_free(loaded);
    loaded = auto_table_load(&plugin);
    ck_assert_uint_eq(loaded->faults.count, 1);
}
END_TEST

/* All of them at once, and to one job of many. */
START_TEST(test_told_once)
{
    struct faults faults = {0};

    load("[a]\nkk = 3\nn = x\nvariant = tild\n[b]\n");
    ck_assert_uint_eq(loaded->faults.count, 4);
    auto_table_tell(loaded, &faults);
    auto_table_tell(loaded, &faults);
    ck_assert_uint_eq(faults.count, 4);
    ck_assert_str_eq(faults.texts[3], loaded->faults.texts[3]);
    faults_free(&faults);
}
END_TEST

/* Without CUDA no variant is known, so none can be wrong. */
START_TEST(test_without_cuda)
{
    table.variant_count = 0;
    load("[a]\nn = ..1M\nvariant = whatever\n");
    ck_assert_uint_eq(loaded->faults.count, 0);
    expect_fault("[a]\nn = x\nvariant = whatever\n",
                 "./here.auto:2: n: 'x' is not a whole number (write 20, 1e8, 100M or 4Ki)");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("auto_table");
    TCase *tests = tcase_create("tables");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tests, start, finish);
    tcase_add_test(tests, test_no_table);
    tcase_add_test(tests, test_order);
    tcase_add_test(tests, test_whole_numbers);
    tcase_add_test(tests, test_other_types);
    tcase_add_test(tests, test_device_and_bytes);
    tcase_add_test(tests, test_own_bytes);
    tcase_add_test(tests, test_faults);
    tcase_add_test(tests, test_told_once);
    tcase_add_test(tests, test_without_cuda);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
