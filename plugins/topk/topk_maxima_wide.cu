/*
 * topk, variant "maxima" for k above what one block narrows down: the whole grid finds the k best groups, digit
 * by digit, and reads them again.
 *
 * Mapping  after the read kernel one cooperative launch, a block per multiprocessor. Runs of groups are dealt to the
 *          blocks in turn; a warp reads a group, and holds the first of its groups in registers.
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
#include "topk_pairs.cuh"
#include "topk_sort.h"
#include <cooperative_groups.h>

enum {
    WIDE_BLOCK = 1024,
    WIDE_WARPS = WIDE_BLOCK / 32,
    WIDE_BITS = MAXIMA_WIDE_BITS,
    WIDE_BINS = 1 << WIDE_BITS, /* two per thread */

    /* so many groups of one block are worth a search of its own, for so small a k */
    WIDE_ALONE_HITS = 8,
    WIDE_ALONE_K_MAX = 256,

    /* Groups of a run: neighbours for a block that searches its own, else dealt evenly by whole sectors of maxima. */
    WIDE_ALONE_RUN_BITS = 5,
    WIDE_RUN_BITS = 3,

    WIDE_HELD = 2,    /* group maxima that a thread holds */
    WIDE_RANKED = 32, /* elements that a block ranks at once */
    WIDE_PART = MAXIMA_WIDE_FOUND / WIDE_WARPS
};

/* What the blocks share. Bins are used in turn, so that some can be cleared while others are read. */
template <typename BITS, typename ITEM> struct wide_scratch {
    const BITS *tiles, *groups; /* their maxima */
    unsigned *found; /* 2 counters, then the bins: MAXIMA_WIDE_ZEROS are 0 at the start */
    unsigned *bins;  /* 3 x WIDE_BINS */
    ITEM *items;     /* MAXIMA_WIDE_FOUND */
};

/* What is known of the k-th best item: the upper bits of its key, then of its tail, which falls as the index
 * rises. */
template <typename BITS> struct wide_known {
    BITS key_prefix, key_mask;
    uint64_t tail_prefix, tail_mask;
    uint64_t need, match; /* how many of those that match are wanted, and how many do */
};

template <typename BITS, typename ITEM> struct wide_shared {
    union {
        struct {
            unsigned bins[WIDE_BINS];
            uint32_t hits[MAXIMA_WIDE_FOUND]; /* the block's groups that are read again */
        };
        ITEM items[WIDE_WARPS][WIDE_PART];
    };
    unsigned sums[WIDE_WARPS], ranks[WIDE_RANKED];
    BITS lows[WIDE_WARPS], highs[WIDE_WARPS];
    struct wide_known<BITS> known;
    int hit_count;
    uint32_t hit_first, hit_last; /* the least and the largest of hits[] */
    unsigned first_found;         /* where the block's elements begin in the list of all */
};

/* --- what is selected from: each() calls use(is_there, key, index) ------------------------------------------ */

template <typename BITS> struct wide_groups {
    const BITS *maxima;
    int64_t count;
    int run_bits;
    BITS held[WIDE_HELD];

    __device__ __forceinline__ int64_t last() const
    {
        return count - 1;
    }
    /* The group of the block's slot: its runs stand side by side in the slots. */
    __device__ __forceinline__ int64_t at(int64_t slot) const
    {
        const int64_t run = (slot >> run_bits) * gridDim.x + blockIdx.x;

        return run << run_bits | (slot & ((1 << run_bits) - 1));
    }
    __device__ __forceinline__ BITS fetch(int64_t group) const
    {
        return group < count ? __ldcg(&maxima[group]) : 0;
    }
    __device__ __forceinline__ void hold()
    {
#pragma unroll
        for (int i = 0; i < WIDE_HELD; i++)
            held[i] = fetch(at(i * WIDE_BLOCK + threadIdx.x));
    }
    template <typename USE> __device__ __forceinline__ void each(USE use) const
    {
        int64_t slot = threadIdx.x, group = at(slot);

#pragma unroll
        for (int i = 0; i < WIDE_HELD; i++, slot += WIDE_BLOCK, group = at(slot))
            use(group < count, held[i], group);
        for (; group < count; slot += WIDE_BLOCK, group = at(slot))
            use(true, fetch(group), group);
    }
};

