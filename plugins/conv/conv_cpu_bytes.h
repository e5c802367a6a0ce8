/*
 * Between the files of bytes under masks of small weights: one for each width of vectors.
 */
#ifndef CONV_CPU_BYTES_H
#define CONV_CPU_BYTES_H

#include "conv_cpu.h"

enum { CONV_CPU_BYTES_MAGNITUDE = INT16_MAX / 255 }; /* of a mask, at the most */

/* The box of 3 x 3, row and column 683 682 683: of all nine pixels' sum a, that of the middle row and column c, in
 * which the middle one, m, counts twice, its sum is 683 v + m, v = 683 a - c. It rounds to k or more, by 2^22,
 * where 683 v + m >= 2^22 k - 2^21 = 683 (6141 k - 3071) + k + 341: as m is below k + 341, where v >= 6141 k -
 * 3070. c is within 680 of 2/3 a, so k is at most p = (a + 12) / 9, and p unless v < 6141 p - 3070: then p - 1.
 * All fits 16 bits but v, and the difference does. */
enum {
    CONV_CPU_BOX_ALL = 683,
    CONV_CPU_BOX_STEP = 6141,
    CONV_CPU_BOX_NINTH = 7282, /* 2^16 / 9: right up to 12 + 9 * 255 */
    CONV_CPU_BOX_EXTRA =
        4, /* to each pixel in the middle of a row: 12 to a, and 4 times as much to c */
    /* What is added to v with them, less 3070 */
    CONV_CPU_BOX_LEAST = 12 * CONV_CPU_BOX_ALL - 4 * CONV_CPU_BOX_EXTRA - 3070,
};

bool conv_cpu_is_box3(const struct conv_cpu *cpu);

/* A product of 5 x 5, whose sums along the row fit 16 bits too. */
bool conv_cpu_is_product5(const struct conv_cpu *cpu);

/* Whether sums, with what is added, are 0 to 2^16 - 1, and are shifted. Else they have a sign. */
bool conv_cpu_is_unsigned(const struct conv_cpu *cpu);

void conv_cpu_use_bytes_avx2(struct conv_cpu *cpu);
void conv_cpu_use_bytes_avx512(struct conv_cpu *cpu);

#endif
