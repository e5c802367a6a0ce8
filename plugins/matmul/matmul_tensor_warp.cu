/*
 * matmul, variant "tensor" by mma.sync: half and bfloat16 where wgmma cannot be had, tf32 and double anywhere.
 *
 * Mapping  256 threads (double: 512) per tile of 128 x 128; a warp makes 64 x 32 (32 x 32) of it in pieces of
 *          16 x 8, 16 (double and tf32: 8) deep.
 * Memory   tiles lie in shared memory as they do in global memory, turned or not, in a ring of three stages that
 *          cp.async fills 16 bytes at a time where rows are aligned, else by elements. Pitches are such that
 *          fragments are read without bank conflicts: 16-bit ones by ldmatrix, which turns them on its way.
 * Bound    the tensor cores as mma.sync reaches them: on Hopper about 60 % of what wgmma does.
 * Limits   compute capability 8.0. tf32 rounds inputs to nearest, away at a tie. Before 9.0 a double piece is made
 *          of four 8 x 8 x 4 ones. Doubles are summed in parts (matmul_part_of) that are added up in shared memory,
 *          where there is room.
 */
#include "matmul_copy.cuh"

enum { WARP_STAGES = 3, WARP_M = 128, WARP_N = 128, WARP_PIECE_M = 16, WARP_PIECE_N = 8 };

/* Float inputs that are rounded to tf32 before they are multiplied. */
struct warp_tf32 {
    float value;
};

/* BLOCK: threads; PER_SM: blocks. K: depth of a tile, 64 bytes. DEEP: depth of a piece. PAD_DEEP, PAD_ALONG:
 * elements between rows that lie along k, or across it. IS_KEPT: sums are made in parts. */
template <typename T> struct warp_shape { /* 16-bit reals */
    typedef float ACC;
    typedef T ELEM;
    static constexpr int BLOCK = 256, PER_SM = 2, K = 32, DEEP = 16, PAD_DEEP = 8, PAD_ALONG = 8;
    static constexpr bool IS_KEPT = false;
};
template <> struct warp_shape<struct warp_tf32> {
    typedef float ACC;
    typedef float ELEM;
    static constexpr int BLOCK = 256, PER_SM = 2, K = 16, DEEP = 8, PAD_DEEP = 4, PAD_ALONG = 8;
    static constexpr bool IS_KEPT = false;
};
template <> struct warp_shape<double> {
    typedef double ACC;
    typedef double ELEM;
    static constexpr int BLOCK = 512, PER_SM = 1, K = 8, DEEP = 8, PAD_DEEP = 4, PAD_ALONG = 4;
    static constexpr bool IS_KEPT = true;
};

/* Elements of a stage's tile, however it lies. */
template <typename T, int PLACES> static constexpr int warp_tile_elems()
{
    typedef warp_shape<T> S;
    const int deep = PLACES * (S::K + S::PAD_DEEP), along = S::K * (PLACES + S::PAD_ALONG);

    return deep > along ? deep : along;
}

template <typename T> struct __align__(16) warp_stage
{
    __align__(16) typename warp_shape<T>::ELEM a[warp_tile_elems<T, WARP_M>()];
    __align__(16) typename warp_shape<T>::ELEM b[warp_tile_elems<T, WARP_N>()];
};

/* A tile in shared memory: element (x, p), x along k, is at [x * deep + p * along]. */
template <typename ELEM> struct warp_tile {
    const ELEM *at;
    int deep, along;
};

/* --- fetching ------------------------------------------------------------------------------------------------- */

/* Copies a tile, rows of BYTES at a time: ROWS rows of ROW elements, `pitch` apart in shared memory and `step` in
 * global memory, of which rows_left and row_left are the matrix's. */
template <typename ELEM, int BLOCK, int BYTES, int ROWS, int ROW>
static __device__ __forceinline__ void warp_copy(ELEM *to, int pitch, const ELEM *from,
                                                 int64_t step, int64_t rows_left, int64_t row_left)
{
    constexpr int width = BYTES / static_cast<int>(sizeof(ELEM)), pieces = ROW / width;
    constexpr int unrolled = BYTES == 16 ? 8 : 2; /* elements: as few registers as can be */

#pragma unroll unrolled
    for (int e = 0; e < ROWS * pieces / BLOCK; e++) {
        const int number = e * BLOCK + threadIdx.x;
        const int row = number / pieces, column = number % pieces * width;
        const int64_t left = row < rows_left ? row_left - column : 0;
        const int valid = left >= width ? BYTES
                          : left > 0    ? static_cast<int>(left * sizeof(ELEM))
                                        : 0;

        matmul_copy<BYTES>(to + row * pitch + column, from + row * step + column, valid);
    }
}

