/*
 * To be preloaded: a system that is short of processes. Of all forks of a program and of those it forked, counted from 1,
 * those from the first to the last number of FORKS_FAIL ("3-5", or "3-" for all from there on) fail.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#pragma GCC visibility push(default)

static atomic_long *forks; /* shared by all that come of this process */

__attribute__((constructor)) static void share(void)
{
    forks = mmap(NULL, sizeof *forks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (forks == MAP_FAILED)
        abort();
}

pid_t fork(void)
{
    pid_t (*real)(void);
    const char *text = getenv("FORKS_FAIL");
    char *end = NULL;
    const long number = ++*forks, first = text ? strtol(text, &end, 10) : LONG_MAX;
    const long last = end != NULL && end[0] == '-' && end[1] != '\0' ? atol(end + 1) : LONG_MAX;

    if (number >= first && number <= last) {
        errno = EAGAIN;
        return -1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "fork");
    return real();
}
