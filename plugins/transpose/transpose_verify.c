/*
 * The proof: every element of the answer against the element of the input that belongs there, bit by bit. The
 * answer is walked row by row and the input looked up, in blocks of columns that a cache holds; nothing is
 * shared with run_cpu. In place the input is the core's copy of it.
 */
#include "transpose.h"
#include <inttypes.h>
#include <string.h>

enum { BLOCK = 64, SHOWN = 10 };

/* What is compared: `rows` and `cols` are the answer's. */
struct judge {
    const unsigned char *in, *out;
    enum gpurun_dtype dtype;
    size_t size;
    int64_t rows, cols, batch;
    bool by_value;
};

/* Equal as numbers, or both NaN. */
static bool same_number(enum gpurun_dtype dtype, const void *a, const void *b)
{
    float x, y;
    double u, v;

    if (dtype == GPURUN_FLOAT) {
        memcpy(&x, a, sizeof(x));
        memcpy(&y, b, sizeof(y));
        return (x <= y && x >= y) || (x != x && y != y);
    }
    memcpy(&u, a, sizeof(u));
    memcpy(&v, b, sizeof(v));
    return (u <= v && u >= v) || (u != u && v != v);
}

/* Row i and column k of matrix m of the answer. */
static bool is_right(const struct judge *j, int64_t m, int64_t i, int64_t k)
{
    const size_t matrix = (size_t)(m * j->rows * j->cols);
    const unsigned char *got = j->out + (matrix + (size_t)(i * j->cols + k)) * j->size;
    const unsigned char *right = j->in + (matrix + (size_t)(k * j->rows + i)) * j->size;

    return memcmp(got, right, j->size) == 0 || (j->by_value && same_number(j->dtype, got, right));
}

/* How many elements of matrix m's rows [first, last) are wrong; is_right decides where bits differ. */
#define DEFINE_COUNT(bits)                                                                         \
    static int64_t count_##bits(const struct judge *j, int64_t m, int64_t first, int64_t last)     \
    {                                                                                              \
        const size_t matrix = (size_t)(m * j->rows * j->cols);                                     \
        const bits *out = (const bits *)(const void *)j->out + matrix;                             \
        const bits *in = (const bits *)(const void *)j->in + matrix;                               \
        int64_t wrong = 0;                                                                         \
                                                                                                   \
        for (int64_t begin = 0; begin < j->cols; begin += BLOCK) {                                 \
            const int64_t end = j->cols - begin < BLOCK ? j->cols : begin + BLOCK;                 \
                                                                                                   \
            for (int64_t i = first; i < last; i++)                                                 \
                for (int64_t k = begin; k < end; k++)                                              \
                    if (out[i * j->cols + k] != in[k * j->rows + i])                               \
                        wrong += !is_right(j, m, i, k);                                            \
        }                                                                                          \
        return wrong;                                                                              \
    }

DEFINE_COUNT(uint8_t)
DEFINE_COUNT(uint16_t)
DEFINE_COUNT(uint32_t)
DEFINE_COUNT(uint64_t)

static int64_t count_wrong(const struct judge *j, int64_t m, int64_t first, int64_t last)
{
    switch (j->size) {
    case 1:
        return count_uint8_t(j, m, first, last);
    case 2:
        return count_uint16_t(j, m, first, last);
    case 4:
        return count_uint32_t(j, m, first, last);
    default:
        return count_uint64_t(j, m, first, last);
    }
}

static void note_wrong(struct gpurun_ctx *ctx, struct gpurun_proof *proof, int64_t m, int64_t i,
                       int64_t k)
{
    gpurun_wrong(ctx, proof,
                 "matrix %" PRId64 ", row %" PRId64 ", column %" PRId64
                 " is not the input's row %" PRId64 ", column %" PRId64,
                 m, i, k, k, i);
}

/* Names the first wrong elements; proof->wrong ends up at `wrong`. */
static void report(struct gpurun_ctx *ctx, struct gpurun_proof *proof, const struct judge *j,
                   int64_t wrong)
{
    int64_t named = 0;

    for (int64_t m = 0; m < j->batch; m++)
        for (int64_t i = 0; i < j->rows; i++)
            for (int64_t k = 0; k < j->cols; k++) {
                if (is_right(j, m, i, k))
                    continue;
                note_wrong(ctx, proof, m, i, k);
                if (++named < SHOWN && named < wrong)
                    continue;
                proof->wrong += wrong - named;
                return;
            }
}

static int64_t count_all(const struct gpurun_ctx *ctx, const struct judge *j)
{
    const int64_t strips = (j->rows + BLOCK - 1) / BLOCK;
    int64_t wrong = 0;

#pragma omp parallel for num_threads(ctx->threads) schedule(static) reduction(+ : wrong)           \
    if (strips * j->batch > 1)
    for (int64_t n = 0; n < strips * j->batch; n++) {
        const int64_t first = n % strips * BLOCK;

        wrong +=
            count_wrong(j, n / strips, first, j->rows - first < BLOCK ? j->rows : first + BLOCK);
    }
    return wrong;
}

enum gpurun_status transpose_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    const struct transpose_state *s = transpose_state_of(ctx);
    struct judge j = {.out = s->out->host,
                      .dtype = s->in->dtype,
                      .size = transpose_elem_bytes(ctx),
                      .rows = o->cols,
                      .cols = o->rows,
                      .batch = o->batch};
    int64_t wrong;

    j.in = o->inplace ? s->in->original : s->in->host;
    j.by_value = s->by_value && (j.dtype == GPURUN_FLOAT || j.dtype == GPURUN_DOUBLE);
    wrong = count_all(ctx, &j);
    if (wrong > 0)
        report(ctx, proof, &j, wrong);
    proof->mode = GPURUN_VERIFY_FULL;
    proof->checked = s->out->elems;
    proof->bound = 0;
    proof->worst_error = 0;
    proof->detects =
        j.by_value ? "any wrong number; which NaN it is does not count" : "any wrong bit";
    return GPURUN_OK;
}
