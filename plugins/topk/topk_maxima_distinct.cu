/*
 * topk, variant "maxima" with distinct = yes: a group that holds nothing but known values is not looked at again.
 *
 * Mapping  a block per tile, a warp per group, as topk_maxima.cu; then a block per multiprocessor finds the groups that
 *          may hold an answer, all the same ones. One block takes them if they are few; else each takes its share, and
 *          the last puts their lists together.
 * Memory   reads the input once, and again what the maxima leave: k groups where values are mostly different, a
 *          tenth of the row where few values repeat. Writes one key per group and a bit.
 * Bound    memory; where values repeat, two shuffles per element.
 * Limits   k up to 32, one row.
 *
 * The k-th best of different maxima is a limit that k different values are not below. Where values repeat it says
 * little: each group has the same maximum. So when the maxima of the first tile repeat, its block finds the k best
 * values there, and blocks that start later ask of each element whether it is one of these, or below them: then
 * its lowest index is in the first tile. What others have not asked, the second kernel does. Whatever the first
 * tile holds the answer is exact; where it has little in common with the rest, that is read twice.
 *
 * Whole numbers that repeat mostly leave no gap: each from the limit to the largest maximum is itself some maximum. Then
 * no element beyond the first group, or tile, of each of these is at its lowest index, whatever it is.
 */
#include "topk_maxima_distinct.cuh"

/* Between launches all 0. */
struct distinct_state {
    unsigned is_known, ticket;
};

template <typename BITS> struct distinct_scratch {
    BITS *tiles, *groups; /* their maxima, a tile's without the groups that are masked */
    unsigned *masks;      /* per tile, a bit per group: it holds nothing that is wanted */
    struct distinct_known<BITS> *known;
    struct distinct_entry<BITS> *entries; /* DISTINCT_K_MAX per block */
    unsigned *counts;                     /* of a block's entries */
    struct distinct_state *state;
};

/* --- the first read --------------------------------------------------------------------------------------- */

/* By the block of the first tile, from keys of its groups, of which the warps that have there == 0 have none: what
 * is known, if the maxima of the groups repeat. */
template <typename BITS, int ITEMS>
static __device__ __forceinline__ void distinct_learn(const BITS (&keys)[ITEMS], unsigned there,
                                                      const BITS *maxima, int k,
                                                      const struct distinct_scratch<BITS> &scratch)
{
    __shared__ struct distinct_best<BITS> best;
    __shared__ unsigned choice;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    bool is_in_b;

    __syncthreads();
    if (__popc(__ballot_sync(0xffffffffu, distinct_is_repeat(maxima[lane % DISTINCT_WARPS]))) -
            (32 - DISTINCT_WARPS) <
        DISTINCT_REPEATS_MIN)
        return;
    if (threadIdx.x == 0)
        choice = DISTINCT_WARPS * DISTINCT_TRIES - 1;

    const int count = distinct_rounds(keys, there, k, &best);
    const BITS key = best.keys[lane < count ? lane : 0];

    for (unsigned which = warp; which < DISTINCT_WARPS * DISTINCT_TRIES; which += DISTINCT_WARPS)
        if (distinct_fits(key, lane < count, which, &is_in_b) && lane == 0)
            atomicMin(&choice, which);
    __syncthreads();
    if (warp > 0)
        return;

    const uint32_t hash = distinct_hash(key, distinct_factor(choice));

    distinct_fits(key, lane < count, choice, &is_in_b);
    scratch.known->a[lane] = scratch.known->b[lane] = best.keys[0];
    __syncwarp();
    if (lane < count && !is_in_b)
        scratch.known->a[distinct_slot_a(hash)] = key;
    if (lane < count && is_in_b)
        scratch.known->b[distinct_slot_b(hash) % 32] = key;
    scratch.known->factor = distinct_factor(choice);
    scratch.known->limit = count == k ? best.keys[k - 1] : 0;
    __threadfence();
    __syncwarp();
    if (lane == 0)
        atomicExch(&scratch.state->is_known, 1u);
}

