#include "run/generate_draw.h"

#include <float.h>
#include <math.h>

__extension__ typedef unsigned __int128 u128;

const struct real_format generate_real_formats[GPURUN_DTYPE_COUNT] = {
    [GPURUN_FLOAT] = {0x1p-149, (double)FLT_MAX, 1 << 24},
    [GPURUN_DOUBLE] = {0x1p-1074, DBL_MAX, INT64_C(1) << 53},
    [GPURUN_HALF] = {0x1p-24, 65504, 1 << 11},
    [GPURUN_BFLOAT16] = {0x1p-133, 0x1.FEp127, 1 << 8},
};

/* --- random bits ------------------------------------------------------------------------------- */

static const uint64_t golden = 0x9e3779b97f4a7c15; /* 2^64 / golden ratio, odd */

/* The finaliser of splitmix64: each bit in flips each bit out with a probability near one half. */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static inline uint64_t word(const struct fill *f, uint64_t n)
{
    return mix(f->key + (n + 1) * golden);
}

uint64_t generate_key(uint64_t seed, const char *tensor)
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

    for (; tensor != NULL && *tensor != '\0'; tensor++)
        hash = (hash ^ (unsigned char)*tensor) * 0x100000001b3;
    return mix(mix(seed) ^ hash);
}

/* A number in [0, span) out of 64 bits: no value is likelier than another by more than span /
 * 2^64 of its probability. */
static inline uint64_t scale(uint64_t bits, uint64_t span)
{
    return (uint64_t)(((u128)bits * span) >> 64);
}

/* Uniform in [0, 1), a multiple of 2^-53. */
static inline double unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

/* --- integers ---------------------------------------------------------------------------------- */

/* Up to 2^32 values take one word each, with a bias of at most 2^-32; wider spans take 128 bits,
 * with a bias below 2^-64. */
static void draw_uniform(const struct fill *f, uint64_t first, int n, union cell *restrict out)
{
    if (f->span == 0) {
        for (int i = 0; i < n; i++)
            out[i].whole = f->low + word(f, first + (uint64_t)i);
    } else if (f->span <= UINT64_C(1) << 32) {
        for (int i = 0; i < n; i++)
            out[i].whole = f->low + scale(word(f, first + (uint64_t)i), f->span);
    } else {
        for (int i = 0; i < n; i++) {
            const uint64_t at = 2 * (first + (uint64_t)i);
            const uint64_t carry = scale(word(f, at + 1), f->span);

            out[i].whole = f->low + (uint64_t)(((u128)word(f, at) * f->span + carry) >> 64);
        }
    }
}

/* The sum of twelve uniform 32-bit numbers less its mean, over its deviation 2^32: exact, and
 * within (-6, 6). */
static inline double normal(const struct fill *f, uint64_t i)
{
    uint64_t sum = 0;

    for (uint64_t j = 0; j < 6; j++) {
        const uint64_t bits = word(f, 6 * i + j);

        sum += (bits >> 32) + (bits & UINT32_MAX);
    }
    return (double)((int64_t)sum - INT64_C(6) * UINT32_MAX) * 0x1p-32;
}

/* To the nearest integer, the even one where two are as near; beyond the dtype's ends to these. */
static inline uint64_t saturate(const struct fill *f, double x)
{
    x = rint(x);
    if (x >= f->high_real)
        return f->low + f->span - 1;
    if (x < f->low_real)
        return f->low;
    return f->is_signed ? (uint64_t)(int64_t)x : (uint64_t)x;
}

static void draw_normal(const struct fill *f, uint64_t first, int n, union cell *restrict out)
{
    for (int i = 0; i < n; i++)
        out[i].whole = saturate(f, f->start_real + f->step_real * normal(f, first + (uint64_t)i));
}

static void draw_ramp(const struct fill *f, uint64_t first, int n, union cell *restrict out)
{
    for (int i = 0; i < n; i++)
        out[i].whole = f->start + (first + (uint64_t)i) * f->step;
}

static void draw_few(const struct fill *f, uint64_t first, int n, union cell *restrict out)
{
    for (int i = 0; i < n; i++)
        out[i].whole = f->low + scale(word(f, first + (uint64_t)i), f->count) * f->step;
}

/* The first of `count` rows whose weight is above `at`; the last row, if none before it is. */
static inline uint64_t search(const uint64_t *weight, uint64_t count, uint64_t at)
{
    const uint64_t *base = weight;

    while (count > 1) {
        const uint64_t half = count / 2;

        base += base[half - 1] <= at ? half : 0;
        count -= half;
    }
    return (uint64_t)(base - weight);
}

/* Weights are whole, so that they are the same everywhere: 2^56 / v rounded down, which shifts a
 * probability by less than 2^-36 of itself. */
void generate_zipf(struct zipf *zipf, uint64_t count)
{
    uint64_t sum = 0;

    for (uint64_t v = 1; v <= count; v++)
        zipf->weight[v - 1] = sum += (UINT64_C(1) << 56) / v;
    for (uint64_t g = 0; g < ZIPF_GUIDES; g++)
        zipf->guide[g] =
            (uint32_t)search(zipf->weight, count, scale(g << (64 - ZIPF_GUIDE_BITS), sum));
    zipf->guide[ZIPF_GUIDES] = (uint32_t)(count - 1);
}

