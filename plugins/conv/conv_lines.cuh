/*
 * How rows of an image come to shared memory: a ring of stages, each of ROWS lines, that a block works through on its way
 * down a band of rows.
 *
 * A line holds what a row of the block's tile sees. The copy engine brings what of it stands in the image, by 16 bytes, and
 * so maybe bytes of the rows before and after. What should stand beyond the ends of the row a warp then puts there; nearly
 * always it stands in the line already, so that nothing waits for memory. Where rows are not aligned it may also put lines
 * right, which then begin with their first element.
 */
#ifndef CONV_LINES_CUH
#define CONV_LINES_CUH

#include "conv_bands.h"
#include "conv_device.cuh"
#include "gpurun/copy_engine.cuh"

/* What a block works on. */
struct conv_tile {
    int32_t e, y;    /* its first result */
    int32_t top;     /* the first row of the image that it reads */
    int rows, lines; /* results, and rows of the image */
    int32_t begin;   /* the first element of its lines, at a multiple of 16 bytes if rows are */
    int reach; /* elements to either side of a result that are read; under crop behind it alone */
};

/* SPAN: elements of a line. It may begin anywhere in its first 16 bytes. */
template <typename ELEM, int SPAN, int ROWS, int STAGES> struct conv_ring {
    static_assert(SPAN * sizeof(ELEM) % 16 == 0, "lines are copied by 16 bytes");
    uint4 lines[STAGES][ROWS][SPAN * sizeof(ELEM) / 16 + 1];
    uint64_t copied[STAGES], full[STAGES], empty[STAGES]; /* barriers */
};

/* A row of the image, or the constant. */
template <typename ELEM> struct conv_row {
    const ELEM *from; /* its element 0; NULL: the constant */
    int32_t first;    /* the element, maybe of none, that a line of it begins with */
    int32_t low,
        high; /* the elements of the line that the copy engine brings, maybe some of none */
};

