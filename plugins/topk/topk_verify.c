/*
 * The proof. `full` compares with a reference that is found once per job; `certify` needs none, and
 * counts in one pass over the row what the answer must not have left out.
 */
#include "topk_truth.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PARALLEL_ELEMS = 1 << 16 }; /* shorter rows are counted by one thread */

/* rows * n * bits of k + 1, up to which `auto` is full. */
#define AUTO_FULL_COST 268435456.0

/* --- one row of an answer --------------------------------------------------------------------------- */

struct answer {
    int64_t row, count;
    const char *values;
    const int64_t *indices;
    int64_t *sorted, *spare; /* indices in order, and as much room again */
    const int64_t *truth;    /* full: the right indices, best first */
    int64_t truth_count;
};

/* Counts, ranges and values: what must hold before an index may be followed. */
static bool check_values(struct gpurun_ctx *ctx, struct gpurun_proof *proof,
                         const struct topk_judge *j, const struct answer *a)
{
    const size_t size = topk_state_of(ctx)->elem_bytes;
    const char *in = j->row;
    bool in_range = true;

    if (a->count < 0 || a->count > j->k || (!j->distinct && a->count != j->k)) {
        gpurun_wrong(ctx, proof, "row %" PRId64 ": count is %" PRId64 ", k is %" PRId64, a->row,
                     a->count, j->k);
        return false;
    }
    for (int64_t i = 0; i < a->count; i++) {
        const int64_t index = a->indices[i];

        if (index < 0 || index >= j->n) {
            gpurun_wrong(ctx, proof,
                         "row %" PRId64 ": indices[%" PRId64 "] = %" PRId64 " is not below n",
                         a->row, i, index);
            in_range = false;
        } else if (memcmp(a->values + (size_t)i * size, in + (size_t)index * size, size) != 0) {
            gpurun_wrong(ctx, proof, "row %" PRId64 ": values[%" PRId64 "] is not element %" PRId64,
                         a->row, i, index);
        }
    }
    return in_range;
}

/* Fills a->sorted and looks for an index that occurs twice. */
static void check_repeats(struct gpurun_ctx *ctx, struct gpurun_proof *proof,
                          const struct topk_judge *j, const struct answer *a)
{
    memcpy(a->sorted, a->indices, (size_t)a->count * sizeof(*a->sorted));
    topk_sort_indices(j, a->sorted, a->spare, a->count);
    for (int64_t i = 1; i < a->count; i++)
        if (a->sorted[i] == a->sorted[i - 1])
            gpurun_wrong(ctx, proof, "row %" PRId64 ": index %" PRId64 " occurs twice", a->row,
                         a->sorted[i]);
}

static void check_against_truth(struct gpurun_ctx *ctx, struct gpurun_proof *proof,
                                const struct topk_judge *j, const struct answer *a)
{
    const int64_t *got = j->ordered ? a->indices : a->sorted;
    const int64_t count = a->count < a->truth_count ? a->count : a->truth_count;

    if (a->count != a->truth_count)
        gpurun_wrong(ctx, proof, "row %" PRId64 ": count is %" PRId64 ", should be %" PRId64,
                     a->row, a->count, a->truth_count);
    for (int64_t i = 0; i < count; i++) {
        const bool right =
            j->ties_any ? topk_better(j, got[i], a->truth[i]) == 0 : got[i] == a->truth[i];

        if (!right)
            gpurun_wrong(ctx, proof,
                         "row %" PRId64 ": place %" PRId64 " holds element %" PRId64
                         ", should be element %" PRId64,
                         a->row, i, got[i], a->truth[i]);
    }
}

/* Each place against the one before it. */
static void check_order(struct gpurun_ctx *ctx, struct gpurun_proof *proof,
                        const struct topk_judge *j, const struct answer *a)
{
    const int64_t *got = j->ordered ? a->indices : a->sorted;

    for (int64_t i = 1; i < a->count; i++) {
        const int c = topk_better(j, got[i - 1], got[i]);
        const bool tie_right = !j->distinct && (j->ties_any || got[i - 1] < got[i]);

        if (!(c > 0 || (c == 0 && tie_right)))
            gpurun_wrong(ctx, proof,
                         "row %" PRId64 ": elements %" PRId64 " and %" PRId64 " at places %" PRId64
                         " and %" PRId64 " are %s",
                         a->row, got[i - 1], got[i], i - 1, i,
                         c == 0 && j->distinct ? "equal" : "in the wrong order");
    }
}

