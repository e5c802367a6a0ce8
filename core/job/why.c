#include "job/why.h"

#include <stdarg.h>
#include <stdio.h>

enum gpurun_status why_fail(struct why *why, enum gpurun_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return status;
}