/* The elements of a line that are read, and how many of them at either end may not be what the copy engine brings. */
struct conv_window {
    int32_t from, to;
    int lefts, rights;
    bool has_edges; /* or a line may be the constant */
    bool is_plain;  /* the copy engine brings all of each line that is in the image */
    int skip; /* elements of a line before what it begins with once put right; below 0: lines stay */
    bool is_finished; /* by the warp that fills: lines have edges or are put right */
    int late;         /* stages by which copies then begin later, 1 or 2; else 0 */
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

enum {
    CONV_EDGES_AHEAD = 2, /* that a lane has on their way */
    CONV_SHIFT_LESS = 24, /* bytes at the end of a line that are not put right */
    CONV_BULK = 1024,     /* bytes of a line from which on the copy engine is worth its start */
};

/* Whether the copy engine brings lines of such a ring, else the lanes of a warp, 16 bytes each. */
template <typename ELEM, int SPAN> static __device__ __forceinline__ constexpr bool conv_is_bulk()
{
    return GPURUN_COPY_ENGINE && SPAN * sizeof(ELEM) >= CONV_BULK;
}

/* Elements of 16 bytes, as a mask of place within them. */
template <typename ELEM> static __device__ __forceinline__ constexpr int32_t conv_within()
{
    return 16 / sizeof(ELEM) - 1;
}

template <bool IS_ALIGNED, typename ELEM, int SPAN>
static __device__ __forceinline__ struct conv_row<ELEM>
conv_find_row(const struct conv_job &job, const struct conv_tile &tile, int line) {
    constexpr int32_t within = conv_within<ELEM>();
    const int32_t y = conv_border_at(tile.top + line, job.height, job.border);
    const int64_t place = y * job.in_pitch;
    struct conv_row<ELEM> row = {
        NULL, tile.begin, 0, 0
    };
    int32_t phase = 0, more = -job.elems & within;

    if (y < 0)
        return row;
    row.from = static_cast<const ELEM *>(job.in) + place;
    if (!IS_ALIGNED) {
        phase = static_cast<int32_t>(reinterpret_cast<uintptr_t>(row.from) / sizeof(ELEM)) & within;
        more = -(phase + job.elems) & within;
    }
    row.first = tile.begin - phase;
    row.low = row.first;
    if (row.first < 0)
        row.low = place >= phase ? -phase : within + 1 - phase;
    if (y + 1 == job.height && more > 0)
        more -= within + 1; /* what stands behind the last row is not ours */
    row.high = max(row.low, min(row.first + SPAN + within + 1, job.elems + more));
    return row;
}

/* Copies line `line` of the tile, all of it or the lane's share: `of` lanes take 16 bytes in turn. */
template <bool IS_ALIGNED, typename ELEM, int SPAN>
static __device__ __forceinline__ void
conv_copy_line(const struct conv_job &job, const struct conv_tile &tile, int line, uint4 *to,
               int share, int of, uint64_t *barrier)
{
    constexpr int32_t some = conv_within<ELEM>() + 1;
    const struct conv_row<ELEM> row = conv_find_row<IS_ALIGNED, ELEM, SPAN>(job, tile, line);
    ELEM *elems = reinterpret_cast<ELEM *>(to) - row.first;

    if (!conv_is_bulk<ELEM, SPAN>()) {
        for (int32_t e = row.low + some * share; e < row.high; e += some * of)
            gpurun_copy_16(elems + e, row.from + e);
        return;
    }
#if GPURUN_COPY_ENGINE
    const unsigned bytes = (row.high - row.low) * sizeof(ELEM);

    if (bytes > 0) {
        gpurun_barrier_expect(barrier, bytes);
        gpurun_copy_bulk(elems + row.low, row.from + row.low, bytes, barrier);
    }
#endif
}

/* Has the copies of lines from `from`, the first of a stage, to `to` begun, into their places in the ring, which must be
 * free; `barriers` are told. By the whole warp. */
template <bool IS_ALIGNED, typename ELEM, int SPAN, int ROWS, int STAGES>
static __device__ __forceinline__ void
conv_begin_lines(const struct conv_job &job, const struct conv_tile &tile, int from, int to,
                 struct conv_ring<ELEM, SPAN, ROWS, STAGES> *ring, uint64_t (&barriers)[STAGES])
{
    constexpr bool is_bulk = conv_is_bulk<ELEM, SPAN>();
    constexpr int of = is_bulk ? 1 : 32 / ROWS, lines = is_bulk ? 32 : ROWS;
    const int lane = threadIdx.x % 32;

#pragma unroll 1
    for (int begin = from; begin < to; begin += lines) {
        const int line = begin + lane / of, s = line / ROWS % STAGES;

        if (lane / of < lines && line < to)
            conv_copy_line<IS_ALIGNED, ELEM, SPAN>(job, tile, line, ring->lines[s][line % ROWS],
                                                   lane % of, of, &barriers[s]);
        if (!is_bulk)
            gpurun_barrier_arrive_copied(&barriers[begin / ROWS % STAGES]);
    }
    __syncwarp();
    if (from + lane * ROWS < to)
        gpurun_barrier_arrive(&barriers[(from / ROWS + lane) % STAGES]);
}

/* Makes the ring for so many reading warps, and begins its first stage. By one warp; a __syncthreads() must follow. */
template <bool IS_ALIGNED, typename ELEM, int SPAN, int ROWS, int STAGES>
static __device__ __forceinline__ void
conv_begin_ring(const struct conv_job &job, const struct conv_tile &tile,
                const struct conv_window &window, int readers,
                struct conv_ring<ELEM, SPAN, ROWS, STAGES> *ring)
{
    constexpr unsigned arrivals = conv_is_bulk<ELEM, SPAN>() ? 1 : 33;

