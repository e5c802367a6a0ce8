/*
 * Between the files of the maxima variant: how a row is cut, the maxima of its pieces, and how one block
 * narrows them down to the k best elements.
 *
 * A row is cut into tiles of 64 KiB and those into groups of 2 KiB, all aligned to 16 bytes. The k best elements of a row
 * lie in the k tiles that are best by (maximum, lower place first): an element of any other tile comes after the maximum
 * of each of those k. So it is with the groups of those tiles. Ties are broken by the place on every level, so that few
 * pieces go on whatever the data. Groups of a short row have 512 bytes; these are so few that the tiles' level is left
 * out.
 */
#ifndef TOPK_MAXIMA_CUH
#define TOPK_MAXIMA_CUH

#include "gpurun/warp.cuh"
#include "topk_device.cuh"
#include "topk_list.cuh"
#include "topk_maxima.h"

/* How rows are cut: vectors of a lane in a group, threads of a block that reads a tile, groups that one of its warps
 * reads at once, threads of a block that goes through the levels, how many of the latter a multiprocessor is to hold, and
 * whether they begin with the tiles: else a thread holds its share of the groups' maxima. */
struct maxima_long {
    typedef maxima_long READ;
    enum { LOADS = MAXIMA_LOADS, READ_BLOCK = 512, AT_ONCE = 1 };
    enum { BLOCK = 512, BLOCKS = 1, HAS_TILES = 1 };
};

struct maxima_short {
    typedef maxima_short READ;
    enum { LOADS = MAXIMA_SHORT_LOADS, READ_BLOCK = 256, AT_ONCE = 4 };
    enum { BLOCK = 512, BLOCKS = 1, HAS_TILES = 0 };
};

/* Read as short rows are; as many as fit take turns. */
struct maxima_batch {
    typedef maxima_short READ;
    enum { LOADS = MAXIMA_SHORT_LOADS, READ_BLOCK = 256, AT_ONCE = 4 };
    enum { BLOCK = 128, BLOCKS = 8, HAS_TILES = 0 };
};

template <typename BITS> struct __align__(16) maxima_vector
{
    BITS item[MAXIMA_VECTOR_BYTES / sizeof(BITS)];
};

/* A row's elements are base[begin] to base[end - 1]; base is aligned to a vector. */
template <typename BITS> struct maxima_span {
    const BITS *base;
    int64_t begin, end;
    uint64_t flip;
    bool is_real;
};

/* The maximum of a tile or a group, or an element; place is where it stands in what its level looks at. One
 * of key 0 at MAXIMA_NOWHERE comes after all others. */
template <typename BITS> struct __align__(2 * sizeof(BITS)) maxima_item
{
    BITS key;
    uint32_t place;
};

#define MAXIMA_NOWHERE UINT32_MAX

template <typename BITS> struct maxima_shared {
    struct maxima_item<BITS> part[MAXIMA_PARTS];
    struct maxima_item<BITS> found[MAXIMA_FOUND];
    uint32_t list[MAXIMA_ALL];      /* pieces that a level leaves to the next, in rising order */
    struct maxima_item<BITS> limit; /* none after it is among the k best */
    int found_count, total;
};

template <typename BITS> static constexpr __host__ __device__ int maxima_width()
{
    return MAXIMA_VECTOR_BYTES / static_cast<int>(sizeof(BITS));
}

/* Elements of a group and of a tile. */
template <typename BITS, typename SHAPE = struct maxima_long>
static constexpr __host__ __device__ int64_t maxima_group()
{
    return int64_t{32 * SHAPE::LOADS} * maxima_width<BITS>();
}

template <typename BITS, typename SHAPE = struct maxima_long>
static constexpr __host__ __device__ int64_t maxima_tile()
{
    return MAXIMA_GROUPS * maxima_group<BITS, SHAPE>();
}

/* Tiles of a row of the job, wherever it begins, with so many vectors of a lane in a group. */
static inline int64_t maxima_tiles_at_most(const struct gpurun_ctx *ctx, int64_t loads)
{
    const int64_t width =
        MAXIMA_VECTOR_BYTES / static_cast<int64_t>(topk_state_of(ctx)->elem_bytes);
    const int64_t vectors = (topk_options_of(ctx)->n + 2 * width - 2) / width;

    return (vectors + MAXIMA_GROUPS * 32 * loads - 1) / (MAXIMA_GROUPS * 32 * loads);
}

