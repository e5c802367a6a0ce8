/*
 * The baseline. A tile is 64 bytes wide and as many elements high, so that it reads whole lines and writes
 * whole lines. It is turned by 16-byte registers into a buffer, and moved from there. A few tiles beside each
 * other read on along their rows, many below each other write on along theirs.
 */
#include "transpose.h"
#include <string.h>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

enum {
    LINE = 64,                        /* bytes of a tile's row, before and after */
    PACK = 16,                        /* bytes of a register */
    AHEAD = 2,                        /* tiles */
    STRIP = 64,                       /* tiles below each other, and */
    CHUNK = 8,                        /* beside each other, that are a task */
    STREAM_BYTES = 1 << 20,           /* of an answer that goes past the cache, by panels: */
    PANEL_BYTES = 1 << 10,            /* of a row of one once it is turned, and */
    PANEL_ROWS = 128,                 /* so many of them, apart by */
    PANEL_PITCH = PANEL_BYTES + LINE, /* so that they do not compete for places in the cache */
    COPY_PIECE = 1 << 20,             /* bytes */
    TILE_MOST = LINE * LINE,          /* bytes: 64 rows of 64 elements of one byte */
};

/* --- turning a tile --------------------------------------------------------------------------------- */

/* Reads a tile whose rows are `pitch` bytes apart, and leaves it turned, in rows `pitch_out` bytes apart. */
typedef void turn_tile(const char *in, size_t pitch, char *out, size_t pitch_out);

#define LOW_2   0, 2
#define HIGH_2  1, 3
#define LOW_4   0, 4, 1, 5
#define HIGH_4  2, 6, 3, 7
#define LOW_8   0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8  4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

/* As many registers as one has elements are turned by as many rounds as it takes to halve them to one: each
 * interleaves the upper half of the registers with the lower. */
