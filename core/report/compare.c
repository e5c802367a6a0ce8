#include "report/compare.h"

#include "job/memory.h"
#include "report/report.h"
#include "report/table.h"
#include "run/identity.h"
#include "run/record.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Launches and events vary from process to process: on an H200, kernels of 6 to 90 us came out up to 1.1 us apart
 * in runs of the same program, each of which was sure of its median. */
static const double LAUNCH_SPREAD_MS = 0.0015;

static bool is_passed(const json_t *record)
{
    return strcmp(json_text_at(record, "status"), "passed") == 0;
}

static bool is_interrupted(const json_t *record)
{
    return strcmp(json_text_at(record, "status"), "interrupted") == 0;
}

static bool is_on_device(const json_t *record)
{
    return strcmp(json_text_at(record, "device"), "cpu") != 0;
}

bool compare_interval(const json_t *record, struct interval *t)
{
    t->median = json_number_value(output_at(record, "time_ms.median"));
    t->low = json_number_value(output_at(record, "time_ms.median_ci95.0"));
    t->high = json_number_value(output_at(record, "time_ms.median_ci95.1"));
    t->samples = json_integer_value(output_at(record, "time_ms.n"));
    return t->low > 0 && t->low <= t->median && t->median <= t->high && isfinite(t->high);
}

static double clock_of(const json_t *record)
{
    return json_number_value(output_at(record, "device_state.sm_clock_mhz"));
}

/* --- notes and differences of one case --- */

static void add_note(json_t *row, char *text)
{
    json_array_append_new(json_object_get(row, "notes"), json_text(text));
    free(text);
}

static void add_difference(json_t *row, const char *name, const json_t *before, const json_t *now)
{
    json_t *pair = json_array();

    json_array_append(pair, before ? (json_t *)before : json_null());
    json_array_append(pair, now ? (json_t *)now : json_null());
    json_object_set_new(json_object_get(row, "differences"), name, pair);
}

static void format_side(const json_t *value, char *text, size_t size)
{
    if (json_is_null(value))
        snprintf(text, size, "(none)");
    else if (json_is_array(value) || json_is_object(value))
        format_json(value, text, size);
    else
        output_scalar(value, text, size);
}

/* "n 1M -> 2M", for the caller to free. */
static char *difference_text(const char *name, const json_t *pair)
{
    char before[200], now[200];

    format_side(json_array_get(pair, 0), before, sizeof before);
    format_side(json_array_get(pair, 1), now, sizeof now);
    return format_text("%s %s -> %s", name, before, now);
}

/* What is this case's own question stands beside it, and not above all cases. */
static void note_differences(json_t *row)
{
    const char *name;
    json_t *pair;

    json_object_foreach(json_object_get(row, "differences"), name, pair)
        add_note(row, difference_text(name, pair));
}

/* Old program or new, the machine under both: what a reader must know to judge the times. */
static void note_environment(json_t *row, const json_t *before, const json_t *now)
{
    static const struct {
        const char *path;
        bool is_of_device; /* it means nothing to a case that ran on the CPU */
    } fields[] = {{"environment.host", false},         {"environment.cpu", false},
                  {"environment.threads", false},      {"environment.device_name", true},
                  {"environment.driver", true},        {"environment.runtime", true},
                  {"environment.build", false},        {"environment.program_build", false},
                  {"environment.plugin_build", false}, {"device_state.throttle", true}};

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const json_t *a = output_at(before, fields[i].path), *b = output_at(now, fields[i].path);

        if ((is_on_device(now) || !fields[i].is_of_device) && a != NULL && b != NULL &&
            !json_equal((json_t *)a, (json_t *)b))
            add_difference(row, strchr(fields[i].path, '.') + 1, a, b);
    }
}

/* How long is measured, and what is done besides: the times stay those of the same work. */
static bool is_beside_work(const char *option)
{
    static const char *const names[] = {"threads",  "device", "repeat", "warmup",        "min_time",
                                        "max_time", "verify", "show",   "picture_limit", "samples"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], option) == 0)
            return true;
    return false;
}

/* Options that both have and that differ are another question. One that only one has came with another
 * gpurun or plugin: it is told, and the times are compared. */
static bool are_options_changed(json_t *row, const json_t *before, const json_t *now)
{
    const json_t *a = json_object_get(before, "options"), *b = json_object_get(now, "options");
    bool is_changed = false;
    const char *name;
    json_t *value, *other;

    json_object_foreach((json_t *)a, name, value)
    {
        other = json_object_get(b, name);
        if (!identity_is_asked(name) || json_equal(value, other) || b == NULL)
            continue;
        add_difference(row, name, value, other);
        is_changed = is_changed || (other != NULL && !is_beside_work(name));
    }
    json_object_foreach((json_t *)b, name, value) if (identity_is_asked(name) && a != NULL &&
                                                      json_object_get(a, name) == NULL)
        add_difference(row, name, NULL, value);
    return is_changed;
}

