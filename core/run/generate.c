/*
 * Generators as a job file names them: parsing, and the checks that need a dtype.
 */
#include "run/generate.h"

#include "gpurun/key.h"
#include "job/value.h"
#include "run/generate_draw.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

__extension__ typedef __int128 i128;

enum { WORD_MAX = 128 };

const struct generator_help generator_helps[] = {
    [GENERATOR_UNIFORM] =
        {"uniform", "min max",
         "equally likely values: integers from min to max (the dtype's whole range), "
         "floats from min up to below max (0 to 1)"},
    [GENERATOR_NORMAL] =
        {"normal", "mean sd",
         "sum of 12 uniform values: a bell curve that ends 6 sd from its mean (floats: 0 "
         "and 1; integers: the middle and a twelfth of the range, saturated)"},
    [GENERATOR_ASCENDING] = {"ascending", "start step",
                             "start, start + step, ... (0 and 1); integers wrap"},
    [GENERATOR_DESCENDING] = {"descending", "start step",
                              "start, start - step, ... (the element count and 1); integers wrap"},
    [GENERATOR_CONSTANT] = {"constant", "value", "the same value everywhere (0)"},
    [GENERATOR_FEW_DISTINCT] =
        {"few-distinct", "count",
         "count different values (16) spread over the range, equally likely"},
    [GENERATOR_ZIPF] =
        {"zipf", "count",
         "1 to count (1000, at most 1000000), value v with probability in proportion to 1/v"},
    [GENERATOR_SPECIAL] =
        {"special", "",
         "half uniform; half, for floats, nan -nan inf -inf 0 -0, plus and minus the least "
         "denormal, the largest value and 1; for integers the dtype's ends, 0, and their "
         "neighbours"},
    [GENERATOR_QUADRATIC] = {"quadratic", "square",
                             "in row i and column j of the last two dimensions i*i + j, with "
                             "square=column i + j*j; integers wrap"},
    {NULL, NULL, NULL},
};

static const char *const parameters[][3] = {
    [GENERATOR_UNIFORM] = {"min", "max", NULL},
    [GENERATOR_NORMAL] = {"mean", "sd", NULL},
    [GENERATOR_ASCENDING] = {"start", "step", NULL},
    [GENERATOR_DESCENDING] = {"start", "step", NULL},
    [GENERATOR_CONSTANT] = {"value", NULL, NULL},
    [GENERATOR_FEW_DISTINCT] = {"count", NULL, NULL},
    [GENERATOR_ZIPF] = {"count", NULL, NULL},
    [GENERATOR_SPECIAL] = {NULL, NULL, NULL},
    [GENERATOR_QUADRATIC] = {"square", NULL, NULL},
};

/* --- parsing ----------------------------------------------------------------------------------- */

/* Takes the next word; an empty one ends the text. */
static enum gpurun_status next_word(const char **text, char word[WORD_MAX], struct why *why)
{
    static const char blanks[] = " \t\r\n\v\f";
    const char *start = *text + strspn(*text, blanks);
    const size_t length = strcspn(start, blanks);

    if (length >= WORD_MAX)
        return why_fail(why, GPURUN_INVALID, "'%.40s...' is too long for a generator", start);
    memcpy(word, start, length);
    word[length] = '\0';
    *text = start + length;
    return GPURUN_OK;
}

static enum gpurun_status parse_kind(const char *name, struct generator *out, struct why *why)
{
    const char *names[GENERATOR_COUNT + 1];
    const char *nearest;

    for (size_t i = 0; i < GPURUN_COUNT(generator_helps); i++) {
        names[i] = generator_helps[i].name;
        if (names[i] != NULL && strcmp(name, names[i]) == 0) {
            out->kind = (enum generator_kind)i;
            return GPURUN_OK;
        }
    }
    nearest = value_nearest(name, names);
    if (nearest != NULL)
        return why_fail(why, GPURUN_INVALID, "there is no generator '%s' (did you mean %s?)", name,
                        nearest);
    return why_fail(
        why, GPURUN_INVALID,
        "there is no generator '%s' (known are uniform normal ascending descending constant "
        "few-distinct zipf special quadratic, and file:PATH)",
        name);
}

/* The index of a parameter, or -1 with the reason. */
static int find_parameter(const char *key, enum generator_kind kind, struct why *why)
{
    const char *const *known = parameters[kind];
    const char *name = generator_helps[kind].name, *nearest = value_nearest(key, known);

    for (int i = 0; known[i] != NULL; i++)
        if (strcmp(key, known[i]) == 0)
            return i;
    if (nearest != NULL)
        why_fail(why, GPURUN_INVALID, "%s has no parameter '%s' (did you mean %s?)", name, key,
                 nearest);
    else if (known[0] == NULL)
        why_fail(why, GPURUN_INVALID, "%s takes no parameters, so not '%s'", name, key);
    else
        why_fail(why, GPURUN_INVALID, "%s has no parameter '%s' (it takes %s=%s%s%s)", name, key,
                 known[0], known[1] == NULL ? "" : " and ", known[1] == NULL ? "" : known[1],
                 known[1] == NULL ? "" : "=");
    return -1;
}

