/*
 * The baseline's comparison of a block with a limit, held against keys one by one: reals of every kind, limits at and
 * beside each of them, both orders, an element above the limit at any place of the block; whole numbers, and what is the
 * largest of each column. By each set of instructions that this machine has, in either order that memory is read in.
 */
#include "gpurun/host_memory.h"
#include "gpurun/key.h"
#include "topk.h"
#include <check.h>
#include <math.h>
#include <string.h>

enum { ELEMS = 133, ODD = 3 }; /* places that vectors read, and a rest */

static const double values[] = {-NAN, -INFINITY, -1e300, -1e30, -1,   -1e-42, -5e-324,  -0.0,
                                0.0,  5e-324,    1e-42,  1,     1e30, 1e300,  INFINITY, NAN};

enum { VALUES = sizeof values / sizeof *values };

static uint64_t bits_of(double value, size_t bytes)
{
    const float narrow = (float)value;
    uint32_t bits32;
    uint64_t bits64;

    memcpy(&bits32, &narrow, sizeof bits32);
    memcpy(&bits64, &value, sizeof bits64);
    return bytes == 4 ? bits32 : bits64;
}

static uint64_t key_of(double value, size_t bytes, uint64_t flip)
{
    return bytes == 4 ? gpurun_key32((uint32_t)bits_of(value, 4), true, (uint32_t)flip)
                      : gpurun_key64(bits_of(value, 8), true, flip);
}

/* `value` at one place, what comes last in the order at all others. */
static void expect_above(size_t bytes, uint64_t flip, double value, uint64_t limit)
{
    const double last = flip == 0 ? -INFINITY : NAN;
    const bool right = key_of(value, bytes, flip) > limit || key_of(last, bytes, flip) > limit;

    for (int64_t place = 0; place < ELEMS; place += ODD) {
        uint64_t block[ELEMS];

        for (int64_t i = 0; i < ELEMS; i++) {
            const uint64_t bits = bits_of(i == place ? value : last, bytes);

            memcpy((char *)block + (size_t)i * bytes, &bits, bytes); /* the low bytes come first */
        }
        for (int way = 0; way < 2 * ((int)gpurun_best_vectors() + 1); way++)
            ck_assert_msg(
                topk_block_of(bytes, true, way / 2)->above(block, ELEMS, limit, flip, way % 2) ==
                    right,
                "%zu bytes, flip %llx, %g at %lld, limit %llx, set %d, in a row %d", bytes,
                (unsigned long long)flip, value, (long long)place, (unsigned long long)limit,
                way / 2, way % 2);
    }
}

START_TEST(reals_above_every_limit)
{
    const size_t bytes = _i % 2 == 0 ? 4 : 8;
    const uint64_t all = bytes == 4 ? UINT32_MAX : UINT64_MAX, flip = _i / 2 == 0 ? 0 : all;

    for (int v = 0; v < VALUES; v++) {
        for (int l = 0; l < VALUES; l++)
            for (int64_t beside = -1; beside <= 1; beside++)
                expect_above(bytes, flip, values[v],
                             (key_of(values[l], bytes, flip) + (uint64_t)beside) & all);
        expect_above(bytes, flip, values[v], 0);
        expect_above(bytes, flip, values[v], all);
    }
}
END_TEST

enum { ROWS = 5, MANY = ROWS * TOPK_COLUMNS + 7 };

/* Element i as a whole number or a real, and its key. */
static uint64_t put_element(char *block, int64_t i, size_t bytes, bool is_real, uint64_t flip)
{
    const int64_t value = i * 7919 % 2003 - 1001;
    const uint64_t bits = is_real ? bits_of((double)value, bytes) : (uint64_t)value;

    memcpy(block + (size_t)i * bytes, &bits, bytes);
    return bytes == 4 ? gpurun_key32((uint32_t)bits, is_real, (uint32_t)flip)
                      : gpurun_key64(bits, is_real, flip);
}

static void expect_block(const struct topk_block *block, size_t bytes, bool is_real, uint64_t flip)
{
    uint64_t data[MANY], keys[MANY], columns[TOPK_COLUMNS] = {0}, maxima[TOPK_COLUMNS], best = 0;

    for (int64_t i = 0; i < MANY; i++) {
        keys[i] = put_element((char *)data, i, bytes, is_real, flip);
        if (i < ROWS * TOPK_COLUMNS && keys[i] > columns[i % TOPK_COLUMNS])
            columns[i % TOPK_COLUMNS] = keys[i];
    }
    block->maxima(data, MANY, flip, maxima);
    ck_assert_mem_eq(maxima, columns, sizeof columns);
    for (int64_t n = 1; n <= MANY; n++) {
        best = keys[n - 1] > best ? keys[n - 1] : best;
        for (int in_row = 0; in_row < 2; in_row++) {
            ck_assert(!block->above(data, n, best, flip, in_row));
            ck_assert(block->above(data, n, best - 1, flip, in_row));
        }
    }
}

START_TEST(whole_blocks)
{
    const size_t bytes = _i % 2 == 0 ? 4 : 8;
    const bool is_real = _i / 2 % 2 == 1;
    const uint64_t all = bytes == 4 ? UINT32_MAX : UINT64_MAX, top = all ^ all >> 1;

    for (int set = 0; set <= (int)gpurun_best_vectors(); set++) {
        const struct topk_block *block = topk_block_of(bytes, is_real, set);

        expect_block(block, bytes, is_real, is_real ? 0 : top);         /* the largest */
        expect_block(block, bytes, is_real, is_real ? all : all ^ top); /* the least */
        if (!is_real)
            expect_block(block, bytes, is_real, 0); /* without a sign */
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("topk_block");
    TCase *reals = tcase_create("reals"), *wholes = tcase_create("whole blocks");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(reals, reals_above_every_limit, 0, 4);
    suite_add_tcase(suite, reals);
    tcase_add_loop_test(wholes, whole_blocks, 0, 4);
    suite_add_tcase(suite, wholes);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
