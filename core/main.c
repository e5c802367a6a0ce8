/*
 * gpurun: the command line. Commands that look at plugins or devices ask a worker; this process only reads
 * text, starts workers and prints.
 */
#include "batch/batch.h"
#include "batch/interrupt.h"
#include "batch/tune.h"
#include "gpurun/version.h"
#include "job/memory.h"
#include "job/value.h"
#include "plan/registry.h"
#include "report/auto_write.h"
#include "report/compare.h"
#include "report/describe.h"
#include "report/report.h"
#include "report/show.h"
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
    struct override *overrides;
    size_t override_count;
    const char *only;
    const char *html;           /* `report` writes a page here; NULL: nowhere */
    const char *auto_table;     /* `report` makes the table of this plugin; NULL: of none */
    bool has_comparison_option; /* --gap or --fail-on */
    double timeout_s;           /* --timeout, for commands on plugins and devices; 0: not given */
    struct batch_options batch;
    char **words; /* what is left: command or files */
    int count;
};

static const char help[] =
    "gpurun: run GPU algorithms from job files, prove their answers, measure them\n"
    "\n"
    "  gpurun FILE...            run every job of the files ('-': standard input)\n"
    "  gpurun check FILE...      validate everything, run nothing\n"
    "  gpurun show FILE...       every job with all options resolved, and where each value came "
    "from\n"
    "  gpurun list               the plugins\n"
    "  gpurun describe PLUGIN    its options, variants and memory strategies\n"
    "  gpurun describe core      the keys that every job has\n"
    "  gpurun devices            the GPUs\n"
    "  gpurun report FILE...     the tables again, from files of records\n"
    "  gpurun compare OLD NEW    what became faster or slower between two files of records\n"
    "  gpurun tune FILE...       try the tunable options; the best settings as a job file\n"
    "  gpurun selftest           read known times; spoil right answers: verifiers must refuse "
    "them\n"
    "\n"
    "  -s KEY=VALUE      override a key in every job\n"
    "  --only GLOB       only jobs whose full name, file:section, matches\n"
    "  --timeout TIME    stop every job after so long (10s, 5m); the same as -s timeout=TIME; and "
    "so "
    "long\n"
    "                    a plugin may take to answer list, describe or selftest\n"
    "  --records FILE    append one JSON record per case, as it ends\n"
    "  --resume          leave out what has a record in FILE, unless it was interrupted\n"
    "  --resume-from F   the same for the records in F, which is only read; may be repeated\n"
    "  --retry-failed    resume, but run again what did not pass\n"
    "  --fail-fast       stop at the first case that does not pass\n"
    "  --shard I/N       run part I of N of the jobs (1/4 to 4/4); slurm or slurm/N: by the task\n"
    "  --devices LIST    share the jobs among these GPUs, 0,1 or all, with one worker for each\n"
    "  --workers N       run jobs on the CPU with N workers, each on its part of the cores\n"
    "  --dry-run         validate, then list what would run and what is resumed\n"
    "  --json            print one JSON document instead of tables; or --csv, or --md (Markdown)\n"
    "  --junit FILE      write JUnit XML too\n"
    "  --baseline FILE   compare with the records in FILE at the end; the same as -s "
    "baseline=FILE\n"
    "  --gap PERCENT     of a comparison: the least change that counts, 1% by default\n"
    "  --fail-on WORDS   of a comparison: exit 1 for any of these verdicts: slower,failed\n"
    "  --html FILE       of a report: write one HTML page with tables and plots too\n"
    "  --auto-table NAME of a report: print the table of that plugin's variant = auto instead\n"
    "  --strict          unsupported cases count as failures\n"
    "  --help, --version\n"
    "\n"
    "Exit code: 0 every case passed; 1 some case did not; 2 usage or a fault in a job file, "
    "nothing ran;\n"
    "3 a plugin could not be loaded; 4 no device where one was demanded; 130 interrupted.\n";

static int usage(const char *text, const char *detail)
{
    fprintf(stderr, "gpurun: %s%s; see gpurun --help\n", text, detail);
    return EXIT_USAGE;
}

/* --- commands on job files --- */

static void print_jobs(const struct plan *plan, const struct checked *checked)
{
    size_t cases = 0;

    for (size_t i = 0; i < plan->count; i++) {
        show_job(&plan->jobs[i], checked[i].description, checked[i].trouble);
        cases += json_array_size(json_object_get(checked[i].description, "cases"));
    }
    printf("%zu job%s, %zu case%s\n", plan->count, plan->count == 1 ? "" : "s", cases,
           cases == 1 ? "" : "s");
}

