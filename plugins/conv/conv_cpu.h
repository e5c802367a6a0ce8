/*
 * Between the files of the baseline: how the rows of a mask are added up, for each kind of sum.
 */
#ifndef CONV_CPU_H
#define CONV_CPU_H

#include "conv_border.h"
#include "conv_mask.h"

enum {
    CONV_CPU_SLACK = 128
}; /* elements that vectors may read behind a line, and write behind its sums */

struct conv_cpu {
    const struct conv_mask *mask;
    struct conv_tail tail;
    float scale, bias;
    int64_t channels, elems; /* elems: of a row of the answer */
    bool is_unsigned; /* no weight is negative, so sums of 16 bits are taken without a sign */
    size_t sum_size;  /* bytes of a sum */
    /* One line along the mask's row, into sums; NULL: the mask goes over lines in one step. */
    void (*along)(const struct conv_cpu *cpu, const char *line, char *sums);
    /* The lines (or their sums) under the mask, top to bottom, into a row of the answer. */
    void (*down)(const struct conv_cpu *cpu, const char *const *rows, char *out);
};

void conv_cpu_use_int16(struct conv_cpu *cpu, bool two_steps);
void conv_cpu_use_int32(struct conv_cpu *cpu, bool two_steps);
void conv_cpu_use_float(struct conv_cpu *cpu, bool two_steps);

#endif
