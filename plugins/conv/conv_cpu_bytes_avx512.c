/*
 * Bytes under a mask of small weights, 64 at a time.
 */
#include "conv_cpu.h"

#ifdef __x86_64__
#define VECTOR_BYTES 64
#define TARGET       __attribute__((target("avx512bw")))
#define V(name)      _mm512_##name

typedef __m512i vector;

#include "conv_cpu_bytes_kind.h"

void conv_cpu_use_bytes_avx512(struct conv_cpu *cpu)
{
    use(cpu);
}
#endif