/* Says what could not be checked: EXIT_NO_LOAD where a plugin does not load, EXIT_FAILED where one died or
 * hung. */
static int print_troubles(const struct plan *plan, const struct checked *checked, size_t *count)
{
    bool no_load = false;
    char place[600];

    for (size_t i = 0; i < plan->count; i++) {
        if (checked[i].trouble != NULL)
            fprintf(stderr, "%s: plugin: %s\n",
                    origin_text(job_origin(&plan->jobs[i], "plugin"), place, sizeof place),
                    checked[i].trouble);
        no_load = no_load || checked[i].no_load;
        *count += checked[i].trouble != NULL;
    }
    if (no_load)
        return EXIT_NO_LOAD;
    return *count > 0 ? EXIT_FAILED : EXIT_PASSED;
}

static bool has_baseline(const struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (strcmp(plan->jobs[i].core.baseline, "none") != 0)
            return true;
    return false;
}

static int do_files(const struct arguments *a, const char *command, char **files, int count)
{
    struct plan plan;
    struct faults faults = {0};
    struct checked *checked;
    size_t troubles = 0;
    int code = EXIT_USAGE;

    plan_read(files, (size_t)count, a->overrides, a->override_count, a->only, &plan, &faults);
    if (a->batch.records != NULL)
        plan_check_records(&plan, "--records", a->batch.records, &faults);
    if (a->has_comparison_option && faults.count == 0 && !has_baseline(&plan))
        faults_add(&faults, (struct origin){"--gap, --fail-on", 0}, NULL,
                   "no job has a baseline to compare with: --baseline FILE names one");
    if (a->batch.junit != NULL)
        plan_check_records(&plan, "--junit", a->batch.junit, &faults);
    checked = batch_check(&plan, strcmp(command, "show") == 0, &faults);
    if (!interrupted)
        faults_print(&faults);
    if (interrupted) {
        code = EXIT_INTERRUPTED;
    } else if (faults.count > 0) {
        fprintf(stderr, "gpurun: %zu fault%s, nothing was run\n", faults.count,
                faults.count == 1 ? "" : "s");
    } else if (strcmp(command, "run") == 0) {
        code = batch_run(&plan, checked, &a->batch);
    } else {
        code = print_troubles(&plan, checked, &troubles);
        if (strcmp(command, "check") == 0 && troubles == 0)
            printf("%zu job%s, no fault\n", plan.count, plan.count == 1 ? "" : "s");
        else if (strcmp(command, "check") == 0)
            printf("%zu job%s, %zu could not be checked\n", plan.count, plan.count == 1 ? "" : "s",
                   troubles);
        if (strcmp(command, "show") == 0)
            print_jobs(&plan, checked);
    }
    batch_free_checked(checked, plan.count);
    plan_free(&plan);
    faults_free(&faults);
    return code;
}

/* --- commands on plugins and devices --- */

/* What a plugin may take to load and tell of itself, or a driver to start; and what a selftest may. */
static const double ANSWER_S = 60, SELFTEST_S = 600;

/* The worker's result, or NULL with the reason printed. */
static json_t *ask_result(const struct arguments *a, const char *what, const char *plugin)
{
    const bool is_test = strcmp(what, "selftest") == 0 || strcmp(what, "measure") == 0;
    const double usual_s = is_test ? SELFTEST_S : ANSWER_S;
    json_t *command = json_pack("{ssss}", "do", what, "plugin", plugin);
    json_t *answer = batch_ask(command, plugin, a->timeout_s > 0 ? a->timeout_s : usual_s);
    json_t *result = json_incref(json_object_get(answer, "result"));
    const char *error = json_string_value(json_object_get(answer, "load_error"));

    if (error != NULL)
        fprintf(stderr, "gpurun: %s: %s\n", plugin, error);
    json_decref(answer);
    return result;
}

static const char no_plugins[] =
    "gpurun: no plugins found; GPURUN_PLUGIN_PATH names folders to look in\n";

static int do_list(const struct arguments *a)
{
    char **names = registry_names();
    int code = EXIT_PASSED;

    for (size_t i = 0; names[i] != NULL; i++) {
        json_t *description = ask_result(a, "describe", names[i]);

        if (description != NULL)
            print_plugin_line(names[i], description);
        else
            code = EXIT_NO_LOAD;
        json_decref(description);
    }
    if (names[0] == NULL)
        fputs(no_plugins, stderr);
    registry_free_names(names);
    return code;
}

