/*
 * Sorts the pairs that a variant of topk has selected.
 *
 * Idea     A sample of the pairs gives up to 255 splitters, and these as many buckets, one block's work each.
 *          All pairs of a row differ, so a value that is frequent is split like any other.
 * Mapping  samples are ranked by counting, a warp's lane each; then a tile of 4096 pairs per block; then a
 *          block per bucket, which merges 9 or 17 pairs per thread in shared memory.
 * Memory   pairs of 8 or 16 bytes: read to count and once more to go to their bucket, read there, written as
 *          the answer; 8 bytes per pair that say where it goes. 1M pairs of 8 bytes stay in L2.
 * Bound    latency: four launches, and the ten or so merges of a bucket.
 * Limits   none. A bucket that shared memory does not hold is sorted by its block in global memory, which is
 *          how all are once k is some millions.
 */
#include "topk_pairs.cuh"
#include "topk_sort.h"
#include "topk_sort_tile.cuh"

enum {
    SORT_SPREAD_BLOCK = 512, /* threads of the kernels before the last */
    SORT_WARPS = SORT_SPREAD_BLOCK / 32,
    SORT_RANKED = 32,       /* samples that a block ranks */
    SORT_PART_BYTES = 2048, /* of samples that a warp compares them with at once */
    SORT_EACH = 8,          /* pairs per thread on the way to the buckets */
    SORT_SPREAD = SORT_SPREAD_BLOCK * SORT_EACH,
    SORT_PER_THREAD = SORT_BUCKETS_MAX / SORT_SPREAD_BLOCK, /* buckets */
    SORT_PLACE_BITS = 48, /* of a pair's place in its bucket, in a word with the bucket above */
};

/* What of a pair is compared first, and what only where that is equal. */
template <typename ITEM> struct sort_half;
template <> struct sort_half<topk_narrow> {
    typedef uint32_t type;
};
template <> struct sort_half<topk_wide> {
    typedef uint64_t type;
};

struct sort_plan {
    int64_t buckets, samples, stride; /* see topk_sort_sample_at */
    int width;         /* of the search for a bucket: a power of two, from buckets on */
    int most;          /* pairs that are sorted in shared memory */
    size_t room_bytes; /* of it */
};

template <typename ITEM> struct sort_job {
    struct sort_plan plan;
    struct topk_rows rows;
    size_t elem_bytes;
    bool is_real;
    ITEM *items, *other;        /* rows x k */
    uint64_t *places;           /* rows x k */
    ITEM *splitters;            /* rows x SORT_BUCKETS_MAX */
    unsigned long long *counts; /* rows x SORT_BUCKETS_MAX */
    unsigned long long *begins; /* the same: where a bucket begins in its row */
};

/* Lets the next kernel come, and waits for the one before. */
static __device__ __forceinline__ void sort_wait()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
}

/* --- splitters ------------------------------------------------------------------------------------ */

/* Ranks 32 samples, one a lane; each warp compares with a part of all. Clears the counts as well. */
template <typename ITEM>
static __global__ void __launch_bounds__(SORT_SPREAD_BLOCK)
    topk_sort_rank_kernel(struct sort_job<ITEM> job)
{
    enum { PART = SORT_PART_BYTES / sizeof(ITEM) };
    __shared__ ITEM parts[SORT_WARPS][PART];
    __shared__ unsigned ranks[SORT_RANKED];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t samples = job.plan.samples, each = (samples + SORT_WARPS - 1) / SORT_WARPS;
    const int64_t mine = static_cast<int64_t>(blockIdx.x) * SORT_RANKED + lane;
    const int64_t end = (warp + 1) * each < samples ? (warp + 1) * each : samples;
    const ITEM *items = job.items + blockIdx.y * job.rows.k;
    unsigned rank = 0;

    sort_wait();
    for (int i = threadIdx.x; blockIdx.x == 0 && i < SORT_BUCKETS_MAX; i += SORT_SPREAD_BLOCK)
        job.counts[blockIdx.y * SORT_BUCKETS_MAX + i] = 0;
    if (threadIdx.x < SORT_RANKED)
        ranks[threadIdx.x] = 0;
    __syncthreads();

    const ITEM own = mine < samples ? items[topk_sort_sample_at(mine, job.plan.stride)] : ITEM{0};

    for (int64_t base = warp * each; base < end; base += PART) {
        const int here = static_cast<int>(end - base < PART ? end - base : int64_t{PART});

        __syncwarp();
#pragma unroll
        for (int i = lane; i < PART; i += 32)
            if (i < here)
                parts[warp][i] = items[topk_sort_sample_at(base + i, job.plan.stride)];
        __syncwarp();
#pragma unroll 16
        for (int i = 0; i < here; i++)
            rank = topk_count_better(parts[warp][i], own, rank);
    }
    atomicAdd(&ranks[lane], rank);
    __syncthreads();
    rank = ranks[lane];
    if (warp == 0 && mine < samples && rank > 0 && rank % SORT_OVERSAMPLE == 0)
        job.splitters[blockIdx.y * SORT_BUCKETS_MAX + rank / SORT_OVERSAMPLE - 1] = own;
}

