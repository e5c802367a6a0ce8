/*
 * topk, variant "maxima" for k above what one block narrows down: the whole grid finds the k best groups, digit
 * by digit, and reads them again.
 *
 * Mapping  after the read kernel one cooperative launch, a block per multiprocessor. Runs of 32 groups are dealt
 *          to the blocks in turn; a warp reads a group.
 * Memory   0.2 % of the input per digit of 11 bits, then k groups of 2 KiB.
 * Bound    latency: a barrier over the grid per digit, two digits on most data.
 * Limits   k up to 2048, one row; shared memory for 4096 pairs.
 *
 * The k best groups by (maximum, lower place first) hold the k best elements. Of their elements those not below
 * the k-th maximum are at least k and, where the best do not stand close together, hardly more: each of these is
 * ranked among them. A few groups or elements too many do no harm, so digits are searched no further than that. Where
 * the best stand close together, as in sorted data, most of the groups are neighbours and one block's: for a k up to
 * WIDE_ALONE_K_MAX it leaves only the k best of its own. Where still more are left than a block holds, the digits of the
 * elements' own keys and places come first, so the answer is exact whatever the data.
 */
#include "topk_maxima.cuh"
#include <cooperative_groups.h>

enum {
    WIDE_BLOCK = 1024,
    WIDE_WARPS = WIDE_BLOCK / 32,
    WIDE_BITS = MAXIMA_WIDE_BITS,
    WIDE_BINS = 1 << WIDE_BITS, /* two per thread */

    /* so many groups of one block are worth a search of its own, for so small a k */
    WIDE_ALONE_HITS = 8,
    WIDE_ALONE_K_MAX = 256
};

/* What the blocks share. Bins are used in turn, so that some can be cleared while others are read. */
template <typename BITS> struct wide_scratch {
    const BITS *tiles, *groups; /* their maxima */
    unsigned *found;  /* 2 counters, then the bins: MAXIMA_WIDE_ZEROS are 0 at the start */
    unsigned *bins;   /* 3 x WIDE_BINS */
    BITS *found_keys; /* MAXIMA_WIDE_FOUND */
    int64_t *found_indices;
};

/* What is known of the k-th best item: the upper bits of its key, then of its tail, which falls as the index
 * rises. */
template <typename BITS> struct wide_known {
    BITS key_prefix, key_mask;
    uint64_t tail_prefix, tail_mask;
    uint64_t need, match; /* how many of those that match are wanted, and how many do */
};

template <typename BITS> struct wide_shared {
    union {
        struct {
            unsigned bins[WIDE_BINS];
            uint32_t hits[MAXIMA_WIDE_FOUND]; /* the block's groups that are read again */
        };
        struct {
            int64_t indices[MAXIMA_WIDE_FOUND];
            BITS keys[MAXIMA_WIDE_FOUND];
        };
    };
    unsigned sums[WIDE_WARPS];
    BITS lows[WIDE_WARPS], highs[WIDE_WARPS];
    struct wide_known<BITS> known;
    int hit_count;
    uint32_t hit_first, hit_last; /* the least and the largest of hits[] */
    unsigned first_found;         /* where the block's elements begin in the list of all */
};

/* --- what is selected from: each() calls use(is_there, key, index) with whole warps -------------------- */

template <typename BITS> struct wide_groups {
    const BITS *maxima;
    int64_t count;

    __device__ __forceinline__ int64_t last() const
    {
        return count - 1;
    }
    template <typename USE> __device__ __forceinline__ void each(USE use) const
    {
        const int64_t step = static_cast<int64_t>(gridDim.x) * WIDE_BLOCK;

        for (int64_t run = (threadIdx.x / 32 * static_cast<int64_t>(gridDim.x) + blockIdx.x) * 32;
             run < count; run += step) {
            const int64_t group = run + threadIdx.x % 32;

            use(group < count, group < count ? __ldcg(&maxima[group]) : 0, group);
        }
    }
};

