#include "plan/job.h"

#include "job/memory.h"
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- a folder of its own, and files in it --------------------------------------------------------- */

static char folder[] = "/tmp/test_job_XXXXXX";

static void enter_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void leave_folder(void)
{
    DIR *dir = opendir(".");

    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (unlink(e->d_name) != 0 && e->d_name[0] != '.')
            rmdir(e->d_name);
    closedir(dir);
    rmdir(folder);
}

static void write_file(const char *name, const char *text)
{
    FILE *stream = fopen(name, "w");

    ck_assert_ptr_nonnull(stream);
    fputs(text, stream);
    fclose(stream);
}

struct planned {
    struct plan plan;
    struct faults faults;
};

static struct planned read_plan(char *const *paths, size_t count, const struct override *overrides,
                                size_t override_count, const char *only)
{
    struct planned p = {.faults = {0}};

    plan_read(paths, count, overrides, override_count, only, &p.plan, &p.faults);
    return p;
}

/* One file, a.ini, with this text. */
static struct planned read_text(const char *text)
{
    char *const paths[] = {(char *)"a.ini"};

    write_file("a.ini", text);
    return read_plan(paths, 1, NULL, 0, NULL);
}

static void release(struct planned *p)
{
    plan_free(&p->plan);
    faults_free(&p->faults);
}

static void check_no_fault(const struct planned *p)
{
    ck_assert_msg(p->faults.count == 0, "%s", p->faults.count ? p->faults.texts[0] : "");
}

static void check_fault(const struct planned *p, size_t i, const char *start)
{
    ck_assert_msg(i < p->faults.count, "no fault: %s", start);
    ck_assert_msg(strncmp(p->faults.texts[i], start, strlen(start)) == 0, "%s, not %s",
                  p->faults.texts[i], start);
}

static const struct setting *setting_of(const struct job *job, const char *key)
{
    for (size_t i = 0; i < job->setting_count; i++)
        if (strcmp(job->settings[i].key, key) == 0)
            return &job->settings[i];
    ck_abort_msg("no setting %s", key);
}

static void check_setting(const struct job *job, const char *key, const char *text,
                          const char *place, bool shared)
{
    const struct setting *s = setting_of(job, key);
    char origin[100];

    ck_assert_str_eq(s->text, text);
    ck_assert_str_eq(origin_text(s->where, origin, sizeof origin), place);
    ck_assert_str_eq(origin_text(job_origin(job, key), origin, sizeof origin), place);
    ck_assert_msg(s->shared == shared, "%s", key);
}

/* --- precedence -------------------------------------------------------------------------------------- */

static const char layered[] = "[global]\n"
                              "plugin = topk\n"
                              "seed = 2\n"
                              "k = 5\n"
                              "\n"
                              "[first]\n"
                              "k = 6\n"
                              "n = 1000\n"
                              "[global]\n"
                              "repeat = 7\n"
                              "[second]\n"
                              "seed = 3\n";

START_TEST(test_a_section_goes_before_global)
{
    struct planned p = read_text(layered);
    const struct job *first = &p.plan.jobs[0], *second = &p.plan.jobs[1];

    check_no_fault(&p);
    ck_assert_uint_eq(p.plan.count, 2);
    ck_assert_str_eq(first->name, "a.ini:first");
    ck_assert_int_eq(first->where.line, 6);
    ck_assert_str_eq(second->name, "a.ini:second");
    ck_assert_uint_eq(first->setting_count, 5);
    check_setting(first, "plugin", "topk", "a.ini:2", true);
    check_setting(first, "seed", "2", "a.ini:3", true);
    check_setting(first, "k", "6", "a.ini:7", false);
    check_setting(first, "n", "1000", "a.ini:8", false);
    check_setting(first, "repeat", "7", "a.ini:10", true); /* a later [global] holds as well */
    ck_assert_uint_eq(second->setting_count, 4);
    check_setting(second, "k", "5", "a.ini:4", true);
    check_setting(second, "seed", "3", "a.ini:12", false);
    ck_assert_str_eq(first->core.plugin, "topk");
    ck_assert_int_eq(first->core.seed, 2);
    ck_assert_int_eq(second->core.seed, 3);
    ck_assert_int_eq(second->core.repeat, 7);
    ck_assert_int_eq(job_origin(first, "offset").line, 6); /* not set: the section's own line */
    ck_assert_int_eq(job_origin(first, NULL).line, 6);
    release(&p);
}
END_TEST

START_TEST(test_the_command_line_goes_before_all)
{
    const struct override overrides[] = {{"k", "9"}, {"seed", "4"}, {"offset", "1"}};
    char *const paths[] = {(char *)"a.ini"};
    struct planned p;

    write_file("a.ini", layered);
    p = read_plan(paths, 1, overrides, 3, NULL);
    check_no_fault(&p);
    check_setting(&p.plan.jobs[0], "k", "9", "-s",
                  false); /* the section sets it: it must be known */
    check_setting(&p.plan.jobs[0], "seed", "4", "-s", true);
    check_setting(&p.plan.jobs[0], "offset", "1", "-s", true);
    check_setting(&p.plan.jobs[1], "k", "9", "-s", true);
    ck_assert_int_eq(p.plan.jobs[0].core.seed, 4);
    ck_assert_int_eq(p.plan.jobs[1].core.seed, 4);
    ck_assert_int_eq(p.plan.jobs[1].core.offset, 1);
    release(&p);
}
END_TEST

START_TEST(test_global_is_its_files_own)
{
    char *const paths[] = {(char *)"a.ini", (char *)"b.ini"};
    struct planned p;

    write_file("a.ini", layered);
    write_file("b.ini", "[first]\nplugin = sort\n");
    p = read_plan(paths, 2, NULL, 0, NULL);
    check_no_fault(&p);
    ck_assert_uint_eq(p.plan.count, 3);
    ck_assert_str_eq(p.plan.jobs[2].name, "b.ini:first");
    ck_assert_uint_eq(p.plan.jobs[2].setting_count, 1);
    ck_assert_int_eq(p.plan.jobs[2].core.seed, 1);
    release(&p);
}
END_TEST

