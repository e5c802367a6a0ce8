/*
 * Sums of floats as floats.
 */
#include "conv_cpu.h"

#define ELEM         float
#define SUM          float
#define WEIGHT(name) name##_real
#define WIDEN(elems) (elems)

static void finish(const struct conv_cpu *cpu, const float *sums, float *results);

#include "conv_cpu_kind.h"

static void finish(const struct conv_cpu *cpu, const float *sums, float *results)
{
#pragma omp simd
    for (int i = 0; i < CHUNK; i++)
        results[i] = cpu->scale * sums[i] + cpu->bias;
}

void conv_cpu_use_float(struct conv_cpu *cpu, bool two_steps)
{
    use(cpu, two_steps);
}
