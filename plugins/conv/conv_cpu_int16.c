/*
 * Sums of bytes in 16 bits, modulo 2^16: right at the end, as all of them together fit.
 */
#include "conv_cpu.h"

#define ELEM         uint8_t
#define SUM          uint16_t
#define WEIGHT(name) name
#define WIDEN(elems) __builtin_convertvector(elems, sum_vector)

#include "conv_cpu_kind.h"

/* The sum that 16 bits stand for: their own value, or less by 2^16 where the sign bit means a sign. */
static inline int32_t sum_of(uint16_t bits, int32_t sign)
{
    return bits - 2 * (bits & sign);
}

static void finish(const struct conv_cpu *cpu, const sum_vector chunk[VECTORS], uint8_t *results)
{
    const struct conv_tail tail = cpu->tail;
    uint16_t sums[CHUNK];
    const int32_t sign = cpu->is_unsigned ? 0 : 0x8000;

    memcpy(sums, chunk, sizeof sums);
    if (sign != 0 && tail.multiplier == 1 && tail.shift == 0 && tail.add == 0)
#pragma omp simd
        for (int i = 0; i < CHUNK; i++) {
            const int16_t sum = (int16_t)sums[i];

            results[i] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
        }
    else if (cpu->is_narrow)
#pragma omp simd
        for (int i = 0; i < CHUNK; i++) {
            const uint16_t result = (uint16_t)((uint16_t)(sums[i] + tail.add) >> tail.shift);

            results[i] = (uint8_t)(result > 255 ? 255 : result);
        }
    else if (tail.is_wide || tail.is_even)
        for (int i = 0; i < CHUNK; i++)
            results[i] = conv_saturate(conv_tail_apply(sum_of(sums[i], sign), &tail));
    else
#pragma omp simd
        for (int i = 0; i < CHUNK; i++)
            results[i] = conv_saturate(
                (sum_of(sums[i], sign) * tail.multiplier + (int32_t)tail.add) >> tail.shift);
}

void conv_cpu_use_int16(struct conv_cpu *cpu, bool two_steps)
{
    use(cpu, two_steps);
}
