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
 *          each at its own pace. Bands are lower where they are too few to fill the device, and the last of them.
 * Memory   each row is read (band + ROWS - 1) / band times in all. Results leave as 4 bytes a lane. Where rows are not
 *          aligned, and the mask has at most 3 of them, words of a line and of the answer begin where memory has them, and
 *          the band is moved by the difference. Under other masks the warp that fills the ring shifts each line to where it
 *          would be if rows were aligned, results meet in shared memory, and one more warp shifts and stores them, 16 bytes
 *          a lane.
 * Bound    memory: 8 loads from shared memory and 2 ROWS tensor instructions per row and 256 results.
 * Limits   weights of -128 to 127, at most 7 rows, channels * (width / 2) at most 12, 9 where bands are moved; rows of
 *          2^31 - 2049 elements; compute capability 8.0.
 */
#include "conv_lines.cuh"
#include "conv_vector.h"

enum {
    BYTES_WARPS = 8, /* that read lines; one more fills the ring */
    BYTES_WARP_ELEMS = 256,
    BYTES_ELEMS = BYTES_WARPS * BYTES_WARP_ELEMS,
    BYTES_AHEAD = 16, /* elements of a line before the tile's first result */
    BYTES_REACH = 12, /* elements to either side of a result that count, at most */
    BYTES_SKEW = 3,   /* how far a row of either image may begin behind a word */
    BYTES_TURNS = 2,  /* stages whose answers are put together: one while another is stored */
    BYTES_ROWS_MAX = 7,
    BYTES_MOVED_ROWS = 3, /* of masks, up to which bands are moved where rows are not aligned */
    BYTES_DISTANCES = 26, /* between first elements of words and results: -10 to 15 */
    BYTES_DISTANCE_LEAST = -7 - BYTES_SKEW,
};

/* What is done about rows that begin anywhere. */
enum bytes_way {
    BYTES_ALIGNED, /* nothing: those of the image begin at multiples of 16 bytes, of the answer of 4 */
    BYTES_MOVED,   /* bands are moved; each lane knows whether its words are all in the image */
    BYTES_SHIFTED, /* lines are put right, and answers put together in shared memory */
};

/* How sums become results. */
enum bytes_end {
    BYTES_PLAIN, /* by saturation alone */
    BYTES_ADDED, /* after what is added they need only be shifted, maybe by nothing */
    BYTES_ENDED, /* by all of conv_tail */
};

/* One warp fills the ring, one more stores answers that are put together. */
template <enum bytes_way WAY> static __host__ __device__ constexpr int bytes_block()
{
    return 32 * (BYTES_WARPS + (WAY == BYTES_SHIFTED ? 2 : 1));
}

/* The band matrices of all rows of the mask: the two registers of a lane whose words begin so many elements behind its
 * result. */
template <int ROWS> struct bytes_table {
    uint2 words[ROWS][BYTES_DISTANCES];
};

/* A line of a tile whose rows are not aligned, and the rows of the answer that it begins and completes. */
struct bytes_line {
    unsigned begin; /* the first word that the tile's first warp reads of it, in bytes */
    int taps;       /* how far that moves its band, in bytes of bytes_table */
    int skew;       /* how far the row that it begins moves it */
    int ahead; /* elements by which words of the row that it completes begin before a warp's first */
};

/* Elements of a line: what is ahead, and what the last warp sees. */
template <enum bytes_way WAY> static __host__ __device__ constexpr int bytes_span()
{
    return BYTES_ELEMS + (WAY == BYTES_ALIGNED ? 32 : 48);
}

/* Elements that a row's warps must cover; the last of a row of tiles leaves the last of them to bytes_make_rest. */
template <enum bytes_way WAY>
static __host__ __device__ __forceinline__ int64_t bytes_covered(const struct conv_job &job)
{
    return static_cast<int64_t>(job.out_elems) + (WAY == BYTES_MOVED ? BYTES_SKEW : 0);
}

/* Stages that a block works through: at most, and where blocks are few. */
static __host__ __device__ constexpr int bytes_turns_most(int rows)
{
    return rows == 5 ? 10 : 8;
}

enum {
    BYTES_TURNS_LEAST = 2,
    BYTES_ROWS_LEAST = 4, /* of the answer, that so many stages make */
};

static __host__ __device__ constexpr int bytes_stages(int rows, enum bytes_way way)
{
    return rows == 7 && way == BYTES_ALIGNED ? 3 : 4;
}

template <int ROWS, enum bytes_way WAY>
struct bytes_ring : conv_ring<uint8_t, bytes_span<WAY>(), ROWS, bytes_stages(ROWS, WAY)>{};

/* Whether copies of lines that are put right begin a stage late, not two: stages of 7 lines are so long that what is read next
 * is put right in time. */