#define DEFINE_TURN(elem, WIDTH)                                                                   \
    typedef elem elem##_pack __attribute__((vector_size(PACK)));                                   \
                                                                                                   \
    static void turn_##elem(const char *in, size_t pitch, char *out, size_t pitch_out)             \
    {                                                                                              \
        elem##_pack x[WIDTH], y[WIDTH];                                                            \
                                                                                                   \
        for (size_t at = 0; at < (LINE / PACK) * (LINE / PACK); at++) {                            \
            const size_t row = at / (LINE / PACK) * WIDTH, place = at % (LINE / PACK);             \
                                                                                                   \
            for (size_t k = 0; k < WIDTH; k++)                                                     \
                memcpy(&x[k], in + (row + k) * pitch + place * PACK, PACK);                        \
            for (size_t round = 1; round < WIDTH; round *= 2) {                                    \
                for (size_t k = 0; k < WIDTH / 2; k++) {                                           \
                    y[2 * k] = __builtin_shufflevector(x[k], x[k + WIDTH / 2], LOW_##WIDTH);       \
                    y[2 * k + 1] = __builtin_shufflevector(x[k], x[k + WIDTH / 2], HIGH_##WIDTH);  \
                }                                                                                  \
                memcpy(x, y, sizeof(x));                                                           \
            }                                                                                      \
            for (size_t k = 0; k < WIDTH; k++)                                                     \
                memcpy(out + (place * WIDTH + k) * pitch_out + row * sizeof(elem), &x[k], PACK);   \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void plain_##elem(const struct block *b)                                                \
    {                                                                                              \
        for (int64_t k = 0; k < b->cols; k++)                                                      \
            for (int64_t i = 0; i < b->rows; i++)                                                  \
                memcpy(b->out + (size_t)k * b->pitch_out + (size_t)i * sizeof(elem),               \
                       b->in + (size_t)i * b->pitch_in + (size_t)k * sizeof(elem), sizeof(elem));  \
    }

/* Part of a matrix, and where it goes; pitches in bytes. */
struct block {
    const char *in;
    char *out;
    int64_t rows, cols;
    size_t pitch_in, pitch_out;
};

typedef void move_block(const struct block *b);

DEFINE_TURN(uint8_t, 16)
DEFINE_TURN(uint16_t, 8)
DEFINE_TURN(uint32_t, 4)
DEFINE_TURN(uint64_t, 2)

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))

typedef uint32_t wide_pack __attribute__((vector_size(2 * PACK)));

/* Four elements from `from` on in the lower half, and from 4 rows below in the upper. */
AVX2 static inline wide_pack load_halves(const char *from, size_t pitch)
{
    uint32_t_pack low, high;

    memcpy(&low, from, PACK);
    memcpy(&high, from + 4 * pitch, PACK);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

#define LOW_HALVES(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH_HALVES(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define LOW_PAIRS(a, b)   __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH_PAIRS(a, b)  __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)

/* Four columns of eight rows. */
AVX2 static inline void turn_eight_rows(const char *in, size_t pitch, char *out, size_t pitch_out)
{
    const wide_pack a = load_halves(in, pitch), b = load_halves(in + pitch, pitch);
    const wide_pack c = load_halves(in + 2 * pitch, pitch), d = load_halves(in + 3 * pitch, pitch);
    const wide_pack ab[2] = {LOW_HALVES(a, b), HIGH_HALVES(a, b)};
    const wide_pack cd[2] = {LOW_HALVES(c, d), HIGH_HALVES(c, d)};

    for (size_t k = 0; k < 2; k++) {
        const wide_pack even = LOW_PAIRS(ab[k], cd[k]), odd = HIGH_PAIRS(ab[k], cd[k]);

        memcpy(out + 2 * k * pitch_out, &even, sizeof even);
        memcpy(out + (2 * k + 1) * pitch_out, &odd, sizeof odd);
    }
}

AVX2 static void turn_uint32_t_avx2(const char *in, size_t pitch, char *out, size_t pitch_out)
{
    for (size_t half = 0; half < 2; half++)
        for (size_t place = 0; place < LINE / PACK; place++)
            turn_eight_rows(in + half * 8 * pitch + place * PACK, pitch,
                            out + place * 4 * pitch_out + half * 2 * PACK, pitch_out);
}
#endif

static turn_tile *turn_of(size_t size)
{
    static turn_tile *const turns[] = {
        [1] = turn_uint8_t, [2] = turn_uint16_t, [4] = turn_uint32_t, [8] = turn_uint64_t};

#ifdef __x86_64__
    if (size == 4 && __builtin_cpu_supports("avx2"))
        return turn_uint32_t_avx2;
#endif
    return turns[size];
}

/* What is done with elements of a size. */
struct mover {
    int64_t side; /* of a tile, in elements */
    size_t size;
    turn_tile *turn;
    move_block *plain; /* what is no whole tile */
};

static struct mover mover_of(const struct gpurun_ctx *ctx)
{
    static move_block *const plains[] = {
        [1] = plain_uint8_t, [2] = plain_uint16_t, [4] = plain_uint32_t, [8] = plain_uint64_t};
    const size_t size = transpose_elem_bytes(ctx);

    return (struct mover){LINE / (int64_t)size, size, turn_of(size), plains[size]};
}

/* --- from one tensor to another ------------------------------------------------------------------------ */

static struct block part_of(const struct mover *m, const struct block *b, int64_t row, int64_t col)
{
    struct block part = *b;

    part.in += (size_t)row * b->pitch_in + (size_t)col * m->size;
    part.out += (size_t)col * b->pitch_out + (size_t)row * m->size;
    part.rows -= row;
    part.cols -= col;
    return part;
}

/* A tile or what there is of it, turned into rows of LINE bytes. */
static void take_tile(const struct mover *m, const struct block *b, char *tile)
{
    struct block to = *b;

    to.out = tile;
    to.pitch_out = LINE;
    if (b->rows == m->side && b->cols == m->side)
        m->turn(b->in, b->pitch_in, tile, LINE);
    else
        m->plain(&to);
}

/* The turned tile to where block `b` goes. */
static void put_tile(const struct mover *m, const char *tile, const struct block *b, size_t pitch)
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
static void fetch_tile(const struct mover *m, const struct block *at)
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
static void move_rest(const struct mover *m, const struct block *b)
{
    struct block right = part_of(m, b, 0, whole_of(m, b->cols)),
                 below = part_of(m, b, whole_of(m, b->rows), 0);

    right.rows = whole_of(m, b->rows);
    m->plain(&right);
    m->plain(&below);
}

static void move_strip(const struct mover *m, const struct block *b)
{
    const int64_t rows = whole_of(m, b->rows), cols = whole_of(m, b->cols);
    _Alignas(LINE) char tile[TILE_MOST];

    for (int64_t row = 0; row < rows; row += m->side)
        for (int64_t col = 0; col < cols; col += m->side) {
            struct block at = part_of(m, b, row, col);

            fetch_tile(m, &at);
            at.rows = at.cols = m->side;
            take_tile(m, &at, tile);
            put_tile(m, tile, &at, b->pitch_out);
        }
    move_rest(m, b);
}

/* --- past the cache ------------------------------------------------------------------------------------ */

/* Whole lines past the cache where the machine can; `to` begins at one. */
static inline void stream_lines(char *to, const char *from, size_t lines)
{
#ifdef __x86_64__
    for (size_t i = 0; i < lines * (LINE / 16); i++)
        _mm_stream_si128((__m128i *)(void *)to + i,
                         _mm_loadu_si128((const __m128i *)(const void *)from + i));
#else
    memcpy(to, from, lines * LINE);
#endif
}

/* Before another thread reads what stream_lines has written. */
static inline void stream_end(void)
{
#ifdef __x86_64__
    _mm_sfence();
#endif
}

static void stream_row(char *to, const char *from, size_t bytes)
{
    const size_t before = (LINE - (uintptr_t)to % LINE) % LINE,
                 first = before < bytes ? before : bytes;
    const size_t lines = (bytes - first) / LINE, done = first + lines * LINE;

    memcpy(to, from, first);
    stream_lines(to + first, from + first, lines);
    memcpy(to + done, from + done, bytes - done);
}

/* A block of at most PANEL_ROWS columns of PANEL_BYTES. */
static void move_panel(const struct mover *m, const struct block *b)
{
    const int64_t rows = whole_of(m, b->rows), cols = whole_of(m, b->cols);
    _Alignas(LINE) char panel[PANEL_ROWS * PANEL_PITCH];

    for (int64_t row = 0; row < rows; row += m->side)
        for (int64_t col = 0; col < cols; col += m->side)
            m->turn(part_of(m, b, row, col).in, b->pitch_in,
                    panel + (size_t)col * PANEL_PITCH + (size_t)row * m->size, PANEL_PITCH);
    for (int64_t k = 0; k < cols; k++)
        stream_row(b->out + (size_t)k * b->pitch_out, panel + k * PANEL_PITCH,
                   (size_t)rows * m->size);
    stream_end();
    move_rest(m, b);
}

/* --- all of it ------------------------------------------------------------------------------------------- */

/* A matrix is cut into chunks: panels, or STRIP tiles by CHUNK tiles. */
struct cut {
    bool by_panels;
    int64_t high, wide;   /* elements of a chunk */
    int64_t across, each; /* chunks beside each other, chunks of a matrix */
};

static struct cut cut_of(const struct gpurun_ctx *ctx, const struct mover *m)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    struct cut cut = {.by_panels = transpose_state_of(ctx)->out->bytes >= STREAM_BYTES,
                      .high = STRIP * m->side,
                      .wide = CHUNK * m->side};

    if (cut.by_panels) {
        cut.high = PANEL_BYTES / (int64_t)m->size;
        cut.wide = PANEL_ROWS;
    }

    cut.across = (o->cols + cut.wide - 1) / cut.wide;
    cut.each = cut.across * ((o->rows + cut.high - 1) / cut.high);
    return cut;
}

static void move_chunk(const struct gpurun_ctx *ctx, const struct mover *m, const struct cut *cut,
                       int64_t n)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    const struct transpose_state *s = transpose_state_of(ctx);
    const size_t matrix = (size_t)(n / cut->each * o->rows * o->cols) * m->size;
    const struct block all = {.in = (const char *)s->in->host + matrix,
                              .out = (char *)s->out->host + matrix,
                              .rows = o->rows,
                              .cols = o->cols,
                              .pitch_in = (size_t)o->cols * m->size,
                              .pitch_out = (size_t)o->rows * m->size};
    struct block b =
        part_of(m, &all, n % cut->each / cut->across * cut->high, n % cut->across * cut->wide);

    b.rows = b.rows < cut->high ? b.rows : cut->high;
    b.cols = b.cols < cut->wide ? b.cols : cut->wide;
    if (cut->by_panels)
        move_panel(m, &b);
    else
        move_strip(m, &b);
}

static void move_all(const struct gpurun_ctx *ctx)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    const struct mover m = mover_of(ctx);
    const struct cut cut = cut_of(ctx, &m);

#pragma omp parallel for num_threads(ctx->threads) schedule(static) if (o->batch * cut.each > 1)
    for (int64_t n = 0; n < o->batch * cut.each; n++)
        move_chunk(ctx, &m, &cut, n);
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
static void swap_tiles(const struct mover *m, const struct block *matrix, int64_t row, int64_t col)
{
    _Alignas(LINE) char upper_tile[TILE_MOST], lower_tile[TILE_MOST];
    struct block upper = part_of(m, matrix, row, col), lower = part_of(m, matrix, col, row);

    upper.rows = lower.cols = upper.rows < m->side ? upper.rows : m->side;
    upper.cols = lower.rows = upper.cols < m->side ? upper.cols : m->side;
    take_tile(m, &upper, upper_tile);
    take_tile(m, &lower, lower_tile);
    put_tile(m, upper_tile, &upper, upper.pitch_in);
    put_tile(m, lower_tile, &lower, lower.pitch_in);
}

static void swap_all(const struct gpurun_ctx *ctx)
{
    const struct transpose_options *o = transpose_options_of(ctx);
    const struct transpose_state *s = transpose_state_of(ctx);
    const struct mover m = mover_of(ctx);
    const int64_t n = o->rows, strips = (n + m.side - 1) / m.side;
    const size_t pitch = (size_t)n * m.size;

    /* Long rows of tiles and short ones take turns, so that threads have the same to do. */
#pragma omp parallel for num_threads(ctx->threads) schedule(static, 1) if (o->batch * strips > 1)
    for (int64_t at = 0; at < o->batch * strips; at++) {
        char *start = (char *)s->in->host + (size_t)(at / strips) * (size_t)n * pitch;
        const struct block matrix = {start, start, n, n, pitch, pitch};
        const int64_t row = at % strips * m.side;

        for (int64_t col = row; col < n; col += m.side)
            swap_tiles(&m, &matrix, row, col);
    }
}

enum gpurun_status transpose_run_cpu(struct gpurun_ctx *ctx)
{
    const struct transpose_options *o = transpose_options_of(ctx);

    transpose_state_of(ctx)->by_value = false;
    if (transpose_state_of(ctx)->in->elems == 0)
        return GPURUN_OK;
    if (o->inplace)
        swap_all(ctx);
    else if (o->rows == 1 || o->cols == 1)
        copy_all(ctx);
    else
        move_all(ctx);
    return GPURUN_OK;
}
