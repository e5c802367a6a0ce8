#include "report/plot.h"

#include "job/memory.h"
#include "measure/stats.h"
#include "report/output.h"
#include "run/record.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LABEL_MAX = 40,    /* characters of a label that are drawn */
    POINTS_MAX = 2000, /* samples of a series that are drawn, evenly picked */
    LIMIT_S = 20,      /* gnuplot takes longer: it is ended */
};

/* --- the script --- */

/* A place-holder as wide as the text will be. */
static void put_label(FILE *to, size_t index, const char *text)
{
    char mark[LABEL_MAX + 24];
    size_t width = 0, length;

    for (const char *c = text; *c != '\0'; c++)
        width += ((unsigned char)*c & 0xC0) != 0x80;
    length = (size_t)snprintf(mark, sizeof mark, "@%zu@", index);
    while (length < width && length < LABEL_MAX)
        mark[length++] = 'x';
    mark[length] = '\0';
    fprintf(to, "'%s'", mark);
}

static const json_t *series_at(const json_t *chart, size_t index)
{
    return json_array_get(json_object_get(chart, "series"), index);
}

static size_t series_count(const json_t *chart)
{
    return json_array_size(json_object_get(chart, "series"));
}

static double point(const json_t *series, size_t index)
{
    return json_number_value(json_array_get(json_object_get(series, "points"), index));
}

/* Rows from the top down, named at their left. */
static void put_rows(FILE *to, const json_t *chart)
{
    const size_t count = series_count(chart);

    fprintf(to, "set terminal svg size 640,%zu dynamic noenhanced font 'sans-serif,13'\n",
            90 + 32 * count);
    fprintf(to, "set yrange [%zu.5:-0.5]\nset ytics scale 0 (", count - 1);
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? ", " : "", to);
        put_label(to, i, json_text_at(series_at(chart, i), "label"));
        fprintf(to, " %zu", i);
    }
    fprintf(to, ")\nset xlabel '%s'\nset style fill solid 1 noborder\n", json_text_at(chart, "x"));
}

static void put_bars(FILE *to, const json_t *chart)
{
    const double limit = json_number_value(json_object_get(chart, "limit"));
    double most = limit;

    put_rows(to, chart);
    fputs("unset key\n$d << EOD\n", to);
    for (size_t i = 0; i < series_count(chart); i++) {
        fprintf(to, "%zu %.17g\n", i, point(series_at(chart, i), 0));
        most = fmax(most, point(series_at(chart, i), 0));
    }
    fprintf(to, "EOD\nset xrange [0:%.17g]\n", 1.05 * most);
    if (limit > 0)
        fprintf(to,
                "set arrow from %.17g,graph 0 to %.17g,graph 1 nohead dashtype 2 lw 2\n"
                "set label 'limit' at %.17g,graph 1.06 center\n",
                limit, limit, limit);
    fputs("plot $d using (0):1:(0):2:($1-0.35):($1+0.35) with boxxyerror lc rgb '#0072b2'\n", to);
}

static void put_stacked(FILE *to, const json_t *chart)
{
    static const char *const colours[] = {"#56b4e9", "#e69f00", "#009e73"};
    static const char *const phases[] = {"upload", "kernel", "download"};

    put_rows(to, chart);
    fputs("set key outside top center horizontal\nset xrange [0:*]\n$d << EOD\n", to);
    for (size_t i = 0; i < series_count(chart); i++) {
        const json_t *s = series_at(chart, i);
        const double a = point(s, 0), b = a + point(s, 1), c = b + point(s, 2);

        fprintf(to, "%zu 0 %.17g %.17g %.17g\n", i, a, b, c);
    }
    fputs("EOD\nplot ", to);
    for (int i = 0; i < 3; i++)
        fprintf(to,
                "%s$d using %d:1:%d:%d:($1-0.35):($1+0.35) with boxxyerror lc rgb '%s' title '%s'",
                i > 0 ? ", " : "", i + 2, i + 2, i + 3, colours[i], phases[i]);
    fputc('\n', to);
}

