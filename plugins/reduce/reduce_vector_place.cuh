/*
 * argmin and argmax in the variant "vector". A thread keeps its best element, the element's key, and its number in the
 * block, so that a warp finds its best in a few instructions and nothing is read again.
 */
#ifndef REDUCE_VECTOR_PLACE_CUH
#define REDUCE_VECTOR_PLACE_CUH

#include "gpurun/warp.cuh"
#include "reduce_vector.cuh"

enum : unsigned { VECTOR_NO_NUMBER = 0xffffffffu };

enum {
    VECTOR_AT_ONCE = 6, /* words that a thread reads before it waits; more would be spilled */
};

/* The best element of a thread, the first of several, and its number among those of the block. */
template <typename BITS> struct vector_found {
    BITS key, element;
    unsigned number;
};

/* What a block leaves, in few words: its best element and where that stands in the block. */
template <typename BITS> struct __attribute__((packed)) vector_left {
    BITS element;
    uint16_t number;
};

/* The best of what a thread of the last block has. */
template <typename OP> struct vector_best {
    typename OP::ACC place;
    typename OP::IN element;
};

/* Looks through the thread's packs of a tile; `number` is the first element's. */
template <typename OP, bool FULL>
static __device__ __forceinline__ void vector_find(struct vector_found<typename OP::IN> *best,
                                                   const struct reduce_job &job, int64_t first,
                                                   unsigned number, struct vector_span span)
{
    constexpr int width = vector_width<OP>();
    struct vector_pack<OP> pack[VECTOR_LOADS];
    const int left = vector_left_of(span, first);

    vector_load<OP, FULL>(pack, job, first, span);
#pragma unroll
    for (int l = 0; l < VECTOR_LOADS; l++)
        if (FULL || l * VECTOR_BLOCK < left)
#pragma unroll
            for (int c = 0; c < width; c++) {
                const typename OP::IN key = OP::key(pack[l].item[c], job.flip);
                const bool is_better = key > best->key;

                best->number = is_better ? number + l * VECTOR_BLOCK * width + c : best->number;
                best->element = is_better ? pack[l].item[c] : best->element;
                best->key = max(key, best->key);
            }
}

/* The warp's largest key, and the least of the numbers that come with it. */
template <typename BITS, typename NUMBER>
static __device__ __forceinline__ void vector_best_of_warp(BITS *key, NUMBER *number)
{
    const BITS mine = *key;

    *key = gpurun_warp_max(mine);
    *number = ~gpurun_warp_max(mine == *key ? static_cast<NUMBER>(~*number) : NUMBER{0});
}

/* The same of the block, in all threads. A kernel calls it once for each type of numbers. */
template <typename BITS, typename NUMBER>
static __device__ __forceinline__ void vector_best_of_block(BITS *key, NUMBER *number)
{
    constexpr int warps = VECTOR_BLOCK / 32;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    __shared__ BITS keys[warps];
    __shared__ NUMBER numbers[warps];

    vector_best_of_warp(key, number);
    if (lane == 0) {
        keys[warp] = *key;
        numbers[warp] = *number;
    }
    __syncthreads();
    *key = keys[lane % warps];
    *number = numbers[lane % warps];
    vector_best_of_warp(key, number);
}

/* Where a block's packs begin, in packs. */
static __device__ __forceinline__ int64_t vector_begin(struct vector_span span, unsigned block)
{
    return vector_first_tile(span, block) * VECTOR_TILE;
}

/* Takes an element into a thread's best. */
template <typename OP>
static __device__ __forceinline__ void vector_take(struct vector_best<OP> *best,
                                                   typename OP::IN element, typename OP::ACC place)
{
    const bool is_better = place.key > best->place.key ||
                           (place.key == best->place.key && place.index < best->place.index);

    best->place = is_better ? place : best->place;
    best->element = is_better ? element : best->element;
}

/* The thread's share of what the blocks left. */
template <typename OP>
static __device__ __forceinline__ void vector_gather(const struct reduce_job &job,
                                                     struct vector_span span, void *state,
                                                     unsigned tag, struct vector_best<OP> *best)
{
    typedef struct vector_left<typename OP::IN> LEFT;
    constexpr int words = reduce_words(sizeof(LEFT)), at_once = VECTOR_AT_ONCE / words;

    for (unsigned i = threadIdx.x; i < gridDim.x; i += at_once * VECTOR_BLOCK) {
        reduce_word word[at_once][words];

#pragma unroll
        for (int j = 0; j < at_once; j++)
            if (i + j * VECTOR_BLOCK < gridDim.x)
                reduce_peek(reduce_words_of(state, i + j * VECTOR_BLOCK, words), word[j]);
#pragma unroll
        for (int j = 0; j < at_once; j++) {
            const unsigned block = i + j * VECTOR_BLOCK;

            if (block < gridDim.x) {
                const LEFT left =
                    reduce_await<LEFT>(reduce_words_of(state, block, words), tag, word[j]);
                const int64_t first = span.head + vector_begin(span, block) * vector_width<OP>();

                vector_take<OP>(
                    best, left.element,
                    OP::take(left.element, first + static_cast<int64_t>(left.number), job.flip));
            }
        }
    }
}

