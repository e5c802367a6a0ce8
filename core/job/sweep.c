#include "job/sweep.h"

#include "job/memory.h"
#include "job/value.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUOTE        "'%.80s'"
#define RANGE_SYNTAX "FROM..TO*FACTOR or FROM..TO+STEP"

enum {
    DECIMALS_MAX = 15,
    EXPONENT_MAX = 1000,
    BOUND_MAX = 64, /* bytes of one number of a range */
};

__extension__ typedef __int128 i128;

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit no_units[] = {{"", 1}};
static const struct unit si_units[] = {
    {"T", 1000000000000}, {"G", 1000000000}, {"M", 1000000}, {"K", 1000}, {"", 1}};
static const struct unit binary_units[] = {{"Ti", INT64_C(1) << 40},
                                           {"Gi", INT64_C(1) << 30},
                                           {"Mi", INT64_C(1) << 20},
                                           {"Ki", INT64_C(1) << 10},
                                           {"", 1}};

/* A range in whole numbers: of 10^-decimals each. */
struct range {
    char from_text[BOUND_MAX], to_text[BOUND_MAX], by_text[BOUND_MAX];
    int64_t from, to, by;
    bool multiplies;
    int decimals;
    const struct unit *units; /* that its values are written in */
};

static void add_value(struct sweep *sweep, char *value)
{
    sweep->values = grow(sweep->values, sweep->count, sizeof *sweep->values);
    sweep->values[sweep->count++] = value;
}

/* --- ranges --- */

static bool copy_bound(char *to, const char *from, const char *end)
{
    while (from < end && isspace((unsigned char)*from))
        from++;
    while (end > from && isspace((unsigned char)end[-1]))
        end--;
    if (from == end || end - from >= BOUND_MAX)
        return false;
    snprintf(to, BOUND_MAX, "%.*s", (int)(end - from), from);
    return true;
}

/* A range is what has a number before "..": not a path, not a word. */
static bool is_range(const char *text)
{
    const char *dots = strstr(text, "..");
    char from[BOUND_MAX];
    double value;
    struct why why;

    return dots != NULL && copy_bound(from, text, dots) &&
           value_parse_real(from, &value, &why) == GPURUN_OK;
}

/* Cuts FROM..TO*FACTOR or FROM..TO+STEP into its three numbers. */
static enum gpurun_status cut_range(const char *text, struct range *r, struct why *why)
{
    const char *dots = strstr(text, ".."), *sign = strchr(dots, '*');

    r->multiplies = sign != NULL;
    if (sign == NULL) /* the last one: the one before may be an exponent's */
        sign = strrchr(dots, '+');
    if (sign == NULL || !copy_bound(r->by_text, sign + 1, text + strlen(text)))
        return why_fail(why, GPURUN_INVALID,
                        QUOTE " is a range without a step: write " RANGE_SYNTAX, text);
    if (!copy_bound(r->from_text, text, dots) || !copy_bound(r->to_text, dots + 2, sign))
        return why_fail(why, GPURUN_INVALID, QUOTE " is no range: write " RANGE_SYNTAX, text);
    return GPURUN_OK;
}

/* The exponent written from `text` on, 0 where there is none; where it ends through *end. One beyond all
 * numbers is cut. */
static int exponent_at(const char *text, const char **end)
{
    char *after = (char *)text;
    long exponent = 0;

    if (*text == 'e' || *text == 'E')
        exponent = strtol(text + 1, &after, 10);
    *end = after;
    return exponent < -EXPONENT_MAX  ? -EXPONENT_MAX
           : exponent > EXPONENT_MAX ? EXPONENT_MAX
                                     : (int)exponent;
}

/* Digits that a number has behind its point: 3 in 1e-3 and in 0.125. */
static int decimals_of(const char *text)
{
    const char *point = strchr(text, '.'), *end;
    int decimals = -exponent_at(text + strcspn(text, "eE"), &end);

    for (const char *c = point ? point + 1 : ""; isdigit((unsigned char)*c) || *c == '_'; c++)
        decimals += *c != '_';
    return decimals < 0 ? 0 : decimals > DECIMALS_MAX ? DECIMALS_MAX : decimals;
}

