/*
 * The proof: every element worked out again, plainly, from the definition: the neighbours by walking to them, the
 * sum of products in 64 bits or in double, the rounding by division. Bytes must be equal; a float may differ by
 * what the README derives. Bytes are worked out once per job.
 */
#include "conv.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_ROWS = 64 }; /* not worth a second thread */

/* What all rows share: the place in a row that each tap of each element reads, or -1 for the constant. */
struct plan {
    const struct gpurun_ctx *ctx;
    const struct conv_options *o;
    const struct conv_state *s;
    int64_t *place;                        /* of element e - radius_x * channels */
    int64_t elems;                         /* of a row of the answer */
    int64_t radius_x, radius_y, left, top; /* left, top: where the first element's mask starts */
};

/* What is found in one row. */
struct row_errors {
    int64_t wrong;
    double worst, bound, worst_relative,
        sum_relative; /* relative to what the mask's magnitudes make */
};

/* --- the definition ------------------------------------------------------------------------------------- */

/* Walks from i into 0 to n - 1. */
static int64_t walk(int64_t i, int64_t n, enum conv_border border)
{
    while (i < 0 || i >= n) {
        switch (border) {
        case CONV_CONSTANT:
            return -1;
        case CONV_REFLECT:
            i = i < 0 ? -1 - i : 2 * n - 1 - i;
            break;
        case CONV_REFLECT101:
            i = n == 1 ? 0 : i < 0 ? -i : 2 * (n - 1) - i;
            break;
        case CONV_WRAP:
            i += i < 0 ? n : -n;
            break;
        default:
            i = i < 0 ? 0 : n - 1;
            break;
        }
    }
    return i;
}

static bool plan_make(struct plan *p, const struct gpurun_ctx *ctx)
{
    const struct conv_state *s = conv_state_of(ctx);
    const struct conv_options *o = conv_options_of(ctx);
    const int64_t margin = s->mask.width / 2 * o->channels;
    const int64_t count = o->width * o->channels + 2 * margin;

    *p = (struct plan){.ctx = ctx, .o = o, .s = s, .elems = conv_out_elems(ctx)};
    p->radius_x = s->mask.width / 2;
    p->radius_y = s->mask.height / 2;
    p->left = s->border == CONV_CROP ? margin : 0;
    p->top = s->border == CONV_CROP ? 0 : -p->radius_y;
    p->place = malloc((size_t)count * sizeof *p->place);
    for (int64_t i = 0; p->place != NULL && i < count; i++) {
        const int64_t pixel = walk(i / o->channels - p->radius_x, o->width, s->border);

        p->place[i] = pixel < 0 ? -1 : pixel * o->channels + i % o->channels;
    }
    return p->place != NULL;
}

/* Row y of the image, or NULL for the constant. */
static const char *image_row(const struct plan *p, int64_t y)
{
    const int64_t from = walk(y, p->o->height, p->s->border);

    return from < 0 ? NULL
                    : (const char *)p->s->image->host +
                          (size_t)(from * p->s->in_pitch) * gpurun_dtype_bytes(p->s->image->dtype);
}

/* Whether frame leaves out element e of row y. */
static bool is_framed(const struct plan *p, int64_t e, int64_t y)
{
    const int64_t x = e / p->o->channels;

    return p->s->border == CONV_FRAME && (x < p->radius_x || x >= p->o->width - p->radius_x ||
                                          y < p->radius_y || y >= p->o->height - p->radius_y);
}

/* Scaled, with the bias, rounded and saturated: by division, whose rest says where the result lies. */
static uint8_t finish(const struct plan *p, int64_t sum)
{
    const struct conv_tail *tail = &p->s->tail;
    const int64_t unit = (int64_t)1 << tail->shift;
    const int64_t half = tail->shift > 0 && p->o->round != CONV_DOWN ? unit / 2 : 0;
    const int64_t exact = sum * tail->multiplier + (tail->add - half);
    int64_t result = exact / unit, rest = exact % unit;

    if (rest < 0) {
        rest += unit;
        result--;
    }
    if (half > 0 &&
        (rest > half || (rest == half && (p->o->round == CONV_NEAREST || result % 2 != 0))))
        result++;
    return (uint8_t)(result < 0 ? 0 : result > 255 ? 255 : result);
}

