/*
 * For variant "tensor" on Hopper: the shape of its tiles, and the instructions that they are made with:
 * blocks of a cluster, fetches by TMA, products of a warpgroup.
 */
#ifndef MATMUL_TENSOR_GROUP_CUH
#define MATMUL_TENSOR_GROUP_CUH

#include "gpurun/copy_engine.cuh"
#include "matmul_device.cuh"
#include <cuda.h>

enum {
    GROUP_M = 128,
    GROUP_N = 256,
    GROUP_K = 64,
    GROUP_STAGES = 4,
    GROUP_BLOCK = 384,
    GROUP_CONSUMERS = 2,
    GROUP_ELEM = 2,                   /* bytes */
    GROUP_ROW = GROUP_K * GROUP_ELEM, /* bytes of a swizzled row: 64 elements along memory */
    GROUP_A_BYTES = GROUP_M * GROUP_ROW,
    GROUP_B_BYTES = GROUP_N * GROUP_ROW,
    GROUP_STAGE_BYTES = GROUP_A_BYTES + GROUP_B_BYTES,
    GROUP_SQUARE = 64 * GROUP_ROW, /* a box of 64 x 64 elements */
    GROUP_ALIGNMENT = 1024,        /* of what is swizzled */
    GROUP_SHARED = GROUP_STAGES * GROUP_STAGE_BYTES + GROUP_ALIGNMENT,
    GROUP_PRODUCER_REGISTERS = 40,
    GROUP_CONSUMER_REGISTERS = 232,
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

static __device__ __forceinline__ unsigned group_rank()
{
    unsigned rank;

    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

static __device__ __forceinline__ unsigned group_size()
{
    unsigned size;

    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
}

/* All threads of the cluster meet. */
static __device__ __forceinline__ void group_meet()
{
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

/* Arrives at the same barrier of block `rank` of the cluster. No data is handed over that a thread would read,
 * so no fence is wanted. */
static __device__ __forceinline__ void group_arrive(uint64_t *barrier, unsigned rank)
{
    asm volatile("{\n\t"
                 ".reg .b32 remote;\n\t"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n\t"
                 "}" ::"r"(gpurun_shared_address(barrier)),
                 "r"(rank)
                 : "memory");
}

/* Fetches the box at (x, y) of matrix `batch`; x runs along memory. */
static __device__ __forceinline__ void group_fetch(const CUtensorMap *map, void *to, uint64_t *full,
                                                   int x, int y, int batch)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(gpurun_shared_address(to)),
                 "l"(map), "r"(gpurun_shared_address(full)), "r"(x), "r"(y), "r"(batch)
                 : "memory");
}

/* The same into all blocks of `mask`, at the same place of each. */
static __device__ __forceinline__ void group_fetch_for(const CUtensorMap *map, void *to,
                                                       uint64_t *full, int x, int y, int batch,
                                                       uint16_t mask)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(gpurun_shared_address(to)),
        "l"(map), "r"(gpurun_shared_address(full)), "r"(x), "r"(y), "r"(batch), "h"(mask)
        : "memory");
}

/* How wgmma finds a swizzled tile. Along k: rows of 128 bytes, 8 of them 1024 bytes. Across k: squares of
 * 64 x 64 elements side by side, in which 8 steps along k are 1024 bytes. */
template <bool ALONG_K>
static __device__ __forceinline__ uint64_t group_descriptor(const void *tile)
{
    const uint64_t start = (gpurun_shared_address(tile) & 0x3ffff) >> 4;
    const uint64_t next_64 = ALONG_K ? 1 : GROUP_SQUARE >> 4, next_8 = 1024 >> 4, swizzle_128 = 1;

    return start | next_64 << 16 | next_8 << 32 | swizzle_128 << 62;
}

#define GROUP_SUMS                                                                                 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                       \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "             \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "             \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "   \
    "%127"
#define GROUP_LIST_4(d, i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define GROUP_LIST_16(d, i)                                                                        \
    GROUP_LIST_4(d, i), GROUP_LIST_4(d, (i) + 4), GROUP_LIST_4(d, (i) + 8),                        \
        GROUP_LIST_4(d, (i) + 12)
#define GROUP_LIST_64(d, i)                                                                        \
    GROUP_LIST_16(d, i), GROUP_LIST_16(d, (i) + 16), GROUP_LIST_16(d, (i) + 32),                   \
        GROUP_LIST_16(d, (i) + 48)

/* sum = A B, plus sum unless it starts anew: 64 x 256 elements over 16 of k. */
#define GROUP_MULTIPLY(type)                                                                       \
    asm volatile("{\n\t"                                                                           \
                 ".reg .pred more;\n\t"                                                            \
                 "setp.ne.b32 more, %130, 0;\n\t"                                                  \
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" GROUP_SUMS "}"  \
                 ", %128, %129, more, 1, 1, %131, %132;\n\t"                                       \
                 "}"                                                                               \
                 : GROUP_LIST_64(sum, 0), GROUP_LIST_64(sum, 64)                                   \
                 : "l"(a), "l"(b), "r"(more), "n"(A_ALONG_K ? 0 : 1), "n"(B_ALONG_K ? 0 : 1))

template <typename T, bool A_ALONG_K, bool B_ALONG_K>
static __device__ __forceinline__ void group_multiply(float (&sum)[128], uint64_t a, uint64_t b,
                                                      int more)
{
    if constexpr (matmul_kind<T>::IS_HALF)
        GROUP_MULTIPLY("f16");
    else
        GROUP_MULTIPLY("bf16");
}

static __device__ __forceinline__ void group_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void group_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int LEFT> static __device__ __forceinline__ void group_wait_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

#endif

#endif
