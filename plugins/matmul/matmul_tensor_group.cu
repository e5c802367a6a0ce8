/*
 * matmul, variant "tensor" on Hopper: half and bfloat16 through wgmma.
 *
 * Mapping  persistent blocks of 384 threads, one per multiprocessor, in clusters of two where there are two rows
 *          of tiles. A tile is 128 x 256: two warpgroups multiply 64 x 256 each, one thread fetches.
 * Memory   a ring of four stages, 64 deep, of 16 KB of A and 32 KB of B, filled by TMA with the 128-byte swizzle.
 *          The two blocks of a cluster make tiles one above the other, so each fetches half of B for both.
 * Bound    the tensor cores; at large sizes the power they may take.
 * Limits   compute capability 9.0 and code for sm_90a; rows of A and B that begin at multiples of 16 bytes.
 *
 * Barriers: full[s] completes when all bytes of a stage have arrived, empty[s] when every warpgroup that reads
 * what this block's fetches write has done so, which is both blocks' where the fetch goes to both.
 */
#include "matmul_tensor_map.cuh"

/* What the launcher works out once. */
struct group_plan {
    struct matmul_job job;
    int64_t tiles; /* tiles of a cluster: as many rows of GROUP_M as it has blocks */
    bool aligned;  /* four elements of the product can be written at once */
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* --- one block ------------------------------------------------------------------------------------------------ */

/* Where a walker through the ring stands: a stage, and the parity of the rounds made so far. */
struct group_place {
    int stage;
    unsigned parity;
};

static __device__ __forceinline__ void group_next(struct group_place *place)
{
    place->stage++;
    if (place->stage == GROUP_STAGES) {
        place->stage = 0;
        place->parity ^= 1;
    }
}

struct group_shared {
    uint64_t full[GROUP_STAGES], empty[GROUP_STAGES];
};

/* The tile of this block: the cluster's tiles are as many GROUP_M high as it has blocks. */
static __device__ __forceinline__ struct matmul_tile group_tile(const struct matmul_layout &l,
                                                                int64_t number)
{
    const int rows = static_cast<int>(group_size()) * GROUP_M;
    struct matmul_tile tile = matmul_tile_at(l, number, rows, GROUP_N);

    tile.i += group_rank() * GROUP_M;
    return tile;
}

/* Fetches a stage: all of A, and this block's share of B, for the whole cluster. */
template <bool A_ALONG_K, bool B_ALONG_K>
static __device__ __forceinline__ void
group_fill(const CUtensorMap *map_a, const CUtensorMap *map_b, char *stage, uint64_t *full,
           const struct matmul_tile &tile, int x)
{
    const int batch = static_cast<int>(tile.batch), i = static_cast<int>(tile.i);
    const unsigned size = group_size(), rank = group_rank();
    const uint16_t everyone = static_cast<uint16_t>((1u << size) - 1);
    constexpr int shares = B_ALONG_K ? 2 : 4; /* boxes that B comes in */
    constexpr int share = GROUP_N / shares;

    gpurun_barrier_arrive_expect(full, GROUP_STAGE_BYTES);
    if constexpr (A_ALONG_K) {
        group_fetch(map_a, stage, full, x, i, batch);
    } else {
        group_fetch(map_a, stage, full, i, x, batch);
        group_fetch(map_a, stage + GROUP_SQUARE, full, i + 64, x, batch);
    }
    for (int s = rank * shares / size; s < static_cast<int>((rank + 1) * shares / size); s++) {
        char *to = stage + GROUP_A_BYTES + s * share * GROUP_ROW;
        const int j = static_cast<int>(tile.j) + s * share;

        if (size == 1)
            group_fetch(map_b, to, full, B_ALONG_K ? x : j, B_ALONG_K ? j : x, batch);
        else
            group_fetch_for(map_b, to, full, B_ALONG_K ? x : j, B_ALONG_K ? j : x, batch, everyone);
    }
}

/* The thread that fetches. */
template <bool A_ALONG_K, bool B_ALONG_K>
static __device__ __forceinline__ void
group_produce(const struct group_plan &plan, const CUtensorMap *map_a, const CUtensorMap *map_b,
              struct group_shared *barriers, char *ring)
{
    struct group_place place = {0, 0};

