/*
 * How the variant "vector" divides the input: packs of 16 bytes, tiles of packs that a block loads at once.
 */
#ifndef REDUCE_VECTOR_CUH
#define REDUCE_VECTOR_CUH

#include "reduce_finish.cuh"

enum {
    VECTOR_BLOCK = 512,
    VECTOR_LOADS = 4,
    VECTOR_BYTES = 16,
    VECTOR_TILE = VECTOR_BLOCK * VECTOR_LOADS, /* packs of VECTOR_BYTES */
    VECTOR_BLOCKS_PER_SM = 3,
};

template <typename OP> static __host__ __device__ __forceinline__ constexpr int vector_width()
{
    return VECTOR_BYTES / sizeof(typename OP::IN);
}

/* Tiles of one block at most. A block takes longer to find its best place than to join: half as many blocks. */
template <typename OP> static constexpr int vector_tiles_max()
{
    return OP::PLACE ? 8 : 4;
}

/* The last blocks have one tile, so many times as many as run at once. */
template <typename OP> static constexpr int vector_short()
{
    return OP::PLACE ? 4 : 2;
}

template <typename OP> struct __align__(16) vector_pack
{
    typename OP::IN item[vector_width<OP>()];
};

/* Where 16-byte packs begin, and how many there are; what is left over at either end is read apart. */
struct vector_span {
    int64_t head; /* elements before the first pack */
    int64_t packs;
    unsigned tiles; /* of a block */
    unsigned whole; /* blocks that have so many; those after them have one */
};

/* The first tile of a block. */
static __device__ __forceinline__ int64_t vector_first_tile(struct vector_span span, unsigned block)
{
    return block + static_cast<int64_t>(min(block, span.whole)) * (span.tiles - 1);
}

static __device__ __forceinline__ unsigned vector_tiles_of(struct vector_span span, unsigned block)
{
    return block < span.whole ? span.tiles : 1;
}

/* Packs of the tile from `first` on, at most a tile of them. */
static __device__ __forceinline__ int vector_left_of(struct vector_span span, int64_t first)
{
    const int64_t left = span.packs - first;

    return left < VECTOR_TILE ? static_cast<int>(left) : static_cast<int>(VECTOR_TILE);
}

/* The thread's packs of a tile, from its first; FULL: all of them are there. */
template <typename OP, bool FULL>
static __device__ __forceinline__ void vector_load(struct vector_pack<OP> (&pack)[VECTOR_LOADS],
                                                   const struct reduce_job &job, int64_t first,
                                                   struct vector_span span)
{
    const struct vector_pack<OP> *__restrict__ body =
        reinterpret_cast<const struct vector_pack<OP> *>(
            static_cast<const typename OP::IN *>(job.in) + span.head);
    const int left = vector_left_of(span, first);

#pragma unroll
    for (int l = 0; l < VECTOR_LOADS; l++)
        if (FULL || l * VECTOR_BLOCK < left)
            pack[l] = body[first + l * VECTOR_BLOCK];
}

/* What is in no pack: one block takes these, a thread each, at most. */
template <typename OP>
static __device__ __forceinline__ typename OP::ACC vector_single(const struct reduce_job &job,
                                                                 struct vector_span span)
{
    const int64_t body = span.packs * vector_width<OP>();
    const int64_t i = threadIdx.x < span.head ? threadIdx.x : threadIdx.x + body;

    return threadIdx.x < job.n - body
               ? OP::take(static_cast<const typename OP::IN *>(job.in)[i], i, job.flip)
               : OP::none();
}

#endif
