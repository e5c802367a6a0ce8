/*
 * The baseline. A tile is 64 bytes wide and as many elements high, so that it reads whole lines and writes
 * whole lines, turned by registers of 16 or 32 bytes. In the cache a few tiles beside each other read on along
 * their rows, many below each other write on along theirs. In memory a panel is first gathered, row after row as
 * memory likes to be read, and then turned and written past the cache, while the next panel is gathered.
 */
#include "transpose_cpu.h"
#include "gpurun/host_memory.h"
#include <stdlib.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum {
    LINE = TRANSPOSE_LINE,
    PACK = 16,              /* bytes of a register, or of half of one */
    AHEAD = 2,              /* tiles */
    STRIP = 64,             /* tiles below each other, and */
    CHUNK = 8,              /* beside each other, that are a task */
    STREAM_BYTES = 1 << 20, /* of an answer that goes past the cache, by panels: */
    PANEL_BYTES = 1 << 19,  /* of one; */
    PANEL_ROWS = 128,       /* of one, where rows of the answer begin at lines; else */
    PANEL_RUN = 1 << 10,    /* bytes of its rows once turned, as lines at their ends cost more */
    SWAP_SIDE = 512, /* of a block that changes places with another, of PANEL_RUN bytes at most, */
    SWAP_AHEAD = 4,  /* and rows of it from one that is gathered to one that is fetched */
    RUN_PITCH = PANEL_RUN + LINE, /* so that they do not compete for places in the cache */
    COPY_PIECE = 1 << 20,         /* bytes */

    /* Panels whose lines are single registers: bytes between one that is gathered and one that is fetched; columns. */
    FETCH_AHEAD = 1 << 13,
    CARRY_COLUMNS = 1 << 10,

    TILE_MOST = LINE * LINE, /* bytes: 64 rows of 64 elements of one byte */

    /* of a thread's panels, more than a stack may have: two that take turns, or three of blocks that change places */
    PANEL_ROOM = PANEL_BYTES + PANEL_RUN * LINE,
    SWAP_ROOM = SWAP_SIDE * RUN_PITCH,
    CARRY_ROOM = CARRY_COLUMNS * LINE,
    ROOM = CARRY_ROOM + (2 * PANEL_ROOM > 3 * SWAP_ROOM ? 2 * PANEL_ROOM : 3 * SWAP_ROOM)
};

_Static_assert((int)PANEL_ROOM % (int)LINE == 0 && (int)SWAP_ROOM % (int)LINE == 0,
               "panels begin at lines");

/* --- turning a tile --------------------------------------------------------------------------------- */

/* Which elements of two registers stand side by side, in either half of the result; WIDE_ within each half. */
#define LOW_2       0, 2
#define HIGH_2      1, 3
#define LOW_4       0, 4, 1, 5
#define HIGH_4      2, 6, 3, 7
#define LOW_8       0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8      4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16      0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16     8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define WIDE_LOW_2  0, 4, 2, 6
#define WIDE_HIGH_2 1, 5, 3, 7
#define WIDE_LOW_4  0, 8, 1, 9, 4, 12, 5, 13
#define WIDE_HIGH_4 2, 10, 3, 11, 6, 14, 7, 15
#define WIDE_LOW_8  0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27
#define WIDE_HIGH_8 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31
#define WIDE_LOW_16                                                                                \
    0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 16, 48, 17, 49, 18, 50, 19, 51, 20,    \
        52, 21, 53, 22, 54, 23, 55
#define WIDE_HIGH_16                                                                               \
    8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47, 24, 56, 25, 57, 26, 58, 27, 59,  \
        28, 60, 29, 61, 30, 62, 31, 63

typedef uint64_t pack __attribute__((vector_size(PACK)));

static inline pack load_pack(const char *from)
{
    pack x;

    memcpy(&x, from, sizeof x);
    return x;
}

/* As many registers as half of one has elements are turned by as many rounds as it takes to halve them to one: each
 * interleaves the upper half of the registers with the lower. HALVES: of a register, which are turned alike. */