static const char *colour_of(size_t index)
{
    static const char *const colours[] = {"#0072b2", "#e69f00", "#009e73", "#d55e00",
                                          "#cc79a7", "#56b4e9", "#999999"};

    return colours[index % (sizeof colours / sizeof colours[0])];
}

static void put_lines(FILE *to, const json_t *chart)
{
    const size_t count = series_count(chart);
    json_t *pair;
    size_t k;

    fprintf(to,
            "set terminal svg size 640,%zu dynamic noenhanced font 'sans-serif,13'\n"
            "set logscale xy\nset format x '%%.0s%%c'\nset format y '%%g'\nset xlabel '%s'\nset "
            "ylabel '%s'\n"
            "set key outside bottom center horizontal\nset grid\n",
            400 + 22 * (count / 3), json_text_at(chart, "x"), json_text_at(chart, "y"));
    for (size_t i = 0; i < count; i++) {
        fprintf(to, "$d%zu << EOD\n", i);
        json_array_foreach(json_object_get(series_at(chart, i), "points"), k, pair)
            fprintf(to, "%.17g %.17g\n", json_number_value(json_array_get(pair, 0)),
                    json_number_value(json_array_get(pair, 1)));
        fputs("EOD\n", to);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *s = series_at(chart, i);
        const bool is_limit = json_is_true(json_object_get(s, "is_limit"));

        fprintf(to, "%s $d%zu using 1:2 with ", i > 0 ? "," : "plot", i);
        if (is_limit)
            fputs("lines dashtype 2 lw 2 lc rgb 'black'", to);
        else
            fprintf(to, "linespoints lw 2 pt %zu ps 0.6 lc rgb '%s'", 4 + i % 11, colour_of(i));
        fputs(" title ", to);
        put_label(to, i, json_text_at(s, "label"));
    }
    fputc('\n', to);
}

static double median_of(const json_t *series)
{
    const size_t count = json_array_size(json_object_get(series, "points"));
    double *values = allocate(count + 1, sizeof *values), median;

    for (size_t i = 0; i < count; i++)
        values[i] = point(series, i);
    median = stats_of(values, count).median;
    free(values);
    return median;
}

/* Each series in parts of its own median, so that the spread of a fast case is seen beside a slow one.
 * Within its row a series runs from the top down, first sample first. */
static void put_strip(FILE *to, const json_t *chart)
{
    put_rows(to, chart);
    fputs("unset key\n", to);
    for (size_t i = 0; i < series_count(chart); i++) {
        const json_t *s = series_at(chart, i);
        const size_t n = json_array_size(json_object_get(s, "points"));
        const size_t drawn = n < POINTS_MAX ? n : POINTS_MAX;
        const double median = median_of(s);

        fprintf(to, "$d%zu << EOD\n", i);
        for (size_t k = 0; k < drawn; k++)
            fprintf(to, "%.17g %.17g\n", 100 * (point(s, k * n / drawn) / median - 1),
                    (double)i - 0.38 + 0.76 * ((double)k + 0.5) / (double)drawn);
        fputs("EOD\n", to);
    }
    for (size_t i = 0; i < series_count(chart); i++)
        fprintf(to, "%s $d%zu using 1:2 with points pt 7 ps 0.3 lc rgb '%s'", i > 0 ? "," : "plot",
                i, colour_of(i));
    fputc('\n', to);
}

static void put_script(FILE *to, const json_t *chart)
{
    static const struct {
        const char *kind;
        void (*put)(FILE *to, const json_t *chart);
    } kinds[] = {
        {"bars", put_bars}, {"stacked", put_stacked}, {"lines", put_lines}, {"strip", put_strip}};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].kind, json_text_at(chart, "kind")) == 0)
            kinds[i].put(to, chart);
}

/* --- gnuplot --- */