/* The table of docs and `describe core`: the defaults a job has. */
START_TEST(test_defaults)
{
    struct planned p = read_text("[a]\nplugin = topk\n");
    const struct core_options *c = &p.plan.jobs[0].core;

    check_no_fault(&p);
    ck_assert_int_eq(c->memory, GPURUN_AUTO);
    ck_assert_int_eq(c->prefetch, 0);
    ck_assert_str_eq(c->device, "auto");
    ck_assert_str_eq(c->variant, "auto");
    ck_assert_int_eq(c->seed, 1);
    ck_assert_int_eq(c->offset, 0);
    ck_assert(c->repeat == GPURUN_AUTO);
    ck_assert(c->warmup == GPURUN_AUTO);
    ck_assert(gpurun_real_is_auto(c->min_time));
    ck_assert_int_eq(c->cache, CACHE_HOT);
    ck_assert_int_eq(c->launch, LAUNCH_STREAM);
    ck_assert(c->max_time == 60);
    ck_assert(c->timeout == 600);
    ck_assert_int_eq(c->verify, VERIFY_AUTO);
    ck_assert_int_eq(c->cpu, 1);
    ck_assert_int_eq(c->threads, GPURUN_AUTO);
    ck_assert_str_eq(c->show, "0");
    release(&p);
}
END_TEST

START_TEST(test_core_keys)
{
    struct planned p = read_text("[a]\nplugin = topk\nmemory = managed\nprefetch = on\n"
                                 "device = 3\nvariant = cub, radix\nseed = 0\noffset = 1Ki\n"
                                 "repeat = 1\nwarmup = 0\nmin_time = 100ms\nmax_time = 1m\n"
                                 "timeout = 1h\nverify = certify\ncpu = no\nthreads = 4\n"
                                 "show = 3,4\n");
    const struct core_options *c = &p.plan.jobs[0].core;

    check_no_fault(&p);
    ck_assert_int_eq(c->memory, GPURUN_MANAGED);
    ck_assert_int_eq(c->prefetch, 1);
    ck_assert_str_eq(c->device, "3");
    ck_assert_str_eq(c->variant, "cub, radix");
    ck_assert_int_eq(c->seed, 0);
    ck_assert_int_eq(c->offset, 1024);
    ck_assert_int_eq(c->repeat, 1);
    ck_assert_int_eq(c->warmup, 0);
    ck_assert(c->min_time == 0.1);
    ck_assert(c->max_time == 60);
    ck_assert(c->timeout == 3600);
    ck_assert_int_eq(c->verify, VERIFY_CERTIFY);
    ck_assert_int_eq(c->cpu, 0);
    ck_assert_int_eq(c->threads, 4);
    ck_assert_str_eq(c->show, "3,4");
    release(&p);
}
END_TEST

/* --- faults ---------------------------------------------------------------------------------------------- */

static const struct fault_case {
    const char *text;
    const char *faults[2];
} fault_cases[] = {
    {"[a]\nseed = 1\n", {"a.ini:1: plugin: [a] names no plugin"}},
    {"", {"a.ini: holds no job"}},
    {"[global]\nplugin = topk\n", {"a.ini: holds no job"}},
    {"[a]\nplugin = topk\nseed = x\n", {"a.ini:3: seed: 'x' is not a whole number"}},
    {"[a]\nplugin = topk\nseed = -1\n", {"a.ini:3: seed: -1 is below 0"}},
    {"[a]\nplugin = topk\noffset = 2M\n", {"a.ini:3: offset: 2M is above 1048576"}},
    {"[a]\nplugin = topk\nrepeat = 0\n", {"a.ini:3: repeat: 0 is below 1"}},
    {"[a]\nplugin = topk\nthreads = 0\n", {"a.ini:3: threads: 0 is below 1"}},
    {"[a]\nplugin = topk\ntimeout = 0\n", {"a.ini:3: timeout: 0 is below 0.01"}},
    {"[a]\nplugin = topk\nmemory = host\n",
     {"a.ini:3: memory: 'host' is not one of explicit, "
      "pinned, zerocopy or managed, or auto"}},
    {"[a]\nplugin = topk\nverify = no\n", {"a.ini:3: verify: 'no' is not one of auto, full"}},
    {"[a]\nplugin = topk\ncpu = maybe\n", {"a.ini:3: cpu: 'maybe' is neither yes nor no"}},
    {"[a]\nplugin = topk\ndevice = gpus\n", {"a.ini:3: device: 'gpus' is not auto, cpu, gpu"}},
    {"[a]\nplugin = topk\ndevice = -1\n", {"a.ini:3: device: '-1' is not auto, cpu, gpu"}},
    {"[a]\nplugin = topk\ndevice = 1024\n", {"a.ini:3: device: '1024' is not auto"}},
    {"[a]\nplugin = topk\nmin_time = 2m\n", {"a.ini:3: min_time: 120s is above max_time (60s)"}},
    {"[a]\nplugin = topk\nmax_time = 1s\nmin_time = 2s\n", {"a.ini:4: min_time: 2s is above"}},
    {"[a]\nplugin = topk\nshow = x\n", {"a.ini:3: show: 'x' is not a whole number"}},
    {"[a]\nplugin = topk\nshow = -1\n", {"a.ini:3: show: write a count (20) or one index (3,4)"}},
    {"[a]\nplugin = topk\ninput = unifrom\n",
     {"a.ini:3: input: there is no generator 'unifrom' (did you mean uniform?)"}},
    {"[a]\nplugin = topk\ninput.in = uniform least=1\n", {"a.ini:3: input.in: uniform has no"}},
    {"[a]\nplugin = topk\ninput = file:none.npy\n", {"a.ini:3: input: none.npy: No such file"}},
    {"[a]\nplugin = topk\ninput = file:\n", {"a.ini:3: input: names no file: write file:PATH"}},
    {"[a]\nplugin = topk\ninput = file:.\n", {"a.ini:3: input: . is a folder: name a file"}},
    {"[a]\nplugin = topk\ninput = file:/dev/null\n",
     {"a.ini:3: input: /dev/null is not a regular file"}},
    {"[a]\nplugin = topk\noutput = file:o.npy\n", {"a.ini:3: output: write the path alone"}},
    {"[a]\nplugin = topk\noutput = none/o.npy\n",
     {"a.ini:3: output: none/o.npy: its folder does not exist"}},
    {"[a]\nplugin = topk\noutput.x = .\n", {"a.ini:3: output.x: . is a folder: name a file"}},
    {"[a]\nplugin = topk\noutput = o/\n", {"a.ini:3: output: o/: its folder does not exist"}},
    {"[global]\nplugin = topk\nseed = x\n[a]\n[b]\n", {"a.ini:3: seed: 'x' is not a whole number"}},
    {"[global]\nseed = x\n[a]\nseed = 1\nplugin = topk\n", {NULL}}, /* it holds for no job */
    {"[a]\nplugin = topk\nk = 1 ; one\n[b]\nplugin = topk\n", {"a.ini:3: k: a comment"}},
};

