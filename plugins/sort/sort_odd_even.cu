/*
 * sort, variant "odd_even": Batcher's odd-even merge network.
 *
 * Mapping  one word per thread, half of which begin a comparator; a tile of 2048 words sorts in shared memory.
 * Memory   every later step reads and writes the words in global memory, as its pairs cross tiles.
 * Bound    memory, times log2(n) ^ 2 / 2 steps: fewer comparators than bitonic, more passes over memory.
 * Limits   none: places past the end are left out, so n is any. Not stable; words carry the index where it shows.
 */
#include "sort_words.cuh"

enum { ODD_EVEN_BLOCK = 1024, ODD_EVEN_TILE = 2 * ODD_EVEN_BLOCK };

/* One step of the merge of two sorted stretches of `half` words, by pairs `distance` apart; both are powers of
 * two. After the first step, where every word of the left stretch meets one of the right, pairs are shifted
 * by one distance and stay within their stretch of 2 * half. Whether a pair begins at `place`. */
static __device__ __forceinline__ bool odd_even_begins(int64_t place, int64_t half,
                                                       int64_t distance)
{
    const int64_t in_merge = place & (2 * half - 1);
    const int64_t shift = distance == half ? 0 : distance;

    return in_merge >= shift && in_merge + distance < 2 * half &&
           ((in_merge - shift) & distance) == 0;
}

/* Sorts each tile. */
template <typename WORD>
static __global__ void __launch_bounds__(ODD_EVEN_BLOCK)
    sort_odd_even_tile_kernel(WORD *words, int64_t n)
{
    __shared__ WORD tile[ODD_EVEN_TILE];
    const int64_t begin = static_cast<int64_t>(blockIdx.x) * ODD_EVEN_TILE;
    const int valid =
        n - begin < ODD_EVEN_TILE ? static_cast<int>(n - begin) : static_cast<int>(ODD_EVEN_TILE);

    for (int i = threadIdx.x; i < valid; i += ODD_EVEN_BLOCK)
        tile[i] = words[begin + i];
    __syncthreads();
    for (int half = 1; half < ODD_EVEN_TILE; half *= 2)
        for (int distance = half; distance > 0; distance /= 2) {
            for (int i = threadIdx.x; i < valid; i += ODD_EVEN_BLOCK)
                if (odd_even_begins(i, half, distance))
                    sort_compare_exchange(tile, i, i + distance, valid);
            __syncthreads();
        }
    for (int i = threadIdx.x; i < valid; i += ODD_EVEN_BLOCK)
        words[begin + i] = tile[i];
}

template <typename WORD>
static __global__ void sort_odd_even_wide_kernel(WORD *words, int64_t n, int64_t half,
                                                 int64_t distance)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;

    if (i < n && odd_even_begins(i, half, distance))
        sort_compare_exchange(words, i, i + distance, n);
}

template <typename WORD> static enum gpurun_status odd_even_run(struct gpurun_ctx *ctx)
{
    const struct sort_words w = sort_words_for(ctx);
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    const unsigned tiles = static_cast<unsigned>((w.n + ODD_EVEN_TILE - 1) / ODD_EVEN_TILE);
    const unsigned block = static_cast<unsigned>(sort_options_of(ctx)->block);
    const unsigned blocks = static_cast<unsigned>((w.n + block - 1) / block);
    WORD *words = static_cast<WORD *>(ctx->scratch);

    sort_words_make(ctx, w, words);
    sort_odd_even_tile_kernel<WORD><<<tiles, ODD_EVEN_BLOCK, 0, stream>>>(words, w.n);
    for (int64_t half = ODD_EVEN_TILE; half < w.n; half *= 2)
        for (int64_t distance = half; distance > 0; distance /= 2)
            sort_odd_even_wide_kernel<WORD>
                <<<blocks, block, 0, stream>>>(words, w.n, half, distance);
    sort_words_write(ctx, w, words);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

size_t sort_odd_even_scratch(struct gpurun_ctx *ctx)
{
    return sort_words_bytes(ctx);
}

enum gpurun_status sort_launch_odd_even(struct gpurun_ctx *ctx)
{
    return SORT_WORDS_DISPATCH(sort_words_for(ctx).word_bytes, odd_even_run, ctx);
}