template <typename BITS>
static __device__ __forceinline__ struct maxima_span<BITS> maxima_span_of(struct topk_rows rows,
                                                                          int64_t row) {
    const BITS *in = topk_row<BITS>(rows, row);
    const int64_t begin =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(in) % MAXIMA_VECTOR_BYTES / sizeof(BITS));
    const struct maxima_span<BITS> span = {
        in - begin, begin, begin + rows.n, rows.flip, rows.is_real
    };

    return span;
}

static __host__ __device__ __forceinline__ bool
maxima_before(struct maxima_item<uint32_t> a, struct maxima_item<uint32_t> b)
{
    return (static_cast<uint64_t>(a.key) << 32 | ~a.place) >
           (static_cast<uint64_t>(b.key) << 32 | ~b.place);
}

static __host__ __device__ __forceinline__ bool maxima_before(struct maxima_item<uint64_t> a,
                                                              struct maxima_item<uint64_t> b)
{
    return a.key > b.key || (a.key == b.key && a.place < b.place);
}

/* Bits into keys: one question for all of them. */
template <typename BITS, int LOADS, int WIDTH>
static __device__ __forceinline__ void maxima_to_keys(const struct maxima_span<BITS> &span,
                                                      BITS (&bits)[LOADS][WIDTH])
{
    if (span.is_real) {
#pragma unroll
        for (int i = 0; i < LOADS * WIDTH; i++)
            bits[i / WIDTH][i % WIDTH] = topk_key<true>(bits[i / WIDTH][i % WIDTH], span.flip);
    } else {
#pragma unroll
        for (int i = 0; i < LOADS * WIDTH; i++)
            bits[i / WIDTH][i % WIDTH] ^= static_cast<BITS>(span.flip);
    }
}

/* --- the maxima of a row ---------------------------------------------------------------------------- */

/* Each byte is wanted once: past the L1. */
static __device__ __forceinline__ struct maxima_vector<uint32_t>
maxima_stream(const struct maxima_vector<uint32_t> *from) {
    struct maxima_vector<uint32_t> v;

    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.item[0]), "=r"(v.item[1]), "=r"(v.item[2]), "=r"(v.item[3])
        : "l"(from));
    return v;
}

static __device__ __forceinline__ struct maxima_vector<uint64_t>
maxima_stream(const struct maxima_vector<uint64_t> *from) {
    struct maxima_vector<uint64_t> v;

    asm("ld.global.nc.L1::no_allocate.v2.u64 {%0, %1}, [%2];"
        : "=l"(v.item[0]), "=l"(v.item[1])
        : "l"(from));
    return v;
}

/* The largest key that a lane has of a group at an edge of the row. What is no part of the row counts as key 0,
 * which changes no maximum. */
template <typename BITS, bool REAL, typename SHAPE = struct maxima_long>
static __device__ __forceinline__ BITS maxima_of_edge(const struct maxima_span<BITS> &span,
                                                      int64_t first)
{
    constexpr int width = maxima_width<BITS>();
    BITS best = 0;

#pragma unroll SHAPE::AT_ONCE
    for (int e = 0; e < SHAPE::LOADS * width; e++) {
        const int64_t at = first + e / width * 32 * width + e % width;

        if (at >= span.begin && at < span.end) {
            const BITS key = topk_key<REAL>(span.base[at], span.flip);
            best = key > best ? key : best;
        }
    }
    return best;
}

/* Whether all of a group is part of the row. */
template <typename SHAPE, typename BITS>
static __device__ __forceinline__ bool maxima_is_whole(const struct maxima_span<BITS> &span,
                                                       int64_t group)
{
    return group * maxima_group<BITS, SHAPE>() >= span.begin &&
           (group + 1) * maxima_group<BITS, SHAPE>() <= span.end;
}

/* The largest keys of groups, so many apart as the block has warps, in all lanes of the warp that calls. All loads are
 * issued before the first is used. */
