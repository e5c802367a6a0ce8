/*
 * conv, variant "vector": bytes through tensor cores, as a product with a band matrix.
 *
 * A row of the mask laid on 8 elements of a row of the image is a product with a matrix of 32 x 8: element k of the 32
 * around them counts in result n by the weight whose tap lies k - n away, else by 0. One instruction
 * (mma m16n8k32, bytes by signed bytes into int32) does this for 16 such groups; two make the warp's 256 results.
 *
 *          row g of A     bytes 16 g - 12 to 16 g + 19 of the warp's stretch (16 g to 16 g + 31 under crop), and for the
 *                         other half 8 more
 *          column n of B  the band of result 16 g + n, and for the other half 16 g + n + 8: the same
 *
 * So each register of A is the row's own words as they lie in memory, and B takes two registers per row of the mask. A
 * lane ends up with two neighbouring results of either half, and trades one pair of them for four neighbours in all.
 *
 * Mapping  a block takes 2048 elements of a band of rows and walks down: one warp fills a ring of lines in shared memory
 *          (conv_lines.cuh), 8 warps add each line to the ROWS rows of the answer that it is under the mask of,
 *          each at its own pace. The loop is unrolled by ROWS. Bands are lower where there are too few to fill the
 *          device.
 * Memory   each row is read (band + ROWS - 1) / band times in all. Results leave as 4 bytes a lane; where rows of the
 *          answer do not start at multiples of 4 bytes, lanes trade bytes so that they do so all the same.
 * Bound    memory: 8 loads from shared memory and 2 ROWS tensor instructions per row and 256 results.
 * Limits   weights of -128 to 127, at most 7 rows, channels * (width / 2) at most 12; compute capability 8.0.
 */
#include "conv_lines.cuh"
#include "conv_vector.h"

enum {
    BYTES_WARPS = 8, /* that read lines; one more fills the ring */
    BYTES_WARP_ELEMS = 256,
    BYTES_ELEMS = BYTES_WARPS * BYTES_WARP_ELEMS,
    BYTES_AHEAD = 16,              /* elements of a line before the first result, none under crop */
    BYTES_SPAN = BYTES_ELEMS + 32, /* elements of a line */
    BYTES_REACH = 12,              /* elements to either side of a result that count, at most */
    BYTES_BLOCK = 32 * (BYTES_WARPS + 1),
    BYTES_ROWS_MAX = 7,
    BYTES_WORDS = 32, /* of a register of the band matrix, one a lane */
};

/* The band matrices of all rows of the mask, as lanes hold them: two registers a row. */
template <int ROWS> struct bytes_table {
    uint32_t word[ROWS][2][BYTES_WORDS];
};

/* Rows of the answer per block: with the mask's they fill whole stages. */
template <int ROWS> static constexpr int bytes_band(int turns)
{
    return ROWS * turns - (ROWS - 1);
}

/* Stages that a block works through: at most, and where blocks are few. */
template <int ROWS> static constexpr int bytes_turns_most()
{
    return ROWS == 5 ? 10 : 8;
}
enum { BYTES_TURNS_LEAST = 2 };

static __host__ __device__ constexpr int bytes_stages(int rows)
{
    return rows == 7 ? 3 : 4;
}

template <int ROWS> struct bytes_ring : conv_ring<uint8_t, BYTES_SPAN, ROWS, bytes_stages(ROWS)> {
};