static enum gpurun_status parse_square(const char *text, struct generator *out, struct why *why)
{
    const bool column = strcmp(text, "column") == 0;

    if (!column && strcmp(text, "row") != 0)
        return why_fail(why, GPURUN_INVALID, "square: '%s' is not one of row or column", text);
    out->whole[0] = column;
    return GPURUN_OK;
}

/* One key=value. */
static enum gpurun_status parse_parameter(char *word, struct generator *out, struct why *why)
{
    char *equals = strchr(word, '=');
    struct why inner;
    int i;

    if (equals != NULL)
        *equals = '\0';
    i = find_parameter(word, out->kind, why);
    if (i < 0)
        return GPURUN_INVALID;
    if (equals == NULL)
        return why_fail(why, GPURUN_INVALID, "%s has no value (write %s=, without blanks)", word,
                        word);
    if ((out->given >> i & 1) != 0)
        return why_fail(why, GPURUN_INVALID, "%s is given twice", word);
    out->given |= 1u << i;
    if (out->kind == GENERATOR_QUADRATIC)
        return parse_square(equals + 1, out, why);
    out->is_whole[i] = value_parse_int(equals + 1, &out->whole[i], &inner) == GPURUN_OK;
    if (value_parse_real(equals + 1, &out->real[i], &inner) != GPURUN_OK)
        return why_fail(why, GPURUN_INVALID, "%s: %s", word, inner.text);
    return GPURUN_OK;
}

enum gpurun_status generator_parse(const char *text, struct generator *out, struct why *why)
{
    struct generator g = {.given = 0};
    char word[WORD_MAX];

    GPURUN_TRY(next_word(&text, word, why));
    if (word[0] == '\0')
        return why_fail(why, GPURUN_INVALID, "no generator is named (write uniform, or file:PATH)");
    GPURUN_TRY(parse_kind(word, &g, why));
    for (;;) {
        GPURUN_TRY(next_word(&text, word, why));
        if (word[0] == '\0')
            break;
        GPURUN_TRY(parse_parameter(word, &g, why));
    }
    *out = g;
    return GPURUN_OK;
}

/* --- checking ---------------------------------------------------------------------------------- */

/* What is asked of a parameter. */
enum {
    FINITE = 1,
    WHOLE = 2,    /* for integer dtypes */
    IN_RANGE = 4, /* a value that the dtype can hold */
    NOT_NEGATIVE = 8,
    COUNT = 16, /* 1 to as many different values as there can be */
};

static const unsigned char rules[][2] = {
    [GENERATOR_UNIFORM] = {FINITE | WHOLE | IN_RANGE, FINITE | WHOLE | IN_RANGE},
    [GENERATOR_NORMAL] = {FINITE | IN_RANGE, FINITE | NOT_NEGATIVE},
    [GENERATOR_ASCENDING] = {FINITE | WHOLE | IN_RANGE, FINITE | WHOLE | IN_RANGE | NOT_NEGATIVE},
    [GENERATOR_DESCENDING] = {FINITE | WHOLE | IN_RANGE, FINITE | WHOLE | IN_RANGE | NOT_NEGATIVE},
    [GENERATOR_CONSTANT] = {WHOLE | IN_RANGE, 0},
    [GENERATOR_FEW_DISTINCT] = {COUNT, 0},
    [GENERATOR_ZIPF] = {COUNT, 0},
    [GENERATOR_SPECIAL] = {0, 0},
    [GENERATOR_QUADRATIC] = {0, 0},
};

struct limits {
    enum gpurun_dtype dtype;
    bool is_real;
    i128 low, high; /* integers */
    double most;    /* reals: from -most to most */
    char range[64]; /* the same in words */
};

static void find_limits(enum gpurun_dtype dtype, struct limits *l)
{
    const int bits = 8 * (int)gpurun_dtype_bytes(dtype);
    const bool is_signed = dtype == GPURUN_INT8 || dtype == GPURUN_INT16 || dtype == GPURUN_INT32 ||
                           dtype == GPURUN_INT64;

    l->dtype = dtype;
    l->is_real = gpurun_dtype_is_real(dtype);
    l->most = l->is_real ? generate_real_formats[dtype].most : 0;
    l->low = is_signed ? -((i128)1 << (bits - 1)) : 0;
    l->high = ((i128)1 << (is_signed ? bits - 1 : bits)) - 1;
    if (l->is_real)
        snprintf(l->range, sizeof l->range, "%.8g to %.8g", -l->most, l->most);
    else
        snprintf(l->range, sizeof l->range, "%lld to %llu", (long long)l->low,
                 (unsigned long long)l->high);
}

static bool is_given(const struct generator *g, int i)
{
    return (g->given >> i & 1) != 0;
}

/* The parameter as a whole number, if it is one of up to 64 bits, also where it was written as a
 * real. */