template <typename BITS> struct wide_elements {
    enum { WIDTH = maxima_elements<BITS>::WIDTH };
    struct maxima_span<BITS> span;
    const uint32_t *hits;
    int hit_count;

    int held; /* of hits[], whose keys the warp has; -1: none */
    unsigned there;
    BITS keys[MAXIMA_LOADS][WIDTH];

    __device__ __forceinline__ int64_t last() const
    {
        return span.end - span.begin - 1;
    }
    __device__ __forceinline__ void hold(int hit)
    {
        const uint32_t group = hits[hit];
        const struct maxima_elements<BITS> in = {
            span, &group, 1
        };

        there = 0;
#pragma unroll
        for (int l = 0; l < MAXIMA_LOADS; l++)
            there |= in.fetch(l * 32 + threadIdx.x % 32, keys[l]) << l * WIDTH;
        maxima_to_keys(span, keys);
        held = hit;
    }
    template <typename USE> __device__ __forceinline__ void each(USE use)
    {
        for (int hit = threadIdx.x / 32; hit < hit_count; hit += WIDE_WARPS) {
            const int64_t first = hits[hit] * maxima_group<BITS>() - span.begin +
                                  static_cast<int>(threadIdx.x % 32) * WIDTH;

            if (hit != held)
                hold(hit);
#pragma unroll
            for (int i = 0; i < MAXIMA_LOADS * WIDTH; i++)
                use(there >> i & 1, keys[i / WIDTH][i % WIDTH],
                    first + i / WIDTH * 32 * WIDTH + i % WIDTH);
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
template <typename BITS, typename ITEM>
static __device__ void wide_bounds(const BITS *tiles, int64_t count, uint64_t k,
                                   struct wide_shared<BITS, ITEM> *shared, BITS *low, BITS *high)
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

/* Whether the digit says more of an item. All items have what is known of the tail, until all of the key is. */
template <typename BITS>
static __device__ __forceinline__ bool wide_matches(const struct wide_known<BITS> &known,
                                                    struct wide_digit d, BITS key, uint64_t tail)
{
    return (key & known.key_mask) == known.key_prefix &&
           (!d.is_tail || (tail & known.tail_mask) == known.tail_prefix);
}

template <typename BITS>
static __device__ __forceinline__ bool wide_is_selected(const struct wide_known<BITS> &known,
                                                        BITS key, uint64_t tail)
{
    return key > known.key_prefix || (key == known.key_prefix && tail >= known.tail_prefix);
}

static __device__ __forceinline__ unsigned wide_warp_sum(unsigned count)
{
    for (int distance = 16; distance > 0; distance /= 2)
        count += __shfl_xor_sync(0xffffffffu, count, distance);
    return count;
}

/* So many of one digit that follow each other in a thread. */
struct wide_run {
    unsigned digit, count;
};

static __device__ __forceinline__ void wide_count(unsigned *bins, struct wide_run *run,
                                                  unsigned digit)
{
    if (digit != run->digit) {
        if (run->count > 0)
            atomicAdd(&bins[run->digit], run->count);
        run->digit = digit;
        run->count = 0;
    }
    run->count++;
}

/* Adds what the lanes' runs end with to the block's bins, all at once where the digits are the same. */
static __device__ __forceinline__ void wide_tally(unsigned *bins, struct wide_run run)
{
    const unsigned lanes = __ballot_sync(0xffffffffu, run.count > 0);

    if (lanes == 0)
        return;

    const unsigned first = __shfl_sync(0xffffffffu, run.digit, __ffs(lanes) - 1);

    if (__all_sync(0xffffffffu, run.count == 0 || run.digit == first)) {
        const unsigned count = wide_warp_sum(run.count);

        if (threadIdx.x % 32 == 0)
            atomicAdd(&bins[first], count);
    } else if (run.count > 0) {
        atomicAdd(&bins[run.digit], run.count);
    }
}

/* Takes the digit of the k-th best item, which the grid's bins hold, or the block's where these are NULL, into what is
 * known. */
template <typename BITS, typename ITEM>
static __device__ void wide_pick(struct wide_shared<BITS, ITEM> *shared, const unsigned *bins,
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
template <typename BITS, typename ITEM>
static __device__ __forceinline__ void wide_add(const struct wide_shared<BITS, ITEM> *shared,
                                                unsigned *bins)
{
    for (int bin = threadIdx.x; bin < WIDE_BINS; bin += WIDE_BLOCK)
        if (shared->bins[bin] > 0)
            atomicAdd(&bins[bin], shared->bins[bin]);
    cooperative_groups::this_grid().sync();
}

/* Finds what is to be known of the k-th best of more items, so that at most `spare` items too many are selected: of all
 * blocks with the grid's bins, of which `turn` comes next; else, without any, of the block's own. */
template <typename BITS, typename ITEM, typename SOURCE>
static __device__ __forceinline__ void wide_find(SOURCE &source, struct wide_known<BITS> known,
                                                 uint64_t spare, unsigned *grid_bins,
                                                 struct wide_shared<BITS, ITEM> *shared, int *turn)
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
        struct wide_run run = {0, 0};

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

            if (is_there && wide_matches(known, d, key, tail))
                wide_count(shared->bins, &run, static_cast<unsigned>(number >> d.shift) & mask);
        });
        wide_tally(shared->bins, run);
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
template <typename BITS, typename ITEM>
static __device__ void wide_hit(const struct wide_groups<BITS> &groups,
                                struct wide_shared<BITS, ITEM> *shared)
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
template <typename BITS, typename ITEM>
static __device__ __forceinline__ bool wide_has_more(struct wide_elements<BITS> &elements,
                                                     BITS key_least, int64_t k,
                                                     struct wide_shared<BITS, ITEM> *shared)
{
    unsigned count = 0;

    if (threadIdx.x == 0)
        shared->sums[0] = 0;
    __syncthreads();
    elements.each([&](bool is_there, BITS key, int64_t) { count += is_there && key >= key_least; });
    count = wide_warp_sum(count);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&shared->sums[0], count);
    __syncthreads();
    return shared->sums[0] > k;
}

/* What is known at first of the k-th best of the block's own elements, all of which are in its groups. */
template <typename BITS, typename ITEM>
static __device__ __forceinline__ struct wide_known<BITS>
wide_alone(const struct wide_elements<BITS> &elements, BITS low, BITS high, uint64_t k,
           const struct wide_shared<BITS, ITEM> *shared) {
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
template <typename BITS, typename ITEM, typename SOURCE>
static __device__ __forceinline__ void
wide_collect(SOURCE &source, const struct wide_known<BITS> &known, ITEM *items, unsigned *counter,
             struct wide_shared<BITS, ITEM> *shared)
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
        if (is_there && wide_is_selected(known, key, tail_last - static_cast<uint64_t>(index)))
            items[at++] = topk_pair<ITEM>(key, index);
    });
}

