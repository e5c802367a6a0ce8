/*
 * For variant "tensor" on Hopper: matrices as TMA is told of them.
 */
#ifndef MATMUL_TENSOR_MAP_CUH
#define MATMUL_TENSOR_MAP_CUH

#include "matmul_tensor_group.cuh"

typedef CUresult group_encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                              void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                              const cuuint32_t *box, const cuuint32_t *steps,
                              CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                              CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);

/* The driver's own function, without linking the driver. NULL: it is too old. */
static inline group_encode *group_find_encode(void)
{
    void *function = NULL;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                               12000, cudaEnableDefault, &found);
#else
    const cudaError_t error =
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found);
#endif

    if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return reinterpret_cast<group_encode *>(function);
}

/* A matrix as it is stored, and the box of it that a fetch takes. */
struct group_matrix {
    void *from;
    int64_t inner, rows, ld, batch_step;
    int box_rows;
};

static inline struct group_matrix group_matrix_a(const struct gpurun_ctx *ctx)
{
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct matmul_layout *l = &s->layout;
    const bool turned = matmul_options_of(ctx)->transpose_a;
    const struct group_matrix a = {
        s->a->dev,  turned ? l->m : l->k,      turned ? l->k : l->m, matmul_options_of(ctx)->lda,
        l->a_batch, turned ? GROUP_K : GROUP_M};

    return a;
}

static inline struct group_matrix group_matrix_b(const struct gpurun_ctx *ctx)
{
    const struct matmul_state *s = matmul_state_of(ctx);
    const struct matmul_layout *l = &s->layout;
    const bool turned = matmul_options_of(ctx)->transpose_b;
    const struct group_matrix b = {s->b->dev,
                                   turned ? l->k : l->n,
                                   turned ? l->n : l->k,
                                   matmul_options_of(ctx)->ldb,
                                   l->b_batch,
                                   turned ? GROUP_N / 2 : GROUP_K};

    return b;
}

/* Whether TMA can read it: 16-byte rows, sizes in 32 bits, strides in 40. */
static inline bool group_can_fetch(const struct group_matrix *m)
{
    const int64_t row = m->ld * GROUP_ELEM, all = m->batch_step * GROUP_ELEM;

    return reinterpret_cast<uintptr_t>(m->from) % 16 == 0 && row % 16 == 0 &&
           m->inner < INT32_MAX && m->rows < INT32_MAX && row < INT64_C(1) << 40 &&
           all < INT64_C(1) << 40;
}

static inline enum gpurun_status group_map(struct gpurun_ctx *ctx, group_encode *encode,
                                           const struct group_matrix *m, CUtensorMap *map)
{
    const struct matmul_layout *l = &matmul_state_of(ctx)->layout;
    const CUtensorMapDataType type = matmul_dtype_of(ctx) == GPURUN_HALF
                                         ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                         : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    const cuuint64_t dims[3] = {static_cast<cuuint64_t>(m->inner), static_cast<cuuint64_t>(m->rows),
                                static_cast<cuuint64_t>(l->batch)};
    const cuuint64_t strides[2] = {static_cast<cuuint64_t>(m->ld) * GROUP_ELEM,
                                   static_cast<cuuint64_t>(m->batch_step) * GROUP_ELEM};
    const cuuint32_t box[3] = {64, static_cast<cuuint32_t>(m->box_rows), 1}, steps[3] = {1, 1, 1};
    const CUresult result =
        encode(map, type, 3, m->from, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);

    if (result == CUDA_SUCCESS)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_ERROR, NULL, "cuTensorMapEncodeTiled: error %d",
                       static_cast<int>(result));
}

#endif
