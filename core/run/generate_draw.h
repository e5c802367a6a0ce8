/*
 * Inside the generators: what one fill needs, and the loops that draw values. Elements are drawn in
 * blocks of 64-bit cells, wide enough for every dtype, and narrowed into place afterwards.
 */
#ifndef GPURUN_RUN_GENERATE_DRAW_H
#define GPURUN_RUN_GENERATE_DRAW_H

#include "run/generate.h"

enum {
    GENERATE_SPECIAL_MAX = 12,
    ZIPF_GUIDE_BITS = 16,
    ZIPF_GUIDES = 1 << ZIPF_GUIDE_BITS,
};

/* Value v + 1 is drawn where weight[v] is the first above a random number. For numbers that
 * start with the bits g, that is from guide[g] to guide[g + 1]: mostly one value, so that little
 * is searched. */
struct zipf {
    uint64_t weight[GENERATOR_ZIPF_MAX]; /* of all values up to this one */
    uint32_t guide[ZIPF_GUIDES + 1];
};

union cell {
    uint64_t whole; /* two's complement for signed dtypes */
    double real;
};

struct fill {
    enum gpurun_dtype dtype;
    bool is_signed;
    uint64_t key;
    uint64_t low, span; /* uniform integers: low + [0, span), where span 0 stands for 2^64 */
    double low_real, high_real; /* uniform reals: [low, high); for normal integers the dtype's */
    double top_real, end_real;  /* the last real below high; from end on it stands for the others */
    uint64_t start, step;       /* of a ramp; step of few-distinct */
    double start_real, step_real; /* of a ramp; mean and deviation of normal */
    uint64_t count;               /* few-distinct, zipf, special */
    const struct zipf *zipf;
    uint64_t rows, columns; /* the tensor's last two dimensions */
    bool square_column;     /* quadratic */
    uint64_t special[GENERATE_SPECIAL_MAX];
    double special_real[GENERATE_SPECIAL_MAX];
};

/* By real dtype. */
struct real_format {
    double least, most; /* the least value above 0, the largest that is finite */
    int64_t whole;      /* whole numbers up to here are held exactly */
};
extern const struct real_format generate_real_formats[GPURUN_DTYPE_COUNT];

typedef void draw_fn(const struct fill *f, uint64_t first, int n, union cell *restrict out);

/* One row per enum generator_kind: for integers, for reals. */
extern draw_fn *const generate_draws[][2];

/* Fills the first `count` rows and the guide. */
void generate_zipf(struct zipf *zipf, uint64_t count);

/* The key of a tensor's random words. */
uint64_t generate_key(uint64_t seed, const char *tensor);

#endif