static __host__ __device__ constexpr bool bytes_is_soon(int rows)
{
    return rows == 7;
}

/* Lines of a tile at most. */
template <int ROWS> static __host__ __device__ constexpr int bytes_lines_most()
{
    return ROWS * bytes_turns_most(ROWS);
}

/* Rows of the answer on their way, each as it will lie in memory, from 16 whole bytes on that hold its first, but for up to 3
 * bytes earlier. */
template <int ROWS> struct bytes_answers {
    uint4 rows[BYTES_TURNS][ROWS][BYTES_ELEMS / 16 + 1];
    uint64_t full[BYTES_TURNS], empty[BYTES_TURNS]; /* barriers */
};

template <int ROWS, enum bytes_way WAY> static __host__ __device__ constexpr int bytes_put_rows()
{
    return WAY == BYTES_SHIFTED ? ROWS : 1;
}

template <int ROWS, enum bytes_way WAY> static __host__ __device__ constexpr int bytes_met_lines()
{
    return WAY == BYTES_MOVED ? bytes_lines_most<ROWS>() : 1;
}

/* Shared memory of a block. */
template <int ROWS, enum bytes_way WAY>
struct bytes_shared {
    struct bytes_ring<ROWS, WAY> ring; struct bytes_answers<bytes_put_rows<ROWS, WAY>()>
        answers; /* if lines are put right */
    struct bytes_table<ROWS>
        table;
    struct bytes_line lines[bytes_met_lines<ROWS, WAY>()]; /* if bands are moved */
};

template <int ROWS> static constexpr int bytes_blocks_per_sm()
{
    return ROWS == 3 ? 4 : ROWS == 5 ? 3 : 2;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/* Where a lane of a reading warp stands. */
struct bytes_lane {
    int32_t e; /* the first of the warp's results */
    int word;  /* which word of each half of them it stores */
    bool is_odd;
    /* all of its warp's results, or where lanes are asked its own words, are in the image and not in the frame */
    bool has_all;
};

template <enum bytes_way WAY>
static __device__ __forceinline__ struct bytes_lane bytes_find_lane(const struct conv_job &job,
                                                                    const struct conv_tile &tile)
{
    constexpr bool is_asked = WAY == BYTES_MOVED;
    const int lane = threadIdx.x % 32, quarter = lane % 4;
    const int32_t margin = job.border == CONV_FRAME ? job.mask_width / 2 * job.channels : 0;
    const int32_t radius = job.border == CONV_FRAME ? job.mask_height / 2 : 0;
    struct bytes_lane mine;
    int32_t first, last;

    mine.e = tile.e + static_cast<int32_t>(threadIdx.x / 32) * BYTES_WARP_ELEMS;
    mine.is_odd = lane % 2 == 1;
    mine.word = lane / 4 * 4 + quarter / 2 + 2 * (quarter % 2);
    first = mine.e + (is_asked ? 4 * mine.word - BYTES_SKEW : 0);
    last = mine.e + (is_asked ? 4 * mine.word + 128 + 4 : BYTES_WARP_ELEMS);
    mine.has_all = first >= margin && last <= job.out_elems - margin && tile.y >= radius &&
                   tile.y + tile.rows <= job.out_height - radius;
    return mine;
}

/* sums = a * b + before */
static __device__ __forceinline__ void bytes_multiply(int32_t (&sums)[4], const uint32_t (&a)[4],
                                                      const uint2 &b, const int32_t (&before)[4])
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%10, %11, %12, %13};"
        : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y), "r"(before[0]),
          "r"(before[1]), "r"(before[2]), "r"(before[3]));
}

/* Four saturated bytes, the first lowest. */
static __device__ __forceinline__ uint32_t bytes_pack(const int32_t (&of)[4])
{
    uint32_t high, all;

    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(of[3]), "r"(of[2]));
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(of[1]), "r"(of[0]), "r"(high));
    return all;
}

/* A line of the image into the sums of all rows that it counts in, sums[i] of the one that has had i lines before; each then
 * stands one further on, where the next line finds it, and the last is complete. */
template <int ROWS>
static __device__ __forceinline__ void bytes_add(const uint32_t *line, const uint2 (&band)[ROWS],
                                                 int32_t (&sums)[ROWS][2][4])
{
    const int32_t nothing[4] = {0, 0, 0, 0};

#pragma unroll
    for (int half = 0; half < 2; half++) {
        const uint32_t a[4] = {line[2 * half], line[2 * half + 32], line[2 * half + 4],
                               line[2 * half + 36]};

#pragma unroll
        for (int i = ROWS - 1; i > 0; i--)
            bytes_multiply(sums[i][half], a, band[i], sums[i - 1][half]);
        bytes_multiply(sums[0][half], a, band[0], nothing);
    }
}