/* Past the L1, and not as constant data, which a compiler may read behind a barrier. */
static __device__ __forceinline__ uint4 distinct_stream(const uint4 *from)
{
    uint4 v;

    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

/* The bits of a whole group. */
template <typename BITS, int ITEMS>
static __device__ __forceinline__ void distinct_fetch(const struct maxima_span<BITS> &span,
                                                      int64_t group, BITS (&bits)[ITEMS])
{
    constexpr int width = maxima_width<BITS>();
    const uint4 *from = reinterpret_cast<const uint4 *>(span.base + group * maxima_group<BITS>()) +
                        threadIdx.x % 32;

#pragma unroll
    for (int l = 0; l < MAXIMA_LOADS; l++) {
        const uint4 vector = distinct_stream(from + l * 32);

        memcpy(&bits[l * width], &vector, sizeof(vector));
    }
#pragma unroll
    for (int j = 0; j < ITEMS; j++)
        distinct_issue(&bits[j]);
}

template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(DISTINCT_BLOCK, GPURUN_SM_THREADS / DISTINCT_BLOCK)
    topk_maxima_distinct_read_kernel(struct topk_rows rows, struct distinct_scratch<BITS> scratch)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
    constexpr int items = MAXIMA_LOADS * maxima_width<BITS>();
    constexpr unsigned all = (1u << items) - 1;
    __shared__ BITS maxima[MAXIMA_GROUPS];
    __shared__ bool is_done[MAXIMA_GROUPS];
    const struct maxima_span<BITS> span = maxima_span_of<BITS>(rows, 0);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * MAXIMA_GROUPS;
    const unsigned *flag = &scratch.state->is_known;
    struct distinct_table<BITS> table = {
    };

#pragma unroll
    for (int g = warp; g < MAXIMA_GROUPS; g += DISTINCT_WARPS) {
        const bool is_whole = maxima_is_whole<struct maxima_long>(span, first + g);
        BITS keys[items];
        BITS best = 0;
        unsigned peeked = 0;

        if (table.factor == 0)
            peeked = distinct_peek(flag);
        if (is_whole)
            distinct_fetch<BITS>(span, first + g, keys);
        if (table.factor == 0)
            table = distinct_look(scratch.known, flag, peeked);
        if (is_whole) {
#pragma unroll
            for (int j = 0; j < items; j++) {
                keys[j] = topk_key<REAL>(keys[j], span.flip);
                best = keys[j] > best ? keys[j] : best;
            }
        } else {
            best = maxima_of_edge<BITS, REAL>(span, (first + g) * maxima_group<BITS>() +
                                                        lane * maxima_width<BITS>());
        }
        best = gpurun_warp_max(best);
        if (lane == 0) {
            maxima[g] = best;
            is_done[g] = (first + g) * maxima_group<BITS>() >= span.end;
        }
        if (is_whole && table.factor != 0 && distinct_is_known(table, best) &&
            (best < table.limit || distinct_all_known(table, keys, all)) && lane == 0)
            is_done[g] = true;
        if (g == warp && blockIdx.x == 0 && gridDim.x >= DISTINCT_TILES_MIN)
            distinct_learn(keys, is_whole ? all : 0, maxima, static_cast<int>(rows.k), scratch);
    }
    __syncthreads();
    if (warp == 0) {
        const unsigned mask = __ballot_sync(0xffffffffu, is_done[lane]);
        const BITS best = gpurun_warp_max(is_done[lane] ? static_cast<BITS>(0) : maxima[lane]);

        if ((first + lane) * maxima_group<BITS>() < span.end)
            scratch.groups[first + lane] = maxima[lane];
        if (lane == 0) {
            scratch.tiles[blockIdx.x] = best;
            scratch.masks[blockIdx.x] = mask;
        }
    }
}

/* --- what is read again ------------------------------------------------------------------------------------ */

template <typename BITS> struct distinct_shared {
    struct maxima_item<BITS> part[MAXIMA_PARTS];
    BITS limit, top; /* k different keys are not below one, none is above the other */
    uint32_t first[DISTINCT_DENSE]; /* a group up to which limit + i is known to occur */
    uint32_t cut;                   /* no group beyond it is the first to hold anything */
    uint32_t list[MAXIMA_ALL];      /* tiles with something that is not below the limit */
    uint32_t few[DISTINCT_GROUPS];  /* their groups that may hold an answer, if no more */
    int list_count, group_count, own_count;
    unsigned entry_count;
    union {
        /* a copy of the maxima of the tiles, until these are listed */
        uint4 tiles[DISTINCT_COPY_BYTES / sizeof(uint4)];
        struct {
            uint32_t own[DISTINCT_OWN]; /* groups that the block takes */
            struct distinct_entry<BITS> entries[DISTINCT_WARPS * DISTINCT_K_MAX];
            struct distinct_best<BITS> best;
            unsigned counts[DISTINCT_BLOCKS_MAX];
            bool is_first[DISTINCT_RANKED];
        };
    };
};

/* The maxima of all tiles, from their copy if there is one. */
template <typename BITS> struct distinct_tiles {
    enum { WIDTH = 1, LOADS = MAXIMA_AT_ONCE };
    const BITS *maxima, *copy;
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
        bits[0] = copy ? copy[slot] : __ldcg(&maxima[slot]);
        return 1;
    }
    template <int AT_ONCE> __device__ __forceinline__ void to_keys(BITS (&)[AT_ONCE][WIDTH]) const
    {
    }
};

/* Groups of listed tiles. */
template <typename BITS> struct distinct_groups {
    enum { WIDTH = 1, LOADS = 4 };
    const BITS *maxima;
    const unsigned *masks;
    const uint32_t *tiles;
    int tile_count;

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
        bits[0] = __ldcg(&maxima[place(slot)]);
        return ~__ldcg(&masks[place(slot) / MAXIMA_GROUPS]) >> slot % MAXIMA_GROUPS & 1;
    }
    template <int AT_ONCE> __device__ __forceinline__ void to_keys(BITS (&)[AT_ONCE][WIDTH]) const
    {
    }
};

/* The maxima of the row's first groups, whatever the masks say. */
template <typename BITS>
using distinct_ahead = struct maxima_all<BITS, DISTINCT_AHEAD / DISTINCT_BLOCK>;

/* Parts, each of which takes the largest of the keys that hash to it, so that no two have the same. Ends with a
 * barrier. */
template <typename BITS>
static __device__ __forceinline__ void distinct_parts_clear(struct distinct_shared<BITS> *shared)
{
    if (threadIdx.x < MAXIMA_PARTS) {
        shared->part[threadIdx.x].key = 0;
        shared->part[threadIdx.x].place = threadIdx.x;
    }
    __syncthreads();
}

template <typename BITS>
static __device__ __forceinline__ void distinct_offer_part(BITS key,
                                                           struct distinct_shared<BITS> *shared)
{
    const uint32_t hash = distinct_hash(key, distinct_factor(0));
    BITS *part = &shared->part[hash >> (32 - DISTINCT_PART_BITS)].key;

    if (key > *const_cast<const volatile BITS *>(part))
        distinct_raise(part, key);
}

