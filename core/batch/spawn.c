#include "batch/spawn.h"

#include "batch/interrupt.h"
#include "run/run.h"
#include <errno.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_NS = 10000000 };

pid_t spawn(double patience_s)
{
    const double deadline = now_s() + patience_s;
    pid_t pid;

    while ((pid = fork()) < 0 && (errno == EAGAIN || errno == ENOMEM) && !interrupted &&
           now_s() < deadline)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    return pid;
}