static __device__ __forceinline__ bool bytes_is_plain(const struct conv_tail &tail)
{
    return static_cast<int32_t>(tail.add) == 0 && tail.shift == 0;
}

/* The end of four sums. */
template <enum bytes_end END>
static __device__ __forceinline__ void bytes_finish(const struct conv_tail &tail,
                                                    const int32_t (&sum)[4], int32_t (&ended)[4])
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        ended[i] = END == BYTES_PLAIN   ? sum[i]
                   : END == BYTES_ADDED ? (sum[i] + static_cast<int32_t>(tail.add)) >> tail.shift
                   : tail.is_wide       ? conv_tail_wide(sum[i], &tail)
                                        : conv_tail_narrow(sum[i], &tail);
}

/* From the results of both halves, 16 g + 2 t and 16 g + 8 + 2 t, to the lane's words of the first 128 and the last. */
static __device__ __forceinline__ void
bytes_trade(const struct bytes_lane &mine, const uint32_t (&halves)[2], uint32_t (&words)[2])
{
    const uint32_t keep = mine.is_odd ? halves[1] : halves[0];
    const uint32_t theirs = __shfl_xor_sync(~0u, mine.is_odd ? halves[0] : halves[1], 1);

    words[0] = __byte_perm(keep, theirs, mine.is_odd ? 0x1054 : 0x5410);
    words[1] = __byte_perm(keep, theirs, mine.is_odd ? 0x3276 : 0x7632);
}

/* Stores a word of a row at its ends or in the frame: element e and its neighbours, those left out that are none of the
 * row's. */
static __device__ __forceinline__ void bytes_store_each(const struct conv_job &job, int32_t e,
                                                        int32_t y, uint32_t word)
{
    uint8_t *to = static_cast<uint8_t *>(job.out) + y * job.out_pitch + e;

    if (job.border != CONV_FRAME && e >= 0 && e + 4 <= job.out_elems) {
        *reinterpret_cast<uint32_t *>(to) = word;
        return;
    }
#pragma unroll 1
    for (int b = 0; b < 4; b++)
        if (e + b >= 0 && e + b < job.out_elems)
            to[b] = conv_is_framed(job, e + b, y) ? static_cast<uint8_t>(job.fill)
                                                  : static_cast<uint8_t>(word >> (8 * b));
}

/* The sums of row y are complete. The lane's first word belongs `ahead` elements before `to`. Unless its lanes are asked the
 * warp has_all, but for BYTES_ENDED. */
template <enum bytes_end END, bool IS_ASKED>
static __device__ __forceinline__ void
bytes_complete(const struct conv_job &job, const struct bytes_lane &mine, int32_t y, int ahead,
               uint8_t *to, const int32_t (&sum)[2][4])
{
    uint32_t halves[2], words[2];

#pragma unroll
    for (int half = 0; half < 2; half++) {
        int32_t ended[4];

        if (END == BYTES_ADDED && bytes_is_plain(job.tail)) {
            halves[half] = bytes_pack(sum[half]);
            continue;
        }
        bytes_finish<END>(job.tail, sum[half], ended);
        halves[half] = bytes_pack(ended);
    }
    bytes_trade(mine, halves, words);
    if ((END == BYTES_ENDED || IS_ASKED) && !mine.has_all) {
        bytes_store_each(job, mine.e - ahead + 4 * mine.word, y, words[0]);
        bytes_store_each(job, mine.e - ahead + 4 * mine.word + 128, y, words[1]);
        return;
    }

    uint32_t *words_to = reinterpret_cast<uint32_t *>(to - ahead);

    words_to[0] = words[0];
    words_to[32] = words[1];
}

/* Saturated bytes, two neighbours and two 128 bytes on. */
static __device__ __forceinline__ void bytes_put(const int32_t (&of)[4], uint8_t *to)
{
    uint16_t *pairs_to = reinterpret_cast<uint16_t *>(to);

#pragma unroll
    for (int i = 0; i < 2; i++) {
        uint32_t pair;

        asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;"
            : "=r"(pair)
            : "r"(of[2 * i + 1]), "r"(of[2 * i]));
        pairs_to[64 * i] = static_cast<uint16_t>(pair);
    }
}

/* The sums of a row are complete: the lane's results to `to` and behind it. */
template <enum bytes_end END>
static __device__ __forceinline__ void bytes_answer(const struct conv_tail &tail,
                                                    const int32_t (&sum)[2][4], uint8_t *to)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int32_t ended[4];

        bytes_finish<END>(tail, sum[half], ended);
        bytes_put(ended, to + 8 * half);
    }
}

