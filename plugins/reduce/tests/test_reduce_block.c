/*
 * The loops over a piece, by each set of instructions that this machine has and in either order that memory is read
 * in: each kind of sum and of extreme, every length near a
 * step. Elements are small whole numbers of every type, so that sums are exact whatever their order, and are added and
 * compared here as numbers.
 */
#include "gpurun/host_memory.h"
#include "reduce.h"
#include "reduce_key.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMS = 300 };

static int value_at(int64_t i)
{
    return (int)(i * 7919 % 2003) - 1001;
}

/* Element i of the kind's dtype. */
static void put(enum reduce_kind kind, char *data, int64_t i)
{
    const int value = value_at(i);
    const int64_t whole = value;
    const float narrow = (float)value;
    const double real = value;

    switch (kind) {
    case REDUCE_SUM_32:
    case REDUCE_SUM_INT32_WIDE:
    case REDUCE_SUM_UINT32_WIDE:
    case REDUCE_BEST_32:
        memcpy(data + i * (int64_t)sizeof value, &value, sizeof value);
        break;
    case REDUCE_SUM_64:
    case REDUCE_BEST_64:
        memcpy(data + i * (int64_t)sizeof whole, &whole, sizeof whole);
        break;
    case REDUCE_SUM_FLOAT:
    case REDUCE_SUM_FLOAT_WIDE:
    case REDUCE_BEST_FLOAT:
        memcpy(data + i * (int64_t)sizeof narrow, &narrow, sizeof narrow);
        break;
    default:
        memcpy(data + i * (int64_t)sizeof real, &real, sizeof real);
    }
}

/* The largest as what the block leaves: its key. */
static uint64_t key_of(enum reduce_kind kind, int value, uint64_t flip)
{
    const float narrow = (float)value;
    const double real = value;
    uint32_t bits32;
    uint64_t bits64;

    memcpy(&bits32, &narrow, sizeof bits32);
    memcpy(&bits64, &real, sizeof bits64);
    return kind == REDUCE_BEST_32      ? reduce_key32((uint32_t)value, false, (uint32_t)flip)
           : kind == REDUCE_BEST_FLOAT ? reduce_key32(bits32, true, (uint32_t)flip)
           : kind == REDUCE_BEST_64    ? reduce_key64((uint64_t)(int64_t)value, false, flip)
                                       : reduce_key64(bits64, true, flip);
}

static void expect_part(enum reduce_kind kind, const struct reduce_part *part, int64_t n,
                        bool in_row, uint64_t flip)
{
    int64_t sum = 0, unsigned_sum = 0;
    int best = value_at(0);

    for (int64_t i = 0; i < n; i++) {
        sum += value_at(i);
        unsigned_sum += (uint32_t)value_at(i);
        best = value_at(i) > best ? value_at(i) : best;
    }
    if (kind >= REDUCE_BEST_32)
        ck_assert_msg(part->whole == key_of(kind, best, flip), "kind %d of %d, in a row %d", kind,
                      (int)n, in_row);
    else if (kind >= REDUCE_SUM_FLOAT)
        ck_assert_msg(part->real + part->rest == (double)sum, "kind %d of %d, in a row %d", kind,
                      (int)n, in_row);
    else
        ck_assert_msg(part->whole == (kind == REDUCE_SUM_32            ? (uint32_t)sum
                                      : kind == REDUCE_SUM_UINT32_WIDE ? (uint64_t)unsigned_sum
                                                                       : (uint64_t)sum),
                      "kind %d of %d, in a row %d", kind, (int)n, in_row);
}

START_TEST(either_order)
{
    static const uint64_t flips[] = {[REDUCE_BEST_32] = UINT64_C(1) << 31,
                                     [REDUCE_BEST_64] = UINT64_C(1) << 63,
                                     [REDUCE_BEST_DOUBLE] = 0};
    const enum reduce_kind kind = (enum reduce_kind)_i;

    for (int64_t n = 1; n <= ELEMS; n++)
        for (int in_row = 0; in_row < 2; in_row++) {
            char *data = malloc((size_t)n * sizeof(double)); /* to the byte for those of 8 */
            struct reduce_part part;

            for (int64_t i = 0; i < n; i++)
                put(kind, data, i);
            for (int set = 0; set <= (int)gpurun_best_vectors(); set++) {
                part = (struct reduce_part){0};
                reduce_block_of(kind, set)(data, n, flips[kind], in_row, &part);
                expect_part(kind, &part, n, in_row, flips[kind]);
            }
            free(data);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reduce_block");
    TCase *blocks = tcase_create("blocks");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(blocks, either_order, 0, REDUCE_BEST_DOUBLE + 1);
    suite_add_tcase(suite, blocks);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