    if (threadIdx.x % 32 == 0) {
        for (int i = 0; i < STAGES; i++) {
            gpurun_barrier_make(&ring->copied[i], arrivals);
            gpurun_barrier_make(&ring->full[i], window.is_finished ? 32 : arrivals);
            gpurun_barrier_make(&ring->empty[i], 32 * readers);
        }
        gpurun_barriers_made();
    }
    __syncwarp();
    conv_begin_lines<IS_ALIGNED>(job, tile, 0, min(tile.lines, ROWS), ring,
                                 window.is_finished ? ring->copied : ring->full);
}

/* What a tile of `results` results in a row reads of its lines; skip: up to 16 bytes of them, or below 0. */
template <bool IS_ALIGNED, typename ELEM>
static __device__ __forceinline__ struct conv_window
conv_find_window(const struct conv_job &job, const struct conv_tile &tile, int results, int skip)
{
    constexpr int32_t within = conv_within<ELEM>();
    const bool is_constant =
        job.border == CONV_CONSTANT && (tile.top < 0 || tile.top + tile.lines > job.height);
    const bool is_inside =
        tile.top > 0 && tile.top * job.in_pitch >= within && tile.top + tile.lines < job.height;
    const bool is_whole = IS_ALIGNED && job.elems % (within + 1) == 0;
    struct conv_window window;

    window.is_plain = is_inside || (is_whole && !is_constant);

    const int missing_left = IS_ALIGNED || window.is_plain ? 0 : within;
    const int missing_right = is_whole || window.is_plain ? 0 : within;

    window.from = tile.e + job.first_e;
    window.to = min(tile.e + results, job.out_elems) + tile.reach;
    window.lefts = min(window.to - window.from, max(0, missing_left - window.from));
    window.rights = min(window.to - window.from, max(0, window.to - job.elems + missing_right));
    window.has_edges = window.lefts + window.rights > 0 || is_constant;
    window.skip = skip;
    window.is_finished = window.has_edges || skip >= 0;
    window.late = window.is_finished ? 2 : 0;
    return window;
}

/* An element of the window that the copy engine may not have brought, edge i of `edges` of each line: puts into *value
 * what it is, and says where it belongs; NULL: it is there. */
template <bool IS_ALIGNED, typename ELEM, int SPAN, int ROWS, int STAGES>
static __device__ __forceinline__ ELEM *
conv_find_edge(const struct conv_job &job, const struct conv_tile &tile, int s, int i,
               const struct conv_window &window, struct conv_ring<ELEM, SPAN, ROWS, STAGES> *ring,
               ELEM *value)
{
    const int edges = window.lefts + window.rights, line = i / edges, edge = i % edges;
    const int32_t e =
        edge < window.lefts ? window.from + edge : window.to - 1 - (edge - window.lefts);

    if (line >= ROWS || s * ROWS + line >= tile.lines)
        return NULL;
    const struct conv_row<ELEM> row =
        conv_find_row<IS_ALIGNED, ELEM, SPAN>(job, tile, s * ROWS + line);
    const int32_t low = max(row.low, 0), high = min(row.high, job.elems);
    const int32_t place = conv_border_elem(job, e);
    ELEM *at = reinterpret_cast<ELEM *>(ring->lines[s % STAGES][line]) - row.first;

    if (row.from == NULL || (e >= low && e < high))
        return NULL;
    *value = place < 0                      ? static_cast<ELEM>(job.fill)
             : place >= low && place < high ? at[place]
                                            : row.from[place];
    return at + e;
}

/* Puts what the copy engine did not bring of the window, in stage s. By the whole warp. */
template <bool IS_ALIGNED, typename ELEM, int SPAN, int ROWS, int STAGES>
static __device__ __forceinline__ void
conv_put_edges(const struct conv_job &job, const struct conv_tile &tile, int s,
               const struct conv_window &window, struct conv_ring<ELEM, SPAN, ROWS, STAGES> *ring)
{
    const int lane = threadIdx.x % 32;
    const int count = (window.lefts + window.rights) * ROWS;

#pragma unroll 1
    for (int i = lane; i < count; i += 32 * CONV_EDGES_AHEAD) {
        ELEM *to[CONV_EDGES_AHEAD], value[CONV_EDGES_AHEAD];

#pragma unroll
        for (int k = 0; k < CONV_EDGES_AHEAD; k++)
            to[k] = conv_find_edge<IS_ALIGNED>(job, tile, s, i + 32 * k, window, ring, &value[k]);
#pragma unroll
        for (int k = 0; k < CONV_EDGES_AHEAD; k++)
            if (to[k] != NULL)
                *to[k] = value[k];
    }
#pragma unroll 1
    for (int r = 0; r < ROWS; r++)
        if (conv_border_at(tile.top + s * ROWS + r, job.height, job.border) < 0)
            for (int32_t e = window.from + lane; e < window.to; e += 32)
                reinterpret_cast<ELEM *>(ring->lines[s % STAGES][r])[e - tile.begin] =
                    static_cast<ELEM>(job.fill);
}

/* Elements before the first of a line in it. */
template <bool IS_ALIGNED, typename ELEM>
static __device__ __forceinline__ int conv_shift(const struct conv_job &job,
                                                 const struct conv_tile &tile, int line)
{
    const int32_t y = IS_ALIGNED ? 0 : conv_border_at(tile.top + line, job.height, job.border);
    const unsigned from = static_cast<unsigned>(reinterpret_cast<uintptr_t>(job.in)) / sizeof(ELEM);

    return IS_ALIGNED || y < 0
               ? 0
               : (from + y * static_cast<unsigned>(job.in_pitch)) & conv_within<ELEM>();
}

/* The edges of a stage that a lane puts, where that is the same for all stages: elements of a line, from where its tile
 * begins. */
struct conv_edges {
    bool are_near;              /* all stand in the line already, or are the constant */
    int line[CONV_EDGES_AHEAD]; /* of the stage; -1: the lane has none */
    int32_t to[CONV_EDGES_AHEAD], from[CONV_EDGES_AHEAD]; /* from: -1: the constant */
};

template <typename ELEM, int SPAN, int ROWS>
static __device__ __forceinline__ struct conv_edges
conv_find_edges(const struct conv_job &job, const struct conv_tile &tile,
                const struct conv_window &window)
{
    const int edges = window.lefts + window.rights;
    struct conv_edges found;
    bool is_near = window.is_plain && edges * ROWS <= 32 * CONV_EDGES_AHEAD;

#pragma unroll
    for (int k = 0; k < CONV_EDGES_AHEAD; k++) {
        const int i = threadIdx.x % 32 + 32 * k;

        found.line[k] = -1;
        if (!is_near || i >= edges * ROWS)
            continue;

        const int edge = i % edges;
        const int32_t e =
            edge < window.lefts ? window.from + edge : window.to - 1 - (edge - window.lefts);
        const int32_t place = conv_border_elem(job, e);

        found.line[k] = i / edges;
        found.to[k] = e - tile.begin;
        found.from[k] = place < 0 ? -1 : place - tile.begin;
        is_near = place < 0 || (place >= tile.begin && place < tile.begin + SPAN);
    }
    found.are_near = __all_sync(~0u, is_near);
    return found;
}

/* Puts such edges in stage s. By the whole warp. */
template <bool IS_ALIGNED, typename ELEM, int SPAN, int ROWS, int STAGES>
static __device__ __forceinline__ void
conv_put_near_edges(const struct conv_job &job, const struct conv_tile &tile, int s,
                    const struct conv_edges &edges,
                    struct conv_ring<ELEM, SPAN, ROWS, STAGES> *ring)
{
#pragma unroll
    for (int k = 0; k < CONV_EDGES_AHEAD; k++) {
        const int line = s * ROWS + edges.line[k];

        if (edges.line[k] < 0 || line >= tile.lines)
            continue;

        ELEM *at = reinterpret_cast<ELEM *>(ring->lines[s % STAGES][edges.line[k]]) +
                   conv_shift<IS_ALIGNED, ELEM>(job, tile, line);

        at[edges.to[k]] = edges.from[k] < 0 ? static_cast<ELEM>(job.fill) : at[edges.from[k]];
    }
}

/* Moves 512 TIMES bytes to where a line begins, from so many words and bits behind `from`. */
template <int WORDS, int TIMES>
static __device__ __forceinline__ void conv_shift_line(const uint4 *from, int bits, uint4 *line)
{
    const int lane = threadIdx.x % 32;
    uint4 moved[TIMES];

#pragma unroll
    for (int i = 0; i < TIMES; i++) {
        const uint4 one = from[lane + 32 * i], next = from[lane + 32 * i + 1];
        const uint32_t words[8] = {one.x, one.y, one.z, one.w, next.x, next.y, next.z, next.w};

        moved[i] = make_uint4(__funnelshift_r(words[WORDS], words[WORDS + 1], bits),
                              __funnelshift_r(words[WORDS + 1], words[WORDS + 2], bits),
                              __funnelshift_r(words[WORDS + 2], words[WORDS + 3], bits),
                              __funnelshift_r(words[WORDS + 3], words[WORDS + 4], bits));
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < TIMES; i++)
        line[lane + 32 * i] = moved[i];
}

/* Moves words FIRST to LAST - 1 of all lines of a stage, a lane a word; shift: by how many bytes, of line `lane`. */
template <int FIRST, int LAST, int ROWS, int CHUNKS>
static __device__ __forceinline__ void conv_shift_ends(int shift, uint4 (&lines)[ROWS][CHUNKS])
{
    constexpr int of_line = LAST - FIRST, times = (ROWS * of_line + 31) / 32;
    uint32_t moved[times];

#pragma unroll
    for (int k = 0; k < 2 * times; k++) {
        const int i = threadIdx.x % 32 + 32 * (k % times), line = min(i / of_line, ROWS - 1);
        const int by = __shfl_sync(~0u, shift, line);
        uint32_t *to = reinterpret_cast<uint32_t *>(lines[line]) + FIRST + i % of_line;

        if (k == times)
            __syncwarp();
        if (k < times)
            moved[k] = __funnelshift_r(to[by / 4], to[by / 4 + 1], 8 * by);
        else if (i < ROWS * of_line)
            *to = moved[k - times];
    }
}

/* Puts the lines of stage s right. By the whole warp. */
template <bool IS_ALIGNED, typename ELEM, int SPAN, int ROWS, int STAGES>
static __device__ __forceinline__ void
conv_shift_stage(const struct conv_job &job, const struct conv_tile &tile, int s, int skip,
                 struct conv_ring<ELEM, SPAN, ROWS, STAGES> *ring)
{
    constexpr int bytes = SPAN * sizeof(ELEM) - CONV_SHIFT_LESS, times = (bytes - 1) / 512;
    const int line = min(s * ROWS + static_cast<int>(threadIdx.x % 32), tile.lines - 1);
    const int shift = (skip + conv_shift<IS_ALIGNED, ELEM>(job, tile, line)) * sizeof(ELEM);
    uint4(&lines)[ROWS][SPAN * sizeof(ELEM) / 16 + 1] = ring->lines[s % STAGES];