/* --- buckets -------------------------------------------------------------------------------------- */

/* A row's splitters in shared memory, in halves: the lower one is seldom read, and halves meet fewer bank
 * conflicts. */
template <typename ITEM> struct sort_splitters {
    typedef typename sort_half<ITEM>::type half;
    half keys[SORT_BUCKETS_MAX], tails[SORT_BUCKETS_MAX];

    __device__ __forceinline__ void put(int at, ITEM item)
    {
        keys[at] = static_cast<half>(item >> topk_pair_shift<ITEM>());
        tails[at] = static_cast<half>(item);
    }
    /* How many of the first `width` - 1 are not above the item. */
    __device__ __forceinline__ int not_above(ITEM item, int width) const
    {
        const half key = static_cast<half>(item >> topk_pair_shift<ITEM>());
        const half tail = static_cast<half>(item);
        int count = 0;

        for (int step = width / 2; step > 0; step /= 2) {
            const int at = count + step - 1;

            if (keys[at] < key || (keys[at] == key && tails[at] <= tail))
                count += step;
        }
        return count;
    }
};

/* Takes a place in a bucket. Where all lanes want the same one, as in data that was in order, one asks for
 * all. All lanes call it. */
static __device__ __forceinline__ unsigned sort_take_place(unsigned *counts, int bucket,
                                                           bool is_there)
{
    const int lane = threadIdx.x % 32, wanted = __shfl_sync(0xffffffffu, bucket, 0);
    unsigned place = 0;

    if (__all_sync(0xffffffffu, is_there && bucket == wanted)) {
        if (lane == 0)
            place = atomicAdd(&counts[bucket], 32u);
        return __shfl_sync(0xffffffffu, place, 0) + lane;
    }
    return is_there ? atomicAdd(&counts[bucket], 1u) : 0;
}

/* Finds each pair's bucket, and its place there. */
template <typename ITEM>
static __global__ void __launch_bounds__(SORT_SPREAD_BLOCK)
    topk_sort_count_kernel(struct sort_job<ITEM> job)
{
    __shared__ sort_splitters<ITEM> splitters;
    __shared__ unsigned counts[SORT_BUCKETS_MAX];
    __shared__ unsigned long long firsts[SORT_BUCKETS_MAX];
    const int last = static_cast<int>(job.plan.buckets) - 1;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * SORT_SPREAD + threadIdx.x;
    const int64_t row = blockIdx.y, k = job.rows.k, row_buckets = row * SORT_BUCKETS_MAX;
    ITEM mine[SORT_EACH];
    unsigned places[SORT_EACH];
    int buckets[SORT_EACH];

    sort_wait();
#pragma unroll
    for (int j = 0; j < SORT_EACH; j++) {
        const int64_t i = first + j * SORT_SPREAD_BLOCK;

        mine[j] = i < k ? job.items[row * k + i] : ITEM{0};
    }
    for (int i = threadIdx.x; i < SORT_BUCKETS_MAX; i += SORT_SPREAD_BLOCK) {
        splitters.put(i, i < last ? job.splitters[row_buckets + i] : ~ITEM{0});
        counts[i] = 0;
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < SORT_EACH; j++)
        buckets[j] = splitters.not_above(mine[j], job.plan.width);
#pragma unroll
    for (int j = 0; j < SORT_EACH; j++) {
        buckets[j] = buckets[j] < last ? buckets[j] : last;
        places[j] = sort_take_place(counts, buckets[j], first + j * SORT_SPREAD_BLOCK < k);
    }
    __syncthreads();
    for (int i = threadIdx.x; i <= last; i += SORT_SPREAD_BLOCK)
        firsts[i] =
            atomicAdd(&job.counts[row_buckets + i], static_cast<unsigned long long>(counts[i]));
    __syncthreads();
#pragma unroll
    for (int j = 0; j < SORT_EACH; j++) {
        const int64_t i = first + j * SORT_SPREAD_BLOCK;
        const uint64_t bucket = static_cast<uint64_t>(buckets[j]);

        if (i < k)
            job.places[row * k + i] = bucket << SORT_PLACE_BITS | (firsts[bucket] + places[j]);
    }
}