START_TEST(test_fault)
{
    struct planned p = read_text(fault_cases[_i].text);
    size_t expected = 0;

    for (; expected < 2 && fault_cases[_i].faults[expected] != NULL; expected++)
        check_fault(&p, expected, fault_cases[_i].faults[expected]);
    ck_assert_msg(p.faults.count == expected, "one more: %s",
                  p.faults.count > expected ? p.faults.texts[expected] : "");
    release(&p);
}
END_TEST

START_TEST(test_faults_of_the_command_line)
{
    const struct override overrides[] = {{"seed", "x"}, {"k", "1"}, {"k", "2"}};
    char *const paths[] = {(char *)"a.ini", (char *)"missing.ini", (char *)"a.ini"};
    struct planned p;

    write_file("a.ini", "[a]\nplugin = topk\n");
    p = read_plan(paths, 3, overrides, 3, NULL);
    check_fault(&p, 0, "a.ini: given twice");
    check_fault(&p, 1, "-s: k: given twice");
    check_fault(&p, 2, "missing.ini: cannot open: No such file");
    check_fault(&p, 3, "-s: seed: 'x' is not a whole number");
    ck_assert_uint_eq(p.faults.count, 4);
    release(&p);
}
END_TEST

/* --- selection --------------------------------------------------------------------------------------------- */

static const struct only_case {
    const char *only;
    size_t count;
    const char *first;
} only_cases[] = {
    {"*", 3, "a.ini:one"},    {"*:t*", 2, "a.ini:two"},          {"a.ini:two", 1, "a.ini:two"},
    {"*two", 1, "a.ini:two"}, {"?.ini:three", 1, "a.ini:three"}, {"a.ini:[no]*", 1, "a.ini:one"}};

START_TEST(test_only)
{
    char *const paths[] = {(char *)"a.ini"};
    struct planned p;

    write_file("a.ini", "[global]\nplugin = topk\n[one]\n[two]\n[three]\n");
    p = read_plan(paths, 1, NULL, 0, only_cases[_i].only);
    check_no_fault(&p);
    ck_assert_uint_eq(p.plan.count, only_cases[_i].count);
    ck_assert_str_eq(p.plan.jobs[0].name, only_cases[_i].first);
    release(&p);
}
END_TEST

/* What is not selected is not judged; what selects nothing is a fault. */
START_TEST(test_only_of_nothing)
{
    char *const paths[] = {(char *)"a.ini"};
    struct planned p;

    write_file("a.ini", "[one]\nplugin = topk\n[two]\nseed = x\n");
    p = read_plan(paths, 1, NULL, 0, "*:one");
    check_no_fault(&p);
    ck_assert_uint_eq(p.plan.count, 1);
    release(&p);
    p = read_plan(paths, 1, NULL, 0, "one");
    check_fault(&p, 0, "--only: 'one' matches none of 2 jobs");
    ck_assert_uint_eq(p.plan.count, 0);
    release(&p);
}
END_TEST

/* --- sweeps ---------------------------------------------------------------------------------------------------- */

static void check_names(const struct planned *p, const char *const *names)
{
    size_t count = 0;

    for (; names[count] != NULL; count++) {
        ck_assert_msg(count < p->plan.count, "no job %s", names[count]);
        ck_assert_str_eq(p->plan.jobs[count].name, names[count]);
    }
    ck_assert_msg(count == p->plan.count, "one more: %s",
                  count < p->plan.count ? p->plan.jobs[count].name : "");
}

static const struct sweep_case {
    const char *text;
    const char *names[9];
} sweep_cases[] = {
    {"n = 1\n", {"a.ini:x"}},
    {"n = 1M, 2000\n", {"a.ini:x/n=1M", "a.ini:x/n=2000"}},
    {"n = 1M..1G*10\n", {"a.ini:x/n=1M", "a.ini:x/n=10M", "a.ini:x/n=100M", "a.ini:x/n=1G"}},
    {"n = 5..5+1\n", {"a.ini:x/n=5"}}, /* a sweep, of one */
    {"n = 1, 2\nk = 3, 4\n",
     {"a.ini:x/n=1,k=3", "a.ini:x/n=1,k=4", "a.ini:x/n=2,k=3", "a.ini:x/n=2,k=4"}},
    {"k = 3, 4\nm = 5\nn = 1, 2\n",
     {"a.ini:x/k=3,n=1", "a.ini:x/k=3,n=2", "a.ini:x/k=4,n=1", "a.ini:x/k=4,n=2"}},
    {"a = 1, 2\nb = 1, 2\nc = 1, 2\n",
     {"a.ini:x/a=1,b=1,c=1", "a.ini:x/a=1,b=1,c=2", "a.ini:x/a=1,b=2,c=1", "a.ini:x/a=1,b=2,c=2",
      "a.ini:x/a=2,b=1,c=1", "a.ini:x/a=2,b=1,c=2", "a.ini:x/a=2,b=2,c=1", "a.ini:x/a=2,b=2,c=2"}},
    {"n = 1, 2\nk = 3, 4\nzip = n, k\n", {"a.ini:x/n=1,k=3", "a.ini:x/n=2,k=4"}},
    {"zip = c, a\na = 1, 2\nb = 3, 4\nc = 5, 6\n",
     {"a.ini:x/a=1,b=3,c=5", "a.ini:x/a=1,b=4,c=5", "a.ini:x/a=2,b=3,c=6", "a.ini:x/a=2,b=4,c=6"}},
    {"a = 1, 2\nb = 3, 4\nc = 5, 6\nzip = b, c\n",
     {"a.ini:x/a=1,b=3,c=5", "a.ini:x/a=1,b=4,c=6", "a.ini:x/a=2,b=3,c=5", "a.ini:x/a=2,b=4,c=6"}},
    {"memory = explicit, managed\nprefetch = no, yes\n",
     {"a.ini:x/memory=explicit,prefetch=no", "a.ini:x/memory=explicit,prefetch=yes",
      "a.ini:x/memory=managed,prefetch=no", "a.ini:x/memory=managed,prefetch=yes"}},
    {"input = uniform, constant value=7\n",
     {"a.ini:x/input=uniform", "a.ini:x/input=constant value=7"}},
    {"input.b = uniform, ascending\n", {"a.ini:x/input.b=uniform", "a.ini:x/input.b=ascending"}},
    {"variant = b, c\nshow = 1,2\n", {"a.ini:x"}}, /* lists by nature */
    {"mask = 1 2 1 / 2 4 2, box5\n", {"a.ini:x/mask=1 2 1 / 2 4 2", "a.ini:x/mask=box5"}},
};