bool plot_is_possible(void)
{
    const char *path = getenv("PATH");
    char name[4096];

    while (path != NULL && *path != '\0') {
        const size_t length = strcspn(path, ":");

        snprintf(name, sizeof name, "%.*s/gnuplot", (int)length, path);
        if (length > 0 && access(name, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static void become_gnuplot(int script, int answer)
{
    dup2(script, STDIN_FILENO);
    dup2(answer, STDOUT_FILENO);
    if (freopen("/dev/null", "w", stderr) == NULL)
        _exit(126);
    alarm(LIMIT_S);
    setenv("LC_ALL", "C", 1);
    execlp("gnuplot", "gnuplot", "-d", (char *)NULL);
    _exit(127);
}

/* Runs gnuplot from one file in memory to another: neither can fill up and hold the other back. */
static bool run_gnuplot(int script, int answer)
{
    int status;
    const pid_t child = fork();

    if (child == 0)
        become_gnuplot(script, answer);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static int write_script(const json_t *chart)
{
    const int fd = memfd_create("gnuplot-script", MFD_CLOEXEC);
    FILE *to = fd >= 0 ? fdopen(dup(fd), "w") : NULL;
    bool is_written;

    if (to == NULL)
        return fd;
    put_script(to, chart);
    is_written = fclose(to) == 0 && lseek(fd, 0, SEEK_SET) == 0;
    if (is_written)
        return fd;
    close(fd);
    return -1;
}

/* --- the answer --- */

/* The text that stands for "@N@xxx" at `from`; how long that was, 0 for no place-holder. */
static size_t take_label(const char *from, const json_t *chart, const char **text)
{
    char *end;
    const unsigned long index = strtoul(from + 1, &end, 10);

    if (*from != '@' || end == from + 1 || *end != '@' || index >= series_count(chart))
        return 0;
    *text = json_text_at(series_at(chart, index), "label");
    end++;
    return (size_t)(end - from) + strspn(end, "x");
}

static void write_label(FILE *to, const char *text)
{
    char *shown = strdup(text);
    size_t length = 0, width = 0;

    while (shown != NULL && shown[length] != '\0' && width <= LABEL_MAX)
        width += ((unsigned char)shown[length++] & 0xC0) != 0x80;
    if (width > LABEL_MAX) /* the last character begins one byte back */
        shown[length - 1] = '\0';
    xml_text(to, shown ? shown : "");
    fputs(width > LABEL_MAX ? "\xE2\x80\xA6" : "", to);
    free(shown);
}

/* Ids are the page's, not the picture's: gnuplot's own ones all begin alike. */
static void write_line(FILE *to, const char *line, const json_t *chart, int number)
{
    static const char *const ids[] = {"gpDot", "gpPt", "gnuplot_", "textbox", "greybox"};

    while (*line != '\0') {
        const char *text;
        const size_t used = take_label(line, chart, &text);

        for (size_t i = 0; used == 0 && i < sizeof ids / sizeof ids[0]; i++)
            if (strncmp(line, ids[i], strlen(ids[i])) == 0)
                fprintf(to, "c%d-", number);
        if (used > 0)
            write_label(to, text);
        else
            fputc(*line, to);
        line += used > 0 ? used : 1;
    }
}

static bool write_answer(FILE *to, int answer, const json_t *chart, int number)
{
    FILE *from = fdopen(answer, "r");
    char *line = NULL;
    size_t room = 0;
    bool is_inside = false;

    if (from == NULL)
        return false;
    rewind(from);
    while (getline(&line, &room, from) > 0) {
        is_inside = is_inside || strncmp(line, "<svg", 4) == 0;
        if (is_inside && strncmp(line, "<title>", 7) != 0 && strncmp(line, "<desc>", 6) != 0)
            write_line(to, line, chart, number);
    }
    free(line);
    fclose(from);
    return is_inside;
}

bool plot_write(FILE *to, const json_t *chart, int number)
{
    const int script = write_script(chart), answer = memfd_create("gnuplot-answer", MFD_CLOEXEC);
    bool is_drawn = script >= 0 && answer >= 0 && run_gnuplot(script, answer);

    if (script >= 0)
        close(script);
    if (is_drawn)
        return write_answer(to, answer, chart, number);
    if (answer >= 0)
        close(answer);
    return false;
}
