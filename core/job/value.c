#include "job/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

/* Where a message quotes the user's text: a long one must not push the reason out of the
 * message. */
#define QUOTE "'%.80s'"

#define INT_EXAMPLES  "write 20, 1e8, 100M or 4Ki"
#define REAL_EXAMPLES "write 0.25, 1e-3, 100M, inf or nan"
#define TIME_EXAMPLES "write 250ms, 10s, 5m, 1.5h or 2d"

enum {
    DIGITS_MAX = 320,      /* the largest double written out has 309 */
    DIGITS_EXACT_MAX = 38, /* what 128 bits always hold */
    EXPONENT_MAX = 100000, /* far outside of every type; larger ones are cut to it */
    NAME_MAX_NEAREST = 64,
};

/* A number as written, before anything is rounded: digits * 10^exp10 * 2^exp2, or hex digits. */
struct number {
    bool negative, hex;
    char digits[DIGITS_MAX + 1]; /* no leading zeros: empty is 0 */
    int count;
    bool too_long;
    int64_t exp10;
    int exp2;
};

struct unit {
    const char *name;
    int exp10, exp2;
    double seconds; /* durations only */
};

static const struct unit si_units[] = {
    {"", 0, 0, 0},    {"K", 3, 0, 0},   {"k", 3, 0, 0},   {"M", 6, 0, 0},
    {"G", 9, 0, 0},   {"T", 12, 0, 0},  {"Ki", 0, 10, 0}, {"ki", 0, 10, 0},
    {"Mi", 0, 20, 0}, {"Gi", 0, 30, 0}, {"Ti", 0, 40, 0},
};

static const struct unit time_units[] = {
    {"", 0, 0, 1},   {"us", -6, 0, 1},  {"ms", -3, 0, 1},   {"s", 0, 0, 1},
    {"m", 0, 0, 60}, {"h", 0, 0, 3600}, {"d", 0, 0, 86400},
};