static void draw_zipf(const struct fill *f, uint64_t first, int n, union cell *restrict out)
{
    const uint64_t *weight = f->zipf->weight, total = weight[f->count - 1];

    for (int i = 0; i < n; i++) {
        const uint64_t bits = word(f, first + (uint64_t)i);
        const uint32_t *guide = &f->zipf->guide[bits >> (64 - ZIPF_GUIDE_BITS)];
        const uint64_t rows = (uint64_t)guide[1] - guide[0] + 1;

        out[i].whole = guide[0] + search(weight + guide[0], rows, scale(bits, total)) + 1;
    }
}

/* Both values are made, and one taken: a branch on a random bit would cost more. */
static void draw_special(const struct fill *f, uint64_t first, int n, union cell *restrict out)
{
    for (int i = 0; i < n; i++) {
        const uint64_t at = 2 * (first + (uint64_t)i);
        const uint64_t bits = word(f, at), other = word(f, at + 1);
        const uint64_t special = f->special[scale(bits << 1, f->count)];
        const uint64_t uniform = f->low + (f->span == 0 ? other : scale(other, f->span));

        out[i].whole = bits >> 63 ? special : uniform;
    }
}

/* The place of element `first`; then from place to place without a division. */
#define EACH_PLACE(f, first, n, r, c)                                                              \
    uint64_t r = (first) / (f)->columns % (f)->rows, c = (first) % (f)->columns;                   \
    for (int i = 0; i < (n); r = (c + 1 < (f)->columns ? r                                         \
                                  : r + 1 < (f)->rows  ? r + 1                                     \
                                                       : 0),                                        \
             c = (c + 1 < (f)->columns ? c + 1 : 0), i++)

static void draw_quadratic(const struct fill *f, uint64_t first, int n, union cell *restrict out)
{
    EACH_PLACE(f, first, n, r, c)
    {
        out[i].whole = f->square_column ? r + c * c : r * r + c;
    }
}

/* --- reals ------------------------------------------------------------------------------------- */

/* What would be rounded to high, now or when it is narrowed, becomes the last value below. */
static inline double uniform_real(const struct fill *f, uint64_t bits)
{
    const double u = unit(bits);
    const double x = f->low_real * (1 - u) + f->high_real * u;

    if (x >= f->end_real)
        return f->top_real;
    return x < f->low_real ? f->low_real : x;
}

static void draw_uniform_real(const struct fill *f, uint64_t first, int n, union cell *restrict out)
{
    for (int i = 0; i < n; i++)
        out[i].real = uniform_real(f, word(f, first + (uint64_t)i));
}

static void draw_normal_real(const struct fill *f, uint64_t first, int n, union cell *restrict out)
{
    for (int i = 0; i < n; i++)
        out[i].real = f->start_real + f->step_real * normal(f, first + (uint64_t)i);
}

static void draw_ramp_real(const struct fill *f, uint64_t first, int n, union cell *restrict out)
{
    for (int i = 0; i < n; i++)
        out[i].real = f->start_real + (double)(int64_t)(first + (uint64_t)i) * f->step_real;
}

/* Apart from the ramps: 0 added to -0 would be 0. */
static void draw_constant_real(const struct fill *f, uint64_t first, int n,
                               union cell *restrict out)
{
    (void)first;
    for (int i = 0; i < n; i++)
        out[i].real = f->start_real;
}

static void draw_few_real(const struct fill *f, uint64_t first, int n, union cell *restrict out)
{
    for (int i = 0; i < n; i++)
        out[i].real = (double)scale(word(f, first + (uint64_t)i), f->count) / (double)f->count;
}

static void draw_zipf_real(const struct fill *f, uint64_t first, int n, union cell *restrict out)
{
    draw_zipf(f, first, n, out);
    for (int i = 0; i < n; i++)
        out[i].real = (double)out[i].whole;
}

static void draw_special_real(const struct fill *f, uint64_t first, int n, union cell *restrict out)
{
    for (int i = 0; i < n; i++) {
        const uint64_t at = 2 * (first + (uint64_t)i);
        const uint64_t bits = word(f, at);
        const double special = f->special_real[scale(bits << 1, f->count)];
        const double uniform = uniform_real(f, word(f, at + 1));

        out[i].real = bits >> 63 ? special : uniform;
    }
}

static void draw_quadratic_real(const struct fill *f, uint64_t first, int n,
                                union cell *restrict out)
{
    EACH_PLACE(f, first, n, r, c)
    {
        const double row = (double)r, column = (double)c;

        out[i].real = f->square_column ? row + column * column : row * row + column;
    }
}

draw_fn *const generate_draws[][2] = {
    [GENERATOR_UNIFORM] = {draw_uniform, draw_uniform_real},
    [GENERATOR_NORMAL] = {draw_normal, draw_normal_real},
    [GENERATOR_ASCENDING] = {draw_ramp, draw_ramp_real},
    [GENERATOR_DESCENDING] = {draw_ramp, draw_ramp_real},
    [GENERATOR_CONSTANT] = {draw_ramp, draw_constant_real},
    [GENERATOR_FEW_DISTINCT] = {draw_few, draw_few_real},
    [GENERATOR_ZIPF] = {draw_zipf, draw_zipf_real},
    [GENERATOR_SPECIAL] = {draw_special, draw_special_real},
    [GENERATOR_QUADRATIC] = {draw_quadratic, draw_quadratic_real},
};