/* Where the buckets of a row begin. Ends with a barrier. */
static __device__ __forceinline__ void sort_find_begins(const unsigned long long *row_counts,
                                                        int buckets, unsigned long long *begins)
{
    __shared__ unsigned long long sums[SORT_WARPS];
    const int first = static_cast<int>(threadIdx.x) * SORT_PER_THREAD;
    unsigned long long counts[SORT_PER_THREAD], sum = 0, total;

#pragma unroll
    for (int i = 0; i < SORT_PER_THREAD; i++) {
        counts[i] = first + i < buckets ? row_counts[first + i] : 0;
        sum += counts[i];
    }

    unsigned long long begin = topk_prefix(sum, sums, &total);

#pragma unroll
    for (int i = 0; i < SORT_PER_THREAD; i++) {
        begins[first + i] = begin;
        begin += counts[i];
    }
    __syncthreads();
}

/* Brings each pair to its place. */
template <typename ITEM>
static __global__ void __launch_bounds__(SORT_SPREAD_BLOCK)
    topk_sort_spread_kernel(struct sort_job<ITEM> job)
{
    __shared__ unsigned long long begins[SORT_BUCKETS_MAX];
    const int buckets = static_cast<int>(job.plan.buckets);
    const int64_t first = static_cast<int64_t>(blockIdx.x) * SORT_SPREAD + threadIdx.x;
    const int64_t row = blockIdx.y, k = job.rows.k, row_buckets = row * SORT_BUCKETS_MAX;
    ITEM mine[SORT_EACH];
    uint64_t places[SORT_EACH];

    sort_wait();
#pragma unroll
    for (int j = 0; j < SORT_EACH; j++) {
        const int64_t i = first + j * SORT_SPREAD_BLOCK;

        mine[j] = i < k ? job.items[row * k + i] : ITEM{0};
        places[j] = i < k ? job.places[row * k + i] : 0;
    }
    sort_find_begins(job.counts + row_buckets, buckets, begins);
    for (int i = threadIdx.x; blockIdx.x == 0 && i < buckets; i += SORT_SPREAD_BLOCK)
        job.begins[row_buckets + i] = begins[i];
#pragma unroll
    for (int j = 0; j < SORT_EACH; j++) {
        const uint64_t place = places[j] & ((UINT64_C(1) << SORT_PLACE_BITS) - 1);

        if (first + j * SORT_SPREAD_BLOCK < k)
            job.other[row * k + begins[places[j] >> SORT_PLACE_BITS] + place] = mine[j];
    }
}

/* --- the answer ----------------------------------------------------------------------------------- */

/* Where sorted pairs go, from slot `begin` of rows x k on. All NaNs are one key, and both zeros: their bits
 * are read from the input. */
template <typename ITEM> struct sort_answer {
    const struct sort_job<ITEM> &job;
    int64_t row, begin;

    template <typename BITS>
    __device__ __forceinline__ void put_bits(int64_t slot, BITS key, int64_t index) const
    {
        const struct topk_rows &rows = job.rows;
        const BITS nan = topk_key<true>(static_cast<BITS>(~BITS{0}), rows.flip);
        BITS bits = topk_bits_of_key(key, job.is_real, rows.flip);

        if (job.is_real && (static_cast<BITS>(bits << 1) == 0 || key == nan))
            bits = topk_row<BITS>(rows, row)[index];
        static_cast<BITS *>(rows.values)[slot] = bits;
        rows.indices[slot] = index;
    }
    __device__ __forceinline__ void put(int64_t at, ITEM item) const
    {
        const uint64_t key = topk_pair_key(item);

        if (job.elem_bytes == sizeof(uint32_t))
            put_bits(begin + at, static_cast<uint32_t>(key), topk_pair_index(item));
        else
            put_bits(begin + at, key, topk_pair_index(item));
    }
};

