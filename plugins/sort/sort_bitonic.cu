/*
 * sort, variant "bitonic": a network that merges two sorted halves by comparing them from both ends.
 *
 * Mapping  one comparator per thread; a tile of 2048 words takes all its steps in shared memory.
 * Memory   steps wider than a tile read and write every word: log2(n / tile) ^ 2 / 2 passes.
 * Bound    memory, times the number of steps in global memory.
 * Limits   none: places past the end are left out, so n is any. Not stable; words carry the index where it shows.
 */
#include "sort_bitonic.cuh"

/* Loads the block's tile into shared memory. Returns how many words it has; ends with a barrier. */
template <typename WORD>
static __device__ __forceinline__ int bitonic_load(const WORD *words, int64_t n, WORD *tile)
{
    const int64_t begin = static_cast<int64_t>(blockIdx.x) * BITONIC_TILE;
    const int valid =
        n - begin < BITONIC_TILE ? static_cast<int>(n - begin) : static_cast<int>(BITONIC_TILE);

    for (int i = threadIdx.x; i < valid; i += BITONIC_BLOCK)
        tile[i] = words[begin + i];
    __syncthreads();
    return valid;
}

template <typename WORD>
static __device__ __forceinline__ void bitonic_store(WORD *words, int valid, const WORD *tile)
{
    const int64_t begin = static_cast<int64_t>(blockIdx.x) * BITONIC_TILE;

    for (int i = threadIdx.x; i < valid; i += BITONIC_BLOCK)
        words[begin + i] = tile[i];
}

/* Sorts each tile. */
template <typename WORD>
static __global__ void __launch_bounds__(BITONIC_BLOCK)
    sort_bitonic_tile_kernel(WORD *words, int64_t n)
{
    __shared__ WORD tile[BITONIC_TILE];
    const int valid = bitonic_load(words, n, tile);

    bitonic_sort_tile(tile, valid);
    bitonic_store(words, valid, tile);
}

/* The steps of a merge that a tile holds. */
template <typename WORD>
static __global__ void __launch_bounds__(BITONIC_BLOCK)
    sort_bitonic_narrow_kernel(WORD *words, int64_t n)
{
    __shared__ WORD tile[BITONIC_TILE];
    const int valid = bitonic_load(words, n, tile);

    bitonic_narrow(tile, valid, BITONIC_TILE / 2);
    bitonic_store(words, valid, tile);
}

/* One step in global memory: the first of a merge of `width`, or between neighbours when `width` is 0. */
template <typename WORD>
static __global__ void sort_bitonic_wide_kernel(WORD *words, int64_t n, int64_t width,
                                                int64_t distance)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    int64_t low, high;

    if (width > 0)
        bitonic_mirror(i, width, &low, &high);
    else
        bitonic_neighbours(i, distance, &low, &high);
    sort_compare_exchange(words, low, high, n);
}

template <typename WORD> static enum gpurun_status bitonic_run(struct gpurun_ctx *ctx)
{
    const struct sort_words w = sort_words_for(ctx);
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    const unsigned tiles = static_cast<unsigned>((w.n + BITONIC_TILE - 1) / BITONIC_TILE);
    const unsigned block = static_cast<unsigned>(sort_options_of(ctx)->block);
    WORD *words = static_cast<WORD *>(ctx->scratch);

    sort_words_make(ctx, w, words);
    sort_bitonic_tile_kernel<WORD><<<tiles, BITONIC_BLOCK, 0, stream>>>(words, w.n);
    for (int64_t width = 2 * BITONIC_TILE; width / 2 < w.n; width *= 2) {
        const int64_t comparators = (w.n + width - 1) / width * (width / 2);
        const unsigned blocks = static_cast<unsigned>((comparators + block - 1) / block);

        sort_bitonic_wide_kernel<WORD><<<blocks, block, 0, stream>>>(words, w.n, width, 0);
        for (int64_t distance = width / 4; distance >= BITONIC_TILE; distance /= 2)
            sort_bitonic_wide_kernel<WORD><<<blocks, block, 0, stream>>>(words, w.n, 0, distance);
        sort_bitonic_narrow_kernel<WORD><<<tiles, BITONIC_BLOCK, 0, stream>>>(words, w.n);
    }
    sort_words_write(ctx, w, words);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

size_t sort_bitonic_scratch(struct gpurun_ctx *ctx)
{
    return sort_words_bytes(ctx);
}

enum gpurun_status sort_launch_bitonic(struct gpurun_ctx *ctx)
{
    return SORT_WORDS_DISPATCH(sort_words_for(ctx).word_bytes, bitonic_run, ctx);
}