/* Starts the copies of a tile of PLACES x K whose first element is `from`. */
template <typename T, int PLACES>
static __device__ __forceinline__ void
warp_fetch(const struct matmul_operand<typename warp_shape<T>::ELEM> &m,
           const typename warp_shape<T>::ELEM *from, int64_t deep_left, int64_t along_left,
           typename warp_shape<T>::ELEM *to)
{
    typedef warp_shape<T> S;
    typedef typename S::ELEM ELEM;
    constexpr int one = sizeof(ELEM), pitch_deep = S::K + S::PAD_DEEP;
    constexpr int pitch_along = PLACES + S::PAD_ALONG;

    if (m.feed == MATMUL_FEED_DEEP_16)
        warp_copy<ELEM, S::BLOCK, 16, PLACES, S::K>(to, pitch_deep, from, m.along, along_left,
                                                    deep_left);
    else if (m.feed == MATMUL_FEED_DEEP)
        warp_copy<ELEM, S::BLOCK, one, PLACES, S::K>(to, pitch_deep, from, m.along, along_left,
                                                     deep_left);
    else if (m.feed == MATMUL_FEED_ALONG_16)
        warp_copy<ELEM, S::BLOCK, 16, S::K, PLACES>(to, pitch_along, from, m.deep, deep_left,
                                                    along_left);
    else
        warp_copy<ELEM, S::BLOCK, one, S::K, PLACES>(to, pitch_along, from, m.deep, deep_left,
                                                     along_left);
}

template <typename T, int PLACES>
static __device__ __forceinline__ struct warp_tile<typename warp_shape<T>::ELEM>
warp_tile_of(const struct matmul_operand<typename warp_shape<T>::ELEM> &m,
             const typename warp_shape<T>::ELEM *at) {
    typedef warp_shape<T> S;
    const bool is_deep = m.feed == MATMUL_FEED_DEEP || m.feed == MATMUL_FEED_DEEP_16;
    struct warp_tile<typename S::ELEM> tile;

    tile.at = at;
    tile.deep = is_deep ? 1 : PLACES + S::PAD_ALONG;
    tile.along = is_deep ? S::K + S::PAD_DEEP : 1;
    return tile;
}

/* --- pieces: what a lane holds, and the product ------------------------------------------------------------------ */

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

/* Four 8 x 8 matrices of 16 bits; lane l says where row l % 8 of matrix l / 8 is. `turned`: rows are columns. */
static __device__ __forceinline__ void
warp_load_four(uint32_t (&to)[4], const void *row, bool turned)
{
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));

    if (turned)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(at)
                     : "memory");
}

/* The four quarters of a piece of 16 (places) x 16 (deep) that starts at (x, p): places 0 and 8 at depth 0, then
 * at depth 8, or the other way round where `deep_first`. */
template <typename T>
static __device__ __forceinline__ void warp_load_quarters(uint32_t (&to)[4],
                                                          const struct warp_tile<T> &tile, int x,
                                                          int p, bool deep_first)
{
    const int lane = threadIdx.x % 32, row = lane % 8, matrix = lane / 8;
    const int second = matrix & 1, third = matrix >> 1;
    const int depth = x + 8 * (deep_first ? second : third);
    const int place = p + 8 * (deep_first ? third : second);
    const bool turned = tile.along == 1;

    warp_load_four(
        to,
        tile.at + (turned ? (depth + row) * tile.deep + place : depth + (place + row) * tile.along),
        turned);
}

template <typename T>
static __device__ __forceinline__ void warp_multiply(float (&sum)[4], const uint32_t *a,
                                                     const uint32_t *b)
{
    if constexpr (matmul_kind<T>::IS_HALF)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ __forceinline__ void warp_multiply_8(float (&sum)[4], const uint32_t *a,
                                                       const uint32_t *b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ __forceinline__ void warp_multiply_8(double (&sum)[4], const double *a,
                                                       const double *b)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++) { /* lower rows and depth vary first */
        const int rows = quarter & 1, depth = quarter >> 1;

        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, "
                     "{%0, %1};"
                     : "+d"(sum[2 * rows]), "+d"(sum[2 * rows + 1])
                     : "d"(a[rows + 2 * depth]), "d"(b[depth]));
    }
#endif
}

static __device__ __forceinline__ uint32_t warp_part(float x)
{
    uint32_t rounded;

    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
    return rounded;
}

static __device__ __forceinline__ double warp_part(double x)
{
    return x;
}

