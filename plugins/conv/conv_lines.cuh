/*
 * How rows of an image come to shared memory: a ring of stages, each of ROWS lines, that a block works through on its way
 * down a band of rows.
 *
 * A line holds what a row of the block's tile sees. The copy engine brings what of it stands in the image, by 16 bytes, and
 * so maybe bytes of the rows before and after. What should stand beyond the ends of the row a warp then puts there; nearly
 * always it stands in the line already, so that nothing waits for memory.
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
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

enum {
    CONV_EDGES_AHEAD = 2, /* that a lane has on their way */
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
            gpurun_barrier_make(&ring->full[i], window.has_edges ? 32 : arrivals);
            gpurun_barrier_make(&ring->empty[i], 32 * readers);
        }
        gpurun_barriers_made();
    }
    __syncwarp();
    conv_begin_lines<IS_ALIGNED>(job, tile, 0, min(tile.lines, ROWS), ring,
                                 window.has_edges ? ring->copied : ring->full);
}

/* What a tile of `results` results in a row reads of its lines. */
template <bool IS_ALIGNED, typename ELEM>
static __device__ __forceinline__ struct conv_window
conv_find_window(const struct conv_job &job, const struct conv_tile &tile, int results)
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
    gpurun_copy_fence();
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
    gpurun_copy_fence();
}

/* Step s of filling a ring, of whose stages `copied` is told where the window has_edges, else `full`: the edges of stage s,
 * which is then there, and what can be begun once stage s has been left. Where there are edges that is two stages late,
 * so that what is read next has its edges already. By the whole warp. */
template <bool IS_ALIGNED, typename ELEM, int SPAN, int ROWS, int STAGES>
static __device__ __forceinline__ void
conv_fill_stage(const struct conv_job &job, const struct conv_tile &tile, int s,
                const struct conv_window &window, const struct conv_edges &edges,
                struct conv_ring<ELEM, SPAN, ROWS, STAGES> *ring)
{
    static_assert(STAGES > 2, "stages are begun up to two late");
    const int late = window.has_edges ? 2 : 0, next = s - late + STAGES;

    if (s * ROWS >= tile.lines)
        return;
    if (window.has_edges) {
        gpurun_barrier_wait(&ring->copied[s % STAGES], s / STAGES % 2);
        if (edges.are_near)
            conv_put_near_edges<IS_ALIGNED>(job, tile, s, edges, ring);
        else
            conv_put_edges<IS_ALIGNED>(job, tile, s, window, ring);
        gpurun_barrier_arrive(&ring->full[s % STAGES]);
    }
    if (s < late || next * ROWS >= tile.lines)
        return;
    gpurun_barrier_wait(&ring->empty[next % STAGES], (next / STAGES - 1) % 2);
    conv_begin_lines<IS_ALIGNED>(job, tile, next * ROWS, min(tile.lines, (next + 1) * ROWS), ring,
                                 window.has_edges ? ring->copied : ring->full);
}

/* Fills a ring whose first stage has begun. By the whole warp. */
template <bool IS_ALIGNED, typename ELEM, int SPAN, int ROWS, int STAGES>
static __device__ __forceinline__ void
conv_fill_ring(const struct conv_job &job, const struct conv_tile &tile,
               const struct conv_window &window, struct conv_ring<ELEM, SPAN, ROWS, STAGES> *ring)
{
    struct conv_edges edges;

    conv_begin_lines<IS_ALIGNED>(job, tile, ROWS, min(tile.lines, STAGES * ROWS), ring,
                                 window.has_edges ? ring->copied : ring->full);
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