/* Stores row y of a tile: a lane 16 whole bytes of 512, and a byte at either end. By the whole warp. */
static __device__ __forceinline__ void bytes_store_row(const struct conv_job &job,
                                                       const struct conv_tile &tile, int32_t y,
                                                       const uint4 *answer)
{
    const int lane = threadIdx.x % 32;
    uint8_t *to = static_cast<uint8_t *>(job.out) + y * job.out_pitch + tile.e;
    const int past = static_cast<int>(reinterpret_cast<uintptr_t>(to) % 16), early = past % 4;
    const int end = past + min(BYTES_ELEMS, job.out_elems - tile.e);
    const uint8_t *from = reinterpret_cast<const uint8_t *>(answer) - early;
    const bool is_whole = end == past + BYTES_ELEMS;

    to -= past;
    if (job.border == CONV_FRAME) {
#pragma unroll 1
        for (int at = past + lane; at < end; at += 32)
            to[at] = conv_is_framed(job, tile.e + at - past, y) ? static_cast<uint8_t>(job.fill)
                                                                : from[at];
        return;
    }
#pragma unroll
    for (int i = 0; i < BYTES_ELEMS / 512; i++) {
        const int at = 16 * lane + 512 * i;
        const uint4 words = *reinterpret_cast<const uint4 *>(from + early + at);
        const uint32_t before = *reinterpret_cast<const uint32_t *>(from + early + at - 4);
        const uint4 chunk = make_uint4(__funnelshift_l(before, words.x, 8 * early),
                                       __funnelshift_l(words.x, words.y, 8 * early),
                                       __funnelshift_l(words.y, words.z, 8 * early),
                                       __funnelshift_l(words.z, words.w, 8 * early));

        if ((i > 0 || at >= past) && (is_whole || at + 16 <= end))
            *reinterpret_cast<uint4 *>(to + at) = chunk;
    }
    const int at = lane < 16 ? lane : end / 16 * 16 + lane - 16;

    if (at < end && (lane < 16 ? past > 0 && at >= past : past == 0 || at >= 16))
        to[at] = from[at];
}

/* Stores a tile, by the whole warp. */
template <int ROWS>
static __device__ __forceinline__ void bytes_store_tile(const struct conv_job &job,
                                                        const struct conv_tile &tile,
                                                        struct bytes_answers<ROWS> *answers)
{
#pragma unroll 1
    for (int s = 0; s * ROWS < tile.lines; s++) {
        const int turn = s % BYTES_TURNS;

        gpurun_barrier_wait(&answers->full[turn], s / BYTES_TURNS % 2);
#pragma unroll 1
        for (int r = 0; r < ROWS; r++) {
            const int row = s * ROWS + r - (ROWS - 1);

            if (row >= 0 && row < tile.rows)
                bytes_store_row(job, tile, tile.y + row, answers->rows[turn][r]);
        }
        gpurun_barrier_arrive(&answers->empty[turn]);
    }
}

/* Where bands are moved, words of a line begin up to 3 elements before the warp's first, as it lies in the image, and
 * words of the answer as it lies there: by as much as the one differs from the other the band is moved, for each line and
 * row that meet. So no byte is ever shifted. */
template <int ROWS>
static __device__ __forceinline__ struct bytes_line
bytes_find_line(const struct conv_job &job, const struct conv_tile &tile, int lead, int line)
{
    const unsigned out = static_cast<unsigned>(reinterpret_cast<uintptr_t>(job.out));
    const unsigned pitch = static_cast<unsigned>(job.out_pitch);
    const unsigned begin = BYTES_AHEAD - lead + conv_shift<false, uint8_t>(job, tile, line);
    const unsigned first = out + (tile.y + line) * pitch;
    struct bytes_line found;

    found.begin = begin / 4 * 4;
    found.taps = -static_cast<int>(begin % 4 * sizeof(uint2));
    found.skew = static_cast<int>(first % 4 * sizeof(uint2));
    found.ahead = static_cast<int>((first - (ROWS - 1) * pitch) % 4);
    return found;
}

