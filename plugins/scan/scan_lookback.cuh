/*
 * What the two kernels of variant "lookback" share: the words through which tiles tell each other their
 * sums, and the scan of the vectors that a warp holds.
 *
 * Tiles are numbered as they are claimed, so a tile only waits for tiles that are already being worked on:
 * no number of blocks has to run at once. A word carries 32 bits of a value and the tag of the launch that
 * wrote it, so nothing has to be reset between launches, and no fence is needed: value and flag are one.
 * What is before a tile is always added up in the same order, whatever the timing: before[g], everything
 * before its group of LOOKBACK_GROUP tiles, then the sums of the tiles before it in the group, lane by lane.
 * Real sums are carried from group to group in two doubles, as that chain is long.
 */
#ifndef SCAN_LOOKBACK_CUH
#define SCAN_LOOKBACK_CUH

#include "scan_device.cuh"
#include "scan_lookback.h"

enum {
    LOOKBACK_GROUP = 128, /* tiles */
    LOOKBACK_SLOTS = LOOKBACK_GROUP / 32,
    LOOKBACK_VECTOR = 16, /* bytes of results that a thread writes at once */
    LOOKBACK_ROW = 32 * LOOKBACK_VECTOR,
    LOOKBACK_ALIGN = 16, /* bytes; tiles of the input begin at multiples of it */
};

typedef unsigned long long lookback_word; /* tag << 32 | 32 bits of a value */

/* A real sum of many tiles: high + low. */
struct lookback_exact {
    double high, low;
};

/* BASE is what sums are carried in from group to group. */
template <typename ACC, int OP> struct lookback_types {
    typedef ACC BASE;
};
template <> struct lookback_types<float, SCAN_SUM> {
    typedef struct lookback_exact BASE;
};
template <> struct lookback_types<double, SCAN_SUM> {
    typedef struct lookback_exact BASE;
};

/* The scan as tiles see it: element i of the grid of vectors is in[i], for begin <= i < end. `in` is the
 * input moved back to a multiple of 16 bytes; `out` is moved back by as many elements. */
template <typename IN, typename ACC> struct lookback_args {
    const IN *in;
    ACC *out;
    int64_t begin, end, tiles;
    ACC identity, init;
    bool exclusive, vector_out;
    lookback_word *counter; /* launch << 32 | tiles claimed */
    lookback_word *sums;    /* of each tile */
    lookback_word *before;  /* of each group */
};

/* As many elements as a vector has results. */
template <typename IN, typename ACC> union lookback_vector {
    enum { COUNT = LOOKBACK_VECTOR / sizeof(ACC), WORDS = COUNT * sizeof(IN) / sizeof(unsigned) };
    unsigned words[WORDS];
    IN items[COUNT];
};

template <int WORDS>
static __device__ __forceinline__ void lookback_copy(unsigned (&to)[WORDS], const void *from)
{
    if (WORDS == 4)
        *reinterpret_cast<uint4 *>(to) = *static_cast<const uint4 *>(from);
    else if (WORDS == 2)
        *reinterpret_cast<uint2 *>(to) = *static_cast<const uint2 *>(from);
    else
        to[0] = *static_cast<const unsigned *>(from);
}

/* --- words -------------------------------------------------------------------------------------------- */

template <typename VALUE> static inline __host__ __device__ constexpr int lookback_words()
{
    return (sizeof(VALUE) + 3) / 4;
}

template <typename VALUE> union lookback_parts {
    VALUE value;
    unsigned parts[(sizeof(VALUE) + 3) / 4];
};

static __device__ __forceinline__ lookback_word lookback_read(const lookback_word *at)
{
    lookback_word word;

    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
    return word;
}

template <typename VALUE>
static __device__ __forceinline__ void lookback_publish(lookback_word *at, unsigned tag,
                                                        VALUE value)
{
    union lookback_parts<VALUE> v;

    v.parts[0] = 0;
    v.value = value;
#pragma unroll
    for (int w = 0; w < lookback_words<VALUE>(); w++) {
        const lookback_word word = static_cast<lookback_word>(tag) << 32 | v.parts[w];
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at + w), "l"(word) : "memory");
    }
}

template <typename VALUE>
static __device__ __forceinline__ VALUE lookback_value_of(const lookback_word *words)
{
    union lookback_parts<VALUE> v;

#pragma unroll
    for (int w = 0; w < lookback_words<VALUE>(); w++)
        v.parts[w] = static_cast<unsigned>(words[w]);
    return v.value;
}

/* Waits for a value of which `words` has been read once. */
template <typename VALUE>
static __device__ __forceinline__ VALUE lookback_await(const lookback_word *at, unsigned tag,
                                                       lookback_word *words)
{
#pragma unroll
    for (int w = 0; w < lookback_words<VALUE>(); w++)
        while (words[w] >> 32 != tag)
            words[w] = lookback_read(at + w);
    return lookback_value_of<VALUE>(words);
}

