/*
 * sort, variant "radix": eight bits at a time, least first: histogram, scan and scatter are a kernel each.
 *
 * Mapping  each block owns a contiguous stretch of the input, which it counts and later scatters tile by tile.
 * Memory   reads keys twice and writes them once per digit; tiles are put in order in shared memory first.
 * Bound    latency: eight votes a key, barriers; 12 bytes a key and pass of 4-byte keys.
 * Limits   none; stable. Every digit takes a pass, whatever the keys.
 */
#include "sort_device.cuh"
#include "sort_tile.cuh"

enum { RADIX_BLOCKS_PER_SM = 4, RADIX_TILES_PER_SM = 2 };

typedef unsigned long long radix_count;

/* Elements of a thread: a tile of 48 KB. */
template <int KEY_BYTES, int VALUE_BYTES> struct radix_size {
    enum { ITEMS = 128 / (KEY_BYTES + VALUE_BYTES) };
};

/* One pass over all elements. */
struct radix_pass {
    struct sort_items from, to;
    int64_t n, share;    /* elements, and elements of a block: whole tiles */
    radix_count *counts; /* SORT_DIGITS x blocks */
    radix_count *totals; /* SORT_DIGITS */
    struct sort_map map;
    int shift;
};

/* How often each digit occurs in the block's stretch. */
template <typename BITS>
static __global__ void __launch_bounds__(SORT_TILE_BLOCK)
    sort_radix_count_kernel(struct radix_pass p)
{
    __shared__ unsigned bins[SORT_DIGITS];
    const int64_t begin = blockIdx.x * p.share;
    const int64_t end = begin + p.share < p.n ? begin + p.share : p.n;

    for (int digit = threadIdx.x; digit < SORT_DIGITS; digit += SORT_TILE_BLOCK)
        bins[digit] = 0;
    __syncthreads();
#pragma unroll 8
    for (int64_t i = begin + threadIdx.x; i < end; i += SORT_TILE_BLOCK)
        atomicAdd(&bins[sort_digit(static_cast<const BITS *>(p.from.keys)[i], p.map, p.shift)], 1u);
    __syncthreads();
    for (int digit = threadIdx.x; digit < SORT_DIGITS; digit += SORT_TILE_BLOCK)
        p.counts[static_cast<int64_t>(digit) * gridDim.x + blockIdx.x] = bins[digit];
}

/* A block per digit: from the counts of all stretches to how many such elements lie before each. */
static __global__ void __launch_bounds__(SORT_DIGITS)
    sort_radix_scan_kernel(struct radix_pass p, int blocks)
{
    __shared__ radix_count sums[SORT_DIGITS / 32];
    radix_count *counts = p.counts + static_cast<int64_t>(blockIdx.x) * blocks;
    radix_count before = 0, total;

    for (int base = 0; base < blocks; base += SORT_DIGITS) {
        const int i = base + threadIdx.x;
        const radix_count here = i < blocks ? counts[i] : 0;
        const radix_count prefix = sort_prefix(here, sums, &total);

        if (i < blocks)
            counts[i] = before + prefix;
        before += total;
    }
    if (threadIdx.x == 0)
        p.totals[blockIdx.x] = before;
}

template <typename BITS, int VALUE_BYTES>
static __global__ void __launch_bounds__(SORT_TILE_BLOCK, RADIX_TILES_PER_SM)
    sort_radix_scatter_kernel(struct radix_pass p)
{
    enum { ITEMS = radix_size<sizeof(BITS), VALUE_BYTES>::ITEMS, TILE = ITEMS * SORT_TILE_BLOCK };
    struct sort_tile<BITS, VALUE_BYTES, ITEMS> *t =
        sort_tile_shared<struct sort_tile<BITS, VALUE_BYTES, ITEMS>>();
    __shared__ radix_count sums[SORT_TILE_WARPS];
    const int digit = threadIdx.x;
    const int64_t begin = blockIdx.x * p.share;
    const int64_t end = begin + p.share < p.n ? begin + p.share : p.n;
    radix_count all;
    radix_count next = sort_prefix(digit < SORT_DIGITS ? p.totals[digit] : 0, sums, &all);
    struct sort_held<BITS, VALUE_BYTES, ITEMS> held;

    if (digit < SORT_DIGITS)
        next += p.counts[static_cast<int64_t>(digit) * gridDim.x + blockIdx.x];
    for (int64_t base = begin; base < end; base += TILE) {
        const int valid = end - base < TILE ? static_cast<int>(end - base) : static_cast<int>(TILE);
        unsigned start;

        sort_tile_load(p.from, base, valid, p.map, &held);
        const unsigned count = sort_tile_count(t, held.keys, p.map, p.shift, &start);
        if (digit < SORT_DIGITS)
            t->to[digit] = static_cast<int64_t>(next) - start;
        next += count;
        sort_tile_stage(t, held, p.map, p.shift, false);
        sort_tile_write(t, p.to, valid, p.map, p.shift);
    }
}

/* --- launching ------------------------------------------------------------------------------------------ */

static int radix_blocks(const struct gpurun_ctx *ctx)
{
    return ctx->device.sm_count * RADIX_BLOCKS_PER_SM;
}

template <typename BITS, int VALUE_BYTES>
static enum gpurun_status radix_run(struct gpurun_ctx *ctx)
{
    typedef struct sort_tile<BITS, VALUE_BYTES, radix_size<sizeof(BITS), VALUE_BYTES>::ITEMS>
        tile_type;
    enum { TILE = tile_type::TILE, PASSES = sizeof(BITS) };
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    const unsigned blocks = static_cast<unsigned>(radix_blocks(ctx));
    char *scratch = static_cast<char *>(ctx->scratch);
    const struct sort_items spare = sort_carve_items(ctx, &scratch), out = sort_output(ctx);
    struct radix_pass p;

    p.n = sort_options_of(ctx)->n;
    p.share = ((p.n + blocks - 1) / blocks + TILE - 1) / TILE * TILE;
    p.counts = static_cast<radix_count *>(
        sort_carve(&scratch, SORT_DIGITS * static_cast<size_t>(blocks) * sizeof(radix_count)));
    p.totals = static_cast<radix_count *>(sort_carve(&scratch, SORT_DIGITS * sizeof(radix_count)));
    p.map = sort_state_of(ctx)->map;
    p.from = sort_input(ctx);
    SORT_TILE_ALLOW(ctx, (sort_radix_scatter_kernel<BITS, VALUE_BYTES>), tile_type);
    for (int pass = 0; pass < PASSES; pass++) {
        p.to = (PASSES - pass) % 2 == 1 ? out : spare;
        p.shift = 8 * pass;
        sort_radix_count_kernel<BITS><<<blocks, SORT_TILE_BLOCK, 0, stream>>>(p);
        sort_radix_scan_kernel<<<SORT_DIGITS, SORT_DIGITS, 0, stream>>>(p, blocks);
        sort_radix_scatter_kernel<BITS, VALUE_BYTES>
            <<<blocks, SORT_TILE_BLOCK, sizeof(tile_type), stream>>>(p);
        p.from = p.to;
    }
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

size_t sort_radix_scratch(struct gpurun_ctx *ctx)
{
    const size_t blocks = static_cast<size_t>(radix_blocks(ctx));

    return sort_items_bytes(ctx) + sort_align(SORT_DIGITS * blocks * sizeof(radix_count)) +
           sort_align(SORT_DIGITS * sizeof(radix_count));
}

enum gpurun_status sort_launch_radix(struct gpurun_ctx *ctx)
{
    return SORT_DISPATCH(sort_state_of(ctx), radix_run, ctx);
}
