/*
 * sort, variant "split": one bit at a time, least first; a scan says where the zeros and the ones go.
 *
 * Mapping  each block owns a contiguous stretch, which it counts and later splits, one element per thread.
 * Memory   reads keys twice and writes them once per bit: 12 bytes a bit and key of 4-byte keys.
 * Bound    memory, 32 or 64 times over.
 * Limits   none; stable.
 */
#include "sort_device.cuh"

enum { SPLIT_BLOCK = 512, SPLIT_BLOCKS_PER_SM = 4, SPLIT_SCAN_BLOCK = 1024 };

typedef unsigned long long split_count;

/* One bit. */
struct split_pass {
    struct sort_items from, to;
    int64_t n, share;   /* elements, and elements of a block: whole tiles of SPLIT_BLOCK */
    split_count *zeros; /* of each block; then of all blocks before it; then, behind them, of all */
    struct sort_map map;
    int bit;
};

template <typename BITS>
static __device__ __forceinline__ bool split_is_zero(const struct split_pass &p, BITS bits)
{
    return (sort_key(bits, p.map) >> p.bit & 1) == 0;
}

/* How many zeros the block's stretch has. */
template <typename BITS>
static __global__ void __launch_bounds__(SPLIT_BLOCK) sort_split_count_kernel(struct split_pass p)
{
    __shared__ split_count sums[SPLIT_BLOCK / 32];
    const int64_t begin = blockIdx.x * p.share;
    const int64_t end = begin + p.share < p.n ? begin + p.share : p.n;
    split_count zeros = 0, total;

#pragma unroll 8
    for (int64_t i = begin + threadIdx.x; i < end; i += SPLIT_BLOCK)
        zeros += split_is_zero(p, static_cast<const BITS *>(p.from.keys)[i]);
    sort_prefix(zeros, sums, &total);
    if (threadIdx.x == 0)
        p.zeros[blockIdx.x] = total;
}

/* One block: from each stretch's zeros to those before it. */
static __global__ void __launch_bounds__(SPLIT_SCAN_BLOCK)
    sort_split_scan_kernel(struct split_pass p, int blocks)
{
    __shared__ split_count sums[SPLIT_SCAN_BLOCK / 32];
    split_count before = 0, total;

    for (int base = 0; base < blocks; base += SPLIT_SCAN_BLOCK) {
        const int i = base + threadIdx.x;
        const split_count here = i < blocks ? p.zeros[i] : 0;
        const split_count prefix = sort_prefix(here, sums, &total);

        if (i < blocks)
            p.zeros[i] = before + prefix;
        before += total;
    }
    if (threadIdx.x == 0)
        p.zeros[blocks] = before;
}

/* Zeros go to the front in their order, ones behind all zeros in theirs. */
template <typename BITS, int VALUE_BYTES>
static __global__ void __launch_bounds__(SPLIT_BLOCK) sort_split_scatter_kernel(struct split_pass p)
{
    typedef typename sort_raw<VALUE_BYTES>::type VALUE;
    __shared__ unsigned sums[SPLIT_BLOCK / 32];
    const int64_t begin = blockIdx.x * p.share;
    const int64_t end = begin + p.share < p.n ? begin + p.share : p.n;
    int64_t zeros_before = static_cast<int64_t>(p.zeros[blockIdx.x]);
    int64_t ones_to = static_cast<int64_t>(p.zeros[gridDim.x]) + begin - zeros_before;

    for (int64_t base = begin; base < end; base += SPLIT_BLOCK) {
        const int64_t i = base + threadIdx.x;
        const BITS bits = i < end ? static_cast<const BITS *>(p.from.keys)[i] : 0;
        const bool is_zero = i < end && split_is_zero(p, bits);
        unsigned zeros;
        const unsigned rank = sort_prefix(is_zero ? 1u : 0u, sums, &zeros);
        const int64_t to = is_zero ? zeros_before + rank : ones_to + threadIdx.x - rank;

        if (i < end) {
            static_cast<BITS *>(p.to.keys)[to] = bits;
            if (VALUE_BYTES > 0)
                static_cast<VALUE *>(p.to.values)[to] =
                    static_cast<const VALUE *>(p.from.values)[i];
        }
        zeros_before += zeros;
        ones_to += SPLIT_BLOCK - zeros;
    }
}

/* --- launching ------------------------------------------------------------------------------------------ */

static int split_blocks(const struct gpurun_ctx *ctx)
{
    return ctx->device.sm_count * SPLIT_BLOCKS_PER_SM;
}

template <typename BITS, int VALUE_BYTES>
static enum gpurun_status split_run(struct gpurun_ctx *ctx)
{
    enum { PASSES = 8 * sizeof(BITS) };
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    const unsigned blocks = static_cast<unsigned>(split_blocks(ctx));
    char *scratch = static_cast<char *>(ctx->scratch);
    const struct sort_items spare = sort_carve_items(ctx, &scratch), out = sort_output(ctx);
    struct split_pass p;

    p.n = sort_options_of(ctx)->n;
    p.share = ((p.n + blocks - 1) / blocks + SPLIT_BLOCK - 1) / SPLIT_BLOCK * SPLIT_BLOCK;
    p.zeros = static_cast<split_count *>(sort_carve(&scratch, (blocks + 1) * sizeof(split_count)));
    p.map = sort_state_of(ctx)->map;
    p.from = sort_input(ctx);
    for (int bit = 0; bit < PASSES; bit++) {
        p.to = (PASSES - bit) % 2 == 1 ? out : spare;
        p.bit = bit;
        sort_split_count_kernel<BITS><<<blocks, SPLIT_BLOCK, 0, stream>>>(p);
        sort_split_scan_kernel<<<1, SPLIT_SCAN_BLOCK, 0, stream>>>(p, blocks);
        sort_split_scatter_kernel<BITS, VALUE_BYTES><<<blocks, SPLIT_BLOCK, 0, stream>>>(p);
        p.from = p.to;
    }
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

size_t sort_split_scratch(struct gpurun_ctx *ctx)
{
    const size_t blocks = static_cast<size_t>(split_blocks(ctx));

    return sort_items_bytes(ctx) + sort_align((blocks + 1) * sizeof(split_count));
}

enum gpurun_status sort_launch_split(struct gpurun_ctx *ctx)
{
    return SORT_DISPATCH(sort_state_of(ctx), split_run, ctx);
}
