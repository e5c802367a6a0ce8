/*
 * Hopper's barriers in shared memory, and its copy engine, as functions.
 */
#ifndef SCAN_LOOKBACK_BULK_CUH
#define SCAN_LOOKBACK_BULK_CUH

#include <cuda_runtime_api.h>
#include <stdint.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
static __device__ __forceinline__ unsigned bulk_shared(const void *pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

static __device__ __forceinline__ void bulk_init(uint64_t *barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bulk_shared(barrier)),
                 "r"(arrivals)
                 : "memory");
}

static __device__ __forceinline__ void bulk_arrive(uint64_t *barrier)
{
    asm volatile("{\n\t"
                 ".reg .b64 state;\n\t"
                 "mbarrier.arrive.shared::cta.b64 state, [%0];\n\t"
                 "}" ::"r"(bulk_shared(barrier))
                 : "memory");
}

static __device__ __forceinline__ void bulk_arrive_expect(uint64_t *barrier, unsigned bytes)
{
    asm volatile("{\n\t"
                 ".reg .b64 state;\n\t"
                 "mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n\t"
                 "}" ::"r"(bulk_shared(barrier)),
                 "r"(bytes)
                 : "memory");
}

/* Waits until the phase of this parity is over; a new barrier counts as past phase 1. */
static __device__ __forceinline__ void bulk_wait(uint64_t *barrier, unsigned parity)
{
    unsigned is_over;

    do {
        asm volatile("{\n\t"
                     ".reg .pred over;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, over;\n\t"
                     "}"
                     : "=r"(is_over)
                     : "r"(bulk_shared(barrier)), "r"(parity)
                     : "memory");
    } while (!is_over);
}

static __device__ __forceinline__ void bulk_fence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Addresses and size are multiples of 16. */
static __device__ __forceinline__ void bulk_copy(void *to, const void *from, unsigned bytes,
                                                 uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                 "%2, [%3];" ::"r"(bulk_shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(bulk_shared(barrier))
                 : "memory");
}
#endif

#endif