/* All pieces of a warp, DEEP further along k: 16-bit reals. (m, n) is the warp's place in the tile. */
template <typename T, int COUNT_M, int COUNT_N> struct warp_steps {
    static __device__ __forceinline__ void step(const struct warp_tile<T> &a,
                                                const struct warp_tile<T> &b, int x, int m, int n,
                                                float (&sum)[COUNT_M][COUNT_N][4])
    {
        uint32_t left[COUNT_M][4], right[COUNT_N / 2][4];

#pragma unroll
        for (int i = 0; i < COUNT_M; i++)
            warp_load_quarters(left[i], a, x, m + i * WARP_PIECE_M, false);
#pragma unroll
        for (int j = 0; j < COUNT_N / 2; j++) /* two pieces at once */
            warp_load_quarters(right[j], b, x, n + j * 2 * WARP_PIECE_N, true);
#pragma unroll
        for (int i = 0; i < COUNT_M; i++)
#pragma unroll
            for (int j = 0; j < COUNT_N; j++)
                warp_multiply<T>(sum[i][j], left[i], &right[j / 2][j % 2 * 2]);
    }
};

/* The same for float and double; PART is what the instruction takes of an element. */
template <typename ELEM, typename PART, int COUNT_M, int COUNT_N>
static __device__ __forceinline__ void warp_step_8(const struct warp_tile<ELEM> &a,
                                                   const struct warp_tile<ELEM> &b, int x, int m,
                                                   int n, ELEM (&sum)[COUNT_M][COUNT_N][4])
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    PART left[COUNT_M][4], right[COUNT_N][2];

#pragma unroll
    for (int i = 0; i < COUNT_M; i++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            left[i][e] = warp_part(a.at[(x + t + e / 2 * 4) * a.deep +
                                        (m + i * WARP_PIECE_M + g + e % 2 * 8) * a.along]);
#pragma unroll
    for (int j = 0; j < COUNT_N; j++)
#pragma unroll
        for (int e = 0; e < 2; e++)
            right[j][e] =
                warp_part(b.at[(x + t + e * 4) * b.deep + (n + j * WARP_PIECE_N + g) * b.along]);
#pragma unroll
    for (int i = 0; i < COUNT_M; i++)
#pragma unroll
        for (int j = 0; j < COUNT_N; j++)
            warp_multiply_8(sum[i][j], left[i], right[j]);
}

template <int COUNT_M, int COUNT_N> struct warp_steps<struct warp_tf32, COUNT_M, COUNT_N> {
    static __device__ __forceinline__ void step(const struct warp_tile<float> &a,
                                                const struct warp_tile<float> &b, int x, int m,
                                                int n, float (&sum)[COUNT_M][COUNT_N][4])
    {
        warp_step_8<float, uint32_t>(a, b, x, m, n, sum);
    }
};

template <int COUNT_M, int COUNT_N> struct warp_steps<double, COUNT_M, COUNT_N> {
    static __device__ __forceinline__ void step(const struct warp_tile<double> &a,
                                                const struct warp_tile<double> &b, int x, int m,
                                                int n, double (&sum)[COUNT_M][COUNT_N][4])
    {
        warp_step_8<double, double>(a, b, x, m, n, sum);
    }
};

#endif

/* --- the kernel ----------------------------------------------------------------------------------------------------- */