template <typename BITS, bool REAL, typename SHAPE>
static __device__ __forceinline__ void maxima_of_groups(const struct maxima_span<BITS> &span,
                                                        int64_t group, BITS (&best)[SHAPE::AT_ONCE])
{
    constexpr int width = maxima_width<BITS>(), warps = SHAPE::READ_BLOCK / 32;
    struct maxima_vector<BITS> v[SHAPE::AT_ONCE][SHAPE::LOADS];

#pragma unroll
    for (int g = 0; g < SHAPE::AT_ONCE; g++) {
        const BITS *first = span.base + (group + g * warps) * maxima_group<BITS, SHAPE>() +
                            threadIdx.x % 32 * width;

        if (maxima_is_whole<SHAPE>(span, group + g * warps))
#pragma unroll
            for (int l = 0; l < SHAPE::LOADS; l++)
                v[g][l] = maxima_stream(
                    reinterpret_cast<const struct maxima_vector<BITS> *>(first + l * 32 * width));
    }
#pragma unroll
    for (int g = 0; g < SHAPE::AT_ONCE; g++) {
        best[g] = 0;
        if (maxima_is_whole<SHAPE>(span, group + g * warps)) {
#pragma unroll
            for (int i = 0; i < SHAPE::LOADS * width; i++) {
                const BITS key = topk_key<REAL>(v[g][i / width].item[i % width], span.flip);
                best[g] = key > best[g] ? key : best[g];
            }
        } else {
            best[g] = maxima_of_edge<BITS, REAL, SHAPE>(
                span, (group + g * warps) * maxima_group<BITS, SHAPE>() + threadIdx.x % 32 * width);
        }
        best[g] = gpurun_warp_max(best[g]);
    }
}