#define DEFINE_TURN(name, attributes, elem, WIDTH, HALVES, LOAD, LOW, HIGH)                        \
    attributes static void name(const char *in, size_t pitch, char *out, size_t pitch_out)         \
    {                                                                                              \
        typedef elem packs __attribute__((vector_size(PACK * HALVES)));                            \
        typedef packs packs_anywhere __attribute__((aligned(1), may_alias));                       \
        enum { ACROSS = LINE / PACK, ALL = ACROSS * ACROSS / HALVES };                             \
        packs x[WIDTH], y[WIDTH];                                                                  \
                                                                                                   \
        for (size_t at = 0; at < ALL; at++) {                                                      \
            const size_t row = at / ACROSS * WIDTH * HALVES, place = at % ACROSS;                  \
                                                                                                   \
            for (size_t k = 0; k < WIDTH; k++)                                                     \
                x[k] = (packs)LOAD(in + (row + k) * pitch + place * PACK, WIDTH * pitch);          \
            for (size_t round = 1; round < WIDTH; round *= 2) {                                    \
                for (size_t k = 0; k < WIDTH / 2; k++) {                                           \
                    y[2 * k] = __builtin_shufflevector(x[k], x[k + WIDTH / 2], LOW);               \
                    y[2 * k + 1] = __builtin_shufflevector(x[k], x[k + WIDTH / 2], HIGH);          \
                }                                                                                  \
                memcpy(x, y, sizeof(x));                                                           \
            }                                                                                      \
            for (size_t k = 0; k < WIDTH; k++)                                                     \
                *(packs_anywhere *)(void *)(out + (place * WIDTH + k) * pitch_out +                \
                                            row * sizeof(elem)) = x[k];                            \
        }                                                                                          \
    }

#define LOAD_ONE(from, below) load_pack(from)

DEFINE_TURN(turn_1, , uint8_t, 16, 1, LOAD_ONE, LOW_16, HIGH_16)
DEFINE_TURN(turn_2, , uint16_t, 8, 1, LOAD_ONE, LOW_8, HIGH_8)
DEFINE_TURN(turn_4, , uint32_t, 4, 1, LOAD_ONE, LOW_4, HIGH_4)
DEFINE_TURN(turn_8, , uint64_t, 2, 1, LOAD_ONE, LOW_2, HIGH_2)

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))

/* The lower half from `from` on, the upper from `below` bytes further on. */
#define LOAD_TWO(from, below)                                                                      \
    _mm256_inserti128_si256(_mm256_castsi128_si256((__m128i)load_pack(from)),                      \
                            (__m128i)load_pack((from) + (below)), 1)

DEFINE_TURN(turn_1_avx2, AVX2, uint8_t, 16, 2, LOAD_TWO, WIDE_LOW_16, WIDE_HIGH_16)
DEFINE_TURN(turn_2_avx2, AVX2, uint16_t, 8, 2, LOAD_TWO, WIDE_LOW_8, WIDE_HIGH_8)
DEFINE_TURN(turn_4_avx2, AVX2, uint32_t, 4, 2, LOAD_TWO, WIDE_LOW_4, WIDE_HIGH_4)
DEFINE_TURN(turn_8_avx2, AVX2, uint64_t, 2, 2, LOAD_TWO, WIDE_LOW_2, WIDE_HIGH_2)
#endif

/* --- element by element ------------------------------------------------------------------------------- */

typedef void move_block(const struct transpose_block *b);

#define DEFINE_PLAIN(size)                                                                         \
    static void plain_##size(const struct transpose_block *b)                                      \
    {                                                                                              \
        for (int64_t k = 0; k < b->cols; k++)                                                      \
            for (int64_t i = 0; i < b->rows; i++)                                                  \
                memcpy(b->out + (size_t)k * b->pitch_out + (size_t)i * size,                       \
                       b->in + (size_t)i * b->pitch_in + (size_t)k * size, size);                  \
    }

DEFINE_PLAIN(1)
DEFINE_PLAIN(2)
DEFINE_PLAIN(4)
DEFINE_PLAIN(8)

/* What is done with elements of a size. */
struct mover {
    int64_t side; /* of a tile, in elements */
    size_t size;
    transpose_turn *turn;
    transpose_put *put;      /* of panels below each other */
    transpose_put *put_runs; /* of blocks by themselves: long writes */
    move_block *plain;       /* what is no whole tile */
    bool by_lines;           /* a line is one register */
};