/* Sorts a bucket. A wide pair takes four registers. */
template <typename ITEM>
static __global__ void __launch_bounds__(SORT_BLOCK, 32 / sizeof(ITEM))
    topk_sort_bucket_kernel(const __grid_constant__ struct sort_job<ITEM> job)
{
    extern __shared__ uint4 room[];
    const bool is_whole = job.plan.buckets == 1;
    const int64_t row = blockIdx.y, k = job.rows.k, bucket = row * SORT_BUCKETS_MAX + blockIdx.x;
    ITEM *items = reinterpret_cast<ITEM *>(room);

    sort_wait();

    const int64_t count = is_whole ? k : static_cast<int64_t>(job.counts[bucket]);
    const int64_t at = row * k + (is_whole ? 0 : static_cast<int64_t>(job.begins[bucket]));
    ITEM *from = (is_whole ? job.items : job.other) + at;
    const sort_answer<ITEM> answer = {job, row, at};

    if (count > job.plan.most) {
        sort_long<ITEM, SORT_FEW>(from, job.items + at, count, items, answer);
        return;
    }
    if (count > SORT_FEW * SORT_BLOCK)
        sort_tile<ITEM, SORT_MANY>(from, static_cast<int>(count), items);
    else
        sort_tile<ITEM, SORT_FEW>(from, static_cast<int>(count), items);
    sort_hand_on(items, 0, static_cast<int>(count), answer);
}

/* --- launching ------------------------------------------------------------------------------------ */

static size_t sort_room_bytes(bool is_wide, int items)
{
    const size_t item_bytes = is_wide ? sizeof(topk_wide) : sizeof(topk_narrow);

    return (SORT_BLOCK * static_cast<size_t>(items) + 1) * item_bytes;
}

static struct sort_plan sort_plan_for(const struct gpurun_ctx *ctx)
{
    const bool is_wide = topk_sort_is_wide(ctx);
    const int64_t k = topk_options_of(ctx)->k;
    const bool fits_many = sort_room_bytes(is_wide, SORT_MANY) + 1024 <= ctx->device.shared_bytes;
    const int most = fits_many ? SORT_MANY : SORT_FEW;
    struct sort_plan plan;

    plan.most = SORT_BLOCK * most;
    plan.room_bytes = sort_room_bytes(is_wide, most);
    plan.buckets = k <= plan.most ? 1 : (k + SORT_BUCKET_LEAST - 1) / SORT_BUCKET_LEAST;
    plan.buckets = plan.buckets < SORT_BUCKETS_MAX ? plan.buckets : int64_t{SORT_BUCKETS_MAX};
    plan.samples = plan.buckets * SORT_OVERSAMPLE;
    plan.stride = k / plan.samples;
    plan.width = 1;
    while (plan.width < plan.buckets)
        plan.width *= 2;
    return plan;
}

/* Arrays of a sort. */
struct sort_sizes {
    size_t items, places, splitters, counts;
};

static struct sort_sizes sort_sizes_for(const struct gpurun_ctx *ctx, int64_t rows)
{
    const size_t item_bytes = topk_sort_is_wide(ctx) ? sizeof(topk_wide) : sizeof(topk_narrow);
    const size_t pairs = static_cast<size_t>(rows * topk_options_of(ctx)->k);
    const bool is_whole = sort_plan_for(ctx).buckets == 1;
    const size_t buckets = is_whole ? 0 : static_cast<size_t>(rows) * SORT_BUCKETS_MAX;

    return {pairs * item_bytes, is_whole ? 0 : pairs * sizeof(uint64_t), buckets * item_bytes,
            buckets * sizeof(unsigned long long)};
}

bool topk_sort_is_wide(const struct gpurun_ctx *ctx)
{
    return topk_state_of(ctx)->elem_bytes > sizeof(uint32_t) ||
           topk_options_of(ctx)->n - 1 > int64_t{UINT32_MAX};
}

