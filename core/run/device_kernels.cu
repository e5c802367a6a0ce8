/*
 * The core's own kernels: one that holds the stream, one that spins, and the read ceiling: how fast this
 * device can read so many bytes and do nothing with them. Of that last one:
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

/* Each byte is wanted once: past the L1, so that lines on their way do not wait for room there. */
static __device__ uint4 device_load_once(const uint4 *from)
{
    uint4 v;

    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(from));
    return v;
}

static __global__ void __launch_bounds__(READ_BLOCK)
    device_read_kernel(const uint4 *__restrict__ from, size_t vectors, unsigned never,
                       unsigned *sink)
{
    const size_t first = (size_t)blockIdx.x * READ_TILE + threadIdx.x;
    uint4 v[READ_LOADS];
    unsigned all = 0;

    if ((size_t)(blockIdx.x + 1) * READ_TILE <= vectors) {
#pragma unroll
        for (int i = 0; i < READ_LOADS; i++)
            v[i] = device_load_once(from + first + i * READ_BLOCK);
#pragma unroll
        for (int i = 0; i < READ_LOADS; i++)
            all |= v[i].x | v[i].y | v[i].z | v[i].w;
    } else {
        for (size_t at = first; at < vectors; at += READ_BLOCK) {
            v[0] = device_load_once(from + at);
            all |= v[0].x | v[0].y | v[0].z | v[0].w;
        }
    }
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

/* --- clocks ------------------------------------------------------------------------------------ */

/* Nanoseconds of the whole device; it moves in steps of up to a microsecond. */
static __device__ unsigned long long device_now_ns()
{
    unsigned long long ns;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

static __global__ void device_hold_kernel(const volatile unsigned *let_go, unsigned turn,
                                          unsigned long long limit_ns, volatile unsigned *ran_out)
{
    const unsigned long long start = device_now_ns();

    while (static_cast<int>(*let_go - turn) < 0)
        if (device_now_ns() - start > limit_ns) {
            *ran_out = turn;
            __threadfence_system();
            return;
        }
}

static __global__ void device_spin_kernel(unsigned long long ns)
{
    const unsigned long long start = device_now_ns();

    while (device_now_ns() - start < ns)
        continue;
}

extern "C" cudaError_t device_launch_hold(const unsigned *let_go, unsigned turn,
                                          unsigned long long limit_ns, unsigned *ran_out,
                                          cudaStream_t stream)
{
    device_hold_kernel<<<1, 1, 0, stream>>>(let_go, turn, limit_ns, ran_out);
    return cudaGetLastError();
}

extern "C" cudaError_t device_launch_spin(unsigned long long ns, cudaStream_t stream)
{
    device_spin_kernel<<<1, 1, 0, stream>>>(ns);
    return cudaGetLastError();
}
