/*
 * Bytes under a mask of small weights, 32 at a time.
 */
#include "conv_cpu.h"

#ifdef __x86_64__
#define VECTOR_BYTES 32
#define TARGET       __attribute__((target("avx2")))
#define V(name)      _mm256_##name

typedef __m256i vector;

#include "conv_cpu_bytes_kind.h"

void conv_cpu_use_bytes_avx2(struct conv_cpu *cpu)
{
    use(cpu);
}
#endif
