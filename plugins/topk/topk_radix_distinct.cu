/*
 * topk, variant "radix" with distinct = yes: which digits occur, instead of how often.
 *
 * Mapping  as topk_radix.cu; a digit has 16 bits, each prefix that is kept has a bitmap of its next digits.
 * Memory   reads the input once per digit and once for the lowest indices; k bitmaps of 8 KiB in L2.
 * Bound    memory: 3 reads for 4-byte elements, 5 for 8-byte ones; data of few values searches every key.
 * Limits   k up to 4096.
 *
 * The k best values lie under the k best prefixes that occur, whatever the level, so keeping those is exact
 * and how often a value repeats does not matter. A bit is read before it is set: only the first few threads
 * that meet a value write.
 */
#include "topk_device.cuh"
#include "topk_radix.h"

enum {
    DISTINCT_BITS = 16,
    DISTINCT_WORDS = (1 << DISTINCT_BITS) / 32, /* of a bitmap */
    DISTINCT_PICK_BLOCK = 1024,
    DISTINCT_PICK_WORDS = 8, /* per thread and round */
};

typedef unsigned long long distinct_index; /* what 64-bit atomicMin takes */

struct distinct_scratch {
    unsigned *maps;         /* k bitmaps per row */
    uint64_t *kept[2];      /* k prefixes per row, best first; of an even level and of an odd one */
    int *kept_count;        /* one per row */
    distinct_index *lowest; /* k per row */
};

struct distinct_plan {
    int64_t rows_at_once;
    size_t map_bytes, kept_bytes, count_bytes, lowest_bytes;
};

/* Where `prefix` is among `count` kept ones, which fall; -1: it was not kept. */
static inline __host__ __device__ int distinct_find(const uint64_t *kept, int count,
                                                    uint64_t prefix)
{
    int low = 0, high = count;

    while (low < high) {
        const int middle = (low + high) / 2;

        if (kept[middle] > prefix)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && kept[low] == prefix ? low : -1;
}

/* Which word of a row's bitmaps is the place-th from the best: slots rise, digits fall. */
static inline __host__ __device__ int distinct_word(int place)
{
    return place - place % DISTINCT_WORDS + DISTINCT_WORDS - 1 - place % DISTINCT_WORDS;
}

/* Copies a row's kept prefixes to shared memory. Ends with a barrier. */
static __device__ __forceinline__ void distinct_copy(uint64_t *kept, const uint64_t *from,
                                                     int count)
{
    for (int slot = threadIdx.x; slot < count; slot += blockDim.x)
        kept[slot] = from[slot];
    __syncthreads();
}

/* Level 0: one bitmap, kept in shared memory until the block is done. */
template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(RADIX_BLOCK, GPURUN_SM_THREADS / RADIX_BLOCK)
    topk_distinct_first_kernel(struct topk_rows rows, struct distinct_scratch scratch)
{
    enum { ITEMS = RADIX_BYTES / sizeof(BITS), SHIFT = 8 * sizeof(BITS) - DISTINCT_BITS };
    __shared__ unsigned map[DISTINCT_WORDS];
    const int64_t row = blockIdx.y, tile = static_cast<int64_t>(RADIX_BLOCK) * ITEMS;
    unsigned *row_map = scratch.maps + row * rows.k * DISTINCT_WORDS;
    BITS bits[ITEMS];

    for (int word = threadIdx.x; word < DISTINCT_WORDS; word += RADIX_BLOCK)
        map[word] = 0;
    __syncthreads();
    for (int64_t base = blockIdx.x * tile; base < rows.n; base += gridDim.x * tile) {
        topk_load(topk_row<BITS>(rows, row), base, rows.n, bits);
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            const unsigned digit =
                static_cast<unsigned>(topk_key<REAL>(bits[j], rows.flip) >> SHIFT);
            const unsigned bit = 1u << digit % 32;

            if (base + threadIdx.x + j * RADIX_BLOCK < rows.n && !(map[digit / 32] & bit))
                atomicOr(&map[digit / 32], bit);
        }
    }
    __syncthreads();
    for (int word = threadIdx.x; word < DISTINCT_WORDS; word += RADIX_BLOCK)
        if (map[word] & ~row_map[word])
            atomicOr(&row_map[word], map[word]);
}