/* Writes the maxima of a tile's groups, and its own where there is one. */
template <typename BITS, bool REAL, typename SHAPE>
static __device__ __forceinline__ void maxima_of_tile(const struct maxima_span<BITS> &span,
                                                      int64_t tile, BITS *tile_maxima,
                                                      BITS *group_maxima)
{
    constexpr int warps = SHAPE::READ_BLOCK / 32;
    __shared__ BITS maxima[MAXIMA_GROUPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t first = tile * MAXIMA_GROUPS;

#pragma unroll
    for (int g = warp; g < MAXIMA_GROUPS; g += warps * SHAPE::AT_ONCE) {
        BITS best[SHAPE::AT_ONCE];

        maxima_of_groups<BITS, REAL, SHAPE>(span, first + g, best);
#pragma unroll
        for (int i = 0; i < SHAPE::AT_ONCE; i++) {
            const int64_t group = first + g + i * warps;

            if (lane == 0 && SHAPE::HAS_TILES)
                maxima[g + i * warps] = best[i];
            else if (lane == 0 && group * maxima_group<BITS, SHAPE>() < span.end)
                group_maxima[group] = best[i];
        }
    }
    if (!SHAPE::HAS_TILES)
        return;
    __syncthreads();
    if (warp == 0) {
        const BITS best = gpurun_warp_max(maxima[lane]);

        if ((first + lane) * maxima_group<BITS, SHAPE>() < span.end)
            group_maxima[first + lane] = maxima[lane];
        if (lane == 0)
            tile_maxima[tile] = best;
    }
}

/* Whether the calling block is the last of so many to get here; if so it sees what warp 0 of the others
 * wrote. */
static __device__ __forceinline__ bool maxima_is_last(unsigned *ticket, unsigned blocks)
{
    __shared__ bool is_last;

    if (threadIdx.x < 32) {
        __threadfence();
        __syncwarp();
    }
    if (threadIdx.x == 0) {
        is_last = atomicInc(ticket, blocks - 1) == blocks - 1;
        __threadfence();
    }
    __syncthreads();
    return is_last;
}

/* --- what a level selects from ------------------------------------------------------------------------
 *
 * A source has slots() slots of WIDTH items each; place() is that of a slot's first item, and rises along the row.
 * fetch() only loads, so that several slots are in flight, and gives a bit for each item that is there.
 */

/* The maxima of all tiles, or of all groups. Written by other blocks, maybe of this very launch: never from the L1. */
template <typename BITS, int HELD = MAXIMA_HELD> struct maxima_all {
    enum { WIDTH = 1, LOADS = HELD };
    const BITS *maxima;
    int count;

    __device__ __forceinline__ int slots() const
    {
        return count;
    }
    __device__ __forceinline__ uint32_t place(int slot) const
    {
        return slot;
    }
    __device__ __forceinline__ unsigned fetch(int slot, BITS (&bits)[WIDTH]) const
    {
        bits[0] = __ldcg(&maxima[slot]);
        return 1;
    }
    template <int AT_ONCE> __device__ __forceinline__ void to_keys(BITS (&)[AT_ONCE][WIDTH]) const
    {
    }
};

/* The maxima of the groups of listed tiles, in any order. */
template <typename BITS, typename SHAPE> struct maxima_groups {
    enum { WIDTH = 1, LOADS = MAXIMA_ALL * MAXIMA_GROUPS / SHAPE::BLOCK };
    const BITS *maxima;
    const uint32_t *tiles;
    int tile_count;
    uint32_t count; /* groups of the row */

    __device__ __forceinline__ int slots() const
    {
        return tile_count * MAXIMA_GROUPS;
    }
    __device__ __forceinline__ uint32_t place(int slot) const
    {
        return tiles[slot / MAXIMA_GROUPS] * MAXIMA_GROUPS + slot % MAXIMA_GROUPS;
    }
    __device__ __forceinline__ unsigned fetch(int slot, BITS (&bits)[WIDTH]) const
    {
        if (place(slot) >= count)
            return 0;
        bits[0] = __ldcg(&maxima[place(slot)]);
        return 1;
    }
    template <int AT_ONCE> __device__ __forceinline__ void to_keys(BITS (&)[AT_ONCE][WIDTH]) const
    {
    }
};

/* The elements of listed groups, which rise. A place is one in the list of groups, so that 32 bits do. */
template <typename BITS, typename SHAPE = struct maxima_long> struct maxima_elements {
    enum {
        WIDTH = MAXIMA_VECTOR_BYTES / sizeof(BITS),
        GROUP_VECTORS = 32 * SHAPE::LOADS,
        LOADS = MAXIMA_LIST * GROUP_VECTORS / SHAPE::BLOCK
    };
    struct maxima_span<BITS> span;
    const uint32_t *groups;
    int group_count;

    __device__ __forceinline__ int slots() const
    {
        return group_count * GROUP_VECTORS;
    }
    __device__ __forceinline__ uint32_t place(int slot) const
    {
        return slot * WIDTH;
    }
    __device__ __forceinline__ int64_t index(uint32_t place) const
    {
        constexpr uint32_t group = GROUP_VECTORS * WIDTH;

        return static_cast<int64_t>(groups[place / group]) * group + place % group - span.begin;
    }
    __device__ __forceinline__ BITS key(int64_t index) const
    {
        const BITS bits = span.base[span.begin + index];

        return span.is_real ? topk_key<true>(bits, span.flip) : topk_key<false>(bits, span.flip);
    }
    __device__ __forceinline__ unsigned fetch(int slot, BITS (&bits)[WIDTH]) const
    {
        const int64_t at = (static_cast<int64_t>(groups[slot / GROUP_VECTORS]) * GROUP_VECTORS +
                            slot % GROUP_VECTORS) *
                           WIDTH;

        if (__builtin_expect(at >= span.begin && at + WIDTH <= span.end, 1)) {
            const struct maxima_vector<BITS> v =
                *reinterpret_cast<const struct maxima_vector<BITS> *>(span.base + at);
#pragma unroll
            for (int j = 0; j < WIDTH; j++)
                bits[j] = v.item[j];
            return (1u << WIDTH) - 1;
        }
        return fetch_edge(at, bits);
    }
    __device__ __forceinline__ unsigned fetch_edge(int64_t at, BITS (&bits)[WIDTH]) const
    {
        unsigned there = 0;

#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            if (at + j >= span.begin && at + j < span.end) {
                bits[j] = span.base[at + j];
                there |= 1u << j;
            }
        }
        return there;
    }
    template <int AT_ONCE>
    __device__ __forceinline__ void to_keys(BITS (&bits)[AT_ONCE][WIDTH]) const
    {
        maxima_to_keys(span, bits);
    }
};

/* A source that is read once more, slot by slot: little code. */
template <typename SOURCE> struct maxima_again : SOURCE {
    enum { LOADS = 1 };
};

/* --- one level -------------------------------------------------------------------------------------- */

/* The thread's first slot. Slots are dealt so that those of a part, which BLOCK / MAXIMA_PARTS neighbouring threads
 * have, are MAXIMA_PARTS apart: in sorted data the best stand side by side, and so in different parts. */
