/*
 * What every plugin must keep, whatever it computes:
 *
 *     test_contract [--gpu] [--seconds S] PLUGIN.so [VARIANT...]
 *
 * --seconds is how long sizes are tried; variants are all unless some are named.
 *
 * Nothing here knows a plugin. Options come from its table, sizes are made small by halving what its setup
 * chose, right is what its verify says, and verify itself is held to account with answers that are spoiled
 * or missing. Without --gpu each test is a process of its own; with --gpu all is one process, as CUDA does
 * not live through a fork, and without a device it is skipped.
 */
#include "gpu.h"
#include "spoil.h"

/* --- suites ------------------------------------------------------------------------------------------------------------------- */

static void load(void)
{
    struct why why = {""};

    if (plugin.table == NULL && registry_load(plugin_name, &plugin, &why) != GPURUN_OK)
        ck_abort_msg("%s", why.text);
}

static void unload(void)
{
    free(plugin.path);
}

static Suite *contract_suite(void)
{
    Suite *suite = suite_create("contract");
    TCase *table = tcase_create("table"), *setup = tcase_create("setup");
    TCase *cpu = tcase_create("cpu"), *verify = tcase_create("verify");
    TCase *pairs = tcase_create("pairs"), *all_sizes = tcase_create("sizes");
    TCase *const all[] = {table, setup, cpu, verify, pairs, all_sizes};

    tcase_add_test(table, test_one_symbol_is_exported);
    tcase_add_test(table, test_options);
    tcase_add_test(table, test_variants);
    tcase_add_test(table, test_words_and_memory);
    tcase_add_test(setup, test_setup_says_what_it_chose);
    tcase_add_test(setup, test_teardown_of_a_half_built_state);
    tcase_add_test(setup, test_setup_with_extreme_sizes);
    tcase_add_test(cpu, test_cpu_gives_the_same_bytes_again);
    tcase_add_test(cpu, test_cpu_on_every_generator_size_and_offset);
    tcase_add_test(cpu, test_cpu_with_every_choice);
    tcase_add_test(cpu, test_cpu_on_tiny_sizes);
    tcase_add_test(cpu, test_cpu_with_tunables_at_their_ends);
    tcase_add_test(verify, test_a_missing_answer_fails);
    tcase_add_test(verify, test_every_spoilt_element_fails);
    tcase_add_test(verify, test_selftest);
    tcase_add_test(verify, test_selftest_of_every_choice);
    tcase_add_test(pairs, test_cpu_pairs);
    tcase_add_test(all_sizes, test_cpu_sizes);
    for (size_t i = 0; i < GPURUN_COUNT(all); i++) {
        tcase_add_checked_fixture(all[i], load, unload);
        tcase_set_timeout(all[i], 240);
        suite_add_tcase(suite, all[i]);
    }
    return suite;
}

static Suite *gpu_suite(void)
{
    Suite *suite = suite_create("contract on the device");
    TCase *gpu = tcase_create("gpu"), *pairs = tcase_create("pairs");
    TCase *all_sizes = tcase_create("sizes"), *sum = tcase_create("sum");

    tcase_add_test(gpu, test_gpu_memory_strategies);
    tcase_add_test(gpu, test_gpu_generators);
    tcase_add_test(gpu, test_gpu_choices);
    tcase_add_test(gpu, test_gpu_tiny_sizes);
    tcase_add_test(gpu, test_gpu_tunables);
    tcase_add_test(gpu, test_gpu_larger_sizes);
    tcase_add_test(pairs, test_gpu_pairs);
    tcase_add_test(all_sizes, test_gpu_sizes);
    tcase_add_test(sum, test_gpu_every_variant_ran);
    suite_add_tcase(suite, gpu);
    suite_add_tcase(suite, pairs);
    suite_add_tcase(suite, all_sizes);
    suite_add_tcase(suite, sum);
    return suite;
}

/* NAME of FOLDER/NAME.so, and FOLDER as where the registry looks first. */
static bool find_plugin(void)
{
    char *folder = copy_text(so_path), *slash = strrchr(folder, '/');
    const char *base = slash ? slash + 1 : so_path;
    const char *dot = strstr(base, ".so");

    if (dot != NULL && dot[3] == '\0')
        snprintf(plugin_name, sizeof plugin_name, "%.*s", (int)(dot - base), base);
    if (slash != NULL)
        *slash = '\0';
    setenv("GPURUN_PLUGIN_PATH", slash ? folder : ".", 1);
    free(folder);
    return plugin_name[0] != '\0';
}

/* The plugin and the device, for the one process that uses them; 0, or the exit code with the reason said. */
static int open_gpu(void)
{
    struct why why = {""};

    if (device_api.count(&why) == 0) {
        printf("skipped: no device (%s)\n", why.text);
        return 77;
    }
    if (registry_load(plugin_name, &plugin, &why) == GPURUN_OK &&
        plugin.table->variant_count == 0) {
        printf("skipped: %s has no variants\n", plugin_name);
        return 77;
    }
    if (plugin.table == NULL || device_api.info(0, &device_info, &why) != GPURUN_OK ||
        device_api.open(0, &device, &why) != GPURUN_OK) {
        fprintf(stderr, "%s\n", why.text);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; only_variants != NULL && only_variants[i] != NULL; i++)
        if (plugin_find_variant(&plugin, only_variants[i]) == NULL) {
            fprintf(stderr, "%s has no variant %s\n", plugin_name, only_variants[i]);
            return EXIT_FAILURE;
        }
    printf("%s on %s\n", plugin_name, device_info.name);
    fflush(stdout);
    return 0;
}

/* Sets what the command line says; false where it makes no sense. */
static bool read_arguments(char **argv, bool *on_gpu)
{
    char *end = NULL;

    *on_gpu = *++argv != NULL && strcmp(*argv, "--gpu") == 0;
    argv += *on_gpu;
    sizes_s = *on_gpu ? SIZES_GPU_S : SIZES_CPU_S;
    if (*argv != NULL && strcmp(*argv, "--seconds") == 0) {
        sizes_s = *++argv != NULL ? strtod(*argv, &end) : -1;
        if (!(sizes_s > 0) || *end != '\0')
            return false;
        argv++;
    }
    so_path = *argv;
    if (so_path == NULL || so_path[0] == '-')
        return false;
    only_variants = argv[1] != NULL ? argv + 1 : NULL;
    return (only_variants == NULL || *on_gpu) && find_plugin();
}

int main(int argc, char **argv)
{
    SRunner *runner;
    bool on_gpu;
    int failed, code;

    if (argc < 1 || !read_arguments(argv, &on_gpu)) {
        fprintf(stderr, "use: test_contract [--gpu] [--seconds S] PLUGIN.so [VARIANT...]\n"
                        "Variants can be named with --gpu only.\n");
        return EXIT_FAILURE;
    }
    if (on_gpu && (code = open_gpu()) != 0)
        return code;
    runner = srunner_create(on_gpu ? gpu_suite() : contract_suite());
    if (on_gpu)
        srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (device != NULL)
        device_api.close(device);
    free(on_gpu ? plugin.path : NULL);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