START_TEST(test_sweep)
{
    char *text = format_text("[x]\nplugin = topk\n%s", sweep_cases[_i].text);
    struct planned p = read_text(text);

    check_no_fault(&p);
    check_names(&p, sweep_cases[_i].names);
    release(&p);
    free(text);
}
END_TEST

/* A job has one value of each key, and the line it came from; a swept key must be known to its plugin. */
START_TEST(test_values_of_a_sweep)
{
    static const char *const names[] = {"a.ini:x/n=10,memory=pinned,input=normal",
                                        "a.ini:x/n=10,memory=pinned,input=constant value=2",
                                        "a.ini:x/n=20,memory=managed,input=normal",
                                        "a.ini:x/n=20,memory=managed,input=constant value=2",
                                        "a.ini:y/n=10",
                                        "a.ini:y/n=20",
                                        NULL};
    struct planned p = read_text("[global]\nplugin = topk\nn = 10, 20\nk = 5\n[x]\n"
                                 "memory = pinned, managed\ninput = normal, constant value=2\n"
                                 "zip = n, memory\n[y]\n");
    const struct job *jobs = p.plan.jobs;

    check_no_fault(&p);
    check_names(&p, names);
    check_setting(&jobs[3], "n", "20", "a.ini:3", false);
    check_setting(&jobs[3], "k", "5", "a.ini:4", true);
    check_setting(&jobs[3], "memory", "managed", "a.ini:6", false);
    check_setting(&jobs[4], "n", "10", "a.ini:3", false);
    ck_assert_int_eq(jobs[0].core.memory, GPURUN_PINNED);
    ck_assert_int_eq(jobs[2].core.memory, GPURUN_MANAGED);
    ck_assert_int_eq(jobs[4].core.memory, GPURUN_AUTO);
    ck_assert_str_eq(jobs[0].inputs[0].text, "normal");
    ck_assert_str_eq(jobs[3].inputs[0].text, "constant value=2");
    ck_assert_int_eq(jobs[3].where.line, 5);
    ck_assert_str_eq(jobs[3].section, "x");
    release(&p);
}
END_TEST

START_TEST(test_sweep_of_the_command_line)
{
    static const char *const names[] = {"a.ini:x/k=1,n=7", "a.ini:x/k=2,n=8", NULL};
    const struct override overrides[] = {{"n", "7, 8"}, {"zip", "k, n"}, {"k", "1..2+1"}};
    char *const paths[] = {(char *)"a.ini"};
    struct planned p;

    write_file("a.ini", "[x]\nplugin = topk\nk = 5\n");
    p = read_plan(paths, 1, overrides, 3, NULL);
    check_no_fault(&p);
    check_names(&p, names);
    check_setting(&p.plan.jobs[0], "n", "7", "-s", false);
    release(&p);
}
END_TEST

static const struct sweep_only_case {
    const char *only;
    const char *names[5];
} sweep_only_cases[] = {
    {"a.ini:x", {"a.ini:x/n=1,k=3", "a.ini:x/n=1,k=4", "a.ini:x/n=2,k=3", "a.ini:x/n=2,k=4"}},
    {"a.ini:x/n=1,k=3", {"a.ini:x/n=1,k=3"}},
    {"*k=4", {"a.ini:x/n=1,k=4", "a.ini:x/n=2,k=4"}},
    {"*/n=2,*", {"a.ini:x/n=2,k=3", "a.ini:x/n=2,k=4"}},
    {"a.ini:[xy]/*k=3", {"a.ini:x/n=1,k=3", "a.ini:x/n=2,k=3"}},
    {"a.ini:y", {"a.ini:y"}},
    {"*y", {"a.ini:y"}},
};

START_TEST(test_only_of_a_sweep)
{
    char *const paths[] = {(char *)"a.ini"};
    struct planned p;

    write_file("a.ini", "[x]\nplugin = topk\nn = 1, 2\nk = 3, 4\n[y]\nplugin = topk\n");
    p = read_plan(paths, 1, NULL, 0, sweep_only_cases[_i].only);
    check_no_fault(&p);
    check_names(&p, sweep_only_cases[_i].names);
    ck_assert(p.plan.is_partial);
    release(&p);
}
END_TEST

/* A faulty sweep is only spoken of where one of its jobs could be meant. */
static const struct judged_case {
    const char *only;
    bool judged;
} judged_cases[] = {
    {NULL, true},           {"*", true},         {"a.ini:x", true},    {"a.ini:x/n=1", true},
    {"*y", true},           {"a.ini:*", true},   {"a.ini:[xy]", true}, {"a.ini:y", false},
    {"a.ini:y/n=1", false}, {"b.ini:*", false},  {"a.ini:xx*", false}, {"a.ini:", false},
    {"a.ini:x/n*", true},   {"a.ini:xx", false},
};

