/*
 * sort, variant "onesweep": eight bits in one pass; tiles look back at each other for where they write.
 *
 * Mapping  one tile per block, claimed in the order in which blocks start; each of 256 threads follows a digit.
 * Memory   reads keys once for the counts of all digits, then reads and writes them once per digit.
 * Bound    shared memory: two atomics, a write and two reads a key, all but one at random places.
 * Limits   shared memory for a tile; stable. Digits that all keys share are skipped, which the device decides.
 *
 * A tile publishes per digit how many elements it has, and later how many there are up to its end; it adds up
 * what the tiles before it have published until it meets one that knows the latter. It waits only for tiles that
 * were claimed before its own, so whatever runs at once, it ends. A portion is as many tiles as counts of 30
 * bits allow; each hands on where the next one writes.
 */
#include "sort_device.cuh"
#include "sort_tile.cuh"

enum {
    ONESWEEP_PASSES_MAX = sizeof(uint64_t),
    ONESWEEP_COUNT_BLOCK = 512,
    ONESWEEP_COUNT_BYTES = 32, /* that a thread of the counting kernel has in flight */
    ONESWEEP_COUNT_PER_SM = 4,
    ONESWEEP_TEST_ROUNDS = 16,
    ONESWEEP_LOOKS = 4, /* tiles that are looked at together */
};

#define ONESWEEP_PORTION (INT64_C(1) << 28) /* elements, about */

/* A published word: 0 while there is nothing to read. */
enum {
    ONESWEEP_ONE = 1 << 30,                    /* the count of one tile */
    ONESWEEP_ALL = static_cast<int>(1u << 31), /* of the portion up to the tile's end */
    ONESWEEP_COUNT = (1 << 30) - 1,
};

typedef unsigned long long onesweep_count;

/* What the kernels of one sort tell each other. All zero at the start. */
struct onesweep_plan {
    onesweep_count counts[ONESWEEP_PASSES_MAX * SORT_DIGITS]; /* a row of digits per pass */
    /* Where the next element of a digit goes, by pass and by whether the portion's number is odd. */
    onesweep_count begins[ONESWEEP_PASSES_MAX][2][SORT_DIGITS];
    unsigned claimed[ONESWEEP_PASSES_MAX][2]; /* tiles, likewise */
    int active;                               /* passes that are not skipped */
    int place[ONESWEEP_PASSES_MAX];           /* of a pass among them, or -1 */
    int by_atomics; /* the device serves the lanes of one in their order */
};

/* Elements of a thread, and blocks that share a multiprocessor: long runs of a digit against threads at work. */
template <int KEY_BYTES, int VALUE_BYTES> struct onesweep_size {
    enum {
        BYTES = KEY_BYTES + VALUE_BYTES,
        IS_NARROW = KEY_BYTES == 4 && VALUE_BYTES <= 4,
        ITEMS = IS_NARROW     ? 24
                : BYTES <= 12 ? 16
                              : 12,
        PER_SM = BYTES == 4 ? 3 : 2,
        TILE = ITEMS * SORT_TILE_BLOCK,
    };
};

template <typename BITS, int VALUE_BYTES> struct onesweep_tile {
    typedef struct sort_tile<BITS, VALUE_BYTES, onesweep_size<sizeof(BITS), VALUE_BYTES>::ITEMS>
        type;
};

struct onesweep_sort {
    struct sort_items in, out, spare;
    int64_t n;
    int64_t portion;     /* elements: whole tiles */
    int portions, tiles; /* of the sort, and of a portion */
    struct onesweep_plan *plan;
    unsigned *words
        [2]; /* tiles x SORT_DIGITS each, used in turn: while one is used the other is cleared */
    struct sort_map map;
};

/* Counts the values of all digits at once. */
template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(ONESWEEP_COUNT_BLOCK)
    sort_onesweep_count_kernel(struct onesweep_sort s)
{
    enum { PASSES = sizeof(BITS), ITEMS = ONESWEEP_COUNT_BYTES / sizeof(BITS) };
    __shared__ unsigned bins[PASSES * SORT_DIGITS];
    const BITS *in = static_cast<const BITS *>(s.in.keys);
    const int64_t tile = static_cast<int64_t>(ONESWEEP_COUNT_BLOCK) * ITEMS;
    struct sort_map map = s.map;
    BITS bits[ITEMS];

    map.is_real = REAL;
    for (int i = threadIdx.x; i < PASSES * SORT_DIGITS; i += ONESWEEP_COUNT_BLOCK)
        bins[i] = 0;
    __syncthreads();
    for (int64_t base = blockIdx.x * tile; base < s.n; base += gridDim.x * tile) {
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            const int64_t i = base + threadIdx.x + j * ONESWEEP_COUNT_BLOCK;
            bits[j] = i < s.n ? in[i] : 0;
        }
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            const int64_t i = base + threadIdx.x + j * ONESWEEP_COUNT_BLOCK;
            const BITS key = sort_key(bits[j], map);

            if (i < s.n)
#pragma unroll
                for (int pass = 0; pass < PASSES; pass++)
                    atomicAdd(
                        &bins[pass * SORT_DIGITS + (static_cast<unsigned>(key >> 8 * pass) & 255)],
                        1u);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < PASSES * SORT_DIGITS; i += ONESWEEP_COUNT_BLOCK)
        if (bins[i] > 0)
            atomicAdd(&s.plan->counts[i], static_cast<onesweep_count>(bins[i]));
}

