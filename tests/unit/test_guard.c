#include "run/guard.h"

#include <check.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Check forks for each test, so each has a process of its own to spoil. */

static void setup(void)
{
    guard_note();
    ck_assert(guard_is_unharmed());
}

START_TEST(test_nothing_without_a_note)
{
    ck_assert_int_eq(chdir("/"), 0);
    umask(077);
    guard_expect();
    guard_restore();
    ck_assert_int_eq(umask(022), 077);
    ck_assert(guard_is_unharmed());
}
END_TEST

START_TEST(test_folder)
{
    char before[4096], after[4096];

    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert(!guard_is_unharmed());
    ck_assert_ptr_nonnull(getcwd(after, sizeof after));
    ck_assert_str_eq(after, before);
}
END_TEST

/* Each look costs system calls: it is due once for every hook. */
START_TEST(test_restores_once_for_a_hook)
{
    const mode_t before = umask(0);

    guard_restore();
    ck_assert_int_eq(umask(0), 0);
    guard_expect();
    guard_restore();
    ck_assert_int_eq(umask(0), before);
    guard_restore();
    ck_assert_int_eq(umask(0), 0);
}
END_TEST

START_TEST(test_umask)
{
    const mode_t before = umask(0);

    umask(before ^ 070);
    ck_assert(!guard_is_unharmed());
    ck_assert_int_eq(umask(0), before);
}
END_TEST

START_TEST(test_locale)
{
    const locale_t own = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);

    ck_assert(own != (locale_t)0);
    uselocale(own);
    ck_assert(!guard_is_unharmed());
    ck_assert(uselocale((locale_t)0) == LC_GLOBAL_LOCALE);
    ck_assert_ptr_nonnull(setlocale(LC_ALL, "C.UTF-8"));
    guard_expect();
    guard_restore();
    ck_assert_str_eq(setlocale(LC_ALL, NULL), "C");
    freelocale(own);
}
END_TEST

START_TEST(test_floating_mode)
{
    volatile double least = 5e-324, one = 1;

    ck_assert_int_eq(fesetround(FE_DOWNWARD), 0);
    ck_assert(!guard_is_unharmed());
    ck_assert_int_eq(fegetround(), FE_TONEAREST);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
    ck_assert(least * one == 0);
#endif
    guard_expect();
    guard_restore();
    ck_assert(least * one > 0);
}
END_TEST

/* An inexact result or a division by zero is no change of the mode. */
START_TEST(test_floating_flags)
{
    volatile double one = 1, three = 3, zero = 0;

    one = one / three;
    one = one / zero;
    ck_assert(fetestexcept(FE_INEXACT | FE_DIVBYZERO) != 0);
    ck_assert(guard_is_unharmed());
}
END_TEST

START_TEST(test_signals)
{
    struct sigaction before, action; /* a sanitizer has a handler of its own */
    sigset_t mask;

    sigaction(SIGSEGV, NULL, &before);
    signal(SIGSEGV, SIG_IGN);
    ck_assert(!guard_is_unharmed());
    sigaction(SIGSEGV, NULL, &action);
    ck_assert(action.sa_handler == before.sa_handler);
    signal(SIGUSR2, SIG_IGN);
    ck_assert(!guard_is_unharmed());
    sigaction(SIGUSR2, NULL, &action);
    ck_assert(action.sa_handler == SIG_DFL);
    sigfillset(&mask);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    guard_expect();
    guard_restore();
    sigprocmask(SIG_BLOCK, NULL, &mask);
    ck_assert_int_eq(sigismember(&mask, SIGTERM), 0);
}
END_TEST

START_TEST(test_streams)
{
    struct stat before[3], after;

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(fstat(i, &before[i]), 0);
    for (int i = 0; i < 3; i++)
        close(i);
    ck_assert_int_eq(open("/", O_RDONLY), 0); /* in the place of standard input */
    ck_assert(!guard_is_unharmed());
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(fstat(i, &after), 0);
        ck_assert(after.st_ino == before[i].st_ino && after.st_dev == before[i].st_dev);
    }
}
END_TEST

static void *wait_for_ever(void *unused)
{
    (void)unused;
    while (1)
        pause();
    return NULL;
}

START_TEST(test_threads)
{
    pthread_t thread;
    int sum = 0;

#pragma omp parallel num_threads(4) reduction(+ : sum)
    sum++;
    ck_assert_int_eq(sum, 4);
    ck_assert(guard_is_unharmed()); /* OpenMP's pool */
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_ever, NULL), 0);
    ck_assert(!guard_is_unharmed());
    guard_open_device();
    ck_assert(guard_is_unharmed()); /* it may be the driver's */
}
END_TEST

START_TEST(test_processes)
{
    const pid_t child = fork();

    if (child == 0)
        wait_for_ever(NULL);
    ck_assert(!guard_is_unharmed());
    kill(child, SIGKILL);
    ck_assert(!guard_is_unharmed()); /* nobody has waited for it */
}
END_TEST

static char *kept[3]; /* to the process' end */

static void keep(int i, size_t mib)
{
    ck_assert_ptr_nonnull(kept[i] = malloc(mib << 20));
    memset(kept[i], 1, mib << 20);
}

START_TEST(test_memory)
{
    keep(0, 200);
    ck_assert(guard_is_unharmed());
    keep(1, 300);
    ck_assert(!guard_is_unharmed());
    ck_assert(guard_is_unharmed()); /* only what the last job left */
    guard_open_device();
    keep(2, 300);
    ck_assert(guard_is_unharmed()); /* the driver's own */
}
END_TEST

/* Nothing is held against a worker for what loading a plugin changed, but it is put back. */
START_TEST(test_forgiven)
{
    ck_assert_int_eq(fesetround(FE_UPWARD), 0);
    guard_forgive();
    ck_assert_int_eq(fegetround(), FE_TONEAREST);
    ck_assert(guard_is_unharmed());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guard");
    TCase *alone = tcase_create("without a note"), *noted = tcase_create("noted");
    SRunner *runner;
    int failed;

    tcase_add_test(alone, test_nothing_without_a_note);
    tcase_add_checked_fixture(noted, setup, NULL);
    tcase_add_test(noted, test_folder);
    tcase_add_test(noted, test_restores_once_for_a_hook);
    tcase_add_test(noted, test_umask);
    tcase_add_test(noted, test_locale);
    tcase_add_test(noted, test_floating_mode);
    tcase_add_test(noted, test_floating_flags);
    tcase_add_test(noted, test_signals);
    tcase_add_test(noted, test_streams);
    tcase_add_test(noted, test_threads);
    tcase_add_test(noted, test_processes);
    tcase_add_test(noted, test_memory);
    tcase_add_test(noted, test_forgiven);
    suite_add_tcase(suite, alone);
    suite_add_tcase(suite, noted);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
