/*
 * scan, variant "lookback": one pass over tiles that publish their sums and add up those before them.
 *
 * Mapping  a tile per block of 256 threads, claimed by an atomic; 8 rows of vectors per warp.
 * Memory   reads and writes everything once; a tile stays in registers while warp 0 adds up sums.
 * Bound    memory, and the latency of the look-back; from 264 tiles on Hopper, scan_lookback_bulk.cu's.
 * Limits   any alignment; bits do not depend on timing; a float result is a chain of at most 45 additions.
 */
#include "scan_lookback.cuh"

enum {
    LOOKBACK_BLOCK = 256,
    LOOKBACK_WARPS = LOOKBACK_BLOCK / 32,
    LOOKBACK_ROWS = 8, /* vectors per thread */
};

/* Elements. */
static inline __host__ __device__ constexpr int lookback_tile_elems(size_t acc_bytes)
{
    return LOOKBACK_WARPS * LOOKBACK_ROWS * LOOKBACK_ROW / static_cast<int>(acc_bytes);
}

/* Reads the vector at `at`, or what exists of it. */
template <typename IN, typename ACC, bool EDGE>
static __device__ __forceinline__ union lookback_vector<IN, ACC>
lookback_load(const struct lookback_args<IN, ACC> &args, int64_t at) {
    typedef union lookback_vector<IN, ACC> vector;
    const struct lookback_range range = lookback_range_of(args, at);
    vector x;

    if (EDGE && !lookback_is_whole<ACC>(range)) {
#pragma unroll
        for (int w = 0; w < vector::WORDS; w++)
            x.words[w] = 0;
#pragma unroll
        for (int e = 0; e < vector::COUNT; e++)
            if (e >= range.low && e < range.high)
                x.items[e] = args.in[at + e];
    } else {
        lookback_copy(x.words, args.in + at);
    }
    return x;
}

/* A warp adds up what is before its tile, and tells the next group what is before it. */
template <typename IN, typename ACC, int OP>
static __device__ ACC lookback_prefix(const struct lookback_args<IN, ACC> &args, int64_t tile,
                                      unsigned tag, ACC own)
{
    typedef typename lookback_types<ACC, OP>::BASE BASE;
    const int64_t group = tile / LOOKBACK_GROUP, first = group * LOOKBACK_GROUP;
    const int count = static_cast<int>(tile - first);
    lookback_word words[LOOKBACK_SLOTS][lookback_words<ACC>()];
    lookback_word *const told = args.before + group * lookback_words<BASE>();
    lookback_word base_words[lookback_words<BASE>()];
    BASE base;

#pragma unroll
    for (int w = 0; w < lookback_words<BASE>(); w++)
        base_words[w] = lookback_read(told + w);
    lookback_fetch<ACC>(args.sums, first, count, words);
    lookback_begin(&base, args.init);
    if (group > 0)
        base = lookback_await<BASE>(told, tag, base_words);

    const ACC sum = lookback_group<ACC, OP>(args.sums, first, count, tag, args.identity, words);
    const ACC prefix = scan_join<OP>(lookback_value<ACC>(base), sum);

    if (count == LOOKBACK_GROUP - 1 && threadIdx.x == 0) {
        lookback_take<OP>(&base, scan_join<OP>(sum, own));
        lookback_publish(told + lookback_words<BASE>(), tag, base);
    }
    return prefix;
}

/* Claims a tile. The last one to be claimed makes the counter ready for the next launch: every block has
 * claimed its own by then. */
template <typename IN, typename ACC>
static __device__ __forceinline__ lookback_word
lookback_claim(const struct lookback_args<IN, ACC> &args)
{
    const lookback_word claim = atomicAdd(args.counter, 1ull);

    if ((claim & 0xffffffffull) == static_cast<lookback_word>(args.tiles - 1))
        atomicExch(args.counter, ((claim >> 32) + 1) << 32);
    return claim;
}

