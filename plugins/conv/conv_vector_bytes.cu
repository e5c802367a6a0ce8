/*
 * conv, variant "vector": bytes through tensor cores, as a product with a band matrix.
 *
 * A row of the mask laid on 16 elements of a row of the image is a product with a matrix of 32 x 16: element k of the 32
 * around them counts in result x by the weight whose tap lies k - x away, else by 0. One instruction
 * (mma m16n8k32, bytes by signed bytes into int32) does this for 16 such segments of a row and half of the 16 results.
 *
 *          row g of A   bytes 16 g - 8 to 16 g + 23 of the warp's stretch (16 g to 16 g + 31 under crop)
 *          column n     result x = 4 (n / 2) + n mod 2, and 2 more in the other half
 *
 * So each register of A is the row's own words as they lie in memory, and a lane ends up with 4 neighbouring results:
 * no shuffles at all.
 *
 * Mapping  a block of 8 warps takes 2048 elements of a band of rows and walks down; a row of the image adds to the ROWS
 *          rows of the answer that it is under the mask of. The loop is unrolled by ROWS. Bands are lower where
 *          there are too few to fill the device.
 * Memory   rows are copied to a ring in shared memory, 3 stages of ROWS rows ahead: on Hopper by its copy engine, one
 *          copy a row, else by cp.async, 16 bytes a thread; each is read (band + ROWS - 1) / band times in all. Results
 *          leave as 4 bytes a lane.
 * Bound    memory: 4 loads from shared memory and 2 ROWS tensor instructions per row and 256 results.
 * Limits   weights of -128 to 127, at most 7 rows, channels * (width / 2) at most 8; compute capability 8.0. Rows that do
 *          not start at multiples of 16 bytes, and what lies beyond the edges, are loaded a byte a thread.
 */
#include "conv_device.cuh"
#include "conv_vector.h"

enum {
    BYTES_BLOCK = 256,
    BYTES_WARP_ELEMS = 256,
    BYTES_ELEMS = BYTES_BLOCK / 32 * BYTES_WARP_ELEMS,
    BYTES_HALO = 16,                                    /* elements on either side of a line */
    BYTES_CHUNKS = (BYTES_ELEMS + 2 * BYTES_HALO) / 16, /* of a line */
    BYTES_ROWS_MAX = 7,
    BYTES_LANE_WORDS = 32,
    BYTES_TABLE_ROW =
        4 * BYTES_LANE_WORDS, /* words of the band matrix: two halves of two registers */
};

/* The band matrices of all rows of the mask, as lanes hold them. */
template <int ROWS> struct bytes_table {
    uint32_t word[ROWS * BYTES_TABLE_ROW];
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

template <int ROWS> static __host__ __device__ constexpr int bytes_stages()
{
    return ROWS == 7 ? 3 : 4;
}

template <int ROWS> static constexpr int bytes_blocks_per_sm()
{
    return ROWS == 3 ? 4 : 2;
}

/* What a block works on. */
struct bytes_tile {
    int32_t e, y;    /* its first result */
    int32_t top;     /* the first row of the image that it reads */
    int rows, lines; /* results, and rows of the image */
    /* Bytes of a line: from left to right by 16, before and from there to end one by one, the rest never. */
    int left, right, end;
    bool is_aligned; /* rows start at multiples of 16 bytes */
    bool
        is_inside; /* and all that is read stands in the image, but for what is left and right of it */
};

/* Without a copy engine: which of a stage's 16 bytes a thread copies where a tile is_inside: their places in the image,
 * from the stage's first byte on, or -1. */
template <int ROWS> struct bytes_share {
    enum { COUNT = (ROWS * BYTES_CHUNKS + BYTES_BLOCK - 1) / BYTES_BLOCK };
    int64_t from[COUNT];
};

/* Whether there is a copy engine. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define BYTES_BULK 1
#else
#define BYTES_BULK 0
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

static __device__ __forceinline__ void bytes_copy_async(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(__cvta_generic_to_global(from))
                 : "memory");
}

static __device__ __forceinline__ void bytes_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING> static __device__ __forceinline__ void bytes_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

#if BYTES_BULK
static __device__ __forceinline__ unsigned bytes_shared(const void *at)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

static __device__ __forceinline__ void bytes_arm(uint64_t *full, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bytes_shared(full)),
                 "r"(bytes)
                 : "memory");
}

/* `bytes` and both addresses are multiples of 16. */
static __device__ __forceinline__ void bytes_copy_bulk(void *to, const void *from, unsigned bytes,
                                                       uint64_t *full)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(bytes_shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(bytes_shared(full))
                 : "memory");
}

