/*
 * The proof: all prefixes once more, in wider arithmetic. Whole sums are taken modulo 2^64, real numbers as
 * doubles, and their sums as two. Chunks of fixed length are summed side by side and then followed side by
 * side, so the truth does not depend on the number of threads, and no copy of it is kept.
 */
#include "scan.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { CHUNK = 1 << 15 };

/* All elements up to some place. */
struct truth {
    uint64_t whole;   /* sum modulo 2^64; max and min: as `whole_at` gives it */
    double real, low; /* their sum is the real one */
    double magnitude; /* sum of the absolute values of finite elements */
    unsigned seen;    /* SEEN_... of the others */
};

enum { SEEN_NAN = 1, SEEN_PLUS = 2, SEEN_MINUS = 4, SEEN_BOTH = SEEN_PLUS | SEEN_MINUS };

struct judge {
    const void *in, *out;
    enum gpurun_dtype dtype, acc;
    int64_t n, op;
    bool is_real, exclusive;
    double unit; /* largest relative error of one addition */
    double most; /* largest finite result */
};

/* What a chunk found. */
struct verdict {
    int64_t wrong;
    double ratio, error, bound; /* where error / bound is largest */
};

/* --- elements ----------------------------------------------------------------------------------------- */

static uint64_t whole_at(const void *data, enum gpurun_dtype dtype, int64_t i)
{
    switch (dtype) {
    case GPURUN_UINT8:
        return ((const uint8_t *)data)[i];
    case GPURUN_INT32:
        return (uint64_t)(int64_t)((const int32_t *)data)[i];
    case GPURUN_UINT32:
        return ((const uint32_t *)data)[i];
    default:
        return ((const uint64_t *)data)[i];
    }
}