START_TEST(test_only_of_a_faulty_sweep)
{
    char *const paths[] = {(char *)"a.ini"};
    struct planned p;

    write_file("a.ini", "[x]\nplugin = topk\nn = 1,,2\n[y]\nplugin = topk\n");
    p = read_plan(paths, 1, NULL, 0, judged_cases[_i].only);
    ck_assert(p.plan.is_partial);
    if (judged_cases[_i].judged)
        check_fault(&p, 0, "a.ini:3: n: an element of the list is empty");
    for (size_t i = 0; !judged_cases[_i].judged && i < p.faults.count; i++)
        check_fault(&p, i, "--only: ");
    release(&p);
}
END_TEST

static const struct sweep_fault_case {
    const char *text;
    const char *faults[3];
} sweep_fault_cases[] = {
    {"n = 1,,2\nk = 3..1+1\n",
     {"a.ini:3: n: an element of the list is empty: write a, b, c",
      "a.ini:4: k: '3..1+1' never ends: 3 is above 1"}},
    {"n = 1, 2\nk = 1, 2, 3\nzip = n, k\n",
     {"a.ini:5: zip: n has 2 values and k has 3 in [x]: give both as many"}},
    {"n = 1, 2\nk = 3\nzip = n, k\n",
     {"a.ini:5: zip: k is no sweep in [x]: give it a list, or leave it out here"}},
    {"n = 1, 2\nseed = 3, 4\nzip = n, seed\n",
     {"a.ini:5: zip: seed is no sweep in [x]: give it a list, or leave it out here"}},
    {"n = 1, 2\nblock = 3, 4\nzip = n, blok\n",
     {"a.ini:5: zip: [x] sets no 'blok' (did you mean block?)"}},
    {"n = 1, 2\nzip = n, frobnicate\n", {"a.ini:4: zip: [x] sets no 'frobnicate'"}},
    {"n = 1, 2\nzip = n\n", {"a.ini:4: zip: names one key: write two or more, n, k"}},
    {"n = 1, 2\nzip = n, n\n", {"a.ini:4: zip: n is named twice"}},
    {"n = 1, 2\nk = 1, 2\nzip = n, k, n\n", {"a.ini:5: zip: n is named twice"}},
    {"n = 1, 2\nzip = n,\n",
     {"a.ini:4: zip: an element of the list is empty: write two keys or more, n, k"}},
    {"seed = 1, 2\n",
     {"a.ini:3: seed: '1, 2' is not a whole number (write 20, 1e8, 100M or 4Ki); "
      "it is no key to sweep"}},
    {"verify = full, certify\n", {"a.ini:3: verify: 'full, certify' is not one of auto, full"}},
    {"repeat = 1..8*2\n",
     {"a.ini:3: repeat: '1..8*2' is not a whole number (write 20, 1e8, 100M "
      "or 4Ki); it is no key to sweep"}},
    {"memory = explicit, host\n", {"a.ini:3: memory: 'host' is not one of explicit"}},
    {"input = uniform, unifrom\n", {"a.ini:3: input: there is no generator 'unifrom'"}},
    {"input = uniform,\n", {"a.ini:3: input: an element of the list is empty"}},
    {"n = 1..100000+1\nk = 1, 2\n",
     {"a.ini:1: the sweeps of [x] make 200000 jobs: at most 100000"}},
    {"a = 1..99999+1\nb = 1..99999+1\nc = 1..99999+1\nd = 1..99999+1\ne = 1..99999+1\n",
     {"a.ini:1: the sweeps of [x] make more than "}},
    {"n = 1..60000+1\n[y]\nplugin = topk\nn = 1..40001+1\n[z]\nplugin = topk\n",
     {"a.ini: makes more than 100000 jobs: part it into several files"}},
    {"n = 1, 2\n[x/n=2]\nplugin = topk\n",
     {"a.ini:4: a.ini:x/n=2 is also a job of a.ini:1: a job's name must be its own"}},
    {"n = 1, 2\noutput = o.npy\n",
     {"a.ini:4: output: o.npy is written by more than one job: give each a section"}},
    {"n = 1, 2\ninput = uniform low=1\n", {"a.ini:4: input: uniform has no parameter 'low'"}},
};

START_TEST(test_sweep_fault)
{
    char *text = format_text("[x]\nplugin = topk\n%s", sweep_fault_cases[_i].text);
    struct planned p = read_text(text);
    size_t expected = 0;

    for (; expected < 3 && sweep_fault_cases[_i].faults[expected] != NULL; expected++)
        check_fault(&p, expected, sweep_fault_cases[_i].faults[expected]);
    ck_assert_msg(p.faults.count == expected, "one more: %s",
                  p.faults.count > expected ? p.faults.texts[expected] : "");
    release(&p);
    free(text);
}
END_TEST

START_TEST(test_more_than_one_plugin)
{
    struct planned p = read_text("[x]\nplugin = topk, sort\n");

    ck_assert_uint_eq(p.faults.count, 1);
    check_fault(&p, 0, "a.ini:2: plugin: 'topk, sort' is more than one: write a section for each");
    release(&p);
}
END_TEST

/* --- include ---------------------------------------------------------------------------------------------------- */

/* [global] of common.ini holds for a.ini, that of a.ini for both, the nearer one first. */
START_TEST(test_include_lends_both_ways)
{
    static const char *const names[] = {"d/common.ini:c", "a.ini:x", NULL};
    struct planned p;

    ck_assert_int_eq(mkdir("d", 0700), 0);
    write_file("d/common.ini", "[global]\nplugin = topk\nk = 5\nseed = 3\n[c]\n");
    p = read_text("include = d/common.ini\n[global]\nk = 6\nn = 1000\n[x]\nrepeat = 2\n");
    check_no_fault(&p);
    check_names(&p, names);
    check_setting(&p.plan.jobs[0], "k", "5", "d/common.ini:3", true);
    check_setting(&p.plan.jobs[0], "n", "1000", "a.ini:4", true);
    check_setting(&p.plan.jobs[1], "k", "6", "a.ini:3", true);
    check_setting(&p.plan.jobs[1], "plugin", "topk", "d/common.ini:2", true);
    check_setting(&p.plan.jobs[1], "seed", "3", "d/common.ini:4", true);
    check_setting(&p.plan.jobs[1], "repeat", "2", "a.ini:6", false);
    release(&p);
    unlink("d/common.ini");
}
END_TEST

