#include "report/progress.h"

#include "run/record.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MANY_CASES = 20 };
static const double LONG_S = 10, REDRAW_S = 0.05;

static bool progress_shown;

static bool is_terminal(void)
{
    static int known = -1;

    if (known < 0)
        known = isatty(STDERR_FILENO);
    return known;
}

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

/* "12 of 200 cases done, 1 not passed, 0:40, about 9:20 left" */
static void format_state(const struct progress *p, char *text, size_t size)
{
    const size_t run = p->done - p->resumed;
    char elapsed[32], left[64] = "", failed[48] = "";

    format_time(p->elapsed_s, elapsed, sizeof elapsed);
    if (run > 0 && p->total > p->done) {
        char time[32];

        format_time(p->elapsed_s / (double)run * (double)(p->total - p->done), time, sizeof time);
        snprintf(left, sizeof left, ", about %s left", time);
    }
    if (p->failed > 0)
        snprintf(failed, sizeof failed, ", %zu not passed", p->failed);
    snprintf(text, size, "%zu of %zu cases done%s, %s%s", p->done, p->total, failed, elapsed, left);
}

void progress_show(const struct progress *p)
{
    static double drawn_s;
    static size_t drawn_done;
    char line[1200], *at = line, *const end = line + sizeof line;

    if (!is_terminal() ||
        (progress_shown && p->done == drawn_done && p->elapsed_s - drawn_s < REDRAW_S))
        return;
    drawn_s = p->elapsed_s;
    drawn_done = p->done;
    format_state(p, line, sizeof line);
    for (size_t i = 0; i < p->count; i++) {
        const struct progress_case *c = &p->running[i];

        at += strlen(at);
        snprintf(at, (size_t)(end - at), "%s%.60s%s%s%s%s", i == 0 ? ": " : "; ", c->job,
                 c->name ? " " : "", c->name ? c->name : "", c->phase[0] ? ", " : "", c->phase);
    }
    line[terminal_columns() < (int)sizeof line ? terminal_columns() - 1 : (int)sizeof line - 1] =
        '\0';
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    progress_shown = true;
}

void progress_end_case(const struct progress *p, const json_t *record)
{
    const double median_ms =
        json_number_value(json_object_get(json_object_get(record, "time_ms"), "median"));
    const char *reason = json_text_at(record, "reason");

    if (is_terminal() || (p->total <= MANY_CASES && p->elapsed_s < LONG_S))
        return;
    fprintf(stderr, "gpurun: %zu of %zu: %s %s: %s", p->done, p->total, json_text_at(record, "job"),
            json_text_at(record, "variant"), json_text_at(record, "status"));
    if (median_ms > 0)
        fprintf(stderr, ", %.4g ms", median_ms);
    fprintf(stderr, "%s%s\n", reason[0] ? ": " : "", reason);
}