template <typename T>
static __global__ void __launch_bounds__(warp_shape<T>::BLOCK, warp_shape<T>::PER_SM)
    matmul_tensor_warp_kernel(struct matmul_job job,
                              struct matmul_operand<typename warp_shape<T>::ELEM> a,
                              struct matmul_operand<typename warp_shape<T>::ELEM> b, int part)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    typedef warp_shape<T> S;
    typedef typename S::ELEM ELEM;
    typedef typename S::ACC ACC;
    constexpr int warps_n = 4, warps_m = S::BLOCK / 32 / warps_n;
    constexpr int own_m = WARP_M / warps_m, own_n = WARP_N / warps_n;
    constexpr int count_m = own_m / WARP_PIECE_M, count_n = own_n / WARP_PIECE_N;
    extern __shared__ __align__(16) char warp_bytes[];
    struct warp_stage<T> *stages = reinterpret_cast<struct warp_stage<T> *>(warp_bytes);
    struct matmul_piece<ACC> *kept =
        reinterpret_cast<struct matmul_piece<ACC> *>(stages + WARP_STAGES);
    constexpr int pieces = 4 * sizeof(ACC) / 16; /* in which a lane keeps its part of one */
    const struct matmul_layout &l = job.layout;
    const struct matmul_tile tile = matmul_tile_at(l, blockIdx.x, WARP_M, WARP_N);
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int m = warp / warps_n * own_m, n = warp % warps_n * own_n;
    const int64_t steps = (l.k + S::K - 1) / S::K;
    const ELEM *from_a = a.from + tile.batch * a.batch + tile.i * a.along;
    const ELEM *from_b = b.from + tile.batch * b.batch + tile.j * b.along;
    ACC sum[count_m][count_n][4] = {};
    int until_kept = warp < S::BLOCK / 64 ? part : (part + 1) / 2;
    bool has_kept = false;

    /* Step s goes to stage s % WARP_STAGES; a step past the end is an empty group, so that waits count alike. */
    for (int64_t s = 0; s < steps + WARP_STAGES - 1; s++) {
        if (s >= WARP_STAGES - 1) {
            matmul_copy_wait<WARP_STAGES - 2>();
            __syncthreads(); /* step s - 2 is there, and nobody reads the stage that is filled next */
        }
        if (s < steps) {
            struct warp_stage<T> *stage = &stages[s % WARP_STAGES];

            warp_fetch<T, WARP_M>(a, from_a + s * S::K * a.deep, l.k - s * S::K, l.m - tile.i,
                                  stage->a);
            warp_fetch<T, WARP_N>(b, from_b + s * S::K * b.deep, l.k - s * S::K, l.n - tile.j,
                                  stage->b);
        }
        matmul_copy_commit();
        if (s < WARP_STAGES - 1)
            continue;

        const struct warp_stage<T> *stage = &stages[(s - (WARP_STAGES - 1)) % WARP_STAGES];
        const struct warp_tile<ELEM> left = warp_tile_of<T, WARP_M>(a, stage->a);
        const struct warp_tile<ELEM> right = warp_tile_of<T, WARP_N>(b, stage->b);

#pragma unroll
        for (int x = 0; x < S::K; x += S::DEEP)
            warp_steps<T, count_m, count_n>::step(left, right, x, m, n, sum);
        if (S::IS_KEPT && --until_kept == 0) {
#pragma unroll
            for (int i = 0; i < count_m; i++)
#pragma unroll
                for (int j = 0; j < count_n; j++)
                    matmul_keep<S::BLOCK>(kept + (i * count_n + j) * pieces * S::BLOCK, !has_kept,
                                          sum[i][j]);
            has_kept = true;
            until_kept = part;
        }
    }
#pragma unroll
    for (int i = 0; i < count_m; i++)
#pragma unroll
        for (int j = 0; j < count_n; j++) {
            if (S::IS_KEPT && has_kept)
                matmul_take<S::BLOCK>(kept + (i * count_n + j) * pieces * S::BLOCK, sum[i][j]);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int64_t row = tile.i + m + i * WARP_PIECE_M + g + e / 2 * 8;
                const int64_t column = tile.j + n + j * WARP_PIECE_N + t * 2 + e % 2;

                if (row < l.m && column < l.n)
                    matmul_finish<ELEM>(job, tile.batch * l.c_batch + row * l.ldc + column,
                                        sum[i][j][e]);
            }
        }
#endif
}

template <typename T> static enum gpurun_status warp_run(struct gpurun_ctx *ctx)
{
    typedef warp_shape<T> S;
    const struct matmul_job job = matmul_job_of(ctx);
    const size_t stages = WARP_STAGES * sizeof(struct warp_stage<T>);
    const size_t kept = WARP_M * WARP_N * sizeof(typename S::ACC);
    const int64_t terms = matmul_part_of(job.layout.k);
    const bool is_kept =
        S::IS_KEPT && terms < job.layout.k && stages + kept <= ctx->device.shared_bytes;
    const size_t bytes = stages + (is_kept ? kept : 0);

    GPURUN_CUDA_TRY(ctx, cudaFuncSetAttribute(matmul_tensor_warp_kernel<T>,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(bytes)));
    matmul_tensor_warp_kernel<T><<<static_cast<unsigned>(matmul_tile_count(ctx, WARP_M, WARP_N)),
                                   S::BLOCK, bytes, gpurun_cuda_stream(ctx)>>>(
        job, matmul_operand_a<typename S::ELEM>(job), matmul_operand_b<typename S::ELEM>(job),
        is_kept ? static_cast<int>(terms / S::K) : 0);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status matmul_tensor_warp(struct gpurun_ctx *ctx)
{
    switch (matmul_dtype_of(ctx)) {
    case GPURUN_HALF:
        return warp_run<struct matmul_half>(ctx);
    case GPURUN_BFLOAT16:
        return warp_run<struct matmul_bfloat16>(ctx);
    case GPURUN_DOUBLE:
        return warp_run<double>(ctx);
    default:
        return warp_run<struct warp_tf32>(ctx);
    }
}