template <int BLOCK> static __device__ __forceinline__ int maxima_first_slot()
{
    constexpr int sharers = BLOCK / MAXIMA_PARTS;

    return threadIdx.x / sharers + threadIdx.x % sharers * MAXIMA_PARTS;
}

/* The keys of LOADS of the thread's slots, from `base` on; what is not there has key 0. */
template <int BLOCK, typename BITS, typename SOURCE>
static __device__ __forceinline__ void maxima_fetch(const SOURCE &source, int base,
                                                    BITS (&keys)[SOURCE::LOADS][SOURCE::WIDTH],
                                                    unsigned (&there)[SOURCE::LOADS])
{
    const int slots = source.slots();

#pragma unroll
    for (int l = 0; l < SOURCE::LOADS; l++)
        there[l] = base + l * BLOCK < slots ? source.fetch(base + l * BLOCK, keys[l]) : 0;
    source.to_keys(keys);
#pragma unroll
    for (int l = 0; l < SOURCE::LOADS; l++)
#pragma unroll
        for (int j = 0; j < SOURCE::WIDTH; j++)
            keys[l][j] = there[l] >> j & 1 ? keys[l][j] : 0;
}

/* A source of at most LOADS slots per thread, with their keys in registers. */
template <typename BITS, typename SOURCE> struct maxima_held {
    enum { WIDTH = SOURCE::WIDTH, LOADS = SOURCE::LOADS };
    const SOURCE &source;
    BITS keys[LOADS][WIDTH];
    unsigned there[LOADS];
};

/* Calls use(place, keys, there) for the thread's slots. */
template <int BLOCK, typename BITS, typename SOURCE, typename USE>
static __device__ __forceinline__ void maxima_each(const SOURCE &source, USE use)
{
    const int slots = source.slots();

#pragma unroll 1
    for (int base = maxima_first_slot<BLOCK>(); base < slots; base += SOURCE::LOADS * BLOCK) {
        BITS keys[SOURCE::LOADS][SOURCE::WIDTH];
        unsigned there[SOURCE::LOADS];

        maxima_fetch<BLOCK>(source, base, keys, there);
#pragma unroll
        for (int l = 0; l < SOURCE::LOADS; l++)
            if (there[l])
                use(source.place(base + l * BLOCK), keys[l], there[l]);
    }
}

template <int BLOCK, typename BITS, typename SOURCE, typename USE>
static __device__ __forceinline__ void maxima_each(const struct maxima_held<BITS, SOURCE> &held,
                                                   USE use)
{
#pragma unroll
    for (int l = 0; l < SOURCE::LOADS; l++)
        if (held.there[l])
            use(held.source.place(maxima_first_slot<BLOCK>() + l * BLOCK), held.keys[l],
                held.there[l]);
}

/* The largest of a slot's keys. */
template <typename BITS, int WIDTH>
static __device__ __forceinline__ BITS maxima_of_slot(const BITS (&keys)[WIDTH])
{
    BITS best = keys[0];

#pragma unroll
    for (int j = 1; j < WIDTH; j++)
        best = keys[j] > best ? keys[j] : best;
    return best;
}

/* Of how many of `count` items is_before(item) is true. The BLOCK / MAXIMA_PARTS neighbouring threads that ask
 * the same share the work and the answer; all lanes of a warp call it. */
template <int BLOCK, typename ITEM, typename TEST>
static __device__ __forceinline__ int maxima_tally(const ITEM *items, int count, TEST is_before)
{
    constexpr int sharers = BLOCK / MAXIMA_PARTS;
    int before = 0;

    for (int i = threadIdx.x % sharers; i < count; i += sharers)
        before += is_before(items[i]);
#pragma unroll
    for (int distance = 1; distance < sharers; distance *= 2)
        before += __shfl_xor_sync(0xffffffffu, before, distance);
    return before;
}