/* --- from one tensor to another ------------------------------------------------------------------------ */

static struct transpose_block part_of(const struct mover *m, const struct transpose_block *b,
                                      int64_t row, int64_t col)
{
    struct transpose_block part = *b;

    part.in += (size_t)row * b->pitch_in + (size_t)col * m->size;
    part.out += (size_t)col * b->pitch_out + (size_t)row * m->size;
    part.rows -= row;
    part.cols -= col;
    return part;
}

/* A tile or what there is of it, turned into rows of LINE bytes. */
static void take_tile(const struct mover *m, const struct transpose_block *b, char *tile)
{
    struct transpose_block to = *b;

    to.out = tile;
    to.pitch_out = LINE;
    if (b->rows == m->side && b->cols == m->side)
        m->turn(b->in, b->pitch_in, tile, LINE);
    else
        m->plain(&to);
}

/* The turned tile to where block `b` goes. */
static void put_tile(const struct mover *m, const char *tile, const struct transpose_block *b,
                     size_t pitch)
{
    const size_t bytes = (size_t)b->rows * m->size;

    for (int64_t k = 0; k < b->cols; k++) {
        char *to = b->out + (size_t)k * pitch;

        if (bytes == LINE) /* of a size that the compiler knows */
            memcpy(to, tile + k * LINE, LINE);
        else
            memcpy(to, tile + k * LINE, bytes);
    }
}

/* Asks for the lines of the tile AHEAD tiles below: strides this long no hardware foresees. */
static void fetch_tile(const struct mover *m, const struct transpose_block *at)
{
    const char *line = at->in + (size_t)(AHEAD * m->side) * at->pitch_in;

    if (at->rows < (AHEAD + 1) * m->side)
        return;
    for (int64_t k = 0; k < m->side; k++, line += at->pitch_in)
        __builtin_prefetch(line);
}

/* Rows and columns that whole tiles of the block cover. */
static int64_t whole_of(const struct mover *m, int64_t elems)
{
    return elems - elems % m->side;
}

/* What is right of them and below, element by element. */
static void move_rest(const struct mover *m, const struct transpose_block *b)
{
    struct transpose_block right = part_of(m, b, 0, whole_of(m, b->cols)),
                           below = part_of(m, b, whole_of(m, b->rows), 0);

    right.rows = whole_of(m, b->rows);
    m->plain(&right);
    m->plain(&below);
}

static void move_strip(const struct mover *m, const struct transpose_block *b)
{
    const int64_t rows = whole_of(m, b->rows), cols = whole_of(m, b->cols);
    _Alignas(LINE) char tile[TILE_MOST];

    for (int64_t row = 0; row < rows; row += m->side)
        for (int64_t col = 0; col < cols; col += m->side) {
            struct transpose_block at = part_of(m, b, row, col);

            fetch_tile(m, &at);
            at.rows = at.cols = m->side;
            take_tile(m, &at, tile);
            put_tile(m, tile, &at, b->pitch_out);
        }
    move_rest(m, b);
}

/* --- past the cache ------------------------------------------------------------------------------------ */

/* Writes rows that stand RUN_PITCH apart, their whole lines past the cache where the machine can. A line is gathered
 * for each: memory is read and written at the same time. */
typedef void stream_rows(char *to, size_t pitch, const char *from, size_t bytes, int64_t rows,
                         struct transpose_gather *next);

#define DEFINE_STREAM_ROWS(name, attributes, STORE_LINE)                                           \
    attributes static void name(char *to, size_t pitch, const char *from, size_t bytes,            \
                                int64_t rows, struct transpose_gather *next)                       \
    {                                                                                              \
        struct transpose_gather gather =                                                           \
            *next; /* apart from what is written: it stays in registers */                         \
                                                                                                   \
        for (int64_t k = 0; k < rows; k++, to += pitch, from += RUN_PITCH) {                       \
            const size_t before = (LINE - (uintptr_t)to % LINE) % LINE,                            \
                         first = before < bytes ? before : bytes;                                  \
            const size_t done = first + (bytes - first) / LINE * LINE;                             \
                                                                                                   \
            memcpy(to, from, first);                                                               \
            for (size_t at = first; at < done; at += LINE) {                                       \
                transpose_gather_line(&gather);                                                    \
                STORE_LINE(to + at, from + at);                                                    \
            }                                                                                      \
            memcpy(to + done, from + done, bytes - done);                                          \
            transpose_gather_line(&gather);                                                        \
        }                                                                                          \
        *next = gather;                                                                            \
    }

