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
    /* What waits looks at `interrupted` itself; what writes the report is not to be cut off. */
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