template <typename BITS> struct wide_elements {
    struct maxima_span<BITS> span;
    const uint32_t *hits;
    int hit_count;

    __device__ __forceinline__ int64_t last() const
    {
        return span.end - span.begin - 1;
    }
    template <typename USE> __device__ __forceinline__ void each(USE use) const
    {
        for (int h = threadIdx.x / 32; h < hit_count; h += WIDE_WARPS) {
            const uint32_t group = hits[h];
            const struct maxima_elements<BITS> in = {
                span, &group, 1
            };
            BITS bits[MAXIMA_LOADS][in.WIDTH];
            unsigned there[MAXIMA_LOADS];

#pragma unroll
            for (int l = 0; l < MAXIMA_LOADS; l++)
                there[l] = in.fetch(l * 32 + threadIdx.x % 32, bits[l]);
            maxima_to_keys(span, bits);
#pragma unroll
            for (int l = 0; l < MAXIMA_LOADS; l++)
#pragma unroll
                for (int j = 0; j < in.WIDTH; j++)
                    use(there[l] >> j & 1, bits[l][j],
                        in.index((l * 32 + threadIdx.x % 32) * in.WIDTH + j));
        }
    }
};

/* How many items beyond k may be selected: they are read, or ranked, for nothing. */
static __device__ __forceinline__ uint64_t wide_spare(int64_t k)
{
    const int64_t room = MAXIMA_WIDE_FOUND - k;

    return static_cast<uint64_t>(k + MAXIMA_WIDE_SPARE < room ? k + MAXIMA_WIDE_SPARE : room);
}

/* --- digits ------------------------------------------------------------------------------------------ */

struct wide_digit {
    int shift, bits;
    bool is_tail;
};

static __device__ __forceinline__ int wide_bits(uint64_t number)
{
    return 64 - __clzll(static_cast<long long>(number));
}

/* The upper digit of what is still unknown, of the key and then of the tail. */
static __device__ __forceinline__ struct wide_digit wide_next(int key_left, int tail_left)
{
    const int left = key_left > 0 ? key_left : tail_left;
    const int bits = left < WIDE_BITS ? left : static_cast<int>(WIDE_BITS);
    const struct wide_digit d = {left - bits, bits, key_left == 0};

    return d;
}

/* Bounds of the k-th best maximum of a group: that of no tile is above `high`, and k tiles have a group that
 * is not below `low`. Each block finds them by itself. */
template <typename BITS>
static __device__ void wide_bounds(const BITS *tiles, int64_t count, uint64_t k,
                                   struct wide_shared<BITS> *shared, BITS *low, BITS *high)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    BITS least = ~static_cast<BITS>(0), most = 0;

    for (int64_t i = threadIdx.x; i < count; i += WIDE_BLOCK) {
        const BITS key = __ldcg(&tiles[i]);

        least = key < least ? key : least;
        most = key > most ? key : most;
    }
    least = ~gpurun_warp_max(static_cast<BITS>(~least));
    most = gpurun_warp_max(most);
    if (lane == 0) {
        shared->lows[warp] = least;
        shared->highs[warp] = most;
    }
    __syncthreads();
    least = ~gpurun_warp_max(static_cast<BITS>(~shared->lows[lane]));
    *low = static_cast<uint64_t>(count) >= k ? least : 0;
    *high = gpurun_warp_max(shared->highs[lane]);
}

template <typename BITS>
static __device__ __forceinline__ bool wide_matches(const struct wide_known<BITS> &known, BITS key,
                                                    uint64_t tail)
{
    return (key & known.key_mask) == known.key_prefix &&
           (tail & known.tail_mask) == known.tail_prefix;
}