/* A suite: what one file of it says holds for no other. */
START_TEST(test_included_files_keep_to_themselves)
{
    static const char *const names[] = {"b.ini:x", "c.ini:x", NULL};
    struct planned p;

    write_file("b.ini", "[global]\nplugin = topk\nk = 5\n[x]\n");
    write_file("c.ini", "[global]\nplugin = sort\n[x]\n");
    p = read_text("[global]\nrepeat = 4\ninclude = b.ini, c.ini\n");
    check_no_fault(&p);
    check_names(&p, names);
    ck_assert_uint_eq(p.plan.jobs[0].setting_count, 3);
    ck_assert_uint_eq(p.plan.jobs[1].setting_count, 2);
    check_setting(&p.plan.jobs[1], "plugin", "sort", "c.ini:2", true);
    check_setting(&p.plan.jobs[1], "repeat", "4", "a.ini:2", true);
    release(&p);
}
END_TEST

/* Two ways lead to common.ini: it is read once, and lends to both. */
START_TEST(test_include_of_one_file_by_two)
{
    static const char *const names[] = {"common.ini:c", "b.ini:x", "c.ini:x", NULL};
    struct planned p;

    write_file("common.ini", "[global]\nplugin = topk\nk = 2\n[c]\n");
    write_file("b.ini", "include = common.ini\n[x]\n");
    write_file("c.ini", "include = ./common.ini\n[global]\nk = 3\n[x]\n");
    p = read_text("include = b.ini\ninclude = c.ini\n");
    check_no_fault(&p);
    check_names(&p, names);
    ck_assert_int_eq(p.plan.jobs[0].setting_count, 2);
    check_setting(&p.plan.jobs[1], "k", "2", "common.ini:3", true);
    check_setting(&p.plan.jobs[2], "k", "3", "c.ini:3", true);
    release(&p);
}
END_TEST

/* A file may be given and included: its jobs run once. */
START_TEST(test_given_and_included)
{
    static const char *const names[] = {"b.ini:x", "a.ini:x", NULL};
    char *const paths[] = {(char *)"a.ini", (char *)"./b.ini"};
    static const char *const given[] = {"./b.ini:x", "a.ini:x", NULL};
    struct planned p;

    write_file("b.ini", "[x]\nplugin = topk\n");
    p = read_text("include = b.ini\n[x]\nplugin = topk\n");
    check_no_fault(&p);
    check_names(&p, names);
    release(&p);
    p = read_plan(paths, 2, NULL, 0, NULL);
    check_no_fault(&p);
    check_names(&p, given);
    release(&p);
}
END_TEST

/* Neither b.ini nor c.ini is nearer to [x]; for what [x] says itself it does not matter. */
START_TEST(test_include_rivals)
{
    struct planned p;

    write_file("b.ini", "[global]\nk = 5\nn = 10\nseed = 1\n");
    write_file("c.ini", "[global]\nk = 6\nn = 20\nseed = 1\n");
    p = read_text("include = b.ini, c.ini\n[x]\nplugin = topk\nn = 30\n");
    ck_assert_uint_eq(p.faults.count, 1);
    check_fault(&p, 0, "a.ini:2: k: b.ini:2 and c.ini:2 both set it for [x]: set it here");
    release(&p);
    write_file("d.ini", "include = a.ini\n[global]\nplugin = topk\n[y]\n");
    p = read_plan((char *const[]){(char *)"d.ini"}, 1, NULL, 0, "*:y");
    check_fault(&p, 0, "d.ini:4: k: b.ini:2 and c.ini:2 both set it for [y]: set it here");
    check_fault(&p, 1, "d.ini:4: n: b.ini:3 and c.ini:3 both set it for [y]: set it here");
    ck_assert_uint_eq(p.faults.count, 2);
    release(&p);
}
END_TEST

static const struct include_fault_case {
    const char *text;
    const char *faults[3];
} include_fault_cases[] = {
    {"include = missing.ini\n", {"a.ini:1: include: missing.ini: No such file or directory"}},
    {"[global]\ninclude = ${UNSET:-d}/no.ini\n", {"a.ini:2: include: d/no.ini: No such file"}},
    {"include = d\n", {"a.ini:1: include: d is a folder: name a job file"}},
    {"include = /dev/null\n", {"a.ini:1: include: /dev/null is not a regular file"}},
    {"include = -\n", {"a.ini:1: include: ./-: No such file or directory"}},
    {"include = a.ini\n", {"a.ini:1: include: a.ini includes this file, or is it"}},
    {"include = ./a.ini\n", {"a.ini:1: include: ./a.ini includes this file, or is it"}},
    {"include = round.ini\n", {"round.ini:1: include: a.ini includes this file, or is it"}},
    {"include = good.ini\ninclude = good.ini\n", {"a.ini:2: include: good.ini is included twice"}},
    {"include = good.ini,\n", {"a.ini:1: include: an element of the list is empty"}},
    {"include = empty.ini\n", {"a.ini: holds no job"}},
    {"include = bad.ini\n[x]\nplugin = topk\n", {"bad.ini:1: '[' without ']': write [name]"}},
    {"include = good.ini\n", {NULL}},
};

START_TEST(test_include_fault)
{
    const struct include_fault_case *c = &include_fault_cases[_i];
    struct planned p;
    size_t expected = 0;

    ck_assert_int_eq(mkdir("d", 0700), 0);
    write_file("good.ini", "[x]\nplugin = topk\n");
    write_file("empty.ini", "[global]\nplugin = topk\n");
    write_file("round.ini", "include = a.ini\n");
    write_file("bad.ini", "[x\nplugin = topk\n");
    p = read_text(c->text);
    for (; expected < 3 && c->faults[expected] != NULL; expected++)
        check_fault(&p, expected, c->faults[expected]);
    ck_assert_msg(p.faults.count == expected, "one more: %s",
                  p.faults.count > expected ? p.faults.texts[expected] : "");
    release(&p);
}
END_TEST