/* Waits until the barrier's phase of this parity is over. */
static __device__ __forceinline__ void bytes_await(uint64_t *full, unsigned parity)
{
    unsigned is_over = 0;

    while (!is_over)
        asm volatile("{\n\t.reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(is_over)
                     : "r"(bytes_shared(full)), "r"(parity)
                     : "memory");
}
#endif

/* sums = a * b + before */
static __device__ __forceinline__ void bytes_multiply(int32_t (&sums)[4], const uint32_t (&a)[4],
                                                      uint32_t b0, uint32_t b1,
                                                      const int32_t (&before)[4])
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%10, %11, %12, %13};"
        : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(before[0]),
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

/* 16 bytes from anywhere, by the five aligned words that hold them: reads up to 3 bytes more on either side. */
static __device__ __forceinline__ uint4 bytes_load_shifted(const uint8_t *from)
{
    const unsigned past = static_cast<unsigned>(reinterpret_cast<uintptr_t>(from) % 4);
    const uint32_t *words = reinterpret_cast<const uint32_t *>(from - past);
    uint32_t word[5];

#pragma unroll
    for (int w = 0; w < 5; w++)
        word[w] = w < 4 || past > 0 ? words[w] : 0;
#pragma unroll
    for (int w = 0; w < 4; w++)
        word[w] = __funnelshift_r(word[w], word[w + 1], 8 * past);
    return make_uint4(word[0], word[1], word[2], word[3]);
}

/* A line: `from` is its first byte, far to the left of the tile or not; NULL: it is the constant. */
static __device__ __forceinline__ void bytes_load_line(const struct conv_job &job,
                                                       const struct bytes_tile &tile,
                                                       const uint8_t *from, uint4 *line)
{
    const uint32_t fill = static_cast<uint32_t>(job.fill) * 0x01010101u;

#pragma unroll 1
    for (int at = 16 * threadIdx.x; at < tile.end; at += 16 * BYTES_BLOCK)
        if (at >= tile.left && at < tile.right) {
            if (from == NULL)
                line[at / 16] = make_uint4(fill, fill, fill, fill);
            else if (tile.is_aligned)
                bytes_copy_async(&line[at / 16], from + at);
            else
                line[at / 16] = bytes_load_shifted(from + at);
        }
}

template <int ROWS>
static __device__ __forceinline__ void bytes_find_share(const struct conv_job &job,
                                                        const struct bytes_tile &tile,
                                                        struct bytes_share<ROWS> *share)
{
#pragma unroll
    for (int k = 0; k < bytes_share<ROWS>::COUNT; k++) {
        const int i = threadIdx.x + k * BYTES_BLOCK;
        const int line = i / BYTES_CHUNKS, at = i % BYTES_CHUNKS * 16;

        share->from[k] =
            line < ROWS && at >= tile.left && at < tile.right ? line * job.in_pitch + at : -1;
    }
}

/* The lines of a stage of a tile that is_inside, but for their edges. */
template <int ROWS>
static __device__ __forceinline__ void
bytes_load_inside(const struct conv_job &job, const struct bytes_tile &tile,
                  const struct bytes_share<ROWS> &share, const uint8_t *from,
                  uint4 (&lines)[ROWS][BYTES_CHUNKS], uint64_t *full)
{
#if BYTES_BULK
    const unsigned bytes = tile.right - tile.left;

    if (threadIdx.x > 0)
        return;
    bytes_arm(full, ROWS * bytes);
    for (int r = 0; r < ROWS && bytes > 0; r++)
        bytes_copy_bulk(&lines[r][tile.left / 16], from + r * job.in_pitch + tile.left, bytes,
                        full);
#else
#pragma unroll
    for (int k = 0; k < bytes_share<ROWS>::COUNT; k++)
        if (share.from[k] >= 0)
            bytes_copy_async(&lines[0][0] + threadIdx.x + k * BYTES_BLOCK, from + share.from[k]);
#endif
}

/* A byte of an edge on its way: it is put to its place when the stage before has been worked on, so that nothing waits
 * for it. `to` is NULL where the thread has none. */
struct bytes_edge {
    uint8_t *to;
    uint8_t value;
};

