/*
 * What the kernels of sort share: keys, the arrays of a run, block-wide prefix sums, scratch.
 */
#ifndef SORT_DEVICE_CUH
#define SORT_DEVICE_CUH

#include "gpurun/cuda.h"
#include "sort.h"

/* Keys and their values; `values` is unused without any. */
struct sort_items {
    void *keys, *values;
};

/* The unsigned type of so many bytes; of none: a placeholder that no code touches. */
template <int BYTES> struct sort_raw {
    typedef uint32_t type;
};
template <> struct sort_raw<8> {
    typedef uint64_t type;
};

/* Calls function<BITS, VALUE_BYTES>(...) for the keys and values of `state`. */
#define SORT_DISPATCH(state, function, ...)                                                        \
    ((state)->elem_bytes == 4                                                                      \
         ? ((state)->value_bytes == 0   ? function<uint32_t, 0>(__VA_ARGS__)                       \
            : (state)->value_bytes == 4 ? function<uint32_t, 4>(__VA_ARGS__)                       \
                                        : function<uint32_t, 8>(__VA_ARGS__))                      \
         : ((state)->value_bytes == 0   ? function<uint64_t, 0>(__VA_ARGS__)                       \
            : (state)->value_bytes == 4 ? function<uint64_t, 4>(__VA_ARGS__)                       \
                                        : function<uint64_t, 8>(__VA_ARGS__)))

/* Sizes of scratch arrays are rounded up to this, so that each of them starts aligned. */
static inline size_t sort_align(size_t bytes)
{
    return (bytes + 255) & ~static_cast<size_t>(255);
}

/* Takes `bytes` from the front of a scratch buffer. */
static inline void *sort_carve(char **scratch, size_t bytes)
{
    void *taken = *scratch;

    *scratch += sort_align(bytes);
    return taken;
}

static inline struct sort_items sort_input(const struct gpurun_ctx *ctx)
{
    const struct sort_state *s = sort_state_of(ctx);
    const struct sort_items items = {s->keys->dev, s->values ? s->values->dev : NULL};

    return items;
}

static inline struct sort_items sort_output(const struct gpurun_ctx *ctx)
{
    const struct sort_state *s = sort_state_of(ctx);
    const struct sort_items items = {s->sorted->dev,
                                     s->sorted_values ? s->sorted_values->dev : NULL};

    return items;
}

/* A second copy of the data, from the front of a scratch buffer. */
static inline struct sort_items sort_carve_items(const struct gpurun_ctx *ctx, char **scratch)
{
    const struct sort_state *s = sort_state_of(ctx);
    const size_t n = static_cast<size_t>(sort_options_of(ctx)->n);
    struct sort_items items;

    items.keys = sort_carve(scratch, n * s->elem_bytes);
    items.values = sort_carve(scratch, n * s->value_bytes);
    return items;
}

static inline size_t sort_items_bytes(const struct gpurun_ctx *ctx)
{
    const struct sort_state *s = sort_state_of(ctx);
    const size_t n = static_cast<size_t>(sort_options_of(ctx)->n);

    return sort_align(n * s->elem_bytes) + sort_align(n * s->value_bytes);
}

static __host__ __device__ __forceinline__ uint32_t sort_key(uint32_t bits, struct sort_map map)
{
    return sort_key32(bits, map);
}

static __host__ __device__ __forceinline__ uint64_t sort_key(uint64_t bits, struct sort_map map)
{
    return sort_key64(bits, map);
}

/* The eight bits of a key from `shift` on. */
template <typename BITS>
static __device__ __forceinline__ unsigned sort_digit(BITS bits, struct sort_map map, int shift)
{
    return static_cast<unsigned>(sort_key(bits, map) >> shift) & 255;
}

/* Exclusive prefix sum over the block, whose threads must all call it; blockDim.x is a multiple of 32.
 * `sums` is shared, one per warp. */
template <typename SUM> static __device__ SUM sort_prefix(SUM value, SUM *sums, SUM *total)
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
