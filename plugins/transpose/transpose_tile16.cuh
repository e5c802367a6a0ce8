/*
 * The textbook's tile: 16 x 16 elements go through shared memory, so that the block reads along rows of the
 * input and writes along rows of the answer. tiled16, padded16 and diagonal differ in what they give it.
 */
#ifndef TRANSPOSE_TILE16_CUH
#define TRANSPOSE_TILE16_CUH

#include "transpose_device.cuh"

enum { TILE16 = 16, TILE16_BLOCK = TILE16 * TILE16 };

/* PITCH elements lie between the rows of the tile in shared memory. All threads of the block call it. */
template <typename BITS, int PITCH>
static __device__ __forceinline__ void tile16_move(const struct transpose_job<BITS> &job,
                                                   const struct transpose_place &place)
{
    __shared__ BITS tile[TILE16][PITCH];
    const int x = threadIdx.x % TILE16, y = threadIdx.x / TILE16;

    if (place.row + y < job.rows && place.col + x < job.cols)
        tile[y][x] = job.in[transpose_in_at(job, place.matrix, place.row + y, place.col + x)];
    __syncthreads();
    if (place.row + x < job.rows && place.col + y < job.cols)
        job.out[transpose_out_at(job, place.matrix, place.row + x, place.col + y)] = tile[x][y];
}

#endif