/* Whether the lanes of a warp that add to one counter get its values in the order of the lanes, which no document
 * promises: for four numbers of counters, from one to all, against what votes give. Counters start at 0. */
static __device__ __forceinline__ bool onesweep_lanes_in_order(unsigned *by_atomics,
                                                               unsigned *by_votes)
{
    unsigned random = 0x9e3779b9u * (threadIdx.x + 1);
    bool in_order = true;

    for (int round = 0; round < ONESWEEP_TEST_ROUNDS; round++) {
        const unsigned digit = random >> 24 & (SORT_DIGITS - 1) >> round % 4 * 8 / 3;

        in_order &=
            atomicAdd(&by_atomics[digit], 1u) == sort_place_by_votes(&by_votes[digit], digit);
        random = random * 1664525u + 1013904223u;
    }
    return in_order;
}

/* Where each digit begins, and which passes are needed. When none is, the last one copies. */
static __global__ void __launch_bounds__(SORT_DIGITS)
    sort_onesweep_plan_kernel(struct onesweep_sort s, int passes)
{
    __shared__ onesweep_count sums[SORT_DIGITS / 32];
    __shared__ unsigned counters[2][SORT_DIGITS / 32][SORT_DIGITS];
    const int digit = threadIdx.x, warp = threadIdx.x / 32;
    int active = 0;

    for (int i = 0; i < 2 * SORT_DIGITS / 32; i++)
        counters[i % 2][i / 2][digit] = 0;
    __syncthreads();

    const bool in_order = onesweep_lanes_in_order(counters[0][warp], counters[1][warp]);
    const bool by_atomics = __syncthreads_and(in_order);

    for (int pass = 0; pass < passes; pass++) {
        const onesweep_count count = s.plan->counts[pass * SORT_DIGITS + digit];
        onesweep_count total;
        const onesweep_count begin = sort_prefix(count, sums, &total);
        const bool is_constant = __syncthreads_or(count == total);
        const bool is_needed = !is_constant || (pass == passes - 1 && active == 0);

        s.plan->begins[pass][0][digit] = begin;
        if (digit == 0)
            s.plan->place[pass] = is_needed ? active : -1;
        active += is_needed;
    }
    if (digit == 0) {
        s.plan->active = active;
        s.plan->by_atomics = by_atomics;
    }
}

/* How many elements with a digit lie before a tile of the portion. Reads a few words at once: most are there. */
static __device__ __forceinline__ unsigned onesweep_look_back(const volatile unsigned *words,
                                                              int tile, int digit)
{
    unsigned before = 0, word[ONESWEEP_LOOKS];
    int other = tile - 1;

    while (other >= 0) {
#pragma unroll
        for (int i = 0; i < ONESWEEP_LOOKS; i++)
            word[i] = words[static_cast<int64_t>(other >= i ? other - i : 0) * SORT_DIGITS + digit];
#pragma unroll
        for (int i = 0; i < ONESWEEP_LOOKS; i++) {
            if (word[i] == 0)
                break;
            before += word[i] & ONESWEEP_COUNT;
            if (word[i] & static_cast<unsigned>(ONESWEEP_ALL))
                return before;
            other--;
        }
    }
    return before;
}

/* Whether most neighbours share a digit: the lanes of an atomic would wait for each other. Has a barrier. */
template <typename BITS>
static __device__ __forceinline__ bool onesweep_is_clumped(BITS key, struct sort_map map, int shift)
{
    const unsigned digit = sort_digit(key, map, shift);

    return __syncthreads_count(digit == __shfl_xor_sync(0xffffffffu, digit, 1)) >
           SORT_TILE_BLOCK / 2;
}

/* Which arrays a pass reads and writes: the last active one writes the output. */
static __device__ __forceinline__ void onesweep_route(const struct onesweep_sort &s, int place,
                                                      struct sort_items *from,
                                                      struct sort_items *to)
{
    const bool to_out = (s.plan->active - place) % 2 == 1;

