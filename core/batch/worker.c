#include "batch/worker.h"

#include "batch/keeper.h"
#include "batch/spawn.h"
#include "job/memory.h"
#include "job/value.h"
#include "plan/registry.h"
#include "report/describe.h"
#include "run/available.h"
#include "run/guard.h"
#include "run/record.h"
#include "run/runner.h"
#include "run/selftest.h"
#include "run/selftest_measure.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double GRACE_S = 1; /* a worker has so long to end by itself */
static const double STOP_S =
    60; /* and so long when it is killed: much memory takes time to be free */
static const double START_S = 1; /* so long one is tried to start where processes are lacking */

/* The last worker that ended had never started: for the next one nobody waits. */
static bool is_short;

enum { PAUSE_NS = 200000 };

/* --- the child --- */

/* A plugin is loaded once, its failure remembered. */
struct loaded {
    char *name;
    struct plugin plugin;
    bool is_good;
    struct why why;
};

struct server {
    const struct cpus *cpus;
    const struct plan *plan;
    int fd;
    struct loaded **loaded;
    size_t count;
};

static struct loaded *load(struct server *s, const char *name)
{
    struct loaded *l;

    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->loaded[i]->name, name) == 0)
            return s->loaded[i];
    l = allocate(1, sizeof *l);
    l->name = copy_text(name);
    s->loaded = grow(s->loaded, s->count, sizeof *s->loaded);
    s->loaded[s->count++] = l;
    l->is_good = registry_load(name, &l->plugin, &l->why) == GPURUN_OK;
    guard_forgive();
    return l;
}

static void say(void *user, json_t *message)
{
    const struct server *s = user;

    if (!channel_send(s->fd, message))
        _exit(1); /* the parent is gone: there is nobody to work for */
}

static json_t *faults_json(const struct faults *faults)
{
    json_t *list = json_array();

    for (size_t i = 0; i < faults->count; i++)
        json_array_append_new(list, json_text(faults->texts[i]));
    return list;
}

static void check_job(struct server *s, const struct job *job, bool options)
{
    json_t *end = json_pack("{ss}", "type", "end");
    struct faults faults = {0};
    struct why where;
    struct loaded *l = load(s, job->core.plugin);
    char *path, **names;
    const char *nearest;

    if (l->is_good) {
        json_object_set_new(end, "result", runner_check(job, &l->plugin, options, &faults));
    } else if ((path = registry_find(job->core.plugin, &where)) == NULL) {
        names = registry_names();
        nearest = value_nearest(job->core.plugin, (const char *const *)names);
        faults_add(&faults, job_origin(job, "plugin"), "plugin",
                   "no plugin '%.80s'%s%s%s; gpurun list shows what there is; looked for %s",
                   job->core.plugin, nearest ? ", did you mean " : "", nearest ? nearest : "",
                   nearest ? "?" : "", where.text);
        registry_free_names(names);
    } else {
        json_object_set_new(end, "load_error", json_text(l->why.text));
        free(path);
    }
    json_object_set_new(end, "faults", faults_json(&faults));
    faults_free(&faults);
    say(s, end);
}

static void check_jobs(struct server *s, const json_t *command)
{
    const json_int_t first = json_integer_value(json_object_get(command, "job"));
    const json_int_t count = json_integer_value(json_object_get(command, "count"));

    for (json_int_t i = first; i < first + count; i++)
        check_job(s, &s->plan->jobs[i], json_is_true(json_object_get(command, "options")));
}

static int device_of(const json_t *command)
{
    return (int)json_integer_value(json_object_get(command, "device"));
}

/* While others time the CPU this waits, and the parent stops the job's clock. */
static void time_cpu(void *user, bool begin)
{
    const struct server *s = user;
    json_t *answer;

    say(user, json_pack("{sssb}", "type", "time-cpu", "begin", begin));
    if (!begin)
        return;
    if (channel_receive(s->fd, 0, NULL, &answer) != CHANNEL_MESSAGE)
        _exit(1);
    json_decref(answer);
}

