/*
 * For variants of one launch: every block takes a number when it begins, so that the wait for it is hidden
 * behind the block's loads, and leaves its result when it ends, which waits for nothing. The block with the
 * last number, whichever that is, joins all results in the order of blocks, so that the answer's bits never
 * change. It may wait for results, as whoever makes them took a number before it, so is running: no number
 * of blocks has to run at once.
 * A result is left in words of 48 bits of it and a tag: value and flag are one, so no fence is needed. Tags
 * of two launches in a row differ, and each launch writes every word: nothing is cleared between launches.
 */
#ifndef REDUCE_FINISH_CUH
#define REDUCE_FINISH_CUH

#include "reduce_tree.cuh"

/* A result made of any number of parts by one thread. Real sums keep what their roundings lose (Knuth's
 * TwoSum), so that their error does not grow with the number of parts. */
template <typename OP> struct reduce_long {
    typename OP::ACC total, lost;
};

template <typename OP>
static __device__ __forceinline__ void reduce_long_add(struct reduce_long<OP> *run,
                                                       typename OP::ACC x)
{
    if constexpr (OP::REAL_SUM) {
        const typename OP::ACC sum = run->total + x, added = sum - run->total;

        run->lost += (run->total - (sum - added)) + (x - added);
        run->total = sum;
    } else {
        run->total = OP::join(run->total, x);
    }
}

/* What was lost means nothing once a sum was infinite. */
template <typename OP>
static __device__ __forceinline__ typename OP::ACC
reduce_long_end(const struct reduce_long<OP> *run)
{
    if constexpr (OP::REAL_SUM) {
        const typename OP::ACC sum = run->total + run->lost;

        return isfinite(sum) ? sum : run->total;
    } else {
        return run->total;
    }
}

typedef unsigned long long reduce_word; /* tag << REDUCE_WORD_BITS | so many bits of a result */

enum {
    REDUCE_STATE_HEADER =
        256,            /* bytes of a variant's state before the words; its start is the counter */
    REDUCE_AT_ONCE = 8, /* words that a thread reads before it waits for one */
    REDUCE_WORD_BYTES = 6,
    REDUCE_WORD_BITS = 8 * REDUCE_WORD_BYTES,
};

/* Of a result of so many bytes. */
static __host__ __device__ __forceinline__ constexpr int reduce_words(size_t bytes)
{
    return (static_cast<int>(bytes) + REDUCE_WORD_BYTES - 1) / REDUCE_WORD_BYTES;
}

template <typename ACC> union reduce_bits {
    unsigned long long part[reduce_words(sizeof(ACC))];
    ACC value;
};

/* Bytes of state for `blocks` results, or a little more. */
static inline size_t reduce_finish_state(const struct gpurun_ctx *ctx, unsigned blocks)
{
    return REDUCE_STATE_HEADER +
           static_cast<size_t>(blocks) * reduce_words(reduce_acc_bytes(ctx)) * sizeof(reduce_word);
}

/* The block's number, in thread 0; numbers go up to twice the blocks, in one launch to one half of that, in the
 * next to the other. */
static __device__ __forceinline__ unsigned reduce_claim(void *state)
{
    return threadIdx.x == 0 && gridDim.x > 1
               ? atomicInc(static_cast<unsigned *>(state), 2 * gridDim.x - 1)
               : 0;
}

static __device__ __forceinline__ unsigned reduce_tag(unsigned claim)
{
    return claim < gridDim.x ? 1 : 2;
}

static __device__ __forceinline__ reduce_word *reduce_words_of(void *state, unsigned block,
                                                               int words)
{
    return reinterpret_cast<reduce_word *>(static_cast<char *>(state) + REDUCE_STATE_HEADER) +
           static_cast<size_t>(block) * words;
}

/* Two words are one access, as the last block has thousands of them to make. */
template <typename ACC>
static __device__ __forceinline__ void reduce_leave(reduce_word *at, unsigned tag, ACC result)
{
    constexpr int words = reduce_words(sizeof(ACC));
    union reduce_bits<ACC> bits = {
    };
    reduce_word word[words];

    bits.value = result;
#pragma unroll
    for (int w = 0; w < words; w++) {
        const int part = w * REDUCE_WORD_BITS / 64, done = w * REDUCE_WORD_BITS % 64;

        word[w] = bits.part[part] >> done;
        if (done > 64 - REDUCE_WORD_BITS)
            word[w] |= bits.part[part + 1] << (64 - done);
        word[w] = word[w] << (64 - REDUCE_WORD_BITS) >> (64 - REDUCE_WORD_BITS) |
                  static_cast<reduce_word>(tag) << REDUCE_WORD_BITS;
    }
    if constexpr (words == 2)
        asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(word[0]),
                     "l"(word[1])
                     : "memory");
    else