template <typename BITS>
static __device__ __forceinline__ bool wide_is_selected(const struct wide_known<BITS> &known,
                                                        BITS key, uint64_t tail)
{
    const BITS upper = key & known.key_mask;

    return upper > known.key_prefix ||
           (upper == known.key_prefix && (tail & known.tail_mask) >= known.tail_prefix);
}

/* Adds a warp's digits to the block's bins, all at once where they are the same. */
static __device__ __forceinline__ void wide_tally(unsigned *bins, bool counts, unsigned digit)
{
    const unsigned lanes = __ballot_sync(0xffffffffu, counts);

    if (lanes == 0)
        return;

    const unsigned first = __shfl_sync(0xffffffffu, digit, __ffs(lanes) - 1);

    if (__all_sync(0xffffffffu, !counts || digit == first)) {
        if (threadIdx.x % 32 == 0)
            atomicAdd(&bins[first], static_cast<unsigned>(__popc(lanes)));
    } else if (counts) {
        atomicAdd(&bins[digit], 1u);
    }
}

/* Takes the digit of the k-th best item, which the grid's bins hold, or the block's where these are NULL, into what is
 * known. */
template <typename BITS>
static __device__ void wide_pick(struct wide_shared<BITS> *shared, const unsigned *bins,
                                 struct wide_digit d)
{
    const int high = WIDE_BINS - 1 - 2 * static_cast<int>(threadIdx.x), low = high - 1;
    const unsigned in_high = bins ? __ldcg(&bins[high]) : shared->bins[high];
    const unsigned in_low = bins ? __ldcg(&bins[low]) : shared->bins[low];
    const uint64_t need = shared->known.need;
    unsigned total;
    const unsigned above = topk_prefix(in_high + in_low, shared->sums, &total);
    const bool is_high = above < need && need <= uint64_t{above} + in_high;
    const bool is_low =
        uint64_t{above} + in_high < need && need <= uint64_t{above} + in_high + in_low;

    if (is_high || is_low) {
        const uint64_t prefix = static_cast<uint64_t>(is_high ? high : low) << d.shift;
        const uint64_t mask = ((UINT64_C(1) << d.bits) - 1) << d.shift;

        shared->known.key_prefix |= static_cast<BITS>(d.is_tail ? 0 : prefix);
        shared->known.key_mask |= static_cast<BITS>(d.is_tail ? 0 : mask);
        shared->known.tail_prefix |= d.is_tail ? prefix : 0;
        shared->known.tail_mask |= d.is_tail ? mask : 0;
        shared->known.need = need - above - (is_high ? 0 : in_high);
        shared->known.match = is_high ? in_high : in_low;
    }
    __syncthreads();
}

/* What is known at first of a key from low to high. */
template <typename BITS>
static __device__ __forceinline__ struct wide_known<BITS> wide_between(BITS low, BITS high,
                                                                       uint64_t k) {
    const int left = wide_bits(low ^ high);
    const BITS mask = left < static_cast<int>(8 * sizeof(BITS)) ? ~static_cast<BITS>(0) << left : 0;
    const struct wide_known<BITS> known = {
        static_cast<BITS>(high &mask), mask, 0, 0, k, UINT64_MAX
    };

    return known;
}

/* The tail of a place falls as its index rises. */
template <typename SOURCE>
static __device__ __forceinline__ uint64_t wide_tail_last(const SOURCE &source)
{
    return (UINT64_C(1) << wide_bits(source.last())) - 1;
}

/* Takes into what is known that the place of the k-th best item is from first to last. */
template <typename BITS>
static __device__ __forceinline__ void wide_within(struct wide_known<BITS> *known,
                                                   uint64_t tail_last, int64_t first, int64_t last)
{
    const uint64_t high = tail_last - static_cast<uint64_t>(first);
    const uint64_t low = tail_last - static_cast<uint64_t>(last);

    known->tail_mask = tail_last & ~UINT64_C(0) << wide_bits(high ^ low);
    known->tail_prefix = high & known->tail_mask;
}