static void run_job(struct server *s, const struct job *job, const json_t *command, json_t *end)
{
    const struct runner_listener listener = {say, time_cpu, s};
    const struct runner_order order = {
        json_object_get(command, "skip"), device_of(command),
        json_integer_value(json_object_get(command, "sharers")),
        (uint64_t)json_integer_value(json_object_get(command, "memory"))};
    struct loaded *l = load(s, job->core.plugin);
    enum runner_end how;

    if (!l->is_good) {
        json_object_set_new(end, "load_error", json_text(l->why.text));
        return;
    }
    how = runner_run(job, &l->plugin, &order, &listener);
    if (how == RUNNER_DONE && !guard_is_unharmed())
        how = RUNNER_REPLACE;
    json_object_set_new(end, "end", json_integer(how));
}

static void identify_job(struct server *s, const struct job *job, const json_t *command,
                         json_t *end)
{
    struct loaded *l = load(s, job->core.plugin);

    if (l->is_good)
        json_object_set_new(end, "result", runner_identify(job, &l->plugin, device_of(command)));
}

static void describe(struct server *s, const char *name, json_t *end)
{
    struct loaded *l = load(s, name);

    if (l->is_good)
        json_object_set_new(end, "result", describe_plugin(&l->plugin));
    else
        json_object_set_new(end, "load_error", json_text(l->why.text));
}

/* The result is "" when the device still works. */
static void probe(const json_t *command, json_t *end)
{
    struct why why = {""};

    runner_probe(device_of(command), &why);
    json_object_set_new(end, "result", json_text(why.text));
}

static void selftest(struct server *s, const char *name, json_t *end)
{
    struct loaded *l = load(s, name);

    if (l->is_good)
        json_object_set_new(end, "result", selftest_plugin(&l->plugin));
    else
        json_object_set_new(end, "load_error", json_text(l->why.text));
}

static void obey(struct server *s, const json_t *command)
{
    const char *what = json_string_value(json_object_get(command, "do"));
    const char *plugin = json_string_value(json_object_get(command, "plugin"));
    const json_int_t job = json_integer_value(json_object_get(command, "job"));
    json_t *end;

    if (strcmp(what, "check") == 0) {
        check_jobs(s, command);
        return;
    }
    end = json_pack("{ss}", "type", "end");
    if (strcmp(what, "run") == 0)
        run_job(s, &s->plan->jobs[job], command, end);
    else if (strcmp(what, "identify") == 0)
        identify_job(s, &s->plan->jobs[job], command, end);
    else if (strcmp(what, "describe") == 0)
        describe(s, plugin, end);
    else if (strcmp(what, "selftest") == 0)
        selftest(s, plugin, end);
    else if (strcmp(what, "probe") == 0)
        probe(command, end);
    else if (strcmp(what, "measure") == 0)
        json_object_set_new(end, "result", selftest_measure());
    else
        json_object_set_new(end, "result", describe_devices());
    say(s, end);
}

/* Standard output belongs to the parent's report: what a plugin prints goes to standard error. */
static void redirect_streams(void)
{
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null >= 0)
        dup2(null, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

/* What else the parent has open, the locked records above all, is not for plugins. */
static void keep_only(int fd)
{
    if (fd > STDERR_FILENO + 1)
        close_range(STDERR_FILENO + 1, (unsigned)fd - 1, 0);
    close_range((unsigned)fd + 1, ~0u, 0);
}

static void serve(void *user)
{
    struct server *s = user;
    json_t *command;

    keep_only(s->fd);
    signal(SIGINT, SIG_IGN); /* the parent decides what a signal ends that everybody got */
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_DFL);
    redirect_streams();
    cpus_take(s->cpus);
    guard_note();
    while (channel_receive(s->fd, 0, NULL, &command) == CHANNEL_MESSAGE) {
        obey(s, command);
        json_decref(command);
    }
    fflush(NULL);
    _exit(0);
}

/* --- the parent --- */

/* The process is gone, or never was. */
static void forget(struct worker *w)
{
    close(w->fd);
    inbox_empty(&w->inbox);
    if (w->page != NULL)
        munmap(w->page, sizeof *w->page);
    w->page = NULL;
    w->pid = 0;
}

static struct keeper_page *new_page(void)
{
    struct keeper_page *page =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return NULL;
    page->parent = getpid();
    page->patience_s = is_short ? 0 : START_S;
    return page;
}

