/*
 * sort, variant "quicksort": three-way partitions, level by level; each level is launched by the one before it.
 *
 * Mapping  one tile of a segment per block; a warp's votes say where each lane writes, its popcounts how far.
 * Memory   reads and writes every word once per level, until segments of 2048 are sorted in shared memory.
 * Bound    memory, times log2(n / 2048) levels, and two atomics per tile on its segment's cursors.
 * Limits   not stable by itself: words carry the index where it shows. Needs dynamic parallelism.
 *
 * One kernel, `step`, drives: it makes segments of what the last level left, fires the kernels of this level off
 * and launches itself for when they have ended. So four launches are pending at most, however long the queues.
 * The host begins a new chain every few levels, as launches nest only so deep. All that equals a pivot is done
 * with; a segment that is still large after twice the expected levels is handed over to a radix sort.
 */
#include "sort_bitonic.cuh"

enum {
    QUICK_BLOCK = 512,
    QUICK_ITEMS = 8,
    QUICK_TILE = QUICK_BLOCK * QUICK_ITEMS,
    QUICK_LEAF = BITONIC_TILE, /* words that are sorted in shared memory */
    QUICK_STEP_BLOCK = 512,
    QUICK_SAMPLES = 9, /* whose median is the pivot */
    QUICK_CHAIN = 8,   /* levels in one chain of launches */
};

typedef unsigned long long quick_count;

/* A stretch to be split, and what the split has found. */
template <typename WORD> struct quick_part {
    int64_t begin, end;
    int64_t first_tile;       /* of the level */
    quick_count below, above; /* words written so far on either side of the pivot */
    WORD pivot;
};

struct quick_leaf {
    int64_t begin;
    int elems;
};

/* All zero at the start. */
struct quick_state {
    int level;
    unsigned parts[2], leaves; /* of the level; parts of even and of odd levels */
    int64_t tiles[2];          /* likewise */
    int is_done, error;
};

/* The words of level L lie in words[L % 2], its parts in parts[L % 2]. What is finished goes to words[0]: no other
 * segment has any business in its range. */
template <typename WORD> struct quick_sort {
    WORD *words[2];
    struct quick_part<WORD> *parts[2];
    struct quick_leaf *leaves;
    struct quick_state *state;
    int64_t n;
    int level_max;
    bool is_one_step;
};

/* The part that a tile belongs to. All tiles of a level are numbered through its parts. */
template <typename WORD>
static __device__ __forceinline__ struct quick_part<WORD> *
quick_part_of(struct quick_part<WORD> *parts, unsigned count, int64_t tile) {
    unsigned low = 0, high = count;

    while (high - low > 1) {
        const unsigned middle = low + (high - low) / 2;

        if (parts[middle].first_tile <= tile)
            low = middle;
        else
            high = middle;
    }
    return parts + low;
}

/* Splits a tile: what is below the pivot goes to the front of the segment, what is above it to the back. */
template <typename WORD>
static __global__ void __launch_bounds__(QUICK_BLOCK)
    sort_quicksort_partition_kernel(struct quick_sort<WORD> s, int level)
{
    __shared__ unsigned below_in_tile, above_in_tile;
    __shared__ quick_count below_before, above_before;
    const WORD *from = level % 2 == 0 ? s.words[0] : s.words[1];
    WORD *to = level % 2 == 0 ? s.words[1] : s.words[0];
    struct quick_part<WORD> *part =
        quick_part_of(level % 2 == 0 ? s.parts[0] : s.parts[1], s.state->parts[level % 2],
                      static_cast<int64_t>(blockIdx.x));
    const WORD pivot = part->pivot;
    const int64_t begin = part->begin, end = part->end;
    const int64_t first = begin + (blockIdx.x - part->first_tile) * QUICK_TILE + threadIdx.x;
    const unsigned lane = threadIdx.x % 32, lower_lanes = (1u << lane) - 1;
    unsigned below = 0, above = 0, below_at = 0, above_at = 0;
    WORD words[QUICK_ITEMS];

    if (threadIdx.x == 0)
        below_in_tile = above_in_tile = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < QUICK_ITEMS; i++) {
        const int64_t at = first + i * QUICK_BLOCK;

        words[i] = at < end ? from[at] : pivot; /* a word like the pivot goes nowhere */
        below += __popc(__ballot_sync(0xffffffffu, words[i] < pivot));
        above += __popc(__ballot_sync(0xffffffffu, words[i] > pivot));
    }
    if (lane == 0) {
        below_at = atomicAdd(&below_in_tile, below);
        above_at = atomicAdd(&above_in_tile, above);
    }
    below_at = __shfl_sync(0xffffffffu, below_at, 0);
    above_at = __shfl_sync(0xffffffffu, above_at, 0);
    __syncthreads();
    if (threadIdx.x == 0) {
        below_before = atomicAdd(&part->below, static_cast<quick_count>(below_in_tile));
        above_before = atomicAdd(&part->above, static_cast<quick_count>(above_in_tile));
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < QUICK_ITEMS; i++) {
        const unsigned is_below = __ballot_sync(0xffffffffu, words[i] < pivot);
        const unsigned is_above = __ballot_sync(0xffffffffu, words[i] > pivot);
        const int64_t low = static_cast<int64_t>(below_before) + below_at;
        const int64_t high = static_cast<int64_t>(above_before) + above_at;

        if (words[i] < pivot)
            to[begin + low + __popc(is_below & lower_lanes)] = words[i];
        else if (words[i] > pivot)
            to[end - 1 - high - __popc(is_above & lower_lanes)] = words[i];
        below_at += __popc(is_below);
        above_at += __popc(is_above);
    }
}

