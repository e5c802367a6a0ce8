/*
 * matmul, variant "register": each thread makes 128 elements (64 where they have 8 bytes) in registers.
 *
 * Mapping  256 threads per tile of 128 x 256 (128 x 128); a warp makes 64 x 64 (64 x 32) of it, its lanes stand
 *          8 x 4 and take every eighth (fourth) piece of 16 bytes, so their loads meet no bank twice.
 * Memory   tiles lie in shared memory along k, 16 (8) deep; a step takes six (eight) 16-byte loads for 128 (64)
 *          terms, one step ahead of its arithmetic, also across tiles: behind the one barrier of a tile lies a
 *          step's work. The next tiles arrive by cp.async meanwhile, 16 bytes at a time where rows are aligned
 *          and need no turning, else by elements.
 * Bound    arithmetic. With 64 elements a thread the loads from shared memory were as long as the arithmetic.
 * Limits   not for 16-bit reals. Reals are summed in parts (matmul_part_of) that are added up in shared memory,
 *          where there is room; half of the warps do so half a part later, so that others calculate meanwhile.
 *          Before compute capability 8.0 the copies are ordinary loads.
 */
#include "matmul_copy.cuh"

enum {
    REGISTER_BLOCK = 256,
    REGISTER_LANES_M = 8,
    REGISTER_LANES_N = 4,
    REGISTER_WARPS_N = 4,
    REGISTER_ANY_FEED = -1, /* only the operand knows */
};

/* The shape of a tile for elements of BYTES: GROUPS pieces of 16 bytes per thread in either direction. */
template <int BYTES> struct register_shape {
    static constexpr int V = 16 / BYTES;
    static constexpr int GROUPS_M = BYTES == 4 ? 2 : 4, GROUPS_N = 4;
    static constexpr int WARP_M = GROUPS_M * REGISTER_LANES_M * V;
    static constexpr int WARP_N = GROUPS_N * REGISTER_LANES_N * V;
    static constexpr int M = 2 * WARP_M, N = REGISTER_WARPS_N * WARP_N, K = BYTES == 4 ? 16 : 8;
    static constexpr int PITCH_M = M + V,
                         PITCH_N = N + V; /* turned tiles are stored without conflicts */
};

template <typename T> struct register_shared {
    typedef register_shape<sizeof(T)> S;
    __align__(16) T a[2][S::K][S::PITCH_M];
    __align__(16) T b[2][S::K][S::PITCH_N];
};

/* Starts the copies of a tile, K deep and PLACES along: `from` is its first element, `along_left` and
 * `deep_left` say how much of the matrix there is from there on; WHOLE: all of the tile. */
template <typename T, int K, int PLACES, int PITCH, bool WHOLE>
static __device__ __forceinline__ void
register_fetch_tile(const struct matmul_operand<T> &m, int feed, const T *from, int64_t deep_left,
                    int64_t along_left, T (*to)[PITCH])
{
    constexpr int width = 16 / static_cast<int>(sizeof(T)), turn = 8;
    const int t = threadIdx.x;

    if (feed == MATMUL_FEED_ALONG_16) {
        constexpr int pieces = PLACES / width, rows = REGISTER_BLOCK / pieces;
        const int x = t / pieces, p = t % pieces * width;
        const int64_t left = along_left - p;
        const int valid = WHOLE || left >= width ? 16
                          : left > 0             ? static_cast<int>(left * sizeof(T))
                                                 : 0;

#pragma unroll
        for (int r = 0; r < K / rows; r++)
            matmul_copy<16>(&to[x + r * rows][p], from + (x + r * rows) * m.deep + p,
                            WHOLE || x + r * rows < deep_left ? valid : 0);
    } else if (feed == MATMUL_FEED_ALONG) {
        constexpr int rows = REGISTER_BLOCK / PLACES;
        const int x = t / PLACES, p = t % PLACES;

#pragma unroll
        for (int r = 0; r < K / rows; r++)
            matmul_copy<sizeof(T)>(
                &to[x + r * rows][p], from + (x + r * rows) * m.deep + p * m.along,
                WHOLE || (x + r * rows < deep_left && p < along_left) ? sizeof(T) : 0);
    } else { /* along k: eight lanes go down it, and the tile is turned on its way */
        constexpr int columns = REGISTER_BLOCK / turn, steps = PLACES / columns;
        const int x = t % turn, p = t / turn;

#pragma unroll
        for (int r = 0; r < K / turn * steps; r++) {
            const int deep = x + r / steps * turn, along = p + r % steps * columns;

            matmul_copy<sizeof(T)>(&to[deep][along], from + deep + along * m.along,
                                   WHOLE || (deep < deep_left && along < along_left) ? sizeof(T)
                                                                                     : 0);
        }
    }
}