static int do_describe(const struct arguments *a)
{
    const char *name = a->words[1];
    json_t *description;
    char **names;
    const char *nearest;
    struct why why;
    char *path;

    if (strcmp(name, "core") == 0) {
        print_core();
        return EXIT_PASSED;
    }
    if ((path = registry_find(name, &why)) == NULL) {
        names = registry_names();
        nearest = value_nearest(name, (const char *const *)names);
        fprintf(stderr,
                "gpurun: no plugin '%s'%s%s%s; gpurun list shows what there is; looked for %s\n",
                name, nearest ? ", did you mean " : "", nearest ? nearest : "", nearest ? "?" : "",
                why.text);
        registry_free_names(names);
        return EXIT_USAGE;
    }
    free(path);
    description = ask_result(a, "describe", name);
    if (description == NULL)
        return EXIT_NO_LOAD;
    print_plugin(description);
    json_decref(description);
    return EXIT_PASSED;
}

static int do_devices(const struct arguments *a)
{
    json_t *devices = ask_result(a, "devices", "devices");

    if (devices == NULL)
        return EXIT_FAILED;
    print_devices(devices);
    json_decref(devices);
    return EXIT_PASSED;
}

/* The instrument itself: clocks and comparisons. */
static int test_measuring(const struct arguments *a)
{
    json_t *result = ask_result(a, "measure", "selftest"), *line;
    const bool passed = json_is_true(json_object_get(result, "passed"));
    size_t i;

    json_array_foreach(json_object_get(result, "lines"), i, line) printf(
        "%s: %s\n", json_string_value(json_object_get(result, "by")), json_string_value(line));
    json_decref(result);
    return passed ? EXIT_PASSED : EXIT_FAILED;
}

static int do_selftest(const struct arguments *a)
{
    char **names = registry_names();
    int code = test_measuring(a);

    for (size_t i = 0; names[i] != NULL; i++) {
        json_t *result = ask_result(a, "selftest", names[i]);
        json_t *missed = json_object_get(result, "missed"), *text;
        size_t k;

        json_array_foreach(missed, k, text)
            printf("%s: MISSED: %s\n", names[i], json_string_value(text));
        if (result != NULL)
            printf("%s: %lld spoiled answers, %zu missed\n", names[i],
                   (long long)json_integer_value(json_object_get(result, "corruptions")),
                   json_array_size(missed));
        if (result == NULL || json_array_size(missed) > 0)
            code = EXIT_FAILED;
        json_decref(result);
    }
    if (names[0] == NULL) {
        fputs(no_plugins, stderr);
        code = EXIT_FAILED;
    }
    registry_free_names(names);
    printf("%s\n", code == EXIT_PASSED ? "PASSED" : "FAILED");
    return code;
}

/* --- the command line --- */

static bool add_override(struct arguments *a, char *text)
{
    char *equals = strchr(text, '=');

    if (equals == NULL || equals == text || equals[1] == '\0')
        return false;
    *equals = '\0';
    a->overrides[a->override_count++] = (struct override){text, equals + 1};
    return true;
}

enum { WORKERS_MAX = 1000 };

enum {
    ONLY = 256,
    JSON,
    CSV,
    MARKDOWN,
    JUNIT,
    RECORDS,
    RESUME,
    RESUME_FROM,
    RETRY_FAILED,
    FAIL_FAST,
    TIMEOUT,
    DRY_RUN,
    SHARD,
    BASELINE,
    GAP,
    FAIL_ON,
    HTML,
    AUTO_TABLE,
    DEVICES,
    WORKERS,
    STRICT,
    HELP,
    VERSION
};

static bool set_timeout(struct arguments *a, const char *text)
{
    struct why why;

    if (value_parse_duration(text, &a->timeout_s, &why) != GPURUN_OK) {
        usage("--timeout: ", why.text);
        return false;
    }
    a->overrides[a->override_count++] = (struct override){"timeout", text};
    return true;
}

static bool set_shard(struct arguments *a, const char *text)
{
    struct why why;

    if (shard_parse(text, &a->batch.shard, &why) == GPURUN_OK)
        return true;
    usage("--shard: ", why.text);
    return false;
}

static bool set_gap(struct arguments *a, const char *text)
{
    struct why why;

    a->has_comparison_option = true;
    if (verdict_parse_gap(text, &a->batch.gap, &why) == GPURUN_OK)
        return true;
    usage("--gap: ", why.text);
    return false;
}

static bool set_fail_on(struct arguments *a, const char *text)
{
    struct why why;

    a->has_comparison_option = true;
    if (verdict_parse_list(text, &a->batch.fail_on, &why) == GPURUN_OK)
        return true;
    usage("--fail-on: ", why.text);
    return false;
}