/* `text` times 10^decimals, exactly: its exponent is raised by as much. */
static enum gpurun_status parse_scaled(const char *text, int decimals, int64_t *out,
                                       struct why *why)
{
    const size_t digits = strcspn(text, "eEkKMGT");
    const char *unit;
    const int exponent = exponent_at(text + digits, &unit);
    char raised[2 * BOUND_MAX];
    double real;
    struct why ignored;

    GPURUN_TRY(value_parse_real(text, &real, why));
    if (decimals == 0)
        return value_parse_int(text, out, why);
    snprintf(raised, sizeof raised, "%.*se%d%s", (int)digits, text, exponent + decimals, unit);
    if (value_parse_int(raised, out, &ignored) != GPURUN_OK)
        return why_fail(why, GPURUN_INVALID, QUOTE " has too many digits for a range", text);
    return GPURUN_OK;
}

static const struct unit *units_of(const struct range *r)
{
    const char *from = r->from_text, *to = r->to_text;
    const char last = isalpha((unsigned char)from[strlen(from) - 1]) ? from[strlen(from) - 1]
                                                                     : to[strlen(to) - 1];

    if (last == 'i')
        return binary_units;
    return memchr("kKMGT", last, 5) != NULL ? si_units : no_units;
}

/* What keeps a range from ending. */
static enum gpurun_status check_range(const char *text, const struct range *r, struct why *why)
{
    if (r->multiplies && r->by < 2)
        return why_fail(why, GPURUN_INVALID,
                        QUOTE " never ends: its factor is to be a whole number above 1", text);
    if (!r->multiplies && r->by <= 0)
        return why_fail(why, GPURUN_INVALID, QUOTE " never ends: its step is to be above 0", text);
    if (r->multiplies && r->from <= 0)
        return why_fail(why, GPURUN_INVALID,
                        QUOTE " never ends: with a factor it is to start above 0", text);
    if (r->from > r->to)
        return why_fail(why, GPURUN_INVALID, QUOTE " never ends: %s is above %s", text,
                        r->from_text, r->to_text);
    return GPURUN_OK;
}

static enum gpurun_status parse_range(const char *text, struct range *r, struct why *why)
{
    const char *const bounds[] = {r->from_text, r->to_text, r->by_text};
    struct why ignored;
    int64_t whole;

    *r = (struct range){.decimals = 0};
    GPURUN_TRY(cut_range(text, r, why));
    for (int i = 0; i < (r->multiplies ? 2 : 3); i++)
        if (value_parse_int(bounds[i], &whole, &ignored) != GPURUN_OK &&
            decimals_of(bounds[i]) > r->decimals)
            r->decimals = decimals_of(bounds[i]);
    GPURUN_TRY(parse_scaled(r->from_text, r->decimals, &r->from, why));
    GPURUN_TRY(parse_scaled(r->to_text, r->decimals, &r->to, why));
    GPURUN_TRY(parse_scaled(r->by_text, r->multiplies ? 0 : r->decimals, &r->by, why));
    r->units = units_of(r);
    return check_range(text, r, why);
}

/* The number in the largest unit that divides it. */
static char *format_whole(int64_t value, const struct unit *units)
{
    while (value % units->factor != 0 || (value == 0 && units->factor > 1))
        units++;
    return format_text("%" PRId64 "%s", value / units->factor, units->name);
}

/* value * 10^-decimals, without zeros at the end. */
static char *format_decimal(int64_t value, int decimals)
{
    const uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    uint64_t scale = 1;
    char *text;
    size_t length;

    for (int i = 0; i < decimals; i++)
        scale *= 10;
    text = format_text("%s%" PRIu64 ".%0*" PRIu64, value < 0 ? "-" : "", magnitude / scale,
                       decimals, magnitude % scale);
    for (length = strlen(text); text[length - 1] == '0';)
        text[--length] = '\0';
    if (text[length - 1] == '.')
        text[length - 1] = '\0';
    return text;
}

