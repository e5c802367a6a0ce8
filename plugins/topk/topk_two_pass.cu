/*
 * topk, variant "two_pass": every thread keeps a list of its k best, and lists are merged.
 *
 * Mapping  grid x block threads stride over a row; lists merge in a tree per block; then a block per row.
 * Memory   reads the input once, coalesced; lists are in shared memory, 12 or 16 bytes an element.
 * Bound    latency: a list of k per thread leaves few threads per SM, and each insertion walks its list.
 * Limits   k * block * 12 (or 16) bytes must fit the shared memory of a block.
 */
#include "topk_device.cuh"
#include "topk_list.cuh"

enum { TWO_PASS_BLOCK_MAX = 1024 };

/* What the first pass leaves for the second: per row and block a list and its length. */
struct two_pass_lists {
    int64_t *index; /* rows x blocks x k */
    void *key;      /* likewise */
    int *count;     /* rows x blocks */
};

struct two_pass_plan {
    int64_t rows_at_once;
    int blocks; /* per row */
    size_t index_bytes, key_bytes, count_bytes, shared_bytes;
};

/* Shared memory of a block: indices, keys and lengths of all its threads' lists. */
static __host__ __device__ size_t two_pass_shared_bytes(int64_t k, int64_t block, size_t elem_bytes)
{
    return static_cast<size_t>(block) *
           (static_cast<size_t>(k) * (sizeof(int64_t) + elem_bytes) + sizeof(int));
}

/* A thread's list, and a copy of its last element in registers. */
template <typename BITS> struct two_pass_thread {
    struct topk_list<BITS> list;
    int count;
    BITS last_key;
    int64_t last_index;
};

template <typename BITS>
static __device__ __forceinline__ struct topk_list<BITS> two_pass_column(int64_t *shared, int k,
                                                                         int thread) {
    BITS *keys = reinterpret_cast<BITS *>(shared + static_cast<size_t>(k) * blockDim.x);
    const struct topk_list<BITS> list = {
        shared + thread, keys + thread, static_cast<int>(blockDim.x)
    };

    return list;
}

template <typename BITS>
static __device__ __forceinline__ void two_pass_offer(struct two_pass_thread<BITS> *t, int k,
                                                      BITS key, int64_t index, bool distinct)
{
    const int last = (k - 1) * t->list.stride;

    if (t->count == k && !topk_before(key, index, t->last_key, t->last_index))
        return;
    t->count = topk_list_offer(t->list, t->count, k, key, index, distinct);
    if (t->count == k) {
        t->last_key = t->list.key[last];
        t->last_index = t->list.index[last];
    }
}

/* Merges the lists of a block into that of thread 0 and returns its length; for any number of threads.
 * Ends with a barrier. */
template <typename BITS>
static __device__ int two_pass_merge(int64_t *shared, struct two_pass_thread<BITS> *t, int k,
                                     bool distinct)
{
    BITS *keys = reinterpret_cast<BITS *>(shared + static_cast<size_t>(k) * blockDim.x);
    int *counts = reinterpret_cast<int *>(keys + static_cast<size_t>(k) * blockDim.x);
    const int thread = threadIdx.x;

    counts[thread] = t->count;
    __syncthreads();
    for (int live = blockDim.x; live > 1; live = (live + 1) / 2) {
        const int other = thread + (live + 1) / 2;

        if (other < live)
            counts[thread] =
                topk_list_merge(t->list, counts[thread], two_pass_column<BITS>(shared, k, other),
                                counts[other], k, distinct);
        __syncthreads();
    }
    return counts[0];
}

template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(TWO_PASS_BLOCK_MAX)
    topk_two_pass_block_kernel(struct topk_rows rows, struct two_pass_lists lists, bool distinct)
{
    extern __shared__ int64_t two_pass_shared[];
    const int k = static_cast<int>(rows.k);
    const int64_t row = blockIdx.y, out = row * gridDim.x + blockIdx.x;
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    const BITS *in = topk_row<BITS>(rows, row);
    const struct topk_list<BITS> first = two_pass_column<BITS>(two_pass_shared, k, 0);
    struct two_pass_thread<BITS> t = {
        two_pass_column<BITS>(two_pass_shared, k, threadIdx.x), 0, 0, 0
    };

    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows.n;
         i += step)
        two_pass_offer(&t, k, topk_key<REAL>(in[i], rows.flip), i, distinct);

    const int count = two_pass_merge(two_pass_shared, &t, k, distinct);

    for (int slot = threadIdx.x; slot < count; slot += blockDim.x) {
        lists.index[out * k + slot] = first.index[slot * first.stride];
        static_cast<BITS *>(lists.key)[out * k + slot] = first.key[slot * first.stride];
    }
    if (threadIdx.x == 0)
        lists.count[out] = count;
}