#ifdef __x86_64__
static inline void store_line(char *to, const char *from)
{
    for (size_t i = 0; i < LINE / sizeof(__m128i); i++)
        _mm_stream_si128((__m128i *)(void *)to + i,
                         _mm_loadu_si128((const __m128i *)(const void *)from + i));
}

AVX2 static inline void store_line_avx2(char *to, const char *from)
{
    for (size_t i = 0; i < LINE / sizeof(__m256i); i++)
        _mm256_stream_si256((__m256i *)(void *)to + i,
                            _mm256_loadu_si256((const __m256i *)(const void *)from + i));
}

DEFINE_STREAM_ROWS(stream_rows_any, , store_line)
DEFINE_STREAM_ROWS(stream_rows_avx2, AVX2, store_line_avx2)
#else
#define STORE_LINE(to, from) memcpy(to, from, LINE)
DEFINE_STREAM_ROWS(stream_rows_any, , STORE_LINE)
#endif

static size_t rounded_up(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* What is gathered ends with whole tiles, whose rows are further apart than they are long: rows of some lengths would
 * compete for places in the cache. */
static size_t panel_pitch(const struct mover *m, const struct transpose_block *b)
{
    return rounded_up((size_t)b->cols * m->size) + LINE;
}

static struct transpose_gather gather_of(const struct mover *m, const struct transpose_block *b,
                                         char *panel, size_t rows_ahead)
{
    return (struct transpose_gather){.from = b->in,
                                     .to = panel,
                                     .pitch_from = b->pitch_in,
                                     .pitch_to = panel_pitch(m, b),
                                     .bytes = (size_t)b->cols * m->size,
                                     .ahead = rows_ahead * b->pitch_in,
                                     .rows = b->rows};
}

static void gather_rest(struct transpose_gather *g)
{
    while (g->rows > 0)
        transpose_gather_line(g);
}

static void put_by(stream_rows *stream, const struct transpose_panel *p, size_t size,
                   transpose_turn *turn, struct transpose_gather *next)
{
    const struct transpose_block *b = &p->block;
    const int64_t side = LINE / (int64_t)size;
    _Alignas(LINE) char turned[LINE * RUN_PITCH];

    for (int64_t col = 0; col < b->cols; col += side) {
        for (int64_t row = 0; row < b->rows; row += side)
            turn(p->from + (size_t)row * p->pitch + (size_t)col * size, p->pitch,
                 turned + (size_t)row * size, RUN_PITCH);
        stream(b->out + (size_t)col * b->pitch_out, b->pitch_out, turned, (size_t)b->rows * size,
               b->cols - col < side ? b->cols - col : side, next);
    }
    gather_rest(next);
}

static void put_any(const struct transpose_panel *p, size_t size, transpose_turn *turn,
                    struct transpose_gather *next)
{
    put_by(stream_rows_any, p, size, turn, next);
}

#ifdef __x86_64__
static void put_avx2(const struct transpose_panel *p, size_t size, transpose_turn *turn,
                     struct transpose_gather *next)
{
    put_by(stream_rows_avx2, p, size, turn, next);
}
#endif

/* --- by which instructions ------------------------------------------------------------------------------- */

enum transpose_set transpose_best_set(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi"))
        return TRANSPOSE_AVX512;
    if (__builtin_cpu_supports("avx2"))
        return TRANSPOSE_AVX2;
#endif
    return TRANSPOSE_ANY;
}

static struct mover mover_of(const struct gpurun_ctx *ctx, enum transpose_set set)
{
    static move_block *const plains[] = {
        [1] = plain_1, [2] = plain_2, [4] = plain_4, [8] = plain_8};
    static transpose_turn *const turns[][9] = {
        [TRANSPOSE_ANY] = {[1] = turn_1, [2] = turn_2, [4] = turn_4, [8] = turn_8},
#ifdef __x86_64__
        [TRANSPOSE_AVX2] =
            {[1] = turn_1_avx2, [2] = turn_2_avx2, [4] = turn_4_avx2, [8] = turn_8_avx2},
        [TRANSPOSE_AVX512] = {[1] = transpose_turn_1_avx512,
                              [2] = transpose_turn_2_avx512,
                              [4] = transpose_turn_4_avx512,
                              [8] = transpose_turn_8_avx512},
#endif
    };
    static transpose_put *const puts[] = {
        [TRANSPOSE_ANY] = put_any,
#ifdef __x86_64__
        [TRANSPOSE_AVX2] = put_avx2,
        [TRANSPOSE_AVX512] = transpose_put_avx512,
#endif
    };
    static transpose_put *const runs[] = {
        [TRANSPOSE_ANY] = put_any,
#ifdef __x86_64__
        [TRANSPOSE_AVX2] = put_avx2,
        [TRANSPOSE_AVX512] = put_avx2,
#endif
    };
    const size_t size = transpose_elem_bytes(ctx);

    return (struct mover){.side = LINE / (int64_t)size,
                          .size = size,
                          .turn = turns[set][size],
                          .put = puts[set],
                          .put_runs = runs[set],
                          .plain = plains[size],
                          .by_lines = set == TRANSPOSE_AVX512};
}

/* --- all of it ------------------------------------------------------------------------------------------- */

/* A matrix is cut into chunks: panels, or STRIP tiles by CHUNK tiles. */
struct cut {
    bool by_panels;
    int64_t high, wide; /* elements of a chunk */
    int64_t down, each; /* chunks below each other, chunks of a matrix */
    size_t rows_ahead;  /* from a line that is gathered to one that is fetched */
};

static struct cut cut_of(const struct gpurun_ctx *ctx, const struct mover *m)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    const struct transpose_state *s = transpose_state_of(ctx);
    struct cut cut = {.by_panels = s->out->bytes >= STREAM_BYTES,
                      .high = STRIP * m->side,
                      .wide = CHUNK * m->side,
                      .rows_ahead = 1};

    if (cut.by_panels && m->by_lines) {
        const int64_t bytes = m->size < 4 ? 1 << 10 : 1 << 12;

        cut.high = m->size < 4 ? 128 : 64;
        cut.wide = bytes / (int64_t)m->size;
        cut.rows_ahead = FETCH_AHEAD / (size_t)bytes;
    } else if (cut.by_panels) {
        const bool at_lines =
            (size_t)o->rows * m->size % LINE == 0 && (uintptr_t)s->out->host % LINE == 0;

        cut.high = at_lines ? PANEL_ROWS : PANEL_RUN / (int64_t)m->size;
        cut.wide = PANEL_BYTES / (int64_t)m->size / cut.high;
    }
    cut.down = (o->rows + cut.high - 1) / cut.high;
    cut.each = cut.down * ((o->cols + cut.wide - 1) / cut.wide);
    return cut;
}

