/*
 * Weights are worked out as doubles, in which all whole numbers that can be used are exact, and become int32 or
 * float at the end.
 */
#include "conv_mask.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char names[] = "sharpen3, sharpen5; box, gaussian, sobel_x, sobel_y or laplacian with "
                            "an odd size up to 31, as in box5; rows of numbers, as in "
                            "1 2 1 / 2 4 2 / 1 2 1";

/* A mask in the making. */
struct draft {
    double weight[CONV_TAPS_MAX], row[CONV_SIZE_MAX], column[CONV_SIZE_MAX];
    int width, height;
    bool is_product; /* row and column are known */
    char *why;
    size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct draft *d, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(d->why, d->why_bytes, format, args);
    va_end(args);
    return false;
}

/* --- rows of numbers --------------------------------------------------------------------------------- */

/* The number at *text, up to a blank, a slash or the end. */
static bool read_number(struct draft *d, const char **text, bool is_real, double *value)
{
    char word[40], *end;
    const size_t length = strcspn(*text, " \t/");
    const int i = d->height + 1, j = d->width + 1;

    snprintf(word, sizeof word, "%.*s", (int)(length < 39 ? length : 39), *text);
    *value = strtod(word, &end);
    if (length >= sizeof word || *end != '\0' || !isfinite(*value))
        return refuse(d, "row %d, number %d: '%s' is not a number", i, j, word);
    if (!is_real && *value != rint(*value))
        return refuse(d, "row %d, number %d: %s is not whole, as masks of uint8 are; scale divides",
                      i, j, word);
    if (fabs(*value) > (is_real ? 1e30 : CONV_MAGNITUDE_MAX))
        return refuse(d, "row %d, number %d: %s is too large", i, j, word);
    *text += length;
    return true;
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

/* One row, up to its slash or the end. Leaves its length in d->width. */
static bool read_row(struct draft *d, const char **text, bool is_real)
{
    double value;

    d->width = 0;
    for (*text = skip_blanks(*text); **text != '\0' && **text != '/'; *text = skip_blanks(*text)) {
        if (!read_number(d, text, is_real, &value))
            return false;
        if (d->width == CONV_SIZE_MAX)
            return refuse(d, "row %d has more than %d numbers", d->height + 1, CONV_SIZE_MAX);
        d->weight[d->height * CONV_SIZE_MAX + d->width++] = value;
    }
    return d->width > 0 || refuse(d, "row %d has no numbers", d->height + 1);
}

/* Rows stand CONV_SIZE_MAX apart while they are read; now one after another. */
static void close_ranks(struct draft *d)
{
    for (int i = 1; i < d->height; i++)
        memmove(&d->weight[i * d->width], &d->weight[i * CONV_SIZE_MAX],
                (size_t)d->width * sizeof(double));
}

static bool read_rows(struct draft *d, const char *text, bool is_real)
{
    int width = 0;

    for (bool is_more = true; is_more; text++) {
        if (d->height == CONV_SIZE_MAX)
            return refuse(d, "more than %d rows", CONV_SIZE_MAX);
        if (!read_row(d, &text, is_real))
            return false;
        if (d->height > 0 && d->width != width)
            return refuse(d, "row %d has %d numbers, row 1 has %d", d->height + 1, d->width, width);
        width = d->width;
        d->height++;
        is_more = *text == '/';
    }
    if (d->width % 2 == 0 || d->height % 2 == 0)
        return refuse(d, "%d columns and %d rows: both must be odd, so that a pixel is the centre",
                      d->width, d->height);
    close_ranks(d);
    return true;
}

/* --- named masks -------------------------------------------------------------------------------------- */

static void multiply(struct draft *d)
{
    for (int i = 0; i < d->height; i++)
        for (int j = 0; j < d->width; j++)
            d->weight[i * d->width + j] = d->column[i] * d->row[j];
    d->is_product = true;
}

/* 1, 1 1, 1 2 1, ... */
static void binomial(double *weights, int size)
{
    memset(weights, 0, (size_t)size * sizeof *weights);
    weights[0] = 1;
    for (int n = 1; n < size; n++)
        for (int i = n; i > 0; i--)
            weights[i] += weights[i - 1];
}

/* The binomial of size - 2, combined with -1 0 1 (order 1) or 1 -2 1 (order 2). */
static void derivative(double *weights, int size, int order)
{
    double smooth[CONV_SIZE_MAX];

    binomial(smooth, size - 2);
    memset(weights, 0, (size_t)size * sizeof *weights);
    for (int i = 0; i < size - 2; i++) {
        weights[i] += order == 1 ? -smooth[i] : smooth[i];
        weights[i + 1] -= order == 1 ? 0 : 2 * smooth[i];
        weights[i + 2] += smooth[i];
    }
}

static void make_sobel(struct draft *d, bool is_x)
{
    derivative(is_x ? d->row : d->column, d->width, 1);
    binomial(is_x ? d->column : d->row, d->width);
    multiply(d);
}

static void make_laplacian(struct draft *d)
{
    double curve[CONV_SIZE_MAX], smooth[CONV_SIZE_MAX];

    derivative(curve, d->width, 2);
    binomial(smooth, d->width);
    for (int i = 0; i < d->width; i++)
        for (int j = 0; j < d->width; j++)
            d->weight[i * d->width + j] = curve[i] * smooth[j] + smooth[i] * curve[j];
}

/* Symmetric weights that add up to 1, as whole numbers that add up to 2^CONV_AXIS_BITS: rounded down, and
 * what is missing goes in pairs to the largest fractions, one without a pair to the centre. */
static void to_fixed_point(double *weights, int size)
{
    const int whole = 1 << CONV_AXIS_BITS, half = size / 2;
    double fraction[CONV_SIZE_MAX];
    int missing = whole;

    for (int i = 0; i < size; i++) {
        const double scaled = weights[i] * whole;

        weights[i] = floor(scaled);
        fraction[i] = scaled - weights[i];
        missing -= (int)weights[i];
    }
    if (missing % 2 != 0) {
        weights[half]++;
        missing--;
    }
    for (; missing > 0; missing -= 2) {
        int best = 0;

        for (int i = 1; i < half; i++)
            best = fraction[i] > fraction[best] ? i : best;
        weights[best]++;
        weights[size - 1 - best]++;
        fraction[best]--;
    }
}

static void make_smooth(struct draft *d, bool is_real)
{
    double total = 0;

    for (int i = 0; i < d->width; i++)
        total += d->row[i];
    for (int i = 0; i < d->width; i++)
        d->row[i] /= total;
    if (!is_real)
        to_fixed_point(d->row, d->width);
    memcpy(d->column, d->row, sizeof d->column);
    multiply(d);
}

static void make_box(struct draft *d, bool is_real)
{
    for (int i = 0; i < d->width; i++)
        d->row[i] = 1;
    make_smooth(d, is_real);
}

/* Returns the sigma that was used; 0: the binomial weights of sizes 3 and 5. */
static double make_gaussian(struct draft *d, bool is_real, double sigma)
{
    const int half = d->width / 2;

    if (sigma <= 0 && d->width <= 5) {
        binomial(d->row, d->width);
        memcpy(d->column, d->row, sizeof d->column);
        if (is_real)
            make_smooth(d, true);
        else
            multiply(d);
        return 0;
    }
    if (sigma <= 0)
        sigma = 0.3 * (half - 1) + 0.8;
    for (int i = 0; i < d->width; i++)
        d->row[i] = exp(-(i - half) * (i - half) / (2 * sigma * sigma));
    make_smooth(d, is_real);
    return sigma;
}

static void make_sharpen(struct draft *d)
{
    static const signed char three[] = {-5, 3, -5, 3, 9, 3, -5, 3, -5};
    static const signed char five[] = {0,  -1, 1,  -1, 0,  -1, 1,  -1, 1,  -1, 0,  -1, 8,
                                       -1, 0,  -1, 1,  -1, 1,  -1, 0,  -1, 1,  -1, 0};

    for (int k = 0; k < d->width * d->width; k++)
        d->weight[k] = d->width == 3 ? three[k] : five[k];
}

enum name { SHARPEN, BOX, GAUSSIAN, SOBEL_X, SOBEL_Y, LAPLACIAN, NAMES };

/* The name and the size behind it. */
static bool read_name(struct draft *d, const char *text, enum name *name)
{
    static const char *const words[NAMES] = {"sharpen", "box",     "gaussian",
                                             "sobel_x", "sobel_y", "laplacian"};
    const size_t letters = strcspn(text, "0123456789 \t/"),
                 digits = strspn(text + letters, "0123456789");
    const char *const rest = text + letters + digits;
    int i = 0;

    while (i < NAMES && (strlen(words[i]) != letters || strncmp(text, words[i], letters) != 0))
        i++;
    if (i == NAMES)
        return refuse(d, "'%s' is no mask; there are %s", text, names);
    *name = (enum name)i;
    if (digits == 0)
        return refuse(d, "'%s': the size follows the name at once, as in %s%d", text, words[i], 3);
    if (*rest != '\0')
        return refuse(d, "'%s': nothing may follow %.*s", text, (int)(letters + digits), text);
    d->width = d->height = digits > 2 ? 100 : atoi(text + letters);
    if (*name == SHARPEN && d->width != 3 && d->width != 5)
        return refuse(d, "'%s': sharpen has the sizes 3 and 5", text);
    if (d->width < 3 || d->width > CONV_SIZE_MAX || d->width % 2 == 0)
        return refuse(d, "'%s': a size is odd, from 3 to %d", text, CONV_SIZE_MAX);
    return true;
}

static bool make_named(struct draft *d, struct conv_mask *mask, const char *text, double sigma)
{
    enum name name = SHARPEN;

    if (!read_name(d, text, &name))
        return false;
    if (sigma > 0 && name != GAUSSIAN)
        return refuse(d, "'%s' has no sigma: leave sigma at auto", text);
    if (name == SHARPEN)
        make_sharpen(d);
    else if (name == BOX)
        make_box(d, mask->is_real);
    else if (name == GAUSSIAN)
        mask->sigma = make_gaussian(d, mask->is_real, sigma);
    else if (name == LAPLACIAN)
        make_laplacian(d);
    else
        make_sobel(d, name == SOBEL_X);
    if (!mask->is_real && (name == BOX || name == GAUSSIAN))
        mask->shift =
            mask->sigma <= 0 && name == GAUSSIAN ? 2 * (d->width - 1) : 2 * CONV_AXIS_BITS;
    return true;
}

/* --- from draft to mask --------------------------------------------------------------------------------- */

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* The first row that is not all zeros, divided by what its numbers share; false: there is none, or the
 * numbers are not whole. */
static bool find_row(struct draft *d)
{
    int64_t divisor = 0;
    int first = -1;

    for (int k = 0; k < d->width * d->height; k++) {
        if (d->weight[k] != rint(d->weight[k]) || fabs(d->weight[k]) > CONV_MAGNITUDE_MAX)
            return false;
        if (d->weight[k] != 0 && first < 0)
            first = k / d->width;
        if (first >= 0 && k / d->width == first)
            divisor = common_divisor(divisor, (int64_t)d->weight[k]);
    }
    for (int j = 0; first >= 0 && j < d->width; j++)
        d->row[j] = d->weight[first * d->width + j] / (double)divisor;
    return first >= 0;
}

/* Every row must be a whole multiple of one whose numbers share no divisor: then, and only then, whole
 * numbers have rank 1. */
static void factor(struct draft *d)
{
    int pivot = 0;

    if (!find_row(d))
        return;
    while (d->row[pivot] == 0)
        pivot++;
    for (int i = 0; i < d->height; i++) {
        d->column[i] = rint(d->weight[i * d->width + pivot] / d->row[pivot]);
        for (int j = 0; j < d->width; j++)
            if (d->column[i] * d->row[j] != d->weight[i * d->width + j])
                return;
    }
    d->is_product = true;
}

static void take_whole(struct conv_mask *mask, const struct draft *d)
{
    for (int k = 0; k < d->width * d->height; k++)
        mask->weight[k] = (int32_t)d->weight[k];
    for (int j = 0; j < d->width && d->is_product; j++)
        mask->row[j] = (int32_t)d->row[j];
    for (int i = 0; i < d->height && d->is_product; i++)
        mask->column[i] = (int32_t)d->column[i];
}

static void take_real(struct conv_mask *mask, const struct draft *d)
{
    for (int k = 0; k < d->width * d->height; k++)
        mask->weight_real[k] = (float)d->weight[k];
    for (int j = 0; j < d->width && d->is_product; j++)
        mask->row_real[j] = (float)d->row[j];
    for (int i = 0; i < d->height && d->is_product; i++)
        mask->column_real[i] = (float)d->column[i];
}

bool conv_mask_parse(struct conv_mask *mask, const char *text, bool is_real, double sigma,
                     char *why, size_t why_bytes)
{
    struct draft d = {.why = why, .why_bytes = why_bytes};
    const bool is_named = strspn(text, " \t+-.0123456789/") == 0;

    *mask = (struct conv_mask){.is_real = is_real, .shift = -1};
    if (*skip_blanks(text) == '\0')
        return refuse(&d, "there is no mask; there are %s", names);
    if (is_named ? !make_named(&d, mask, text, sigma) : !read_rows(&d, text, is_real))
        return false;
    if (!is_named && sigma > 0)
        return refuse(&d, "rows of numbers have no sigma: leave sigma at auto");
    for (int k = 0; k < d.width * d.height; k++)
        mask->magnitude += fabs(d.weight[k]);
    if (!is_real && mask->magnitude > CONV_MAGNITUDE_MAX)
        return refuse(&d,
                      "its weights add up to %.0f in magnitude; 255 times that is above an int32",
                      mask->magnitude);
    if (!d.is_product)
        factor(&d);
    mask->width = d.width;
    mask->height = d.height;
    mask->is_separable = d.is_product;
    if (is_real)
        take_real(mask, &d);
    else
        take_whole(mask, &d);
    return true;
}

/* Reverses an array of int32 or float. */
static void reverse(void *numbers, int count)
{
    const size_t size = sizeof(int32_t);
    unsigned char *low = numbers, *high = low + (size_t)count * size, kept[sizeof(int32_t)];

    for (int i = 0; i < count / 2; i++, low += size) {
        high -= size;
        memcpy(kept, low, size);
        memcpy(low, high, size);
        memcpy(high, kept, size);
    }
}

void conv_mask_flip(struct conv_mask *mask)
{
    reverse(mask->is_real ? (void *)mask->weight_real : mask->weight, mask->width * mask->height);
    reverse(mask->is_real ? (void *)mask->row_real : mask->row, mask->width);
    reverse(mask->is_real ? (void *)mask->column_real : mask->column, mask->height);
}