template <typename BITS, typename ITEMS>
static __device__ __forceinline__ void distinct_offer_parts(const ITEMS &items,
                                                            struct distinct_shared<BITS> *shared)
{
    maxima_each<DISTINCT_BLOCK, BITS>(items, [&](uint32_t, const BITS(&keys)[1], unsigned) {
        distinct_offer_part(keys[0], shared);
    });
}

/* Raises the limit to the k-th best part, and the top to the best. All threads of the block call it; it begins and ends
 * with a barrier. */
template <typename BITS>
static __device__ __forceinline__ void distinct_raise_limit(int k,
                                                            struct distinct_shared<BITS> *shared)
{
    constexpr int sharers = DISTINCT_BLOCK / MAXIMA_PARTS;

    __syncthreads();

    const struct maxima_item<BITS> mine = shared->part[threadIdx.x / sharers];
    const int rank = maxima_tally<DISTINCT_BLOCK>(
        shared->part, MAXIMA_PARTS,
        [=](struct maxima_item<BITS> other) { return maxima_before(other, mine); });

    if (rank == k - 1 && threadIdx.x % sharers == 0 && mine.key > shared->limit)
        shared->limit = mine.key;
    if (rank == 0 && threadIdx.x % sharers == 0)
        shared->top = mine.key;
    __syncthreads();
}

/* Notes where keys from the limit on occur: a tile's somewhere in it, so in all up to its last group. */
template <typename BITS, typename ITEMS>
static __device__ __forceinline__ void distinct_note(const ITEMS &items, uint32_t scale,
                                                     struct distinct_shared<BITS> *shared)
{
    const BITS limit = shared->limit;

    maxima_each<DISTINCT_BLOCK, BITS>(items, [&](uint32_t place, const BITS(&keys)[1], unsigned) {
        const uint32_t last = place * scale + scale - 1;

        if (keys[0] < limit)
            return;

        uint32_t *first = &shared->first[keys[0] - limit];

        if (last < *const_cast<const volatile uint32_t *>(first))
            atomicMin(first, last);
    });
}

/* Where each number from the limit to the top is known to occur: how far one has to look for the first of each. So it
 * is with whole numbers of which most repeat. A key of 0 may stand for a tile of which nothing is wanted. All threads of
 * the block call it; it ends with a barrier. */
template <typename BITS, typename TILES, typename AHEAD>
static __device__ __forceinline__ void distinct_find_cut(const TILES &tiles, const AHEAD &ahead,
                                                         struct distinct_shared<BITS> *shared)
{
    const BITS span = shared->top - shared->limit;

    if (shared->limit == 0 || shared->top < shared->limit || span >= DISTINCT_DENSE)
        return;
    if (threadIdx.x < DISTINCT_DENSE)
        shared->first[threadIdx.x] = UINT32_MAX;
    __syncthreads();
    distinct_note(tiles, MAXIMA_GROUPS, shared);
    distinct_note(ahead, 1, shared);
    __syncthreads();
    if (threadIdx.x < 32) {
        uint32_t last = 0;

        for (unsigned i = threadIdx.x; i <= span; i += 32)
            last = shared->first[i] > last ? shared->first[i] : last;
        last = gpurun_warp_max(last);
        if (threadIdx.x == 0)
            shared->cut = last;
    }
    __syncthreads();
}

/* A warp's best different keys with their lowest index, best first, one per lane. */
template <typename BITS> struct distinct_list {
    BITS key;
    int64_t index;
    int count;
};

/* Puts a key, and the lowest index of it that a group has, into a warp's list of at most k. */
template <typename BITS>
static __device__ __forceinline__ void distinct_offer(struct distinct_list<BITS> *list, int k,
                                                      BITS key, int64_t index)
{
    const int lane = threadIdx.x % 32;
    const bool is_same = lane < list->count && list->key == key;
    const int at = __popc(__ballot_sync(0xffffffffu, lane < list->count && list->key > key));

    if (__any_sync(0xffffffffu, is_same)) {
        list->index = is_same && index < list->index ? index : list->index;
        return;
    }

    const BITS key_before = __shfl_up_sync(0xffffffffu, list->key, 1);
    const int64_t index_before = __shfl_up_sync(0xffffffffu, list->index, 1);

    list->key = lane < at ? list->key : lane == at ? key : key_before;
    list->index = lane < at ? list->index : lane == at ? index : index_before;
    list->count = list->count < k ? list->count + 1 : k;
}

/* Which of a lane's keys are not below the limit, and not known where `first_tile` is false; a bit each. */
template <typename BITS, int LOADS, int WIDTH>
static __device__ __forceinline__ unsigned distinct_wanted(const struct distinct_table<BITS> &table,
                                                           bool first_tile,
                                                           const BITS (&keys)[LOADS][WIDTH])
{
    unsigned wanted = 0;

    if (table.factor != 0 && !first_tile) {
#pragma unroll
        for (int j = 0; j < LOADS * WIDTH; j++)
            wanted |= (distinct_is_known(table, keys[j / WIDTH][j % WIDTH]) ? 0u : 1u) << j;
    } else {
#pragma unroll
        for (int j = 0; j < LOADS * WIDTH; j++)
            wanted |= (keys[j / WIDTH][j % WIDTH] < table.limit ? 0u : 1u) << j;
    }
    return wanted;
}