static double real_at(const void *data, enum gpurun_dtype dtype, int64_t i)
{
    return dtype == GPURUN_FLOAT ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static bool whole_above(const struct judge *j, uint64_t a, uint64_t b)
{
    const bool is_signed = j->acc == GPURUN_INT32 || j->acc == GPURUN_INT64;

    return is_signed ? (int64_t)a > (int64_t)b : a > b;
}

/* Whether results modulo 2^bits are the same. */
static bool whole_equal(const struct judge *j, uint64_t a, uint64_t b)
{
    return ((a ^ b) << (64 - 8 * gpurun_dtype_bytes(j->acc))) == 0;
}

/* --- the truth ---------------------------------------------------------------------------------------- */

static void add_exactly(struct truth *t, double x)
{
    const double sum = t->real + x, back = sum - x;
    const double error = (t->real - back) + (x - (sum - back));

    t->real = sum;
    t->low = isfinite(sum) ? t->low + error : 0.0;
}

static void take_real(const struct judge *j, struct truth *t, double x)
{
    if (j->op == SCAN_SUM)
        add_exactly(t, x);
    else if (isnan(x) || (!isnan(t->real) && (j->op == SCAN_MAX ? x > t->real : x < t->real)))
        t->real = x;
}

static void take_whole(const struct judge *j, struct truth *t, uint64_t x)
{
    if (j->op == SCAN_SUM)
        t->whole += x;
    else if (j->op == SCAN_MAX ? whole_above(j, x, t->whole) : whole_above(j, t->whole, x))
        t->whole = x;
}

/* A number's share in what bounds the error, or the special value that it is. */
static void take_magnitude(struct truth *t, double x)
{
    if (isfinite(x))
        t->magnitude += fabs(x);
    else
        t->seen |= isnan(x) ? SEEN_NAN : x > 0 ? SEEN_PLUS : SEEN_MINUS;
}

static void take_element(const struct judge *j, struct truth *t, int64_t i)
{
    if (j->is_real) {
        const double x = real_at(j->in, j->dtype, i);

        take_real(j, t, x);
        take_magnitude(t, x);
    } else {
        take_whole(j, t, whole_at(j->in, j->dtype, i));
    }
}

static void take_chunk(const struct judge *j, struct truth *t, const struct truth *chunk)
{
    if (!j->is_real) {
        take_whole(j, t, chunk->whole);
        return;
    }
    take_real(j, t, chunk->real);
    if (j->op == SCAN_SUM && isfinite(t->real))
        add_exactly(t, chunk->low);
    t->magnitude += chunk->magnitude;
    t->seen |= chunk->seen;
}

/* --- judging ------------------------------------------------------------------------------------------ */

static double bound_at(const struct judge *j, const struct truth *t)
{
    return j->op == SCAN_SUM && j->is_real ? SCAN_CHAIN * j->unit * t->magnitude : 0.0;
}

static void note_error(struct verdict *v, double error, double bound)
{
    const double ratio = error > 0 ? error / bound : 0.0;

    if (ratio < v->ratio || (ratio <= v->ratio && error <= v->error && bound <= v->bound) ||
        !isfinite(error))
        return;
    v->ratio = ratio;
    v->error = error;
    v->bound = bound;
}

static bool is_close(const struct judge *j, const struct truth *t, double got, struct verdict *v)
{
    const double error = fabs((got - t->real) - t->low), bound = bound_at(j, t);

    note_error(v, error, bound);
    return error <= bound;
}

static bool order_is_right(const struct judge *j, const struct truth *t, double got,
                           struct verdict *v)
{
    if (isnan(t->real))
        return isnan(got);
    if (isinf(t->real))
        return isinf(got) && (t->real > 0) == (got > 0);
    return is_close(j, t, got, v);
}

/* A magnitude above the largest number means that some order of the additions overflows: a result may then
 * be infinite where the truth is not, and NaN after that. */
static bool sum_is_right(const struct judge *j, const struct truth *t, double got,
                         struct verdict *v)
{
    const unsigned infinite = t->seen & SEEN_BOTH;

    if ((t->seen & SEEN_NAN) || infinite == SEEN_BOTH)
        return isnan(got);
    if (!(t->magnitude * (1 + SCAN_CHAIN * j->unit) <= j->most) && !isfinite(got))
        return true;
    if (infinite)
        return isinf(got) && (infinite == SEEN_PLUS) == (got > 0);
    if (!(t->magnitude <= DBL_MAX))
        return true; /* the truth has overflowed itself */
    return is_close(j, t, got, v);
}

static bool is_right(const struct judge *j, const struct truth *t, int64_t i, struct verdict *v)
{
    if (j->is_real && j->op == SCAN_SUM)
        return sum_is_right(j, t, real_at(j->out, j->acc, i), v);
    if (j->is_real)
        return order_is_right(j, t, real_at(j->out, j->acc, i), v);
    return whole_equal(j, whole_at(j->out, j->acc, i), t->whole);
}

static int64_t chunk_end(const struct judge *j, int64_t chunk)
{
    return (chunk + 1) * CHUNK < j->n ? (chunk + 1) * CHUNK : j->n;
}

static void sum_chunk(const struct judge *j, int64_t chunk, struct truth *t)
{
    for (int64_t i = chunk * CHUNK; i < chunk_end(j, chunk); i++)
        take_element(j, t, i);
}

/* Follows the truth `t` through a chunk; `tell` is NULL, or says each wrong element. */
static struct verdict judge_chunk(const struct judge *j, int64_t chunk, struct truth t,
                                  void (*tell)(void *to, const struct truth *t, int64_t i),
                                  void *to)
{
    struct verdict v = {0, 0.0, 0.0, 0.0};

    for (int64_t i = chunk * CHUNK; i < chunk_end(j, chunk); i++) {
        if (!j->exclusive)
            take_element(j, &t, i);
        if (!is_right(j, &t, i, &v)) {
            v.wrong++;
            if (tell)
                tell(to, &t, i);
        }
        if (j->exclusive)
            take_element(j, &t, i);
    }
    return v;
}

/* --- the whole answer --------------------------------------------------------------------------------- */

struct telling {
    struct gpurun_ctx *ctx;
    struct gpurun_proof *proof;
    const struct judge *judge;
};

static void tell_wrong(void *to, const struct truth *t, int64_t i)
{
    const struct telling *where = to;
    const struct judge *j = where->judge;

    if (j->is_real)
        gpurun_wrong(where->ctx, where->proof,
                     "out[%" PRId64 "] = %.17g, should be %.17g within %.3g", i,
                     real_at(j->out, j->acc, i), t->real + t->low, bound_at(j, t));
    else if (j->acc == GPURUN_INT32 || j->acc == GPURUN_INT64)
        gpurun_wrong(where->ctx, where->proof, "out[%" PRId64 "] = %" PRId64 ", should be %" PRId64,
                     i, (int64_t)whole_at(j->out, j->acc, i),
                     j->acc == GPURUN_INT32 ? (int64_t)(int32_t)t->whole : (int64_t)t->whole);
    else
        gpurun_wrong(where->ctx, where->proof, "out[%" PRId64 "] = %" PRIu64 ", should be %" PRIu64,
                     i, whole_at(j->out, j->acc, i),
                     t->whole & (UINT64_MAX >> (64 - 8 * gpurun_dtype_bytes(j->acc))));
}

static struct truth truth_of(struct scan_number number)
{
    return (struct truth){number.whole, number.real, 0.0, 0.0, 0};
}

/* Leaves in `at` what is before each chunk. */
static void find_truth(const struct gpurun_ctx *ctx, const struct judge *j, struct truth *at,
                       int64_t chunks)
{
    const struct scan_state *s = scan_state_of(ctx);
    struct truth before = truth_of(s->init);

    take_magnitude(&before, s->init.real);
#pragma omp parallel for num_threads(ctx->threads) schedule(static)
    for (int64_t c = 0; c < chunks; c++) {
        at[c] = truth_of(s->identity);
        sum_chunk(j, c, &at[c]);
    }
    for (int64_t c = 0; c < chunks; c++) {
        const struct truth chunk = at[c];

        at[c] = before;
        take_chunk(j, &before, &chunk);
    }
}

static void judge_chunks(struct gpurun_ctx *ctx, struct gpurun_proof *proof, const struct judge *j,
                         const struct truth *at, struct verdict *found, int64_t chunks)
{
    struct telling where = {ctx, proof, j};
    struct verdict worst = {0, 0.0, 0.0, 0.0};

#pragma omp parallel for num_threads(ctx->threads) schedule(static)
    for (int64_t c = 0; c < chunks; c++)
        found[c] = judge_chunk(j, c, at[c], NULL, NULL);
    for (int64_t c = 0; c < chunks; c++) {
        if (found[c].wrong > 0)
            judge_chunk(j, c, at[c], tell_wrong, &where);
        note_error(&worst, found[c].error, found[c].bound);
    }
    proof->worst_error = worst.error;
    proof->bound = worst.bound;
    proof->checked = j->n;
}

static struct judge judge_for(const struct gpurun_ctx *ctx)
{
    const struct scan_options *o = scan_options_of(ctx);
    const struct scan_state *s = scan_state_of(ctx);
    const bool is_float = s->acc == GPURUN_FLOAT;

    return (struct judge){
        .in = s->in->host,
        .out = s->out->host,
        .dtype = s->dtype,
        .acc = s->acc,
        .n = o->n,
        .op = o->op,
        .is_real = s->is_real,
        .exclusive = o->kind == SCAN_EXCLUSIVE,
        .unit = is_float ? FLT_EPSILON / 2 : DBL_EPSILON / 2,
        .most = is_float ? (double)FLT_MAX : DBL_MAX,
    };
}

enum gpurun_status scan_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct judge j = judge_for(ctx);
    const int64_t chunks = (j.n + CHUNK - 1) / CHUNK;
    struct truth *at = malloc((size_t)chunks * sizeof(*at) + 1);
    struct verdict *found = malloc((size_t)chunks * sizeof(*found) + 1);
    enum gpurun_status status = GPURUN_OK;

    proof->mode = GPURUN_VERIFY_FULL;
    proof->detects = j.is_real && j.op == SCAN_SUM
                         ? "any error above 64 rounding units of the sum of absolute values"
                         : "any wrong value";
    if (at && found) {
        find_truth(ctx, &j, at, chunks);
        judge_chunks(ctx, proof, &j, at, found, chunks);
    } else {
        status = gpurun_fail(ctx, GPURUN_NO_MEMORY, "verify", "no host memory for sums of chunks");
    }
    free(at);
    free(found);
    return status;
}
