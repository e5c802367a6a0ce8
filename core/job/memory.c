#include "job/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *require(void *pointer)
{
    if (pointer == NULL) {
        fputs("gpurun: out of memory\n", stderr);
        exit(1);
    }
    return pointer;
}

void *allocate(size_t count, size_t size)
{
    return require(calloc(count ? count : 1, size));
}

void *allocate_uncleared(size_t size)
{
    return require(malloc(size));
}

char *copy_text(const char *text)
{
    return require(strdup(text));
}

char *copy_text_n(const char *text, size_t length)
{
    return require(strndup(text, length));
}

char *format_text(const char *format, ...)
{
    va_list args;
    char *text = NULL;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    return require(text);
}

void *grow(void *array, size_t count, size_t size)
{
    if ((count & (count - 1)) != 0) /* not a power of two: the last growth still has room */
        return array;
    return require(realloc(array, (count ? 2 * count : 1) * size));
}