/* Loads a group's bits, a bit for each that is there. */
template <typename BITS, int LOADS, int WIDTH>
static __device__ __forceinline__ unsigned distinct_load(const struct maxima_span<BITS> &span,
                                                         uint32_t group, BITS (&bits)[LOADS][WIDTH])
{
    const int lane = threadIdx.x % 32;
    unsigned there = 0;

    if (maxima_is_whole<struct maxima_long>(span, group)) {
        const uint4 *from =
            reinterpret_cast<const uint4 *>(span.base + group * maxima_group<BITS>()) + lane;

#pragma unroll
        for (int l = 0; l < LOADS; l++) {
            const uint4 vector = __ldcg(from + l * 32);

            memcpy(bits[l], &vector, sizeof(vector));
        }
        return (1u << LOADS * WIDTH) - 1;
    }

    const struct maxima_elements<BITS> in = {
        span, &group, 1
    };

#pragma unroll
    for (int l = 0; l < LOADS; l++)
        there |= in.fetch(l * 32 + lane, bits[l]) << l * WIDTH;
    return there;
}

/* Takes what is wanted of a group into a warp's list, the largest key first. */
template <typename BITS, int LOADS, int WIDTH>
static __device__ __forceinline__ void
distinct_take(const struct maxima_span<BITS> &span, uint32_t group,
              const BITS (&keys)[LOADS][WIDTH], unsigned wanted, int k,
              struct distinct_list<BITS> *list)
{
    const struct maxima_elements<BITS> in = {
        span, &group, 1
    };

    while (__any_sync(0xffffffffu, wanted != 0)) {
        const BITS last = __shfl_sync(0xffffffffu, list->key, k - 1);
        BITS key = 0;
        unsigned same = 0;

#pragma unroll
        for (int j = 0; j < LOADS * WIDTH; j++)
            key = (wanted >> j & 1) && keys[j / WIDTH][j % WIDTH] > key ? keys[j / WIDTH][j % WIDTH]
                                                                        : key;
        key = gpurun_warp_max(key);
        if (list->count == k && key < last)
            return;
#pragma unroll
        for (int j = 0; j < LOADS * WIDTH; j++)
            same |= (keys[j / WIDTH][j % WIDTH] == key ? 1u : 0u) << j;
        same &= wanted;
        wanted ^= same;

        const int j = __ffs(same) - 1;
        const uint32_t place =
            same ? (j / WIDTH * 32 + threadIdx.x % 32) * WIDTH + j % WIDTH : UINT32_MAX;

        distinct_offer(list, k, key, in.index(~gpurun_warp_max(~place)));
    }
}

/* A warp's part of the block's groups. The next one is on its way while one is looked at. */
template <typename BITS>
static __device__ __forceinline__ void
distinct_take_own(const struct maxima_span<BITS> &span, const struct distinct_table<BITS> &table,
                  int k, const struct distinct_shared<BITS> *shared,
                  struct distinct_list<BITS> *list)
{
    constexpr int width = maxima_width<BITS>();
    BITS next[MAXIMA_LOADS][width], keys[MAXIMA_LOADS][width];
    unsigned next_there = 0;
    int i = threadIdx.x / 32;

    if (i < shared->own_count)
        next_there = distinct_load(span, shared->own[i], next);
#pragma unroll 1
    for (; i < shared->own_count; i += DISTINCT_WARPS) {
        const uint32_t group = shared->own[i];
        const unsigned there = next_there;

#pragma unroll
        for (int l = 0; l < MAXIMA_LOADS; l++)
#pragma unroll
            for (int j = 0; j < width; j++)
                keys[l][j] = next[l][j];
        if (i + DISTINCT_WARPS < shared->own_count)
            next_there = distinct_load(span, shared->own[i + DISTINCT_WARPS], next);
        maxima_to_keys(span, keys);
        distinct_take(span, group, keys,
                      there & distinct_wanted(table, group < MAXIMA_GROUPS, keys), k, list);
    }
}

/* Whether a tile, or a group, may hold an answer. */
template <typename BITS>
static __device__ __forceinline__ bool distinct_may(BITS maximum, uint32_t first_group,
                                                    const struct distinct_shared<BITS> *shared)
{
    return maximum >= shared->limit && first_group <= shared->cut;
}

/* Tiles that may hold an answer into the list, as far as there is room: all of them, or of those from `first` on every
 * so-manieth, which are the block's own. Ends with a barrier. */
template <typename BITS, typename SOURCE>
static __device__ __forceinline__ void distinct_list_all(const SOURCE &tiles,
                                                         struct distinct_shared<BITS> *shared)
{
    maxima_each<DISTINCT_BLOCK, BITS>(tiles, [&](uint32_t tile, const BITS(&keys)[1], unsigned) {
        if (!distinct_may(keys[0], tile * MAXIMA_GROUPS, shared))
            return;

        const int at = atomicAdd(&shared->list_count, 1);

        if (at < MAXIMA_ALL)
            shared->list[at] = tile;
    });
    __syncthreads();
}

template <typename BITS>
static __device__ __forceinline__ void distinct_list_own(const struct distinct_tiles<BITS> &tiles,
                                                         int first,
                                                         struct distinct_shared<BITS> *shared)
{
    const int tile = first + static_cast<int>(blockIdx.x + threadIdx.x * gridDim.x);

    __syncthreads();
    if (threadIdx.x == 0)
        shared->list_count = 0;
    __syncthreads();
    if (threadIdx.x < MAXIMA_ALL && tile < tiles.count &&
        distinct_may(__ldcg(&tiles.maxima[tile]), tile * MAXIMA_GROUPS, shared))
        shared->list[atomicAdd(&shared->list_count, 1)] = tile;
    __syncthreads();
}

/* Of the listed tiles' groups those that may hold an answer, and are the block's own: all, or those whose turn it is.
 * Ends with a barrier. */