/* The band of each pivot of a level that has been split: words that equal it are it. */
template <typename WORD>
static __global__ void __launch_bounds__(QUICK_BLOCK)
    sort_quicksort_band_kernel(struct quick_sort<WORD> s, int level)
{
    const struct quick_part<WORD> *part =
        quick_part_of(level % 2 == 0 ? s.parts[0] : s.parts[1], s.state->parts[level % 2],
                      static_cast<int64_t>(blockIdx.x));
    const int64_t first = part->begin + (blockIdx.x - part->first_tile) * QUICK_TILE;
    const int64_t band_begin = part->begin + static_cast<int64_t>(part->below);
    const int64_t band_end = part->end - static_cast<int64_t>(part->above);
    const int64_t last = first + QUICK_TILE < band_end ? first + QUICK_TILE : band_end;

    for (int64_t at = first + threadIdx.x; at < last; at += QUICK_BLOCK)
        if (at >= band_begin)
            s.words[0][at] = part->pivot;
}

/* A block per leaf. */
template <typename WORD>
static __global__ void __launch_bounds__(BITONIC_BLOCK)
    sort_quicksort_leaf_kernel(struct quick_sort<WORD> s, int level)
{
    __shared__ WORD tile[QUICK_LEAF];
    const struct quick_leaf leaf = s.leaves[blockIdx.x];
    const WORD *from = level % 2 == 0 ? s.words[0] : s.words[1];

    for (int i = threadIdx.x; i < leaf.elems; i += BITONIC_BLOCK)
        tile[i] = from[leaf.begin + i];
    __syncthreads();
    bitonic_sort_tile(tile, leaf.elems);
    for (int i = threadIdx.x; i < leaf.elems; i += BITONIC_BLOCK)
        s.words[0][leaf.begin + i] = tile[i];
}

/* One bit of a segment: zeros go to the front, ones to the back, each in their order. */
template <typename WORD>
static __device__ void quick_split(const WORD *from, WORD *to, int64_t elems, int bit,
                                   int64_t *sums)
{
    int64_t zeros = 0, total, before = 0;

    for (int64_t i = threadIdx.x; i < elems; i += QUICK_BLOCK)
        zeros += (from[i] >> bit & 1) == 0;
    sort_prefix(zeros, sums, &zeros);
    for (int64_t base = 0; base < elems; base += QUICK_BLOCK) {
        const int64_t i = base + threadIdx.x;
        const bool is_zero = i < elems && (from[i] >> bit & 1) == 0;
        const int64_t rank = before + sort_prefix(static_cast<int64_t>(is_zero), sums, &total);

        if (i < elems)
            to[is_zero ? rank : zeros + i - rank] = from[i];
        before += total;
    }
    __syncthreads();
}

