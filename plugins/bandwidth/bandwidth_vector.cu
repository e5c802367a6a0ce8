/*
 * bandwidth, variant "vector": eight 16-byte accesses at a time.
 *
 * Mapping  a block per piece of 64 KiB, a thread one batch of 8 packs (at 512 threads).
 * Memory   a warp's access is four lines; 128 bytes per thread are in flight.
 * Bound    memory.
 * Limits   arrays that do not begin alike, seen from 16 bytes, are touched by single elements.
 */
#include "bandwidth_device.cuh"

enum { VECTOR_LOADS = 8 };

enum gpurun_status bandwidth_launch_vector(struct gpurun_ctx *ctx)
{
    return bandwidth_pass<uint4, VECTOR_LOADS>(ctx);
}