template <typename BITS, typename GROUPS>
static __device__ __forceinline__ void distinct_pick_groups(const GROUPS &groups, bool by_turns,
                                                            struct distinct_shared<BITS> *shared)
{
    if (threadIdx.x == 0)
        shared->group_count = shared->own_count = 0;
    __syncthreads();
    maxima_each<DISTINCT_BLOCK, BITS>(groups, [&](uint32_t group, const BITS(&keys)[1], unsigned) {
        if (!distinct_may(keys[0], group, shared))
            return;

        const int at = atomicAdd(&shared->group_count, 1);

        if (by_turns && at < DISTINCT_GROUPS)
            shared->few[at] = group;
        if (!by_turns || group % gridDim.x == blockIdx.x)
            shared->own[atomicAdd(&shared->own_count, 1)] = group;
    });
    __syncthreads();
}

/* Picks from the listed tiles. Where the groups are many in all, their maxima raise the limit, and it picks again. */
template <typename BITS>
static __device__ __forceinline__ void distinct_pick(const struct distinct_scratch<BITS> &scratch,
                                                     bool by_turns, int k,
                                                     struct distinct_shared<BITS> *shared)
{
    const struct distinct_groups<BITS> groups = {
        scratch.groups, scratch.masks, shared->list, shared->list_count
    };

#pragma unroll 1
    for (int round = 0; round < 2; round++) {
        distinct_pick_groups(groups, by_turns, shared);
        if (shared->group_count <= DISTINCT_GROUPS || round > 0)
            break;
        distinct_parts_clear(shared);
        distinct_offer_parts(groups, shared);
        distinct_raise_limit(k, shared);
        if (!by_turns)
            break;
    }
}

/* Takes the block's share of all groups that may hold an answer, and returns true; false if they are so few that one
 * block takes them all. */
template <typename BITS>
static __device__ __forceinline__ bool
distinct_take_share(const struct maxima_span<BITS> &span, const struct distinct_tiles<BITS> &tiles,
                    int k, const struct distinct_scratch<BITS> &scratch,
                    struct distinct_table<BITS> table, struct distinct_shared<BITS> *shared,
                    struct distinct_list<BITS> *list)
{
    const bool by_turns = shared->list_count <= MAXIMA_ALL;
    int first = 0;

    do {
        if (!by_turns)
            distinct_list_own(tiles, first, shared);
        distinct_pick(scratch, by_turns, k, shared);
        if (by_turns && shared->group_count <= DISTINCT_GROUPS)
            return false;
        table.limit = shared->limit;
        distinct_take_own(span, table, k, shared, list);
        first += MAXIMA_ALL * static_cast<int>(gridDim.x);
        __syncthreads();
    } while (!by_turns && first < tiles.count);
    return true;
}

/* Takes the index of a key, if it is one of the best. */
template <typename BITS>
static __device__ __forceinline__ void distinct_place(BITS key, int64_t index, int count,
                                                      struct distinct_best<BITS> *best)
{
    for (int r = 0; r < count; r++)
        if (key == best->keys[r])
            atomicMin(&best->indices[r], static_cast<unsigned long long>(index));
}

/* The k best different keys of the entries, `room` for each block of which counts[] are there, with the lowest index of
 * each, into `best`; how many. At least one is there. All threads call it; it begins and ends with a barrier. */
template <int ITEMS, typename BITS>
static __device__ __forceinline__ int distinct_merge(const struct distinct_entry<BITS> *entries,
                                                     const unsigned *counts, unsigned room, int k,
                                                     struct distinct_best<BITS> *best)
{
    BITS keys[ITEMS];
    unsigned there = 0;

#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const unsigned at = threadIdx.x + i * DISTINCT_BLOCK;
        const bool is_there = at % room < counts[at / room];

        keys[i] = is_there ? entries[at].key : 0;
        there |= (is_there ? 1u : 0u) << i;
    }

    const int count = distinct_rounds(keys, there, k, best);

#pragma unroll 1
    for (int i = 0; i < ITEMS; i++) {
        const unsigned at = threadIdx.x + i * DISTINCT_BLOCK;

        if (there >> i & 1)
            distinct_place(entries[at].key, entries[at].index, count, best);
    }
    __syncthreads();
    return count;
}

/* Leaves the block's lists, or where they are long the k best of them, to the last block. Warp 0 writes. */
template <typename BITS>
static __device__ __forceinline__ void
distinct_hand_in(const struct distinct_list<BITS> &list, int k,
                 const struct distinct_scratch<BITS> &scratch, struct distinct_shared<BITS> *shared)
{
    const int lane = threadIdx.x % 32;
    struct distinct_entry<BITS> *entries = scratch.entries + blockIdx.x * DISTINCT_K_MAX;
    unsigned at = 0;

    if (lane == 0 && list.count > 0)
        at = atomicAdd(&shared->entry_count, static_cast<unsigned>(list.count));
    at = __shfl_sync(0xffffffffu, at, 0) + lane;
    if (lane < list.count) {
        shared->entries[at].key = list.key;
        shared->entries[at].index = list.index;
    }
    __syncthreads();

    unsigned count = shared->entry_count;

    if (count > DISTINCT_K_MAX) {
        count = distinct_merge<1>(shared->entries, &shared->entry_count,
                                  DISTINCT_WARPS * DISTINCT_K_MAX, k, &shared->best);
        if (threadIdx.x < count) {
            entries[threadIdx.x].key = shared->best.keys[threadIdx.x];
            entries[threadIdx.x].index = static_cast<int64_t>(shared->best.indices[threadIdx.x]);
        }
    } else if (threadIdx.x < count) {
        entries[threadIdx.x] = shared->entries[threadIdx.x];
    }
    if (threadIdx.x == 0)
        scratch.counts[blockIdx.x] = count;
}