/* How many values a range has; far more than SWEEP_MAX count as SWEEP_MAX + 1. */
static size_t count_values(const struct range *r)
{
    const i128 span = (i128)r->to - r->from;
    size_t count = 0;

    if (!r->multiplies)
        return span / r->by < SWEEP_MAX ? (size_t)(span / r->by) + 1 : SWEEP_MAX + 1;
    for (i128 value = r->from; value <= r->to; value *= r->by)
        count++;
    return count;
}

static enum gpurun_status add_range(const char *text, struct sweep *out, struct why *why)
{
    struct range r;
    i128 value;

    GPURUN_TRY(parse_range(text, &r, why));
    if (out->count + count_values(&r) > SWEEP_MAX)
        return why_fail(why, GPURUN_INVALID, QUOTE " makes more than %d values", text,
                        (int)SWEEP_MAX);
    for (value = r.from; value <= r.to; value = r.multiplies ? value * r.by : value + r.by)
        add_value(out, r.decimals > 0 ? format_decimal((int64_t)value, r.decimals)
                                      : format_whole((int64_t)value, r.units));
    return GPURUN_OK;
}

/* --- lists --- */

static int compare_texts(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(*x, *y);
}

/* Two jobs of one name could not be told apart. */
static enum gpurun_status check_different(const struct sweep *sweep, struct why *why)
{
    char **sorted = allocate(sweep->count, sizeof *sorted);
    enum gpurun_status status = GPURUN_OK;

    memcpy(sorted, sweep->values, sweep->count * sizeof *sorted);
    qsort(sorted, sweep->count, sizeof *sorted, compare_texts);
    for (size_t i = 1; i < sweep->count && status == GPURUN_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status =
                why_fail(why, GPURUN_INVALID, QUOTE " is listed twice: write it once", sorted[i]);
    free(sorted);
    return status;
}

/* 000, as in 1,000. */
static bool is_cut_number(const char *text)
{
    return text[0] == '0' && text[1] != '\0' && strspn(text, "0123456789") == strlen(text);
}

static enum gpurun_status add_element(const char *text, bool ranges, struct sweep *out,
                                      struct why *why)
{
    if (*text == '\0')
        return why_fail(why, GPURUN_INVALID, "an element of the list is empty: write a, b, c");
    if (is_cut_number(text))
        return why_fail(why, GPURUN_INVALID,
                        QUOTE " begins with 0: commas part values; write 1_000 or 1K for a number",
                        text);
    if (ranges && is_range(text))
        return add_range(text, out, why);
    if (out->count == SWEEP_MAX)
        return why_fail(why, GPURUN_INVALID, "lists more than %d values", (int)SWEEP_MAX);
    add_value(out, copy_text(text));
    return GPURUN_OK;
}

bool sweep_is_one(const char *text, bool ranges)
{
    return strchr(text, ',') != NULL || (ranges && is_range(text));
}

enum gpurun_status sweep_parse(const char *text, bool ranges, struct sweep *out, struct why *why)
{
    enum gpurun_status status = GPURUN_OK;

    *out = (struct sweep){NULL, 0};
    while (text != NULL && status == GPURUN_OK) {
        const size_t length = strcspn(text, ",");
        char *element;
        const char *end = text + length, *next = *end == ',' ? end + 1 : NULL;

        while (text < end && isspace((unsigned char)*text))
            text++;
        while (end > text && isspace((unsigned char)end[-1]))
            end--;
        element = copy_text_n(text, (size_t)(end - text));
        status = add_element(element, ranges, out, why);
        free(element);
        text = next;
    }
    return status == GPURUN_OK ? check_different(out, why) : status;
}

void sweep_free(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++)
        free(sweep->values[i]);
    free(sweep->values);
    *sweep = (struct sweep){NULL, 0};
}