/* With a FEED that is known beforehand all tiles are whole, and no branch is left. */
template <int FEED, typename T, int K, int PLACES, int PITCH>
static __device__ __forceinline__ void register_fetch(const struct matmul_operand<T> &m,
                                                      const T *from, int64_t deep_left,
                                                      int64_t along_left, T (*to)[PITCH])
{
    if (FEED != REGISTER_ANY_FEED)
        register_fetch_tile<T, K, PLACES, PITCH, true>(m, FEED, from, deep_left, along_left, to);
    else if (deep_left >= K && along_left >= PLACES)
        register_fetch_tile<T, K, PLACES, PITCH, true>(m, m.feed, from, deep_left, along_left, to);
    else
        register_fetch_tile<T, K, PLACES, PITCH, false>(m, m.feed, from, deep_left, along_left, to);
}

/* What a thread needs of both tiles for one step along k. */
template <typename T> struct register_fragment {
    struct matmul_piece<T> left[register_shape<sizeof(T)>::GROUPS_M];
    struct matmul_piece<T> right[register_shape<sizeof(T)>::GROUPS_N];
};

template <typename T>
static __device__ __forceinline__ void register_load(struct register_fragment<T> &fragment,
                                                     const T *a, const T *b)
{
    typedef register_shape<sizeof(T)> S;

#pragma unroll
    for (int g = 0; g < S::GROUPS_M; g++)
        fragment.left[g] =
            *reinterpret_cast<const struct matmul_piece<T> *>(a + g * REGISTER_LANES_M * S::V);
#pragma unroll
    for (int g = 0; g < S::GROUPS_N; g++)
        fragment.right[g] =
            *reinterpret_cast<const struct matmul_piece<T> *>(b + g * REGISTER_LANES_N * S::V);
}

/* Every element of the thread's part of A times every one of B. */
template <typename T, int COUNT_M, int COUNT_N>
static __device__ __forceinline__ void
register_multiply(const struct register_fragment<T> &fragment, T (&sum)[COUNT_M][COUNT_N])
{
    constexpr int width = 16 / static_cast<int>(sizeof(T));

#pragma unroll
    for (int i = 0; i < COUNT_M; i++)
#pragma unroll
        for (int j = 0; j < COUNT_N; j++)
            sum[i][j] += fragment.left[i / width].item[i % width] *
                         fragment.right[j / width].item[j % width];
}

/* Writes a piece of a row, at once where it is whole and aligned. */
template <typename T>
static __device__ __forceinline__ void register_write(const struct matmul_job &job, int64_t at,
                                                      int64_t left, bool aligned, const T *sum)
{
    constexpr int width = 16 / static_cast<int>(sizeof(T));
    struct matmul_piece<T> piece;

    if (!aligned || left < width) {
#pragma unroll
        for (int v = 0; v < width; v++)
            if (v < left)
                matmul_finish<T>(job, at + v, sum[v]);
        return;
    }
#pragma unroll
    for (int v = 0; v < width; v++)
        piece.item[v] = matmul_finished<T>(job, at + v, sum[v]);
    *reinterpret_cast<struct matmul_piece<T> *>(static_cast<T *>(job.product) + at) = piece;
}