/* A warp's part of the tile. */
template <int ROWS, enum bytes_way WAY, enum bytes_end END>
static __device__ __forceinline__ void
bytes_walk(const struct conv_job &job, const struct conv_tile &tile, int lead,
           const struct bytes_lane &mine, struct bytes_shared<ROWS, WAY> *shared)
{
    constexpr int stages = bytes_stages(ROWS, WAY);
    struct bytes_ring<ROWS, WAY> *ring = &shared->ring;
    const int lane = threadIdx.x % 32, place = mine.e - tile.e + 4 * lane;
    const uint2 *words = &shared->table.words[0][4 * (lane % 4) - lane / 4 - BYTES_DISTANCE_LEAST];
    uint8_t *to = static_cast<uint8_t *>(job.out) + (tile.y - (ROWS - 1)) * job.out_pitch + mine.e +
                  4 * mine.word;
    struct bytes_line line = {static_cast<unsigned>(BYTES_AHEAD - lead), 0, 0, 0};
    int skews[ROWS] = {};
    int32_t sums[ROWS][2][4] = {};
    uint2 band[ROWS];

#pragma unroll
    for (int i = 0; i < ROWS; i++)
        band[i] = words[i * BYTES_DISTANCES];
#pragma unroll 1
    for (int s = 0; s * ROWS < tile.lines; s++) {
        const uint8_t *stage = reinterpret_cast<const uint8_t *>(ring->lines[s % stages]) + place;

        conv_await_stage(s, ring);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int done = s * ROWS + r - (ROWS - 1); /* the row that this line completes */

            if (WAY == BYTES_MOVED) {
                line = shared->lines[s * ROWS + r];
#pragma unroll
                for (int i = ROWS - 1; i >= 0; i--) {
                    skews[i] = i > 0 ? skews[i - 1] : line.skew;
                    band[i] = *reinterpret_cast<const uint2 *>(
                        reinterpret_cast<const uint8_t *>(words + i * BYTES_DISTANCES) + line.taps +
                        skews[i]);
                }
            }
            bytes_add<ROWS>(reinterpret_cast<const uint32_t *>(stage + line.begin +
                                                               r * sizeof ring->lines[0][0]),
                            band, sums);
            if (static_cast<unsigned>(done) < tile.rows)
                bytes_complete<END, WAY == BYTES_MOVED>(job, mine, tile.y + done, line.ahead, to,
                                                        sums[ROWS - 1]);
            to += job.out_pitch;
        }
        conv_leave_stage(s, ring);
    }
}

/* The same where lines are put right, and answers put together. */
template <int ROWS, enum bytes_end END>
static __device__ __forceinline__ void
bytes_walk_shifted(const struct conv_job &job, const struct conv_tile &tile,
                   struct bytes_shared<ROWS, BYTES_SHIFTED> *shared)
{
    constexpr int stages = bytes_stages(ROWS, BYTES_SHIFTED);
    struct bytes_ring<ROWS, BYTES_SHIFTED> *ring = &shared->ring;
    const int lane = threadIdx.x % 32;
    const int place = static_cast<int>(threadIdx.x / 32) * BYTES_WARP_ELEMS + 4 * lane;
    const unsigned pitch = static_cast<unsigned>(job.out_pitch);
    unsigned row_at = static_cast<unsigned>(reinterpret_cast<uintptr_t>(job.out)) +
                      (tile.y - (ROWS - 1)) * pitch; /* of whose bits 2 and 3 count */
    int32_t sums[ROWS][2][4] = {};
    uint2 band[ROWS];

#pragma unroll
    for (int i = 0; i < ROWS; i++)
        band[i] = shared->table.words[i][4 * (lane % 4) - lane / 4 - BYTES_DISTANCE_LEAST];
#pragma unroll 1
    for (int s = 0; s * ROWS < tile.lines; s++) {
        const int turn = s % BYTES_TURNS;
        const uint8_t *stage = reinterpret_cast<const uint8_t *>(ring->lines[s % stages]) + place;
        uint8_t *to =
            reinterpret_cast<uint8_t *>(shared->answers.rows[turn]) + place - place % 16 / 2;

        conv_await_stage(s, ring);
        if (s >= BYTES_TURNS)
            gpurun_barrier_wait(&shared->answers.empty[turn], (s / BYTES_TURNS - 1) % 2);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            bytes_add<ROWS>(
                reinterpret_cast<const uint32_t *>(stage + r * sizeof ring->lines[0][0]), band,
                sums);
            bytes_answer<END>(job.tail, sums[ROWS - 1],
                              to + (row_at & 12) + r * sizeof shared->answers.rows[0][0]);
            row_at += pitch;
        }
        conv_leave_stage(s, ring);
        gpurun_barrier_arrive(&shared->answers.full[turn]);
    }
}

/* The block's tile. `above`: rows of zeros on top of the mask. */
template <int ROWS>
static __device__ __forceinline__ struct conv_tile
bytes_find_tile(const struct conv_job &job, const struct conv_bands &bands, int above)
{
    const uint32_t band = conv_divide(&bands.columns, blockIdx.x);
    struct conv_tile tile;

    tile.e = static_cast<int32_t>(blockIdx.x - band * bands.columns.by) * BYTES_ELEMS;
    tile.y = conv_band_at(&bands, static_cast<int32_t>(band), &tile.rows);
    tile.top = tile.y + job.first_y - above;
    tile.rows = min(tile.rows, job.out_height - tile.y);
    tile.lines = tile.rows + ROWS - 1;
    tile.begin = tile.e - BYTES_AHEAD;
    tile.reach = (job.mask_width - 1) * job.channels + job.first_e;
    return tile;
}

