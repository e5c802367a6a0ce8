/*
 * Filling: parameters and their defaults become a struct fill, then blocks are drawn in parallel.
 * Nothing is carried from one element to the next, so the number of threads cannot matter.
 */
#include "run/generate_draw.h"

#include "gpurun/half.h"
#include "gpurun/key.h"
#include <math.h>
#include <string.h>

enum {
    BLOCK = 2048,     /* elements: 16 KiB of cells stay in the first cache */
    THREAD_BLOCKS = 8 /* for fewer a thread costs more than it saves */
};

/* --- parameters and their defaults -------------------------------------------------------------- */

static uint64_t whole_or(const struct generator *g, int parameter, uint64_t otherwise)
{
    const double real = g->real[parameter];

    if ((g->given >> parameter & 1) == 0)
        return otherwise;
    if (g->is_whole[parameter])
        return (uint64_t)g->whole[parameter];
    return real < 0 ? (uint64_t)(int64_t)real : (uint64_t)real;
}

static double real_or(const struct generator *g, int parameter, double otherwise)
{
    return (g->given >> parameter & 1) != 0 ? g->real[parameter] : otherwise;
}

/* One table for the process, so that filling has no way to fail. */
static void set_zipf(struct fill *f, const struct generator *g, uint64_t most)
{
    static struct zipf zipf;

    f->count = whole_or(g, 0, most < GENERATOR_ZIPF_DEFAULT ? most : GENERATOR_ZIPF_DEFAULT);
    f->zipf = &zipf;
    generate_zipf(&zipf, f->count);
}

static void set_special(struct fill *f)
{
    const uint64_t high = f->low + f->span - 1;
    const uint64_t of_signed[] = {f->low, f->low + 1, UINT64_MAX, 0, 1, high - 1, high};
    const uint64_t of_unsigned[] = {0, 1, high / 2, high / 2 + 1, high - 1, high};

    f->count = f->is_signed ? GPURUN_COUNT(of_signed) : GPURUN_COUNT(of_unsigned);
    memcpy(f->special, f->is_signed ? of_signed : of_unsigned, f->count * sizeof(uint64_t));
}

static void set_special_real(struct fill *f)
{
    const struct real_format *format = &generate_real_formats[f->dtype];
    const double least = format->least, most = format->most, nan = copysign(NAN, 1);
    const double values[] = {nan,   -nan,   INFINITY, -INFINITY, 0, -0.0,
                             least, -least, most,     -most,     1, -1};

    f->count = GPURUN_COUNT(values);
    memcpy(f->special_real, values, sizeof values);
}

static void set_whole(struct fill *f, const struct generator *g, int64_t elems)
{
    const uint64_t high = f->low + f->span - 1;

    switch (g->kind) {
    case GENERATOR_UNIFORM:
        f->low = whole_or(g, 0, f->low);
        f->span = whole_or(g, 1, high) - f->low + 1;
        break;
    case GENERATOR_NORMAL:
        f->start_real = real_or(g, 0, f->is_signed ? 0 : f->high_real / 2);
        f->step_real = real_or(g, 1, (f->high_real - f->low_real) / 12);
        break;
    case GENERATOR_ASCENDING:
        f->start = whole_or(g, 0, 0);
        f->step = whole_or(g, 1, 1);
        break;
    case GENERATOR_DESCENDING:
        f->start = whole_or(g, 0, (uint64_t)elems);
        f->step = 0 - whole_or(g, 1, 1);
        break;
    case GENERATOR_CONSTANT:
        f->start = whole_or(g, 0, 0);
        break;
    case GENERATOR_FEW_DISTINCT:
        f->count = whole_or(g, 0, GENERATOR_FEW_DEFAULT);
        f->step = f->count > 1 ? (f->span - 1) / (f->count - 1) : 0;
        break;
    case GENERATOR_ZIPF:
        set_zipf(f, g, high);
        break;
    case GENERATOR_SPECIAL:
        set_special(f);
        break;
    case GENERATOR_QUADRATIC:
    case GENERATOR_COUNT:
        break;
    }
}

/* Through memory: GCC 12 drops this rounding where it turns two of them into one vector
 * operation. */
static double round_to_float(double x)
{
    volatile float rounded = (float)x;

    return (double)rounded;
}

static double round_to(enum gpurun_dtype dtype, double x)
{
    if (dtype == GPURUN_HALF)
        return (double)gpurun_half_to_float(gpurun_half_from_double(x));
    if (dtype == GPURUN_BFLOAT16)
        return (double)gpurun_bfloat16_to_float(gpurun_bfloat16_from_double(x));
    return dtype == GPURUN_FLOAT ? round_to_float(x) : x;
}

/* The dtype's next value below `high`, of which it is one; not for the lowest of all. */
static double next_below(enum gpurun_dtype dtype, double high)
{
    const bool is_half = dtype == GPURUN_HALF;
    uint16_t bits;

    if (dtype == GPURUN_DOUBLE)
        return nextafter(high, -INFINITY);
    if (dtype == GPURUN_FLOAT)
        return (double)nextafterf((float)high, -INFINITY);
    bits = is_half ? gpurun_half_from_double(high) : gpurun_bfloat16_from_double(high);
    if ((bits & 0x7fff) == 0)
        bits = 0x8001; /* the least value below 0 */
    else
        bits = (uint16_t)(bits & 0x8000 ? bits + 1 : bits - 1);
    return (double)(is_half ? gpurun_half_to_float(bits) : gpurun_bfloat16_to_float(bits));
}

