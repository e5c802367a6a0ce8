/*
 * A block's work-efficient scan, for the two variants that differ only in where shared memory has gaps.
 */
#ifndef SCAN_BLELLOCH_CUH
#define SCAN_BLELLOCH_CUH

#include "scan_tree.cuh"

/* Where element i is: with PADDED one word is left out after every 32. */
template <bool PADDED> static __host__ __device__ __forceinline__ int blelloch_at(int i)
{
    return PADDED ? i + i / 32 : i;
}

/* Up-sweep: the right end of each pair of subtrees gets the sum of its left sibling and itself. */
template <typename ACC, int OP, bool PADDED>
static __device__ __forceinline__ void blelloch_up(ACC *values, int width)
{
    for (int half = 1; half < width; half *= 2) {
        const int right = (static_cast<int>(threadIdx.x) + 1) * 2 * half - 1;

        __syncthreads();
        if (right < width) {
            const int left = blelloch_at<PADDED>(right - half), at = blelloch_at<PADDED>(right);

            values[at] = scan_join<OP>(values[left], values[at]);
        }
    }
}

/* Down-sweep, from the identity at the root: the left child gets what is before the pair, the right child
 * that and the left one's sum. */
template <typename ACC, int OP, bool PADDED>
static __device__ __forceinline__ void blelloch_down(ACC *values, int width)
{
    for (int half = width / 2; half > 0; half /= 2) {
        const int right = (static_cast<int>(threadIdx.x) + 1) * 2 * half - 1;

        __syncthreads();
        if (right < width) {
            const int left = blelloch_at<PADDED>(right - half), at = blelloch_at<PADDED>(right);
            const ACC sum = values[left], before = values[at];

            values[left] = before;
            values[at] = scan_join<OP>(before, sum);
        }
    }
    __syncthreads();
}

/* The body of either kernel: two elements per thread, blockDim.x a power of two. */
template <typename IN, typename ACC, int OP, bool PADDED>
static __device__ __forceinline__ void blelloch_block(const struct scan_args<IN, ACC> &args,
                                                      ACC *sums, ACC *values)
{
    const int thread = threadIdx.x, width = 2 * blockDim.x;
    const int64_t tile = tree_block(), begin = tile * width;
    ACC own[2];

    for (int j = 0; j < 2; j++) {
        const int64_t i = begin + thread + j * blockDim.x;

        own[j] = i < args.n ? static_cast<ACC>(args.in[i]) : args.identity;
        values[blelloch_at<PADDED>(thread + j * blockDim.x)] = own[j];
    }
    blelloch_up<ACC, OP, PADDED>(values, width);
    if (thread == 0) { /* who wrote the root in the last step */
        if (begin < args.n)
            sums[tile] = values[blelloch_at<PADDED>(width - 1)];
        values[blelloch_at<PADDED>(width - 1)] = args.identity;
    }
    blelloch_down<ACC, OP, PADDED>(values, width);
    for (int j = 0; j < 2; j++) {
        const int64_t i = begin + thread + j * blockDim.x;
        const ACC before = values[blelloch_at<PADDED>(thread + j * blockDim.x)];

        if (i < args.n)
            args.out[i] = args.exclusive ? before : scan_join<OP>(before, own[j]);
    }
}

static inline enum gpurun_status blelloch_supported(struct gpurun_ctx *ctx)
{
    const int64_t block = scan_options_of(ctx)->block;

    if ((block & (block - 1)) == 0)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "block",
                       "the tree needs a power of two, not %lld threads",
                       static_cast<long long>(block));
}

#endif