/* `part`: after so many steps sums are kept apart; 0: never. IS_PLAIN: A lies along k, B across it in pieces of 16
 * bytes, and all tiles are whole; then fewer steps make a loop, which stays in the instruction cache. */
template <typename T, bool IS_PLAIN>
static __global__ void __launch_bounds__(REGISTER_BLOCK, 1)
    matmul_register_kernel(struct matmul_job job, struct matmul_operand<T> a,
                           struct matmul_operand<T> b, bool aligned, int part)
{
    typedef register_shape<sizeof(T)> S;
    constexpr int feed_a = IS_PLAIN ? MATMUL_FEED_DEEP : REGISTER_ANY_FEED;
    constexpr int feed_b = IS_PLAIN ? MATMUL_FEED_ALONG_16 : REGISTER_ANY_FEED;
    constexpr int unrolled = IS_PLAIN && S::K > 8 ? 8 : S::K;
    extern __shared__ __align__(16) unsigned char register_memory[];
    struct register_shared<T> &shared =
        *reinterpret_cast<struct register_shared<T> *>(register_memory);
    struct matmul_piece<T> *kept = reinterpret_cast<struct matmul_piece<T> *>(&shared + 1);
    const struct matmul_layout &l = job.layout;
    const struct matmul_tile tile = matmul_tile_at(l, blockIdx.x, S::M, S::N);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int own_m = warp / REGISTER_WARPS_N * S::WARP_M + lane / REGISTER_LANES_N * S::V;
    const int own_n = warp % REGISTER_WARPS_N * S::WARP_N + lane % REGISTER_LANES_N * S::V;
    const int64_t steps = (l.k + S::K - 1) / S::K;
    const T *from_a = a.from + tile.batch * a.batch + tile.i * a.along;
    const T *from_b = b.from + tile.batch * b.batch + tile.j * b.along;
    T sum[S::GROUPS_M * S::V][S::GROUPS_N * S::V] = {};
    struct register_fragment<T> fragment[2];
    int until_kept = warp < REGISTER_WARPS_N ? part : (part + 1) / 2;
    bool has_kept = false;

    register_fetch<feed_a, T, S::K, S::M>(a, from_a, l.k, l.m - tile.i, shared.a[0]);
    register_fetch<feed_b, T, S::K, S::N>(b, from_b, l.k, l.n - tile.j, shared.b[0]);
    matmul_copy_commit();
    matmul_copy_wait<0>();
    __syncthreads();
    register_load<T>(fragment[0], &shared.a[0][0][own_m], &shared.b[0][0][own_n]);
    for (int64_t step = 0; step < steps; step++) {
        const int now = static_cast<int>(step % 2);
        const bool is_last = step + 1 == steps;
        const T *from_left = &shared.a[now][0][own_m], *from_right = &shared.b[now][0][own_n];

        if (!is_last) {
            const int64_t left = l.k - (step + 1) * S::K;

            from_a += S::K * a.deep;
            from_b += S::K * b.deep;
            register_fetch<feed_a, T, S::K, S::M>(a, from_a, left, l.m - tile.i, shared.a[1 - now]);
            register_fetch<feed_b, T, S::K, S::N>(b, from_b, left, l.n - tile.j, shared.b[1 - now]);
            matmul_copy_commit();
        }
#pragma unroll 1
        for (int first = 0; first < S::K; first += unrolled) {
#pragma unroll
            for (int x = 0; x + 1 < unrolled; x++) {
                register_load<T>(fragment[(x + 1) % 2], from_left + (x + 1) * S::PITCH_M,
                                 from_right + (x + 1) * S::PITCH_N);
                register_multiply<T>(fragment[x % 2], sum);
            }
            from_left += unrolled * S::PITCH_M;
            from_right += unrolled * S::PITCH_N;
            if (first + unrolled == S::K) {
                matmul_copy_wait<0>();
                __syncthreads(); /* the next tiles are there, and nobody reads these any more */
                from_left = &shared.a[1 - now][0][own_m];
                from_right = &shared.b[1 - now][0][own_n];
            }
            register_load<T>(fragment[0], from_left, from_right); /* of old tiles after the last */
            register_multiply<T>(fragment[1], sum);
        }
        if (matmul_is_real<T>() && --until_kept == 0 && !is_last) {
#pragma unroll
            for (int i = 0; i < S::GROUPS_M * S::V; i++)
                matmul_keep<REGISTER_BLOCK>(kept + i * S::GROUPS_N * REGISTER_BLOCK, !has_kept,
                                            sum[i]);
            has_kept = true;
            until_kept = part;
        }
    }
#pragma unroll
    for (int i = 0; i < S::GROUPS_M * S::V; i++) {
        if (has_kept)
            matmul_take<REGISTER_BLOCK>(kept + i * S::GROUPS_N * REGISTER_BLOCK, sum[i]);
    }
#pragma unroll
    for (int i = 0; i < S::GROUPS_M * S::V; i++) {
        const int64_t row = tile.i + own_m + i / S::V * REGISTER_LANES_M * S::V + i % S::V;

#pragma unroll
        for (int g = 0; g < S::GROUPS_N; g++) {
            const int64_t column = tile.j + own_n + g * REGISTER_LANES_N * S::V;

            if (row < l.m && column < l.n)
                register_write<T>(job, tile.batch * l.c_batch + row * l.ldc + column, l.n - column,
                                  aligned, &sum[i][g * S::V]);
        }
    }
}