/* [low, high) as the dtype has these, the last value within, and from where on values are nearer
 * to high. */
static void set_range_real(struct fill *f, double low, double high)
{
    f->low_real = round_to(f->dtype, low);
    f->high_real = f->end_real = round_to(f->dtype, high);
    f->top_real = f->low_real < f->high_real ? next_below(f->dtype, f->high_real) : f->high_real;
    if (f->dtype != GPURUN_DOUBLE)
        f->end_real = (f->top_real + f->high_real) / 2;
}

static void set_real(struct fill *f, const struct generator *g, int64_t elems)
{
    set_range_real(f, 0, 1);
    switch (g->kind) {
    case GENERATOR_UNIFORM:
        set_range_real(f, real_or(g, 0, 0), real_or(g, 1, 1));
        break;
    case GENERATOR_NORMAL:
    case GENERATOR_ASCENDING:
        f->start_real = real_or(g, 0, 0);
        f->step_real = real_or(g, 1, 1);
        break;
    case GENERATOR_DESCENDING:
        f->start_real = real_or(g, 0, (double)elems);
        f->step_real = -real_or(g, 1, 1);
        break;
    case GENERATOR_CONSTANT:
        f->start_real = real_or(g, 0, 0);
        break;
    case GENERATOR_FEW_DISTINCT:
        f->count = whole_or(g, 0, GENERATOR_FEW_DEFAULT);
        break;
    case GENERATOR_ZIPF:
        set_zipf(f, g, (uint64_t)generate_real_formats[f->dtype].whole);
        break;
    case GENERATOR_SPECIAL:
        set_special_real(f);
        break;
    case GENERATOR_QUADRATIC:
    case GENERATOR_COUNT:
        break;
    }
}

/* The whole range of an integer dtype, as integers and as reals. */
static void set_dtype(struct fill *f, enum gpurun_dtype dtype)
{
    const unsigned bits = 8 * (unsigned)gpurun_dtype_bytes(dtype);

    f->dtype = dtype;
    f->is_signed = dtype == GPURUN_INT8 || dtype == GPURUN_INT16 || dtype == GPURUN_INT32 ||
                   dtype == GPURUN_INT64;
    f->span = bits == 64 ? 0 : UINT64_C(1) << bits;
    f->low = f->is_signed ? 0 - (UINT64_C(1) << (bits - 1)) : 0;
    f->high_real = ldexp(1, (int)bits - f->is_signed);
    f->low_real = f->is_signed ? -f->high_real : 0;
}

static void set_places(struct fill *f, const struct generator *g, const struct gpurun_tensor *t)
{
    f->rows = t->rank > 1 ? (uint64_t)t->dims[t->rank - 2] : 1;
    f->columns = t->rank > 0 ? (uint64_t)t->dims[t->rank - 1] : 1;
    f->square_column = g->whole[0] != 0;
}

/* --- filling ----------------------------------------------------------------------------------- */

#define NARROW(type, convert, member)                                                              \
    for (int i = 0; i < n; i++)                                                                    \
        ((type *)data)[first + i] = convert(block[i].member);                                      \
    break

/* The low bits of an integer are those of its narrower type, whatever the sign. */
static void narrow(enum gpurun_dtype dtype, const union cell *block, void *data, int64_t first,
                   int n)
{
    switch (dtype) {
    case GPURUN_INT8:
    case GPURUN_UINT8:
        NARROW(uint8_t, (uint8_t), whole);
    case GPURUN_INT16:
    case GPURUN_UINT16:
        NARROW(uint16_t, (uint16_t), whole);
    case GPURUN_INT32:
    case GPURUN_UINT32:
        NARROW(uint32_t, (uint32_t), whole);
    case GPURUN_INT64:
    case GPURUN_UINT64:
        NARROW(uint64_t, (uint64_t), whole);
    case GPURUN_FLOAT:
        NARROW(float, (float), real);
    case GPURUN_DOUBLE:
        NARROW(double, (double), real);
    case GPURUN_HALF:
        NARROW(uint16_t, gpurun_half_from_double, real);
    case GPURUN_BFLOAT16:
        NARROW(uint16_t, gpurun_bfloat16_from_double, real);
    case GPURUN_DTYPE_COUNT:
        break;
    }
}

/* As many as `blocks` are worth; with 1 OpenMP starts no pool. */
static int useful_threads(int64_t blocks, int threads)
{
    const int64_t most = blocks / THREAD_BLOCKS;

    if (threads > most)
        threads = (int)most;
    return threads < 1 ? 1 : threads;
}

void generator_fill(const struct generator *g, uint64_t seed, const struct gpurun_tensor *t,
                    int threads)
{
    const bool is_real = gpurun_dtype_is_real(t->dtype);
    draw_fn *const draw = generate_draws[g->kind][is_real];
    struct fill f = {.key = generate_key(seed, t->name)};
    const int64_t elems = t->elems, blocks = (elems + BLOCK - 1) / BLOCK;

    set_dtype(&f, t->dtype);
    set_places(&f, g, t);
    if (is_real)
        set_real(&f, g, elems);
    else
        set_whole(&f, g, elems);
#pragma omp parallel for num_threads(useful_threads(blocks, threads)) schedule(static)
    for (int64_t b = 0; b < blocks; b++) {
        union cell block[BLOCK];
        const int64_t first = b * BLOCK;
        const int n = elems - first < BLOCK ? (int)(elems - first) : BLOCK;

        draw(&f, (uint64_t)first, n, block);
        narrow(t->dtype, block, t->host, first, n);
    }
}