    for (int64_t t = blockIdx.x / group_size(); t < plan.tiles; t += gridDim.x / group_size()) {
        const struct matmul_tile tile = group_tile(plan.job.layout, t);

        for (int64_t x = 0; x < plan.job.layout.k; x += GROUP_K) {
            gpurun_barrier_wait(&barriers->empty[place.stage],
                                place.parity ^ 1); /* at first: at once */
            group_fill<A_ALONG_K, B_ALONG_K>(map_a, map_b, ring + place.stage * GROUP_STAGE_BYTES,
                                             &barriers->full[place.stage], tile,
                                             static_cast<int>(x));
            group_next(&place);
        }
    }
}

/* This warpgroup has read a stage: one thread per block of the cluster says so. */
static __device__ __forceinline__ void group_release(struct group_shared *barriers, int stage)
{
    const unsigned lane = threadIdx.x % 128;

    if (lane < group_size())
        group_arrive(&barriers->empty[stage], lane);
}

/* A row of the tile, for one thread: the columns left of its tile, at most GROUP_N. */
template <typename T> struct group_row {
    T *to;
    const T *c; /* NULL where beta is 0 */
    int left;   /* 0: the product has no such row */
    float alpha, beta;
    bool aligned;
};

/* Two elements of a row as they will lie in memory, the first in the lower half. */
template <typename T>
static __device__ __forceinline__ uint32_t group_pair(const struct group_row<T> &row, int column,
                                                      float first, float second)
{
    T low, high;

    first *= row.alpha;
    second *= row.alpha;
    if (row.c != NULL && column < row.left)
        first += row.beta * matmul_load(row.c[column]);
    if (row.c != NULL && column + 1 < row.left)
        second += row.beta * matmul_load(row.c[column + 1]);
    matmul_store(&low, first);
    matmul_store(&high, second);
    return static_cast<uint32_t>(low.bits) | static_cast<uint32_t>(high.bits) << 16;
}

/* Writes 16 elements of a row from four lanes, which hold columns 2t, 2t + 1 and 8 further: neighbours swap a
 * pair, so that each writes four elements side by side. All lanes of a warp come here. */
template <typename T>
static __device__ __forceinline__ void group_write(const struct group_row<T> &row, int column,
                                                   const float *sum)
{
    const int t = threadIdx.x % 4, odd = t & 1;
    const uint32_t low = group_pair(row, column + 2 * t, sum[0], sum[1]);
    const uint32_t high = group_pair(row, column + 2 * t + 8, sum[4], sum[5]);
    const uint32_t got = __shfl_xor_sync(~0u, odd ? low : high, 1);
    const uint2 four = odd ? make_uint2(got, high) : make_uint2(low, got);
    const int first = column + (odd ? 8 + 2 * (t - 1) : 2 * t);

    if (row.aligned && first + 4 <= row.left) {
        *reinterpret_cast<uint2 *>(row.to + first) = four;
        return;
    }
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (first + e < row.left)
            row.to[first + e].bits = static_cast<uint16_t>((e < 2 ? four.x : four.y) >> e % 2 * 16);
}

/* A warpgroup's 64 rows; lane l of warp w holds rows 16 w + l / 4 and 8 further. */
template <typename T>
static __device__ __forceinline__ void group_write_tile(const struct group_plan &plan,
                                                        const struct matmul_tile &tile, int group,
                                                        const float (&sum)[128])
{
    const struct matmul_job &job = plan.job;
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    const int64_t columns = job.layout.n - tile.j;

#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64_t i = tile.i + group * 64 + warp * 16 + lane / 4 + half * 8;
        const int64_t at = tile.batch * job.layout.c_batch + i * job.layout.ldc + tile.j;
        struct group_row<T> row;

        row.to = static_cast<T *>(job.product) + at;
        row.c = job.c == NULL ? NULL : static_cast<const T *>(job.c) + at;
        row.left = i >= job.layout.m ? 0 : columns < GROUP_N ? static_cast<int>(columns) : GROUP_N;
        row.alpha = static_cast<float>(job.alpha);
        row.beta = static_cast<float>(job.beta);
        row.aligned = plan.aligned;
#pragma unroll
        for (int c = 0; c < GROUP_N / 16; c++)
            group_write(row, c * 16, &sum[c * 8 + half * 2]);
    }
}

