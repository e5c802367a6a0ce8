#include "report/verdict.h"

#include "job/value.h"
#include "plan/job.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Small letters as on the command line; ends with NULL for value_nearest. */
static const char *const words[VERDICT_COUNT + 1] = {
    [VERDICT_FAILED] = "failed",   [VERDICT_SLOWER] = "slower",       [VERDICT_MISSING] = "missing",
    [VERDICT_CHANGED] = "changed", [VERDICT_UNCERTAIN] = "uncertain", [VERDICT_FAILING] = "failing",
    [VERDICT_FASTER] = "faster",   [VERDICT_MENDED] = "mended",       [VERDICT_ADDED] = "added",
    [VERDICT_SAME] = "same"};

enum verdict verdict_of(const struct interval *before, const struct interval *now, double gap)
{
    const double least = 1 + gap;

    if (before->samples < VERDICT_SAMPLES_MIN || now->samples < VERDICT_SAMPLES_MIN)
        return VERDICT_UNCERTAIN;
    if (now->low > before->high && now->low >= before->high * least)
        return VERDICT_SLOWER;
    if (now->high < before->low && now->high * least <= before->low)
        return VERDICT_FASTER;
    if (now->high <= before->low * least && now->low * least >= before->high)
        return VERDICT_SAME;
    return VERDICT_UNCERTAIN;
}

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[VERDICT_COUNT] = {
        [VERDICT_FAILED] = "FAILED",       [VERDICT_SLOWER] = "SLOWER",
        [VERDICT_MISSING] = "MISSING",     [VERDICT_CHANGED] = "CHANGED",
        [VERDICT_UNCERTAIN] = "UNCERTAIN", [VERDICT_FAILING] = "FAILING",
        [VERDICT_FASTER] = "FASTER",       [VERDICT_MENDED] = "MENDED",
        [VERDICT_ADDED] = "ADDED",         [VERDICT_SAME] = "SAME"};

    return names[verdict];
}

enum verdict verdict_from(const char *name)
{
    int i = 0;

    while (i < VERDICT_COUNT && strcasecmp(words[i], name) != 0)
        i++;
    return (enum verdict)i;
}

static enum gpurun_status unknown_word(const char *word, struct why *why)
{
    const char *nearest = value_nearest(word, words);
    char all[200] = "";

    for (int i = 0; i < VERDICT_COUNT; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), " %s", words[i]);
    return why_fail(why, GPURUN_INVALID, "'%.40s' is no verdict%s%s%s; there are%s", word,
                    nearest ? ", did you mean " : "", nearest ? nearest : "", nearest ? "?" : "",
                    all);
}

enum gpurun_status verdict_parse_list(const char *text, unsigned *bits, struct why *why)
{
    char word[80];

    *bits = 0;
    while (list_next(&text, word, sizeof word)) {
        int i = 0;

        while (i < VERDICT_COUNT && strcmp(words[i], word) != 0)
            i++;
        if (i == VERDICT_COUNT)
            return unknown_word(word, why);
        *bits |= 1u << i;
    }
    return GPURUN_OK;
}

enum gpurun_status verdict_parse_gap(const char *text, double *gap, struct why *why)
{
    const size_t length = strlen(text);
    char number[40];
    double percent;

    snprintf(number, sizeof number, "%.*s", (int)(length > 0 ? length - 1 : 0), text);
    if (length == 0 || length > sizeof number || text[length - 1] != '%' ||
        value_parse_real(number, &percent, why) != GPURUN_OK || !(percent >= 0 && percent <= 100))
        return why_fail(why, GPURUN_INVALID,
                        "'%.40s' is no percentage from 0%% to 100%%: write 1%%", text);
    *gap = percent / 100;
    return GPURUN_OK;
}
