/*
 * Sums of floats as floats, for one width of vectors: that of conv_cpu_kind.h.
 */
#include "conv_cpu.h"

#define ELEM         float
#define SUM          float
#define WEIGHT(name) name##_real
#define WIDEN(elems) (elems)

#include "conv_cpu_kind.h"

TARGET static void finish(const struct conv_cpu *cpu, const sum_vector chunk[VECTORS],
                          float *results)
{
    for (int v = 0; v < VECTORS; v++) {
        const sum_vector scaled = chunk[v] * cpu->scale + cpu->bias;

        memcpy(results + v * LANES, &scaled, sizeof scaled);
    }
}
