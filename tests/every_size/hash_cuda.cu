/*
 * Mapping  a word of 8 bytes per thread and step, the grid strides.
 * Memory   reads and writes every word once, coalesced; one atomic per warp.
 * Bound    the launch, for most sizes; else the L2 cache.
 * Limits   words are mixed with their place and summed modulo 2^64, so that the order of threads is no matter.
 */
#include "gpurun/cuda.h"
#include "hash.h"

enum { HASH_BLOCK = 256 };

static const int64_t HASH_BLOCKS_MAX = 264;

/* The finaliser of splitmix64. */
static __device__ __forceinline__ uint64_t hash_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static __global__ void every_size_hash_kernel(uint64_t *words, int64_t count, uint64_t salt,
                                              unsigned long long *slot)
{
    const int64_t stride = static_cast<int64_t>(gridDim.x) * HASH_BLOCK;
    unsigned long long sum = 0;

    for (int64_t i = static_cast<int64_t>(blockIdx.x) * HASH_BLOCK + threadIdx.x; i < count;
         i += stride) {
        sum += hash_mix(words[i] ^ hash_mix((salt << 48) + i + 1));
        words[i] = GPURUN_POISON * 0x0101010101010101ull;
    }
    for (int other = 16; other > 0; other /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (threadIdx.x % 32 == 0)
        atomicAdd(slot, sum);
}

const char *hash_and_poison(gpurun_stream stream, void *dev, size_t bytes, uint64_t salt,
                            uint64_t *slot)
{
    const int64_t count = static_cast<int64_t>(bytes / 8);
    const int64_t wanted = (count + HASH_BLOCK - 1) / HASH_BLOCK;
    const int64_t blocks = wanted < HASH_BLOCKS_MAX ? wanted : HASH_BLOCKS_MAX;

    every_size_hash_kernel<<<static_cast<unsigned>(blocks), HASH_BLOCK, 0,
                             static_cast<cudaStream_t>(stream)>>>(
        static_cast<uint64_t *>(dev), count, salt, reinterpret_cast<unsigned long long *>(slot));
    const cudaError_t error = cudaGetLastError();

    return error == cudaSuccess ? NULL : cudaGetErrorString(error);
}