    *to = to_out ? s.out : s.spare;
    *from = place == 0 ? s.in : to_out ? s.spare : s.out;
}

/* Claims a tile, and clears what the next launch will use: its counter of tiles, its words. */
static __device__ __forceinline__ int onesweep_claim(const struct onesweep_sort &s, int pass,
                                                     int portion, unsigned *next_words, int *shared)
{
    if (threadIdx.x == 0)
        *shared = static_cast<int>(atomicAdd(&s.plan->claimed[pass][portion % 2], 1u));
    for (int tile = blockIdx.x; tile < s.tiles; tile += gridDim.x)
        if (threadIdx.x < SORT_DIGITS)
            next_words[static_cast<int64_t>(tile) * SORT_DIGITS + threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0 && *shared == 0)
        s.plan->claimed[pass][(portion + 1) % 2] = 0;
    return *shared;
}

/* Publishes how many elements of each digit the tile has, finds how many lie before, publishes the sum, and sets
 * where the tile's elements go. Threads below SORT_DIGITS. */
template <typename TILE>
static __device__ __forceinline__ void
onesweep_place(const struct onesweep_sort &s, TILE *t, int pass, int portion, int tile,
               volatile unsigned *words, unsigned count, unsigned start)
{
    const int digit = threadIdx.x;
    const unsigned before = onesweep_look_back(words, tile, digit);
    const int64_t first = static_cast<int64_t>(s.plan->begins[pass][portion % 2][digit]);

    if (tile > 0)
        words[static_cast<int64_t>(tile) * SORT_DIGITS + digit] =
            (before + count) | static_cast<unsigned>(ONESWEEP_ALL);
    if (tile == static_cast<int>(gridDim.x) - 1)
        s.plan->begins[pass][(portion + 1) % 2][digit] = first + before + count;
    t->to[digit] = first + before - start;
}

/* One portion of one pass. */
template <typename BITS, int VALUE_BYTES, bool REAL>
static __global__ void __launch_bounds__(SORT_TILE_BLOCK,
                                         (onesweep_size<sizeof(BITS), VALUE_BYTES>::PER_SM))
    sort_onesweep_pass_kernel(struct onesweep_sort s, int pass, int portion)
{
    typedef typename onesweep_tile<BITS, VALUE_BYTES>::type tile_type;
    enum { ITEMS = onesweep_size<sizeof(BITS), VALUE_BYTES>::ITEMS, TILE = tile_type::TILE };
    tile_type *t = sort_tile_shared<tile_type>();
    __shared__ int claimed;
    const int place = s.plan->place[pass], digit = threadIdx.x, shift = 8 * pass;
    const int turn = (place * s.portions + portion) % 2;
    volatile unsigned *words = turn == 0 ? s.words[0] : s.words[1];
    struct sort_map map = s.map;
    struct sort_items from, to;
    unsigned start;
    struct sort_held<BITS, VALUE_BYTES, ITEMS> held;

    if (place < 0)
        return;
    map.is_real = REAL;
    onesweep_route(s, place, &from, &to);

    const int tile =
        onesweep_claim(s, pass, portion, turn == 0 ? s.words[1] : s.words[0], &claimed);
    const int64_t begin = portion * s.portion + static_cast<int64_t>(tile) * TILE;
    const int valid = s.n - begin < TILE ? static_cast<int>(s.n - begin) : static_cast<int>(TILE);

    sort_tile_load(from, begin, valid, map, &held);
    const bool is_clumped = onesweep_is_clumped(held.keys[0], map, shift);
    const unsigned count = sort_tile_count(t, held.keys, map, shift, &start);
    if (digit < SORT_DIGITS)
        words[static_cast<int64_t>(tile) * SORT_DIGITS + digit] =
            count | static_cast<unsigned>(tile == 0 ? ONESWEEP_ALL : ONESWEEP_ONE);
    sort_tile_stage(t, held, map, shift, s.plan->by_atomics && !is_clumped);
    if (digit < SORT_DIGITS)
        onesweep_place(s, t, pass, portion, tile, words, count, start);
    __syncthreads();
    sort_tile_write(t, to, valid, map, shift);
}

/* --- launching ------------------------------------------------------------------------------------------ */

template <typename BITS, int VALUE_BYTES> static int64_t onesweep_tile_elems()
{
    return onesweep_size<sizeof(BITS), VALUE_BYTES>::TILE;
}

template <typename BITS, int VALUE_BYTES> static size_t onesweep_tile_bytes()
{
    return sizeof(typename onesweep_tile<BITS, VALUE_BYTES>::type);
}