static bool set_devices(struct arguments *a, const char *text)
{
    struct why why;

    if (devices_parse(text, &a->batch.devices, &why) == GPURUN_OK)
        return true;
    usage("--devices: ", why.text);
    return false;
}

static bool set_workers(struct arguments *a, const char *text)
{
    int64_t workers;
    struct why why;

    if (value_parse_int(text, &workers, &why) == GPURUN_OK && workers >= 1 &&
        workers <= WORKERS_MAX) {
        a->batch.workers = (long)workers;
        return true;
    }
    usage("--workers wants a number from 1 to 1000, not ", text);
    return false;
}

/* Options that say what a batch does; false for any other. */
static bool set_batch_option(struct batch_options *o, int option)
{
    switch (option) {
    case JSON:
        o->format = OUTPUT_JSON;
        return true;
    case CSV:
        o->format = OUTPUT_CSV;
        return true;
    case MARKDOWN:
        o->format = OUTPUT_MARKDOWN;
        return true;
    case JUNIT:
        o->junit = optarg;
        return true;
    case RECORDS:
        o->records = optarg;
        return true;
    case RETRY_FAILED:
        o->retry_failed = true;
        o->resume = true;
        return true;
    case RESUME:
        o->resume = true;
        return true;
    case RESUME_FROM:
        o->resume_from[o->resume_from_count++] = optarg;
        return true;
    case FAIL_FAST:
        o->fail_fast = true;
        return true;
    case DRY_RUN:
        o->dry_run = true;
        return true;
    case STRICT:
        o->strict = true;
        return true;
    }
    return false;
}

/* -1: go on; otherwise the exit code. */
static int set_option(struct arguments *a, int option)
{
    if (set_batch_option(&a->batch, option))
        return -1;
    switch (option) {
    case 's':
        return add_override(a, optarg) ? -1 : usage("-s wants KEY=VALUE, not ", optarg);
    case ONLY:
        a->only = optarg;
        return -1;
    case TIMEOUT:
        return set_timeout(a, optarg) ? -1 : EXIT_USAGE;
    case SHARD:
        return set_shard(a, optarg) ? -1 : EXIT_USAGE;
    case BASELINE:
        a->overrides[a->override_count++] = (struct override){"baseline", optarg};
        return -1;
    case GAP:
        return set_gap(a, optarg) ? -1 : EXIT_USAGE;
    case FAIL_ON:
        return set_fail_on(a, optarg) ? -1 : EXIT_USAGE;
    case HTML:
        a->html = optarg;
        return -1;
    case AUTO_TABLE:
        a->auto_table = optarg;
        return -1;
    case DEVICES:
        return set_devices(a, optarg) ? -1 : EXIT_USAGE;
    case WORKERS:
        return set_workers(a, optarg) ? -1 : EXIT_USAGE;
    case HELP:
    case 'h':
        fputs(help, stdout);
        return EXIT_PASSED;
    case VERSION:
        printf("gpurun %s\n", GPURUN_VERSION);
        return EXIT_PASSED;
    }
    return usage("the command line is wrong", "");
}

static int parse_arguments(int argc, char **argv, struct arguments *a)
{
    static const struct option options[] = {{"only", required_argument, NULL, ONLY},
                                            {"json", no_argument, NULL, JSON},
                                            {"csv", no_argument, NULL, CSV},
                                            {"md", no_argument, NULL, MARKDOWN},
                                            {"junit", required_argument, NULL, JUNIT},
                                            {"records", required_argument, NULL, RECORDS},
                                            {"resume", no_argument, NULL, RESUME},
                                            {"resume-from", required_argument, NULL, RESUME_FROM},
                                            {"retry-failed", no_argument, NULL, RETRY_FAILED},
                                            {"fail-fast", no_argument, NULL, FAIL_FAST},
                                            {"timeout", required_argument, NULL, TIMEOUT},
                                            {"dry-run", no_argument, NULL, DRY_RUN},
                                            {"shard", required_argument, NULL, SHARD},
                                            {"baseline", required_argument, NULL, BASELINE},
                                            {"gap", required_argument, NULL, GAP},
                                            {"fail-on", required_argument, NULL, FAIL_ON},
                                            {"html", required_argument, NULL, HTML},
                                            {"auto-table", required_argument, NULL, AUTO_TABLE},
                                            {"devices", required_argument, NULL, DEVICES},
                                            {"workers", required_argument, NULL, WORKERS},
                                            {"strict", no_argument, NULL, STRICT},
                                            {"help", no_argument, NULL, HELP},
                                            {"version", no_argument, NULL, VERSION},
                                            {0}};
    int option, code;

    while ((option = getopt_long(argc, argv, "s:h", options, NULL)) != -1)
        if ((code = set_option(a, option)) >= 0)
            return code;
    if (a->batch.resume && a->batch.records == NULL && a->batch.resume_from_count == 0)
        return usage("--resume and --retry-failed want the earlier records: --records FILE, or "
                     "--resume-from FILE",
                     "");
    if (a->batch.workers > 0 && a->batch.devices.text != NULL)
        return usage("--workers is for batches on the CPU, --devices has one worker per GPU: leave "
                     "one out",
                     "");
    if (a->batch.dry_run && a->batch.format != OUTPUT_TABLE)
        return usage("--dry-run prints a list of its own: leave --json, --csv and --md out", "");
    if (a->batch.junit != NULL && a->batch.records != NULL &&
        strcmp(a->batch.junit, a->batch.records) == 0)
        return usage("--junit and --records name the same file: ", a->batch.junit);
    a->words = argv + optind;
    a->count = argc - optind;
    return -1;
}

