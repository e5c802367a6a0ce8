/* Sums of words and copies past the caches: every instruction set that is here, every length and start near a step. */
#include "gpurun/host_memory.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

enum { WORDS = 300, BYTES = 4 * GPURUN_LINE, AROUND = 0x77 };

/* --- sums ----------------------------------------------------------------------------------------- */

typedef uint64_t sum_words(const uint32_t *in, int64_t elems, bool in_row);

static bool has_avx512(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
}

/* Words of all sizes: with the largest first, the sums pass 2^32 at once. */
static void check_sums(sum_words *sum)
{
    uint32_t *words = malloc(WORDS * sizeof *words);
    uint64_t right = 0;

    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i < 20 ? UINT32_MAX - i : i * 2654435761u;
    for (int start = 0; start < 4; start++) { /* no start is aligned to more than a word */
        right = 0;
        for (int n = 0; n <= WORDS - start; n++) {
            ck_assert_uint_eq(sum(words + start, n, true), right);
            ck_assert_uint_eq(sum(words + start, n, false), right);
            right += n < WORDS - start ? words[start + n] : 0;
        }
    }
    free(words);
}

/* More than two pieces. */
START_TEST(test_sum_of_pieces)
{
    enum { MANY = 2 * GPURUN_READ_PIECE / sizeof(uint32_t) + 5 };
    uint32_t *words = malloc(MANY * sizeof *words);
    uint64_t right = 0;

    for (uint32_t i = 0; i < MANY; i++)
        right += words[i] = i * 2654435761u;
    ck_assert_uint_eq(gpurun_sum_words(words, MANY), right);
    free(words);
}
END_TEST

START_TEST(test_sums)
{
    check_sums(gpurun_sum_piece_any);
    check_sums(gpurun_sum_piece);
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        check_sums(gpurun_sum_piece_avx2);
    if (has_avx512())
        check_sums(gpurun_sum_piece_avx512);
#endif
}
END_TEST

/* --- copies --------------------------------------------------------------------------------------- */

typedef void copy_bytes(void *to, const void *from, size_t bytes);

static void stream_any(void *to, const void *from, size_t bytes)
{
    gpurun_stream_lines_any(to, from, bytes);
}

#ifdef __x86_64__
static void stream_avx512(void *to, const void *from, size_t bytes)
{
    gpurun_stream_lines_avx512(to, from, bytes);
}
#endif

/* `bytes` bytes arrive, from any start, and none around them is touched. */
static void check_copy(copy_bytes *copy, size_t to_at, size_t from_at, size_t bytes)
{
    _Alignas(GPURUN_LINE) unsigned char to[BYTES + 2 * GPURUN_LINE], from[BYTES + GPURUN_LINE];

    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 31 + i / 251);
    memset(to, AROUND, sizeof to);
    copy(to + to_at, from + from_at, bytes);
    gpurun_end_past_caches();
    ck_assert_mem_eq(to + to_at, from + from_at, bytes);
    for (size_t i = 0; i < sizeof to; i++)
        if (i < to_at || i >= to_at + bytes)
            ck_assert_uint_eq(to[i], AROUND);
}

START_TEST(test_copies)
{
    for (size_t bytes = 0; bytes <= BYTES; bytes++)
        for (size_t to_at = 0; to_at < GPURUN_LINE; to_at += 9)
            check_copy(gpurun_copy_past_caches, to_at, bytes % 7, bytes);
}
END_TEST

START_TEST(test_lines)
{
    for (size_t lines = 0; lines <= 4; lines++) {
        check_copy(stream_any, 0, 5, lines * GPURUN_LINE);
#ifdef __x86_64__
        if (has_avx512())
            check_copy(stream_avx512, 0, 5, lines * GPURUN_LINE);
#endif
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("host_memory");
    TCase *all = tcase_create("all");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(all, test_sums);
    tcase_add_test(all, test_sum_of_pieces);
    tcase_add_test(all, test_copies);
    tcase_add_test(all, test_lines);
    suite_add_tcase(suite, all);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