template <int ROWS> static constexpr int bytes_blocks_per_sm()
{
    return ROWS == 3 ? 4 : ROWS == 5 ? 3 : 2;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/* Where a lane of a reading warp stands. */
struct bytes_lane {
    int32_t e;  /* the first of the warp's results */
    int word;   /* which word of each half of them it stores */
    int before; /* the lane that stores the word before */
    bool is_odd;
    bool has_all; /* all of the warp's results are in the image, and none in the frame */
};

static __device__ __forceinline__ struct bytes_lane bytes_find_lane(const struct conv_job &job,
                                                                    const struct conv_tile &tile)
{
    const int lane = threadIdx.x % 32, quarter = lane % 4;
    const int32_t margin = job.border == CONV_FRAME ? job.mask_width / 2 * job.channels : 0;
    const int32_t radius = job.border == CONV_FRAME ? job.mask_height / 2 : 0;
    struct bytes_lane mine;

    mine.e = tile.e + static_cast<int32_t>(threadIdx.x / 32) * BYTES_WARP_ELEMS;
    mine.is_odd = lane % 2 == 1;
    mine.word = lane / 4 * 4 + quarter / 2 + 2 * (quarter % 2);
    mine.before = quarter == 0 ? (lane + 31) % 32 : quarter == 1 ? lane + 1 : lane - 2;
    mine.has_all = mine.e >= margin && mine.e + BYTES_WARP_ELEMS <= job.out_elems - margin &&
                   tile.y >= radius && tile.y + tile.rows <= job.out_height - radius;
    return mine;
}

/* sums = a * b + before */
static __device__ __forceinline__ void bytes_multiply(int32_t (&sums)[4], const uint32_t (&a)[4],
                                                      const uint32_t (&b)[2],
                                                      const int32_t (&before)[4])
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%10, %11, %12, %13};"
        : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(before[0]),
          "r"(before[1]), "r"(before[2]), "r"(before[3]));
}

/* Four saturated bytes, the first lowest. */
static __device__ __forceinline__ uint32_t bytes_pack(int32_t a, int32_t b, int32_t c, int32_t d)
{
    uint32_t high, all;

    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(d), "r"(c));
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(b), "r"(a), "r"(high));
    return all;
}

/* Word `at` of a line that begins `shift` bits before it is due. */
template <bool IS_ALIGNED>
static __device__ __forceinline__ uint32_t bytes_word_at(const uint32_t *line, int at,
                                                         unsigned shift)
{
    return IS_ALIGNED ? line[at] : __funnelshift_r(line[at], line[at + 1], shift);
}

/* A line of the image into the sums of all rows that it counts in; `newest` is the row that it is the top of, whose
 * sums it begins with `start`. */
template <int ROWS, bool IS_ALIGNED>
static __device__ __forceinline__ void bytes_add(const uint32_t *line, unsigned shift,
                                                 const uint32_t (&b)[ROWS][2], int32_t start,
                                                 int32_t (&sums)[ROWS][2][4], int newest)
{
    const int32_t starts[4] = {start, start, start, start};

#pragma unroll
    for (int half = 0; half < 2; half++) {
        const uint32_t a[4] = {bytes_word_at<IS_ALIGNED>(line, 2 * half, shift),
                               bytes_word_at<IS_ALIGNED>(line, 2 * half + 32, shift),
                               bytes_word_at<IS_ALIGNED>(line, 2 * half + 4, shift),
                               bytes_word_at<IS_ALIGNED>(line, 2 * half + 36, shift)};

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            int32_t(&sum)[4] = sums[(newest + ROWS - i) % ROWS][half];

            if (i == 0)
                bytes_multiply(sum, a, b[i], starts);
            else
                bytes_multiply(sum, a, b[i], sum);
        }
    }
}

/* The end of four sums; IS_FAST: they began with what is added, and need only be shifted. */
template <bool IS_FAST>
static __device__ __forceinline__ uint32_t bytes_finish(const struct conv_tail &tail,
                                                        const int32_t (&sum)[4])
{
    const int shift = tail.shift;

    if (IS_FAST && shift == 0)
        return bytes_pack(sum[0], sum[1], sum[2], sum[3]);
    if (IS_FAST)
        return bytes_pack(sum[0] >> shift, sum[1] >> shift, sum[2] >> shift, sum[3] >> shift);
    if (tail.is_wide)
        return bytes_pack(conv_tail_wide(sum[0], &tail), conv_tail_wide(sum[1], &tail),
                          conv_tail_wide(sum[2], &tail), conv_tail_wide(sum[3], &tail));
    return bytes_pack(conv_tail_narrow(sum[0], &tail), conv_tail_narrow(sum[1], &tail),
                      conv_tail_narrow(sum[2], &tail), conv_tail_narrow(sum[3], &tail));
}