START_TEST(test_include_depth)
{
    struct planned p;
    char name[32], text[64];

    for (int i = 0; i < 18; i++) { /* 0 includes 1, ... 16 includes 17 */
        snprintf(name, sizeof name, "%d.ini", i);
        snprintf(text, sizeof text, i < 17 ? "include = %d.ini\n" : "[x]\nplugin = topk\n", i + 1);
        write_file(name, text);
    }
    p = read_plan((char *const[]){(char *)"1.ini"}, 1, NULL, 0, NULL);
    check_no_fault(&p);
    ck_assert_str_eq(p.plan.jobs[0].name, "17.ini:x");
    release(&p);
    p = read_plan((char *const[]){(char *)"0.ini"}, 1, NULL, 0, NULL);
    check_fault(&p, 0, "16.ini:1: include: 17.ini would be more than 16 files deep");
    ck_assert_uint_eq(p.faults.count, 1);
    release(&p);
}
END_TEST

START_TEST(test_include_from_the_command_line)
{
    const struct override overrides[] = {{"include", "b.ini"}};
    char *const paths[] = {(char *)"a.ini"};
    struct planned p;

    write_file("a.ini", "[x]\nplugin = topk\n");
    p = read_plan(paths, 1, overrides, 1, NULL);
    check_fault(&p, 0, "-s: include: belongs in a job file: name the file itself here");
    ck_assert_uint_eq(p.faults.count, 1);
    release(&p);
}
END_TEST

/* --- inputs and outputs -------------------------------------------------------------------------------------- */

static void check_binding(const struct binding *b, const char *key, const char *tensor,
                          const char *text, int line, bool shared)
{
    ck_assert_str_eq(b->key, key);
    ck_assert_int_eq(b->tensor != NULL, tensor != NULL);
    if (tensor != NULL)
        ck_assert_str_eq(b->tensor, tensor);
    ck_assert_str_eq(b->text, text);
    ck_assert_int_eq(b->where.line, line);
    ck_assert(b->shared == shared);
}

START_TEST(test_bindings)
{
    struct planned p =
        read_text("[global]\nplugin = topk\ninput = uniform\noutput.b = b.npy\n"
                  "[a]\ninput.x = constant value=1\ninput = normal\noutput = o.raw\n");
    const struct job *job = &p.plan.jobs[0];

    check_no_fault(&p);
    ck_assert_uint_eq(job->input_count, 2);
    check_binding(&job->inputs[0], "input", NULL, "normal", 7, false);
    check_binding(&job->inputs[1], "input.x", "x", "constant value=1", 6, false);
    ck_assert_uint_eq(job->output_count, 2);
    check_binding(&job->outputs[0], "output.b", "b", "b.npy", 4, true);
    check_binding(&job->outputs[1], "output", NULL, "o.raw", 8, false);
    release(&p);
}
END_TEST

START_TEST(test_core_knows)
{
    static const char *const known[] = {"plugin", "memory", "show",    "timeout",
                                        "input",  "output", "input.a", "output.b.c",
                                        "input.", "zip",    "include"};
    static const char *const unknown[] = {"k",      "",        "inputs", "outputx",
                                          "Plugin", "plugin.", "inpu"};
    const char *const *names = core_key_names();
    size_t count = 0;

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        ck_assert_msg(core_knows(known[i]), "%s", known[i]);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        ck_assert_msg(!core_knows(unknown[i]), "%s", unknown[i]);
    for (; names[count] != NULL; count++)
        ck_assert_msg(core_knows(names[count]), "%s", names[count]);
    ck_assert_uint_eq(count, core_options_table.count + 4);
}
END_TEST

static const struct clash_case {
    const char *text, *fault; /* NULL: none */
} clash_cases[] = {
    {"[a]\noutput = o.npy\n[b]\noutput = o.npy\n",
     "a.ini:4: output: o.npy is also an output of a.ini:6"},
    {"[a]\noutput = o.npy\n[b]\noutput = ./o.npy\n",
     "a.ini:4: output: o.npy is also an output of a.ini:6"},
    {"[a]\noutput = o.npy\n[b]\noutput = d/../o.npy\n",
     "a.ini:4: output: o.npy is also an output of a.ini:6"},
    {"[a]\noutput.x = o.npy\noutput.y = o.npy\n",
     "a.ini:4: output.x: o.npy is also an output of a.ini:5"},
    {"[a]\ninput = file:i.npy\n[b]\noutput = i.npy\n",
     "a.ini:6: output: i.npy is also an input of a.ini:4"},
    {"[a]\ninput = file:i.npy\noutput = ./i.npy\n",
     "a.ini:5: output: ./i.npy is also an input of a.ini:4"},
    {"[a]\ninput = file:l.npy\noutput = i.npy\n", /* a link to it */
     "a.ini:5: output: i.npy is also an input of a.ini:4"},
    {"[a]\ninput = file:i.npy\n[b]\ninput = file:i.npy\n", NULL},
    {"[a]\noutput = o.npy\n[b]\noutput = p.npy\n", NULL},
    {"[a]\noutput = uniform\ninput = uniform\n", NULL},
};

START_TEST(test_clash)
{
    const struct clash_case *c = &clash_cases[_i];
    char *text = format_text("[global]\nplugin = topk\n%s", c->text);
    struct planned p;

    write_file("i.npy", "");
    ck_assert_int_eq(symlink("i.npy", "l.npy"), 0);
    ck_assert_int_eq(mkdir("d", 0700), 0);
    p = read_text(text);
    ck_assert_uint_eq(p.faults.count, c->fault ? 1 : 0);
    if (c->fault != NULL)
        check_fault(&p, 0, c->fault);
    release(&p);
    free(text);
}
END_TEST

/* An output in [global] would be every job's. */
START_TEST(test_clash_of_a_shared_output)
{
    struct planned p = read_text("[global]\nplugin = topk\noutput = o.npy\n[a]\n[b]\n");

    ck_assert_uint_eq(p.faults.count, 1);
    check_fault(&p, 0, "a.ini:3: output: o.npy is written by more than one job");
    release(&p);
    p = read_text("[global]\nplugin = topk\noutput = o.npy\n[a]\n");
    check_no_fault(&p);
    release(&p);
}
END_TEST

/* --- small parsers --------------------------------------------------------------------------------------------- */

