/*
 * Sums of floats as floats, 16 at a time. Masks that go in one step go two rows of the answer at a time: most
 * loads take from two lines of memory, so each serves both rows.
 */
#include "conv_cpu.h"

#ifdef __x86_64__
#define VECTOR_BYTES 64
#define TARGET       __attribute__((target("avx512f")))

#include "conv_cpu_float_kind.h"

struct kept {
    bool is_ahead; /* the next row has been worked out, with the one above it */
    struct conv_cpu_run upper, lower;
};

/* A line that is under the mask's row `i` for the upper row of the answer, and under the one above for the lower. */
TARGET static inline void add_to_both(const struct conv_mask *mask, int i, const float *in,
                                      int64_t channels, sum_vector upper[VECTORS],
                                      sum_vector lower[VECTORS])
{
    const float *for_upper = mask->weight_real + i * mask->width;
    const float *for_lower = for_upper - mask->width;

    for (int j = 0; j < mask->width; j++, in += channels)
        for (int v = 0; v < VECTORS; v++) {
            sum_vector elems;

            memcpy(&elems, in + v * LANES, sizeof elems);
            __asm__("" : "+v"(elems)); /* the compiler would load for each of the two */
            upper[v] += elems * for_upper[j];
            lower[v] += elems * for_lower[j];
        }
}

TARGET static inline void add_line(const struct conv_mask *mask, int i, const float *in,
                                   int64_t channels, sum_vector sums[VECTORS])
{
    for (int j = 0; j < mask->width; j++)
        add_elems(sums, in + j * channels, mask->weight_real[i * mask->width + j]);
}

TARGET static void pass_two(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip,
                            char *out)
{
    const struct conv_mask *mask = cpu->mask;
    const int64_t row_bytes = strip->elems * (int64_t)sizeof(float);
    struct kept *const kept = strip->state;

    for (int64_t byte = 0; byte < row_bytes; byte += CHUNK_BYTES) {
        sum_vector upper[VECTORS] = {0}, lower[VECTORS] = {0};

        for (int64_t at = byte; at < byte + CHUNK_BYTES; at += CONV_CPU_LINE) {
            __builtin_prefetch(strip->next_in[0] + at);
            __builtin_prefetch(strip->next_in[1] + at);
        }
        add_line(mask, 0, (const float *)(const void *)(strip->lines[0] + byte), cpu->channels,
                 upper);
        for (int i = 1; i < mask->height; i++)
            add_to_both(mask, i, (const float *)(const void *)(strip->lines[i] + byte),
                        cpu->channels, upper, lower);
        add_line(mask, mask->height - 1,
                 (const float *)(const void *)(strip->lines[mask->height] + byte), cpu->channels,
                 lower);
        finish(cpu, upper, (float *)(void *)conv_cpu_place(&kept->upper, byte));
        finish(cpu, lower, (float *)(void *)conv_cpu_place(&kept->lower, byte));
        conv_cpu_put_chunk(cpu, &kept->upper, out, byte, CHUNK_BYTES, row_bytes);
        conv_cpu_put_chunk(cpu, &kept->lower, strip->next_out, byte, CHUNK_BYTES, row_bytes);
    }
}

/* Two rows in one call of two; a band's last row, where it is left over, alone. */
static void down_two(const struct conv_cpu *cpu, const struct conv_cpu_strip *strip, char *out)
{
    struct kept *const kept = strip->state;

    if (!strip->is_first && kept->is_ahead) {
        kept->is_ahead = false;
        return;
    }
    kept->is_ahead = strip->next_out != out;
    if (kept->is_ahead)
        pass_two(cpu, strip, out);
    else
        down_lines(cpu, strip, out);
}

void conv_cpu_use_float_avx512(struct conv_cpu *cpu, bool two_steps)
{
    cpu->down = two_steps ? down_along : down_two;
    cpu->state_bytes = sizeof(struct kept);
}
#endif