    __syncwarp();
#pragma unroll 1
    for (int r = 0; r < ROWS; r++) {
        const int by = __shfl_sync(~0u, shift, r), words = by / 4 % 4;
        const uint4 *from = lines[r] + by / 16;

        if (words == 0)
            conv_shift_line<0, times>(from, 8 * by, lines[r]);
        else if (words == 1)
            conv_shift_line<1, times>(from, 8 * by, lines[r]);
        else if (words == 2)
            conv_shift_line<2, times>(from, 8 * by, lines[r]);
        else
            conv_shift_line<3, times>(from, 8 * by, lines[r]);
    }
    conv_shift_ends<128 * times, bytes / 4>(shift, lines);
}

/* Finishes stage s, which is then full. By the whole warp. */
template <bool IS_ALIGNED, typename ELEM, int SPAN, int ROWS, int STAGES>
static __device__ __forceinline__ void
conv_finish_stage(const struct conv_job &job, const struct conv_tile &tile, int s,
                  const struct conv_window &window, const struct conv_edges &edges,
                  struct conv_ring<ELEM, SPAN, ROWS, STAGES> *ring)
{
    gpurun_barrier_wait(&ring->copied[s % STAGES], s / STAGES % 2);
    if (window.has_edges && edges.are_near)
        conv_put_near_edges<IS_ALIGNED>(job, tile, s, edges, ring);
    else if (window.has_edges)
        conv_put_edges<IS_ALIGNED>(job, tile, s, window, ring);
    if (window.skip >= 0)
        conv_shift_stage<IS_ALIGNED>(job, tile, s, window.skip, ring);
    gpurun_copy_fence();
    gpurun_barrier_arrive(&ring->full[s % STAGES]);
}

/* Step s of filling a ring, of whose stages `copied` is told where the window is_finished, else `full`: what finishes stage
 * s, which is then there, and what can be begun once stage s has been left. Where there is anything to finish that is
 * late, so that what is read next is there already. By the whole warp. */
template <bool IS_ALIGNED, typename ELEM, int SPAN, int ROWS, int STAGES>
static __device__ __forceinline__ void
conv_fill_stage(const struct conv_job &job, const struct conv_tile &tile, int s,
                const struct conv_window &window, const struct conv_edges &edges,
                struct conv_ring<ELEM, SPAN, ROWS, STAGES> *ring)
{
    static_assert(STAGES > 2, "stages are begun up to two late");
    const int next = s - window.late + STAGES;