/* What is in no pack, by the last block: a thread each, at most. */
template <typename OP>
static __device__ __forceinline__ void vector_take_single(const struct reduce_job &job,
                                                          struct vector_span span,
                                                          struct vector_best<OP> *best)
{
    const typename OP::ACC place = vector_single<OP>(job, span);

    if (place.index < job.n)
        vector_take<OP>(best, static_cast<const typename OP::IN *>(job.in)[place.index], place);
}

/* Finds the best of what the threads of the last block have. */
template <typename OP>
static __device__ __forceinline__ void vector_write_place(const struct reduce_job &job,
                                                          const struct vector_best<OP> &mine)
{
    typename OP::IN key = static_cast<typename OP::IN>(mine.place.key);
    uint64_t index = static_cast<uint64_t>(mine.place.index);

    vector_best_of_block(&key, &index);
    if (index == static_cast<uint64_t>(mine.place.index)) {
        *job.index = mine.place.index;
        *static_cast<typename OP::IN *>(job.value) = mine.element;
    }
}

/* The block's best of what its threads have found: is left, or taken if there is no other block. `tag` is thread 0's
 * to have written. */
template <typename OP>
static __device__ __forceinline__ void
vector_leave(const struct reduce_job &job, struct vector_span span, void *state,
             const unsigned *tag, struct vector_found<typename OP::IN> found,
             struct vector_best<OP> *best)
{
    typedef typename OP::IN BITS;
    typename OP::IN key = found.key;
    unsigned number = found.number;

    vector_best_of_block(&key, &number);
    if (number != found.number || number == VECTOR_NO_NUMBER)
        return;
    if (gridDim.x > 1)
        reduce_leave<struct vector_left<BITS>>(
            reduce_words_of(state, blockIdx.x, reduce_words(sizeof(struct vector_left<BITS>))),
            *tag, {found.element, static_cast<uint16_t>(number)});
    else
        vector_take<OP>(
            best, found.element,
            OP::take(found.element, span.head + static_cast<int64_t>(number), job.flip));
}

/* A thread begins as if with one of the least elements, whose key is 0 and which no other beats, so that its first
 * element stands if all are such. Reals have none with that key. */
template <typename OP>
static __global__ void __launch_bounds__(VECTOR_BLOCK, VECTOR_BLOCKS_PER_SM)
    reduce_vector_place_kernel(struct reduce_job job, struct vector_span span, void *state)
{
    typedef typename OP::IN BITS;
    constexpr unsigned width = vector_width<OP>();
    const unsigned claim = reduce_claim(state);
    const int64_t begin = vector_begin(span, blockIdx.x);
    const unsigned end = vector_tiles_of(span, blockIdx.x) * VECTOR_TILE;
    struct vector_found<BITS> found = {
        0, static_cast<BITS>(job.flip),
            begin + threadIdx.x < span.packs ? threadIdx.x *width : VECTOR_NO_NUMBER
    };
    __shared__ unsigned last_claim, tag;
    struct vector_best<OP> best = {
        OP::none(), 0
    };

#pragma unroll 1
    for (unsigned pack = threadIdx.x; pack < end; pack += VECTOR_TILE) {
        if (begin + pack - threadIdx.x + VECTOR_TILE <= span.packs)
            vector_find<OP, true>(&found, job, begin + pack, pack * width, span);
        else
            vector_find<OP, false>(&found, job, begin + pack, pack * width, span);
    }
    if (threadIdx.x == 0) {
        last_claim = reduce_last(claim);
        tag = reduce_tag(claim);
    }
    vector_leave<OP>(job, span, state, &tag, found, &best);
    if (gridDim.x > 1) {
        if (last_claim == 0)
            return;
        vector_gather<OP>(job, span, state, reduce_tag(last_claim), &best);
    }
    vector_take_single<OP>(job, span, &best);
    vector_write_place<OP>(job, best);
}

#endif