/* A warpgroup that multiplies: `group` 0 has the upper rows of a tile. One batch of products is under way while
 * the next stage is waited for, so a stage is released one step after it was read. */
template <typename T, bool A_ALONG_K, bool B_ALONG_K>
static __device__ __forceinline__ void group_consume(const struct group_plan &plan,
                                                     struct group_shared *barriers,
                                                     const char *ring, int group)
{
    /* from one descriptor to that 16 elements further along k */
    constexpr uint64_t step_a = (A_ALONG_K ? 16 * GROUP_ELEM : 16 * GROUP_ROW) >> 4;
    constexpr uint64_t step_b = (B_ALONG_K ? 16 * GROUP_ELEM : 16 * GROUP_ROW) >> 4;
    struct group_place place = {0, 0};
    float sum[128];

#pragma unroll
    for (int i = 0; i < 128; i++)
        sum[i] = 0;
    for (int64_t t = blockIdx.x / group_size(); t < plan.tiles; t += gridDim.x / group_size()) {
        int before = -1;

        for (int64_t x = 0; x < plan.job.layout.k; x += GROUP_K) {
            const char *stage = ring + place.stage * GROUP_STAGE_BYTES;
            const uint64_t a = group_descriptor<A_ALONG_K>(stage + group * GROUP_SQUARE);
            const uint64_t b = group_descriptor<B_ALONG_K>(stage + GROUP_A_BYTES);

            gpurun_barrier_wait(&barriers->full[place.stage], place.parity);
            group_fence();
#pragma unroll
            for (int s = 0; s < GROUP_K / 16; s++)
                group_multiply<T, A_ALONG_K, B_ALONG_K>(sum, a + s * step_a, b + s * step_b,
                                                        x > 0 || s > 0);
            group_commit();
            group_wait_products<1>();
            if (before >= 0)
                group_release(barriers, before);
            before = place.stage;
            group_next(&place);
        }
        group_wait_products<0>();
        group_release(barriers, before);
#pragma unroll
        for (int i = 0; i < 128; i++)
            asm volatile("" : "+f"(sum[i])::"memory"); /* read after the wait, not before */
        group_write_tile<T>(plan, group_tile(plan.job.layout, t), group, sum);
    }
}

#endif

template <typename T, bool A_ALONG_K, bool B_ALONG_K>
static __global__ void __launch_bounds__(GROUP_BLOCK, 1)
    matmul_tensor_group_kernel(const __grid_constant__ CUtensorMap map_a,
                               const __grid_constant__ CUtensorMap map_b,
                               const __grid_constant__ struct group_plan plan)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ char group_bytes[];
    __shared__ struct group_shared barriers;
    char *ring =
        group_bytes +
        (GROUP_ALIGNMENT - gpurun_shared_address(group_bytes) % GROUP_ALIGNMENT) % GROUP_ALIGNMENT;
    const int group = threadIdx.x / 128;

    if (threadIdx.x == 0) {
        for (int s = 0; s < GROUP_STAGES; s++) {
            gpurun_barrier_make(&barriers.full[s], 1);
            gpurun_barrier_make(&barriers.empty[s], GROUP_CONSUMERS * group_size());
        }
        gpurun_barriers_made();
    }
    __syncthreads();
    group_meet();
    if (group == GROUP_CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(
            static_cast<int>(GROUP_PRODUCER_REGISTERS)));
        if (threadIdx.x % 128 == 0)
            group_produce<A_ALONG_K, B_ALONG_K>(plan, &map_a, &map_b, &barriers, ring);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(
            static_cast<int>(GROUP_CONSUMER_REGISTERS)));
        group_consume<T, A_ALONG_K, B_ALONG_K>(plan, &barriers, ring, group);
    }
    group_meet(); /* no block leaves while its partner may still write or arrive here */