/* The other levels: marks the next digit of each key that continues a kept prefix. */
template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(RADIX_BLOCK, GPURUN_SM_THREADS / RADIX_BLOCK)
    topk_distinct_mark_kernel(struct topk_rows rows, struct distinct_scratch scratch, int level)
{
    enum { ITEMS = RADIX_BYTES / sizeof(BITS) };
    __shared__ uint64_t kept[RADIX_DISTINCT_K_MAX];
    const int64_t row = blockIdx.y, tile = static_cast<int64_t>(RADIX_BLOCK) * ITEMS;
    const int count = scratch.kept_count[row];
    const int shift = 8 * sizeof(BITS) - DISTINCT_BITS * (level + 1);
    unsigned *row_map = scratch.maps + row * rows.k * DISTINCT_WORDS;
    BITS bits[ITEMS];

    distinct_copy(kept, (level % 2 ? scratch.kept[1] : scratch.kept[0]) + row * rows.k, count);
    for (int64_t base = blockIdx.x * tile; base < rows.n; base += gridDim.x * tile) {
        topk_load(topk_row<BITS>(rows, row), base, rows.n, bits);
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            const uint64_t upper = topk_key<REAL>(bits[j], rows.flip) >> shift;
            const uint64_t prefix = upper >> DISTINCT_BITS;
            const unsigned digit = upper & ((1u << DISTINCT_BITS) - 1), bit = 1u << digit % 32;

            if (base + threadIdx.x + j * RADIX_BLOCK >= rows.n || prefix < kept[count - 1])
                continue;

            const int slot = distinct_find(kept, count, prefix);
            unsigned *word = row_map + static_cast<int64_t>(slot) * DISTINCT_WORDS + digit / 32;

            if (slot >= 0 && !(*word & bit))
                atomicOr(word, bit);
        }
    }
}

/* Keeps the best k prefixes that the bitmaps of a level hold. */
static __global__ void __launch_bounds__(DISTINCT_PICK_BLOCK)
    topk_distinct_pick_kernel(struct distinct_scratch scratch, int64_t k, int level)
{
    __shared__ int sums[DISTINCT_PICK_BLOCK / 32];
    const int64_t row = blockIdx.x;
    const int words = (level == 0 ? 1 : scratch.kept_count[row]) * DISTINCT_WORDS;
    const unsigned *row_map = scratch.maps + row * k * DISTINCT_WORDS;
    const uint64_t *old = (level % 2 ? scratch.kept[1] : scratch.kept[0]) + row * k;
    uint64_t *kept = (level % 2 ? scratch.kept[0] : scratch.kept[1]) + row * k;
    int found = 0, total;

    for (int base = 0; base < words && found < k;
         base += DISTINCT_PICK_BLOCK * DISTINCT_PICK_WORDS) {
        const int first = base + threadIdx.x * DISTINCT_PICK_WORDS;
        unsigned map[DISTINCT_PICK_WORDS];
        int bits = 0;

#pragma unroll
        for (int j = 0; j < DISTINCT_PICK_WORDS; j++) {
            map[j] = first < words ? row_map[distinct_word(first + j)] : 0;
            bits += __popc(map[j]);
        }

        int slot = found + topk_prefix(bits, sums, &total);
        const uint64_t prefix =
            level > 0 && bits > 0 ? old[first / DISTINCT_WORDS] << DISTINCT_BITS : 0;

#pragma unroll
        for (int j = 0; j < DISTINCT_PICK_WORDS; j++) {
            const int word = distinct_word(first + j) % DISTINCT_WORDS;

            for (unsigned left = map[j]; left != 0 && slot < k; slot++) {
                const int bit = 31 - __clz(left);

                kept[slot] = prefix | static_cast<uint64_t>(word * 32 + bit);
                left ^= 1u << bit;
            }
        }
        found += total;
    }
    if (threadIdx.x == 0)
        scratch.kept_count[row] = found < k ? found : static_cast<int>(k);
}

/* Finds where each kept value, by now a whole key, occurs first. */
template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(RADIX_BLOCK, GPURUN_SM_THREADS / RADIX_BLOCK)
    topk_distinct_lowest_kernel(struct topk_rows rows, struct distinct_scratch scratch)
{
    enum { ITEMS = RADIX_BYTES / sizeof(BITS) };
    __shared__ uint64_t kept[RADIX_DISTINCT_K_MAX];
    const int64_t row = blockIdx.y, tile = static_cast<int64_t>(RADIX_BLOCK) * ITEMS;
    const int count = scratch.kept_count[row];
    distinct_index *lowest = scratch.lowest + row * rows.k;
    BITS bits[ITEMS];

    distinct_copy(kept, scratch.kept[0] + row * rows.k, count);
    for (int64_t base = blockIdx.x * tile; base < rows.n; base += gridDim.x * tile) {
        topk_load(topk_row<BITS>(rows, row), base, rows.n, bits);
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            const int64_t i = base + threadIdx.x + j * RADIX_BLOCK;
            const uint64_t key = topk_key<REAL>(bits[j], rows.flip);

            if (i >= rows.n || key < kept[count - 1])
                continue;

            const int slot = distinct_find(kept, count, key);

            if (slot >= 0 && static_cast<distinct_index>(i) < lowest[slot])
                atomicMin(&lowest[slot], static_cast<distinct_index>(i));
        }
    }
}