/* From the results of both halves, 16 g + 2 t and 16 g + 8 + 2 t, to the lane's words of the first 128 and the last. */
static __device__ __forceinline__ void bytes_trade(bool is_odd, const uint32_t (&halves)[2],
                                                   uint32_t (&words)[2])
{
    const uint32_t mine = is_odd ? halves[1] : halves[0];
    const uint32_t theirs = __shfl_xor_sync(~0u, is_odd ? halves[0] : halves[1], 1);

    words[0] = __byte_perm(mine, theirs, is_odd ? 0x1054 : 0x5410);
    words[1] = __byte_perm(mine, theirs, is_odd ? 0x3276 : 0x7632);
}

/* Stores the warp's 256 bytes at `to`, from any byte on: lanes take over what spills from the word before. */
static __device__ __forceinline__ void bytes_store_shifted(const struct bytes_lane &mine,
                                                           uint8_t *to, const uint32_t (&words)[2])
{
    const int lane = threadIdx.x % 32;
    const unsigned past = static_cast<unsigned>(reinterpret_cast<uintptr_t>(to) % 4);
    uint32_t *base = reinterpret_cast<uint32_t *>(to - past);
    const uint32_t first = __shfl_sync(~0u, words[0], mine.before);
    const uint32_t second = __shfl_sync(~0u, words[1], mine.before);
    const uint32_t low = __funnelshift_l(first, words[0], 8 * past);

    base[mine.word + 32] = __funnelshift_l(lane == 0 ? first : second, words[1], 8 * past);
    if (lane > 0 || past == 0)
        base[mine.word] = low;
    if (past == 0)
        return;

    /* The first word, which lacks its first bytes, and what spills from the last. */
    const uint32_t ends = __shfl_sync(
        ~0u, (low & ~0u << 8 * past) | static_cast<uint32_t>(second >> (32 - 8 * past)), 0);
    if (lane < 4)
        reinterpret_cast<uint8_t *>(base)[lane < past ? 256 + lane : lane] =
            static_cast<uint8_t>(ends >> 8 * lane);
}

/* Stores four results from element e of row y on, byte by byte, those past the end left out. */
static __device__ __forceinline__ void bytes_store_each(const struct conv_job &job, int32_t e,
                                                        int32_t y, uint32_t word)
{
    uint8_t *to = static_cast<uint8_t *>(job.out) + y * job.out_pitch + e;

#pragma unroll 1
    for (int b = 0; b < 4 && e + b < job.out_elems; b++)
        to[b] = conv_is_framed(job, e + b, y) ? static_cast<uint8_t>(job.fill)
                                              : static_cast<uint8_t>(word >> (8 * b));
}

/* The sums of row y are complete. IS_ALIGNED: rows of the answer begin at multiples of 4 bytes. */
template <bool IS_ALIGNED, bool IS_FAST>
static __device__ __forceinline__ void bytes_complete(const struct conv_job &job,
                                                      const struct bytes_lane &mine, int32_t y,
                                                      uint8_t *to, const int32_t (&sum)[2][4])
{
    uint32_t halves[2], words[2];

#pragma unroll
    for (int half = 0; half < 2; half++)
        halves[half] = bytes_finish<IS_FAST>(job.tail, sum[half]);
    bytes_trade(mine.is_odd, halves, words);
    if (!IS_FAST && !mine.has_all) {
        bytes_store_each(job, mine.e + 4 * mine.word, y, words[0]);
        bytes_store_each(job, mine.e + 4 * mine.word + 128, y, words[1]);
    } else if (IS_ALIGNED) {
        reinterpret_cast<uint32_t *>(to)[mine.word] = words[0];
        reinterpret_cast<uint32_t *>(to)[mine.word + 32] = words[1];
    } else {
        bytes_store_shifted(mine, to, words);
    }
}

