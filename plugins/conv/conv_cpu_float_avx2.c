/*
 * Sums of floats as floats, 8 at a time.
 */
#include "conv_cpu.h"

#ifdef __x86_64__
#define VECTOR_BYTES 32
#define TARGET       __attribute__((target("avx2")))

#include "conv_cpu_float_kind.h"

void conv_cpu_use_float_avx2(struct conv_cpu *cpu, bool two_steps)
{
    use(cpu, two_steps);
}
#endif
