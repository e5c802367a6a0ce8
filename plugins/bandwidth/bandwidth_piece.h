/*
 * Where the 16-byte packs of a piece lie, for C and CUDA alike.
 */
#ifndef BANDWIDTH_PIECE_H
#define BANDWIDTH_PIECE_H

#include "bandwidth.h"

#ifdef __CUDACC__
#define BANDWIDTH_INLINE static __host__ __device__ __forceinline__
#else
#define BANDWIDTH_INLINE static inline
#endif

enum { BANDWIDTH_APART = -1 };

/* Elements begin .. begin + length of the arrays: `head` single ones, `packs` packs, and single ones. */
struct bandwidth_piece {
    int64_t begin;
    int length;
    int head;
    int packs;
};

/* The piece with that number of n elements, in packs of `width`. `past`: how many elements behind a pack's
 * place the arrays begin, from 0 to width - 1; BANDWIDTH_APART where that is not the same for all of them:
 * then all elements are single. */
BANDWIDTH_INLINE struct bandwidth_piece bandwidth_piece_at(int64_t n, int64_t number, int width,
                                                           int past)
{
    struct bandwidth_piece p;
    const int64_t left = n - number * BANDWIDTH_PIECE;
    /* A piece has as many elements as fill packs, so all pieces begin in the same way. */
    const int before = past > 0 ? width - past : 0;

    p.begin = number * BANDWIDTH_PIECE;
    p.length = left < BANDWIDTH_PIECE ? (int)left : BANDWIDTH_PIECE;
    p.head = past != BANDWIDTH_APART && before < p.length ? before : p.length;
    p.packs = (p.length - p.head) / width;
    return p;
}

/* Single elements of a piece, and where the i-th of them lies behind its begin. */
BANDWIDTH_INLINE int bandwidth_singles(struct bandwidth_piece p, int width)
{
    return p.length - p.packs * width;
}

BANDWIDTH_INLINE int bandwidth_single_at(struct bandwidth_piece p, int width, int i)
{
    return i < p.head ? i : i + p.packs * width;
}

#endif