static struct transpose_block chunk_at(const struct gpurun_ctx *ctx, const struct mover *m,
                                       const struct cut *cut, int64_t n)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    const struct transpose_state *s = transpose_state_of(ctx);
    const size_t matrix = (size_t)(n / cut->each * o->rows * o->cols) * m->size;
    const struct transpose_block all = {.in = (const char *)s->in->host + matrix,
                                        .out = (char *)s->out->host + matrix,
                                        .rows = o->rows,
                                        .cols = o->cols,
                                        .pitch_in = (size_t)o->cols * m->size,
                                        .pitch_out = (size_t)o->rows * m->size};
    struct transpose_block b =
        part_of(m, &all, n % cut->down * cut->high, n % cut->each / cut->down * cut->wide);

    b.rows = b.rows < cut->high ? b.rows : cut->high;
    b.cols = b.cols < cut->wide ? b.cols : cut->wide;
    return b;
}

/* Room for the panels of so many threads, ROOM bytes each, for the caller to free. */
static enum gpurun_status get_rooms(struct gpurun_ctx *ctx, int64_t threads, char **rooms)
{
    *rooms = aligned_alloc(LINE, (size_t)threads * ROOM);
    if (*rooms)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_NO_MEMORY, "threads",
                       "no host memory for %d bytes for each of %lld threads", ROOM,
                       (long long)threads);
}

