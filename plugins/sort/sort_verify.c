/*
 * The proof. `full` compares with a reference that is found once per job. `certify` needs none: the answer is
 * in order and holds the same elements as the input, and elements that compare equal but differ stand in
 * the input's order.
 */
#include "sort_truth.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* n * log2(n), up to which `auto` is full. */
#define AUTO_FULL_COST 134217728.0

/* --- the same elements ------------------------------------------------------------------------------- */

/* The sum over elements of a hash whose key is drawn anew for each proof: two of 64 bits, independent. */
struct fingerprint {
    uint64_t first, second;
};

/* All bits of x decide each bit of the result. */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t hash(uint64_t element, uint64_t value, const uint64_t *secret)
{
    return mix((mix(element ^ secret[0]) + value) ^ secret[1]);
}

static inline uint64_t bits_at(const void *data, int64_t i, size_t bytes)
{
    if (bytes == 0)
        return 0;
    return bytes == 4 ? ((const uint32_t *)data)[i] : ((const uint64_t *)data)[i];
}

static struct fingerprint fingerprint_of(const struct gpurun_ctx *ctx, const void *keys,
                                         const void *values, const uint64_t secret[4])
{
    const struct sort_state *s = sort_state_of(ctx);
    const size_t elem_bytes = s->elem_bytes, value_bytes = s->value_bytes;
    const int64_t n = sort_options_of(ctx)->n;
    uint64_t first = 0, second = 0;

#pragma omp parallel for num_threads(ctx->threads) reduction(+ : first, second)
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = bits_at(keys, i, elem_bytes);
        const uint64_t value = bits_at(values, i, value_bytes);

        first += hash(key, value, secret);
        second += hash(key, value, secret + 2);
    }
    return (struct fingerprint){first, second};
}

static enum gpurun_status check_same_elements(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct sort_state *s = sort_state_of(ctx);
    const bool has_values = s->value_bytes > 0;
    struct fingerprint in, out;
    uint64_t secret[4];

    if (getentropy(secret, sizeof(secret)) != 0)
        return gpurun_fail(ctx, GPURUN_ERROR, "verify", "no random numbers to certify with");
    in = fingerprint_of(ctx, s->keys->host, has_values ? s->values->host : NULL, secret);
    out = fingerprint_of(ctx, s->sorted->host, has_values ? s->sorted_values->host : NULL, secret);
    if (in.first != out.first || in.second != out.second)
        gpurun_wrong(ctx, proof, "the answer does not hold the %s of the input",
                     has_values ? "keys with the values" : "keys");
    return GPURUN_OK;
}

/* --- in order ------------------------------------------------------------------------------------------ */

/* What one look at each pair of neighbours finds wrong. */
struct faults {
    int64_t count, first;
};

static void report(struct gpurun_ctx *ctx, struct gpurun_proof *proof, struct faults f,
                   const char *what)
{
    if (f.count > 0)
        gpurun_wrong(ctx, proof, "%" PRId64 " elements %s, the first of them sorted[%" PRId64 "]",
                     f.count, what, f.first);
}

static void check_order(struct gpurun_ctx *ctx, struct gpurun_proof *proof,
                        const struct sort_judge *j)
{
    const void *sorted = sort_state_of(ctx)->sorted->host;
    int64_t count = 0, first = j->n;

#pragma omp parallel for num_threads(j->threads) reduction(+ : count) reduction(min : first)
    for (int64_t i = 1; i < j->n; i++) {
        if (j->compare(sorted, i - 1, i, j->descending) <= 0)
            continue;
        count++;
        first = i < first ? i : first;
    }
    report(ctx, proof, (struct faults){count, first}, "belong before the one that they follow");
}

/* Whether each value of the input is above the one before it: then they tell the order of the input. */
static bool values_ascend(const struct gpurun_ctx *ctx)
{
    const struct sort_state *s = sort_state_of(ctx);
    const int64_t n = sort_options_of(ctx)->n;
    int64_t falls = 0;

#pragma omp parallel for num_threads(ctx->threads) reduction(+ : falls)
    for (int64_t i = 1; i < n; i++)
        falls += bits_at(s->values->host, i - 1, s->value_bytes) >=
                 bits_at(s->values->host, i, s->value_bytes);
    return falls == 0;
}

/* Pairs whose values ascend in the input: they ascend among equal keys of a stable answer. */
static void check_values_order(struct gpurun_ctx *ctx, struct gpurun_proof *proof,
                               const struct sort_judge *j)
{
    const struct sort_state *s = sort_state_of(ctx);
    const void *sorted = s->sorted->host, *values = s->sorted_values->host;
    int64_t count = 0, first = j->n;

#pragma omp parallel for num_threads(j->threads) reduction(+ : count) reduction(min : first)
    for (int64_t i = 1; i < j->n; i++) {
        if (j->compare(sorted, i - 1, i, j->descending) != 0 ||
            bits_at(values, i - 1, s->value_bytes) < bits_at(values, i, s->value_bytes))
            continue;
        count++;
        first = i < first ? i : first;
    }
    report(ctx, proof, (struct faults){count, first}, "are not in the input's order among equals");
}

/* Which elements of an array compare equal though their bits may differ. */
enum band { BAND_NONE, BAND_ZERO, BAND_NAN };

static enum band band_at(const struct sort_state *s, const void *data, int64_t i)
{
    const double x =
        s->elem_bytes == 4 ? (double)((const float *)data)[i] : ((const double *)data)[i];

    return isnan(x) ? BAND_NAN : x <= 0 && x >= 0 ? BAND_ZERO : BAND_NONE;
}

