/*
 * Between the files of the baseline: how the rows of a mask are added up, for each kind of sum.
 */
#ifndef CONV_CPU_H
#define CONV_CPU_H

#include "conv_border.h"
#include "conv_mask.h"

enum {
    CONV_CPU_SLACK = 256, /* elements that vectors may read behind a line */
    REACH_MOST =
        (CONV_SIZE_MAX - 1) * 4 /* elements from a mask's first to its last, of 4 channels */
};

struct conv_cpu {
    const struct conv_mask *mask;
    struct conv_tail tail;
    float scale, bias;
    int64_t channels, elems; /* elems: of a row of the answer */
    bool is_unsigned; /* no weight is negative, so sums of 16 bits are taken without a sign */
    bool is_narrow;   /* nor is there a factor, and with what is added they fit 16 bits */
    /* The lines under the mask, top to bottom, into a row of the answer. */
    void (*down)(const struct conv_cpu *cpu, const char *const *rows, char *out);
};

void conv_cpu_use_int16(struct conv_cpu *cpu, bool two_steps);
void conv_cpu_use_int32(struct conv_cpu *cpu, bool two_steps);
void conv_cpu_use_float(struct conv_cpu *cpu, bool two_steps);

/* False, and nothing done: not for this mask, or not on this machine. */
bool conv_cpu_use_symmetric(struct conv_cpu *cpu);

#endif
