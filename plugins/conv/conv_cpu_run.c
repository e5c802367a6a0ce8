/*
 * Results on their way to memory: a run of them at a time, past the cache by whole lines of the answer wherever its
 * rows begin.
 */
#include "conv_cpu.h"
#include <string.h>

/* --- whole lines, of which `to` is the first --------------------------------------------------------------- */

#ifdef __x86_64__
static void stream_sse2(char *to, const char *from, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += (int64_t)sizeof(__m128i))
        _mm_stream_si128((__m128i *)(void *)(to + at),
                         _mm_loadu_si128((const __m128i *)(const void *)(from + at)));
}

__attribute__((target("avx2"))) static void stream_avx2(char *to, const char *from, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += (int64_t)sizeof(__m256i))
        _mm256_stream_si256((__m256i *)(void *)(to + at),
                            _mm256_loadu_si256((const __m256i *)(const void *)(from + at)));
}

__attribute__((target("avx512f"))) static void stream_avx512(char *to, const char *from,
                                                             int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += (int64_t)sizeof(__m512i))
        _mm512_stream_si512((__m512i *)(void *)(to + at),
                            _mm512_loadu_si512((const void *)(from + at)));
}
#endif

void conv_cpu_use_stream(struct conv_cpu *cpu)
{
#ifdef __x86_64__
    cpu->stream = cpu->level == CONV_CPU_AVX512 ? stream_avx512
                  : cpu->level == CONV_CPU_AVX2 ? stream_avx2
                                                : stream_sse2;
#else
    (void)cpu;
#endif
}

/* --- runs --------------------------------------------------------------------------------------------------- */

static int64_t past_line(const char *place)
{
    return (int64_t)((uintptr_t)place % CONV_CPU_LINE);
}

/* `bytes` of them: those before the first whole line and behind the last by way of the cache. */
static void put_lines(const struct conv_cpu *cpu, char *to, const char *from, int64_t bytes)
{
    const int64_t past = past_line(to), before = past > 0 ? CONV_CPU_LINE - past : 0;
    const int64_t first = before < bytes ? before : bytes;
    const int64_t lines = (bytes - first) / CONV_CPU_LINE * CONV_CPU_LINE, done = first + lines;

    if (first > 0)
        memcpy(to, from, (size_t)first);
    cpu->stream(to + first, from + first, lines);
    if (done < bytes)
        memcpy(to + done, from + done, (size_t)(bytes - done));
}

void conv_cpu_put_run(const struct conv_cpu *cpu, struct conv_cpu_run *run, char *row, int64_t at,
                      int64_t end, bool is_last)
{
    const char *from = run->results + CONV_CPU_LINE;
    int64_t begun, left;

    if (!cpu->stream) {
        memcpy(row + at, from, (size_t)(end - at));
        return;
    }
    begun = at > 0 ? past_line(row + at) : 0;
    left = is_last ? 0 : past_line(row + end);
    put_lines(cpu, row + at - begun, from - begun, end - at + begun - left);
    memcpy(run->results, run->results + CONV_CPU_RUN, CONV_CPU_LINE);
}