/* The answer from few entries: each is ranked. Returns how many it has. */
template <typename BITS>
static __device__ __forceinline__ int distinct_rank(const struct topk_rows &rows, int total,
                                                    struct distinct_shared<BITS> *shared)
{
    constexpr int sharers = DISTINCT_BLOCK / MAXIMA_PARTS;
    const struct distinct_entry<BITS> *entries = shared->entries;
    const bool *is_first = shared->is_first;
    const bool is_one = threadIdx.x % sharers == 0;
    int count = 0;

    for (int base = 0; base < total; base += MAXIMA_PARTS) {
        const int at = base + threadIdx.x / sharers;
        const struct distinct_entry<BITS> mine = entries[at];
        const int lower = maxima_tally<DISTINCT_BLOCK>(
            entries, total, [=](const struct distinct_entry<BITS> &other) {
                return other.key == mine.key && other.index < mine.index;
            });

        if (is_one)
            shared->is_first[at] = at < total && lower == 0;
    }
    __syncthreads();
    for (int base = 0; base < total; base += MAXIMA_PARTS) {
        const int at = base + threadIdx.x / sharers;
        const struct distinct_entry<BITS> mine = entries[at];
        const int rank = maxima_tally<DISTINCT_BLOCK>(
            entries, total, [=](const struct distinct_entry<BITS> &other) {
                return is_first[&other - entries] && other.key > mine.key;
            });
        const bool is_wanted = is_one && is_first[at] && rank < rows.k;

        if (is_wanted)
            maxima_write(rows, 0, rank, mine.key, mine.index);
        count += __syncthreads_count(is_wanted);
    }
    return count;
}

/* The answer from the best keys. */
template <typename BITS>
static __device__ __forceinline__ void
distinct_write(const struct topk_rows &rows, const struct distinct_best<BITS> &best, int count)
{
    if (static_cast<int>(threadIdx.x) < count)
        maxima_write(rows, 0, threadIdx.x, best.keys[threadIdx.x],
                     static_cast<int64_t>(best.indices[threadIdx.x]));
}

/* From the entries of all blocks to the answer. */
template <typename BITS>
static __device__ __forceinline__ void distinct_answer(const struct topk_rows &rows,
                                                       const struct distinct_scratch<BITS> &scratch,
                                                       struct distinct_shared<BITS> *shared)
{
    const unsigned block = threadIdx.x;
    unsigned at = 0, own = 0;
    int count;

    if (block < DISTINCT_BLOCKS_MAX)
        shared->counts[block] = own = block < gridDim.x ? __ldcg(&scratch.counts[block]) : 0;
    if (block == 0)
        shared->entry_count = 0;
    __syncthreads();
    if (own > 0)
        at = atomicAdd(&shared->entry_count, own);
    for (unsigned i = 0; i < own && at + i < DISTINCT_RANKED; i++)
        shared->entries[at + i] = scratch.entries[block * DISTINCT_K_MAX + i];
    __syncthreads();
    if (shared->entry_count <= DISTINCT_RANKED) {
        count = distinct_rank(rows, static_cast<int>(shared->entry_count), shared);
    } else {
        count = distinct_merge<DISTINCT_ITEMS>(scratch.entries, shared->counts, DISTINCT_K_MAX,
                                               static_cast<int>(rows.k), &shared->best);
        distinct_write(rows, shared->best, count);
    }
    if (threadIdx.x == 0)
        rows.count[0] = count;
}

/* --- few groups: by one block ---------------------------------------------------------------------------- */

/* The k best different keys of the groups' elements, one after the other. Returns how many. */
template <typename BITS>
static __device__ __forceinline__ int
distinct_few_rounds(const struct topk_rows &rows, const struct maxima_elements<BITS> &elements,
                    struct distinct_best<BITS> *best)
{
    constexpr int loads = elements.LOADS, width = elements.WIDTH;
    BITS slots[loads][width], keys[loads * width];
    unsigned is_there[loads], there = 0;

    maxima_fetch<DISTINCT_BLOCK>(elements, maxima_first_slot<DISTINCT_BLOCK>(), slots, is_there);
#pragma unroll
    for (int j = 0; j < loads * width; j++) {
        keys[j] = slots[j / width][j % width];
        there |= (is_there[j / width] >> j % width & 1) << j;
    }

    const int count = distinct_rounds(keys, there, static_cast<int>(rows.k), best);

#pragma unroll 1
    for (int i = threadIdx.x; i < elements.slots() * width; i += DISTINCT_BLOCK) {
        const int64_t index = elements.index(i);

        if (index >= 0 && index < rows.n)
            distinct_place(elements.key(index), index, count, best);
    }
    __syncthreads();
    return count;
}

/* The thread's largest key, and where it is. */
template <typename BITS>
static __device__ __forceinline__ struct maxima_item<BITS>
distinct_few_own(const struct maxima_elements<BITS> &elements) {
    struct maxima_held<BITS, struct maxima_elements<BITS>> held = {
        elements
    };

    maxima_fetch<DISTINCT_BLOCK>(elements, maxima_first_slot<DISTINCT_BLOCK>(), held.keys,
                                 held.there);
    return maxima_own<DISTINCT_BLOCK, BITS>(held);
}

/* Adds to the entries, as far as they are ranked. */
template <typename BITS>
static __device__ __forceinline__ void distinct_enter(BITS key, int64_t index,
                                                      struct distinct_shared<BITS> *shared)
{
    const unsigned at = atomicAdd(&shared->entry_count, 1u);

