/*
 * For matmul's kernels: how elements are stored and what they are added in, which tile a block makes, and
 * how a finished sum becomes an element of the product.
 */
#ifndef MATMUL_DEVICE_CUH
#define MATMUL_DEVICE_CUH

#include "gpurun/cuda.h"
#include "matmul.h"
#include <math.h>

struct matmul_job {
    const void *a, *b, *c; /* c: NULL where beta is 0 */
    void *product;
    struct matmul_layout layout;
    double alpha, beta;
};

/* Terms that may be added in one chain. With as many parts as that takes, chains have part + k / part additions,
 * which stays within the proof's 4 sqrt(k) for any data. */
static inline int64_t matmul_part_of(int64_t k)
{
    const int64_t part = static_cast<int64_t>(3.7 * sqrt(static_cast<double>(k)));

    return part > 16 ? part : 16;
}

/* 16-bit reals are bits until they are added. */
struct matmul_half {
    uint16_t bits;
};
struct matmul_bfloat16 {
    uint16_t bits;
};

/* --- elements ------------------------------------------------------------------------------------------- */

/* ACC: what elements of type T are multiplied and added in. */
template <typename T> struct matmul_kind {
    typedef T ACC;
};
template <> struct matmul_kind<struct matmul_half> {
    typedef float ACC;
    static constexpr bool IS_HALF = true;
};
template <> struct matmul_kind<struct matmul_bfloat16> {
    typedef float ACC;
    static constexpr bool IS_HALF = false;
};

template <typename T> static __device__ __forceinline__ T matmul_load(T x)
{
    return x;
}
static __device__ __forceinline__ float matmul_load(struct matmul_half x)
{
    float real;

    asm("cvt.f32.f16 %0, %1;" : "=f"(real) : "h"(x.bits));
    return real;
}
static __device__ __forceinline__ float matmul_load(struct matmul_bfloat16 x)
{
    return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}

static __device__ __forceinline__ void matmul_store(struct matmul_half *to, float real)
{
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to->bits) : "f"(real));
}
static __device__ __forceinline__ void matmul_store(struct matmul_bfloat16 *to, float real)
{
    const uint32_t bits = __float_as_uint(real);

    /* To nearest, to even at a tie; a NaN keeps a bit that no carry can take away. */
    to->bits = static_cast<uint16_t>(real != real ? bits >> 16 | 0x40
                                                  : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
template <typename T> static __device__ __forceinline__ void matmul_store(T *to, T x)
{
    *to = x;
}

/* alpha or beta in the type that sums have. */
template <typename ACC> static __device__ __forceinline__ ACC matmul_factor(double x)
{
    return static_cast<ACC>(x);
}
template <> __device__ __forceinline__ uint32_t matmul_factor<uint32_t>(double x)
{
    return static_cast<uint32_t>(static_cast<int64_t>(x));
}
template <> __device__ __forceinline__ uint64_t matmul_factor<uint64_t>(double x)
{
    return static_cast<uint64_t>(static_cast<int64_t>(x));
}

/* alpha sum + beta C at place `at` of C and of the product. */
template <typename T>
static __device__ __forceinline__ typename matmul_kind<T>::ACC
matmul_finished(const struct matmul_job &job, int64_t at, typename matmul_kind<T>::ACC sum)
{
    typedef typename matmul_kind<T>::ACC ACC;
    const ACC scaled = matmul_factor<ACC>(job.alpha) * sum;

    return job.c == NULL ? scaled
                         : scaled + matmul_factor<ACC>(job.beta) *
                                        matmul_load(static_cast<const T *>(job.c)[at]);
}

template <typename T>
static __device__ __forceinline__ void matmul_finish(const struct matmul_job &job, int64_t at,
                                                     typename matmul_kind<T>::ACC sum)
{
    matmul_store(static_cast<T *>(job.product) + at, matmul_finished<T>(job, at, sum));
}

/* --- tiles ---------------------------------------------------------------------------------------------- */

/* Where a tile of the product starts. */
struct matmul_tile {
    int64_t batch, i, j;
};

enum { MATMUL_GROUP = 8 }; /* rows of tiles that are made together, so that the L2 keeps their B */

static __host__ __device__ __forceinline__ int64_t matmul_tiles(int64_t size, int tile)
{
    return (size + tile - 1) / tile;
}

/* Tile `number` of those that are `rows` x `cols` elements large. */
static __device__ __forceinline__ struct matmul_tile
matmul_tile_at(const struct matmul_layout &l, int64_t number, int rows, int cols)
{
    const int64_t down = matmul_tiles(l.m, rows), across = matmul_tiles(l.n, cols);
    const int64_t in_batch = number % (down * across);
    const int64_t first = in_batch / (MATMUL_GROUP * across) * MATMUL_GROUP;
    const int64_t in_group = in_batch % (MATMUL_GROUP * across);
    const int64_t height = down - first < MATMUL_GROUP ? down - first : MATMUL_GROUP;
    struct matmul_tile tile;

    tile.batch = number / (down * across);
    tile.i = (first + in_group % height) * rows;
    tile.j = in_group / height * cols;
    return tile;
}

static inline int64_t matmul_tile_count(const struct gpurun_ctx *ctx, int rows, int cols)
{
    const struct matmul_layout *l = &matmul_state_of(ctx)->layout;

    return l->batch * matmul_tiles(l->m, rows) * matmul_tiles(l->n, cols);
}

/* Whether one block per tile fits a grid. */
static inline enum gpurun_status matmul_check_grid(struct gpurun_ctx *ctx, int rows, int cols)
{
    if (matmul_tile_count(ctx, rows, cols) < INT32_MAX)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "m",
                       "one block per %d x %d elements: the product has more than a grid holds",
                       rows, cols);
}

static inline struct matmul_job matmul_job_of(const struct gpurun_ctx *ctx)
{
    const struct matmul_state *s = matmul_state_of(ctx);
    struct matmul_job job;

    job.a = s->a->dev;
    job.b = s->b->dev;
    job.c = s->c ? s->c->dev : NULL;
    job.product = s->product->dev;
    job.layout = s->layout;
    job.alpha = matmul_options_of(ctx)->alpha;
    job.beta = matmul_options_of(ctx)->beta;
    return job;
}

/* Calls function<ELEMENT>(...) for a dtype. */
#define MATMUL_DISPATCH(dtype, function, ...)                                                      \
    ((dtype) == GPURUN_INT32    ? function<uint32_t>(__VA_ARGS__)                                  \
     : (dtype) == GPURUN_INT64  ? function<uint64_t>(__VA_ARGS__)                                  \
     : (dtype) == GPURUN_FLOAT  ? function<float>(__VA_ARGS__)                                     \
     : (dtype) == GPURUN_DOUBLE ? function<double>(__VA_ARGS__)                                    \
     : (dtype) == GPURUN_HALF   ? function<struct matmul_half>(__VA_ARGS__)                        \
                                : function<struct matmul_bfloat16>(__VA_ARGS__))

/* The same without the 16-bit reals. */
#define MATMUL_DISPATCH_WIDE(dtype, function, ...)                                                 \
    ((dtype) == GPURUN_INT32   ? function<uint32_t>(__VA_ARGS__)                                   \
     : (dtype) == GPURUN_INT64 ? function<uint64_t>(__VA_ARGS__)                                   \
     : (dtype) == GPURUN_FLOAT ? function<float>(__VA_ARGS__)                                      \
                               : function<double>(__VA_ARGS__))

static inline bool matmul_is_narrow(const struct gpurun_ctx *ctx)
{
    return gpurun_dtype_bytes(matmul_dtype_of(ctx)) == 2;
}

#endif