    if (s * ROWS >= tile.lines)
        return;
    if (window.is_finished)
        conv_finish_stage<IS_ALIGNED>(job, tile, s, window, edges, ring);
    if (s < window.late || next * ROWS >= tile.lines)
        return;
    gpurun_barrier_wait(&ring->empty[next % STAGES], (next / STAGES - 1) % 2);
    conv_begin_lines<IS_ALIGNED>(job, tile, next * ROWS, min(tile.lines, (next + 1) * ROWS), ring,
                                 window.is_finished ? ring->copied : ring->full);
}

/* Fills a ring whose first stage has begun. By the whole warp. */
template <bool IS_ALIGNED, typename ELEM, int SPAN, int ROWS, int STAGES>
static __device__ __forceinline__ void
conv_fill_ring(const struct conv_job &job, const struct conv_tile &tile,
               const struct conv_window &window, struct conv_ring<ELEM, SPAN, ROWS, STAGES> *ring)
{
    struct conv_edges edges;

    conv_begin_lines<IS_ALIGNED>(job, tile, ROWS, min(tile.lines, STAGES * ROWS), ring,
                                 window.is_finished ? ring->copied : ring->full);
    if (window.has_edges)
        edges = conv_find_edges<ELEM, SPAN, ROWS>(job, tile, window);
#pragma unroll 1
    for (int s = 0; s * ROWS < tile.lines; s++)
        conv_fill_stage<IS_ALIGNED>(job, tile, s, window, edges, ring);
}

/* By a reading warp: waits until stage s is there. */
template <typename ELEM, int SPAN, int ROWS, int STAGES>
static __device__ __forceinline__ void
conv_await_stage(int s, struct conv_ring<ELEM, SPAN, ROWS, STAGES> *ring)
{
    gpurun_barrier_wait(&ring->full[s % STAGES], s / STAGES % 2);
}

/* By a reading warp: it has read stage s. */
template <typename ELEM, int SPAN, int ROWS, int STAGES>
static __device__ __forceinline__ void
conv_leave_stage(int s, struct conv_ring<ELEM, SPAN, ROWS, STAGES> *ring)
{
    gpurun_barrier_arrive(&ring->empty[s % STAGES]);
}

#endif
#endif
