#include "batch/keeper.h"

#include "batch/spawn.h"
#include "run/machine.h"
#include "run/run.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double MOST_BYTES_PER_S = 16e9; /* as fast as many threads take new pages */
static const double LEAST_LOOK_S = 0.005, MOST_LOOK_S = 1;
static const double STRAYS_S = 1; /* for so long the keeper ends processes that start others */

/* --- memory --- */

/* Looks at the worker, and says in how many seconds to look again: before it can have come to the limit. */
static double look(struct keeper_page *page, pid_t worker)
{
    const uint64_t limit = machine_proc_is_ours() ? page->limit : 0;
    const uint64_t taken = limit > 0 ? machine_memory(worker) : 0;
    double pause;

    if (limit == 0)
        return MOST_LOOK_S;
    if (taken > limit) {
        page->taken = taken;
        kill(worker, SIGKILL);
        return MOST_LOOK_S;
    }
    pause = (double)(limit - taken) / MOST_BYTES_PER_S;
    if (pause < LEAST_LOOK_S)
        return LEAST_LOOK_S;
    return pause < MOST_LOOK_S ? pause : MOST_LOOK_S;
}

/* --- processes --- */

/* SIGKILL for every child there is. */
static void kill_children(void)
{
    char path[64];
    int pid;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)getpid(), (int)getpid());
    if (!machine_proc_is_ours() || (f = fopen(path, "re")) == NULL)
        return;
    while (fscanf(f, "%d", &pid) == 1)
        kill(pid, SIGKILL);
    fclose(f);
}

/* The children of those that are killed become the keeper's, so until there are none. */
static void end_strays(void)
{
    const double deadline = now_s() + STRAYS_S;
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 && now_s() < deadline)
        if (pid == 0) {
            kill_children();
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        }
}

/* True when the worker has ended, by itself or as `options` of waitpid have it waited for. */
static bool has_ended(struct keeper_page *page, pid_t worker, int options)
{
    int status;

    if (waitpid(worker, &status, options) != worker)
        return false;
    page->status = status;
    page->has_ended = true;
    return true;
}

static void keep(struct keeper_page *page, pid_t worker, const sigset_t *signals)
{
    while (!has_ended(page, worker, WNOHANG)) {
        const double pause = look(page, worker);
        const struct timespec time = {.tv_sec = (time_t)pause,
                                      .tv_nsec = (long)((pause - (double)(time_t)pause) * 1e9)};

        if (sigtimedwait(signals, NULL, &time) != KEEPER_STOP)
            continue;
        kill(worker, SIGKILL);
        has_ended(page, worker, 0); /* what it held is free from here on */
        break;
    }
    end_strays();
}

/* For the system that runs out of memory, this process is the first to go. */
static void offer_to_the_system(void)
{
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (write(fd, "1000", 4) < 0)
        errno = 0; /* then it is the system's own choice */
    close(fd);
}

void keeper_run(struct keeper_page *page, void (*work)(void *user), void *user)
{
    const pid_t keeper = getpid();
    sigset_t all, before;
    pid_t worker;

    /* Whatever a terminal or Slurm sends to everybody, the parent alone decides what ends. */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, KEEPER_STOP);
    if (getppid() != page->parent)
        _exit(1);
    worker = spawn(page->patience_s);
    if (worker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != keeper)
            _exit(1);
        munmap(page, sizeof *page);
        offer_to_the_system();
        sigprocmask(SIG_SETMASK, &before, NULL);
        work(user);
        _exit(1);
    }
    page->fork_error = worker < 0 ? errno : 0;
    close_range(STDERR_FILENO + 1, ~0u,
                0); /* not before: a tool that follows forks needs its own */
    if (worker > 0) {
        prctl(PR_SET_NAME, "gpurun keeper");
        keep(page, worker, &all);
    }
    _exit(0);
}