/* A warp's part of the tile. IS_FAST: it has_all, and sums need only be shifted. */
template <int ROWS, bool IS_ALIGNED, bool IS_FAST>
static __device__ __forceinline__ void
bytes_walk(const struct conv_job &job, const struct conv_tile &tile, int lead,
           const struct bytes_lane &mine, const uint32_t *table, struct bytes_ring<ROWS> *ring)
{
    constexpr int stages = bytes_stages(ROWS);
    const int lane = threadIdx.x % 32;
    const int place = (mine.e - lead - tile.begin) / 4 + lane;
    const int32_t start = IS_FAST ? static_cast<int32_t>(job.tail.add) : 0;
    uint8_t *to = static_cast<uint8_t *>(job.out) + (tile.y - (ROWS - 1)) * job.out_pitch + mine.e;
    uint32_t b[ROWS][2];
    int32_t sums[ROWS][2][4] = {};

#pragma unroll
    for (int i = 0; i < 2 * ROWS; i++)
        b[i / 2][i % 2] = table[i * BYTES_WORDS + lane];
#pragma unroll 1
    for (int s = 0; s * ROWS < tile.lines; s++) {
        const int at = s % stages;
        const int shifts =
            lane < ROWS ? conv_shift<IS_ALIGNED, uint8_t>(job, tile, s * ROWS + lane) : 0;

        conv_await_stage(s, ring);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int done = s * ROWS + r - (ROWS - 1); /* the row that this line completes */
            const int shift = IS_ALIGNED ? 0 : __shfl_sync(~0u, shifts, r);

            bytes_add<ROWS, IS_ALIGNED>(reinterpret_cast<const uint32_t *>(ring->lines[at][r]) +
                                            shift / 4 + place,
                                        8 * shift, b, start, sums, r);
            if (static_cast<unsigned>(done) < tile.rows)
                bytes_complete<IS_ALIGNED, IS_FAST>(job, mine, tile.y + done, to,
                                                    sums[(r + 1) % ROWS]);
            to += job.out_pitch;
        }
        conv_leave_stage(s, ring);
    }
}
#endif

/* `lead`: elements of a group's 32 that lie before its first result. `above`: rows of zeros on top of the mask.
 * IS_ALIGNED: rows of the image begin at multiples of 16 bytes, of the answer of 4. */
template <int ROWS, bool IS_ALIGNED>
static __global__ void __launch_bounds__(BYTES_BLOCK, bytes_blocks_per_sm<ROWS>())
    conv_vector_bytes_kernel(const struct conv_job job, const struct bytes_table<ROWS> table,
                             int lead, int above, int band)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    __shared__ struct bytes_ring<ROWS> ring;
    __shared__ uint32_t shared_table[2 * ROWS * BYTES_WORDS];
    const int warp = threadIdx.x / 32;
    struct conv_tile tile;

    tile.e = static_cast<int32_t>(blockIdx.x % job.tiles_x) * BYTES_ELEMS;
    tile.y = static_cast<int32_t>(blockIdx.x / job.tiles_x) * band;
    tile.top = tile.y + job.first_y - above;
    tile.rows = min(band, job.out_height - tile.y);
    tile.lines = tile.rows + ROWS - 1;
    tile.begin = tile.e - (lead > 0 ? BYTES_AHEAD : 0);
    tile.reach = (job.mask_width - 1) * job.channels + job.first_e;

    const int readers =
        min(BYTES_WARPS, (job.out_elems - tile.e + BYTES_WARP_ELEMS - 1) / BYTES_WARP_ELEMS);
    const struct conv_window window = conv_find_window<IS_ALIGNED, uint8_t>(job, tile, BYTES_ELEMS);
    if (warp == BYTES_WARPS)
        conv_begin_ring<IS_ALIGNED>(job, tile, window, readers, &ring);
    else
        for (int i = threadIdx.x; i < 2 * ROWS * BYTES_WORDS; i += 32 * BYTES_WARPS)
            shared_table[i] =
                table.word[i / (2 * BYTES_WORDS)][i / BYTES_WORDS % 2][i % BYTES_WORDS];
    __syncthreads();
    if (warp == BYTES_WARPS) {
        for (int s = 0; s * ROWS < tile.lines; s++)
            conv_fill_stage<IS_ALIGNED>(job, tile, s, window, &ring);
    } else if (warp < readers) {
        const struct bytes_lane mine = bytes_find_lane(job, tile);

        if (mine.has_all && conv_tail_only_shifts(&job.tail))
            bytes_walk<ROWS, IS_ALIGNED, true>(job, tile, lead, mine, shared_table, &ring);
        else
            bytes_walk<ROWS, IS_ALIGNED, false>(job, tile, lead, mine, shared_table, &ring);
    }
#endif
}

/* --- host ------------------------------------------------------------------------------------------------- */