static __device__ __forceinline__ void bytes_put(struct bytes_edge edge)
{
    if (edge.to != NULL)
        *edge.to = edge.value;
}

/* The thread's share of the edges of a stage: all but the last are put. */
template <int ROWS>
static __device__ __forceinline__ struct bytes_edge
bytes_load_edges(const struct conv_job &job, const struct bytes_tile &tile, int first,
                 uint4 (&lines)[ROWS][BYTES_CHUNKS])
{
    const int edges = tile.left + tile.end - tile.right;
    struct bytes_edge mine = {NULL, 0};

#pragma unroll 1
    for (int i = threadIdx.x; i < ROWS * edges; i += BYTES_BLOCK) {
        const int line = i / edges, edge = i % edges;
        const int at = edge < tile.left ? edge : tile.right + edge - tile.left;

        bytes_put(mine);
        mine.to = NULL;
        if (first + line < tile.lines) {
            mine.to = reinterpret_cast<uint8_t *>(lines[line]) + at;
            mine.value =
                conv_fetch<uint8_t>(job, tile.e - BYTES_HALO + at, tile.top + first + line);
        }
    }
    return mine;
}

/* Begins one stage: ROWS lines from line `first` on. */
template <int ROWS>
static __device__ __forceinline__ struct bytes_edge
bytes_load_stage(const struct conv_job &job, const struct bytes_tile &tile,
                 const struct bytes_share<ROWS> &share, int first,
                 uint4 (&lines)[ROWS][BYTES_CHUNKS], uint64_t *full)
{
    const uint8_t *in = static_cast<const uint8_t *>(job.in) + tile.e - BYTES_HALO;
    struct bytes_edge edge;

    if (tile.is_inside && first < tile.lines) {
        bytes_load_inside<ROWS>(job, tile, share, in + (tile.top + first) * job.in_pitch, lines,
                                full);
    } else if (!tile.is_inside) {
#pragma unroll 1
        for (int r = 0; r < ROWS; r++) {
            const int32_t row = conv_border_at(tile.top + first + r, job.height, job.border);

            if (first + r < tile.lines)
                bytes_load_line(job, tile, row < 0 ? NULL : in + row * job.in_pitch, lines[r]);
        }
    }
    edge = bytes_load_edges<ROWS>(job, tile, first, lines);
    bytes_commit();
    return edge;
}

/* All threads must call it. */
template <int STAGES> static __device__ __forceinline__ void bytes_begin(uint64_t *full)
{
#if BYTES_BULK
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bytes_shared(&full[s]))
                         : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
#endif
}

/* Waits for the thread's own copies of stage s, and for the copy engine's. */
template <int STAGES>
static __device__ __forceinline__ void bytes_await_stage(const struct bytes_tile &tile, int s,
                                                         uint64_t *full)
{
#if BYTES_BULK
    if (tile.is_inside) {
        bytes_await(&full[s % STAGES], s / STAGES % 2);
        return;
    }
#endif
    bytes_wait<STAGES - 2>();
}

/* What of a line can be copied by 16 bytes: where rows are not aligned, what has 4 bytes on either side. */
static __device__ __forceinline__ void bytes_split_line(const struct conv_job &job,
                                                        struct bytes_tile *tile)
{
    const int32_t begin = tile->e - BYTES_HALO;
    const int spare =
        reinterpret_cast<uintptr_t>(job.in) % 16 == 0 && job.in_pitch % 16 == 0 ? 0 : 4;

    tile->is_aligned = spare == 0;
    tile->end = min(16 * BYTES_CHUNKS, (job.elems - begin + BYTES_HALO + 15) / 16 * 16);
    tile->left = begin >= 0 ? 0 : BYTES_HALO + 4 * spare;
    tile->right = max(tile->left, min(tile->end, (job.elems - spare - begin) / 16 * 16));
    tile->left = min(tile->left, tile->end);
    tile->right = min(tile->right, tile->end);
}

/* Four sums to a word of results; `is_plain`: they need only be saturated. */
static __device__ __forceinline__ uint32_t bytes_finish(const struct conv_job &job, bool is_plain,
                                                        int32_t a, int32_t b, int32_t c, int32_t d)
{
    const struct conv_tail *tail = &job.tail;
    const int32_t add = static_cast<int32_t>(tail->add);

    if (is_plain)
        return bytes_pack(a, b, c, d);
    if (tail->multiplier == 1 && !tail->is_even && !tail->is_wide)
        return bytes_pack((a + add) >> tail->shift, (b + add) >> tail->shift,
                          (c + add) >> tail->shift, (d + add) >> tail->shift);
    return bytes_pack(conv_tail_apply(a, tail), conv_tail_apply(b, tail), conv_tail_apply(c, tail),
                      conv_tail_apply(d, tail));
}