/* How many of the block's warps read lines. */
template <enum bytes_way WAY>
static __device__ __forceinline__ int bytes_readers(const struct conv_job &job,
                                                    const struct conv_tile &tile)
{
    const int64_t covered = bytes_covered<WAY>(job) - tile.e;

    return static_cast<int>(min(static_cast<int64_t>(BYTES_WARPS),
                                (covered + BYTES_WARP_ELEMS - 1) / BYTES_WARP_ELEMS));
}

/* Fills the block's tables. By its reading warps. */
template <int ROWS, enum bytes_way WAY>
static __device__ __forceinline__ void
bytes_begin_tables(const struct conv_job &job, const struct conv_bands &bands, int above, int lead,
                   const struct bytes_table<ROWS> &table, struct bytes_shared<ROWS, WAY> *shared)
{
    constexpr int threads = 32 * BYTES_WARPS;

    static_assert(ROWS * BYTES_DISTANCES <= threads, "one each");
    if (threadIdx.x < ROWS * BYTES_DISTANCES)
        shared->table.words[0][threadIdx.x] = table.words[0][threadIdx.x];
    if (WAY == BYTES_MOVED) {
        const struct conv_tile tile = bytes_find_tile<ROWS>(job, bands, above);

        for (int i = threadIdx.x; i < (tile.lines + ROWS - 1) / ROWS * ROWS; i += threads)
            shared->lines[i] = bytes_find_line<ROWS>(job, tile, lead, i);
    }
}

/* Where bands are moved, words of a row may begin so far ahead of its last tile that up to BYTES_SKEW elements are left
 * behind it: these are made one by one, while the first lines are on their way. By the tile's reading warps. */
template <int ROWS>
static __device__ __forceinline__ void
bytes_make_rest(const struct conv_job &job, const struct conv_tile &tile, int lead, int above,
                int threads, const struct bytes_table<ROWS> &table)
{
    const unsigned out = static_cast<unsigned>(reinterpret_cast<uintptr_t>(job.out));
    const int first =
        lead + job.first_e - BYTES_DISTANCE_LEAST; /* of the table, for a row's first weight */

#pragma unroll 1
    for (int i = threadIdx.x; i < BYTES_SKEW * tile.rows; i += threads) {
        const int32_t y = tile.y + i / BYTES_SKEW;
        const int ahead = (out + y * static_cast<unsigned>(job.out_pitch)) % 4;
        const int32_t e = tile.e + BYTES_ELEMS - ahead + i % BYTES_SKEW;
        int32_t sum = 0;

        if (i % BYTES_SKEW >= ahead || e >= job.out_elems)
            continue;
#pragma unroll 1
        for (int tap = 0; tap < job.mask_width * job.mask_height; tap++) {
            const int row = tap / job.mask_width, behind = tap % job.mask_width * job.channels;
            const int distance = first + behind;
            const uint2 *words = table.words[above + row];
            const uint32_t word =
                distance < BYTES_DISTANCES ? words[distance].x : words[distance - 16].y;

            sum += static_cast<int8_t>(word) *
                   conv_fetch<uint8_t>(job, e + job.first_e + behind, y + job.first_y + row);
        }
        conv_store<uint8_t>(job, e, y, sum);
    }
}

/* What a tile reads of its lines: where bands are moved, its results begin up to BYTES_SKEW elements before it. */
template <int ROWS, enum bytes_way WAY>
static __device__ __forceinline__ struct conv_window
bytes_find_window(const struct conv_job &job, struct conv_tile tile, int lead)
{
    int results = BYTES_ELEMS;

    if (WAY == BYTES_MOVED) {
        tile.e -= BYTES_SKEW;
        results += BYTES_SKEW;
    }
    struct conv_window window = conv_find_window<WAY == BYTES_ALIGNED, uint8_t>(
        job, tile, results, WAY == BYTES_SHIFTED ? BYTES_AHEAD - lead : -1);

    if (WAY == BYTES_SHIFTED && bytes_is_soon(ROWS))
        window.late = 1;
    return window;
}

/* The walk that the warp's part allows. By a reading warp. Code of its own for what is plain would cost registers. */
template <int ROWS, enum bytes_way WAY>
static __device__ __forceinline__ void bytes_walk_tile(const struct conv_job &job,
                                                       const struct conv_tile &tile, int lead,
                                                       struct bytes_shared<ROWS, WAY> *shared)
{
    const struct bytes_lane mine = bytes_find_lane<WAY>(job, tile);