/* The thread's first slot with its largest key; none if it has none. */
template <int BLOCK, typename BITS, typename ITEMS>
static __device__ __forceinline__ struct maxima_item<BITS> maxima_own(const ITEMS &items) {
    struct maxima_item<BITS> own = {
        0, MAXIMA_NOWHERE
    };

    maxima_each<BLOCK, BITS>(items,
                             [&](uint32_t place, const BITS (&keys)[ITEMS::WIDTH], unsigned) {
                                 const BITS key = maxima_of_slot(keys);

                                 if (key > own.key || own.place == MAXIMA_NOWHERE) {
                                     own.key = key;
                                     own.place = place;
                                 }
                             });
    return own;
}

/* Sets a limit that at least k items do not come after: the k-th best of the parts' best, each taken for the last of
 * its slot. Where fewer than k parts have an item, nothing comes after it. Begins and ends with a barrier. */
template <int BLOCK, int WIDTH, typename BITS>
static __device__ __forceinline__ void maxima_guess(struct maxima_item<BITS> best, int k,
                                                    struct maxima_shared<BITS> *shared)
{
    constexpr int sharers = BLOCK / MAXIMA_PARTS;

#pragma unroll
    for (int distance = 1; distance < sharers; distance *= 2) {
        const struct maxima_item<BITS> other = {
            __shfl_xor_sync(0xffffffffu, best.key, distance),
                __shfl_xor_sync(0xffffffffu, best.place, distance)
        };
        best = maxima_before(other, best) ? other : best;
    }
    if (threadIdx.x % sharers == 0)
        shared->part[threadIdx.x / sharers] = best;
    if (threadIdx.x == 0) {
        shared->limit.key = 0;
        shared->limit.place = MAXIMA_NOWHERE;
        shared->found_count = 0;
    }
    __syncthreads();

    const int rank =
        maxima_tally<BLOCK>(shared->part, MAXIMA_PARTS, [=](struct maxima_item<BITS> other) {
            return maxima_before(other, best);
        });

    if (rank == k - 1 && best.place != MAXIMA_NOWHERE) {
        shared->limit.key = best.key;
        shared->limit.place = best.place + WIDTH - 1;
    }
    __syncthreads();
}

/* Puts what does not come after the limit into `found`, in any order, as far as there is room. Ends with a
 * barrier. */
template <int BLOCK, typename BITS, typename ITEMS>
static __device__ __forceinline__ void
maxima_collect(const ITEMS &items, struct maxima_item<BITS> own, struct maxima_shared<BITS> *shared)
{
    constexpr int width = ITEMS::WIDTH;
    const struct maxima_item<BITS> limit = shared->limit;

    if (own.place != MAXIMA_NOWHERE && own.key >= limit.key)
        maxima_each<BLOCK, BITS>(items,
                                 [&](uint32_t place, const BITS(&keys)[width], unsigned there) {
                                     if (maxima_of_slot(keys) < limit.key)
                                         return;
#pragma unroll
                                     for (int j = 0; j < width; j++) {
                                         const struct maxima_item<BITS> item = {
                                             keys[j], place + j
                                         };

                                         if ((there >> j & 1) && !maxima_before(limit, item)) {
                                             const int at = atomicAdd(&shared->found_count, 1);

                                             if (at < MAXIMA_FOUND)
                                                 shared->found[at] = item;
                                         }
                                     }
                                 });
    __syncthreads();
}

/* How many items do not come after the limit, in the whole block. */
template <int BLOCK, typename BITS, typename ITEMS>
static __device__ __forceinline__ int
maxima_count(const ITEMS &items, struct maxima_item<BITS> limit, struct maxima_shared<BITS> *shared)
{
    constexpr int width = ITEMS::WIDTH;
    int count = 0;

    __syncthreads();
    if (threadIdx.x == 0)
        shared->total = 0;
    __syncthreads();
    maxima_each<BLOCK, BITS>(items, [&](uint32_t place, const BITS(&keys)[width], unsigned there) {
#pragma unroll
        for (int j = 0; j < width; j++) {
            const struct maxima_item<BITS> item = {
                keys[j], place + j
            };

            count += (there >> j & 1) && !maxima_before(limit, item);
        }
    });
    if (count > 0)
        atomicAdd(&shared->total, count);
    __syncthreads();
    return shared->total;
}

/* Sets the limit that exactly k of more items do not come after, found bit by bit: for data whose best all fall to few
 * parts. Ends with a barrier. */
