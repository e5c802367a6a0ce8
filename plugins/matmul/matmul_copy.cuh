/*
 * For kernels whose next tile arrives in shared memory while they work on this one: how an operand lies in
 * memory, copies that run by themselves (cp.async) where the device has them, and sums made in parts.
 */
#ifndef MATMUL_COPY_CUH
#define MATMUL_COPY_CUH

#include "matmul_device.cuh"

/* How a tile's elements follow one another in memory, and in what pieces they can be fetched. */
enum matmul_feed {
    MATMUL_FEED_DEEP,     /* along k, by elements */
    MATMUL_FEED_ALONG,    /* along the matrix' other side, by elements */
    MATMUL_FEED_DEEP_16,  /* the same by 16 bytes, */
    MATMUL_FEED_ALONG_16, /* where every row begins at a multiple of 16 */
};

/* A or B as both are read: element (x, p), x along k, is at from[x * deep + p * along]. */
template <typename T> struct matmul_operand {
    const T *from;
    int64_t deep, along, batch;
    int64_t places; /* m for A, n for B */
    int feed;       /* enum matmul_feed */
};

/* Copies `valid` bytes of BYTES from global to shared memory and fills the rest with zeros. Nothing is read
 * where valid is 0. It is there after matmul_copy_wait and a barrier. */
template <int BYTES>
static __device__ __forceinline__ void matmul_copy(void *to, const void *from, int valid)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));

    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
                     "r"(valid)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from),
                     "n"(BYTES), "r"(valid)
                     : "memory");
#else
    for (int i = 0; i < BYTES / 4; i++)
        static_cast<uint32_t *>(to)[i] = i * 4 < valid ? static_cast<const uint32_t *>(from)[i] : 0;
#endif
}

/* cp.async has nothing as short as two bytes. */
template <> __device__ __forceinline__ void matmul_copy<2>(void *to, const void *from, int valid)
{
    *static_cast<uint16_t *>(to) = valid > 0 ? *static_cast<const uint16_t *>(from) : 0;
}

/* Ends a group of copies. */
static __device__ __forceinline__ void matmul_copy_commit()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until all of the thread's groups but the newest LEFT have arrived. */
template <int LEFT> static __device__ __forceinline__ void matmul_copy_wait()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

/* --- sums in parts ------------------------------------------------------------------------------------------- */

template <typename T> static inline __host__ __device__ constexpr bool matmul_is_real()
{
    return static_cast<T>(0.5) != 0;
}

template <typename T> struct __align__(16) matmul_piece
{
    T item[16 / sizeof(T)];
};

/* Adds some of a thread's sums to what it keeps in shared memory, where there is anything yet, and starts anew. */
template <int BLOCK, typename T, int COUNT>
static __device__ __forceinline__ void matmul_keep(struct matmul_piece<T> *kept, bool is_first,
                                                   T (&sum)[COUNT])
{
    constexpr int width = 16 / static_cast<int>(sizeof(T));

#pragma unroll
    for (int p = 0; p < COUNT / width; p++) {
        struct matmul_piece<T> piece = {
        };

        if (!is_first)
            piece = kept[p * BLOCK + threadIdx.x];
#pragma unroll
        for (int v = 0; v < width; v++) {
            piece.item[v] += sum[p * width + v];
            sum[p * width + v] = 0;
        }
        kept[p * BLOCK + threadIdx.x] = piece;
    }
}

/* Adds what was kept to the thread's sums. */
template <int BLOCK, typename T, int COUNT>
static __device__ __forceinline__ void matmul_take(const struct matmul_piece<T> *kept,
                                                   T (&sum)[COUNT])
{
    constexpr int width = 16 / static_cast<int>(sizeof(T));

#pragma unroll
    for (int p = 0; p < COUNT / width; p++) {
        const struct matmul_piece<T> piece = kept[p * BLOCK + threadIdx.x];

#pragma unroll
        for (int v = 0; v < width; v++)
            sum[p * width + v] += piece.item[v];
    }
}

/* --- operands ------------------------------------------------------------------------------------------------- */

/* Whether every row of a matrix begins at a multiple of 16 bytes. */
static inline bool matmul_is_aligned(const void *from, int64_t ld, int64_t batch_step, size_t bytes)
{
    const int64_t width = 16 / static_cast<int64_t>(bytes);

    return reinterpret_cast<uintptr_t>(from) % 16 == 0 && ld % width == 0 &&
           batch_step % width == 0;
}

template <typename T>
static inline struct matmul_operand<T>
matmul_operand_of(const void *from, int64_t deep, int64_t along, int64_t batch, int64_t places) {
    const bool is_deep = deep == 1;
    const bool wide = matmul_is_aligned(from, is_deep ? along : deep, batch, sizeof(T));
    struct matmul_operand<T> operand = {
        static_cast<const T *>(from), deep, along, batch, places, 0
    };

    operand.feed = (is_deep ? MATMUL_FEED_DEEP : MATMUL_FEED_ALONG) + (wide ? 2 : 0);
    return operand;
}

template <typename T>
static inline struct matmul_operand<T> matmul_operand_a(struct matmul_job job) {
    const struct matmul_layout &l = job.layout;

    return matmul_operand_of<T>(job.a, l.a_col, l.a_row, l.a_batch, l.m);
}

template <typename T>
static inline struct matmul_operand<T> matmul_operand_b(struct matmul_job job) {
    const struct matmul_layout &l = job.layout;

    return matmul_operand_of<T>(job.b, l.b_row, l.b_col, l.b_batch, l.n);
}

#endif
