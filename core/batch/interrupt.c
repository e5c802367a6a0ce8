#include "batch/interrupt.h"

#include "batch/batch.h"
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

volatile int interrupted;

/* The workers die with their parent. */
static void on_signal(int signal_number)
{
    (void)signal_number;
    if (interrupted++ > 0)
        _exit(EXIT_INTERRUPTED);
}

void interrupt_catch(void)
{
    const struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
