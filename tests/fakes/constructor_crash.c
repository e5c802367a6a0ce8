/* Crashes while it is loaded, before any hook. */
#define FAKE_NAME "constructor_crash"
#include "minimal.h"
#include <signal.h>

__attribute__((constructor)) static void crash(void)
{
    raise(SIGSEGV);
}
