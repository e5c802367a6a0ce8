/*
 * argmin and argmax in the variant "vector". No element costs more than its key and one maximum: a thread keeps
 * its best key and which of the block's packs that was first in, so that a warp finds its best in a few
 * instructions. Which element of the best pack it is, the block reads once more, while others still read theirs: so the
 * last block has nothing left to wait for.
 */
#ifndef REDUCE_VECTOR_PLACE_CUH
#define REDUCE_VECTOR_PLACE_CUH

#include "gpurun/warp.cuh"
#include "reduce_vector.cuh"

enum : unsigned { VECTOR_NO_PACK = 0xffffffffu };

/* The best key of packs, and the first of the block's packs that it is in. */
template <typename BITS> struct vector_found {
    BITS key;
    unsigned pack;
};

/* What a block leaves: its best element and where that stands in the block. Both are of one size, so that no byte is
 * padding. */
template <typename BITS> struct vector_left {
    BITS element, number;
};

/* The best of what a thread of the last block has. */
template <typename OP> struct vector_best {
    typename OP::ACC place;
    typename OP::IN element;
};

/* Looks through the thread's packs of a tile; `number` is the first one's in the block. */
template <typename OP, bool FULL>
static __device__ __forceinline__ void vector_find(struct vector_found<typename OP::IN> *best,
                                                   const struct reduce_job &job, int64_t first,
                                                   unsigned number, struct vector_span span)
{
    struct vector_pack<OP> pack[VECTOR_LOADS];

    vector_load<OP, FULL>(pack, job, first, span);
#pragma unroll
    for (int l = 0; l < VECTOR_LOADS; l++) {
        if (FULL || first + l * VECTOR_BLOCK < span.packs) {
            typename OP::IN key = OP::key(pack[l].item[0], job.flip);

#pragma unroll
            for (int c = 1; c < vector_width<OP>(); c++)
                key = max(key, OP::key(pack[l].item[c], job.flip));
            best->pack = key > best->key ? number + l * VECTOR_BLOCK : best->pack;
            best->key = max(key, best->key);
        }
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

/* The element of a pack that has the key: the first, if several do. */
template <typename OP>
static __device__ __forceinline__ struct vector_left<typename OP::IN>
vector_element(const struct reduce_job &job, struct vector_span span, int64_t begin,
               struct vector_found<typename OP::IN> found) {
    typedef typename OP::IN BITS;
    constexpr int width = vector_width<OP>();
    const struct vector_pack<OP> pack = reinterpret_cast<const struct vector_pack<OP> *>(
        static_cast<const BITS *>(job.in) + span.head)[begin + found.pack];
    struct vector_left<BITS> left = {
        0, 0
    };

#pragma unroll
    for (int c = width - 1; c >= 0; c--)
        if (OP::key(pack.item[c], job.flip) == found.key) {
            left.element = pack.item[c];
            left.number = static_cast<BITS>(found.pack * width + c);
        }
    return left;
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
    constexpr int words = reduce_words<LEFT>(), at_once = REDUCE_AT_ONCE / words;

    for (unsigned i = threadIdx.x; i < gridDim.x; i += at_once * VECTOR_BLOCK) {
        reduce_word word[at_once][words];

#pragma unroll
        for (int j = 0; j < at_once; j++)
#pragma unroll
            for (int w = 0; w < words; w++)
                if (i + j * VECTOR_BLOCK < gridDim.x)
                    word[j][w] =
                        reduce_peek(reduce_words_of(state, i + j * VECTOR_BLOCK, words) + w);
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

template <typename OP>
static __global__ void __launch_bounds__(VECTOR_BLOCK, VECTOR_BLOCKS_PER_SM)
    reduce_vector_place_kernel(struct reduce_job job, struct vector_span span, void *state)
{
    typedef typename OP::IN BITS;
    const unsigned claim = reduce_claim(state);
    const int64_t begin = vector_begin(span, blockIdx.x);
    const unsigned tiles = vector_tiles_of(span, blockIdx.x);
    struct vector_found<BITS> found = {
        0, begin + threadIdx.x < span.packs ? threadIdx.x : VECTOR_NO_PACK
    };
    __shared__ unsigned last_claim;
    struct vector_best<OP> best = {
        OP::none(), 0
    };
    struct vector_left<BITS> left = {
        0, 0
    };

#pragma unroll 1
    for (unsigned number = threadIdx.x; number < tiles * VECTOR_TILE; number += VECTOR_TILE) {
        if (begin + number - threadIdx.x + VECTOR_TILE <= span.packs)
            vector_find<OP, true>(&found, job, begin + number, number, span);
        else
            vector_find<OP, false>(&found, job, begin + number, number, span);
    }
    if (threadIdx.x == 0)
        last_claim = reduce_last(claim);
    vector_best_of_block(&found.key, &found.pack);
    if (threadIdx.x == 0 && found.pack != VECTOR_NO_PACK)
        left = vector_element<OP>(job, span, begin, found);
    if (gridDim.x > 1) {
        if (threadIdx.x == 0)
            reduce_leave(
                reduce_words_of(state, blockIdx.x, reduce_words<struct vector_left<BITS>>()),
                reduce_tag(claim), left);
        if (last_claim == 0)
            return;
        vector_gather<OP>(job, span, state, reduce_tag(last_claim), &best);
    } else if (threadIdx.x == 0 && found.pack != VECTOR_NO_PACK) {
        vector_take<OP>(
            &best, left.element,
            OP::take(left.element, span.head + static_cast<int64_t>(left.number), job.flip));
    }
    vector_take_single<OP>(job, span, &best);
    vector_write_place<OP>(job, best);
}

#endif