/* Ranks what was found, one a lane; each warp compares with a part of all. Writes the k best. */
template <typename BITS, typename ITEM>
static __device__ __forceinline__ void wide_write(const struct topk_rows &rows, int found,
                                                  const ITEM *items,
                                                  struct wide_shared<BITS, ITEM> *shared)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int each = (found + WIDE_WARPS - 1) / WIDE_WARPS, from = warp * each;
    const int here = from + each < found ? each : found - from;

    for (int i = lane; i < here; i += 32)
        shared->items[warp][i] = items[from + i];
    for (int first = blockIdx.x * WIDE_RANKED; first < found; first += gridDim.x * WIDE_RANKED) {
        const bool is_there = first + lane < found;
        const ITEM own = is_there ? items[first + lane] : ITEM{0};
        unsigned rank = 0;

        if (warp == 0)
            shared->ranks[lane] = 0;
        __syncthreads();
#pragma unroll 16
        for (int i = 0; i < here; i++)
            rank = topk_count_better(shared->items[warp][i], own, rank);
        atomicAdd(&shared->ranks[lane], rank);
        __syncthreads();
        if (warp == 0 && is_there && shared->ranks[lane] < rows.k)
            maxima_write(rows, 0, static_cast<int>(shared->ranks[lane]),
                         static_cast<BITS>(topk_pair_key(own)), topk_pair_index(own));
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        rows.count[0] = rows.k;
}