static int do_report(const struct arguments *a)
{
    const struct report_options options = {a->batch.format, a->batch.strict, a->batch.junit,
                                           a->html};

    if (a->auto_table == NULL)
        return report_print(a->words + 1, (size_t)a->count - 1, &options);
    if (a->batch.format != OUTPUT_TABLE || a->html != NULL || a->batch.junit != NULL)
        return usage("--auto-table prints a table of its own: leave --json, --csv, --md, --junit "
                     "and --html out",
                     "");
    return auto_write(a->words + 1, (size_t)a->count - 1, a->auto_table, a->batch.gap);
}

static int do_compare(const struct arguments *a)
{
    const struct compare_options options = {a->batch.format, a->batch.gap, a->batch.fail_on};

    if (a->batch.junit != NULL)
        return usage("--junit is for runs and reports, compare writes none: ", a->batch.junit);
    return compare_files(a->words[1], a->words[2], &options);
}

static int do_tune(const struct arguments *a)
{
    const struct tune_request request = {.files = a->words + 1,
                                         .file_count = (size_t)a->count - 1,
                                         .overrides = a->overrides,
                                         .override_count = a->override_count,
                                         .only = a->only,
                                         .batch = &a->batch};

    for (int i = 1; i < a->count; i++)
        if (strcmp(a->words[i], "-") == 0)
            return usage("tune reads its files many times: name a file, not ", "-");
    return (int)tune(&request);
}

static int dispatch(const struct arguments *a)
{
    static const struct {
        const char *word;
        int (*run)(const struct arguments *a);
    } alone[] = {{"list", do_list}, {"devices", do_devices}, {"selftest", do_selftest}};
    const char *word = a->count > 0 ? a->words[0] : "";

    if (a->count == 0)
        return usage("name a job file", "");
    if (strcmp(word, "check") == 0 || strcmp(word, "show") == 0)
        return a->count > 1 ? do_files(a, word, a->words + 1, a->count - 1)
                            : usage(word, ": name a job file");
    if (strcmp(word, "report") == 0)
        return a->count > 1 ? do_report(a) : usage("report: name a file of records", "");
    if (a->html != NULL)
        return usage("--html is for report: gpurun report FILE... --html ", a->html);
    if (a->auto_table != NULL)
        return usage("--auto-table is for report: gpurun report FILE... --auto-table ",
                     a->auto_table);
    if (strcmp(word, "compare") == 0)
        return a->count == 3 ? do_compare(a)
                             : usage("compare wants two files of records: OLD NEW", "");
    if (strcmp(word, "tune") == 0)
        return a->count > 1 ? do_tune(a) : usage("tune: name a job file", "");
    if (strcmp(word, "describe") == 0)
        return a->count == 2 ? do_describe(a) : usage("describe wants one PLUGIN, or core", "");
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
        if (strcmp(word, alone[i].word) == 0)
            return a->count == 1 ? alone[i].run(a) : usage(word, " takes no arguments");
    return do_files(a, "run", a->words, a->count);
}

int main(int argc, char **argv)
{
    struct arguments a = {.overrides = allocate((size_t)argc + 1, sizeof *a.overrides),
                          .batch.gap = COMPARE_GAP};
    int code;

    signal(SIGPIPE, SIG_DFL); /* `| head` ends it, whoever started it */
    a.batch.resume_from = allocate((size_t)argc + 1, sizeof *a.batch.resume_from);
    code = parse_arguments(argc, argv, &a);
    if (code < 0)
        code = dispatch(&a);
    free(a.overrides);
    free(a.batch.resume_from);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "gpurun: standard output: write failed\n");
        code = code == EXIT_PASSED ? EXIT_FAILED : code;
    }
    return code;
}