/* Panels `begin` to `end`, by one thread. */
static void move_panels(const struct gpurun_ctx *ctx, const struct mover *m, const struct cut *cut,
                        int64_t begin, int64_t end, char *room)
{
    struct transpose_panel p = {.carry = room}, next = p;
    struct transpose_gather gather = {0};

    room += CARRY_ROOM;
    for (int64_t n = begin; n <= end; n++, p = next) {
        char *const to = room + n % 2 * PANEL_ROOM;

        next.block = n < end ? chunk_at(ctx, m, cut, n) : (struct transpose_block){0};
        next.from = to;
        next.pitch = panel_pitch(m, &next.block);
        next.is_top = n == begin || n % cut->down == 0;
        next.is_bottom = n + 1 == end || (n + 1) % cut->down == 0;
        gather = gather_of(m, &next.block, to, cut->rows_ahead);
        m->put(&p, m->size, m->turn, &gather);
    }
    gpurun_end_past_caches();
}

static enum gpurun_status move_all(struct gpurun_ctx *ctx, const struct mover *m)
{
    const struct cut cut = cut_of(ctx, m);
    const int64_t chunks = transpose_options_of(ctx)->batch * cut.each;
    const int64_t parts = cut.by_panels && chunks > ctx->threads ? ctx->threads : chunks;
    char *rooms = NULL;

    if (cut.by_panels)
        GPURUN_TRY(get_rooms(ctx, parts, &rooms));
#pragma omp parallel for num_threads(ctx->threads) schedule(static) if (chunks > 1)
    for (int64_t n = 0; n < parts; n++) {
        if (cut.by_panels) {
            move_panels(ctx, m, &cut, chunks * n / parts, chunks * (n + 1) / parts,
                        rooms + n * ROOM);
        } else {
            const struct transpose_block b = chunk_at(ctx, m, &cut, n);

            move_strip(m, &b);
        }
    }
    free(rooms);
    return GPURUN_OK;
}

/* A row becomes a column: the same bytes. */
static void copy_all(const struct gpurun_ctx *ctx)
{
    const struct transpose_state *s = transpose_state_of(ctx);
    const int64_t bytes = (int64_t)s->in->bytes;

#pragma omp parallel for num_threads(ctx->threads) schedule(static) if (bytes > COPY_PIECE)
    for (int64_t at = 0; at < bytes; at += COPY_PIECE)
        memcpy((char *)s->out->host + at, (const char *)s->in->host + at,
               (size_t)(bytes - at < COPY_PIECE ? bytes - at : COPY_PIECE));
}

/* --- in place -------------------------------------------------------------------------------------------- */

/* The tiles at (row, col) and (col, row) change places, each turned; they may be the same one. */
static void swap_tiles(const struct mover *m, const struct transpose_block *matrix, int64_t row,
                       int64_t col)
{
    _Alignas(LINE) char upper_tile[TILE_MOST], lower_tile[TILE_MOST];
    struct transpose_block upper = part_of(m, matrix, row, col),
                           lower = part_of(m, matrix, col, row);

    upper.rows = lower.cols = upper.rows < m->side ? upper.rows : m->side;
    upper.cols = lower.rows = upper.cols < m->side ? upper.cols : m->side;
    take_tile(m, &upper, upper_tile);
    take_tile(m, &lower, lower_tile);
    put_tile(m, upper_tile, &upper, upper.pitch_in);
    put_tile(m, lower_tile, &lower, lower.pitch_in);
}

/* Mirrored blocks, which are one and the same on the diagonal. */
struct pair {
    struct transpose_panel upper, lower;
    bool is_one;
};

static struct transpose_panel panel_at(const struct mover *m, const struct transpose_block *matrix,
                                       int64_t row, int64_t col, int64_t side)
{
    struct transpose_panel p = {.block = part_of(m, matrix, row, col)};

    p.block.rows = p.block.rows < side ? p.block.rows : side;
    p.block.cols = p.block.cols < side ? p.block.cols : side;
    p.pitch = panel_pitch(m, &p.block);
    return p;
}

/* The blocks at (row, col) and (col, row), or right of the matrix none. */
static struct pair pair_at(const struct mover *m, const struct transpose_block *matrix, int64_t row,
                           int64_t col, int64_t side)
{
    if (col >= matrix->cols)
        return (struct pair){.is_one = false};
    return (struct pair){.upper = panel_at(m, matrix, row, col, side),
                         .lower = panel_at(m, matrix, col, row, side),
                         .is_one = row == col};
}