enum gpurun_status topk_sort_supported(struct gpurun_ctx *ctx)
{
    const size_t bytes = sort_room_bytes(topk_sort_is_wide(ctx), SORT_FEW) + 1024;

    if (!topk_options_of(ctx)->sorted || bytes <= ctx->device.shared_bytes)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "sorted",
                       "a block needs %zu bytes of shared memory, the device has %zu", bytes,
                       ctx->device.shared_bytes);
}

size_t topk_sort_scratch(const struct gpurun_ctx *ctx, int64_t rows)
{
    if (!topk_options_of(ctx)->sorted)
        return 0;

    const struct sort_sizes sizes = sort_sizes_for(ctx, rows);
    const size_t spread = sizes.places == 0
                              ? 0
                              : topk_align(sizes.items) + topk_align(sizes.places) +
                                    topk_align(sizes.splitters) + 2 * topk_align(sizes.counts);

    return topk_align(sizes.items) + spread;
}

template <typename ITEM>
static enum gpurun_status sort_run(struct gpurun_ctx *ctx, char *scratch, int64_t first,
                                   unsigned rows)
{
    const struct sort_sizes sizes = sort_sizes_for(ctx, rows);
    const auto bucket_kernel = topk_sort_bucket_kernel<ITEM>;
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    struct sort_job<ITEM> job;

    job.plan = sort_plan_for(ctx);
    job.rows = topk_rows_from(ctx, first);
    job.elem_bytes = topk_state_of(ctx)->elem_bytes;
    job.is_real = topk_state_of(ctx)->is_real;
    job.items = static_cast<ITEM *>(topk_carve(&scratch, sizes.items));
    job.other = static_cast<ITEM *>(topk_carve(&scratch, sizes.items));
    job.places = static_cast<uint64_t *>(topk_carve(&scratch, sizes.places));
    job.splitters = static_cast<ITEM *>(topk_carve(&scratch, sizes.splitters));
    job.counts = static_cast<unsigned long long *>(topk_carve(&scratch, sizes.counts));
    job.begins = static_cast<unsigned long long *>(topk_carve(&scratch, sizes.counts));

    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.blockDim = SORT_SPREAD_BLOCK;
    config.stream = gpurun_cuda_stream(ctx);
    config.attrs = &attribute;
    if (job.plan.buckets > 1) {
        const dim3 spread(static_cast<unsigned>((job.rows.k + SORT_SPREAD - 1) / SORT_SPREAD),
                          rows);

        config.gridDim =
            dim3(static_cast<unsigned>((job.plan.samples + SORT_RANKED - 1) / SORT_RANKED), rows);
        GPURUN_CUDA_TRY(ctx, cudaLaunchKernelEx(&config, topk_sort_rank_kernel<ITEM>, job));
        config.numAttrs = ctx->device.compute >= 90 ? 1 : 0;
        config.gridDim = spread;
        GPURUN_CUDA_TRY(ctx, cudaLaunchKernelEx(&config, topk_sort_count_kernel<ITEM>, job));
        GPURUN_CUDA_TRY(ctx, cudaLaunchKernelEx(&config, topk_sort_spread_kernel<ITEM>, job));
    }
    GPURUN_CUDA_TRY(ctx,
                    cudaFuncSetAttribute(bucket_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(job.plan.room_bytes)));
    config.gridDim = dim3(static_cast<unsigned>(job.plan.buckets), rows);
    config.blockDim = SORT_BLOCK;
    config.dynamicSmemBytes = job.plan.room_bytes;
    GPURUN_CUDA_TRY(ctx, cudaLaunchKernelEx(&config, bucket_kernel, job));
    return GPURUN_OK;
}

enum gpurun_status topk_launch_sort(struct gpurun_ctx *ctx, void *scratch, int64_t first,
                                    int64_t rows)
{
    char *arrays = static_cast<char *>(scratch);

    if (topk_sort_is_wide(ctx))
        return sort_run<topk_wide>(ctx, arrays, first, static_cast<unsigned>(rows));
    return sort_run<topk_narrow>(ctx, arrays, first, static_cast<unsigned>(rows));
}
