#include "run/guard.h"

#include "job/memory.h"
#include "run/machine.h"
#include <fcntl.h>
#include <fenv.h>
#include <limits.h>
#include <locale.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    STREAMS = 3,
    SIGNALS = 32,       /* the real-time signals above have no handlers by custom */
    SPARE_LEAST = 100,  /* spare descriptors, where a plugin that closes "all" seldom comes */
    POOL_WAIT_MS = 100, /* threads that were told to end have ended by then */
    LEAK_MIB = 256,     /* a job that leaves more behind has leaked it */
};

struct stream {
    int spare; /* -1: it is not open */
    dev_t device;
    ino_t inode;
};

static struct {
    bool is_noted, is_harmed, allows_threads;
    bool is_due;  /* a hook was called since the last restoring */
    char *folder; /* NULL: it has no name any more */
    struct stat folder_info;
    mode_t umask;
    char *locale;
    fenv_t floating;
    struct sigaction actions[SIGNALS];
    sigset_t mask;
    struct stream streams[STREAMS];
    unsigned long threads;
    unsigned long pages; /* of memory, at the end of the last job */
    bool knows_pages;    /* false: a driver took some of its own meanwhile */
} noted;

/* --- the floating-point mode --- */

/* Rounding, flush to zero, traps: without the flags that every operation may raise. */
static unsigned long floating_mode(const fenv_t *e)
{
#if defined(__x86_64__)
    const unsigned flags = 0x3f;

    return ((unsigned long)e->__control_word << 32) | (e->__mxcsr & ~flags);
#elif defined(__aarch64__)
    return e->__fpcr;
#else
    (void)e;
    return (unsigned long)fegetround();
#endif
}

static bool restore_floating(void)
{
    fenv_t now;

    fegetenv(&now);
    if (floating_mode(&now) == floating_mode(&noted.floating))
        return false;
    fesetenv(&noted.floating);
    return true;
}

/* --- the rest, each true when it differed --- */

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool restore_folder(void)
{
    struct stat now;

    if (noted.folder == NULL || (stat(".", &now) == 0 && is_same(&now, &noted.folder_info)))
        return false;
    return chdir(noted.folder) == 0;
}

static bool restore_locale(void)
{
    bool differs = false;

    if (uselocale((locale_t)0) != LC_GLOBAL_LOCALE) {
        uselocale(LC_GLOBAL_LOCALE);
        differs = true;
    }
    if (strcmp(setlocale(LC_ALL, NULL), noted.locale) != 0) {
        setlocale(LC_ALL, noted.locale);
        differs = true;
    }
    return differs;
}

static bool restore_action(int number)
{
    struct sigaction now;

    if (sigaction(number, NULL, &now) != 0 ||
        (now.sa_sigaction == noted.actions[number].sa_sigaction &&
         now.sa_flags == noted.actions[number].sa_flags))
        return false;
    sigaction(number, &noted.actions[number], NULL);
    return true;
}

/* Those that tell how a plugin died; the others at the end of the job. */
static bool restore_signals(void)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t mask;
    bool differs = false;

    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
        differs |= restore_action(deadly[i]);
    pthread_sigmask(SIG_SETMASK, &noted.mask, &mask);
    for (int i = 1; i < SIGNALS; i++)
        differs |= sigismember(&mask, i) != sigismember(&noted.mask, i);
    return differs;
}

static bool restore_all_signals(void)
{
    bool differs = false;

    for (int i = 1; i < SIGNALS; i++)
        differs |= restore_action(i);
    return differs;
}

/* A stream that is closed would become the next file that is opened, and get what is printed. */
static bool restore_streams(void)
{
    struct stat now;
    bool differs = false;

    for (int i = 0; i < STREAMS; i++) {
        const struct stream *s = &noted.streams[i];

        if (s->spare < 0 ||
            (fstat(i, &now) == 0 && now.st_dev == s->device && now.st_ino == s->inode))
            continue;
        dup2(s->spare, i);
        differs = true;
    }
    return differs;
}

/* --- threads and processes --- */

