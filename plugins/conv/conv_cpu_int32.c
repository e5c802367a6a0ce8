/*
 * Sums of bytes in 32 bits.
 */
#include "conv_cpu.h"

#define ELEM         uint8_t
#define SUM          int32_t
#define WEIGHT(name) name
/* By way of 16 bits, for which gcc 12 has an instruction. */
#define WIDEN(elems)                                                                               \
    __builtin_convertvector(__builtin_convertvector(elems, step_vector), sum_vector)

#include "conv_cpu_kind.h"

static void finish(const struct conv_cpu *cpu, const sum_vector chunk[VECTORS], uint8_t *results)
{
    const struct conv_tail tail = cpu->tail;
    int32_t sums[CHUNK];

    memcpy(sums, chunk, sizeof sums);
    if (tail.is_wide || tail.is_even)
        for (int i = 0; i < CHUNK; i++)
            results[i] = conv_saturate(conv_tail_apply(sums[i], &tail));
    else
#pragma omp simd
        for (int i = 0; i < CHUNK; i++)
            results[i] =
                conv_saturate((sums[i] * tail.multiplier + (int32_t)tail.add) >> tail.shift);
}

void conv_cpu_use_int32(struct conv_cpu *cpu, bool two_steps)
{
    use(cpu, two_steps);
}
