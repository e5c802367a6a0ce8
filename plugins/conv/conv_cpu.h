/*
 * Between the files of the baseline: how the rows of a mask are added up, for each kind of sum.
 */
#ifndef CONV_CPU_H
#define CONV_CPU_H

#include "conv_border.h"
#include "conv_mask.h"
#include "gpurun/plugin.h"
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum {
    CONV_CPU_SLACK = 256, /* elements that vectors may read behind a line */
    REACH_MOST =
        (CONV_SIZE_MAX - 1) * 4, /* elements from a mask's first to its last, of 4 channels */
    CONV_CPU_LINE = 64,          /* bytes, of memory */
    CONV_CPU_RUN = 512,          /* bytes of results that go to memory at a time */
};

/* The instructions that are used, each with those before it. */
enum conv_cpu_level { CONV_CPU_PLAIN, CONV_CPU_AVX2, CONV_CPU_AVX512 };

/* The most that the processor has. */
enum conv_cpu_level conv_cpu_level(void);

/* conv_run_cpu with some of them. */
enum gpurun_status conv_run_cpu_at(struct gpurun_ctx *ctx, enum conv_cpu_level level);

/* Some columns of a band, row by row from the top. */
struct conv_cpu_strip {
    int64_t at, elems; /* of a row of the answer: the first, and how many */
    char *room;        /* for lines that are copied */
    /* Those under the mask, top to bottom, then the one that comes next. */
    const char *lines[CONV_SIZE_MAX + 1];
    const char *next_in[2]; /* where the rows of the image stand that are got next */
    char *next_out;         /* where the next row's results go; of a band's last row, its own */
    bool is_first;          /* of its band */
    void *state;            /* what is kept from row to row, aligned for vectors */
};

struct conv_cpu {
    const struct conv_mask *mask;
    struct conv_tail tail;
    float scale, bias;
    int64_t channels;
    bool is_unsigned; /* no weight is negative, so sums of 16 bits are taken without a sign */
    bool is_narrow;   /* nor is there a factor, and with what is added they fit 16 bits */
    enum conv_cpu_level level;
    bool in_place;      /* rows are read where they stand, but for their ends */
    int64_t strip_most; /* elements of a row that are taken at a time */
    int64_t band;       /* rows that a thread takes at a time, about */
    size_t state_bytes; /* of what it keeps from row to row */
    /* Whole lines of the answer past the cache; NULL: results go by way of it. */
    void (*stream)(char *to, const char *from, int64_t bytes);
    /* The lines under the mask into a row of the answer. */
    void (*down)(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip, char *out);
};

/* Has `bytes` of the next row, from byte `at` on, brought to the cache: rows of a strip lie too far apart for the
 * processor to foresee. */
static inline void conv_cpu_fetch(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                                  int64_t at, int64_t bytes)
{
    const char *in = strip->next_in[0] + at, *out = strip->next_out + at;

    for (int64_t i = 0; i < bytes; i += 64) {
        __builtin_prefetch(in + i);
        if (!cpu->stream)
            __builtin_prefetch(out + i, 1);
    }
}

/* Results of a row that are put together before they go to memory, which likes to get them in longer runs than a
 * chunk. Ahead of them stand the last ones of the run before, whose last line may be the first of this one. */
struct conv_cpu_run {
    _Alignas(CONV_CPU_LINE) char results[CONV_CPU_LINE + CONV_CPU_RUN];
};

/* Bytes `at`, a whole number of runs, to `end` of a strip's row go where they belong. is_last: of the row. */
void conv_cpu_put_run(const struct conv_cpu *cpu, struct conv_cpu_run *run, char *row, int64_t at,
                      int64_t end, bool is_last);

/* The same for results that come by chunks: those from `at` on are in the run at conv_cpu_place. */
static inline char *conv_cpu_place(struct conv_cpu_run *run, int64_t at)
{
    return run->results + CONV_CPU_LINE + at % CONV_CPU_RUN;
}

static inline void conv_cpu_put_chunk(const struct conv_cpu *cpu, struct conv_cpu_run *run,
                                      char *row, int64_t at, int64_t chunk, int64_t row_bytes)
{
    const int64_t end = at + chunk;

    if (end >= row_bytes)
        conv_cpu_put_run(cpu, run, row, at - at % CONV_CPU_RUN, row_bytes, true);
    else if (end % CONV_CPU_RUN == 0)
        conv_cpu_put_run(cpu, run, row, end - CONV_CPU_RUN, end, false);
}

/* Results go past the cache. */
void conv_cpu_use_stream(struct conv_cpu *cpu);

void conv_cpu_use_int16(struct conv_cpu *cpu, bool two_steps);
void conv_cpu_use_int32(struct conv_cpu *cpu, bool two_steps);
void conv_cpu_use_float(struct conv_cpu *cpu, bool two_steps);
void conv_cpu_use_float_avx2(struct conv_cpu *cpu, bool two_steps);
void conv_cpu_use_float_avx512(struct conv_cpu *cpu, bool two_steps);

/* False, and nothing done: not for this mask, or not on this machine. */
bool conv_cpu_use_bytes(struct conv_cpu *cpu);
bool conv_cpu_use_box(struct conv_cpu *cpu);
bool conv_cpu_use_symmetric(struct conv_cpu *cpu);

#endif