template <typename BITS, typename ITEM>
static __global__ void __launch_bounds__(WIDE_BLOCK)
    topk_maxima_wide_kernel(struct topk_rows rows, struct wide_scratch<BITS, ITEM> scratch)
{
    extern __shared__ __align__(16) char wide_memory[];
    struct wide_shared<BITS, ITEM> *shared =
        reinterpret_cast<struct wide_shared<BITS, ITEM> *>(wide_memory);
    const struct maxima_span<BITS> span = maxima_span_of<BITS>(rows, 0);
    const int64_t count = (span.end + maxima_group<BITS>() - 1) / maxima_group<BITS>();
    const int64_t tiles = (count + MAXIMA_GROUPS - 1) / MAXIMA_GROUPS;
    struct wide_groups<BITS> groups = {
        scratch.groups, count, rows.k > WIDE_ALONE_K_MAX ? int{WIDE_RUN_BITS} : int
        {
            WIDE_ALONE_RUN_BITS
        }
    };
    struct wide_known<BITS> known = {
        0, 0, 0, 0, 0, 0
    }; /* selects all */
    const uint64_t spare = wide_spare(rows.k);
    BITS low, high;
    int turn = 0;

    groups.hold();
    wide_bounds(scratch.tiles, tiles, rows.k, shared, &low, &high);
    if (count > rows.k) {
        const int64_t last = rows.k * MAXIMA_GROUPS - 1;

        known = wide_between(low, high, rows.k);
        if (low == high) /* each tile has a group with that maximum */
            wide_within(&known, wide_tail_last(groups), 0, last < count ? last : count - 1);
    }
    wide_find(groups, known, spare, scratch.bins, shared, &turn);
    wide_hit(groups, shared);

    struct wide_elements<BITS> elements = {
        span, shared->hits, shared->hit_count, -1
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
        wide_collect(elements, known, scratch.items, &scratch.found[round], shared);
        cooperative_groups::this_grid().sync();
        found = __ldcg(&scratch.found[round]);
        if (found <= MAXIMA_WIDE_FOUND)
            break;
        is_alone = false;
    }
    wide_write(rows, static_cast<int>(found), scratch.items, shared);
}

/* --- launching ----------------------------------------------------------------------------------------- */

struct wide_plan {
    size_t bin_bytes, item_bytes;
};

static struct wide_plan wide_plan_for(const struct gpurun_ctx *ctx)
{
    struct wide_plan plan;

    plan.bin_bytes = MAXIMA_WIDE_ZEROS * sizeof(unsigned) + 2 * WIDE_BINS * sizeof(unsigned);
    plan.item_bytes =
        MAXIMA_WIDE_FOUND * (topk_sort_is_wide(ctx) ? sizeof(topk_wide) : sizeof(topk_narrow));
    return plan;
}

/* One block per multiprocessor, so that all are resident: the launch refuses more. */
template <typename BITS, typename ITEM>
static enum gpurun_status wide_launch(struct gpurun_ctx *ctx, struct maxima_keys maxima,
                                      int64_t tiles, void *memory)
{
    const size_t shared_bytes = sizeof(struct wide_shared<BITS, ITEM>);
    const int64_t most = ctx->device.sm_count;
    char *free_scratch = static_cast<char *>(memory);
    struct wide_scratch<BITS, ITEM> scratch;
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};

    scratch.tiles = static_cast<const BITS *>(maxima.tiles);
    scratch.groups = static_cast<const BITS *>(maxima.groups);
    scratch.found =
        static_cast<unsigned *>(topk_carve(&free_scratch, wide_plan_for(ctx).bin_bytes));
    scratch.bins = scratch.found + MAXIMA_WIDE_ZEROS - WIDE_BINS;
    scratch.items = reinterpret_cast<ITEM *>(free_scratch);
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    config.gridDim = static_cast<unsigned>(tiles < most ? tiles : most);
    config.blockDim = WIDE_BLOCK;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = gpurun_cuda_stream(ctx);
    config.attrs = &attribute;
    config.numAttrs = 1;
    GPURUN_CUDA_TRY(ctx, cudaFuncSetAttribute(topk_maxima_wide_kernel<BITS, ITEM>,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(shared_bytes)));
    GPURUN_CUDA_TRY(ctx, cudaLaunchKernelEx(&config, topk_maxima_wide_kernel<BITS, ITEM>,
                                            topk_rows_from(ctx, 0), scratch));
    return GPURUN_OK;
}

/* Why `k` does not go with the job, if it does not. */
enum gpurun_status topk_maxima_wide_supported(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const size_t needed = topk_sort_is_wide(ctx)
                              ? sizeof(struct wide_shared<uint64_t, topk_wide>)
                              : sizeof(struct wide_shared<uint32_t, topk_narrow>);

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

    return topk_align(plan.bin_bytes) + topk_align(plan.item_bytes);
}

enum gpurun_status topk_maxima_wide_launch(struct gpurun_ctx *ctx, struct maxima_keys maxima,
                                           int64_t tiles, void *scratch)
{
    if (topk_state_of(ctx)->elem_bytes == sizeof(uint64_t))
        return wide_launch<uint64_t, topk_wide>(ctx, maxima, tiles, scratch);
    return topk_sort_is_wide(ctx) ? wide_launch<uint32_t, topk_wide>(ctx, maxima, tiles, scratch)
                                  : wide_launch<uint32_t, topk_narrow>(ctx, maxima, tiles, scratch);
}
