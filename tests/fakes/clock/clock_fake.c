/* To be preloaded: the wall clock goes back an hour at every look. The clock that only goes forward still does. */
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default)

static time_t earlier(void)
{
    static time_t now = 2000000000;

    return now -= 3600;
}

time_t time(time_t *out)
{
    const time_t now = earlier();

    if (out != NULL)
        *out = now;
    return now;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    *now = (struct timeval){.tv_sec = earlier()};
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock != CLOCK_REALTIME)
        return (int)syscall(SYS_clock_gettime, clock, now);
    *now = (struct timespec){.tv_sec = earlier()};
    return 0;
}