/* Adds the block's bins to the grid's, and waits for all blocks. */
template <typename BITS>
static __device__ __forceinline__ void wide_add(const struct wide_shared<BITS> *shared,
                                                unsigned *bins)
{
    for (int bin = threadIdx.x; bin < WIDE_BINS; bin += WIDE_BLOCK)
        if (shared->bins[bin] > 0)
            atomicAdd(&bins[bin], shared->bins[bin]);
    cooperative_groups::this_grid().sync();
}

/* Finds what is to be known of the k-th best of more items, so that at most `spare` items too many are selected: of all
 * blocks with the grid's bins, of which `turn` comes next; else, without any, of the block's own. */
template <typename BITS, typename SOURCE>
static __device__ __forceinline__ void
wide_find(const SOURCE &source, struct wide_known<BITS> known, uint64_t spare, unsigned *grid_bins,
          struct wide_shared<BITS> *shared, int *turn)
{
    const uint64_t tail_last = wide_tail_last(source);
    int key_left = wide_bits(static_cast<BITS>(~known.key_mask));
    int tail_left = wide_bits(tail_last & ~known.tail_mask);

    __syncthreads();
    if (threadIdx.x == 0)
        shared->known = known;
    while (known.match - known.need > spare) {
        const struct wide_digit d = wide_next(key_left, tail_left);
        unsigned *bins = grid_bins ? grid_bins + *turn * WIDE_BINS : NULL;
        const unsigned mask = (1u << d.bits) - 1;

        *turn = bins ? (*turn + 1) % 3 : *turn;
        for (int bin = threadIdx.x; bin < WIDE_BINS; bin += WIDE_BLOCK)
            shared->bins[bin] = 0;
        if (bins && blockIdx.x == gridDim.x - 1)
            for (int bin = threadIdx.x; bin < WIDE_BINS; bin += WIDE_BLOCK)
                grid_bins[*turn * WIDE_BINS + bin] = 0;
        __syncthreads();
        source.each([&](bool is_there, BITS key, int64_t index) {
            const uint64_t tail = tail_last - static_cast<uint64_t>(index);
            const uint64_t number = d.is_tail ? tail : key;

            wide_tally(shared->bins, is_there && wide_matches(known, key, tail),
                       static_cast<unsigned>(number >> d.shift) & mask);
        });
        __syncthreads();
        if (bins)
            wide_add(shared, bins);
        wide_pick(shared, bins, d);
        known = shared->known;
        key_left -= d.is_tail ? 0 : d.bits;
        tail_left -= d.is_tail ? d.bits : 0;
    }
    __syncthreads();
}

/* --- the kernel -------------------------------------------------------------------------------------- */

/* The block's groups among those that were found. */
template <typename BITS>
static __device__ void wide_hit(const struct wide_groups<BITS> &groups,
                                struct wide_shared<BITS> *shared)
{
    const uint64_t tail_last = wide_tail_last(groups);
    const struct wide_known<BITS> known = shared->known;

    if (threadIdx.x == 0) {
        shared->hit_count = 0;
        shared->hit_first = UINT32_MAX;
        shared->hit_last = 0;
    }
    __syncthreads();
    groups.each([&](bool is_there, BITS key, int64_t index) {
        if (is_there && wide_is_selected(known, key, tail_last - static_cast<uint64_t>(index))) {
            const uint32_t group = static_cast<uint32_t>(index);

            shared->hits[atomicAdd(&shared->hit_count, 1)] = group;
            atomicMin(&shared->hit_first, group);
            atomicMax(&shared->hit_last, group);
        }
    });
    __syncthreads();
}

/* Whether the block's groups alone have more than k elements of at least that key. */
template <typename BITS>
static __device__ __forceinline__ bool wide_has_more(const struct wide_elements<BITS> &elements,
                                                     BITS key_least, int64_t k,
                                                     struct wide_shared<BITS> *shared)
{
    unsigned count = 0;