static bool is_data_changed(json_t *row, const json_t *before, const json_t *now)
{
    static const char *const fields[] = {"source", "shape", "dtype", "hash"};
    const json_t *a = json_object_get(before, "input"), *b = json_object_get(now, "input");

    for (size_t i = 0; i < json_array_size(a) && i < json_array_size(b); i++)
        for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++) {
            json_t *x = json_object_get(json_array_get(a, i), fields[k]);
            json_t *y = json_object_get(json_array_get(b, i), fields[k]);

            if (x != NULL && y != NULL && !json_equal(x, y)) {
                add_difference(row, fields[k][0] == 'h' ? "data" : fields[k], x, y);
                return true;
            }
        }
    return false;
}

/* `cache` and `launch` are what was applied: other readings, not other speeds. */
static bool is_reading_changed(json_t *row, const json_t *before, const json_t *now)
{
    static const char *const fields[] = {"cache", "launch"};
    bool is_changed = false;

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        json_t *a = json_object_get(before, fields[i]), *b = json_object_get(now, fields[i]);

        if (!json_is_string(a) || !json_is_string(b) || json_equal(a, b))
            continue;
        add_difference(row, fields[i], a, b);
        is_changed = true;
    }
    return is_changed;
}

static bool is_question_changed(json_t *row, const json_t *before, const json_t *now)
{
    const bool options = are_options_changed(row, before, now);
    const bool data = is_data_changed(row, before, now);
    const bool reading = is_reading_changed(row, before, now);

    return options || data || reading;
}

/* --- the verdict on one case --- */

static json_t *percent(double ratio)
{
    return json_number(100 * (ratio - 1));
}

static void set_change(json_t *row, const struct interval *before, const struct interval *now)
{
    json_t *range = json_array();

    json_array_append_new(range, percent(now->low / before->high));
    json_array_append_new(range, percent(now->high / before->low));
    json_object_set_new(row, "change_percent", percent(now->median / before->median));
    json_object_set_new(row, "change_percent_range", range);
}

/* In clock cycles a case takes as long at any clock, so a change that is the clock's own is none there. */
static enum verdict confirm_in_cycles(json_t *row, enum verdict verdict, const double clocks[2],
                                      const struct interval times[2], double gap)
{
    const double scale = clocks[1] / clocks[0];
    const struct interval cycles = {times[1].low * scale, times[1].median * scale,
                                    times[1].high * scale, times[1].samples};

    json_object_set_new(row, "cycles_change_percent", percent(cycles.median / times[0].median));
    if ((verdict != VERDICT_FASTER && verdict != VERDICT_SLOWER) ||
        verdict_of(&times[0], &cycles, gap) == verdict)
        return verdict;
    add_note(row, format_text("not so in clock cycles: %.4g -> %.4g MHz", clocks[0], clocks[1]));
    return VERDICT_UNCERTAIN;
}

static enum verdict verdict_on_times(json_t *row, const json_t *before, const json_t *now,
                                     double gap)
{
    const double clocks[2] = {clock_of(before), clock_of(now)};
    struct interval times[2];
    enum verdict verdict;

    if (!compare_interval(before, &times[0]) || !compare_interval(now, &times[1])) {
        add_note(row, copy_text("a record without times"));
        return VERDICT_UNCERTAIN;
    }
    set_change(row, &times[0], &times[1]);
    verdict = verdict_of(&times[0], &times[1], gap);
    if (times[0].samples < VERDICT_SAMPLES_MIN || times[1].samples < VERDICT_SAMPLES_MIN)
        add_note(row, format_text("fewer than %d runs", VERDICT_SAMPLES_MIN));
    if (clocks[0] > 0 && clocks[1] > 0 && is_on_device(now))
        verdict = confirm_in_cycles(row, verdict, clocks, times, gap);
    if ((verdict == VERDICT_FASTER || verdict == VERDICT_SLOWER) && is_on_device(now) &&
        strcmp(json_text_at(now, "launch"), "graph") != 0 &&
        fabs(times[1].median - times[0].median) < LAUNCH_SPREAD_MS) {
        add_note(row, copy_text("within what launches vary, 1.5 us"));
        return VERDICT_UNCERTAIN;
    }
    return verdict;
}

static void note_statuses(json_t *row, const json_t *before, const json_t *now)
{
    const char *reason = json_text_at(is_passed(now) ? before : now, "reason");

    add_note(row, format_text("%s -> %s%s%s", json_text_at(before, "status"),
                              json_text_at(now, "status"), reason[0] ? ": " : "", reason));
}