/* What pivots have failed to split: a block per segment sorts it bit by bit. */
template <typename WORD>
static __global__ void __launch_bounds__(QUICK_BLOCK)
    sort_quicksort_guard_kernel(struct quick_sort<WORD> s, int level)
{
    __shared__ int64_t sums[QUICK_BLOCK / 32];
    const struct quick_part<WORD> *part = (level % 2 == 0 ? s.parts[0] : s.parts[1]) + blockIdx.x;
    const int64_t elems = part->end - part->begin;
    WORD *from = (level % 2 == 0 ? s.words[0] : s.words[1]) + part->begin;
    WORD *to = (level % 2 == 0 ? s.words[1] : s.words[0]) + part->begin;

    for (int bit = 0; bit < static_cast<int>(8 * sizeof(WORD)); bit += 2) {
        quick_split(from, to, elems, bit, sums);
        quick_split(to, from, elems, bit + 1, sums);
    }
    if (level % 2 == 1)
        for (int64_t i = threadIdx.x; i < elems; i += QUICK_BLOCK)
            to[i] = from[i];
}

/* --- the step -------------------------------------------------------------------------------------------- */

/* The median of words at scattered places of a segment. */
template <typename WORD>
static __device__ WORD quick_pivot(const WORD *words, int64_t begin, int64_t end)
{
    uint64_t random = static_cast<uint64_t>(begin) ^ static_cast<uint64_t>(end) << 32;
    WORD samples[QUICK_SAMPLES];

    for (int i = 0; i < QUICK_SAMPLES; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint64_t place = static_cast<uint64_t>(
            static_cast<sort_uint128>(random) * static_cast<uint64_t>(end - begin) >> 64);
        const WORD word = words[begin + static_cast<int64_t>(place)];
        int at = i;

        for (; at > 0 && word < samples[at - 1]; at--)
            samples[at] = samples[at - 1];
        samples[at] = word;
    }
    return samples[QUICK_SAMPLES / 2];
}

/* Queues a segment of the level, as a part or as a leaf. */
template <typename WORD>
static __device__ void quick_push(const struct quick_sort<WORD> &s, int level, int64_t begin,
                                  int64_t end)
{
    struct quick_part<WORD> *parts = level % 2 == 0 ? s.parts[0] : s.parts[1];
    struct quick_part<WORD> part;
    struct quick_leaf leaf;

    if (end - begin > QUICK_LEAF || (s.is_one_step && end > begin)) {
        part.begin = begin;
        part.end = end;
        part.first_tile = 0;
        part.below = part.above = 0;
        part.pivot = quick_pivot(level % 2 == 0 ? s.words[0] : s.words[1], begin, end);
        parts[atomicAdd(&s.state->parts[level % 2], 1u)] = part;
    } else if (end > begin) {
        leaf.begin = begin;
        leaf.elems = static_cast<int>(end - begin);
        s.leaves[atomicAdd(&s.state->leaves, 1u)] = leaf;
    }
}

/* Queues what the level before has left: both sides of each pivot. Ends with a barrier. */
template <typename WORD>
static __device__ void quick_queue(const struct quick_sort<WORD> &s, int level)
{
    const struct quick_part<WORD> *last = level % 2 == 0 ? s.parts[1] : s.parts[0];

    if (threadIdx.x == 0) {
        s.state->parts[level % 2] = 0;
        s.state->leaves = 0;
    }
    __syncthreads();
    if (level == 0 && threadIdx.x == 0)
        quick_push(s, level, 0, s.n);
    else if (level > 0)
        for (unsigned i = threadIdx.x; i < s.state->parts[1 - level % 2]; i += QUICK_STEP_BLOCK) {
            const struct quick_part<WORD> *part = last + i;

            quick_push(s, level, part->begin, part->begin + static_cast<int64_t>(part->below));
            quick_push(s, level, part->end - static_cast<int64_t>(part->above), part->end);
        }
    __threadfence();
    __syncthreads();
}