/* Steps after which sums are kept apart; 0: never. */
template <typename T> static int register_part(const struct gpurun_ctx *ctx)
{
    typedef register_shape<sizeof(T)> S;
    const size_t bytes = sizeof(struct register_shared<T>) + S::M * S::N * sizeof(T);
    const int64_t k = matmul_state_of(ctx)->layout.k;
    const int64_t part = matmul_part_of(k) / S::K;

    if (!matmul_is_real<T>() || part * S::K >= k || bytes > ctx->device.shared_bytes)
        return 0;
    return static_cast<int>(part);
}

template <typename T> static enum gpurun_status register_run(struct gpurun_ctx *ctx)
{
    typedef register_shape<sizeof(T)> S;
    const int part = register_part<T>(ctx);
    const size_t kept_bytes = part > 0 ? S::M * S::N * sizeof(T) : 0;
    const size_t shared_bytes = sizeof(struct register_shared<T>) + kept_bytes;
    const struct matmul_job job = matmul_job_of(ctx);
    const struct matmul_layout &l = job.layout;
    const struct matmul_operand<T> a = matmul_operand_a<T>(job), b = matmul_operand_b<T>(job);
    const bool aligned = matmul_is_aligned(job.product, l.ldc, l.c_batch, sizeof(T));
    const bool is_deep = a.feed == MATMUL_FEED_DEEP || a.feed == MATMUL_FEED_DEEP_16;
    const bool is_plain = is_deep && b.feed == MATMUL_FEED_ALONG_16 && l.m % S::M == 0 &&
                          l.n % S::N == 0 && l.k % S::K == 0;
    void (*kernel)(struct matmul_job, struct matmul_operand<T>, struct matmul_operand<T>, bool,
                   int) =
        is_plain ? matmul_register_kernel<T, true> : matmul_register_kernel<T, false>;

    GPURUN_CUDA_TRY(ctx, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(shared_bytes)));
    kernel<<<static_cast<unsigned>(matmul_tile_count(ctx, S::M, S::N)), REGISTER_BLOCK,
             shared_bytes, gpurun_cuda_stream(ctx)>>>(job, a, b, aligned, part);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status matmul_register_supported(struct gpurun_ctx *ctx)
{
    if (matmul_is_narrow(ctx))
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "dtype", "%s is what tensor cores are for",
                           gpurun_dtype_name(matmul_dtype_of(ctx)));
    return matmul_check_grid(ctx, register_shape<8>::M, register_shape<8>::N);
}

enum gpurun_status matmul_launch_register(struct gpurun_ctx *ctx)
{
    return MATMUL_DISPATCH_WIDE(matmul_dtype_of(ctx), register_run, ctx);
}
