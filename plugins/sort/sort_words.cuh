/*
 * For the variants that compare: an element is a word, an unsigned number in the order of the keys. Where equal
 * keys can be told apart (reals: -0 and 0, NaNs; pairs), the word's lower half is the element's index: all words
 * differ, a network or a partition that is not stable cannot show, and the answer is gathered by index.
 */
#ifndef SORT_WORDS_CUH
#define SORT_WORDS_CUH

#include "sort_device.cuh"

/* nvcc knows it as a number of 16 bytes. */
typedef unsigned __int128 sort_uint128;

enum { SORT_WORDS_BLOCK = 256, SORT_WORDS_BLOCKS_PER_SM = 8 };

/* How elements become words and words elements again. */
struct sort_words {
    struct sort_items in, out;
    int64_t n;
    struct sort_map map;
    int elem_bytes, value_bytes, word_bytes;
    bool has_index;
};

/* Calls function<WORD>(...) for words of so many bytes. */
#define SORT_WORDS_DISPATCH(bytes, function, ...)                                                  \
    ((bytes) == 4   ? function<uint32_t>(__VA_ARGS__)                                              \
     : (bytes) == 8 ? function<uint64_t>(__VA_ARGS__)                                              \
                    : function<sort_uint128>(__VA_ARGS__))

static inline struct sort_words sort_words_for(const struct gpurun_ctx *ctx)
{
    const struct sort_state *s = sort_state_of(ctx);
    struct sort_words w;

    w.in = sort_input(ctx);
    w.out = sort_output(ctx);
    w.n = sort_options_of(ctx)->n;
    w.map = s->map;
    w.elem_bytes = static_cast<int>(s->elem_bytes);
    w.value_bytes = static_cast<int>(s->value_bytes);
    w.has_index = s->map.is_real || s->value_bytes > 0;
    if (!w.has_index)
        w.word_bytes = w.elem_bytes;
    else
        w.word_bytes = w.elem_bytes == 4 && w.n <= INT64_C(1) << 32 ? 8 : 16;
    return w;
}

static inline size_t sort_words_bytes(const struct gpurun_ctx *ctx)
{
    const struct sort_words w = sort_words_for(ctx);

    return sort_align(static_cast<size_t>(w.n) * static_cast<size_t>(w.word_bytes));
}

template <typename WORD>
static __global__ void __launch_bounds__(SORT_WORDS_BLOCK)
    sort_words_make_kernel(struct sort_words w, WORD *words)
{
    const int64_t step = static_cast<int64_t>(gridDim.x) * SORT_WORDS_BLOCK;

    for (int64_t i = static_cast<int64_t>(blockIdx.x) * SORT_WORDS_BLOCK + threadIdx.x; i < w.n;
         i += step) {
        WORD word = w.elem_bytes == 4
                        ? sort_key(static_cast<const uint32_t *>(w.in.keys)[i], w.map)
                        : sort_key(static_cast<const uint64_t *>(w.in.keys)[i], w.map);

        if (w.has_index)
            word = word << (4 * sizeof(WORD)) | static_cast<WORD>(i);
        words[i] = word;
    }
}

template <typename WORD>
static __global__ void __launch_bounds__(SORT_WORDS_BLOCK)
    sort_words_write_kernel(struct sort_words w, const WORD *words)
{
    const int64_t step = static_cast<int64_t>(gridDim.x) * SORT_WORDS_BLOCK;
    const WORD mask = (static_cast<WORD>(1) << (4 * sizeof(WORD))) - 1;

    for (int64_t i = static_cast<int64_t>(blockIdx.x) * SORT_WORDS_BLOCK + threadIdx.x; i < w.n;
         i += step) {
        const WORD word = words[i];
        const int64_t from = static_cast<int64_t>(word & mask);
        const uint64_t bits = static_cast<uint64_t>(word) ^ w.map.flip;

        if (w.elem_bytes == 4)
            static_cast<uint32_t *>(w.out.keys)[i] =
                w.has_index ? static_cast<const uint32_t *>(w.in.keys)[from]
                            : static_cast<uint32_t>(bits);
        else
            static_cast<uint64_t *>(w.out.keys)[i] =
                w.has_index ? static_cast<const uint64_t *>(w.in.keys)[from] : bits;
        if (w.value_bytes == 4)
            static_cast<uint32_t *>(w.out.values)[i] =
                static_cast<const uint32_t *>(w.in.values)[from];
        else if (w.value_bytes == 8)
            static_cast<uint64_t *>(w.out.values)[i] =
                static_cast<const uint64_t *>(w.in.values)[from];
    }
}

static inline unsigned sort_words_blocks(const struct gpurun_ctx *ctx, int64_t n)
{
    const int64_t needed = (n + SORT_WORDS_BLOCK - 1) / SORT_WORDS_BLOCK;
    const int64_t most = static_cast<int64_t>(ctx->device.sm_count) * SORT_WORDS_BLOCKS_PER_SM;

    return static_cast<unsigned>(needed < most ? needed : most);
}

template <typename WORD>
static void sort_words_make(const struct gpurun_ctx *ctx, const struct sort_words &w, WORD *words)
{
    sort_words_make_kernel<WORD>
        <<<sort_words_blocks(ctx, w.n), SORT_WORDS_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(w, words);
}

template <typename WORD>
static void sort_words_write(const struct gpurun_ctx *ctx, const struct sort_words &w,
                             const WORD *words)
{
    sort_words_write_kernel<WORD>
        <<<sort_words_blocks(ctx, w.n), SORT_WORDS_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(w, words);
}

/* --- networks: every comparator puts the smaller word at the lower place -------------------------------- */

/* What lies past the end counts as larger than all, so it stays where it is and need not exist. */
template <typename WORD>
static __device__ __forceinline__ void sort_compare_exchange(WORD *words, int64_t low, int64_t high,
                                                             int64_t n)
{
    if (high >= n)
        return;

    const WORD a = words[low], b = words[high];

    if (b < a) {
        words[low] = b;
        words[high] = a;
    }
}

#endif