/* Not those of <ctype.h> and <strings.h>, which follow the locale. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_word(const char *a, const char *b)
{
    while (*a != '\0' && to_lower(*a) == to_lower(*b)) {
        a++;
        b++;
    }
    return to_lower(*a) == to_lower(*b);
}

/* The value of a digit in base 10 or 16, or -1. */
static int digit_value(char c, bool hex)
{
    if (is_digit(c))
        return c - '0';
    c = to_lower(c);
    return hex && c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void add_digit(struct number *n, char digit)
{
    if (n->count == 0 && digit == '0')
        return;
    if (n->count == DIGITS_MAX)
        n->too_long = true;
    else
        n->digits[n->count++] = digit;
}

/* Takes digits with single '_' between them. Returns where they end, or NULL when a '_' is
 * misplaced; *seen counts the digits. */
static const char *scan_digits(const char *at, struct number *n, int64_t *seen)
{
    for (;; at++) {
        if (digit_value(*at, n->hex) >= 0) {
            add_digit(n, *at);
            ++*seen;
        } else if (*at != '_') {
            return at;
        } else if (*seen == 0 || digit_value(at[1], n->hex) < 0) {
            return NULL;
        }
    }
}

/* Takes e8, e-3 or nothing. An 'e' without digits is left for the caller to refuse as a unit. */
static const char *scan_exponent(const char *at, struct number *n)
{
    const char *p = at + 1;
    const bool negative = *at != '\0' && *p == '-';
    int64_t exponent = 0;

    if (to_lower(*at) != 'e')
        return at;
    if (*p == '-' || *p == '+')
        p++;
    if (!is_digit(*p))
        return at;
    for (; is_digit(*p); p++)
        exponent = exponent < EXPONENT_MAX ? exponent * 10 + (*p - '0') : exponent;
    n->exp10 += negative ? -exponent : exponent;
    return p;
}

/* Takes the longest number at the start of `text`. Returns where its unit starts, or NULL. */
static const char *scan_number(const char *text, struct number *n)
{
    int64_t before = 0, after = 0;
    const char *at = text;

    *n = (struct number){.negative = *text == '-'};
    if (*at == '-' || *at == '+')
        at++;
    if (at[0] == '0' && to_lower(at[1]) == 'x') {
        n->hex = true;
        at = scan_digits(at + 2, n, &before);
        return before > 0 ? at : NULL;
    }
    at = scan_digits(at, n, &before);
    if (at != NULL && *at == '.')
        at = scan_digits(at + 1, n, &after);
    if (at == NULL || before + after == 0)
        return NULL;
    n->exp10 = -after;
    return scan_exponent(at, n);
}

/* Takes the unit, which must end the text, into the number's exponents. Hex numbers take none. */
static const struct unit *scan_unit(const char *text, struct number *n, const struct unit *units,
                                    uint32_t count)
{
    for (uint32_t i = 0; i < (n->hex ? 1 : count); i++) {
        if (strcmp(text, units[i].name) == 0) {
            n->exp10 += units[i].exp10;
            n->exp2 = units[i].exp2;
            return &units[i];
        }
    }
    return NULL;
}

/* Scans the whole text. NULL when it is not a number with one of the units. */
static const struct unit *scan(const char *text, struct number *n, const struct unit *units,
                               uint32_t count)
{
    const char *rest = scan_number(text, n);

    return rest == NULL ? NULL : scan_unit(rest, n, units, count);
}

enum exact { EXACT, EXACT_TOO_LARGE, EXACT_NOT_WHOLE, EXACT_TOO_LONG };

/* Folds the digits and the exponents into one whole magnitude below 2^64, or says why that
 * cannot be. */
static enum exact to_whole(struct number n, uint64_t *out)
{
    const unsigned base = n.hex ? 16 : 10;
    u128 value = 0;

    while (!n.hex && n.count > 0 && n.digits[n.count - 1] == '0') {
        n.count--;
        n.exp10++;
    }
    if (n.too_long || n.count > DIGITS_EXACT_MAX)
        return n.exp10 >= 0 ? EXACT_TOO_LARGE : EXACT_TOO_LONG;
    for (int i = 0; i < n.count; i++) {
        value = value * base + (unsigned)digit_value(n.digits[i], n.hex);
        if (n.hex && value > UINT64_MAX)
            return EXACT_TOO_LARGE;
    }
    /* The last digit is not 0, so a value that 5 divides is odd: a power of 10 below the point
     * can only be cancelled by a factor 5 of the digits and a factor 2 of the unit. */
    for (; value > 0 && n.exp10 < 0; n.exp10++, n.exp2--, value /= 5)
        if (value % 5 != 0 || n.exp2 == 0)
            return EXACT_NOT_WHOLE;
    for (; value > 0 && n.exp10 > 0 && value <= UINT64_MAX; n.exp10--)
        value *= 10;
    if (value > (u128)UINT64_MAX >> n.exp2)
        return EXACT_TOO_LARGE;
    *out = (uint64_t)(value << n.exp2);
    return EXACT;
}

enum gpurun_status value_parse_int(const char *text, int64_t *out, struct why *why)
{
    struct number n;
    uint64_t magnitude = 0;
    enum exact exact = EXACT_NOT_WHOLE;

    if (*text == '\0')
        return why_fail(why, GPURUN_INVALID, "the value is empty (" INT_EXAMPLES ")");
    if (scan(text, &n, si_units, GPURUN_COUNT(si_units)) != NULL)
        exact = to_whole(n, &magnitude);
    if (exact == EXACT_NOT_WHOLE)
        return why_fail(why, GPURUN_INVALID, QUOTE " is not a whole number (" INT_EXAMPLES ")",
                        text);
    if (exact == EXACT_TOO_LONG)
        return why_fail(why, GPURUN_INVALID, QUOTE " has more than %d digits (" INT_EXAMPLES ")",
                        text, DIGITS_EXACT_MAX);
    if (exact == EXACT_TOO_LARGE || magnitude > (uint64_t)INT64_MAX + n.negative)
        return why_fail(why, GPURUN_INVALID, QUOTE " does not fit 64 bits (at %s)", text,
                        n.negative ? "least -9223372036854775808" : "most 9223372036854775807");
    if (n.negative && magnitude > INT64_MAX)
        *out = INT64_MIN;
    else
        *out = n.negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return GPURUN_OK;
}

/* The nearest double of a decimal. strtod is given no decimal point, so the locale cannot
 * matter. */
static double to_double(const struct number *n)
{
    const char *digits = n->count > 0 ? n->digits : "0";
    char text[DIGITS_MAX + 32];
    double value;

    snprintf(text, sizeof text, "%se%lld", digits, (long long)n->exp10);
    value = ldexp(strtod(text, NULL), n->exp2);
    return n->negative ? -value : value;
}

/* inf and nan, with a sign if one is written. */
static bool parse_not_finite(const char *text, double *out)
{
    const bool negative = *text == '-';
    const char *word = negative || *text == '+' ? text + 1 : text;

    if (same_word(word, "inf"))
        *out = negative ? -INFINITY : INFINITY;
    else if (same_word(word, "nan"))
        *out = copysign(NAN, negative ? -1.0 : 1.0);
    else
        return false;
    return true;
}

enum gpurun_status value_parse_real(const char *text, double *out, struct why *why)
{
    struct number n;
    int64_t whole;
    double value;

    if (*text == '\0')
        return why_fail(why, GPURUN_INVALID, "the value is empty (" REAL_EXAMPLES ")");
    if (parse_not_finite(text, out))
        return GPURUN_OK;
    if (scan(text, &n, si_units, GPURUN_COUNT(si_units)) == NULL)
        return why_fail(why, GPURUN_INVALID, QUOTE " is not a number (" REAL_EXAMPLES ")", text);
    if (n.hex) {
        GPURUN_TRY(value_parse_int(text, &whole, why));
        *out = (double)whole;
        return GPURUN_OK;
    }
    if (n.too_long)
        return why_fail(why, GPURUN_INVALID, QUOTE " has more than %d digits (" REAL_EXAMPLES ")",
                        text, DIGITS_MAX);
    value = to_double(&n);
    if (isinf(value))
        return why_fail(
            why, GPURUN_INVALID,
            QUOTE " is too large for a double (at most 1.797e308; write inf for infinity)", text);
    if (value == 0 && n.count > 0)
        return why_fail(
            why, GPURUN_INVALID,
            QUOTE " is too small for a double (at least 4.941e-324; write 0 for nothing)", text);
    *out = value;
    return GPURUN_OK;
}

enum gpurun_status value_parse_bool(const char *text, bool *out, struct why *why)
{
    static const char *const words[2][4] = {{"no", "false", "off", "0"},
                                            {"yes", "true", "on", "1"}};

    for (int value = 0; value < 2; value++) {
        for (int i = 0; i < 4; i++) {
            if (same_word(text, words[value][i])) {
                *out = value != 0;
                return GPURUN_OK;
            }
        }
    }
    if (*text == '\0')
        return why_fail(why, GPURUN_INVALID, "the value is empty (write yes or no)");
    return why_fail(why, GPURUN_INVALID,
                    QUOTE " is neither yes nor no (write yes, no, true, false, on or off)", text);
}

enum gpurun_status value_parse_duration(const char *text, double *out, struct why *why)
{
    struct number n;
    const struct unit *unit;
    double seconds;

    if (*text == '\0')
        return why_fail(why, GPURUN_INVALID, "the value is empty (" TIME_EXAMPLES ")");
    unit = scan(text, &n, time_units, GPURUN_COUNT(time_units));
    if (unit == NULL || n.hex || n.too_long)
        return why_fail(why, GPURUN_INVALID, QUOTE " is not a duration (" TIME_EXAMPLES ")", text);
    seconds = to_double(&n) * unit->seconds;
    if (seconds < 0)
        return why_fail(why, GPURUN_INVALID, QUOTE " is below zero (" TIME_EXAMPLES ")", text);
    if (isinf(seconds))
        return why_fail(why, GPURUN_INVALID, QUOTE " is too long (" TIME_EXAMPLES ")", text);
    *out = fabs(seconds);
    return GPURUN_OK;
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Edits that turn one word into the other: insert, delete, replace, swap of two neighbours.
 * Three rows of the usual table are enough. */
static int edit_distance(const char *a, int a_len, const char *b, int b_len)
{
    int rows[3][NAME_MAX_NEAREST + 1];

    for (int j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (int i = 1; i <= a_len; i++) {
        int *row = rows[i % 3];
        const int *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

        row[0] = i;
        for (int j = 1; j <= b_len; j++) {
            const char x = to_lower(a[i - 1]), y = to_lower(b[j - 1]);

            row[j] = min_int(last[j - 1] + (x != y), 1 + min_int(last[j], row[j - 1]));
            if (i > 1 && j > 1 && x == to_lower(b[j - 2]) && y == to_lower(a[i - 2]))
                row[j] = min_int(row[j], before[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

const char *value_nearest(const char *text, const char *const *names)
{
    const int text_len = (int)strnlen(text, NAME_MAX_NEAREST + 1);
    const char *nearest = NULL;
    int least = NAME_MAX_NEAREST;

    for (; *names != NULL && text_len <= NAME_MAX_NEAREST; names++) {
        const int len = (int)strnlen(*names, NAME_MAX_NEAREST + 1);
        const int longer = len > text_len ? len : text_len;
        int distance;

        if (len > NAME_MAX_NEAREST)
            continue;
        distance = edit_distance(text, text_len, *names, len);
        if (distance <= (longer + 1) / 3 && distance < least) {
            nearest = *names;
            least = distance;
        }
    }
    return nearest;
}