/* Plain: as many elements of the row as of the answer must beat its last, and no element equal to the last
 * but left out may have a lower index. */
static void check_nothing_missed(struct gpurun_ctx *ctx, struct gpurun_proof *proof,
                                 const struct topk_judge *j, const struct answer *a)
{
    const int64_t last = a->count > 0 ? a->sorted[a->count - 1] : 0;
    int64_t in_row = 0, ties_in_row = 0, in_answer = 0, ties_in_answer = 0;

    if (a->count == 0)
        return;
    for (int64_t i = 0; i < a->count; i++) {
        in_answer += topk_better(j, a->sorted[i], last) > 0;
        ties_in_answer += topk_better(j, a->sorted[i], last) == 0 && a->sorted[i] < last;
    }
#pragma omp parallel for num_threads(j->threads) reduction(+ : in_row, ties_in_row) if (j->n > PARALLEL_ELEMS)
    for (int64_t i = 0; i < j->n; i++) {
        const int c = topk_better(j, i, last);
        in_row += c > 0;
        ties_in_row += c == 0 && i < last;
    }
    if (in_row != in_answer)
        gpurun_wrong(ctx, proof,
                     "row %" PRId64 ": %" PRId64 " elements beat its last, %" PRId64
                     " were selected",
                     a->row, in_row, in_answer);
    if (!j->ties_any && ties_in_row != ties_in_answer)
        gpurun_wrong(ctx, proof,
                     "row %" PRId64 ": %" PRId64
                     " elements equal to its last have a lower index, %" PRId64 " were selected",
                     a->row, ties_in_row, ties_in_answer);
}