    if (at < DISTINCT_RANKED) {
        shared->entries[at].key = key;
        shared->entries[at].index = index;
    }
}

/* The elements that are not below the limit into the entries, as far as they are ranked; how many there are. Only threads
 * that have one look for them. Begins and ends with a barrier. */
template <typename BITS>
static __device__ __forceinline__ unsigned
distinct_few_collect(const struct maxima_elements<BITS> &elements, struct maxima_item<BITS> own,
                     struct distinct_shared<BITS> *shared)
{
    constexpr int width = elements.WIDTH;
    const struct maxima_again<struct maxima_elements<BITS>> again = {
        elements
    };
    const BITS limit = shared->limit;

    if (threadIdx.x == 0)
        shared->entry_count = 0;
    __syncthreads();
    if (own.place != MAXIMA_NOWHERE && own.key >= limit)
        maxima_each<DISTINCT_BLOCK, BITS>(
            again, [&](uint32_t place, const BITS(&keys)[width], unsigned there) {
#pragma unroll
                for (int j = 0; j < width; j++)
                    if ((there >> j & 1) && keys[j] >= limit)
                        distinct_enter(keys[j], elements.index(place + j), shared);
            });
    __syncthreads();
    return shared->entry_count;
}

/* From few groups to the answer. Where many elements are not below the limit, the threads' maxima raise it. */
template <typename BITS>
static __device__ __forceinline__ void distinct_few(const struct topk_rows &rows,
                                                    const struct maxima_span<BITS> &span,
                                                    struct distinct_shared<BITS> *shared)
{
    const struct maxima_elements<BITS> elements = {
        span, shared->few, shared->group_count
    };
    const struct maxima_item<BITS> own = distinct_few_own(elements);
    int count;

    if (__syncthreads_count(own.place != MAXIMA_NOWHERE && own.key >= shared->limit) >
        DISTINCT_FEW) {
        distinct_parts_clear(shared);
        if (own.place != MAXIMA_NOWHERE)
            distinct_offer_part(own.key, shared);
        distinct_raise_limit(static_cast<int>(rows.k), shared);
    }

    const unsigned found = distinct_few_collect(elements, own, shared);

    if (found <= DISTINCT_RANKED) {
        count = distinct_rank(rows, static_cast<int>(found), shared);
    } else {
        count = distinct_few_rounds(rows, elements, &shared->best);
        distinct_write(rows, shared->best, count);
    }
    if (threadIdx.x == 0)
        rows.count[0] = count;
}

/* Copies the maxima of the tiles, if there is room for them. The caller orders what follows. */
template <typename BITS>
static __device__ __forceinline__ struct distinct_tiles<BITS>
distinct_copy_tiles(const BITS *maxima, int count, struct distinct_shared<BITS> *shared) {
    const int vectors = (count + maxima_width<BITS>() - 1) / maxima_width<BITS>();
    const bool fits = vectors <= static_cast<int>(DISTINCT_COPY_BYTES / sizeof(uint4));
    const struct distinct_tiles<BITS> tiles = {
        maxima, fits ? reinterpret_cast<const BITS *>(shared->tiles) : NULL, count
    };

    if (fits) {
#pragma unroll
        for (int v = 0; v < DISTINCT_COPY_BYTES / (DISTINCT_BLOCK * MAXIMA_VECTOR_BYTES); v++) {
            const int at = threadIdx.x + v * DISTINCT_BLOCK;

            if (at < vectors)
                shared->tiles[at] = __ldcg(reinterpret_cast<const uint4 *>(maxima) + at);
        }
    }
    return tiles;
}

/* The limit that the maxima give, and the tiles that are not below it. */
template <typename BITS, typename TILES, typename AHEAD>
static __device__ __forceinline__ void distinct_list_tiles(const TILES &tiles, const AHEAD &ahead,
                                                           int k,
                                                           struct distinct_shared<BITS> *shared)
{
    distinct_parts_clear(shared);
    distinct_offer_parts(tiles, shared);
    distinct_offer_parts(ahead, shared);
    distinct_raise_limit(k, shared);
    distinct_find_cut(tiles, ahead, shared);
    distinct_list_all(tiles, shared);
}

template <typename BITS>
static __global__ void __launch_bounds__(DISTINCT_BLOCK)
    topk_maxima_distinct_finish_kernel(struct topk_rows rows, struct distinct_scratch<BITS> scratch,
                                       int64_t tiles)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
    __shared__ struct distinct_shared<BITS> shared;
    const struct maxima_span<BITS> span = maxima_span_of<BITS>(rows, 0);
    const int64_t groups = (span.end + maxima_group<BITS>() - 1) / maxima_group<BITS>();
    const distinct_ahead<BITS> first = {
        scratch.groups,
        static_cast<int>(groups < DISTINCT_AHEAD ? groups : int64_t{DISTINCT_AHEAD})};
    const unsigned *flag = &scratch.state->is_known;
    const unsigned peeked = distinct_peek(flag);
    struct maxima_held<BITS, distinct_ahead<BITS>> ahead = {
        first
    };
    struct distinct_list<BITS> list = {
    };
    const int k = static_cast<int>(rows.k);

    maxima_fetch<DISTINCT_BLOCK>(first, maxima_first_slot<DISTINCT_BLOCK>(), ahead.keys,
                                 ahead.there);

    const struct distinct_tiles<BITS> all = distinct_copy_tiles(
        scratch.tiles, static_cast<int>((groups + MAXIMA_GROUPS - 1) / MAXIMA_GROUPS), &shared);
    const struct distinct_table<BITS> table = distinct_look(scratch.known, flag, peeked);

    if (threadIdx.x == 0) {
        shared.limit = table.limit;
        shared.cut = UINT32_MAX;
        shared.list_count = shared.group_count = shared.entry_count = 0;
    }
    distinct_list_tiles(all, ahead, k, &shared);

    const bool is_shared = distinct_take_share(span, all, k, scratch, table, &shared, &list);

    bool is_last = false;

    /* Whoever is last clears the flag for the next launch: all have read it. Where one block has all groups, nothing else
     * waits for the others. */
    if (is_shared) {
        distinct_hand_in(list, k, scratch, &shared);
        is_last = maxima_is_last(&scratch.state->ticket, gridDim.x);
        if (is_last)
            distinct_answer(rows, scratch, &shared);
    } else {
        if (threadIdx.x == 0)
            is_last = atomicInc(&scratch.state->ticket, gridDim.x - 1) == gridDim.x - 1;
        if (blockIdx.x == 0)
            distinct_few(rows, span, &shared);
    }
    if (is_last && threadIdx.x == 0)
        scratch.state->is_known = 0;
}

