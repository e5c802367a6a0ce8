/*
 * For a plugin's .cu files: barriers in shared memory, and copies into shared memory that arrive on them. On compute
 * capability 9.0 the copy engine brings whole lines at the word of one thread (GPURUN_COPY_ENGINE is 1); before, each
 * thread copies its 16 bytes.
 *
 * A barrier's phase is over when all that it was made for have arrived and all bytes that it was told of are there. Phases
 * are told apart by their parity: the first is 0. Copies and barriers belong to the calling block.
 */
#ifndef GPURUN_COPY_ENGINE_CUH
#define GPURUN_COPY_ENGINE_CUH

#include <stdint.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define GPURUN_COPY_ENGINE 1
#else
#define GPURUN_COPY_ENGINE 0
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

static __device__ __forceinline__ unsigned gpurun_shared_address(const void *at)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

/* By one thread; others may use the barrier after gpurun_barriers_made() by it and a __syncthreads(). */
static __device__ __forceinline__ void gpurun_barrier_make(uint64_t *barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(gpurun_shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

/* Makes new barriers known to the copy engine. */
static __device__ __forceinline__ void gpurun_barriers_made()
{
#if GPURUN_COPY_ENGINE
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

static __device__ __forceinline__ void gpurun_barrier_arrive(uint64_t *barrier)
{
    asm volatile(
        "{\n\t.reg .b64 state;\n\t"
        "mbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(gpurun_shared_address(barrier))
        : "memory");
}

/* Waits until the barrier's phase of this parity is over; a new barrier counts as past phase 1. */
static __device__ __forceinline__ void gpurun_barrier_wait(uint64_t *barrier, unsigned parity)
{
    unsigned is_over = 0;

    while (!is_over)
        asm volatile("{\n\t.reg .pred p;\n\t"
#if GPURUN_COPY_ENGINE
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
#else
                     "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\t"
#endif
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(is_over)
                     : "r"(gpurun_shared_address(barrier)), "r"(parity)
                     : "memory");
}

/* 16 bytes; both addresses are multiples of 16. */
static __device__ __forceinline__ void gpurun_copy_16(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(gpurun_shared_address(to)),
                 "l"(__cvta_generic_to_global(from))
                 : "memory");
}

/* Arrives for the thread once all its copies so far are there. */
static __device__ __forceinline__ void gpurun_barrier_arrive_copied(uint64_t *barrier)
{
    asm volatile(
        "cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(gpurun_shared_address(barrier))
        : "memory");
}

/* Makes one group of the thread's copies since the last one, maybe of none. */
static __device__ __forceinline__ void gpurun_copy_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until all groups of the thread's copies but the last PENDING are there. Others see them after a barrier. */
template <int PENDING> static __device__ __forceinline__ void gpurun_copy_await()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

#if GPURUN_COPY_ENGINE

/* Arrives, and tells the barrier of so many bytes that the copy engine will bring in this phase. */
static __device__ __forceinline__ void gpurun_barrier_arrive_expect(uint64_t *barrier,
                                                                    unsigned bytes)
{
    asm volatile("{\n\t.reg .b64 state;\n\t"
                 "mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n\t}" ::"r"(
                     gpurun_shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

/* Tells the barrier of so many bytes that the copy engine will bring, before the last arrival of its phase. */
static __device__ __forceinline__ void gpurun_barrier_expect(uint64_t *barrier, unsigned bytes)
{
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(
                     gpurun_shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

/* `bytes`, above 0, and both addresses are multiples of 16. */
static __device__ __forceinline__ void gpurun_copy_bulk(void *to, const void *from, unsigned bytes,
                                                        uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(gpurun_shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes),
                 "r"(gpurun_shared_address(barrier))
                 : "memory");
}

/* Orders the thread's own stores to shared memory before later copies to the same place, by whoever learns of this
 * through a barrier. */
static __device__ __forceinline__ void gpurun_copy_fence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#else

static __device__ __forceinline__ void gpurun_copy_fence()
{
}

#endif
#endif

#endif