static bool as_whole(const struct generator *g, int i, i128 *out)
{
    *out = g->whole[i];
    if (g->is_whole[i])
        return true;
    if (!(fabs(g->real[i]) < 0x1p64) || rint(g->real[i]) != g->real[i])
        return false;
    *out = (i128)g->real[i];
    return true;
}

static bool is_in_range(const struct generator *g, int i, const struct limits *l)
{
    i128 whole;

    if (l->is_real)
        return !(isfinite(g->real[i]) && fabs(g->real[i]) > l->most);
    if (as_whole(g, i, &whole))
        return whole >= l->low && whole <= l->high;
    return g->real[i] > (double)l->low && g->real[i] < (double)l->high;
}

static enum gpurun_status complain(const struct generator *g, int i, const char *reason,
                                   const char *remedy, struct why *why)
{
    char value[32];

    if (g->is_whole[i])
        snprintf(value, sizeof value, "%lld", (long long)g->whole[i]);
    else
        snprintf(value, sizeof value, "%.10g", g->real[i]);
    return why_fail(why, GPURUN_INVALID, "%s: %s=%s %s (write %s)", generator_helps[g->kind].name,
                    parameters[g->kind][i], value, reason, remedy);
}

/* The most different values: as the dtype can tell apart, and for zipf as its table has rows. */
static enum gpurun_status check_count(const struct generator *g, const struct limits *l,
                                      struct why *why)
{
    i128 count, most = l->is_real ? generate_real_formats[l->dtype].whole : l->high - l->low + 1;
    char remedy[64];

    if (g->kind == GENERATOR_ZIPF && !l->is_real)
        most = l->high;
    if (g->kind == GENERATOR_ZIPF && most > GENERATOR_ZIPF_MAX)
        most = GENERATOR_ZIPF_MAX;
    if (most > INT64_MAX)
        most = INT64_MAX;
    if (as_whole(g, 0, &count) && count >= 1 && count <= most)
        return GPURUN_OK;
    snprintf(remedy, sizeof remedy, "a whole number from 1 to %lld for %s", (long long)most,
             gpurun_dtype_name(l->dtype));
    return complain(g, 0, "is no count of values", remedy, why);
}

static enum gpurun_status check_parameter(const struct generator *g, int i, const struct limits *l,
                                          struct why *why)
{
    const unsigned rule = rules[g->kind][i];
    char remedy[128];
    i128 whole;

    snprintf(remedy, sizeof remedy, "%s from %s for %s",
             (rule & WHOLE) && !l->is_real ? "a whole number" : "a number", l->range,
             gpurun_dtype_name(l->dtype));
    if (!is_given(g, i))
        return GPURUN_OK;
    if (rule & COUNT)
        return check_count(g, l, why);
    if ((rule & FINITE) && !isfinite(g->real[i]))
        return complain(g, i, "is not finite", remedy, why);
    if ((rule & NOT_NEGATIVE) && g->real[i] < 0)
        return complain(g, i, "is below 0", "0 or more", why);
    if ((rule & IN_RANGE) && !is_in_range(g, i, l))
        return complain(g, i, "is out of range", remedy, why);
    if ((rule & WHOLE) && !l->is_real && !as_whole(g, i, &whole))
        return complain(g, i, "is not whole", remedy, why);
    return GPURUN_OK;
}

/* With the default of the one that is not given, where that can matter: a real max below 0, a
 * min above 1. */
static enum gpurun_status check_order(const struct generator *g, const struct limits *l,
                                      struct why *why)
{
    const double min = is_given(g, 0) ? g->real[0] : 0, max = is_given(g, 1) ? g->real[1] : 1;
    i128 low, high;

    if (l->is_real && min > max)
        return why_fail(why, GPURUN_INVALID, "uniform: min=%.10g is above max=%.10g%s", min, max,
                        g->given == 3 ? " (write the lower one as min)" : " (write both)");
    if (!l->is_real && g->given == 3 && as_whole(g, 0, &low) && as_whole(g, 1, &high) && low > high)
        return complain(g, 0, "is above max", "the lower one as min", why);
    return GPURUN_OK;
}

enum gpurun_status generator_check(const struct generator *g, enum gpurun_dtype dtype,
                                   struct why *why)
{
    struct limits limits;
    double farthest;

    find_limits(dtype, &limits);
    for (int i = 0; i < 2; i++)
        GPURUN_TRY(check_parameter(g, i, &limits, why));
    if (g->kind == GENERATOR_UNIFORM)
        return check_order(g, &limits, why);
    farthest = fabs(is_given(g, 0) ? g->real[0] : 0) + 6 * (is_given(g, 1) ? g->real[1] : 1);
    if (g->kind == GENERATOR_NORMAL && limits.is_real && farthest > limits.most)
        return why_fail(why, GPURUN_INVALID,
                        "normal: mean and 6 sd reach %g, which %s cannot hold (it ends at %.8g)",
                        farthest, gpurun_dtype_name(dtype), limits.most);
    return GPURUN_OK;
}