static int bytes_lead(const struct gpurun_ctx *ctx)
{
    return conv_state_of(ctx)->border == CONV_CROP ? 0 : BYTES_REACH;
}

/* What element k of a group counts in result n under this row of the mask. */
static int bytes_weight(const struct conv_mask *mask, const struct conv_job *job, int lead, int row,
                        int k, int n)
{
    const int distance = k - lead - n - job->first_e;

    if (row < 0 || row >= mask->height || distance < 0 || distance % job->channels != 0 ||
        distance / job->channels >= mask->width)
        return 0;
    return mask->weight[row * mask->width + distance / job->channels];
}

/* The word that a lane holds in a register: four elements k, one result. */
static uint32_t bytes_word(const struct conv_mask *mask, const struct conv_job *job, int lead,
                           int row, int reg, int lane)
{
    uint32_t word = 0;

    for (int b = 0; b < 4; b++) {
        const int k = 16 * reg + 4 * (lane % 4) + b;

        word |= (static_cast<uint32_t>(bytes_weight(mask, job, lead, row, k, lane / 4)) & 255)
                << (8 * b);
    }
    return word;
}

/* The highest band of which there are enough for all blocks that the device can run at once. */
template <int ROWS>
static int bytes_choose_band(const struct gpurun_ctx *ctx, struct conv_job *job, int64_t *tiles)
{
    const int64_t enough = static_cast<int64_t>(ctx->device.sm_count) * bytes_blocks_per_sm<ROWS>();
    int turns = bytes_turns_most<ROWS>();

    while ((*tiles = conv_tiles(job, BYTES_ELEMS, bytes_band<ROWS>(turns))) < enough &&
           turns > BYTES_TURNS_LEAST)
        turns--;
    return bytes_band<ROWS>(turns);
}

static bool bytes_is_aligned(const struct conv_job *job)
{
    return reinterpret_cast<uintptr_t>(job->in) % 16 == 0 && job->in_pitch % 16 == 0 &&
           reinterpret_cast<uintptr_t>(job->out) % 4 == 0 && job->out_pitch % 4 == 0;
}

template <int ROWS> static enum gpurun_status bytes_run(struct gpurun_ctx *ctx)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;
    const int lead = bytes_lead(ctx), above = (ROWS - mask->height) / 2;
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    struct conv_job job = conv_job_of(ctx);
    int64_t tiles;
    const int band = bytes_choose_band<ROWS>(ctx, &job, &tiles);
    const unsigned blocks = static_cast<unsigned>(tiles);
    struct bytes_table<ROWS> table;

    for (int i = 0; i < ROWS; i++)
        for (int lane = 0; lane < BYTES_WORDS; lane++)
            for (int reg = 0; reg < 2; reg++)
                table.word[i][reg][lane] = bytes_word(mask, &job, lead, i - above, reg, lane);
    if (bytes_is_aligned(&job))
        conv_vector_bytes_kernel<ROWS, true>
            <<<blocks, BYTES_BLOCK, 0, stream>>>(job, table, lead, above, band);
    else
        conv_vector_bytes_kernel<ROWS, false>
            <<<blocks, BYTES_BLOCK, 0, stream>>>(job, table, lead, above, band);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

bool conv_vector_bytes_takes(const struct gpurun_ctx *ctx)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;

    if (mask->is_real || ctx->device.compute < 80 || mask->height > BYTES_ROWS_MAX ||
        mask->width / 2 * conv_options_of(ctx)->channels > BYTES_REACH)
        return false;
    for (int i = 0; i < mask->width * mask->height; i++)
        if (mask->weight[i] < INT8_MIN || mask->weight[i] > INT8_MAX)
            return false;
    return true;
}

enum gpurun_status conv_vector_bytes_check(struct gpurun_ctx *ctx)
{
    return conv_check_grid(ctx, BYTES_ELEMS, bytes_band<3>(bytes_turns_most<3>()));
}

enum gpurun_status conv_vector_bytes_launch(struct gpurun_ctx *ctx)
{
    const int rows = conv_state_of(ctx)->mask.height;

    return rows <= 3 ? bytes_run<3>(ctx) : rows <= 5 ? bytes_run<5>(ctx) : bytes_run<7>(ctx);
}
