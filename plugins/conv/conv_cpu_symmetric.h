/*
 * Between the files of bytes under symmetric masks.
 */
#ifndef CONV_CPU_SYMMETRIC_H
#define CONV_CPU_SYMMETRIC_H

#include "conv_cpu.h"

enum { CONV_CPU_SYMMETRIC_ROW_MOST = 2055 }; /* sum of a row's weights, in magnitude */

/* For masks that conv_cpu_use_symmetric takes. False, and nothing done: too large, or not on this machine. */
bool conv_cpu_use_symmetric_avx512(struct conv_cpu *cpu);

#endif
