/*
 * bandwidth, variant "scalar": one 4-byte access at a time.
 *
 * Mapping  a block per piece of 64 KiB, a thread 32 elements of it, one after the other (at 512 threads).
 * Memory   a warp's access is one line of 128 bytes; one per thread is in flight.
 * Bound    2048 threads of 4 bytes are 8 KiB in flight per multiprocessor; memory wants several times that.
 * Limits   here for contrast.
 */
#include "bandwidth_device.cuh"

enum gpurun_status bandwidth_launch_scalar(struct gpurun_ctx *ctx)
{
    return bandwidth_pass<uint32_t, 1>(ctx);
}
