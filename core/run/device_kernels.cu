/*
 * The read ceiling: how fast this device can read so many bytes and do nothing with them.
 *
 * Mapping  one block of 512 threads per 64 KB, not persistent; 8 loads of 16 bytes per thread.
 * Memory   every byte once, past the L1; a warp reads 512 consecutive bytes per load.
 * Bound    memory bandwidth; at small sizes the launch.
 * Limits   bytes are rounded down to 16; the tail past whole blocks is read by the last block.
 */
#include "run/device_kernels.h"

enum {
    READ_BLOCK = 512, /* threads */
    READ_LOADS = 8,   /* 16-byte loads per thread */
    READ_TILE = READ_BLOCK * READ_LOADS,
};

static __global__ void device_read_kernel(const uint4 *__restrict__ from, size_t vectors,
                                          unsigned never, unsigned *sink)
{
    const size_t first = (size_t)blockIdx.x * READ_TILE + threadIdx.x;
    uint4 v[READ_LOADS];
    unsigned all = 0;

#pragma unroll
    for (int i = 0; i < READ_LOADS; i++) {
        const size_t at = first + (size_t)i * READ_BLOCK;

        v[i] = at < vectors ? __ldcs(from + at) : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < READ_LOADS; i++)
        all += (v[i].x ^ v[i].y) + (v[i].z ^ v[i].w);
    /* `never` is 0: the store is not made, but the compiler cannot know that, so it must load. */
    if (never & all)
        *sink = all;
}

extern "C" cudaError_t device_launch_read(const void *from, size_t bytes, unsigned *sink,
                                          cudaStream_t stream)
{
    const size_t vectors = bytes / sizeof(uint4);
    const size_t blocks = (vectors + READ_TILE - 1) / READ_TILE;

    if (blocks == 0)
        return cudaSuccess;
    device_read_kernel<<<(unsigned)blocks, READ_BLOCK, 0, stream>>>(
        static_cast<const uint4 *>(from), vectors, 0, sink);
    return cudaGetLastError();
}
