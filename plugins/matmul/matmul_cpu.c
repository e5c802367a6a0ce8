/*
 * The baseline: blocks of the product, shared among threads. Each block is made by one thread, in an order
 * that does not depend on the others, so threads do not change a bit of the answer. Float and double go
 * through OpenBLAS where it was found, see matmul_blas.c.
 */
#include "gpurun/half.h"
#include "matmul.h"
#include <stdlib.h>
#include <string.h>

enum {
    CPU_M =
        96, /* rows, columns and depth of a block: its packed pieces stay in the cache of a core */
    CPU_N = 256,
    CPU_K = 256,
    CPU_ROWS =
        6, /* rows of a strip: with two vectors of columns twelve sums, which registers hold */
    CPU_VECTOR_BYTES = 32,
    CPU_ALIGNMENT = 64,
};

struct cpu_job {
    const struct matmul_layout *l;
    const void *a, *b, *c; /* c: NULL where beta is 0 */
    void *product;
    double alpha, beta;
    int64_t depth; /* k, or 0 where A and B do not matter */
};

/* A block of the product: from row i and column j, and at depth x of A and B. */
struct cpu_piece {
    int64_t batch, i, j, x;
    int64_t rows, cols, depth;
};

typedef void cpu_block(const struct cpu_job *job, struct cpu_piece p, void *room);

#define SAME(x)   (x)
#define WHOLE(x)  ((uint64_t)(int64_t)(x))
#define SINGLE(x) ((float)(x))

#define NAME(x) x##_uint32
#define ELEM    uint32_t
#define ACC     uint32_t
#define LOAD    SAME
#define STORE   SAME
#define FACTOR  WHOLE
#define TARGET
#include "matmul_cpu_kind.h"

#define NAME(x) x##_uint64
#define ELEM    uint64_t
#define ACC     uint64_t
#define LOAD    SAME
#define STORE   SAME
#define FACTOR  WHOLE
#define TARGET
#include "matmul_cpu_kind.h"

#define NAME(x) x##_float
#define ELEM    float
#define ACC     float
#define LOAD    SAME
#define STORE   SAME
#define FACTOR  SINGLE
#define TARGET
#include "matmul_cpu_kind.h"

#define NAME(x) x##_double
#define ELEM    double
#define ACC     double
#define LOAD    SAME
#define STORE   SAME
#define FACTOR  SAME
#define TARGET
#include "matmul_cpu_kind.h"

#define NAME(x)  x##_half
#define ELEM     uint16_t
#define ACC      float
#define LOAD     gpurun_half_to_float
#define STORE(x) gpurun_half_from_double((double)(x))
#define FACTOR   SINGLE
#define TARGET
#include "matmul_cpu_kind.h"

#define NAME(x)  x##_bfloat16
#define ELEM     uint16_t
#define ACC      float
#define LOAD     gpurun_bfloat16_to_float
#define STORE(x) gpurun_bfloat16_from_double((double)(x))
#define FACTOR   SINGLE
#define TARGET
#include "matmul_cpu_kind.h"

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2,fma")))

#define NAME(x) x##_uint32_avx2
#define ELEM    uint32_t
#define ACC     uint32_t
#define LOAD    SAME
#define STORE   SAME
#define FACTOR  WHOLE
#define TARGET  AVX2
#include "matmul_cpu_kind.h"

#define NAME(x) x##_uint64_avx2
#define ELEM    uint64_t
#define ACC     uint64_t
#define LOAD    SAME
#define STORE   SAME
#define FACTOR  WHOLE
#define TARGET  AVX2
#include "matmul_cpu_kind.h"

#define NAME(x) x##_float_avx2
#define ELEM    float
#define ACC     float
#define LOAD    SAME
#define STORE   SAME
#define FACTOR  SINGLE
#define TARGET  AVX2
#include "matmul_cpu_kind.h"

#define NAME(x) x##_double_avx2
#define ELEM    double
#define ACC     double
#define LOAD    SAME
#define STORE   SAME
#define FACTOR  SAME
#define TARGET  AVX2
#include "matmul_cpu_kind.h"

