/*
 * matmul, variant "tensor": which tensor cores, and how they are fed.
 *
 * Mapping  that of matmul_tensor_group.cu (wgmma, half and bfloat16 on Hopper) or matmul_tensor_warp.cu (mma.sync).
 * Memory   theirs.
 * Bound    the tensor cores.
 * Limits   half, bfloat16 and double; float only with compute = tf32, as it rounds the inputs.
 */
#include "matmul_device.cuh"
#include <inttypes.h>

enum { TENSOR_LEAST_M = 128, TENSOR_LEAST_N = 64 }; /* the smallest tile of any */

/* The largest k whose chain of k / 16 (tf32: k / 8) sums, each short by up to 2^-23 of it, stays within what
 * rounding the output (tf32: the inputs) may cost. Doubles are summed in parts. */
static int64_t tensor_deepest(enum gpurun_dtype dtype)
{
    switch (dtype) {
    case GPURUN_BFLOAT16:
        return 1 << 19;
    case GPURUN_DOUBLE:
        return INT64_MAX;
    default:
        return 1 << 16;
    }
}

enum gpurun_status matmul_tensor_supported(struct gpurun_ctx *ctx)
{
    const enum gpurun_dtype dtype = matmul_dtype_of(ctx);

    if (matmul_is_whole(dtype))
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "dtype", "no tensor core multiplies %s",
                           gpurun_dtype_name(dtype));
    if (dtype == GPURUN_FLOAT && matmul_options_of(ctx)->compute != MATMUL_COMPUTE_TF32)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "compute",
                           "tensor cores round float inputs to 11 bits: compute = tf32 allows it");
    if (matmul_state_of(ctx)->layout.k > tensor_deepest(dtype))
        return gpurun_fail(
            ctx, GPURUN_UNSUPPORTED, "k",
            "a tensor core drops what it rounds: in so long a chain that can be more "
            "than the proof allows; at most %" PRId64,
            tensor_deepest(dtype));
    return matmul_check_grid(ctx, TENSOR_LEAST_M, TENSOR_LEAST_N);
}

enum gpurun_status matmul_launch_tensor(struct gpurun_ctx *ctx)
{
    return matmul_tensor_group_can(ctx) ? matmul_tensor_group(ctx) : matmul_tensor_warp(ctx);
}
