/*
 * Every size of a plugin, for every variant, on a GPU:
 *
 *     every_size [-s KEY=VALUE]... [--from A] [--to B] [--variants A,B] [--threads N] [--seconds S] PLUGIN.so
 *
 * A million sizes are only within reach if a size costs no more than its launches: memory is allocated once, each
 * size takes a prefix of one random input, and an answer becomes a hash on the device. All variants must have the
 * hash of the peer, or of each other where there is none. At sampled sizes, and where hashes differ, verify judges
 * the answers themselves. Threads with a stream each share the sizes in ascending order, so that what has been
 * done is every size up to some.
 *
 * It knows no plugin. Exit codes: 0 all right so far, 1 something is wrong, 2 usage, 77 skipped.
 */
#include "every_size.h"

#include "job/memory.h"
#include "job/value.h"
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USAGE = 2, SKIPPED = 77, THREADS_MAX = 256 };

/* --- the command line --- */

static int usage(const char *what)
{
    fprintf(stderr,
            "every_size: %s\nuse: every_size [-s KEY=VALUE]... [--from A] [--to B] "
            "[--variants A,B] [--threads N] [--seconds S] FOLDER/NAME.so\n",
            what);
    return USAGE;
}

static int64_t cpu_count(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* Cuts KEY=VALUE in two. */
static bool add_setting(struct arguments *a, char *text)
{
    char *equals = strchr(text, '=');

    if (equals == NULL || a->setting_count == SETTINGS_MAX)
        return false;
    *equals = '\0';
    a->keys[a->setting_count] = text;
    a->texts[a->setting_count++] = equals + 1;
    return true;
}

/* 0, or the exit code with the reason said. */
static int read_arguments(int argc, char **argv, struct arguments *a)
{
    static const struct option words[] = {
        {"from", required_argument, NULL, 'f'},    {"to", required_argument, NULL, 't'},
        {"threads", required_argument, NULL, 'n'}, {"variants", required_argument, NULL, 'v'},
        {"seconds", required_argument, NULL, 'd'}, {NULL, 0, NULL, 0}};
    enum gpurun_status status = GPURUN_OK;
    struct why why;
    int word;

    *a = (struct arguments){.to = (1 << 20) + 1, .threads = cpu_count()};
    while (status == GPURUN_OK && (word = getopt_long(argc, argv, "s:", words, NULL)) != -1) {
        if (word == 'f')
            status = value_parse_int(optarg, &a->from, &why);
        else if (word == 't')
            status = value_parse_int(optarg, &a->to, &why);
        else if (word == 'n')
            status = value_parse_int(optarg, &a->threads, &why);
        else if (word == 'd')
            status = value_parse_duration(optarg, &a->seconds, &why);
        else if (word == 'v')
            a->variants = optarg;
        else if (word != 's' || !add_setting(a, optarg))
            return usage("an option that there is not, or is not KEY=VALUE, or one too many");
    }
    if (status != GPURUN_OK)
        return usage(why.text);
    if (a->from < 0 || a->to < a->from || a->threads < 1 || a->threads > THREADS_MAX)
        return usage("--from is at least 0, --to not below it, --threads from 1 to 256");
    if (optind + 1 != argc)
        return usage("one plugin is named");
    a->so_path = argv[optind];
    return 0;
}

/* --- the sweep --- */

static void run_threads(struct every *s)
{
    pthread_t threads[THREADS_MAX];
    int started = 0;

    s->start_s = s->told_s = now_s();
    while (started < s->threads && pthread_create(&threads[started], NULL, every_thread, s) == 0)
        started++;
    s->has_failed = s->has_failed || started == 0;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    s->end_s = now_s();
}

static int64_t report_variants(const struct every *s)
{
    int64_t wrong = 0;

    printf("%-22s %9s %9s %7s %11s %11s\n", "variant", "sizes", "verified", "wrong", "thread s",
           "alone us");
    for (int i = 0; i < s->variant_count; i++) {
        const struct tally *t = &s->tallies[i];

        printf("%-22s %9" PRId64 " %9" PRId64 " %7" PRId64 " %11.1f %11.1f\n", s->variants[i]->name,
               t->sizes, t->verified, t->wrong, t->host_s,
               t->verified > 0 ? 1e6 * t->sampled_s / (double)t->verified : 0.0);
        if (t->unsupported > 0)
            printf("    %" PRId64 " unsupported: %s\n", t->unsupported, t->reason);
        wrong += t->wrong;
    }
    if (s->refused > 0)
        printf("%" PRId64 " sizes refused: %s\n", s->refused, s->reason);
    return wrong;
}

/* Says what was done; the exit code. */
static int report(const struct every *s)
{
    const int64_t wrong = report_variants(s), next = atomic_load(&s->next);
    const int64_t last = next <= s->to ? next - 1 : s->to;
    int64_t ran = 0;

    for (int i = 0; i < s->variant_count; i++)
        ran += s->tallies[i].sizes;
    if (s->has_failed || ran == 0) {
        printf("FAILED: %s\n", s->has_failed ? "not all that was begun was done" : "nothing ran");
        return EXIT_FAILURE;
    }
    printf("%s: every size from %s = %" PRId64 " to %" PRId64 " in %.1f s, %" PRId64 " wrong\n",
           wrong > 0 ? "FAILED" : "passed", s->size->name, s->from, last, s->end_s - s->start_s,
           wrong);
    if (last < s->to)
        printf("time was up: --from %" PRId64 " goes on\n", last + 1);
    return wrong > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static enum gpurun_status sweep(struct every *s, int *code, struct why *why)
{
    struct device *device;
    enum gpurun_status status, end;
    struct why end_why;

    GPURUN_TRY(device_api.open(0, &device, why));
    status = every_make_inputs(s, device, why);
    if (status == GPURUN_OK) {
        printf("%s on %s: %s = %" PRId64 " to %" PRId64 ", %d variants against %s, %d threads\n",
               s->plugin.table->name, s->device.name, s->size->name, s->from, s->to,
               s->variant_count, s->peer < 0 ? "each other" : s->variants[s->peer]->name,
               s->threads);
        fflush(stdout);
        run_threads(s);
        *code = report(s);
    }
    end = every_end_inputs(s, device, &end_why);
    if (status == GPURUN_OK && end != GPURUN_OK)
        *why = end_why;
    device_api.close(device);
    return status == GPURUN_OK ? end : status;
}

int main(int argc, char **argv)
{
    struct every *s = allocate(1, sizeof *s);
    struct arguments a;
    struct why why = {""};
    enum gpurun_status status;
    int code = read_arguments(argc, argv, &a);

    if (code == 0 && device_api.count(&why) == 0) {
        printf("skipped: no device (%s)\n", why.text);
        code = SKIPPED;
    }
    if (code == 0) {
        s->from = a.from;
        s->to = a.to;
        s->threads = (int)a.threads;
        s->seconds = a.seconds;
        atomic_init(&s->next, a.from);
        pthread_mutex_init(&s->lock, NULL);
        status = every_prepare(s, &a, &why);
        if (status == GPURUN_OK)
            status = sweep(s, &code, &why);
        if (status != GPURUN_OK) {
            fprintf(stderr, "every_size: %s\n", why.text);
            code = status == GPURUN_INVALID && s->end_s <= 0 ? USAGE : EXIT_FAILURE;
        }
    }
    free(s->plugin.path);
    free(s->options);
    free(s);
    return code;
}
