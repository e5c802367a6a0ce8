/*
 * Bytes under a mask of small weights, whose sums fit 16 bits: which masks these are.
 */
#include "conv_cpu_bytes.h"
#include <stdlib.h>

#ifdef __x86_64__
bool conv_cpu_is_box3(const struct conv_cpu *cpu)
{
    static const int32_t box[3] = {683, 682, 683};
    const struct conv_mask *mask = cpu->mask;

    return mask->is_separable && mask->width == 3 && mask->height == 3 &&
           memcmp(mask->row, box, sizeof box) == 0 && memcmp(mask->column, box, sizeof box) == 0 &&
           conv_tail_only_shifts(&cpu->tail) && cpu->tail.shift == 22 &&
           cpu->tail.add == INT64_C(1) << 21;
}

static bool has_small_weights(const struct conv_cpu *cpu)
{
    const struct conv_mask *mask = cpu->mask;
    const struct conv_tail *tail = &cpu->tail;

    if (mask->magnitude > CONV_CPU_BYTES_MAGNITUDE || !conv_tail_only_shifts(tail))
        return false;
    for (int i = 0; i < mask->width * mask->height; i++)
        if (mask->weight[i] > INT8_MAX)
            return false;
    /* What saturates at 16 bits saturates at 8 too, unless it is shifted. */
    return llabs(tail->add) <= INT16_MAX &&
           (tail->shift == 0 || 255 * mask->magnitude + (double)llabs(tail->add) <= INT16_MAX);
}

bool conv_cpu_is_unsigned(const struct conv_cpu *cpu)
{
    return cpu->is_narrow && cpu->tail.shift > 0;
}

bool conv_cpu_is_product5(const struct conv_cpu *cpu)
{
    const struct conv_mask *mask = cpu->mask;
    int32_t row = 0;

    if (!mask->is_separable || mask->width != 5 || mask->height != 5)
        return false;
    for (int j = 0; j < mask->width; j++)
        row += abs(mask->row[j]);
    return row <= CONV_CPU_BYTES_MAGNITUDE && (conv_cpu_is_unsigned(cpu) || has_small_weights(cpu));
}

bool conv_cpu_use_bytes(struct conv_cpu *cpu)
{
    if (cpu->level == CONV_CPU_PLAIN ||
        (!has_small_weights(cpu) && !conv_cpu_is_box3(cpu) && !conv_cpu_is_product5(cpu)))
        return false;
    if (cpu->level == CONV_CPU_AVX2)
        conv_cpu_use_bytes_avx2(cpu);
    else
        conv_cpu_use_bytes_avx512(cpu);
    return true;
}
#else
bool conv_cpu_use_bytes(struct conv_cpu *cpu)
{
    (void)cpu;
    return false;
}
#endif