/* --- bytes --------------------------------------------------------------------------------------------------- */

static void expect_bytes(const struct plan *p, int64_t y, uint8_t *expected)
{
    const struct conv_mask *mask = &p->s->mask;
    const uint8_t fill = (uint8_t)p->s->fill;
    const char *rows[CONV_SIZE_MAX];

    for (int i = 0; i < mask->height; i++)
        rows[i] = image_row(p, y + p->top + i);
    for (int64_t e = 0; e < p->elems; e++) {
        const int64_t *place = p->place + p->left + e;
        int64_t sum = 0;

        for (int i = 0; i < mask->height; i++)
            for (int j = 0; j < mask->width; j++) {
                const int64_t at = place[j * p->o->channels];
                const uint8_t *row = (const uint8_t *)rows[i];

                sum += (int64_t)mask->weight[i * mask->width + j] *
                       (row == NULL || at < 0 ? fill : row[at]);
            }
        expected[e] = is_framed(p, e, y) ? fill : finish(p, sum);
    }
}

static enum gpurun_status know_bytes(struct gpurun_ctx *ctx, const struct plan *p)
{
    struct conv_state *s = conv_state_of(ctx);
    const int64_t rows = s->out_height;

    if (s->truth != NULL)
        return GPURUN_OK;
    s->truth = malloc((size_t)(p->elems * rows));
    if (s->truth == NULL)
        return gpurun_fail(ctx, GPURUN_NO_MEMORY, "height",
                           "no host memory for %" PRId64 " bytes to compare with", p->elems * rows);
#pragma omp parallel for num_threads(ctx->threads) schedule(dynamic, 8) if (rows > FEW_ROWS)
    for (int64_t y = 0; y < rows; y++)
        expect_bytes(p, y, s->truth + y * p->elems);
    return GPURUN_OK;
}

static void judge_bytes(const struct plan *p, int64_t y, struct row_errors *errors)
{
    const uint8_t *got = (const uint8_t *)p->s->filtered->host + y * p->s->out_pitch;
    const uint8_t *right = p->s->truth + y * p->elems;

    if (memcmp(got, right, (size_t)p->elems) == 0)
        return;
    for (int64_t e = 0; e < p->elems; e++) {
        const double error = fabs((double)got[e] - right[e]);

        errors->wrong += got[e] != right[e];
        errors->worst = error > errors->worst ? error : errors->worst;
    }
}

static void tell_bytes(struct gpurun_ctx *ctx, struct gpurun_proof *proof, const struct plan *p,
                       int64_t y)
{
    const uint8_t *got = (const uint8_t *)p->s->filtered->host + y * p->s->out_pitch;
    const uint8_t *right = p->s->truth + y * p->elems;

    for (int64_t e = 0; e < p->elems; e++)
        if (got[e] != right[e])
            gpurun_wrong(ctx, proof,
                         "row %" PRId64 ", pixel %" PRId64 ", channel %" PRId64
                         " is %d, should be %d",
                         y, e / p->o->channels, e % p->o->channels, got[e], right[e]);
}

/* --- floats ------------------------------------------------------------------------------------------------------ */

/* One float of the truth. */
struct expected {
    double value;
    double magnitude; /* |scale| times the sum of the finite |products| */
    double bound;
    bool may_overflow; /* partial sums may be above what a float holds */
};

/* How far a product takes partial sums: in two steps it is without the column's weight at first. */
static double reach_of(const struct conv_mask *mask, int i, int j, double pixel)
{
    const double product = fabs((double)mask->weight_real[i * mask->width + j] * pixel);

    return mask->is_separable ? fmax(product, fabs((double)mask->row_real[j] * pixel)) : product;
}