/* --- sums of groups ----------------------------------------------------------------------------------- */

template <int OP, typename ACC>
static __device__ __forceinline__ void lookback_take(ACC *base, ACC sum)
{
    *base = scan_join<OP>(*base, sum);
}

/* Adds and keeps the rounding error, where there is one to speak of. */
template <int OP, typename ACC>
static __device__ __forceinline__ void lookback_take(struct lookback_exact *base, ACC sum)
{
    const double x = sum, high = __dadd_rn(base->high, x), part = __dadd_rn(high, -base->high);
    const double lost =
        __dadd_rn(__dadd_rn(base->high, -__dadd_rn(high, -part)), __dadd_rn(x, -part));

    base->low = isfinite(high) ? __dadd_rn(base->low, lost) : 0.0;
    base->high = high;
}

template <typename ACC> static __device__ __forceinline__ void lookback_begin(ACC *base, ACC init)
{
    *base = init;
}

template <typename ACC>
static __device__ __forceinline__ void lookback_begin(struct lookback_exact *base, ACC init)
{
    base->high = init;
    base->low = 0.0;
}

template <typename ACC> static __device__ __forceinline__ ACC lookback_value(ACC base)
{
    return base;
}

template <typename ACC>
static __device__ __forceinline__ ACC lookback_value(struct lookback_exact base)
{
    return static_cast<ACC>(base.high + base.low);
}

/* A warp reads the sums of tiles first, first + 1, ...: lane l those of l, l + 32, ... below `count`. Only
 * starts to: lookback_group() waits. */
template <typename ACC>
static __device__ __forceinline__ void
lookback_fetch(const lookback_word *sums, int64_t first, int count,
               lookback_word (&words)[LOOKBACK_SLOTS][lookback_words<ACC>()])
{
#pragma unroll
    for (int j = 0; j < LOOKBACK_SLOTS; j++) {
        const int slot = j * 32 + threadIdx.x % 32;
#pragma unroll
        for (int w = 0; w < lookback_words<ACC>(); w++)
            words[j][w] =
                slot < count ? lookback_read(sums + (first + slot) * lookback_words<ACC>() + w) : 0;
    }
}

/* Reads again, all at once, those words of `count` tiles that have not been written yet. Whether there were any. */
template <typename ACC>
static __device__ __forceinline__ bool
lookback_again(const lookback_word *sums, int64_t first, int count, unsigned tag,
               lookback_word (&words)[LOOKBACK_SLOTS][lookback_words<ACC>()])
{
    bool is_missing = false;

#pragma unroll
    for (int j = 0; j < LOOKBACK_SLOTS; j++) {
        const int slot = j * 32 + threadIdx.x % 32;
#pragma unroll
        for (int w = 0; w < lookback_words<ACC>(); w++)
            if (slot < count && words[j][w] >> 32 != tag) {
                words[j][w] = lookback_read(sums + (first + slot) * lookback_words<ACC>() + w);
                is_missing = true;
            }
    }
    return is_missing;
}

/* Their total, in every lane. */
template <typename ACC, int OP>
static __device__ __forceinline__ ACC
lookback_group(const lookback_word *sums, int64_t first, int count, unsigned tag, ACC identity,
               lookback_word (&words)[LOOKBACK_SLOTS][lookback_words<ACC>()])
{
    ACC total = identity;

    while (lookback_again<ACC>(sums, first, count, tag, words))
        ;
#pragma unroll
    for (int j = 0; j < LOOKBACK_SLOTS; j++)
        if (j * 32 + static_cast<int>(threadIdx.x % 32) < count)
            total = scan_join<OP>(total, lookback_value_of<ACC>(words[j]));
    __syncwarp();
    return scan_warp_total<OP>(total);
}

/* --- the vectors of a warp ---------------------------------------------------------------------------- */

/* Those elements of a vector that exist. */
struct lookback_range {
    int low, high;
};

/* For the vector whose first element has number `at`. */
template <typename IN, typename ACC>
static __device__ __forceinline__ struct lookback_range
lookback_range_of(const struct lookback_args<IN, ACC> &args, int64_t at)
{
    const int64_t count = LOOKBACK_VECTOR / sizeof(ACC);
    const int64_t low = args.begin - at, high = args.end - at;
    const struct lookback_range range = {static_cast<int>(low < 0       ? 0
                                                          : low < count ? low
                                                                        : count),
                                         static_cast<int>(high < 0       ? 0
                                                          : high < count ? high
                                                                         : count)};

    return range;
}

template <typename ACC>
static __device__ __forceinline__ bool lookback_is_whole(struct lookback_range range)
{
    return range.low == 0 && range.high == static_cast<int>(LOOKBACK_VECTOR / sizeof(ACC));
}