/* Numbers the tiles of the level's parts. Ends with a barrier. */
template <typename WORD>
static __device__ void quick_number(const struct quick_sort<WORD> &s, int level, int64_t *sums)
{
    struct quick_part<WORD> *parts = level % 2 == 0 ? s.parts[0] : s.parts[1];
    const unsigned count = s.state->parts[level % 2];
    int64_t before = 0, total;

    for (unsigned base = 0; base < count; base += QUICK_STEP_BLOCK) {
        const unsigned i = base + threadIdx.x;
        const int64_t tiles =
            i < count ? (parts[i].end - parts[i].begin + QUICK_TILE - 1) / QUICK_TILE : 0;
        const int64_t prefix = sort_prefix(tiles, sums, &total);

        if (i < count)
            parts[i].first_tile = before + prefix;
        before += total;
    }
    if (threadIdx.x == 0)
        s.state->tiles[level % 2] = before;
    __threadfence();
    __syncthreads();
}

static __device__ void quick_check_launch(struct quick_state *state)
{
    const cudaError_t error = cudaGetLastError();

    if (error != cudaSuccess)
        state->error = static_cast<int>(error);
}

/* Fires off the kernels of a level. They run beside each other, each in ranges of its own. */
template <typename WORD>
static __device__ void quick_fire(const struct quick_sort<WORD> &s, int level)
{
    struct quick_state *state = s.state;
    const unsigned parts = state->parts[level % 2];

    if (level > 0 && state->parts[1 - level % 2] > 0) {
        sort_quicksort_band_kernel<WORD><<<static_cast<unsigned>(state->tiles[1 - level % 2]),
                                           QUICK_BLOCK, 0, cudaStreamFireAndForget>>>(s, level - 1);
        quick_check_launch(state);
    }
    if (state->leaves > 0) {
        sort_quicksort_leaf_kernel<WORD>
            <<<state->leaves, BITONIC_BLOCK, 0, cudaStreamFireAndForget>>>(s, level);
        quick_check_launch(state);
    }
    if (parts > 0 && level < s.level_max) {
        sort_quicksort_partition_kernel<WORD>
            <<<static_cast<unsigned>(state->tiles[level % 2]), QUICK_BLOCK, 0,
               cudaStreamFireAndForget>>>(s, level);
        quick_check_launch(state);
    } else if (parts > 0) {
        sort_quicksort_guard_kernel<WORD>
            <<<parts, QUICK_BLOCK, 0, cudaStreamFireAndForget>>>(s, level);
        quick_check_launch(state);
    }
    state->is_done = parts == 0 || level >= s.level_max;
}

/* One level, and then the next: `chain` more of them follow without the host. */
template <typename WORD>
static __global__ void __launch_bounds__(QUICK_STEP_BLOCK)
    sort_quicksort_step_kernel(struct quick_sort<WORD> s, int chain)
{
    __shared__ int64_t sums[QUICK_STEP_BLOCK / 32];
    const int level = s.state->level;

    if (s.state->is_done)
        return;
    quick_queue(s, level);
    quick_number(s, level, sums);
    if (threadIdx.x != 0)
        return;
    quick_fire(s, level);
    s.state->level = level + 1;
    __threadfence(); /* what the launched kernels read has been written */
    if (chain > 0 && !s.state->is_done && s.state->error == 0) {
        sort_quicksort_step_kernel<WORD>
            <<<1, QUICK_STEP_BLOCK, 0, cudaStreamTailLaunch>>>(s, chain - 1);
        quick_check_launch(s.state);
    }
}

/* The answer of one step: what the first partition wrote, its band, and the band's bounds. */
template <typename WORD>
static __global__ void __launch_bounds__(QUICK_BLOCK)
    sort_quicksort_show_kernel(struct quick_sort<WORD> s, struct sort_words w, int64_t *bounds)
{
    const struct quick_part<WORD> *part = s.parts[0];
    const int64_t band_begin = static_cast<int64_t>(part->below);
    const int64_t band_end = s.n - static_cast<int64_t>(part->above);
    const int64_t first = static_cast<int64_t>(blockIdx.x) * QUICK_BLOCK + threadIdx.x;

    for (int64_t i = first; i < s.n; i += static_cast<int64_t>(gridDim.x) * QUICK_BLOCK) {
        const WORD word = i >= band_begin && i < band_end ? part->pivot : s.words[1][i];

        static_cast<WORD *>(w.out.keys)[i] = word ^ static_cast<WORD>(w.map.flip);
    }
    if (first == 0) {
        bounds[0] = band_begin;
        bounds[1] = band_end;
    }
}