static const struct show_case {
    const char *text;
    int64_t count;
    int rank;
    int64_t index[GPURUN_RANK_MAX];
    const char *reason; /* NULL: right */
} show_cases[] = {
    {"0", 0, 0, {0}, NULL},
    {"20", 20, 0, {20}, NULL},
    {"1K", 1000, 0, {1000}, NULL},
    {"3,4", 0, 2, {3, 4}, NULL},
    {" 3 ,\t4 , 5", 0, 3, {3, 4, 5}, NULL},
    {"0,0,0,0", 0, 4, {0, 0, 0, 0}, NULL},
    {"1233,1233", 0, 2, {1233, 1233}, NULL},
    {"1,2,3,4,5", 0, 0, {0}, "write a count (20) or one index (3,4)"},
    {"-1", 0, 0, {0}, "write a count (20) or one index (3,4)"},
    {"1,-1", 0, 0, {0}, "write a count (20) or one index (3,4)"},
    {"", 0, 0, {0}, "the value is empty (write 20, 1e8, 100M or 4Ki)"},
    {"3,", 0, 0, {0}, "the value is empty (write 20, 1e8, 100M or 4Ki)"},
    {",3", 0, 0, {0}, "the value is empty (write 20, 1e8, 100M or 4Ki)"},
    {"3;4", 0, 0, {0}, "'3;4' is not a whole number (write 20, 1e8, 100M or 4Ki)"},
    {"all", 0, 0, {0}, "'all' is not a whole number (write 20, 1e8, 100M or 4Ki)"},
    /* nothing of a long item is overlooked */
    {"000000000000000000000000000000000000000000000000000000000000000000000000000000007",
     7,
     0,
     {7},
     NULL},
    {"0000000000000000000000000000000000000000000000000000000000000000000000000000000x",
     0,
     0,
     {0},
     "'0000000000000000000000000000000000000000000000000000000000000000000000000000000x' is not a "
     "whole number (write 20, 1e8, 100M or 4Ki)"},
};

START_TEST(test_show)
{
    const struct show_case *c = &show_cases[_i];
    struct show show;
    struct why why = {""};
    const enum gpurun_status status = show_parse(c->text, &show, &why);

    ck_assert_str_eq(why.text, c->reason ? c->reason : "");
    ck_assert_int_eq(status, c->reason ? GPURUN_INVALID : GPURUN_OK);
    if (c->reason != NULL)
        return;
    ck_assert_int_eq(show.count, c->count);
    ck_assert_int_eq(show.rank, c->rank);
    ck_assert_mem_eq(show.index, c->index, sizeof show.index);
}
END_TEST

static const struct list_case {
    const char *text;
    const char *items[5];
} list_cases[] = {
    {"a", {"a"}},
    {"a,b", {"a", "b"}},
    {" a , b\t,c ", {"a", "b", "c"}},
    {"", {""}},
    {",", {"", ""}},
    {"a,,b", {"a", "", "b"}},
    {"a b, c", {"a b", "c"}},
    {"abcdefghijkl,m", {"abcdefg", "m"}}, /* cut to the size given */
};

START_TEST(test_list)
{
    const char *rest = list_cases[_i].text;
    char item[8];
    size_t count = 0;

    for (; list_next(&rest, item, sizeof item); count++) {
        ck_assert_ptr_nonnull(list_cases[_i].items[count]);
        ck_assert_str_eq(item, list_cases[_i].items[count]);
    }
    ck_assert_ptr_null(list_cases[_i].items[count]);
    ck_assert(!list_next(&rest, item, sizeof item));
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static Suite *job_suite(void)
{
    Suite *suite = suite_create("job");
    TCase *files = tcase_create("files"), *parsers = tcase_create("parsers");
    TCase *sweeps = tcase_create("sweeps"), *includes = tcase_create("includes");

    tcase_add_checked_fixture(files, enter_folder, leave_folder);
    tcase_add_checked_fixture(sweeps, enter_folder, leave_folder);
    tcase_add_checked_fixture(includes, enter_folder, leave_folder);
    tcase_add_test(files, test_a_section_goes_before_global);
    tcase_add_test(files, test_the_command_line_goes_before_all);
    tcase_add_test(files, test_global_is_its_files_own);
    tcase_add_test(files, test_defaults);
    tcase_add_test(files, test_core_keys);
    tcase_add_loop_test(files, test_fault, 0, COUNT(fault_cases));
    tcase_add_test(files, test_faults_of_the_command_line);
    tcase_add_loop_test(files, test_only, 0, COUNT(only_cases));
    tcase_add_test(files, test_only_of_nothing);
    tcase_add_loop_test(sweeps, test_sweep, 0, COUNT(sweep_cases));
    tcase_add_test(sweeps, test_values_of_a_sweep);
    tcase_add_test(sweeps, test_sweep_of_the_command_line);
    tcase_add_loop_test(sweeps, test_only_of_a_sweep, 0, COUNT(sweep_only_cases));
    tcase_add_loop_test(sweeps, test_only_of_a_faulty_sweep, 0, COUNT(judged_cases));
    tcase_add_loop_test(sweeps, test_sweep_fault, 0, COUNT(sweep_fault_cases));
    tcase_add_test(sweeps, test_more_than_one_plugin);
    tcase_set_timeout(sweeps, 60); /* 100,000 jobs under a sanitizer */
    tcase_add_test(includes, test_include_lends_both_ways);
    tcase_add_test(includes, test_included_files_keep_to_themselves);
    tcase_add_test(includes, test_include_of_one_file_by_two);
    tcase_add_test(includes, test_given_and_included);
    tcase_add_test(includes, test_include_rivals);
    tcase_add_loop_test(includes, test_include_fault, 0, COUNT(include_fault_cases));
    tcase_add_test(includes, test_include_depth);
    tcase_add_test(includes, test_include_from_the_command_line);
    tcase_add_test(files, test_bindings);
    tcase_add_loop_test(files, test_clash, 0, COUNT(clash_cases));
    tcase_add_test(files, test_clash_of_a_shared_output);
    tcase_add_test(parsers, test_core_knows);
    tcase_add_loop_test(parsers, test_show, 0, COUNT(show_cases));
    tcase_add_loop_test(parsers, test_list, 0, COUNT(list_cases));
    suite_add_tcase(suite, files);
    suite_add_tcase(suite, sweeps);
    suite_add_tcase(suite, includes);
    suite_add_tcase(suite, parsers);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(job_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