    if (threadIdx.x == 0)
        shared->sums[0] = 0;
    __syncthreads();
    elements.each([&](bool is_there, BITS key, int64_t) { count += is_there && key >= key_least; });
    atomicAdd(&shared->sums[0], count);
    __syncthreads();
    return shared->sums[0] > k;
}

/* What is known at first of the k-th best of the block's own elements, all of which are in its groups. */
template <typename BITS>
static __device__ __forceinline__ struct wide_known<BITS>
wide_alone(const struct wide_elements<BITS> &elements, BITS low, BITS high, uint64_t k,
           const struct wide_shared<BITS> *shared) {
    const struct maxima_span<BITS> &span = elements.span;
    const int64_t first = shared->hit_first * maxima_group<BITS>() - span.begin;
    const int64_t last = (shared->hit_last + int64_t{1}) * maxima_group<BITS>() - 1 - span.begin;
    struct wide_known<BITS> known = wide_between(low, high, k);

    wide_within(&known, wide_tail_last(elements), first > 0 ? first : 0,
                last < elements.last() ? last : elements.last());
    return known;
}

/* What is known at first of the k-th best of all elements. Where their keys are the same, so are those of the groups,
 * and the last of these ends the places. */
template <typename BITS>
static __device__ __forceinline__ struct wide_known<BITS>
wide_together(const struct wide_elements<BITS> &elements, const struct wide_groups<BITS> &groups,
              uint64_t group_tail, BITS low, BITS high, uint64_t k) {
    const int64_t group = static_cast<int64_t>(wide_tail_last(groups) - group_tail);
    const int64_t last = (group + 1) * maxima_group<BITS>() - 1 - elements.span.begin;
    struct wide_known<BITS> known = wide_between(low, high, k);

    if (low == high)
        wide_within(&known, wide_tail_last(elements), 0,
                    last < elements.last() ? last : elements.last());
    return known;
}

/* Puts the selected elements of all blocks into one list. A block takes its part at once; where there is no room for it,
 * the counter says so. */
template <typename BITS, typename SOURCE>
static __device__ __forceinline__ void
wide_collect(const SOURCE &source, const struct wide_known<BITS> &known,
             struct wide_scratch<BITS> scratch, unsigned *counter, struct wide_shared<BITS> *shared)
{
    const uint64_t tail_last = wide_tail_last(source);
    unsigned count = 0, total;

    source.each([&](bool is_there, BITS key, int64_t index) {
        count += is_there && wide_is_selected(known, key, tail_last - static_cast<uint64_t>(index));
    });

    unsigned at = topk_prefix(count, shared->sums, &total);

    if (threadIdx.x == 0 && total > 0)
        shared->first_found = atomicAdd(counter, total);
    __syncthreads();
    if (total == 0 || shared->first_found + total > MAXIMA_WIDE_FOUND)
        return;
    at += shared->first_found;
    source.each([&](bool is_there, BITS key, int64_t index) {
        if (is_there && wide_is_selected(known, key, tail_last - static_cast<uint64_t>(index))) {
            scratch.found_keys[at] = key;
            scratch.found_indices[at++] = index;
        }
    });
}

/* Ranks what was found, a warp per element, and writes the k best. */
template <typename BITS>
static __device__ void wide_write(const struct topk_rows &rows, int found,
                                  struct wide_scratch<BITS> scratch,
                                  struct wide_shared<BITS> *shared)
{
    const int lane = threadIdx.x % 32;