/* A launch that failed on the device must not pass for an answer, however right the rest looks. */
static __global__ void sort_quicksort_check_kernel(const struct quick_state *state,
                                                   bool is_one_step)
{
    if (state->error != 0 || !(state->is_done || is_one_step))
        __trap();
}

/* --- launching ------------------------------------------------------------------------------------------ */

static int64_t quick_parts_max(int64_t n)
{
    return n / QUICK_LEAF + 1;
}

/* A part is larger than a leaf, and of a level there are at most two leaves for each part of the last one. */
template <typename WORD> static size_t quick_bytes(int64_t n)
{
    const size_t parts = static_cast<size_t>(quick_parts_max(n));

    return sort_align(sizeof(struct quick_state)) +
           2 * sort_align(parts * sizeof(struct quick_part<WORD>)) +
           sort_align(2 * parts * sizeof(struct quick_leaf)) +
           2 * sort_align(static_cast<size_t>(n) * sizeof(WORD));
}

template <typename WORD> static struct quick_sort<WORD> quick_carve(const struct gpurun_ctx *ctx) {
    char *scratch = static_cast<char *>(ctx->scratch);
    struct quick_sort<WORD> s;

    s.n = sort_options_of(ctx)->n;
    s.is_one_step = sort_is_one_step(ctx);
    s.level_max = 8;
    for (int64_t elems = s.n; elems > QUICK_LEAF; elems /= 2)
        s.level_max += 2;

    const size_t parts = static_cast<size_t>(quick_parts_max(s.n));

    s.state = static_cast<struct quick_state *>(sort_carve(&scratch, sizeof(*s.state)));
    for (int i = 0; i < 2; i++) {
        s.parts[i] = static_cast<struct quick_part<WORD> *>(
            sort_carve(&scratch, parts * sizeof(struct quick_part<WORD>)));
        s.words[i] = static_cast<WORD *>(sort_carve(&scratch, s.n * sizeof(WORD)));
    }
    s.leaves = static_cast<struct quick_leaf *>(
        sort_carve(&scratch, 2 * parts * sizeof(struct quick_leaf)));
    return s;
}

template <typename WORD>
static enum gpurun_status quick_run(struct gpurun_ctx *ctx)
{
    const struct sort_words w = sort_words_for(ctx);
    const struct quick_sort<WORD> s = quick_carve<WORD>(ctx);
    const cudaStream_t stream = gpurun_cuda_stream(ctx);

    GPURUN_CUDA_TRY(ctx, cudaMemsetAsync(s.state, 0, sizeof(*s.state), stream));
    sort_words_make(ctx, w, s.words[0]);
    if (s.is_one_step) {
        sort_quicksort_step_kernel<WORD><<<1, QUICK_STEP_BLOCK, 0, stream>>>(s, 0);
        sort_quicksort_show_kernel<WORD><<<sort_words_blocks(ctx, w.n), QUICK_BLOCK, 0, stream>>>(
            s, w, static_cast<int64_t *>(sort_state_of(ctx)->bounds->dev));
    } else {
        for (int level = 0; level <= s.level_max; level += QUICK_CHAIN)
            sort_quicksort_step_kernel<WORD>
                <<<1, QUICK_STEP_BLOCK, 0, stream>>>(s, QUICK_CHAIN - 1);
        sort_words_write(ctx, w, static_cast<const WORD *>(s.words[0]));
    }
    sort_quicksort_check_kernel<<<1, 1, 0, stream>>>(s.state, s.is_one_step);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

size_t sort_quicksort_scratch(struct gpurun_ctx *ctx)
{
    const struct sort_words w = sort_words_for(ctx);

    return SORT_WORDS_DISPATCH(w.word_bytes, quick_bytes, w.n);
}

enum gpurun_status sort_launch_quicksort(struct gpurun_ctx *ctx)
{
    const struct gpurun_tensor *bounds = sort_state_of(ctx)->bounds;

    if (sort_options_of(ctx)->n > 0)
        return SORT_WORDS_DISPATCH(sort_words_for(ctx).word_bytes, quick_run, ctx);
    GPURUN_CUDA_TRY(ctx, cudaMemsetAsync(bounds->dev, 0, bounds->bytes, gpurun_cuda_stream(ctx)));
    return GPURUN_OK;
}