/* Whether a lane's results from e on can be stored as words, in any row. */
static __device__ __forceinline__ bool bytes_has_words(const struct conv_job &job, int32_t e)
{
    return job.border != CONV_FRAME && e + 128 + 4 <= job.out_elems && job.out_pitch % 4 == 0 &&
           reinterpret_cast<uintptr_t>(job.out) % 4 == 0;
}

/* Four results from element e of row y on, those past the end left out. */
static __device__ __forceinline__ void bytes_store(const struct conv_job &job, bool has_words,
                                                   int32_t e, int32_t y, uint32_t word)
{
    uint8_t *to = static_cast<uint8_t *>(job.out) + y * job.out_pitch + e;

    if (has_words) {
        *reinterpret_cast<uint32_t *>(to) = word;
        return;
    }
#pragma unroll 1
    for (int b = 0; b < 4 && e + b < job.out_elems; b++)
        to[b] = conv_is_framed(job, e + b, y) ? static_cast<uint8_t>(job.fill)
                                              : static_cast<uint8_t>(word >> (8 * b));
}

/* One line of the image into the sums of all rows that it counts in; `newest` is the row that it is the top of,
 * whose sums it begins. */
template <int ROWS>
static __device__ __forceinline__ void bytes_add(const uint32_t *line, const uint32_t *table,
                                                 int32_t (&sums)[ROWS][2][4], int newest)
{
    const uint32_t a[4] = {line[0], line[32], line[4], line[36]};
    const int32_t nothing[4] = {0, 0, 0, 0};

#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int32_t(&sum)[4] = sums[(newest + ROWS - i) % ROWS][half];
            const uint32_t b0 = table[(4 * i + 2 * half) * BYTES_LANE_WORDS];
            const uint32_t b1 = table[(4 * i + 2 * half + 1) * BYTES_LANE_WORDS];

            if (i == 0)
                bytes_multiply(sum, a, b0, b1, nothing);
            else
                bytes_multiply(sum, a, b0, b1, sum);
        }
}

/* The warp's part of a stage. `e` is the lane's first result. */
template <int ROWS>
static __device__ __forceinline__ void
bytes_work(const struct conv_job &job, const struct bytes_tile &tile, int first, int32_t e,
           bool has_words, bool is_plain, const uint32_t *line, const uint32_t *table,
           int32_t (&sums)[ROWS][2][4])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int done = first + r - (ROWS - 1); /* the row that this line completes */
        const int32_t(&sum)[2][4] = sums[(r + 1) % ROWS];

        if (ROWS == BYTES_ROWS_MAX)
            asm volatile("" ::: "memory"); /* or the whole table would be kept in registers */
        bytes_add<ROWS>(line + r * BYTES_CHUNKS * 4, table, sums, r);
        if (done >= 0 && done < tile.rows) {
            bytes_store(job, has_words, e, tile.y + done,
                        bytes_finish(job, is_plain, sum[0][0], sum[0][1], sum[1][0], sum[1][1]));
            bytes_store(job, has_words, e + 128, tile.y + done,
                        bytes_finish(job, is_plain, sum[0][2], sum[0][3], sum[1][2], sum[1][3]));
        }
    }
}
#endif

/* `lead`: elements of a segment's 32 that lie before its 16 results. `above`: rows of zeros on top of the mask. */
template <int ROWS>
static __global__ void __launch_bounds__(BYTES_BLOCK, bytes_blocks_per_sm<ROWS>())
    conv_vector_bytes_kernel(const struct conv_job job, const struct bytes_table<ROWS> table,
                             int lead, int above, int band)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    constexpr int stages = bytes_stages<ROWS>();
    __shared__ uint4 ring[stages][ROWS][BYTES_CHUNKS];
    __shared__ uint64_t
        full[stages]; /* barriers: what the copy engine brings of a stage is there */
    __shared__ uint32_t shared_table[ROWS * BYTES_TABLE_ROW];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int32_t sums[ROWS][2][4] = {};
    const bool is_plain = job.tail.multiplier == 1 && job.tail.shift == 0 && job.tail.add == 0;
    struct bytes_share<ROWS> share;
    struct bytes_tile tile;

    tile.e = static_cast<int32_t>(blockIdx.x % job.tiles_x) * BYTES_ELEMS;
    tile.y = static_cast<int32_t>(blockIdx.x / job.tiles_x) * band;
    tile.top = tile.y + job.first_y - above;
    tile.rows = min(band, job.out_height - tile.y);
    tile.lines = tile.rows + ROWS - 1;
    bytes_split_line(job, &tile);
    tile.is_inside = tile.is_aligned && tile.rows == band && tile.top >= 0 &&
                     tile.top + tile.lines <= job.height;
    bytes_find_share(job, tile, &share);
    bytes_begin<stages>(full);