template <int BLOCK, typename BITS, typename ITEMS>
static __device__ __forceinline__ void maxima_search(const ITEMS &items, int k,
                                                     struct maxima_shared<BITS> *shared)
{
    struct maxima_item<BITS> kth = {
        0, MAXIMA_NOWHERE
    };

#pragma unroll 1
    for (int bit = 32 + 8 * static_cast<int>(sizeof(BITS)) - 1; bit >= 0; bit--) {
        struct maxima_item<BITS> limit = kth;

        if (bit >= 32)
            limit.key |= static_cast<BITS>(1) << (bit - 32);
        else
            limit.place ^= 1u << bit;
        if (maxima_count<BLOCK>(items, limit, shared) >= k)
            kth = limit;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        shared->limit = kth;
        shared->found_count = 0;
    }
    __syncthreads();
}

/* How a level's limit is found: the one that the level before it left, by parts, bit by bit. */
enum maxima_way { MAXIMA_BY_LEVEL, MAXIMA_BY_PARTS, MAXIMA_BY_BITS };

/* Finds the k best items, or all where they are fewer, and hardly more: how many, at most MAXIMA_FOUND, in
 * shared->found. With MAXIMA_BY_LEVEL k of the items are known not to be below shared->limit.key. All threads of the
 * block call it; it ends with a barrier. */
template <int BLOCK, typename BITS, typename ITEMS>
static __device__ __forceinline__ int maxima_find(const ITEMS &items, int k, int way,
                                                  struct maxima_shared<BITS> *shared)
{
    const struct maxima_item<BITS> own = maxima_own<BLOCK, BITS>(items);

    if (way == MAXIMA_BY_LEVEL) {
        if (threadIdx.x == 0) {
            shared->limit.place = MAXIMA_NOWHERE;
            shared->found_count = 0;
        }
        way += __syncthreads_count(own.place != MAXIMA_NOWHERE && own.key >= shared->limit.key) >
               MAXIMA_FOUND;
    }
#pragma unroll 1
    for (;; way++) {
        if (way == MAXIMA_BY_PARTS)
            maxima_guess<BLOCK, ITEMS::WIDTH>(own, k, shared);
        else if (way == MAXIMA_BY_BITS)
            maxima_search<BLOCK>(items, k, shared);
        maxima_collect<BLOCK>(items, own, shared);

        const int found = shared->found_count;

        if (found <= MAXIMA_FOUND)
            return found;
        __syncthreads();
    }
}

/* The same of a source that fits into the block's registers. */
template <int BLOCK, typename BITS, typename SOURCE>
static __device__ __forceinline__ int maxima_find_held(const SOURCE &source, int k, int way,
                                                       struct maxima_shared<BITS> *shared)
{
    struct maxima_held<BITS, SOURCE> held = {
        source
    };

    maxima_fetch<BLOCK>(source, maxima_first_slot<BLOCK>(), held.keys, held.there);
    return maxima_find<BLOCK>(held, k, way, shared);
}

/* Calls use(item, rank) in one thread for each item that was found. */
template <int BLOCK, typename BITS, typename USE>
static __device__ __forceinline__ void maxima_ranked(const struct maxima_shared<BITS> *shared,
                                                     int found, USE use)
{
    constexpr int sharers = BLOCK / MAXIMA_PARTS;

    for (int base = 0; base < found; base += MAXIMA_PARTS) {
        const int at = base + threadIdx.x / sharers;
        const struct maxima_item<BITS> mine = shared->found[at];
        const int rank =
            maxima_tally<BLOCK>(shared->found, found, [=](struct maxima_item<BITS> other) {
                return maxima_before(other, mine);
            });

        if (at < found && threadIdx.x % sharers == 0)
            use(mine, rank);
    }
}

/* The pieces that hold the k best of the items found into shared->list, in rising order if that is asked; how many.
 * They leave a limit for the level that comes next. All threads of the block call it; it ends with a barrier. */
template <int BLOCK, typename BITS>
static __device__ __forceinline__ int maxima_narrow(int found, int k, bool in_order,
                                                    struct maxima_shared<BITS> *shared)
{
    const int at = threadIdx.x / (BLOCK / MAXIMA_PARTS), count = found > MAXIMA_LIST ? k : found;
    struct maxima_item<BITS> *kept = found > MAXIMA_LIST ? shared->part : shared->found;