static unsigned long count_threads(void)
{
    struct stat info;

    return stat("/proc/self/task", &info) == 0 && info.st_nlink > 2 ? info.st_nlink - 2 : 1;
}

/* OpenMP's pool is no fault: it is ended, and what is left after that somebody else started. */
static bool has_stray_threads(void)
{
    if (noted.allows_threads || count_threads() <= noted.threads)
        return false;
    omp_pause_resource_all(omp_pause_hard);
    for (int i = 0; i < POOL_WAIT_MS && count_threads() > noted.threads; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return count_threads() > noted.threads;
}

/* Children of this process, also ended ones, and those that the keeper (batch/keeper.h) inherited from it. */
static bool has_processes(void)
{
    char path[64], text[64] = "";
    const pid_t keeper = getppid();
    siginfo_t info;
    FILE *f;

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        return true;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)keeper, (int)keeper);
    if (!machine_proc_is_ours() || (f = fopen(path, "re")) == NULL)
        return false;
    if (fgets(text, sizeof text, f) == NULL)
        text[0] = '\0';
    fclose(f);
    snprintf(path, sizeof path, "%d ", (int)getpid());
    return text[0] != '\0' && strcmp(text, path) != 0;
}

/* Pages of memory that come from no file. */
static unsigned long count_pages(void)
{
    unsigned long resident = 0, shared = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f == NULL)
        return 0;
    if (fscanf(f, "%*u %lu %lu", &resident, &shared) != 2)
        resident = shared;
    fclose(f);
    return resident - shared;
}

/* Since the last job. In a worker that lives on, a later job would meet the memory limit for it. */
static bool has_leaked(void)
{
    const unsigned long before = noted.pages, most = LEAK_MIB * (1ul << 20);
    const bool is_known = noted.knows_pages;

    noted.pages = count_pages();
    noted.knows_pages = true;
    return is_known && noted.pages > before + most / (unsigned long)sysconf(_SC_PAGESIZE);
}

/* --- the whole --- */

void guard_note(void)
{
    struct stat info;
    char folder[PATH_MAX];

    if (getcwd(folder, sizeof folder) != NULL && stat(".", &noted.folder_info) == 0)
        noted.folder = copy_text(folder);
    noted.umask = umask(0);
    umask(noted.umask);
    noted.locale = copy_text(setlocale(LC_ALL, NULL));
    fegetenv(&noted.floating);
    for (int i = 1; i < SIGNALS; i++)
        sigaction(i, NULL, &noted.actions[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &noted.mask);
    for (int i = 0; i < STREAMS; i++) {
        noted.streams[i].spare = fstat(i, &info) == 0 ? fcntl(i, F_DUPFD_CLOEXEC, SPARE_LEAST) : -1;
        noted.streams[i].device = info.st_dev;
        noted.streams[i].inode = info.st_ino;
    }
    noted.threads = count_threads();
    noted.pages = count_pages();
    noted.knows_pages = true;
    noted.is_noted = true;
}

void guard_expect(void)
{
    noted.is_due = true;
}

static void restore_all(void)
{
    noted.is_due = false;
    noted.is_harmed |= restore_floating();
    noted.is_harmed |= restore_folder();
    noted.is_harmed |= umask(noted.umask) != noted.umask;
    noted.is_harmed |= restore_locale();
    noted.is_harmed |= restore_signals();
    noted.is_harmed |= restore_streams();
}

void guard_restore(void)
{
    if (noted.is_noted && noted.is_due)
        restore_all();
}

void guard_forgive(void)
{
    if (noted.is_noted)
        restore_all();
    noted.is_harmed = false;
}

void guard_open_device(void)
{
    noted.knows_pages = noted.knows_pages && noted.allows_threads;
    noted.allows_threads = true;
}

bool guard_is_unharmed(void)
{
    if (!noted.is_noted)
        return true;
    restore_all();
    noted.is_harmed |= restore_all_signals();
    return !has_leaked() && !noted.is_harmed && !has_processes() && !has_stray_threads();
}