/* Reals: zeros, and NaNs where they are one value, follow each other as in the input. */
static void check_band(struct gpurun_ctx *ctx, struct gpurun_proof *proof, enum band band)
{
    const struct sort_state *s = sort_state_of(ctx);
    const void *in = s->keys->host, *out = s->sorted->host;
    const int64_t n = sort_options_of(ctx)->n;
    struct faults f = {0, n};
    int64_t at = 0;

    for (int64_t i = 0; i < n; i++) {
        if (band_at(s, in, i) != band)
            continue;
        while (at < n && band_at(s, out, at) != band)
            at++;
        if (at < n && bits_at(in, i, s->elem_bytes) != bits_at(out, at, s->elem_bytes)) {
            f.first = f.count == 0 ? at : f.first;
            f.count++;
        }
        at++;
    }
    report(ctx, proof, f, "are not in the input's order among equals");
}

static enum gpurun_status certify(struct gpurun_ctx *ctx, struct gpurun_proof *proof,
                                  const struct sort_judge *j)
{
    const struct sort_state *s = sort_state_of(ctx);

    check_order(ctx, proof, j);
    if (s->value_bytes > 0) {
        check_values_order(ctx, proof, j);
    } else if (s->map.is_real) {
        check_band(ctx, proof, BAND_ZERO);
        if (!j->by_bits)
            check_band(ctx, proof, BAND_NAN);
    }
    return check_same_elements(ctx, proof);
}

/* --- full ------------------------------------------------------------------------------------------------ */

static bool same_bits(const void *a, int64_t i, const void *b, int64_t k, size_t bytes)
{
    return bits_at(a, i, bytes) == bits_at(b, k, bytes);
}

static enum gpurun_status check_against_truth(struct gpurun_ctx *ctx, struct gpurun_proof *proof,
                                              const struct sort_judge *j)
{
    struct sort_state *s = sort_state_of(ctx);
    int64_t **truth = &s->truth[j->by_bits];

    if (!*truth)
        *truth = sort_truth_find(j, s->keys->host);
    if (!*truth)
        return gpurun_fail(ctx, GPURUN_NO_MEMORY, "verify", "no host memory for the reference");
    for (int64_t i = 0; i < j->n; i++) {
        const int64_t from = (*truth)[i];

        if (!same_bits(s->sorted->host, i, s->keys->host, from, s->elem_bytes))
            gpurun_wrong(ctx, proof, "sorted[%" PRId64 "] is not element %" PRId64, i, from);
        else if (s->value_bytes > 0 &&
                 !same_bits(s->sorted_values->host, i, s->values->host, from, s->value_bytes))
            gpurun_wrong(ctx, proof, "sorted_values[%" PRId64 "] is not value %" PRId64, i, from);
    }
    return GPURUN_OK;
}

/* --- one step of quicksort ------------------------------------------------------------------------------- */

/* Below the band all elements go before the pivot, in it they equal the pivot, above it they go after. */
static enum gpurun_status check_partition(struct gpurun_ctx *ctx, struct gpurun_proof *proof,
                                          const struct sort_judge *j)
{
    const struct sort_state *s = sort_state_of(ctx);
    const int64_t *bounds = s->bounds->host, begin = bounds[0], end = bounds[1];
    const void *sorted = s->sorted->host;
    int64_t count = 0, first = j->n;

    if (begin < 0 || begin > end || end > j->n || (j->n > 0 && begin == end)) {
        gpurun_wrong(ctx, proof,
                     "bounds %" PRId64 " and %" PRId64 " are no band of %" PRId64 " elements",
                     begin, end, j->n);
        return GPURUN_OK;
    }
#pragma omp parallel for num_threads(j->threads) reduction(+ : count) reduction(min : first)
    for (int64_t i = 0; i < j->n; i++) {
        const int c = j->compare(sorted, i, begin, j->descending);

        if (i < begin ? c < 0 : i < end ? c == 0 : c > 0)
            continue;
        count++;
        first = i < first ? i : first;
    }
    report(ctx, proof, (struct faults){count, first}, "are on the wrong side of the pivot");
    return check_same_elements(ctx, proof);
}

/* --- the whole answer -------------------------------------------------------------------------------------- */

/* What was asked for, or what can be afforded. Pairs whose values do not ascend can only be proved stable
 * against the reference. */
static enum gpurun_verify choose_mode(const struct gpurun_ctx *ctx, enum gpurun_verify asked)
{
    const double n = (double)sort_options_of(ctx)->n;

    if (sort_is_one_step(ctx))
        return GPURUN_VERIFY_CERTIFY;
    if (asked == GPURUN_VERIFY_AUTO)
        asked = n * log2(n + 1) <= AUTO_FULL_COST ? GPURUN_VERIFY_FULL : GPURUN_VERIFY_CERTIFY;
    if (asked == GPURUN_VERIFY_CERTIFY && sort_state_of(ctx)->value_bytes > 0 &&
        !values_ascend(ctx))
        return GPURUN_VERIFY_FULL;
    return asked;
}

enum gpurun_status sort_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct sort_judge j = sort_judge_for(ctx, proof->relaxed);

    proof->mode = choose_mode(ctx, proof->mode);
    proof->checked = j.n;
    proof->bound = 0;
    if (sort_is_one_step(ctx)) {
        proof->detects = "any element on the wrong side, lost, doubled or changed";
        return check_partition(ctx, proof, &j);
    }
    proof->detects = "any element out of order, lost, doubled, changed or unstable";
    return proof->mode == GPURUN_VERIFY_FULL ? check_against_truth(ctx, proof, &j)
                                             : certify(ctx, proof, &j);
}
