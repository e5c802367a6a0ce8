#include "report/strategies.h"

#include "job/memory.h"
#include "report/output.h"
#include "report/table.h"
#include "run/record.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double number_at(const json_t *record, const char *path)
{
    return json_number_value(output_at(record, path));
}

char *strategies_name(const json_t *record)
{
    return format_text("%s%s", json_text_at(record, "memory"),
                       json_is_true(output_at(record, "options.prefetch")) ? ", prefetch" : "");
}

double strategies_bytes(const json_t *record)
{
    double bytes = 0;
    json_t *input;
    size_t i;

    json_array_foreach(json_object_get(record, "input"), i, input) bytes +=
        json_number_value(json_object_get(input, "bytes"));
    return bytes;
}

struct winner {
    double bytes, ms;
    const json_t *record;
    size_t rivals; /* strategies that were measured at this size */
};

static int compare_winners(const void *a, const void *b)
{
    const struct winner *x = a, *y = b;

    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The fastest end to end at each size; how many sizes had more than one strategy. */
static size_t find_winners(const json_t *records, struct winner *winners)
{
    size_t count = 0, kept = 0, i;
    json_t *record;

    json_array_foreach((json_t *)records, i, record)
    {
        const double ms = number_at(record, "end_to_end_ms.median"),
                     bytes = strategies_bytes(record);
        size_t k = 0;

        while (k < count && winners[k].bytes != bytes)
            k++;
        if (ms <= 0)
            continue;
        if (k == count)
            winners[count++] = (struct winner){bytes, ms, record, 0};
        winners[k].rivals++;
        if (ms < winners[k].ms)
            winners[k] = (struct winner){bytes, ms, record, winners[k].rivals};
    }
    for (i = 0; i < count; i++)
        if (winners[i].rivals > 1)
            winners[kept++] = winners[i];
    qsort(winners, kept, sizeof *winners, compare_winners);
    return kept;
}

/* ", pinned from 4 MB to 16 MB": the sizes from `first` to before `end`, of `count`. */
static void put_span(FILE *to, const struct winner *w, size_t first, size_t end, size_t count)
{
    char *name = strategies_name(w[first].record), from[32], till[32];

    format_bytes(w[first].bytes, from, sizeof from);
    format_bytes(w[end - 1].bytes, till, sizeof till);
    fprintf(to, "%s%s", first > 0 ? "; " : "", name);
    if (first == 0 && end == count)
        fprintf(to, count > 1 ? " at every size, %s to %s" : " at %s", from, till);
    else if (first == 0)
        fprintf(to, " up to %s", till);
    else if (end == count)
        fprintf(to, " from %s", from);
    else if (first + 1 == end)
        fprintf(to, " at %s", from);
    else
        fprintf(to, " from %s to %s", from, till);
    free(name);
}

/* --- where one overtakes another --- */

/* The fastest record of a strategy at a size; NULL: it was not measured there. */
static const json_t *record_of(const json_t *records, const char *strategy, double bytes)
{
    const json_t *found = NULL;
    json_t *record;
    size_t i;

    json_array_foreach((json_t *)records, i, record)
    {
        const double ms = number_at(record, "end_to_end_ms.median");
        char *name = strategies_name(record);

        if (ms > 0 && strategies_bytes(record) == bytes && strcmp(name, strategy) == 0 &&
            (found == NULL || ms < number_at(found, "end_to_end_ms.median")))
            found = record;
        free(name);
    }
    return found;
}

/* Whether the medians may stand the other way round. */
static bool overlap(const json_t *a, const json_t *b)
{
    static const char low[] = "end_to_end_ms.median_ci95.0", high[] = "end_to_end_ms.median_ci95.1";

    return number_at(a, low) <= number_at(b, high) && number_at(b, low) <= number_at(a, high);
}

/* One end of a crossing: what is in doubt there. *count is how many ends were. */
static void put_doubt(FILE *to, const json_t *winner, const json_t *loser, const char *name,
                      const char *size, int *count)
{
    if (loser == NULL)
        fprintf(to, "; at %s %s was not measured", size, name);
    else if (overlap(winner, loser))
        fprintf(to, *count > 0 ? " and at %s" : "; their intervals overlap at %s", size);
    *count += loser != NULL && overlap(winner, loser);
}

/* " Between 400 KB and 4 MB pinned overtakes explicit; their intervals overlap at 4 MB." */
static void put_crossing(FILE *to, const json_t *records, const struct winner *below,
                         const struct winner *above)
{
    char *before = strategies_name(below->record), *after = strategies_name(above->record);
    char from[32], till[32];
    int doubts = 0;

    format_bytes(below->bytes, from, sizeof from);
    format_bytes(above->bytes, till, sizeof till);
    fprintf(to, " Between %s and %s %s overtakes %s", from, till, after, before);
    put_doubt(to, below->record, record_of(records, after, below->bytes), after, from, &doubts);
    put_doubt(to, above->record, record_of(records, before, above->bytes), before, till, &doubts);
    fputs(".", to);
    free(before);
    free(after);
}

static bool is_same_strategy(const struct winner *a, const struct winner *b)
{
    char *x = strategies_name(a->record), *y = strategies_name(b->record);
    const bool is_same = strcmp(x, y) == 0;

    free(x);
    free(y);
    return is_same;
}

char *strategies_overtaking(const json_t *records)
{
    struct winner *w = allocate(json_array_size(records) + 1, sizeof *w);
    const size_t count = find_winners(records, w);
    char *text = NULL;
    size_t size, first = 0;
    FILE *to = open_memstream(&text, &size);

    fputs(count > 0 ? "Fastest end to end: " : "", to);
    for (size_t i = 1; i <= count; i++)
        if (i == count || !is_same_strategy(&w[i - 1], &w[i])) {
            put_span(to, w, first, i, count);
            first = i;
        }
    fputs(count > 0 ? "." : "", to);
    for (size_t i = 1; i < count; i++)
        if (!is_same_strategy(&w[i - 1], &w[i]))
            put_crossing(to, records, &w[i - 1], &w[i]);
    fclose(to);
    free(w);
    return text;
}
