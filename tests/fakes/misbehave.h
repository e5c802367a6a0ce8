/*
 * Every way to go wrong that needs no tensor, for mirror.c's hooks and for constructor.c. What must come to an end for
 * the test's sake does; all else goes as far as it is let.
 */
#ifndef FAKES_MISBEHAVE_H
#define FAKES_MISBEHAVE_H

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MISBEHAVE_FDS = 64 }; /* below are all descriptors that a plugin can meet by chance */

/* --- it ends the process, or would never end --- */

static void misbehave_crash(void)
{
    raise(SIGSEGV);
}

static void misbehave_exit(void)
{
    exit(0);
}

static void misbehave_quit(void)
{
    _exit(0);
}

/* This process, into the file that the variable names, if it names one. */
static void misbehave_note(const char *variable)
{
    const char *path = getenv(variable);
    FILE *f = path ? fopen(path, "a") : NULL;

    if (f == NULL)
        return;
    fprintf(f, "%d\n", (int)getpid());
    fclose(f);
}

/* MISBEHAVE_HANGS names the file that tells a test who hangs. */
static void misbehave_hang(void)
{
    misbehave_note("MISBEHAVE_HANGS");
    while (1)
        pause();
}

/* A sanitizer would end it in its own way. */
__attribute__((no_sanitize("undefined"))) static void misbehave_divide(void)
{
    volatile int zero = 0, one = 1;

#if defined(__x86_64__)
    one = one / zero;
#else
    (void)one;
    (void)zero;
    raise(SIGFPE); /* where the processor divides by zero without a word */
#endif
}

static void misbehave_descend(volatile char *above)
{
    volatile char frame[4096];

    frame[0] = *above;
    if (frame[0] != 0)
        misbehave_descend(frame);
    *above = frame[0];
}

static void misbehave_overflow(void)
{
    volatile char top = 1;

    misbehave_descend(&top);
}

/* Until the file is there that MISBEHAVE_GO names. */
static void misbehave_wait(void)
{
    const char *path = getenv("MISBEHAVE_GO");

    while (path != NULL && access(path, F_OK) != 0)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static void misbehave_spin(void)
{
    for (volatile unsigned long i = 0;; i++)
        continue;
}

static void misbehave_abort(void)
{
    abort();
}

/* Memory that is written to, so that it is there. */
static void misbehave_take(size_t bytes)
{
    volatile char *taken = malloc(bytes);

    for (size_t i = 0; taken != NULL && i < bytes; i += 4096)
        taken[i] = 1;
}

static void misbehave_leak(void)
{
    misbehave_take((size_t)1 << 30);
}

static void misbehave_devour(void)
{
    while (1)
        misbehave_take((size_t)64 << 20);
}

/* --- descriptors --- */

static void misbehave_close(int first, int count)
{
    for (int fd = first; fd < first + count; fd++)
        close(fd);
}

/* What is opened next has the place of a stream. */
static void misbehave_close_streams(void)
{
    misbehave_close(0, 3);
    if (open("/dev/null", O_WRONLY) == 0)
        dup2(0, STDOUT_FILENO);
}

static void misbehave_close_rest(void)
{
    misbehave_close(3, MISBEHAVE_FDS);
}

static void misbehave_write(int first, int count)
{
    static const char text[] = "written by a plugin\n";

    for (int fd = first; fd < first + count; fd++)
        if (write(fd, text, sizeof text - 1) < 0)
            continue;
}

static void misbehave_write_streams(void)
{
    misbehave_write(0, 3);
}

static void misbehave_write_rest(void)
{
    misbehave_write(3, MISBEHAVE_FDS);
}

static void misbehave_print(void)
{
    printf("printed by a plugin\n");
    fflush(stdout);
}

/* 100 MB. */
static void misbehave_flood(void)
{
    static const char line[] =
        "about a hundred bytes of what nobody wants to read, again and again, to standard "
        "output, by a plugin...\n";

    for (int written = 0; written < 100000000; written += (int)strlen(line))
        fputs(line, stdout);
    fflush(stdout);
}

/* --- what the process is like --- */

static void misbehave_chdir(void)
{
    if (chdir("/") != 0)
        abort();
}

static void misbehave_umask(void)
{
    umask(077);
}

static void misbehave_locale(void)
{
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "C.UTF-8") == NULL)
        abort();
}

