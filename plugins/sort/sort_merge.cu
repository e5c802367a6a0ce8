/*
 * sort, variant "merge": sorted tiles, then merges of twice the width until one is left.
 *
 * Mapping  a block writes one tile of each merge, a thread eight words of it; merge path says from where.
 * Memory   reads and writes every word log2(n / tile) times, in order, through shared memory.
 * Bound    latency: a search of the diagonal per block in global memory, and one per thread in shared memory.
 * Limits   none; stable, and words carry the index where a gather needs it.
 */
#include "sort_words.cuh"

enum { MERGE_BLOCK = 256, MERGE_ITEMS = 8, MERGE_TILE = MERGE_BLOCK * MERGE_ITEMS };

/* Two sorted stretches. */
template <typename WORD> struct merge_pair {
    const WORD *a, *b;
    int64_t a_elems, b_elems;
};

/* How many of the first `diagonal` words of the merge come from a. Of equal words those of a come first. */
template <typename WORD>
static __device__ int64_t merge_path(const struct merge_pair<WORD> &p, int64_t diagonal)
{
    int64_t low = diagonal > p.b_elems ? diagonal - p.b_elems : 0;
    int64_t high = diagonal < p.a_elems ? diagonal : p.a_elems;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (p.b[diagonal - 1 - middle] < p.a[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The words of a merge from `diagonal` on, as many as there are; the rest of `items` stays. */
template <typename WORD>
static __device__ __forceinline__ void merge_items(const struct merge_pair<WORD> &p,
                                                   int64_t diagonal, WORD (&items)[MERGE_ITEMS])
{
    const int64_t total = p.a_elems + p.b_elems;
    int64_t a = merge_path(p, diagonal < total ? diagonal : total);
    int64_t b = (diagonal < total ? diagonal : total) - a;

#pragma unroll
    for (int i = 0; i < MERGE_ITEMS; i++) {
        const bool take_a = a < p.a_elems && (b >= p.b_elems || !(p.b[b] < p.a[a]));

        if (take_a)
            items[i] = p.a[a++];
        else if (b < p.b_elems)
            items[i] = p.b[b++];
    }
}

/* A thread's words, by odd-even transposition. */
template <typename WORD>
static __device__ __forceinline__ void merge_sort_items(WORD (&items)[MERGE_ITEMS])
{
#pragma unroll
    for (int round = 0; round < MERGE_ITEMS; round++)
#pragma unroll
        for (int i = round % 2; i + 1 < MERGE_ITEMS; i += 2) {
            const WORD a = items[i], b = items[i + 1];

            items[i] = b < a ? b : a;
            items[i + 1] = b < a ? a : b;
        }
}

/* A thread's words into its place of the tile. Begins and ends with a barrier. */
template <typename WORD>
static __device__ __forceinline__ void merge_put(WORD *tile, const WORD (&items)[MERGE_ITEMS])
{
    __syncthreads();
#pragma unroll
    for (int i = 0; i < MERGE_ITEMS; i++)
        tile[threadIdx.x * MERGE_ITEMS + i] = items[i];
    __syncthreads();
}

/* Sorts each tile. What is past the end counts as the largest word. */
template <typename WORD>
static __global__ void __launch_bounds__(MERGE_BLOCK) sort_merge_tile_kernel(WORD *words, int64_t n)
{
    __shared__ WORD tile[MERGE_TILE];
    const int64_t begin = static_cast<int64_t>(blockIdx.x) * MERGE_TILE;
    const int valid =
        n - begin < MERGE_TILE ? static_cast<int>(n - begin) : static_cast<int>(MERGE_TILE);
    const int place = threadIdx.x * MERGE_ITEMS;
    WORD items[MERGE_ITEMS];

    for (int i = threadIdx.x; i < MERGE_TILE; i += MERGE_BLOCK)
        tile[i] = i < valid ? words[begin + i] : ~static_cast<WORD>(0);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < MERGE_ITEMS; i++)
        items[i] = tile[place + i];
    merge_sort_items(items);
    merge_put(tile, items);
    for (int width = MERGE_ITEMS; width < MERGE_TILE; width *= 2) {
        const int pair = place & ~(2 * width - 1);
        const struct merge_pair<WORD> p = {
            tile + pair, tile + pair + width, width, width
        };

        merge_items(p, place - pair, items);
        merge_put(tile, items);
    }
    for (int i = threadIdx.x; i < valid; i += MERGE_BLOCK)
        words[begin + i] = tile[i];
}

/* Copies the part of a merge that the block writes to shared memory; ends with a barrier. */
template <typename WORD>
static __device__ __forceinline__ struct merge_pair<WORD>
merge_load(const struct merge_pair<WORD> &p, int64_t begin, int64_t end, WORD *tile,
           int64_t *ends) {
    if (threadIdx.x % 32 == 0 && threadIdx.x < 64)
        ends[threadIdx.x / 32] = merge_path(p, threadIdx.x == 0 ? begin : end);
    __syncthreads();

    const int64_t a_begin = ends[0], b_begin = begin - a_begin;
    const int a_elems = static_cast<int>(ends[1] - a_begin);
    const int total = static_cast<int>(end - begin);
    const struct merge_pair<WORD> part = {
        tile, tile + a_elems, a_elems, total - a_elems
    };

    for (int i = threadIdx.x; i < total; i += MERGE_BLOCK)
        tile[i] = i < a_elems ? p.a[a_begin + i] : p.b[b_begin + i - a_elems];
    __syncthreads();
    return part;
}

/* Merges stretches of `width` words, a multiple of the tile, in pairs. */
template <typename WORD>
static __global__ void __launch_bounds__(MERGE_BLOCK)
    sort_merge_pass_kernel(const WORD *from, WORD *to, int64_t n, int64_t width)
{
    __shared__ WORD tile[MERGE_TILE];
    __shared__ int64_t ends[2];
    const int64_t begin = static_cast<int64_t>(blockIdx.x) * MERGE_TILE;
    const int64_t end = begin + MERGE_TILE < n ? begin + MERGE_TILE : n;
    const int64_t pair = begin / (2 * width) * (2 * width);
    const int64_t middle = pair + width < n ? pair + width : n;
    const int64_t last = middle + width < n ? middle + width : n;
    const struct merge_pair<WORD> p = {
        from + pair, from + middle, middle - pair, last - middle
    };
    WORD items[MERGE_ITEMS] = {};

    const struct merge_pair<WORD> part = merge_load(p, begin - pair, end - pair, tile, ends);

    merge_items(part, static_cast<int64_t>(threadIdx.x) * MERGE_ITEMS, items);
    merge_put(tile, items);
    for (int i = threadIdx.x; begin + i < end; i += MERGE_BLOCK)
        to[begin + i] = tile[i];
}

template <typename WORD> static enum gpurun_status merge_run(struct gpurun_ctx *ctx)
{
    const struct sort_words w = sort_words_for(ctx);
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    const unsigned tiles = static_cast<unsigned>((w.n + MERGE_TILE - 1) / MERGE_TILE);
    char *scratch = static_cast<char *>(ctx->scratch);
    WORD *from = static_cast<WORD *>(sort_carve(&scratch, w.n * sizeof(WORD)));
    WORD *to = static_cast<WORD *>(sort_carve(&scratch, w.n * sizeof(WORD)));

    sort_words_make(ctx, w, from);
    sort_merge_tile_kernel<WORD><<<tiles, MERGE_BLOCK, 0, stream>>>(from, w.n);
    for (int64_t width = MERGE_TILE; width < w.n; width *= 2) {
        WORD *const merged = to;

        sort_merge_pass_kernel<WORD><<<tiles, MERGE_BLOCK, 0, stream>>>(from, to, w.n, width);
        to = from;
        from = merged;
    }
    sort_words_write(ctx, w, static_cast<const WORD *>(from));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

size_t sort_merge_scratch(struct gpurun_ctx *ctx)
{
    return 2 * sort_words_bytes(ctx);
}

enum gpurun_status sort_launch_merge(struct gpurun_ctx *ctx)
{
    return SORT_WORDS_DISPATCH(sort_words_for(ctx).word_bytes, merge_run, ctx);
}