/* --- launching ------------------------------------------------------------------------------------------- */

struct distinct_plan {
    int64_t tiles;
    unsigned blocks; /* of the second kernel */
    size_t tile_bytes, group_bytes, mask_bytes, known_bytes, entry_bytes, count_bytes;
};

static struct distinct_plan distinct_plan_for(struct gpurun_ctx *ctx)
{
    const size_t elem_bytes = topk_state_of(ctx)->elem_bytes;
    const int64_t most = ctx->device.sm_count;
    struct distinct_plan plan;
    int64_t blocks;

    plan.tiles = maxima_tiles_at_most(ctx, MAXIMA_LOADS);
    blocks = plan.tiles < most ? plan.tiles : most;
    plan.blocks =
        static_cast<unsigned>(blocks < DISTINCT_BLOCKS_MAX ? blocks : int64_t{DISTINCT_BLOCKS_MAX});
    plan.tile_bytes = plan.tiles * elem_bytes;
    plan.group_bytes = plan.tiles * MAXIMA_GROUPS * elem_bytes;
    plan.mask_bytes = plan.tiles * sizeof(unsigned);
    plan.known_bytes = elem_bytes == 4 ? sizeof(struct distinct_known<uint32_t>)
                                       : sizeof(struct distinct_known<uint64_t>);
    plan.entry_bytes = plan.blocks * DISTINCT_K_MAX * sizeof(struct distinct_entry<uint64_t>);
    plan.count_bytes = plan.blocks * sizeof(unsigned);
    return plan;
}

template <typename BITS, bool REAL> static enum gpurun_status distinct_run(struct gpurun_ctx *ctx)
{
    const struct distinct_plan plan = distinct_plan_for(ctx);
    const struct topk_rows rows = topk_rows_from(ctx, 0);
    char *free_scratch = static_cast<char *>(ctx->scratch);
    struct distinct_scratch<BITS> scratch;
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};

    scratch.tiles = static_cast<BITS *>(topk_carve(&free_scratch, plan.tile_bytes));
    scratch.groups = static_cast<BITS *>(topk_carve(&free_scratch, plan.group_bytes));
    scratch.masks = static_cast<unsigned *>(topk_carve(&free_scratch, plan.mask_bytes));
    scratch.known =
        static_cast<struct distinct_known<BITS> *>(topk_carve(&free_scratch, plan.known_bytes));
    scratch.entries =
        static_cast<struct distinct_entry<BITS> *>(topk_carve(&free_scratch, plan.entry_bytes));
    scratch.counts = static_cast<unsigned *>(topk_carve(&free_scratch, plan.count_bytes));
    scratch.state = static_cast<struct distinct_state *>(ctx->variant_state);

    topk_maxima_distinct_read_kernel<BITS, REAL>
        <<<static_cast<unsigned>(plan.tiles), DISTINCT_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(
            rows, scratch);
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = plan.blocks;
    config.blockDim = DISTINCT_BLOCK;
    config.stream = gpurun_cuda_stream(ctx);
    config.attrs = &attribute;
    config.numAttrs = ctx->device.compute >= 90 ? 1 : 0;
    GPURUN_CUDA_TRY(ctx, cudaLaunchKernelEx(&config, topk_maxima_distinct_finish_kernel<BITS>, rows,
                                            scratch, plan.tiles));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status topk_maxima_distinct_supported(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);

    if (o->rows > 1)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "distinct",
                           "the whole device works on one row: use radix for rows = %lld",
                           static_cast<long long>(o->rows));
    if (o->k > DISTINCT_K_MAX)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "distinct",
                           "a warp holds a list of at most %d: use radix for k = %lld",
                           static_cast<int>(DISTINCT_K_MAX), static_cast<long long>(o->k));
    return GPURUN_OK;
}

size_t topk_maxima_distinct_scratch(struct gpurun_ctx *ctx)
{
    const struct distinct_plan plan = distinct_plan_for(ctx);

    return topk_align(plan.tile_bytes) + topk_align(plan.group_bytes) +
           topk_align(plan.mask_bytes) + topk_align(plan.known_bytes) +
           topk_align(plan.entry_bytes) + topk_align(plan.count_bytes);
}

size_t topk_maxima_distinct_state(struct gpurun_ctx *ctx)
{
    (void)ctx;
    return sizeof(struct distinct_state);
}

enum gpurun_status topk_maxima_distinct_launch(struct gpurun_ctx *ctx)
{
    return TOPK_DISPATCH(topk_state_of(ctx), distinct_run, ctx);
}