static enum verdict judge(json_t *row, const json_t *before, const json_t *now, double gap)
{
    if (before == NULL)
        return VERDICT_ADDED;
    if (now == NULL)
        return VERDICT_MISSING;
    note_environment(row, before, now);
    if (!is_passed(before) || !is_passed(now))
        note_statuses(row, before, now);
    if (is_interrupted(now) || is_interrupted(before)) /* it has no end to compare */
        return is_interrupted(now) ? VERDICT_MISSING : VERDICT_ADDED;
    if (!is_passed(now))
        return is_passed(before) ? VERDICT_FAILED : VERDICT_FAILING;
    if (!is_passed(before))
        return VERDICT_MENDED;
    if (is_question_changed(row, before, now)) {
        note_differences(row);
        return VERDICT_CHANGED;
    }
    return verdict_on_times(row, before, now, gap);
}

static json_t *side_of(const json_t *record)
{
    json_t *side;
    struct interval t;

    if (record == NULL)
        return json_null();
    side = json_pack("{ss}", "status", json_text_at(record, "status"));
    if (compare_interval(record, &t))
        json_object_update_new(side, json_pack("{sfsfsfsI}", "median_ms", t.median, "low_ms", t.low,
                                               "high_ms", t.high, "runs", (json_int_t)t.samples));
    if (clock_of(record) > 0)
        json_object_set_new(side, "sm_clock_mhz", json_number(clock_of(record)));
    return side;
}

static json_t *compare_case(const json_t *before, const json_t *now, double gap)
{
    const json_t *any = now ? now : before;
    json_t *row = json_pack("{sssssss[]s{}soso}", "job", json_text_at(any, "job"), "variant",
                            json_text_at(any, "variant"), "plugin", json_text_at(any, "plugin"),
                            "notes", "differences", "old", side_of(before), "new", side_of(now));

    json_object_set_new(row, "verdict", json_string(verdict_name(judge(row, before, now, gap))));
    return row;
}

/* --- which case is which --- */

static char *name_of(const json_t *record)
{
    return format_text("%s\n%s", json_text_at(record, "job"), json_text_at(record, "variant"));
}

static char *id_of(const json_t *record)
{
    const char *id = json_text_at(record, "case_id");

    return id[0] != '\0' ? copy_text(id) : name_of(record);
}

/* Takes the record of the same key out of the index; NULL when there is none. For the caller to free. */
static json_t *take(json_t *index, const json_t *record, char *(*key_of)(const json_t *))
{
    char *key = key_of(record);
    json_t *found = json_incref(json_object_get(index, key));

    json_object_del(index, key);
    free(key);
    return found;
}

/* What is left on both sides after the identities were matched, and has one name, was asked with other
 * options: each pair without an old record gets the last one of its name. */
static void pair_by_name(json_t *pairs, json_t *left)
{
    json_t *by_name = json_object(), *record, *pair;
    const char *key;
    size_t i;

    json_object_foreach(left, key, record)
    {
        char *name = name_of(record);

        json_object_set(by_name, name, record);
        free(name);
    }
    json_array_foreach(pairs, i, pair)
    {
        json_t *now = json_array_get(pair, 1), *found = NULL;

        if (json_is_null(json_array_get(pair, 0)))
            found = take(by_name, now, name_of);
        if (found != NULL) {
            json_array_set(pair, 0, found);
            json_decref(take(left, found, id_of));
            json_decref(found);
        }
    }
    json_decref(by_name);
}

/* [old, new], null for none: in the order of the new records, then the old ones that are missing. */
static json_t *pair_up(const json_t *before, const json_t *now)
{
    json_t *left = json_object(), *pairs = json_array(), *record;
    const char *key;
    size_t i;

    json_array_foreach((json_t *)before, i, record)
    {
        char *id = id_of(record);

        json_object_set(left, id, record);
        free(id);
    }
    json_array_foreach((json_t *)now, i, record)
        json_array_append_new(pairs, json_pack("[o?O]", take(left, record, id_of), record));
    pair_by_name(pairs, left);
    json_object_foreach(left, key, record) json_array_append_new(pairs, json_pack("[On]", record));
    json_decref(left);
    return pairs;
}

/* --- the whole --- */

struct place {
    enum verdict verdict;
    double change; /* without its sign */
    size_t index;
    json_t *row;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    const bool by_change = x->verdict == VERDICT_SLOWER || x->verdict == VERDICT_FASTER;

