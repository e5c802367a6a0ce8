/*
 * The proof: every sum and every element, worked out again in the plainest way. All answers are exact: the
 * product is rounded, then the sum. Which NaN a computed one is does not count.
 */
#include "bandwidth.h"
#include <inttypes.h>
#include <string.h>

enum { SHOWN = 10 };

static uint32_t word_at(const struct gpurun_tensor *t, int64_t i)
{
    uint32_t word;

    memcpy(&word, (const char *)t->host + (size_t)i * sizeof(word), sizeof(word));
    return word;
}

static float real_of(uint32_t bits)
{
    float real;

    memcpy(&real, &bits, sizeof(real));
    return real;
}

static uint32_t bits_of(float real)
{
    uint32_t bits;

    memcpy(&bits, &real, sizeof(bits));
    return bits;
}

static bool is_nan(uint32_t bits)
{
    return (bits & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000);
}

static uint32_t product_of(const struct bandwidth_state *s, uint32_t x)
{
    return s->is_real ? bits_of(real_of(s->value) * real_of(x)) : s->value * x;
}

static uint32_t total_of(const struct bandwidth_state *s, uint32_t x, uint32_t y)
{
    return s->is_real ? bits_of(real_of(x) + real_of(y)) : x + y;
}

static uint32_t right_at(const struct gpurun_ctx *ctx, int64_t i)
{
    const struct bandwidth_state *s = bandwidth_state_of(ctx);

    switch ((enum bandwidth_kind)bandwidth_options_of(ctx)->kind) {
    case BANDWIDTH_WRITE:
        return s->value;
    case BANDWIDTH_COPY:
        return word_at(s->in, i);
    case BANDWIDTH_SCALE:
        return product_of(s, word_at(s->in, i));
    default:
        return total_of(s, word_at(s->addend, i), product_of(s, word_at(s->in, i)));
    }
}

static bool is_right(const struct gpurun_ctx *ctx, int64_t i)
{
    const struct bandwidth_state *s = bandwidth_state_of(ctx);
    const uint32_t right = right_at(ctx, i), got = word_at(s->out, i);
    const bool is_computed = s->is_real && bandwidth_options_of(ctx)->kind >= BANDWIDTH_SCALE;

    return got == right || (is_computed && is_nan(got) && is_nan(right));
}

static uint64_t right_sum(const struct gpurun_ctx *ctx, int64_t piece)
{
    const int64_t n = bandwidth_options_of(ctx)->n, begin = piece * BANDWIDTH_PIECE;
    uint64_t sum = 0;

    for (int64_t i = begin; i < n && i < begin + BANDWIDTH_PIECE; i++)
        sum += word_at(bandwidth_state_of(ctx)->in, i);
    return sum;
}

static uint64_t sum_at(const struct gpurun_ctx *ctx, int64_t piece)
{
    return ((const uint64_t *)bandwidth_state_of(ctx)->sums->host)[piece];
}

static bool is_right_sum(const struct gpurun_ctx *ctx, int64_t piece)
{
    return sum_at(ctx, piece) == right_sum(ctx, piece);
}

static void note_wrong(struct gpurun_ctx *ctx, struct gpurun_proof *proof, int64_t i)
{
    const struct bandwidth_state *s = bandwidth_state_of(ctx);
    const int kind = (int)bandwidth_options_of(ctx)->kind;

    if (kind == BANDWIDTH_READ)
        gpurun_wrong(ctx, proof, "sums[%" PRId64 "] is %" PRIu64 ", not %" PRIu64, i,
                     sum_at(ctx, i), right_sum(ctx, i));
    else if (s->is_real)
        gpurun_wrong(ctx, proof,
                     "out[%" PRId64 "] is %.9g (%08" PRIx32 "), not %.9g (%08" PRIx32 ")", i,
                     (double)real_of(word_at(s->out, i)), word_at(s->out, i),
                     (double)real_of(right_at(ctx, i)), right_at(ctx, i));
    else
        gpurun_wrong(ctx, proof, "out[%" PRId64 "] is %" PRIu32 ", not %" PRIu32, i,
                     word_at(s->out, i), right_at(ctx, i));
}

typedef bool is_right_at(const struct gpurun_ctx *ctx, int64_t i);

static int64_t count_wrong(const struct gpurun_ctx *ctx, is_right_at *right, int64_t elems)
{
    int64_t wrong = 0;

#pragma omp parallel for num_threads(ctx->threads) schedule(static) reduction(+ : wrong)           \
    if (elems > BANDWIDTH_PIECE)
    for (int64_t i = 0; i < elems; i++)
        wrong += !right(ctx, i);
    return wrong;
}

enum gpurun_status bandwidth_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const bool is_read = bandwidth_options_of(ctx)->kind == BANDWIDTH_READ;
    is_right_at *const right = is_read ? is_right_sum : is_right;
    const struct bandwidth_state *s = bandwidth_state_of(ctx);
    const int64_t elems = is_read ? s->pieces : s->out->elems;
    const int64_t wrong = count_wrong(ctx, right, elems);
    int64_t named = 0;

    for (int64_t i = 0; named < wrong && named < SHOWN; i++)
        if (!right(ctx, i)) {
            note_wrong(ctx, proof, i);
            named++;
        }
    proof->wrong += wrong - named;
    proof->mode = GPURUN_VERIFY_FULL;
    proof->checked = bandwidth_options_of(ctx)->n;
    proof->bound = 0;
    proof->worst_error = 0;
    proof->detects = is_read ? "any sum that is not that of its piece's elements"
                             : "any wrong bit; which NaN a computed one is does not count";
    return GPURUN_OK;
}