/* Joins the elements of the vector whose first has number `at`; EDGE: those that exist. */
template <typename IN, typename ACC, int OP, bool EDGE>
static __device__ __forceinline__ ACC lookback_join(const struct lookback_args<IN, ACC> &args,
                                                    int64_t at,
                                                    const union lookback_vector<IN, ACC> &x)
{
    const struct lookback_range range = lookback_range_of(args, at);
    ACC all = args.identity;

#pragma unroll
    for (int e = 0; e < static_cast<int>(LOOKBACK_VECTOR / sizeof(ACC)); e++)
        if (!EDGE || (e >= range.low && e < range.high))
            all = scan_join<OP>(all, static_cast<ACC>(x.items[e]));
    return all;
}

/* Number of the first element of a lane's row j, when `first` is that of row 0. */
template <typename ACC> static __device__ __forceinline__ int64_t lookback_row(int64_t first, int j)
{
    return first + j * static_cast<int>(LOOKBACK_ROW / sizeof(ACC));
}

/* A warp holds ROWS rows of vectors, one after the other. before[j] becomes what is before the lane's vector
 * of row j in the warp; returns all of the warp's elements. */
template <typename IN, typename ACC, int OP, int ROWS, bool EDGE>
static __device__ __forceinline__ ACC lookback_rows(const struct lookback_args<IN, ACC> &args,
                                                    int64_t first,
                                                    const union lookback_vector<IN, ACC> (&x)[ROWS],
                                                    ACC (&before)[ROWS])
{
    ACC all = args.identity;

#pragma unroll
    for (int j = 0; j < ROWS; j++)
        before[j] = scan_warp<OP>(
            lookback_join<IN, ACC, OP, EDGE>(args, lookback_row<ACC>(first, j), x[j]));
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const ACC row = scan_warp_at(before[j], 31);

        before[j] = scan_join<OP>(all, scan_warp_before(before[j], args.identity));
        all = scan_join<OP>(all, row);
    }
    return all;
}

/* Hides that these are the elements that were joined before: the compiler would keep them unpacked until
 * now, in four or two times the registers. */
template <int WORDS>
static __device__ __forceinline__ void lookback_forget(unsigned (&words)[WORDS])
{
#pragma unroll
    for (int w = 0; w < WORDS; w++)
        asm volatile("" : "+r"(words[w]));
}

/* Writes the results of the vector whose first element has number `at` and `before` before it. */
template <typename IN, typename ACC, int OP, bool EDGE>
static __device__ __forceinline__ void lookback_write(const struct lookback_args<IN, ACC> &args,
                                                      int64_t at, union lookback_vector<IN, ACC> x,
                                                      ACC before)
{
    enum { COUNT = LOOKBACK_VECTOR / sizeof(ACC) };
    const struct lookback_range range = lookback_range_of(args, at);
    union {
        uint4 all;
        ACC items[COUNT];
    } y;

    lookback_forget(x.words);
#pragma unroll
    for (int e = 0; e < COUNT; e++) {
        const bool exists = !EDGE || (e >= range.low && e < range.high);
        const ACC with = exists ? scan_join<OP>(before, static_cast<ACC>(x.items[e])) : before;

        y.items[e] = args.exclusive ? before : with;
        before = with;
    }
    if (args.vector_out && (!EDGE || lookback_is_whole<ACC>(range))) {
        *reinterpret_cast<uint4 *>(args.out + at) = y.all;
        return;
    }
#pragma unroll
    for (int e = 0; e < COUNT; e++)
        if (!EDGE || (e >= range.low && e < range.high))
            args.out[at + e] = y.items[e];
}

/* --- host --------------------------------------------------------------------------------------------- */

/* Elements between a multiple of 16 bytes and the first one. */
static inline int64_t lookback_shift(const struct gpurun_ctx *ctx)
{
    const struct scan_state *s = scan_state_of(ctx);
    const size_t past = reinterpret_cast<uintptr_t>(s->in->dev) % LOOKBACK_ALIGN;

    return static_cast<int64_t>(past / gpurun_dtype_bytes(s->dtype));
}

/* `tile`: its elements. */
template <typename IN, typename ACC>
static inline struct lookback_args<IN, ACC> lookback_args_of(const struct gpurun_ctx *ctx,
                                                             int64_t tile) {
    const struct scan_args<IN, ACC> plain = scan_args_of<IN, ACC>(ctx);
    const int64_t shift = lookback_shift(ctx);
    struct lookback_args<IN, ACC> args;
    char *state = static_cast<char *>(ctx->variant_state);

    args.in = plain.in - shift;
    args.out = plain.out - shift;
    args.begin = shift;
    args.end = shift + plain.n;
    args.tiles = (args.end + tile - 1) / tile;
    args.identity = plain.identity;
    args.init = plain.init;
    args.exclusive = plain.exclusive;
    args.vector_out = reinterpret_cast<uintptr_t>(args.out) % LOOKBACK_VECTOR == 0;
    args.counter = reinterpret_cast<lookback_word *>(state);
    args.sums = reinterpret_cast<lookback_word *>(state + LOOKBACK_HEADER);
    args.before = args.sums + args.tiles * lookback_words<ACC>();
    return args;
}

#endif
