/*
 * Input generators: the same values on every machine, compiler and thread count, for a given seed.
 * Element i depends on the seed, the tensor's name and i alone (a counter-based hash), so filling is
 * parallel; no libm function whose last bit differs between systems is used.
 *
 *     word(n) = mix(key + (n + 1) * 0x9e3779b97f4a7c15)       modulo 2^64
 *     key     = mix(mix(seed) ^ fnv1a64(tensor name))         mix: the finaliser of splitmix64
 *     scale(w, s) = w * s >> 64                               a number in [0, s)
 *
 * Element i is then, in double and without fused operations where it is not an integer:
 *
 *     uniform       integers: min + scale(word(i), s), s = max - min + 1, up to s = 2^32; min + word(i) for
 *                   s = 2^64; min + (word(2i) * s + scale(word(2i + 1), s) >> 64) between: no value is
 *                   likelier than another by more than 2^-32 of its probability.
 *                   reals: min * (1 - u) + max * u, u = (word(i) >> 11) / 2^53, kept in [min, max)
 *     normal        mean + sd * z, z = (sum of the 12 halves of word(6i) .. word(6i + 5) less its mean)
 *                   / 2^32: exact, bell-shaped, but with no values beyond 6 deviations and fewer than a
 *                   true normal has beyond 3. Integers: rounded to nearest, saturated
 *     ascending     start + i * step, descending start - i * step
 *     few-distinct  integers: lowest + scale(word(i), count) * ((2^bits - 1) / (count - 1)), rounded down;
 *                   reals: scale(word(i), count) / count
 *     zipf          the first v with W(v) > scale(word(i), W(count)), W(v) = sum of 2^56 / u, rounded
 *                   down, for u = 1 .. v
 *     special       w = word(2i); its top bit set: special[scale(2w, specials)], in the order that `gpurun
 *                   describe core` lists them; else uniform in one word, word(2i + 1)
 *     quadratic     r * r + c or r + c * c, where the element is in row r and column c of the last two
 *                   dimensions (one row, where there is one dimension)
 *
 * Integers wrap modulo 2^bits; reals are rounded once to their dtype, to nearest, so that a ramp of half
 * ends in infinities.
 */
#ifndef GPURUN_RUN_GENERATE_H
#define GPURUN_RUN_GENERATE_H

#include "job/why.h"
#include <stdbool.h>

enum {
    GENERATOR_FEW_DEFAULT = 16,
    GENERATOR_ZIPF_DEFAULT = 1000,
    GENERATOR_ZIPF_MAX = 1000000,
};

enum generator_kind {
    /* [min=] [max=]: integers default to the dtype's whole range, inclusive; floats to [0, 1) */
    GENERATOR_UNIFORM,
    /* [mean=] [sd=]: 0 and 1 for floats; integers default to the middle of the dtype's range and a
     * twelfth of it, so that 6 deviations span it */
    GENERATOR_NORMAL,
    /* [start=] [step=]: from 0 by 1; integers wrap */
    GENERATOR_ASCENDING,
    /* [start=] [step=]: start defaults to the element count */
    GENERATOR_DESCENDING,
    /* [value=]: 0 by default */
    GENERATOR_CONSTANT,
    /* [count=]: uniform over count values spread over the dtype's range, for floats over [0, 1) */
    GENERATOR_FEW_DISTINCT,
    /* [count=]: value v in 1 .. count with probability proportional to 1/v */
    GENERATOR_ZIPF,
    /* extremes of the dtype in one half of the elements, uniform values in the other */
    GENERATOR_SPECIAL,
    /* [square=row or column], 0 or 1 in `whole`: which index is squared, row by default */
    GENERATOR_QUADRATIC,
    GENERATOR_COUNT
};

struct generator {
    enum generator_kind kind;
    unsigned given;   /* bit i: parameter i was written, for defaults that depend on the dtype */
    double real[2];   /* parameters in the order of the list above */
    int64_t whole[2]; /* the same where they were written as whole numbers */
    bool is_whole[2];
};

/* Parses "name key=value ...", e.g. "uniform min=0 max=1M". GPURUN_INVALID with the nearest
 * known name. */
enum gpurun_status generator_parse(const char *text, struct generator *out, struct why *why);

/* GPURUN_INVALID when a parameter does not suit the dtype (a range that it cannot hold, min
 * above max). */
enum gpurun_status generator_check(const struct generator *g, enum gpurun_dtype dtype,
                                   struct why *why);

/* Fills the host memory of `t`, with `threads` threads. Cannot fail after generator_check said
 * GPURUN_OK. One call at a time. */
void generator_fill(const struct generator *g, uint64_t seed, const struct gpurun_tensor *t,
                    int threads);

/* Names of all generators with their parameters and one line of help, for `gpurun describe
 * core`. Ends with a NULL name. */
struct generator_help {
    const char *name, *parameters, *help;
};
extern const struct generator_help generator_helps[];

#endif