    if ((WAY == BYTES_MOVED || mine.has_all) && conv_tail_only_shifts(&job.tail))
        bytes_walk<ROWS, WAY, BYTES_ADDED>(job, tile, lead, mine, shared);
    else
        bytes_walk<ROWS, WAY, BYTES_ENDED>(job, tile, lead, mine, shared);
}

/* Where lines are put right it saves them. */
template <int ROWS>
static __device__ __forceinline__ void
bytes_walk_tile(const struct conv_job &job, const struct conv_tile &tile, int,
                struct bytes_shared<ROWS, BYTES_SHIFTED> *shared)
{
    if (!conv_tail_only_shifts(&job.tail))
        bytes_walk_shifted<ROWS, BYTES_ENDED>(job, tile, shared);
    else if (bytes_is_plain(job.tail))
        bytes_walk_shifted<ROWS, BYTES_PLAIN>(job, tile, shared);
    else
        bytes_walk_shifted<ROWS, BYTES_ADDED>(job, tile, shared);
}

/* Makes the barriers of answers of so many reading warps. By one warp; a __syncthreads() must follow. */
template <int ROWS>
static __device__ __forceinline__ void bytes_begin_answers(int readers,
                                                           struct bytes_answers<ROWS> *answers)
{
    if (threadIdx.x % 32 == 0)
        for (int i = 0; i < BYTES_TURNS; i++) {
            gpurun_barrier_make(&answers->full[i], 32 * readers);
            gpurun_barrier_make(&answers->empty[i], 32);
        }
}
#endif

/* `lead`: elements of a group's 32 that lie before its first result. `above`: rows of zeros on top of the mask. */
template <int ROWS, enum bytes_way WAY>
static __global__ void __launch_bounds__(bytes_block<WAY>(), bytes_blocks_per_sm<ROWS>())
    conv_vector_bytes_kernel(const struct conv_job job, const struct bytes_table<ROWS> table,
                             int lead, int above, const struct conv_bands bands)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    constexpr bool is_aligned = WAY == BYTES_ALIGNED;
    extern __shared__ uint4 bytes_memory[];
    struct bytes_shared<ROWS, WAY> *shared =
        reinterpret_cast<struct bytes_shared<ROWS, WAY> *>(bytes_memory);
    const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
    struct conv_tile tile;
    struct conv_window window;
    int readers;

    /* others find out later, so that the warp which fills the ring begins the sooner */
    if (warp == BYTES_WARPS) {
        tile = bytes_find_tile<ROWS>(job, bands, above);
        window = bytes_find_window<ROWS, WAY>(job, tile, lead);
        conv_begin_ring<is_aligned>(job, tile, window, bytes_readers<WAY>(job, tile),
                                    &shared->ring);
    } else if (WAY == BYTES_SHIFTED && warp > BYTES_WARPS) {
        tile = bytes_find_tile<ROWS>(job, bands, above);
        bytes_begin_answers(bytes_readers<WAY>(job, tile), &shared->answers);
    } else {
        bytes_begin_tables<ROWS, WAY>(job, bands, above, lead, table, shared);
    }
    __syncthreads();
    if (warp == BYTES_WARPS) {
        conv_fill_ring<is_aligned>(job, tile, window, &shared->ring);
        return;
    }
    if (WAY == BYTES_SHIFTED && warp > BYTES_WARPS) {
        bytes_store_tile(job, tile, &shared->answers);
        return;
    }
    tile = bytes_find_tile<ROWS>(job, bands, above);
    readers = bytes_readers<WAY>(job, tile);
    if (warp >= readers)
        return;
    if (WAY == BYTES_MOVED && tile.e + BYTES_ELEMS < bytes_covered<WAY>(job) &&
        tile.e + BYTES_ELEMS >= job.out_elems)
        bytes_make_rest<ROWS>(job, tile, lead, above, 32 * readers, shared->table);
    bytes_walk_tile(job, tile, lead, shared);
#endif
}

/* --- host ------------------------------------------------------------------------------------------------- */

static bool bytes_is_aligned(const struct conv_job *job)
{
    return reinterpret_cast<uintptr_t>(job->in) % 16 == 0 && job->in_pitch % 16 == 0 &&
           reinterpret_cast<uintptr_t>(job->out) % 4 == 0 && job->out_pitch % 4 == 0;
}

/* What is done for a mask of so many rows: where a row is little work, moving the band is the less. */
static enum bytes_way bytes_way_of(const struct conv_job *job, int rows)
{
    return bytes_is_aligned(job)      ? BYTES_ALIGNED
           : rows <= BYTES_MOVED_ROWS ? BYTES_MOVED
                                      : BYTES_SHIFTED;
}