template <typename BITS>
static __global__ void __launch_bounds__(TWO_PASS_BLOCK_MAX)
    topk_two_pass_row_kernel(struct topk_rows rows, struct two_pass_lists lists, int blocks,
                             bool distinct)
{
    extern __shared__ int64_t two_pass_shared[];
    const int k = static_cast<int>(rows.k);
    const int64_t row = blockIdx.x;
    const struct topk_list<BITS> first = two_pass_column<BITS>(two_pass_shared, k, 0);
    struct two_pass_thread<BITS> t = {
        two_pass_column<BITS>(two_pass_shared, k, threadIdx.x), 0, 0, 0
    };

    for (int64_t list = row * blocks; list < (row + 1) * blocks; list++)
        for (int slot = threadIdx.x; slot < lists.count[list]; slot += blockDim.x)
            two_pass_offer(&t, k, static_cast<const BITS *>(lists.key)[list * k + slot],
                           lists.index[list * k + slot], distinct);

    const int count = two_pass_merge(two_pass_shared, &t, k, distinct);

    for (int slot = threadIdx.x; slot < count; slot += blockDim.x)
        topk_write<BITS>(rows, row, slot, first.index[slot * first.stride]);
    if (threadIdx.x == 0)
        rows.count[row] = count;
}

static struct two_pass_plan two_pass_plan_for(const struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const size_t elem_bytes = topk_state_of(ctx)->elem_bytes;
    const int64_t needed = (o->n + o->block - 1) / o->block;
    struct two_pass_plan plan;
    size_t elems;

    plan.blocks = static_cast<int>(needed < o->grid ? (needed > 0 ? needed : 1) : o->grid);
    elems = static_cast<size_t>(plan.blocks) * o->k;
    plan.rows_at_once =
        topk_rows_at_once(o, elems * (sizeof(int64_t) + elem_bytes) + plan.blocks * sizeof(int));
    plan.index_bytes = plan.rows_at_once * elems * sizeof(int64_t);
    plan.key_bytes = plan.rows_at_once * elems * elem_bytes;
    plan.count_bytes = plan.rows_at_once * plan.blocks * sizeof(int);
    plan.shared_bytes = two_pass_shared_bytes(o->k, o->block, elem_bytes);
    return plan;
}

template <typename BITS, bool REAL>
static enum gpurun_status two_pass_run(struct gpurun_ctx *ctx, struct two_pass_plan plan)
{
    const struct topk_options *o = topk_options_of(ctx);
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    const int shared_bytes = static_cast<int>(plan.shared_bytes);
    const unsigned block = static_cast<unsigned>(o->block);
    char *scratch = static_cast<char *>(ctx->scratch);
    struct two_pass_lists lists;

    lists.index = static_cast<int64_t *>(topk_carve(&scratch, plan.index_bytes));
    lists.key = topk_carve(&scratch, plan.key_bytes);
    lists.count = static_cast<int *>(topk_carve(&scratch, plan.count_bytes));
    GPURUN_CUDA_TRY(ctx, cudaFuncSetAttribute(topk_two_pass_block_kernel<BITS, REAL>,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              shared_bytes));
    GPURUN_CUDA_TRY(ctx, cudaFuncSetAttribute(topk_two_pass_row_kernel<BITS>,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              shared_bytes));
    for (int64_t first = 0; first < o->rows; first += plan.rows_at_once) {
        const int64_t left = o->rows - first;
        const unsigned count =
            static_cast<unsigned>(left < plan.rows_at_once ? left : plan.rows_at_once);
        const struct topk_rows rows = topk_rows_from(ctx, first);

        topk_two_pass_block_kernel<BITS, REAL>
            <<<dim3(plan.blocks, count), block, plan.shared_bytes, stream>>>(rows, lists,
                                                                             o->distinct);
        topk_two_pass_row_kernel<BITS>
            <<<count, block, plan.shared_bytes, stream>>>(rows, lists, plan.blocks, o->distinct);
    }
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status topk_two_pass_supported(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const size_t elem_bytes = topk_state_of(ctx)->elem_bytes, limit = ctx->device.shared_bytes;
    const double needed =
        static_cast<double>(o->block) *
        (static_cast<double>(o->k) * (sizeof(int64_t) + elem_bytes) + sizeof(int));
    const size_t lengths = o->block * sizeof(int);
    const size_t most =
        limit > lengths ? (limit - lengths) / (o->block * (sizeof(int64_t) + elem_bytes)) : 0;

    if (needed <= static_cast<double>(limit))
        return GPURUN_OK;
    return gpurun_fail(
        ctx, GPURUN_UNSUPPORTED, "k",
        "k = %lld with block = %lld needs %.0f bytes of shared memory per block; this "
        "device has %zu: use k <= %zu or a smaller block",
        static_cast<long long>(o->k), static_cast<long long>(o->block), needed, limit, most);
}

size_t topk_two_pass_scratch(struct gpurun_ctx *ctx)
{
    const struct two_pass_plan plan = two_pass_plan_for(ctx);

    return topk_align(plan.index_bytes) + topk_align(plan.key_bytes) + topk_align(plan.count_bytes);
}

enum gpurun_status topk_launch_two_pass(struct gpurun_ctx *ctx)
{
    return TOPK_DISPATCH(topk_state_of(ctx), two_pass_run, ctx, two_pass_plan_for(ctx));
}

enum gpurun_status topk_launch_nothing(struct gpurun_ctx *ctx)
{
    const struct gpurun_tensor *count = topk_state_of(ctx)->count;

    if (count->bytes > 0)
        GPURUN_CUDA_TRY(ctx, cudaMemsetAsync(count->dev, 0, count->bytes, gpurun_cuda_stream(ctx)));
    return GPURUN_OK;
}