    for (int i = threadIdx.x; i < found; i += WIDE_BLOCK) {
        shared->keys[i] = __ldcg(&scratch.found_keys[i]);
        shared->indices[i] = __ldcg(&scratch.found_indices[i]);
    }
    __syncthreads();
    for (int at = threadIdx.x / 32 * gridDim.x + blockIdx.x; at < found;
         at += WIDE_WARPS * gridDim.x) {
        const BITS key = shared->keys[at];
        const int64_t index = shared->indices[at];
        int rank = 0;

#pragma unroll 4
        for (int i = lane; i < found; i += 32)
            rank += topk_before(shared->keys[i], shared->indices[i], key, index);
        for (int distance = 16; distance > 0; distance /= 2)
            rank += __shfl_xor_sync(0xffffffffu, rank, distance);
        if (lane == 0 && rank < rows.k)
            topk_write<BITS>(rows, 0, rank, index);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        rows.count[0] = rows.k;
}

template <typename BITS>
static __global__ void __launch_bounds__(WIDE_BLOCK)
    topk_maxima_wide_kernel(struct topk_rows rows, struct wide_scratch<BITS> scratch)
{
    extern __shared__ __align__(16) char wide_memory[];
    struct wide_shared<BITS> *shared = reinterpret_cast<struct wide_shared<BITS> *>(wide_memory);
    const struct maxima_span<BITS> span = maxima_span_of<BITS>(rows, 0);
    const int64_t count = (span.end + maxima_group<BITS>() - 1) / maxima_group<BITS>();
    const int64_t tiles = (count + MAXIMA_GROUPS - 1) / MAXIMA_GROUPS;
    const struct wide_groups<BITS> groups = {
        scratch.groups, count
    };
    struct wide_known<BITS> known = {
        0, 0, 0, 0, 0, 0
    }; /* selects all */
    const uint64_t spare = wide_spare(rows.k);
    BITS low, high;
    int turn = 0;

    wide_bounds(scratch.tiles, tiles, rows.k, shared, &low, &high);
    if (count > rows.k) {
        const int64_t last = rows.k * MAXIMA_GROUPS - 1;

        known = wide_between(low, high, rows.k);
        if (low == high) /* each tile has a group with that maximum */
            wide_within(&known, wide_tail_last(groups), 0, last < count ? last : count - 1);
    }
    wide_find(groups, known, spare, scratch.bins, shared, &turn);
    wide_hit(groups, shared);

    const struct wide_elements<BITS> elements = {
        span, shared->hits, shared->hit_count
    };
    const uint64_t group_tail = shared->known.tail_prefix;

    known = shared->known;
    known.tail_prefix = known.tail_mask = 0; /* of groups */
    low = known.key_prefix;

    /* A block leaves at most k of its own; where still too many are left in all, the grid finds the k best. */
    bool is_alone = rows.k <= WIDE_ALONE_K_MAX && shared->hit_count >= WIDE_ALONE_HITS &&
                    wide_has_more(elements, low, rows.k, shared);
    unsigned found = 0;

    /* As many groups with one and the same maximum have more elements like it than there is room for. */
#pragma unroll 1
    for (int round = rows.k > WIDE_ALONE_K_MAX && low == high; round < 2; round++) {
        if (is_alone || round > 0) {
            known = is_alone ? wide_alone(elements, low, high, rows.k, shared)
                             : wide_together(elements, groups, group_tail, low, high, rows.k);
            wide_find(elements, known, is_alone ? 0 : spare, is_alone ? NULL : scratch.bins, shared,
                      &turn);
            known = shared->known;
        }
        wide_collect(elements, known, scratch, &scratch.found[round], shared);
        cooperative_groups::this_grid().sync();
        found = __ldcg(&scratch.found[round]);
        if (found <= MAXIMA_WIDE_FOUND)
            break;
        is_alone = false;
    }
    wide_write(rows, static_cast<int>(found), scratch, shared);
}

/* --- launching ----------------------------------------------------------------------------------------- */

struct wide_plan {
    size_t bin_bytes, key_bytes, index_bytes;
};

static struct wide_plan wide_plan_for(const struct gpurun_ctx *ctx)
{
    struct wide_plan plan;