    if (x->verdict != y->verdict)
        return x->verdict < y->verdict ? -1 : 1;
    if (by_change && x->change != y->change)
        return x->change > y->change ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static json_t *sort_rows(const json_t *rows)
{
    const size_t count = json_array_size(rows);
    struct place *places = allocate(count + 1, sizeof *places);
    json_t *sorted = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *row = json_array_get(rows, i);

        places[i] =
            (struct place){verdict_from(json_text_at(row, "verdict")),
                           fabs(json_number_value(json_object_get(row, "change_percent"))), i, row};
    }
    qsort(places, count, sizeof *places, compare_places);
    for (size_t i = 0; i < count; i++)
        json_array_append(sorted, places[i].row);
    free(places);
    return sorted;
}

static void count_up(json_t *counts, const char *name)
{
    json_object_set_new(counts, name,
                        json_integer(json_integer_value(json_object_get(counts, name)) + 1));
}

static json_t *count_verdicts(const json_t *rows)
{
    json_t *counts = json_object(), *row;
    size_t i;

    json_array_foreach((json_t *)rows, i, row) count_up(counts, json_text_at(row, "verdict"));
    return counts;
}

static void sum_differences_of(json_t *sums, const json_t *row)
{
    const char *name;
    json_t *pair;

    json_object_foreach(json_object_get(row, "differences"), name, pair)
    {
        const bool is_plugins = strcmp(name, "plugin_build") == 0;
        char *text = difference_text(name, pair), *whole;

        whole = format_text("%s%s%s", is_plugins ? json_text_at(row, "plugin") : "",
                            is_plugins ? ": " : "", text);
        count_up(sums, whole);
        free(whole);
        free(text);
    }
}

/* "driver 12080 -> 13000": how many cases have that difference and were compared all the same. */
static json_t *sum_differences(const json_t *rows)
{
    json_t *sums = json_object(), *row;
    size_t i;

    json_array_foreach((json_t *)rows, i, row)
    {
        if (verdict_from(json_text_at(row, "verdict")) != VERDICT_CHANGED)
            sum_differences_of(sums, row);
    }
    return sums;
}

json_t *compare_records(const json_t *before, const json_t *now, double gap)
{
    json_t *pairs = pair_up(before, now), *rows = json_array(), *pair, *sorted;
    size_t i;

    json_array_foreach(pairs, i, pair)
    {
        const json_t *a = json_array_get(pair, 0), *b = json_array_get(pair, 1);

        json_array_append_new(
            rows, compare_case(json_is_null(a) ? NULL : a, json_is_null(b) ? NULL : b, gap));
    }
    sorted = sort_rows(rows);
    json_decref(rows);
    json_decref(pairs);
    return json_pack("{sisfsososo}", "schema", RECORD_SCHEMA, "gap_percent", 100 * gap, "counts",
                     count_verdicts(sorted), "differences", sum_differences(sorted), "cases",
                     sorted);
}

bool compare_fails(const json_t *comparison, unsigned fail_on)
{
    const json_t *counts = json_object_get(comparison, "counts");
    size_t apart = 0;

    for (int i = 0; i < VERDICT_COUNT; i++) {
        const json_int_t count = json_integer_value(json_object_get(counts, verdict_name(i)));

        if (count > 0 && (fail_on & 1u << i))
            return true;
        if (i == VERDICT_MISSING || i == VERDICT_ADDED)
            apart += (size_t)count;
    }
    return fail_on != 0 && apart == json_array_size(json_object_get(comparison, "cases"));
}

void compare_summary(const json_t *comparison, char *text, size_t size)
{
    const json_t *counts = json_object_get(comparison, "counts");
    size_t used = 0;

    snprintf(text, size, "no case");
    for (int i = 0; i < VERDICT_COUNT && used < size; i++) {
        const json_int_t count = json_integer_value(json_object_get(counts, verdict_name(i)));

        if (count > 0)
            used += (size_t)snprintf(text + used, size - used, "%s%lld %s", used ? ", " : "",
                                     (long long)count, verdict_name(i));
    }
}

/* NULL, with the reason printed, when there is nothing to compare. */
static json_t *read_side(const char *path)
{
    json_t *records = report_read((char *const *)&path, 1);

    if (records == NULL || json_array_size(records) > 0)
        return records;
    fprintf(stderr, "gpurun: %s: it holds no record, so there is nothing to compare\n", path);
    json_decref(records);
    return NULL;
}

int compare_files(const char *before, const char *now, const struct compare_options *options)
{
    json_t *sides[2] = {read_side(before), NULL}, *comparison;
    bool is_bad;

    if (sides[0] != NULL)
        sides[1] = read_side(now);
    if (sides[1] == NULL) {
        json_decref(sides[0]);
        return 2;
    }
    comparison = compare_records(sides[0], sides[1], options->gap);
    compare_print(options->format, comparison);
    is_bad = compare_fails(comparison, options->fail_on);
    json_decref(comparison);
    json_decref(sides[0]);
    json_decref(sides[1]);
    return is_bad ? 1 : 0;
}
