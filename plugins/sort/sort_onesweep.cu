/*
 * sort, variant "onesweep": eight bits in one pass; tiles look back at each other for where they write.
 *
 * Mapping  one tile per block, claimed in the order in which blocks start; each of 256 threads follows a digit.
 * Memory   reads keys once for the counts of all digits, then reads and writes them once per digit.
 * Bound    latency: eight votes a key and barriers, at about half of the memory's speed.
 * Limits   none; stable. Digits that all keys share are skipped, which the device decides.
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

/* Where each digit begins, and which passes are needed. When none is, the last one copies. */
static __global__ void __launch_bounds__(SORT_DIGITS)
    sort_onesweep_plan_kernel(struct onesweep_sort s, int passes)
{
    __shared__ onesweep_count sums[SORT_DIGITS / 32];
    const int digit = threadIdx.x;
    int active = 0;

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
    if (digit == 0)
        s.plan->active = active;
}

/* How many elements with a digit lie before a tile of the portion. */
static __device__ __forceinline__ unsigned onesweep_look_back(const volatile unsigned *words,
                                                              int tile, int digit)
{
    unsigned before = 0;

    for (int other = tile - 1; other >= 0; other--) {
        unsigned word;

        do
            word = words[static_cast<int64_t>(other) * SORT_DIGITS + digit];
        while (word == 0);
        before += word & ONESWEEP_COUNT;
        if (word & static_cast<unsigned>(ONESWEEP_ALL))
            break;
    }
    return before;
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

/* One portion of one pass. */
template <typename BITS, int VALUE_BYTES, bool REAL>
static __global__ void __launch_bounds__(SORT_TILE_BLOCK, 2)
    sort_onesweep_pass_kernel(struct onesweep_sort s, int pass, int portion)
{
    typedef struct sort_tile<BITS, VALUE_BYTES> tile_type;
    enum { ITEMS = tile_type::ITEMS, TILE = tile_type::TILE };
    __shared__ tile_type t;
    __shared__ int claimed;
    const int place = s.plan->place[pass], digit = threadIdx.x, shift = 8 * pass;
    const int turn = (place * s.portions + portion) % 2;
    volatile unsigned *words = turn == 0 ? s.words[0] : s.words[1];
    struct sort_map map = s.map;
    struct sort_items from, to;
    unsigned start;
    BITS items[ITEMS];
    int ranks[ITEMS];

    if (place < 0)
        return;
    map.is_real = REAL;
    onesweep_route(s, place, &from, &to);

    const int tile =
        onesweep_claim(s, pass, portion, turn == 0 ? s.words[1] : s.words[0], &claimed);
    const int64_t begin = portion * s.portion + static_cast<int64_t>(tile) * TILE;
    const int valid = s.n - begin < TILE ? static_cast<int>(s.n - begin) : static_cast<int>(TILE);

    sort_tile_load(static_cast<const BITS *>(from.keys) + begin, valid, sort_pad<BITS>(map), items);
    const unsigned count = sort_tile_count(&t, items, map, shift, &start);
    if (digit < SORT_DIGITS)
        words[static_cast<int64_t>(tile) * SORT_DIGITS + digit] =
            count | static_cast<unsigned>(tile == 0 ? ONESWEEP_ALL : ONESWEEP_ONE);
    sort_tile_rank(&t, items, map, shift, ranks);
    if (digit < SORT_DIGITS) {
        const unsigned before = onesweep_look_back(words, tile, digit);
        const int64_t first = static_cast<int64_t>(s.plan->begins[pass][portion % 2][digit]);

        if (tile > 0)
            words[static_cast<int64_t>(tile) * SORT_DIGITS + digit] =
                (before + count) | static_cast<unsigned>(ONESWEEP_ALL);
        if (tile == static_cast<int>(gridDim.x) - 1)
            s.plan->begins[pass][(portion + 1) % 2][digit] = first + before + count;
        t.to[digit] = first + before - start;
    }
    sort_tile_stage(&t, items, ranks);
    sort_tile_move(&t, from, to, begin, valid, map, shift, ranks);
}

/* --- launching ------------------------------------------------------------------------------------------ */

static int onesweep_tile(const struct gpurun_ctx *ctx)
{
    const struct sort_state *s = sort_state_of(ctx);

    if (s->elem_bytes == 4 && s->value_bytes < 8)
        return sort_tile_size<4, 0>::TILE;
    return sort_tile_size<8, 0>::TILE;
}

static struct onesweep_sort onesweep_plan_for(const struct gpurun_ctx *ctx)
{
    const int64_t tile = onesweep_tile(ctx);
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
    enum { PASSES = sizeof(BITS), TILE = sort_tile<BITS, VALUE_BYTES>::TILE };
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    const int64_t step = ONESWEEP_COUNT_BLOCK * ONESWEEP_COUNT_BYTES / sizeof(BITS);
    const int64_t most = static_cast<int64_t>(ctx->device.sm_count) * ONESWEEP_COUNT_PER_SM;
    const int64_t steps = (s.n + step - 1) / step;

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
                <<<static_cast<unsigned>((elems + TILE - 1) / TILE), SORT_TILE_BLOCK, 0, stream>>>(
                    s, pass, portion);
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