static struct expected expect_float(const struct plan *p, const char *const *rows, int64_t e,
                                    int64_t y)
{
    const struct conv_mask *mask = &p->s->mask;
    const int64_t *place = p->place + p->left + e;
    const double scale = (double)(float)p->o->scale, bias = (double)(float)p->o->bias, u = 0x1p-24;
    const double taps = mask->width * mask->height;
    double sum = 0, magnitude = 0, reach = fabs(bias);
    struct expected x = {.value = (double)(float)p->s->fill};

    if (is_framed(p, e, y))
        return x;
    for (int i = 0; i < mask->height; i++)
        for (int j = 0; j < mask->width; j++) {
            const int64_t at = place[j * p->o->channels];
            const float *row = (const float *)(const void *)rows[i];
            const float pixel = row == NULL || at < 0 ? (float)p->s->fill : row[at];
            const double product = (double)mask->weight_real[i * mask->width + j] * (double)pixel;

            sum += product;
            magnitude += isfinite(product) ? fabs(product) : 0;
            reach += isfinite(product) ? reach_of(mask, i, j, (double)pixel) : 0;
        }
    x.value = scale * sum + bias;
    x.magnitude = fabs(scale) * magnitude;
    if (isfinite(x.value))
        x.bound = (taps + 4) * u * x.magnitude + 2 * u * fabs(x.value) +
                  (2 * taps * fabs(scale) + 1) * 0x1p-149;
    x.may_overflow = reach * fmax(1, fabs(scale)) >= 0.999 * (double)FLT_MAX;
    return x;
}

/* How far off, or infinity where an answer that is not finite, or should not be, is not the right one. */
static double error_of(const struct expected *x, float got)
{
    if (isfinite(x->value) && isfinite(got))
        return fabs((double)got - x->value);
    if (isfinite(x->value))
        return x->may_overflow ? 0 : INFINITY;
    if (isnan(x->value))
        return isnan(got) ? 0 : INFINITY;
    if (isinf(got) && (got > 0) == (x->value > 0))
        return 0;
    return isnan(got) && x->may_overflow ? 0 : INFINITY;
}