#pragma unroll 1
    for (int s = 0; s < stages - 1; s++)
        bytes_put(bytes_load_stage<ROWS>(job, tile, share, s * ROWS, ring[s], &full[s]));
    for (int i = threadIdx.x; i < ROWS * BYTES_TABLE_ROW; i += BYTES_BLOCK)
        shared_table[i] = table.word[i];
    const int32_t e = tile.e + warp * BYTES_WARP_ELEMS;
    const bool has_words = bytes_has_words(job, e + 4 * lane);

    for (int s = 0; s * ROWS < tile.lines; s++) {
        const int ahead = s + stages - 1;

        bytes_await_stage<stages>(tile, s, full);
        __syncthreads(); /* this stage is there for all, and the one before it has been read by all */
        const struct bytes_edge edge = bytes_load_stage<ROWS>(
            job, tile, share, ahead * ROWS, ring[ahead % stages], &full[ahead % stages]);
        if (e < job.out_elems)
            bytes_work<ROWS>(job, tile, s * ROWS, e + 4 * lane, has_words, is_plain,
                             reinterpret_cast<const uint32_t *>(ring[s % stages][0]) +
                                 (BYTES_HALO - lead) / 4 + warp * (BYTES_WARP_ELEMS / 4) + lane,
                             shared_table + lane, sums);
        bytes_put(edge);
    }
#endif
}

/* --- host ------------------------------------------------------------------------------------------------- */

static int bytes_lead(const struct gpurun_ctx *ctx)
{
    return conv_state_of(ctx)->border == CONV_CROP ? 0 : 8;
}

/* What element k of a segment counts in result x under this row of the mask. */
static int bytes_weight(const struct conv_mask *mask, const struct conv_job *job, int lead, int row,
                        int k, int x)
{
    const int distance = k - lead - x - job->first_e;

    if (row < 0 || row >= mask->height || distance < 0 || distance % job->channels != 0 ||
        distance / job->channels >= mask->width)
        return 0;
    return mask->weight[row * mask->width + distance / job->channels];
}

/* The word that a lane holds: four elements k, one result. */
static uint32_t bytes_word(const struct conv_mask *mask, const struct conv_job *job, int lead,
                           int row, int half, int reg, int lane)
{
    const int column = lane / 4, x = 4 * (column / 2) + column % 2 + 2 * half;
    uint32_t word = 0;

    for (int b = 0; b < 4; b++) {
        const int k = 16 * reg + 4 * (lane % 4) + b;
        const int weight = bytes_weight(mask, job, lead, row, k, x);

        word |= (static_cast<uint32_t>(weight) & 255) << (8 * b);
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

template <int ROWS> static enum gpurun_status bytes_run(struct gpurun_ctx *ctx)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;
    const int lead = bytes_lead(ctx), above = (ROWS - mask->height) / 2;
    struct conv_job job = conv_job_of(ctx);
    int64_t tiles;
    const int band = bytes_choose_band<ROWS>(ctx, &job, &tiles);
    struct bytes_table<ROWS> table;

    for (int i = 0; i < ROWS * BYTES_TABLE_ROW; i++)
        table.word[i] = bytes_word(mask, &job, lead, i / BYTES_TABLE_ROW - above, i / 64 % 2,
                                   i / 32 % 2, i % 32);
    conv_vector_bytes_kernel<ROWS>
        <<<static_cast<unsigned>(tiles), BYTES_BLOCK, 0, gpurun_cuda_stream(ctx)>>>(
            job, table, lead, above, band);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

bool conv_vector_bytes_takes(const struct gpurun_ctx *ctx)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;

    if (mask->is_real || ctx->device.compute < 80 || mask->height > BYTES_ROWS_MAX ||
        mask->width / 2 * conv_options_of(ctx)->channels > 8)
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
