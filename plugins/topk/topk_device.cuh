/*
 * What the kernels of topk share: keys, a run of rows, block-wide prefix sums. A kernel is compiled for
 * four kinds of element, raw bits of 4 or 8 bytes and whole or REAL; the rest of the order is in `flip`.
 */
#ifndef TOPK_DEVICE_CUH
#define TOPK_DEVICE_CUH

#include "gpurun/cuda.h"
#include "gpurun/key.h"
#include "topk.h"

/* A scratch buffer stays below this where rows can be done in several launches. */
enum { TOPK_SCRATCH_TARGET = 64 << 20, TOPK_GRID_Y_MAX = 65535 };

/* Consecutive rows, as a kernel is given them. */
struct topk_rows {
    const void *in;   /* rows x n */
    void *values;     /* rows x k */
    int64_t *indices; /* rows x k */
    int64_t *count;   /* rows */
    int64_t n, k;
    uint64_t flip;
    bool is_real;
};

/* Calls function<BITS, REAL>(...) for the element type of `state`. */
#define TOPK_DISPATCH(state, function, ...)                                                        \
    ((state)->elem_bytes == 4 ? ((state)->is_real ? function<uint32_t, true>(__VA_ARGS__)          \
                                                  : function<uint32_t, false>(__VA_ARGS__))        \
                              : ((state)->is_real ? function<uint64_t, true>(__VA_ARGS__)          \
                                                  : function<uint64_t, false>(__VA_ARGS__)))

static inline struct topk_rows topk_rows_from(const struct gpurun_ctx *ctx, int64_t first)
{
    const struct topk_options *o = topk_options_of(ctx);
    const struct topk_state *s = topk_state_of(ctx);
    struct topk_rows rows;

    rows.in = static_cast<const char *>(s->in->dev) + first * o->n * s->elem_bytes;
    rows.values = static_cast<char *>(s->values->dev) + first * o->k * s->elem_bytes;
    rows.indices = static_cast<int64_t *>(s->indices->dev) + first * o->k;
    rows.count = static_cast<int64_t *>(s->count->dev) + first;
    rows.n = o->n;
    rows.k = o->k;
    rows.flip = s->flip;
    rows.is_real = s->is_real;
    return rows;
}

/* How many rows one launch takes, when a row needs `bytes` of scratch. */
static inline int64_t topk_rows_at_once(const struct topk_options *o, size_t bytes)
{
    const int64_t fit = TOPK_SCRATCH_TARGET / (bytes > 0 ? bytes : 1);
    const int64_t most = o->rows < TOPK_GRID_Y_MAX ? o->rows : int64_t{TOPK_GRID_Y_MAX};

    return fit < 1 ? 1 : fit < most ? fit : most;
}

/* Sizes of scratch arrays are rounded up to this, so that each of them starts aligned. */
static inline size_t topk_align(size_t bytes)
{
    return (bytes + 255) & ~static_cast<size_t>(255);
}

/* Takes `bytes` from the front of a scratch buffer. */
static inline void *topk_carve(char **scratch, size_t bytes)
{
    void *taken = *scratch;

    *scratch += topk_align(bytes);
    return taken;
}

template <bool REAL>
static __host__ __device__ __forceinline__ uint32_t topk_key(uint32_t bits, uint64_t flip)
{
    return gpurun_key32(bits, REAL, static_cast<uint32_t>(flip));
}

template <bool REAL>
static __host__ __device__ __forceinline__ uint64_t topk_key(uint64_t bits, uint64_t flip)
{
    return gpurun_key64(bits, REAL, flip);
}

/* Row `row` of the input. */
template <typename BITS>
static __device__ __forceinline__ const BITS *topk_row(const struct topk_rows &rows, int64_t row)
{
    return static_cast<const BITS *>(rows.in) + row * rows.n;
}

/* Copies the bits of the selected element to the answer. */
template <typename BITS>
static __device__ __forceinline__ void topk_write(const struct topk_rows &rows, int64_t row,
                                                  int64_t slot, int64_t index)
{
    rows.indices[row * rows.k + slot] = index;
    static_cast<BITS *>(rows.values)[row * rows.k + slot] = topk_row<BITS>(rows, row)[index];
}

/* Reads elements base + threadIdx.x + j * blockDim.x, as many as lie below end. All loads are issued before
 * the first is used. */
template <typename BITS, int ITEMS>
static __device__ __forceinline__ void topk_load(const BITS *__restrict__ row, int64_t base,
                                                 int64_t end, BITS (&bits)[ITEMS])
{
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        const int64_t i = base + threadIdx.x + j * static_cast<int64_t>(blockDim.x);
        bits[j] = i < end ? row[i] : 0;
    }
}

/* Exclusive prefix sum over the block, whose threads must all call it; blockDim.x is a multiple of 32.
 * `sums` is shared, one per warp. */
template <typename SUM> static __device__ SUM topk_prefix(SUM value, SUM *sums, SUM *total)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    SUM sum = value, before = 0;

    for (int distance = 1; distance < 32; distance *= 2) {
        const SUM lower = __shfl_up_sync(0xffffffffu, sum, distance);
        sum += lane >= distance ? lower : 0;
    }
    __syncthreads(); /* the sums of an earlier call have been read */
    if (lane == 31)
        sums[warp] = sum;
    __syncthreads();
    *total = 0;
    for (int i = 0; i < warps; i++) {
        before += i < warp ? sums[i] : 0;
        *total += sums[i];
    }
    return before + sum - value;
}

#endif