static void misbehave_handler(int number)
{
    (void)number;
    _exit(0);
}

static void misbehave_signals(void)
{
    sigset_t all;

    signal(SIGSEGV, misbehave_handler);
    signal(SIGABRT, SIG_IGN);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}

static void misbehave_float_mode(void)
{
    fesetround(FE_UPWARD);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); /* denormals are zero, in and out */
#endif
}

/* --- what it leaves behind --- */

static void *misbehave_sleep(void *unused)
{
    (void)unused;
    misbehave_hang();
    return NULL;
}

static void misbehave_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, misbehave_sleep, NULL);
}

/* A child that holds on to everything, its process in the file that MISBEHAVE_CHILD names. `is_daemon`: in a session
 * of its own, its parent gone. */
static void misbehave_fork(int is_daemon)
{
    pid_t child = fork();

    if (child != 0) {
        if (is_daemon)
            while (waitpid(child, NULL, 0) < 0)
                continue;
        return;
    }
    if (is_daemon && (setsid() < 0 || fork() != 0))
        _exit(0);
    misbehave_note("MISBEHAVE_CHILD");
    misbehave_sleep(NULL);
}

static void misbehave_child(void)
{
    misbehave_fork(0);
}

static void misbehave_daemon(void)
{
    misbehave_fork(1);
}

static void misbehave_zombie(void)
{
    if (fork() == 0)
        _exit(0);
}

/* --- all of them --- */

#define MISBEHAVE_NAMES                                                                            \
    "crash", "abort", "exit", "quit", "divide", "overflow", "hang", "spin", "leak", "devour",      \
        "close-streams", "close-channel", "write-streams", "write-channel", "print", "flood",      \
        "chdir", "umask", "locale", "signals", "float-mode", "thread", "child", "daemon",          \
        "zombie", "wait"

/* By the names' order. */
static void (*const misbehave_functions[])(void) = {
    misbehave_crash,         misbehave_abort,      misbehave_exit,          misbehave_quit,
    misbehave_divide,        misbehave_overflow,   misbehave_hang,          misbehave_spin,
    misbehave_leak,          misbehave_devour,     misbehave_close_streams, misbehave_close_rest,
    misbehave_write_streams, misbehave_write_rest, misbehave_print,         misbehave_flood,
    misbehave_chdir,         misbehave_umask,      misbehave_locale,        misbehave_signals,
    misbehave_float_mode,    misbehave_thread,     misbehave_child,         misbehave_daemon,
    misbehave_zombie,        misbehave_wait,
};

/* --- what an earlier one left --- */

static int misbehave_streams_differ(void)
{
    struct stat streams[3];

    for (int i = 0; i < 3; i++)
        if (fstat(i, &streams[i]) != 0)
            return 1;
    return streams[1].st_ino != streams[2].st_ino || streams[0].st_ino == streams[1].st_ino;
}

static int misbehave_signals_differ(void)
{
    struct sigaction segv, abrt;
    sigset_t mask;

    sigaction(SIGSEGV, NULL, &segv);
    sigaction(SIGABRT, NULL, &abrt);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    return segv.sa_handler != SIG_DFL || abrt.sa_handler != SIG_DFL || sigismember(&mask, SIGUSR1);
}

static int misbehave_float_differs(void)
{
    volatile double third = 1, three = 3, least = 5e-324, one = 1;

    third = third / three;
    return third * three != one || 1 - third * three < 0 || fegetround() != FE_TONEAREST ||
           least * one == 0;
}

/* What is not as the test's script started the program, with umask 022; NULL: all is. */
static inline const char *misbehave_trace(void)
{
    char folder[4096];
    const char *started_in = getenv("PWD");
    const mode_t mask = umask(022);

    if (started_in == NULL || getcwd(folder, sizeof folder) == NULL ||
        strcmp(folder, started_in) != 0)
        return "the folder is another";
    if (mask != 022)
        return "the umask is another";
    if (strcmp(setlocale(LC_ALL, NULL), "C") != 0)
        return "the locale is another";
    if (misbehave_float_differs())
        return "the floating-point mode is another";
    if (misbehave_signals_differ())
        return "the signals are others";
    return misbehave_streams_differ() ? "the standard streams are others" : NULL;
}

#endif