/* Whether the answer holds element i's value, at i or before. */
static bool is_covered(const struct topk_judge *j, const struct answer *a, int64_t i)
{
    int64_t low = 0, high = a->count;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int c = topk_better(j, i, a->sorted[middle]);

        if (c == 0)
            return j->ties_any || a->sorted[middle] <= i;
        if (c > 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

/* Distinct: every element that is not worse than the last must be in the answer; with fewer than k, all. */
static void check_all_covered(struct gpurun_ctx *ctx, struct gpurun_proof *proof,
                              const struct topk_judge *j, const struct answer *a)
{
    const int64_t last = a->count == j->k && a->count > 0 ? a->sorted[a->count - 1] : -1;
    int64_t missed = 0, first = j->n;

    if (j->k == 0)
        return;
#pragma omp parallel for num_threads(j->threads) reduction(+ : missed) reduction(min : first) if (j->n > PARALLEL_ELEMS)
    for (int64_t i = 0; i < j->n; i++) {
        if ((last >= 0 && topk_better(j, i, last) < 0) || is_covered(j, a, i))
            continue;
        missed++;
        first = i < first ? i : first;
    }
    if (missed > 0)
        gpurun_wrong(ctx, proof,
                     "row %" PRId64 ": %" PRId64
                     " elements are not covered, the first is element %" PRId64,
                     a->row, missed, first);
}

static void judge_row(struct gpurun_ctx *ctx, struct gpurun_proof *proof,
                      const struct topk_judge *j, const struct answer *a)
{
    if (!check_values(ctx, proof, j, a))
        return;
    proof->checked += a->count;
    check_repeats(ctx, proof, j, a);
    if (a->truth) {
        check_against_truth(ctx, proof, j, a);
        return;
    }
    check_order(ctx, proof, j, a);
    if (j->distinct)
        check_all_covered(ctx, proof, j, a);
    else
        check_nothing_missed(ctx, proof, j, a);
}

/* --- the whole answer --------------------------------------------------------------------------------- */

/* What was asked for, or what can be afforded. */
static enum gpurun_verify choose_mode(const struct topk_options *o, enum gpurun_verify asked)
{
    const int bits = 64 - __builtin_clzll((unsigned long long)o->k + 1);
    const double cost = (double)o->rows * (double)o->n * bits;

    if (asked != GPURUN_VERIFY_AUTO)
        return asked;
    return cost <= AUTO_FULL_COST ? GPURUN_VERIFY_FULL : GPURUN_VERIFY_CERTIFY;
}

static void judge_rows(struct gpurun_ctx *ctx, struct gpurun_proof *proof, struct topk_judge j,
                       int64_t *room, const struct topk_truth *truth)
{
    const struct topk_options *o = topk_options_of(ctx);
    const struct topk_state *s = topk_state_of(ctx);

    for (int64_t row = 0; row < o->rows; row++) {
        const struct answer a = {
            .row = row,
            .count = ((const int64_t *)s->count->host)[row],
            .values = (const char *)s->values->host + (size_t)(row * o->k) * s->elem_bytes,
            .indices = (const int64_t *)s->indices->host + row * o->k,
            .sorted = room,
            .spare = room + o->k,
            .truth = truth ? truth->indices + row * o->k : NULL,
            .truth_count = truth ? truth->counts[row] : 0,
        };

        j.row = (const char *)s->in->host + (size_t)(row * o->n) * s->elem_bytes;
        judge_row(ctx, proof, &j, &a);
    }
}

/* One row after the other without gaps; entries past a row's count mean nothing. */
static void close_gaps(struct gpurun_tensor *tensor, const int64_t *counts, int64_t rows, int64_t k)
{
    const size_t size = gpurun_dtype_bytes(tensor->dtype);
    char *to = tensor->host;

    for (int64_t row = 0; row < rows; row++) {
        memmove(to, (char *)tensor->host + (size_t)(row * k) * size, (size_t)counts[row] * size);
        to += (size_t)counts[row] * size;
    }
}

/* Cuts the outputs to what there is: rows x c when all counts are c, else flat, for `count` to split. */
static void cut_outputs(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    struct topk_state *s = topk_state_of(ctx);
    struct gpurun_tensor *const outputs[] = {s->values, s->indices};
    const int64_t *counts = s->count->host;
    int64_t total = 0;
    bool is_even = true;

    for (int64_t row = 0; row < o->rows; row++) {
        if (counts[row] < 0 || counts[row] > o->k)
            return;
        total += counts[row];
        is_even = is_even && counts[row] == counts[0];
    }
    if (total == o->rows * o->k)
        return;
    for (size_t i = 0; i < GPURUN_COUNT(outputs); i++) {
        struct gpurun_tensor *t = outputs[i];

        close_gaps(t, counts, o->rows, o->k);
        if (!is_even)
            t->rank = 1;
        t->dims[t->rank - 1] = is_even ? counts[0] : total;
        t->elems = total;
        t->bytes = (size_t)total * gpurun_dtype_bytes(t->dtype);
    }
}

enum gpurun_status topk_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct topk_options *o = topk_options_of(ctx);
    struct topk_state *s = topk_state_of(ctx);
    const struct topk_judge j = topk_judge_for(ctx, proof->relaxed);
    const bool by_bits = s->is_real && (proof->relaxed & GPURUN_FLOAT_BY_BITS);
    struct topk_truth *truth = NULL;
    int64_t *room;

    proof->mode = choose_mode(o, proof->mode);
    proof->bound = 0;
    proof->detects =
        j.ordered ? "any wrong value, index, order or count" : "any wrong value, index or count";
    if (proof->mode == GPURUN_VERIFY_FULL) {
        truth = &s->truth[by_bits];
        if (!truth->counts)
            GPURUN_TRY(topk_truth_find(ctx, truth, j));
    }
    room = malloc((size_t)o->k * 2 * sizeof(*room) + 1);
    if (!room)
        return gpurun_fail(ctx, GPURUN_NO_MEMORY, "verify", "no host memory to sort the answer in");
    judge_rows(ctx, proof, j, room, truth);
    free(room);
    cut_outputs(ctx);
    return GPURUN_OK;
}