/* Judges a row; `proof` is NULL while rows are judged in parallel, and only counted. */
static void judge_floats(struct gpurun_ctx *ctx, struct gpurun_proof *proof, const struct plan *p,
                         int64_t y, struct row_errors *errors)
{
    const float *got = (const float *)p->s->filtered->host + y * p->s->out_pitch;
    const char *rows[CONV_SIZE_MAX];

    for (int i = 0; i < p->s->mask.height; i++)
        rows[i] = image_row(p, y + p->top + i);
    for (int64_t e = 0; e < p->elems; e++) {
        const struct expected x = expect_float(p, rows, e, y);
        const double error = error_of(&x, got[e]);
        const double relative = x.magnitude > 0 && isfinite(error) ? error / x.magnitude : 0;

        errors->worst = error > errors->worst ? error : errors->worst;
        errors->bound = x.bound > errors->bound && isfinite(x.bound) ? x.bound : errors->bound;
        errors->worst_relative =
            relative > errors->worst_relative ? relative : errors->worst_relative;
        errors->sum_relative += relative;
        if (error <= x.bound)
            continue;
        errors->wrong++;
        if (proof != NULL)
            gpurun_wrong(ctx, proof,
                         "row %" PRId64 ", pixel %" PRId64 ", channel %" PRId64
                         " is %.9g, should be %.9g: off by %.3g, at most %.3g",
                         y, e / p->o->channels, e % p->o->channels, (double)got[e], x.value, error,
                         x.bound);
    }
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

/* Padding is no part of the answer: it must still be what the core left. */
static void judge_padding(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct conv_state *s = conv_state_of(ctx);
    const size_t size = gpurun_dtype_bytes(s->filtered->dtype);
    const size_t row = (size_t)conv_out_elems(ctx) * size, pitch = (size_t)s->out_pitch * size;
    const unsigned char *const bytes = s->filtered->host;

    for (int64_t y = 0; y < s->out_height; y++)
        for (size_t i = row; i < pitch; i++)
            if (bytes[(size_t)y * pitch + i] != GPURUN_POISON) {
                gpurun_wrong(ctx, proof, "row %" PRId64 ": the padding behind it was written", y);
                break;
            }
}

/* Takes the padding out of the answer, so that what is shown and written is the image alone. */
static void close_rows(const struct gpurun_ctx *ctx)
{
    struct gpurun_tensor *t = conv_state_of(ctx)->filtered;
    const int64_t channels = conv_options_of(ctx)->channels;
    const size_t size = gpurun_dtype_bytes(t->dtype);
    const size_t row = (size_t)conv_out_elems(ctx) * size;
    const size_t pitch = (size_t)conv_state_of(ctx)->out_pitch * size;

    for (int64_t y = 1; y < t->dims[0]; y++)
        memmove((char *)t->host + (size_t)y * row, (char *)t->host + (size_t)y * pitch, row);
    t->rank = channels == 1 ? 2 : 3;
    t->dims[1] = conv_state_of(ctx)->out_width;
    t->dims[2] = channels;
    t->elems = t->dims[0] * conv_out_elems(ctx);
    t->bytes = (size_t)t->dims[0] * row;
}

static void judge(struct gpurun_ctx *ctx, struct gpurun_proof *proof, const struct plan *p,
                  struct row_errors *errors)
{
    const bool is_float = p->s->mask.is_real;
    const int64_t rows = p->s->out_height;
    struct row_errors again = {0};
    double sum = 0;

#pragma omp parallel for num_threads(ctx->threads) schedule(dynamic, 8) if (rows > FEW_ROWS)
    for (int64_t y = 0; y < rows; y++) {
        if (is_float)
            judge_floats(ctx, NULL, p, y, &errors[y]);
        else
            judge_bytes(p, y, &errors[y]);
    }
    for (int64_t y = 0; y < rows; y++) {
        if (errors[y].worst > proof->worst_error)
            proof->worst_error = errors[y].worst;
        if (errors[y].bound > proof->bound)
            proof->bound = errors[y].bound;
        if (errors[y].worst_relative > proof->worst_relative)
            proof->worst_relative = errors[y].worst_relative;
        sum += errors[y].sum_relative;
        if (errors[y].wrong > 0 && is_float)
            judge_floats(ctx, proof, p, y, &again);
        else if (errors[y].wrong > 0)
            tell_bytes(ctx, proof, p, y);
    }
    if (!is_float)
        return;
    proof->mean_relative = sum / (double)proof->checked;
    proof->relative_to = "|mask||image|";
}

enum gpurun_status conv_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct conv_state *s = conv_state_of(ctx);
    enum gpurun_status status = GPURUN_OK;
    struct row_errors *errors = calloc((size_t)s->out_height + 1, sizeof *errors);
    struct plan p = {0};

    proof->mode = GPURUN_VERIFY_FULL;
    proof->detects =
        s->mask.is_real ? "an element that is off by more than its bound" : "any wrong element";
    proof->worst_error = proof->worst_relative = 0;
    proof->bound = 0;
    proof->checked = conv_out_elems(ctx) * s->out_height;
    if (errors == NULL || (proof->checked > 0 && !plan_make(&p, ctx)))
        status = gpurun_fail(ctx, GPURUN_NO_MEMORY, "width", "no host memory for the proof");
    if (status == GPURUN_OK && !s->mask.is_real && proof->checked > 0)
        status = know_bytes(ctx, &p);
    if (status == GPURUN_OK && proof->checked > 0)
        judge(ctx, proof, &p, errors);
    if (status == GPURUN_OK && conv_is_padded(ctx)) {
        judge_padding(ctx, proof);
        close_rows(ctx);
    }
    free(p.place);
    free(errors);
    return status;
}
