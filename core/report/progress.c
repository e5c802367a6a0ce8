#include "report/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool progress_shown;

void progress_clear(void)
{
    if (progress_shown)
        fprintf(stderr, "\r\033[K");
    progress_shown = false;
}

/* 7s, 12:34, 1:02:03. */
static void format_time(double seconds, char *text, size_t size)
{
    const long s = (long)seconds;

    if (s < 60)
        snprintf(text, size, "%lds", s);
    else if (s < 3600)
        snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
    else
        snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
}

/* A line that wraps could not be overwritten. */
static int terminal_columns(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

void progress_show(const struct progress *p, const char *job, const char *name, const char *phase)
{
    const size_t run = p->done - p->resumed;
    char elapsed[32], left[32] = "?", failed[48] = "", line[400];

    if (!isatty(STDERR_FILENO))
        return;
    format_time(p->elapsed_s, elapsed, sizeof elapsed);
    if (run > 0 && p->total >= p->done)
        format_time(p->elapsed_s / (double)run * (double)(p->total - p->done), left, sizeof left);
    if (p->failed > 0)
        snprintf(failed, sizeof failed, ", %zu not passed", p->failed);
    snprintf(line, sizeof line, "%zu/%zu%s, %s, %s left: %.60s  %s  %s", p->done, p->total, failed,
             elapsed, left, job, name ? name : "", phase);
    fprintf(stderr, "\r\033[K%.*s", terminal_columns() - 1, line);
    fflush(stderr);
    progress_shown = true;
}