/* Elements of a group's 32 before its first result. */
static int bytes_lead(const struct conv_job *job, enum bytes_way way)
{
    return job->border != CONV_CROP ? BYTES_REACH : way == BYTES_MOVED ? BYTES_SKEW : 0;
}

/* The two words whose first elements are `distance` and that + 16 behind a result, under a row of the mask. */
static uint2 bytes_words(const struct conv_mask *mask, const struct conv_job *job, int lead,
                         int row, int distance)
{
    uint32_t word[2] = {0, 0};

    for (int k = 0; k < 8; k++) {
        const int behind = distance + k / 4 * 16 + k % 4 - lead - job->first_e;
        const bool counts = row >= 0 && row < mask->height && behind >= 0 &&
                            behind % job->channels == 0 && behind / job->channels < mask->width;
        const int weight = counts ? mask->weight[row * mask->width + behind / job->channels] : 0;

        word[k / 4] |= (static_cast<uint32_t>(weight) & 255) << (8 * (k % 4));
    }
    return make_uint2(word[0], word[1]);
}

template <int ROWS, enum bytes_way WAY>
static enum gpurun_status bytes_run(struct gpurun_ctx *ctx, const struct conv_job &job)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;
    const struct conv_stages stages = {ROWS, ROWS, bytes_turns_most(ROWS), BYTES_TURNS_LEAST};
    const int lead = bytes_lead(&job, WAY), above = (ROWS - mask->height) / 2;
    const int64_t columns = (static_cast<int64_t>(job.out_elems) + BYTES_ELEMS - 1) / BYTES_ELEMS;
    const int64_t slots = static_cast<int64_t>(ctx->device.sm_count) * bytes_blocks_per_sm<ROWS>();
    const int64_t side = (slots + columns - 1) / columns;
    const int turns = conv_choose_turns(&stages, job.out_height, side);
    const auto kernel = conv_vector_bytes_kernel<ROWS, WAY>;
    const int bytes = sizeof(struct bytes_shared<ROWS, WAY>);
    struct conv_bands bands;
    const int64_t tiles = conv_cut_bands(&stages, job.out_height, static_cast<uint32_t>(columns),
                                         turns, (side + 1) / 2, &bands);
    struct bytes_table<ROWS> table;

    for (int i = 0; i < ROWS; i++)
        for (int d = 0; d < BYTES_DISTANCES; d++)
            table.words[i][d] = bytes_words(mask, &job, lead, i - above, BYTES_DISTANCE_LEAST + d);
    GPURUN_CUDA_TRY(
        ctx, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<static_cast<unsigned>(tiles), bytes_block<WAY>(), bytes, gpurun_cuda_stream(ctx)>>>(
        job, table, lead, above, bands);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

bool conv_vector_bytes_takes(const struct gpurun_ctx *ctx)
{
    const struct conv_mask *mask = &conv_state_of(ctx)->mask;
    const struct conv_job job = conv_job_of(ctx);
    const enum bytes_way way = bytes_way_of(&job, mask->height);
    const int reach_most = BYTES_REACH - (way == BYTES_MOVED ? BYTES_SKEW : 0);

    if (mask->is_real || ctx->device.compute < 80 || mask->height > BYTES_ROWS_MAX ||
        job.out_elems > INT32_MAX - BYTES_ELEMS || mask->width / 2 * job.channels > reach_most)
        return false;
    for (int i = 0; i < mask->width * mask->height; i++)
        if (mask->weight[i] < INT8_MIN || mask->weight[i] > INT8_MAX)
            return false;
    return true;
}

enum gpurun_status conv_vector_bytes_check(struct gpurun_ctx *ctx)
{
    return conv_check_grid(ctx, BYTES_ELEMS, BYTES_ROWS_LEAST);
}

template <int ROWS> static enum gpurun_status bytes_run_rows(struct gpurun_ctx *ctx)
{
    constexpr enum bytes_way other = ROWS <= BYTES_MOVED_ROWS ? BYTES_MOVED : BYTES_SHIFTED;
    const struct conv_job job = conv_job_of(ctx);

    return bytes_is_aligned(&job) ? bytes_run<ROWS, BYTES_ALIGNED>(ctx, job)
                                  : bytes_run<ROWS, other>(ctx, job);
}

enum gpurun_status conv_vector_bytes_launch(struct gpurun_ctx *ctx)
{
    const int rows = conv_state_of(ctx)->mask.height;

    return rows <= 3   ? bytes_run_rows<3>(ctx)
           : rows <= 5 ? bytes_run_rows<5>(ctx)
                       : bytes_run_rows<7>(ctx);
}