/* The blocks of a strip, from the diagonal on, change places. Both of a pair are gathered before either is written: the
 * upper one of the next pair while that of this one is written, the lower one then to where the upper one was. */
static void swap_blocks(const struct mover *m, const struct transpose_block *matrix, int64_t row,
                        int64_t side, char *room)
{
    char *first = room, *second = first + SWAP_ROOM, *spare = second + SWAP_ROOM;
    struct pair pair = pair_at(m, matrix, row, row, side);
    struct transpose_gather gather = gather_of(m, &pair.upper.block, first, SWAP_AHEAD);

    gather_rest(&gather);
    for (int64_t col = row + side; pair.upper.block.rows > 0; col += side) {
        struct pair next = pair_at(m, matrix, row, col, side);
        char *const written = second;

        pair.upper.from = first;
        pair.lower.from = second;
        gather = gather_of(m, &next.upper.block, spare, SWAP_AHEAD);
        m->put_runs(&pair.upper, m->size, m->turn, &gather);
        gather = gather_of(m, &next.lower.block, first, SWAP_AHEAD);
        if (!pair.is_one)
            m->put_runs(&pair.lower, m->size, m->turn, &gather);
        gather_rest(&gather);
        second = first;
        first = spare;
        spare = written;
        pair = next;
    }
    gpurun_end_past_caches();
}

/* The same for tiles, in the cache. */
static void swap_strip(const struct mover *m, const struct transpose_block *matrix, int64_t row)
{
    for (int64_t col = row; col < matrix->cols; col += m->side)
        swap_tiles(m, matrix, row, col);
}

/* Strips `at`, at + step and so on, by one thread: long rows of tiles and short ones take turns, so that threads have the
 * same to do. */
static void swap_strips(const struct gpurun_ctx *ctx, const struct mover *m, int64_t side,
                        int64_t at, int64_t step, char *room)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    const int64_t n = o->rows, strips = (n + side - 1) / side;
    const size_t pitch = (size_t)n * m->size;

    for (; at < o->batch * strips; at += step) {
        char *start =
            (char *)transpose_state_of(ctx)->in->host + (size_t)(at / strips) * (size_t)n * pitch;
        const struct transpose_block matrix = {start, start, n, n, pitch, pitch};

        if (room)
            swap_blocks(m, &matrix, at % strips * side, side, room);
        else
            swap_strip(m, &matrix, at % strips * side);
    }
}

static enum gpurun_status swap_all(struct gpurun_ctx *ctx, const struct mover *m)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    const bool by_blocks = transpose_state_of(ctx)->in->bytes >= STREAM_BYTES;
    const int64_t run = PANEL_RUN / (int64_t)m->size, most = run < SWAP_SIDE ? run : SWAP_SIDE;
    const int64_t side = by_blocks ? most : m->side;
    const int64_t strips = o->batch * ((o->rows + side - 1) / side);
    const int64_t parts = strips < ctx->threads ? strips : ctx->threads;
    char *rooms = NULL;

    if (by_blocks)
        GPURUN_TRY(get_rooms(ctx, parts, &rooms));
#pragma omp parallel for num_threads(parts) schedule(static, 1) if (parts > 1)
    for (int64_t i = 0; i < parts; i++)
        swap_strips(ctx, m, side, i, parts, rooms ? rooms + i * ROOM : NULL);
    free(rooms);
    return GPURUN_OK;
}

enum gpurun_status transpose_run_cpu_by(struct gpurun_ctx *ctx, enum transpose_set set)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    const struct mover m = mover_of(ctx, set);

    transpose_state_of(ctx)->by_value = false;
    if (transpose_state_of(ctx)->in->elems == 0)
        return GPURUN_OK;
    if (o->inplace)
        return swap_all(ctx, &m);
    if (o->rows > 1 && o->cols > 1)
        return move_all(ctx, &m);
    copy_all(ctx);
    return GPURUN_OK;
}

enum gpurun_status transpose_run_cpu(struct gpurun_ctx *ctx)
{
    return transpose_run_cpu_by(ctx, transpose_best_set());
}