    if (found > MAXIMA_LIST) {
        maxima_ranked<BLOCK>(shared, found, [=](struct maxima_item<BITS> item, int rank) {
            if (rank < k)
                kept[rank] = item;
            if (rank == k - 1)
                shared->limit = item;
        });
        __syncthreads();
    }

    const uint32_t place = kept[at].place;
    const int before = in_order ? maxima_tally<BLOCK>(kept, count,
                                                      [=](struct maxima_item<BITS> other) {
                                                          return other.place < place;
                                                      })
                                : at;

    if (at < count)
        shared->list[before] = place;
    __syncthreads();
    return count;
}

/* Writes an element of the answer. Only of a real the key does not say which bits it has. */
template <typename BITS>
static __device__ __forceinline__ void maxima_write(const struct topk_rows &rows, int64_t row,
                                                    int rank, BITS key, int64_t index)
{
    const int64_t slot = row * rows.k + rank;

    rows.indices[slot] = index;
    static_cast<BITS *>(rows.values)[slot] =
        rows.is_real ? topk_row<BITS>(rows, row)[index] : key ^ static_cast<BITS>(rows.flip);
}

/* From the maxima of a row to a list of groups, and how many. Where the tiles' are too many for the registers, they are
 * read once more. */
template <typename BITS, typename SHAPE>
static __device__ __forceinline__ int maxima_list_groups(const BITS *tile_maxima,
                                                         const BITS *group_maxima, int groups,
                                                         int k, struct maxima_shared<BITS> *shared)
{
    constexpr int block = SHAPE::BLOCK;
    const int tiles = (groups + MAXIMA_GROUPS - 1) / MAXIMA_GROUPS;
    const BITS *maxima = SHAPE::HAS_TILES ? tile_maxima : group_maxima;
    const int total = SHAPE::HAS_TILES ? tiles : groups;
    int found;

    if (!SHAPE::HAS_TILES || tiles <= MAXIMA_HELD * block) {
        const struct maxima_all<BITS> all = {
            maxima, total
        };

        found = maxima_find_held<block>(all, k, MAXIMA_BY_PARTS, shared);
    } else {
        const struct maxima_all<BITS, MAXIMA_AT_ONCE> all = {
            maxima, total
        };

        found = maxima_find<block>(all, k, MAXIMA_BY_PARTS, shared);
    }

    const int count = maxima_narrow<block>(found, k, !SHAPE::HAS_TILES, shared);

    if (!SHAPE::HAS_TILES)
        return count;

    const struct maxima_groups<BITS, SHAPE> of_tiles = {
        group_maxima, shared->list, count, static_cast<uint32_t>(groups)
    };

    found = maxima_find_held<block>(of_tiles, k, MAXIMA_BY_LEVEL, shared);
    return maxima_narrow<block>(found, k, true, shared);
}

/* From the maxima of a row to its answer, by one block. Few groups need no maxima. */
template <typename BITS, typename SHAPE>
static __device__ __forceinline__ void
maxima_finish(const struct topk_rows &rows, int64_t row, const struct maxima_span<BITS> &span,
              const BITS *tile_maxima, const BITS *group_maxima)
{
    __shared__ struct maxima_shared<BITS> shared;
    const int k = static_cast<int>(rows.k);
    const int groups = static_cast<int>((span.end + maxima_group<BITS, SHAPE>() - 1) /
                                        maxima_group<BITS, SHAPE>());
    const bool has_levels = groups > MAXIMA_GROUPS;
    int count = groups;

    if (has_levels)
        count = maxima_list_groups<BITS, SHAPE>(tile_maxima, group_maxima, groups, k, &shared);
    else if (static_cast<int>(threadIdx.x) < groups)
        shared.list[threadIdx.x] = threadIdx.x;
    __syncthreads();

    const struct maxima_elements<BITS, SHAPE> elements = {
        span, shared.list, count
    };
    const int found = maxima_find_held<SHAPE::BLOCK>(
        elements, k, has_levels ? MAXIMA_BY_LEVEL : MAXIMA_BY_PARTS, &shared);

    maxima_ranked<SHAPE::BLOCK>(&shared, found, [&](struct maxima_item<BITS> item, int rank) {
        if (rank < k)
            maxima_write(rows, row, rank, item.key, elements.index(item.place));
    });
    if (threadIdx.x == 0)
        rows.count[row] = rows.k;
}

#endif
