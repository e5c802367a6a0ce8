/*
 * conv, variant "separable": along rows, then along columns.
 *
 * A mask of rank 1 is the product of a column and a row: w(i, j) = c(i) * r(j). Then the sum over the mask is the
 * sum over i of c(i) times the sum over j of r(j) times the element: width + height multiplications, not their product.
 *
 * Mapping  a block takes 128 elements of 32 rows. First each thread sums along the mask's row, for the 32 rows and those
 *          that the mask reaches beyond them, into shared memory; then down the columns.
 * Memory   rows come through the L1 cache, which holds what neighbours share; sums are 4 bytes in shared memory.
 * Bound    load instructions: width * (32 + height - 1) / 32 + height per element.
 * Limits   the mask must be a product: whole numbers exactly, floats where their name says so.
 */
#include "conv_device.cuh"
#include <string.h>

enum { SEPARABLE_BLOCK = 256, SEPARABLE_ELEMS = 128, SEPARABLE_ROWS = 32 };

/* Row and column of the mask, as one parameter each. */
template <typename SUM> struct separable_mask {
    SUM row[CONV_SIZE_MAX], column[CONV_SIZE_MAX];
};

/* Along the mask's row from element first_e of row y, both of which may lie outside. */
template <typename ELEM>
static __device__ __forceinline__ typename conv_kind<ELEM>::SUM
separable_along(const struct conv_job &job,
                const struct separable_mask<typename conv_kind<ELEM>::SUM> &mask, int32_t first_e,
                int32_t y)
{
    const bool is_inside = first_e >= 0 && y >= 0 && y < job.height &&
                           first_e + (job.mask_width - 1) * job.channels < job.elems;
    const ELEM *in = static_cast<const ELEM *>(job.in) + y * job.in_pitch + first_e;
    typename conv_kind<ELEM>::SUM sum = 0;

    if (is_inside)
        for (int j = 0; j < job.mask_width; j++)
            sum = conv_kind<ELEM>::add(sum, mask.row[j], in[j * job.channels]);
    else
        for (int j = 0; j < job.mask_width; j++)
            sum = conv_kind<ELEM>::add(sum, mask.row[j],
                                       conv_fetch<ELEM>(job, first_e + j * job.channels, y));
    return sum;
}

template <typename ELEM>
static __global__ void __launch_bounds__(SEPARABLE_BLOCK)
    conv_separable_kernel(const struct conv_job job,
                          const struct separable_mask<typename conv_kind<ELEM>::SUM> mask)
{
    typedef typename conv_kind<ELEM>::SUM SUM;
    __shared__ SUM sums[SEPARABLE_ROWS + CONV_SIZE_MAX - 1][SEPARABLE_ELEMS];
    constexpr int step = SEPARABLE_BLOCK / SEPARABLE_ELEMS;
    const int32_t begin_e = static_cast<int32_t>(blockIdx.x % job.tiles_x) * SEPARABLE_ELEMS;
    const int32_t begin_y = static_cast<int32_t>(blockIdx.x / job.tiles_x) * SEPARABLE_ROWS;
    const int lane = threadIdx.x % SEPARABLE_ELEMS, first = threadIdx.x / SEPARABLE_ELEMS;
    const int32_t e = begin_e + lane;
    const int rows = min(SEPARABLE_ROWS, job.out_height - begin_y);

    if (e < job.out_elems)
        for (int i = first; i < rows + job.mask_height - 1; i += step)
            sums[i][lane] =
                separable_along<ELEM>(job, mask, e + job.first_e, begin_y + job.first_y + i);
    __syncthreads();
    if (e >= job.out_elems)
        return;
    for (int r = first; r < rows; r += step) {
        SUM sum = 0;

        for (int i = 0; i < job.mask_height; i++)
            sum += mask.column[i] * sums[r + i][lane];
        conv_store<ELEM>(job, e, begin_y + r, sum);
    }
}

template <typename ELEM> static enum gpurun_status separable_run(struct gpurun_ctx *ctx)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;
    struct conv_job job = conv_job_of(ctx);
    const int64_t tiles = conv_tiles(&job, SEPARABLE_ELEMS, SEPARABLE_ROWS);
    struct separable_mask<typename conv_kind<ELEM>::SUM> both;

    static_assert(sizeof(both.row) == sizeof(mask->row), "int32 or float");
    memcpy(both.row, mask->is_real ? static_cast<const void *>(mask->row_real) : mask->row,
           sizeof both.row);
    memcpy(both.column, mask->is_real ? static_cast<const void *>(mask->column_real) : mask->column,
           sizeof both.column);
    conv_separable_kernel<ELEM>
        <<<static_cast<unsigned>(tiles), SEPARABLE_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(job, both);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status conv_separable_supported(struct gpurun_ctx *ctx)
{
    if (!conv_state_of(ctx)->mask.is_separable)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "mask",
                           "it is not the product of a column and a row: some row is no multiple "
                           "of another");
    return conv_check_grid(ctx, SEPARABLE_ELEMS, SEPARABLE_ROWS);
}

enum gpurun_status conv_launch_separable(struct gpurun_ctx *ctx)
{
    return CONV_DISPATCH(ctx, separable_run, ctx);
}