template <typename IN, typename ACC, int OP, bool EDGE>
static __device__ __forceinline__ void lookback_tile(const struct lookback_args<IN, ACC> &args,
                                                     int64_t tile, unsigned tag, ACC *shared)
{
    enum { ROWS = LOOKBACK_ROWS, COUNT = LOOKBACK_VECTOR / sizeof(ACC) };
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t row = (tile * LOOKBACK_WARPS + warp) * ROWS;
    const int64_t first = (row * 32 + lane) * COUNT;
    union lookback_vector<IN, ACC> x[ROWS];
    ACC before[ROWS];

#pragma unroll
    for (int j = 0; j < ROWS; j++)
        x[j] = lookback_load<IN, ACC, EDGE>(args, lookback_row<ACC>(first, j));

    const ACC all = lookback_rows<IN, ACC, OP, ROWS, EDGE>(args, first, x, before);

    if (lane == 0)
        shared[warp] = all;
    __syncthreads();

    /* Every warp adds up those before it; lane LOOKBACK_WARPS - 1 has the tile's sum. */
    const ACC sums = scan_warp<OP>(lane < LOOKBACK_WARPS ? shared[lane] : args.identity);
    const ACC left = scan_warp_at(scan_warp_before(sums, args.identity), warp);
    const ACC own = scan_warp_at(sums, LOOKBACK_WARPS - 1);

    if (warp == 0) {
        if (lane == 0)
            lookback_publish(args.sums + tile * lookback_words<ACC>(), tag, own);

        const ACC prefix = lookback_prefix<IN, ACC, OP>(args, tile, tag, own);

        if (lane == 0)
            shared[LOOKBACK_WARPS] = prefix;
    }
    __syncthreads();

    const ACC base = scan_join<OP>(shared[LOOKBACK_WARPS], left);

#pragma unroll
    for (int j = 0; j < ROWS; j++)
        lookback_write<IN, ACC, OP, EDGE>(args, lookback_row<ACC>(first, j), x[j],
                                          scan_join<OP>(base, before[j]));
}

template <typename IN, typename ACC, int OP>
static __global__ void __launch_bounds__(LOOKBACK_BLOCK, 2)
    scan_lookback_kernel(struct lookback_args<IN, ACC> args)
{
    __shared__ lookback_word claimed;
    __shared__ ACC shared[LOOKBACK_WARPS + 1];

    if (threadIdx.x == 0)
        claimed = lookback_claim(args);
    __syncthreads();

    const int64_t tile = claimed & 0xffffffffull;
    const unsigned tag = static_cast<unsigned>(claimed >> 32) + 1;
    const int64_t elems = lookback_tile_elems(sizeof(ACC));

    if (tile * elems >= args.begin && (tile + 1) * elems <= args.end)
        lookback_tile<IN, ACC, OP, false>(args, tile, tag, shared);
    else
        lookback_tile<IN, ACC, OP, true>(args, tile, tag, shared);
}

template <typename IN, typename ACC, int OP>
static enum gpurun_status lookback_run(struct gpurun_ctx *ctx)
{
    const struct lookback_args<IN, ACC> args =
        lookback_args_of<IN, ACC>(ctx, lookback_tile_elems(sizeof(ACC)));

    scan_lookback_kernel<IN, ACC, OP>
        <<<static_cast<unsigned>(args.tiles), LOOKBACK_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(args);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

/* Words for this file's tiles, which are smaller than the other's; one more where the input is not aligned. */
size_t scan_lookback_state(struct gpurun_ctx *ctx)
{
    const struct scan_state *s = scan_state_of(ctx);
    const size_t acc_bytes = gpurun_dtype_bytes(s->acc);
    const size_t tiles = scan_options_of(ctx)->n / lookback_tile_elems(acc_bytes) + 2;
    const size_t groups = tiles / LOOKBACK_GROUP + 2, sum_words = acc_bytes > 4 ? 2 : 1;
    const size_t before_words = sizeof(struct lookback_exact) / 4; /* at most */

    return LOOKBACK_HEADER + (tiles * sum_words + groups * before_words) * sizeof(lookback_word);
}

enum gpurun_status scan_launch_lookback(struct gpurun_ctx *ctx)
{
    if (scan_lookback_bulk_fits(ctx))
        return scan_launch_lookback_bulk(ctx);
    return SCAN_DISPATCH(ctx, lookback_run, ctx);
}