#define NAME(x)  x##_half_avx2
#define ELEM     uint16_t
#define ACC      float
#define LOAD     gpurun_half_to_float
#define STORE(x) gpurun_half_from_double((double)(x))
#define FACTOR   SINGLE
#define TARGET   AVX2
#include "matmul_cpu_kind.h"

#define NAME(x)  x##_bfloat16_avx2
#define ELEM     uint16_t
#define ACC      float
#define LOAD     gpurun_bfloat16_to_float
#define STORE(x) gpurun_bfloat16_from_double((double)(x))
#define FACTOR   SINGLE
#define TARGET   AVX2
#include "matmul_cpu_kind.h"
#endif

static cpu_block *pick_block(enum gpurun_dtype dtype)
{
    static cpu_block *const plain[GPURUN_DTYPE_COUNT] = {
        [GPURUN_INT32] = block_uint32, [GPURUN_INT64] = block_uint64,
        [GPURUN_FLOAT] = block_float,  [GPURUN_DOUBLE] = block_double,
        [GPURUN_HALF] = block_half,    [GPURUN_BFLOAT16] = block_bfloat16,
    };
#ifdef __x86_64__
    static cpu_block *const avx2[GPURUN_DTYPE_COUNT] = {
        [GPURUN_INT32] = block_uint32_avx2, [GPURUN_INT64] = block_uint64_avx2,
        [GPURUN_FLOAT] = block_float_avx2,  [GPURUN_DOUBLE] = block_double_avx2,
        [GPURUN_HALF] = block_half_avx2,    [GPURUN_BFLOAT16] = block_bfloat16_avx2,
    };

    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return avx2[dtype];
#endif
    return plain[dtype];
}

static int64_t pieces_of(int64_t size, int64_t step)
{
    return size / step + (size % step > 0);
}

static struct cpu_piece piece_at(const struct matmul_layout *l, int64_t number)
{
    const int64_t across = pieces_of(l->n, CPU_N), down = pieces_of(l->m, CPU_M);
    struct cpu_piece p = {.batch = number / (across * down),
                          .i = number / across % down * CPU_M,
                          .j = number % across * CPU_N};

    p.rows = l->m - p.i < CPU_M ? l->m - p.i : CPU_M;
    p.cols = l->n - p.j < CPU_N ? l->n - p.j : CPU_N;
    return p;
}

/* False: no memory for the blocks. */
static bool run_blocks(const struct cpu_job *job, cpu_block *block, size_t acc_bytes, int threads)
{
    const struct matmul_layout *l = job->l;
    const int64_t count = l->batch * pieces_of(l->n, CPU_N) * pieces_of(l->m, CPU_M);
    const size_t room_bytes =
        acc_bytes * ((size_t)CPU_M * CPU_N + (size_t)CPU_M * CPU_K + (size_t)CPU_N * CPU_K);
    bool ok = true;

#pragma omp parallel num_threads(threads) reduction(&& : ok) if (count > 1)
    {
        void *room = aligned_alloc(CPU_ALIGNMENT, room_bytes);

        ok = room != NULL;
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < count; i++)
            if (room)
                block(job, piece_at(l, i), room);
        free(room);
    }
    return ok;
}

enum gpurun_status matmul_run_cpu(struct gpurun_ctx *ctx)
{
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct matmul_options *o = matmul_options_of(ctx);
    const size_t bytes = gpurun_dtype_bytes(matmul_dtype_of(ctx));
    const struct cpu_job job = {
        .l = &s->layout,
        .a = s->a->host,
        .b = s->b->host,
        .c = s->c ? s->c->host : NULL,
        .product = s->product->host,
        .alpha = o->alpha,
        .beta = o->beta,
        .depth = matmul_has_product(ctx) ? o->k : 0,
    };

    if (ctx->work.elements <= 0 || matmul_cpu_blas(ctx))
        return GPURUN_OK;
    gpurun_note(ctx, "own blocks");
    if (run_blocks(&job, pick_block(matmul_dtype_of(ctx)), bytes < 4 ? 4 : bytes, ctx->threads))
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_NO_MEMORY, "threads",
                       "no host memory for the blocks of %d threads", ctx->threads);
}
