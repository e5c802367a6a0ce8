/*
 * Sums of floats as floats, as many at a time as the compiler takes for granted.
 */
#include "conv_cpu_float_kind.h"

void conv_cpu_use_float(struct conv_cpu *cpu, bool two_steps)
{
#ifdef __x86_64__
    if (cpu->level == CONV_CPU_AVX512)
        conv_cpu_use_float_avx512(cpu, two_steps);
    else if (cpu->level == CONV_CPU_AVX2)
        conv_cpu_use_float_avx2(cpu, two_steps);
    else
#endif
        use(cpu, two_steps);
}
