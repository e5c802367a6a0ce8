/*
 * What a case answered, as hashes: two runs with equal ones gave the same bits.
 */
#ifndef GPURUN_RUN_ANSWER_H
#define GPURUN_RUN_ANSWER_H

#include "run/run.h"

/* The answer that is now in the host tensors, as verify left it: {TENSOR: XXH3 of 128 bits in hexadecimal} of
 * every out and inout tensor; reals by their bits. For the caller to free. */
json_t *answer_hashes(const struct run *run);

/* Keeps the answer of `c` that is now in the host tensors, or notes that it differs from the one kept, where setup
 * has not said that it may. */
void answer_keep(const struct run *run, struct run_case *c);

#endif
