/*
 * From the indices that a variant has gathered, in any order, to the answer: sorted where that is asked.
 */
#ifndef TOPK_FINISH_CUH
#define TOPK_FINISH_CUH

#include "topk_bitonic.cuh"
#include "topk_device.cuh"

/* Scratch memory for the sort of a large k; width 0 where there is none. */
struct topk_pairs {
    void *keys; /* width per row */
    int64_t *indices;
    int64_t width;
};

/* The width that a sort in global memory needs, or 0. */
static inline int64_t topk_pairs_width(const struct topk_options *o)
{
    return o->sorted && o->k > BITONIC_CHUNK ? bitonic_width(o->k) : 0;
}

/* Unsorted: the values of the indices that were gathered. */
template <typename BITS>
static __global__ void __launch_bounds__(BITONIC_BLOCK)
    topk_finish_values_kernel(struct topk_rows rows)
{
    const int64_t slot = static_cast<int64_t>(blockIdx.x) * BITONIC_BLOCK + threadIdx.x,
                  row = blockIdx.y;

    if (slot < rows.k)
        topk_write<BITS>(rows, row, slot, rows.indices[row * rows.k + slot]);
}

/* Sorted, small k: one block per row does it in shared memory. */
template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(BITONIC_BLOCK)
    topk_finish_sort_kernel(struct topk_rows rows, int width)
{
    __shared__ BITS keys[BITONIC_CHUNK];
    __shared__ int64_t indices[BITONIC_CHUNK];
    const int64_t row = blockIdx.x;

    for (int slot = threadIdx.x; slot < width; slot += BITONIC_BLOCK) {
        const int64_t index =
            slot < rows.k ? rows.indices[row * rows.k + slot] : BITONIC_FILL_INDEX;

        keys[slot] =
            slot < rows.k ? topk_key<REAL>(topk_row<BITS>(rows, row)[index], rows.flip) : 0;
        indices[slot] = index;
    }
    bitonic_stages(keys, indices, width, 0, 2, width);
    for (int slot = threadIdx.x; slot < rows.k; slot += BITONIC_BLOCK)
        topk_write<BITS>(rows, row, slot, indices[slot]);
}

/* Sorted, large k: the pairs that bitonic_sort is given, and back. */
template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(BITONIC_BLOCK)
    topk_finish_pairs_kernel(struct topk_rows rows, struct topk_pairs pairs)
{
    const int64_t slot = static_cast<int64_t>(blockIdx.x) * BITONIC_BLOCK + threadIdx.x,
                  row = blockIdx.y;
    const int64_t index = slot < rows.k ? rows.indices[row * rows.k + slot] : BITONIC_FILL_INDEX;

    if (slot >= pairs.width)
        return;
    static_cast<BITS *>(pairs.keys)[row * pairs.width + slot] =
        slot < rows.k ? topk_key<REAL>(topk_row<BITS>(rows, row)[index], rows.flip) : 0;
    pairs.indices[row * pairs.width + slot] = index;
}

template <typename BITS>
static __global__ void __launch_bounds__(BITONIC_BLOCK)
    topk_finish_sorted_kernel(struct topk_rows rows, struct topk_pairs pairs)
{
    const int64_t slot = static_cast<int64_t>(blockIdx.x) * BITONIC_BLOCK + threadIdx.x,
                  row = blockIdx.y;

    if (slot < rows.k)
        topk_write<BITS>(rows, row, slot, pairs.indices[row * pairs.width + slot]);
}

/* The gathered indices become the answer. */
template <typename BITS, bool REAL>
static void topk_finish(struct topk_rows rows, struct topk_pairs pairs, unsigned count, bool sorted,
                        cudaStream_t stream)
{
    const dim3 per_slot(static_cast<unsigned>((rows.k + BITONIC_BLOCK - 1) / BITONIC_BLOCK), count);
    const dim3 per_pair(static_cast<unsigned>((pairs.width + BITONIC_BLOCK - 1) / BITONIC_BLOCK),
                        count);

    if (!sorted) {
        topk_finish_values_kernel<BITS><<<per_slot, BITONIC_BLOCK, 0, stream>>>(rows);
    } else if (pairs.width == 0) {
        topk_finish_sort_kernel<BITS, REAL>
            <<<count, BITONIC_BLOCK, 0, stream>>>(rows, static_cast<int>(bitonic_width(rows.k)));
    } else {
        topk_finish_pairs_kernel<BITS, REAL><<<per_pair, BITONIC_BLOCK, 0, stream>>>(rows, pairs);
        bitonic_sort(static_cast<BITS *>(pairs.keys), pairs.indices, pairs.width, count, stream);
        topk_finish_sorted_kernel<BITS><<<per_slot, BITONIC_BLOCK, 0, stream>>>(rows, pairs);
    }
}

#endif