#pragma unroll
        for (int w = 0; w < words; w++)
            asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at + w), "l"(word[w])
                         : "memory");
}

/* Reads the words of a result once. Each of two is whole, though they may not be of one time. */
template <int WORDS>
static __device__ __forceinline__ void reduce_peek(const reduce_word *at,
                                                   reduce_word (&word)[WORDS])
{
    if constexpr (WORDS == 2)
        asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(word[0]), "=l"(word[1])
                     : "l"(at)
                     : "memory");
    else
#pragma unroll
        for (int w = 0; w < WORDS; w++)
            asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                         : "=l"(word[w])
                         : "l"(at + w)
                         : "memory");
}

/* Waits for a result whose words have been read once. */
template <typename ACC>
static __device__ __forceinline__ ACC reduce_await(const reduce_word *at, unsigned tag,
                                                   reduce_word (&word)[reduce_words(sizeof(ACC))])
{
    union reduce_bits<ACC> bits = {
    };

#pragma unroll
    for (int w = 0; w < reduce_words(sizeof(ACC)); w++) {
        const int part = w * REDUCE_WORD_BITS / 64, done = w * REDUCE_WORD_BITS % 64;

        while (word[w] >> REDUCE_WORD_BITS != tag)
            reduce_peek(at, word);
        word[w] = word[w] << (64 - REDUCE_WORD_BITS) >> (64 - REDUCE_WORD_BITS);
        bits.part[part] |= word[w] << done;
        if (done > 64 - REDUCE_WORD_BITS)
            bits.part[part + 1] |= word[w] >> (64 - done);
    }
    return bits.value;
}

/* The thread's share of the results of all blocks. */
template <typename OP>
static __device__ __forceinline__ typename OP::ACC reduce_collect(void *state, unsigned tag)
{
    typedef typename OP::ACC ACC;
    constexpr int words = reduce_words(sizeof(ACC)), at_once = REDUCE_AT_ONCE / words;
    struct reduce_long<OP> run = {
        OP::none(), OP::none()
    };

    for (unsigned i = threadIdx.x; i < gridDim.x; i += at_once * blockDim.x) {
        reduce_word word[at_once][words];

#pragma unroll
        for (int j = 0; j < at_once; j++)
            if (i + j * blockDim.x < gridDim.x)
                reduce_peek(reduce_words_of(state, i + j * blockDim.x, words), word[j]);
#pragma unroll
        for (int j = 0; j < at_once; j++)
            if (i + j * blockDim.x < gridDim.x)
                reduce_long_add(&run,
                                reduce_await<ACC>(reduce_words_of(state, i + j * blockDim.x, words),
                                                  tag, word[j]));
    }
    return reduce_long_end(&run);
}

/* For thread 0 to write before a barrier that is between this and reduce_hand_in: the block's number if it is
 * the last, else 0. */
static __device__ __forceinline__ unsigned reduce_last(unsigned claim)
{
    return claim % gridDim.x == gridDim.x - 1 ? claim : 0;
}

/* `total`, the block's, and `claim`, its number, are thread 0's. All threads must call it. */
template <typename OP>
static __device__ __forceinline__ void
reduce_hand_in(const struct reduce_job &job, typename OP::ACC total, unsigned claim,
               unsigned last_claim, void *state, typename OP::ACC *shared)
{
    if (gridDim.x > 1) {
        if (threadIdx.x == 0)
            reduce_leave(reduce_words_of(state, blockIdx.x, reduce_words(sizeof(typename OP::ACC))),
                         reduce_tag(claim), total);
        if (last_claim == 0)
            return;
        __syncthreads(); /* `shared` has been read */
        total = reduce_block_tree<OP>(reduce_collect<OP>(state, reduce_tag(last_claim)), shared);
    }
    if (threadIdx.x == 0)
        OP::write(job, total);
}

/* The same for a block whose threads have a part each, `mine`. */
template <typename OP>
static __device__ __forceinline__ void
reduce_finish(const struct reduce_job &job, typename OP::ACC mine, unsigned claim, void *state)
{
    __shared__ typename OP::ACC shared[REDUCE_WARPS_MAX];
    __shared__ unsigned last_claim;
    typename OP::ACC total;

    if (threadIdx.x == 0)
        last_claim = reduce_last(claim);
    total = reduce_block_tree<OP>(mine, shared);
    reduce_hand_in<OP>(job, total, claim, last_claim, state, shared);
}

#endif