template <typename BITS>
static __global__ void __launch_bounds__(RADIX_BLOCK)
    topk_distinct_write_kernel(struct topk_rows rows, struct distinct_scratch scratch)
{
    const int64_t row = blockIdx.x;
    const int count = scratch.kept_count[row];

    for (int slot = threadIdx.x; slot < count; slot += RADIX_BLOCK)
        topk_write<BITS>(rows, row, slot,
                         static_cast<int64_t>(scratch.lowest[row * rows.k + slot]));
    if (threadIdx.x == 0)
        rows.count[row] = count;
}

static struct distinct_plan distinct_plan_for(const struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const size_t map_bytes = DISTINCT_WORDS * sizeof(unsigned);
    struct distinct_plan plan;

    plan.rows_at_once =
        topk_rows_at_once(o, o->k * (map_bytes + 2 * sizeof(uint64_t) + sizeof(distinct_index)));
    plan.map_bytes = plan.rows_at_once * o->k * map_bytes;
    plan.kept_bytes = plan.rows_at_once * o->k * sizeof(uint64_t);
    plan.count_bytes = plan.rows_at_once * sizeof(int);
    plan.lowest_bytes = plan.rows_at_once * o->k * sizeof(distinct_index);
    return plan;
}

template <typename BITS, bool REAL>
static enum gpurun_status distinct_rows_run(struct gpurun_ctx *ctx, struct topk_rows rows,
                                            struct distinct_scratch scratch,
                                            struct distinct_plan plan, dim3 grid)
{
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    const int levels = 8 * sizeof(BITS) / DISTINCT_BITS;

    for (int level = 0; level < levels; level++) {
        GPURUN_CUDA_TRY(ctx, cudaMemsetAsync(scratch.maps, 0, plan.map_bytes, stream));
        if (level == 0)
            topk_distinct_first_kernel<BITS, REAL><<<grid, RADIX_BLOCK, 0, stream>>>(rows, scratch);
        else
            topk_distinct_mark_kernel<BITS, REAL>
                <<<grid, RADIX_BLOCK, 0, stream>>>(rows, scratch, level);
        topk_distinct_pick_kernel<<<grid.y, DISTINCT_PICK_BLOCK, 0, stream>>>(scratch, rows.k,
                                                                              level);
    }
    GPURUN_CUDA_TRY(ctx, cudaMemsetAsync(scratch.lowest, 0xff, plan.lowest_bytes, stream));
    topk_distinct_lowest_kernel<BITS, REAL><<<grid, RADIX_BLOCK, 0, stream>>>(rows, scratch);
    topk_distinct_write_kernel<BITS><<<grid.y, RADIX_BLOCK, 0, stream>>>(rows, scratch);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

size_t topk_radix_distinct_scratch(struct gpurun_ctx *ctx)
{
    const struct distinct_plan plan = distinct_plan_for(ctx);

    return topk_align(plan.map_bytes) + 2 * topk_align(plan.kept_bytes) +
           topk_align(plan.count_bytes) + topk_align(plan.lowest_bytes);
}

enum gpurun_status topk_launch_radix_distinct(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const struct distinct_plan plan = distinct_plan_for(ctx);
    char *free_scratch = static_cast<char *>(ctx->scratch);
    struct distinct_scratch scratch;

    scratch.maps = static_cast<unsigned *>(topk_carve(&free_scratch, plan.map_bytes));
    scratch.kept[0] = static_cast<uint64_t *>(topk_carve(&free_scratch, plan.kept_bytes));
    scratch.kept[1] = static_cast<uint64_t *>(topk_carve(&free_scratch, plan.kept_bytes));
    scratch.kept_count = static_cast<int *>(topk_carve(&free_scratch, plan.count_bytes));
    scratch.lowest = static_cast<distinct_index *>(topk_carve(&free_scratch, plan.lowest_bytes));
    for (int64_t first = 0; first < o->rows; first += plan.rows_at_once) {
        const int64_t left = o->rows - first;
        const unsigned count =
            static_cast<unsigned>(left < plan.rows_at_once ? left : plan.rows_at_once);
        const struct topk_rows rows = topk_rows_from(ctx, first);
        const dim3 grid(radix_blocks(ctx, count), count);

        GPURUN_TRY(
            TOPK_DISPATCH(topk_state_of(ctx), distinct_rows_run, ctx, rows, scratch, plan, grid));
    }
    return GPURUN_OK;
}