#endif
}

/* --- host ------------------------------------------------------------------------------------------------------- */

/* Two rows of tiles make a cluster worth its while. */
static int group_cluster(const struct gpurun_ctx *ctx)
{
    return matmul_state_of(ctx)->layout.m > GROUP_M ? 2 : 1;
}

template <typename T, bool A_ALONG_K, bool B_ALONG_K>
static enum gpurun_status group_launch(struct gpurun_ctx *ctx, const CUtensorMap *map_a,
                                       const CUtensorMap *map_b)
{
    const int cluster = group_cluster(ctx);
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    struct group_plan plan;

    plan.job = matmul_job_of(ctx);
    plan.tiles = matmul_tile_count(ctx, cluster * GROUP_M, GROUP_N);
    plan.aligned =
        reinterpret_cast<uintptr_t>(plan.job.product) % 8 == 0 && plan.job.layout.ldc % 4 == 0;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.gridDim = static_cast<unsigned>(cluster * (plan.tiles < ctx->device.sm_count / cluster
                                                          ? plan.tiles
                                                          : ctx->device.sm_count / cluster));
    config.blockDim = GROUP_BLOCK;
    config.dynamicSmemBytes = GROUP_SHARED;
    config.stream = gpurun_cuda_stream(ctx);
    config.attrs = &attribute;
    config.numAttrs = 1;
    GPURUN_CUDA_TRY(ctx, cudaFuncSetAttribute(matmul_tensor_group_kernel<T, A_ALONG_K, B_ALONG_K>,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              GROUP_SHARED));
    GPURUN_CUDA_TRY(ctx,
                    cudaLaunchKernelEx(&config, matmul_tensor_group_kernel<T, A_ALONG_K, B_ALONG_K>,
                                       *map_a, *map_b, plan));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

template <typename T>
static enum gpurun_status group_run(struct gpurun_ctx *ctx, const CUtensorMap *map_a,
                                    const CUtensorMap *map_b)
{
    const bool a_along_k = !matmul_options_of(ctx)->transpose_a;
    const bool b_along_k = matmul_options_of(ctx)->transpose_b;

    if (a_along_k)
        return b_along_k ? group_launch<T, true, true>(ctx, map_a, map_b)
                         : group_launch<T, true, false>(ctx, map_a, map_b);
    return b_along_k ? group_launch<T, false, true>(ctx, map_a, map_b)
                     : group_launch<T, false, false>(ctx, map_a, map_b);
}

/* Code for any device but sm_90a has an empty kernel, which needs no shared memory for its barriers. */
static bool group_has_code(void)
{
    cudaFuncAttributes attributes;

    if (cudaFuncGetAttributes(&attributes,
                              matmul_tensor_group_kernel<struct matmul_half, true, true>) !=
        cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    return attributes.sharedSizeBytes >= sizeof(uint64_t) * 2 * GROUP_STAGES;
}

bool matmul_tensor_group_can(struct gpurun_ctx *ctx)
{
    const struct group_matrix a = group_matrix_a(ctx), b = group_matrix_b(ctx);

    return matmul_is_narrow(ctx) && ctx->device.compute == 90 &&
           ctx->device.shared_bytes >= GROUP_SHARED && group_can_fetch(&a) && group_can_fetch(&b) &&
           group_has_code() && group_find_encode() != NULL;
}

enum gpurun_status matmul_tensor_group(struct gpurun_ctx *ctx)
{
    const struct group_matrix a = group_matrix_a(ctx), b = group_matrix_b(ctx);
    group_encode *const encode = group_find_encode();
    CUtensorMap map_a, map_b;

    GPURUN_TRY(group_map(ctx, encode, &a, &map_a));
    GPURUN_TRY(group_map(ctx, encode, &b, &map_b));
    return matmul_dtype_of(ctx) == GPURUN_HALF
               ? group_run<struct matmul_half>(ctx, &map_a, &map_b)
               : group_run<struct matmul_bfloat16>(ctx, &map_a, &map_b);
}
