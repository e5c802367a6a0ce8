/*
 * What the kernels of scan share: how two elements are joined, and the dispatch by types. A whole sum is the
 * same with and without sign, so its kernels exist for unsigned numbers only.
 */
#ifndef SCAN_DEVICE_CUH
#define SCAN_DEVICE_CUH

#include "gpurun/cuda.h"
#include "scan.h"
#include <limits>

/* A scan, as a kernel is given it: IN are the elements, ACC the results, OP an enum scan_op. */
template <typename IN, typename ACC> struct scan_args {
    const IN *in;
    ACC *out;
    int64_t n;
    ACC identity, init;
    bool exclusive;
};

/* Calls function<IN, ACC, OP>(...) for the types and the op of the job. */
#define SCAN_DISPATCH(ctx, function, ...)                                                          \
    (scan_options_of(ctx)->op == SCAN_SUM ? SCAN_DISPATCH_SUM(ctx, function, __VA_ARGS__)          \
     : scan_options_of(ctx)->op == SCAN_MAX                                                        \
         ? SCAN_DISPATCH_ORDER(ctx, SCAN_MAX, function, __VA_ARGS__)                               \
         : SCAN_DISPATCH_ORDER(ctx, SCAN_MIN, function, __VA_ARGS__))

#define SCAN_DISPATCH_SUM(ctx, function, ...)                                                      \
    (scan_state_of(ctx)->dtype == GPURUN_UINT8                                                     \
         ? SCAN_DISPATCH_WIDTH(ctx, function, uint8_t, uint8_t, uint32_t, SCAN_SUM, __VA_ARGS__)   \
     : scan_state_of(ctx)->acc == GPURUN_INT32 || scan_state_of(ctx)->acc == GPURUN_UINT32         \
         ? function<uint32_t, uint32_t, SCAN_SUM>(__VA_ARGS__)                                     \
     : scan_state_of(ctx)->dtype == GPURUN_INT32                                                   \
         ? function<int32_t, uint64_t, SCAN_SUM>(__VA_ARGS__)                                      \
     : scan_state_of(ctx)->dtype == GPURUN_UINT32                                                  \
         ? function<uint32_t, uint64_t, SCAN_SUM>(__VA_ARGS__)                                     \
         : SCAN_DISPATCH_LAST(ctx, function, uint64_t, SCAN_SUM, __VA_ARGS__))

#define SCAN_DISPATCH_ORDER(ctx, OP, function, ...)                                                \
    (scan_state_of(ctx)->dtype == GPURUN_UINT8                                                     \
         ? SCAN_DISPATCH_WIDTH(ctx, function, uint8_t, uint8_t, uint32_t, OP, __VA_ARGS__)         \
     : scan_state_of(ctx)->dtype == GPURUN_INT32                                                   \
         ? SCAN_DISPATCH_WIDTH(ctx, function, int32_t, int32_t, int64_t, OP, __VA_ARGS__)          \
     : scan_state_of(ctx)->dtype == GPURUN_UINT32                                                  \
         ? SCAN_DISPATCH_WIDTH(ctx, function, uint32_t, uint32_t, uint64_t, OP, __VA_ARGS__)       \
     : scan_state_of(ctx)->dtype == GPURUN_INT64                                                   \
         ? function<int64_t, int64_t, OP>(__VA_ARGS__)                                             \
         : SCAN_DISPATCH_LAST(ctx, function, uint64_t, OP, __VA_ARGS__))

#define SCAN_DISPATCH_LAST(ctx, function, LONG, OP, ...)                                           \
    (scan_state_of(ctx)->dtype == GPURUN_FLOAT                                                     \
         ? SCAN_DISPATCH_WIDTH(ctx, function, float, float, double, OP, __VA_ARGS__)               \
     : scan_state_of(ctx)->dtype == GPURUN_DOUBLE ? function<double, double, OP>(__VA_ARGS__)      \
                                                  : function<LONG, LONG, OP>(__VA_ARGS__))

#define SCAN_DISPATCH_WIDTH(ctx, function, IN, SAME, WIDE, OP, ...)                                \
    (scan_options_of(ctx)->accumulate == SCAN_WIDE ? function<IN, WIDE, OP>(__VA_ARGS__)           \
                                                   : function<IN, SAME, OP>(__VA_ARGS__))

template <typename ACC> static inline ACC scan_number_as(struct scan_number number)
{
    return std::numeric_limits<ACC>::is_integer ? static_cast<ACC>(number.whole)
                                                : static_cast<ACC>(number.real);
}

template <typename IN, typename ACC>
static inline struct scan_args<IN, ACC> scan_args_of(const struct gpurun_ctx *ctx) {
    const struct scan_options *o = scan_options_of(ctx);
    const struct scan_state *s = scan_state_of(ctx);
    struct scan_args<IN, ACC> args;

    args.in = static_cast<const IN *>(s->in->dev);
    args.out = static_cast<ACC *>(s->out->dev);
    args.n = o->n;
    args.identity = scan_number_as<ACC>(s->identity);
    args.init = scan_number_as<ACC>(s->init);
    args.exclusive = o->kind == SCAN_EXCLUSIVE;
    return args;
}

/* `a` stands before `b`. max and min are NaN when either is. */
template <int OP, typename ACC>
static __device__ __forceinline__ ACC scan_join(ACC a, ACC b)
{
    if (OP == SCAN_SUM)
        return static_cast<ACC>(a + b);
    if (OP == SCAN_MAX)
        return a > b || a != a ? a : b;
    return a < b || a != a ? a : b;
}

/* All of a warp's values, of which every lane gets the result. */
template <int OP, typename ACC> static __device__ __forceinline__ ACC scan_warp_total(ACC value)
{
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2)
        value =
            scan_join<OP>(value, static_cast<ACC>(__shfl_xor_sync(0xffffffffu, value, distance)));
    return value;
}

/* Inclusive over the lanes of a warp. */
template <int OP, typename ACC> static __device__ __forceinline__ ACC scan_warp(ACC value)
{
    const int lane = threadIdx.x % 32;

#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const ACC lower = static_cast<ACC>(__shfl_up_sync(0xffffffffu, value, distance));

        value = lane >= distance ? scan_join<OP>(lower, value) : value;
    }
    return value;
}

/* What the lanes below have, given what scan_warp returned. */
template <typename ACC>
static __device__ __forceinline__ ACC scan_warp_before(ACC inclusive, ACC identity)
{
    const ACC lower = static_cast<ACC>(__shfl_up_sync(0xffffffffu, inclusive, 1));

    return threadIdx.x % 32 > 0 ? lower : identity;
}

/* What lane `from` has. */
template <typename ACC> static __device__ __forceinline__ ACC scan_warp_at(ACC value, int from)
{
    return static_cast<ACC>(__shfl_sync(0xffffffffu, value, from));
}

#endif
