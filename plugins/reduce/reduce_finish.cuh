/*
 * For variants of one launch: every block leaves its result and takes a ticket; the block with the last
 * ticket joins all results in the order of blocks, whoever it is, so that the answer's bits never change.
 * The ticket wraps to 0 by itself, and needs to be cleared only once.
 */
#ifndef REDUCE_FINISH_CUH
#define REDUCE_FINISH_CUH

#include "reduce_tree.cuh"

/* A result made of any number of parts by one thread. Real sums keep what their roundings lose (Knuth's
 * TwoSum), so that their error does not grow with the number of parts. */
template <typename OP> struct reduce_long {
    typename OP::ACC total, lost;
};

template <typename OP>
static __device__ __forceinline__ void reduce_long_add(struct reduce_long<OP> *run,
                                                       typename OP::ACC x)
{
    if constexpr (OP::REAL_SUM) {
        const typename OP::ACC sum = run->total + x, added = sum - run->total;

        run->lost += (run->total - (sum - added)) + (x - added);
        run->total = sum;
    } else {
        run->total = OP::join(run->total, x);
    }
}

/* What was lost means nothing once a sum was infinite. */
template <typename OP>
static __device__ __forceinline__ typename OP::ACC
reduce_long_end(const struct reduce_long<OP> *run)
{
    if constexpr (OP::REAL_SUM) {
        const typename OP::ACC sum = run->total + run->lost;

        return isfinite(sum) ? sum : run->total;
    } else {
        return run->total;
    }
}

/* Leaves the block's result, which thread 0 has. Whether this block is the last: then all threads see the
 * results of all blocks. Begins a new phase of the block's shared memory. */
template <typename ACC>
static __device__ __forceinline__ bool reduce_is_last(ACC total, ACC *results, unsigned *ticket)
{
    __shared__ bool is_last;

    if (threadIdx.x == 0) {
        results[blockIdx.x] = total;
        __threadfence();
        is_last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    return is_last;
}

/* `total` is the block's, in thread 0; `shared` is what its tree used. All threads must call it. */
template <typename OP>
static __device__ __forceinline__ void
reduce_finish(const struct reduce_job &job, typename OP::ACC total, typename OP::ACC *results,
              unsigned *ticket, typename OP::ACC *shared)
{
    if (gridDim.x > 1) {
        struct reduce_long<OP> run = {
            OP::none(), OP::none()
        };

        if (!reduce_is_last(total, results, ticket))
            return;
#pragma unroll 4
        for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x)
            reduce_long_add(&run, results[i]);
        total = reduce_block_tree<OP>(reduce_long_end(&run), shared);
    }
    if (threadIdx.x == 0)
        OP::write(job, total);
}

#endif