static struct onesweep_sort onesweep_plan_for(const struct gpurun_ctx *ctx)
{
    const int64_t tile = SORT_DISPATCH(sort_state_of(ctx), onesweep_tile_elems);
    struct onesweep_sort s;

    s.n = sort_options_of(ctx)->n;
    s.portion = ONESWEEP_PORTION / tile * tile;
    s.portions = static_cast<int>((s.n + s.portion - 1) / s.portion);
    s.tiles = static_cast<int>(((s.n < s.portion ? s.n : s.portion) + tile - 1) / tile);
    s.map = sort_state_of(ctx)->map;
    s.in = sort_input(ctx);
    s.out = sort_output(ctx);
    return s;
}

static size_t onesweep_words_bytes(const struct onesweep_sort *s)
{
    return static_cast<size_t>(s->tiles) * SORT_DIGITS * sizeof(unsigned);
}

template <typename BITS, int VALUE_BYTES, bool REAL>
static enum gpurun_status onesweep_launch(struct gpurun_ctx *ctx, const struct onesweep_sort &s)
{
    typedef typename onesweep_tile<BITS, VALUE_BYTES>::type tile_type;
    enum { PASSES = sizeof(BITS), TILE = tile_type::TILE };
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    const int64_t step = ONESWEEP_COUNT_BLOCK * ONESWEEP_COUNT_BYTES / sizeof(BITS);
    const int64_t most = static_cast<int64_t>(ctx->device.sm_count) * ONESWEEP_COUNT_PER_SM;
    const int64_t steps = (s.n + step - 1) / step;

    SORT_TILE_ALLOW(ctx, (sort_onesweep_pass_kernel<BITS, VALUE_BYTES, REAL>), tile_type);
    /* The plan and the first words lie side by side. */
    GPURUN_CUDA_TRY(
        ctx,
        cudaMemsetAsync(s.plan, 0, sort_align(sizeof(*s.plan)) + onesweep_words_bytes(&s), stream));
    sort_onesweep_count_kernel<BITS, REAL>
        <<<static_cast<unsigned>(steps < most ? steps : most), ONESWEEP_COUNT_BLOCK, 0, stream>>>(
            s);
    sort_onesweep_plan_kernel<<<1, SORT_DIGITS, 0, stream>>>(s, PASSES);
    for (int pass = 0; pass < PASSES; pass++)
        for (int portion = 0; portion < s.portions; portion++) {
            const int64_t left = s.n - portion * s.portion;
            const int64_t elems = left < s.portion ? left : s.portion;

            sort_onesweep_pass_kernel<BITS, VALUE_BYTES, REAL>
                <<<static_cast<unsigned>((elems + TILE - 1) / TILE), SORT_TILE_BLOCK,
                   sizeof(tile_type), stream>>>(s, pass, portion);
        }
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

template <typename BITS, int VALUE_BYTES>
static enum gpurun_status onesweep_run(struct gpurun_ctx *ctx)
{
    struct onesweep_sort s = onesweep_plan_for(ctx);
    char *scratch = static_cast<char *>(ctx->scratch);

    s.plan = static_cast<struct onesweep_plan *>(sort_carve(&scratch, sizeof(*s.plan)));
    s.words[0] = static_cast<unsigned *>(sort_carve(&scratch, onesweep_words_bytes(&s)));
    s.words[1] = static_cast<unsigned *>(sort_carve(&scratch, onesweep_words_bytes(&s)));
    s.spare = sort_carve_items(ctx, &scratch);
    if (s.map.is_real)
        return onesweep_launch<BITS, VALUE_BYTES, true>(ctx, s);
    return onesweep_launch<BITS, VALUE_BYTES, false>(ctx, s);
}

enum gpurun_status sort_onesweep_supported(struct gpurun_ctx *ctx)
{
    const size_t bytes = SORT_DISPATCH(sort_state_of(ctx), onesweep_tile_bytes);

    GPURUN_TRY(sort_whole_supported(ctx));
    if (bytes <= ctx->device.shared_bytes)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "values",
                       "a tile takes %zu bytes of shared memory; the device has %zu", bytes,
                       ctx->device.shared_bytes);
}

size_t sort_onesweep_scratch(struct gpurun_ctx *ctx)
{
    const struct onesweep_sort s = onesweep_plan_for(ctx);

    return sort_align(sizeof(*s.plan)) + 2 * sort_align(onesweep_words_bytes(&s)) +
           sort_items_bytes(ctx);
}

enum gpurun_status sort_launch_onesweep(struct gpurun_ctx *ctx)
{
    return SORT_DISPATCH(sort_state_of(ctx), onesweep_run, ctx);
}
