/*
 * bandwidth, variant "unrolled": eight 4-byte accesses at a time.
 *
 * Mapping  a block per piece of 64 KiB, a thread 4 batches of 8 elements (at 512 threads).
 * Memory   as scalar, but 8 accesses per thread are in flight: 64 KiB per multiprocessor.
 * Bound    memory; four times the instructions of vector.
 */
#include "bandwidth_device.cuh"

enum { UNROLLED_LOADS = 8 };

enum gpurun_status bandwidth_launch_unrolled(struct gpurun_ctx *ctx)
{
    return bandwidth_pass<uint32_t, UNROLLED_LOADS>(ctx);
}