bool worker_start(struct worker *w, const struct plan *plan)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        w->start_error = errno;
        return false;
    }
    w->available = available_bytes();
    w->page = new_page();
    fflush(NULL);
    w->pid = w->page == NULL ? -1 : spawn(w->page->patience_s);
    if (w->pid == 0) {
        struct server s = {.plan = plan, .fd = pair[1], .cpus = &w->cpus};

        keeper_run(w->page, serve, &s);
    }
    w->start_error = w->pid < 0 ? errno : 0;
    close(pair[1]);
    w->fd = pair[0];
    if (w->pid > 0)
        return true;
    forget(w);
    return false;
}

/* What the command's job may take. */
static uint64_t memory_limit(const struct worker *w, const struct plan *plan, const json_t *command)
{
    const json_t *job = json_object_get(command, "job");
    const int64_t limit =
        job == NULL ? GPURUN_AUTO : plan->jobs[json_integer_value(job)].core.memory_limit;

    return limit == GPURUN_AUTO ? w->available : (uint64_t)limit;
}

/* The keeper may be asleep until the limit that was could be reached. */
static void set_limit(struct worker *w, uint64_t limit)
{
    if (w->page->limit == limit)
        return;
    w->page->limit = limit;
    kill(w->pid, KEEPER_LOOK);
}

bool worker_command(struct worker *w, const struct plan *plan, json_t *command)
{
    uint64_t limit;

    if (w->pid == 0 && !worker_start(w, plan)) {
        json_decref(command);
        return false;
    }
    limit = memory_limit(w, plan, command);
    json_object_set_new(command, "memory", json_integer((json_int_t)limit));
    set_limit(w, limit);
    return channel_send(w->fd, command);
}

bool worker_has_ended(const struct worker *w)
{
    siginfo_t info = {.si_pid = 0};

    return w->pid > 0 && waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0;
}

/* Waits up to `seconds`. True when it has ended. */
static bool ends_within(pid_t pid, double seconds, int *status)
{
    const double deadline = now_s() + seconds;

    *status = 0;
    while (waitpid(pid, status, WNOHANG) == 0) {
        if (now_s() > deadline)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return true;
}

/* Waits up to `seconds`, then stops the worker. True when it ended by itself; its status then. */
static bool end_within(const struct worker *w, double seconds, int *status)
{
    const bool ended = ends_within(w->pid, seconds, status);

    if (!ended) {
        kill(w->pid, KEEPER_STOP);
        if (!ends_within(w->pid, STOP_S, status)) {
            kill(w->pid, SIGKILL);
            while (waitpid(w->pid, status, 0) < 0 && errno == EINTR)
                continue;
        }
    }
    if (w->page->has_ended)
        *status = w->page->status;
    return ended;
}

void worker_stop(struct worker *w, bool kindly)
{
    int status;

    if (w->pid <= 0)
        return;
    shutdown(w->fd, SHUT_RDWR);
    end_within(w, kindly ? GRACE_S : 0, &status);
    is_short = w->page->fork_error != 0;
    forget(w);
}

static void say_death(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "killed by signal %d (%s)%s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)),
                 WTERMSIG(status) == SIGKILL ? ": by the system for memory, or by hand" : "");
    else
        snprintf(text, size, "the process ended by itself with exit code %d", WEXITSTATUS(status));
}

static void say_no_start(int error, char *text, size_t size)
{
    is_short = true;
    snprintf(text, size, "cannot start a process: %s%s", strerror(error),
             error == EAGAIN ? ": a limit of processes (ulimit -u, pids.max) is reached" : "");
}

enum case_status worker_bury(struct worker *w, char *text, size_t size)
{
    int status, fork_error;
    bool ended;
    uint64_t taken, limit;

    if (w->pid <= 0) {
        say_no_start(w->start_error, text, size);
        return CASE_CRASHED;
    }
    ended = end_within(w, GRACE_S, &status);
    taken = w->page->taken;
    limit = w->page->limit;
    fork_error = w->page->fork_error;
    is_short = false;
    forget(w);
    if (taken > 0)
        snprintf(text, size,
                 "took %.4g GB of memory, more than its %.4g GB: stopped (memory_limit)",
                 (double)taken * 1e-9, (double)limit * 1e-9);
    else if (fork_error != 0)
        say_no_start(fork_error, text, size);
    else if (!ended)
        snprintf(text, size, "it closed its channel or wrote to it, and went on: stopped");
    else
        say_death(status, text, size);
    return taken > 0 ? CASE_NO_MEMORY : CASE_CRASHED;
}