    plan.bin_bytes = MAXIMA_WIDE_ZEROS * sizeof(unsigned) + 2 * WIDE_BINS * sizeof(unsigned);
    plan.key_bytes = MAXIMA_WIDE_FOUND * topk_state_of(ctx)->elem_bytes;
    plan.index_bytes = MAXIMA_WIDE_FOUND * sizeof(int64_t);
    return plan;
}

/* One block per multiprocessor, so that all are resident: the launch refuses more. */
template <typename BITS, bool REAL>
static enum gpurun_status wide_launch(struct gpurun_ctx *ctx, struct topk_rows rows,
                                      struct wide_scratch<BITS> scratch, int64_t tiles)
{
    const int64_t most = ctx->device.sm_count;
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};

    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    config.gridDim = static_cast<unsigned>(tiles < most ? tiles : most);
    config.blockDim = WIDE_BLOCK;
    config.dynamicSmemBytes = sizeof(struct wide_shared<BITS>);
    config.stream = gpurun_cuda_stream(ctx);
    config.attrs = &attribute;
    config.numAttrs = 1;
    GPURUN_CUDA_TRY(ctx, cudaFuncSetAttribute(topk_maxima_wide_kernel<BITS>,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              sizeof(struct wide_shared<BITS>)));
    GPURUN_CUDA_TRY(ctx, cudaLaunchKernelEx(&config, topk_maxima_wide_kernel<BITS>, rows, scratch));
    return GPURUN_OK;
}

template <typename BITS, bool REAL>
static enum gpurun_status wide_run(struct gpurun_ctx *ctx, struct topk_rows rows,
                                   struct maxima_keys maxima, int64_t tiles, void *memory)
{
    const struct wide_plan plan = wide_plan_for(ctx);
    char *free_scratch = static_cast<char *>(memory);
    struct wide_scratch<BITS> scratch;

    scratch.tiles = static_cast<const BITS *>(maxima.tiles);
    scratch.groups = static_cast<const BITS *>(maxima.groups);
    scratch.found = static_cast<unsigned *>(topk_carve(&free_scratch, plan.bin_bytes));
    scratch.bins = scratch.found + MAXIMA_WIDE_ZEROS - WIDE_BINS;
    scratch.found_keys = static_cast<BITS *>(topk_carve(&free_scratch, plan.key_bytes));
    scratch.found_indices = static_cast<int64_t *>(topk_carve(&free_scratch, plan.index_bytes));
    return wide_launch<BITS, REAL>(ctx, rows, scratch, tiles);
}

/* Why `k` does not go with the job, if it does not. */
enum gpurun_status topk_maxima_wide_supported(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const size_t needed = topk_state_of(ctx)->elem_bytes == 4
                              ? sizeof(struct wide_shared<uint32_t>)
                              : sizeof(struct wide_shared<uint64_t>);

    if (o->rows > 1)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "k",
                           "above %d the whole device works on one row: use radix for rows = %lld",
                           MAXIMA_ONE_K_MAX, static_cast<long long>(o->rows));
    if (needed > ctx->device.shared_bytes)
        return gpurun_fail(
            ctx, GPURUN_UNSUPPORTED, "k",
            "above %d needs %zu bytes of shared memory per block; this device has %zu",
            MAXIMA_ONE_K_MAX, needed, ctx->device.shared_bytes);
    return GPURUN_OK;
}

size_t topk_maxima_wide_scratch(struct gpurun_ctx *ctx)
{
    const struct wide_plan plan = wide_plan_for(ctx);

    return topk_align(plan.bin_bytes) + topk_align(plan.key_bytes) + topk_align(plan.index_bytes);
}

enum gpurun_status topk_maxima_wide_launch(struct gpurun_ctx *ctx, struct maxima_keys maxima,
                                           int64_t tiles, void *scratch)
{
    return TOPK_DISPATCH(topk_state_of(ctx), wide_run, ctx, topk_rows_from(ctx, 0), maxima, tiles,
                         scratch);
}
